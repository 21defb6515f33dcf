"""Copies of matrices in device memory, in rows, whatever their strides: several times as fast as element by element."""

from __future__ import annotations

import functools
from typing import Any

from semiring.kernels.cuda.loading import Kernel, rehearsing

__all__ = ["contiguous", "copy_rows", "move"]

_TILE = 32
_BATCH, _MOST = 65535, 65535 * _TILE
"""Matrices and rows that one launch can number."""


def move(source: Any, target: Any) -> None:
    """target ← source, of one shape on one GPU, without a kernel of CuPy's wherever target has contiguous rows."""
    if source.size == 0:
        return
    if source.flags.c_contiguous and target.flags.c_contiguous and source.dtype == target.dtype:
        if not rehearsing():
            target.data.copy_from_device_async(source.data, source.nbytes)
    elif source.ndim in (2, 3) and target.strides[-1] == target.itemsize <= 8 and source.dtype == target.dtype:
        old, new = ((v if v.ndim == 3 else v[None]) for v in (source, target))
        copy_rows(old, new)
    elif not rehearsing():
        target[...] = source


def contiguous(array: Any) -> Any:
    """The array, or a C-contiguous copy where it is not that."""
    import cupy

    if array.flags.c_contiguous:
        return array
    copy = cupy.empty(array.shape, array.dtype)
    move(array, copy)
    return copy


def copy_rows(source: Any, target: Any) -> None:
    """Copy an array of shape (batch, m, n) to one of the same shape and dtype whose rows are contiguous."""
    import cupy

    if source.size == 0:
        return
    kernel = _kernel(source.itemsize, cupy.cuda.runtime.getDevice())
    size, (count, m, n) = source.itemsize, source.shape
    for first in range(0, count, _BATCH):
        for top in range(0, m, _MOST):
            old, new = (v[first : first + _BATCH, top : top + _MOST] for v in (source, target))
            apart, row, column = (s // size for s in old.strides)
            new_apart, pitch, _ = (s // size for s in new.strides)
            grid = -(-n // _TILE), -(-old.shape[1] // _TILE), len(old)
            kernel(grid, (_TILE, 8, 1), (old.data.ptr, row, column, apart, new.data.ptr, pitch, new_apart, old.shape[1], n))


@functools.cache
def _kernel(size: int, number: int) -> Kernel:
    """The kernel for numbers of `size` bytes on a GPU."""
    kind = f"uint{8 * size}"
    source = (
        '#include "rows.cuh"\n\n'
        f'extern "C" __global__ void copy_rows(const {kind}* source, long long row, long long column, long long apart, {kind}* target, '
        "long long pitch, long long target_apart, long long m, long long n) {\n"
        "  copy_tiles(source, row, column, apart, target, pitch, target_apart, int(m), int(n));\n}\n"
    )
    return Kernel("copy_rows", lambda: source, number)
