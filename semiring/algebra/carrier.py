"""The carrier of a semiring: intervals, finite sets and predicates, tested on single elements and on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Number, Real
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.agreement import around, difference
from semiring.algebra.elements import LARGEST, Array, element
from semiring.algebra.expression import BITWISE, COMPARISONS, Expr, const, evaluate, nodes, show, where
from semiring.algebra.tracing import record
from semiring.common.errors import DTypeError, SemiringError, TraceError

__all__ = ["Carrier", "Interval", "Part", "Predicate", "carrier_of"]


@dataclass(frozen=True)
class Interval:
    """The numbers, or only the `whole` ones, from `low` to `high`; a bound of ±`sys.float_info.max` excludes only that infinity."""

    low: Any
    high: Any
    whole: bool = False

    def __str__(self) -> str:
        if self.whole:
            return _described(frozenset(range(self.low, min(self.high, self.low + 8) + 1)))
        low, high = ({math.inf: "∞", -math.inf: "−∞"}.get(end, repr(end)) for end in (self.low, self.high))
        return ("(−∞" if self.low == -LARGEST else f"[{low}") + ", " + ("∞)" if self.high == LARGEST else f"{high}]")

    def contains(self, value: Any) -> bool:
        """Return True if the interval contains a number."""
        return all(self.sides(value)) and not (self.whole and value != int(value))

    def sides(self, value: Any) -> tuple[Any, Any]:
        """Return two truth values: a number is not below the interval, and not above; both may be undecided for a SymPy expression."""
        above = value > -math.inf if self.low == -LARGEST else self.low <= value  # exact integers go beyond every float
        return above, value < math.inf if self.high == LARGEST else value <= self.high

    def bounds(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        """Round the bounds to values of a dtype: 0.1 becomes the float32 nearest to it, and finite bounds stay finite."""
        return (_rounded(self.low, dtype), _rounded(self.high, dtype)) if dtype.kind == "f" else (self.low, self.high)

    def holds(self, array: Array) -> Array:
        """Return the mask of the entries within the interval."""
        low, high = self.bounds(array.dtype)
        inside = np.asarray((array >= low) & (array <= high))
        return inside & (array == np.floor(array)) if self.whole and array.dtype.kind == "f" else inside


@lru_cache(maxsize=256)
def _rounded(bound: Any, dtype: np.dtype[Any]) -> float:
    largest = float(np.finfo(dtype).max)
    return float(bound) if math.isinf(bound) else float(dtype.type(min(max(bound, -largest), largest)))


@dataclass(frozen=True, eq=False)
class Predicate:
    """The elements, of so many components, for which a callable holds.

    `recorded` is the condition as an expression, or None where recording fails and the callable runs on every entry.
    """

    function: Callable[[Any], Any]
    components: int
    recorded: Expr | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self._meaning == other._meaning

    def __hash__(self) -> int:
        return hash(self._meaning)

    @property
    def _meaning(self) -> tuple[Any, int]:
        return self.function if self.recorded is None else self.recorded, self.components

    def __str__(self) -> str:
        return "a callable" if self.recorded is None else f"{{a : {show(self.recorded, self.components)}}}"

    def contains(self, value: Any) -> bool:
        """Return True if the predicate holds for one element."""
        return bool(self.function(value))

    def holds(self, values: Sequence[Array], infinities: frozenset[float]) -> Array:
        """Evaluate the condition on whole arrays; the integer stand-ins of `infinities` compare as infinities."""
        shape = values[0].shape
        if self.recorded is None or any(v.dtype.kind == "O" for v in values):
            return np.asarray(ops.each(lambda *parts: self.contains(parts if self.components > 1 else parts[0]), *values), dtype=bool)
        table = {**ops.TABLE, **_comparisons(infinities)} if infinities else ops.TABLE
        answer = evaluate([self.recorded], values, (), table)[0]
        return np.broadcast_to(np.asarray(answer, dtype=bool), shape)


def _predicate(function: Callable[[Any], Any], components: int) -> Predicate:
    """Record a predicate, and keep the recording if it agrees with the callable wherever the callable raises nothing."""
    try:
        recorded = record(function, 1, components, what="domain", results=1).results[0]
    except TraceError:
        return Predicate(function, components, None)

    def called(value: Any) -> bool:
        try:
            return bool(function(value))
        except ArithmeticError as error:
            raise OverflowError from error  # not compared

    near = around([e.args[0] for e in nodes(recorded) if e.op == "const"])
    values = list(dict.fromkeys([*near, 0, 1, 0.5, -1, 2, -3, 10, 57]))
    whole, truth = [v for v in values if abs(v) < 1 << 31 and v == int(v)], where(recorded, const(True), const(False))
    for dtype, scalars in (np.int64, whole), (np.float64, [*values, math.inf, -math.inf]):
        if dtype == np.float64 and BITWISE & {e.op for e in nodes(recorded)}:
            continue
        # About 64 elements of the Cartesian power, each given by the digits of its index.
        base, step = len(scalars), len(scalars) ** components // 64 | 1
        digits = ([i // base**c % base for i in range(0, base**components, step)] for c in reversed(range(components)))
        operand = [np.array([scalars[d] for d in column], dtype=dtype) for column in digits]
        if difference(called, [truth], [operand], text="the condition") is not None:
            return Predicate(function, components, None)
    return Predicate(function, components, recorded)


Part = Interval | Predicate | frozenset[Any] | None


@dataclass(frozen=True)
class Carrier:
    """The elements of a semiring: a part for each component, None for every value, and perhaps a `joint` condition on all components.

    `infinities` are the identities among ±∞; the largest or smallest value of an integer dtype stands for each.
    """

    parts: tuple[Part, ...]
    joint: Predicate | None
    infinities: frozenset[float]

    def __str__(self) -> str:
        return str(self.joint) if self.joint else " × ".join(map(_described, self.parts))

    def contains(self, value: Any) -> bool:
        """Return True if an element, given as Python objects, lies in the carrier, or is a SymPy expression for which SymPy cannot tell."""
        values = value if isinstance(value, tuple) else (value,)
        try:
            if any(getattr(v, "free_symbols", None) for v in values):
                sides = [s for p, v in zip(self.parts, values, strict=True) if isinstance(p, Interval) for s in p.sides(v)]
                return not any(s == False for s in sides)  # noqa: E712  # SymPy's truth values equal Python's, undecided ones neither
            return self.tests(value)
        except (ArithmeticError, AttributeError, TypeError, ValueError):  # text among numbers, SymPy's NaN, a list in a set, int(∞)
            return False

    def tests(self, value: Any) -> bool:
        """Return True if an element without symbols lies in the carrier; errors of the caller's predicate propagate."""
        values = value if isinstance(value, tuple) else (value,)
        if len(values) != len(self.parts) or any(v != v for v in values):
            return False
        each = all(_part_contains(p, v) for p, v in zip(self.parts, values, strict=True))
        return each and (self.joint is None or self.joint.contains(value))

    def infinite(self, component: int) -> frozenset[float]:
        """Return the infinities that a component may have."""
        part = self.parts[component]
        return self.infinities if part is None else frozenset(v for v in (math.inf, -math.inf) if _may_be(part, v))

    def admits(self, value: Sequence[Any]) -> bool:
        """Return True if every component of a star's result is finite, or an infinity that belongs to the carrier."""
        infinite = [c for c, part in enumerate(value) if _is_infinite(part)]
        if infinite and self.joint is not None:
            return self.contains(tuple(value))
        return all(any(value[c] == infinity for infinity in self.infinite(c)) for c in infinite)

    def holds(self, values: Sequence[Array]) -> Array:
        """Return the mask of the elements in the carrier, for one array a component."""
        if any(v.dtype.kind == "O" for v in values):
            return np.asarray(ops.each(lambda first, *rest: self.contains((first, *rest) if rest else first), *values), dtype=bool)
        inside = np.ones(values[0].shape, dtype=bool)
        for part, array in zip(self.parts, values, strict=True):
            if array.dtype.kind == "f":
                inside &= array == array
            if isinstance(part, Interval):
                inside &= part.holds(array)
            elif isinstance(part, frozenset):
                inside &= np.isin(array, _members(part, array.dtype))
            elif part is not None:
                inside &= part.holds((array,), self.infinities)
        if self.joint is not None:
            inside &= self.joint.holds(values, self.infinities)
        return inside

    def contains_every(self, dtypes: Sequence[np.dtype[Any]]) -> bool:
        """Return True if every value of these dtypes is an element, so that no entry needs a test."""
        return self.joint is None and all(map(_is_every, self.parts, dtypes))

    def bounds(self, dtypes: Sequence[np.dtype[Any]]) -> tuple[tuple[Any, Any] | None, ...] | None:
        """Return bounds of each component, with None for a component without restriction; None where bounds do not describe the carrier."""
        if self.joint is not None or any(d.kind == "O" for d in dtypes):
            return None
        found: list[tuple[Any, Any] | None] = []
        for part, dtype in zip(self.parts, dtypes, strict=True):
            if _is_every(part, dtype):
                found.append(None)
            elif part is None or (isinstance(part, Interval) and not (part.whole and dtype.kind == "f")):
                found.append((-math.inf, math.inf) if part is None else part.bounds(dtype))
            else:
                return None
        return tuple(found)


