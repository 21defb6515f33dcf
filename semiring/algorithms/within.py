"""Rows of the closure of a sparse graph within a limit: the elements at least as preferred as the limit, or the k best of them.

`search_within` searches best-first, but visits and writes only vertices within the limit. A row takes time and memory in proportion to
these vertices and their edges. No edge may improve on 1; then no walk within the limit leads through a vertex beyond. The
element of the k-th vertex is a limit too, so a search for the k best goes on to the vertices that tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.algorithms.heap import pop, push
from semiring.algorithms.search import Edges, Queue, Searches
from semiring.arrays.conversion import Array
from semiring.arrays.threads import run
from semiring.common.progress import Meter
from semiring.kernels.cpu.loops import Bound, Elements, Ints, ShortInts, loop

__all__ = ["joined", "rows_within"]

_ROOM = 1 << 16
"""The fewest entries that a thread finds before they are copied."""

_TOGETHER = 256
"""The most sources of a task."""


class Found(NamedTuple):
    """The entries that a search has found: columns, elements, and predecessors."""

    columns: ShortInts
    values: Elements
    tree: ShortInts | None


@loop
def sort(columns: ShortInts, begin: int, end: int) -> None:
    """Sort some columns in place (Shell, 1959)."""
    gap = (end - begin) // 2
    while gap > 0:
        for k in range(begin + gap, end):
            v, place = int(columns[k]), k
            while place >= begin + gap and columns[place - gap] > v:
                columns[place] = columns[place - gap]
                place -= gap
            columns[place] = v
        gap //= 2


@loop
def rank(columns: ShortInts, values: Elements, begin: int, end: int, most: int, places: ShortInts, *, semiring: Any) -> int:
    """Keep the first `most` entries of vertices with a place, the lowest places of equal elements first; return the end.

    Entries are in the order of preference. Their columns are vertices before, and places afterwards; −1 stands for no place.
    """
    kept, first = begin, begin
    for k in range(begin, end):
        place = int(places[columns[k]])
        if place >= 0:
            if kept > begin and semiring.better(values[kept - 1], values[k]):
                sort(columns, first, kept)
                first = kept
            columns[kept] = place
            values[kept] = values[k]
            kept += 1
    sort(columns, first, kept)
    return min(kept, begin + most)


@loop
def search_within(
    n: int,
    edges: Edges,
    sources: Ints,
    first: int,
    last: int,
    reflexive: bool,
    limit: Elements,
    most: int,
    places: ShortInts,
    row: Elements,
    links: ShortInts,
    queue: Queue,
    found: Found,
    room: int,
    ends: Ints,
    *,
    semiring: Any,
    backward: bool,
    ranked: bool,
) -> tuple[int, int]:
    """Search from the sources `first` … `last` − 1, while `room` has place for n more entries; return the next source, and the entries.

    `row` is zero before and after each search. `ends` receives the end of the entries of each source. If `ranked`, these are the `most`
    best entries of vertices with a place, see `rank`.
    """
    used, vertices, walks = 0, queue.vertices, queue.walks
    for i in range(first, last):
        if used + n > room:
            return i, used
        begin, source, entry, left, worst = used, sources[i], reflexive, most, limit[0]
        links[source] = -1
        if reflexive:
            row[source] = semiring.one
        size = push(vertices, walks, 0, source, semiring.one, before=semiring.better)
        while size > 0 and not (ranked and semiring.better(worst, walks[0])):
            u, walk = vertices[0], walks[0]
            size = pop(vertices, walks, size, before=semiring.better)
            if semiring.better(row[u], walk):
                continue
            if entry:
                found.columns[used] = u
                used += 1
                if ranked and places[u] >= 0:
                    left -= 1
                    if left == 0:
                        worst = walk
            entry = True  # the first walk is the empty one
            for e in range(edges.starts[u], edges.starts[u + 1]):
                v = edges.heads[e]
                offer = semiring.mul(edges.weights[e], walk) if backward else semiring.mul(walk, edges.weights[e])
                if semiring.improves(offer, row[v]) and not semiring.better(worst, offer):
                    row[v] = offer
                    links[v] = u
                    size = push(vertices, walks, size, v, offer, before=semiring.better)
        if not ranked and 16 * (used - begin) > n:
            used = begin
            for v in range(n):
                if semiring.better(row[v], semiring.zero):
                    found.columns[used] = v
                    used += 1
        elif not ranked:
            sort(found.columns, begin, used)
        for k in range(begin, used):
            v = int(found.columns[k])
            found.values[k] = row[v]
            row[v] = semiring.zero
            if found.tree is not None:
                found.tree[k] = links[v]
        if ranked:
            for k in range(size):  # reached, and not final
                row[vertices[k]] = semiring.zero
            used = rank(found.columns, found.values, begin, used, most, places, semiring=semiring)
        ends[i - first] = used
    return last, used


def joined(parts: Sequence[CSR]) -> CSR:
    """Join rows that follow each other."""
    starts = np.append(0, np.concatenate([np.diff(part.starts) for part in parts]).cumsum())
    heads, *weights = (np.concatenate(each) for each in zip(*[(p.heads, *p.weights) for p in parts], strict=True))
    return replace(parts[0], starts=starts, heads=heads, weights=tuple(weights))


def rows_within(
    searches: Searches,
    edges: CSR,
    sources: Array,
    limit: tuple[Any, ...],
    *,
    reflexive: bool = True,
    backward: bool = False,
    paths: bool = False,
    most: int | None = None,
    places: Array | None = None,
    meter: Meter | None = None,
) -> CSR:
    """Find the elements within a limit in the rows of some sources (`backward`: in columns, as rows), or the best of them.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> from semiring.algorithms.search import searches_for
    >>> edges = CSR.of(np.array([0, 1, 2]), np.array([1, 2, 3]), (np.array([1.0, 2.0, 4.0]),), 4, (np.inf,))
    >>> found = rows_within(searches_for(MIN_PLUS, edges.dtypes, "cpu"), edges, np.arange(4), (3.0,))
    >>> found.starts, found.heads, *found.weights
    (array([0, 3, 5, 6, 7]), array([0, 1, 2, 1, 2, 2, 3], dtype=int32), array([0., 1., 3., 0., 2., 0., 0.]))

    Parameters
    ----------
    searches : Searches
        With a selective ⊕.
    edges : CSR
        No edge improves on 1.
    sources : int array
    limit : tuple
        The least preferred element that is wanted.
    reflexive : bool
        Count the empty walk.
    backward : bool
    paths : bool
        Find the vertex before each vertex (`backward`: after), −1 for none, as a last component.
    most : int, optional
        Find this many best elements of each row, in the order of preference, equal ones by their columns; without `paths`.
    places : int32 array of shape (n,), optional
        The column of each vertex in the result with `most`; −1 for vertices that do not count. By default the vertex.
    meter : Meter, optional
        Advanced by n + m steps for each search.

    Notes
    -----
    Each row takes O(k log k) steps, for k edges that leave vertices within the limit. Memory for the result, and for a row and the edges on
    each thread.
    """
    graph = edges.transposed() if backward else edges
    n, m, count, dtypes = graph.n, len(graph.heads), len(sources), graph.dtypes
    sources, operations = np.ascontiguousarray(sources, np.int64), searches.operations
    zero = (*graph.zero, -1) if paths else graph.zero
    columns_of = np.arange(n if most else 0, dtype=np.int32) if places is None else places
    worst = tuple([np.array([x], d) for x, d in zip(limit, dtypes, strict=True)])
    compressed = Edges.of((graph.starts, graph.heads, graph.weights))
    room, threads = max(2 * n, _ROOM), searches.threads if count * (n + m) > _ROOM else 1
    step = max(1, min(_TOGETHER, -(-count // (4 * threads))))
    bound, parts = dict[int, Bound[tuple[int, int]]](), dict[int, list[CSR]]()
    outputs = dict[int, tuple[Found, Array]]()

    def bind(worker: int) -> None:
        columns, tree = np.empty(room, np.int32), np.empty(room, np.int32) if paths else None
        outputs[worker] = found, ends = Found(columns, tuple([np.empty(room, d) for d in dtypes]), tree), np.empty(step, np.int64)
        row = tuple([np.full(n, z, d) for z, d in zip(graph.zero, dtypes, strict=True)])
        memory = row, np.empty(n, np.int32), Queue.of(compressed, m + 1), found, room, ends
        given = n, compressed, sources, 0, 0, reflexive, worst, most or 0, columns_of, *memory
        bound[worker] = search_within.bind(*given, semiring=operations, backward=backward, ranked=most is not None)

    def search(begin: int, worker: int) -> None:
        if worker not in bound:
            bind(worker)
        first, last, mine = begin, min(begin + step, count), list[CSR]()
        while first < last:
            following, used = bound[worker](40 * (n + m) * (last - first), first=first, last=last)
            (columns, values, tree), ends = outputs[worker]
            arrays = values if tree is None else (*values, tree)
            starts = np.append(0, ends[: following - first])
            mine.append(CSR(n, starts, columns[:used].copy(), tuple([v[:used].copy() for v in arrays]), zero))
            if meter is not None:
                meter.add((following - first) * (n + m), tell=worker == 0)
            first = following
        parts[begin] = mine

    if not operations.better(tuple([v[0] for v in worst]), operations.one):  # else even the empty walk is beyond the limit
        run(search, range(0, count, step), threads)
    every = [part for begin in sorted(parts) for part in parts[begin]]
    if every:
        return joined(every)
    nothing = tuple([np.empty(0, d) for d in (*dtypes, np.int32)[: len(zero)]])
    return CSR(n, np.zeros(count + 1, np.int64), np.empty(0, np.int32), nothing, zero)
