"""What the operands of a product have to be: elements, of which no product leaves its dtype; found by one pass over each.

Nearly all operands are well inside of what is safe. That is a range of numbers, worked out once for a semiring, its dtypes and the length
of the sums: finite numbers within it, and the infinities that are elements, need no more looking at.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import require_inside
from semiring.common.errors import SemiringError
from semiring.common.forks import cached_property
from semiring.kernels.overflow.infinity import FINITE, HIGHEST, LOWEST, Found, absorbing, crosses_infinity, tropical
from semiring.kernels.overflow.products import certify, depends_on_values
from semiring.kernels.overflow.statistics import SMALL, ValueStatistics, begin_look, reader_for, surely_elements, told, value_statistics

__all__ = ["ProductChecks", "checks_for"]

Values = tuple[Any, ...]

_MAGNITUDES = tuple(2.0**e for e in (256, 128, 62, 48, 32, 30, 24, 20, 16, 14, 12, 8, 6, 4, 2, 0))
"""Of which the largest that is safe is taken."""


class _Safe(NamedTuple):
    """Numbers from `low` to `high`, and the kinds of ends that are none of these numbers but elements."""

    low: float
    high: float
    kinds: int


class ProductChecks:
    """What has to be known of the operands of products over a semiring in some dtypes, with sums of k terms.

    Attributes
    ----------
    needed : bool
        Whether it depends on the numbers at all.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], k: int) -> None:
        self.semiring, self.dtypes, self.k = semiring, dtypes, k
        self.needed = depends_on_values(semiring, dtypes)
        self._infinities = absorbing(semiring, dtypes)
        self._tropical = bool(self._infinities) and tropical(semiring, dtypes)
        alike = len(set(dtypes)) == 1 and dtypes[0].kind != "O"
        self._safe = _safe_range(semiring, dtypes, k) if self.needed and alike else None

    def look(self, operands: Sequence[Values], threads: int | None = None, *, refuse: bool = True) -> tuple[bool, ValueStatistics | None]:
        """Whether a finite element could pull a sum with ∞ back from it, and what the numbers are if that was worked out.

        Parameters
        ----------
        operands : sequence of tuples of arrays of the host
            Of a, of b and of c, if there is one.
        threads : int, optional
        refuse : bool
            Whether what is no element, and what could leave the dtype, is refused. Else only tropical integers are looked at, of which
            the answer depends on.

        Raises
        ------
        DomainError, OverflowRiskError
        """
        if not self.needed or not (refuse or self._tropical):
            return False, None
        arrays = [*operands[0], *operands[1]] if len(operands) == 2 else [v for part in operands for v in part]
        if self._are_small(arrays) and self._are_safe(self._read(arrays)):
            return False, None
        parts = self._by_operand(value_statistics(arrays, self._infinities, threads=threads))
        whole = functools.reduce(operator.or_, [some[0] for some in parts])
        return self._refuse(operands, parts) if refuse else self._is_signed(parts), whole

    def begin(self, given: Sequence[Any], operands: Callable[[], Sequence[Values]], signs: Any = None) -> Callable[[], object]:
        """Begins to look at operands on a GPU; what it returns waits for that, and refuses what `look` does.

        Parameters
        ----------
        given : sequence of arrays or Strided
            All components of a, of b and of c, if there is one.
        operands : callable
            Gives the arrays of a, b and c, should one be looked at more closely.
        signs : int32 array of one number, optional
            See `semiring.kernels.cuda.statistics.begin`.
        """
        wait = begin_look(given, signs)

        def judge() -> None:
            found = wait()
            if not self._are_safe(found):
                each = [told(some, v.dtype, self._infinities) for some, v in zip(found, given, strict=True)]
                self._refuse(operands(), self._by_operand(each))

        return judge

    def _by_operand(self, each: Sequence[ValueStatistics]) -> list[Sequence[ValueStatistics]]:
        width = len(self.dtypes)
        return [each[i : i + width] for i in range(0, len(each), width)]

    def _refuse(self, operands: Sequence[Values], parts: Sequence[Sequence[ValueStatistics]]) -> bool:
        """Refuse what is no element, and what could leave the dtype; else whether ∞ could be pulled back."""
        for name, part, some in zip("abc", operands, parts, strict=False):
            if not surely_elements(self.semiring, part, some):
                require_inside(self.semiring, part, name)
        empty = any(0 in part[0].shape for part in operands)
        return not empty and certify(self.semiring, self.dtypes, *parts, k=self.k)

    @cached_property
    def _read(self) -> Callable[[Sequence[Any]], list[Found]]:
        return reader_for(self.dtypes[0])

    def _are_small(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays of the host are read by one thread in one call."""
        if self._safe is None:
            return False
        for v in arrays:  # noqa: SIM110 (a generator takes longer than what it asks)
            if type(v) is not np.ndarray or v.nbytes > SMALL or not (v.ndim == 2 or v.flags.forc):
                return False
        return True

    def _are_safe(self, found: Sequence[Found]) -> bool:
        """Whether all numbers are in the safe range."""
        if self._safe is None:
            return False
        low, high, kinds = self._safe
        for least, greatest, some, _, _ in found:
            if some & ~kinds or (some & FINITE and not (low <= least and greatest <= high)):
                return False
        return True

    def _is_signed(self, told: Sequence[Sequence[ValueStatistics]]) -> bool:
        infinity = self._infinities[0]
        return any(some[0].finite is not None and crosses_infinity(infinity, some[0].finite) for some in told[:2])


checks_for = functools.lru_cache(maxsize=1024)(ProductChecks)


def _safe_range(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], k: int) -> _Safe | None:
    """The largest range of which it is known that no combination of its numbers is refused, nor any of them an obstacle."""
    nothing = tuple(np.empty(0, d) for d in dtypes)

    def safe(some: ValueStatistics) -> bool:
        operand = (some,) * len(dtypes)
        try:
            inside = surely_elements(semiring, nothing, operand)
            return inside and not certify(semiring, dtypes, operand, operand, operand, k=max(k, 1))
        except SemiringError:
            return False

    dtype, infinities = dtypes[0], absorbing(semiring, dtypes)
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    for size in _MAGNITUDES:
        if info is not None and size >= info.max:
            continue
        for low in (-size, 0.0):
            bounds = (low, size) if info is None else (max(int(low), int(info.min)), int(size))
            if not safe(ValueStatistics(bounds)):
                continue
            kinds = FINITE
            for kind, some, end in (
                (HIGHEST, ValueStatistics(bounds, positive_infinity=True), None if info is None else info.max),
                (LOWEST, ValueStatistics(bounds, negative_infinity=True), None if info is None else info.min),
            ):
                stands = end is None or int(end) in infinities
                if safe(some) if stands else bounds[0] <= int(end or 0) <= bounds[1]:
                    kinds |= kind
            return _Safe(bounds[0], bounds[1], kinds)
    return None
