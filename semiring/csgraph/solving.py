"""The three strategies for csgraph's shortest paths: the closure, products of a few rows, or searches.

`solve` searches small sparse graphs at once (`small_rows`); `_answer` follows the plan of any other call:

- `by_closure` closes the dense matrix like `semiring.apsp`, and selects the requested rows.
- `by_products` multiplies rows by the dense matrix until a fixed point.
- `by_searches` searches from each source in compressed rows (`algorithms.rows_of_edges` or SciPy's functions), or eliminates.

Each strategy returns a tuple: distances, predecessors on request, and with ``min_only=True`` the nearest sources.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import dijkstra, johnson

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, in_range
from semiring.algorithms.predecessors import NONE
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.arrays.devices import device_of, host, namespace, on_device, on_gpu, to_gpu
from semiring.arrays.memory import fits, with_scratch
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import OverflowRiskError, callers_level, noted
from semiring.common.progress import Meter
from semiring.csgraph.call import METHODS, AsBoth, Call, Request, cut, read_call
from semiring.csgraph.reading import Array, as_scipys, both_ways, in_dtype, is_held, require_held, some, with_root
from semiring.execution.question import GivenGraph, Question
from semiring.execution.reporting import reporting
from semiring.execution.rows import rows_by_products
from semiring.execution.search import rows_by_elimination, search_steps
from semiring.execution.strategy import run
from semiring.execution.whole import close_matrices
from semiring.graphs import Graph
from semiring.graphs.coo import sound_rows
from semiring.kernels.cuda.transfer import download, upload
from semiring.kernels.machine import FEW_STEPS
from semiring.kernels.select import searches_for
from semiring.planning.options import Options

__all__ = ["by_closure", "by_products", "by_searches", "small_rows", "solve"]

_FLOAT64 = np.dtype(np.float64)


def solve(csgraph: Any, request: Request) -> Any:
    """Return the distances, and with ``return_predecessors=True`` the predecessors too."""
    answer: tuple[Any, ...] | None = small_rows(csgraph, request)
    if answer is not None:
        return answer[0] if len(answer) == 1 else answer
    call = read_call(csgraph, request)
    if call.request.method == "D" and call.negative:
        warnings.warn(
            "Graph has negative weights: the distances are right, and a negative cycle raises NegativeCycleError. "
            "SciPy's dijkstra may be inaccurate, or never return.",
            stacklevel=callers_level(),
        )
    with AsBoth():
        first, *others = _answer(call)
    return (first, *others) if others else first


def small_rows(csgraph: Any, request: Request) -> tuple[Array, ...] | None:
    """Search a small sparse graph directly, because reading and planning would take longer than the search.

    The result is None for other graphs, and for calls that need a message, a warning or a convention of SciPy: `read_call` handles these.
    """
    if not issparse(csgraph) or request.dtype is not np.float64 or request.device not in ("auto", "cpu") or request.method not in METHODS:
        return None
    (n, *columns), stored, limit = csgraph.shape, csgraph.nnz, request.limit
    count = n if request.indices is None else np.size(request.indices)
    if columns != [n] or not stored or not 0 < count * (n + stored * (1 if request.directed else 2)) <= FEW_STEPS:
        return None
    if (request.method == "FW" and request.indices is not None) or type(limit) is not float or not limit >= 0:
        return None
    kinds = "biuf" if csgraph.format == "csr" else "f"  # sums of duplicate integers could overflow
    if csgraph.dtype.kind not in kinds or sound_rows(csgraph) is not csgraph:
        return None
    rows = csgraph.tocsr()
    heads, weights = rows.indices.astype(np.int64, copy=False), rows.data.astype(np.float64, copy=False)
    if not len(heads) or not rows.has_canonical_format or not in_range(heads, n):
        return None
    least, greatest = float(weights.min()), float(weights.max())
    if not max(-least, greatest) * n < np.inf:  # a bound of path lengths; False for NaN too
        return None
    negative = least < 0 and not request.unweighted
    if negative and (request.method == "D" or request.return_predecessors):
        return None
    sources = np.arange(n) if request.indices is None else np.array(request.indices, dtype=np.int64)
    flat, searches = sources.reshape(-1), searches_for(MIN_PLUS, (_FLOAT64,), "cpu")
    if searches is None or not in_range(flat, n):
        return None
    if request.min_only:
        return _as_tuple(dijkstra(rows, request.directed, flat, request.return_predecessors, request.unweighted, limit, min_only=True))
    csr = CSR(n, rows.indptr.astype(np.int64, copy=False), heads, (np.ones(len(heads)) if request.unweighted else weights,), (np.inf,))
    if not request.directed:
        csr = both_ways(csr)
    distances, tree = np.empty((count, n)), np.full((count, n), NONE, np.int32) if request.return_predecessors else None
    complete, _ = searches.rows((csr.starts, csr.heads, csr.weights), flat, (distances,), tree, best_first=not negative, backward=False)
    if complete < count:  # a cycle is negative
        return None
    answer = (distances,) if tree is None else (distances, tree)
    cut(limit, *answer)
    return answer if sources.ndim == 1 else tuple([array.reshape(*sources.shape, n) for array in answer])


def _answer(call: Call) -> tuple[Any, ...]:
    there, plan = on_gpu(call.graph.dense), call.plan
    try:
        if plan.strategy == "whole" or plan.strategy == "block rows":
            answer = by_closure(call)
        elif plan.strategy == "rows by products":
            answer = by_products(call)
        else:
            with reporting(None, plan) as meter:
                answer = by_searches(call, scipys=plan.strategy == "SciPy", meter=meter)
    except OverflowRiskError:
        if call.request.device != "auto" or there or call.in_place:
            raise
        answer = by_searches(call, scipys=True)  # SciPy lets sums overflow to ∞
    if there and plan.strategy == "SciPy":
        with on_device(device_of(call.graph.dense)):
            answer = tuple(map(to_gpu, answer))
    return answer if call.graph.restore is None else tuple(map(call.graph.restore, answer))


def by_closure(call: Call) -> tuple[Any, ...]:
    """Close the matrix, and return all rows or the requested rows; on one GPU with room, every step runs there."""
    request, graph, n = call.request, call.graph, call.graph.n
    paths = bool(request.return_predecessors)
    gpu = _one_gpu(call)
    given = graph if call.in_place else call.within_reach
    # A closure with negative weights may have to read the input again.
    matrix = given.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths, device=gpu or "cpu")
    with on_device(device_of(matrix)):
        _settle(call, matrix)
    with on_device(gpu or device_of(matrix)):
        if gpu is not None and paths and not on_gpu(matrix):
            matrix = upload(matrix)
        returns = gpu is not None and on_gpu(matrix)
        found = _closure(call, matrix)
        answer: tuple[Any, ...] = (found.distances, found.predecessors()) if paths else (found,)
        if call.sources is not None:
            rows = namespace(answer[0]).asarray(call.sources)
            answer = tuple(array[rows].reshape(*call.shape, n) for array in answer)
        cut(request.limit, *answer)
        if returns:
            answer = tuple(map(download, answer))
    if call.in_place and not np.may_share_memory(answer[0], graph.dense):
        np.copyto(graph.dense, answer[0])
        answer = (graph.dense, *answer[1:])
    return answer


def _closure(call: Call, matrix: Any) -> Any:
    plan, graph = call.plan, Graph((matrix,), owned=not call.negative)
    with noted("the closure", plan.semiring, matrix):
        question = Question(plan.semiring, Options(plan.paths, nonedge=np.inf))
        if plan.strategy == "whole":
            with reporting(None, plan) as meter:
                return close_matrices(plan, graph, question, lambda: graph, meter, returns=plan.gpu and not on_gpu(matrix))
        return run(plan, GivenGraph(graph=graph), question)


def _one_gpu(call: Call) -> str | None:
    """Return the GPU that can hold the whole computation for a graph on the host; None without one.

    The GPU then receives only the edges of a sparse array, and also grows the predecessor trees, far faster than the host.
    """
    if on_gpu(call.graph.dense) or not call.plan.gpu or call.plan.strategy != "whole":
        return None
    edges = 0 if call.graph.entries is None else call.graph.entries.nbytes
    needed = with_scratch(call.bytes + call.graph.n**2 * call.dtype.itemsize * call.negative + edges)
    return call.plan.device if fits(needed, call.plan.device) else None


def _settle(call: Call, matrix: Any) -> None:
    """Turn the edges into the matrix to close, in place: unit weights, both directions, a zero diagonal."""
    xp, request = namespace(matrix), call.request
    if request.unweighted and call.in_place:
        matrix[xp.isfinite(matrix)] = 1
    if not request.directed:
        # CuPy's minimum flushes subnormal float32 numbers to zero.
        matrix[...] = xp.where(matrix <= matrix.T, matrix, matrix.T) if on_gpu(matrix) else np.minimum(matrix, matrix.T)
    if call.negative:
        call.refuse_loops(host(matrix.diagonal()))
    xp.fill_diagonal(matrix, 0)


def by_products(call: Call) -> tuple[Array, ...]:
    """Multiply a row for each source by the matrix until a fixed point."""
    assert call.sources is not None
    given, directed = call.weighed, call.request.directed  # products never read an unreachable cycle
    matrix = given.matrix(call.dtype, borrow=directed)
    if not directed:
        matrix[...] = np.minimum(matrix, matrix.T)
    known = () if matrix is not given.dense or given.statistics is None else (given.statistics,)
    with noted("the closure", MIN_PLUS, matrix), reporting(None, call.plan) as meter:
        distances, tree = rows_by_products(call.plan, matrix, call.sources, known, meter)
    answer: tuple[Array, ...] = (distances,)
    if tree is not None:
        tree[tree < 0] = NONE
        answer = distances, tree
    cut(call.request.limit, *answer)
    return tuple(array.reshape(*call.shape, call.graph.n) for array in answer)


def by_searches(call: Call, *, scipys: bool, meter: Meter | None = None) -> tuple[Any, ...]:
    """Search from each source, by this library (a meter counts the steps) or by SciPy."""
    request, n = call.request, call.graph.n
    if not scipys and request.method != "FW" and is_held(call.csr, call.dtype):
        csr = call.csr  # these searches never read an unreachable cycle, and report loops
    else:
        csr = call.csr_within_reach
        require_held(csr, call.dtype)
        if call.negative:
            loops = csr.tails == csr.heads
            diagonal = np.zeros(n)
            diagonal[csr.tails[loops]] = csr.weights[0][loops]
            call.refuse_loops(diagonal)
            csr = some(csr, ~loops)
    sources = np.arange(n) if call.sources is None else call.sources
    paths = bool(request.return_predecessors)
    if request.min_only:
        return _nearest(call, csr, sources, paths=paths)
    if not scipys:
        answer = _by_own_searches(call, csr, sources, meter, paths=paths)
    elif call.dtype == np.float64 and not call.in_place:
        answer = _by_scipy(call, as_scipys(csr, call.graph), sources, paths=paths)
    else:
        answer = _copied(call, as_scipys(csr, call.graph), sources, paths=paths)
    return tuple([array.reshape(*call.shape, n) for array in answer])


def _by_own_searches(call: Call, csr: CSR, sources: Array, meter: Meter | None, *, paths: bool) -> tuple[Array, ...]:
    edges = call.searched if csr is call.csr else in_dtype(csr, call.dtype)
    if meter is not None:
        meter.expect(search_steps(edges, len(sources)))
    if call.plan.strategy == "elimination":
        found, tree = rows_by_elimination(call.plan, edges, None, sources, meter)
    else:
        tree = np.full((len(sources), csr.n), NONE, dtype=np.int32) if paths else None
        how: dict[str, Any] = {"searches": call.plan.searches, "order": call.plan.problem.order, "meter": meter}
        found = rows_of_edges(MIN_PLUS, edges, sources, tree=tree, **how)
    if tree is not None:
        if (tree == -1).any():  # only rows without compiled code have −1, and a test takes a sixth of the time of a write
            tree[tree < 0] = NONE
        found = (*found, tree)
    cut(call.request.limit, *found)
    if call.in_place:
        np.copyto(call.graph.dense, found[0])
        found = (call.graph.dense, *found[1:])
    return found


def _by_scipy(call: Call, matrix: Any, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """Find the rows by SciPy: Johnson's algorithm for negative weights, else Dijkstra's."""
    limit = call.request.limit
    if not call.negative:
        return _as_tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit))
    found = _as_tuple(johnson(matrix, indices=sources, return_predecessors=paths))
    cut(limit, *found)
    return found


def _copied(call: Call, matrix: Any, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """Find the rows by SciPy, some at a time, and copy them to another dtype or into the caller's array."""
    n = call.graph.n
    distances = call.graph.dense if call.in_place else np.empty((len(sources), n), call.dtype)
    predecessors = np.empty((len(sources) if paths else 0, n), np.int32)
    for rows in slices(len(sources), n, HOST):
        distances[rows], *before = _by_scipy(call, matrix, sources[rows], paths=paths)
        if paths:
            (predecessors[rows],) = before
    return (distances, predecessors) if paths else (distances,)