def _is_infinite(value: Any) -> bool:
    """Return True for ±∞ and NaN; SymPy's numbers have an attribute, which may be None for unknown."""
    known = getattr(value, "is_finite", None)
    return known is False or (isinstance(value, float | np.floating) and not math.isfinite(value))


def _may_be(part: Part, value: Any) -> bool:
    try:
        return bool(_part_contains(part, value))
    except Exception:  # a predicate may raise for ∞
        return False


def _part_contains(part: Part, value: Any) -> bool:
    if part is None:
        return True
    return value in part if isinstance(part, frozenset) else part.contains(value)


def _is_every(part: Part, dtype: np.dtype[Any]) -> bool:
    match dtype.kind, part:
        case "b", frozenset():
            return {False, True} <= part
        case "i" | "u", Interval():
            info = np.iinfo(dtype)
            return bool(part.low <= info.min and info.max <= part.high)
        case "b" | "i" | "u", None:
            return True
    return False


def _members(part: frozenset[Any], dtype: np.dtype[Any]) -> list[Any]:
    """List the elements of a finite carrier that a dtype has."""
    found = []
    for value in part:
        try:
            found.append(element(value, dtype))
        except (DTypeError, TypeError, ValueError):
            continue
    return found


def _comparisons(infinities: frozenset[float]) -> dict[str, Callable[[Any, Any], Any]]:
    """Build comparisons in which the stand-in of an infinity in an integer dtype equals this infinity."""

    def standing(value: Any, other: Any) -> Any:
        if isinstance(value, float) and value in infinities and isinstance(other, np.ndarray) and other.dtype.kind in "iu":
            return element(value, other.dtype, ordered=True)
        return value

    def compare(name: str) -> Callable[[Any, Any], Any]:
        return lambda x, y: ops.TABLE[name](standing(x, y), standing(y, x))

    return {name: compare(name) for name in COMPARISONS}


