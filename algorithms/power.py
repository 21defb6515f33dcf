"""Powers of a matrix by repeated squaring."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.matmul import matmul

__all__ = ["power"]

Values = tuple[np.ndarray[Any, Any], ...]


def power(values: Values, k: int, semiring: Semiring, *, device: str = "auto", threads: int | None = None) -> Values:
    """The k-th power, k ≥ 0, of a matrix given as one array of shape (…, n, n) a component."""
    if k == 0:
        return _identity(values, semiring)
    square, result = values, None
    while True:
        if k & 1:
            result = square if result is None else _product(result, square, semiring, device, threads)
        k >>= 1
        if k == 0:
            assert result is not None
            return tuple(v.copy() for v in result) if result is values else result
        square = _product(square, square, semiring, device, threads)


def _product(x: Values, y: Values, semiring: Semiring, device: str, threads: int | None) -> Values:
    if semiring.components == 1:
        return (matmul(x[0], y[0], semiring, device=device, threads=threads),)
    result: Values = matmul(x, y, semiring, device=device, threads=threads)
    return result


def _identity(values: Values, semiring: Semiring) -> Values:
    zero, one = semiring.identities([v.dtype for v in values])
    out = []
    for v, low, high in zip(values, zero, one, strict=True):
        matrix = np.full_like(v, low, order="C")
        i = np.arange(v.shape[-1])
        matrix[..., i, i] = high
        out.append(matrix)
    return tuple(out)
