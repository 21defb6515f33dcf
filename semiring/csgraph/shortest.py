"""SciPy's functions for shortest paths, with its signatures and conventions; `dtype` and `device` are ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.common.docstrings import described_by
from semiring.common.errors import raised_here
from semiring.csgraph.call import Request, read_call
from semiring.csgraph.solving import solve
from semiring.execution.reporting import noting_the_bar
from semiring.planning import Plan

__all__ = ["bellman_ford", "dijkstra", "explain", "floyd_warshall", "johnson", "shortest_path"]


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
    """Find shortest paths between all vertices or from some, as `scipy.sparse.csgraph.shortest_path`, often faster.

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
        The weight of the edge from i to j at [i, j]. Dense: 0, NaN and ±∞ are no edges. Masked: masked entries are no edges, and 0 is an
        edge. Sparse, also PyData's: stored entries are edges, 0 too, and the lightest of parallel edges in CSR and CSC counts.
    method : {"auto", "FW", "D", "BF", "J"}
        SciPy's name of an algorithm, which selects only conventions here: "FW" takes no `indices`, permits `overwrite` and ignores
        negative edges from a vertex to itself.
    directed : bool
        False makes each edge go both ways; the lighter one of two opposite edges counts.
    return_predecessors : bool
        Return the predecessors too.
    unweighted : bool
        Count edges instead of adding weights.
    overwrite : bool
        Write the result into a C-ordered dense matrix of the same dtype ("FW" only, which "auto" takes for dense graphs).
    indices : int or array_like of int, optional
        The vertices that paths begin at; negative ones count from the end.

    Returns
    -------
    dist_matrix : array of shape (n, n), or the shape of `indices` and n
        Distances, ∞ without a path; on the GPU of the graph, if any.
    predecessors : int32 array of the same shape
        With ``return_predecessors=True``: the vertex before j on a shortest path from i to j, −9999 on the diagonal and without a path.

    Other Parameters
    ----------------
    dtype : {float64, float32}
        The dtype of distances and computation.
    device : {"auto", "cpu", "cuda", "cuda:0", …}
        "auto" takes the predicted fastest, among them SciPy's own searches; see `explain`.

    Raises
    ------
    NegativeCycleError
        SciPy's class and `semiring.NegativeCycleError` in one. With `indices` only for cycles within reach.
    ValueError, TypeError
        For a bad graph, method or dtype, and indices out of range or with "FW".
    TooLargeError
        A MemoryError, if `device` asks for a closure that does not fit.

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
    """Shortest paths between all vertices: `shortest_path` with ``method="FW"``.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import floyd_warshall
    >>> tiny = np.array([[0, 1e-9], [0, 0]])  # no edge to SciPy
    >>> floyd_warshall(tiny)
    array([[0.e+00, 1.e-09],
           [   inf, 0.e+00]])

    Parameters
    ----------
    csgraph, directed, return_predecessors, unweighted, overwrite
        As for `shortest_path`.

    Returns
    -------
    dist_matrix, predecessors
        As of `shortest_path`.

    Other Parameters
    ----------------
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    NegativeCycleError, ValueError, TypeError, TooLargeError
        As `shortest_path`; a negative edge from a vertex to itself is no error here.
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
    """Find shortest paths from some vertices, up to a limit, or from the nearest one only: `shortest_path` with ``method="D"``.

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
        Vertices beyond the limit count as not connected. With negative weights a path may leave the limit and come back: a vertex within
        can have a predecessor beyond.
    min_only : bool
        Return only the distance of each vertex from the nearest of the `indices`. SciPy's search does this on every `device`.

    Returns
    -------
    dist_matrix : array of the shape of `indices` and n; of shape (n,) with ``min_only=True``
    predecessors : int32 array of the same shape
    sources : int32 array of shape (n,)
        With ``min_only=True`` and ``return_predecessors=True``: the nearest source of each vertex, −9999 for none.

    Other Parameters
    ----------------
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    NegativeCycleError, ValueError, TypeError, TooLargeError
        As `shortest_path`; ValueError also for a negative limit, and for NaN.

    Notes
    -----
    Negative weights give a warning, as in SciPy, but the right distances.
    """
    return solve(
        csgraph,
        Request(
            "D", directed, return_predecessors, unweighted, indices=indices, limit=limit, min_only=min_only, dtype=dtype, device=device
        ),
    )


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
    """Shortest paths with weights that may be negative: `shortest_path` with ``method="BF"``.

    Examples
    --------
    >>> from semiring.csgraph import bellman_ford
    >>> bellman_ford([[0, 4, 2], [0, 0, 0], [0, -3, 0]], indices=0)
    array([ 0., -1.,  2.])

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As for `shortest_path`.

    Returns
    -------
    dist_matrix, predecessors
        As of `shortest_path`.

    Other Parameters
    ----------------
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    NegativeCycleError, ValueError, TypeError, TooLargeError
        As `shortest_path`.

    Notes
    -----
    SciPy's relaxes every edge n times for each source. Here it is whatever `shortest_path` is.
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
    """Shortest paths with weights that may be negative: `shortest_path` with ``method="J"``.

    Examples
    --------
    >>> from semiring.csgraph import johnson
    >>> johnson([[0, 4, 2], [0, 0, 0], [0, -3, 0]], indices=0)
    array([ 0., -1.,  2.])

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As for `shortest_path`.

    Returns
    -------
    dist_matrix, predecessors
        As of `shortest_path`.

    Other Parameters
    ----------------
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    NegativeCycleError, ValueError, TypeError, TooLargeError
        As `shortest_path`.
    """
    return solve(csgraph, Request("J", directed, return_predecessors, unweighted, indices=indices, dtype=dtype, device=device))


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
    """Return the plan of a call with these arguments: a closure or searches, by this library or by SciPy. Nothing is computed.

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
        ``strategy`` is "whole" for the closure of the whole matrix, "rows by products" for products of rows with the matrix, "search" for
        the searches of this library, "elimination", or "SciPy" for SciPy's searches. ``considered`` has predicted seconds of each.

    Other Parameters
    ----------------
    limit, min_only
        As for `dijkstra`.
    dtype, device
        As for `shortest_path`.

    Raises
    ------
    ValueError, TypeError
        As `shortest_path`, without errors of the computation.
    """
    request = Request(method, directed, return_predecessors, unweighted, overwrite, indices, limit, min_only, dtype=dtype, device=device)
    return noting_the_bar(read_call(csgraph, request).plan)
