"""The answer from the closure of the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.namespace import host, namespace, on_gpu
from semiring.closing import solve as close
from semiring.csgraph.call import Call, cut
from semiring.kernels.cuda.transfer import download, upload
from semiring.kernels.room import ALWAYS_FITS, free_memory, with_scratch
from semiring.kernels.select import device_of, on_device, place, several
from semiring.options import Options

__all__ = ["closed"]


def closed(call: Call, device: Any) -> tuple[Any, ...]:
    """Distances, and predecessors where they are wanted, computed on a device."""
    request, graph, n = call.request, call.graph, call.graph.n
    paths = bool(request.return_predecessors)
    # Where weights are negative a closure may have to look at its input again.
    matrix = graph.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths)
    with on_device(device_of(matrix)):
        _settle(call, matrix)
    gpu = _grows_trees(call, matrix, device) if paths else None
    with on_device(gpu or device_of(matrix)):
        options = Options(paths, "auto", None, np.inf, None, device, not call.negative, None, None, None, None)
        found = close(matrix if gpu is None else upload(matrix), MIN_PLUS, options, reflexive=True)
        answer: tuple[Any, ...] = (found.distances, found.predecessors()) if paths else (found,)
        if call.sources is not None:
            rows = namespace(answer[0]).asarray(call.sources)
            answer = tuple(array[rows].reshape(*call.shape, n) for array in answer)
        cut(request.limit, *answer)
        if gpu is not None:
            answer = tuple(map(download, answer))
    if call.in_place and not np.may_share_memory(answer[0], graph.dense):
        np.copyto(graph.dense, answer[0])
        answer = (graph.dense, *answer[1:])
    return answer


def _grows_trees(call: Call, matrix: Any, device: Any) -> str | None:
    """The one GPU with room for the closure of a matrix of the host and for its trees, which take the host far longer; None without it."""
    if on_gpu(matrix) or several(device) is not None:
        return None
    n, itemsize = call.graph.n, matrix.itemsize
    needed = with_scratch(n**2 * (itemsize * (2 if call.negative else 1) + 2 * np.dtype(np.int32).itemsize))
    where = place(device, (matrix,), float(n) ** 3, needed)
    return where if where.startswith("cuda:") and (needed <= ALWAYS_FITS or needed <= free_memory(int(where[5:]))) else None


def _settle(call: Call, matrix: Any) -> None:
    """Make of the edges the matrix that is to be closed, in place."""
    xp, request = namespace(matrix), call.request
    if request.unweighted:
        matrix[xp.isfinite(matrix)] = 1
    if not request.directed:
        matrix[...] = xp.minimum(matrix, matrix.T)
    call.refuse_loops(host(matrix.diagonal()))
    xp.fill_diagonal(matrix, 0)
