"""Graphs in, arrays out: everything that the library accepts as a graph becomes one dense matrix over the semiring."""

from semiring.graphs.edge_list import EdgeList, edges
from semiring.graphs.graph import Graph
from semiring.graphs.memory import require_memory
from semiring.graphs.read import lists_edges, read_edges, read_graph
from semiring.graphs.warning import NonEdgeWarning

__all__ = ["EdgeList", "Graph", "NonEdgeWarning", "edges", "lists_edges", "read_edges", "read_graph", "require_memory"]
