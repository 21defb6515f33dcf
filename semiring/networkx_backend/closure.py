"""Who reaches whom, as NetworkX returns it."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from semiring.algebra.catalogue import BOOLEAN
from semiring.networkx_backend.distances import algorithm
from semiring.networkx_backend.edges import truth
from semiring.product import matmul
from semiring.solve import transitive_closure as reachability

__all__ = ["has_path", "is_strongly_connected", "transitive_closure", "transitive_closure_dag", "transitive_reduction"]


@algorithm
def transitive_closure(G: Any, reflexive: bool | None = False) -> Any:
    """See `networkx.transitive_closure`."""
    if reflexive not in {None, True, False}:
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reflexive is True:
        np.fill_diagonal(reached, True)
    elif reflexive is not None and reflexive is not False:
        return G.copy()  # 1 and 0 pass NetworkX's check, and then mean neither
    elif reflexive is None or not G.is_directed():
        # NetworkX's search takes an undirected edge once, so that nobody comes back to where he began.
        np.fill_diagonal(reached, False)
    return _with_edges(G, nodes, reached & ~edges)


@algorithm
def transitive_closure_dag(G: Any, topo_order: None = None) -> Any:
    """See `networkx.transitive_closure_dag`."""
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reached.diagonal().any():
        raise nx.NetworkXUnfeasible("Graph contains a cycle or graph changed during iteration")
    return _with_edges(G, nodes, reached & ~edges)


def _with_edges(G: Any, nodes: list[Any], added: np.ndarray[Any, Any]) -> Any:
    """A copy of a graph with the edges of a matrix."""
    copy = G.copy()
    if not G.is_directed():
        added = np.triu(added)
    for u, row in zip(nodes, added, strict=True):
        copy.add_edges_from((u, nodes[v]) for v in np.flatnonzero(row).tolist())
    return copy


@algorithm
def transitive_reduction(G: Any) -> Any:
    """See `networkx.transitive_reduction`."""
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reached.diagonal().any():
        raise nx.NetworkXError("Directed Acyclic Graph required for transitive_reduction")
    needed = edges & ~matmul(edges, reached, BOOLEAN)
    reduction = nx.DiGraph()
    reduction.add_nodes_from(nodes)
    for u, row in zip(nodes, needed, strict=True):
        reduction.add_edges_from((u, nodes[v]) for v in np.flatnonzero(row).tolist())
    return reduction


@algorithm
def has_path(G: Any, source: Any, target: Any) -> bool:
    """See `networkx.has_path`."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} is not in G")
    nodes, edges = truth(G)
    return bool(reachability(edges, reflexive=True)[nodes.index(source), nodes.index(target)])


@algorithm
def is_strongly_connected(G: Any) -> bool:
    """See `networkx.is_strongly_connected`."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return bool(reachability(truth(G)[1], reflexive=True).all())
