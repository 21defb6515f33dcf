"""The entry point ``networkx.backends``: the functions, the conversions, and the choice of the calls to answer.

`should_run` compares the predicted times of `costs`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any

import networkx as nx

from semiring.common.errors import install_of
from semiring.networkx_backend import measures, paths
from semiring.networkx_backend.costs import slower
from semiring.networkx_backend.distances import SemiringGraph, original

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

_NEEDED = "3.5"  # the first release whose all-pairs functions have the parameters and results of this backend
if [int(number) for number in re.findall(r"\d+", nx.__version__)[:2]] < [int(number) for number in _NEEDED.split(".")]:
    raise ImportError(
        f"NetworkX's backend semiring needs networkx>={_NEEDED}, not {nx.__version__}: {install_of('graphs')}; "
        "semiring.apsp and similar functions take graphs of any version"
    )

_OFFERED: dict[str, Callable[..., Any]] = {name: getattr(module, name) for module in (measures, paths) for name in module.__all__}
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
    """Wrap a NetworkX graph by reference; no attribute is lost, whatever the options."""
    return SemiringGraph(graph)


def convert_to_nx(result: Any, **options: Any) -> Any:
    """Unwrap a graph, and return any other result unchanged."""
    return original(result)


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if this backend gives a call the same meaning as NetworkX, or else the reason.

    Reasons that depend on weights come later: a function that reads unsuitable weights raises NotImplementedError, and NetworkX tries the
    next backend.
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
    if name in ("all_shortest_paths", "shortest_simple_paths", "single_source_all_shortest_paths"):
        return True
    if name == "has_path":
        if given["source"] is None or given["target"] is None:
            return "None is no node"
    elif name.startswith(("multi_source", "voronoi")):
        if not isinstance(given.get("sources", given.get("center_nodes")), Collection):
            return "sources that can be read only once are left to NetworkX"
    elif given.get("source") is not None or given.get("target") is not None:
        return "the backend is for all pairs; one source is a single search"
    if given.get("usebounds"):
        return "bounds need only a few searches"
    cutoff = given.get("cutoff")
    if not (cutoff is None or (isinstance(cutoff, Real) and not math.isnan(cutoff))):
        return "cutoff= is not a number"
    if name in ("center", "centroid", "barycenter") and given["weight"] is None and not graph.is_directed():
        if graph.number_of_edges() == len(graph) - 1:
            return f"NetworkX finds the {name} of a tree in linear time"
        if len(graph) == 0:
            return f"an empty graph has no {name}"
    if callable(given.get("weight", given.get("distance"))):
        return _can_run_with_callable(name, graph.is_directed(), given)
    return True


def _can_run_with_callable(name: str, directed: bool, given: dict[str, Any]) -> bool | str:
    """Return True, or else the reason, for weights given by a function of both ends and the attributes."""
    if name.startswith("floyd_warshall") or str(given.get("method")).startswith("floyd-warshall"):
        return "weight= must be an attribute here; a function is left to NetworkX"
    some = given.get("nbunch") is not None or given.get("sources") is not None
    if (directed and name == "closeness_centrality") or (name == "harmonic_centrality" and (directed or some)):
        return "NetworkX calls the function with the ends of reversed edges"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if this backend is predicted to be faster than NetworkX, or else the reason."""
    given = _arguments(name, args, kwargs)
    return given if isinstance(given, str) else slower(name, original(given["G"]), given) or True


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | str:
    """Return the arguments by name, or the message of Python's TypeError."""
    try:
        return _BINDERS[name](*args, **kwargs)
    except TypeError as error:
        return str(error)
