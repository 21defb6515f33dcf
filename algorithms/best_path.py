"""One best path of a sparse graph, by best-first search from both of its ends.

Examples
--------
>>> from semiring import MIN_PLUS
>>> from semiring.kernels.select import searches_for
>>> tails, heads, lengths = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([1, 3, 0, 2, 0, 3, 0]), np.array([3.0, 7, 8, 2, 5, 1, 2])
>>> edges = CSR.of(tails, heads, (lengths,), 4, (np.inf,))
>>> best_path(edges, 0, 3, searches_for(MIN_PLUS, edges.dtypes, "cpu"))
(array([0, 1, 2, 3]), (np.float64(6.0),))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.kernels.limits import half_range

if TYPE_CHECKING:
    from semiring.kernels.cpu.searches import Searches

__all__ = ["best_path", "is_bounded"]

Array = np.ndarray[Any, Any]


def best_path(edges: CSR, source: int, target: int, searches: Searches) -> tuple[Array, tuple[Any, ...]]:
    """Find the vertices of a best path between two different vertices, none without a path, and its element. O(m) at most for symmetry.

    The element is multiplied up from the source, edge by edge, as rows of the closure are.

    Parameters
    ----------
    edges : CSR
        None of which improves on 1.
    source, target : int
    searches : Searches
    """
    back = edges.transposed()
    vertices, _ = searches.path((edges.starts, edges.heads, edges.weights), (back.starts, back.heads, back.weights), source, target)
    if vertices is None:
        return np.zeros(0, np.int64), edges.zero
    position, number = edges.leaving(vertices[:-1])
    on_the_way = number[edges.heads[number] == vertices[1:][position]]
    return vertices, tuple([v[-1] for v in searches.line(tuple([w[on_the_way] for w in edges.weights]))])


def is_bounded(edges: CSR) -> bool:
    """Whether all paths stay far from the ends of the dtype, so that what a search does not find is not there."""
    if all(d.kind == "b" for d in edges.dtypes):
        return True
    known = len(edges.dtypes) == len(edges.statistics) == 1 and edges.statistics[0].finite is not None
    return known and edges.n * max(map(abs, edges.statistics[0].finite or (0,))) < half_range(edges.dtypes[0])
