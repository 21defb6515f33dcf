"""The answer from products of a few rows with the whole matrix."""

from __future__ import annotations

import numpy as np

from semiring.algorithms.trees import NONE
from semiring.csgraph.arcs import Array
from semiring.csgraph.call import Call, cut
from semiring.execution.rows import rows_by_products

__all__ = ["multiplied"]


def multiplied(call: Call) -> tuple[Array, ...]:
    """Distances from some sources, and predecessors where they are wanted."""
    assert call.sources is not None
    given, directed = call.weighed, call.request.directed  # products look only where paths lead
    matrix = given.matrix(call.dtype, borrow=directed)
    if not directed:
        matrix[...] = np.minimum(matrix, matrix.T)
    known = () if matrix is not given.dense or given.statistics is None else (given.statistics,)
    distances, tree = rows_by_products(call.plan, matrix, call.sources, known)
    answer: tuple[Array, ...] = (distances,)
    if tree is not None:
        tree[tree < 0] = NONE
        answer = distances, tree
    cut(call.request.limit, *answer)
    return tuple(array.reshape(*call.shape, call.graph.n) for array in answer)
