"""Cutting work into pieces: how much is worked on at once, and the slices that follow from it.

What is computed for each entry of a large matrix is computed for some of its rows at a time, so that temporaries are small beside the
matrix. How small is decided here, by where the piece is to stay:

| budget | what it bounds |
|---|---|
| `CACHE` | entries of which a dozen temporaries stay in a core's own cache: tests of elements, relaxation, pointers that are followed |
| `HOST` | entries beside which a call of NumPy costs nothing, and whose temporaries take a few MiB: components, searches, statistics |
| `GPU` | the same on a GPU, which takes as long to start as for a million entries |
| `DISK` | bytes that are read, written or unpacked in one go |
| `CPU_SCRATCH`, `GPU_SCRATCH` | bytes that a product may take for packed panels and copies |
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from semiring.arrays.devices import on_gpu

__all__ = ["CACHE", "CPU_SCRATCH", "DISK", "GPU", "GPU_SCRATCH", "HOST", "pieces", "row_slices", "slices"]

CACHE, HOST, GPU = 1 << 17, 1 << 20, 1 << 22
DISK = 1 << 24
CPU_SCRATCH, GPU_SCRATCH = 1 << 24, 1 << 26


def slices(count: int, size: int, budget: int) -> Iterator[slice]:
    """Consecutive slices, together all of `count` rows of `size` entries each: as many rows at a time as the budget holds, or one."""
    step = max(1, budget // max(1, size))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))


def row_slices(array: Any) -> Iterator[slice]:
    """Slices of the first axis, together all of it, for work on entries where the array lies."""
    return slices(len(array), math.prod(array.shape[1:]), GPU if on_gpu(array) else CACHE)


def pieces(shape: tuple[int, ...], budget: int = CACHE) -> Iterator[tuple[slice, ...]]:
    """Indices that cut an array into pieces of at most so many entries, in C order."""
    inner = math.prod(shape[1:])
    if not shape or shape[0] * inner <= budget:
        yield (slice(None),) * len(shape)
    elif inner <= budget:
        for rows in slices(shape[0], inner, budget):
            yield rows, *(slice(None),) * (len(shape) - 1)
    else:
        for i in range(shape[0]):
            for rest in pieces(shape[1:], budget):
                yield slice(i, i + 1), *rest
