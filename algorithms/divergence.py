"""Diagnosis of a divergence: the cycle c with 1 ⊕ c ≠ 1 behind a divergent pivot, or only a rounding error.

A closure converges if 1 ⊕ c = 1 for the weight c of each cycle: then a walk that repeats a vertex adds nothing to the one without the
cycle. Elimination meets such a cycle as a *divergent pivot* p, with 1 ⊕ p ≠ 1, and stops. Why that is, the matrix as it was given tells:

- `find_cycle` is Bellman's and Ford's algorithm from a virtual source that reaches every vertex, with the graph of predecessors searched
  for cycles as it grows (Cherkassky and Goldberg, 1999). Rounding can invent such a cycle, so each is confirmed by its `exact_weight`.
- `Diagnosis` raises the error that shows the cycle. If there is none, rounding made the pivot diverge, and what the search has found
  instead are potentials, by which the closure succeeds (`semiring.algorithms.potentials`).
- `may_improve` tells by the range of all weights that no cycle can diverge, so that nobody has to look; and `divergent_loop` looks for
  loops that rounding made divergent after their pivot was tested.

Examples
--------
The cycle 1 → 2 → 3 → 1 has the length −3 + 1 + 1:

>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> roads = np.array([[0, 1, inf, inf], [inf, 0, -3, inf], [inf, inf, 0, 1], [inf, 1, inf, 0]])
>>> cycle, _ = find_cycle(MIN_PLUS, (roads,), 0)
>>> cycle
[2, 3, 1]
>>> exact_weight(MIN_PLUS, (roads,), [*cycle, cycle[0]])
Fraction(-1, 1)

With one more on the last of its edges there is none, and the distances from the virtual source are potentials:

>>> roads[3, 1] = 2
>>> cycle, (p,) = find_cycle(MIN_PLUS, (roads,), 0)
>>> cycle, p.tolist()
(None, [0.0, 0.0, -3.0, -2.0])
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import evaluate, is_operation
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.extraction import cycle_through
from semiring.algorithms.relaxation import Relaxation, relaxation
from semiring.common.errors import DivergenceError, NegativeCycleError, OverflowRiskError, TraceError, brief, printable
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.operations import Operations, operations_for

__all__ = ["Diagnosis", "divergent_loop", "exact_weight", "extremum_of", "find_cycle", "is_min_plus", "may_improve", "rounding"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def find_cycle(semiring: Semiring, values: Values, start: int, tolerance: float = 0.0) -> tuple[list[int] | None, Values]:
    """Bellman–Ford: the vertices of a cycle whose weight c has 1 ⊕ c ≠ 1, in order; or None and potentials that show there is none.

    Parameters
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (n, n)
    start : int
        A vertex that is likely to reach such a cycle: it is searched from there before it is searched everywhere.
    tolerance : float
        By how much the weight of a path may be rounded already: cycles within it are harmless.

    Returns
    -------
    cycle : list of int or None
    p : tuple of arrays of shape (n,)
        Where there is no cycle: p_v ⊕ p_u ⊗ a_uv = p_v for all u and v (with a selective ⊕, and to rounding).

    Notes
    -----
    Complete for a selective ⊕, but for cycles that rounding hides: O(n³) steps at worst, O(n²) for each sweep over the vertices that
    changed. For others (distances that count paths) also cycles of edges that tie are tried.
    """
    graph = relaxation(semiring, values)
    everywhere = graph.everywhere(graph.operations.one)
    for v in np.flatnonzero(graph.changes(everywhere, graph.diagonal())).tolist():
        if _diverges(semiring, values, [v], tolerance):
            return [v], everywhere
    source = graph.everywhere(graph.operations.zero)
    for vector, element in zip(source, graph.operations.one, strict=True):
        vector[start] = element
    for p in (source, everywhere):
        cycle = _improving(semiring, graph, p, values, tolerance)
        if cycle is not None:
            return cycle, p
    if is_selective(semiring, [v.dtype for v in values]):
        return None, everywhere
    return _tying(semiring, graph, everywhere, values, tolerance), everywhere


def _improving(semiring: Semiring, graph: Relaxation, p: Values, values: Values, tolerance: float) -> list[int] | None:
    """Relax edges from p, in place, until nothing improves or the predecessors hold a confirmed cycle."""
    predecessor = np.full(graph.n, -1, dtype=np.intp)
    active = np.arange(graph.n)
    search, chained, least = 1, 0, tolerance
    for sweep in range(1, graph.n + 2):
        changed = np.zeros(graph.n, dtype=bool)
        for offer, who in graph.offers(p, active):
            changed |= graph.take(p, offer, who, predecessor, least)
            chained += 1
        active = np.flatnonzero(changed)[:: -1 if sweep % 2 else 1]
        # Often at first; and before integers that run around a cycle gain n more weights.
        if sweep >= search or chained >= graph.n or not len(active) or sweep == graph.n + 1:
            search, chained = sweep + 1 + sweep // 4, 0
            for cycle in _cycles(predecessor):
                if _diverges(semiring, values, cycle, tolerance):
                    return cycle
                # Rounding made it: what follows has to improve by more than that.
                least = max(2 * least, _ulp(p[0]))
                predecessor[cycle[0]] = -1
        if not len(active):
            break
    return None


def _cycles(predecessor: Array) -> Iterator[list[int]]:
    """The cycles of a graph in which every vertex has one predecessor or none (−1)."""
    n = len(predecessor)
    ancestor = np.append(np.where(predecessor < 0, n, predecessor), n)
    step = ancestor
    for _ in range(max(1, n.bit_length())):
        ancestor = ancestor[ancestor]
    # Whoever still has an ancestor 2ⁿ or more generations back descends from a cycle, and that ancestor lies on it.
    left = set(np.unique(ancestor[:n]).tolist()) - {n}
    while left:
        start = v = left.pop()
        cycle = [v]
        while (v := int(step[v])) != start:
            cycle.append(v)
        left.difference_update(cycle)
        yield cycle[::-1]


def _tying(semiring: Semiring, graph: Relaxation, p: Values, values: Values, tolerance: float) -> list[int] | None:
    """A divergent cycle of edges that change p, though they do not improve it: for a ⊕ that is not selective."""
    edges = []
    for u in range(graph.n):
        offer = graph.multiply(tuple(v[u] for v in p), tuple(r[0] for r in graph.rows(np.array([u]))))
        edges.append(np.flatnonzero(graph.changes(p, offer)))
    # Peel off what no edge enters; then each vertex has a predecessor among the rest.
    source = np.repeat(np.arange(graph.n), [len(e) for e in edges])
    target = np.concatenate(edges) if edges else source
    while len(source):
        inner = np.bincount(target, minlength=graph.n) > 0
        if inner[source].all():
            break
        source, target = source[inner[source]], target[inner[source]]
    predecessor = np.full(graph.n, -1, dtype=np.intp)
    predecessor[target] = source
    return next((c for c in _cycles(predecessor) if _diverges(semiring, values, c, tolerance)), None)


def _diverges(semiring: Semiring, values: Values, cycle: Sequence[int], tolerance: float) -> bool:
    """Whether 1 ⊕ c ≠ 1 for the exact weight c of a cycle."""
    weight = exact_weight(semiring, values, [*cycle, cycle[0]])
    weight, one = (v if isinstance(v, tuple) else (v,) for v in (weight, semiring.one))
    if tolerance and abs(weight[0] - one[0]) <= tolerance:
        return False
    if any(v.dtype.kind == "O" for v in values):
        return not Operations(semiring, tuple(v.dtype for v in values)).harmless(weight)
    return evaluate(semiring.program.add, one, weight, ops.TABLE) != one


def exact_weight(semiring: Semiring, values: Values, path: Sequence[int]) -> Any:
    """The ⊗-product of a path's edges, with floats as the fractions they are."""
    weight: Sequence[Any] = semiring.one if isinstance(semiring.one, tuple) else [semiring.one]
    objects = any(v.dtype.kind == "O" for v in values)
    multiply = Operations(semiring, tuple(v.dtype for v in values)).mul if objects else None
    for u, v in itertools.pairwise(path):
        edge = [_exact(array[u, v]) for array in values]
        weight = multiply(weight, edge) if multiply is not None else evaluate(semiring.program.mul, weight, edge, ops.TABLE)
    first, *others = weight
    return (first, *others) if others else first


