"""NetworkX graphs by reference, their edges with NetworkX's meaning of weights, and all distances, as planned."""

from __future__ import annotations

import collections
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
from semiring.execution.strategy import rows_in_turn, solve
from semiring.graphs.coo import COO
from semiring.kernels.overflow.statistics import value_statistics
from semiring.planning import Plan, plan
from semiring.planning.options import Options

__all__ = [
    "DistanceRows", "Distances", "SemiringGraph", "algorithm", "by_rows", "compressed", "distances", "extend", "original", "searched_edges",
    "sparse", "total_distance", "truth",
]  # fmt: skip


class SemiringGraph:
    """A reference to a NetworkX graph, marked for this backend.

    Edges are read when an algorithm runs, so changed attributes count even if NetworkX caches the conversion, and callable weights get the
    attributes of an edge unchanged.
    """

    __networkx_backend__ = "semiring"

    def __init__(self, graph: Any) -> None:
        self.original = graph

    def __len__(self) -> int:
        return len(self.original)

    def is_directed(self) -> bool:
        """Return True if edges have a direction; NetworkX asks before dispatch."""
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        """Return True if edges may be parallel; NetworkX asks before dispatch."""
        return bool(self.original.is_multigraph())


def original(graph: Any) -> Any:
    """Return the NetworkX graph of an argument that NetworkX passes."""
    return graph.original if isinstance(graph, SemiringGraph) else graph


# The edges of a graph as a matrix.

_INTEGERS = (np.int16, np.int32, np.int64)


def _hops(graph: Any) -> COO:
    n, tails, heads = _coordinates(graph)
    return COO(tails, heads, (np.ones(len(tails), dtype=np.int64),), n, str)  # no message here names an edge


def _weighted(graph: Any, weight: Any, *, may_hide: bool) -> COO:
    """Read edges with int64 or float64 weights: an attribute (default 1), or the result of a function of both ends and the attributes.

    An undirected edge counts in both directions, and only the shortest of parallel edges. With `may_hide`, an edge of weight None is
    hidden, as in Dijkstra's algorithm. Infinite weights, weights beyond int64 or float64 and other kinds of numbers are left to NetworkX.
    """
    n, tails, heads = _coordinates(graph)
    try:
        weights = _weights(graph, weight)
    except TypeError as error:  # for example if one of two parallel edges has the weight None
        raise NotImplementedError(f"weights are not numbers: {error}") from error
    kinds = set(map(type, weights))
    if type(None) in kinds:
        if not may_hide:
            raise NotImplementedError("an edge has the weight None")
        there = np.array([w is not None for w in weights], dtype=bool)
        tails, heads, weights = tails[there], heads[there], [w for w in weights if w is not None]
        kinds.discard(type(None))
    return COO(tails, heads, (_numbers(weights, kinds),), n, str)


def searched_edges(graph: Any, weight: Any) -> COO:
    """Read edges for searches by hops (weight None) or by Dijkstra's algorithm; negative weights are left to NetworkX."""
    edges = _hops(graph) if weight is None else _weighted(graph, weight, may_hide=False)
    _require_nonnegative(edges)
    return edges


def _require_nonnegative(edges: COO) -> None:
    if (edges.weights[0] < 0).any():
        raise NotImplementedError("a weight is negative, so Dijkstra's algorithm does not apply")


def sparse(graph: Any, weight: Any, method: str | None = None) -> CSR:
    """Read edges in compressed rows, as one of NetworkX's methods (see `distances`) understands them.

    Weights are the narrowest integers in which no distance can overflow, or float64. Larger distances are left to NetworkX.
    """
    method = method or ("unweighted" if weight is None else "dijkstra")
    edges = _hops(graph) if method == "unweighted" else _weighted(graph, weight, may_hide=method == "dijkstra")
    if method == "dijkstra":
        _require_nonnegative(edges)
    (w,) = edges.weights
    return compressed(edges.tails, edges.heads, w.astype(_dtype(w, edges.n)), edges.n)


def compressed(tails: Array, heads: Array, w: Array, n: int) -> CSR:
    """Build compressed rows from finite edges between n nodes, none parallel."""
    tails, heads, weights = in_order(n, tails, heads, (w,), lambda *once: once)
    return CSR.of(tails, heads, weights, n, (_infinity(w.dtype),), value_statistics(weights))


def _dtype(w: Array, n: int) -> Any:
    """Return the narrowest dtype for the distances between n nodes with edge weights w."""
    if w.dtype.kind == "f":
        if not math.isfinite(n * float(np.abs(w).max(initial=0))):
            raise NotImplementedError("distances may exceed the largest float64")
        return np.float64
    low, high = int(w.min(initial=0)), int(w.max(initial=1))
    # Half of the range is for ∞, and a closure with negative weights needs room for three times the longest path.
    needed = 2 * (n + 1) * (max(high, -3 * low, 3 * high) if low < 0 else high)
    for dtype in _INTEGERS:
        if needed < np.iinfo(dtype).max:
            return dtype
    raise NotImplementedError("distances may exceed the largest int64")