def carrier_of(domain: Any, zero: Any, one: Any) -> tuple[Carrier, Any]:
    """Build the carrier that a `domain` describes, and return the domain in a hashable form too."""
    zeros, ones = (v if isinstance(v, tuple) else (v,) for v in (zero, one))
    identities = list(zip(zeros, ones, strict=True))
    infinities = frozenset(float(v) for v in (*zeros, *ones) if isinstance(v, float) and math.isinf(v))
    if len(identities) == 1:
        part, plain = _part(domain, *identities[0])
        return Carrier((part,), None, infinities), plain
    if callable(domain):
        return Carrier((None,) * len(identities), _predicate(domain, len(identities)), infinities), domain
    own = (None,) * len(identities) if domain is None else domain
    if not isinstance(own, tuple) or len(own) != len(identities):
        raise SemiringError(
            f"the domain {domain!r} does not describe elements of {len(identities)} components; pass a predicate on the tuple, or a "
            f"tuple with an interval, a finite set, a predicate or None for each component"
        )
    parts = [_part(d, *both) for d, both in zip(own, identities, strict=True)]
    return Carrier(tuple(p for p, _ in parts), None, infinities), None if domain is None else tuple(plain for _, plain in parts)


def _part(domain: Any, zero: Any, one: Any) -> tuple[Part, Any]:
    if domain is None:
        return _usual(zero, one), None
    if isinstance(domain, tuple):
        if len(domain) != 2 or not all(isinstance(v, Number) and v == v for v in domain) or not domain[0] <= domain[1]:
            raise SemiringError(f"the domain {domain!r} is not an interval; write (low, high) with low <= high, or a set of elements")
        return Interval(*domain), domain
    if isinstance(domain, range) and domain and domain.step == 1:
        return Interval(domain[0], domain[-1], whole=True), domain
    if isinstance(domain, Iterable) and not isinstance(domain, str | bytes):
        try:
            elements = frozenset(domain)
        except TypeError:
            raise SemiringError(f"the domain {domain!r} is not a set of elements; use numbers or truth values") from None
        return elements, elements
    if callable(domain):
        return _predicate(domain, 1), domain
    raise SemiringError(f"the domain {domain!r} is neither an interval (low, high), nor a finite set, nor a predicate")


def _usual(zero: Any, one: Any) -> Part:
    """Return the default carrier: truth values; or the finite numbers, and each infinity that is an identity."""
    both = (zero, one)
    if all(isinstance(v, bool) for v in both):
        return frozenset({False, True})
    if all(isinstance(v, Number) for v in both):
        low, high = (sign * math.inf if sign * math.inf in both else sign * LARGEST for sign in (-1, 1))
        return Interval(low, high)
    return None


def _described(part: Part) -> str:
    if part is None:
        return "every value"
    if isinstance(part, frozenset):
        members = sorted(part, key=lambda v: (0, v, "") if isinstance(v, Real) else (1, 0, repr(v)))
        return "{" + ", ".join(map(repr, members[:8])) + (", …}" if len(members) > 8 else "}")
    return str(part)
