"""The cost model: predicted seconds of the whole call, for each strategy, by the constants of `kernels.machine`.

A few searches of a sparse graph may be tried first, to count the vertices found, the edges visited and the components. Trials are never
timed, so that a plan follows from the graph.
"""

from __future__ import annotations

import math
from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.components import share
from semiring.algorithms.csr import CSR
from semiring.algorithms.distances import counts_hops
from semiring.algorithms.rows_of_edges import MANY, Reach, pays, reach, search_order
from semiring.algorithms.spanning_tree import is_bottleneck
from semiring.algorithms.sums import sums_converge
from semiring.algorithms.symbolic import Fill, analysed
from semiring.arrays.devices import gpus, is_gpu
from semiring.arrays.threads import thread_count
from semiring.common.errors import GraphError
from semiring.kernels import machine
from semiring.kernels.machine import call_seconds, speed_of
from semiring.kernels.select import has_loops, has_searches
from semiring.planning.options import Options
from semiring.planning.problem import Problem, Wanted, closure_problem

__all__ = [
    "closure_seconds", "condensation_seconds", "edges_problem", "elimination_seconds", "product_seconds", "rows_seconds", "scipy_seconds",
    "search_seconds", "spanning_seconds", "sparse_product_seconds",
]  # fmt: skip


def product_seconds(problem: Problem, device: str) -> float:
    """Predict the seconds of a product of m × k and k × n elements."""
    *_, m, n = problem.shape
    k = problem.depth
    moved = problem.matrices * (m * k + k * n) * problem.element_bytes + problem.result_bytes
    return _steps_and_copies(problem, device, float(problem.matrices) * m * n * k, moved, machine.PRODUCT_CALL)


def sparse_product_seconds(problem: Problem, terms: int, device: str) -> float:
    """Predict the seconds of a sparse product with some terms; a GPU sorts the terms before it adds them."""
    if device != "cpu":
        return call_seconds(device, machine.PRODUCT_CALL) + terms * machine.SORTED_TERM
    step = machine.SPARSE_STEP / speed_of("cpu", problem.semiring, problem.dtypes, packed=False, threads=1).steps
    return call_seconds("cpu", machine.PRODUCT_CALL) + terms * (machine.SPARSE_TERM + step) / thread_count(problem.threads)


def closure_seconds(problem: Problem, device: str) -> float:
    """Predict the seconds of the closure of the whole matrix, with the copies to a GPU and back."""
    n, paths = problem.n, problem.paths
    call = machine.CLOSURE_CALL + machine.PATHS_CALL * paths + machine.PART_CALL * (problem.searches is not None)
    passes = 0.0
    if device == "cpu":
        entry = machine.PASS_BIT if problem.is_packed(device) else machine.PASS + machine.PASS_BYTE * problem.element_bytes
        passes = n**2 * entry * (machine.WITNESS if paths else 1.0)
    call += machine.SETTLED * problem.scipy
    if paths and (problem.scipy or problem.searches is not None):
        call, passes = call + machine.GROWN_CALL, passes + n**2 * machine.GROWN
    whole = _steps_and_copies(problem, device, float(problem.matrices) * n**3 * problem.steps, 2 * problem.result_bytes, call)
    reading = 0.0  # of a sparse graph, which is made dense
    if problem.edges is not None and not problem.dense:
        reading = machine.READ_CALL + machine.MATRIX_CALL + problem.edges * machine.READ_EDGE
    return reading + whole + problem.matrices * passes


def rows_seconds(problem: Problem, device: str) -> float:
    """Predict the seconds to multiply a few rows by a dense matrix until a fixed point, in the few rounds of a dense graph."""
    n, count = problem.n, problem.rows
    if device != "cpu":
        rounds = float(problem.matrices) * min(20 * count, n) * n**2
        return _steps_and_copies(problem, device, rounds, problem.result_bytes, machine.ROWS_CALL)
    step = machine.ROWS_STEP * count / thread_count(problem.threads)
    rounds = problem.element_bytes * n**2 * (machine.ROWS_BYTE + step) + count * n * machine.ROWS_ENTRY
    return machine.ROWS_CALL + problem.matrices * rounds * (machine.WITNESS if problem.paths else 1.0)


