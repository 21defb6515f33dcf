"""Several paths between two vertices: the k shortest, and those of the best trade-offs between two weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.csr import CSR, present
from semiring.algorithms.simple_paths import simple_paths
from semiring.arrays.conversion import Array, Values
from semiring.arrays.exchange import a_name_of, is_sparse
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import DTypeError, GraphError, LawError, noted, raised_here
from semiring.graphs.coo import COO, coordinates
from semiring.graphs.dense import Reading
from semiring.graphs.foreign import listed_edges
from semiring.graphs.read import one_graph, reading_of
from semiring.graphs.vertices import one_vertex
from semiring.graphs.weights import with_values
from semiring.kernels.select import has_loops
from semiring.results.along import reader
from semiring.solve import apsp

__all__ = ["ParetoPath", "SimplePath", "k_shortest_paths", "pareto_paths"]


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
        first, last = (one_vertex(vertex, edges.n, labels, what) for vertex, what in ((source, "source"), (target, "target")))
        names: Any = int if labels is None else labels.__getitem__
        found = list(simple_paths(edges, first, last, int(k), name=names, threads=threads)) if k else []
    return [SimplePath(length, [names(v) for v in path]) for length, path in found]


class ParetoPath(NamedTuple):
    """A path that no other path between the same vertices beats in both weights, from `pareto_paths`.

    Examples
    --------
    >>> import semiring as sr
    >>> (path,) = sr.pareto_paths(sr.edges([("a", "b", 1.5), ("b", "c", 2.0)]), "a", "c", 1)
    >>> path.value, path.other, path.path
    (3.5, 2.0, ['a', 'b', 'c'])

    Attributes
    ----------
    value : element
        The product of the edge weights: a number, or a tuple for structured elements.
    other : element
        The product of the other weights.
    path : list
        The names of the vertices, in order.
    """

    value: Any
    other: Any
    path: list[Any]


@raised_here
@described_by(apsp)
def pareto_paths(
    graph: Any,
    source: Any,
    target: Any,
    other: Any,
    semiring: Semiring | str = MIN_PLUS,
    other_semiring: Semiring | str = MIN_PLUS,
    *,
    bound: int = 1_000,
    weight: str | float | None = None,
    nonedge: Any = None,
    dtype: Any = None,
) -> list[ParetoPath]:
    """Return the best trade-offs between two weights, such as time and toll: the paths that no path beats in both.

    Examples
    --------
    >>> import semiring as sr, networkx as nx
    >>> roads = nx.Graph()
    >>> roads.add_edge("home", "bridge", minutes=10, toll=5)
    >>> roads.add_edge("bridge", "work", minutes=10, toll=0)
    >>> roads.add_edge("home", "work", minutes=60, toll=0)
    >>> for minutes, toll, path in sr.pareto_paths(roads, "home", "work", "toll", weight="minutes"):
    ...     print(minutes, toll, " → ".join(path))
    20.0 5.0 home → bridge → work
    60.0 0.0 home → work

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. All parallel edges count.
    source, target : vertex
        The name of a vertex, or the number if vertices have no names.
    other : str, number, array or sequence
        The other weight of each edge: the name of an attribute or a column, or a number for every edge, such as 1 to count edges. Or a
        sequence with a number for each edge of `edges`, or an array of shape (n, n). Entries that a sparse array does not store are 0.
    semiring, other_semiring : Semiring or str
        The semirings of the weight and of the other weight, also by name. Both have a selective ⊕: shortest, widest, most reliable.
    bound : int
        The most paths to one vertex that are kept.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    list of ParetoPath
        In the order of preference over `semiring`, one path for each pair of values. If source and target are the same vertex, the only
        path is this vertex.

    Raises
    ------
    TooLargeError
        If more than `bound` paths to one vertex are Pareto-optimal.
    GraphError
        If source or target is not one vertex of the graph, an edge lacks the other weight, or bound is not a whole number from 1.
    LawError
        If a ⊕ does not select one of its operands.
    DivergenceError
        If a cycle that leads to the target improves.

    Notes
    -----
    Label setting takes O(k·m log(k·m)) steps for m edges and k Pareto-optimal paths to each vertex, more with negative weights. The number
    k may grow exponentially with the graph, but not for integers of small range. Floats that differ by rounding alone may count as equal.
    Martins, "On a multicriteria shortest path problem", 1984.
    """
    from semiring.algorithms.pareto import pareto_front  # only where they are wanted: a first call should be quick

    semiring, other_semiring = as_semiring(semiring), as_semiring(other_semiring)
    if isinstance(bound, bool) or not isinstance(bound, Integral) or bound < 1:
        raise GraphError(f"bound is {bound!r}; bound must be a whole number from 1")
    if other is None or isinstance(other, bool):
        raise GraphError(f"other is {other!r}; it must be the name of an attribute, a number, a sequence or an array")
    with noted("the paths", semiring, graph):
        edges, others, labels = _two_weights(graph, semiring, other, other_semiring, Reading(nonedge=nonedge, dtype=dtype), weight)
        for each, values in ((semiring, edges.weights), (other_semiring, others)):
            dtypes = tuple([v.dtype for v in values])
            if not is_selective(each, dtypes):
                raise LawError(f"pareto_paths needs a selective ⊕, and {each.name} has none")
            if not has_loops(each, dtypes):
                kinds = ", ".join(map(str, dtypes))
                raise DTypeError(f"pareto_paths compiles {each.name}, and no instructions compute it in {kinds}; pass float64 or integers")
        first, last = (one_vertex(vertex, edges.n, labels, what) for vertex, what in ((source, "source"), (target, "target")))
        names: Any = int if labels is None else labels.__getitem__
        found = pareto_front(semiring, other_semiring, edges, others, first, last, most=int(bound), name=names)
    return [ParetoPath(a[0] if len(a) == 1 else a, b[0] if len(b) == 1 else b, [names(v) for v in path]) for a, b, path in found]


def _two_weights(
    graph: Any, semiring: Semiring, other: Any, other_semiring: Semiring, reading: Reading, weight: Any
) -> tuple[CSR, Values, Sequence[Hashable] | None]:
    """Read edges with elements over two semirings, and the labels. Parallel edges stay apart; edges without an element are left out."""
    listed = listed_edges(graph)
    if listed is None:
        edges, labels = one_graph(graph, semiring, weight=weight, nonedge=reading.nonedge, dtype=reading.dtype)
        if isinstance(other, str):
            raise GraphError(f"{a_name_of(graph)} has no attributes; pass an array with the other weight of each edge instead of {other!r}")
        others = reader(other, edges.n, other_semiring)(edges.tails, edges.heads)
        tails, heads, weights, n = edges.tails, edges.heads, edges.weights, edges.n
    else:
        given = coordinates(graph, semiring, weight, presence=False, listed=listed)
        assert given is not None
        tails, heads, n, labels = given.tails, given.heads, given.n, given.labels
        kept, weights = _apart(given, semiring, reading_of(semiring, reading))
        if isinstance(other, str) or (np.ndim(other) == 1 and not is_sparse(other)):
            other_listed = listed if isinstance(other, str) else with_values(listed, other)
            name = other if isinstance(other, str) else None
            rest = coordinates(graph, other_semiring, name, presence=False, listed=other_listed)
            assert rest is not None
            also, others = _apart(rest, other_semiring, Reading())
            kept, at, and_at = np.intersect1d(kept, also, assume_unique=True, return_indices=True)
            weights, others = tuple([w[at] for w in weights]), tuple([w[and_at] for w in others])
        else:
            others = reader(other, n, other_semiring)(tails[kept], heads[kept])
        tails, heads = tails[kept], heads[kept]
    zero, _ = semiring.identities([w.dtype for w in weights])
    other_zero, _ = other_semiring.identities([w.dtype for w in others])
    there = np.flatnonzero(present(others, other_zero))
    there = there[np.argsort(tails[there], kind="stable")]
    weights, others = (tuple([w[there] for w in each]) for each in (weights, others))
    return CSR.of(tails[there], heads[there], weights, n, zero), others, labels


def _apart(given: COO, semiring: Semiring, reading: Reading) -> tuple[Array, Values]:
    """Return the numbers of the edges that exist, and their elements; parallel edges are not combined."""
    each = np.arange(len(given.tails))
    found = given._replace(tails=each, heads=each, n=len(each)).csr(semiring, reading)
    return found.heads, found.weights
