"""Centralities, efficiencies, eccentricities and topological indices, from all distances, as NetworkX returns them."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from semiring.algorithms.eccentricities import extreme_eccentricity
from semiring.algorithms.hops import distance_sums
from semiring.arrays.pieces import GPU
from semiring.kernels.machine import PART
from semiring.networkx_backend.distances import Distances, algorithm, dense, distances, hops, infinity, sparse
from semiring.solve import apsp

__all__ = [
    "barycenter", "center", "centroid", "closeness_centrality", "diameter", "eccentricity", "global_efficiency", "gutman_index",
    "harmonic_centrality", "harmonic_diameter", "hyper_wiener_index", "local_efficiency", "periphery", "radius", "schultz_index",
    "wiener_index",
]  # fmt: skip


# Centralities and efficiencies.


@algorithm
def closeness_centrality(G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True, *, sp: None = None) -> Any:
    """See `networkx.closeness_centrality`."""
    if u is not None and u not in G:
        raise nx.NodeNotFound(f"Node {u} is not in G")
    n = len(G)
    closeness = {}
    for node, reached, total in zip(G, *_incoming(G, distance), strict=True):
        value = 0.0
        if total > 0 and n > 1:
            value = (reached - 1.0) / total
            if wf_improved:
                value *= (reached - 1.0) / (n - 1)
        closeness[node] = value
    return closeness if u is None else closeness[u]


def _incoming(G: Any, distance: Any) -> tuple[list[int], list[Any]]:
    """How many nodes reach each one, itself included, and the sum of their distances: in a directed graph those from the others count."""
    if len(G) > PART and distance is None and (sums := distance_sums(sparse(G, None).transposed())) is not None:
        return (sums.connected + 1).tolist(), sums.totals.astype(np.int64).tolist()
    found, axis = distances(G, distance), 0 if G.is_directed() else 1
    return found.reached.sum(axis=axis).tolist(), found.totals(axis)


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
    degree = np.bincount(edges.tails, minlength=edges.n)
    neighbours = np.split(edges.heads, np.cumsum(degree)[:-1])
    total = 0.0
    for d in np.unique(degree[degree > 1]).tolist():
        # The neighbourhoods of all nodes of one degree are a batch of closures.
        around = np.stack([neighbours[v] for v in np.flatnonzero(degree == d)])
        for part in np.array_split(around, -(-around.size * d // GPU)):
            closed = apsp(matrix[part[:, :, None], part[:, None, :]], nonedge=infinity(matrix.dtype), overwrite=True)
            total += Distances([], closed, None).inverses().sum() / (d * (d - 1))
    return float(total) / len(G)


# Eccentricities, and what follows from them.


def _eccentricities(G: Any, nodes: Any, weight: Any) -> dict[Any, Any]:
    """The distance from each of some nodes to the farthest one, which NetworkX refuses where there is no path."""
    if len(G) == 0:  # NetworkX 3.7 refuses an empty graph, and older ones do not
        theirs: Any = nx.eccentricity(G, v=nodes, weight=weight, backend="networkx")
        return {**theirs}
    wanted = list(G.nbunch_iter(nodes))
    if len(G) > PART and weight is None and (sums := distance_sums(sparse(G, None))) is not None:
        number = {node: i for i, node in enumerate(G)}
        rows = [number[node] for node in wanted]
        _require_connected(G, connected=bool((sums.connected[rows] == len(G) - 1).all()))
        return dict(zip(wanted, sums.farthest[rows].astype(np.int64).tolist(), strict=True))
    found = distances(G, weight)
    rows = [found.number[node] for node in wanted]
    _require_connected(G, connected=bool(found.reached[rows].all()))
    farthest = found.matrix.max(axis=1, initial=0)
    return dict(zip(wanted, farthest[rows].tolist(), strict=True))


def _require_connected(G: Any, *, connected: bool) -> None:
    """NetworkX's refusal."""
    if not connected:
        reason = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {reason} connected")


def _extreme(G: Any, weight: Any, *, greatest: bool, every: bool) -> tuple[Any, list[Any]]:
    """The greatest or the least eccentricity, and the nodes that have it: all of them, or one at least."""
    if len(G) > PART:
        edges = sparse(G, weight)
        found = extreme_eccentricity(edges, greatest=greatest, every=every)
        if found is not None:
            value, vertices = found
            first, n = np.zeros(1, np.intp), edges.n
            connected = all(len(part.reachable(first)) == n for part in {edges, edges.transposed()})
            _require_connected(G, connected=connected)
            nodes = list(G)
            return edges.dtypes[0].type(value).item(), [nodes[v] for v in vertices.tolist()]
    eccentricities = _eccentricities(G, None, weight)
    value = (max if greatest else min)(eccentricities.values())
    return value, [v for v, far in eccentricities.items() if far == value]


@algorithm
def eccentricity(G: Any, v: Any = None, sp: None = None, weight: Any = None) -> Any:
    """See `networkx.eccentricity`."""
    e = _eccentricities(G, v, weight)
    return e[v] if v in G else e


@algorithm
def diameter(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.diameter`."""
    return _extreme(G, weight, greatest=True, every=False)[0]


@algorithm
def radius(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> Any:
    """See `networkx.radius`."""
    return _extreme(G, weight, greatest=False, every=False)[0]


@algorithm
def periphery(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.periphery`."""
    return _extreme(G, weight, greatest=True, every=True)[1]


@algorithm
def center(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """See `networkx.center`."""
    return _extreme(G, weight, greatest=False, every=True)[1]


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


# Topological indices of molecules: sums over all distances.


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
    """The degrees of the nodes, in their order."""
    return [degree for _, degree in G.degree(found.nodes)]
