"""A NetworkX graph by reference, its edges with weights as NetworkX reads them, and all distances, as planned."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, in_order, scatter
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_memory
from semiring.common.errors import NegativeCycleError, SemiringError
from semiring.execution.question import GivenGraph, Question
from semiring.execution.strategy import rows_in_turn, solve_edges
from semiring.graphs.coo import COO
from semiring.kernels.overflow.statistics import value_statistics
from semiring.planning import Plan, plan
from semiring.planning.options import Options

__all__ = [
    "DistanceRows",
    "Distances",
    "SemiringGraph",
    "algorithm",
    "by_rows",
    "compressed",
    "distances",
    "hops",
    "original",
    "sparse",
    "truth",
    "weighted",
]  # fmt: skip


class SemiringGraph:
    """A NetworkX graph, marked as one for this backend.

    Edges are read when an algorithm runs. Changed attributes therefore count, even if NetworkX caches the conversion, and callable weights
    see the current attributes.

    Attributes
    ----------
    original : networkx.Graph
    """

    __networkx_backend__ = "semiring"

    def __init__(self, graph: Any) -> None:
        self.original = graph

    def __len__(self) -> int:
        return len(self.original)

    def is_directed(self) -> bool:
        """Return True if edges have a direction; NetworkX asks before dispatching."""
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        """Return True if edges may be parallel; NetworkX asks before dispatching."""
        return bool(self.original.is_multigraph())


def original(graph: Any) -> Any:
    """The NetworkX graph behind whatever NetworkX passes."""
    return graph.original if isinstance(graph, SemiringGraph) else graph


# The edges of a graph as a matrix.

_INTEGERS = (np.int16, np.int32, np.int64)

_where = str
"""Names no edge: messages of this backend do not name edges."""


def hops(graph: Any) -> COO:
    """Every edge of a graph, with weight 1."""
    n, tails, heads = _coordinates(graph)
    return COO(tails, heads, (np.ones(len(tails), dtype=np.int64),), n, _where)


def weighted(graph: Any, weight: Any, *, may_hide: bool) -> COO:
    """Read the edges with weights: an attribute (1 if missing), or a function of both ends and the attributes.

    An undirected edge is listed in both directions, and only the shortest of parallel edges; weights are int64 or float64.

    Parameters
    ----------
    graph : networkx.Graph
    weight : hashable or callable
        The argument of NetworkX.
    may_hide : bool
        True if weight None hides an edge, as in Dijkstra's algorithm.

    Raises
    ------
    NotImplementedError
        For weights that are left to NetworkX: infinite ones, numbers beyond int64 and float64, and other kinds of numbers.
    """
    n, tails, heads = _coordinates(graph)
    try:
        weights = _weights(graph, weight)
    except TypeError as error:  # as where one of two parallel edges has the weight None
        raise NotImplementedError(f"weights are no numbers: {error}") from error
    kinds = set(map(type, weights))
    if type(None) in kinds:
        if not may_hide:
            raise NotImplementedError("an edge has the weight None")
        there = np.array([w is not None for w in weights], dtype=bool)
        tails, heads, weights = tails[there], heads[there], [w for w in weights if w is not None]
        kinds.discard(type(None))
    return COO(tails, heads, (_numbers(weights, kinds),), n, _where)


def sparse(graph: Any, weight: Any, method: str | None = None) -> CSR:
    """The edges as one of NetworkX's methods understands them, see `distances`, in compressed rows.

    Weights are the narrowest integers in which no distance can overflow, or float64.

    Raises
    ------
    NotImplementedError
        As for `distances`, and where distances might exceed int64 or float64.
    """
    method = method or ("unweighted" if weight is None else "dijkstra")
    edges = hops(graph) if method == "unweighted" else weighted(graph, weight, may_hide=method == "dijkstra")
    (w,) = edges.weights
    if method == "dijkstra" and (w < 0).any():
        raise NotImplementedError("a weight is negative, where Dijkstra's algorithm gives no distances")
    return compressed(edges.tails, edges.heads, w.astype(_dtype(w, edges.n)), edges.n)


def compressed(tails: Array, heads: Array, w: Array, n: int) -> CSR:
    """Compress edges between n nodes by rows, without parallel and infinite edges."""
    tails, heads, weights = in_order(n, tails, heads, (w,), lambda *once: once)
    return CSR.of(tails, heads, weights, n, (_infinity(w.dtype),), value_statistics(weights))


def _dtype(w: Array, n: int) -> Any:
    """The dtype that holds the distances between n nodes, whose edges have weights w."""
    if w.dtype.kind == "f":
        if not math.isfinite(n * float(np.abs(w).max(initial=0))):
            raise NotImplementedError("distances may exceed the largest float64")
        return np.float64
    low, high = int(w.min(initial=0)), int(w.max(initial=1))
    # Half of the range is for ∞, and a closure with negative weights wants three times the longest path.
    needed = 2 * (n + 1) * (max(high, -3 * low, 3 * high) if low < 0 else high)
    for dtype in _INTEGERS:
        if needed < np.iinfo(dtype).max:
            return dtype
    raise NotImplementedError("distances may exceed the largest int64")


def _infinity(dtype: Any) -> Any:
    """Return the distance without a path, in a dtype."""
    return np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max


def truth(graph: Any) -> tuple[list[Hashable], Array]:
    """Return the nodes of a graph and the Boolean matrix of its edges; raise `TooLargeError` if the matrix does not fit."""
    n, tails, heads = _coordinates(graph)
    require_memory(n, dtypes := (np.dtype(bool),))
    (matrix,) = scatter(n, tails, heads, (np.ones(len(tails), dtype=bool),), (False,), dtypes)
    return list(graph), matrix


def _coordinates(graph: Any) -> tuple[int, Array, Array]:
    """Return the number of nodes, and the numbers of both ends of each edge; undirected edges in both directions."""
    number = {node: i for i, node in enumerate(graph)}
    # Iteration counts the neighbours: len() of a view of a multigraph counts neighbours whose edges are all hidden.
    found = [[number[v] for v in neighbours] for _, neighbours in graph.adjacency()]
    heads = np.array(list(chain.from_iterable(found)), dtype=np.intp)
    return len(number), np.arange(len(number)).repeat(list(map(len, found))), heads


def _weights(graph: Any, weight: Any) -> list[Any]:
    """Return the weights of edges in the order of `_coordinates`; the least of parallel edges."""
    if callable(weight):
        return [weight(u, v, data) for u, neighbours in graph.adjacency() for v, data in neighbours.items()]
    if graph.is_multigraph():
        return [min(data.get(weight, 1) for data in parallel.values()) for _, nbrs in graph.adjacency() for parallel in nbrs.values()]
    return [data.get(weight, 1) for _, neighbours in graph.adjacency() for data in neighbours.values()]


def _numbers(weights: list[Any], kinds: set[type]) -> Array:
    """Weights of these types as int64 or float64; what fits neither is left to NetworkX."""
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


# All distances, and the forms in which NetworkX hands them out.

R = TypeVar("R")


def algorithm(function: Callable[..., R]) -> Callable[..., R]:
    """A function of this backend: it gets NetworkX's own graph, and what this library refuses is left to the next backend."""

    @functools.wraps(function)
    def run(G: Any, *args: Any, **kwargs: Any) -> R:
        try:
            return function(original(G), *args, **kwargs)
        except NegativeCycleError as error:
            raise NotImplementedError(f"there is a negative cycle, where NetworkX says what {function.__name__} means") from error
        except SemiringError as error:
            raise NotImplementedError(str(error)) from error

    return run


