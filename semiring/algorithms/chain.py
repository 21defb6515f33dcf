"""A chain of matrix products in the order of the fewest steps, by the usual dynamic program (Godbole 1973; Cormen et al., chapter 14).

Factors stay in their places, as ⊗ need not commute; only the brackets move. With one column at the end no product of two matrices is made:

>>> bracketed([100, 100, 100, 1])
'(0 (1 2))'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from semiring.common.errors import SemiringError

__all__ = ["bracketed", "multiply_chain"]

Matrix = TypeVar("Matrix")

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
