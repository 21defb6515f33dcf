"""Whether a product can leave its dtype: interval arithmetic over the recorded operations.

Whether a product of floats can overflow where ⊕ only compares, so that what overflowed to ∞ would pass for an element: no path.

Where ⊕ adds, as in ordinary arithmetic, an ∞ from an overflow is what IEEE 754 says it is, and is left alone.

Whether a product can leave its dtype: of floats see `floats`; of integers, interval arithmetic over the recorded operations.

A product is refused before it is computed if any sum or product inside it could wrap, so nothing wrapped is ever returned. What
stands for ±∞ absorbs sums and takes no part in the intervals; an operation that would make a number of it is refused too.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra import carrier
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import widest
from semiring.algebra.expression import CHOOSING, COMPARISONS, Expr, fold, nodes, var
from semiring.common.errors import DTypeError, OverflowRiskError
from semiring.kernels.overflow.infinity import absorbing, crosses_infinity, own, signed_limit, tropical
from semiring.kernels.overflow.statistics import ValueStatistics

__all__ = ["Interval", "certify", "certify_floats", "depends_on_values", "stays_inside", "walks_fit", "wider"]

_GROWING = {"add", "sub", "mul"}
_BOUNDED = CHOOSING | _GROWING | {"neg", "abs", "sqrt"}


def certify_floats(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[ValueStatistics], right: Sequence[ValueStatistics]
) -> None:
    """Refuse a product of floats in which a ⊗ b of finite elements could overflow, if ⊕ only compares.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    left, right : sequences of ValueStatistics, one a component

    Raises
    ------
    OverflowRiskError
        Naming the magnitudes, and what would work.
    """
    safe = _safe(semiring, dtypes)
    if safe == math.inf:
        return
    sizes = [list(map(_magnitude, part, dtypes)) for part in (left, right)]
    if max(*sizes[0], *sizes[1]) > safe and (op := _overflows(semiring, dtypes, *sizes)) is not None:
        narrow = np.dtype(np.float32) in dtypes
        reached = " and ".join(f"{max(part):.3g}" for part in sizes)
        raise OverflowRiskError(
            f"{semiring.name} in {', '.join(map(str, dtypes))}: finite entries reach {reached}, so that {op!r} could overflow; "
            f"{'use float64' if narrow else 'scale the entries, or use object arrays of exact numbers'}"
        )


@lru_cache(maxsize=256)
def _safe(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> float:
    """A magnitude of elements up to which no product of theirs overflows; ∞ where none ever does, or where that is no harm."""
    floats = [d for d in dtypes if d.kind == "f"]
    if not floats or any(d.kind == "O" for d in dtypes):
        return math.inf
    add, mul = ({e.op for e in nodes(*roots)} for roots in (semiring.program.add, semiring.program.mul))
    if not add <= CHOOSING or not mul & _GROWING:
        return math.inf
    usual = 2.0 ** (min(np.finfo(d).maxexp for d in floats) // 4)
    sizes = [usual] * len(dtypes)
    return usual if _overflows(semiring, dtypes, sizes, sizes) is None else 0.0


def _overflows(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: list[float], right: list[float]) -> str | None:
    """An operation of ⊗ that could overflow for operands of such magnitudes."""
    limit = min(float(np.finfo(d).max) for d in dtypes if d.kind == "f")
    found: list[str] = []

    def grown(op: str, args: list[float]) -> float:
        size = _grown(op, args)
        if size > limit:
            found.append(op)
        return size

    fold([root for root, d in zip(semiring.program.mul, dtypes, strict=True) if d.kind == "f"], left, right, _constant, grown)
    return found[0] if found else None


def _magnitude(told: ValueStatistics, dtype: np.dtype[Any]) -> float:
    if dtype.kind == "f":
        return told.largest
    return 2.0 ** (8 * dtype.itemsize)  # integers are certified elsewhere; here they only meet floats


def _constant(value: Any) -> float:
    return 0.0 if value in (math.inf, -math.inf) else float(min(abs(value), sys.float_info.max))


def _grown(op: str, args: list[float]) -> float:
    """The largest magnitude of an operation on magnitudes; NaN where none is known, as of a quotient, and of what is computed from that."""
    if op not in _BOUNDED or any(map(math.isnan, args)):
        return math.nan
    match op:
        case "add" | "sub":
            return args[0] + args[1]
        case "mul":
            return args[0] * args[1]
        case "where":
            return max(args[1:])
        case "sqrt":
            return math.sqrt(args[0])
    return max(args)


Interval = tuple[float, float]
"""Lowest and highest value; Python integers, or ±inf for what is not bounded."""

_ARITHMETIC = {"add", "sub", "mul", "neg", "abs", "shl", "floordiv"}
_KEEP_INFINITY = {"add", "min", "max", "where"}


class _Range(NamedTuple):
    """What an expression may be: finite values (None for none), ∞, and its dtype (None for constants and conditions)."""

    finite: Interval | None
    infinite: bool
    dtype: np.dtype[Any] | None


def wider(dtype: np.dtype[Any]) -> str:
    """The next wider dtype, as advice."""
    following = {"u1": "uint16", "u2": "uint32", "u4": "uint64", "i2": "int32", "i4": "int64"}
    return following.get(f"{dtype.kind}{dtype.itemsize}", "float64")


@functools.lru_cache(maxsize=256)
def depends_on_values(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether it depends on the numbers if they are elements, and `certify` says what it says."""
    integers = any(d.kind in "iu" for d in dtypes) and semiring.program.operations & _ARITHMETIC
    return bool(integers) or not semiring.carrier.contains_every(dtypes)