class DistanceRows:
    """The distances from some nodes to all, or from all nodes of several graphs.

    Attributes
    ----------
    matrix : array of shape (…, n)
        Integers where all weights are integers.
    reached : bool array of shape (…, n)
        Where there is a path.
    first : int
        The number of the first of these nodes, which are consecutive.
    """

    def __init__(self, matrix: Array, first: int = 0) -> None:
        self.matrix, self.first = matrix, first
        self.reached = np.asarray(matrix != _infinity(matrix.dtype))

    @property
    def numbers(self) -> slice:
        """The numbers of these nodes among all."""
        return slice(self.first, self.first + len(self.matrix))

    def finite(self, times: int) -> Array:
        """Return the distances, 0 without a path; integers are wide enough for exact sums of `times` distances."""
        finite = np.where(self.reached, self.matrix, self.matrix.dtype.type(0))
        if finite.dtype.kind == "f":
            return finite
        largest = max(int(finite.max(initial=0)), -int(finite.min(initial=0)))
        return finite.astype(np.int64 if largest * times <= np.iinfo(np.int64).max else object)

    def totals(self) -> list[Any]:
        """The sum of the distances from each node to all that it reaches, in Python's numbers."""
        return list(self.finite(self.matrix.shape[-1]).sum(axis=-1).tolist())

    def inverses(self) -> Array:
        """1/d for every distance d, 0 where there is no path and where it is 0."""
        there = self.reached & (self.matrix != 0)
        return np.divide(1.0, self.matrix, out=np.zeros(self.matrix.shape), where=there)


