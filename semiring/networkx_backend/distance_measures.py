"""Eccentricities and what follows from them, as NetworkX returns it."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from semiring.networkx_backend.distances import algorithm, distances

__all__ = ["barycenter", "center", "centroid", "diameter", "eccentricity", "harmonic_diameter", "periphery", "radius"]


def _eccentricities(G: Any, nodes: Any, weight: Any) -> dict[Any, Any]:
    if len(G) == 0:  # NetworkX 3.7 refuses an empty graph, and older ones do not
        theirs: Any = nx.eccentricity(G, v=nodes, weight=weight, backend="networkx")
        return {**theirs}
    found = distances(G, weight)
    wanted = list(G.nbunch_iter(nodes))
    rows = [found.number[node] for node in wanted]
    if not found.reached[rows].all():
        reason = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {reason} connected")
    farthest = found.matrix.max(axis=1, initial=0)
    return dict(zip(wanted, farthest[rows].tolist(), strict=True))


@algorithm
def eccentricity(G: Any, v: Any = None, sp: None = None, weight: Any = None) -> Any:
    """See `networkx.eccentricity`."""
    e = _eccentricities(G, v, weight)
    return e[v] if v in G else e


@algorithm
def diameter(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.diameter`."""
    return max(_eccentricities(G, None, weight).values())


@algorithm
def radius(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.radius`."""
    return min(_eccentricities(G, None, weight).values())


@algorithm
def periphery(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.periphery`."""
    ecc = _eccentricities(G, None, weight)
    largest = max(ecc.values())
    return [v for v, far in ecc.items() if far == largest]


@algorithm
def center(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.center`."""
    ecc = _eccentricities(G, None, weight)
    smallest = min(ecc.values())
    return [v for v, far in ecc.items() if far == smallest]


@algorithm
def barycenter(G: Any, weight: Any = None, attr: None = None, sp: None = None) -> list[Any]:
    """See `networkx.barycenter`."""
    found = distances(G, weight)
    if not found.reached.all():
        raise nx.NetworkXNoPath(f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity.")
    totals = found.totals()
    least = min(totals, default=0)
    return [node for node, total in zip(found.nodes, totals, strict=True) if total == least]


centroid = barycenter  # its name since NetworkX 3.7


@algorithm
def harmonic_diameter(G: Any, sp: None = None, *, weight: Any = None) -> float:
    """See `networkx.harmonic_diameter`."""
    n = len(G)
    total = float(np.sum(distances(G, weight, "dijkstra").inverses()))
    if total != 0:
        return n * (n - 1) / total
    return math.inf if n > 1 else math.nan
