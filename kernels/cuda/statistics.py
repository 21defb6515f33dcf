"""Value statistics of arrays on a GPU: one launch for all of one dtype, and one wait for all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np

from semiring.kernels.cuda.compiler import compile_source
from semiring.kernels.cuda.device import device
from semiring.kernels.cuda.operands import by_value, stacked
from semiring.kernels.statistics import Found

__all__ = ["begin", "statistics_source"]

_THREADS = 256
_BLOCKS, _NUMBERS = 8, 8
"""Blocks of a multiprocessor at most, and numbers of a thread at least."""

_COUNT = 8
"""Arrays of a launch at most."""

_WORDS, _FIELDS = 5, 7
"""Words of `Found` and of `Numbers` in statistics.cuh."""


def begin(arrays: Sequence[Any]) -> Callable[[], list[Found]]:
    """Begins to look at arrays of integers or floats, with any strides; what it returns waits for the GPU and tells what is found.

    Only of matrices of which a batch cannot be numbered by one stride it makes a copy.
    """
    import cupy

    if not any(v.size for v in arrays):
        return lambda: [(0, 0, 0, 0, 0)] * len(arrays)
    number = cupy.cuda.runtime.getDevice()
    found = cupy.empty((len(arrays), _WORDS), np.uint64)
    found.data.memset_async(0, found.nbytes)
    by_dtype: dict[np.dtype[Any], list[int]] = {}
    for i, v in enumerate(arrays):
        by_dtype.setdefault(v.dtype, []).append(i)
    row = 0
    for dtype, places in by_dtype.items():
        for start in range(0, len(places), _COUNT):
            some = [_contiguous_or_stacked(arrays[i]) for i in places[start : start + _COUNT]]
            blocks = min(-(-max(v.size for v in some) // (_THREADS * _NUMBERS)), _BLOCKS * device(number).multiprocessors)
            table = np.zeros((_COUNT, _FIELDS), np.int64)
            table[: len(some)] = list(map(_numbers, some))
            _kernel(dtype, number)((max(1, blocks), len(some), 1), (_THREADS, 1, 1), (by_value(table), found.data.ptr + 8 * _WORDS * row))
            row += len(some)

    order, dtypes = list(chain.from_iterable(by_dtype.values())), [v.dtype for v in arrays]

    def wait() -> list[Found]:
        words = dict(zip(order, found.get().tolist(), strict=True))
        return [_told(words[i], dtype) for i, dtype in enumerate(dtypes)]

    return wait


def _contiguous_or_stacked(values: Any) -> Any:
    """The array itself, or of one that is not contiguous the matrices of a batch."""
    if values.flags.c_contiguous or values.flags.f_contiguous:
        return values
    return stacked(values if values.ndim > 1 else values[None])


def _numbers(values: Any) -> tuple[int, ...]:
    """`Numbers` in statistics.cuh."""
    if values.flags.c_contiguous or values.flags.f_contiguous:
        return values.data.ptr, values.size, 0, 0, 0, 0, 0
    return values.data.ptr, values.size, *values.shape[1:], *(s // values.itemsize for s in values.strides)


def _told(words: Sequence[int], dtype: np.dtype[Any]) -> Found:
    """What the kernel has found."""
    greatest, least, kinds, zeros, negative_zeros = words
    return _number(~least, dtype), _number(greatest, dtype), kinds, zeros, negative_zeros


def _number(place: int, dtype: np.dtype[Any]) -> float:
    """The number of a place, as statistics.cuh numbers them."""
    bits = 64 if dtype.itemsize > 4 else 32
    place, top = place & ((1 << bits) - 1), 1 << (bits - 1)
    if dtype.kind != "f":
        return place - top if dtype.kind == "i" else place
    word = place ^ top if place & top else place ^ (2 * top - 1)
    number: float = _FLOAT[bits].unpack(_WORD[bits].pack(word))[0]
    return number


_WORD, _FLOAT = {32: Struct("=I"), 64: Struct("=Q")}, {32: Struct("=f"), 64: Struct("=d")}


def statistics_source(dtype: np.dtype[Any]) -> str:
    """The CUDA C++ of the kernel for one dtype."""
    return (
        '#include "statistics.cuh"\n\n'
        f'extern "C" __global__ void tell(const __grid_constant__ Given<{dtype}, {_COUNT}> given, Found* found) {{\n'
        "  statistics(given.arrays[blockIdx.y], found + blockIdx.y);\n}\n"
    )


@functools.cache
def _kernel(dtype: np.dtype[Any], number: int) -> Any:
    """The kernel for one dtype on a GPU."""
    import cupy

    module: Any = cupy.cuda.Module()
    module.load(compile_source(statistics_source(dtype), device(number).arch))
    return module.get_function("tell")
