"""Ranges in a closure: it runs only where nothing can leave its dtype, or where its result proves afterwards that nothing did.

One rule for each kind of semiring over integers:

- only comparisons and bit operations (max-min, sets), or a carrier whose bounds no operation leaves: nothing can wrap;
- tropical (min-plus, max-plus), where no weight pulls ∞ back: run, then check that the largest result plus the largest weight stays
  below the inner ∞, which is half of the dtype's largest value; see `_Tropical` for why that proves the result;
- tropical with negative weights: three times the weight of a longest path must stay below the inner ∞, and what lies beyond
  one such path afterwards is ∞ that a negative weight pulled back;
- sums, component by component, of which ⊕ selects one: the same bound beforehand;
- any other ⊗ under min or max: entries only move from zero to the result, so the product of that range with itself must fit; where zero
  is infinite, three paths must fit beforehand;
- all others are refused.

Over floats a sum that overflows would pass for ∞, "no path", and a second one of the other sign would make NaN of it:

- minima (maxima) of sums: three times the weight of a longest path must stay below half of the largest float, or, where no weight pulls
  ∞ back, the largest result plus the largest weight must do so afterwards;
- sums, component by component, of which ⊕ selects one: the first of these bounds;
- all others: no result is NaN, or an infinity that is no element. A maximum never loses an ∞ that a product overflowed to. What
  underflows to 0 is rounded, as always.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, chooses_operand, node, nodes, var
from semiring.algebra.laws import is_selective
from semiring.arrays.devices import host, on_gpu
from semiring.arrays.pieces import HOST, pieces, slices
from semiring.common.errors import OverflowRiskError, TraceError
from semiring.kernels.overflow.infinity import absorbing, crosses_infinity, tropical
from semiring.kernels.overflow.products import Interval, certify, stays_inside, walks_fit, wider
from semiring.kernels.overflow.statistics import ValueStatistics, surely_elements, value_statistics

__all__ = ["Guard", "extremum_of", "guard_for", "may_improve", "statistics_of", "strays"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_HARMLESS = CHOOSING | {"invert"}


class Guard(Protocol):
    """What is checked before and after a closure; `signed` is the engine's attribute of this name, `refuses` tells whether it refuses."""

    signed: bool
    refuses: bool

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        """Refuse a matrix whose closure could wrap; the value statistics of each component, see `statistics_of`, tell."""

    def after(self, values: Values, via: Array | None) -> None:
        """Refuse a result that may have wrapped, and mend what is meant to be ∞."""


def guard_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int, *, check: bool = True) -> Guard:
    """The rule for a semiring in some dtypes.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    edges : int
        How many edges a simple path may have: n − 1, or n with cycles.
    check : bool
        Whether anything is refused; what else a rule does it does in any case.

    Raises
    ------
    OverflowRiskError
        Where nothing could be promised.
    """
    rule = _rule(semiring, dtypes)
    if check:
        return rule(semiring, dtypes, edges)
    guard = (rule if rule is _Tropical else _Unbounded)(semiring, dtypes, edges)
    guard.refuses = False
    return guard


