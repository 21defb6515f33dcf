"""Centralities, efficiencies, eccentricities and topological indices, from all distances, as NetworkX returns them."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.distances import DistanceSums, extreme_eccentricity, extreme_of
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_memory
from semiring.arrays.pieces import GPU
from semiring.execution.question import GivenGraph
from semiring.execution.sums import hop_sums
from semiring.networkx_backend.distances import DistanceRows, algorithm, by_rows, sparse
from semiring.planning import Plan, edges_problem, plan
from semiring.planning.options import Options
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
    """Return the number of nodes that reach each node, itself included, and the sum of their distances to the node."""
    edges = sparse(G, distance)
    if G.is_directed():
        edges = edges.transposed()
    how, sums = _planned(edges)
    if sums is not None:
        exact = np.float64 if edges.dtypes[0].kind == "f" else np.int64  # a sum needs more than the dtype of a distance
        return (sums.connected + 1).tolist(), sums.totals.astype(exact).tolist()
    reached: list[int] = []
    totals: list[Any] = []
    for rows in by_rows(edges, how):
        reached += rows.reached.sum(axis=1).tolist()
        totals += rows.totals()
    return reached, totals


@algorithm
def harmonic_centrality(G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Any, float]:
    """See `networkx.harmonic_centrality`."""
    edges = sparse(G, distance)
    some = None if sources is None else set(G.nbunch_iter(sources))
    count = np.array([some is None or node in some for node in G], dtype=bool)
    sums = np.zeros(edges.n)
    for rows in by_rows(edges):
        sums += rows.inverses()[count[rows.numbers]].sum(axis=0)
    totals = dict(zip(G, sums.tolist(), strict=True))
    return totals if nbunch is None else {node: totals[node] for node in set(G.nbunch_iter(nbunch))}


@algorithm
def global_efficiency(G: Any) -> float:
    """See `networkx.global_efficiency`."""
    n = len(G)
    return float(_inverses(sparse(G, None)) / (n * (n - 1))) if n > 1 else 0


def _inverses(edges: CSR) -> float:
    """The sum of 1/d over all distances d that are not 0."""
    return float(sum(rows.inverses().sum() for rows in by_rows(edges)))


@algorithm
def local_efficiency(G: Any) -> float:
    """See `networkx.local_efficiency`."""
    edges = sparse(G, None)
    require_memory(edges.n, edges.dtypes)
    (matrix,) = edges.dense()
    degree = np.diff(edges.starts)
    neighbours = np.split(edges.heads, edges.starts[1:-1])
    total = 0.0
    for d in np.unique(degree[degree > 1]).tolist():
        # The neighbourhoods of all nodes of one degree are a batch of closures.
        around = np.stack([neighbours[v] for v in np.flatnonzero(degree == d)])
        for part in np.array_split(around, -(-around.size * d // GPU)):
            closed = apsp(matrix[part[:, :, None], part[:, None, :]], nonedge=edges.zero[0], overwrite=True)
            total += DistanceRows(closed).inverses().sum() / (d * (d - 1))
    return float(total) / len(G)


# Eccentricities, and what follows from them.


def _eccentricities(G: Any, nodes: Any, weight: Any) -> dict[Any, Any]:
    """Return the distance from each of some nodes to the farthest node; raise NetworkX's error without a path."""
    if len(G) == 0:  # NetworkX 3.7 refuses an empty graph, and older ones do not
        theirs: Any = nx.eccentricity(G, v=nodes, weight=weight, backend="networkx")
        return {**theirs}
    wanted = list(G.nbunch_iter(nodes))
    reaches, farthest = _farthest(sparse(G, weight))
    number = {node: i for i, node in enumerate(G)}
    some = [number[node] for node in wanted]
    _require_connected(G, connected=bool(reaches[some].all()))
    return dict(zip(wanted, farthest[some].tolist(), strict=True))


def _planned(edges: CSR) -> tuple[Plan | None, DistanceSums | None]:
    """Return the plan of all distances by rows, or the pairs of each distance, if hop counts are planned and nothing is rounded."""
    how = plan(edges_problem(MIN_PLUS, edges, Options(), wanted="sums"))
    return (None, hop_sums(how, GivenGraph(edges), Options())) if how.strategy == "hop counts" else (how, None)


