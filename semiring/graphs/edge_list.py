"""`EdgeList`: a graph as the user lists it, by pairs or triples, columns of a table, or arrays, with labels of any hashable kind."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import a_name_of, borrowed, graph_library, is_sparse, lends_memory, name_of
from semiring.arrays.memory import require_bytes
from semiring.common.errors import GraphError, described, raised_here
from semiring.common.html import code, faint, short, table
from semiring.common.units import counted
from semiring.graphs.edge_table import WHAT_EDGES_TAKES, EdgeColumns, direction_of, edge_columns, require_weights
from semiring.graphs.turns import TurnCosts, turn_costs

__all__ = ["HIDDEN", "EdgeList", "edges", "is_constant", "refuse_name"]

_SHOWN, _WIDTH = 8, 40  # edges that Jupyter shows, and most characters of a name
_NO_EDGE = (str, bytes, Mapping, Set)  # iterables without a first and a second part
_VERTEX_BYTES = 100  # size of a vertex's name: an integer, a place in a tuple, and an entry in a dictionary


class _Hidden:
    """The weight of an edge that does not exist for weighted questions: None in NetworkX."""

    def __repr__(self) -> str:
        return "None"


HIDDEN = _Hidden()
"""The weight of an edge that a NetworkX graph hides: the zero of every semiring."""


@dataclass(frozen=True, eq=False, repr=False)
class EdgeList:
    """A graph given by its edges, from `edges` or `read_edges`.

    The result of reading a list is kept for later calls if its arrays cannot change, as when `edges` was given arrays.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = [("home", "shop", 2.0), ("shop", "park", 1.5)]
    >>> streets = sr.edges(ways, directed=False)
    >>> streets, streets.labels
    (<3 vertices, 2 undirected edges>, ('home', 'shop', 'park'))

    Attributes
    ----------
    labels : tuple
        The vertices, in the order of the rows of every resulting matrix.
    sources, targets : int array
        For each edge, the row of its first and of its second vertex.
    weights : list or array
        None for an edge without a weight. If no edge has a weight, each counts 1; otherwise weighted questions refuse such an edge.
    directed : bool
    lines : sequence of int or None
        The line of each edge in its file, for messages.
    columns : mapping
        Other attributes of the edges by name: sequences, such as the columns of a table or a file, with None for a missing value.
        `semiring.apsp` takes one by ``weight=``.
    turns : object or None
        The costs of turns, from `with_turns`.
    """

    labels: tuple[Hashable, ...]
    sources: Array
    targets: Array
    weights: list[Any] | Array
    directed: bool = True
    lines: Sequence[int] | None = None
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    turns: TurnCosts | None = None

    def __repr__(self) -> str:
        return f"<{self._size}>"

    @property
    def _size(self) -> str:
        kind = "directed" if self.directed else "undirected"
        turns = "" if self.turns is None else f", costs of {counted(len(self.turns.costs), 'turn')}"
        return f"{counted(len(self.labels), 'vertex', 'vertices')}, {counted(len(self.weights), f'{kind} edge')}{turns}"

    def _repr_html_(self) -> str:
        arrow = "→" if self.directed else "–"
        first = zip(self.sources[:_SHOWN].tolist(), self.targets[:_SHOWN].tolist(), self.weights[:_SHOWN], strict=True)
        absent = "weight 1" if all(w is None for w in self.weights) else "no weight"

        def name(vertex: int) -> str:
            return code(short(repr(self.labels[vertex]), _WIDTH))

        rows = [(name(u), arrow, name(v), faint(absent) if w is None else code(short(str(w), _WIDTH))) for u, v, w in first]
        more = [(faint(f"and {len(self.weights) - _SHOWN:,} more"),)] if len(self.weights) > _SHOWN else []
        return table(self._size, [*rows, *more])

    def edge_name(self, e: int) -> str:
        """Name an edge in a message."""
        line = "" if self.lines is None else f" (line {self.lines[e]})"
        return f"edge {e} from {self.labels[self.sources[e]]!r} to {self.labels[self.targets[e]]!r}{line}"

    @raised_here
    def with_turns(self, cost: Callable[[Any, Any], Any] | Mapping[Any, Any]) -> EdgeList:
        """Return the same edges with costs for turns from an edge to the next edge, such as a left turn, or a forbidden one.

        Examples
        --------
        >>> import semiring as sr
        >>> streets = sr.edges([("home", "crossing", 2.0), ("crossing", "shop", 1.0), ("crossing", "park", 3.0), ("park", "crossing", 3.0)])
        >>> turns = streets.with_turns({(("home", "crossing"), ("crossing", "shop")): float("inf")})
        >>> turns
        <4 vertices, 4 directed edges, costs of 1 turn>
        >>> sr.apsp(turns, paths=True).path("home", "shop")
        ['home', 'crossing', 'park', 'crossing', 'shop']

        Parameters
        ----------
        cost : callable or dict
            A function of an edge ``(u, v)`` and the next edge ``(v, w)``, pairs of vertices; or a dictionary by pairs of such edges, where
            other turns cost the semiring's one. None, or the semiring's zero (∞ for distances), forbids a turn.

        Returns
        -------
        EdgeList
            A graph for `apsp`, `closure`, `transitive_closure` and `nearest`.

        Raises
        ------
        GraphError
            For a turn whose edges are not in the graph, or do not follow each other.

        Notes
        -----
        The element of a path is w₁ ⊗ t₁₂ ⊗ w₂ ⊗ …, with the weights w of edges and the costs t of turns; the first edge has no turn before.
        A best path may visit a vertex twice, as above. A turn back along the same edge costs nothing extra unless `cost` says so. An
        undirected edge is two edges, and parallel edges have the same turns. Costs become elements as weights do.

        A function is called once for each turn. Vertices whose turns have costs are expanded as in a line graph, with an edge for each
        turn. For k edges and turns, a search takes O(k log k) steps and O(k) memory. Caldwell, "On finding minimum routes in a network with
        turn penalties", 1961. More: How-to, Turns.
        """
        return replace(self, turns=turn_costs(self if self.turns is None else self.turns.graph, cost))


@raised_here
def edges(
    edge_list: Any,
    heads: Any = None,
    weights: Any = None,
    *,
    source: Hashable | None = None,
    target: Hashable | None = None,
    weight: Hashable | None = None,
    directed: bool | None = None,
    nodes: Iterable[Hashable] | None = None,
) -> EdgeList:
    """Make a graph of its edges: a list of them, a table with a row for each, or arrays.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = [("home", "shop", 2.0), ("shop", "park", 1.5), ("home", "park", 5.0)]
    >>> streets = sr.edges(ways)
    >>> streets.labels
    ('home', 'shop', 'park')
    >>> sr.apsp(streets)[0]
    array([0. , 2. , 3.5])

    Tails, heads and weights, and a table:

    >>> import numpy as np
    >>> sr.edges([7, 7, 9], [9, 8, 8], [1.5, 4.0, 0.5], directed=False)
    <3 vertices, 3 undirected edges>
    >>> roads = np.array([("A", "B", 125.0, 60)], dtype=[("from", "U9"), ("to", "U9"), ("km", float), ("minutes", int)])
    >>> roads = sr.edges(roads, source="from", target="to", weight="km")
    >>> roads.weights, list(roads.columns)
    (array([125.]), ['km', 'minutes'])

    Parameters
    ----------
    edge_list : iterable, table, or array
        - Pairs ``(u, v)`` or triples ``(u, v, weight)`` of hashable labels, or an array of such rows. Edges without weights count 1.
        - A table: of pandas, polars or pyarrow, a structured array, or (by pyarrow) an object with Arrow's or the dataframe protocol.
        - The tail of each edge, if `heads` is given.
    heads, weights : array, list, or column of a table, optional
        The head and the weight of each edge.
    source, target : column name, optional
        The columns of a table with the ends of each edge; by default the columns with a common name, such as from and to.
    weight : column name or number, optional
        The column of a table with the weights, or a number that every edge counts. By default the column called weight, or the only column
        with another usual name, such as length_m, cost or km.
    directed : bool, optional
        Edges lead one way only. By default True, or what Gephi's column Type says: a row marked Undirected is an edge both ways.
    nodes : iterable, optional
        All vertices, in the order of the rows. By default integers are sorted, and other labels by first appearance.

    Returns
    -------
    EdgeList
        Accepted as a graph everywhere; ``.labels`` names the rows, and ``.columns`` has the other columns of a table.

    Raises
    ------
    GraphError
        For anything but a list of edges, an item that is no edge, an unhashable label, or a vertex outside `nodes`. For a table also an
        unknown or ambiguous column, edges of both kinds, and a row without an end or the weight.
    DTypeError
        For a weight that is no number, such as a text (see `read_edges`).

    Warns
    -----
    AssumptionWarning
        If edges of a table count 1 beside columns of numbers.

    Notes
    -----
    Parallel edges combine with the semiring's ⊕ (for distances the shortest counts). Labels become Python's numbers and texts, and whole
    floats become integers. O(m) for m edges, and O(m log m) for integer labels that are far apart.
    """
    if not isinstance(directed, bool | np.bool_ | None):
        raise GraphError(f"directed is {described(directed)}, not True or False; {WHAT_EDGES_TAKES}")
    if nodes is not None and not isinstance(nodes, Iterable):
        raise GraphError(f"nodes is {described(nodes)}, not a list of all vertices; {WHAT_EDGES_TAKES}")
    columns = edge_columns(edge_list, heads, weights, source, target, weight)
    if columns is not None:
        if directed is None:
            found = direction_of(columns.others, lambda e: f"row {e}")
            columns, directed = (columns.both_ways(found), True) if isinstance(found, list) else (columns, found)
        return _of_columns(columns, nodes, directed is None or bool(directed))
    ends: list[Hashable] = []
    listed: list[Any] = []
    for position, item in enumerate(_items(edge_list)):
        parts: tuple[Any, ...] = () if isinstance(item, _NO_EDGE) or not isinstance(item, Iterable) else tuple(item)
        if len(parts) not in (2, 3):
            raise GraphError(f"edge {position} is {item!r}; an edge is a pair (u, v) or a triple (u, v, weight)")
        ends += parts[:2]
        listed.append(parts[2] if len(parts) == 3 else None)
    require_weights(listed, lambda e: f"edge {e} from {ends[2 * e]!r} to {ends[2 * e + 1]!r}")
    return EdgeList(*_arranged(*_numbered(ends), nodes), listed, directed is None or bool(directed))


def _of_columns(columns: EdgeColumns, nodes: Iterable[Hashable] | None, directed: bool) -> EdgeList:
    tails, heads, weights, others = columns
    tails, heads = _whole(tails, heads)
    require_weights(weights, lambda e: f"edge {e} from {tails[e : e + 1].tolist()[0]!r} to {heads[e : e + 1].tolist()[0]!r}")
    if tails.dtype.kind in "iu" and heads.dtype.kind in "iu" and np.result_type(tails, heads).kind in "iu":
        numbered = _numbered_integers(tails, heads)
    else:
        ends: list[Any] = [None] * (2 * len(tails))
        ends[::2], ends[1::2] = tails.tolist(), heads.tolist()
        numbered = _numbered(ends)
    found = EdgeList(*_arranged(*numbered, nodes), weights, directed, columns=others or {})
    for owner in _owners(found):
        owner.flags.writeable = False
    return found


def is_constant(graph: EdgeList) -> bool:
    """Return True if nobody can change the arrays of a graph, so that one reading is enough."""
    return isinstance(graph.weights, np.ndarray) and not any(v.flags.writeable for v in _owners(graph))


def _owners(graph: EdgeList) -> Iterator[Any]:
    """Iterate over the arrays of a list of edges, and their base arrays."""
    for array in (graph.sources, graph.targets, graph.weights):
        owner: Any = array
        while isinstance(owner, np.ndarray):
            yield owner
            owner = owner.base


def _whole(*columns: Array) -> list[Array]:
    """Return the ends of edges as integers if all are whole; weights or missing values may have made them floats."""

    def small(column: Array) -> bool:
        """Return True if floats are integers, so small that none was rounded."""
        wide = column.astype(np.float64)
        return bool(((np.abs(wide) <= EXACT_IN_FLOAT64) & (np.trunc(wide) == wide)).all())

    whole = all(c.dtype.kind in "iu" or (c.dtype.kind == "f" and small(c)) for c in columns)
    return [c.astype(np.int64) if whole and c.dtype.kind == "f" else c for c in columns]


def _numbered_integers(tails: Array, heads: Array) -> tuple[tuple[Hashable, ...], Array, Array]:
    both = np.concatenate([tails, heads])
    least, greatest = (int(both.min()), int(both.max())) if len(both) else (0, 0)
    if greatest - least > 4 * len(both):
        labels, rows = np.unique(both, return_inverse=True)
        return tuple(labels.tolist()), rows[: len(tails)], rows[len(tails) :]
    # Integers close together need no sorting.
    wide = both.dtype if both.dtype == np.uint64 else np.dtype(np.int64)
    offsets = (both.astype(wide) - wide.type(least)).astype(np.intp)
    there = np.zeros(greatest - least + 1, dtype=bool)
    there[offsets] = True
    rows = (np.cumsum(there) - 1)[offsets]
    return tuple((np.flatnonzero(there).astype(wide) + wide.type(least)).tolist()), rows[: len(tails)], rows[len(tails) :]


def _numbered(ends: list[Hashable]) -> tuple[tuple[Hashable, ...], Array, Array]:
    """Return the vertices of edges, listed end by end, and the rows of both ends: integers sorted, others by first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__  # each new label gets the next number
    try:
        rows = np.fromiter(map(numbers.__getitem__, ends), dtype=np.intp, count=len(ends))
    except TypeError as error:
        raise GraphError(f"vertices need hashable labels: {error}") from None
    labels = tuple(numbers)
    if arrays := [v for v in {type(v): v for v in labels}.values() if lends_memory(v)]:
        raise GraphError(
            f"the vertex {arrays[0]!r} is an array, which equals no other; name vertices by numbers or texts, as .tolist() gives"
        )
    sources, targets = rows[::2], rows[1::2]
    if all(isinstance(v, int | np.integer) for v in labels):
        return _arranged(labels, sources, targets, sorted(labels))  # type: ignore[type-var]  # integers, as just tested
    return labels, sources.copy(), targets.copy()


