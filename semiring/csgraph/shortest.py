"""SciPy's functions for shortest paths, with SciPy's signatures and conventions, and the new options `dtype` and `device`."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algorithms.predecessors import NONE
from semiring.algorithms.simple_paths import simple_paths
from semiring.common.docstrings import described_by
from semiring.common.errors import raised_here
from semiring.csgraph.reading import both_ways, in_dtype, read
from semiring.csgraph.solving import Request, as_both, read_call, solve
from semiring.execution.reporting import noting_the_bar
from semiring.planning import Plan

__all__ = ["bellman_ford", "dijkstra", "explain", "floyd_warshall", "johnson", "shortest_path", "yen"]


@raised_here
def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
    *,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Any:
    """Find shortest paths from all or some vertices: `scipy.sparse.csgraph.shortest_path` on all cores or a GPU.

    Examples
    --------
    >>> from semiring.csgraph import shortest_path
    >>> graph = [[0, 1, 5], [0, 0, 2], [0, 0, 0]]
    >>> lengths, before = shortest_path(graph, return_predecessors=True)
    >>> lengths
    array([[ 0.,  1.,  3.],
           [inf,  0.,  2.],
           [inf, inf,  0.]])
    >>> before
    array([[-9999,     0,     1],
           [-9999, -9999,     1],
           [-9999, -9999, -9999]], dtype=int32)

    Parameters
    ----------
    csgraph : array_like, masked array, sparse array or matrix of shape (n, n)
        Entry [i, j] is the weight of the edge from i to j. In a dense array 0, NaN and ±∞ are not edges; in a masked array masked, NaN
        and ±∞ entries. In a sparse array (also PyData's) stored entries are edges, 0 too; the lightest of parallel edges counts.
    method : {"auto", "FW", "D", "BF", "J"}
        SciPy's algorithm; only the conventions of the algorithm matter here. "FW" takes no `indices`, permits `overwrite`, and ignores
        negative loops.
    directed : bool
        False lets the lighter of two opposite edges go both ways.
    return_predecessors : bool
        Return the predecessors too.
    unweighted : bool
        Count edges instead of adding weights.
    overwrite : bool
        Write the result into a C-ordered dense matrix of the same dtype (only for "FW", the choice of "auto" for dense graphs).
    indices : int or array_like of int, optional
        The first vertices of the paths; negative numbers count from the end.

    Returns
    -------
    dist_matrix : array of shape (n, n), or the shape of `indices` and n
        The distances, ∞ without a path; on a GPU if the graph is on a GPU.
    predecessors : int32 array of the same shape
        With ``return_predecessors=True``: the vertex before j on a shortest path from i to j, −9999 on the diagonal and without a path.

    Other Parameters
    ----------------
    dtype : {float64, float32}
        The dtype of the distances and of the computation.
    device : {"auto", "cpu", "cuda", "cuda:0", …}
        "auto" takes the method with the least predicted time, which can be SciPy's own search (see `explain`).

    Raises
    ------
    NegativeCycleError
        If a path can meet a negative cycle; an error of SciPy's class and of `semiring.NegativeCycleError`.
    ValueError, TypeError
        If an argument is not valid; the algorithm "FW" takes no `indices`.
    TooLargeError
        If `device` requires a closure that does not fit; a MemoryError.

    Notes
    -----
    Differences from SciPy: How-to, Coming from SciPy.
    """
    return solve(csgraph, Request(method, directed, return_predecessors, unweighted, overwrite, indices, dtype=dtype, device=device))


@raised_here
@described_by(shortest_path)
def floyd_warshall(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    *,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Any:
    """Find shortest paths between all vertices: `shortest_path` with ``method="FW"``.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import floyd_warshall
    >>> tiny = np.array([[0, 1e-9], [0, 0]])  # SciPy ignores this edge
    >>> floyd_warshall(tiny)
    array([[0.e+00, 1.e-09],
           [   inf, 0.e+00]])

    Returns
    -------
    dist_matrix : array of shape (n, n)
        The distances, ∞ without a path; on a GPU if the graph is on a GPU.
    predecessors : int32 array of shape (n, n)
        As for `shortest_path`, with ``return_predecessors=True``.

    Raises
    ------
    NegativeCycleError
        As for `shortest_path`, but a negative loop is no error.
    ValueError, TypeError
        If an argument is not valid.
    TooLargeError
        If `device` requires a closure that does not fit; a MemoryError.
    """
    return solve(csgraph, Request("FW", directed, return_predecessors, unweighted, overwrite, dtype=dtype, device=device))


@raised_here
@described_by(shortest_path)
def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
    *,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Any:
    """Find shortest paths from some vertices, also up to a limit or from the nearest source: `shortest_path` with ``method="D"``.

    Examples
    --------
    >>> from semiring.csgraph import dijkstra
    >>> dijkstra([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=[0, -1], limit=2)
    array([[ 0.,  1., inf],
           [inf, inf,  0.]])

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As for `shortest_path`.
    limit : float
        The greatest distance; vertices farther away count as not connected. With negative weights a path may exceed the limit and return,
        so a predecessor can lie beyond the limit.
    min_only : bool
        Return only the distance of each vertex from the nearest of the `indices`, by one search of SciPy on any `device`.

    Returns
    -------
    dist_matrix : array of the shape of `indices` and n; of shape (n,) with ``min_only=True``
    predecessors : int32 array of the same shape
    sources : int32 array of shape (n,)
        With ``min_only=True`` and ``return_predecessors=True``: the nearest source of each vertex, −9999 for none.

    Raises
    ------
    NegativeCycleError, ValueError, TypeError, TooLargeError
        As for `shortest_path`; ValueError also if the limit is negative or NaN.

    Notes
    -----
    Negative weights cause a warning, as in SciPy, but the distances are right.
    """
    request = Request("D", directed, return_predecessors, unweighted, False, indices, limit, min_only, dtype, device)
    return solve(csgraph, request)


@raised_here
@described_by(shortest_path)
def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Any:
    """Find shortest paths with weights that may be negative: `shortest_path` with ``method="BF"``.

    Examples
    --------
    >>> from semiring.csgraph import bellman_ford
    >>> bellman_ford([[0, 4, 2], [0, 0, 0], [0, -3, 0]], indices=0)
    array([ 0., -1.,  2.])

    Notes
    -----
    SciPy relaxes every edge n times for each source; here the method is the same as for `shortest_path`.
    """
    return solve(csgraph, Request("BF", directed, return_predecessors, unweighted, indices=indices, dtype=dtype, device=device))


@raised_here
@described_by(shortest_path)
def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Any:
    """Find shortest paths with weights that may be negative: `shortest_path` with ``method="J"``.

    Examples
    --------
    >>> from semiring.csgraph import johnson
    >>> johnson([[0, 4, 2], [0, 0, 0], [0, -3, 0]], indices=0)
    array([ 0., -1.,  2.])
    """
    return solve(csgraph, Request("J", directed, return_predecessors, unweighted, indices=indices, dtype=dtype, device=device))


@raised_here
@described_by(shortest_path)
def yen(
    csgraph: Any,
    source: int,
    sink: int,
    K: int,
    *,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Find the K shortest simple paths between two vertices: `scipy.sparse.csgraph.yen`.

    Examples
    --------
    >>> from semiring.csgraph import yen
    >>> yen([[0, 1, 5], [0, 0, 2], [0, 0, 0]], 0, 2, 3)
    array([3., 5.])

    Parameters
    ----------
    csgraph, directed, return_predecessors, unweighted
        As for `shortest_path`.
    source, sink : int
        The first and the last vertex of the paths.
    K : int
        The number of paths.

    Returns
    -------
    dist_array : float64 array of shape (k,)
        The lengths of the paths, ascending; k < K if fewer paths exist.
    predecessors : int32 array of shape (k, n)
        With ``return_predecessors=True``: for each path, the vertex before each of its vertices, −9999 for all others.

    Raises
    ------
    NegativeCycleError
        If a path from the source meets a negative cycle, or a negative cycle leads to the sink.
    ValueError
        If source or sink is not a vertex, or K is less than 1 (with K=0, SciPy 1.17 writes beyond its arrays).
    """
    if K < 1:
        raise ValueError(f"K, the number of paths, must be at least 1, not {K}")
    graph = read(csgraph)
    if not (0 <= source < graph.n and 0 <= sink < graph.n):
        raise ValueError(f"source and sink must have 0 <= vertex < {graph.n}, not {source} and {sink}")
    if graph.negative and not unweighted:
        bellman_ford(csgraph, directed, [source])  # raises NegativeCycleError like SciPy's yen
    csr = in_dtype((graph.unweighted(infinite=True) if unweighted else graph).csr, np.dtype(np.float64))
    with as_both():
        found = list(simple_paths(csr if directed else both_ways(csr), source, sink, K))
    lengths = np.array([length for length, _ in found])
    if not return_predecessors:
        return lengths
    before = np.full((len(found), graph.n), NONE, np.int32)
    for row, (_, path) in zip(before, found, strict=True):
        row[path[1:]] = path[:-1]
    return lengths, before


@raised_here
def explain(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
    *,
    limit: float = np.inf,
    min_only: bool = False,
    dtype: Any = np.float64,
    device: Any = "auto",
) -> Plan:
    """Return the plan of a call with these arguments (a closure or searches, by this library or SciPy), without computing.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring import csgraph
    >>> csgraph.explain(np.ones((2000, 2000))).strategy
    'whole'
    >>> csgraph.explain(np.ones((2000, 2000)), indices=0, device="cpu").strategy
    'rows by products'

    Parameters
    ----------
    csgraph, method, directed, return_predecessors, unweighted, overwrite, indices : as of the call
        See `shortest_path`; "FW", "D", "BF" and "J" stand for `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson`.

    Returns
    -------
    Plan
        A plan that prints as text. ``strategy`` is "whole" (closure of the whole matrix), "rows by products" (rows times the matrix),
        "search" (searches of this library), "elimination" (sparse) or "SciPy". ``considered`` lists the predicted times.

    Other Parameters
    ----------------
    limit, min_only
        As for `dijkstra`.
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    ValueError, TypeError
        As for `shortest_path`, except for errors that only the computation finds.
    """
    request = Request(method, directed, return_predecessors, unweighted, overwrite, indices, limit, min_only, dtype, device)
    return noting_the_bar(read_call(csgraph, request).plan)
