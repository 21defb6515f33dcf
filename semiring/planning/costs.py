"""What each strategy is predicted to take, in seconds of the whole call, from what is asked and the constants of `kernels.machine`."""

from __future__ import annotations

import math

from semiring.kernels.cpu.threads import thread_count
from semiring.kernels.devices import is_gpu
from semiring.kernels.machine import call_seconds, speed_of
from semiring.planning.problem import Problem

__all__ = ["closure_seconds", "product_seconds", "rows_seconds", "scipy_seconds", "search_seconds"]

ROUNDS = 20
"""How many products of a few rows the closure of as many vertices is worth: paths of a dense graph have few edges."""

EDGES, NUMPY_EDGES, EXACT_EDGES = 3e7, 3e6, 3e5
"""Edges a second of a compiled search on one core, of one by NumPy, and by Python's own numbers."""

TREE = 2e-8
"""Seconds for each entry of the predecessors of a closure."""

READY, QUEUE, EDGE, ROUND = 1.5e-9, 5.5e-9, 8e-10, 9e-10
"""Of SciPy's Dijkstra, seconds for each vertex before it begins, for one that it finds, times log₂ n · log₂(1 + degree), and for an edge;
of an edge in a round of Bellman–Ford."""


def product_seconds(problem: Problem, device: str) -> float:
    """Of a product of m × k and k × n elements."""
    *_, m, n = problem.shape
    k = problem.depth
    moved = problem.matrices * (m * k + k * n) * problem.element_bytes + problem.result_bytes
    return _seconds(problem, device, float(problem.matrices) * m * n * k, moved)


def closure_seconds(problem: Problem, device: str) -> float:
    """Of the closure as a whole, with the copies to a GPU and back."""
    steps = float(problem.matrices) * problem.n**3
    return _seconds(problem, device, steps, 2 * problem.result_bytes)


def rows_seconds(problem: Problem, device: str) -> float:
    """Of rows of a dense matrix, which are multiplied by it until nothing changes."""
    count = problem.n if problem.searches is None else problem.searches
    steps = float(problem.matrices) * min(ROUNDS * count, problem.n) * problem.n**2
    return _seconds(problem, device, steps, problem.result_bytes)


def search_seconds(problem: Problem, *, compiled: bool) -> float:
    """Of searches of a sparse graph from each vertex that is asked for."""
    edges = problem.edges or 0
    count = problem.n if problem.searches is None else problem.searches
    rate = EXACT_EDGES if problem.exact else EDGES if compiled else NUMPY_EDGES
    return call_seconds("cpu") + count * (edges + problem.n) / rate / (thread_count(problem.threads) if compiled else 1)


def scipy_seconds(problem: Problem) -> float:
    """Of SciPy's searches: Dijkstra's algorithm from each source, with negative edges Johnson's, n rounds over all edges first."""
    n, edges = problem.n, problem.edges or 0
    count = n if problem.searches is None else problem.searches
    search = n * QUEUE * math.log2(n + 1) * math.log2(1 + edges / max(1, n)) + edges * EDGE
    return count * (problem.reach * search + n * READY) + bool(problem.signed) * n * edges * ROUND


def _seconds(problem: Problem, device: str, steps: float, moved: float) -> float:
    speed = speed_of(device, problem.semiring, problem.dtypes, witness=problem.paths, threads=problem.threads)
    copies = moved / speed.link if is_gpu(device) and not problem.there else 0.0
    return call_seconds(device) + steps / speed.steps + copies
