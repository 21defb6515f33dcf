"""Powers of a matrix by repeated squaring."""

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


def power(values: Values, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any]) -> Values:
    """The k-th power, k ≥ 0, of a matrix given as one array of shape (…, n, n) a component; `multiply` is the product of two."""
    if k == 0:
        return _identity(values, semiring)

    def product(x: Values, i: int, y: Values, j: int) -> Values:
        """The power i + j, from the powers i and j."""
        for operand, exponent in ((x, i), (y, j)):
            if exponent > 1:
                _require_inside(semiring, operand, exponent)
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
        if k & exponent:
            result = product(result, reached, square, exponent) if reached else square
            reached += exponent
        if reached == k:
            return tuple(v.copy() for v in result) if result is values else result
        square = product(square, exponent, square, exponent)
        exponent *= 2


def _require_inside(semiring: Semiring, values: Values, exponent: int) -> None:
    index = None if surely_elements(semiring, values) else outside(semiring, values)
    if index is not None:
        element = ", ".join(str(v[index]) for v in values)
        raise DomainError(
            f"power {exponent} of the matrix has the element {element} at [{', '.join(map(str, index))}], outside the carrier of "
            f"{semiring.name}, {semiring.carrier}: it overflowed, or ⊕ and ⊗ do not stay in the carrier"
        )


def _identity(values: Values, semiring: Semiring) -> Values:
    zero, one = semiring.identities([v.dtype for v in values])
    out = []
    for v, low, high in zip(values, zero, one, strict=True):
        matrix = np.full_like(v, low, order="C")
        i = np.arange(v.shape[-1])
        matrix[..., i, i] = high
        out.append(matrix)
    return tuple(out)
