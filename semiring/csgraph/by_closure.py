"""The answer from the closure of the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.errors import noted
from semiring.algebra.namespace import host, namespace, on_gpu
from semiring.csgraph.call import Call, cut
from semiring.execution.whole import close_whole
from semiring.graphs import Graph
from semiring.graphs.by_rows import rows_of_graph
from semiring.kernels.cuda.transfer import download, upload
from semiring.kernels.devices import device_of, on_device
from semiring.kernels.room import fits, with_scratch
from semiring.options import Options

__all__ = ["closed"]


def closed(call: Call) -> tuple[Any, ...]:
    """Distances, and predecessors where they are wanted."""
    request, graph, n = call.request, call.graph, call.graph.n
    paths = bool(request.return_predecessors)
    gpu = _one_gpu(call)
    edges = graph if call.in_place else call.edges
    # Where weights are negative a closure may have to look at its input again.
    matrix = edges.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths, device=gpu or "cpu")
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
    """The closure of the matrix by the plan of the call, or its `Paths`."""
    plan, graph = call.plan, Graph((matrix,), owned=not call.negative)
    with noted("the closure", plan.semiring, matrix):
        if plan.strategy == "whole":
            return close_whole(plan, graph, lambda: graph, reflexive=True, returns=plan.gpu and not on_gpu(matrix))
        from semiring.execution.block_rows import close_by_rows

        return close_by_rows(plan, rows_of_graph(graph), graph, Options(plan.paths, nonedge=np.inf, overwrite=graph.owned), reflexive=True)


def _one_gpu(call: Call) -> str | None:
    """The one GPU with room for all that a graph of the host needs; None without it.

    There the matrices of sparse arrays are made, of which only the edges go there, and the trees grow, which take the host far longer.
    """
    if on_gpu(call.graph.dense) or not call.plan.gpu or call.plan.strategy != "whole":
        return None
    edges = 0 if call.graph.entries is None else call.graph.entries.nbytes
    needed = with_scratch(call.bytes + call.graph.n**2 * call.dtype.itemsize * call.negative + edges)
    return call.plan.device if fits(needed, call.plan.device) else None


def _settle(call: Call, matrix: Any) -> None:
    """Make of the edges the matrix that is to be closed, in place."""
    xp, request = namespace(matrix), call.request
    if request.unweighted and call.in_place:
        matrix[xp.isfinite(matrix)] = 1
    if not request.directed:
        # CuPy's own minimum of float32 makes zeros of subnormals.
        matrix[...] = xp.where(matrix <= matrix.T, matrix, matrix.T) if on_gpu(matrix) else np.minimum(matrix, matrix.T)
    if call.negative:
        call.refuse_loops(host(matrix.diagonal()))
    xp.fill_diagonal(matrix, 0)
