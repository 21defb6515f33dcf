"""The answer from searches, this library's or SciPy's own, on the edges as they were read here."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra, johnson

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.trees import NONE
from semiring.csgraph.arcs import Arcs, Array
from semiring.csgraph.call import Call, cut

__all__ = ["searched"]

_BLOCK = 1 << 20
"""Distances that SciPy computes at once where they are narrowed or copied afterwards."""


def searched(call: Call, *, scipys: bool) -> tuple[Any, ...]:
    """Distances, predecessors where they are wanted, and with ``min_only=True`` the nearest sources too."""
    request, n = call.request, call.graph.n
    if not scipys and request.method != "FW" and call.arcs.held_by(call.dtype):
        arcs = call.arcs  # searches of this library look only where paths lead, and tell of loops themselves
    else:
        arcs = call.reached
        arcs.require_held(call.dtype)
        if call.negative:
            call.refuse_loops(arcs.find(np.arange(n), np.arange(n))[0])
            arcs = arcs.without_loops()
    sources = np.arange(n) if call.sources is None else call.sources
    paths = bool(request.return_predecessors)
    if request.min_only:
        return _at_once(call, arcs, sources, paths=paths)
    if not scipys:
        return tuple(array.reshape(*call.shape, n) for array in _own_rows(call, arcs, sources, paths=paths))
    matrix = arcs.compressed()
    if call.dtype == np.float64 and not call.in_place:
        return tuple(array.reshape(*call.shape, n) for array in _rows(call, matrix, sources, paths=paths))
    distances = call.graph.dense if call.in_place else np.empty((len(sources), n), call.dtype)
    predecessors = np.empty((len(sources) if paths else 0, n), np.int32)
    step = max(1, _BLOCK // max(1, n))
    for start in range(0, len(sources), step):
        rows = slice(start, start + step)
        distances[rows], *before = _rows(call, matrix, sources[rows], paths=paths)
        if paths:
            (predecessors[rows],) = before
    answer = (distances, predecessors) if paths else (distances,)
    return tuple(array.reshape(*call.shape, n) for array in answer)


def _own_rows(call: Call, arcs: Arcs, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """Distances from some sources by the searches of this library, and the predecessors if they are wanted."""
    edges = call.listed if arcs is call.arcs else arcs.edges(call.dtype)
    tree = np.full((len(sources), arcs.n), NONE, dtype=np.int32) if paths else None
    found = rows_of_edges(MIN_PLUS, edges, sources, tree=tree, searches=call.plan.searches, order=call.plan.problem.order)
    if tree is not None:
        if (tree == -1).any():  # from rows that were not searched by compiled code; to look takes a sixth of the time
            tree[tree < 0] = NONE
        found = (*found, tree)
    cut(call.request.limit, *found)
    if call.in_place:
        np.copyto(call.graph.dense, found[0])
        found = (call.graph.dense, *found[1:])
    return found


def _rows(call: Call, matrix: Any, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """Distances from some sources, and the predecessors if they are wanted."""
    limit = call.request.limit
    if not call.negative:
        return _tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit))
    found = _tuple(johnson(matrix, indices=sources, return_predecessors=paths))
    cut(limit, *found)
    return found


def _at_once(call: Call, arcs: Arcs, sources: Array, *, paths: bool) -> tuple[Array, ...]:
    """The distance of every vertex from the nearest source.

    SciPy has a search for that, but not for negative weights: then it begins at one more vertex, with edges of weight 0 to the sources.
    """
    n, limit = call.graph.n, call.request.limit
    if not call.negative:
        matrix = arcs.compressed()
        distances, *rest = _tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit, min_only=True))
        return (distances.astype(call.dtype, copy=False), *rest)
    matrix = arcs.with_root(sources).compressed()
    distances, predecessors = (found[0, :n] for found in johnson(matrix, indices=[n], return_predecessors=True))
    begins = predecessors == n
    predecessors = np.where(begins, NONE, predecessors).astype(np.int32)
    # Each vertex points to its predecessor, then to that one's, and after t rounds 2ᵗ edges back.
    root = np.where(predecessors == NONE, np.arange(n), predecessors)
    for _ in range(n.bit_length()):
        root = root[root]
    nearest = np.where(begins[root], root, NONE).astype(np.int32)
    cut(limit, distances, predecessors)  # after that: a path may go beyond the limit and come back
    nearest[distances == np.inf] = NONE
    answer = (distances.astype(call.dtype, copy=False), predecessors, nearest)
    return answer if paths else answer[:1]


def _tuple(found: Any) -> tuple[Array, ...]:
    return found if isinstance(found, tuple) else (found,)
