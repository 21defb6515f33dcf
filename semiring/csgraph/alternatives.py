"""SciPy's function for the shortest simple paths between two vertices, with its signature and conventions."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algorithms.predecessors import NONE
from semiring.algorithms.simple_paths import simple_paths
from semiring.common.docstrings import described_by
from semiring.common.errors import raised_here
from semiring.csgraph.call import AsBoth
from semiring.csgraph.reading import both_ways, in_dtype, read
from semiring.csgraph.shortest import bellman_ford, shortest_path

__all__ = ["yen"]


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
    """The K shortest simple paths between two vertices, as `scipy.sparse.csgraph.yen`.

    Examples
    --------
    >>> from semiring.csgraph import yen
    >>> yen([[0, 1, 5], [0, 0, 2], [0, 0, 0]], 0, 2, 3)
    array([3., 5.])

    Parameters
    ----------
    csgraph
        As for `shortest_path`.
    source, sink : int
        Where the paths begin and end.
    K : int
        How many paths are wanted.
    directed, return_predecessors, unweighted
        As for `shortest_path`.

    Returns
    -------
    dist_array : float64 array of shape (k,)
        The lengths of the paths, ascending; k < K where there are no more.
    predecessors : int32 array of shape (k, n)
        With ``return_predecessors=True``: for each path, the vertex before each of its vertices, −9999 for all others.

    Raises
    ------
    NegativeCycleError
        Where a path from the source meets a negative cycle, or one leads to the sink.
    ValueError
        Where source or sink is no vertex, or K is less than 1: with K=0 SciPy 1.17 writes beyond its arrays.
    """
    if K < 1:
        raise ValueError(f"K is how many paths are wanted, at least 1, not {K}")
    graph = read(csgraph)
    if not (0 <= source < graph.n and 0 <= sink < graph.n):
        raise ValueError(f"source and sink must have 0 <= vertex < {graph.n}, and are {source} and {sink}")
    if graph.negative and not unweighted:
        bellman_ford(csgraph, directed, [source])  # Bellman–Ford reports a negative cycle, as SciPy's yen does
    csr = in_dtype((graph.unweighted(infinite=True) if unweighted else graph).csr, np.dtype(np.float64))
    with AsBoth():
        found = list(simple_paths(csr if directed else both_ways(csr), source, sink, K))
    lengths = np.array([length for length, _ in found])
    if not return_predecessors:
        return lengths
    before = np.full((len(found), graph.n), NONE, np.int32)
    for row, (_, path) in zip(before, found, strict=True):
        row[path[1:]] = path[:-1]
    return lengths, before
