"""Checks of a product's operands: they hold elements, and no sum or product inside can leave its dtype.

A risky product is refused before the computation, so no wrapped number is ever returned. The *safe range* is computed once for a semiring,
its dtypes and the length of the sums. Finite numbers in the range, and infinities that are elements, need no closer check; nearly all
operands are well within the range.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import nodes
from semiring.arrays.conversion import require_inside
from semiring.common.errors import SemiringError
from semiring.common.forks import cached_property
from semiring.kernels.limits import (
    FINITE,
    HIGHEST,
    LOWEST,
    DTypes,
    RawStatistics,
    SafeRange,
    ValueStatistics,
    absorbing,
    finite_range,
    inner_infinity,
    interpreted,
    largest_beside,
    overflow_risk,
    own_infinities,
    tropical,
)
from semiring.kernels.operations import modulus_of
from semiring.kernels.overflow.intervals import ARITHMETIC, IntervalArithmetic, Range, certify_floats
from semiring.kernels.overflow.statistics import SMALL, as_stored, gpu_kernels, kernel_for, surely_elements, value_statistics

__all__ = ["ProductChecks", "Statistics", "certify", "checks_for", "depends_on_values", "ranges"]

Values = tuple[Any, ...]
Statistics = Sequence[ValueStatistics]
"""Value statistics for each component of an operand."""

_MAGNITUDES = tuple(2.0**e for e in (256, 128, 62, 48, 32, 30, 24, 20, 16, 14, 12, 8, 6, 4, 2, 0))
"""Candidates for the safe range, largest first."""


@functools.lru_cache(maxsize=256)
def depends_on_values(semiring: Semiring, dtypes: DTypes) -> bool:
    """Return True if `certify`, or membership in the carrier, depends on the numbers."""
    integers = any(d.kind in "iu" for d in dtypes) and semiring.program.operations & ARITHMETIC
    return bool(integers) or not semiring.carrier.contains_every(dtypes)


def certify(semiring: Semiring, dtypes: DTypes, left: Statistics, right: Statistics, old: Statistics | None = None, *, k: int) -> bool:
    """Refuse a product that could overflow; return True if a finite element could pull a sum with ∞ back (see `Engine.signed`).

    Parameters
    ----------
    left, right : sequences of ValueStatistics, one a component
        The operands' statistics; integers that stand for an infinite zero count as infinities.
    old : sequence of ValueStatistics, optional
        Statistics of the matrix that the product is added to.
    k : int
        Length of the sums.

    Raises
    ------
    OverflowRiskError
        With the operation, its range and the next wider dtype; or, for floats, the magnitudes and a remedy.
    """
    if k == 0:
        return False
    signed = False
    if any(d.kind in "iu" for d in dtypes) and semiring.program.operations & ARITHMETIC:
        if tropical(semiring, dtypes):
            signed = _certify_tropical(semiring, dtypes[0], left[0], right[0], (old or left)[0])
        else:
            _certify_integers(semiring, dtypes, left, right, old, k)
    certify_floats(semiring, dtypes, left, right)
    return signed


def _certify_tropical(semiring: Semiring, dtype: np.dtype[Any], a: ValueStatistics, b: ValueStatistics, c: ValueStatistics) -> bool:
    """Refuse tropical integers if a finite entry or sum could reach the inner ∞, half of ∞."""
    (infinity,) = absorbing(semiring, (dtype,))
    signed = a.pulls_back(minimum=infinity > 0) or b.pulls_back(minimum=infinity > 0)
    left, right = a.largest, b.largest
    size, total = max(left, right, c.largest), left + right
    limit = largest_beside(inner_infinity(infinity), signed=signed)
    if size > limit or (not signed and total > limit):
        most = f"{'entries' if signed else 'sums'} may be {limit} at most"
        raise overflow_risk(semiring, [dtype], f"finite entries reach {size} and sums {total}; with ∞ = {infinity}, {most}")
    return signed


def _certify_integers(semiring: Semiring, dtypes: DTypes, left: Statistics, right: Statistics, old: Statistics | None, k: int) -> None:
    """Refuse other integers by intervals of all operations, of sums of up to k terms, and of the result with `old`."""
    program, infinities = semiring.program, absorbing(semiring, dtypes)
    arithmetic = IntervalArithmetic(semiring, dtypes, infinities)
    total = arithmetic.evaluate(program.mul, *(ranges(part, dtypes) for part in (left, right)))
    starts = [] if old is None else [old]
    if {e.op for e in nodes(*program.add)} & ARITHMETIC:
        total = arithmetic.sum_of(total, k)
        zero, _ = semiring.identities(dtypes)
        infinite = [z in own_infinities(infinities, d) for z, d in zip(zero, dtypes, strict=True)]
        starts.insert(0, [ValueStatistics(None if i else (z, z), i) for z, i in zip(zero, infinite, strict=True)])
    for start in starts:
        arithmetic.evaluate(program.add, ranges(start, dtypes), total)


def ranges(statistics: Statistics, dtypes: DTypes) -> list[Range]:
    """Return the ranges of an operand's components."""
    return list(map(_range, statistics, dtypes))


