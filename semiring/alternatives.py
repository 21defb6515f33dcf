"""`k_shortest_paths`: the k shortest simple paths between two vertices."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.simple_paths import simple_paths
from semiring.arrays.threads import require_threads
from semiring.common.errors import GraphError, described_by, noted, raised_here
from semiring.graphs.read import one_graph
from semiring.graphs.vertices import chosen
from semiring.solve import apsp

__all__ = ["SimplePath", "k_shortest_paths"]


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

    Other Parameters
    ----------------
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.

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
        ends = [_one(vertex, edges.n, labels, what) for vertex, what in ((source, "source"), (target, "target"))]
        names: Any = int if labels is None else labels.__getitem__
        found = list(simple_paths(edges, ends[0], ends[1], int(k), name=names, threads=threads)) if k else []
    return [SimplePath(length, [names(v) for v in path]) for length, path in found]


def _one(vertex: Any, n: int, labels: Any, what: str) -> int:
    found = chosen(vertex, n, labels, what)
    if vertex is None or not found.single:
        raise GraphError(f"{what} must be one vertex, not {vertex!r}")
    return int(found.numbers[0])
