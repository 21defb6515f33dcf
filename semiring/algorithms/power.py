"""Powers of a matrix by repeated squaring: walks of exactly k edges, with about 2 log₂ k products.

A^k is the product of those of A, A², A⁴, A⁸, … whose exponents k is the sum of: the bits of k. (A closure by squaring I ⊕ A takes log₂ n
products, and so n³ log n steps; the algorithms of `semiring.algorithms` take n³.)

Examples
--------
The shortest walks of exactly five edges around the triangle 0 → 1 → 2 → 0, with a loop at 0: A⁵ = A ⊗ A⁴.

>>> from semiring import MIN_PLUS, matmul
>>> inf = np.inf
>>> a = np.array([[10, 1, inf], [inf, inf, 1], [1, inf, inf]])
>>> (fifth,) = power((a,), 5, MIN_PLUS, lambda x, y: matmul(x, y, MIN_PLUS))
>>> fifth
array([[23., 14.,  5.],
       [ 5., 23., 14.],
       [14.,  5., 23.]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import outside
from semiring.common.errors import DomainError, SemiringError
from semiring.kernels.overflow.statistics import surely_elements

__all__ = ["power"]

Values = tuple[np.ndarray[Any, Any], ...]

Stored = tuple[Values, Callable[[tuple[int, ...]], tuple[int, ...]]]
"""Entries, one array a component, and what tells the row and the column of one by its index."""


def power(
    values: Values, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any], stored: Callable[[Values], Stored] | None = None
) -> Values:
    """A^k for k ≥ 0, or of a sparse matrix for k ≥ 1, by repeated squaring.

    Parameters
    ----------
    values : tuple of arrays of shape (…, n, n)
        One for each component.
    k : int
    semiring : Semiring
    multiply : callable
        The product of two matrices, each an array, or a tuple of them where elements have several components.
    stored : callable, optional
        Of matrices that are no arrays, the entries that are stored, and where one of them stands.

    Raises
    ------
    SemiringError
        That of a product, with a note which power it is of; `DomainError` where a power has left the carrier.
    """
    if k == 0:
        return _identity(values, semiring)

    def product(x: Values, i: int, y: Values, j: int) -> Values:
        """The power i + j, from the powers i and j."""
        for operand, exponent in ((x, i), (y, j)):
            if exponent > 1:
                _require_inside(semiring, exponent, *((operand, tuple) if stored is None else stored(operand)))
        try:
            if semiring.components == 1:
                return (multiply(x[0], y[0]),)
            result: Values = multiply(x, y)
            return result
        except SemiringError as error:
            error.add_note(f"in power {i + j} of the matrix, the product of the powers {i} and {j}")
            raise

    square, exponent = values, 1
    result, reached = values, 0
    while True:
        # Invariant: square = A^exponent, and result = A^reached, where reached is k without its bits from that of the exponent on.
        if k & exponent:
            result = product(result, reached, square, exponent) if reached else square
            reached += exponent
        if reached == k:
            return tuple(v.copy() for v in result) if result is values else result
        square = product(square, exponent, square, exponent)
        exponent *= 2


def _require_inside(semiring: Semiring, exponent: int, values: Values, where: Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
    """Refuse a power that has an element outside the carrier, because a product of it would mean nothing."""
    index = None if surely_elements(semiring, values) else outside(semiring, values)
    if index is not None:
        element = ", ".join(str(v[index]) for v in values)
        raise DomainError(
            f"power {exponent} of the matrix has the element {element} at [{', '.join(map(str, where(index)))}], outside the carrier of "
            f"{semiring.name}, {semiring.carrier}: it overflowed, or ⊕ and ⊗ do not stay in the carrier"
        )


def _identity(values: Values, semiring: Semiring) -> Values:
    """I, in the shape and the dtypes of a matrix."""
    zero, one = semiring.identities([v.dtype for v in values])
    out = []
    for v, low, high in zip(values, zero, one, strict=True):
        matrix = np.full_like(v, low, order="C")
        i = np.arange(v.shape[-1])
        matrix[..., i, i] = high
        out.append(matrix)
    return tuple(out)
