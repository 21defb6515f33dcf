"""The best mean of a cycle: `cycle_mean`, with critical cycles and eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MAX_PLUS, MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.cycle_mean import CriticalCycle, best_to_cycle, critical_edges, least_cycle_mean, least_cycle_ratio
from semiring.algorithms.elementary_cycles import elementary_cycles
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import is_sparse
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, LawError, described, noted, raised_here
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.graphs import EdgeList
from semiring.graphs.read import one_graph
from semiring.graphs.weights import with_values
from semiring.solve import apsp

__all__ = ["CycleMean", "cycle_mean"]


@dataclass(frozen=True, eq=False, repr=False)
class CycleMean(Shown):
    """The cycle mean of a graph (or the ratio to `transit`), with critical cycles and an eigenvector, from `cycle_mean`.

    Examples
    --------
    >>> import semiring as sr
    >>> trains = sr.cycle_mean(sr.edges([("A", "B", 58.0), ("B", "A", 52.0), ("A", "A", 50.0)]))
    >>> trains.mean, trains.cycle, trains.total
    (55.0, ['A', 'B'], 110.0)

    Attributes
    ----------
    mean : float
        The greatest mean weight of a cycle over max-plus, the least over min-plus; the semiring's zero without a cycle.
    cycle : list or None
        The vertices of a critical cycle (a cycle with this mean), each once, in order; None without a cycle.
    total : float
        The sum of the weights of the cycle, correctly rounded; the mean is the total over the transit.
    nodes : tuple
        The vertices of the graph.
    transit : float
        The sum of the transits of the cycle: the number of edges, unless transits are given.
    """

    mean: float
    cycle: list[Any] | None
    total: float
    nodes: tuple[Any, ...]
    _graph: CSR = field(repr=False)
    _critical: CriticalCycle | None = field(repr=False)
    _sign: float = field(repr=False)
    _threads: int | None = field(repr=False)
    transit: float = 0.0
    _reduced: tuple[CSR, int] | None = field(default=None, repr=False)  # the weights of `_critical`, and their factor

    @cached_property
    def eigenvector(self) -> Array:
        """A vector x with A ⊗ x = λ ⊗ x for the mean λ, computed on first access in O(m log m) for m edges.

        Entry i is the weight of the best path from vertex i to the first vertex of `cycle`, where each edge counts as weight − λ, or as
        weight − λ · transit. The entry is the semiring's zero if i does not reach the cycle; in a strongly connected graph all do.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> a = np.array([[2.0, 5.0], [3.0, 3.0]])
        >>> found = sr.cycle_mean(a)
        >>> found.mean, found.eigenvector
        (4.0, array([ 0., -1.]))
        >>> sr.matmul(a, found.eigenvector, sr.MAX_PLUS)
        array([4., 3.])
        """
        if self._critical is None:
            return np.full(len(self.nodes), self.mean)
        graph, scale = self._reduced or (self._graph, 1)
        return 0.0 + self._sign / scale * best_to_cycle(graph, self._critical, self._threads)

    @cached_property
    def critical_graph(self) -> EdgeList:
        """The edges on critical cycles, with all vertices; computed on first access in a few rounds of O(m) steps for m edges.

        Each cycle of these edges is critical. This is exact for integers if `cycle` is exact. For other weights a cycle is critical if
        rounding could hide the difference of the means: n · 2⁻⁴⁹ of the largest sum in the proof, for n vertices in a component.

        Examples
        --------
        >>> import semiring as sr
        >>> trains = sr.edges([("A", "B", 4), ("B", "A", 6), ("A", "C", 5), ("C", "A", 5), ("B", "C", 1)])
        >>> critical = sr.cycle_mean(trains).critical_graph
        >>> critical, critical.weights
        (<3 vertices, 4 directed edges>, array([4., 5., 6., 5.]))
        """
        graph, _ = self._reduced or (self._graph, 1)
        kept = np.zeros(len(graph.heads), bool) if self._critical is None else critical_edges(graph, self._critical)
        tails, heads, (weights,) = self._graph.tails[kept], self._graph.heads[kept], self._graph.weights
        return EdgeList(self.nodes, tails, heads, 0.0 + self._sign * weights[kept])

    def cycles(self) -> Iterator[list[Any]]:
        """Iterate over all critical cycles, each once, as the vertices of `cycle`.

        A graph may have exponentially many. Each takes O(n + m) steps in the critical graph, so the first ones are quick:
        `itertools.islice` takes some. Johnson, "Finding all the elementary circuits of a directed graph", 1975.

        Examples
        --------
        >>> import semiring as sr
        >>> trains = sr.edges([("A", "B", 4), ("B", "A", 6), ("A", "C", 5), ("C", "A", 5), ("B", "C", 1)])
        >>> list(sr.cycle_mean(trains).cycles())
        [['A', 'B'], ['A', 'C']]
        """
        critical = self.critical_graph
        for cycle in elementary_cycles(CSR.of(critical.sources, critical.targets, (), len(self.nodes), ())):
            yield [self.nodes[v] for v in cycle]

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table in Jupyter."""
        facts = [("mean", f"{self.mean:.6g}")]
        if self.cycle is not None:
            more = " …" if len(self.cycle) > 8 else ""
            facts += [("edges", f"{len(self.cycle):,}"), ("critical cycle", " → ".join(map(repr, self.cycle[:8])) + more)]
        return f"cycle mean of {counted(len(self.nodes), 'vertex', 'vertices')}", facts

    def __repr__(self) -> str:
        title, facts = self.facts()
        return f"<{title}: {', '.join(f'{name} {text}' for name, text in facts)}>" if self.cycle else f"<{title}: no cycle>"