def _range(statistics: ValueStatistics, dtype: np.dtype[Any]) -> Range:
    """Return the range of a component: truth values are 0 or 1, floats are unbounded."""
    if dtype.kind == "b":
        return Range((0, 1), False, np.dtype(np.uint8))
    if dtype.kind not in "iu":
        return Range((-math.inf, math.inf), False, dtype)
    return Range(statistics.finite, statistics.positive_infinity or statistics.negative_infinity, dtype)


class ProductChecks:
    """Checks of operands of products over a semiring in some dtypes, with sums of k terms.

    The checks are `needed` if they depend on the numbers. Operands in the range `safe` are neither refused nor signed. A `dense` product
    modulo p never leaves its dtype, because the engines reduce sums in time.
    """

    def __init__(self, semiring: Semiring, dtypes: DTypes, k: int, *, dense: bool = False) -> None:
        self.semiring, self.dtypes, self.k = semiring, dtypes, k
        self.needed = depends_on_values(semiring, dtypes)
        self._infinities = absorbing(semiring, dtypes)
        self._tropical = bool(self._infinities) and tropical(semiring, dtypes)
        alike = len(set(dtypes)) == 1 and dtypes[0].kind != "O"
        p = modulus_of(semiring, dtypes) if dense and alike else None
        # The lowest integer of an unsigned dtype is 0, a residue.
        self._residues = None if p is None else SafeRange(0, p - 1, FINITE | LOWEST * (dtypes[0].kind == "u"))
        self.safe = self._residues or (_safe_range(semiring, dtypes, k) if self.needed and alike else None)

    def asked(self, *, refuse: bool) -> bool:
        """Return True if numbers have to be read, given that they may be refused or not."""
        return self.needed and (refuse or self._tropical)

    def are_safe(self, arrays: Sequence[Any]) -> bool:
        """Return True if small arrays of the host hold only numbers of the safe range; False proves nothing."""
        return self._are_small(arrays) and self._are_safe(self._kernel(arrays))

    def run(
        self, operands: Sequence[Values], threads: int | None = None, *, refuse: bool = True, names: Sequence[str] = "abc"
    ) -> tuple[bool, ValueStatistics | None]:
        """Check operands; return True if a finite element could pull ∞ back, and the value statistics if they were computed.

        The operands are the components of a, b and, if the product has one, c, on the host. Without `refuse`, only tropical integers are
        read, for the first result.

        Raises
        ------
        DomainError, OverflowRiskError
        """
        if not self.asked(refuse=refuse):
            return False, None
        arrays = [as_stored(v) for part in operands for v in part]
        if self.are_safe(arrays):
            return False, None
        parts = self._by_operand(value_statistics(arrays, self._infinities, threads=threads))
        whole = functools.reduce(operator.or_, [part[0] for part in parts])
        if refuse:
            return self._refuse(operands, parts, names), whole
        return any(part[0].pulls_back(minimum=self._infinities[0] > 0) for part in parts[:2]), whole  # tropical integers

    def begin(
        self, given: Sequence[Any], operands: Callable[[], Sequence[Values]], signs: Any = None
    ) -> Callable[[], Sequence[RawStatistics]]:
        """Launch the statistics of operands on a GPU; return a function that waits, refuses as `run` does, and returns the statistics.

        `given` has all components of a, b and, if the product has one, c; `operands` returns the arrays for a closer check. For `signs`
        see `semiring.kernels.cuda.statistics.begin`.
        """
        wait = gpu_kernels().begin(given, signs)

        def finish() -> Sequence[RawStatistics]:
            found: Sequence[RawStatistics] = wait()
            if not self._are_safe(found):
                each = [interpreted(raw, v.dtype, self._infinities) for raw, v in zip(found, given, strict=True)]
                self._refuse(operands(), self._by_operand(each))
            return found

        return finish

    def _by_operand(self, each: Statistics) -> list[Statistics]:
        width = len(self.dtypes)
        return [each[i : i + width] for i in range(0, len(each), width)]

    def _refuse(self, operands: Sequence[Values], parts: Sequence[Statistics], names: Sequence[str] = "abc") -> bool:
        """Refuse non-elements and numbers that could leave the dtype; return True if ∞ could be pulled back."""
        for name, values, part in zip(names, operands, parts, strict=False):
            if self._residues is not None and part[0].lies_within(*self._residues[:2]):
                continue
            if not surely_elements(self.semiring, values, part):
                require_inside(self.semiring, values, name)
        empty = any(0 in values[0].shape for values in operands)
        return not empty and self._residues is None and certify(self.semiring, self.dtypes, *parts, k=self.k)

    @cached_property
    def _kernel(self) -> Callable[[Sequence[Any]], list[RawStatistics]]:
        return kernel_for(self.dtypes[0])

    def _are_small(self, arrays: Sequence[Any]) -> bool:
        """Return True for NumPy arrays small enough for one call in one thread."""
        if self.safe is None:
            return False
        for v in arrays:  # noqa: SIM110 (a generator would take longer than the test)
            if type(v) is not np.ndarray or v.nbytes > SMALL or not (v.ndim == 2 or v.flags.forc):
                return False
        return True

    def _are_safe(self, found: Sequence[RawStatistics]) -> bool:
        if self.safe is None:
            return False
        low, high, kinds = self.safe
        for least, greatest, some, _, _ in found:
            if some & ~kinds or (some & FINITE and not (low <= least and greatest <= high)):
                return False
        return True