def _farthest(edges: CSR, how: Plan | None = None) -> tuple[Array, Array]:
    """Return True for each node that reaches all others, and the distance to the farthest one."""
    how, sums = _planned(edges) if how is None else (how, None)
    if sums is not None:
        return sums.connected == edges.n - 1, sums.farthest.astype(edges.dtypes[0])
    found = [(rows.reached.all(axis=1), rows.matrix.max(axis=1, initial=0)) for rows in by_rows(edges, how)]
    reaches, farthest = map(np.concatenate, zip(*found, strict=True))
    return reaches, farthest


def _require_connected(G: Any, *, connected: bool) -> None:
    """NetworkX's refusal."""
    if not connected:
        reason = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {reason} connected")


def _extreme(G: Any, weight: Any, *, greatest: bool, every: bool) -> tuple[Any, list[Any]]:
    """Return the greatest or the least eccentricity, and nodes with this eccentricity: all of them, or at least one."""
    if len(G) == 0:  # of nothing there is neither, as Python says
        return (max if greatest else min)(_eccentricities(G, None, weight).values()), []
    edges = sparse(G, weight)
    how = plan(edges_problem(MIN_PLUS, edges, Options(), wanted="extremes"))
    found = extreme_eccentricity(edges, greatest=greatest, every=every) if how.strategy == "bounds" else None
    if found is not None:
        first = np.zeros(1, np.intp)
        _require_connected(G, connected=all(len(part.reachable(first)) == edges.n for part in {edges, edges.transposed()}))
    else:
        reaches, farthest = _farthest(edges, None if how.strategy == "bounds" else how)
        _require_connected(G, connected=bool(reaches.all()))
        found = extreme_of(edges, farthest, greatest=greatest, every=every)
    value, vertices = found
    nodes = list(G)
    return edges.dtypes[0].type(value).item(), [nodes[v] for v in vertices.tolist()]


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
    totals: list[Any] = []
    for rows in by_rows(sparse(G, weight)):
        if not rows.reached.all():
            raise nx.NetworkXNoPath(f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity.")
        totals += rows.totals()
    least = min(totals, default=0)
    return [node for node, total in zip(G, totals, strict=True) if total == least]


centroid = barycenter  # its name since NetworkX 3.7


@algorithm
def harmonic_diameter(G: Any, sp: None = None, *, weight: Any = None) -> float:
    """See `networkx.harmonic_diameter`."""
    n = len(G)
    total = _inverses(sparse(G, weight, "dijkstra"))
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
    total = sum(map(sum, map(DistanceRows.totals, by_rows(sparse(G, weight)))))
    return total if directed else total / 2


@algorithm
def schultz_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.schultz_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    degrees, total = _degrees(G), 0
    for rows in by_rows(sparse(G, weight)):  # each distance counts with the degrees of both ends
        lengths, own = rows.finite(2 * int(degrees.sum()) * len(G)), degrees[rows.numbers]
        total += _number((lengths @ degrees).sum() + own @ lengths.sum(axis=1))
    return total / 2


@algorithm
def gutman_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.gutman_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    degrees, total = _degrees(G), 0
    for rows in by_rows(sparse(G, weight)):
        total += _number(degrees[rows.numbers] @ rows.finite(int(degrees.sum()) ** 2) @ degrees)
    return total / 2


@algorithm
def hyper_wiener_index(G: Any, weight: Any = None) -> Any:
    """See `networkx.hyper_wiener_index`."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    total = 0
    for rows in by_rows(sparse(G, weight)):
        farthest = int(rows.matrix.max(initial=0, where=rows.reached))
        lengths = rows.finite(len(G) ** 2 * (farthest + 1))
        total += _number((lengths + lengths * lengths).sum())
    return total / 2


def _number(total: Any) -> Any:
    """A sum as one of Python's numbers."""
    return total.item() if isinstance(total, np.generic) else total


def _degrees(G: Any) -> Array:
    """The degrees of the nodes, in their order."""
    return np.array([degree for _, degree in G.degree(list(G))])
