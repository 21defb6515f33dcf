"""Diagnosis of a divergence: the cycle c with 1 ⊕ c ≠ 1 behind a divergent pivot, or only a rounding error.

A closure converges if 1 ⊕ c = 1 for the weight c of each cycle: then a walk that repeats a vertex adds nothing to the walk without the
cycle. Elimination meets such a cycle as a *divergent pivot* p, with 1 ⊕ p ≠ 1, and stops. The input matrix tells why:

- `Diagnosis` searches for the cycle (`semiring.algorithms.bellman_ford`) and raises the error that shows it. Without a cycle, rounding
  made the pivot diverge, and the search returns potentials, by which the closure succeeds.
- `may_improve` rules out divergent cycles by the range of all weights; `divergent_loop` finds loops that rounding made divergent after the
  test of their pivot.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.bellman_ford import eased, exact_weight, find_cycle, rounding
from semiring.algorithms.csr import CSR, SparseArray, present
from semiring.algorithms.predecessors import cycle_through
from semiring.algorithms.sums import divergent_component, heavy_cycle, is_inverse, weights_of_walks
from semiring.arrays.conversion import Array, Values
from semiring.common.errors import (
    AssumptionWarning,
    DivergenceError,
    NegativeCycleError,
    OverflowRiskError,
    TraceError,
    brief,
    callers_level,
    listing,
    printable,
)
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.operations import Operations, operations_for

__all__ = ["Diagnosis", "divergent_loop", "extremum_of", "is_min_plus", "may_improve"]


@dataclass(eq=False)
class Diagnosis:
    """Explains a divergent pivot of one matrix: by a cycle, an error, or by rounding, corrected by potentials."""

    semiring: Semiring
    kept: Callable[[], Values | None]  # returns the input matrix, or None if it was overwritten
    name: Callable[[int], Any]  # returns the caller's name of a vertex
    tolerance: float = 0.0  # a cycle is harmless that does not improve once each weight is less preferred by this share
    tolerated: bool = False  # the potentials rest on the tolerance
    _potentials: Values | None = None

    def potentials(self, vertex: int, values: Values, via: Array | None, vertices: Array) -> Values:
        """Return potentials for a divergent pivot of an accumulating closure if rounding or the tolerance explains it; else raise.

        `vertex` is the row of the pivot in the matrix of that time, `values` and `via`. The potentials belong to `vertices`, those of the
        rows. The `DivergenceError` has a cycle confirmed by exact weights, if known; wrapped integers raise `OverflowRiskError`.
        """
        kept = self.kept()
        if kept is None:
            return self._without_input(vertex, values, via, vertices)
        if self._potentials is None:
            cycle, p = find_cycle(self.semiring, kept, int(vertices[vertex]))
            if cycle is not None:
                p = self._tolerate(kept, cycle)
            self._require_rounding(values, int(vertices[vertex]))
            self._potentials = p
        return tuple(p[vertices] for p in self._potentials)

    def _tolerate(self, kept: Values, cycle: list[int]) -> Values:
        """Return potentials of the matrix with eased weights, and warn; raise for a cycle that improves by more than the tolerance."""
        worse, p = find_cycle(self.semiring, eased(self.semiring, kept, self.tolerance), cycle[0]) if self.tolerance else (cycle, ())
        cycle = worse or cycle
        weight = exact_weight(self.semiring, kept, [*cycle, cycle[0]])
        if worse is not None:
            raise self.error(cycle, weight)
        self.tolerated = True
        about = f"{_shown([self.name(v) for v in cycle])}, weight {_number(weight, self.semiring.one)}"
        warnings.warn(f"the answer rests on tolerance={self.tolerance}: a cycle improves, {about}", AssumptionWarning, callers_level())
        return p

    def elimination(self, vertex: int, dtypes: tuple[np.dtype[Any], ...]) -> DivergenceError:
        """Return the error for a divergent pivot of an elimination, with a cycle or a strongly connected component that explains it."""
        semiring, kept, cycle = self.semiring, self.kept(), None
        if kept is None:
            return self.error(None, None, vertex)
        if semiring.star is None or is_idempotent(semiring, dtypes):
            cycle, _ = find_cycle(semiring, kept, vertex)
        elif (walks := weights_of_walks(semiring, kept)) is not None:
            cycle = heavy_cycle(walks, vertex)
            if cycle is None and (component := divergent_component(walks)) is not None:
                named = [self.name(v) for v in component]
                where = f"the walks in the strongly connected component of {len(named):,} vertices, {listing(named)}, have no finite sum"
                message = f"{self._problem}: {where}, though the walks around each cycle have one{self._remedy}"
                return DivergenceError(message, vertices=named)
        else:
            operations = Operations(semiring, dtypes)
            loops = zip(*(v.diagonal() for v in kept), strict=True)
            cycle = next(([i] for i, loop in enumerate(loops) if operations.star(loop) is None), None)
        if cycle is not None:
            return self.error(cycle, exact_weight(semiring, kept, [*cycle, cycle[0]]))
        pivoting = ", or I − A is singular or needs pivoting" if is_inverse(semiring) else ""
        return DivergenceError(f"{self._problem}{pivoting} (found at vertex {self.name(vertex)!r})")

    @property
    def _problem(self) -> str:
        semiring = self.semiring
        if semiring.star is not None:
            return f"the sum over all walks {'is infinite' if is_inverse(semiring) else 'does not exist'} over {semiring.name}"
        if self._seeks_longest:
            return "there is no longest path"
        return f"the closure over {semiring.name} does not exist"

    @property
    def _seeks_longest(self) -> bool:
        return extremum_of(self.semiring) is np.fmax and is_operation(self.semiring.program.mul[0], ("add",))

    @property
    def _remedy(self) -> str:
        if is_inverse(self.semiring):
            return "; for the inverse of I − A use numpy.linalg.inv(I − A)"
        if self.semiring.star is None and not (is_min_plus(self.semiring) or self._seeks_longest):
            return "; if such walks have a sum, define it by star="
        return ""

    def _without_input(self, vertex: int, values: Values, via: Array | None, vertices: Array) -> Values:
        """Diagnose by the rounded weights of paths that the closure has computed so far."""
        tolerance = rounding(values)
        pivot = values[0][vertex, vertex]
        one = self.semiring.one[0] if isinstance(self.semiring.one, tuple) else self.semiring.one
        if tolerance and abs(pivot - one) <= tolerance:
            cycle, p = find_cycle(self.semiring, values, vertex, tolerance)
            if cycle is not None:
                raise self.error(None, None, int(vertices[vertex]))
            self._require_rounding(values, int(vertices[vertex]))
            return p
        cycle = None if via is None else cycle_through(via, vertex)
        named = None if cycle is None else [int(vertices[v]) for v in cycle]
        raise self.error(named, pivot.item() if isinstance(pivot, np.generic) else pivot, int(vertices[vertex]))

    def _require_rounding(self, values: Values, vertex: int) -> None:
        """Raise if rounding cannot be the reason: integers wrapped, or ⊕ does not select."""
        dtypes = [v.dtype for v in values]
        if is_selective(self.semiring, dtypes):
            if any(d.kind == "f" for d in dtypes):
                return
            if any(d.kind in "iu" for d in dtypes):
                raise OverflowRiskError(
                    f"the closure over {self.semiring.name} overflowed {', '.join(map(str, dtypes))} at vertex {self.name(vertex)!r}; "
                    f"use a wider dtype, float64 or object"
                )
        raise self.error(None, None, vertex)

    def only_rounding(self, dtypes: tuple[np.dtype[Any], ...], *, large: bool) -> DivergenceError:
        """Return the error for a cycle that improves by rounding alone, without potentials: for a `large` matrix, or ⊗ has no inverse."""
        needed = "the matrix would have to fit in memory; use a wider dtype or integers, or more memory"
        if not large:
            needed = "⊗ would have to add or multiply numbers; use object arrays of exact elements, like Fractions"
        over = f"over {self.semiring.name} in {', '.join(map(str, dtypes))}"
        return DivergenceError(f"rounding makes a cycle improve {over}: to correct this, {needed}")

    def error(self, cycle: Sequence[int] | None, weight: Any, vertex: int | None = None) -> DivergenceError:
        """Return the error for a cycle, or for a vertex if no cycle is known."""
        negative = is_min_plus(self.semiring)
        problem = "the graph has a negative cycle, so there are no shortest paths" if negative else self._problem
        kind = NegativeCycleError if negative else DivergenceError
        if cycle is None:
            lost = "the input was overwritten or too large to keep"
            if self.kept() is not None:
                lost = "no single cycle explains it; try exact elements, such as Fractions"
            return kind(f"{problem} (found at vertex {self.name(vertex or 0)!r}; {lost}){self._remedy}")
        if not negative:
            endless = "the walks around this cycle have no finite sum"
            problem += f", because {endless if self.semiring.star else 'each round of this cycle adds to the result'}"
        named = [self.name(v) for v in cycle]
        error = kind(f"{problem}: {_shown(named)}, weight {_number(weight, self.semiring.one)}{self._remedy}", named)
        if self.semiring.star is None:
            error.more = functools.partial(self._cycles, cycle)
        return error

    def _cycles(self, cycle: Sequence[int] | None) -> Iterator[list[Any]]:
        """Iterate over divergent cycles without a common edge, beginning with a known one."""
        kept = self.kept()
        if kept is not None and self.tolerance:
            kept = eased(self.semiring, kept, self.tolerance)
        edges = None if kept is None else kept[0].edges if isinstance(kept[0], SparseArray) else self._edges(kept)
        while cycle is not None:
            yield [self.name(v) for v in cycle]
            if edges is None:
                return
            left = ~np.isin(edges.places, np.array(cycle) * edges.n + np.roll(cycle, -1))
            edges = CSR.of(edges.tails[left], edges.heads[left], tuple([w[left] for w in edges.weights]), edges.n, edges.zero)
            cycle, _ = find_cycle(self.semiring, edges.arrays(), cycle[0])

    def _edges(self, kept: Values) -> CSR:
        zero, _ = self.semiring.identities([v.dtype for v in kept])
        tails, heads = np.nonzero(present(kept, zero))
        return CSR.of(tails, heads, tuple([v[tails, heads] for v in kept]), len(kept[0]), zero)


def may_improve(semiring: Semiring, statistics: Sequence[ValueStatistics]) -> bool:
    """Return True if a cycle may diverge, judged by the value statistics; False if none does, rounded or not.

    If 1 ⊕ a = 1 for each edge, the same holds for products of edges, and rounding keeps the order of sums and products.
    """
    one, found = _one_of_ordered(semiring), statistics[0]
    if one is None:
        return True
    least, greatest = found.finite or (one, one)
    return least < one or found.negative_infinity if extremum_of(semiring) is np.fmin else greatest > one or found.positive_infinity


@functools.lru_cache(maxsize=256)
def _one_of_ordered(semiring: Semiring) -> Any:
    """Return the 1 of a semiring of minimum or maximum whose ⊗ rounding keeps monotone; else None."""
    if extremum_of(semiring) is None or not is_operation(semiring.program.mul[0], ("add", "mul", "min", "max")):
        return None
    return semiring.one


@functools.lru_cache(maxsize=256)
def extremum_of(semiring: Semiring) -> np.ufunc | None:
    """Return the ufunc of ⊕ if that is just the minimum or maximum of single numbers; else None."""
    try:
        add = semiring.program.add
    except TraceError:
        return None
    if len(add) != 1 or not is_operation(add[0], ("min", "max")):
        return None
    return np.fmin if add[0].op == "min" else np.fmax


def divergent_loop(semiring: Semiring, loops: Sequence[Array]) -> int | None:
    """Find a vertex whose loop rounding has made divergent after the test of its pivot."""
    dtypes = tuple(v.dtype for v in loops)
    if all(d.kind != "f" for d in dtypes):
        return None
    extremum, (_, one) = extremum_of(semiring), semiring.identities(dtypes)
    if extremum is not None and len(loops) == 1:
        # 1 ⊕ p = 1 unless p is less than 1 (greater, for a maximum).
        worst = extremum.reduce(loops[0])
        diverges = worst < one[0] if extremum is np.fmin else worst > one[0]
        return int(np.argmax(loops[0] == worst)) if diverges else None
    operations = operations_for(semiring, dtypes)
    if operations.harmless(loops):
        return None
    return next(v for v in range(len(loops[0])) if not operations.harmless(tuple(d[v] for d in loops)))


def is_min_plus(semiring: Semiring) -> bool:
    """Return True for min-plus, under any name."""
    try:
        same = semiring.program.add == MIN_PLUS.program.add and semiring.program.mul == MIN_PLUS.program.mul
    except TraceError:
        return False
    return same and semiring.zero == math.inf and semiring.one == 0


def _shown(cycle: Sequence[Any]) -> str:
    closed = [printable(v) for v in (*cycle, cycle[0])]
    if len(closed) > 12:
        closed = [*closed[:6], f"… {len(closed) - 11} more …", *closed[-5:]]
    return " → ".join(closed)


def _number(weight: Any, one: Any) -> str:
    """Write a weight: a fraction as a float, or as 1 and the difference if that float would equal the semiring's 1."""
    if isinstance(weight, tuple):
        return f"({', '.join(map(_number, weight, one))})"
    if isinstance(weight, Fraction):
        if weight.denominator == 1 and weight.numerator.bit_length() <= 64:
            return str(weight.numerator)
        try:
            rounded = float(weight)
        except OverflowError:
            return brief(int(weight))
        if rounded != one:
            return repr(rounded)
        beyond = weight - Fraction(one)
        text = f"{Decimal(abs(beyond.numerator)) / Decimal(beyond.denominator):.3g}"
        return f"{f'{one} ' if one else ''}{'−' if beyond < 0 else '+' if one else ''}{' ' if one else ''}{text}"
    return brief(weight) if isinstance(weight, int) else str(weight)
