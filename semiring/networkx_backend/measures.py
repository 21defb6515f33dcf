"""Centralities, efficiencies, eccentricities, topological indices and betweenness, in the form that NetworkX returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx
import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.betweenness import Searched, betweenness, dependencies
from semiring.algorithms.csr import CSR, starts_of
from semiring.algorithms.distances import DistanceSums, extreme_eccentricity, extreme_of
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.arrays.memory import require_memory
from semiring.arrays.pieces import GPU
from semiring.execution.question import GivenGraph, Question
from semiring.execution.strategy import solve
from semiring.execution.sums import hop_sums
from semiring.networkx_backend.distances import DistanceRows, algorithm, by_rows, searched_edges, sparse, total_distance
from semiring.planning import Plan, edges_problem, plan
from semiring.planning.options import Options
from semiring.solve import apsp

__all__ = [
    "barycenter", "betweenness_centrality", "betweenness_centrality_subset", "center", "centroid", "closeness_centrality", "diameter",
    "eccentricity", "edge_betweenness_centrality", "global_efficiency", "group_betweenness_centrality", "gutman_index",
    "harmonic_centrality", "harmonic_diameter", "hyper_wiener_index", "local_efficiency", "periphery", "radius", "schultz_index",
    "wiener_index",
]  # fmt: skip


# Centralities and efficiencies.


@algorithm
def closeness_centrality(G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True, *, sp: None = None) -> Any:
    if u is not None and u not in G:
        raise nx.NodeNotFound(f"Node {u} is not in G")
    n = len(G)
    closeness = {}
    for node, reached, total in zip(G if u is None else [u], *_incoming(G, distance, u), strict=True):
        value = 0.0
        if total > 0 and n > 1:
            value = (reached - 1.0) / total
            if wf_improved:
                value *= (reached - 1.0) / (n - 1)
        closeness[node] = value
    return closeness if u is None else closeness[u]


def _incoming(G: Any, distance: Any, u: Any) -> tuple[list[int], list[Any]]:
    """Return for each node, or for u, the number of nodes that reach it, the node included, and the sum of the distances to the node."""
    edges = sparse(G, distance)
    if G.is_directed():
        edges = edges.transposed()
    if u is not None:
        row = DistanceRows(solve(GivenGraph(edges), Question(MIN_PLUS, Options(sources=_indices(G, [u])))))
        return row.reached.sum(axis=1).tolist(), row.totals()
    how, sums = _planned(edges)
    if sums is not None:
        exact = np.float64 if edges.dtypes[0].kind == "f" else np.int64  # a sum may not fit the dtype of a distance
        return (sums.connected + 1).tolist(), sums.totals.astype(exact).tolist()
    reached: list[int] = []
    totals: list[Any] = []
    for rows in by_rows(edges, how):
        reached += rows.reached.sum(axis=1).tolist()
        totals += rows.totals()
    return reached, totals


@algorithm
def harmonic_centrality(G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Any, float]:
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
    n = len(G)
    return float(_inverses(sparse(G, None)) / (n * (n - 1))) if n > 1 else 0


def _inverses(edges: CSR) -> float:
    """Sum 1/d over all distances d except 0."""
    return float(sum(rows.inverses().sum() for rows in by_rows(edges)))


@algorithm
def local_efficiency(G: Any) -> float:
    edges = sparse(G, None)
    require_memory(edges.n, edges.dtypes)
    (matrix,) = edges.dense()
    degree = np.diff(edges.starts)
    neighbours = np.split(edges.heads, edges.starts[1:-1])
    total = 0.0
    for d in np.unique(degree[degree > 1]).tolist():
        # A batch of closures: the neighbourhoods of all nodes of one degree.
        around = np.stack([neighbours[v] for v in np.flatnonzero(degree == d)])
        for part in np.array_split(around, -(-around.size * d // GPU)):
            closed = apsp(matrix[part[:, :, None], part[:, None, :]], nonedge=edges.zero[0], overwrite=True)
            total += DistanceRows(closed).inverses().sum() / (d * (d - 1))
    return float(total) / len(G)


# Eccentricities and the measures that follow from eccentricities.


def _eccentricities(G: Any, nodes: Any, weight: Any) -> dict[Any, Any]:
    """Map each of some nodes to the distance of the farthest node; raise NetworkX's error unless all are connected."""
    if len(G) == 0:  # NetworkX refuses an empty graph since 3.7
        theirs: Any = nx.eccentricity(G, v=nodes, weight=weight, backend="networkx")
        return {**theirs}
    wanted = list(G.nbunch_iter(nodes))
    reaches, farthest = _farthest(sparse(G, weight))
    some = _indices(G, wanted)
    _require_connected(G, connected=bool(reaches[some].all()))
    return dict(zip(wanted, farthest[some].tolist(), strict=True))


