"""Which weights edges have: those of an attribute or a column, a number for all, or 1, with a warning where something else may be meant."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.exchange import a_name_of
from semiring.common.errors import AssumptionWarning, GraphError, callers_level, listing, or_similar
from semiring.graphs.array_like import as_array_like, is_sparse
from semiring.graphs.edge_list import EdgeList
from semiring.graphs.edge_table import is_number, warn_of_unweighted

__all__ = ["refuse_weight", "weighted"]


def weighted(graph: EdgeList, weight: Any, *, warns: bool, listed: bool, where: str = "") -> EdgeList:
    """The graph with the weights that a caller asks for; an edge without one, which is None, counts 1.

    Parameters
    ----------
    graph : EdgeList
        With the weights that edges have unasked.
    weight : hashable, optional
        The name of an attribute or a column, or a number that every edge counts.
    warns : bool
        Whether to tell of edges that count 1: nobody asks for weights where all that matters is whether there is an edge.
    listed : bool
        Whether the caller has listed the edges, so that one without a weight is meant to have none.
    where : str
        What messages begin with.

    Raises
    ------
    GraphError
        For a name that no edge has.
    """
    if weight is None:
        if warns and len(graph.weights) and (not listed or graph.columns):
            _warn_of_missing(graph, listed, where)
        return graph
    _require_name(weight)
    m = len(graph.weights)
    values: Sequence[Any] | Array | None = graph.columns.get(weight)
    if values is None:
        values = graph.weights if weight == "weight" else [None] * m
    if len(_missing(values)) == m:
        if m and not is_number(weight):
            raise GraphError(f"{where}no edge has the attribute or column {weight!r}{_instead_of(weight, graph)}")
        return replace(graph, weights=[weight if is_number(weight) else None] * m)
    found = replace(graph, weights=values if isinstance(values, np.ndarray) else list(values))
    if warns:
        _warn_of_some(found, weight, where)
    return found


def _warn_of_missing(graph: EdgeList, listed: bool, where: str) -> None:
    """Warn of edges without a weight: of all, if they have something else that could be meant, or of some."""
    if len(_missing(graph.weights)) == len(graph.weights):
        # GraphML calls the number of an edge "id".
        warn_of_unweighted({name: graph.columns[name] for name in graph.columns if name != "id"}, where)
    elif not listed:
        _warn_of_some(graph, "weight", where)


def _warn_of_some(graph: EdgeList, weight: Any, where: str) -> None:
    """Warn of edges without a weight beside others."""
    if missing := _missing(graph.weights):
        warnings.warn(
            f"{where}edges without {weight!r} count 1: {len(missing):,} of {len(graph.weights):,}, such as {graph.edge_name(missing[0])}; "
            f"give each a {weight!r} to settle it",
            AssumptionWarning,
            stacklevel=callers_level(),
        )


def _missing(weights: Sequence[Any] | Array) -> list[int]:
    """The positions of edges without a weight, which an array does not have."""
    return [] if isinstance(weights, np.ndarray) else [position for position, weight in enumerate(weights) if weight is None]


def _instead_of(weight: Any, graph: EdgeList) -> str:
    """What could be passed in the place of a name that there is not."""
    has_weights = len(_missing(graph.weights)) < len(graph.weights)
    names = list(dict.fromkeys([*(["weight"] * has_weights), *graph.columns]))
    return f"; {or_similar(weight, names, f'edges have {listing(names)}')}" if names else ""


def _require_name(weight: Any) -> None:
    """Refuse what is neither a name nor a number."""
    if isinstance(weight, bool | np.bool_) or callable(weight) or not isinstance(weight, Hashable):
        shown = weight if isinstance(weight, bool | np.bool_) else a_name_of(weight)
        raise GraphError(f"weight is {shown}; pass the name of an attribute of edges, or a number that every edge counts")


def refuse_weight(graph: Any, weight: Any) -> None:
    """Refuse a weight by name for what has no attributes of edges: an array, whose entries are the weights."""
    if not (is_sparse(graph) or isinstance(graph, list | tuple)):
        as_array_like(graph)  # which says what is no graph
    _require_name(weight)
    table = f"; of a table with a row for each edge pass sr.edges(frame, source=…, target=…, weight={weight!r})"
    raise GraphError(
        f"weight={weight!r} is for edges with attributes or columns, and the entries of {a_name_of(graph)} are the weights themselves; "
        f"leave it out{table if hasattr(graph, 'columns') else ''}"
    )
