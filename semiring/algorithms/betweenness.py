"""Betweenness: which share of all shortest paths leads through each vertex, and along each edge, by Brandes's algorithm (2001).

A search from each source counts the shortest paths σ to each vertex as float64; then its vertices, farthest first, pass their
dependencies back. The dependency of a source on u is δ_u = Σ σ_u (worth_v + δ_v) / σ_v, summed over the edges u → v of shortest paths.
Paths tie if their float64 lengths, summed from the source, are equal.

Sources are cut into blocks, the same for any number of threads, and the sums of blocks are added in order: results do not depend on the
threads.

Examples
--------
>>> starts, heads = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32)
>>> betweenness(Searched(starts, heads), np.arange(3))[0]  # 0 – 1 – 2: both ways
array([0., 2., 0.])
"""

from __future__ import annotations

import threading
from typing import Annotated, Any, NamedTuple

import numpy as np

from semiring.algorithms.heap import pop, push
from semiring.arrays.conversion import Array
from semiring.arrays.threads import run, thread_count
from semiring.kernels.cpu.loops import Bound, Element, Elements, Floats, Ints, ShortInts, loop

__all__ = ["Searched", "betweenness", "dependencies"]

_BLOCKS = 64
"""Blocks of sources, at most."""

_LEVEL = np.dtype([("paths", np.float64), ("level", np.int64)])
"""The breadth-first record of a vertex: σ, later replaced by (worth + δ) / σ, and the level, −1 until found."""

_Levels = Annotated[Any, _LEVEL]

_LENGTH = np.dtype(
    [("paths", np.float64), ("distance", np.float64), ("share", np.float64), ("before", np.int32), ("edge", np.int32), ("found", np.int64)]
)
"""The best-first record of a vertex: σ, distance, δ, the first predecessor, the last edge of a linked list (−1: none), and the state."""

_Lengths = Annotated[Any, _LENGTH]

_ENTRY = np.dtype([("distance", np.float64), ("paths", np.float64), ("share", np.float64)])
"""The entry of a source and a chosen vertex: the distance, σ (twice σ if best-first), and the dependency δ."""

_Entries = Annotated[Any, _ENTRY]

_NEW, _SEEN, _FINAL = range(3)
"""The states of a vertex, best-first: unknown, reached by some path, or final."""


class Searched(NamedTuple):
    """A graph in compressed rows: int64 starts, int32 heads in any order within a row, and non-negative float64 weights or None."""

    starts: Array
    heads: Array
    weights: Array | None = None


class _Shares(NamedTuple):
    """The sums over some sources, and what they count; `edges` is None if no sums of edges are wanted."""

    nodes: Floats
    edges: Floats | None
    worth: Floats  # the value of a path to each vertex
    own: bool  # a path from a source to itself has the value too
    ends: bool  # a path counts for both ends
    place: Ints  # the column of a vertex in the table, −1 for none
    table: _Entries | None = None  # an entry for each source and chosen vertex
    width: int = 0  # columns of the table


def betweenness(
    graph: Searched, sources: Array, *, worth: Array | None = None, ends: bool = False, edges: bool = False, threads: int | None = None
) -> tuple[Array, Array]:
    """Sum, for each vertex and each edge, its share of the shortest paths from some sources; the paths of a pair share 1.

    Parameters
    ----------
    graph : Searched
    sources : int64 array
    worth : float64 array of shape (n,), optional
        Value of the paths to each vertex, instead of 1; the path from a source to itself counts nothing.
    ends : bool
        Count a path for its end vertices too.
    edges : bool
        Fill the second array, which is empty otherwise.
    threads : int, optional

    Returns
    -------
    nodes : float64 array of shape (n,)
    edges : float64 array of shape (m,)
    """
    n, m = len(graph.starts) - 1, len(graph.heads)
    worths, none = np.ones(n) if worth is None else worth, np.empty(0, np.int64)
    total = _Shares(np.zeros(n), np.zeros(m) if edges else None, worths, worth is None, ends, none)
    _add(graph, sources, total, threads)
    return total.nodes, np.empty(0) if total.edges is None else total.edges


