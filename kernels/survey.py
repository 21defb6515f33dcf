"""What one pass over the numbers of a matrix tells."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Survey"]


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
