"""Interval arithmetic over the recorded operations of a semiring: bounds of results, and proof that nothing leaves the dtype.

Integers that stand for ±∞ absorb sums and are no part of intervals; an operation that would turn ∞ into a number is refused. Products of
floats are bounded where ⊕ only compares, so that an overflow to ∞ would pass for an element, "no path". Where ⊕ adds, as in ordinary
arithmetic, an ∞ from an overflow is IEEE 754's result and stays.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from semiring.algebra import carrier
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import widest
from semiring.algebra.expression import CHOOSING, COMPARISONS, Expr, fold, is_operation, nodes
from semiring.common.errors import DTypeError, OverflowRiskError
from semiring.kernels.limits import (
    DTypes,
    Interval,
    ValueStatistics,
    absorbing,
    finite_range,
    hull,
    overflow_risk,
    own_infinities,
)  # fmt: skip

__all__ = [
    "ARITHMETIC", "IntervalArithmetic", "Range", "certify_floats", "either", "magnitudes", "product_of_magnitudes", "repeated",
    "stays_inside", "walks_fit",
]  # fmt: skip

ARITHMETIC = {"add", "sub", "mul", "neg", "abs", "shl", "floordiv"}
"""Operations on integers that can wrap."""

Reach = TypeVar("Reach")

_GROWING, _KEEP_INFINITY = {"add", "sub", "mul"}, {"add", "min", "max", "where"}
_UNKNOWN = math.nan, math.nan


class Range(NamedTuple):
    """The possible values of an expression: a finite interval (or None), ∞, and the dtype (None for constants and conditions)."""

    finite: Interval | None
    infinite: bool
    dtype: np.dtype[Any] | None

    def __or__(self, other: Range) -> Range:
        """Return the union of both ranges."""
        return Range(hull(self.finite, other.finite), self.infinite or other.infinite, self.dtype)


_CONDITION = Range((0, 1), False, None)


def either(x: list[Range], y: list[Range]) -> list[Range]:
    """Return the unions of the components' ranges."""
    return list(map(operator.or_, x, y))


def repeated(term: Reach, k: int, operation: Callable[[Reach, Reach], Reach], union: Callable[[Reach, Reach], Reach]) -> Reach:
    """Return the reach of an associative operation on 1 to k terms, by doubling."""
    total, power = None, term
    while True:
        if k & 1:
            total = power if total is None else union(union(total, power), operation(total, power))
        k >>= 1
        if not k:
            assert total is not None
            return total
        power = union(power, operation(power, power))


