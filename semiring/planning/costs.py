"""Predicted seconds of each strategy for shortest paths, as functions of sizes.

The constants are least-squares fits, of relative errors, to graphs of the kinds in `benchmarks.problems` with 8 to 10,000 vertices.
`python -m benchmarks.regret` prints how far predictions are from what it measures. Other machines shift most constants alike, and a choice
only matters where strategies differ widely.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

__all__ = ["Order", "closure", "dijkstra", "floyd_warshall", "johnson", "products", "reading", "searches"]

Order = Literal["best", "levels", "rounds"]
"""How a compiled search goes: best first; breadth first, where all edges are equal; in rounds, where an edge is harmful."""

# All measured 2026-11-22 on an AMD EPYC (Zen 5, AVX-512, 2 cores), in seconds on one thread.

_READ, _READ_EDGE = 7e-5, 5e-9
"""Of reading a sparse graph, and of each of its edges."""

_SEARCHES, _THREADS, _SOURCE = 5e-5, 3.5e-5, 6.7e-6
"""Of any call of compiled searches, beside reading the graph; of waking threads; of a source, while no other thread can start its own."""

_FOUND = {"best": 2.2e-9, "levels": 1.2e-8, "rounds": 1.0e-9}
"""Of a vertex that a search finds; times log₂ n · log₂(1 + degree) where it may be found again."""

_EDGE = {"best": 9e-10, "levels": 7e-10, "rounds": 2.2e-9}
"""Of an edge that leaves it."""

_ENTRY, _TREE = 3e-10, 4.5e-9
"""Of an entry of the rows, or of the trees of their paths; of a vertex in such a tree."""

_CLOSURE, _BIT_CLOSURE = 1.5e-4, 9e-4
"""Of any closure, and of one on packed bits."""

_PASS = {8: 9e-9, 4: 5.5e-9, 2: 4.8e-9, 1: 4e-9, 0: 9e-10}
"""Of an entry of the matrix in base cases, copies and checks, by the bytes of the dtype; 0 stands for packed bits."""

_STEP = {8: 2.1e-11, 4: 9.3e-12, 2: 3e-12, 1: 8.5e-13, 0: 3e-13}
"""Of a step in products, which all threads share."""

_WITNESS = 1.75
"""How many times as long it takes that paths are remembered, of which packed bits know nothing."""

_PRODUCTS, _PRODUCTS_ENTRY, _PRODUCTS_ROW = 1.5e-4, 2.8e-10, 5e-8
"""Of rows by products: of any call, of a byte of the matrix, and of an entry of the rows."""

_PRODUCTS_STEP = 1.9e-11
"""Of a byte of the matrix for each row, in the few rounds that a complete graph takes; all threads share them."""

_FLOYD_WARSHALL, _FLOYD_WARSHALL_ENTRY, _FLOYD_WARSHALL_STEP = 3e-5, 1.4e-8, 4.1e-10
"""SciPy's: of any call, of an entry of the matrix, and of a step."""

_SCIPY, _SCIPYS_ENTRY, _ROUND = 2e-5, 1.5e-10, 1.6e-9
"""SciPy's: of any call, of an entry of the rows, and of an edge in one of the n rounds of Bellman–Ford that its Johnson begins with."""

_SCIPYS_FOUND, _SCIPYS_EDGE = {False: 3.7e-9, True: 2.6e-9}, {False: 1.8e-9, True: 4e-10}
"""Of a vertex that SciPy's Dijkstra finds, times log₂ n · log₂(1 + degree), and of an edge. True: where all weights are equal."""


def searches(
    n: int,
    edges: int,
    sources: int,
    *,
    order: Order,
    threads: int,
    paths: bool,
    reach: float = 1.0,
) -> float:
    """Rows of the closure of a sparse graph by compiled searches, see `rows_of_edges`.

    Parameters
    ----------
    n, edges, sources : int
    order : {"best", "levels", "rounds"}
    threads : int
    paths : bool
        Whether the trees of their paths come along.
    reach : float
        The share of the vertices that a search finds. A few vertices tell it well enough, and it decides where it is small.
    """
    again = 1.0 if order == "levels" else _logarithms(n, edges)
    search = reach * (n * (again * _FOUND[order] + _TREE * paths) + edges * _EDGE[order])
    search += n * _ENTRY * (1 + paths)
    each, workers = _SOURCE + search, min(threads, sources)
    if workers > 1:  # they take turns to start a search
        return _SEARCHES + _THREADS + sources * max(_SOURCE + min(search, _SOURCE), each / workers)
    return _SEARCHES + sources * each


def reading(edges: int) -> float:
    """Reading a sparse graph, which every strategy does."""
    return _READ + edges * _READ_EDGE


def closure(n: int, *, threads: int, paths: bool, dtype: np.dtype[Any]) -> float:
    """The closure of a dense matrix on the CPU; of one that falls into components, the sum over these.

    Parameters
    ----------
    n : int
    threads : int
    paths : bool
        Whether the construction matrix comes along.
    dtype : numpy.dtype
    """
    size = 0 if dtype.kind == "b" and not paths else min(8, dtype.itemsize)
    work = _PASS[size] * n**2 + _STEP[size] * n**3 / threads
    return (_CLOSURE if size else _BIT_CLOSURE) + work * (_WITNESS if paths else 1.0)


def products(n: int, sources: int, *, threads: int, paths: bool, dtype: np.dtype[Any]) -> float:
    """Rows of the closure of a dense matrix by products of them, see `rows_of_matrix`. `paths`: with their trees."""
    size = min(8, dtype.itemsize)
    rounds = size * n**2 * (_PRODUCTS_ENTRY + _PRODUCTS_STEP * sources / threads) + sources * n * _PRODUCTS_ROW
    return _PRODUCTS + rounds * (_WITNESS if paths else 1.0)


def floyd_warshall(n: int, *, paths: bool) -> float:
    """SciPy's Floyd–Warshall, which computes in float64. `paths`: with predecessors, which cost little."""
    return _FLOYD_WARSHALL + (1.05 if paths else 1.0) * (_FLOYD_WARSHALL_ENTRY * n**2 + _FLOYD_WARSHALL_STEP * n**3)


def dijkstra(n: int, edges: int, sources: int, *, paths: bool, reach: float = 1.0, equal: bool = False) -> float:
    """SciPy's Dijkstra. `equal`: all weights are the same; the others as of `searches`."""
    search = reach * (n * _logarithms(n, edges) * _SCIPYS_FOUND[equal] + edges * _SCIPYS_EDGE[equal])
    return _SCIPY + sources * (search + n * _SCIPYS_ENTRY * (1 + paths))


def johnson(n: int, edges: int, sources: int, *, paths: bool, reach: float = 1.0) -> float:
    """SciPy's Johnson, which begins with n rounds over all edges, whatever they change."""
    return float(n) * edges * _ROUND + dijkstra(n, edges, sources, paths=paths, reach=reach)


def _logarithms(n: int, edges: int) -> float:
    """How often a vertex is found again grows with the logarithm of its degree, and what a heap takes with that of n."""
    return math.log2(n + 1) * math.log2(1 + edges / max(1, n))
