"""The limits of dtypes: which integers stand for ±∞, what is left for finite numbers, and what to use where that is too little."""

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
    "FINITE", "HIGHEST", "LOWEST", "NAN", "Interval", "RawStatistics", "SafeRange", "ValueStatistics", "absorbing", "finite_range",
    "half_range", "hull", "inner_infinity", "interpreted", "largest_beside", "overflow_risk", "own_infinities", "remedy", "threshold",
    "tropical",
]  # fmt: skip

FINITE, HIGHEST, LOWEST, NAN = (1 << bit for bit in range(4))
"""Kinds of numbers: those between the ends of a dtype, its end +∞ or highest integer, its end −∞ or lowest integer, NaN."""

RawStatistics = tuple[float, float, int, int, int]
"""What a pass over an array finds, before anyone says which integers stand for ±∞: the least and the greatest number between the ends, the
kinds of numbers, and how many are 0 and −0.0."""


@functools.lru_cache(maxsize=256)
def absorbing(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> tuple[int, ...]:
    """The integers that stand for an infinite zero: a sum with one of them is it again, never a wrapped number."""
    raw = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    zero, _ = semiring.identities(dtypes)
    values = {z for r, z, d in zip(raw, zero, dtypes, strict=True) if d.kind in "iu" and isinstance(r, float) and math.isinf(r)}
    return tuple(sorted(values))


@functools.lru_cache(maxsize=256)
def own_infinities(infinities: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Those of `infinities` that are a dtype's own: the largest or smallest value of another dtype is an ordinary number here."""
    return tuple(i for i in infinities if i in finite_range(dtype, ())) if dtype.kind in "iu" else ()


@functools.lru_cache(maxsize=256)
def finite_range(dtype: np.dtype[Any], infinities: tuple[int, ...]) -> tuple[int, int]:
    """The range of an integer dtype without what stands for ±∞; truth values are bytes."""
    info = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    return info.min + (info.min in infinities), info.max - (info.max in infinities)


@functools.lru_cache(maxsize=16)
def half_range(dtype: np.dtype[Any]) -> float:
    """Half of the largest number of a dtype; of the largest float, which leaves room for rounding."""
    return np.iinfo(dtype).max // 2 if dtype.kind in "iu" else float(np.finfo(dtype).max) / 2


@functools.lru_cache(maxsize=256)
def tropical(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether elements are single integers with an infinite zero, ⊕ is their minimum or maximum and ⊗ their sum, and nothing else."""
    if len(dtypes) != 1 or not absorbing(semiring, dtypes):
        return False
    return is_operation(semiring.program.add[0], ("min", "max")) and is_operation(semiring.program.mul[0], ("add",))


def inner_infinity(infinity: int) -> int:
    """What stands for ∞ among tropical integers inside kernels: half of it, so that the sum of two does not wrap."""
    return infinity // 2


def largest_beside(inner: int, *, signed: bool) -> int:
    """The largest magnitude of finite numbers beside an inner ∞; `signed` ones may pull it back, but not down to the sum of two."""
    return (abs(inner) - 1) // 3 if signed else abs(inner) - 1


def threshold(inner: int, *, signed: bool) -> int:
    """The inner integer from which on a sum is ∞; `signed` if finite numbers of the other sign may have been added to ∞."""
    if not signed:
        return inner
    third = abs(inner) // 3
    return inner - third if inner > 0 else inner + third


def overflow_risk(semiring: Semiring, dtypes: Sequence[np.dtype[Any]], what: str, instead: str = "") -> OverflowRiskError:
    """The error of a computation that could leave its dtypes: what could happen, and what to do instead."""
    return OverflowRiskError(f"{semiring.name} in {', '.join(map(str, dtypes))}: {what}; {instead or remedy(dtypes)}")


def remedy(dtypes: Sequence[np.dtype[Any]]) -> str:
    """Name a wider dtype: for an integer the next wider one, for floats float64, and then exact numbers or smaller ones."""
    if any(d.kind == "f" for d in dtypes):
        return "use float64" if np.dtype(np.float32) in dtypes else "scale the entries, or use object arrays of exact numbers"
    wider = {"u1": "uint16", "u2": "uint32", "u4": "uint64", "i2": "int32", "i4": "int64"}
    return f"use {wider.get(f'{dtypes[0].kind}{dtypes[0].itemsize}', 'float64, or dtype=object for exact integers of any size')}"


Interval = tuple[float, float]
"""Lowest and highest value; Python integers, or ±inf for what is not bounded."""


def hull(a: Interval | None, b: Interval | None) -> Interval | None:
    """The least interval that holds both; None is empty."""
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


class ValueStatistics(NamedTuple):
    """What some numbers of one dtype are.

    Attributes
    ----------
    finite : tuple or None
        The least and the greatest number, leaving out infinities; None where there is none.
    positive_infinity, negative_infinity : bool
        Whether there is one, or an integer that stands for it.
    nan : bool
        Whether there is one.
    negative_zero : bool
        Whether there is a −0.0.
    zeros : int
        How many numbers equal 0.
    """

    finite: Interval | None = None
    positive_infinity: bool = False
    negative_infinity: bool = False
    nan: bool = False
    negative_zero: bool = False
    zeros: int = 0

    @property
    def largest(self) -> float:
        """The largest magnitude of finite numbers; 0 where there is none."""
        return 0 if self.finite is None else max(-self.finite[0], self.finite[1])

    @property
    def negative(self) -> bool:
        """Whether a finite number is negative."""
        return self.finite is not None and self.finite[0] < 0

    @property
    def all_finite(self) -> bool:
        """Whether there is neither an infinity nor NaN."""
        return not (self.positive_infinity or self.negative_infinity or self.nan)

    def pulls_back(self, *, minimum: bool) -> bool:
        """Whether a number, ±∞ among them, pulls ∞ back when it is added: a negative one a +∞, of a minimum, a positive one a −∞."""
        if minimum:
            return self.negative_infinity or (self.finite is not None and self.finite[0] < 0)
        return self.positive_infinity or (self.finite is not None and self.finite[1] > 0)

    def lies_within(self, low: float, high: float) -> bool:
        """Whether all are numbers from `low` to `high`."""
        least, greatest = self.finite or (low, high)
        beyond = (self.positive_infinity and high < math.inf) or (self.negative_infinity and low > -math.inf)
        return low <= least and greatest <= high and not (beyond or self.nan)

    def __or__(self, other: ValueStatistics) -> ValueStatistics:
        """What these numbers and others are together."""
        return ValueStatistics(
            hull(self.finite, other.finite),
            self.positive_infinity or other.positive_infinity,
            self.negative_infinity or other.negative_infinity,
            self.nan or other.nan,
            self.negative_zero or other.negative_zero,
            self.zeros + other.zeros,
        )


class SafeRange(NamedTuple):
    """Numbers that need no closer look, whatever they are combined with.

    Attributes
    ----------
    low, high : float
        The least and the greatest of them.
    kinds : int
        The kinds of numbers; ends of the dtype among them that are not between `low` and `high` are elements too.
    """

    low: float
    high: float
    kinds: int


def interpreted(raw: RawStatistics, dtype: np.dtype[Any], infinities: tuple[int, ...]) -> ValueStatistics:
    """The value statistics, once it is known which integers stand for ±∞."""
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
