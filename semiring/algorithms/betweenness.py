"""Betweenness: which share of all shortest paths leads through each vertex, and along each edge, by Brandes's algorithm (2001).

A search from each source counts the shortest paths; then its vertices, farthest first, pass their dependencies back. Sources are cut
into blocks, the same for any number of threads, and the sums of blocks are added in order: results do not depend on the threads.

Examples
--------
>>> starts, heads = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32)
>>> betweenness(Searched(starts, heads), np.arange(3))[0]  # 0 – 1 – 2: both ways
array([0., 2., 0.])
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import run, thread_count
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.betweenness import BetweennessScratch, BetweennessWords, betweenness_function

__all__ = ["Searched", "betweenness"]

Array = np.ndarray[Any, Any]

_BLOCKS = 64
"""Blocks of sources, at most."""


class Searched(NamedTuple):
    """A graph in compressed rows: int64 starts, int32 heads in any order within a row, and non-negative float64 weights or None."""

    starts: Array
    heads: Array
    weights: Array | None = None


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
    starts, heads, weights = graph
    n, m, weighted = len(starts) - 1, len(heads), weights is not None
    tails = np.arange(n, dtype=np.int32).repeat(np.diff(starts)) if weighted else heads
    counts = np.ones(n) if worth is None else worth
    given = address(starts), address(heads), address(tails), 0 if weights is None else address(weights), address(sources)
    function = betweenness_function("lengths" if weighted else "levels")
    step = max(1, -(-len(sources) // _BLOCKS))
    firsts = range(0, len(sources), step)
    totals, ready, lock = (np.zeros(n), np.zeros(m if edges else 0)), dict[int, tuple[Array, Array]](), threading.Lock()
    added, free = 0, list[BetweennessScratch]()

    def work(first: int, worker: int) -> None:
        nonlocal added
        with lock:
            scratch = free.pop() if free else None
        scratch = scratch or BetweennessScratch.of(n, m, weighted=weighted)
        found = np.zeros(n), np.zeros(m if edges else 0)
        block = first, min(first + step, len(sources)), address(counts), int(worth is None), int(ends)
        sums = address(found[0]), address(found[1]) if edges else 0
        words = pack(BetweennessWords._make((n, *given, *block, *sums, *scratch.words())))
        function(words, 40 * (n + m) * step)
        with lock:
            free.append(scratch)
            ready[first] = found
            while added in ready:
                for total, part in zip(totals, ready.pop(added), strict=True):
                    total += part
                added += step

    run(work, firsts, thread_count(threads))
    return totals
