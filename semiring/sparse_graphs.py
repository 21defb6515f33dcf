"""Questions to sparse graphs: `reachability`, `nearest`, `k_shortest_paths`, `cycle_mean`, and `factor` for many questions to one graph."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MAX_PLUS, MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.csr import CSR
from semiring.algorithms.cycle_mean import CriticalCycle, best_to_cycle, critical_edges, least_cycle_mean, least_cycle_ratio
from semiring.algorithms.elementary_cycles import elementary_cycles
from semiring.algorithms.reachability import Condensation
from semiring.algorithms.simple_paths import simple_paths
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import is_sparse
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, LawError, SemiringError, library, noted, raised_here, refuse_arrays
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.graphs import EdgeList, edges_of, read_graph
from semiring.graphs.read import one_graph
from semiring.graphs.vertices import chosen
from semiring.planning.options import Options
from semiring.results.store import Names
from semiring.solve import apsp, closure, transitive_closure

if TYPE_CHECKING:
    from semiring.results.factor import Factor
    from semiring.results.nearest import Nearest

__all__ = [
    "CycleMean", "Reachability", "SimplePath", "cycle_mean", "factor", "k_shortest_paths", "nearest", "reachability",
]  # fmt: skip


class Reachability(Shown):
    """The vertices that each vertex of a graph reaches; `reachability` returns one.

    Examples
    --------
    >>> import semiring as sr
    >>> calls = sr.edges([("main", "parse"), ("parse", "eval"), ("eval", "parse"), ("eval", "print")])
    >>> found = sr.reachability(calls)
    >>> found
    <reachability among 4 vertices: 9 of 16 pairs connected, 3 strongly connected components>
    >>> found.counts
    array([3, 3, 3, 0])

    Attributes
    ----------
    nodes : tuple
        The vertices.
    reflexive : bool
        Every vertex reaches itself; otherwise only through a cycle.
    """

    def __init__(self, condensation: Condensation, labels: Sequence[Hashable] | None, *, reflexive: bool) -> None:
        self._condensation, self.reflexive, self._names = condensation, reflexive, Names(labels, condensation.n)
        self.nodes = self._names.nodes

    @cached_property
    def counts(self) -> Array:
        """The number of vertices that each vertex reaches.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 2)]), reflexive=True).counts
        array([3, 2, 1])
        """
        return self._condensation.counts(reflexive=self.reflexive)

    @property
    def components(self) -> Array:
        """The number of each vertex's strongly connected component; edges lead to an equal or a lower number.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 0), (1, 2)])).components
        array([1, 1, 0])
        """
        return self._condensation.component.copy()

    @raised_here
    def reaches(self, source: Any, target: Any) -> bool:
        """Return True if a path leads from the source to the target.

        Examples
        --------
        >>> import semiring as sr
        >>> found = sr.reachability(sr.edges([("a", "b"), ("b", "c")]))
        >>> found.reaches("a", "c"), found.reaches("c", "a")
        (True, False)
        """
        return self._condensation.reaches(self._number(source, "source"), self._number(target, "target"), reflexive=self.reflexive)

    @raised_here
    def reached(self, source: Any) -> list[Any]:
        """List the vertices that the source reaches, in the order of `nodes`.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([("a", "b"), ("b", "c")])).reached("a")
        ['b', 'c']
        """
        return self._names.of(self._condensation.reached(self._number(source, "source"), reflexive=self.reflexive).tolist())

    @raised_here
    def to_scipy(self) -> Any:
        """Return all pairs as a SciPy sparse array of truth values.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 2)])).to_scipy().nnz
        3
        """
        scipy = library("scipy.sparse", "to_scipy", "graphs")
        n, pairs = self._condensation.n, int(self.counts.sum())
        require_bytes(9 * pairs, f"{pairs:,} pairs take", "ask for .counts, .reaches() or .reached()")
        starts, heads = self._condensation.pairs(reflexive=self.reflexive)
        return scipy.csr_array((np.ones(pairs, dtype=bool), heads, starts), shape=(n, n))

    def _number(self, vertex: Any, what: str) -> int:
        return _number(vertex, len(self.nodes), self._names.labels, what)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table that Jupyter shows."""
        n = len(self.nodes)
        facts = [
            ("connected", f"{int(self.counts.sum()):,} of {counted(n * n, 'pair')}"),
            ("strongly connected components", f"{self._condensation.count:,}"),
        ]
        return f"reachability among {counted(n, 'vertex', 'vertices')}", facts

    def __repr__(self) -> str:
        title, ((_, connected), _) = self.facts()
        components = counted(self._condensation.count, "strongly connected component")
        return f"<{title}: {connected} connected, {components}>"


