"""Centralities and efficiencies by distance, as NetworkX returns them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from semiring.networkx_backend.distances import Distances, algorithm, distances
from semiring.networkx_backend.edges import dense, hops, infinity
from semiring.solve import apsp

__all__ = ["closeness_centrality", "global_efficiency", "harmonic_centrality", "local_efficiency"]

_TOGETHER = 1 << 22
"""Entries of neighbourhoods that are closed in one batch."""


@algorithm
def closeness_centrality(G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True, *, sp: None = None) -> Any:
    """See `networkx.closeness_centrality`."""
    if u is not None and u not in G:
        raise nx.NodeNotFound(f"Node {u} is not in G")
    found = distances(G, distance)
    n = len(found.nodes)
    closeness = {}
    axis = 0 if G.is_directed() else 1  # of a directed graph it is the distance from the others that counts
    for node, reached, total in zip(found.nodes, found.reached.sum(axis=axis).tolist(), found.totals(axis), strict=True):
        value = 0.0
        if total > 0 and n > 1:
            value = (reached - 1.0) / total
            if wf_improved:
                value *= (reached - 1.0) / (n - 1)
        closeness[node] = value
    return closeness if u is None else closeness[u]


@algorithm
def harmonic_centrality(G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Any, float]:
    """See `networkx.harmonic_centrality`."""
    found = distances(G, distance)
    inverses = found.inverses()
    if sources is not None:
        inverses = inverses[[found.number[node] for node in set(G.nbunch_iter(sources))]]
    wanted = found.nodes if nbunch is None else set(G.nbunch_iter(nbunch))
    totals = inverses.sum(axis=0).tolist()
    return {node: totals[found.number[node]] for node in wanted}


@algorithm
def global_efficiency(G: Any) -> float:
    """See `networkx.global_efficiency`."""
    n = len(G)
    return float(distances(G, None).inverses().sum() / (n * (n - 1))) if n > 1 else 0


@algorithm
def local_efficiency(G: Any) -> float:
    """See `networkx.local_efficiency`."""
    edges = hops(G)
    matrix = dense(edges)
    degree = np.bincount(edges.rows, minlength=len(edges.nodes))
    neighbours = np.split(edges.columns, np.cumsum(degree)[:-1])
    total = 0.0
    for d in np.unique(degree[degree > 1]).tolist():
        # The neighbourhoods of all nodes of one degree are a batch of closures.
        around = np.stack([neighbours[v] for v in np.flatnonzero(degree == d)])
        for part in np.array_split(around, -(-around.size * d // _TOGETHER)):
            closed = apsp(matrix[part[:, :, None], part[:, None, :]], nonedge=infinity(matrix.dtype), overwrite=True)
            total += Distances([], closed, None).inverses().sum() / (d * (d - 1))
    return float(total) / len(G)