def _infinity(dtype: Any) -> Any:
    """Return the distance without a path in this dtype."""
    return np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max


def truth(graph: Any) -> tuple[list[Hashable], Array]:
    """Return the nodes and the bool adjacency matrix; raise TooLargeError if the matrix does not fit into memory."""
    n, tails, heads = _coordinates(graph)
    require_memory(n, dtypes := (np.dtype(bool),))
    (matrix,) = scatter(n, tails, heads, (np.ones(len(tails), dtype=bool),), (False,), dtypes)
    return list(graph), matrix


def _coordinates(graph: Any) -> tuple[int, Array, Array]:
    """Return the number of nodes, and the tail and head of each edge, in both directions if undirected."""
    number = {node: i for i, node in enumerate(graph)}
    # len() of the neighbours can be wrong: a view of a multigraph still counts a neighbour to which every edge is hidden.
    found = [[number[v] for v in neighbours] for _, neighbours in graph.adjacency()]
    heads = np.array(list(chain.from_iterable(found)), dtype=np.intp)
    return len(number), np.arange(len(number)).repeat(list(map(len, found))), heads


def _weights(graph: Any, weight: Any) -> list[Any]:
    """List the weights in the order of `_coordinates`, the least of parallel edges."""
    if callable(weight):
        return [weight(u, v, data) for u, neighbours in graph.adjacency() for v, data in neighbours.items()]
    if graph.is_multigraph():
        return [min(data.get(weight, 1) for data in parallel.values()) for _, nbrs in graph.adjacency() for parallel in nbrs.values()]
    return [data.get(weight, 1) for _, neighbours in graph.adjacency() for data in neighbours.values()]


def _numbers(weights: list[Any], kinds: set[type]) -> Array:
    """Convert weights of these types to int64 or float64; other numbers are left to NetworkX."""
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


# All distances, in the forms that NetworkX returns.

R = TypeVar("R")


def algorithm(function: Callable[..., R]) -> Callable[..., R]:
    """Make a function of this backend: unwrap the graph, and turn errors of this library into calls of the next backend.

    NetworkX describes the function, to which the docstring refers.
    """

    @functools.wraps(function)
    def run(G: Any, *args: Any, **kwargs: Any) -> R:
        try:
            return function(original(G), *args, **kwargs)
        except NegativeCycleError as error:
            raise NotImplementedError(f"the graph has a negative cycle, so {function.__name__} is left to NetworkX") from error
        except SemiringError as error:
            raise NotImplementedError(str(error)) from error

    run.__doc__ = f"See `networkx.{function.__name__}`."
    return run


class DistanceRows:
    """Distances from consecutive nodes to all nodes, or between all nodes of several graphs, in a matrix of shape (…, n).

    The matrix has integers if all weights are integers; `first` is the number of the first node.
    """

    def __init__(self, matrix: Array, first: int = 0) -> None:
        self.matrix, self.first = matrix, first
        self.reached = np.asarray(matrix != _infinity(matrix.dtype))  # True for a path

    @property
    def numbers(self) -> slice:
        """The numbers of the nodes."""
        return slice(self.first, self.first + len(self.matrix))

    def finite(self, times: int) -> Array:
        """Return the distances, 0 without a path; the sum of `times` integers is exact."""
        finite = np.where(self.reached, self.matrix, self.matrix.dtype.type(0))
        if finite.dtype.kind == "f":
            return finite
        largest = max(int(finite.max(initial=0)), -int(finite.min(initial=0)))
        return finite.astype(np.int64 if largest * times <= np.iinfo(np.int64).max else object)

    def totals(self) -> list[Any]:
        """Sum the finite distances from each node, as Python numbers."""
        return list(self.finite(self.matrix.shape[-1]).sum(axis=-1).tolist())

    def inverses(self) -> Array:
        """Return 1/d for every distance d, 0 if d is 0 or infinite."""
        there = self.reached & (self.matrix != 0)
        return np.divide(1.0, self.matrix, out=np.zeros(self.matrix.shape), where=there)


