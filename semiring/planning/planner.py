"""The choice of a plan for a problem, from the candidate strategies and their costs.

The rules, in this order:

1. Contradictions are refused: an unknown method, a missing law, an absent device, options that exclude each other.
2. The named device computes, or the GPU that holds the operands.
3. Block rows serve a memory limit, a checkpoint, several GPUs, and matrices that do not fit.
4. The predicted fastest strategy with room in memory is taken.

Plans of small problems, which always fit, are kept. Other plans are made anew, because free memory changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from semiring.algebra.laws import is_idempotent
from semiring.algorithms.schedules import eliminates, require_closure_laws, require_method, settled
from semiring.algorithms.spanning_tree import is_bottleneck
from semiring.arrays.devices import gpus, is_gpu
from semiring.arrays.memory import ALWAYS_FITS, fits, with_scratch
from semiring.arrays.threads import thread_count
from semiring.common import forks
from semiring.common.errors import SemiringError, TooLargeError
from semiring.kernels import machine
from semiring.kernels.description import sides_of
from semiring.kernels.select import has_loops, has_searches, scans_for
from semiring.planning.block_rows import by_block_rows, by_block_rows_of_ranks, bytes_of_results
from semiring.planning.costs import (
    closure_seconds,
    condensation_seconds,
    elimination_seconds,
    product_seconds,
    rows_seconds,
    scipy_seconds,
    search_seconds,
    spanning_seconds,
)
from semiring.planning.options import named_device, named_gpus
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem

__all__ = ["plan"]

_SEARCHES = {"best": "best-first search", "levels": "breadth-first search", "rounds": "rounds of relaxation"}

_KEPT = 1024
"""The number of plans that are kept."""

_lock = forks.lock()
_plans: dict[Problem, tuple[Plan, bool]] = {}
"""Plans by problem, each with True if a GPU had been used before."""
forks.in_children(_plans.clear)  # children cannot use the GPUs that their parent used


def plan(problem: Problem) -> Plan:
    """Plan the solution of a problem.

    Raises SemiringError for options that contradict each other or the problem, and for absent devices; LawError for a semiring without a
    law that the closure needs; TooLargeError for a matrix too large for a few block rows to fit.
    """
    warm = bool(machine.used_devices)
    try:
        found = _plans.get(problem)
    except TypeError:  # for an option that cannot be hashed; planning says what is wrong
        found = None
    if found is not None and found[1] == warm:
        return found[0]
    made = {"product": _product, "scan": _scan}.get(problem.kind, _closure)(problem)
    if problem.result_bytes <= ALWAYS_FITS and made.strategy != "block rows":
        with _lock:
            _plans[problem] = made, warm
            while len(_plans) > _KEPT:
                del _plans[next(iter(_plans))]
    return made


# Products.


def _product(problem: Problem) -> Plan:
    """Plan a product, on the device that is named or predicted to be faster."""
    m, n = problem.shape[-2:]
    given = problem.matrices * problem.depth * (m + n) * problem.element_bytes
    device = _device(problem, product_seconds, with_scratch(problem.result_bytes + given))
    seconds = None if problem.exact else product_seconds(problem, device)
    memory = {device: with_scratch(problem.result_bytes) if is_gpu(device) else problem.result_bytes}
    return Plan(problem, (device,), "product", "product", seconds=seconds, memory=memory)


def _scan(problem: Problem) -> Plan:
    """Plan a scan, on the device that is named or holds the operands."""
    device = named_device(problem.device, problem.place, exact=problem.exact) or "cpu"
    algorithm = "generated loop" if scans_for(problem.semiring, problem.dtypes, device, problem.n) else "products one after the other"
    return Plan(problem, (device,), "scan", algorithm, memory={device: problem.result_bytes})


# Closures.


def _closure(problem: Problem) -> Plan:
    require_method(problem.method, problem.block)
    if problem.searches is not None and problem.needs_block_rows:
        raise SemiringError(
            "memory_limit and checkpoint are for the closure of all vertices. With sources or targets, leave out both, and name fewer at a "
            "time if the rows take too much memory"
        )
    if problem.ranks:
        require_closure_laws(problem.semiring, problem.dtypes, paths=problem.paths)
        return _by_ranks(problem)
    shared = named_gpus(problem.device)
    if problem.needs_block_rows:
        _require_one_matrix_of_the_host(problem)
    require_closure_laws(problem.semiring, problem.dtypes, paths=problem.paths)
    if problem.edges is not None:
        if problem.searches is not None and str(problem.device) not in ("auto", "cpu", "reference") and not problem.scipy:
            raise SemiringError(
                f"device={problem.device!r}: the rows of a sparse graph are found edge by edge, on the host; leave device out, or pass a "
                f"dense array, whose rows a GPU finds by products"
            )
        return _sparse(problem, shared)
    if problem.searches is not None:
        return _some_rows(problem, shared)
    return _all_rows(problem, shared)


def _require_one_matrix_of_the_host(problem: Problem) -> None:
    """Refuse a limit or a checkpoint for matrices that block rows cannot close."""
    if problem.there:
        raise SemiringError("memory_limit and checkpoint are for a matrix in the memory of the host or on disk; this matrix is on a GPU")
    if len(problem.shape) > 2 or problem.exact:
        raise SemiringError(
            "memory_limit and checkpoint are for one matrix of numbers, not for several or for exact entries, which the reference engine "
            "takes as a whole"
        )
    if str(problem.device) == "reference":
        raise SemiringError("the reference engine takes a matrix as a whole: leave out memory_limit and checkpoint, or use device='cpu'")


def _all_rows(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """Plan the closure of a matrix, as a whole or by block rows."""
    # Half of the free memory is left for the caller.
    if problem.wanted == "sums" and not problem.needs_block_rows and not fits(2 * problem.result_bytes, problem.place):
        return Plan(problem, (problem.place,), "rows in turn", "some rows at a time")
    needed = with_scratch(problem.result_bytes)
    device = _device(problem, closure_seconds, 0, shared)
    by_rows = by_block_rows(problem, shared or (device,), listed=shared is not None)
    if by_rows is not None:
        return by_rows
    if shared is None and is_gpu(device) and str(problem.device) == "auto" and not (problem.there or fits(needed, device)):
        device = "cpu"
    return _whole(problem, device)


def _whole(problem: Problem, device: str) -> Plan:
    eliminate = eliminates(problem.semiring, problem.dtypes, paths=problem.paths)
    sides = sides_of(problem.semiring, problem.dtypes, device, packed=problem.is_packed(device))
    algorithm, block = settled(problem.method, problem.block, problem.n, sides, eliminate=eliminate)
    size = problem.result_bytes
    return Plan(
        problem,
        (device,),
        "whole",
        algorithm,
        block,
        eliminate,
        None if device == "reference" or problem.n == 0 else closure_seconds(problem, device),
        bytes_of_results(problem, (device,), size, with_scratch(size)),
        spanning=_spanning(problem, device),
    )


def _spanning(problem: Problem, device: str) -> float | None:
    """Predict the seconds of a minimum spanning tree, for a dense matrix that turns out to be symmetric; None if none is tried."""
    possible = problem.takes_shortcuts and problem.n >= machine.SPANNING and is_bottleneck(problem.semiring, problem.dtypes)
    return spanning_seconds(problem) if possible and problem.edges is None and not is_gpu(device) else None


def _by_ranks(problem: Problem) -> Plan:
    """Plan the closure by several processes: by block rows, or by searches, each process from its share of the sources."""
    if len(problem.shape) > 2 or problem.exact:
        raise SemiringError("comm= is for one matrix of numbers, not for several or for exact entries")
    if not is_idempotent(problem.semiring, problem.dtypes):
        raise SemiringError(
            f"closures over {problem.semiring.name} are eliminated, which takes the matrix as a whole, because ⊕ is not idempotent: leave "
            f"out comm="
        )
    searches = problem.edges is not None and problem.has_rows_alone and has_searches(problem.semiring, problem.dtypes)
    if problem.searches is not None and not searches:
        raise SemiringError(
            "sources= with comm= is for sparse graphs that are searched on the CPU. Pass edges and leave out device, method and block; or "
            "call without comm= on each rank, for a part of the sources"
        )
    if not searches:
        return by_block_rows_of_ranks(problem)
    own = problem._replace(searches=-(-problem.rows // problem.ranks), device="cpu")
    seconds, memory = search_seconds(own, compiled=True), {"cpu": own.rows * own.n * own.entry_bytes}
    searched = Plan(problem, ("cpu",), "search", _SEARCHES[problem.order], seconds=seconds, memory=memory)
    if problem.searches is not None:
        return searched
    try:
        by_rows = by_block_rows_of_ranks(problem)
    except TooLargeError:
        return searched
    faster = by_rows if by_rows.seconds is not None and by_rows.seconds < seconds else searched
    return replace(faster, considered=tuple((p.strategy, p.seconds) for p in (searched, by_rows) if p.seconds is not None))


# Rows by themselves.


def _sparse(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """Plan the closure of a sparse graph, or some of its rows, by the strategy that is predicted to be the fastest."""
    if problem.wanted in ("sums", "extremes"):  # without a row of distances
        strategy, algorithm = "hop counts", "breadth-first searches in bits"
        if problem.wanted == "extremes":
            strategy, algorithm = "bounds", "eccentricities bounded by searches"
        return Plan(problem, ("cpu",), strategy, algorithm, seconds=search_seconds(problem, compiled=True))
    considered = _ways_of_edges(problem, shared)
    strategy = min(considered, key=lambda name: considered[name][0])
    seconds, device, algorithm = considered[strategy]
    ways = tuple((name, seconds) for name, (seconds, *_) in considered.items())
    if strategy == "whole":
        part = problem.searches is not None and not problem.scipy  # of the vertices that are reached
        return replace(_whole(problem, device) if part else _all_rows(problem, shared), considered=ways)
    if strategy == "search" and problem.wanted == "pair" and has_searches(problem.semiring, problem.dtypes, str(problem.device)):
        strategy, algorithm = "search from both ends", _SEARCHES["best"]
    share = 1.0 if problem.limit is None else problem.reach.found
    size = int(problem.rows * problem.n * problem.entry_bytes * share)
    return Plan(problem, (device,), strategy, algorithm, seconds=seconds, memory={device: size}, considered=ways)


def _ways_of_edges(problem: Problem, shared: tuple[str, ...] | None) -> dict[str, tuple[float, str, str]]:
    """Return the candidate strategies for a graph given by edges or by csgraph, with predicted seconds, device and algorithm."""
    some, named = problem.searches is not None, str(problem.device)
    scipys = "johnson" if problem.order == "rounds" else "dijkstra"
    if problem.wanted == "nearest":
        return {"SciPy": (scipy_seconds(problem), "cpu", scipys)}
    if problem.there or named not in ("auto", "cpu", "reference"):
        device = _device(problem, closure_seconds, 0, shared)
        return {"whole": (closure_seconds(problem, device), device, "")}
    device = "cpu" if some and not problem.scipy else _device(problem, closure_seconds, with_scratch(problem.result_bytes))
    if problem.exact or named == "reference":
        device = "reference"
    whole = closure_seconds(problem, device), device, ""
    ways: dict[str, tuple[float, str, str]] = {}
    compiled = has_loops(problem.semiring, problem.dtypes, named)
    if problem.has_rows_alone and (some or problem.scipy or compiled):
        ways["search"] = search_seconds(problem, compiled=compiled), "cpu", _SEARCHES[problem.order]
    if problem.fill is not None:
        needed = problem.fill.memory(problem.element_bytes, problem.n, thread_count(problem.threads))
        if fits(needed + (0 if problem.wanted == "rows" else problem.result_bytes), "cpu"):
            order = {"metis": "nested dissection"}.get(problem.fill.order, problem.fill.order)
            ways["elimination"] = elimination_seconds(problem), "cpu", order
    if problem.searches is None and problem.has_rows_alone and not problem.scipy and device == "cpu" and problem.is_packed(device):
        ways["condensation"] = condensation_seconds(problem), "cpu", "strongly connected components"
    if problem.spans and problem.has_any_way and named != "reference":
        ways["spanning tree"] = spanning_seconds(problem), "cpu", "Kruskal"
    if problem.scipy and named == "auto":
        ways["SciPy"] = scipy_seconds(problem), "cpu", scipys
    if problem.dense and some and device != "reference":
        ways["rows by products"] = rows_seconds(problem, "cpu"), "cpu", "products"
    # Half of the free memory is left for the caller.
    if ways and whole < min(ways.values()) and not fits((2 if some or problem.wanted == "rows" else 1) * problem.result_bytes, device):
        return ways
    return {"whole": whole} | ways


def _some_rows(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """Plan some rows of dense matrices: by products until a fixed point, or by the closure of what the rows reach."""
    device = _device(problem, rows_seconds, with_scratch(problem.result_bytes), shared)
    rows, whole = rows_seconds(problem, device), closure_seconds(problem, device)
    possible = problem.has_rows_alone and is_idempotent(problem.semiring, problem.dtypes)
    room = fits(2 * problem.n**2 * problem.entry_bytes, device)
    considered = (("rows by products", rows),) * possible + (("whole", whole),) * (room or not possible)
    if possible and not (room and whole <= rows):
        assert problem.searches is not None
        size = problem.matrices * problem.searches * problem.n * problem.entry_bytes
        how: dict[str, Any] = {"seconds": rows, "memory": {device: size}, "considered": considered, "spanning": _spanning(problem, device)}
        return Plan(problem, (device,), "rows by products", "products", **how)
    return replace(_whole(problem, device), considered=considered)


# Devices.


def _device(problem: Problem, seconds: Callable[[Problem, str], float], needed: int, shared: tuple[str, ...] | None = None) -> str:
    """Return the device that is named (the first of several, unless operands are on a GPU), or the fastest with room for `needed` bytes."""
    if shared is not None:
        return problem.place if problem.there else shared[0]
    if problem.hypothetical and is_gpu(str(problem.device)) and not gpus() and not problem.exact:
        return "cuda"
    named = named_device(problem.device, problem.place, exact=problem.exact)
    if named is not None:
        return named
    problem = problem._replace(threads=None)  # the number of threads does not change bits of the result; another device may
    faster = seconds(problem, "cuda:0") < seconds(problem, "cpu")
    return "cuda:0" if faster and fits(needed, "cuda:0") else "cpu"
