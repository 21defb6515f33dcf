"""Products of several matrices: a chain in the order of the fewest steps, and powers by repeated squaring.

A chain is bracketed by the usual dynamic program (Godbole 1973; Cormen et al., chapter 14). Factors keep their places, because ⊗ need not
commute. With a single column at the end, no two matrices are multiplied:

>>> bracketed([100, 100, 100, 1])
'(0 (1 2))'

A^k is the product of A, A², A⁴, A⁸, … at the bits of k: about 2 log₂ k products. (A closure by squaring I ⊕ A
would take n³ log n steps; the algorithms of `semiring.algorithms` take n³.) The shortest walks of exactly five edges around the triangle
0 → 1 → 2 → 0, with a loop at 0, are A⁵ = A ⊗ A⁴:

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

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Values, outside
from semiring.common.errors import DomainError, SemiringError
from semiring.kernels.overflow.statistics import surely_elements

__all__ = ["Stored", "bracketed", "multiply_chain", "power"]

Matrix = TypeVar("Matrix")

Ends = tuple[int, int]
"""Numbers of the first and the last factor of a product."""


def multiply_chain(factors: Sequence[Matrix], sides: Sequence[float], multiply: Callable[[Matrix, Matrix, Ends], Matrix]) -> Matrix:
    """Multiply two or more factors. NumPy takes O(n³) operations for n factors to choose the order.

    `sides` has the rows of the first factor, then the columns of each factor. `multiply` returns the product of two neighbours, given the
    `Ends` of the product; its `SemiringError` gets a note that names the factors.
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
    """Return the chosen order for factors of these sides, as text with brackets."""
    return multiply_chain([str(i) for i in range(len(sides) - 1)], sides, lambda x, y, _: f"({x} {y})")


def _splits(sides: Sequence[float]) -> np.ndarray[Any, Any]:
    """Return for each product of neighbours the last factor of the left part; on a tie the one farthest right."""
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
"""Stored entries, one array a component, and a function from the index of an entry to its row and column."""


def power(
    values: Values, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any], stored: Callable[[Values], Stored] | None = None
) -> Values:
    """Return A^k by repeated squaring, for k ≥ 0; for k ≥ 1 if A is sparse, and `stored` returns the stored entries of a matrix.

    `multiply` returns the product of two matrices: arrays, or tuples of arrays for elements of several components. Its `SemiringError` gets
    a note that names the power; `DomainError` is raised if a power has left the carrier.
    """
    if k == 0:
        return _identity(values, semiring)

    def product(x: Values, i: int, y: Values, j: int) -> Values:
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
        # Invariant: square = A^exponent, and result = A^reached for reached = k mod exponent.
        if k & exponent:
            result = product(result, reached, square, exponent) if reached else square
            reached += exponent
        if reached == k:
            return tuple(v.copy() for v in result) if result is values else result
        square = product(square, exponent, square, exponent)
        exponent *= 2


def _require_inside(semiring: Semiring, exponent: int, values: Values, where: Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
    index = None if surely_elements(semiring, values) else outside(semiring, values)
    if index is not None:
        element = ", ".join(str(v[index]) for v in values)
        raise DomainError(
            f"power {exponent} of the matrix has the element {element} at [{', '.join(map(str, where(index)))}], outside the carrier of "
            f"{semiring.name}, {semiring.carrier}: it overflowed, or ⊕ and ⊗ leave the carrier"
        )


def _identity(values: Values, semiring: Semiring) -> Values:
    zero, one = semiring.identities([v.dtype for v in values])
    matrices, i = tuple(np.full_like(v, z, order="C") for v, z in zip(values, zero, strict=True)), np.arange(values[0].shape[-1])
    for matrix, unit in zip(matrices, one, strict=True):
        matrix[..., i, i] = unit
    return matrices
