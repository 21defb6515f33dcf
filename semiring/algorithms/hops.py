"""Hop counts from many vertices at once, one bit per source: breadth-first search of a graph in compressed rows, over threads.

Each vertex has a set of sources, a bit for every source (Then et al., 2014). In round k, frontier(v) ← ∪ frontier(u) ∖ reached(v) over the
edges uv: the new bits are the sources at k hops from v. Searches that meet at a vertex in the same round share the scan of its edges.
Sources near each other meet early: ``order_by_searches`` numbers all vertices in breadth-first order.

For rows, ``search`` records the level of each vertex from each of 64 sources; ``write_rows`` maps levels to elements. For sums no rows are
kept: each vertex has the number of the 512 sources that reach the vertex, the sum of the hop counts, and the largest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from semiring.arrays.conversion import Array, Values
from semiring.arrays.threads import run, take_scratch
from semiring.common.progress import Meter
from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.loops import Bound, Elements, Ints, Rows, Words, loop
from semiring.kernels.select import source_sets

__all__ = ["HopSums", "hop_order", "hop_rows", "hop_sums"]

Levels = Annotated[NDArray[np.uint16], np.uint16]

Some = Annotated[Any, "element"]
"""A set of sources, opaque to the compiler."""

_TOGETHER, _SUMMED = 64, 512
"""The sources of one search for rows, and for sums."""

_WORD, _WHOLE, _LEVEL = map(np.dtype, (np.uint64, np.int64, np.uint16))

_LEVELS = 1 << 16
"""The number of levels: 0 for a vertex that was not found, k + 1 for a vertex found at k hops."""

_PROBES, _DEPTH, _SPREAD, _REACH = 8, 256, 2, 3
"""Limits of the probing searches, which decide if sharing pays. The `_PROBES` searches must end within `_DEPTH` rounds and a round for each
`_SPREAD` sources, because longer searches rarely meet, and see at least an edge for each `_REACH` vertices."""


class HopSums(NamedTuple):
    """Sums over the hop counts from some sources.

    For each vertex: the number of sources `reaching` the vertex, the `total` of their hop counts, and the `last` (largest) hop count.
    `found` has the number of pairs at 0, 1, 2, … hops.
    """

    reaching: Ints
    total: Ints
    last: Ints
    found: Ints


_NO_SUMS = HopSums(*[np.empty(0, np.int64)] * 4)
"""The sums of a search for rows."""


class Memory(NamedTuple):
    """Memory of a search: sets of sources for each vertex, and lists of vertices."""

    reached: Words  # sources that have found the vertex
    frontier: Words  # sources that found the vertex in this round
    coming: Words  # sources that reach the vertex in the next round, known ones too
    active: Ints  # vertices that were found in this round
    waiting: Ints  # vertices with a set `coming`, and room for one more
    levels: Levels  # for rows: 64 for each vertex


@loop
def send(v: int, some: Some, memory: Memory, size: int, *, sets: Any) -> int:
    """Add sources to those coming to a vertex, which then waits; return the number of vertices that wait."""
    before = sets.get(memory.coming, v)
    sets.put(memory.coming, v, sets.union(before, some))
    memory.waiting[size] = v
    return size + (not sets.any(before))


@loop
def search(
    n: int, starts: Ints, heads: Ints, sources: Ints, first: int, stop: int, limit: int, reflexive: bool, memory: Memory, sums: HopSums,
    *, sets: Any, rows: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Search from sources first … stop − 1 in at most `limit` rounds; write levels for `rows`, else add to the sums.

    The sources are found at 0 hops if `reflexive`. Return the number of rounds, of vertices that still wait, and of edges seen.
    """
    for v in range(n):
        sets.put(memory.reached, v, sets.empty())
        sets.put(memory.coming, v, sets.empty())
        if rows:
            sets.forget(memory.levels, v)
    waiting = 0
    for i in range(first, stop):
        waiting = send(sources[i], sets.single(i - first), memory, waiting, sets=sets)
    level, looked = 0, 0
    while waiting > 0 and level < limit:
        active, found = 0, 0
        for i in range(waiting):
            v = memory.waiting[i]
            before = sets.get(memory.reached, v)
            fresh = sets.minus(sets.get(memory.coming, v), before)
            sets.put(memory.coming, v, sets.empty())
            if sets.any(fresh):
                counted = sets.where(level > 0 or reflexive, fresh)
                sets.put(memory.frontier, v, fresh)
                sets.put(memory.reached, v, sets.union(before, counted))
                memory.active[active] = v
                active += 1
                if rows:
                    sets.note(memory.levels, v, counted, level + 1)
                else:
                    count = sets.count(counted)
                    found += count
                    sums.reaching[v] += count
                    sums.total[v] += count * level
                    sums.last[v] = max(sums.last[v], level)
        if not rows:
            sums.found[level] += found
        waiting = 0
        for i in range(active):
            u = memory.active[i]
            here = sets.get(memory.frontier, u)
            looked += int(starts[u + 1] - starts[u])
            for e in range(starts[u], starts[u + 1]):
                waiting = send(heads[e], here, memory, waiting, sets=sets)
        level += 1
    return level, waiting, looked


