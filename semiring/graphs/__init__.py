"""Reading graphs: every kind of graph becomes a matrix over the semiring, dense (`Graph`) or in compressed rows (CSR).

`read` calls two kinds of reader:

- Lists of edges go through `coo`, which turns triplets (COO) into the compressed rows of `algorithms.csr`. `edge_list.edges` reads a user's
  list, `edge_table` the columns of a table, `foreign` graphs of other libraries, and `weights` picks the weights.
- Everything else goes through `arrays.exchange`, which finds the array, and `dense`, which makes a matrix over the semiring, without a
  copy if nothing has to change. `by_rows` does the same by block rows, for matrices on disk or too large, and `by_ranks` for several
  processes.

A dense matrix passes through these types:

    ArrayLike     the caller's array of one component, unconverted
    GivenMatrix   all components with shape, dtypes and place, before any entry is read
    Graph         the matrix over the semiring, read as a whole
    GivenRows     the matrix over the semiring, read by block rows
    GivenByRanks  the edges or block rows of one rank

For structured elements, `weights` converts ordinary weights. `dense` also has the options of reading and the test for non-edges. `vertices`
finds the vertices named by `sources=` and `targets=`, `entering` multiplies weights by costs of vertices, `turns` adds the costs of turns,
and `reweighing` finds new weights of edges.
"""

from semiring.graphs.dense import Graph, NonEdgeWarning
from semiring.graphs.edge_list import EdgeList, edges
from semiring.graphs.read import edges_of, read_graph

__all__ = ["EdgeList", "Graph", "NonEdgeWarning", "edges", "edges_of", "read_graph"]
