"""The limits of dtypes: integers that stand for ±∞, the range that is left for finite numbers, and wider dtypes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.common.errors import OverflowRiskError

__all__ = [
    "FINITE", "HIGHEST", "LOWEST", "NAN", "DTypes", "Interval", "RawStatistics", "SafeRange", "ValueStatistics", "absorbing",
    "finite_range", "half_range", "hull", "inner_infinity", "interpreted", "largest_beside", "overflow_risk", "own_infinities", "remedy",
    "statistics_by_numpy", "threshold", "tropical",
]  # fmt: skip

DTypes = tuple[np.dtype[Any], ...]

FINITE, HIGHEST, LOWEST, NAN = (1 << bit for bit in range(4))
"""Bits for kinds of numbers: between a dtype's ends; +∞ or the highest integer; −∞ or the lowest integer; NaN."""

RawStatistics = tuple[float, float, int, int, int]
"""Statistics of an array before integers are interpreted as ±∞: the least and greatest number between the dtype's ends, the bits of the
kinds of numbers, and the counts of 0 and −0.0."""


@functools.lru_cache(maxsize=256)
def absorbing(semiring: Semiring, dtypes: DTypes) -> tuple[int, ...]:
    """Return the integers that stand for an infinite zero. Such an integer absorbs every sum, which never wraps."""
    raw = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    zero, _ = semiring.identities(dtypes)
    values = {z for r, z, d in zip(raw, zero, dtypes, strict=True) if d.kind in "iu" and isinstance(r, float) and math.isinf(r)}
    return tuple(sorted(values))


