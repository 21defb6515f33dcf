"""Topological indices of molecules, sums over all distances, as NetworkX returns them."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from semiring.networkx_backend.distances import Distances, algorithm, distances

__all__ = ["gutman_index", "hyper_wiener_index", "schultz_index", "wiener_index"]


@algorithm
def wiener_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.wiener_index`."""
    directed = G.is_directed()
    connected = nx.is_strongly_connected if directed else nx.is_connected
    if not connected(G, backend="networkx"):
        return math.inf
    total = sum(distances(G, weight).totals())
    return total if directed else total / 2


@algorithm
def schultz_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.schultz_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    found = distances(G, weight)
    # Each distance counts with the degrees of both ends.
    return sum((out + back) * d for out, back, d in zip(found.totals(1), found.totals(0), _degrees(G, found), strict=True)) / 2


@algorithm
def gutman_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.gutman_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    found = distances(G, weight)
    degrees = np.array(_degrees(G, found))
    return _number(degrees @ found.finite(int(degrees.sum()) ** 2) @ degrees) / 2


@algorithm
def hyper_wiener_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.hyper_wiener_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    found = distances(G, weight)
    farthest = int(found.matrix.max(initial=0, where=found.reached))
    lengths = found.finite(len(G) ** 2 * (farthest + 1))
    return _number((lengths + lengths * lengths).sum()) / 2


def _number(total: Any) -> Any:
    """A sum as one of Python's numbers."""
    return total.item() if isinstance(total, np.generic) else total


def _degrees(G: Any, found: Distances) -> list[int]:
    return [degree for _, degree in G.degree(found.nodes)]