class IntervalArithmetic:
    """Evaluate ranges by a semiring's operations; raise `OverflowRiskError` if a range leaves its integer dtype."""

    def __init__(self, semiring: Semiring, dtypes: DTypes, infinities: tuple[int, ...]) -> None:
        self.semiring, self.dtypes, self.infinities = semiring, dtypes, infinities

    def evaluate(self, roots: Sequence[Expr], left: Sequence[Range], right: Sequence[Range]) -> list[Range]:
        """Return the ranges of expressions of two operands' components."""
        results = fold(roots, left, right, _constant, self._apply)
        return [self._convert(result, dtype, "the result") for result, dtype in zip(results, self.dtypes, strict=True)]

    def sum_of(self, terms: list[Range], k: int) -> list[Range]:
        """Return the range of a ⊕-sum of up to k terms in any order, by doubling."""
        add = self.semiring.program.add
        if all(is_operation(e, ("add",), i) for i, e in enumerate(add)):
            return [self._multiple(r, k) for r in terms]
        return repeated(terms, k, lambda x, y: self.evaluate(add, x, y), either)

    def _multiple(self, term: Range, k: int) -> Range:
        """Return the range of plain sums of 0 to k terms."""
        if term.finite is None or term.dtype is None or term.dtype.kind not in "iu":
            return term
        low, high = min(0, k * term.finite[0]), max(0, k * term.finite[1])
        self._require("'add'", low, high, term.dtype)
        return term._replace(finite=(low, high))

    def _apply(self, op: str, args: list[Range]) -> Range:
        if op == "not":
            return _CONDITION
        used = args[1:] if op == "where" else args
        # Conditions and constants have no dtype; alone they take the elements'.
        dtype = widest([a.dtype for a in used if a.dtype is not None] or self.dtypes)
        if dtype.kind not in "iu":
            return _CONDITION if op in COMPARISONS else Range((-math.inf, math.inf), False, dtype)
        used = [self._convert(a, dtype, repr(op)) for a in used]
        if op in COMPARISONS:
            return _CONDITION
        infinite = self._may_be_infinite(op, used, dtype)
        finite = [a.finite for a in used if a.finite is not None]
        if not finite or (len(finite) < len(used) and op == "add"):
            return Range(None, infinite, dtype)
        low, high = _interval(op, finite, dtype) if len(finite) == len(used) else finite[0]
        if op in ARITHMETIC:
            self._require(repr(op), low, high, dtype)
        return Range((low, high), infinite, dtype)

    def _may_be_infinite(self, op: str, args: Sequence[Range], dtype: np.dtype[Any]) -> bool:
        """Return True if the result may be ∞; refuse an operation that would turn ∞ into a number."""
        kept = own_infinities(self.infinities, dtype)
        found = [a.infinite for a in args]
        if any(found) and (op not in _KEEP_INFINITY or (op == "add" and not kept)):
            what = f"{op!r} of ∞ has no meaning among integers, where only sums keep it"
            raise overflow_risk(self.semiring, [dtype], what, "use float64")
        # A minimum is +∞ only if both operands are.
        return all(found) if (op, [i > 0 for i in kept]) in (("min", [True]), ("max", [False])) else any(found)

    def _convert(self, value: Range, dtype: np.dtype[Any], what: str) -> Range:
        """Return `value` in a dtype, which must hold its finite values."""
        if value.finite is not None and value.dtype is not None and value.dtype != dtype and dtype.kind in "iu":
            self._require(what, *value.finite, dtype)
        return value._replace(dtype=dtype)

    def _require(self, what: str, low: float, high: float, dtype: np.dtype[Any]) -> None:
        """Refuse an interval beyond the finite values of a dtype."""
        lowest, highest = finite_range(dtype, self.infinities)
        if not (lowest <= low and high <= highest):
            reach = f"{what} inside the product may reach {low} … {high}, beyond {lowest} … {highest}"
            raise overflow_risk(self.semiring, [dtype], reach)


def _constant(value: Any) -> Range:
    return Range(None, True, None) if isinstance(value, float) and math.isinf(value) else Range((value, value), False, None)


def _interval_of_numbers(op: str, args: Sequence[Interval]) -> Interval | None:
    """Return the interval of an operation that integers and floats share, or None for another operation."""
    (a, b), (c, d) = args[0], args[1] if len(args) > 1 else (0, 0)
    match op:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = [x * y for x in (a, b) for y in (c, d)]
            return min(products), max(products)
        case "neg":
            return -b, -a
        case "abs":
            return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
    return None


