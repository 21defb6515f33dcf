"""Breadth-first searches from many vertices at once, by the kernels of `hops`, over threads: rows of elements, or sums of hop counts."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import Scratch, run, take_scratch
from semiring.common.progress import Meter
from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.compiler import Function, compile_library
from semiring.kernels.cpu.hops import LEVELS, SUMMED, TOGETHER, HopSearchWords, OrderWords, PlaceWords, hops_ir
from semiring.kernels.hardware import host

__all__ = ["HopSums", "hop_order", "hop_rows", "hop_sums"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_PROBES, _DEPTH, _SPREAD, _REACH = 8, 256, 2, 3
"""Trial searches; their rounds, at most and for each so many sources, as searches of more rounds rarely meet; and the least number of
vertices per visited edge, as otherwise searches share too little."""

_FOUND = {name: HopSearchWords._fields.index(name) for name in ("rounds", "left", "looked")}
"""Results of a search, and their places among the arguments."""


class HopSums(NamedTuple):
    """Sums of the hop counts from some sources.

    Attributes
    ----------
    reaching, total, last : int array of shape (n,)
        The number of sources that reach each vertex, the sum of hops, and the maximum.
    found : int array
        The number of pairs at each number of hops, from 0 on.
    """

    reaching: Array
    total: Array
    last: Array
    found: Array


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
    """Fill rows with the elements of the hop counts from their sources.

    Returns the number of visited edges; None, with undefined rows, if searches share too little.

    Parameters
    ----------
    graph : tuple
        The compressed rows: starts and heads.
    sources : int array of shape (s,)
    values : tuple of contiguous arrays of shape (s, n)
        Output.
    table : callable
        Returns the elements of no path, and of paths of 0 to a number of edges.
    threads : int
    reflexive : bool
        True if the empty walk counts.
    meter : Meter, optional
        Counts n + m steps for each search.
    """
    count, n, lock = len(sources), len(graph[0]) - 1, threading.Lock()
    step = min(TOGETHER, -(-count // threads))
    few = _CountingSearch("hops_rows", graph, sources[:: -(-count // _PROBES)], reflexive)
    probed, _ = few.run(slice(0, _PROBES), 0, limit=min(_DEPTH, count // _SPREAD))
    if probed.left or probed.looked * _REACH < probed.searches * n:
        return None
    which = np.arange(count) if count <= step else np.argsort(hop_order(graph)[sources], kind="stable")
    search = _CountingSearch("hops_rows", graph, sources[which], reflexive)
    looked, known, complete = 0, table(0), True

    def rows(first: int, worker: int) -> None:
        nonlocal looked, known, complete
        found, levels = search.run(slice(first, first + step), worker)
        with lock:
            looked += found.looked
            complete = complete and not found.left
            if not complete:
                return
            if len(known[0]) <= found.rounds:
                known = table(found.rounds)
            elements = known
        for array, each in zip(values, elements, strict=True):
            place = pack(PlaceWords(n, levels, address(each), address(array), address(which) + first * which.itemsize, found.searches))
            _function(f"hops_place_{array.itemsize}")(place, found.searches * n)
        if meter is not None:
            meter.add(found.searches * (n + len(graph[1])), tell=worker == 0)

    run(rows, range(0, count, step), threads)
    return looked if complete else None


def hop_sums(graph: tuple[Array, Array], sources: Array, threads: int, *, meter: Meter | None = None) -> HopSums | None:
    """The sums of the hop counts from all sources to each vertex, of a source to itself too; None where a path has 65,535 edges.

    Parameters
    ----------
    graph, sources, threads, meter
        See `hop_rows`.
    """
    n, count, deepest = len(graph[0]) - 1, len(sources), [0] * threads
    step = min(SUMMED, -(-count // threads))
    which = np.argsort(hop_order(graph)[sources], kind="stable")
    search = _CountingSearch("hops_sums", graph, sources[which], True)

    def sums(first: int, worker: int) -> None:
        found, _ = search.run(slice(first, first + step), worker)
        deepest[worker] = max(deepest[worker], LEVELS if found.left else found.rounds)
        if meter is not None:
            meter.add(found.searches * (n + len(graph[1])), tell=worker == 0)

    run(sums, range(0, count, step), threads)
    if max(deepest) == LEVELS:
        return None
    reaching, total, last, found = (np.array([each[i] for each in search.counts.values()]) for i in range(4))
    found = found.sum(axis=0)
    return HopSums(reaching.sum(axis=0), total.sum(axis=0), last.max(axis=0), found[: int(np.flatnonzero(found).max(initial=-1)) + 1])


def hop_order(graph: tuple[Array, Array]) -> Array:
    """Return a place for each vertex, with near vertices near each other: the order of breadth-first searches. O(n + m)."""
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in graph)
    n = len(starts) - 1
    order, place = np.empty(n + 1, np.int64), np.full(n, -1, np.int64)
    arguments = pack(OrderWords(n, *map(address, (starts, heads, order, place))))
    _function("hops_order")(arguments, 10 * (n + len(heads)))
    return place


class _CountingSearch:
    """Searches from some sources at a time, each of several workers in its own memory.

    Attributes
    ----------
    counts : dict
        What each worker that has searched counts, where these are sums.
    """

    def __init__(self, name: str, graph: tuple[Array, Array], sources: Array, reflexive: bool) -> None:
        self.function, self.sums, self.reflexive = _function(name), name == "hops_sums", reflexive
        self.starts, self.heads, self.sources = (np.ascontiguousarray(v, np.int64) for v in (*graph, sources))
        self.counts: dict[int, list[Array]] = {}
        self._memory: dict[int, Scratch] = {}

    def run(self, some: slice, worker: int, limit: int = LEVELS - 1) -> tuple[HopSearchWords, int]:
        """Search from some of the sources: what the arguments have become, and where the levels are."""
        n, sources = len(self.starts) - 1, self.sources[some]
        width = (SUMMED if self.sums else TOGETHER) // 8
        sizes = (width * n, width * n, width * n, 8 * (2 * n + 1), 0 if self.sums else 2 * TOGETHER * n)
        if worker not in self._memory:
            self._memory[worker] = take_scratch(sum(sizes) + CACHE_LINE * len(sizes))
            self.counts[worker] = [np.zeros(size, np.int64) for size in (n, n, n, min(n, LEVELS) + 1)] if self.sums else []
        places = [self._memory[worker].address]
        for size in sizes[:-1]:
            places.append(places[-1] + size + -size % CACHE_LINE)
        graph, counts = map(address, (self.starts, self.heads, sources)), map(address, self.counts[worker])
        given = [n, *graph, len(sources), self.reflexive, min(limit, LEVELS - 1), *places, *counts]
        words = HopSearchWords(*given)
        arguments = pack(words)
        self.function(arguments, 40 * (n + len(self.heads)))
        return words._replace(**{name: arguments[i] for name, i in _FOUND.items()}), words.levels


@functools.cache
def _function(name: str) -> Function:
    """A function, compiled or from the cache."""
    return compile_library((name,), host(), lambda: hops_ir(name)).function(name)