def _planned(edges: CSR) -> tuple[Plan | None, DistanceSums | None]:
    """Return a plan for all distances by rows, or the sums of hop counts if so planned and nothing is rounded."""
    how = plan(edges_problem(MIN_PLUS, edges, Options(), wanted="sums"))
    return (None, hop_sums(how, edges, Options())) if how.strategy == "hop counts" else (how, None)


def _farthest(edges: CSR, how: Plan | None = None) -> tuple[Array, Array]:
    """Return for each node whether it reaches all others, and the distance of the farthest node."""
    how, sums = _planned(edges) if how is None else (how, None)
    if sums is not None:
        return sums.connected == edges.n - 1, sums.farthest.astype(edges.dtypes[0])
    found = [(rows.reached.all(axis=1), rows.matrix.max(axis=1, initial=0)) for rows in by_rows(edges, how)]
    reaches, farthest = map(np.concatenate, zip(*found, strict=True))
    return reaches, farthest


def _require_connected(G: Any, *, connected: bool) -> None:
    if not connected:
        reason = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {reason} connected")


@algorithm
def eccentricity(G: Any, v: Any = None, sp: None = None, weight: Any = None) -> Any:
    e = _eccentricities(G, v, weight)
    return e[v] if v in G else e


def _extreme(name: str, *, greatest: bool, every: bool) -> Callable[..., Any]:
    """Make NetworkX's function of this name: the greatest or the least eccentricity, or `every` node with this value."""

    def find(G: Any, e: None = None, usebounds: bool = False, weight: Any = None) -> Any:
        if len(G) == 0:  # max and min of nothing raise Python's own error, as in NetworkX
            return (max if greatest else min)(_eccentricities(G, None, weight).values())
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
        return [nodes[v] for v in vertices.tolist()] if every else edges.dtypes[0].type(value).item()

    find.__name__ = find.__qualname__ = name
    return algorithm(find)


diameter, radius = _extreme("diameter", greatest=True, every=False), _extreme("radius", greatest=False, every=False)
periphery, center = _extreme("periphery", greatest=True, every=True), _extreme("center", greatest=False, every=True)


