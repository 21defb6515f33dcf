"""What one pass over an array on a GPU tells."""

from __future__ import annotations

import functools
from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from semiring.kernels.cuda.compiler import compile_source
from semiring.kernels.cuda.device import device
from semiring.kernels.cuda.operands import stacked
from semiring.kernels.statistics import ValueStatistics

__all__ = ["survey", "survey_source"]

_THREADS = 256
_BLOCKS, _NUMBERS = 8, 8
"""Blocks of a multiprocessor at most, and numbers of a thread at least."""

_FINITE, _POSITIVE_INFINITY, _NEGATIVE_INFINITY, _NAN, _NEGATIVE_ZERO = (1 << bit for bit in range(5))
"""`Seen` in survey.cuh."""


def survey(values: Any, infinities: tuple[int, ...] = ()) -> Callable[[], ValueStatistics]:
    """Begins to look at the numbers of an array; what it returns waits for the GPU and tells what they are.

    Only of matrices of which a batch cannot be numbered by one stride it makes a copy.

    Parameters
    ----------
    values : array of integers or floats, with any strides
    infinities : tuple of int
        Which of the least and the greatest value of an integer dtype stand for ±∞.
    """
    import cupy

    if values.size == 0:
        return ValueStatistics
    number, size = cupy.cuda.runtime.getDevice(), values.size
    contiguous = values.flags.c_contiguous or values.flags.f_contiguous
    batch = values if contiguous else stacked(values if values.ndim > 1 else values[None])
    layout = () if contiguous else (*batch.shape[1:], *(s // batch.itemsize for s in batch.strides))
    kernel = _kernel(values.dtype, infinities, contiguous, number)
    found = cupy.empty(3, np.uint64)
    found.data.memset_async(0, found.nbytes)
    blocks = min(-(-size // (_THREADS * _NUMBERS)), _BLOCKS * device(number).multiprocessors)
    kernel((blocks, 1, 1), (_THREADS, 1, 1), (batch.data.ptr, size, *layout, found.data.ptr))
    return functools.partial(_told, found, values.dtype)


def _told(found: Any, dtype: np.dtype[Any]) -> ValueStatistics:
    """What the kernel has found."""
    greatest, least, kinds = found.get().tolist()
    return ValueStatistics(
        (_number(~least, dtype), _number(greatest, dtype)) if kinds & _FINITE else None,
        bool(kinds & _POSITIVE_INFINITY),
        bool(kinds & _NEGATIVE_INFINITY),
        bool(kinds & _NAN),
        bool(kinds & _NEGATIVE_ZERO),
    )


def _number(place: int, dtype: np.dtype[Any]) -> float:
    """The number of a place, as survey.cuh numbers them."""
    bits = 64 if dtype.itemsize > 4 else 32
    place, top = place & ((1 << bits) - 1), 1 << (bits - 1)
    if dtype.kind != "f":
        return place - top if dtype.kind == "i" else place
    word = place ^ top if place & top else place ^ (2 * top - 1)
    number: float = _FLOAT[bits].unpack(_WORD[bits].pack(word))[0]
    return number


_WORD, _FLOAT = {32: Struct("=I"), 64: Struct("=Q")}, {32: Struct("=f"), 64: Struct("=d")}


def survey_source(dtype: np.dtype[Any], infinities: tuple[int, ...], *, contiguous: bool) -> str:
    """The CUDA C++ of the kernel for one dtype."""
    ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    lowest, highest = ("true" if dtype.kind == "f" or end in infinities else "false" for end in ends)
    layout = "" if contiguous else "int64 m, int64 n, int64 apart, int64 row, int64 column, "
    place = "i" if contiguous else "i / n / m * apart + i / n % m * row + i % n * column"
    return (
        '#include "survey.cuh"\n\n'
        f'extern "C" __global__ void look(const {dtype}* numbers, int64 size, {layout}uint64* found) {{\n'
        f"  survey<{dtype}, {lowest}, {highest}>(numbers, size, [=](int64 i) {{ return {place}; }}, found);\n}}\n"
    )


@functools.cache
def _kernel(dtype: np.dtype[Any], infinities: tuple[int, ...], contiguous: bool, number: int) -> Any:
    """The kernel for one dtype on a GPU."""
    import cupy

    module: Any = cupy.cuda.Module()
    module.load(compile_source(survey_source(dtype, infinities, contiguous=contiguous), device(number).arch))
    return module.get_function("look")
