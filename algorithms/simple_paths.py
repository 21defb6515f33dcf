"""The k shortest simple paths between two vertices: Yen's algorithm (1971), with Lawler's refinement (1972).

Every path but the shortest one leaves a shorter one at some vertex. So each path that is taken is followed from where it left its own
forerunner, and from each of its vertices the shortest way on is searched that leaves by an edge which no path with the same beginning has
taken, and comes back to none of its vertices; the shortest of all that were found is the next path.

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
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.kernels.cpu.deviations import Deviations
from semiring.kernels.select import searches_for

__all__ = ["simple_paths"]

Array = np.ndarray[Any, Any]


class _Beginning:
    """What paths begin with: the vertices that they go to from its last one, and the longer beginnings that these make."""

    __slots__ = ("longer",)

    def __init__(self) -> None:
        self.longer: dict[int, _Beginning] = {}


def simple_paths(
    graph: CSR, source: int, target: int, most: int | None = None, *, name: Callable[[int], Any] = int, threads: int | None = None
) -> Iterator[tuple[float, list[int]]]:
    """The paths that meet no vertex twice with their lengths, the shortest first; found one by one, as they are asked for.

    Parameters
    ----------
    graph : CSR
        With weights of float64, of which no cycle is negative.
    source, target : int
    most : int, optional
        How many are wanted at most. What cannot be among them is not searched.
    name : callable
        The caller's name of a vertex, for errors.
    threads : int, optional

    Raises
    ------
    NegativeCycleError
        Where a cycle from which the target can be reached is negative.
    """
    searches = searches_for(MIN_PLUS, graph.dtypes, "cpu", threads)
    ((ahead,),) = rows_of_edges(MIN_PLUS, graph, np.array([target]), backward=True, name=name, searches=searches)
    starts, (weights,) = graph.starts.astype(np.int64, copy=False), graph.weights
    deviations = Deviations(starts, graph.heads.astype(np.int32), np.ascontiguousarray(weights), ahead, target)
    every, found, candidates, taken = _Beginning(), 0, list[tuple[float, int, list[int], int]](), 0
    first = deviations.search(source, 0.0, (), math.inf)
    if first is not None:
        candidates.append((first[0], 0, first[1], 0))
    while candidates and taken != most:
        length, _, path, left = heapq.heappop(candidates)
        yield length, path
        taken += 1
        if taken == most:
            return
        beginning, distances = every, _distances(graph, path)
        for v in path[1 : left + 1]:
            beginning = beginning.longer[v]
        wanted = math.inf if most is None else most - taken
        # Of the candidates only so many can still be taken.
        limit = math.inf if len(candidates) < wanted else heapq.nsmallest(int(wanted), candidates)[-1][0]
        deviations.open()
        deviations.block(path[:left])
        for i in range(left, len(path) - 1):
            following = beginning.longer.setdefault(path[i + 1], _Beginning())
            other = deviations.search(path[i], distances[i], tuple(beginning.longer), limit)
            if other is not None:
                found += 1
                heapq.heappush(candidates, (other[0], found, path[:i] + other[1], i))
            deviations.block(path[i : i + 1])
            beginning = following


def _distances(graph: CSR, path: list[int]) -> list[float]:
    """The length of each beginning of a path."""
    found, (weights,) = [0.0], graph.weights
    for u, v in itertools.pairwise(path):
        start, stop = graph.starts[u], graph.starts[u + 1]
        found.append(found[-1] + float(weights[start + np.searchsorted(graph.heads[start:stop], v)]))
    return found