@raised_here
@described_by(apsp)
def cycle_mean(
    graph: Any,
    semiring: Semiring | str = MAX_PLUS,
    *,
    transit: Any = None,
    weight: Any = None,
    nonedge: Any = None,
    threads: int | None = None,
) -> CycleMean:
    """Return the maximum mean edge weight of a cycle (the eigenvalue over max-plus), a critical cycle and an eigenvector.

    Examples
    --------
    A train leaves a station once the connecting trains have arrived. The slowest cycle sets the pace: 5 minutes.

    >>> import semiring as sr
    >>> trains = sr.edges([("A", "B", 4), ("B", "C", 3), ("C", "A", 8), ("B", "A", 2)])
    >>> found = sr.cycle_mean(trains)
    >>> found
    <cycle mean of 3 vertices: mean 5, edges 3, critical cycle 'A' → 'B' → 'C'>
    >>> found.eigenvector
    array([0., 1., 3.])

    The least mean, over min-plus:

    >>> sr.cycle_mean(trains, sr.MIN_PLUS).cycle
    ['A', 'B']

    With two trains from C to A:

    >>> sr.cycle_mean(trains, transit=[1, 1, 2, 1]).mean
    3.75

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. A loop is a cycle of one edge: a 0 on the diagonal of a dense matrix is a cycle of mean 0. Write −∞ instead (over
        min-plus ∞), or pass ``nonedge=0`` if no 0 is an edge. The heaviest of parallel edges, or of duplicate entries in a SciPy array,
        counts (over min-plus the lightest). Weights are converted to float64, which rounds integers beyond 2⁵³.
    semiring : Semiring or str
        `MAX_PLUS`, or `MIN_PLUS` for the minimum cycle mean.
    transit : str, number or array, optional
        A second number of each edge, 0 or more, such as tokens; the mean is the total over their sum. An attribute or column, a number for
        all edges, or an array of shape (n, n) or, for `edges`, (m,).
    weight, nonedge
        As for `apsp`.

    Returns
    -------
    CycleMean

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        As for `apsp`. GraphError also for wrong transits, and a cycle of transit 0.
    LawError
        If the semiring is not max-plus or min-plus.
    OverflowRiskError
        If sums of the weights could leave float64.

    Notes
    -----
    Howard's policy iteration in float64: rounds of O(m) steps for m edges, usually a few dozen. For integers the cycle is
    exactly critical if the length of the cycle times the longest path stays below 2⁵³; otherwise the mean is optimal up to rounding. The
    graph need not be strongly connected: all cycles count. Cochet-Terrasson et al., "Numerical computation of
    spectral elements in max-plus algebra", 1998; Dasdan, "Experimental analysis of the fastest optimum cycle ratio and mean
    algorithms", 2004.

    With `transit`, iterations for weight − λ · transit follow until no ratio is better in exact fractions.
    Dinkelbach, "On nonlinear fractional programming", 1967.
    """
    require_threads(threads)
    semiring = as_semiring(semiring)
    if semiring not in (MAX_PLUS, MIN_PLUS):
        raise LawError(f"cycle_mean needs {MAX_PLUS.name} or {MIN_PLUS.name}, not {semiring.name}")
    with noted("the cycle mean", semiring, graph):
        edges, labels = one_graph(graph, semiring, nonedge=nonedge, dtype=np.float64, weight=weight)
        transits = None if transit is None else _transits(graph, edges, transit, range(edges.n) if labels is None else labels)
    sign = -1.0 if semiring == MAX_PLUS else 1.0
    if sign < 0:
        edges = replace(edges, weights=(-edges.weights[0],), zero=(np.inf,), statistics=())
    nodes = tuple(range(edges.n)) if labels is None else labels
    if transits is not None and (best := least_cycle_ratio(edges, transits, threads)) is not None:
        mean, cycle, total = sign * float(best.total / best.transit), [nodes[v] for v in best.vertices], 0.0 + sign * float(best.total)
        reduced = best.reduced, best.scale
        return CycleMean(0.0 + mean, cycle, total, nodes, edges, best.proof, sign, threads, float(best.transit), reduced)
    found = least_cycle_mean(edges, threads)
    if found is None:
        return CycleMean(sign * math.inf, None, 0.0, nodes, edges, None, sign, threads)
    total = 0.0 + sign * found.total
    cycle = [nodes[v] for v in found.vertices]
    return CycleMean(total / len(cycle), cycle, total, nodes, edges, found, sign, threads, float(len(cycle)))


