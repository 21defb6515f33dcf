"""Graphs in files that NetworkX reads."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from semiring.common.errors import AssumptionWarning, GraphError, SemiringError, callers_level
from semiring.files.edge_text import numbers_for_names, numbers_of
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import counts_alike, listed_names, meant, unweighted

__all__ = ["NETWORKS", "listed", "read_network"]


def _gml(nx: Any, content: bytes) -> Any:
    """The graph of a GML file; vertices without labels have numbers."""
    try:
        return nx.read_gml(io.BytesIO(content))
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.read_gml(io.BytesIO(content), label="id")


_READERS: dict[str, Callable[[Any, bytes], Any]] = {
    ".graphml": lambda nx, content: nx.read_graphml(io.BytesIO(content)),
    ".gml": _gml,
    ".gexf": lambda nx, content: nx.read_gexf(io.BytesIO(content)),
    ".net": lambda nx, content: nx.read_pajek(io.BytesIO(content)),
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
    try:
        import networkx as nx
    except ImportError:
        raise SemiringError(f'{path}: {suffix} files need NetworkX: pip install "semiring[graphs]"') from None
    if suffix in _READERS:
        return _READERS[suffix](nx, content)
    kind = nx.MultiDiGraph if directed else nx.MultiGraph
    return _LISTS[suffix](nx)(content.decode().splitlines(), create_using=kind)


def listed(path: Path, graph: Any, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
    """The edges of a graph of NetworkX, with all their attributes; names that are all integers are numbers."""
    triples = list(graph.edges(data=True))
    columns = {name: _column([data.get(name) for *_, data in triples]) for name in dict.fromkeys(k for *_, d in triples for k in d)}
    names = list(graph)
    numbers = numbers_for_names(names) if all(isinstance(name, str) for name in names) else names
    label = dict(zip(names, numbers, strict=True))
    weights = _weights(path, columns, weight, len(triples))
    if nodes is None:
        nodes = sorted(numbers) if numbers is not names else names
    found = [(label[u], label[v], w) for (u, v, _), w in zip(triples, weights, strict=True)]
    return replace(edges(found, directed=graph.is_directed(), nodes=nodes), columns=columns)


def _weights(path: Path, columns: dict[str, list[Any]], weight: str | float | None, m: int) -> list[Any]:
    """The weights of m edges, None for those that have none among others, and a warning of what may not be meant."""
    if counts_alike(weight, columns):
        return [weight] * m
    name = "weight" if weight is None else weight
    if name in columns:
        weights = columns[str(name)]
        if missing := weights.count(None):
            warnings.warn(
                f"{path}: {missing:,} of the {m:,} edges have no {name!r} and count 1", AssumptionWarning, stacklevel=callers_level()
            )
        return weights
    if weight is not None and m:
        raise GraphError(f"{path}: no edge has an attribute {weight!r}{meant(weight, columns)}; there are {listed_names(list(columns))}")
    if others := [name for name, values in columns.items() if name != "id" and all(map(_is_number, values))]:  # which GraphML gives edges
        warnings.warn(f"{path}: {unweighted(others)}", AssumptionWarning, stacklevel=callers_level())
    return [1] * m


def _column(values: list[Any]) -> list[Any]:
    """The values of an attribute; texts as numbers if they all are, since some programs write all attributes as texts."""
    there = [value for value in values if value is not None]
    if not all(isinstance(value, str) for value in there) or (numbers := numbers_of(there)) is None:
        return values
    each = iter(numbers)
    return [None if value is None else next(each) for value in values]


def _is_number(value: Any) -> bool:
    """Whether an attribute may be a weight."""
    return isinstance(value, int | float) and not isinstance(value, bool)
