"""The weights of edges: an attribute or a column, a number for all, or 1 if no edge has a weight.

One rule holds for every kind of graph. If no edge has a weight, each counts 1, with a warning about columns that look like weights. If some
edges have a weight, an edge without one is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.exchange import a_name_of
from semiring.common.errors import GraphError, listing, or_similar
from semiring.graphs.array_like import as_array_like, is_sparse
from semiring.graphs.edge_list import HIDDEN, EdgeList
from semiring.graphs.edge_table import is_number, warn_of_unweighted

__all__ = ["refuse_weight", "weighted"]


def weighted(graph: EdgeList, weight: Any, *, presence: bool = False, warns: bool = True, where: str = "") -> EdgeList:
    """Give the edges the weights of an attribute or a column, or one number; without weights each is None, and counts 1.

    `presence` accepts edges without a weight, because only the presence of edges matters. `warns` allows an AssumptionWarning about edges
    that count 1 beside columns of numbers. Messages begin with `where`. An edge that NetworkX hides by the weight None is `HIDDEN`, unless
    only `presence` is requested. Raises GraphError for a name that no edge has, and for an edge without a weight among weighted ones.
    """
    found = graph if weight is None else _named(graph, weight, where)
    if presence and weight is None:
        hidden = not isinstance(found.weights, np.ndarray) and type(HIDDEN) in set(map(type, found.weights))
        return replace(found, weights=[None] * len(found.weights)) if hidden else found
    absent = _absent(found.weights)
    if presence or not absent:
        return found
    if any(w is not None and w is not HIDDEN for w in found.weights):
        name = repr("weight" if weight is None else weight)
        have = "has" if len(absent) == 1 else "have"
        raise GraphError(
            f"{where}{len(absent):,} of {len(found.weights):,} edges {have} no {name} though others do, such as "
            f"{found.edge_name(absent[0])}; give every edge a {name}, leave out edges without one, or pass weight=1 to count edges"
        )
    if weight is None and warns:
        # GraphML calls the number of an edge "id".
        warn_of_unweighted({name: found.columns[name] for name in found.columns if name != "id"}, where)
    return found


def _named(graph: EdgeList, weight: Any, where: str) -> EdgeList:
    _require_name(weight)
    m = len(graph.weights)
    values: Sequence[Any] | Array | None = graph.columns.get(weight)
    if values is None:
        values = graph.weights if weight == "weight" else [None] * m
    if len(_absent(values)) < m:
        return replace(graph, weights=values if isinstance(values, np.ndarray) else list(values))
    if m and not is_number(weight):
        raise GraphError(f"{where}no edge has the attribute or column {weight!r}{_instead_of(weight, graph)}")
    return replace(graph, weights=[weight if is_number(weight) else None] * m)


def _absent(weights: Sequence[Any] | Array) -> list[int]:
    """Return the positions of edges without a weight; an array of numbers has none."""
    if isinstance(weights, np.ndarray) and weights.dtype != object:
        return []
    return [position for position, weight in enumerate(weights) if weight is None]


def _instead_of(weight: Any, graph: EdgeList) -> str:
    """List the valid names, likeliest first."""
    has_weights = len(_absent(graph.weights)) < len(graph.weights)
    names = list(dict.fromkeys([*(["weight"] * has_weights), *graph.columns]))
    return f"; {or_similar(weight, names, f'edges have {listing(names)}')}" if names else ""


def _require_name(weight: Any) -> None:
    if isinstance(weight, bool | np.bool_) or callable(weight) or not isinstance(weight, Hashable):
        shown = weight if isinstance(weight, bool | np.bool_) else a_name_of(weight)
        raise GraphError(f"weight is {shown}; pass the name of an attribute of edges, or a number that every edge counts")


def refuse_weight(graph: Any, weight: Any) -> None:
    """Refuse a weight by name for an array, whose entries are the weights."""
    if not (is_sparse(graph) or isinstance(graph, list | tuple)):
        as_array_like(graph)  # raises for other objects
    _require_name(weight)
    table = f"; of a table with a row for each edge pass sr.edges(frame, source=…, target=…, weight={weight!r})"
    raise GraphError(
        f"weight={weight!r} is for edges with attributes or columns, and the entries of {a_name_of(graph)} are the weights themselves; "
        f"leave it out{table if hasattr(graph, 'columns') else ''}"
    )
