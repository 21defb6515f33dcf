"""A graph as the user lists it: pairs or triples, with labels of any hashable kind. `semiring.graphs.coo` reads it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, lends_memory, name_of
from semiring.common.errors import GraphError
from semiring.common.html import code, faint, short, table
from semiring.graphs.array_like import is_sparse

__all__ = ["EdgeList", "edges", "numbered"]

_SHOWN, _WIDTH = 8, 40
"""Edges that Jupyter shows, and the most characters of a name."""

_NO_EDGE = (str, bytes, Mapping, Set)
"""What has parts, but no first and second one."""

_WHAT_EDGES_TAKES = (
    "sr.edges takes a list of pairs (u, v) or triples (u, v, weight), as zip(tails, heads, weights) makes of arrays, then directed=, nodes="
)


@dataclass(frozen=True, eq=False, repr=False)
class EdgeList:
    """A graph given by its edges; `edges` makes it.

    Examples
    --------
    >>> import semiring as sr
    >>> streets = sr.edges([("home", "shop", 2.0), ("shop", "park", 1.5)], directed=False)
    >>> streets, streets.labels
    (<3 vertices, 2 undirected edges>, ('home', 'shop', 'park'))

    Attributes
    ----------
    labels : tuple
        The vertices, in the order of the rows of every matrix that comes out.
    sources, targets : int array
        For each edge, the row of its first and of its second vertex.
    weights : list
        None for an edge without a weight.
    directed : bool
    lines : sequence of int or None
        The line of each edge in the file that it was read from, for messages.
    """

    labels: tuple[Hashable, ...]
    sources: Array
    targets: Array
    weights: list[Any]
    directed: bool = True
    lines: Sequence[int] | None = None

    def __repr__(self) -> str:
        return f"<{len(self.labels)} vertices, {len(self.weights)} {self._kind} edges>"

    def _repr_html_(self) -> str:
        arrow = "→" if self.directed else "–"
        first = zip(self.sources[:_SHOWN].tolist(), self.targets[:_SHOWN].tolist(), self.weights[:_SHOWN], strict=True)

        def name(vertex: int) -> str:
            return code(short(repr(self.labels[vertex]), _WIDTH))

        rows = [(name(u), arrow, name(v), faint("weight 1") if w is None else code(short(str(w), _WIDTH))) for u, v, w in first]
        more = [(faint(f"and {len(self.weights) - _SHOWN:,} more"),)] if len(self.weights) > _SHOWN else []
        return table(f"{len(self.labels):,} vertices, {len(self.weights):,} {self._kind} edges", [*rows, *more])

    @property
    def _kind(self) -> str:
        return "directed" if self.directed else "undirected"


def edges(edge_list: Iterable[Any], directed: bool = True, nodes: Iterable[Hashable] | None = None) -> EdgeList:
    """A graph from its edges.

    Examples
    --------
    >>> import semiring as sr
    >>> streets = sr.edges([("home", "shop", 2.0), ("shop", "park", 1.5), ("home", "park", 5.0)])
    >>> streets.labels
    ('home', 'shop', 'park')
    >>> sr.apsp(streets)[0]
    array([0. , 2. , 3.5])

    Parameters
    ----------
    edge_list : iterable
        Pairs ``(u, v)`` or triples ``(u, v, weight)``, or an array of such rows; u and v are any hashable labels. An edge without a
        weight counts 1. Parallel edges combine with the semiring's ⊕ (for distances the shortest counts).
    directed : bool
        Whether an edge leads one way only.
    nodes : iterable, optional
        All vertices, in the order of the rows: for vertices without edges, or for an order of your own. Otherwise integers are
        sorted, and other labels come in the order of their first appearance.

    Returns
    -------
    EdgeList
        Accepted wherever a graph is; ``.labels`` tells which row is which vertex.

    Raises
    ------
    GraphError
        For what is no list of edges (a matrix, a graph, a dict), an item that is no edge, an unhashable label, a vertex that is not in
        `nodes`, or a `directed` that is no truth value, as weights in its place.
    """
    if not isinstance(directed, bool | np.bool_):
        raise GraphError(f"directed is {_described(directed)}, not True or False; {_WHAT_EDGES_TAKES}")
    if nodes is not None and not isinstance(nodes, Iterable):
        raise GraphError(f"nodes is {_described(nodes)}, not a list of all vertices; {_WHAT_EDGES_TAKES}")
    ends: list[tuple[Hashable, Hashable]] = []
    weights: list[Any] = []
    for position, item in enumerate(_items(edge_list)):
        parts: tuple[Any, ...] = () if isinstance(item, _NO_EDGE) or not isinstance(item, Iterable) else tuple(item)
        if len(parts) not in (2, 3):
            raise GraphError(f"edge {position} is {item!r}; an edge is a pair (u, v) or a triple (u, v, weight)")
        ends.append(parts[:2])
        weights.append(parts[2] if len(parts) == 3 else None)
    try:
        seen = dict.fromkeys(vertex for pair in ends for vertex in pair)
        labels = tuple(seen) if nodes is None else tuple(nodes)
        distinct = len(set(labels)) == len(labels)
    except TypeError as error:
        raise GraphError(f"vertices need hashable labels: {error}") from None
    if arrays := [v for v in {type(v): v for v in labels}.values() if lends_memory(v)]:
        raise GraphError(
            f"the vertex {arrays[0]!r} is an array, which equals no other; name vertices by numbers or texts, as .tolist() gives"
        )
    if not distinct:
        raise GraphError("nodes names a vertex twice")
    if nodes is None and all(isinstance(v, int | np.integer) for v in labels):
        labels = tuple(sorted(labels))  # type: ignore[type-var]  # integers, as just tested
    sources, targets = numbered(ends, labels)
    return EdgeList(labels, sources, targets, weights, directed)


def _items(edge_list: Any) -> Iterable[Any]:
    """The edges one by one, where it is a list of edges."""
    if lends_memory(edge_list):
        return _rows(host(borrowed(edge_list).array))
    if is_sparse(edge_list) or hasattr(edge_list, "adj") or isinstance(edge_list, EdgeList):
        raise GraphError(f"a graph of type {name_of(edge_list)} is no list of edges; pass it as it is, in the place of one")
    if isinstance(edge_list, Mapping) and not isinstance(edge_list, Set):  # a view of NetworkX's edges is both
        raise GraphError(f"a {name_of(edge_list)} is no list of edges; pass ((u, v, weight) for (u, v), weight in graph.items())")
    if hasattr(edge_list, "itertuples"):
        raise GraphError(
            f"a {name_of(edge_list)} is no list of edges; pass frame[[u, v, weight]].itertuples(index=False), by its columns' names"
        )
    if not isinstance(edge_list, Iterable):
        raise GraphError(f"a {name_of(edge_list)} is no list of edges; {_WHAT_EDGES_TAKES}")
    return edge_list


def _described(value: Any) -> str:
    """An argument as a message shows it: of an array its shape."""
    shape = getattr(value, "shape", ())
    return f"an array of shape {tuple(shape)}" if shape else short(repr(value), _WIDTH)


def _rows(array: Array) -> list[Any]:
    """The rows of an (m, 2) or (m, 3) array; vertices that had to be floats beside their weights are integers again."""
    if array.ndim not in (1, 2):
        raise GraphError(f"edges are no array of shape {array.shape}, but one of shape (m, 2), or (m, 3) with their weights")
    rows: list[Any] = array.tolist()
    if array.dtype.kind == "f" and array.ndim == 2 and all(v.is_integer() for row in rows for v in row[:2]):
        return [(int(u), int(v), *weight) for u, v, *weight in rows]
    return rows


def numbered(ends: list[tuple[Hashable, Hashable]], labels: tuple[Hashable, ...]) -> tuple[Array, Array]:
    """The rows of both ends of each edge."""
    row = {label: i for i, label in enumerate(labels)}
    try:
        sources = np.fromiter((row[u] for u, _ in ends), dtype=np.intp, count=len(ends))
        targets = np.fromiter((row[v] for _, v in ends), dtype=np.intp, count=len(ends))
    except KeyError as error:
        vertex = error.args[0]
        position = next(i for i, pair in enumerate(ends) if vertex in pair)
        raise GraphError(f"edge {position}, {ends[position]!r}, has a vertex that is not in nodes: {vertex!r}") from None
    return sources, targets