def certify(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    left: Sequence[ValueStatistics],
    right: Sequence[ValueStatistics],
    old: Sequence[ValueStatistics] | None = None,
    *,
    k: int,
) -> bool:
    """Refuse a product that could overflow.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    left, right : sequences of ValueStatistics, one a component
        What the operands' numbers are; integers that stand for an infinite zero count as infinities.
    old : sequence of ValueStatistics, optional
        Those of what the product is added to.
    k : int
        Length of the sums.

    Returns
    -------
    bool
        Whether a finite element could pull a sum with ∞ back from it (see `Engine.signed`).

    Raises
    ------
    OverflowRiskError
        Naming the operation, its range and the next wider dtype; or, of floats, the magnitudes and what would work.
    """
    if k == 0:
        return False
    signed = _certify_integers(semiring, dtypes, left, right, old, k) if any(d.kind in "iu" for d in dtypes) else False
    certify_floats(semiring, dtypes, left, right)
    return signed


def _certify_integers(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    left: Sequence[ValueStatistics],
    right: Sequence[ValueStatistics],
    old: Sequence[ValueStatistics] | None,
    k: int,
) -> bool:
    program = semiring.program
    if not program.operations & _ARITHMETIC:
        return False
    infinities = absorbing(semiring, dtypes)
    if tropical(semiring, dtypes):
        return _certify_tropical(semiring, dtypes[0], infinities[0], *(part[0].finite or (0, 0) for part in (left, right, old or left)))
    limits = _Limits(semiring, dtypes, infinities)
    total = limits.evaluate(program.mul, *(list(map(_range, part, dtypes)) for part in (left, right)))
    if {e.op for e in nodes(*program.add)} & _ARITHMETIC:
        total = limits.sum_of(total, k)
        zero, _ = semiring.identities(dtypes)
        zeros = (
            ValueStatistics(None, True) if z in own(infinities, d) else ValueStatistics((z, z)) for z, d in zip(zero, dtypes, strict=True)
        )
        limits.evaluate(program.add, list(map(_range, zeros, dtypes)), total)
    if old is not None:
        limits.evaluate(program.add, list(map(_range, old, dtypes)), total)
    return False


