"""Orders of elimination with little fill: nested dissection by METIS, or minimum degree by SciPy.

A fill-reducing order is found from the pattern of a graph alone, without regard to directions and weights. Nested dissection (George, 1973)
takes out small sets of vertices that separate the rest, the last ones first; on planar graphs no order has less fill than a constant times
its n log n (Lipton, Rose and Tarjan, 1979). Minimum degree (Markowitz, 1957) takes out the vertex with the fewest neighbours each time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.common.errors import GraphError, install_of

__all__ = ["ORDERS", "fill_reducing_order"]

Array = np.ndarray[Any, Any]


def _metis(starts: Array, heads: Array) -> Array:
    """Nested dissection, by pymetis."""
    metis = importlib.import_module("pymetis")
    adjacency = metis.CSRAdjacency(starts.astype(np.int32), heads.astype(np.int32))
    # Of its two arrays the first has the vertices in their order, and the second the position of each.
    return np.asarray(metis.nested_dissection(adjacency=adjacency)[0], np.int64)


def _scipy(starts: Array, heads: Array) -> Array:
    """Multiple minimum degree, which SuperLU finds before a factorization that drops everything."""
    sparse, linalg = (importlib.import_module(f"scipy.{name}") for name in ("sparse", "sparse.linalg"))
    n = len(starts) - 1
    matrix = sparse.csc_array((np.ones(len(heads)), heads.astype(np.int32), starts.astype(np.int32)), shape=(n, n))
    matrix.setdiag(2.0 * len(heads) + 2)
    found = linalg.spilu(matrix, permc_spec="MMD_AT_PLUS_A", drop_tol=1.0, fill_factor=1.0, diag_pivot_thresh=0.0)
    return np.argsort(found.perm_c).astype(np.int64)


ORDERS: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "metis": ("pymetis", _metis),
    "minimum degree": ("scipy", _scipy),
}
"""The module that finds each order, and how; the best first. (Of suitesparse-amd the wheels take dense matrices only.)"""


def fill_reducing_order(starts: Array, heads: Array, order: Any = "auto") -> tuple[Array, str]:
    """The vertices of a symmetric pattern in an order of elimination, and its name.

    Parameters
    ----------
    starts, heads : int arrays
        The pattern in compressed rows, without its diagonal.
    order : {"auto", "metis", "minimum degree", "natural"} or int array of shape (n,)
        "auto" is the first of them that is installed; an array names the vertices in their order.

    Raises
    ------
    GraphError
        For an array that is no permutation, an unknown name, or one whose library is not installed.
    """
    n = len(starts) - 1
    if not isinstance(order, str):
        given = np.asarray(order)
        if given.shape != (n,) or given.dtype.kind not in "iu" or not np.array_equal(np.sort(given), np.arange(n)):
            raise GraphError(f"order must name each of the {n} vertices once, or be one of 'auto', {_names()}")
        return given.astype(np.int64), "given"
    if order == "natural" or not len(heads):
        return np.arange(n), "natural"
    if order != "auto" and order not in ORDERS:
        raise GraphError(f"order {order!r} is unknown; it may be 'auto', {_names()}, or an array of the vertices in their order")
    if len(heads) > np.iinfo(np.int32).max:
        raise GraphError(
            f"METIS and SciPy order at most 2³¹ − 1 entries, and there are {len(heads):,}; pass the vertices in an order of yours"
        )
    for name in ORDERS if order == "auto" else (order,):
        module, find = ORDERS[name]
        try:
            return find(starts, heads), name
        except ImportError:
            if order != "auto":
                raise GraphError(f"order {order!r} needs {module}; {install_of('sparse')}, or pass order='auto'") from None
    modules = ", ".join(module for module, _ in ORDERS.values())
    raise GraphError(f"an order of elimination is found by one of {modules}: {install_of('sparse')}, or pass order='natural'")


def _names() -> str:
    """How orders are called."""
    return ", ".join(map(repr, [*ORDERS, "natural"]))
