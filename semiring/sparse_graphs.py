"""Questions to sparse graphs: `reachability`, `nearest`, and `factor` for many questions to one graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.csr import CSR
from semiring.algorithms.reachability import Condensation
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.followed import refuse_compiling
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, LawError, SemiringError, library, noted, raised_here, refuse_arrays
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.graphs import EdgeList, edges_of, read_graph
from semiring.graphs.read import one_graph
from semiring.graphs.vertices import chosen, one_vertex
from semiring.planning.options import Options
from semiring.results.store import Names
from semiring.solve import apsp, closure, transitive_closure

if TYPE_CHECKING:
    from semiring.results.factor import Factor
    from semiring.results.nearest import Nearest

__all__ = ["Reachability", "factor", "nearest", "reachability"]


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
        return one_vertex(vertex, len(self.nodes), self._names.labels, what)

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
    refuse_compiling("factor", graph)
    from semiring.execution.factor import factor_graph  # only where they are wanted: a first call should be quick

    require_threads(threads)
    refuse_arrays(check=check)
    options = Options(weight=weight, nonedge=nonedge, dtype=dtype, device=device, threads=threads, check=bool(check))
    return factor_graph(graph, as_semiring(semiring), order, options)
