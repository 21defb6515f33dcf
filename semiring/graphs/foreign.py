"""Graphs of other libraries as `EdgeList`s, through their own accessors: NetworkX, igraph, rustworkx, networkit, PyTorch Geometric.

Vertices keep their names, and ``weights`` is the library's own weight. Other attributes are ``columns``, read on request. No library is
imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.csr import in_range
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, graph_library, lends_memory, name_of
from semiring.common.errors import GraphError
from semiring.graphs.edge_list import HIDDEN, EdgeList

__all__ = ["attribute_of_vertices", "listed_edges"]


def listed_edges(graph: Any) -> EdgeList | None:
    """Return an `EdgeList`, or the edges of a graph of another library; None for other values. GraphError refuses a graph without edges."""
    if isinstance(graph, EdgeList):
        if graph.turns is not None:
            raise GraphError("turn costs are for apsp, closure, transitive_closure and nearest; pass the edges without them")
        return graph
    library = graph_library(graph)
    return None if library is None else _READERS[library](graph)


def attribute_of_vertices(graph: Any, name: str) -> list[Any] | None:
    """Return an attribute of the vertices in their order, with None for a vertex without; None if no vertex has the attribute."""
    library = graph_library(graph)
    if library == "networkx":
        found = [value for _, value in graph.nodes(data=name)]
    elif library == "igraph":
        found = graph.vs[name] if name in graph.vs.attributes() else []
    else:
        found = [_of_payload(payload, name) for payload in graph.nodes()] if library == "rustworkx" else []
    return found if any(value is not None for value in found) else None


class _Columns(Mapping[str, Sequence[Any]]):
    """Attributes of edges by name: the values of all edges, with None for an edge without the attribute."""

    def __init__(self, names: Callable[[], Iterable[str]], values: Callable[[str], Sequence[Any] | None]) -> None:
        self._names, self._values = names, values

    def __getitem__(self, name: str) -> Sequence[Any]:
        values = self._values(name)
        if values is None:
            raise KeyError(name)
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _of_networkx(graph: Any) -> EdgeList:
    labels = tuple(graph.nodes)
    triples = list(graph.edges(data="weight", default=_ABSENT))
    rows = {label: row for row, label in enumerate(labels)}
    tails, heads = (np.fromiter((rows[edge[end]] for edge in triples), np.intp, len(triples)) for end in (0, 1))

    def names() -> Iterable[str]:
        return dict.fromkeys(name for *_, data in graph.edges(data=True) for name in data)

    def values(name: str) -> list[Any]:
        return _read(value for *_, value in graph.edges(data=name, default=_ABSENT))

    return EdgeList(labels, tails, heads, _read(w for *_, w in triples), graph.is_directed(), columns=_Columns(names, values))


_ABSENT = object()  # value of an attribute that an edge does not have


def _read(values: Iterable[Any]) -> list[Any]:
    """Convert attributes of NetworkX, where None hides an edge, with None for an absent one."""
    return [None if value is _ABSENT else HIDDEN if value is None else value for value in values]


def _of_igraph(graph: Any) -> EdgeList:
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    tails, heads = np.array(graph.get_edgelist(), dtype=np.intp).reshape(-1, 2).T

    def values(name: str) -> Sequence[Any] | None:
        return graph.es[name] if name in graph.es.attributes() else None

    weights = values("weight") or [None] * len(tails)
    columns = _Columns(graph.es.attributes, values)
    return EdgeList(_names_or(range(graph.vcount()), names), tails, heads, list(weights), graph.is_directed(), columns=columns)


def _of_rustworkx(graph: Any) -> EdgeList:
    """Read payloads: vertices are named by them, and edges have weights or attributes in them."""
    indices = list(graph.node_indices())
    triples = list(graph.weighted_edge_list())
    tails, heads = _positions(triples, indices)
    payloads = [payload for _, _, payload in triples]

    def values(name: str) -> list[Any]:
        return [_of_payload(payload, name) for payload in payloads]

    columns = _Columns(lambda: dict.fromkeys(name for payload in payloads for name in _names_in(payload)), values)
    directed = hasattr(graph, "to_undirected")
    return EdgeList(_names_or(indices, graph.nodes()), tails, heads, values("weight"), directed, columns=columns)


def _of_payload(payload: Any, name: str) -> Any:
    """Return an attribute of an edge from its payload: a mapping, an object, or the weight itself."""
    if payload is None or isinstance(payload, Mapping):
        return None if payload is None else payload.get(name)
    if _is_weight(payload):
        return payload if name == "weight" else None
    return getattr(payload, name, None) if isinstance(name, str) else None


def _names_in(payload: Any) -> Iterable[str]:
    if payload is None or isinstance(payload, Mapping):
        return payload or ()
    if _is_weight(payload):
        return ("weight",)
    return next((getattr(payload, known) for known in ("_fields", "__dict__", "__slots__") if hasattr(payload, known)), ())


def _is_weight(payload: Any) -> bool:
    """Return True for a payload that is no container of attributes; non-numbers are refused when weights are read."""
    return (isinstance(payload, str | bytes | tuple | list) and not hasattr(payload, "_fields")) or hasattr(payload, "__float__")


def _of_networkit(graph: Any) -> EdgeList:
    """Read numbered vertices, with possible gaps. networkit does not list the names of attributes."""
    indices = list(graph.iterNodes())
    numbers: list[int] = []
    if graph.hasEdgeIds():
        quadruples = list[tuple[int, int, float, int]]()
        graph.forEdges(lambda *edge: quadruples.append(edge))
        numbers = [number for *_, number in quadruples]
        triples = [(u, v, weight) for u, v, weight, _ in quadruples]
    else:
        triples = list(graph.iterEdgesWeights())
    tails, heads = _positions(triples, indices)

    def values(name: str) -> list[Any] | None:
        for kind in (float, int, str) if numbers and isinstance(name, str) else ():
            try:
                found = dict(graph.getEdgeAttribute(name, kind))
            except RuntimeError:  # there is none, or none of this kind
                continue
            return [found.get(number) for number in numbers]
        return None

    weights = [weight for _, _, weight in triples] if graph.isWeighted() else [None] * len(triples)
    return EdgeList(tuple(indices), tails, heads, weights, graph.isDirected(), columns=_Columns(tuple, values))


def _of_pytorch_geometric(data: Any) -> EdgeList:
    """Read edges as listed, one for each direction; an attribute with several numbers becomes several columns."""
    if getattr(data, "edge_index", None) is None:
        raise GraphError(f"the {name_of(data)} has no edge_index; for heterogeneous data pass .to_homogeneous()")
    ends, n = host(borrowed(data.edge_index).array).astype(np.int64), int(data.num_nodes)
    if ends.shape[:1] != (2,) or ends.ndim != 2 or not in_range(ends.ravel(), n):
        raise GraphError(f"edge_index must have shape (2, m) and numbers from 0 to {n - 1}; it has shape {ends.shape}")
    tails, heads = ends

    def parts(name: str) -> dict[str, Array]:
        """Return an attribute by columns; nothing for an attribute of vertices."""
        tensor = getattr(data, name, None) if isinstance(name, str) else None
        if not lends_memory(tensor):
            return {}
        array = host(borrowed(tensor).array)
        if array.ndim not in (1, 2) or len(array) != len(tails):
            return {}
        if array.ndim == 1 or array.shape[1] == 1:
            return {name: array.reshape(-1)}
        return {f"{name}[:, {k}]": column for k, column in enumerate(array.T)}

    # Attributes named after an index hold numbers of vertices.
    columns = {name: part for known in sorted(data.edge_attrs()) if "index" not in known for name, part in parts(known).items()}

    def values(name: str) -> list[Any] | None:
        # With as many edges as vertices, PyTorch Geometric distinguishes their attributes by name.
        column = columns.get(name, parts(name).get(name))
        return None if column is None else column.tolist()

    weights = next((column for name in ("edge_weight", "edge_attr") if (column := values(name)) is not None), [None] * len(tails))
    return EdgeList(tuple(range(n)), tails, heads, weights, columns=_Columns(lambda: columns, values))


_READERS: dict[str, Callable[[Any], EdgeList]] = {
    "networkx": _of_networkx,
    "igraph": _of_igraph,
    "rustworkx": _of_rustworkx,
    "networkit": _of_networkit,
    "torch_geometric": _of_pytorch_geometric,
}
"""Readers for the libraries of `graph_library`."""


def _names_or(indices: Sequence[int], names: Sequence[Any] | None) -> tuple[Hashable, ...]:
    """Return the names of vertices, or their numbers if a name is missing, repeated or unhashable."""
    if names is not None and all(name is not None for name in names):
        try:
            if len(set(names)) == len(indices):
                return tuple(names)
        except TypeError:  # not hashable
            pass
    return tuple(indices)


def _positions(triples: list[tuple[int, int, Any]], indices: Sequence[int]) -> Array:
    """Return the positions of the tails and of the heads of edges among ascending numbers of vertices."""
    ends = np.array([(u, v) for u, v, _ in triples], dtype=np.intp).reshape(-1, 2).T
    return np.searchsorted(np.array(indices, dtype=np.intp), ends)
