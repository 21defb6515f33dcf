"""The edges of a NetworkX graph as a matrix, with the meaning that NetworkX gives to weights."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from semiring.algebra.conversion import Array
from semiring.graphs import require_memory

__all__ = ["Edges", "dense", "hops", "infinity", "truth", "weighted"]

_INTEGERS = (np.int16, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges as coordinates; an undirected edge is there in both directions, and of parallel ones there is the shortest.

    Attributes
    ----------
    nodes : list
        In the order of the graph, which is that of rows and columns.
    rows, columns : int arrays
        Where an edge begins and ends, as indices of `nodes`.
    weights : int64 or float64 array
    """

    nodes: list[Hashable]
    rows: Array
    columns: Array
    weights: Array


def hops(graph: Any) -> Edges:
    """Every edge of a graph, with weight 1."""
    nodes, rows, columns = _coordinates(graph)
    return Edges(nodes, rows, columns, np.ones(len(rows), dtype=np.int64))


def weighted(graph: Any, weight: Any, *, may_hide: bool) -> Edges:
    """The edges with their weights: an attribute, 1 where it is missing, or what a function of both ends and the attributes says.

    Parameters
    ----------
    graph : networkx.Graph
    weight : hashable or callable
        As NetworkX takes it.
    may_hide : bool
        Whether an edge of weight None is hidden, as Dijkstra's algorithm understands it.

    Raises
    ------
    NotImplementedError
        For weights that are left to NetworkX: infinite ones, those that no int64 or float64 holds, and other kinds of numbers.
    """
    nodes, rows, columns = _coordinates(graph)
    try:
        weights = _weights(graph, weight)
    except TypeError as error:  # as where one of two parallel edges has the weight None
        raise NotImplementedError(f"weights are no numbers: {error}") from error
    kinds = set(map(type, weights))
    if type(None) in kinds:
        if not may_hide:
            raise NotImplementedError("an edge has the weight None")
        there = np.array([w is not None for w in weights], dtype=bool)
        rows, columns, weights = rows[there], columns[there], [w for w in weights if w is not None]
        kinds.discard(type(None))
    return Edges(nodes, rows, columns, _numbers(weights, kinds))


def infinity(dtype: Any) -> Any:
    """What stands for "no path" in a matrix of this dtype."""
    return np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max


def dense(edges: Edges, *, paths: bool = False) -> Array:
    """The matrix of edges, ∞ where there is none: the narrowest integers in which no distance can overflow, or float64.

    Raises
    ------
    NotImplementedError
        Where distances might exceed int64 or float64.
    TooLargeError
        Where the matrix, and for `paths` a second one, does not fit into memory.
    """
    n, w = len(edges.nodes), edges.weights
    dtype: Any = np.float64
    if w.dtype.kind == "f":
        if not math.isfinite(n * float(np.abs(w).max(initial=0))):
            raise NotImplementedError("distances may exceed the largest float64")
    else:
        low, high = int(w.min(initial=0)), int(w.max(initial=1))
        # Half of the range is for ∞, and a closure with negative weights wants three times the longest path.
        needed = 2 * (n + 1) * (max(high, -3 * low, 3 * high) if low < 0 else high)
        dtype = next((d for d in _INTEGERS if needed < np.iinfo(d).max), None)
        if dtype is None:
            raise NotImplementedError("distances may exceed the largest int64")
    require_memory(n, (np.dtype(dtype),), via=paths)
    matrix = np.full((n, n), infinity(dtype), dtype=dtype)
    matrix[edges.rows, edges.columns] = w
    return matrix


def truth(graph: Any) -> tuple[list[Hashable], Array]:
    """The nodes of a graph, and the matrix that says between which of them there is an edge.

    Raises
    ------
    TooLargeError
        Where it does not fit into memory.
    """
    nodes, rows, columns = _coordinates(graph)
    require_memory(len(nodes), (np.dtype(bool),))
    matrix = np.zeros((len(nodes), len(nodes)), dtype=bool)
    matrix[rows, columns] = True
    return nodes, matrix


def _coordinates(graph: Any) -> tuple[list[Hashable], Array, Array]:
    nodes = list(graph)
    number = {node: i for i, node in enumerate(nodes)}
    # Neighbours are counted as they are met: a view of a multigraph that hides all edges between two nodes counts these in its len().
    found = [[number[v] for v in neighbours] for _, neighbours in graph.adjacency()]
    columns = np.array(list(chain.from_iterable(found)), dtype=np.intp)
    return nodes, np.repeat(np.arange(len(nodes)), list(map(len, found))), columns


def _weights(graph: Any, weight: Any) -> list[Any]:
    if callable(weight):
        return [weight(u, v, data) for u, neighbours in graph.adjacency() for v, data in neighbours.items()]
    if graph.is_multigraph():
        return [min(data.get(weight, 1) for data in parallel.values()) for _, nbrs in graph.adjacency() for parallel in nbrs.values()]
    return [data.get(weight, 1) for _, neighbours in graph.adjacency() for data in neighbours.values()]


def _numbers(weights: list[Any], kinds: set[type]) -> Array:
    if all(issubclass(kind, int | np.integer | np.bool_) for kind in kinds):
        try:
            return np.array(weights, dtype=np.int64)
        except OverflowError:
            raise NotImplementedError("a weight exceeds the largest int64") from None
    known = int | np.integer | np.bool_ | float | np.float32 | np.float16
    if others := sorted(kind.__name__ for kind in kinds if not issubclass(kind, known)):
        raise NotImplementedError(f"weights are {', '.join(others)}, not integers or floats")
    try:
        numbers = np.array(weights, dtype=np.float64)
    except OverflowError:
        raise NotImplementedError("a weight exceeds the largest float64") from None
    if not np.isfinite(numbers).all():
        raise NotImplementedError("a weight is infinite or not a number")
    return numbers
