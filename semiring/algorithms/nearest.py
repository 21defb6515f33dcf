"""The nearest of several sources for each vertex of a sparse graph, or the k nearest, by one search from all sources together.

One best element for each vertex is a row of the closure: a further vertex has an edge of element 1 to each source. The k best elements come
from a best-first search whose queue has an entry for each source and vertex. The first k of different sources are final, if no edge
improves on 1. Otherwise the best of all rows are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import better, filled
from semiring.algorithms.csr import CSR, present
from semiring.algorithms.heap import pop, push
from semiring.algorithms.predecessors import roots_of
from semiring.algorithms.rows_of_edges import rows_of_edges, search_order
from semiring.algorithms.search import Edges, Queue, Searches
from semiring.arrays.conversion import Array, Values
from semiring.kernels.cpu.loops import Elements, Ints, ShortInts, loop
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of

__all__ = ["NearestSources", "nearest_sources"]


class NearestSources(NamedTuple):
    """The elements from the nearest sources, in order of preference.

    Attributes
    ----------
    values : tuple of arrays of shape (n, k)
    sources : int32 array of shape (n, k)
        Numbers of vertices; −1 where fewer sources reach the vertex.
    tree : int32 array of shape (n, k)
        The vertex before on the path from this source; −1 for none.
    rows : dict of int32 arrays of shape (n,), optional
        The whole tree of each source. If elements tie, the vertex before may have other sources among its k.
    """

    values: Values
    sources: Array
    tree: Array
    rows: dict[int, Array] | None = None

    def path(self, vertex: int, rank: int = 0) -> list[int]:
        """Return the vertices of the path from a source; empty if fewer sources reach the vertex."""
        source, path = self.sources[vertex, rank], [vertex]
        if source < 0:
            return []
        while (before := int(self.tree[path[-1], rank] if self.rows is None else self.rows[source][path[-1]])) >= 0:
            path.append(before)
            if self.rows is None:
                rank = int(np.flatnonzero(self.sources[before] == source)[0])
        return path[::-1]


def nearest_sources(
    semiring: Semiring, edges: CSR, sources: Array, k: int, searches: Searches | None, name: Callable[[int], Any] = int
) -> NearestSources:
    """Find the k sources with the best elements for each vertex; ⊕ is selective, and the sources are different vertices.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> from semiring.algorithms.search import searches_for
    >>> line = CSR.of(np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1]), (np.array([1.0, 1.0, 5.0, 5.0]),), 3, (np.inf,))
    >>> found = nearest_sources(MIN_PLUS, line, np.array([0, 2]), 2, searches_for(MIN_PLUS, line.dtypes, "cpu"))
    >>> found.values[0].tolist(), found.sources.tolist()
    ([[0.0, 6.0], [1.0, 5.0], [0.0, 6.0]], [[0, 2], [0, 2], [2, 0]])
    >>> found.path(0, 1)
    [2, 1, 0]

    Notes
    -----
    O(m log m) steps for each of the k, if no edge improves on 1; memory for k·m entries of a queue.
    """
    if k == 1:
        return _one(semiring, edges, sources, searches, name)
    if searches is None or search_order(semiring, edges) == "rounds":
        return _best_of_rows(semiring, edges, sources, k, searches, name)
    guard = guard_for(semiring, edges.dtypes, edges.n - 1)
    guard.before(edges.statistics or statistics_of(semiring, edges.weights))
    n, m, graph = edges.n, len(edges.heads), Edges.of((edges.starts, edges.heads, edges.weights))
    values = tuple([filled((n, k), z, d) for z, d in zip(edges.zero, edges.dtypes, strict=True)])
    places, tree = np.full((n, k), -1, np.int32), np.full((n, k), -1, np.int32)
    queue, flat = Queue.of(graph, k * m + len(sources)), tuple([v.reshape(-1) for v in values])
    tails, given = edges.tails.astype(np.int32), np.ascontiguousarray(sources, np.int64)
    counts, args = np.zeros(n, np.int32), (len(sources), given, graph, tails, queue)
    search_nearest.bind(n, m, k, *args, counts, places.reshape(-1), tree.reshape(-1), flat, semiring=searches.operations)(40 * k * (n + m))
    guard.after(values, None)
    return NearestSources(values, np.where(places < 0, -1, given[places]).astype(np.int32), tree)


@loop
def search_nearest(
    n: int,
    m: int,
    k: int,
    count: int,
    sources: Ints,
    edges: Edges,
    tails: ShortInts,
    queue: Queue,
    counts: ShortInts,
    places: ShortInts,
    tree: ShortInts,
    values: Elements,
    *,
    semiring: Any,
) -> None:
    """Search best-first from all sources, and keep the first k entries of different sources for each vertex, at k·v, k·v + 1, ….

    An entry of the queue is a source's place and the last edge, as one number; m + v stands for the empty walk to v.
    """
    size, vertices, walks = 0, queue.vertices, queue.walks
    for s in range(count):
        size = push(vertices, walks, size, s * (m + n) + m + sources[s], semiring.one, before=semiring.better)
    while size > 0:
        entry, walk = vertices[0], walks[0]
        size = pop(vertices, walks, size, before=semiring.better)
        s, last = entry // (m + n), entry % (m + n)
        v, before = last - m, -1
        if last < m:
            v, before = edges.heads[last], int(tails[last])
        place, end = k * v, k * v + int(counts[v])
        while place < end and places[place] != s:
            place += 1
        if place == end and end < k * v + k:
            places[place] = s
            tree[place] = before
            values[place] = walk
            counts[v] += 1
            for e in range(edges.starts[v], edges.starts[v + 1]):
                if counts[edges.heads[e]] < k:
                    offer = semiring.mul(walk, edges.weights[e])
                    if semiring.improves(offer, semiring.zero):
                        size = push(vertices, walks, size, s * (m + n) + e, offer, before=semiring.better)


def _one(semiring: Semiring, edges: CSR, sources: Array, searches: Searches | None, name: Callable[[int], Any]) -> NearestSources:
    """Find the nearest source by a row of the graph with one more vertex, which has an edge to each source."""
    n, m = edges.n, len(edges.heads)
    one = operations_for(semiring, edges.dtypes).one
    weights = tuple([np.append(w, filled(len(sources), o, w.dtype)) for w, o in zip(edges.weights, one, strict=True)])
    graph = CSR(n + 1, np.append(edges.starts, m + len(sources)), np.append(edges.heads, np.sort(sources)), weights, edges.zero)
    tree = np.full((1, n + 1), -1, np.int32)
    rows = rows_of_edges(semiring, graph, np.array([n]), tree=tree, name=name, searches=searches)
    tree[0, n] = n
    roots = tree.copy()
    roots[tree == n] = -1
    nearest = np.where(tree < 0, -1, roots_of(roots)).astype(np.int32)
    return NearestSources(tuple([v[0, :n, None] for v in rows]), nearest[0, :n, None], roots[0, :n, None])


def _best_of_rows(
    semiring: Semiring, edges: CSR, sources: Array, k: int, searches: Searches | None, name: Callable[[int], Any]
) -> NearestSources:
    """Find the rows of all sources, and take the best entries of each column in turn."""
    count, n = len(sources), edges.n
    trees = np.full((count, n), -1, np.int32)
    rows = rows_of_edges(semiring, edges, sources, tree=trees, name=name, searches=searches)
    operations, every = operations_for(semiring, edges.dtypes), np.arange(n)
    values = tuple([filled((n, k), z, d) for z, d in zip(edges.zero, edges.dtypes, strict=True)])
    nearest, tree = np.full((n, k), -1, np.int32), np.full((n, k), -1, np.int32)
    for rank in range(min(k, count)):
        best: Any = (*(v[0] for v in rows), np.zeros(n, np.intp))
        for s in range(1, count):
            best = better(operations, best, (*(v[s] for v in rows), np.full(n, s)))
        *elements, who = best
        there = present(tuple(elements), edges.zero)
        nearest[there, rank], tree[there, rank] = sources[who[there]], trees[who[there], every[there]]
        for v, found, row, z in zip(values, elements, rows, edges.zero, strict=True):
            v[:, rank] = found
            row[who, every] = z
    return NearestSources(values, nearest, tree, dict(zip(sources.tolist(), trees, strict=True)))