class Distances(DistanceRows):
    """The distances from all nodes, or from some consecutive ones, by their names, and the paths if wanted.

    Attributes
    ----------
    nodes : list
    predecessors : int array of the shape of `matrix`, or None
        The node before j on a shortest path from i, negative where there is none.
    """

    def __init__(self, nodes: list[Hashable], matrix: Array, predecessors: Array | None, first: int = 0) -> None:
        super().__init__(matrix, first)
        self.nodes, self.predecessors = nodes, predecessors
        self._labels = np.empty(len(nodes), dtype=object)
        for i, node in enumerate(nodes):  # one by one: NumPy would take tuples apart
            self._labels[i] = node

    def within(self, cutoff: float | None) -> Distances:
        """The same without what is farther than `cutoff`; every node stays near itself."""
        if cutoff is not None:
            np.logical_and(self.reached, self.matrix <= cutoff, out=self.reached)
            own = np.arange(len(self.matrix))
            self.reached[own, self.first + own] = True
        return self

    def lengths(self, i: int) -> dict[Hashable, Any]:
        """The distance from node i to every node that it reaches, in Python's numbers, the nearest first."""
        targets = self._targets(i)
        return dict(zip(self._labels[targets].tolist(), self.matrix[i - self.first, targets].tolist(), strict=True))

    def paths(self, i: int) -> dict[Hashable, list[Any]]:
        """A shortest path from node i to every node that it reaches, the nearest first."""
        assert self.predecessors is not None
        before, nodes = self.predecessors[i - self.first].tolist(), self.nodes
        found: list[Any] = [None] * len(nodes)
        found[i] = [nodes[i]]
        targets = self._targets(i)
        order = targets.tolist()
        for target in order[1:]:
            path = found[before[target]]
            if path is None:  # edges of weight 0 or less can put a node before its predecessor
                _climb(found, before, nodes, target)
            else:
                found[target] = [*path, nodes[target]]
        return dict(zip(self._labels[targets].tolist(), map(found.__getitem__, order), strict=True))

    def _targets(self, i: int) -> Array:
        """The nodes that node i reaches, itself first, then in the order of their distance."""
        lengths, near = self.matrix[i - self.first], np.flatnonzero(self.reached[i - self.first])
        targets = near[lengths[near].argsort(kind="stable")]
        if targets[0] != i:  # others are at distance 0, or less
            targets = np.concatenate([[i], targets[targets != i]])
        return np.asarray(targets)


def _climb(found: list[Any], before: list[int], nodes: list[Hashable], target: int) -> None:
    """Find the path to a node, and the paths to all nodes on the way."""
    ahead = [target]
    while (path := found[before[ahead[-1]]]) is None:
        ahead.append(before[ahead[-1]])
    for at in reversed(ahead):
        path = found[at] = [*path, nodes[at]]


def distances(graph: Any, weight: Any, method: str | None = None, *, paths: bool = False) -> Distances:
    """Return all distances, as defined by a method of NetworkX.

    Parameters
    ----------
    graph : networkx.Graph
    weight : hashable or callable
    method : {"unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy"}, optional
        By default unweighted if `weight` is None, and else Dijkstra's, which hides edges of weight None and refuses negative weights. The
        last three methods are the same here.
    paths : bool

    Raises
    ------
    NotImplementedError
        For calls that are left to NetworkX: negative weights in Dijkstra's algorithm, hidden edges in the others, and weights that
        `weighted` refuses.
    NegativeCycleError
    """
    edges = sparse(graph, weight, method)
    found = solve_edges(edges, None, Question(MIN_PLUS, Options(paths=paths)))
    return Distances(list(graph), found.distances, found.predecessors()) if paths else Distances(list(graph), found, None)


def by_rows(edges: CSR, how: Plan | None = None) -> Iterator[DistanceRows]:
    """Yield all distances along edges, some rows at a time, by a plan or by a new one."""
    question, given = Question(MIN_PLUS, wanted="rows"), GivenGraph(edges)
    how = plan(question.problem(given)) if how is None else how
    for first, matrix in rows_in_turn(how, given, question):
        yield DistanceRows(matrix, first)