checks_for = functools.lru_cache(maxsize=1024)(ProductChecks)


def _safe_range(semiring: Semiring, dtypes: DTypes, k: int) -> SafeRange | None:
    """Return the largest range whose numbers are never refused in any combination, and never pull ∞ back."""
    nothing = tuple(np.empty(0, d) for d in dtypes)

    def safe(some: ValueStatistics) -> bool:
        operand = (some,) * len(dtypes)
        try:
            inside = surely_elements(semiring, nothing, operand)
            return inside and not certify(semiring, dtypes, operand, operand, operand, k=max(k, 1))
        except SemiringError:
            return False

    integers, infinities = dtypes[0].kind in "iu", absorbing(semiring, dtypes)
    lowest, highest = finite_range(dtypes[0], ()) if integers else (-math.inf, math.inf)
    whole = () if integers else (float(np.finfo(dtypes[0]).max),)
    for size in (*whole, *_MAGNITUDES):
        for low in (-size, 0.0):
            bounds = max(low, lowest), size
            if integers:
                bounds = int(bounds[0]), int(bounds[1])
            if size >= highest or not safe(ValueStatistics(bounds)):
                continue
            kinds = FINITE
            for kind, end, beside in (
                (HIGHEST, highest, ValueStatistics(bounds, positive_infinity=True)),
                (LOWEST, lowest, ValueStatistics(bounds, negative_infinity=True)),
            ):
                # An integer that stands for no infinity has to be in the range itself.
                if safe(beside) if not integers or end in infinities else bounds[0] <= end <= bounds[1]:
                    kinds |= kind
            return SafeRange(*bounds, kinds)
    return None
