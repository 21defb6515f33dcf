"""Sums of products of floats by cuBLAS, where CuPy finds cuBLAS; without TF32, which would keep ten bits of a float32."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.arrays.overlap import address
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate
from semiring.kernels.cuda.compiler import rehearsing

__all__ = ["BlasPlan", "blas_plan", "has_blas", "is_faster", "is_plus_times"]

_PRECISIONS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_MOST = (1 << 31) - 1  # cuBLAS's rows, columns and strides have 32 bits
_INEXACT = (1, 3)  # CUBLAS_TENSOR_OP_MATH and CUBLAS_TF32_TENSOR_OP_MATH, in case other code left the handle in these modes
_MODE = 15  # the bits of a math mode without its flags


@functools.cache
def has_blas() -> bool:
    """Return True if CuPy finds cuBLAS."""
    try:
        _cublas()
    except ImportError:
        return False
    return True


def _cublas() -> Any:
    return importlib.import_module("cupy_backends.cuda.libs.cublas")


def is_faster(least: Mapping[int, int], size: int, count: int, m: int, n: int, k: int) -> bool:
    """Return True if cuBLAS is faster for `count` products of elements of `size` bytes; `least` maps sizes to the fewest steps."""
    return count * m * n * k >= least[size] and min(m, n, k) >= machine.BLAS_SIDE and has_blas()


def is_plus_times(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Return True if ⊕ is + and ⊗ is ×, on floats that cuBLAS supports."""
    program = semiring.program
    return (
        len(dtypes) == 1 and dtypes[0] in _PRECISIONS and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))
    )


@dataclass(frozen=True, slots=True, eq=False)
class BlasPlan:
    """A product C ← C + AB, or C ← AB if `fresh`, of matrices in layouts that cuBLAS takes."""

    dtype: np.dtype[Any]
    layout: tuple[int, int, int, int, int]  # 1 for B and for A if by columns; columns and rows of C; steps
    leading: tuple[int, int, int]  # distances between the rows (columns) of A, B and C, in numbers
    apart: tuple[int, int, int]  # distances between the matrices of a batch
    count: int  # matrices
    fresh: bool

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS) -> None:
        """Call cuBLAS in the current stream, with the addresses of A, B and C."""
        import cupy

        assert not predicate[0], "cuBLAS has no predicates"
        if rehearsing():
            return
        cublas, handle, kind = _cublas(), cupy.cuda.device.get_cublas_handle(), _PRECISIONS[self.dtype]
        scalars = np.array([1, not self.fresh], self.dtype)  # α and β
        alpha = address(scalars)
        (a, b, c), (lda, ldb, ldc), beta = own[:3], self.leading, alpha + self.dtype.itemsize
        mode = cublas.getMathMode(handle)
        exact = mode & _MODE not in _INEXACT
        if not exact:
            cublas.setMathMode(handle, 0)
        # cuBLAS stores matrices by columns, and a matrix by rows is its transpose by columns: Cᵀ = Bᵀ Aᵀ.
        try:
            if self.count == 1:
                multiply = getattr(cublas, f"{kind}gemm")
                multiply(handle, *self.layout, alpha, b, ldb, a, lda, beta, c, ldc)
            else:
                multiply, (next_a, next_b, next_c) = getattr(cublas, f"{kind}gemmStridedBatched"), self.apart
                multiply(handle, *self.layout, alpha, b, ldb, next_b, a, lda, next_a, beta, c, ldc, next_c, self.count)
        finally:
            if not exact:
                cublas.setMathMode(handle, mode)


def blas_plan(A: Any, B: Any, C: Any, *, fresh: bool) -> BlasPlan | None:
    """Plan C ← AB or C ← C + AB for batches of shapes (count, m, k), (count, k, n) and (count, m, n).

    Returns None if cuBLAS does not take the layout. C must not overlap A or B.
    """
    count, m, n = C.shape
    places = [_leading(v) for v in (A, B, C)]
    apart = [divmod(v.strides[0], v.itemsize) for v in (A, B, C)]
    if any(rest or step < 0 for step, rest in apart) and count > 1:
        return None
    if None in places or C.strides[2] != C.itemsize or max(m, n, A.shape[2], count) > _MOST or min(m, n, count, A.shape[2]) == 0:
        return None
    (by_columns_a, lda), (by_columns_b, ldb), (_, ldc) = (place for place in places if place is not None)
    if max(lda, ldb, ldc) > _MOST:
        return None
    layout = by_columns_b, by_columns_a, n, m, A.shape[2]
    return BlasPlan(C.dtype, layout, (lda, ldb, ldc), (apart[0][0], apart[1][0], apart[2][0]), count, fresh)


def _leading(v: Any) -> tuple[int, int] | None:
    """Return 1 if the matrices are stored by columns, else 0, and the leading dimension; None if neither axis is contiguous."""
    (_, m, n), (_, row, column), size = v.shape, v.strides, v.itemsize
    for by_columns, length, step, apart, count in ((0, n, column, row, m), (1, m, row, column, n)):
        if step == size or length == 1:
            if count == 1:
                return by_columns, length
            if apart >= length * size and apart % size == 0:
                return by_columns, apart // size
    return None