def _transits(graph: Any, edges: CSR, transit: Any, names: Sequence[Hashable]) -> Array:
    """Return a second number of each edge, 0 or more; each cycle has a positive one."""

    def edge(number: int) -> str:
        return f"the edge {names[edges.tails[number]]!r} → {names[edges.heads[number]]!r}"

    listed = isinstance(graph, EdgeList) and np.ndim(transit) == 1
    if isinstance(transit, Real):
        found = np.full(len(edges.heads), float(transit))
    elif isinstance(transit, str) or listed or is_sparse(transit):
        given = graph if isinstance(transit, str) else with_values(graph, transit) if listed else transit
        weight = transit if isinstance(transit, str) else None
        least, greatest = (one_graph(given, s, dtype=np.float64, weight=weight)[0] for s in (MIN_PLUS, MAX_PLUS))
        at = np.minimum(np.searchsorted(least.places, edges.places), max(0, len(least.heads) - 1))
        for number in np.flatnonzero(least.places[at] != edges.places if len(least.heads) else edges.places >= 0)[:1].tolist():
            raise GraphError(f"transit has no number for {edge(number)}")
        found = least.weights[0][at]
        for number in np.flatnonzero(found != greatest.weights[0][at])[:1].tolist():
            raise GraphError(f"parallel edges have different transits: {edge(number)}; a cycle mean knows one edge between two vertices")
    else:
        try:
            matrix = np.asarray(host(transit), np.float64)
        except (TypeError, ValueError):
            raise GraphError(
                f"transit is {described(transit)}; it must be the name of an attribute, a number, or an array of numbers"
            ) from None
        if matrix.shape != (edges.n, edges.n):
            raise GraphError(f"transit has shape {matrix.shape}; it must be {(edges.n, edges.n)}, or a number for each edge of `edges`")
        found = matrix[edges.tails, edges.heads]
    for number in np.flatnonzero(~((found >= 0) & (found < np.inf)))[:1].tolist():
        raise GraphError(f"the transit of {edge(number)} is {found[number]}; it must be a number from 0")
    none = found == 0
    for cycle in elementary_cycles(CSR.of(edges.tails[none], edges.heads[none], (), edges.n, ())):
        around = " → ".join(repr(names[v]) for v in [*cycle, cycle[0]])
        raise GraphError(f"the cycle {around} has a transit of 0, so its ratio is infinite or undefined")
    return found