@functools.lru_cache(maxsize=256)
def _rule(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> Callable[[Semiring, tuple[np.dtype[Any], ...], int], Guard]:
    kinds = {d.kind for d in dtypes}
    program = semiring.program if "O" not in kinds else None
    if program is None or kinds <= {"b"} or {e.op for e in nodes(*program.add, *program.mul)} <= _HARMLESS:
        return _Unbounded
    sums = all(m in (node("add", var(0, c), var(1, c)), node("add", var(1, c), var(0, c))) for c, m in enumerate(program.mul))
    extremum = len(dtypes) == 1 and chooses_operand(program.add[0]) and program.add[0].op in ("min", "max")
    if not kinds & {"i", "u"}:
        if sums and extremum:
            return _FloatTropical
        return _Sums if sums and is_selective(semiring, dtypes) else _Finite
    if tropical(semiring, dtypes):
        return _Tropical
    if stays_inside(semiring, dtypes):
        return _Unbounded
    if sums and is_selective(semiring, dtypes):
        return _Sums
    if extremum:
        return _Between
    raise OverflowRiskError(
        f"the closure of {semiring.name} over {', '.join(map(str, dtypes))} cannot be kept from overflowing; use float64, or object arrays "
        f"of exact numbers"
    )


class _Unbounded:
    """Elements that cannot leave their dtype; and what the other rules have in common."""

    signed = False
    refuses = True

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> None:
        self.semiring, self.dtypes, self.edges = semiring, dtypes, edges
        self.dtype = dtypes[0]

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        pass

    def after(self, values: Values, via: Array | None) -> None:
        pass


class _Tropical(_Unbounded):
    """Single integers of which ⊕ takes the minimum (maximum) and ⊗ the sum.

    Why `after` proves a closure of non-negative weights under a minimum; a maximum of non-positive ones is its mirror image. Let h be the
    inner ∞, and M ≥ 2h the dtype's largest value, the caller's ∞; `before` has seen that finite weights are below h.

    - No sum wraps. Between any two operations, each element is below h or is ∞: inside as h, outside as M. A sum of two is at most 2h,
      and before it is used again it is ∞ if it is not below h. On a GPU the minimum with the old element, which is at most h, does
      that; elsewhere decoding, or a search that refuses the offer. (The reference engine lets sums grow on to M and stay there.)
    - What is computed is the closure of numbers cut off at h. Cutting off, x ↦ min(x, h), commutes with minima, and with sums of what is
      not negative, cut off or not beforehand: so whatever the order of operations, an element is the true distance if that is below
      h, and ∞ (or at least h) if not. None is negative, so no pivot is harmful.
    - The cut shows. Let the distance from i to j be finite and at least h. A shortest path has at least two edges, and begins with
      vertices whose distances from i are below h, since one edge is. Of the last of these, u, that distance is in the result, and
      it and the weight of the next edge reach h: the largest result and the largest weight do, and `after` refuses.

    So what passes is exact, and only what really comes within a weight of h is refused.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> None:
        super().__init__(semiring, dtypes, edges)
        (self.infinity,) = absorbing(semiring, dtypes)
        self.half = abs(self.infinity // 2)
        self.largest: float = 0

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        found = statistics[0].finite
        if found is None:
            return
        self.largest = statistics[0].largest
        self.signed = crosses_infinity(self.infinity, found)
        bound = 3 * self.edges * self.largest if self.signed else self.largest
        if self.refuses and max(bound, self.largest) >= self.half:
            beyond = f"; with {self.edges} edges a path, three of them could reach {bound}" if self.signed else ""
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: finite weights reach {self.largest}{beyond}, and the library can tell sums "
                f"from ∞ below {self.half}; use {wider(self.dtype)}"
            )

    def after(self, values: Values, via: Array | None) -> None:
        if not (self.signed or self.refuses):
            return
        (found,) = statistics_of(self.semiring, values)
        if self.signed:
            self._restore_infinity(values[0], via, found)
            return
        longest = found.largest
        if longest + self.largest >= self.half:
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: a path of weight {longest} and an edge of {self.largest} reach {self.half}, from "
                f"where on the library cannot tell sums from ∞; use {wider(self.dtype)}"
            )

    def _restore_infinity(self, values: Array, via: Array | None, found: ValueStatistics) -> None:
        """What is beyond the longest path is ∞ that a weight pulled back, and no path at all."""
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


class _FloatTropical(_Unbounded):
    """Single floats of which ⊕ takes the minimum (maximum) and ⊗ the sum."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> None:
        super().__init__(semiring, dtypes, edges)
        self.limit = _limit(self.dtype)
        self.largest = 0.0
        self.proven = True

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        self.largest = statistics[0].largest
        self.proven = 3 * self.edges * self.largest < self.limit
        if not self.proven and (self._pulls(statistics[0]) or self.largest >= self.limit):
            self._refuse(f"three paths of {self.edges} edges")

    def after(self, values: Values, via: Array | None) -> None:
        # Had a path overflowed to ∞, the last vertex before that would have a finite result, and the edge from there would reach ∞.
        if not self.proven and (longest := statistics_of(self.semiring, values)[0].largest) + self.largest >= self.limit:
            self._refuse(f"one edge more than a path of weight {longest:.3g}")

    def _pulls(self, found: ValueStatistics) -> bool:
        """Whether a weight pulls ∞ back."""
        low, high = found.finite or (0, 0)
        return low < 0 or found.negative_infinity if self.semiring.program.add[0].op == "min" else high > 0 or found.positive_infinity

    def _refuse(self, what: str) -> None:
        raise OverflowRiskError(
            f"{self.semiring.name} in {self.dtype}: weights reach {self.largest:.3g}, so that {what} could pass {self.limit:.3g}, half of "
            f"the largest float; {_advice((self.dtype,))}"
        )


class _Sums(_Unbounded):
    """Elements whose components add up, of which ⊕ selects one."""

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        for dtype, found in zip(self.dtypes, statistics, strict=True):
            if dtype.kind in "iu":
                self._require(dtype, found.largest, np.iinfo(dtype).max // 2, f"use {wider(dtype)}")
            elif dtype.kind == "f":
                self._require(dtype, found.largest, _limit(dtype), _advice((dtype,)))

    def _require(self, dtype: np.dtype[Any], largest: float, limit: float, advice: str) -> None:
        if 3 * self.edges * largest >= limit:
            raise OverflowRiskError(
                f"{self.semiring.name} in {dtype}: weights reach {largest}, so that three paths of {self.edges} edges could reach "
                f"{3 * self.edges * largest}, beyond {limit}; {advice}"
            )


class _Finite(_Unbounded):
    """Floats that are multiplied or worse: what overflowed shows in the result."""

    def after(self, values: Values, via: Array | None) -> None:
        if strays(self.semiring, values):
            raise OverflowRiskError(
                f"the closure over {self.semiring.name} left the range of {', '.join(map(str, self.dtypes))}; {_advice(self.dtypes)}"
            )


class _Between(_Unbounded):
    """A minimum or maximum of anything: entries move one way, from zero to the result, which with the input bound all that was multiplied.

    An infinite zero bounds nothing: then no product of walks may leave the dtype, since a better one found later would hide that it did.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> None:
        super().__init__(semiring, dtypes, edges)
        self.infinities = absorbing(semiring, dtypes)
        self.found: list[Interval] = []

    def before(self, statistics: Sequence[ValueStatistics]) -> None:
        found = statistics[0].finite
        if found is None:
            return
        if not self.infinities:
            zero = int(self.semiring.identities(self.dtypes)[0][0])
            self.found = [found, (zero, zero)]
        elif not walks_fit(self.semiring, self.dtypes, [found], self.edges):
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: elements are {found[0]} … {found[1]}, so that three paths of "
                f"{self.edges} edges could leave the dtype; use {wider(self.dtype)}"
            )

    def after(self, values: Values, via: Array | None) -> None:
        if self.found:
            hull = (functools.reduce(operator.or_, map(ValueStatistics, self.found), _statistics(values)[0]),)
            certify(self.semiring, self.dtypes, hull, hull, k=1)


def may_improve(semiring: Semiring, statistics: Sequence[ValueStatistics]) -> bool:
    """Whether a cycle may be harmful, by what the numbers of the edges are; False where none is, rounded or not.

    If 1 ⊕ a = 1 for each edge, the same holds for their products; and rounding keeps the order of sums and products.
    """
    found, one = statistics[0], _one_of_ordered(semiring)
    if one is None:
        return True
    least, greatest = found.finite or (one, one)
    return least < one or found.negative_infinity if extremum_of(semiring) is np.fmin else greatest > one or found.positive_infinity


@functools.lru_cache(maxsize=256)
def _one_of_ordered(semiring: Semiring) -> Any:
    """The one of a semiring of single numbers whose ⊕ is their minimum or maximum, and ⊗ an operation that rounding keeps monotone."""
    if extremum_of(semiring) is None or semiring.program.mul[0].op not in ("add", "mul", "min", "max"):
        return None
    return semiring.one if {*semiring.program.mul[0].args} == {var(0), var(1)} else None


@functools.lru_cache(maxsize=256)
def extremum_of(semiring: Semiring) -> np.ufunc | None:
    """The minimum or maximum that ⊕ of single numbers is, and nothing else."""
    try:
        add = semiring.program.add
    except TraceError:
        return None
    if len(add) != 1 or add[0].op not in ("min", "max") or {*add[0].args} != {var(0), var(1)}:
        return None
    return np.fmin if add[0].op == "min" else np.fmax


def statistics_of(semiring: Semiring, values: Values) -> tuple[ValueStatistics, ...]:
    """What the numbers of a matrix are, one a component; integers that stand for an infinite zero count as infinities."""
    dtypes = tuple(v.dtype for v in values)
    if all(d.kind in "bO" for d in dtypes):
        return (ValueStatistics(),) * len(values)  # of which no rule asks anything
    return _statistics(values, absorbing(semiring, dtypes))


def _statistics(values: Values, infinities: tuple[int, ...] = ()) -> tuple[ValueStatistics, ...]:
    found = (value_statistics(part, infinities) for part in _in_memory(values))
    return functools.reduce(lambda x, y: tuple(map(operator.or_, x, y)), found, (ValueStatistics(),) * len(values))


def _in_memory(values: Values) -> Iterator[Values]:
    """The matrix itself, or block rows of one that is on disk."""
    if all(on_gpu(v) or isinstance(v, np.ndarray) for v in values):
        return iter([values])
    return (tuple(v[rows] for v in values) for rows in _rows(values[0]))


def strays(semiring: Semiring, values: Values) -> bool:
    """Whether an element has a NaN, or an infinity with which it is no element."""
    for parts in _in_memory(values):
        statistics = value_statistics(parts)
        if all(found.all_finite for found in statistics) or surely_elements(semiring, parts, statistics):
            continue
        for piece in pieces(parts[0].shape):
            some = tuple(host(v[piece]) for v in parts)
            stray = ~np.logical_and.reduce([np.isfinite(v) for v in some])
            if not semiring.carrier.holds([v[stray] for v in some]).all():
                return True
    return False


@functools.lru_cache(maxsize=16)
def _limit(dtype: np.dtype[Any]) -> float:
    """Half of the largest float, which leaves room for rounding."""
    return float(np.finfo(dtype).max) / 2


def _advice(dtypes: tuple[np.dtype[Any], ...]) -> str:
    return "use float64" if np.dtype(np.float32) in dtypes else "scale the elements, or use object arrays of exact numbers"


def _rows(values: Array) -> Iterator[slice]:
    """Blocks of rows; on a GPU all rows."""
    return iter([slice(None)]) if on_gpu(values) else slices(values.shape[0], values.shape[1], HOST)