def dependencies(graph: Searched, chosen: Array, *, threads: int | None = None) -> tuple[Array, Array, Array]:
    """Find distances, numbers of shortest paths, and dependencies of all vertices on some chosen ones, as arrays of shape (n, k).

    Examples
    --------
    >>> graph = Searched(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32))
    >>> [found[:, 0] for found in dependencies(graph, np.array([1]))]
    [array([1., 0., 1.]), array([1., 1., 1.]), array([1., 2., 1.])]

    Parameters
    ----------
    graph : Searched
    chosen : int64 array of shape (k,)
        Different vertices.
    threads : int, optional
    """
    n = len(graph.starts) - 1
    place, table = np.full(n, -1), np.zeros(n * len(chosen), _ENTRY)
    place[chosen], table["distance"] = np.arange(len(chosen)), np.inf
    _add(graph, np.arange(n), _Shares(np.zeros(n), None, np.ones(n), True, False, place, table, len(chosen)), threads)
    found = table.reshape(n, len(chosen))
    return found["distance"], found["paths"] * (1.0 if graph.weights is None else 0.5), found["share"]


def _add(graph: Searched, sources: Array, total: _Shares, threads: int | None) -> None:
    """Add the shares of all sources to a total, and fill its table."""
    n, m = len(graph.starts) - 1, len(graph.heads)
    tails = None if graph.weights is None else np.arange(n, dtype=np.int32).repeat(np.diff(graph.starts))
    step = max(1, -(-len(sources) // _BLOCKS))
    firsts = range(0, len(sources), step)
    ready, lock = dict[int, _Shares](), threading.Lock()
    added, free = 0, list[Bound[None]]()

    def work(first: int, worker: int) -> None:
        nonlocal added
        with lock:
            search = free.pop() if free else None
        search = search or _search(graph, tails, sources, total)
        found = total._replace(nodes=np.zeros(n), edges=None if total.edges is None else np.zeros(m))
        search(40 * (n + m) * step, first=first, last=min(first + step, len(sources)), sums=found)
        with lock:
            free.append(search)
            ready[first] = found
            while added in ready:
                part = ready.pop(added)
                np.add(total.nodes, part.nodes, out=total.nodes)
                if total.edges is not None and part.edges is not None:
                    np.add(total.edges, part.edges, out=total.edges)
                added += step

    run(work, firsts, thread_count(threads))


def _search(graph: Searched, tails: Array | None, sources: Array, sums: _Shares) -> Bound[None]:
    """Return a search with memory for one thread."""
    (starts, heads, weights), n, m = graph, len(graph.starts) - 1, len(graph.heads)
    order = np.empty(n, np.int32)
    if weights is None or tails is None:
        return _add_by_levels.bind(n, starts, heads, sources, 0, 0, sums, np.empty(n, _LEVEL), order)
    queue, keys = np.empty(m + 1, np.int64), (np.empty(m + 1), np.empty(m + 1, np.int64))
    records, links = np.empty(n, _LENGTH), np.empty(m, np.int32)
    return _add_by_lengths.bind(n, starts, heads, tails, weights, sources, 0, 0, sums, records, order, links, queue, keys)


@loop
def _add_by_levels(
    n: int, starts: Ints, heads: ShortInts, sources: Ints, first: int, last: int, sums: _Shares, records: _Levels, order: ShortInts
) -> None:
    """Add the shares of some sources, found breadth-first: an edge of shortest paths leads one level further."""
    for i in range(first, last):
        s = sources[i]
        for v in range(n):
            records.level[v] = -1
        records.level[s], records.paths[s], order[0] = 0, 1.0, s
        place, found = 0, 1
        while place < found:
            u = order[place]
            place += 1
            paths, further = records.paths[u], records.level[u] + 1
            for e in range(starts[u], starts[u + 1]):
                v = heads[e]
                level = records.level[v]
                if level < 0:
                    records.level[v], records.paths[v], order[found] = further, paths, v
                    found += 1
                elif level == further:
                    records.paths[v] += paths
        _add_ends(sums, s, found - 1)
        for place in range(found - 1, -1, -1):
            u = order[place]
            paths, further, share = records.paths[u], records.level[u] + 1, 0.0
            for e in range(starts[u], starts[u + 1]):
                v = heads[e]
                onward, part = records.level[v] == further, paths * records.paths[v]
                if onward:
                    _add_edge(sums, e, part)
                share += part if onward else 0.0
            records.paths[u] = (_worth(sums, s, u) + share) / paths
            _add_vertex(sums, s, u, share)
            _keep(sums, i, u, float(further - 1), paths, share)


@loop
def _add_by_lengths(
    n: int, starts: Ints, heads: ShortInts, tails: ShortInts, weights: Floats, sources: Ints, first: int, last: int, sums: _Shares,
    records: _Lengths, order: ShortInts, links: ShortInts, queue: Ints, keys: Elements,
) -> None:  # fmt: skip
    """Add the shares of some sources, found best-first, with the edges of shortest paths in NetworkX's order, ties included.

    So an edge of weight 0 counts for a vertex found before, even if that vertex has already passed its paths on.
    """
    for i in range(first, last):
        s = sources[i]
        for v in range(n):
            records.found[v], records.edge[v], records.paths[v], records.share[v] = _NEW, -1, 0.0, 0.0
        records.found[s], records.paths[s], records.distance[s], records.before[s] = _SEEN, 1.0, 0.0, s
        size, pushed, found = push(queue, keys, 0, s, (0.0, 0), before=_before), 1, 0
        while size > 0:
            u, walk = queue[0], float(keys[0][0])
            size = pop(queue, keys, size, before=_before)
            if records.found[u] == _FINAL:
                continue
            records.found[u] = _FINAL
            records.paths[u] += records.paths[records.before[u]]
            order[found] = u
            found += 1
            for e in range(starts[u], starts[u + 1]):
                v = heads[e]
                state, known, distance = records.found[v], records.distance[v], walk + weights[e]
                if state == _NEW or (state == _SEEN and distance < known):
                    records.found[v], records.distance[v], records.paths[v] = _SEEN, distance, 0.0
                    records.before[v], records.edge[v], links[e] = u, e, -1
                    size = push(queue, keys, size, v, (distance, pushed), before=_before)
                    pushed += 1
                elif distance == known:
                    records.paths[v] += records.paths[u]
                    records.edge[v], links[e] = e, records.edge[v]
        _add_ends(sums, s, found - 1)
        for place in range(found - 1, -1, -1):
            v = order[place]
            each = (_worth(sums, s, v) + records.share[v]) / records.paths[v]
            e = records.edge[v]
            while e >= 0:
                u = tails[e]
                part = records.paths[u] * each
                records.share[u] += part
                _add_edge(sums, e, part)
                e = int(links[e])
            _add_vertex(sums, s, v, records.share[v])  # a loop of weight 0 has handed it on to itself
            _keep(sums, i, v, records.distance[v], records.paths[v], records.share[v])


@loop
def _before(x: Element, y: Element) -> bool:
    """Compare entries by distance, then by number."""
    (distance, number), (other, rival) = x, y
    return bool(distance < other or (distance == other and number < rival))


@loop
def _worth(sums: _Shares, s: int, v: int) -> float:
    """Return the value of a path from s to v."""
    value = float(sums.worth[v])
    return 0.0 if s == v and not sums.own else value


@loop
def _add_ends(sums: _Shares, s: int, others: int) -> None:
    """Count the paths from s to others for their first vertex."""
    if sums.ends:
        sums.nodes[s] += float(others)


@loop
def _add_vertex(sums: _Shares, s: int, v: int, share: float) -> None:
    """Add the share of the paths from s through v."""
    if v != s:
        sums.nodes[v] += share + float(sums.ends)


@loop
def _keep(sums: _Shares, i: int, v: int, distance: float, paths: float, share: float) -> None:
    """Write what source number i finds at a chosen vertex."""
    if sums.table is not None:
        column = sums.place[v]
        if column >= 0:
            at = i * sums.width + column
            sums.table.distance[at], sums.table.paths[at], sums.table.share[at] = distance, paths, share


@loop
def _add_edge(sums: _Shares, e: int, share: float) -> None:
    """Add the share of the paths along an edge."""
    if sums.edges is not None:
        sums.edges[e] += share