@raised_here
@described_by(apsp, transitive_closure)
def reachability(graph: Any, *, reflexive: bool = False, weight: str | float | None = None, nonedge: Any = None) -> Reachability:
    """Find which vertices each vertex reaches, as counts, sets and single answers, without an n × n matrix.

    Examples
    --------
    >>> import semiring as sr
    >>> calls = sr.edges([("main", "parse"), ("parse", "eval"), ("eval", "parse"), ("eval", "print")])
    >>> found = sr.reachability(calls)
    >>> found.counts, found.reached("parse"), found.reaches("print", "main")
    (array([3, 3, 3, 0]), ['parse', 'eval', 'print'], False)

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `transitive_closure`.
    reflexive, weight
        As for `transitive_closure`.
    nonedge
        As for `apsp`.

    Returns
    -------
    Reachability

    Raises
    ------
    GraphError
        If the argument holds several graphs.
    SemiringError
        As for `transitive_closure`.

    Notes
    -----
    O(n + m) steps find the c strongly connected components, and at most O(m·c / 32) steps the components that each component reaches.
    These sets take at most c²/16 bytes, less if few vertices are reached. For the whole matrix call `transitive_closure`.
    """
    with noted("the reachability", BOOLEAN, graph):
        listed = edges_of(graph, BOOLEAN, nonedge=nonedge, presence=True, weight=weight)
        if listed is None:
            read = read_graph(graph, BOOLEAN, nonedge=nonedge, presence=True)
            if read.batch:
                raise GraphError(f"reachability takes one graph, not a batch of shape {read.batch}; pass one graph at a time")
            matrix = host(read.values[0])
            tails, heads = np.nonzero(matrix)
            listed = CSR.of(tails, heads, (matrix[tails, heads],), len(matrix), (False,)), read.labels
        return Reachability(Condensation.of(listed[0]), listed[1], reflexive=bool(reflexive))