def search_seconds(problem: Problem, *, compiled: bool) -> float:
    """Predict the seconds of searches from each source: best-first, breadth-first, or label-correcting rounds."""
    n, edges, count, order = problem.n, problem.edges or 0, problem.rows, problem.order
    found, seen = problem.reach
    if seen is None or (order == "levels" and problem.paths):  # trees are grown one by one
        seen = max(1.0, machine.ROUNDS * math.log2(n + 1)) if order == "rounds" else found
    each = machine.BEST * _logarithms(n, edges) if order == "best" else machine.FOUND
    if order == "levels" and seen < found:  # searches that meet look at a vertex and its edges together
        each = each * seen / found + machine.PLACED
    again = machine.AGAIN * max(0.0, seen - found) if order == "rounds" else 0.0
    search = n * (found * (each + machine.TREE * problem.paths) + again) + edges * seen * (machine.EDGE[order] + _far(problem))
    search += n * machine.ENTRY * (1 + problem.paths)
    many = count >= machine.HOPS and count * (n + edges) > machine.FEW_STEPS
    call = _listing(problem) + machine.SEARCH_CALL + machine.HOPS_CALL * (order == "levels" and many)
    if not compiled:
        return call + count * (machine.SEARCH + search * (machine.EXACT_SEARCH if problem.exact else machine.NUMPY_SEARCH))
    alone, workers = count * (machine.SEARCH + search), max(1, min(thread_count(problem.threads), count))
    return call + min(alone, machine.SEARCH_THREADS + alone / workers)


def _far(problem: Problem) -> float:
    """Predict the extra seconds of an edge if the distances of all vertices exceed the second-level cache of a core."""
    return machine.FAR[problem.order] * max(0.0, math.log2(max(1, problem.n) / machine.NEAR))


def elimination_seconds(problem: Problem) -> float:
    """Predict the seconds of an elimination after its analysis, with two sweeps through the panels and a tree for each row."""
    assert problem.fill is not None
    speed = speed_of("cpu", problem.semiring, problem.dtypes, packed=False, threads=problem.threads)
    rows = problem.rows * problem.fill.panels * machine.SWEEP / speed.steps
    entries = problem.n * problem.element_bytes * machine.SWEEP_ENTRY
    if problem.paths:
        entries += (problem.n + (problem.edges or 0)) * machine.TIGHT
    rows += problem.rows * entries / thread_count(problem.threads)
    return _listing(problem) + _analysis_seconds(problem) + machine.FRONT * problem.n + problem.fill.steps / speed.steps + rows


def condensation_seconds(problem: Problem) -> float:
    """Predict the seconds of reachability by strongly connected components, at most as many as vertices, and of the matrix."""
    n, edges = problem.n, problem.edges or 0
    unions = machine.COMPONENT * (n + edges) + machine.UNITED * n * edges / 128
    return _listing(problem) + machine.SEARCH_CALL + unions + n**2 * machine.SPREAD


def spanning_seconds(problem: Problem) -> float:
    """Predict the seconds of a spanning forest, of a dense matrix or of a sparse graph, and of the rows read from it."""
    n, edges = problem.n, problem.edges
    if edges is None:
        forest = machine.CLOSURE_CALL + n**2 * machine.SPANNED_ENTRY
    else:
        forest = _listing(problem) + machine.SEARCH_CALL + (n + edges) * machine.SPANNED_EDGE
    return problem.matrices * (forest + problem.rows * n * machine.ROW_OF_LINE * (1 + problem.paths))


def _analysis_seconds(problem: Problem) -> float:
    """Predict the seconds of the order of elimination and the symbolic analysis."""
    return machine.ANALYSIS * (problem.n + (problem.edges or 0))


def scipy_seconds(problem: Problem) -> float:
    """Predict the seconds of SciPy's Dijkstra from each source, or with negative edges of Johnson: n rounds over all edges first."""
    n, edges, count, order = problem.n, problem.edges or 0, problem.rows, problem.order
    search = problem.reach.found * (
        n * _logarithms(n, edges) * machine.SCIPY_FOUND[order] + edges * (machine.SCIPY_EDGE[order] + _far(problem))
    )
    search += n * machine.SCIPY_ENTRY * (1 + problem.paths)
    rounds = n * edges * machine.SCIPY_ROUND if order == "rounds" else 0.0
    return _listing(problem) + machine.SCIPY_CALL + count * search + rounds


def _steps_and_copies(problem: Problem, device: str, steps: float, moved: float, call: float) -> float:
    """Predict the seconds of some steps, of the copies to a GPU and back, and of the call, given what a call costs on the CPU."""
    speed = speed_of(device, problem.semiring, problem.dtypes, witness=problem.paths, threads=problem.threads)
    copies = moved / speed.link if is_gpu(device) and not problem.there else 0.0
    return call_seconds(device, call) + steps / speed.steps + copies


def _listing(problem: Problem) -> float:
    """Predict the seconds to read the edges of a sparse graph or of a dense matrix."""
    edges = problem.edges or 0
    if problem.dense:
        return machine.READ_CALL + problem.n**2 * machine.LIST_ENTRY + edges * machine.LIST_EDGE
    return machine.READ_CALL + edges * machine.READ_EDGE


