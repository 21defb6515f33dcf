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

__all__ = ["best_path", "pays"]

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
    ahead, behind = ((g.starts, g.heads, g.weights) for g in (edges, back))
    vertices, element, _ = searches.path(ahead, behind, source, target)
    return (np.zeros(0, np.int64), edges.zero) if vertices is None else (vertices, element)


def pays(edges: CSR) -> bool:
    """Tell whether a search from both ends is right and fast: a graph with few edges a vertex is searched faster than it is transposed."""
    return (2 * len(edges.heads) > 3 * edges.n or edges.symmetric) and _is_bounded(edges)


def _is_bounded(edges: CSR) -> bool:
    """Tell whether all paths stay far from the ends of the dtype, so that vertices without a path are known."""
    if all(d.kind == "b" for d in edges.dtypes):
        return True
    known = len(edges.dtypes) == len(edges.statistics) == 1 and edges.statistics[0].finite is not None
    return known and edges.n * max(map(abs, edges.statistics[0].finite or (0,))) < half_range(edges.dtypes[0])
