"""Guards of closures: a proof, before or after the closure, that no number leaves the dtype.

`guard_for` chooses the rule. The package's docstring has a table of all rules; the classes here prove them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, chooses_operand, is_operation
from semiring.algebra.laws import is_selective
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import host, on_gpu
from semiring.arrays.pieces import HOST, pieces, slices
from semiring.common.errors import OverflowRiskError
from semiring.common.units import counted
from semiring.kernels.limits import DTypes, ValueStatistics, absorbing, half_range, inner_infinity, overflow_risk, remedy, tropical
from semiring.kernels.overflow.intervals import stays_inside, walks_fit
from semiring.kernels.overflow.products import certify
from semiring.kernels.overflow.statistics import surely_elements, value_statistics

__all__ = ["Guard", "guard_for", "leaves_carrier", "statistics_of"]

_HARMLESS = CHOOSING | {"invert"}


@dataclass(eq=False)
class Guard:
    """Checks before and after a closure; this base class, for elements that cannot leave their dtype, checks nothing.

    `signed` is as in `Engine`. Unless `refuses`, no matrix is refused. After `before`, `needs_rows` says whether `after` needs whole rows
    (or whole columns) for its proof.
    """

    semiring: Semiring
    dtypes: DTypes
    edges: int
    refuses: bool = True
    largest: float = 0

    signed = needs_rows = False

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        """Refuse a matrix whose closure could wrap, by the value statistics of each component (`statistics_of`)."""

    def after(self, values: Values, via: Array | None) -> None:
        """Refuse a result that may have wrapped, and reset entries that stand for ∞."""


def guard_for(semiring: Semiring, dtypes: DTypes, edges: int, *, check: bool = True) -> Guard:
    """Return the guard for a semiring in some dtypes.

    A simple path has at most `edges` edges: n − 1, or n with cycles. Without `check`, no matrix is refused, but tropical integers are
    still converted.

    Raises
    ------
    OverflowRiskError
        If no rule covers the semiring.
    """
    rule = _rule(semiring, dtypes)
    return (rule if check or rule is _TropicalIntegers else Guard)(semiring, dtypes, edges, check)


@functools.lru_cache(maxsize=256)
def _rule(semiring: Semiring, dtypes: DTypes) -> type[Guard]:
    kinds = {d.kind for d in dtypes}
    program = semiring.program if "O" not in kinds else None
    if program is None or kinds <= {"b"} or program.operations <= _HARMLESS:
        return Guard
    sums = all(is_operation(m, ("add",), c) for c, m in enumerate(program.mul))
    extremum = len(dtypes) == 1 and chooses_operand(program.add[0]) and program.add[0].op in ("min", "max")
    if not kinds & {"i", "u"}:
        if sums and extremum:
            return _TropicalFloats
        return _Sums if sums and is_selective(semiring, dtypes) else _Finite
    if tropical(semiring, dtypes):
        return _TropicalIntegers
    if stays_inside(semiring, dtypes):
        return Guard
    if sums and is_selective(semiring, dtypes):
        return _Sums
    if extremum:
        return _Between
    wider = "float64" if program.modulus is None else "int64"
    raise OverflowRiskError(
        f"the closure of {semiring.name} over {', '.join(map(str, dtypes))} could overflow; use {wider}, or object arrays of exact numbers"
    )


@dataclass(eq=False)
class _TropicalIntegers(Guard):
    """Single integers, with min or max as ⊕ and + as ⊗.

    Proof for non-negative weights under a minimum; non-positive weights under a maximum are the mirror image. Let h be the inner ∞, and
    M ≥ 2h the dtype's largest value, the caller's ∞. By `before`, finite weights are below h.

    - No sum wraps. Between operations, each element is below h or is ∞: h inside, M outside. A sum of two is at most 2h. A sum from h on
      becomes ∞ before its next use: on a GPU by the minimum with the old element, elsewhere by decoding or rejection in a search.
      (In the reference engine, sums grow to M and no further.)
    - The result is the closure of numbers cut off at h. The cut x ↦ min(x, h) commutes with minima and with sums of non-negative numbers.
      So in any order of operations, an element is the true distance if that is below h, else ∞ (or at least h). No element is
      negative, so no pivot diverges.
    - The cut shows. Let the distance from i to j be finite and at least h. A shortest path has at least two edges, and its first vertex
      has a distance from i below h. Let u be the last such vertex. Its distance is in the result, and together with the weight of the
      next edge it reaches h. So the largest result plus the largest weight reaches h, and `after` refuses.

    Hence a result that passes is exact, and only distances within one weight of h are refused.
    """

    def __post_init__(self) -> None:
        (self.infinity,) = absorbing(self.semiring, self.dtypes)
        self.limit = abs(inner_infinity(self.infinity))

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        self.largest = statistics[0].largest
        self.signed = statistics[0].pulls_back(minimum=self.infinity > 0)
        self.needs_rows = self.refuses and not self.signed and (self.edges + 1) * self.largest >= self.limit
        bound = 3 * self.edges * self.largest if self.signed else self.largest
        if self.refuses and max(bound, self.largest) >= self.limit:
            beyond = f"; with {counted(self.edges, 'edge')} a path, three of them could reach {bound}" if self.signed else ""
            what = f"finite weights reach {self.largest}{beyond}, and the library can tell sums from ∞ below {self.limit}"
            raise overflow_risk(self.semiring, self.dtypes, what)

    def after(self, values: Values, via: Array | None) -> None:
        if not (self.signed or self.refuses):
            return
        (found,) = statistics_of(self.semiring, values)
        if self.signed:
            self._restore_infinity(values[0], via, found)
        elif (longest := found.largest) + self.largest >= self.limit:
            reached = f"a path of weight {longest} and an edge of {self.largest} reach {self.limit}"
            raise overflow_risk(self.semiring, self.dtypes, f"{reached}, where sums can no longer be told from ∞")

    def _restore_infinity(self, values: Array, via: Array | None, found: ValueStatistics) -> None:
        """Reset entries beyond the longest path: each is an ∞ that a weight pulled back, hence no path."""
        limit = self.edges * self.largest
        low, high = found.finite or (0, 0)
        infinite = found.positive_infinity or found.negative_infinity
        if (high if self.infinity > 0 else -low) <= limit and (via is None or not infinite):
            return
        for rows in _rows(values):
            some = values[rows]  # a copy, where values are on disk
            none = some > limit if self.infinity > 0 else some < -limit
            if none.any():
                some[none] = self.infinity
                values[rows] = some
                if via is not None:
                    via[rows][none] = -1


@dataclass(eq=False)
class _TropicalFloats(Guard):
    """Single floats, with min or max as ⊕ and + as ⊗.

    An overflow would pass for ∞, "no path", and two overflows of opposite signs would give NaN.
    """

    def __post_init__(self) -> None:
        self.limit = half_range(self.dtypes[0])

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        self.largest = statistics[0].largest
        self.needs_rows = 3 * self.edges * self.largest >= self.limit
        if not self.needs_rows:
            return
        signed = statistics[0].pulls_back(minimum=self.semiring.program.add[0].op == "min")
        if signed or self.largest >= self.limit:
            raise self._risk(f"three paths of {counted(self.edges, 'edge')}")

    def after(self, values: Values, via: Array | None) -> None:
        # Had a path overflowed to ∞, its last vertex before would have a finite result, and the next edge would reach ∞.
        if self.needs_rows and (longest := statistics_of(self.semiring, values)[0].largest) + self.largest >= self.limit:
            raise self._risk(f"one edge more than a path of weight {longest:.3g}")

    def _risk(self, what: str) -> OverflowRiskError:
        reach = f"weights reach {self.largest:.3g}, so that {what} could pass {self.limit:.3g}, half of the largest float"
        return overflow_risk(self.semiring, self.dtypes, reach)


class _Sums(Guard):
    """Elements of several components, with + as ⊗ in each component; ⊕ selects one operand."""

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        for dtype, found in zip(self.dtypes, statistics, strict=True):
            reach, edges = 3 * self.edges * found.largest, counted(self.edges, "edge")
            if dtype.kind in "iuf" and reach >= (limit := half_range(dtype)):
                what = f"weights reach {found.largest}, so that three paths of {edges} could reach {reach}, beyond {limit}"
                raise overflow_risk(self.semiring, [dtype], what)


class _Finite(Guard):
    """Floats with any other ⊗: an overflow shows in the result, since a maximum never loses an ∞. Underflow to 0 is rounding."""

    def after(self, values: Values, via: Array | None) -> None:
        if leaves_carrier(self.semiring, values):
            kinds = ", ".join(map(str, self.dtypes))
            raise OverflowRiskError(f"the closure over {self.semiring.name} left the range of {kinds}; {remedy(self.dtypes)}")


class _Between(Guard):
    """A minimum or maximum with any ⊗: entries move one way, from zero to the result, so input and result bound every factor.

    An infinite zero bounds nothing. Then no product of walks may leave the dtype, since a later, better walk would hide the overflow.
    """

    whole: ValueStatistics | None = None

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        found = statistics[0].finite
        if found is None:
            return
        if not absorbing(self.semiring, self.dtypes):
            zero = int(self.semiring.identities(self.dtypes)[0][0])
            self.whole, self.needs_rows = statistics[0] | ValueStatistics((zero, zero)), True
        elif not walks_fit(self.semiring, self.dtypes, [found], self.edges):
            what = f"elements are {found[0]} … {found[1]}, so that three paths of {counted(self.edges, 'edge')} could leave the dtype"
            raise overflow_risk(self.semiring, self.dtypes, what)

    def after(self, values: Values, via: Array | None) -> None:
        if self.whole is not None:
            whole = (self.whole | statistics_of(self.semiring, values)[0],)
            certify(self.semiring, self.dtypes, whole, whole, k=1)


def statistics_of(semiring: Semiring, values: Values) -> tuple[ValueStatistics, ...]:
    """Return the value statistics of each component of a matrix; integers that stand for an infinite zero count as infinities."""
    dtypes = tuple(v.dtype for v in values)
    if 0 in values[0].shape or all(d.kind in "bO" for d in dtypes):
        return (ValueStatistics(),) * len(values)  # no rule reads these
    infinities = absorbing(semiring, dtypes)
    found = (value_statistics(part, infinities) for part in _in_memory(values))
    return functools.reduce(lambda x, y: tuple(map(operator.or_, x, y)), found)


def leaves_carrier(semiring: Semiring, values: Values) -> bool:
    """Return True if an element has a NaN, or an infinity outside the carrier."""
    for parts in _in_memory(values):
        statistics = value_statistics(parts)
        if all(found.all_finite for found in statistics) or surely_elements(semiring, parts, statistics):
            continue
        for piece in pieces(parts[0].shape):
            some = tuple(host(v[piece]) for v in parts)
            suspect = ~np.logical_and.reduce([np.isfinite(v) for v in some])
            if not semiring.carrier.holds([v[suspect] for v in some]).all():
                return True
    return False


def _in_memory(values: Values) -> Iterator[Values]:
    """Yield the matrix itself, or its block rows if it is on disk."""
    if all(on_gpu(v) or isinstance(v, np.ndarray) for v in values):
        return iter([values])
    return (tuple(v[rows] for v in values) for rows in _rows(values[0]))


def _rows(values: Array) -> Iterator[slice]:
    """Yield blocks of rows; on a GPU, all rows at once."""
    return iter([slice(None)]) if on_gpu(values) else slices(values.shape[0], values.shape[1], HOST)
