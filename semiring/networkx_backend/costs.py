"""Predicted seconds of NetworkX and of this library, by which calls are left to NetworkX.

The constants, of `kernels.machine`, are those of `python -m benchmarks.networkx_backend`, rounded in favour of NetworkX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.common.units import duration
from semiring.kernels import machine
from semiring.networkx_backend import betweenness
from semiring.planning import closure_problem, plan
from semiring.planning.options import Options

__all__ = ["predicted", "preparation", "reading", "slower", "theirs"]

_ALONE = {
    "eccentricity": ("v",),
    "closeness_centrality": ("u",),
    "harmonic_centrality": ("nbunch", "sources"),
}
"""Arguments that name the only nodes whose result is wanted."""

_SEARCHES = 10
"""The least number of searches for a second path, one from each vertex of the first."""

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

_BOUNDED = ("center", "diameter", "periphery", "radius")
"""Functions that bounds of eccentricities answer by a few searches."""

_COUNTED = ("closeness_centrality", "eccentricity")
"""Functions that sums of hop counts answer, where edges have no weight."""


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
    n, m, networkx = theirs(name, graph, given)
    ours = _own(name, n, m, given) if networkx > machine.BACKEND_CALL else machine.BACKEND_CALL
    if ours < networkx:
        return None
    edges = m if graph.is_directed() else m // 2
    return f"for {n} nodes and {edges} edges NetworkX takes about {duration(networkx)}, and this backend {duration(ours)}"


def predicted(name: str, graph: Any, given: dict[str, Any]) -> tuple[float, float]:
    """Seconds that NetworkX takes, and that this backend takes."""
    n, m, networkx = theirs(name, graph, given)
    return networkx, _own(name, n, m, given)


def theirs(name: str, graph: Any, given: dict[str, Any]) -> tuple[int, int, float]:
    """Count the nodes and directed edges of a graph, and predict the seconds that NetworkX takes."""
    n, m = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    return n, m, _networkx(name, n, m, given)


def _searches(n: int, given: dict[str, Any]) -> int:
    """The number of sources of betweenness: all nodes, a sample, or the named nodes."""
    if given.get("k") is not None:
        return int(given["k"])
    return len(given["sources"]) if hasattr(given.get("sources"), "__len__") else n


def _networkx(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Seconds that NetworkX takes, with m directed edges."""
    if name == "shortest_simple_paths":
        return _SEARCHES * machine.NETWORKX_SEARCH * (n + m)
    if name in betweenness.__all__:
        return machine.NETWORKX_BETWEENNESS[given["weight"] is not None] * _searches(n, given) * (n + m)
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


def _own(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Seconds of this backend, for steps and result: more than `machine.BACKEND_CALL`."""
    if name == "shortest_simple_paths":
        return machine.BACKEND_CALL + m * machine.BACKEND_EDGE
    if name in betweenness.__all__:
        steps = _searches(n, given) * (n + m)
        return machine.BACKEND_CALL + m * machine.BACKEND_EDGE + machine.BETWEENNESS[given["weight"] is not None] * steps
    if name == "local_efficiency":
        return machine.BACKEND_CALL + n * (machine.BACKEND_PART + (m / max(1, n)) ** 3 / machine.BACKEND_PART_STEPS)
    if name == "transitive_closure":
        return 2 * machine.BACKEND_CALL + _reachability(n) + machine.BACKEND_GRAPH * n**2
    if name in _ACYCLIC:
        return 2 * machine.BACKEND_CALL + _reachability(n) + machine.BACKEND_EDGE * m
    if n > machine.PART and name in _BOUNDED:
        return machine.BACKEND_CALL + (machine.BACKEND_READ + machine.BACKEND_BOUNDS) * (n + m)
    if n > machine.PART and name in _COUNTED and given.get("weight", given.get("distance")) is None:
        return machine.BACKEND_CALL + (machine.BACKEND_READ + machine.BACKEND_HOPS * n) * (n + m)
    kind = name if name == "johnson" else "paths" if name in _PATHS else "lengths" if name in _LENGTHS else "numbers"
    return preparation(n, m) + n**2 * machine.BACKEND_ENTRY[kind]


def reading(n: int, m: int) -> float:
    """Seconds of a call that reads a graph."""
    return machine.BACKEND_CALL + machine.BACKEND_READ * (n + m)


def preparation(n: int, m: int) -> float:
    """Seconds of a call that reads a graph and finds all distances."""
    return reading(n, m) + _distances(n, m)


def _distances(n: int, m: int) -> float:
    """Seconds of all distances: those of the closure or of searches, as what elimination takes is only known of a graph that was read."""
    return plan(closure_problem(MIN_PLUS, (np.dtype(np.float64),), (n, n), Options(), edges=m)).seconds or 0.0


def _reachability(n: int) -> float:
    """Seconds of the transitive closure."""
    return plan(closure_problem(BOOLEAN, (np.dtype(bool),), (n, n), Options())).seconds or 0.0
