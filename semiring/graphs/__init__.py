"""Graphs in: whatever a caller calls a graph becomes a matrix over the semiring, dense (`Graph`) or in compressed rows (CSR).

`read` is the door, and asks two kinds of reader:

- What lists its edges goes by `coo`: a sparse array, or what `edge_list.edges` makes of a user's list (`edge_table` finds the columns of
  tables for it) and `foreign` of another library's graph, with the weights that `weights` finds, becomes triplets (COO), and these
  compressed rows, of `algorithms.csr`.
- Anything else goes by `array_like`, which finds the array in it, and `dense`, which makes a matrix over the semiring of it, borrowing what
  need not change. `by_rows` does the same by block rows, for what is on disk or too large, and `by_ranks` for what several processes pass.

Where elements are tuples, `ordinary` makes such of graphs with ordinary weights. `graph` has what all share: the result, how it is to be
read, and what is no edge. `vertices` finds the vertices that `sources=` and `targets=` name, and `reweighing` other weights for edges.
"""

from semiring.graphs.edge_list import EdgeList, edges
from semiring.graphs.graph import Graph, NonEdgeWarning
from semiring.graphs.read import edges_of, read_graph

__all__ = ["EdgeList", "Graph", "NonEdgeWarning", "edges", "edges_of", "read_graph"]
