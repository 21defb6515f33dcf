"""The k shortest simple paths between two vertices: Yen's algorithm (1971), with Lawler's refinement (1972).

Every path except the shortest one leaves a shorter path, its forerunner, at some vertex. A path that is taken is followed from there. From
each vertex a shortest deviation begins with an edge that no path with the same beginning has taken, and returns to no vertex of the path.
The shortest deviation of all is the next path. Distances to the target give a lower bound of each deviation without a search; a deviation
is searched when its bound is the least length of all.

Examples
--------
>>> tails, heads, lengths = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3]), np.array([1.0, 4, 2, 6, 3])
>>> graph = CSR.of(tails, heads, (lengths,), 4, (np.inf,))
>>> list(simple_paths(graph, 0, 3))
[(6.0, [0, 1, 2, 3]), (7.0, [0, 2, 3]), (7.0, [0, 1, 3])]
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.arrays.conversion import EXACT_IN_FLOAT64
from semiring.kernels.cpu.deviations import Deviations
from semiring.kernels.select import searches_for

__all__ = ["simple_paths"]

Array = np.ndarray[Any, Any]


class _Beginning:
    """A common beginning of paths: the next vertices of these paths, and their longer beginnings."""

    __slots__ = ("longer",)

    def __init__(self) -> None:
        self.longer: dict[int, _Beginning] = {}


class _Candidate(NamedTuple):
    """A path that may be the next one, in the order of lengths.

    Attributes
    ----------
    length : float
        The length of the path, or a lower bound before it is searched.
    unknown : bool
        The path has not been searched: `path` is the shorter path that it leaves.
    number : int
        Tells candidates of one length apart.
    path : list of int
    left : int
        The position where it leaves a shorter path.
    distance : float
        The length of the shorter path up to there.
    """

    length: float
    unknown: bool
    number: int
    path: list[int]
    left: int
    distance: float = 0.0


def simple_paths(
    graph: CSR, source: int, target: int, most: int | None = None, *, name: Callable[[int], Any] = int, threads: int | None = None
) -> Iterator[tuple[float, list[int]]]:
    """Yield the simple paths with their lengths, the shortest first, one by one on demand.

    Parameters
    ----------
    graph : CSR
        Edges with weights of float64, without a negative cycle.
    source, target : int
    most : int, optional
        The greatest number of paths; deviations beyond it are not searched.
    name : callable
        The caller's name of a vertex, for errors.
    threads : int, optional

    Raises
    ------
    NegativeCycleError
        For a negative cycle that reaches the target.
    """
    searches = searches_for(MIN_PLUS, graph.dtypes, "cpu", threads)
    ((ahead,),) = rows_of_edges(MIN_PLUS, graph, np.array([target]), backward=True, name=name, searches=searches)
    starts, (weights,) = graph.starts.astype(np.int64, copy=False), graph.weights
    deviations = Deviations(starts, graph.heads.astype(np.int32), np.ascontiguousarray(weights), ahead, target)
    every, numbers, taken, position = _Beginning(), itertools.count(), 0, np.full(graph.n, graph.n)
    candidates, known = list[_Candidate](), list[float]()  # known: the lengths of candidates that are paths
    first = deviations.search(source, 0.0, (), math.inf)
    if first is not None:
        candidates.append(_Candidate(first[0], False, next(numbers), first[1], 0))
    while candidates and taken != most:
        length, unknown, _, path, left, distance = heapq.heappop(candidates)
        beginning = every
        for v in path[1 : left + 1]:
            beginning = beginning.longer[v]
        if unknown:
            # Of the candidates only so many can still be taken.
            limit = math.inf if most is None or len(known) < most - taken else heapq.nsmallest(most - taken, known)[-1]
            deviations.open()
            deviations.block(path[:left])
            other = deviations.search(path[left], distance, tuple(beginning.longer), limit)
            if other is not None:
                heapq.heappush(candidates, _Candidate(other[0], False, next(numbers), path[:left] + other[1], left))
                known.append(other[0])
            continue
        yield length, path
        taken += 1
        if taken == most:
            return
        if taken > 1:
            known.remove(length)
        longer = beginning
        for v in path[left + 1 :]:
            longer = longer.longer.setdefault(v, _Beginning())
        for i, distance, bound in _bounds(graph, ahead, path, left, tuple(beginning.longer), position):
            heapq.heappush(candidates, _Candidate(bound, True, next(numbers), path, i, distance))


def _bounds(
    graph: CSR, ahead: Array, path: list[int], left: int, avoided: Sequence[int], position: Array
) -> Iterator[tuple[int, float, float]]:
    """Bound the paths that leave a path from a position on: the position, the length up to there, and a lower bound of the whole length.

    A deviation from v costs at least min(w + h_x) over the edges v → x of length w to vertices x outside the path, except for avoided
    edges; h_x is the distance from x to the target. From the first position paths do not go to the vertices `avoided`.
    `position` has n for each vertex before and after; it saves the time to fill so many entries for a short path.
    """
    vertices, distances = np.array(path[left:-1], dtype=np.intp), np.array(_distances(graph, path)[left:-1])
    of, number = graph.leaving(vertices)
    heads = graph.heads[number]
    costs = graph.weights[0][number] + ahead[heads]
    at = of + left
    position[path] = np.arange(len(path))
    costs[(position[heads] <= at) | (heads == np.array(path)[at + 1])] = math.inf
    position[path] = graph.n
    costs[(of == 0) & np.isin(heads, avoided)] = math.inf
    least = np.full(len(vertices), math.inf)
    np.minimum.at(least, of, costs)
    finite = np.append(costs[np.isfinite(costs)], distances)
    units = finite * 2.0**16  # sums of such numbers are exact, and others are rounded
    exact = bool((units % 1 == 0).all()) and float(np.abs(units).max(initial=0)) < EXACT_IN_FLOAT64
    slack = 0.0 if exact else graph.n * float(np.finfo(np.float64).eps) * float(np.abs(finite).max(initial=0))
    for i in np.flatnonzero(least < math.inf).tolist():
        yield left + i, float(distances[i]), float(distances[i] + least[i]) - slack


def _distances(graph: CSR, path: list[int]) -> list[float]:
    """Return the length of each beginning of a path."""
    found, (weights,) = [0.0], graph.weights
    for u, v in itertools.pairwise(path):
        start, stop = graph.starts[u], graph.starts[u + 1]
        found.append(found[-1] + float(weights[start + np.searchsorted(graph.heads[start:stop], v)]))
    return found
