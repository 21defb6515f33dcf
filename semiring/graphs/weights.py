"""Which weights edges have: those of an attribute or a column, a number for all, or 1, with a warning where something else may be meant."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.exchange import name_of
from semiring.common.errors import AssumptionWarning, GraphError, callers_level
from semiring.graphs.array_like import as_array_like, is_sparse
from semiring.graphs.edge_list import EdgeList

__all__ = ["refuse_weight", "weighted"]

_SHOWN = 5
"""Names in a message."""

_NUMBERS = (int, float, Fraction, np.integer, np.floating)


def weighted(graph: EdgeList, weight: Any, *, warns: bool, listed: bool) -> EdgeList:
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

    Raises
    ------
    GraphError
        For a name that no edge has.
    """
    if weight is None:
        if warns and len(graph.weights) and (not listed or graph.columns):
            _warn_of_missing(graph, listed)
        return graph
    _require_name(weight)
    m = len(graph.weights)
    if isinstance(weight, _NUMBERS):
        return replace(graph, weights=[weight] * m)
    values: Sequence[Any] | Array | None = graph.columns.get(weight)
    if values is None:
        values = graph.weights if weight == "weight" else [None] * m
    if m and len(_missing(values)) == m:
        raise GraphError(f"no edge has the attribute or column {weight!r}{_instead_of(weight, graph)}")
    found = replace(graph, weights=values if isinstance(values, np.ndarray) else list(values))
    if warns:
        _warn_of_some(found, weight)
    return found


def _warn_of_missing(graph: EdgeList, listed: bool) -> None:
    """Warn of edges without a weight: of all, if they have something else that could be meant, or of some."""
    if len(_missing(graph.weights)) < len(graph.weights):
        if not listed:
            _warn_of_some(graph, "weight")
    elif others := [name for name in graph.columns if _are_numbers(graph.columns[name])]:
        which = f"pass weight={others[0]!r} to count that" if len(others) == 1 else "pass one of them, as weight=" + repr(others[0])
        warnings.warn(
            f"each edge counts 1, as none has the attribute 'weight'; all have {_listed(others)}: {which}, or weight=1 to count edges",
            AssumptionWarning,
            stacklevel=callers_level(),
        )


def _warn_of_some(graph: EdgeList, weight: Any) -> None:
    """Warn of edges without a weight beside others."""
    if missing := _missing(graph.weights):
        warnings.warn(
            f"edges without {weight!r} count 1: {len(missing):,} of {len(graph.weights):,}, such as {graph.edge_name(missing[0])}; "
            f"give each a {weight!r} to settle it",
            AssumptionWarning,
            stacklevel=callers_level(),
        )


def _missing(weights: Sequence[Any] | Array) -> list[int]:
    """The positions of edges without a weight, which an array does not have."""
    return [] if isinstance(weights, np.ndarray) else [position for position, weight in enumerate(weights) if weight is None]


def _are_numbers(values: Sequence[Any] | Array) -> bool:
    """Whether all of them are numbers, and no truth values."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.dtype.kind in "iuf"
    return all(issubclass(kind, _NUMBERS) and kind is not bool for kind in set(map(type, values)))


def _instead_of(weight: Any, graph: EdgeList) -> str:
    """What could be passed in the place of a name that there is not."""
    names: Iterable[Any] = graph.columns
    if len(_missing(graph.weights)) < len(graph.weights):
        names = dict.fromkeys(["weight", *names])
    if not (names := list(names)):
        return ""
    from difflib import get_close_matches

    meant = get_close_matches(weight, [name for name in names if isinstance(name, str)], 1) if isinstance(weight, str) else []
    return f"; did you mean {meant[0]!r}? Edges have {_listed(names)}" if meant else f"; edges have {_listed(names)}"


def _require_name(weight: Any) -> None:
    """Refuse what is neither a name nor a number."""
    if isinstance(weight, bool | np.bool_) or callable(weight) or not isinstance(weight, Hashable):
        shown = weight if isinstance(weight, bool | np.bool_) else f"a {name_of(weight)}"
        raise GraphError(f"weight is {shown}; pass the name of an attribute of edges, or a number that every edge counts")


def _listed(names: list[Any]) -> str:
    """Names for a message."""
    shown = [repr(name) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        return f"{', '.join(shown)}, …"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def refuse_weight(graph: Any, weight: Any) -> None:
    """Refuse a weight by name for what has no attributes of edges: an array, whose entries are the weights."""
    if not (is_sparse(graph) or isinstance(graph, list | tuple)):
        as_array_like(graph)  # which says what is no graph
    _require_name(weight)
    table = f"; of a table with a row for each edge pass sr.edges(frame, source=…, target=…, weight={weight!r})"
    raise GraphError(
        f"weight={weight!r} is for edges with attributes or columns, and the entries of a {name_of(graph)} are the weights themselves; "
        f"leave it out{table if hasattr(graph, 'columns') else ''}"
    )