def _interval(op: str, args: Sequence[Interval], dtype: np.dtype[Any]) -> Interval:
    found = _interval_of_numbers(op, args)
    if found is not None:
        return found
    (a, b), (c, d) = args[0], args[1] if len(args) > 1 else (0, 0)
    match op:
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "where":
            return min(a, c), max(b, d)
        case "floordiv" if c >= 0:
            quotients = [x // max(y, 1) for x in (a, b) for y in (c, d)] + [0] * (c == 0)  # NumPy: x // 0 = 0
            return min(quotients), max(quotients)
        case "floordiv":
            return -max(abs(a), abs(b)), max(abs(a), abs(b))
        case "mod":
            return min(c + 1, 0), max(d - 1, 0)
        case "shl" | "shr":
            # A shift by 64 places leaves only 0 or −1.
            powers = [2 ** int(min(max(x, 0), 64)) for x in (c, d)]
            shifted = [x * p if op == "shl" else x // p for x in (a, b) for p in powers]
            return min(shifted), max(shifted)
        case "invert":
            top = np.iinfo(dtype).max if dtype.kind == "u" else -1
            return top - b, top - a
        case "and" | "or" | "xor":
            bits = max(int(~int(x) if x < 0 else x).bit_length() for x in (a, b, c, d))  # −2ᵇ … 2ᵇ − 1 is closed under and, or, xor
            return (0 if min(a, c) >= 0 else -(1 << bits)), (1 << bits) - 1
        case _:
            raise DTypeError(f"{op!r} has no meaning for integers")


def walks_fit(semiring: Semiring, dtypes: DTypes, edges: Sequence[Interval], most: int) -> bool:
    """Return True if three walks of `most` edges each, multiplied in any order, stay within the dtypes, given the ranges of edges."""
    arithmetic = IntervalArithmetic(semiring, dtypes, absorbing(semiring, dtypes))
    walks = [Range(interval, False, dtype) for interval, dtype in zip(edges, dtypes, strict=True)]
    try:
        for _ in range((3 * most).bit_length()):  # doubling
            walks = either(walks, arithmetic.evaluate(semiring.program.mul, walks, walks))
    except OverflowRiskError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def stays_inside(semiring: Semiring, dtypes: DTypes) -> bool:
    """Return True if the carrier is a range of integers that ⊕, ⊗ and star never leave, without wrapping on the way."""
    bounds = list(map(_integer_bounds, semiring.carrier.parts))
    if None in bounds or any(d.kind not in "iu" for d in dtypes):
        return False
    program, arithmetic = semiring.program, IntervalArithmetic(semiring, dtypes, ())
    elements = [Range(interval, False, dtype) for interval, dtype in zip(bounds, dtypes, strict=True)]
    try:
        results = [arithmetic.evaluate(roots, elements, elements) for roots in (program.add, program.mul, program.star) if roots]
    except (DTypeError, OverflowRiskError):
        return False
    return all((x | y).finite == x.finite for values in results for x, y in zip(elements, values, strict=True))


def _integer_bounds(part: carrier.Part) -> Interval | None:
    ends = (part.low, part.high) if isinstance(part, carrier.Interval) else part if isinstance(part, frozenset) else ()
    if not ends or not all(isinstance(v, int) for v in ends):
        return None
    return min(ends), max(ends)


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
    return left if _safe_magnitude(semiring, dtypes) == math.inf else _product(semiring, dtypes, left, right)


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
    try:
        _product(semiring, dtypes, [usual] * len(dtypes), [usual] * len(dtypes))
    except OverflowRiskError:
        return 0.0
    return usual


def _product(semiring: Semiring, dtypes: DTypes, left: Sequence[float], right: Sequence[float]) -> list[float]:
    limit = min(float(np.finfo(d).max) for d in dtypes if d.kind == "f")

    def checked(op: str, args: list[Interval]) -> Interval:
        values = _interval_of_floats(op, args, limit)
        if _magnitude(values) > limit:
            reached = " and ".join(f"{max(part):.3g}" for part in (left, right))
            raise overflow_risk(semiring, dtypes, f"finite entries reach {reached}, so that {op!r} could overflow")
        return values

    roots = [root for root, d in zip(semiring.program.mul, dtypes, strict=True) if d.kind == "f"]
    a, b = ([(-size, size) for size in sizes] for sizes in (left, right))
    results = iter(fold(roots, a, b, _constant_float, checked))
    return [_magnitude(next(results)) if d.kind == "f" else size for d, size in zip(dtypes, left, strict=True)]


def _magnitude(values: Interval) -> float:
    return max(-values[0], values[1])


def _constant_float(value: Any) -> Interval:
    """Return the interval of a constant; an infinite constant counts as 0."""
    most = sys.float_info.max
    exact = 0.0 if value in (math.inf, -math.inf) else float(max(-most, min(value, most)))
    return exact, exact


def _interval_of_floats(op: str, args: list[Interval], limit: float) -> Interval:
    """Return the interval of an operation on intervals. An exponential or a quotient that could grow much is unknown.

    Such growth is rare: signs, for example, are not tracked, so an exponential's interval would be far too large.
    """
    modest = limit**0.25
    chosen = args[1:] if op == "where" else args
    if any(math.isnan(end) for values in chosen for end in values):
        return _UNKNOWN
    found = _interval_of_numbers(op, chosen)
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
