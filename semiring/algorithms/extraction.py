"""Best paths out of a construction matrix, expanded without recursion.

Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2: the path from i to j is the edge itself if via[i, j] is −1. Otherwise it is the path
from i to k = via[i, j] followed by the path from k to j. All wanted paths are expanded together, one generation of `via` a pass. The
resulting walks need not be simple: blocked and recursive schedules go around cycles of weight 1 (zero, for shortest paths) on every
level. Loops are erased, at once if a walk grows beyond n vertices.

The expansion ends if ⊕ improves strictly and arithmetic is exact, or if no cycle improves on 1. Rounding of negative floats, or a damaged
file, may bend `via` into a circle. Such a path is given up once its walk has more than n vertices; `SingleSource` of
`semiring.algorithms.predecessors` finds the path again in the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.arrays.devices import entries, on_gpu
from semiring.kernels.select import expand_paths

__all__ = ["cycle_through", "erase_loops", "expand"]

Array = np.ndarray[Any, Any]


def expand(via: Array, sources: Array, targets: Array) -> list[list[int] | None]:
    """Return a simple path for each pair of vertices, as a list of vertices; None if the path was given up.

    The element of each pair must not be zero. A pair of equal vertices gives a cycle, which ends at its first vertex. Each pass is linear
    in the number of vertices on the paths so far. Passes are the generations of `via`: at most n for the iterative schedule,
    and usually about log₂ of a path's edges. Only the needed entries of a `via` on a GPU come to the host.
    """
    if on_gpu(via):
        found = [None if walk is None else erase_loops(walk) for walk in expand_paths(via, sources, targets)]
        long = np.array([pair for pair, path in enumerate(found) if path is None], dtype=np.intp)
        for pair, path in zip(long.tolist(), _expand(via, sources[long], targets[long]), strict=True):
            found[pair] = path
        return found
    return _expand(via, sources, targets)


def _expand(via: Array, sources: Array, targets: Array) -> list[list[int] | None]:
    """Expand the segments of all pairs at once, and erase loops where a walk is too long."""
    n, m = len(via), len(sources)
    owner, tail, head = np.arange(m), np.array(sources, dtype=np.intp), np.array(targets, dtype=np.intp)
    unsettled, circular = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    checked = False
    for _ in range(_generations(n)):
        middle = np.full(len(owner), -1, dtype=np.intp)
        middle[unsettled] = entries(via, tail[unsettled], head[unsettled])
        split = middle >= 0
        unsettled &= split
        if not split.any():
            break
        # Segment s becomes tail → middle and middle → head.
        copies = np.repeat(np.arange(len(owner)), 1 + split)
        first = (np.cumsum(1 + split) - 1 - split)[split]
        owner, tail, head, unsettled = owner[copies], tail[copies], head[copies], split[copies]
        head[first] = tail[first + 1] = middle[split]
        if (np.bincount(owner) > n).any():
            if not checked:
                checked, circular = True, _circular(via, sources, targets)
            straight = np.flatnonzero(~circular[owner])
            left = straight[_without_loops(owner[straight], tail[straight], targets, n)]
            owner, tail, unsettled = owner[left], tail[left], unsettled[left]
            last = np.append(owner[1:] != owner[:-1], True)
            head = np.where(last, np.asarray(targets)[owner], np.append(tail[1:], 0))
    given_up = circular | (np.bincount(owner[unsettled], minlength=m) > 0)
    ends = np.searchsorted(owner, np.arange(m + 1)).tolist()
    vertices, goals = tail.tolist(), np.asarray(targets).tolist()
    return [None if given_up[pair] else erase_loops([*vertices[ends[pair] : ends[pair + 1]], goals[pair]]) for pair in range(m)]


def _generations(n: int) -> int:
    return 2 * n + 64


def _circular(via: Array, sources: Array, targets: Array) -> Array:
    """Mark each pair whose walk never ends, because splitting the pair leads back to an earlier one."""
    n = len(via)
    wanted = np.asarray(sources, dtype=np.int64) * n + targets
    pairs = fresh = np.unique(wanted)
    while len(fresh):
        tail, head = np.divmod(fresh, n)
        middle = np.asarray(entries(via, tail, head), dtype=np.int64)
        tail, head, middle = (v[middle >= 0] for v in (tail, head, middle))
        fresh = np.setdiff1d(np.concatenate([tail * n + middle, middle * n + head]), pairs)
        pairs = np.union1d(pairs, fresh)
    tail, head = np.divmod(pairs, n)
    middle = np.asarray(entries(via, tail, head), dtype=np.int64)
    ends = middle < 0
    split = np.flatnonzero(~ends)
    halves = [np.searchsorted(pairs, half) for half in (tail * n + middle, middle * n + head)]
    for _ in range(_generations(n)):
        settled = split[ends[halves[0][split]] & ends[halves[1][split]]]
        if not len(settled):
            break
        ends[settled] = True
        split = split[~ends[split]]
    return np.asarray(~ends[np.searchsorted(pairs, wanted)])


def _without_loops(owner: Array, tail: Array, targets: Array, n: int) -> Array:
    """Return the segments left after every walk of more than n segments drops its loops."""
    left: list[int] = []
    for pair in np.unique(owner).tolist():
        start, end = np.searchsorted(owner, [pair, pair + 1]).tolist()
        segments = range(start, end)
        left += segments if len(segments) <= n else _loopless(segments, tail, int(targets[pair]))
    return np.array(left, dtype=np.intp)


def _loopless(segments: range, tail: Array, target: int) -> list[int]:
    """Return the segments of one walk without its loops; a closed walk leaves a cycle."""
    place: dict[int, int] = {}
    path: list[int] = []

    def cut(v: int) -> None:
        """Drop what came after the first visit of v, and that visit."""
        if v in place:
            start = place[v]
            for s in path[start:]:
                del place[int(tail[s])]
            del path[start:]

    for s in segments:
        v = int(tail[s])
        cut(v)
        place[v] = len(path)
        path.append(s)
    if int(tail[path[0]]) != target:
        cut(target)
    return path


def erase_loops(walk: Sequence[int]) -> list[int]:
    """Drop everything between two visits of a vertex; a closed walk leaves a cycle."""
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
    """Return the cycle that the construction matrix holds for (vertex, vertex), each vertex once; None if given up."""
    (path,) = expand(via, np.array([vertex]), np.array([vertex]))
    return None if path is None else path[:-1]