def _arranged(
    labels: tuple[Hashable, ...], sources: Array, targets: Array, nodes: Iterable[Hashable] | None
) -> tuple[tuple[Hashable, ...], Array, Array]:
    """Reorder vertices and rows of ends by `nodes`, which may add vertices without edges."""
    if nodes is None:
        return labels, sources, targets
    if isinstance(nodes, range):  # takes no memory yet
        advice = "leave out vertices without edges"
        require_bytes(_VERTEX_BYTES * len(nodes), f"the graph has {len(nodes):,} vertices, and their names take", advice)
    wanted = tuple(nodes)
    try:
        row = {label: i for i, label in enumerate(wanted)}
    except TypeError as error:
        raise GraphError(f"vertices need hashable labels: {error}") from None
    if len(row) < len(wanted):
        raise GraphError("nodes names a vertex twice")
    try:
        rows = np.array([row[label] for label in labels], dtype=np.intp)
    except KeyError as error:
        vertex = labels.index(error.args[0])
        position = int(np.argmax((sources == vertex) | (targets == vertex)))
        pair = labels[sources[position]], labels[targets[position]]
        raise GraphError(f"edge {position}, {pair!r}, has a vertex that is not in nodes: {labels[vertex]!r}") from None
    return wanted, rows[sources], rows[targets]


