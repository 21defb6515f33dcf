"""Searches of a sparse graph over a semiring: best-first, in rounds, and from both ends, as compiled loops.

Rows of the closure are found one by one: the best elements from a vertex to all, edge by edge. If ⊕ selects a walk and no edge improves
on 1, `search_best_first` has a priority queue, as Dijkstra's algorithm (1959): a removed vertex is final. `search_in_rounds` corrects
labels in rounds, each of walks with one more edge, as Bellman and Ford. Both are Mohri's generic search (2002), with different queues.

A queue entry is a vertex and the element of a walk to this vertex. A better walk adds the vertex again; an entry is stale if its element is
no longer the vertex's element.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.csr import starts_of
from semiring.algorithms.heap import pop, push
from semiring.algorithms.hops import hop_rows
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array, Values
from semiring.arrays.threads import Threaded, return_scratch, run, take_scratch
from semiring.common.progress import Meter
from semiring.common.units import CACHE_LINE
from semiring.kernels import machine
from semiring.kernels.cpu.loops import Elements, Ints, Rows, ShortInts, ShortRows, fill, loop
from semiring.kernels.select import element_operations, has_loops

__all__ = ["PATIENCE", "Edges", "Queue", "Searches", "searches_for"]

Graph = tuple[Array, Array, Values]

PATIENCE = 32
"""The number of queue entries per edge that a search in rounds may remove."""

_TOGETHER = 1 << 18
"""The most vertices and edges searched per call: progress is reported between calls."""

_SHARES = 4
"""The fewest calls for each of several threads."""


class Edges(NamedTuple):
    """A graph in compressed rows: where the edges of each vertex begin, their heads, and their weights."""

    starts: Ints
    heads: Ints
    weights: Elements

    @classmethod
    def of(cls, graph: Graph) -> Edges:
        """Return a graph with contiguous arrays."""
        starts, heads, weights = graph
        contiguous = tuple([w if w.flags.c_contiguous else w.copy() for w in weights])
        return cls(np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(heads, np.int64), contiguous)


class Queue(NamedTuple):
    """A queue with room for `room` entries; in rounds two queues one after the other, for a round and for the next one."""

    vertices: Ints
    walks: Elements
    room: int

    @classmethod
    def of(cls, edges: Edges, room: int, times: int = 1) -> Queue:
        """Allocate one or two queues."""
        return cls(np.empty(times * room, np.int64), tuple([np.empty(times * room, w.dtype) for w in edges.weights]), room)


@loop
def begin_row(row: Elements, n: int, source: int, reflexive: bool, *, semiring: Any) -> None:
    """Begin a row of the closure: no walk but, if `reflexive`, the empty one."""
    fill(row, n, semiring.zero)
    if reflexive:
        row[source] = semiring.one


@loop
def search_best_first(
    n: int,
    edges: Edges,
    sources: Ints,
    first: int,
    last: int,
    reflexive: bool,
    rows: Rows,
    trees: ShortRows | None,
    queue: Queue,
    limit: Elements,
    *,
    semiring: Any,
    backward: bool,
    limited: bool,
) -> int:
    """Search from the sources `first` … `last` − 1, and return the number of edges seen; no edge improves on 1.

    `trees` receives each vertex's predecessor. The queue has room for an entry for each edge, and one more. `backward` multiplies by edges
    from the left. If `limited`, walks end where `limit` is better than their element.
    """
    seen, vertices, walks = 0, queue.vertices, queue.walks
    for i in range(first, last):
        row = rows[i]
        begin_row(row, n, sources[i], reflexive, semiring=semiring)
        size = push(vertices, walks, 0, sources[i], semiring.one, before=semiring.better)
        while size > 0:
            u, walk = vertices[0], walks[0]
            size = pop(vertices, walks, size, before=semiring.better)
            if semiring.better(row[u], walk):
                continue
            seen += int(edges.starts[u + 1] - edges.starts[u])
            for e in range(edges.starts[u], edges.starts[u + 1]):
                v = edges.heads[e]
                offer = semiring.mul(edges.weights[e], walk) if backward else semiring.mul(walk, edges.weights[e])
                if semiring.improves(offer, row[v]) and not (limited and semiring.better(limit[0], offer)):
                    row[v] = offer
                    if trees is not None:
                        trees[i, v] = u
                    size = push(vertices, walks, size, v, offer, before=semiring.better)
    return seen


class Components(NamedTuple):
    """The strongly connected components of a graph: edges lead to the same number or lower ones.

    The vertices of component c are `members` from place ``begins[c]`` on.
    """

    number: Ints
    members: Ints
    begins: Ints


_NO_COMPONENTS = Components(*[np.empty(0, np.int64)] * 3)


@loop
def search_in_rounds(
    n: int,
    edges: Edges,
    components: Components,
    sources: Ints,
    first: int,
    last: int,
    reflexive: bool,
    rows: Rows,
    trees: ShortRows | None,
    queue: Queue,
    places: ShortInts,
    patience: int,
    *,
    semiring: Any,
    backward: bool,
    parts: bool,
) -> tuple[int, int]:
    """Search from the sources `first` … `last` − 1; return the first row that is not complete, and the number of edges seen.

    With `parts`, one component follows the other, with rounds within each, so an acyclic graph takes one pass in topological order. If ⊕
    selects no walk, an entry holds the sum of all walks of its round to the vertex (Mohri's residue). `places` then has the place of each
    vertex in the next round's queue, and any number for other vertices (Briggs and Torczon, 1993). More than `patience` entries, or more
    rounds than vertices, end all: a cycle may improve. See `search_best_first`.
    """
    seen, vertices, walks = 0, queue.vertices, queue.walks
    for i in range(first, last):
        row, source, taken = rows[i], sources[i], 0
        begin_row(row, n, source, reflexive, semiring=semiring)
        for c in range(components.number[source] if parts else 0, -1, -1):
            count, size = 0, n
            if parts:
                size = components.begins[c + 1] - components.begins[c]
                for place in range(components.begins[c], components.begins[c + 1]):
                    v = components.members[place]
                    if v == source or semiring.better(row[v], semiring.zero):
                        vertices[count] = v
                        walks[count] = semiring.one if v == source else row[v]
                        count += 1
            else:
                vertices[0] = source
                walks[0] = semiring.one
                count = 1
            now, turn = 0, 0
            while count > 0:
                taken += count
                if turn > size or taken > patience:
                    return i, seen
                coming, later = 0, queue.room - now
                for entry in range(now, now + count):
                    u, walk = vertices[entry], walks[entry]
                    if semiring.selective and semiring.better(row[u], walk):
                        continue
                    seen += int(edges.starts[u + 1] - edges.starts[u])
                    for e in range(edges.starts[u], edges.starts[u + 1]):
                        v = edges.heads[e]
                        offer = semiring.mul(edges.weights[e], walk) if backward else semiring.mul(walk, edges.weights[e])
                        if semiring.improves(offer, row[v]):
                            row[v] = semiring.add(row[v], offer)
                            if trees is not None:
                                trees[i, v] = u
                            if not parts or components.number[v] == c:
                                place = -1 if semiring.selective else places[v]
                                if 0 <= place < coming and vertices[later + place] == v:
                                    walks[later + place] = semiring.add(walks[later + place], offer)
                                else:
                                    if coming >= queue.room:
                                        return i, seen
                                    if not semiring.selective:
                                        places[v] = coming
                                    vertices[later + coming] = v
                                    walks[later + coming] = offer
                                    coming += 1
                now, count, turn = later, coming, turn + 1
    return last, seen


class Half(NamedTuple):
    """One of the two searches for a path: the graph, a queue, the elements of walks, and each vertex's predecessor (or successor)."""

    edges: Edges
    vertices: Ints
    walks: Elements
    row: Elements
    links: Ints


@loop
def expand(
    half: Half, size: int, other: Elements, chosen: Ints, meet: int, best: Elements, *, semiring: Any, backward: bool
) -> tuple[int, int, int]:
    """Expand the first entry of one search; return the size of its queue, the vertex where the best path meets, and the edges seen.

    `chosen` receives the edge to each vertex in the reversed graph; `best` the element of the best path so far.
    """
    edges, row = half.edges, half.row
    u, walk = half.vertices[0], half.walks[0]
    size = pop(half.vertices, half.walks, size, before=semiring.better)
    if semiring.better(row[u], walk):
        return size, meet, 0
    for e in range(edges.starts[u], edges.starts[u + 1]):
        v = edges.heads[e]
        offer = semiring.mul(edges.weights[e], walk) if backward else semiring.mul(walk, edges.weights[e])
        if semiring.improves(offer, row[v]):
            row[v] = offer
            half.links[v] = u
            if backward:
                chosen[v] = e
            size = push(half.vertices, half.walks, size, v, offer, before=semiring.better)
            rest = other[v]
            if semiring.better(rest, semiring.zero):
                path = semiring.mul(rest, offer) if backward else semiring.mul(offer, rest)
                if semiring.improves(path, best[0]):
                    best[0] = path
                    meet = v
    return size, meet, int(edges.starts[u + 1] - edges.starts[u])


@loop
def search_pair(
    n: int, source: int, target: int, there: Half, back: Half, chosen: Ints, way: Ints, best: Elements, *, semiring: Any
) -> tuple[int, int, int]:
    """Search for one best path from both ends; return how many vertices lead back to the source and on to the target, and the edges seen.

    Walks from the source and walks to the target grow by turns, always in the search with the shorter queue (Pohl, 1971). A vertex that
    both searches have reached joins two walks to a path. The best path is final once the best walks of both queues, joined, would be no
    better: any other path has an unseen edge, so its two ends are walks no better than the best of each queue.

    `way` receives the path from the meeting vertex on: back to the source, and from place n on to the target. Both counts are 0 without a
    path. `best` becomes the element of the path, multiplied edge by edge from the source on, as in rows, so that both round alike.
    """
    begin_row(there.row, n, source, True, semiring=semiring)
    begin_row(back.row, n, target, True, semiring=semiring)
    ahead = push(there.vertices, there.walks, 0, source, semiring.one, before=semiring.better)
    behind = push(back.vertices, back.walks, 0, target, semiring.one, before=semiring.better)
    best[0] = semiring.zero
    meet, seen, more = -1, 0, 0
    while ahead > 0 and behind > 0 and semiring.better(semiring.mul(there.walks[0], back.walks[0]), best[0]):
        if ahead <= behind:
            ahead, meet, more = expand(there, ahead, back.row, chosen, meet, best, semiring=semiring, backward=False)
        else:
            behind, meet, more = expand(back, behind, there.row, chosen, meet, best, semiring=semiring, backward=True)
        seen += more
    if meet < 0:
        return 0, 0, seen
    v, before, after = meet, 0, 0
    while v != source:
        way[before] = v
        v = there.links[v]
        before += 1
    way[before] = v
    v = meet
    best[0] = there.row[meet]
    while v != target:
        way[n + after] = v
        best[0] = semiring.mul(best[0], back.edges.weights[chosen[v]])
        v = back.links[v]
        after += 1
    way[n + after] = v
    return before + 1, after + 1, seen


def searches_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], device: str, threads: int | None = None) -> Searches | None:
    """Return the compiled searches for closure rows of a sparse graph, or None if NumPy has to search. The device is not a GPU."""
    return Searches(semiring, dtypes, threads) if has_loops(semiring, dtypes, device) else None


