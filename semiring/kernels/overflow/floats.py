"""Bounds on products of floats whose ⊕ only compares, so that an overflow to ∞ would pass for an element, "no path".

Where ⊕ adds, as in ordinary arithmetic, an ∞ from an overflow is IEEE 754's result and stays.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, fold, nodes
from semiring.kernels.limits import DTypes, Interval, ValueStatistics, overflow_risk
from semiring.kernels.overflow.intervals import interval_of_numbers

__all__ = ["certify_floats", "magnitudes", "product_of_magnitudes"]

_GROWING = {"add", "sub", "mul"}

_UNKNOWN = math.nan, math.nan
"""The interval of an unknown value."""


def certify_floats(semiring: Semiring, dtypes: DTypes, left: Sequence[ValueStatistics], right: Sequence[ValueStatistics]) -> None:
    """Raise `OverflowRiskError` if ⊕ only compares and a ⊗ b of finite elements could overflow, by the operands' statistics."""
    safe = _safe_magnitude(semiring, dtypes)
    if safe == math.inf:
        return
    sizes = magnitudes(left, dtypes), magnitudes(right, dtypes)
    if max(*sizes[0], *sizes[1]) > safe:
        product_of_magnitudes(semiring, dtypes, *sizes)


def magnitudes(statistics: Sequence[ValueStatistics], dtypes: DTypes) -> list[float]:
    """Return the largest magnitude of each component. Integers are certified elsewhere; a bound on their dtype is enough here."""
    return [some.largest if d.kind == "f" else 2.0 ** (8 * d.itemsize) for some, d in zip(statistics, dtypes, strict=True)]


def product_of_magnitudes(semiring: Semiring, dtypes: DTypes, left: Sequence[float], right: Sequence[float]) -> Sequence[float]:
    """Return the largest magnitude of each component of a ⊗ b, NaN if unknown, for operands of these magnitudes.

    Raises
    ------
    OverflowRiskError
        If ⊗ could overflow and ⊕ only compares.
    """
    if _safe_magnitude(semiring, dtypes) == math.inf:
        return left
    sizes, op = _product(semiring, dtypes, left, right)
    if op is not None:
        reached = " and ".join(f"{max(part):.3g}" for part in (left, right))
        raise overflow_risk(semiring, dtypes, f"finite entries reach {reached}, so that {op!r} could overflow")
    return sizes


@functools.lru_cache(maxsize=256)
def _safe_magnitude(semiring: Semiring, dtypes: DTypes) -> float:
    """Return a magnitude up to which no product of elements overflows; ∞ if no product does, or overflow does no harm."""
    floats = [d for d in dtypes if d.kind == "f"]
    if not floats or any(d.kind == "O" for d in dtypes):
        return math.inf
    add, mul = ({e.op for e in nodes(*roots)} for roots in (semiring.program.add, semiring.program.mul))
    if not add <= CHOOSING or not mul & _GROWING:
        return math.inf
    usual = 2.0 ** (min(np.finfo(d).maxexp for d in floats) // 4)
    sizes = [usual] * len(dtypes)
    return usual if _product(semiring, dtypes, sizes, sizes)[1] is None else 0.0


def _product(semiring: Semiring, dtypes: DTypes, left: Sequence[float], right: Sequence[float]) -> tuple[list[float], str | None]:
    """Return the magnitudes of ⊗ for operands of these magnitudes, and an operation in ⊗ that could overflow."""
    limit = min(float(np.finfo(d).max) for d in dtypes if d.kind == "f")
    found: list[str] = []

    def checked(op: str, args: list[Interval]) -> Interval:
        values = _interval(op, args, limit)
        if _magnitude(values) > limit:
            found.append(op)
        return values

    roots = [root for root, d in zip(semiring.program.mul, dtypes, strict=True) if d.kind == "f"]
    a, b = ([(-size, size) for size in sizes] for sizes in (left, right))
    results = iter(fold(roots, a, b, _constant, checked))
    return [_magnitude(next(results)) if d.kind == "f" else size for d, size in zip(dtypes, left, strict=True)], found[0] if found else None


def _magnitude(values: Interval) -> float:
    least, greatest = values
    return max(-least, greatest)


def _constant(value: Any) -> Interval:
    """Return the interval of a constant; an infinite constant counts as 0."""
    if value in (math.inf, -math.inf):
        return 0.0, 0.0
    most = sys.float_info.max
    exact = float(max(-most, min(value, most)))
    return exact, exact


def _interval(op: str, args: list[Interval], limit: float) -> Interval:
    """Return the interval of an operation on intervals. An exponential or a quotient that could grow much is unknown.

    Such growth is rare: signs, for example, are not tracked, so an exponential's interval would be far too large.
    """
    modest = limit**0.25
    chosen = args[1:] if op == "where" else args
    if any(math.isnan(end) for values in chosen for end in values):
        return _UNKNOWN
    found = interval_of_numbers(op, chosen)
    if found is not None:
        return found
    (a, b), (c, d) = chosen[0], chosen[-1]
    match op:
        case "div" if c > 0 or d < 0:
            ends = a / c, a / d, b / c, b / d
            found = min(ends), max(ends)
            return found if _magnitude(found) <= max(_magnitude((a, b)), modest) else _UNKNOWN
        case "exp" if b < math.log(modest):
            return math.exp(a), math.exp(b)
        case "sqrt":
            return math.sqrt(max(0.0, a)), math.sqrt(max(0.0, b))
    return (min(a, c), max(b, d)) if op in CHOOSING else _UNKNOWN
