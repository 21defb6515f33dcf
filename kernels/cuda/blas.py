"""Sums of products of floats by cuBLAS, where CuPy finds it: without TF32, which would keep ten bits of a float32."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.kernels.cuda.compiler import rehearsing

__all__ = ["fits_blas", "gemm", "has_blas", "is_plus_times"]

_PRECISIONS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}

_MOST = (1 << 31) - 1
"""Of rows, columns and strides, which are 32 bits wide there."""

_TF32 = 3
"""CUBLAS_TF32_TENSOR_OP_MATH, in which others may have left the handle."""


@functools.cache
def has_blas() -> bool:
    """Whether CuPy finds cuBLAS."""
    try:
        _cublas()
    except ImportError:
        return False
    return True


def _cublas() -> Any:
    """CuPy's binding."""
    return importlib.import_module("cupy_backends.cuda.libs.cublas")


def is_plus_times(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether ⊕ is the sum and ⊗ the product of floats that cuBLAS has."""
    program = semiring.program
    return (
        len(dtypes) == 1 and dtypes[0] in _PRECISIONS and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))
    )


def fits_blas(*arrays: Any) -> bool:
    """Whether cuBLAS takes matrices, batches of shape (count, m, n), as they lie: the numbers of each row or column side by side."""
    return (
        all(_leading(v) is not None and max(*v.shape, abs(v.strides[0])) <= _MOST for v in arrays)
        and arrays[-1].strides[2] == arrays[-1].itemsize
    )


def _leading(v: Any) -> tuple[int, int] | None:
    """Whether the matrices lie by columns, and how far apart their rows or columns are, in numbers; None where numbers lie apart."""
    (_, m, n), (_, row, column), size = v.shape, v.strides, v.itemsize
    for transposed, length, step, apart, count in ((0, n, column, row, m), (1, m, row, column, n)):
        if step == size or length == 1:
            if count == 1:
                return transposed, length
            if apart >= length * size and apart % size == 0:
                return transposed, apart // size
    return None


def gemm(A: Any, B: Any, C: Any, *, fresh: bool) -> None:
    """C ← C + AB, or AB where C is `fresh`, in the current stream, for batches that `fits_blas` and of which C shares nothing with A or B.

    Parameters
    ----------
    A : array of shape (count, m, k)
    B : array of shape (count, k, n)
    C : array of shape (count, m, n)
        With contiguous rows.
    fresh : bool
    """
    import cupy

    if rehearsing():
        return
    (count, m, n), k, kind = C.shape, A.shape[2], _PRECISIONS[C.dtype]
    cublas, handle = _cublas(), cupy.cuda.device.get_cublas_handle()
    (by_columns_a, lda), (by_columns_b, ldb), (_, ldc) = (_leading(v) or (0, 0) for v in (A, B, C))
    scalars = np.array([1, not fresh], C.dtype)  # α and β
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + C.itemsize
    mode = cublas.getMathMode(handle)
    if mode == _TF32:
        cublas.setMathMode(handle, 0)
    # cuBLAS takes what lies by rows for the transpose that lies by columns: Cᵀ = Bᵀ Aᵀ.
    shape = by_columns_b, by_columns_a, n, m, k
    try:
        if count == 1:
            multiply = getattr(cublas, f"{kind}gemm")
            multiply(handle, *shape, alpha, B.data.ptr, ldb, A.data.ptr, lda, beta, C.data.ptr, ldc)
        else:
            multiply = getattr(cublas, f"{kind}gemmStridedBatched")
            a, b, c = (v.strides[0] // v.itemsize for v in (A, B, C))
            multiply(handle, *shape, alpha, B.data.ptr, ldb, b, A.data.ptr, lda, a, beta, C.data.ptr, ldc, c, count)
    finally:
        if mode == _TF32:
            cublas.setMathMode(handle, mode)