class Searches(Threaded):
    """The searches over a semiring, in dtypes for which it can be compiled; with a `selective` ⊕ best-first, and with paths."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.requested, self.selective = threads, is_selective(semiring, dtypes)
        self.operations = element_operations(semiring, dtypes)

    def rows(
        self,
        graph: Graph,
        sources: Array,
        values: Values,
        tree: Array | None,
        *,
        order: Literal["best", "rounds", "components"],
        backward: bool,
        reflexive: bool = True,
        meter: Meter | None = None,
        patience: int | None = None,
        limit: tuple[Any, ...] | None = None,
    ) -> tuple[int, int]:
        """Fill rows with the best elements of the walks from their sources, or with their sums.

        Return how many rows are complete, from the first one on, and the number of edges seen.

        Parameters
        ----------
        graph : tuple
            The compressed rows: where the edges of each vertex begin, their heads, and their weights.
        values : tuple of contiguous arrays of shape (s, n)
            The rows; their contents do not matter.
        tree : int32 array of shape (s, n), optional
            Receives the predecessor of each vertex that a walk reaches; ⊕ selects a walk.
        order : {"best", "rounds", "components"}
            Best first, if ⊕ selects a walk and no edge improves on 1; else in rounds, or in rounds within one strongly connected component
            after the other. Rounds with too many entries, or as many as vertices (an improving cycle), leave their row and all later rows
            incomplete.
        backward : bool
            Multiply by edges from the left.
        reflexive : bool
            Count the empty walk.
        meter : Meter, optional
            Advanced by n + m steps for each search.
        patience : int, optional
            The number of queue entries per edge that rounds may remove; `PATIENCE` by default.
        limit : tuple, optional
            The worst element that a best-first search looks for; other elements stay zero.
        """
        sources, edges = np.ascontiguousarray(sources, np.int64), Edges.of(graph)
        count, n, m = len(sources), len(edges.starts) - 1, len(edges.heads)
        given = sources, 0, count, reflexive, values, tree
        how: dict[str, Any] = {"semiring": self.operations, "backward": backward}
        if order == "best":
            bound = self.operations.zeros
            if limit is not None:
                bound = tuple([np.array([x], w.dtype) for x, w in zip(limit, edges.weights, strict=True)])
            queue = Queue.of(edges, m + 1)  # a vertex is expanded once, and each of its edges adds an entry
            search: Any = search_best_first.bind(n, edges, *given, queue, bound, limited=limit is not None, **how)
            return self._run(search, queue, count, edges, meter)
        components = _components(edges) if order == "components" else _NO_COMPONENTS
        most, queue = (PATIENCE if patience is None else patience) * (m + 1) + n, Queue.of(edges, n + m, 2)
        return self._run(
            search_in_rounds.bind(n, edges, components, *given, queue, np.empty(n, np.int32), most, parts=order == "components", **how),
            queue,
            count,
            edges,
            meter,
        )

    def _run(self, search_some: Any, queue: Queue, count: int, edges: Edges, meter: Meter | None) -> tuple[int, int]:
        """Run the searches of all rows over threads; return how many rows are complete, and the number of edges seen."""
        n, complete, seen = len(edges.starts) - 1, count, 0
        steps = n + len(edges.heads)
        bound = count * steps
        threads = self._workers(bound)
        step = max(1, min(_TOGETHER // max(1, steps), -(-count // (_SHARES * threads)) if threads > 1 else count))
        if step == count:  # the machinery of threads would take as long as a short search
            found = search_some(40 * steps * count)
            complete, seen = found if isinstance(found, tuple) else (count, found)
            if meter is not None:
                meter.add(complete * steps)
            return complete, seen
        lock, queues = threading.Lock(), {0: queue}

        def search(first: int, worker: int = 0, many: int = step) -> None:
            nonlocal complete, seen
            if first > complete:
                return
            last = min(first + many, count)
            if worker not in queues:
                queues[worker] = Queue(np.empty_like(queue.vertices), tuple(map(np.empty_like, queue.walks)), queue.room)
            found = search_some(40 * steps * (last - first), first=first, last=last, queue=queues[worker])
            ended, looked = found if isinstance(found, tuple) else (last, found)
            with lock:
                seen += looked
                if ended < last:
                    complete = min(complete, ended)
            if meter is not None:
                meter.add((ended - first) * steps, tell=worker == 0)

        first = 0
        if bound < machine.SEARCH_PROBED:  # wake other threads only once searches have turned out to be long
            while threads > 1 and first < count and seen + first * n * machine.SEARCH_ENTRY < machine.SEARCH_ALONE:
                search(first, many=min(first + 1, step))
                first += min(first + 1, step)
        run(search, range(first, count, step), threads)
        return complete, seen

    def by_hops(
        self,
        graph: tuple[Array, Array],
        sources: Array,
        values: Values,
        elements: Callable[[int], Values],
        *,
        reflexive: bool = True,
        meter: Meter | None = None,
    ) -> int | None:
        """Fill rows from hop counts, which determine the elements; see `hop_rows`."""
        threads = self._workers(len(sources) * (len(graph[0]) - 1 + len(graph[1])))
        return hop_rows(graph, sources, values, elements, threads, reflexive=reflexive, meter=meter)

    def path(self, graph: Graph, back: Graph, source: int, target: int) -> tuple[Array | None, tuple[Any, ...], int]:
        """Search for a best path between two different vertices from both ends, in a graph whose edges do not improve on 1.

        `back` is the reversed graph. Return the vertices (None without a path), the element of the path, multiplied from the source on as
        in rows, and the number of edges seen by both searches.
        """
        edges, reverse = Edges.of(graph), Edges.of(back)
        n, m, dtypes = len(edges.starts) - 1, len(edges.heads), [w.dtype for w in edges.weights]
        whole = np.dtype(np.int64)
        # Allocating new memory takes longer than a short search.
        row, queue = [(n, d) for d in dtypes], [(m + 1, d) for d in (whole, *dtypes)]
        parts = [(n, whole)] * 3 + [(2 * n, whole), *row, *row, *queue, *queue]
        scratch = take_scratch(sum([many * d.itemsize + CACHE_LINE for many, d in parts]))
        before, after, chosen, way, *rest = scratch.arrays(parts)
        best = tuple([np.empty(1, d) for d in dtypes])
        (row_ahead, row_behind), ends = (tuple(rest[k : k + len(dtypes)]) for k in (0, len(dtypes))), rest[2 * len(dtypes) :]
        (one, *walks), (other, *tails) = ends[: len(ends) // 2], ends[len(ends) // 2 :]
        there = Half(edges, one, tuple(walks), row_ahead, before)
        back_half = Half(reverse, other, tuple(tails), row_behind, after)
        bound = search_pair.bind(n, source, target, there, back_half, chosen, way, best, semiring=self.operations)
        first, last, seen = bound(40 * (n + m))
        vertices = np.concatenate([way[:first][::-1], way[n + 1 : n + last]]) if first else None
        return_scratch(scratch)
        return vertices, tuple([v[0] for v in best]), seen

    def line(self, weights: Values, *, backward: bool = False) -> Values:
        """Return the elements from the first vertex of a line of edges to each of its vertices: 1, then a product for each edge."""
        count = len(weights[0])
        graph = np.minimum(np.arange(count + 2), count), np.arange(1, count + 1), weights
        found = tuple([np.empty((1, count + 1), w.dtype) for w in weights])
        self.rows(graph, np.zeros(1, np.int64), found, None, order="rounds", backward=backward)
        return tuple([v[0] for v in found])

    def _workers(self, steps: int) -> int:
        return self.threads if steps >= machine.SEARCH_SERIAL else 1


def _components(edges: Edges) -> Components:
    count, number = strong_components(edges.starts, edges.heads)
    return Components(number, np.argsort(number, kind="stable").astype(np.int64, copy=False), starts_of(number, count))
