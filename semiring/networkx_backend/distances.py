"""All distances of a graph, and the forms in which NetworkX hands them out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from semiring.algebra.conversion import Array
from semiring.algebra.errors import NegativeCycleError, SemiringError
from semiring.algebra.forks import cached_property
from semiring.networkx_backend.edges import dense, hops, infinity, weighted
from semiring.networkx_backend.graph import original
from semiring.solve import apsp

__all__ = ["Distances", "algorithm", "distances"]

P = ParamSpec("P")
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


class Distances:
    """The distances between all nodes, and the paths if wanted.

    Attributes
    ----------
    nodes : list
    matrix : array of shape (n, n)
        Integers where all weights are integers.
    reached : bool array of shape (n, n)
        Where there is a path.
    predecessors : int array of shape (n, n), or None
        The node before j on a shortest path from i, negative where there is none.
    """

    def __init__(self, nodes: list[Hashable], matrix: Array, predecessors: Array | None) -> None:
        self.nodes, self.matrix, self.predecessors = nodes, matrix, predecessors
        self.reached = np.asarray(matrix != infinity(matrix.dtype))
        self._labels = np.empty(len(nodes), dtype=object)
        for i, node in enumerate(nodes):  # one by one: NumPy would take tuples apart
            self._labels[i] = node

    @cached_property
    def number(self) -> dict[Hashable, int]:
        """The row of each node."""
        return {node: i for i, node in enumerate(self.nodes)}

    def within(self, cutoff: float | None) -> Distances:
        """The same without what is farther than `cutoff`; every node stays near itself."""
        if cutoff is not None:
            self.reached &= self.matrix <= cutoff
            np.fill_diagonal(self.reached, True)
        return self

    def lengths(self, i: int) -> dict[Hashable, Any]:
        """The distance from node i to every node that it reaches, in Python's numbers, the nearest first."""
        targets = self._targets(i)
        return dict(zip(self._labels[targets].tolist(), self.matrix[i, targets].tolist(), strict=True))

    def paths(self, i: int) -> dict[Hashable, list[Any]]:
        """A shortest path from node i to every node that it reaches, the nearest first."""
        assert self.predecessors is not None
        before, nodes = self.predecessors[i].tolist(), self.nodes
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

    def finite(self, times: int) -> Array:
        """The distances, 0 where there is no path; integers so that the sum of `times` of them is exact."""
        finite = np.where(self.reached, self.matrix, self.matrix.dtype.type(0))
        if finite.dtype.kind == "f":
            return finite
        largest = max(int(finite.max(initial=0)), -int(finite.min(initial=0)))
        return finite.astype(np.int64 if largest * times <= np.iinfo(np.int64).max else object)

    def totals(self, axis: int = 1) -> list[Any]:
        """The sum of the distances from each node to all that it reaches (along axis 0, from all that reach it), in Python's numbers."""
        return list(self.finite(len(self.nodes)).sum(axis=axis).tolist())

    def inverses(self) -> Array:
        """1/d for every distance d, 0 where there is no path and where it is 0."""
        there = self.reached & (self.matrix != 0)
        return np.divide(1.0, self.matrix, out=np.zeros(self.matrix.shape), where=there)

    def _targets(self, i: int) -> Array:
        """The nodes that node i reaches, itself first, then in the order of their distance."""
        order = self.matrix[i].argsort(kind="stable")
        targets = order[: np.count_nonzero(self.reached[i])]
        if targets[0] != i:  # others are at distance 0, or less
            targets = np.concatenate([[i], order[order != i][: len(targets) - 1]])
        return np.asarray(targets)


def _climb(found: list[Any], before: list[int], nodes: list[Hashable], target: int) -> None:
    """Find the path to a node, and those to all that come before it."""
    ahead = [target]
    while (path := found[before[ahead[-1]]]) is None:
        ahead.append(before[ahead[-1]])
    for at in reversed(ahead):
        path = found[at] = [*path, nodes[at]]


def distances(graph: Any, weight: Any, method: str | None = None, *, paths: bool = False) -> Distances:
    """All distances, as one of NetworkX's methods defines them.

    Parameters
    ----------
    graph : networkx.Graph
    weight : hashable or callable
    method : {"unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy"}, optional
        By default unweighted where `weight` is None, and else Dijkstra's: the one that hides edges of weight None and has no meaning where
        a weight is negative. The last three are alike here.
    paths : bool

    Raises
    ------
    NotImplementedError
        Where NetworkX's answer is its own: negative weights in Dijkstra's algorithm, hidden edges in the others, and weights that
        `edges.weighted` refuses.
    NegativeCycleError
    """
    method = method or ("unweighted" if weight is None else "dijkstra")
    edges = hops(graph) if method == "unweighted" else weighted(graph, weight, may_hide=method == "dijkstra")
    if method == "dijkstra" and (edges.weights < 0).any():
        raise NotImplementedError("a weight is negative, where Dijkstra's algorithm gives no distances")
    matrix = dense(edges, paths=paths)
    solution = apsp(matrix, paths=paths, nonedge=infinity(matrix.dtype), overwrite=not paths)
    if not paths:
        return Distances(edges.nodes, solution, None)
    return Distances(edges.nodes, solution.distances, solution.predecessors())
