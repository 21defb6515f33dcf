"""`scipy.sparse.csgraph`, with the shortest paths of dense graphs computed by this library.

Every public name of SciPy's module is here, so that one line of a program changes::

    from semiring.csgraph import shortest_path  # instead of: from scipy.sparse.csgraph import shortest_path

- `shortest_path`, `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson` compute a closure on the CPU or a GPU, products of a few rows,
  or searches, by this library or SciPy: the predicted fastest. `explain` returns the plan. ``dtype`` and ``device`` are new arguments.
- `construct_dist_matrix`, `reconstruct_path`, `csgraph_from_dense`, `csgraph_from_masked` and `csgraph_masked_from_dense` replace SciPy's
  functions, without the flaws that their docstrings name.
- `yen` finds simple paths by this library's searches. All else is SciPy's own.

The functions of `shortest` pass their arguments to `solving.solve`. `call.read_call` checks the arguments, `reading.read` reads the graph
by SciPy's conventions, and `solving` runs the plan of the call. `alternatives` has `yen`, and `conversions` the other functions.

>>> from semiring import csgraph
>>> csgraph.shortest_path([[0, 1, 5], [0, 0, 2], [0, 0, 0]])
array([[ 0.,  1.,  3.],
       [inf,  0.,  2.],
       [inf, inf,  0.]])
"""

from __future__ import annotations

try:
    from scipy.sparse.csgraph import (
        breadth_first_order,
        breadth_first_tree,
        connected_components,
        csgraph_to_dense,
        csgraph_to_masked,
        depth_first_order,
        depth_first_tree,
        laplacian,
        maximum_bipartite_matching,
        maximum_flow,
        min_weight_full_bipartite_matching,
        minimum_spanning_tree,
        reverse_cuthill_mckee,
        structural_rank,
    )
except ImportError as error:
    from semiring.common.errors import install_of

    raise ImportError(f"semiring.csgraph stands in SciPy's place and needs it: {install_of('graphs')} ({error})") from error

from semiring.csgraph.alternatives import yen
from semiring.csgraph.call import NegativeCycleError
from semiring.csgraph.conversions import (
    construct_dist_matrix,
    csgraph_from_dense,
    csgraph_from_masked,
    csgraph_masked_from_dense,
    reconstruct_path,
)
from semiring.csgraph.shortest import bellman_ford, dijkstra, explain, floyd_warshall, johnson, shortest_path

__all__ = [
    "NegativeCycleError", "bellman_ford", "breadth_first_order", "breadth_first_tree", "connected_components", "construct_dist_matrix",
    "csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense", "csgraph_to_dense", "csgraph_to_masked", "depth_first_order",
    "depth_first_tree", "dijkstra", "explain", "floyd_warshall", "johnson", "laplacian", "maximum_bipartite_matching", "maximum_flow",
    "min_weight_full_bipartite_matching", "minimum_spanning_tree", "reconstruct_path", "reverse_cuthill_mckee", "shortest_path",
    "structural_rank", "yen",
]  # fmt: skip
