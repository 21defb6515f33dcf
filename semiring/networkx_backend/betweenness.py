"""Betweenness as NetworkX returns it: which shortest paths count, k sampled sources, and how the sums are scaled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from semiring.algorithms.betweenness import Searched, betweenness
from semiring.arrays.conversion import EXACT_IN_FLOAT64
from semiring.networkx_backend.distances import algorithm, hops, weighted

__all__ = ["betweenness_centrality", "betweenness_centrality_subset", "edge_betweenness_centrality"]

Array = np.ndarray[Any, Any]


@algorithm
def betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> dict[Any, float]:
    """See `networkx.betweenness_centrality`."""
    if k == len(G):
        k = None
    graph = _searched(G, weight)
    sources = _sources(G, k, seed)  # now that nothing is left to NetworkX, which would draw others then
    sums, _ = betweenness(graph, sources, ends=endpoints)
    n = len(G) if endpoints else len(G) - 1
    if n >= 2:
        scale = np.full(len(G), _scale(n, n if k is None else k, normalized, G.is_directed()))
        if k is not None and not endpoints:  # a source is an end of all its paths, and has one chance less
            scale[sources] = _scale(n, k - 1, normalized, G.is_directed()) if k > 1 else math.nan
        sums *= scale
    return dict(zip(G, sums.tolist(), strict=True))


@algorithm
def betweenness_centrality_subset(G: Any, sources: Any, targets: Any, normalized: bool = False, weight: Any = None) -> dict[Any, float]:
    """See `networkx.betweenness_centrality_subset`."""
    graph = _searched(G, weight)
    worth = np.zeros(len(G))
    worth[_numbers(G, set(targets))] = 1.0
    sums, _ = betweenness(graph, _numbers(G, sources), worth=worth)
    n = len(G) - 1
    if n >= 2:
        sums *= _scale(n, n, normalized, G.is_directed())
    return dict(zip(G, sums.tolist(), strict=True))


@algorithm
def edge_betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[Any, float]:
    """See `networkx.edge_betweenness_centrality`."""
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


def _searched(G: Any, weight: Any) -> Searched:
    """Read the edges in the order of NetworkX's adjacency, which decides ties of edges of weight 0.

    Raises
    ------
    NotImplementedError
        For weights that `weighted` leaves to NetworkX, negative weights, and large integers, which NetworkX adds up exactly.
    """
    coo = hops(G) if weight is None else weighted(G, weight, may_hide=False)
    (weights,) = coo.weights
    if weight is not None:
        if (weights < 0).any():
            raise NotImplementedError("a weight is negative, where Dijkstra's algorithm gives no distances")
        if weights.dtype.kind == "i" and coo.n * float(weights.max(initial=0)) >= EXACT_IN_FLOAT64:
            raise NotImplementedError("distances may exceed the integers of float64")
    starts = np.zeros(coo.n + 1, np.int64)
    np.bincount(coo.tails, minlength=coo.n).cumsum(out=starts[1:])
    return Searched(starts, coo.heads.astype(np.int32), None if weight is None else weights.astype(np.float64))


def _sources(G: Any, k: int | None, seed: Any) -> Array:
    """The numbers of all nodes, or of k of them that NetworkX would draw."""
    return np.arange(len(G)) if k is None else _numbers(G, seed.sample(list(G.nodes()), k))


def _numbers(G: Any, nodes: Iterable[Any]) -> Array:
    """The numbers of nodes, in their order."""
    number = {node: i for i, node in enumerate(G)}
    try:
        return np.array([number[node] for node in nodes], dtype=np.int64)
    except KeyError as error:
        raise NotImplementedError(f"{error} is no node, and what then happens is NetworkX's") from error


def _scale(n: int, k: int, normalized: bool, directed: bool) -> float:
    """Return the factor of sums over paths from k of n sources; undirected graphs count each path once."""
    return 1 / (k * (n - 1)) if normalized else n / (k * (1 if directed else 2))


def _by_keys(G: Any, totals: dict[tuple[Any, Any], float], weight: Any) -> dict[Any, float]:
    """Share the betweenness of a multigraph's edges among the parallel edges of least weight; others get 0."""
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
