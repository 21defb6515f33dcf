"""Graphs in, arrays out: everything that the library accepts as a graph becomes one dense matrix over the semiring."""

from semiring.arrays.memory import require_memory
from semiring.graphs.coo import lists_edges
from semiring.graphs.edge_list import EdgeList, edges
from semiring.graphs.graph import Graph, NonEdgeWarning
from semiring.graphs.read import read_edges, read_graph

__all__ = ["EdgeList", "Graph", "NonEdgeWarning", "edges", "lists_edges", "read_edges", "read_graph", "require_memory"]