class Distances(DistanceRows):
    """Distances by the names of nodes, and optionally paths: predecessors[i, j] is the node before j, negative for none."""

    def __init__(self, nodes: list[Hashable], matrix: Array, predecessors: Array | None, first: int = 0) -> None:
        super().__init__(matrix, first)
        self.nodes, self.predecessors = nodes, predecessors
        self._labels = np.fromiter(nodes, dtype=object, count=len(nodes))  # numpy.array would take tuples apart

    def within(self, cutoff: float | None) -> Distances:
        """Drop distances above the cutoff, in place; every node still reaches itself."""
        if cutoff is not None:
            np.logical_and(self.reached, self.matrix <= cutoff, out=self.reached)
            own = np.arange(len(self.matrix))
            self.reached[own, self.first + own] = True
        return self

    def lengths(self, i: int) -> dict[Hashable, Any]:
        """Map every node that node i reaches to its distance, a Python number, nearest first."""
        targets = self._targets(i)
        return dict(zip(self._labels[targets].tolist(), self.matrix[i - self.first, targets].tolist(), strict=True))

    def paths(self, i: int) -> dict[Hashable, list[Any]]:
        """Map every node that node i reaches to a shortest path, nearest first."""
        assert self.predecessors is not None
        before, nodes = self.predecessors[i - self.first].tolist(), self.nodes
        found: list[Any] = [None] * len(nodes)
        found[i] = [nodes[i]]
        targets = self._targets(i)
        order = targets.tolist()
        extend(found, before, nodes, order[1:])
        return dict(zip(self._labels[targets].tolist(), map(found.__getitem__, order), strict=True))

    def _targets(self, i: int) -> Array:
        """Return the nodes that node i reaches, i first, then by distance."""
        lengths, near = self.matrix[i - self.first], np.flatnonzero(self.reached[i - self.first])
        targets = near[lengths[near].argsort(kind="stable")]
        if targets[0] != i:  # another node is at distance 0 or less
            targets = np.concatenate([[i], targets[targets != i]])
        return np.asarray(targets)


class NearDistances(Distances):
    """Distances within a cutoff from consecutive nodes, and optionally paths, from rows of sparse matrices."""

    def __init__(self, nodes: list[Hashable], matrix: Any, predecessors: Any, first: int) -> None:
        self.nodes, self.matrix, self.first = nodes, matrix, first
        self._sparse, self._tree = matrix, predecessors

    def within(self, cutoff: float | None) -> Distances:
        """Return the distances, which are within the cutoff."""
        return self

    def lengths(self, i: int) -> dict[Hashable, Any]:
        """Map every near node to its distance, nearest first."""
        columns, order = self._near(i)
        values = self._sparse.entries[self._some(i)][order].tolist()
        return {self.nodes[v]: x for v, x in zip(columns, values, strict=True)}

    def paths(self, i: int) -> dict[Hashable, list[Any]]:
        """Map every near node to a shortest path, nearest first."""
        columns, order = self._near(i)
        before = dict(zip(columns, self._tree.entries[self._some(i)][order].tolist(), strict=True))
        found: Any = collections.defaultdict(type(None), {i: [self.nodes[i]]})
        for target in columns:
            if found[target] is None:
                _climb(found, before, self.nodes, target)
        return {self.nodes[v]: found[v] for v in columns}

    def _some(self, i: int) -> slice:
        return slice(*self._sparse.edges.starts[i - self.first : i - self.first + 2].tolist())

    def _near(self, i: int) -> tuple[list[int], Array]:
        """Return the near nodes, i first, then by distance; and their order in the row."""
        some = self._some(i)
        columns = self._sparse.edges.heads[some]
        order = np.lexsort((self._sparse.entries[some], columns != i))
        return columns[order].tolist(), order


def extend(found: list[Any], before: Any, nodes: list[Hashable], order: list[int]) -> None:
    """Find the paths to nodes, by the node before each one and by the paths that are known."""
    for target in order:
        path = found[before[target]]
        if path is None:  # with an edge of weight 0 or less, a node can precede its predecessor
            _climb(found, before, nodes, target)
        else:
            found[target] = [*path, nodes[target]]


def _climb(found: Any, before: Any, nodes: list[Hashable], target: int) -> None:
    """Find the path to a node and to every earlier node of the path."""
    ahead = [target]
    while (path := found[before[ahead[-1]]]) is None:
        ahead.append(before[ahead[-1]])
    for at in reversed(ahead):
        path = found[at] = [*path, nodes[at]]


def distances(graph: Any, weight: Any, method: str | None = None, *, paths: bool = False) -> Distances:
    """Find all distances, by the rules of one of NetworkX's methods.

    The method is "unweighted" (default for weight None), "dijkstra" (default otherwise), "bellman-ford", "floyd-warshall" or
    "floyd-warshall-numpy". Only "dijkstra" hides edges of weight None and refuses negative weights; the last three are the same here.
    Refused weights raise NotImplementedError, so the call is left to NetworkX; a negative cycle raises NegativeCycleError.
    """
    edges = sparse(graph, weight, method)
    found = solve(GivenGraph(edges), Question(MIN_PLUS, Options(paths=paths)))
    return Distances(list(graph), found.distances, found.predecessors()) if paths else Distances(list(graph), found, None)


def by_rows(edges: CSR, how: Plan | None = None) -> Iterator[DistanceRows]:
    """Yield all distances along edges, some rows at a time, by a plan or by a new one."""
    question, given = Question(MIN_PLUS, wanted="rows"), GivenGraph(edges)
    how = plan(question.problem(given)) if how is None else how
    for first, matrix in rows_in_turn(how, given, question):
        yield DistanceRows(matrix, first)


def total_distance(edges: CSR) -> Any:
    """Sum the finite distances between all nodes, as a Python number."""
    return sum(map(sum, map(DistanceRows.totals, by_rows(edges))))
