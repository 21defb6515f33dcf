"""The strategies for csgraph's shortest paths: the closure, products of a few rows, or searches by this library or SciPy.

`solve` searches small sparse graphs at once (`small_rows`); `_answer` follows the plan of any other call:

- `by_closure` closes the dense matrix like `semiring.apsp`, and selects the requested rows.
- `by_products` multiplies rows by the dense matrix until a fixed point.
- `by_searches` searches from each source in compressed rows, or eliminates; `by_scipy` calls SciPy's functions.

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
from semiring.arrays.devices import device_of, host, namespace, on_device, on_gpu, to_gpu
from semiring.arrays.memory import fits, with_scratch
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import OverflowRiskError, callers_level, noted
from semiring.csgraph.call import METHODS, AsBoth, Call, Request, cut, read_call
from semiring.csgraph.reading import Array, as_scipys, both_ways, in_dtype, is_held, with_root
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.reporting import reporting
from semiring.execution.search import search, search_steps
from semiring.execution.strategy import run
from semiring.graphs import Graph
from semiring.graphs.coo import sound_rows
from semiring.graphs.vertices import Vertices
from semiring.kernels.cuda.blocks import download, upload
from semiring.kernels.machine import FEW_STEPS
from semiring.kernels.select import searches_for
from semiring.planning.options import Options

__all__ = ["by_closure", "by_products", "by_scipy", "by_searches", "small_rows", "solve"]

_FLOAT64 = np.dtype(np.float64)


def solve(csgraph: Any, request: Request) -> Any:
    """Return the distances, and with ``return_predecessors=True`` the predecessors too."""
    answer: tuple[Any, ...] | None = small_rows(csgraph, request)
    if answer is None:
        call = read_call(csgraph, request)
        if call.request.method == "D" and call.negative:
            warnings.warn(
                "Graph has negative weights: the distances are right, and a negative cycle raises NegativeCycleError. "
                "SciPy's dijkstra may be inaccurate, or never return.",
                stacklevel=callers_level(),
            )
        with AsBoth():
            answer = _answer(call)
    return answer[0] if len(answer) == 1 else answer


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
        if plan.strategy == "SciPy":
            answer = by_scipy(call)
        elif plan.by_edges:
            answer = by_searches(call)
        elif plan.strategy == "rows by products":
            answer = by_products(call)
        else:
            answer = by_closure(call)
    except OverflowRiskError:
        if call.request.device != "auto" or there or call.in_place:
            raise
        answer = by_scipy(call)  # SciPy lets sums overflow to ∞
    if there and plan.strategy == "SciPy":
        with on_device(device_of(call.graph.dense)):
            answer = tuple(map(to_gpu, answer))
    if call.in_place and not np.may_share_memory(answer[0], call.graph.dense):
        np.copyto(call.graph.dense, answer[0])
        answer = (call.graph.dense, *answer[1:])
    return answer if call.graph.restore is None else tuple(map(call.graph.restore, answer))


def by_closure(call: Call) -> tuple[Any, ...]:
    """Close the matrix, and return all rows or the requested rows; on one GPU with room, every step runs there."""
    paths, gpu = call.plan.paths, _one_gpu(call)
    given = call.graph if call.in_place else call.within_reach
    # A closure with negative weights may have to read the input again.
    matrix = given.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths, device=gpu or "cpu")
    with on_device(device_of(matrix)):
        _settle(call, matrix)
    with on_device(gpu or device_of(matrix)):
        if gpu is not None and paths and not on_gpu(matrix):
            matrix = upload(matrix)
        answer = _run(call, Graph((matrix,), owned=not call.negative))
        if call.sources is not None:
            rows = namespace(answer[0]).asarray(call.sources)
            answer = tuple(array[rows].reshape(*call.shape, call.graph.n) for array in answer)
        cut(call.request.limit, *answer)
        return tuple(map(download, answer)) if gpu is not None and on_gpu(matrix) else answer


def _run(call: Call, graph: Graph, selection: Selection | None = None) -> tuple[Any, ...]:
    """Run the plan for all rows of a matrix, or some."""
    plan = call.plan
    with noted("the closure", MIN_PLUS, graph.values):
        found = run(plan, GivenGraph(graph=graph), Question(MIN_PLUS, Options(plan.paths, nonedge=np.inf)), selection)
    return (found.distances, found.predecessors()) if plan.paths else (found,)


def _one_gpu(call: Call) -> str | None:
    """Return the GPU that can hold the whole computation for a graph on the host; None without one.

    The GPU then receives only the edges of a sparse array, and also grows the predecessor trees, far faster than the host.
    """
    plan, entries = call.plan, call.graph.entries
    if on_gpu(call.graph.dense) or not plan.gpu or plan.strategy != "whole":
        return None
    entry = call.dtype.itemsize * (1 + call.negative) + 8 * plan.paths  # of the matrices, and of the construction matrix and predecessors
    needed = with_scratch(plan.n**2 * entry + (0 if entries is None else entries.nbytes))
    return plan.device if fits(needed, plan.device) else None


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


def by_products(call: Call) -> tuple[Any, ...]:
    """Multiply a row for each source by the matrix until a fixed point."""
    assert call.sources is not None
    given, directed, n = call.weighed, call.request.directed, call.graph.n  # products never read an unreachable cycle
    matrix = given.matrix(call.dtype, borrow=directed)
    if not directed:
        matrix[...] = np.minimum(matrix, matrix.T)
    known = given.statistics if matrix is given.dense else None
    graph = Graph((matrix,), owned=False, verify=None if known is None else lambda: (known,))
    answer = _run(call, graph, Selection(n, Vertices(call.sources), Vertices.all_of(n)))
    cut(call.request.limit, *answer)
    return tuple(array.reshape(*call.shape, n) for array in answer)


def by_searches(call: Call) -> tuple[Any, ...]:
    """Search from each source, or eliminate."""
    if call.request.method != "FW" and is_held(call.csr, call.dtype):
        edges = call.searched  # these searches never read an unreachable cycle, and report loops
    else:
        edges = in_dtype(call.csr_within_reach, call.dtype)
    sources = np.arange(edges.n) if call.sources is None else call.sources
    with reporting(None, call.plan) as meter:
        if meter is not None:
            meter.expect(search_steps(edges, len(sources)))
        answer, tree = search(call.plan, edges, None, sources, meter, reflexive=True, nothing=NONE)
    if tree is not None:
        if (tree == -1).any():  # only rows without compiled code have −1, and a test takes a sixth of the time of a write
            tree[tree < 0] = NONE
        answer = (*answer, tree)
    cut(call.request.limit, *answer)
    return tuple([array.reshape(*call.shape, edges.n) for array in answer])


def by_scipy(call: Call) -> tuple[Any, ...]:
    """Search from each source by SciPy's functions."""
    csr, n, paths = call.csr_within_reach, call.graph.n, call.plan.paths
    sources = np.arange(n) if call.sources is None else call.sources
    with reporting(None, call.plan):
        if call.request.min_only:
            return _nearest(call, csr, sources)
        matrix = as_scipys(csr, call.graph)
        if call.dtype == np.float64 and not call.in_place:
            answer = _rows_by_scipy(call, matrix, sources)
        else:  # some rows at a time, into another dtype or the caller's array
            distances = call.graph.dense if call.in_place else np.empty((len(sources), n), call.dtype)
            answer = (distances, np.empty((len(sources), n), np.int32)) if paths else (distances,)
            for rows in slices(len(sources), n, HOST):
                for array, part in zip(answer, _rows_by_scipy(call, matrix, sources[rows]), strict=True):
                    array[rows] = part
    return tuple([array.reshape(*call.shape, n) for array in answer])


def _rows_by_scipy(call: Call, matrix: Any, sources: Array) -> tuple[Array, ...]:
    """Find rows by Johnson's algorithm for negative weights, else Dijkstra's."""
    limit, paths = call.request.limit, call.plan.paths
    if not call.negative:
        return _as_tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit))
    found = _as_tuple(johnson(matrix, indices=sources, return_predecessors=paths))
    cut(limit, *found)
    return found


def _nearest(call: Call, csr: CSR, sources: Array) -> tuple[Array, ...]:
    """Find the distance of every vertex from the nearest source.

    SciPy has no such search for negative weights; then the search starts at a new vertex with edges of weight 0 to the sources.
    """
    n, limit, paths = call.graph.n, call.request.limit, call.plan.paths
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
