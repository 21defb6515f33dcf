"""A chain of matrix products in the order of the fewest steps, by the usual dynamic program (Godbole 1973; Cormen et al., chapter 14).

Factors stay in their places, as ⊗ need not commute; only the brackets move. With one column at the end no product of two matrices is made:

>>> bracketed([100, 100, 100, 1])
'(0 (1 2))'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import outside
from semiring.common.errors import DomainError, SemiringError
from semiring.kernels.overflow.statistics import surely_elements

__all__ = ["Stored", "bracketed", "multiply_chain", "power"]

Matrix = TypeVar("Matrix")
Values = tuple[np.ndarray[Any, Any], ...]

Ends = tuple[int, int]
"""The first and the last factor of a product."""


def multiply_chain(factors: Sequence[Matrix], sides: Sequence[float], multiply: Callable[[Matrix, Matrix, Ends], Matrix]) -> Matrix:
    """The product of all factors.

    Parameters
    ----------
    factors : sequence
        At least two.
    sides : sequence of numbers
        The rows of the first factor, and then the columns of each.
    multiply : callable
        The product of two, which are those of some neighbours; `Ends` tells of which. O(n³) operations, of NumPy, choose the order.

    Raises
    ------
    SemiringError
        That of a product, with a note which factors it is of.
    """
    splits, whole = _splits(sides), (0, len(factors) - 1)
    found: dict[Ends, Matrix] = {(i, i): factor for i, factor in enumerate(factors)}
    waiting = [whole]  # a stack instead of recursion: chains may be long
    while waiting:
        first, last = waiting[-1]
        split = int(splits[first, last])
        halves = (first, split), (split + 1, last)
        missing = [half for half in halves if half not in found]
        if missing:
            waiting += missing
            continue
        try:
            found[waiting.pop()] = multiply(found.pop(halves[0]), found.pop(halves[1]), (first, last))
        except SemiringError as error:
            error.add_note(f"in the product of factors {first} to {last} of {len(factors)}")
            raise
    return found[whole]


def bracketed(sides: Sequence[float]) -> str:
    """How factors of these sides are multiplied, in brackets."""
    return multiply_chain([str(i) for i in range(len(sides) - 1)], sides, lambda x, y, _: f"({x} {y})")


def _splits(sides: Sequence[float]) -> np.ndarray[Any, Any]:
    """For each product of neighbours the last factor of its left part; of those that take as many steps the one farthest right."""
    p, n = np.array(sides, float), len(sides) - 1
    steps, splits = np.zeros((n, n)), np.zeros((n, n), int)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            # m_ij = min over s of m_is + m_(s+1)j + p_i p_(s+1) p_(j+1)
            ways = steps[i, i:j] + steps[i + 1 : j + 1, j] + p[i] * p[i + 1 : j + 1] * p[j + 1]
            splits[i, j] = j - 1 - int(np.argmin(ways[::-1]))
            steps[i, j] = ways[splits[i, j] - i]
    return splits


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
