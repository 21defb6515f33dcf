"""The answer from the closure of the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.namespace import host, namespace
from semiring.closing import solve as close
from semiring.csgraph.call import Call, cut
from semiring.kernels.select import device_of, on_device
from semiring.options import Options

__all__ = ["closed"]


def closed(call: Call) -> tuple[Any, ...]:
    """Distances, and predecessors where they are wanted, on the device that the call names or that is fastest."""
    request, graph, n = call.request, call.graph, call.graph.n
    paths = bool(request.return_predecessors)
    # Where weights are negative a closure may have to look at its input again.
    matrix = graph.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths)
    with on_device(device_of(matrix)):
        _settle(call, matrix)
        options = Options(paths, "auto", None, np.inf, None, request.device, not call.negative, None, None, None, None)
        found = close(matrix, MIN_PLUS, options, reflexive=True)
        distances, predecessors = (found.distances, found.predecessors()) if paths else (found, None)
        if call.in_place and not np.may_share_memory(distances, graph.dense):
            np.copyto(graph.dense, distances)
            distances = graph.dense
        if call.sources is not None:
            rows = namespace(distances).asarray(call.sources)
            distances = distances[rows].reshape(*call.shape, n)
            predecessors = None if predecessors is None else predecessors[rows].reshape(*call.shape, n)
        cut(request.limit, distances, predecessors)
    return (distances,) if predecessors is None else (distances, predecessors)


def _settle(call: Call, matrix: Any) -> None:
    """Make of the edges the matrix that is to be closed, in place."""
    xp, request = namespace(matrix), call.request
    if request.unweighted:
        matrix[xp.isfinite(matrix)] = 1
    if not request.directed:
        matrix[...] = xp.minimum(matrix, matrix.T)
    call.refuse_loops(host(matrix.diagonal()))
    xp.fill_diagonal(matrix, 0)
