"""The description of this backend for NetworkX's import; this module imports nothing else."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

_ALL_PAIRS = (
    "All pairs at once, on all cores or on a GPU, by the method with the least predicted time: elimination of a sparse graph, searches, "
    "or n³ steps over min-plus."
)
_ROWS = _ALL_PAIRS + " NetworkX's searches find the first rows, and all rows up to a near cutoff."
_COUNTS = _ALL_PAIRS + " Without weights, breadth-first searches from hundreds of nodes at once, a bit for each."

_FUNCTIONS = {
    _ROWS: (
        "all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length", "all_pairs_dijkstra", "all_pairs_dijkstra_path",
        "all_pairs_dijkstra_path_length", "all_pairs_shortest_path", "all_pairs_shortest_path_length", "shortest_path",
        "shortest_path_length",
    ),
    _ALL_PAIRS: (
        "average_shortest_path_length", "barycenter", "centroid", "floyd_warshall", "floyd_warshall_numpy",
        "floyd_warshall_predecessor_and_distance", "global_efficiency", "gutman_index", "harmonic_centrality", "harmonic_diameter",
        "hyper_wiener_index", "johnson", "schultz_index", "wiener_index",
    ),
    "Brandes's algorithm in compiled loops, one search for each source, on all cores.": (
        "betweenness_centrality", "betweenness_centrality_subset", "edge_betweenness_centrality", "group_betweenness_centrality",
    ),
    "A few searches of a sparse graph, which bound the eccentricities of all nodes.": ("center", "diameter", "periphery", "radius"),
    _COUNTS: ("closeness_centrality", "eccentricity"),
    "The closure of a matrix of bits, on request only, because one search of NetworkX is faster.": ("has_path", "is_strongly_connected"),
    "One batch of closures for the neighbourhoods of all nodes of one degree.": ("local_efficiency",),
    "A compiled search for each node, and paths made of paths to predecessors.": ("all_pairs_all_shortest_paths",),
    "A compiled search, on request only, because one search of NetworkX is as fast.": (
        "all_shortest_paths", "single_source_all_shortest_paths",
    ),
    "One compiled search from all sources together, on request only, because one search of NetworkX is about as fast.": (
        "multi_source_dijkstra", "multi_source_dijkstra_path", "multi_source_dijkstra_path_length", "voronoi_cells",
    ),
    "Yen's algorithm by compiled A* searches, path by path.": ("shortest_simple_paths",),
    "The closure of a matrix of bits.": ("transitive_closure", "transitive_closure_dag"),
    "One closure and one product of matrices of bits.": ("transitive_reduction",),
}  # fmt: skip
"""Names of functions, by the note on the method."""


def get_info() -> dict[str, Any]:
    """Return the description of the backend, for the entry point ``networkx.backend_info``."""
    notes = {name: note for note, names in _FUNCTIONS.items() for name in names}
    return {
        "backend_name": "semiring",
        "project": "semiring",
        "package": "semiring",
        "short_summary": "Distances, paths, reachability and betweenness of all pairs.",
        "functions": {name: {"additional_docs": notes[name]} for name in sorted(notes)},
    }
