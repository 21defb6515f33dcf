"""What one pass over the numbers of a matrix tells."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.domain import pieces
from semiring.algebra.namespace import on_gpu

__all__ = ["Survey", "survey"]


class Survey(NamedTuple):
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
    """

    finite: tuple[float, float] | None = None
    positive_infinity: bool = False
    negative_infinity: bool = False
    nan: bool = False
    negative_zero: bool = False

    @property
    def largest(self) -> float:
        """The largest magnitude of finite numbers; 0 where there is none."""
        return 0 if self.finite is None else max(-self.finite[0], self.finite[1])

    @property
    def negative(self) -> bool:
        """Whether a finite number is negative."""
        return self.finite is not None and self.finite[0] < 0

    def lies_within(self, low: float, high: float) -> bool:
        """Whether all are numbers from `low` to `high`."""
        least, greatest = self.finite or (low, high)
        beyond = (self.positive_infinity and high < math.inf) or (self.negative_infinity and low > -math.inf)
        return low <= least and greatest <= high and not (beyond or self.nan)

    def __or__(self, other: Survey) -> Survey:
        """What these numbers and others are together."""
        ranges = [s.finite for s in (self, other) if s.finite is not None]
        return Survey(
            (min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None,
            self.positive_infinity or other.positive_infinity,
            self.negative_infinity or other.negative_infinity,
            self.nan or other.nan,
            self.negative_zero or other.negative_zero,
        )


def survey(values: Any, infinities: tuple[int, ...] = ()) -> Survey:
    """What the numbers of an array are, on the host or on a GPU.

    Parameters
    ----------
    values : array of truth values, integers or floats, with any strides
    infinities : tuple of int
        Which of the least and the greatest value of an integer dtype stand for ±∞.
    """
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    if on_gpu(values):
        from semiring.kernels.cuda.reductions import survey as begin

        return begin(values, infinities if values.dtype.kind in "iu" else ())()
    look = _floats if values.dtype.kind == "f" else functools.partial(_integers, infinities)
    return functools.reduce(operator.or_, (look(values[piece]) for piece in pieces(values.shape)), Survey())


def _floats(part: Any) -> Survey:
    low, high = float(part.min()), float(part.max())
    if math.isfinite(low) and math.isfinite(high):
        return Survey((low, high), negative_zero=low <= 0 <= high and bool((np.signbit(part) & (part == 0)).any()))
    finite = part[np.isfinite(part)]
    others = Survey(None, bool((part == math.inf).any()), bool((part == -math.inf).any()), bool(np.isnan(part).any()))
    return others | _floats(finite) if finite.size else others


def _integers(infinities: tuple[int, ...], part: Any) -> Survey:
    low, high = int(part.min()), int(part.max())
    if low not in infinities and high not in infinities:
        return Survey((low, high))
    finite = part[~np.isin(part, infinities)]
    found = [i for i in infinities if (part == i).any()]
    others = Survey(None, any(i > 0 for i in found), any(i < 0 for i in found))
    return others | _integers((), finite) if finite.size else others
