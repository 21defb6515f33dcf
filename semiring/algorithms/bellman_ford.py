"""Bellman's and Ford's algorithm over a semiring: a cycle whose weight c has 1 ⊕ c ≠ 1, or potentials that show there is none.

It begins at a virtual source that reaches every vertex, and the graph of predecessors is searched for cycles as it grows (Cherkassky and
Goldberg, 1999). Rounding can invent such a cycle, so each is confirmed by its `exact_weight`.

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

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import evaluate
from semiring.algebra.laws import is_selective
from semiring.algorithms.relaxation import Relaxation, relaxation
from semiring.kernels.operations import Operations

__all__ = ["exact_weight", "find_cycle", "rounding"]

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
