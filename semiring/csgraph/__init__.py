"""Replacements for `scipy.sparse.csgraph`, with shortest paths computed by this library.

The module has every public name of SciPy's module, so only the import of a program changes::

    from semiring.csgraph import shortest_path  # instead of: from scipy.sparse.csgraph import shortest_path

- `shortest_path`, `floyd_warshall`, `dijkstra`, `bellman_ford` and `johnson` compute a closure on the CPU or a GPU. Few edges or sources
  may take products of rows, or searches by this library or SciPy; `explain` shows the choice. New arguments are ``dtype`` and ``device``.
- `construct_dist_matrix`, `reconstruct_path`, `csgraph_from_dense`, `csgraph_from_masked` and `csgraph_masked_from_dense` work like SciPy's
  functions, without the flaws that the docstrings mention.
- `yen` finds simple paths by the searches of this library. All other functions are SciPy's own.

The functions for shortest paths are in `shortest` and call `solving.solve`, which checks the arguments and follows the plan of the call.
`reading.read` reads the graph by SciPy's conventions. `conversions` has the other functions.

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

    raise ImportError(f"semiring.csgraph needs SciPy: {install_of('graphs')} ({error})") from error

from semiring.csgraph.conversions import (
    construct_dist_matrix,
    csgraph_from_dense,
    csgraph_from_masked,
    csgraph_masked_from_dense,
    reconstruct_path,
)
from semiring.csgraph.shortest import bellman_ford, dijkstra, explain, floyd_warshall, johnson, shortest_path, yen
from semiring.csgraph.solving import NegativeCycleError

__all__ = [
    "NegativeCycleError", "bellman_ford", "breadth_first_order", "breadth_first_tree", "connected_components", "construct_dist_matrix",
    "csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense", "csgraph_to_dense", "csgraph_to_masked", "depth_first_order",
    "depth_first_tree", "dijkstra", "explain", "floyd_warshall", "johnson", "laplacian", "maximum_bipartite_matching", "maximum_flow",
    "min_weight_full_bipartite_matching", "minimum_spanning_tree", "reconstruct_path", "reverse_cuthill_mckee", "shortest_path",
    "structural_rank", "yen",
]  # fmt: skip