def walks_fit(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: Sequence[Interval], most: int) -> bool:
    """Whether three walks of so many edges together stay within the dtypes, however they are multiplied; of edges the ranges are given."""
    limits = _Limits(semiring, dtypes, absorbing(semiring, dtypes))
    walks = [_Range(interval, False, dtype) for interval, dtype in zip(edges, dtypes, strict=True)]
    try:
        for _ in range((3 * most).bit_length()):  # by doubling
            walks = list(map(_hull, walks, limits.evaluate(semiring.program.mul, walks, walks)))
    except OverflowRiskError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def stays_inside(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether the carrier has bounds among the integers that ⊕, ⊗ and star of elements within them never leave, nor wrap on the way."""
    parts = [_bounds(part) for part in semiring.carrier.parts]
    if any(part is None for part in parts) or any(d.kind not in "iu" for d in dtypes):
        return False
    program, limits = semiring.program, _Limits(semiring, dtypes, ())
    elements = [_Range(part, False, dtype) for part, dtype in zip(parts, dtypes, strict=True)]
    try:
        results = [limits.evaluate(roots, elements, elements) for roots in (program.add, program.mul, program.star) if roots]
    except (DTypeError, OverflowRiskError):
        return False
    return all(_hull(x, y).finite == x.finite for values in results for x, y in zip(elements, values, strict=True))


def _bounds(part: carrier.Part) -> Interval | None:
    """The least and the greatest integer of a component's carrier."""
    ends = (part.low, part.high) if isinstance(part, carrier.Interval) else part if isinstance(part, frozenset) else ()
    if not ends or not all(isinstance(v, int) for v in ends):
        return None
    return min(ends), max(ends)


def _range(told: ValueStatistics, dtype: np.dtype[Any]) -> _Range:
    if dtype.kind == "b":
        return _Range((0, 1), False, np.dtype(np.uint8))
    if dtype.kind not in "iu":
        return _Range((-math.inf, math.inf), False, dtype)
    return _Range(told.finite, told.positive_infinity or told.negative_infinity, dtype)


def _certify_tropical(semiring: Semiring, dtype: np.dtype[Any], infinity: int, a: Interval, b: Interval, c: Interval) -> bool:
    """Tropical integers: inside, half of ∞ stands for it, and every finite entry and sum must stay on this side."""
    signed = crosses_infinity(infinity, a) or crosses_infinity(infinity, b)
    size = max(map(abs, (*a, *b, *c)))
    limit = signed_limit(infinity // 2) if signed else abs(infinity // 2) - 1
    total = max(map(abs, a)) + max(map(abs, b))
    if size > limit or (not signed and total > limit):
        raise OverflowRiskError(
            f"{semiring.name} in {dtype}: finite entries reach {size} and sums {total}, and beside ∞ = {infinity} "
            f"the library can tell {'entries' if signed else 'sums'} up to {limit} from it; use {wider(dtype)}"
        )
    return signed


class _Limits:
    """Evaluates ranges and refuses those that leave the integers."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], infinities: tuple[int, ...]) -> None:
        self.semiring, self.dtypes, self.infinities = semiring, dtypes, infinities

    def evaluate(self, roots: Sequence[Expr], left: Sequence[_Range], right: Sequence[_Range]) -> list[_Range]:
        results = fold(roots, left, right, _constant_interval, self._apply)
        return [self._convert(result, dtype, "the result") for result, dtype in zip(results, self.dtypes, strict=True)]

    def sum_of(self, terms: list[_Range], k: int) -> list[_Range]:
        """What up to k terms add up to, in whatever order: by doubling, as in powers by squaring."""
        add, total, power = self.semiring.program.add, list[_Range](), terms
        if all(e.op == "add" and {*e.args} == {var(0, i), var(1, i)} for i, e in enumerate(add)):
            return [self._multiple(r, k) for r in terms]
        while True:
            if k & 1:
                total = list(map(_hull, total, self.evaluate(add, total, power))) if total else power
            k >>= 1
            if not k:
                return total
            power = list(map(_hull, power, self.evaluate(add, power, power)))

    def _multiple(self, term: _Range, k: int) -> _Range:
        """Plain sums of 0 to k terms."""
        if term.finite is None or term.dtype is None or term.dtype.kind not in "iu":
            return term
        low, high = min(0, k * term.finite[0]), max(0, k * term.finite[1])
        self._require("'add'", low, high, term.dtype)
        return term._replace(finite=(low, high))

    def _apply(self, op: str, args: list[_Range]) -> _Range:
        condition = _Range((0, 1), False, None)
        if op == "not":
            return condition
        used = args[1:] if op == "where" else args
        # Conditions and constants alone have the elements' dtype.
        dtype = widest([a.dtype for a in used if a.dtype is not None] or self.dtypes)
        if dtype.kind not in "iu":
            return condition if op in COMPARISONS else _Range((-math.inf, math.inf), False, dtype)
        used = [self._convert(a, dtype, repr(op)) for a in used]
        if op in COMPARISONS:
            return condition
        infinite = self._infinite(op, used, dtype)
        finite = [a.finite for a in used if a.finite is not None]
        if not finite or (len(finite) < len(used) and op == "add"):
            return _Range(None, infinite, dtype)
        low, high = _interval(op, finite, dtype) if len(finite) == len(used) else _spanned(finite)
        if op in _ARITHMETIC:
            self._require(repr(op), low, high, dtype)
        return _Range((low, high), infinite, dtype)

    def _infinite(self, op: str, args: Sequence[_Range], dtype: np.dtype[Any]) -> bool:
        """Whether the result may be ∞; what would make a number of it is refused."""
        kept = own(self.infinities, dtype)
        found = [a.infinite for a in args]
        if any(found) and (op not in _KEEP_INFINITY or (op == "add" and not kept)):
            raise OverflowRiskError(
                f"{self.semiring.name} in {dtype}: {op!r} of ∞ has no meaning among integers, where only sums keep it; use float64"
            )
        # A minimum is +∞ only if both are.
        return all(found) if (op, [i > 0 for i in kept]) in (("min", [True]), ("max", [False])) else any(found)

    def _convert(self, value: _Range, dtype: np.dtype[Any], what: str) -> _Range:
        """`value` in a dtype that its values have to fit."""
        if value.finite is not None and value.dtype is not None and value.dtype != dtype and dtype.kind in "iu":
            self._require(what, *value.finite, dtype)
        return value._replace(dtype=dtype)

    def _require(self, what: str, low: float, high: float, dtype: np.dtype[Any]) -> None:
        lowest, highest = _finite(dtype, self.infinities)
        if not (lowest <= low and high <= highest):
            raise OverflowRiskError(
                f"{self.semiring.name} in {dtype}: {what} inside the product may reach {low} … {high}, beyond {lowest} … {highest}; "
                f"use {wider(dtype)}"
            )


@functools.lru_cache(maxsize=256)
def _finite(dtype: np.dtype[Any], infinities: tuple[int, ...]) -> tuple[int, int]:
    """The range of a dtype without what stands for ±∞."""
    info = np.iinfo(dtype)
    return info.min + (info.min in infinities), info.max - (info.max in infinities)


def _constant_interval(value: Any) -> _Range:
    return _Range(None, True, None) if isinstance(value, float) and math.isinf(value) else _Range((value, value), False, None)


def _hull(x: _Range, y: _Range) -> _Range:
    """What is one or the other."""
    finite = [r.finite for r in (x, y) if r.finite is not None]
    return _Range(_spanned(finite) if finite else None, x.infinite or y.infinite, x.dtype)


def _spanned(intervals: Sequence[Interval]) -> Interval:
    return min(i[0] for i in intervals), max(i[1] for i in intervals)


def _interval(op: str, args: Sequence[Interval], dtype: np.dtype[Any]) -> Interval:
    """The range of an operation on ranges."""
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
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "where":
            return _spanned(args)
        case "floordiv" if c >= 0:
            quotients = [x // max(y, 1) for x in (a, b) for y in (c, d)] + [0] * (c == 0)  # by 0 it is 0, as in NumPy
            return min(quotients), max(quotients)
        case "floordiv":
            return -max(abs(a), abs(b)), max(abs(a), abs(b))
        case "mod":
            return min(c + 1, 0), max(d - 1, 0)
        case "shl" | "shr":
            # Beyond 64 places only 0 (or −1) stays.
            powers = [2 ** int(min(max(x, 0), 64)) for x in (c, d)]
            shifted = [x * p if op == "shl" else x // p for x in (a, b) for p in powers]
            return min(shifted), max(shifted)
        case "invert":
            top = np.iinfo(dtype).max if dtype.kind == "u" else -1
            return top - b, top - a
        case "and" | "or" | "xor":
            bits = max(int(x).bit_length() for x in (a, b, c, d))
            return (0 if min(a, c) >= 0 else -(1 << bits)), (1 << bits) - 1
        case _:
            raise DTypeError(f"{op!r} has no meaning for integers")
