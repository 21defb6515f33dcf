"""Diagnosis of a divergence: the cycle c with 1 ⊕ c ≠ 1 behind a divergent pivot, or only a rounding error.

A closure converges if 1 ⊕ c = 1 for the weight c of each cycle: then a walk that repeats a vertex adds nothing to the one without the
cycle. Elimination meets such a cycle as a *divergent pivot* p, with 1 ⊕ p ≠ 1, and stops. Why that is, the matrix as it was given tells:

- `Diagnosis` searches for the cycle (`semiring.algorithms.bellman_ford`) and raises the error that shows it. If there is none, rounding
  made the pivot diverge, and what the search has found instead are potentials, by which the closure succeeds
  (`semiring.algorithms.potentials`).
- `may_improve` tells by the range of all weights that no cycle can diverge, so that nobody has to look; and `divergent_loop` looks for
  loops that rounding made divergent after their pivot was tested.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.bellman_ford import exact_weight, find_cycle, rounding
from semiring.algorithms.extraction import cycle_through
from semiring.algorithms.sums import divergent_component, heavy_cycle, is_inverse, weights_of_walks
from semiring.common.errors import DivergenceError, NegativeCycleError, OverflowRiskError, TraceError, brief, listing, printable
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.operations import Operations, operations_for

__all__ = ["Diagnosis", "divergent_loop", "extremum_of", "is_min_plus", "may_improve"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


@dataclass(eq=False)
class Diagnosis:
    """What a divergent pivot of one matrix comes from: a cycle, which is an error, or rounding, against which potentials help.

    Attributes
    ----------
    semiring : Semiring
    kept : callable
        Gives the matrix as it was before the closure began, or None if it was overwritten.
    name : callable
        The caller's name of a vertex.
    """

    semiring: Semiring
    kept: Callable[[], Values | None]
    name: Callable[[int], Any]
    _potentials: Values | None = None

    def potentials(self, vertex: int, values: Values, via: Array | None, vertices: Array) -> Values:
        """For a divergent pivot of an accumulating closure: potentials where only rounding made it one; else raise.

        Parameters
        ----------
        vertex : int
            Its row in `values`.
        values, via : arrays
            The matrix at that time.
        vertices : int array
            The vertex of each row of `values`.

        Returns
        -------
        tuple of arrays
            A potential for each row of `values`.

        Raises
        ------
        DivergenceError
            With a cycle that was confirmed with exact weights, where there is one.
        OverflowRiskError
            For integers with no such cycle, which wrapped.
        """
        kept = self.kept()
        if kept is None:
            return self._without_input(vertex, values, via, vertices)
        if self._potentials is None:
            cycle, p = find_cycle(self.semiring, kept, int(vertices[vertex]))
            if cycle is not None:
                raise self.error(cycle, exact_weight(self.semiring, kept, [*cycle, cycle[0]]))
            self._require_rounding(values, int(vertices[vertex]))
            self._potentials = p
        return tuple(p[vertices] for p in self._potentials)

    def elimination(self, vertex: int, dtypes: tuple[np.dtype[Any], ...]) -> DivergenceError:
        """The error for a divergent pivot of an elimination: with a cycle, or else a strongly connected component, that explains it."""
        semiring, kept, cycle = self.semiring, self.kept(), None
        if kept is None:
            return self.error(None, None, vertex)
        if semiring.star is None or is_idempotent(semiring, dtypes):
            cycle, _ = find_cycle(semiring, kept, vertex)
        elif (walks := weights_of_walks(semiring, kept)) is not None:
            cycle = heavy_cycle(walks, vertex)
            if cycle is None and (component := divergent_component(walks)) is not None:
                return self._without_sum(component)
        else:
            operations = Operations(semiring, dtypes)
            loops = zip(*(v.diagonal() for v in kept), strict=True)
            cycle = next(([i] for i, loop in enumerate(loops) if operations.star(loop) is None), None)
        if cycle is not None:
            return self.error(cycle, exact_weight(semiring, kept, [*cycle, cycle[0]]))
        singular = ": a leading block of I − A is singular, or a pivot overflowed" if is_inverse(semiring) else ""
        return DivergenceError(f"{self._problem}: the pivot of vertex {self.name(vertex)!r} has no star{singular}")

    @property
    def _problem(self) -> str:
        return f"the closure over {self.semiring.name} does not converge"

    def _without_sum(self, component: list[int]) -> DivergenceError:
        """The error for a strongly connected component whose cycles diverge together."""
        named = [self.name(v) for v in component]
        where = f"the walks within the strongly connected component of {len(named):,} vertices, {listing(named)}, have no finite sum"
        return DivergenceError(f"{self._problem}: {where}, though the walks around each cycle have one{self._remedy}", vertices=named)

    @property
    def _remedy(self) -> str:
        """The way to the answer that may be meant instead."""
        if is_inverse(self.semiring):
            return "; numpy.linalg.inv(I − A) gives the inverse of such a matrix"
        if self.semiring.star is None and not is_min_plus(self.semiring):
            return "; a semiring in which such walks have a sum defines it by star="
        return ""

    def _without_input(self, vertex: int, values: Values, via: Array | None, vertices: Array) -> Values:
        """Diagnosis by what the closure made of the input so far, whose entries are rounded weights of paths."""
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
        """Raise where no cycle diverges, but rounding cannot be the reason either: integers wrapped, or ⊕ does not select."""
        dtypes = [v.dtype for v in values]
        if is_selective(self.semiring, dtypes):
            if any(d.kind == "f" for d in dtypes):
                return
            if any(d.kind in "iu" for d in dtypes):
                raise OverflowRiskError(
                    f"{self.semiring.name} over {', '.join(map(str, dtypes))}: the closure does not converge at vertex "
                    f"{self.name(vertex)!r}, though no cycle explains it: a result overflowed; use a wider dtype, float64 or object"
                )
        raise self.error(None, None, vertex)

    def no_inverse(self, dtypes: tuple[np.dtype[Any], ...]) -> DivergenceError:
        """The error where only rounding makes a cycle improve, and potentials cannot help because ⊗ has no inverse."""
        return DivergenceError(
            f"the closure over {self.semiring.name} does not converge in {', '.join(map(str, dtypes))}: rounding makes a cycle improve, "
            f"though none does, and weights that ⊗ does not just add or multiply cannot be changed so that none can; use object arrays of "
            f"exact elements, such as Fractions"
        )

    def only_rounding(self, dtypes: tuple[np.dtype[Any], ...]) -> DivergenceError:
        """The error where only rounding makes a cycle improve, and the matrix is too large for what helps against that."""
        return DivergenceError(
            f"the closure over {self.semiring.name} does not converge in {', '.join(map(str, dtypes))}: rounding makes a cycle improve, "
            f"though none does, and what helps takes the matrix as a whole; use a wider dtype or integers, or more memory"
        )

    def error(self, cycle: Sequence[int] | None, weight: Any, vertex: int | None = None) -> DivergenceError:
        """The error for a cycle, or for a vertex where none is known."""
        negative = is_min_plus(self.semiring)
        kind = NegativeCycleError if negative else DivergenceError
        named = None if cycle is None else [self.name(v) for v in cycle]
        problem = self._problem
        if negative:
            problem = "the graph has a negative cycle, so there are no shortest paths"
        elif named is not None:
            problem += f": {'the walks around a cycle have no finite sum' if self.semiring.star else '1 ⊕ c ≠ 1 for a cycle of weight c'}"
        if named is None:
            lost = (
                "the input was overwritten, or is too large to be kept"
                if self.kept() is None
                else "no single cycle explains it; exact elements may, as Fractions"
            )
            return kind(f"{problem} (found at vertex {self.name(vertex or 0)!r}; {lost}){self._remedy}")
        return kind(f"{problem}: {_shown(named)}, weight {_number(weight, self.semiring.one)}{self._remedy}", named)


def may_improve(semiring: Semiring, statistics: Sequence[ValueStatistics]) -> bool:
    """Whether a cycle may diverge, by what the numbers of the edges are; False where none does, rounded or not.

    If 1 ⊕ a = 1 for each edge, the same holds for their products; and rounding keeps the order of sums and products.
    """
    one, found = _one_of_ordered(semiring), statistics[0]
    if one is None:
        return True
    least, greatest = found.finite or (one, one)
    return least < one or found.negative_infinity if extremum_of(semiring) is np.fmin else greatest > one or found.positive_infinity


@functools.lru_cache(maxsize=256)
def _one_of_ordered(semiring: Semiring) -> Any:
    """The one of a semiring of single numbers whose ⊕ is their minimum or maximum, and ⊗ an operation that rounding keeps monotone."""
    if extremum_of(semiring) is None or not is_operation(semiring.program.mul[0], ("add", "mul", "min", "max")):
        return None
    return semiring.one


@functools.lru_cache(maxsize=256)
def extremum_of(semiring: Semiring) -> np.ufunc | None:
    """The minimum or maximum that ⊕ of single numbers is, and nothing else."""
    try:
        add = semiring.program.add
    except TraceError:
        return None
    if len(add) != 1 or not is_operation(add[0], ("min", "max")):
        return None
    return np.fmin if add[0].op == "min" else np.fmax


def divergent_loop(semiring: Semiring, loops: Sequence[Array]) -> int | None:
    """A vertex whose loop rounding has made divergent after its pivot was tested."""
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
    """Whether this is min-plus, whatever it is called."""
    try:
        same = semiring.program.add == MIN_PLUS.program.add and semiring.program.mul == MIN_PLUS.program.mul
    except TraceError:
        return False
    return same and semiring.zero == math.inf and semiring.one == 0


def _shown(cycle: Sequence[Any]) -> str:
    """A cycle as text, shortened where it is long."""
    closed = [printable(v) for v in (*cycle, cycle[0])]
    if len(closed) > 12:
        closed = [*closed[:6], f"… {len(closed) - 11} more …", *closed[-5:]]
    return " → ".join(closed)


def _number(weight: Any, one: Any) -> str:
    """Write a weight: a fraction as a float, or as 1 and the rest where that float would be the semiring's 1."""
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
