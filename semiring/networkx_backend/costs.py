"""Predicted times, of NetworkX and of this library, by which `should_run` decides.

The constants, of `kernels.machine`, are those of `python -m benchmarks.networkx_backend`, rounded in favour of NetworkX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.kernels import machine
from semiring.options import Options
from semiring.planning import closure_problem, plan

__all__ = ["predicted", "slower"]

_ALONE = {
    "eccentricity": ("v",),
    "closeness_centrality": ("u",),
    "harmonic_centrality": ("nbunch", "sources"),
}
"""Arguments that name the only nodes of which the result is wanted."""

_ACYCLIC = ("transitive_closure_dag", "transitive_reduction")
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
    theirs, ours = predicted(name, graph, given)
    if ours < theirs:
        return None
    edges = graph.number_of_edges()
    return f"for {len(graph)} nodes and {edges} edges NetworkX takes about {theirs:.2g} s, and this backend {ours:.2g} s"


def predicted(name: str, graph: Any, given: dict[str, Any]) -> tuple[float, float]:
    """Seconds that NetworkX takes, and that this backend takes."""
    n, m = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    return _networkx(name, n, m, given), _own(name, n, m)


def _networkx(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Seconds that NetworkX takes, with m directed edges."""
    method = given.get("method")
    if name == "floyd_warshall_numpy" or method == "floyd-warshall-numpy":
        return machine.NETWORKX_NUMPY_STEP * n**3
    if name.startswith("floyd_warshall") or method == "floyd-warshall":
        return machine.NETWORKX_STEP * n**3
    if name == "local_efficiency":
        return machine.NETWORKX_TRIANGLE * n * (m / max(1, n)) ** 2
    if name == "transitive_closure":
        return machine.NETWORKX_REACH * n * (n + m)
    if name in _ACYCLIC:
        return machine.NETWORKX_ACYCLIC * n * (n + m)  # besides the edges of the result, which cost both the same
    if "bellman_ford" in name or method == "bellman-ford":
        return machine.NETWORKX_ROUNDS * n * (n + m)
    if "dijkstra" in name or name in ("johnson", "harmonic_diameter") or given.get("weight", given.get("distance")) is not None:
        return machine.NETWORKX_SEARCH * n * (n + m)
    return machine.NETWORKX_SEARCH * n * min(n, m)  # a search ends when all nodes are found, whatever edges are left


def _own(name: str, n: int, m: int) -> float:
    """Seconds that this backend takes, for its steps and for what it returns."""
    if name == "local_efficiency":
        return machine.BACKEND_CALL + n * (machine.BACKEND_PART + (m / max(1, n)) ** 3 / machine.BACKEND_PART_STEPS)
    if name == "transitive_closure":
        return 2 * machine.BACKEND_CALL + _reachability(n) + machine.BACKEND_GRAPH * n**2
    if name in _ACYCLIC:
        return 2 * machine.BACKEND_CALL + _reachability(n) + machine.BACKEND_EDGE * m
    kind = name if name == "johnson" else "paths" if name in _PATHS else "lengths" if name in _LENGTHS else "numbers"
    return machine.BACKEND_CALL + _closure(n) + n**2 * machine.BACKEND_ENTRY[kind]


def _closure(n: int) -> float:
    """Seconds of all distances."""
    return plan(closure_problem(MIN_PLUS, (np.dtype(np.float64),), (n, n), Options())).seconds or 0.0


def _reachability(n: int) -> float:
    """Seconds of the transitive closure."""
    return plan(closure_problem(BOOLEAN, (np.dtype(bool),), (n, n), Options())).seconds or 0.0
