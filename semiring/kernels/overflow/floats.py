"""Whether a product of floats can overflow where ⊕ only compares, so that what overflowed to ∞ would pass for an element: no path.

Where ⊕ adds, as in ordinary arithmetic, an ∞ from an overflow is what IEEE 754 says it is, and is left alone.
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
from semiring.kernels.limits import Interval, ValueStatistics, overflow_risk
from semiring.kernels.overflow.intervals import interval_of_numbers

__all__ = ["certify_floats", "magnitudes", "product_of_magnitudes"]

_GROWING = {"add", "sub", "mul"}

_UNKNOWN = math.nan, math.nan
"""The interval of what nothing is known of."""


def certify_floats(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[ValueStatistics], right: Sequence[ValueStatistics]
) -> None:
    """Refuse a product of floats in which a ⊗ b of finite elements could overflow, if ⊕ only compares; the operands' statistics tell.

    Raises
    ------
    OverflowRiskError
        Naming the magnitudes, and what would work.
    """
    safe = _safe_magnitude(semiring, dtypes)
    if safe == math.inf:
        return
    sizes = magnitudes(left, dtypes), magnitudes(right, dtypes)
    if max(*sizes[0], *sizes[1]) > safe:
        product_of_magnitudes(semiring, dtypes, *sizes)


def magnitudes(statistics: Sequence[ValueStatistics], dtypes: tuple[np.dtype[Any], ...]) -> list[float]:
    """The largest magnitude of each component's numbers; integers are certified elsewhere and here only meet floats."""
    return [some.largest if d.kind == "f" else 2.0 ** (8 * d.itemsize) for some, d in zip(statistics, dtypes, strict=True)]


def product_of_magnitudes(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[float], right: Sequence[float]
) -> Sequence[float]:
    """The largest magnitude of each component of a ⊗ b, for operands of such magnitudes; NaN where none is known.

    Raises
    ------
    OverflowRiskError
        Where it could overflow, and ⊕ only compares.
    """
    if _safe_magnitude(semiring, dtypes) == math.inf:
        return left
    sizes, op = _product(semiring, dtypes, left, right)
    if op is not None:
        reached = " and ".join(f"{max(part):.3g}" for part in (left, right))
        raise overflow_risk(semiring, dtypes, f"finite entries reach {reached}, so that {op!r} could overflow")
    return sizes


@functools.lru_cache(maxsize=256)
def _safe_magnitude(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> float:
    """A magnitude of elements up to which no product of theirs overflows; ∞ where none ever does, or where that is no harm."""
    floats = [d for d in dtypes if d.kind == "f"]
    if not floats or any(d.kind == "O" for d in dtypes):
        return math.inf
    add, mul = ({e.op for e in nodes(*roots)} for roots in (semiring.program.add, semiring.program.mul))
    if not add <= CHOOSING or not mul & _GROWING:
        return math.inf
    usual = 2.0 ** (min(np.finfo(d).maxexp for d in floats) // 4)
    sizes = [usual] * len(dtypes)
    return usual if _product(semiring, dtypes, sizes, sizes)[1] is None else 0.0


def _product(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[float], right: Sequence[float]
) -> tuple[list[float], str | None]:
    """The magnitudes of ⊗ for operands of such magnitudes, and an operation of it that could overflow."""
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
    """The largest magnitude in an interval."""
    least, greatest = values
    return max(-least, greatest)


def _constant(value: Any) -> Interval:
    """The interval of a constant; that of an infinite one is said to be 0."""
    if value in (math.inf, -math.inf):
        return 0.0, 0.0
    most = sys.float_info.max
    exact = float(max(-most, min(value, most)))
    return exact, exact


def _interval(op: str, args: list[Interval], limit: float) -> Interval:
    """The interval of an operation on intervals. None is known of an exponential or a quotient that could grow much: it rarely does.

    What is not negative, say, is not known here, so that the interval of its exponential would be far too large.
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