@functools.lru_cache(maxsize=256)
def own_infinities(infinities: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the members of `infinities` that end this dtype's range; another dtype's ends are ordinary numbers here."""
    return tuple(i for i in infinities if i in finite_range(dtype, ())) if dtype.kind in "iu" else ()


@functools.lru_cache(maxsize=256)
def finite_range(dtype: np.dtype[Any], infinities: tuple[int, ...]) -> tuple[int, int]:
    """Return the range of an integer dtype without the integers that stand for ±∞; truth values are bytes."""
    info = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    return info.min + (info.min in infinities), info.max - (info.max in infinities)


@functools.lru_cache(maxsize=16)
def half_range(dtype: np.dtype[Any]) -> float:
    """Return half of a dtype's largest number; for floats, the other half is room for rounding."""
    return np.iinfo(dtype).max // 2 if dtype.kind in "iu" else float(np.finfo(dtype).max) / 2


@functools.lru_cache(maxsize=256)
def tropical(semiring: Semiring, dtypes: DTypes) -> bool:
    """Return True for single integers with an infinite zero, min or max as ⊕, and + as ⊗."""
    if len(dtypes) != 1 or not absorbing(semiring, dtypes):
        return False
    return is_operation(semiring.program.add[0], ("min", "max")) and is_operation(semiring.program.mul[0], ("add",))


def inner_infinity(infinity: int) -> int:
    """Return the number for ∞ among tropical integers inside kernels: half of ∞, so that the sum of two does not wrap."""
    return infinity // 2


def largest_beside(inner: int, *, signed: bool) -> int:
    """Return the largest finite magnitude beside an inner ∞; `signed` numbers pull ∞ back, but must not reach a sum of two of them."""
    return (abs(inner) - 1) // 3 if signed else abs(inner) - 1


def threshold(inner: int, *, signed: bool) -> int:
    """Return the inner integer from which on a sum counts as ∞; `signed` if numbers of the other sign may have been added to ∞."""
    if not signed:
        return inner
    third = abs(inner) // 3
    return inner - third if inner > 0 else inner + third


def overflow_risk(semiring: Semiring, dtypes: Sequence[np.dtype[Any]], what: str, instead: str = "") -> OverflowRiskError:
    """Return the error for a computation that could leave its dtypes: the risk, and a remedy."""
    return OverflowRiskError(f"{semiring.name} in {', '.join(map(str, dtypes))}: {what}; {instead or remedy(dtypes)}")


def remedy(dtypes: Sequence[np.dtype[Any]]) -> str:
    """Name a remedy: the next wider integer dtype; float64; exact numbers or smaller entries."""
    if any(d.kind == "f" for d in dtypes):
        return "use float64" if np.dtype(np.float32) in dtypes else "scale the entries, or use object arrays of exact numbers"
    wider = {"u1": "uint16", "u2": "uint32", "u4": "uint64", "i2": "int32", "i4": "int64"}
    return f"use {wider.get(f'{dtypes[0].kind}{dtypes[0].itemsize}', 'float64, or dtype=object for exact integers of any size')}"


Interval = tuple[float, float]
"""Lowest and highest value: Python integers, or ±inf if unbounded."""


def hull(a: Interval | None, b: Interval | None) -> Interval | None:
    """Return the least interval that contains both; None is empty."""
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


class ValueStatistics(NamedTuple):
    """Value statistics of numbers of one dtype."""

    finite: Interval | None = None  # the least and greatest finite number; None without finite numbers
    positive_infinity: bool = False  # +∞ occurs, or an integer that stands for +∞
    negative_infinity: bool = False
    nan: bool = False
    negative_zero: bool = False  # −0.0 occurs
    zeros: int = 0  # numbers that equal 0

    @property
    def largest(self) -> float:
        """Return the largest magnitude of finite numbers, or 0."""
        return 0 if self.finite is None else max(-self.finite[0], self.finite[1])

    @property
    def negative(self) -> bool:
        """Return True if a finite number is negative."""
        return self.finite is not None and self.finite[0] < 0

    @property
    def all_finite(self) -> bool:
        """Return True if every number is finite."""
        return not (self.positive_infinity or self.negative_infinity or self.nan)

    def pulls_back(self, *, minimum: bool) -> bool:
        """Return True if a number, possibly ±∞, pulls ∞ back in a sum: a negative one from +∞ (`minimum`), a positive one from −∞."""
        if minimum:
            return self.negative_infinity or (self.finite is not None and self.finite[0] < 0)
        return self.positive_infinity or (self.finite is not None and self.finite[1] > 0)

    def lies_within(self, low: float, high: float) -> bool:
        """Return True if every number is from `low` to `high`."""
        least, greatest = self.finite or (low, high)
        beyond = (self.positive_infinity and high < math.inf) or (self.negative_infinity and low > -math.inf)
        return low <= least and greatest <= high and not (beyond or self.nan)

    def __or__(self, other: ValueStatistics) -> ValueStatistics:
        """Return the statistics of both sets of numbers together."""
        return ValueStatistics(
            hull(self.finite, other.finite),
            self.positive_infinity or other.positive_infinity,
            self.negative_infinity or other.negative_infinity,
            self.nan or other.nan,
            self.negative_zero or other.negative_zero,
            self.zeros + other.zeros,
        )


class SafeRange(NamedTuple):
    """Numbers that are elements and overflow in no combination."""

    low: float
    high: float
    kinds: int  # kinds of numbers that are safe; a dtype's end in `kinds` is safe even outside `low` … `high`


def statistics_by_numpy(part: np.ndarray[Any, Any]) -> RawStatistics:
    """Return the raw statistics of an array by NumPy."""
    if part.dtype.kind == "f":
        between, ends, nan = np.isfinite(part), (-math.inf, math.inf), bool(np.isnan(part).any())
    else:
        part = part.view(np.uint8) if part.dtype.kind == "b" else part
        ends, nan = finite_range(part.dtype, ()), False
        between = (part > ends[0]) & (part < ends[1])
    finite = part[between]
    least, greatest = (finite.min().item(), finite.max().item()) if finite.size else (0, 0)
    kinds = FINITE * bool(finite.size) | HIGHEST * bool((part == ends[1]).any()) | LOWEST * bool((part == ends[0]).any()) | NAN * nan
    negative = int(np.count_nonzero(np.signbit(part) & (part == 0))) if part.dtype.kind == "f" else 0
    return least, greatest, kinds, part.size - int(np.count_nonzero(part)) - negative, negative


def interpreted(raw: RawStatistics, dtype: np.dtype[Any], infinities: tuple[int, ...]) -> ValueStatistics:
    """Return value statistics from raw ones, given the integers that stand for ±∞."""
    least, greatest, kinds, zeros, negative_zeros = raw
    highest, lowest = kinds & HIGHEST != 0, kinds & LOWEST != 0
    if dtype.kind != "f" and (highest or lowest):
        bottom, top = finite_range(dtype, ())
        numbers = [least, greatest] if kinds & FINITE else []
        numbers += [end for end, there in ((bottom, lowest), (top, highest)) if there and end not in infinities]
        highest, lowest = highest and top in infinities, lowest and bottom in infinities
        return ValueStatistics((min(numbers), max(numbers)) if numbers else None, highest, lowest, zeros=zeros)
    finite = (least, greatest) if kinds & FINITE else None
    return ValueStatistics(finite, highest, lowest, kinds & NAN != 0, negative_zeros > 0, zeros + negative_zeros)
