"""Predicted times, of NetworkX and of this library, by which `should_run` decides.

The constants are those of `python -m benchmarks.networkx_backend`, rounded in favour of NetworkX.
"""

from __future__ import annotations

from typing import Any

from semiring.kernels.cpu.threads import thread_count

__all__ = ["slower"]

_STEPS = 4e9
"""Steps per second and core."""

_CALL = 1e-3
"""Seconds that conversion and call take at least."""

_ALONE = {
    "eccentricity": ("v",),
    "closeness_centrality": ("u",),
    "harmonic_centrality": ("nbunch", "sources"),
}
"""Arguments that name the only nodes of which the result is wanted."""

_GRAPHS = ("transitive_closure", "transitive_closure_dag", "transitive_reduction")
_PATHS = (
    "all_pairs_bellman_ford_path",
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_shortest_path",
    "floyd_warshall_predecessor_and_distance",
    "johnson",
    "shortest_path",
)
_LENGTHS = (
    "all_pairs_bellman_ford_path_length",
    "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path_length",
    "floyd_warshall",
    "shortest_path_length",
)


def slower(name: str, graph: Any, given: dict[str, Any]) -> str | None:
    """Why NetworkX is at least as fast; None if it is not.

    Parameters
    ----------
    name : str
    graph : networkx.Graph
    given : dict
        All arguments of the call.
    """
    if name in ("has_path", "is_strongly_connected"):
        return "one search of NetworkX takes less than a closure"
    if given.get("cutoff") is not None:
        return "with a cutoff NetworkX searches the neighbourhood only"
    if any(given[argument] is not None for argument in _ALONE.get(name, ())):
        return "some nodes need some searches only"
    n, m = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    theirs, ours = _networkx(name, n, m, given), _own(name, n, m)
    if ours < theirs:
        return None
    return f"for {n} nodes and {graph.number_of_edges()} edges NetworkX takes about {theirs:.2g} s, and this backend {ours:.2g} s"


def _networkx(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Seconds that NetworkX takes, with m directed edges."""
    method = given.get("method")
    if name == "floyd_warshall_numpy" or method == "floyd-warshall-numpy":
        return 0.6e-9 * n**3
    if name.startswith("floyd_warshall") or method == "floyd-warshall":
        return 60e-9 * n**3
    if name == "local_efficiency":
        return 1e-6 * n * (m / max(1, n)) ** 2
    if name == "transitive_closure":
        return 800e-9 * n * (n + m)
    if name in _GRAPHS:
        return 5e-9 * n * (n + m)
    if "bellman_ford" in name or method == "bellman-ford":
        return 300e-9 * n * (n + m)
    if "dijkstra" in name or name == "johnson" or given.get("weight", given.get("distance")) is not None:
        return 200e-9 * n * (n + m)
    return 150e-9 * n * min(n, m)  # a search ends when all nodes are found, whatever edges are left


def _own(name: str, n: int, m: int) -> float:
    """Seconds that this backend takes, for its steps and for the dictionaries that it returns."""
    if name == "local_efficiency":
        return _CALL + n * (100e-6 + (m / max(1, n)) ** 3 / _STEPS)
    entry = 200e-9 if name in _PATHS else 80e-9 if name in _LENGTHS else 500e-9 if name in _GRAPHS else 10e-9
    return _CALL + n**3 / (_STEPS * thread_count()) + entry * n**2