@loop
def write_four(row: Elements, v: int, table: Elements, levels: Levels, at: int) -> None:
    """Write the elements of four vertices side by side, line by line because the compiler does not unroll loops."""
    row[v] = table[levels[at]]
    row[v + 1] = table[levels[at + _TOGETHER]]
    row[v + 2] = table[levels[at + 2 * _TOGETHER]]
    row[v + 3] = table[levels[at + 3 * _TOGETHER]]


@loop
def write_rows(n: int, first: int, stop: int, which: Ints, levels: Levels, table: Elements, rows: Rows) -> None:
    """Write the element of each vertex's level to the rows `which` of sources first … stop − 1, for eight vertices at a time."""
    for v in range(0, n - 7, 8):
        for s in range(stop - first):
            row, at = rows[which[first + s]], _TOGETHER * v + s
            write_four(row, v, table, levels, at)
            write_four(row, v + 4, table, levels, at + 4 * _TOGETHER)
    for v in range(n - n % 8, n):
        for s in range(stop - first):
            rows[which[first + s], v] = table[levels[_TOGETHER * v + s]]


@loop
def find(v: int, order: Ints, place: Ints, size: int) -> int:
    """Append a vertex to the order unless it is there already; return the size of the order."""
    known = place[v]
    place[v] = size if known < 0 else known
    order[size] = v
    return size + int(known < 0)


@loop
def order_by_searches(n: int, starts: Ints, heads: Ints, order: Ints, place: Ints) -> None:
    """Search breadth-first, each time from the first vertex that no search before has found; at first each place is −1. O(n + m)."""
    done, size = 0, 0
    for root in range(n):
        size = find(root, order, place, size)
        while done < size:
            u = order[done]
            done += 1
            for e in range(starts[u], starts[u + 1]):
                size = find(heads[e], order, place, size)