@raised_here
@described_by(apsp, closure)
def nearest(
    graph: Any,
    sources: Any,
    semiring: Semiring | str = MIN_PLUS,
    *,
    k: int = 1,
    weight: str | float | None = None,
    nonedge: Any = None,
    dtype: Any = None,
    threads: int | None = None,
) -> Nearest:
    """Find the nearest of several sources for each vertex, or the k nearest, with values and paths.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("north", "a", 4), ("a", "b", 1), ("b", "south", 3)], directed=False)
    >>> found = sr.nearest(roads, ["north", "south"])
    >>> found.sources
    array(['north', 'north', 'south', 'south'], dtype=object)
    >>> found.values, found.path("b")
    (array([0., 4., 3., 0.]), ['south', 'b'])

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `apsp`. Paths lead from the sources to the vertices; pass the reversed graph for paths to the sources.
    sources : vertex or sequence of vertices
        By label, or else by number. A source that is named twice counts once.
    semiring : Semiring or str
        One of the catalogue, also by name, or your own, with a selective ⊕.
    k : int
        The number of different sources for each vertex.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Nearest

    Other Parameters
    ----------------
    threads
        As for `apsp`.

    Raises
    ------
    GraphError
        If the argument holds several graphs, or a source is unknown.
    LawError
        If ⊕ does not select one of its operands.
    SemiringError
        If `k` is no number from 1, and as for `closure`.

    Notes
    -----
    One search from all sources together takes O(k·m log m) steps for m edges, if no edge improves on 1. Otherwise k = 1 takes
    label-correcting rounds, and a larger k takes a row for each source. Among sources with equal elements any may be chosen. Dijkstra
    (1959); Erwig, "The graph Voronoi diagram with applications", 2000.
    """
    from semiring.algorithms.nearest import nearest_sources  # only where they are wanted: a first call should be quick
    from semiring.algorithms.search import searches_for
    from semiring.results.nearest import Nearest

    require_threads(threads)
    semiring = as_semiring(semiring)
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SemiringError(f"k is {k!r}; k must be a whole number from 1")
    with noted("the nearest sources", semiring, graph):
        expanded = None
        if isinstance(graph, EdgeList) and graph.turns is not None:
            from semiring.execution.turns import expansion

            expanded = expansion(graph, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
            edges, labels, names = expanded.edges, graph.labels, expanded.names
        else:
            edges, labels = one_graph(graph, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
            names = range(edges.n) if labels is None else labels
        if not is_selective(semiring, edges.dtypes):
            raise LawError(f"nearest needs a selective ⊕, and {semiring.name} has none")
        some = np.unique(chosen(sources, edges.n if labels is None else len(labels), labels, "sources").numbers)
        found = nearest_sources(semiring, edges, some, int(k), searches_for(semiring, edges.dtypes, "cpu", threads), names.__getitem__)
        if expanded is not None:
            found = expanded.nearest(found)
    return Nearest(found, labels, len(some))


class SimplePath(NamedTuple):
    """A path without a repeated vertex, and the length of the path, from `k_shortest_paths`.

    Examples
    --------
    >>> import semiring as sr
    >>> distance, path = sr.k_shortest_paths(sr.edges([("a", "b", 1.5), ("b", "c", 2.0)]), "a", "c", 1)[0]
    >>> distance, path
    (3.5, ['a', 'b', 'c'])

    Attributes
    ----------
    distance : float
        The sum of the edge weights.
    path : list
        The names of the vertices, in order.
    """

    distance: float
    path: list[Any]


@raised_here
@described_by(apsp)
def k_shortest_paths(
    graph: Any, source: Any, target: Any, k: int, *, weight: Any = None, nonedge: Any = None, threads: int | None = None
) -> list[SimplePath]:
    """Return the k shortest paths between two vertices that visit no vertex twice, shortest first.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("A", "B", 3), ("B", "D", 4), ("A", "C", 2), ("C", "D", 6), ("C", "B", 2)], directed=False)
    >>> for distance, path in sr.k_shortest_paths(roads, "A", "D", 3):
    ...     print(distance, path)
    7.0 ['A', 'B', 'D']
    8.0 ['A', 'C', 'D']
    8.0 ['A', 'C', 'B', 'D']

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. Weights may be negative. The lightest of parallel edges, or of duplicate entries in a SciPy array, counts. Weights
        are converted to float64, which rounds integers beyond 2⁵³.
    source, target : vertex
        The name of a vertex, or the number if vertices have no names.
    k : int
        The number of paths.
    weight, nonedge
        As for `apsp`.

    Returns
    -------
    list of SimplePath
        At most k paths. If source and target are the same vertex, the only path is this vertex.

    Raises
    ------
    GraphError
        If source or target is not one vertex of the graph, or k is not a whole number from 0; and as for `apsp`.
    NegativeCycleError
        If a negative cycle leads to the target.

    Notes
    -----
    Yen's algorithm with Lawler's refinement: each path takes one A* search from every vertex after the point where the path leaves an
    earlier path. A search stops early if no result can be among the k. The order of equally long paths is not defined. Yen, "Finding the
    k shortest loopless paths in a network", 1971; Lawler, "A procedure for computing the k best solutions", 1972.
    """
    require_threads(threads)
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 0:
        raise GraphError(f"k is {k!r}; k must be a whole number from 0")
    with noted("the paths", MIN_PLUS, graph):
        edges, labels = one_graph(graph, MIN_PLUS, nonedge=nonedge, dtype=np.float64, weight=weight)
        first, last = (_number(vertex, edges.n, labels, what) for vertex, what in ((source, "source"), (target, "target")))
        names: Any = int if labels is None else labels.__getitem__
        found = list(simple_paths(edges, first, last, int(k), name=names, threads=threads)) if k else []
    return [SimplePath(length, [names(v) for v in path]) for length, path in found]


def _number(vertex: Any, n: int, labels: Sequence[Hashable] | None, what: str) -> int:
    """Return the number of a single vertex, the argument `what`."""
    found = chosen(vertex, n, labels, what)
    if not found.single:
        raise GraphError(f"{what} must be one vertex, not {vertex!r}")
    return int(found.numbers[0])


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
        given = graph if isinstance(transit, str) else replace(graph, weights=np.asarray(transit)) if listed else transit
        weight = transit if isinstance(transit, str) else None
        least, greatest = (one_graph(given, s, dtype=np.float64, weight=weight)[0] for s in (MIN_PLUS, MAX_PLUS))
        at = np.minimum(np.searchsorted(least.places, edges.places), max(0, len(least.heads) - 1))
        for number in np.flatnonzero(least.places[at] != edges.places if len(least.heads) else edges.places >= 0)[:1].tolist():
            raise GraphError(f"transit has no number for {edge(number)}")
        found = least.weights[0][at]
        for number in np.flatnonzero(found != greatest.weights[0][at])[:1].tolist():
            raise GraphError(f"parallel edges have different transits: {edge(number)}; a cycle mean knows one edge between two vertices")
    else:
        matrix = np.asarray(host(transit), np.float64)
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


@raised_here
@described_by(apsp)
def factor(
    graph: Any,
    semiring: Semiring | str = MIN_PLUS,
    *,
    order: Any = "auto",
    weight: Any = None,
    nonedge: Any = None,
    dtype: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Factor:
    """Prepare a sparse graph once; later distance queries are fast.

    The result takes little more memory than the graph.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("Bern", "Thun", 30), ("Thun", "Spiez", 11), ("Bern", "Biel", 41), ("Biel", "Jura", 70)], directed=False)
    >>> f = sr.factor(roads)
    >>> f  # doctest: +ELLIPSIS
    <factor of 5 vertices over min-plus: order ..., 4 entries of fill, height ...>
    >>> f.rows("Spiez")
    array([ 41.,  11.,   0.,  82., 152.])
    >>> f["Spiez", ["Biel", "Jura"]]
    array([ 82., 152.])

    Close a road (only dependent entries are eliminated again):

    >>> f.update((["Thun"], ["Bern"], [float("inf")]))
    >>> float(f["Spiez", "Jura"])
    inf

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. Loops are allowed, and parallel edges combine with ⊕.
    semiring : Semiring or str
        Any semiring that permits a closure, or a name of the catalogue.
    order : str or sequence of vertices
        The order of elimination: "metis" (nested dissection, by pymetis), "minimum degree" (by SciPy), "natural", or the vertices.
        "auto" takes the first of these that is installed (``pip install -e ".[sparse]"``).
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Factor

    Other Parameters
    ----------------
    device : str
        "cuda", "cuda:0", … eliminates and answers on a GPU; rows, columns and closures are then CuPy arrays. "auto" is the CPU.
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False skips the check for overflow.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        As for `apsp`; also for an order that does not name each vertex once.
    LawError
        If the semiring permits no closure.
    DivergenceError
        If the closure does not exist; for min-plus a `NegativeCycleError` that names the cycle.
    OverflowRiskError
        If weights are so large that a path could leave the dtype.
    TooLargeError
        If the fill does not fit into memory.
    SemiringError
        If the device does not exist.

    Notes
    -----
    A planar graph of n vertices takes O(n log n) memory, O(n^1.5) steps of elimination and O(n log n) steps for each row; a graph without
    small separators costs nearly as much as a dense matrix. Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc, PPoPP 2020. With
    negative floats, results are within n · ε of the largest magnitude; smaller negative cycles pass for rounding.
    """
    from semiring.execution.factor import factor_graph  # only where they are wanted: a first call should be quick

    require_threads(threads)
    refuse_arrays(check=check)
    options = Options(weight=weight, nonedge=nonedge, dtype=dtype, device=device, threads=threads, check=bool(check))
    return factor_graph(graph, as_semiring(semiring), order, options)
