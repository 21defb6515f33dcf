"""Sums of exponentials under a logarithm: the geometric series of `LOG`, and the relaxations of min-plus and max-plus."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from semiring.algebra import ops
from semiring.common.errors import DivergenceError

__all__ = ["geometric_logarithm", "relaxed"]


def geometric_logarithm(a: Any) -> Any:
    """Return −log(1 − eᵃ): by expm1 where eᵃ is near 1, by log1p where eᵃ is near 0, so that no digit cancels (Mächler 2012)."""
    if a >= 0:
        raise DivergenceError("the sum of exp(k·a) over k ≥ 0 diverges for a ≥ 0")
    return -ops.log(-ops.expm1(a)) if a > -math.log(2) else -ops.log1p(-ops.exp(a))


def relaxed(scale: float) -> tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """Return ⊕ and star of log(e^{sa} + e^{sb}) / s, which tends to max for s → ∞ and to min for s → −∞; both can be pickled."""
    return functools.partial(_add, scale), functools.partial(_star, scale)


def _add(scale: float, a: Any, b: Any) -> Any:
    return ops.logaddexp(scale * a, scale * b) / scale


def _star(scale: float, a: Any) -> Any:
    if scale * a >= 0:
        raise DivergenceError(f"the sum over all walks diverges at temperature {abs(1 / scale):g}; lower the temperature")
    return geometric_logarithm(scale * a) / scale
