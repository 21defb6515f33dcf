"""Shortest paths that avoid some vertices and edges, as a compiled loop: the searches of Yen's algorithm, directed at one target.

Each search begins at a vertex of a known path. The search may not meet the path's earlier vertices, nor leave the start by certain edges.
The method is Dijkstra's algorithm with costs w + h_v − h_u (A*: Hart, Nilsson and Raphael, 1968). Here h_v is the distance from v to the
target in the whole graph, so the search sees little beside the path. Nothing is cleared between searches: each has a number, and marks with
other numbers do not count.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import F64, Body, Variable, compiled
from semiring.kernels.cpu.emitter import I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.search import Heap
from semiring.kernels.hardware import host

__all__ = ["Deviations"]

Array = np.ndarray[Any, Any]

_RECORD = np.dtype(
    [("distance", np.float64), ("seen", np.int64), ("final", np.int64), ("blocked", np.int64), ("avoided", np.int64), ("before", np.int64)]
)
"""The record of a vertex: distance from the path's start, predecessor, and marks. `seen`, `final` and `avoided` hold the number of the last
search that saw or finished the vertex, or must not step to it at first. `blocked` holds the number of the last `open` whose searches may
not meet the vertex."""

_LARGEST = float(np.finfo(np.float64).max)

_DeviationWords = namedtuple(
    "_DeviationWords", "starts heads weights ahead records queue room begin target mark blocked distances way length", defaults=(0,)
)
"""The arguments; `length` becomes the number of vertices on the way, 0 if no way exists."""

_BEGIN, _MARK, _BLOCKED, _LENGTH = map(_DeviationWords._fields.index, ("begin", "mark", "blocked", "length"))


class Deviations:
    """The searches for one target, in a graph in compressed rows (int64, int32 and float64 arrays).

    `ahead` is the distance from each vertex to the target, as float64, ∞ without a path.
    """

    def __init__(self, starts: Array, heads: Array, weights: Array, ahead: Array, target: int) -> None:
        n, m = len(ahead), len(heads)
        self._records, self._way = np.zeros(n, _RECORD), np.empty(n, np.int32)
        self._distances, self._queue = np.zeros(2), np.empty(4 * (m + 1) + 32)  # four arrays, each from a cache line on
        self._owned = starts, heads, weights, ahead, self._records, self._queue, self._distances, self._way
        self._function, self._mark, self._blocked = _function("deviate"), 0, 1
        graph = *map(address, self._owned[:6]), m + 1
        self._words = pack(_DeviationWords._make((*graph, 0, target, 0, 0, address(self._distances), address(self._way), 0)))

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
        self._distances[:] = distance, min(limit, _LARGEST)
        words = self._words
        words[_BEGIN], words[_MARK], words[_BLOCKED], words[_LENGTH] = begin, self._mark, self._blocked, 0
        self._function(words, 4 * len(self._queue))
        length = words[_LENGTH]
        return (float(self._distances[0]), self._way[:length][::-1].tolist()) if length else None


def _deviate() -> Emitter:
    arrays = {"starts": np.int64, "heads": np.int32, "weights": np.float64, "ahead": np.float64, "distances": np.float64, "way": np.int32}
    b = Body("deviate", _DeviationWords, "room begin target mark blocked length", **arrays, records=_RECORD)
    em, begin, target, mark, limit = b.em, b["begin"], b["target"], b["mark"], b.get("distances", 1)

    def better(new: Sequence[Value], old: Sequence[Value]) -> str:
        """Compare walks by total length; ties go to the longer known part, which is closer to the target, then to the first offer."""
        (total, length, number), (old_total, old_length, old_number) = ([v.name for v in element] for element in (new, old))
        first = b.both(b.equal(length, old_length), b.is_("slt", number, old_number))
        tie = b.both(b.equal(total, old_total), b.either(b.less(old_length, length), first))
        return b.either(b.less(total, old_total), tie)

    heap, done, pushed = Heap(Lowering(em, host(), 1), (F64, F64, I64), b["queue"], b["room"], better), Variable(em), Variable(em)

    def record(v: str, field: str) -> str:
        return b.get("records", v, field)

    def arrive(v: str, distance: str, before: str) -> None:
        total = b.f("fadd", distance, b.get("ahead", v))
        with em.when(em.let(f"fcmp ole double {total}, {limit}")):
            for field, value in (("distance", distance), ("seen", mark), ("before", before)):
                b.put("records", v, value, field)
            heap.push(v, [Value(total, F64), Value(distance, F64), Value(pushed.get(), I64)])
            pushed.add(1)

    def edge(u: str, distance: str, e: str) -> None:
        v = b.get("heads", e)
        free = b.both(b.is_("ne", record(v, "final"), mark), b.is_("ne", record(v, "blocked"), b["blocked"]))
        allowed = b.either(b.is_("ne", u, begin), b.is_("ne", record(v, "avoided"), mark))
        with em.when(b.both(free, allowed)):
            longer = b.f("fadd", distance, b.get("weights", e))
            with em.when(b.either(b.is_("ne", record(v, "seen"), mark), b.less(longer, record(v, "distance")))):
                arrive(v, longer, u)

    arrive(begin, b.get("distances", 0), "-1")
    with em.turns([], lambda _: b.both(heap.filled(), b.is_("eq", done.get(), 0))):
        u, _ = heap.pop()
        with em.when(b.is_("ne", record(u, "final"), mark)):
            b.put("records", u, mark, "final")
            distance = record(u, "distance")
            with em.when(b.is_("eq", u, target)):
                done.set(1)
            with em.otherwise(), em.each(*b.row(u)) as e:
                edge(u, distance, e)
    em.returning(b.is_("eq", done.get(), 0))
    with em.turns([("i64", target), ("i64", "0")], lambda values: b.is_("sge", values[0], 0)) as ((v, length), new):
        b.put("way", length, v)
        new += [record(v, "before"), str(em.add(length, 1))]
    b.put("distances", 0, record(target, "distance"))
    b.answer("length", length)
    return b.done()


_function = compiled("deviations", _deviate)
