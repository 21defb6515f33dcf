"""The k shortest simple paths between two vertices: Yen's algorithm (1971), with Lawler's refinement (1972).

Every path except the shortest leaves a shorter path at some vertex. Yen's algorithm follows a yielded path from there on. From each vertex
a shortest deviation begins with an edge not taken by paths of the same beginning, and avoids the earlier vertices of the path. The
shortest of all deviations is the next path. Distances to the target bound each deviation from below without a search; a deviation is
searched when its bound is the least length of all.

The search for a deviation is Dijkstra's algorithm with costs w + h_v − h_u (A*: Hart, Nilsson and Raphael, 1968). Here h_v is the distance
from v to the target in the whole graph, so the search sees little beside the path. Nothing is cleared between searches: each has a number,
and marks with other numbers do not count.

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
from typing import Annotated, Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.heap import pop, push
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import searches_for
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.kernels.cpu.loops import Element, Elements, Floats, Ints, ShortInts, loop

__all__ = ["Deviations", "simple_paths"]

_RECORD = np.dtype(
    [("distance", np.float64), ("seen", np.int64), ("final", np.int64), ("blocked", np.int64), ("avoided", np.int64), ("before", np.int64)]
)
"""The record of a vertex: distance from the path's start, predecessor, and marks. `seen`, `final` and `avoided` hold the number of the last
search that saw or finished the vertex, or must not step to it at first. `blocked` holds the number of the last `open` whose searches may
not meet the vertex."""

_Records = Annotated[Any, _RECORD]

_QUESTION = np.dtype([("begin", np.int64), ("distance", np.float64), ("limit", np.float64), ("mark", np.int64), ("blocked", np.int64)])
"""What a search is asked: its first vertex, the length of the path before, the limit, and the marks of `final` and of `blocked`. One record
costs less than as many arguments."""

_Question = Annotated[Any, _QUESTION]

_LARGEST = float(np.finfo(np.float64).max)

_Beginning = dict[int, "_Beginning"]
"""A common beginning of the yielded paths: the next vertices, each with the longer beginning."""


class _Candidate(NamedTuple):
    """A candidate for the next path; candidates are ordered by length."""

    length: float  # of the path, or a lower bound before the search
    unknown: bool  # before the search, when `path` is the shorter path that the candidate leaves
    number: int  # orders candidates of one length
    path: list[int]
    left: int  # position where the candidate leaves the shorter path
    distance: float = 0.0  # length of the shorter path up to this position


def simple_paths(
    graph: CSR, source: int, target: int, most: int | None = None, *, name: Callable[[int], Any] = int, threads: int | None = None
) -> Iterator[tuple[float, list[int]]]:
    """Yield the lengths and vertices of simple paths on demand, the shortest first.

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
    every: _Beginning = {}
    numbers, taken, position = itertools.count(), 0, np.full(graph.n, graph.n)
    candidates, known = list[_Candidate](), list[float]()  # known: the lengths of searched candidates
    first = deviations.search(source, 0.0, (), math.inf)
    if first is not None:
        candidates.append(_Candidate(first[0], False, next(numbers), first[1], 0))
    while candidates and taken != most:
        length, unknown, _, path, left, distance = heapq.heappop(candidates)
        beginning = every
        for v in path[1 : left + 1]:
            beginning = beginning[v]
        if unknown:
            # At most so many candidates can still be yielded.
            limit = math.inf if most is None or len(known) < most - taken else heapq.nsmallest(most - taken, known)[-1]
            deviations.open()
            deviations.block(path[:left])
            other = deviations.search(path[left], distance, tuple(beginning), limit)
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
            longer = longer.setdefault(v, {})
        for i, distance, bound in _bounds(graph, ahead, path, left, tuple(beginning), position):
            heapq.heappush(candidates, _Candidate(bound, True, next(numbers), path, i, distance))