def _exact(value: Any) -> Any:
    """A number as Python's own, and a finite float as the fraction that it is."""
    if isinstance(value, np.generic):
        value = value.item()
    return Fraction(value) if isinstance(value, float) and math.isfinite(value) else value


def rounding(values: Values) -> float:
    """How far n rounded sums of the weights can be off: n · ε · the largest finite magnitude (0 where elements are exact)."""
    if values[0].dtype.kind != "f":
        return 0.0
    return len(values[0]) * max(map(_ulp, values[0]))


def _ulp(array: Array) -> float:
    """The rounding of the largest finite magnitude of a vector."""
    if array.dtype.kind != "f":
        return 0.0
    magnitude = np.abs(array)
    return float(np.finfo(array.dtype).eps * np.max(magnitude, where=np.isfinite(magnitude), initial=0.0))


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
        """The error for a divergent pivot of an elimination, which is one that has no star."""
        kept, cycle = self.kept(), None
        if kept is not None and (self.semiring.star is None or is_idempotent(self.semiring, dtypes)):
            cycle, _ = find_cycle(self.semiring, kept, vertex)
        elif kept is not None:
            operations = Operations(self.semiring, dtypes)
            loops = [tuple(v[i, i] for v in kept) for i in range(len(kept[0]))]
            cycle = next(([i] for i, loop in enumerate(loops) if operations.star(loop) is None), None)
        if cycle is None:
            singular = ": a leading block of I − A is singular" if self.semiring.name == "plus-times" else ""
            return DivergenceError(
                f"the closure over {self.semiring.name} does not converge: the pivot of vertex {self.name(vertex)!r} has no star{singular}"
            )
        assert kept is not None
        return self.error(cycle, exact_weight(self.semiring, kept, [*cycle, cycle[0]]))

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
        problem = f"the closure over {self.semiring.name} does not converge"
        if negative:
            problem = "the graph has a negative cycle, so there are no shortest paths"
        elif named is not None:
            problem += f": {'c has no star' if self.semiring.star else '1 ⊕ c ≠ 1'} for a cycle of weight c"
        if named is None:
            lost = (
                "the input was overwritten, or is too large to be kept"
                if self.kept() is None
                else "no single cycle explains it; exact elements may, as Fractions"
            )
            return kind(f"{problem} (found at vertex {self.name(vertex or 0)!r}; {lost})")
        return kind(f"{problem}: {_shown(named)}, weight {_number(weight)}", named)


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


def _number(weight: Any) -> str:
    """A weight as text: fractions as floats, unless they are whole."""
    if isinstance(weight, tuple):
        return f"({', '.join(map(_number, weight))})"
    if isinstance(weight, Fraction):
        whole = weight.denominator == 1 and weight.numerator.bit_length() <= 64
        try:
            return str(weight.numerator) if whole else repr(float(weight))
        except OverflowError:
            return brief(int(weight))
    return brief(weight) if isinstance(weight, int) else str(weight)