@algorithm
def barycenter(G: Any, weight: Any = None, attr: None = None, sp: None = None) -> list[Any]:
    totals: list[Any] = []
    for rows in by_rows(sparse(G, weight)):
        if not rows.reached.all():
            raise nx.NetworkXNoPath(f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity.")
        totals += rows.totals()
    least = min(totals, default=0)
    return [node for node, total in zip(G, totals, strict=True) if total == least]


centroid = barycenter  # the name since NetworkX 3.7


@algorithm
def harmonic_diameter(G: Any, sp: None = None, *, weight: Any = None) -> float:
    n = len(G)
    total = _inverses(sparse(G, weight, "dijkstra"))
    if total != 0:
        return n * (n - 1) / total
    return math.inf if n > 1 else math.nan


# Topological indices of molecules: sums over all distances.


@algorithm
def wiener_index(G: Any, weight: Any = None) -> Any:
    directed = G.is_directed()
    connected = nx.is_strongly_connected if directed else nx.is_connected
    if not connected(G, backend="networkx"):
        return math.inf
    total = total_distance(sparse(G, weight))
    return total if directed else total / 2


@algorithm
def schultz_index(G: Any, weight: Any = None) -> Any:
    degrees = _degrees(G)

    def term(rows: DistanceRows) -> Any:  # each distance counts with the degrees of both ends
        lengths = rows.finite(2 * int(degrees.sum()) * len(G))
        return (lengths @ degrees).sum() + degrees[rows.numbers] @ lengths.sum(axis=1)

    return _half_sum(G, weight, term)


@algorithm
def gutman_index(G: Any, weight: Any = None) -> Any:
    degrees = _degrees(G)
    return _half_sum(G, weight, lambda rows: degrees[rows.numbers] @ rows.finite(int(degrees.sum()) ** 2) @ degrees)


@algorithm
def hyper_wiener_index(G: Any, weight: Any = None) -> Any:

    def term(rows: DistanceRows) -> Any:
        farthest = int(rows.matrix.max(initial=0, where=rows.reached))
        lengths = rows.finite(len(G) ** 2 * (farthest + 1))
        return (lengths + lengths * lengths).sum()

    return _half_sum(G, weight, term)


def _half_sum(G: Any, weight: Any, term: Callable[[DistanceRows], Any]) -> Any:
    """Return half the sum of a term of each block of rows, as a Python number; ∞ if the graph is not connected."""
    if not nx.is_connected(G, backend="networkx"):
        return math.inf
    terms = map(term, by_rows(sparse(G, weight)))
    return sum(found.item() if isinstance(found, np.generic) else found for found in terms) / 2


def _degrees(G: Any) -> Array:
    return np.array([degree for _, degree in G.degree(list(G))])


# Betweenness: the shortest paths through each node or along each edge.


@algorithm
def betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> dict[Any, float]:
    if k == len(G):
        k = None
    graph = _searched(G, weight)
    sources = _sources(G, k, seed)  # drawn last, so that a call left to NetworkX finds the seed unused
    sums, _ = betweenness(graph, sources, ends=endpoints)
    n = len(G) if endpoints else len(G) - 1
    if n >= 2:
        scale = np.full(len(G), _scale(n, n if k is None else k, normalized, G.is_directed()))
        if k is not None and not endpoints:  # no path passes through its first node, so only k − 1 sources count
            scale[sources] = _scale(n, k - 1, normalized, G.is_directed()) if k > 1 else math.nan
        sums *= scale
    return dict(zip(G, sums.tolist(), strict=True))


@algorithm
def betweenness_centrality_subset(G: Any, sources: Any, targets: Any, normalized: bool = False, weight: Any = None) -> dict[Any, float]:
    graph = _searched(G, weight)
    worth = np.zeros(len(G))
    worth[_indices(G, set(targets))] = 1.0
    sums, _ = betweenness(graph, _indices(G, sources), worth=worth)
    n = len(G) - 1
    if n >= 2:
        sums *= _scale(n, n, normalized, G.is_directed())
    return dict(zip(G, sums.tolist(), strict=True))


@algorithm
def edge_betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[Any, float]:
    graph = _searched(G, weight)
    _, sums = betweenness(graph, _sources(G, k, seed), edges=True)
    n = len(G)
    if n >= 2:
        sums *= _scale(n, n if k is None else k, normalized, G.is_directed())
    nodes = list(G)
    ends = zip(np.arange(n).repeat(np.diff(graph.starts)).tolist(), graph.heads.tolist(), strict=True)
    along = {(nodes[u], nodes[v]): total for (u, v), total in zip(ends, sums.tolist(), strict=True)}
    both = not G.is_directed()
    pairs = dict.fromkeys((u, v) for u, v, *_ in G.edges)
    totals = {(u, v): along[u, v] + along[v, u] if both and u != v else along[u, v] for u, v in pairs}
    return _by_keys(G, totals, weight) if G.is_multigraph() else totals


@algorithm
def group_betweenness_centrality(G: Any, C: Any, normalized: bool = True, weight: Any = None, endpoints: bool = False) -> Any:
    alone = any(node in G for node in C)
    groups = [set(group) for group in ([C] if alone else C)]
    members = {node for group in groups for node in group}
    if unknown := members - G.nodes:
        raise nx.NodeNotFound(f"The node(s) {unknown} are in C but not in G.")
    place = {node: i for i, node in enumerate(members)}
    numbers, n, graph = _indices(G, members), len(G), _searched(G, weight)
    if graph.weights is not None and not graph.weights.all():
        raise NotImplementedError("a weight is 0, which the formula for groups excludes; NetworkX handles this case")
    distances, paths, shares = dependencies(graph, numbers)
    shares += (paths > 0) & (np.arange(n)[:, None] != numbers)  # a path to the node itself counts too
    between = np.zeros((len(numbers), len(numbers)))
    with np.errstate(all="ignore"):
        for i, v in enumerate(numbers.tolist()):  # the paths that pass v, then another member
            on = (distances < math.inf) & (distances == distances[:, [i]] + distances[v])
            between[i] = (shares * paths[:, [i]] * paths[v] / paths).sum(axis=0, where=on)
    whole = not endpoints and bool(groups) and (nx.is_strongly_connected if G.is_directed() else nx.is_connected)(G, backend="networkx")
    found = []
    for group in groups:
        some, c = [place[node] for node in group], len(group)
        inner, part = np.ix_(numbers[some], np.array(some, np.intp)), np.ix_(some, some)
        if ((paths[inner] > 0) != (paths[inner] > 0).T).any():
            raise NotImplementedError("paths between two members lead one way only; NetworkX handles this case")
        total = _group_sum(between[part], paths[inner], distances[inner])
        if not endpoints:
            ends = c * (2 * n - c - 1) if whole else 0
            reached = [] if ends else [nx.descendants(G, node, backend="networkx") for node in group]
            total -= ends + sum(2 * len(nodes) - len(nodes & group) for nodes in reached)
        if normalized:
            total *= 1 / ((n - c) * (n - c - 1))
        elif not G.is_directed():
            total /= 2
        found.append(total)
    return found[0] if alone else found


def _group_sum(between: Array, paths: Array, distances: Array) -> float:
    """Sum the shares of paths through some members of a group, each path once (Puzis, Elovici and Dolev, 2007).

    Entries are of two members. The member v of each step takes the paths through v from all others.
    """
    total, whole, d = 0.0, paths, distances
    with np.errstate(all="ignore"):
        for v in range(len(d)):
            total += float(between[v, v])
            there = (paths != 0) & (paths[:, [v]] != 0) & (paths[v] != 0)
            middle = np.where(there & (d == d[:, [v]] + d[v]), paths[:, [v]] * paths[v] / paths, 0)
            last = np.where(there & (d[:, [v]] == d + d[:, v]), paths * paths[:, v] / paths[:, [v]], 0)
            first = np.where(there & (d[v] == d[v][:, None] + d), paths[v][:, None] * whole / whole[v], 0)
            last[:, v] = first[v] = 0
            between, paths = between - between * middle - between[:, [v]] * last - between[v] * first, paths * (1 - middle)
    return total


def _searched(G: Any, weight: Any) -> Searched:
    """Read edges in the order of NetworkX's adjacency, on which ties at weight 0 depend.

    Integers whose sums float64 would round are left to NetworkX, which adds integers exactly.
    """
    coo = searched_edges(G, weight)
    (weights,) = coo.weights
    if weight is not None and weights.dtype.kind == "i" and coo.n * float(weights.max(initial=0)) >= EXACT_IN_FLOAT64:
        raise NotImplementedError("distances may exceed the integers of float64")
    return Searched(starts_of(coo.tails, coo.n), coo.heads.astype(np.int32), None if weight is None else weights.astype(np.float64))


def _sources(G: Any, k: int | None, seed: Any) -> Array:
    """Return the indices of all nodes, or of the k nodes that NetworkX would draw."""
    return np.arange(len(G)) if k is None else _indices(G, seed.sample(list(G.nodes()), k))


def _indices(G: Any, nodes: Iterable[Any]) -> Array:
    number = {node: i for i, node in enumerate(G)}
    try:
        return np.array([number[node] for node in nodes], dtype=np.int64)
    except KeyError as error:
        raise NotImplementedError(f"{error} is not a node; NetworkX handles this case") from error


def _scale(n: int, k: int, normalized: bool, directed: bool) -> float:
    """Return the factor for sums over paths from k of n sources to n − 1 targets each; undirected, both ways count as one."""
    return 1 / (k * (n - 1)) if normalized else n / (k * (1 if directed else 2))


def _by_keys(G: Any, totals: dict[tuple[Any, Any], float], weight: Any) -> dict[Any, float]:
    """Divide the totals of a multigraph among the parallel edges of least weight; other edges get 0."""
    found = dict.fromkeys(G.edges, 0.0)
    for (u, v), total in totals.items():
        weights: dict[Any, Any] = {
            key: weight(u, v, {key: data}) if callable(weight) else data.get(weight, 1) for key, data in G[u][v].items()
        }
        least = weight(u, v, G[u][v]) if callable(weight) else min(weights.values())
        keys = [key for key, w in weights.items() if w == least]
        for key in keys:
            found[u, v, key] = total / len(keys)
    return found
