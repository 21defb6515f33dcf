"""Distances by hop counts, where all edges are equally long: what those of all pairs come to, counted without a row of them.

A path of k edges of length w is k·w long, so that distances are known by how many pairs are so many hops apart, and those of a vertex by
their sum and the greatest of them. Breadth-first searches from many vertices at once count these, a bit for each vertex
(`semiring.kernels.cpu.hops`), along the reversed edges, so that what each vertex counts are its own distances to all others.

Examples
--------
>>> tails, heads = np.array([0, 1, 2, 1]), np.array([1, 2, 0, 0])
>>> edges = CSR.of(tails, heads, (np.full(4, 2.0),), 4, (np.inf,))
>>> found = distance_sums(edges)
>>> found.connected, found.totals, found.farthest, found.distances, found.counts
(array([2, 2, 2, 0]), array([6., 4., 6., 0.]), array([4., 2., 4., 0.]), array([2., 4.]), array([4, 2]))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import search_order
from semiring.arrays.threads import thread_count
from semiring.common.progress import Meter
from semiring.kernels.cpu.hops import hop_sums
from semiring.kernels.limits import half_range

__all__ = ["DistanceSums", "distance_sums"]

Array = np.ndarray[Any, Any]


class DistanceSums(NamedTuple):
    """What the distances between different vertices come to.

    Attributes
    ----------
    connected : int array of shape (n,)
        How many others each vertex reaches.
    totals, farthest : float64 array of shape (n,)
        The sum of the distances to these, and the greatest of them, 0 where there is none.
    distances : float64 array of shape (k,)
    counts : int array of shape (k,)
        How many pairs are so far apart.
    """

    connected: Array
    totals: Array
    farthest: Array
    distances: Array
    counts: Array


def distance_sums(edges: CSR, *, threads: int | None = None, meter: Meter | None = None) -> DistanceSums | None:
    """What the distances of all pairs come to where all edges are equally long; None where they are not, or rounding plays a part.

    Nothing is rounded where k·w is exact for each number k of hops, and so are the sums of distances in float64, in any order.

    Parameters
    ----------
    edges : CSR
    threads : int, optional
    meter : Meter, optional
        Told of n + m steps for each search that is done.
    """
    m = len(edges.heads)
    if not m or edges.dtypes[0].kind == "O" or search_order(MIN_PLUS, edges) != "levels" or not _is_exact(edges.weights[0][0], 1, m):
        return None
    graph = edges.transposed()
    found = hop_sums((graph.starts, graph.heads), np.arange(edges.n), thread_count(threads), meter=meter)
    if found is None or not _is_exact(edges.weights[0][0], len(found.found), int(found.total.sum())):
        return None
    length = float(edges.weights[0][0])
    return DistanceSums(
        found.reaching - 1,
        found.total * length,
        found.last * length,
        np.arange(1, len(found.found)) * length,
        found.found[1:],
    )


def _is_exact(length: Any, hops: int, total: int) -> bool:
    """Whether so many hops of a length are exact in its dtype, and a sum of so many hops in float64."""
    dtype, whole = length.dtype, length.item().as_integer_ratio()[0]
    bits = np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 63
    return bool(hops * whole <= 1 << bits and hops * length.item() < half_range(dtype) and total * whole <= 1 << 53)
