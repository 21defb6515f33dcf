"""Paths out of the construction matrix, without recursion.

Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2: the path from i to j is the edge itself where `via` is −1, and otherwise the path
from i to k = via[i, j] followed by the one from k to j. Here all segments of all wanted paths are expanded together, one generation a
pass. What comes out need not be simple: blocked and recursive schedules repeat vertices around cycles of weight 1 (zero, for shortest
paths), and those loops are erased.

The expansion ends where ⊕ improves strictly and arithmetic is exact, or no cycle improves on 1. With negative floats rounding
may bend `via` into a circle; a path that grows beyond all measure is given up here and found again in `semiring.algorithms.sources`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["cycle_through", "erase_loops", "expand"]

Array = np.ndarray[Any, Any]


def expand(via: Array, sources: Array, targets: Array) -> list[list[int] | None]:
    """A path for each pair of vertices that has one, as the list of its vertices; None where it was given up.

    Parameters
    ----------
    via : int32 array of shape (n, n)
    sources, targets : int arrays of shape (m,)
        Pairs whose element is not zero. A pair of equal vertices gives a cycle, which ends where it begins.

    Notes
    -----
    O(h) for each pass over all segments of paths with h edges in total; the number of passes is the depth of the expansion.
    """
    n, m = len(via), len(sources)
    longest = 16 * n + 64
    owner, tail, head = np.arange(m), np.array(sources, dtype=np.intp), np.array(targets, dtype=np.intp)
    unsettled = np.ones(m, dtype=bool)
    given_up = np.zeros(m, dtype=bool)
    while unsettled.any():
        middle = np.full(len(owner), -1, dtype=np.intp)
        middle[unsettled] = via[tail[unsettled], head[unsettled]]
        split = middle >= 0
        if not split.any():
            break
        # Segment s becomes tail → middle and middle → head.
        copies = np.repeat(np.arange(len(owner)), 1 + split)
        first = (np.cumsum(1 + split) - 1 - split)[split]
        owner, tail, head, unsettled = owner[copies], tail[copies], head[copies], split[copies]
        head[first] = tail[first + 1] = middle[split]
        long = np.bincount(owner, minlength=m) > longest
        if long.any():
            given_up |= long
            rest = ~long[owner]
            owner, tail, head, unsettled = owner[rest], tail[rest], head[rest], unsettled[rest]
    ends = np.searchsorted(owner, np.arange(m + 1))
    vertices = tail.tolist()
    paths: list[list[int] | None] = []
    for pair in range(m):
        if given_up[pair]:
            paths.append(None)
        else:
            paths.append(erase_loops([*vertices[ends[pair] : ends[pair + 1]], int(targets[pair])]))
    return paths


def erase_loops(walk: Sequence[int]) -> list[int]:
    """The path that is left when a walk drops whatever lies between two visits of a vertex; a closed walk leaves a cycle."""
    closed = len(walk) > 1 and walk[0] == walk[-1]
    inner = walk[:-1] if closed else walk
    if len(set(inner)) < len(inner):
        place: dict[int, int] = {}
        path: list[int] = []
        for v in inner:
            if v in place:
                for dropped in path[place[v] + 1 :]:
                    del place[dropped]
                del path[place[v] + 1 :]
            else:
                place[v] = len(path)
                path.append(v)
        inner = path
    return [*inner, walk[-1]] if closed else list(inner)


def cycle_through(via: Array, vertex: int) -> list[int] | None:
    """The vertices of the cycle that the construction matrix holds for (vertex, vertex), each once; None if it was given up."""
    (path,) = expand(via, np.array([vertex]), np.array([vertex]))
    return None if path is None else path[:-1]
