"""What is done to each element of arrays on a GPU, by kernels of ours: compiled and kept as all others are, and exact for subnormals.

CuPy's own take half a second at the first use of each, and take subnormals for zeros.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semiring.kernels.cuda.loading import Kernel
from semiring.kernels.cuda.operands import stacked

__all__ = ["elements_source", "for_each"]

_THREADS = 256
_ACROSS, _DOWN = 1 << 16, 65535
"""Blocks along a row at most, and down a column or along a batch; beyond that, a thread has several elements."""


def for_each(body: str, arrays: dict[str, Any], **numbers: int) -> None:
    """Run a statement for each element of arrays of one shape.

    Parameters
    ----------
    body : str
        A statement in C++, in which the arrays' names stand for their elements and the numbers' for integers of 64 bits.
    arrays : dict of arrays of shape (…, m, n)
        By name, with any strides that need one number for all leading axes.
    """
    import cupy

    views = list(arrays.values())
    if views[0].size == 0:
        return
    if all(v.flags.c_contiguous for v in views):
        count, m, n, strides = 1, 1, views[0].size, [(0, 0, 1)] * len(views)
    else:
        views = [stacked(v) for v in views]
        count, m, n = views[0].shape
        strides = [tuple(s // v.itemsize for s in v.strides) for v in views]
        if abs(strides[0][1]) < abs(strides[0][2]):  # what is contiguous in columns is read down those
            m, n, strides = n, m, [(batch, column, row) for batch, row, column in strides]
    kernel = _kernel(body, tuple((name, v.dtype) for name, v in arrays.items()), tuple(numbers), cupy.cuda.runtime.getDevice())
    layouts = [x for v, (batch, row, column) in zip(views, strides, strict=True) for x in (v.data.ptr, row, column, batch)]
    grid = min(-(-n // _THREADS), _ACROSS), min(m, _DOWN), min(count, _DOWN)
    kernel(grid, (_THREADS, 1, 1), (*layouts, count, m, n, *map(_signed, numbers.values())))


def _signed(number: int) -> int:
    """The integer of 64 bits with a sign that has the same bits."""
    return (number + 2**63) % 2**64 - 2**63


def elements_source(body: str, arrays: tuple[tuple[str, np.dtype[Any]], ...], numbers: tuple[str, ...]) -> str:
    """The CUDA C++ of a kernel for arrays of some names and dtypes."""
    parameters = [f"{dtype}* {name}_data, int64 {name}_row, int64 {name}_column, int64 {name}_batch" for name, dtype in arrays]
    matrices = (f"  const Strided<{dtype}> {name}_all{{{name}_data, {name}_row, {name}_column, {name}_batch}};\n" for name, dtype in arrays)
    elements = (f"    {dtype}& {name} = {name}_all.at(b, i, j);\n" for name, dtype in arrays)
    return (
        '#include "elements.cuh"\n\n'
        f'extern "C" __global__ void __launch_bounds__({_THREADS}) elements('
        f"{', '.join([*parameters, 'int64 count, int64 m, int64 n', *(f'int64 {name}' for name in numbers)])}) {{\n"
        f"{''.join(matrices)}  each_element(count, m, n, [&](int64 b, int64 i, int64 j) {{\n{''.join(elements)}    {body};\n  }});\n}}\n"
    )


@functools.cache
def _kernel(body: str, arrays: tuple[tuple[str, np.dtype[Any]], ...], numbers: tuple[str, ...], number: int) -> Kernel:
    return Kernel("elements", lambda: elements_source(body, arrays, numbers), number)
