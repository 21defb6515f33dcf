"""Graphs in files that NetworkX reads."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from semiring.common.errors import library
from semiring.files.fields import numbers_for_names, numbers_of
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_list import require_weights
from semiring.graphs.foreign import edges_of_library
from semiring.graphs.weights import weighted

__all__ = ["NETWORKS", "listed", "read_network"]


def _gml(nx: Any, content: bytes) -> Any:
    """The graph of a GML file; vertices without labels have numbers."""
    try:
        return nx.read_gml(io.BytesIO(content))
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.read_gml(io.BytesIO(content), label="id")


def _pajek(nx: Any, content: bytes) -> Any:
    """The graph of a Pajek file; NetworkX passes over all that it does not know."""
    if not re.search(rb"^\s*\*vertices\b", content, re.IGNORECASE | re.MULTILINE):
        raise ValueError("no line begins with *Vertices")
    return nx.read_pajek(io.BytesIO(content))


_READERS: dict[str, Callable[[Any, bytes], Any]] = {
    ".graphml": lambda nx, content: nx.read_graphml(io.BytesIO(content)),
    ".gml": _gml,
    ".gexf": lambda nx, content: nx.read_gexf(io.BytesIO(content)),
    ".net": _pajek,
}
_LISTS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    ".edgelist": lambda nx: nx.parse_edgelist,
    ".adjlist": lambda nx: nx.parse_adjlist,
}
"""Formats that do not say whether edges lead one way only."""

NETWORKS = (*_READERS, *_LISTS)
"""How the names of these files end."""


def read_network(path: Path, suffix: str, content: bytes, directed: bool) -> Any:
    """The graph of NetworkX that is in a file; its lists of edges are directed or not, as is said here.

    Raises
    ------
    SemiringError
        Where NetworkX is not installed, and whatever it raises.
    """
    nx = library("networkx", f"{path}: a {suffix} file", "'semiring[graphs]'")
    if suffix in _READERS:
        return _READERS[suffix](nx, content)
    kind = nx.MultiDiGraph if directed else nx.MultiGraph
    graph = _LISTS[suffix](nx)(content.decode().splitlines(), create_using=kind)
    if not len(graph):
        raise ValueError("no vertices in it")
    return graph


def listed(path: Path, graph: Any, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
    """The edges of a graph of NetworkX, with all their attributes; names that are all integers are numbers."""
    found = edges_of_library(graph)
    assert found is not None
    names: list[Any] = list(found.labels)
    labels = numbers_for_names(names) if all(isinstance(name, str) for name in names) else names
    if nodes is None:
        nodes = sorted(labels) if labels is not names else labels
    ends = [(labels[u], labels[v]) for u, v in zip(found.sources.tolist(), found.targets.tolist(), strict=True)]
    columns = {name: _column(list(values)) for name, values in found.columns.items()}
    named = replace(edges(ends, directed=found.directed, nodes=nodes), weights=columns.get("weight", found.weights), columns=columns)
    named = weighted(named, weight, where=f"{path}: ")
    require_weights(named.weights, named.edge_name)
    if all(value is None for value in named.weights):
        named = replace(named, weights=[1] * len(named.weights))  # as has been warned of
    return named


def _column(values: list[Any]) -> list[Any]:
    """The values of an attribute; texts as numbers if they all are, since some programs write all attributes as texts."""
    there = [value for value in values if value is not None]
    if not all(isinstance(value, str) for value in there) or (numbers := numbers_of(there)) is None:
        return values
    each = iter(numbers)
    return [None if value is None else next(each) for value in values]
