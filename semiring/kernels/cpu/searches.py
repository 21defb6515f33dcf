"""Rows of the closure of a sparse graph by generated searches from each source, over threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, return_scratch, run, take_scratch
from semiring.common.progress import Meter
from semiring.common.units import CACHE_LINE
from semiring.kernels import machine
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.hops import hop_rows
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.search import (
    PairArrays,
    PairWords,
    SearchArrays,
    SearchWords,
    TightArrays,
    TightWords,
    search_name,
    tight_lanes,
    tight_name,
)  # fmt: skip

__all__ = ["PATIENCE", "Searches"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
Graph = tuple[Array, Array, Values]

PATIENCE = 32
"""The number of queue entries per edge that a search in rounds may pop."""

_TOGETHER = 1 << 15
"""The most vertices and edges searched per call: progress is reported between calls."""

_SHARES = 4
"""The fewest calls for each of several threads."""

_TIGHT_FIRST, _TIGHT_LAST, _TIGHT_QUEUE = map(TightWords._fields.index, ("first", "last", "queue"))

_PAIR_FIRST, _PAIR_LAST, _PAIR_SEEN = map(PairWords._fields.index, ("first", "last", "seen"))

_FIRST, _LAST, _QUEUE, _COMPLETE, _SEEN = map(SearchWords._fields.index, ("first", "last", "queue", "complete", "seen"))


class Searches(Threaded):
    """The searches over a semiring with a selective ⊕, in dtypes for which it can be compiled."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.requested = threads
        self._kernels = kernels_for(semiring, dtypes)

    def rows(
        self,
        graph: Graph,
        sources: Array,
        values: Values,
        tree: Array | None,
        *,
        best_first: bool,
        backward: bool,
        reflexive: bool = True,
        meter: Meter | None = None,
        patience: int | None = None,
    ) -> tuple[int, int]:
        """Fill rows with the best elements of the walks from their sources.

        Return how many rows are complete, from the first one on, and the number of edges seen.

        Parameters
        ----------
        graph : tuple
            The compressed rows: where the edges of each vertex begin, their heads, and their weights.
        values : tuple of contiguous arrays of shape (s, n)
            The rows; their contents do not matter.
        tree : int32 array of shape (s, n), optional
            Receives the predecessor of each vertex that a walk reaches.
        best_first : bool
            Search best-first, if no edge improves on 1; else in rounds. A search in rounds with too many pops or
            n rounds (an improving cycle) leaves its row and all later rows incomplete.
        backward : bool
            Multiply by edges from the left.
        reflexive : bool
            Count the empty walk.
        meter : Meter, optional
            Advanced by n + m steps for each search.
        patience : int, optional
            The number of queue entries per edge that a search in rounds may pop; `PATIENCE` by default.
        """
        sources = np.ascontiguousarray(sources, np.int64)
        starts, heads = (np.ascontiguousarray(v, np.int64) for v in graph[:2])
        weights = [w if w.flags.c_contiguous else w.copy() for w in graph[2]]
        function = self._kernels.function(search_name(best_first=best_first, backward=backward))
        count, n, m = len(sources), len(starts) - 1, len(heads)
        room = m + 1  # a vertex is expanded once per round, or once in all, and each of its edges adds an entry
        entry = 8 + sum([w.itemsize for w in weights])
        size = (room * entry + len(values) * CACHE_LINE + CACHE_LINE) * (1 if best_first else 2)
        turns = room if best_first else (PATIENCE if patience is None else patience) * room
        trees = 0 if tree is None else address(tree)
        words = SearchWords(address(sources), 0, 0, n, reflexive, address(starts), address(heads), 0, room, turns, n + 1, trees, 0)
        template = pack(words, [SearchArrays(address(w), address(v)) for w, v in zip(weights, values, strict=True)])
        complete, seen, lock = count, 0, threading.Lock()
        bound = count * (n + m)
        threads = self._workers(bound)
        step = max(1, min(_TOGETHER // (n + m), -(-count // (_SHARES * threads)) if threads > 1 else count))

        def search(first: int, worker: int = 0, many: int = step) -> None:
            nonlocal complete, seen
            if first > complete:
                return
            words, scratch = template[:], take_scratch(size)
            words[_FIRST] = words[_COMPLETE] = first
            words[_LAST], words[_QUEUE] = min(first + many, count), scratch.address
            function(words, 40 * (n + m) * many)
            return_scratch(scratch)
            with lock:
                seen += words[_SEEN]
                if words[_COMPLETE] < words[_LAST]:
                    complete = min(complete, words[_COMPLETE])
            if meter is not None:
                meter.add((words[_COMPLETE] - first) * (n + m), tell=worker == 0)

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
        n, m = len(graph[0]) - 1, len(graph[1])
        patterns = [np.ascontiguousarray(v, np.int64) for v in (*graph[:2], *back[:2])]
        weights = [[w if w.flags.c_contiguous else w.copy() for w in g[2]] for g in (graph, back)]
        dtypes = [w.dtype for w in weights[0]]
        whole, itemsize = np.dtype(np.int64), sum([d.itemsize for d in dtypes])
        # Allocating new memory takes longer than a short search.
        kept = take_scratch(8 * (5 * n + 4 * CACHE_LINE) + 2 * (n + CACHE_LINE) * itemsize)
        parts = kept.arrays([(n, whole)] * 3 + [(2 * n, whole)] + [(n, d) for d in dtypes] * 2)
        way, best = parts[3], [np.empty(1, d) for d in dtypes]
        elements = zip(*weights, parts[4 : 4 + len(dtypes)], parts[4 + len(dtypes) :], best, strict=True)
        queue = (m + 1) * (8 + itemsize) + (len(dtypes) + 1) * CACHE_LINE
        scratch = take_scratch(2 * queue + CACHE_LINE)
        queues = scratch.address, scratch.address + queue + -queue % CACHE_LINE
        given = [n, source, target, *map(address, patterns), *queues, m + 1, *map(address, parts[:4])]
        arguments = pack(PairWords(*given), [PairArrays(*map(address, each)) for each in elements])
        self._kernels.function("search_pair")(arguments, 40 * (n + m))
        return_scratch(scratch)
        first, last, seen = (arguments[word] for word in (_PAIR_FIRST, _PAIR_LAST, _PAIR_SEEN))
        vertices = np.concatenate([way[:first][::-1], way[n + 1 : n + last]]) if first else None
        return_scratch(kept)
        return vertices, tuple([v[0] for v in best]), seen

    def trees(self, graph: Graph, back: Graph, roots: Array, values: Values, tree: Array, *, backward: bool = False) -> Array:
        """Grow trees of best paths along tight edges, given rows; return a mask of the rows that got a tree.

        `back` is the reversed graph. `tree` receives predecessors, −1 for none; a row without a tree is undefined. `backward` multiplies by
        edges from the left.
        """
        count, n, m = len(roots), len(graph[0]) - 1, len(graph[1])
        lanes = tight_lanes(self._kernels.representation, self._kernels.target)
        starts, back_starts = (np.ascontiguousarray(g[0], np.int64) for g in (graph, back))
        heads, tails = (np.ascontiguousarray(g[1], np.int32) for g in (graph, back))
        weights, back_weights = ([np.ascontiguousarray(w) for w in g[2]] for g in (graph, back))
        roots, grown = np.append(roots, np.repeat(roots[-1:], lanes)).astype(np.int32), np.zeros(count + lanes, np.uint8)
        sizes = [4 * max(n, lanes * lanes), *(n * lanes * w.itemsize for w in weights)]
        sizes = [size + -size % CACHE_LINE for size in sizes]
        given = [n, 0, 0, *map(address, (roots, starts, heads, back_starts, tails)), 0, address(tree), address(grown)]
        words = TightWords(*given)
        parts = [TightArrays(address(w), address(b), address(v), 0) for w, b, v in zip(weights, back_weights, values, strict=True)]
        template = pack(words, parts)
        panels = [len(words) + c * len(TightArrays._fields) + TightArrays._fields.index("scratch") for c in range(len(parts))]
        trees, search = (self._kernels.function(tight_name(kind, backward=backward)) for kind in ("trees", "search"))

        def grow(first: int, worker: int = 0) -> None:
            words, scratch = template[:], take_scratch(sum(sizes))
            for i, word in enumerate((_TIGHT_QUEUE, *panels)):
                words[word] = scratch.address + sum(sizes[:i])
            last = min(first + lanes, count)
            if n >= lanes:
                words[_TIGHT_FIRST], words[_TIGHT_LAST] = first, last
                trees(words, 4 * lanes * (n + m))
            for row in (np.flatnonzero(grown[first:last] == 0) + first).tolist():
                words[_TIGHT_FIRST] = row
                search(words, 40 * (n + m))
            return_scratch(scratch)

        run(grow, range(0, count, lanes), self._workers(count * (n + m)))
        return grown[:count].astype(bool)

    def line(self, weights: Values, *, backward: bool = False) -> Values:
        """Return the elements from the first vertex of a line of edges to each of its vertices: 1, then a product for each edge."""
        count = len(weights[0])
        graph = np.minimum(np.arange(count + 2), count), np.arange(1, count + 1), weights
        found = tuple([np.empty((1, count + 1), w.dtype) for w in weights])
        self.rows(graph, np.zeros(1, np.int64), found, None, best_first=False, backward=backward)
        return tuple([v[0] for v in found])

    def _workers(self, steps: int) -> int:
        return self.threads if steps >= machine.SEARCH_SERIAL else 1
