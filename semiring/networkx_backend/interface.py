"""The entry point ``networkx.backends``: the functions offered, conversions, which calls they can answer, and which faster than NetworkX.

`should_run` decides by predicted times, of NetworkX and of this library. Their constants, of `kernels.machine`, are those of
`python -m benchmarks.networkx_backend`, rounded in favour of NetworkX.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.common.units import duration
from semiring.kernels import machine
from semiring.networkx_backend import betweenness, measures, paths
from semiring.networkx_backend.distances import SemiringGraph, original
from semiring.planning import closure_problem, plan
from semiring.planning.options import Options

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "predicted", "should_run", "slower"]

_NEEDED = "3.5"  # the first whose all-pairs functions return what those here do, with the same parameters
if [int(number) for number in re.findall(r"\d+", nx.__version__)[:2]] < [int(number) for number in _NEEDED.split(".")]:
    raise ImportError(
        f"NetworkX's backend semiring needs networkx>={_NEEDED}, and this is {nx.__version__}: pip install 'semiring[graphs]'; "
        "graphs of this one are taken by semiring.apsp and its kin"
    )

_ROOMS = betweenness, measures, paths
_OFFERED: dict[str, Callable[..., Any]] = {name: getattr(room, name) for room in _ROOMS for name in room.__all__}
globals().update(_OFFERED)  # NetworkX looks for its functions here


def _binder(name: str) -> Callable[..., dict[str, Any]]:
    """Build a function that takes the parameters of an offered function and returns them by name.

    NetworkX asks twice before each call, and `Signature.bind` takes 20 times as long as a call.
    """
    parameters = inspect.signature(_OFFERED[name]).parameters.values()
    plain = inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])
    bind: Callable[..., dict[str, Any]] = eval(f"lambda {str(plain)[1:-1]}: locals()")
    bind.__qualname__ = name  # the name in Python's TypeError
    return bind


_BINDERS = {name: _binder(name) for name in _OFFERED}


def convert_from_nx(graph: Any, **options: Any) -> SemiringGraph:
    """A graph of NetworkX for this backend, by reference: which attributes to keep is no question."""
    return SemiringGraph(graph)


def convert_to_nx(result: Any, **options: Any) -> Any:
    """What NetworkX gets back; only graphs were changed, and all others are as they should be."""
    return original(result)


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a call has the meaning that the function here has, or why not.

    What depends on the weights of a graph is seen where they are read: then a function raises NotImplementedError, and NetworkX goes on
    to the next backend.
    """
    given = _arguments(name, args, kwargs)
    if isinstance(given, str):
        return given
    graph = original(given["G"])
    if name == "centroid" and nx.barycenter.name != name:
        return "before NetworkX 3.7 this is the centroid of a tree, which NetworkX finds in linear time"
    for parameter in ("attr", "e", "sp", "topo_order"):
        if given.get(parameter) is not None:
            return f"{parameter}= is left to NetworkX"
    if name == "shortest_simple_paths":
        return True
    if name == "has_path":
        if given["source"] is None or given["target"] is None:
            return "None is no node"
    elif given.get("source") is not None or given.get("target") is not None:
        return "this is for all pairs; one source is a single search"
    if given.get("usebounds"):
        return "bounds need a few searches only"
    cutoff = given.get("cutoff")
    if not (cutoff is None or (isinstance(cutoff, int | float) and not math.isnan(cutoff))):
        return "cutoff= is no number"
    if name in ("center", "centroid", "barycenter") and given["weight"] is None and not graph.is_directed():
        if graph.number_of_edges() == len(graph) - 1:
            return "of a tree NetworkX finds it in linear time"
        if len(graph) == 0:
            return "an empty graph has none"
    if callable(given.get("weight", given.get("distance"))):
        return _meaning_of_function(name, graph.is_directed(), given)
    return True


def _meaning_of_function(name: str, directed: bool, given: dict[str, Any]) -> bool | str:
    """The same where weights are what a function says of both ends and the attributes."""
    if name.startswith("floyd_warshall") or str(given.get("method")).startswith("floyd-warshall"):
        return "here a weight is an attribute; what a function means is left to NetworkX"
    some = given.get("nbunch") is not None or given.get("sources") is not None
    if (directed and name == "closeness_centrality") or (name == "harmonic_centrality" and (directed or some)):
        return "NetworkX calls the function with the ends of reversed edges"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether this is faster than NetworkX, or why not."""
    given = _arguments(name, args, kwargs)
    return given if isinstance(given, str) else slower(name, original(given["G"]), given) or True


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | str:
    """The arguments of a call by name, or what is wrong with them."""
    try:
        return _BINDERS[name](*args, **kwargs)
    except TypeError as error:
        return str(error)


# Which of both is faster.


_ALONE = {
    "eccentricity": ("v",),
    "closeness_centrality": ("u",),
    "harmonic_centrality": ("nbunch", "sources"),
}
"""Arguments that name the only nodes of which the result is wanted."""

_SEARCHES = 10
"""That a second path takes at least, one from each vertex of the first."""

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
"""What bounds of eccentricities tell by a few searches."""

_COUNTED = ("closeness_centrality", "eccentricity")
"""What hop counts tell without their rows, where edges have no weight."""


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
    n, m, theirs = _theirs(name, graph, given)
    ours = _own(name, n, m, given) if theirs > machine.BACKEND_CALL else machine.BACKEND_CALL
    if ours < theirs:
        return None
    edges = m if graph.is_directed() else m // 2
    return f"for {n} nodes and {edges} edges NetworkX takes about {duration(theirs)}, and this backend {duration(ours)}"


def predicted(name: str, graph: Any, given: dict[str, Any]) -> tuple[float, float]:
    """Seconds that NetworkX takes, and that this backend takes."""
    n, m, theirs = _theirs(name, graph, given)
    return theirs, _own(name, n, m, given)


def _theirs(name: str, graph: Any, given: dict[str, Any]) -> tuple[int, int, float]:
    """Count the nodes and directed edges of a graph, and predict the seconds that NetworkX takes."""
    n, m = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    return n, m, _networkx(name, n, m, given)


def _searches(n: int, given: dict[str, Any]) -> int:
    """The sources of betweenness: all, so many, or those that are named."""
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
    """Seconds that this backend takes, for its steps and its result: more than `machine.BACKEND_CALL`."""
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
    return machine.BACKEND_CALL + machine.BACKEND_READ * (n + m) + _distances(n, m) + n**2 * machine.BACKEND_ENTRY[kind]


def _distances(n: int, m: int) -> float:
    """Seconds of all distances: those of the closure or of searches, as what elimination takes is only known of a graph that was read."""
    return plan(closure_problem(MIN_PLUS, (np.dtype(np.float64),), (n, n), Options(), edges=m)).seconds or 0.0


def _reachability(n: int) -> float:
    """Seconds of the transitive closure."""
    return plan(closure_problem(BOOLEAN, (np.dtype(bool),), (n, n), Options())).seconds or 0.0
