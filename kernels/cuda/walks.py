"""The paths of many pairs out of a construction matrix on a GPU, a thread a pair."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semiring.kernels.cuda.loading import Kernel

__all__ = ["SOURCE", "walks"]

SOURCE = """#include "walks.cuh"

extern "C" __global__ void walks(const int* via, long long row, long long column, const int* sources, const int* targets, long long pairs,
                                 long long room, int* vertices, int* lengths) {
  expand(via, row, column, sources, targets, pairs, int(room), vertices, lengths);
}
"""

_FIRST_ROOM, _GROWTH = 64, 16
"""Vertices that a walk may have at first, and how many times as many where that was not enough."""

_SCRATCH = 64 << 20
"""Bytes of walks that are expanded together."""

_THREADS = 64


def walks(via: Any, sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> list[list[int] | None]:
    """See `semiring.kernels.extraction.walks`."""
    found: list[list[int] | None] = [None] * len(sources)
    left = np.arange(len(sources))
    most = len(via) + 1
    room = min(_FIRST_ROOM, most)
    with via.device:
        while len(left):
            step = max(1, _SCRATCH // (4 * room))
            for start in range(0, len(left), step):
                some = left[start : start + step]
                for pair, walk in zip(some.tolist(), _expand(via, sources[some], targets[some], room), strict=True):
                    found[pair] = walk or None
            if room == most:
                break
            left = np.array([pair for pair in left.tolist() if found[pair] is None], dtype=np.intp)
            room = min(room * _GROWTH, most)
    return found


def _expand(via: Any, sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any], room: int) -> list[list[int]]:
    """The walks of at most `room` vertices; empty where there are more."""
    import cupy

    pairs = len(sources)
    ends = [cupy.asarray(v, dtype=np.int32) for v in (sources, targets)]
    vertices = cupy.empty((pairs, room), dtype=np.int32)
    lengths = cupy.empty(pairs, dtype=np.int32)
    row, column = (s // via.itemsize for s in via.strides)
    arguments = (via.data.ptr, row, column, *(v.data.ptr for v in ends), pairs, room, vertices.data.ptr, lengths.data.ptr)
    _function(via.device.id)((-(-pairs // _THREADS), 1, 1), (_THREADS, 1, 1), arguments)
    sizes = lengths.get()
    longest = int(sizes.max())
    flat = vertices[:, :longest].get()[np.arange(longest) < sizes[:, None]].tolist()
    stops = np.cumsum(sizes).tolist()
    return [flat[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


@functools.cache
def _function(number: int) -> Kernel:
    return Kernel("walks", lambda: SOURCE, number)
