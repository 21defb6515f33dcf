"""Products that cuBLAS computes: of floats that are multiplied and added, and of exponentials, where ⊕ is log Σ exp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import Predicate
from semiring.kernels.cuda.blas import fits_blas, gemm, has_blas, is_plus_times
from semiring.kernels.cuda.blocks import shares
from semiring.kernels.cuda.exponential import multiply_exponentials
from semiring.kernels.cuda.launches import Operands
from semiring.kernels.engine import Block

__all__ = ["CublasProducts"]

_STEPS = 1 << 40
"""Steps that cuBLAS is asked for at once, whether anybody wants to know how far it is or not: of other rows it may add in another order."""

_ROWS = 1024
"""Rows that those of a part are a multiple of."""


class CublasProducts:
    """Whether products over a semiring are left to cuBLAS, and how.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype

    Attributes
    ----------
    any : bool
        Whether some may be.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        floats = len(dtypes) == 1 and dtypes[0].kind == "f"
        self._exponential = semiring.program.exponential if floats else None
        self.any = self._exponential is not None or (floats and is_plus_times(semiring, dtypes))

    def takes(self, count: int, m: int, n: int, k: int) -> bool:
        """Whether cuBLAS is faster for products of so many matrices, exponentials and logarithms included."""
        least = machine.BLAS_STEPS if self._exponential is None else machine.EXPONENTIAL_STEPS
        return self.any and count * m * n * k >= least and min(m, n, k) >= machine.BLAS_SIDE and has_blas()

    def take_some(self, products: Sequence[Operands]) -> bool:
        """The same of any of these products."""
        return any(self.takes(len(C.values[0]), *C.shape, A.shape[1]) for A, _, C in products)

    def multiply(
        self,
        A: Block,
        B: Block,
        C: Block,
        by_steps: Callable[[Block, Block, Block, Predicate], None],
        launched: Callable[[Sequence[Operands]], None],
        *,
        fresh: bool,
    ) -> bool:
        """C ← C ⊕ A⊗B, or A⊗B where C is `fresh`; False where operands do not lie as cuBLAS takes them, and nothing is done.

        Parameters
        ----------
        A, B, C : Block
        by_steps : callable
            The same by kernels of this semiring, where a predicate holds; it says itself what it has launched.
        launched : callable
            Told of products that have been launched.
        fresh : bool
        """
        if self._exponential is not None:
            multiply_exponentials(A, B, C, self._exponential, by_steps, fresh=fresh)
            return True
        (a,), (b,), (c,) = A.values, B.values, C.values
        if shares(A, C) or shares(B, C) or c.strides[2] != c.itemsize or not fits_blas(a, b, c):
            return False
        height = max(1, _STEPS // (len(c) * C.shape[1] * A.shape[1] * _ROWS)) * _ROWS
        for rows in (slice(top, top + height) for top in range(0, C.shape[0], height)):
            gemm(a[:, rows], b, c[:, rows], fresh=fresh)
            launched([(A[rows, :], B, C[rows, :])])
        return True