def hop_rows(
    graph: tuple[Array, Array],
    sources: Array,
    values: Values,
    table: Callable[[int], Values],
    threads: int,
    *,
    reflexive: bool = True,
    meter: Meter | None = None,
) -> int | None:
    """Fill rows with the elements that belong to the hop counts from their sources.

    Return the number of edges seen; None, with undefined rows, if searches would share too little. `graph` is in compressed rows (starts
    and heads); `values` are contiguous arrays of shape (s, n). ``table(k)`` returns the elements of no path, and of the paths of 0 … k
    edges. `reflexive` counts the empty walk. `meter` advances by n + m steps for each search.
    """
    count, n, lock = len(sources), len(graph[0]) - 1, threading.Lock()
    step = min(_TOGETHER, -(-count // threads))
    searches, few = _HopSearches(graph, reflexive=reflexive), np.array(sources[:: -(-count // _PROBES)], np.int64)
    _, left, looked = searches.run(0, few, 0, len(few), min(_DEPTH, count // _SPREAD))
    if left or looked * _REACH < len(few) * n:
        return None
    which = np.arange(count) if count <= step else np.argsort(hop_order(graph)[sources], kind="stable")
    ordered = np.array(sources[which], np.int64)
    looked, known, complete = 0, _as_bits(table(0)), True
    writers = [write_rows.bind(n, 0, 0, which, searches.levels[0], (e,), (v,)) for e, v in zip(known, _as_bits(values), strict=True)]

    def rows(first: int, worker: int) -> None:
        nonlocal looked, known, complete
        stop = min(first + step, count)
        rounds, left, seen = searches.run(worker, ordered, first, stop)
        with lock:
            looked += seen
            complete = complete and not left
            if not complete:
                return
            if len(known[0]) <= rounds:
                known = _as_bits(table(rounds))
            elements = known
        for write, each in zip(writers, elements, strict=True):
            write((stop - first) * n, first=first, stop=stop, levels=searches.levels[worker], table=(each,))
        if meter is not None:
            meter.add((stop - first) * (n + len(graph[1])), tell=worker == 0)

    run(rows, range(0, count, step), threads)
    return looked if complete else None


def hop_sums(graph: tuple[Array, Array], sources: Array, threads: int, *, meter: Meter | None = None) -> HopSums | None:
    """Sum the hop counts from all sources to each vertex, itself included; None if a path has 65,535 edges. See `hop_rows`."""
    n, count, deepest = len(graph[0]) - 1, len(sources), [0] * threads
    step = min(_SUMMED, -(-count // threads))
    ordered = np.array(sources[np.argsort(hop_order(graph)[sources], kind="stable")], np.int64)
    searches = _HopSearches(graph, rows=False)

    def sums(first: int, worker: int) -> None:
        stop = min(first + step, count)
        rounds, left, _ = searches.run(worker, ordered, first, stop)
        deepest[worker] = max(deepest[worker], _LEVELS if left else rounds)
        if meter is not None:
            meter.add((stop - first) * (n + len(graph[1])), tell=worker == 0)

    run(sums, range(0, count, step), threads)
    if max(deepest) == _LEVELS:
        return None
    reaching, total, last, found = map(np.array, zip(*searches.sums.values(), strict=True))
    found = found.sum(axis=0)
    return HopSums(reaching.sum(axis=0), total.sum(axis=0), last.max(axis=0), found[: int(np.flatnonzero(found).max(initial=-1)) + 1])


def hop_order(graph: tuple[Array, Array]) -> Array:
    """Return each vertex's place in the order in which breadth-first searches find all vertices, so near ones are close. O(n + m)."""
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in graph)
    n = len(starts) - 1
    place = np.full(n, -1, np.int64)
    order_by_searches.bind(n, starts, heads, np.empty(n + 1, np.int64), place)(10 * (n + len(heads)))
    return place


class _HopSearches:
    """Searches from some sources at a time; each worker has separate memory: levels, or sums."""

    def __init__(self, graph: tuple[Array, Array], *, reflexive: bool = True, rows: bool = True) -> None:
        self.starts, self.heads = (np.ascontiguousarray(v, np.int64) for v in graph)
        self.reflexive, self.rows = reflexive, rows
        self.levels, self.sums = dict[int, Levels](), dict[int, HopSums]()
        self._bound: dict[int, Bound[tuple[int, int, int]]] = {}

    def run(self, worker: int, sources: Ints, first: int, stop: int, limit: int = _LEVELS - 1) -> tuple[int, int, int]:
        """Search from sources first … stop − 1; return what `search` returns."""
        n = len(self.starts) - 1
        if worker not in self._bound:
            self._bound[worker] = self._bind(worker, n, sources)
        given = {"sources": sources, "first": first, "stop": stop, "limit": min(limit, _LEVELS - 1)}
        return self._bound[worker](40 * (n + len(self.heads)), **given)

    def _bind(self, worker: int, n: int, sources: Ints) -> Bound[tuple[int, int, int]]:
        sets = source_sets(_TOGETHER if self.rows else _SUMMED)
        parts: list[tuple[int, np.dtype[Any]]] = [*[(sets.width * n, _WORD)] * 3, (n, _WHOLE), (n + 1, _WHOLE)]
        parts.append((_TOGETHER * n if self.rows else 0, _LEVEL))
        memory = Memory(*take_scratch(sum([size * dtype.itemsize + CACHE_LINE for size, dtype in parts])).arrays(parts))
        sizes = (n, n, n, min(n, _LEVELS) + 1)
        sums = _NO_SUMS if self.rows else HopSums(*[np.zeros(size, np.int64) for size in sizes])
        self.levels[worker], self.sums[worker] = memory.levels, sums
        given = n, self.starts, self.heads, sources, 0, 0, 0, self.reflexive, memory, sums
        return search.bind(*given, sets=sets, rows=self.rows)


def _as_bits(values: Values) -> Values:
    """View elements as unsigned integers of the same size."""
    return tuple([v.view(f"u{v.itemsize}") for v in values])
