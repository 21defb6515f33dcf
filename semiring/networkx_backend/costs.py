"""Predicted seconds of NetworkX and of this library, to leave a call to the faster one.

The constants, in `kernels.machine`, are measured by `python -m benchmarks.networkx_backend` and rounded in favour of NetworkX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.common.units import duration
from semiring.kernels import machine
from semiring.planning import closure_problem, plan
from semiring.planning.options import Options

__all__ = ["predicted", "preparation", "reading", "slower", "theirs"]

_ALONE = {"eccentricity": ("v",), "closeness_centrality": ("u",), "harmonic_centrality": ("nbunch", "sources")}
"""Arguments that restrict the result to some nodes."""

_SEARCHES = 10
"""An assumed number of searches for a second path, one from each vertex of the first path."""

_ACYCLIC = ("transitive_closure_dag", "transitive_reduction")
_PATHS = (
    "all_pairs_all_shortest_paths", "all_pairs_bellman_ford_path", "all_pairs_dijkstra", "all_pairs_dijkstra_path",
    "all_pairs_shortest_path", "floyd_warshall_predecessor_and_distance", "johnson", "shortest_path",
)  # fmt: skip
_LENGTHS = (
    "all_pairs_bellman_ford_path_length", "all_pairs_dijkstra_path_length", "all_pairs_shortest_path_length", "floyd_warshall",
    "shortest_path_length",
)  # fmt: skip

_BOUNDED = ("center", "diameter", "periphery", "radius")
"""Functions that need a few searches, by bounds of eccentricities."""

_COUNTED = ("closeness_centrality", "eccentricity")
"""Functions that need only sums of hop counts without weights."""


def slower(name: str, graph: Any, given: dict[str, Any]) -> str | None:
    """Explain why NetworkX is at least as fast for a function with these arguments; return None if this backend is faster."""
    if name in ("has_path", "is_strongly_connected"):
        return "one search of NetworkX is faster than a closure"
    if name in ("all_shortest_paths", "single_source_all_shortest_paths") or name.startswith(("multi_source", "voronoi")):
        return "one search of NetworkX is as fast as reading the graph"
    if given.get("cutoff") is not None:
        return "with a cutoff NetworkX searches only the neighbourhood"
    if any(given[argument] is not None for argument in _ALONE.get(name, ())):
        return "a few nodes need only a few searches"
    n, m, networkx = theirs(name, graph, given)
    ours = _own(name, n, m, given) if networkx > machine.BACKEND_CALL else machine.BACKEND_CALL
    if ours < networkx:
        return None
    edges = m if graph.is_directed() else m // 2
    return f"for {n} nodes and {edges} edges NetworkX takes about {duration(networkx)}, and this backend {duration(ours)}"


def predicted(name: str, graph: Any, given: dict[str, Any]) -> tuple[float, float]:
    """Predict the seconds of NetworkX and of this backend."""
    n, m, networkx = theirs(name, graph, given)
    return networkx, _own(name, n, m, given)


def theirs(name: str, graph: Any, given: dict[str, Any]) -> tuple[int, int, float]:
    """Count the nodes and directed edges of a graph, and predict the seconds that NetworkX takes."""
    n, m = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    return n, m, _networkx(name, n, m, given)


def _searches(n: int, given: dict[str, Any]) -> int:
    """Return the number of sources of betweenness: all nodes, a sample, or the named nodes."""
    if given.get("k") is not None:
        return int(given["k"])
    return len(given["sources"]) if hasattr(given.get("sources"), "__len__") else n


def _networkx(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Predict the seconds of NetworkX, with m directed edges."""
    if name == "shortest_simple_paths":
        return _SEARCHES * machine.NETWORKX_SEARCH * (n + m)
    if "betweenness" in name:
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
        return machine.NETWORKX_ACYCLIC * n * (n + m)  # without the edges of the result, which cost both libraries the same
    if "bellman_ford" in name or method == "bellman-ford":
        return machine.NETWORKX_ROUNDS * n * (n + m)
    if "dijkstra" in name or name in ("johnson", "harmonic_diameter") or given.get("weight", given.get("distance")) is not None:
        return machine.NETWORKX_SEARCH * n * (n + m)
    return machine.NETWORKX_SEARCH * n * min(n, m)  # a search ends when all nodes are found


def _own(name: str, n: int, m: int, given: dict[str, Any]) -> float:
    """Predict the seconds of this backend, at least `machine.BACKEND_CALL`."""
    if name == "shortest_simple_paths":
        return machine.BACKEND_CALL + m * machine.BACKEND_EDGE
    if "betweenness" in name:
        steps = _searches(n, given) * (n + m)
        return machine.BACKEND_CALL + m * machine.BACKEND_EDGE + machine.BETWEENNESS[given["weight"] is not None] * steps
    if name == "local_efficiency":
        return machine.BACKEND_CALL + n * (machine.BACKEND_PART + (m / max(1, n)) ** 3 / machine.BACKEND_PART_STEPS)
    if name in ("transitive_closure", *_ACYCLIC):
        reached = plan(closure_problem(BOOLEAN, (np.dtype(bool),), (n, n), Options())).seconds or 0.0
        return 2 * machine.BACKEND_CALL + reached + (machine.BACKEND_EDGE * m if name in _ACYCLIC else machine.BACKEND_GRAPH * n**2)
    if n > machine.PART and name in _BOUNDED:
        return machine.BACKEND_CALL + (machine.BACKEND_READ + machine.BACKEND_BOUNDS) * (n + m)
    if n > machine.PART and name in _COUNTED and given.get("weight", given.get("distance")) is None:
        return machine.BACKEND_CALL + (machine.BACKEND_READ + machine.BACKEND_HOPS * n) * (n + m)
    kind = name if name == "johnson" else "paths" if name in _PATHS else "lengths" if name in _LENGTHS else "numbers"
    return preparation(n, m) + n**2 * machine.BACKEND_ENTRY[kind]


def reading(n: int, m: int) -> float:
    """Predict the seconds of a call that reads a graph."""
    return machine.BACKEND_CALL + machine.BACKEND_READ * (n + m)


def preparation(n: int, m: int) -> float:
    """Predict the seconds of a call that reads a graph and finds all distances."""
    # By the closure or searches: the time of elimination is unknown before the graph has been read.
    return reading(n, m) + (plan(closure_problem(MIN_PLUS, (np.dtype(np.float64),), (n, n), Options(), edges=m)).seconds or 0.0)