def _logarithms(n: int, edges: int) -> float:
    """Return log n, for a heap, times log degree, for the vertices that are found again."""
    return math.log2(n + 1) * math.log2(1 + edges / max(1, n))


# Trials.


def edges_problem(
    semiring: Semiring,
    edges: CSR,
    options: Options,
    searches: int | None = None,
    *,
    reflexive: bool = True,
    wanted: Wanted = "elements",
    found: float | None = None,
    **more: Any,
) -> Problem:
    """State the closure of a sparse graph, or some of its rows, as a problem; searches may stop once they `found` a share of vertices."""
    order = search_order(semiring, edges)
    if more.get("limit") is not None:
        more["limit"], order = (None, order) if order == "rounds" else (more["limit"], "best")  # a negative edge may lead back
    if wanted == "pair" and (order == "rounds" or not pays(edges)):
        wanted = "elements"
    problem = closure_problem(
        semiring,
        edges.dtypes,
        (edges.n, edges.n),
        options,
        edges=len(edges.heads),
        searches=searches,
        symbolic=edges.symbolic,
        order=order,
        wanted=wanted,
        spans=is_bottleneck(semiring, edges.dtypes) and bool(len(edges.heads)) and edges.symmetric,
        **more,
    )
    if wanted in ("sums", "extremes"):
        chosen = edges.n > machine.PART and problem.has_any_way and str(problem.device) in ("auto", "cpu")
        if chosen and (wanted == "extremes" or (order == "levels" and counts_hops(edges))):
            return problem
        problem = problem._replace(wanted="rows")
    if found is not None and problem.limit is not None and not is_bottleneck(semiring, edges.dtypes):  # whose elements mostly tie
        return problem._replace(reach=Reach(found, found))
    return _tried(problem, edges, eliminable=reflexive)


def _tried(problem: Problem, edges: CSR, *, eliminable: bool) -> Problem:
    """Add to a problem what a few searches count, if the counts may decide the strategy."""
    n, count, order, device = problem.n, problem.rows, problem.order, str(problem.device)
    if problem.wanted == "nearest" or problem.spans or not problem.has_any_way or device not in ("auto", "cpu", "reference"):
        return problem
    if count <= MANY or count * (n + len(edges.heads)) < machine.TRIAL:
        return problem
    if closure_seconds(problem, "cpu") < machine.TRIAL * machine.TRIAL_LOOK:
        return problem
    if not problem.has_rows_alone:  # a closure by stars may exist in one order of elimination only
        converges = eliminable and problem.searches is None and sums_converge(problem.semiring, edges)
        return problem._replace(fill=_fill(problem, edges)) if converges else problem
    compiled = has_loops(problem.semiring, problem.dtypes, device)
    longest = search_seconds(problem, compiled=compiled)
    longest *= (machine.TRIAL_ROUNDS if order == "rounds" else 1) * (machine.TRIAL_PARTS if n >= machine.COMPONENTS else 1)

    def searched(problem: Problem) -> Problem:
        found = reach(problem.semiring, edges, count, order, device, problem.threads, problem.limit)
        parts = n >= machine.COMPONENTS and found.found < machine.TRIAL_APART
        return problem._replace(reach=found, steps=share(n, edges.tails, edges.heads) if parts else 1.0)

    wanted = problem.limit is not None or longest >= closure_seconds(problem, "cpu") or bool(gpus())
    problem = searched(problem) if wanted else problem
    if not eliminable:
        return problem
    problem = problem._replace(fill=_fill(problem, edges))
    if wanted or problem.fill is None or elimination_seconds(problem) >= search_seconds(problem, compiled=compiled):
        return problem
    return searched(problem)  # searches that reach little take less than an elimination


def _fill(problem: Problem, edges: CSR) -> Fill | None:
    """Analyse an elimination, if the other strategies take so long that the analysis pays; None otherwise."""
    if problem.exact or problem.ranks or problem.tolerance or str(problem.device) == "reference":
        return None
    if problem.paths and not has_searches(problem.semiring, problem.dtypes):  # trees would be grown by NumPy
        return None
    if problem.order == "rounds" and problem.searches is not None:  # searches ignore a negative cycle that no source reaches
        return None
    others = closure_seconds(problem, "cuda:0" if gpus() else "cpu")
    if problem.has_rows_alone:
        others = min(others, search_seconds(problem, compiled=has_loops(problem.semiring, problem.dtypes)))
    if problem.scipy:
        others = min(others, scipy_seconds(problem))
    if others < machine.TRIAL_ELIMINATION * _analysis_seconds(problem):
        return None
    try:
        return analysed(edges).fill
    except GraphError:  # no library finds an order
        return None
