"""The description of this backend for NetworkX's import; this module imports nothing else."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

_ALL_PAIRS = (
    "All pairs at once, on all cores or on a GPU, by the method with the least predicted time: elimination of a sparse graph, searches, "
    "or n³ steps over min-plus."
)
_ROWS = _ALL_PAIRS + " NetworkX's searches find the first rows, and all rows up to a near cutoff."
_BOUNDS = "A few searches of a sparse graph, which bound the eccentricities of all nodes."
_COUNTS = _ALL_PAIRS + " Without weights, breadth-first searches from hundreds of nodes at once, a bit for each."
_REACHABILITY = "The closure of a matrix of bits."
_SEARCH = "The closure of a matrix of bits, on request only, because one search of NetworkX is faster."

_BETWEENNESS = "Brandes's algorithm in compiled loops, one search for each source, on all cores."

_FUNCTIONS = {
    "all_pairs_bellman_ford_path": _ROWS,
    "all_pairs_bellman_ford_path_length": _ROWS,
    "all_pairs_dijkstra": _ROWS,
    "all_pairs_dijkstra_path": _ROWS,
    "all_pairs_dijkstra_path_length": _ROWS,
    "all_pairs_shortest_path": _ROWS,
    "all_pairs_shortest_path_length": _ROWS,
    "average_shortest_path_length": _ALL_PAIRS,
    "barycenter": _ALL_PAIRS,
    "betweenness_centrality": _BETWEENNESS,
    "betweenness_centrality_subset": _BETWEENNESS,
    "center": _BOUNDS,
    "centroid": _ALL_PAIRS,
    "closeness_centrality": _COUNTS,
    "diameter": _BOUNDS,
    "eccentricity": _COUNTS,
    "edge_betweenness_centrality": _BETWEENNESS,
    "floyd_warshall": _ALL_PAIRS,
    "floyd_warshall_numpy": _ALL_PAIRS,
    "floyd_warshall_predecessor_and_distance": _ALL_PAIRS,
    "global_efficiency": _ALL_PAIRS,
    "gutman_index": _ALL_PAIRS,
    "harmonic_centrality": _ALL_PAIRS,
    "harmonic_diameter": _ALL_PAIRS,
    "has_path": _SEARCH,
    "hyper_wiener_index": _ALL_PAIRS,
    "is_strongly_connected": _SEARCH,
    "johnson": _ALL_PAIRS,
    "local_efficiency": "One batch of closures for the neighbourhoods of all nodes of one degree.",
    "periphery": _BOUNDS,
    "radius": _BOUNDS,
    "schultz_index": _ALL_PAIRS,
    "shortest_path": _ROWS,
    "shortest_path_length": _ROWS,
    "shortest_simple_paths": "Yen's algorithm by compiled A* searches, path by path.",
    "transitive_closure": _REACHABILITY,
    "transitive_closure_dag": _REACHABILITY,
    "transitive_reduction": "One closure and one product of matrices of bits.",
    "wiener_index": _ALL_PAIRS,
}


def get_info() -> dict[str, Any]:
    """Return the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "semiring",
        "project": "semiring",
        "package": "semiring",
        "short_summary": "Distances, paths, reachability and betweenness of all pairs.",
        "functions": {name: {"additional_docs": text} for name, text in _FUNCTIONS.items()},
    }