def _bounds(
    graph: CSR, ahead: Array, path: list[int], left: int, avoided: Sequence[int], position: Array
) -> Iterator[tuple[int, float, float]]:
    """Yield each position of a path from `left` on, the length up to this vertex, and a lower bound for paths that deviate here.

    A deviation from v costs at least min(w + h_x) over the edges v → x of length w to vertices x outside the path. Here h_x is the
    distance from x to the target. At `left`, deviations do not go to the vertices `avoided`. `position` is scratch: n for each vertex
    before and after the call.
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
    units = finite * 2.0**16  # sums of small multiples of 2⁻¹⁶ are exact
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


class Deviations:
    """The searches for one target, in a graph in compressed rows (int64, int32 and float64 arrays).

    `ahead` is the distance from each vertex to the target, as float64, ∞ without a path.
    """

    def __init__(self, starts: Array, heads: Array, weights: Array, ahead: Array, target: int) -> None:
        n, room = len(ahead), len(heads) + 1
        self._records, self._way, self._question = np.zeros(n, _RECORD), np.empty(n, np.int32), np.zeros(1, _QUESTION)
        self._mark, self._blocked, self._nanoseconds = 0, 1, 16 * room
        queue, keys = np.empty(room, np.int64), (np.empty(room), np.empty(room), np.empty(room, np.int64))
        self._search = _search.bind(starts, heads, weights, ahead, target, self._records, queue, keys, self._question, self._way)

    def open(self) -> None:
        """Unblock all vertices."""
        self._blocked += 1

    def block(self, vertices: Sequence[int]) -> None:
        """Block some vertices in the following searches."""
        self._records["blocked"][list(vertices)] = self._blocked

    def search(self, begin: int, distance: float, avoided: Sequence[int], limit: float) -> tuple[float, list[int]] | None:
        """Return the length of the shortest way on from `begin` to the target, and its vertices; None if no way is within the limit.

        `distance` is the length of the path up to `begin`, which no vertex of `avoided` may follow.
        """
        self._mark += 1
        self._records["avoided"][list(avoided)] = self._mark
        self._question[0] = begin, distance, min(limit, _LARGEST), self._mark, self._blocked
        total, length = self._search(self._nanoseconds)
        return (total, self._way[:length][::-1].tolist()) if length else None


@loop
def _before(x: Element, y: Element) -> bool:
    """Compare walks by total length; ties go to the longer known part, which is closer to the target, then to the first offer."""
    total, known, number = x
    other, other_known, other_number = y
    return bool(total < other or (total == other and (known > other_known or (known == other_known and number < other_number))))


@loop
def _search(
    starts: Ints, heads: ShortInts, weights: Floats, ahead: Floats, target: int, records: _Records, queue: Ints, keys: Elements,
    question: _Question, way: ShortInts,
) -> tuple[float, int]:  # fmt: skip
    """Return the length of the shortest way to the target, and the number of its vertices, 0 if no way exists.

    `way` receives the vertices, last first.
    """
    begin, distance, limit = question.begin[0], question.distance[0], question.limit[0]
    mark, blocked = question.mark[0], question.blocked[0]
    total = distance + ahead[begin]
    if total > limit:
        return 0.0, 0
    records.distance[begin], records.seen[begin], records.before[begin] = distance, mark, -1
    size, pushed = push(queue, keys, 0, begin, (total, distance, 0), before=_before), 1
    while size > 0:
        u = queue[0]
        size = pop(queue, keys, size, before=_before)
        if records.final[u] == mark:
            continue
        records.final[u], known = mark, records.distance[u]
        if u == target:
            length = 0
            while u >= 0:
                way[length] = u
                u = records.before[u]
                length += 1
            return known, length
        for e in range(starts[u], starts[u + 1]):
            v = heads[e]
            final, barred, avoided = records.final[v], records.blocked[v], records.avoided[v]
            if final == mark or barred == blocked or (u == begin and avoided == mark):
                continue
            longer = known + weights[e]
            if records.seen[v] != mark or longer < records.distance[v]:
                total = longer + ahead[v]
                if total <= limit:
                    records.distance[v], records.seen[v], records.before[v] = longer, mark, u
                    size = push(queue, keys, size, v, (total, longer, pushed), before=_before)
                    pushed += 1
    return 0.0, 0