def _items(edge_list: Any) -> Iterable[Any]:
    if lends_memory(edge_list):
        rows: list[Any] = host(borrowed(edge_list).array).tolist()
        return rows
    refuse_name(edge_list, "a list of edges")
    if is_sparse(edge_list) or graph_library(edge_list) or isinstance(edge_list, EdgeList):
        raise GraphError(f"a graph of type {name_of(edge_list)} is no list of edges; pass it as it is")
    if isinstance(edge_list, Mapping) and not isinstance(edge_list, Set):  # a view of NetworkX's edges is both
        raise GraphError(f"{a_name_of(edge_list)} is no list of edges; pass ((u, v, weight) for (u, v), weight in graph.items())")
    if not isinstance(edge_list, Iterable):
        raise GraphError(f"{a_name_of(edge_list)} is no list of edges; {WHAT_EDGES_TAKES}")
    return edge_list


def refuse_name(value: Any, wanted: str) -> None:
    """Refuse the name of a file, and say how to read such a file. Raises GraphError."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        readers = {".npy": "numpy.load", ".npz": "scipy.sparse.load_npz", ".zarr": "zarr.open"}
        reader = readers.get(os.path.splitext(path)[1], "sr.read_edges")
        raise GraphError(f"{wanted} is expected, and not the name of a file; {reader}({path!r}) reads one")