def _nearest(call: Call, csr: CSR, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """Find the distance of every vertex from the nearest source.

    SciPy has no such search for negative weights; then the search starts at a new vertex with edges of weight 0 to the sources.
    """
    n, limit = call.graph.n, call.request.limit
    if not call.negative:
        matrix = as_scipys(csr, call.graph)
        distances, *rest = _as_tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit, min_only=True))
        return (distances.astype(call.dtype, copy=False), *rest)
    matrix = as_scipys(with_root(csr, sources))
    distances, predecessors = (found[0, :n] for found in johnson(matrix, indices=[n], return_predecessors=True))
    begins = predecessors == n
    predecessors = np.where(begins, NONE, predecessors).astype(np.int32)
    # Pointer doubling: after t rounds each vertex points 2ᵗ edges back.
    root = np.where(predecessors == NONE, np.arange(n), predecessors)
    for _ in range(n.bit_length()):
        root = root[root]
    nearest = np.where(begins[root], root, NONE).astype(np.int32)
    cut(limit, distances, predecessors)  # last, because a path may exceed the limit and return
    nearest[distances == np.inf] = NONE
    answer = (distances.astype(call.dtype, copy=False), predecessors, nearest)
    return answer if paths else answer[:1]


def _as_tuple(found: Any) -> tuple[Array, ...]:
    return found if isinstance(found, tuple) else (found,)
