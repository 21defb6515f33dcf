"""What the tests of gradients share, for PyTorch and JAX: semirings, shapes of scans, numbers, and the comparison of JAX's results."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import semiring as sr
from semiring import ops

INF = math.inf


def _soft_star(a: Any) -> Any:
    return ops.log(-ops.expm1(-2 * a)) / 2


def _dual(a: Any) -> Any:
    return (a[0] >= 0) & (a[0] <= 1) & (a[1] >= 0) & (a[1] < INF) & ((a[0] > 0) | (a[1] == 0))


SOFT = sr.Semiring("soft-min", lambda a, b: -ops.logaddexp(-2 * a, -2 * b) / 2, lambda a, b: a + b, INF, 0)
SOFT_CLOSED = sr.Semiring("soft-min", lambda a, b: -ops.logaddexp(-2 * a, -2 * b) / 2, lambda a, b: a + b, INF, 0, star=_soft_star)
DOUBLED = sr.Semiring("doubled", min, lambda a, b: a + 2 * b, INF, 0)
SKEWED = sr.Semiring("skewed", max, lambda a, b: a * b / (1 + b), 0, 1, domain=(0, 1e6))
SHARED = sr.Semiring("shared", lambda a, b: a + b, lambda a, b: min(a, 2 * b), 0, INF, domain=(0, INF))
EINSTEIN = sr.Semiring("einstein", max, lambda a, b: a * b / (2 - (a + b - a * b)), 0, 1, domain=(0, 1))
DUAL = sr.Semiring("dual", max, lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]), (0, 0), (1, 0), domain=_dual)
"""The likeliest path with the derivative of its likelihood, by dual numbers."""

FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...]]] = {
    "one matrix": ((3, 3), (5, 3), (3,)),
    "one matrix, a batch": ((3, 3), (2, 5, 3), (3,)),
    "no weights": ((2, 4, 3, 3), None, (2, 3)),
    "a matrix each step": ((4, 3, 3), (2, 4, 3), (2, 3)),
    "a matrix each sequence": ((2, 1, 3, 3), (3, 1, 4, 3), (3,)),
    "one initial vector each": ((2, 4, 3, 3), (4, 3), (3, 1, 3)),
    "one weight for all steps": ((4, 2, 2), (1, 2), (2,)),
    "one state": ((1, 1), (3, 1), (1,)),
    "one step": ((1, 3, 3), (2, 1, 3), (3,)),
}
"""Shapes of matrices, weights and initial vector."""


def distinct(*shape: int, seed: int = 0) -> Any:
    """Return numbers from 0 to 1, no two alike."""
    size, rng = math.prod(shape), np.random.default_rng(seed)
    return (rng.permutation(size) + rng.random(size) / 2).reshape(shape) / max(1, size)


def alike(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Compare trees of JAX's arrays, with their shapes and dtypes."""
    leaves = sys.modules["jax"].tree.leaves
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
