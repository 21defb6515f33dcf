"""Brandes's algorithm as compiled loops: a search from each source counts shortest paths, and the way back accumulates dependencies.

``levels`` searches breadth-first, ``lengths`` best-first (Dijkstra's algorithm). Both count the shortest paths σ to each vertex as float64,
and visit the vertices in reverse order of discovery. The dependency of a source on u is δ_u = Σ σ_u (worth_v + δ_v) / σ_v, summed over the
edges u → v of shortest paths. Paths tie if their float64 lengths, summed from the source, are equal.

``lengths`` stores the edges of shortest paths in NetworkX's order, ties included. So an edge of weight 0 counts for a vertex found before,
even if that vertex has already passed its paths on.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.body import F64, Body, Variable, compiled
from semiring.kernels.cpu.emitter import I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.search import Heap
from semiring.kernels.hardware import host

__all__ = ["BetweennessScratch", "BetweennessWords", "betweenness_function"]

Array = np.ndarray[Any, Any]

_LEVEL = np.dtype([("paths", np.float64), ("level", np.int64)])
"""The breadth-first record of a vertex: σ, later replaced by (worth + δ) / σ, and the level, −1 until found."""

_LENGTH = np.dtype(
    [("paths", np.float64), ("distance", np.float64), ("share", np.float64), ("before", np.int32), ("edge", np.int32), ("found", np.int64)]
)
"""The best-first record of a vertex: σ, distance, δ, the first predecessor, the last edge of a linked list (−1: none), and the state."""

_NEW, _SEEN, _FINAL = 0, 1, 2
"""The states of a vertex, best-first: unknown, reached by some path, or final."""

BetweennessWords = namedtuple(
    "BetweennessWords", "n starts heads tails weights sources first last worth own ends nodes edges records order links queue room"
)
"""The arguments: a graph in compressed rows, the sources `first` … `last` − 1, and the sums over these sources.

`worth` weights the paths to each vertex. `own` is 0 if a path to the source itself counts nothing; `edges` is 0 if no sums of edges are
wanted. `ends` is 1 if a path counts for both ends too."""

_NUMBERS = "n first last own ends room"

_ARRAYS: dict[str, Any] = {
    **dict.fromkeys(("starts", "sources"), np.int64),
    **dict.fromkeys(("heads", "tails", "order", "links"), np.int32),
    **dict.fromkeys(("weights", "worth", "nodes", "edges"), np.float64),
}


class BetweennessScratch(NamedTuple):
    """The memory of one thread's searches."""

    records: Array
    order: Array
    links: Array
    queue: Array

    @classmethod
    def of(cls, n: int, m: int, *, weighted: bool) -> BetweennessScratch:
        """Allocate memory for a graph of n vertices and m edges."""
        if not weighted:
            return cls(np.empty(n, _LEVEL), np.empty(n, np.int32), np.empty(0, np.int32), np.empty(0))
        # An entry of the queue has a vertex, a distance and a number, in arrays that begin on cache lines.
        return cls(np.empty(n, _LENGTH), np.empty(n, np.int32), np.empty(m, np.int32), np.empty(3 * (m + 1) + 24))

    def words(self) -> tuple[int, ...]:
        """Return the last words of the arguments."""
        return (*map(address, self), len(self.links) + 1)


def _each_source(b: Body, search: Callable[[str, Variable], None], back: Callable[[str, str], None]) -> Emitter:
    """Emit a search from each source, which fills `order`, and the way back through the order."""
    em, found = b.em, Variable(b.em)
    with em.each(b["first"], b["last"]) as i:
        s = b.get("sources", i)
        found.set(0)
        search(s, found)
        count = found.get()
        with em.when(b.is_("ne", b["ends"], 0)):
            b.put("nodes", s, b.f("fadd", b.get("nodes", s), b.as_float(str(em.sub(count, 1)))))
        with em.each(0, count) as k:
            back(s, b.get("order", em.sub(em.sub(count, 1), k)))
    return b.done()


def _put(b: Body, v: str, **fields: str | int) -> None:
    for field, value in fields.items():
        b.put("records", v, value, field)


def _worth(b: Body, s: str, v: str) -> str:
    """Emit the weight of a path from s to v."""
    nothing = b.both(b.is_("eq", s, v), b.is_("eq", b["own"], 0))
    return b.select(nothing, F64.literal(0), b.get("worth", v))


def _keep(b: Body, s: str, v: str, share: str) -> None:
    with b.em.when(b.is_("ne", s, v)):
        more = b.select(b.is_("ne", b["ends"], 0), F64.literal(1), F64.literal(0))
        b.put("nodes", v, b.f("fadd", b.get("nodes", v), b.f("fadd", share, more)))


def _keep_edge(b: Body, e: str, share: str) -> None:
    with b.em.when(b.is_given("edges")):
        b.put("edges", e, b.f("fadd", b.get("edges", e), share))


def _levels() -> Emitter:
    """Emit ``levels(args)``: an edge of shortest paths leads one level further."""
    b = Body("levels", BetweennessWords, _NUMBERS, **_ARRAYS, records=_LEVEL)
    em = b.em

    def search(s: str, found: Variable) -> None:
        def find(v: str, level: str, paths: str) -> None:
            _put(b, v, level=level, paths=paths)
            b.put("order", found.get(), v)
            found.add(1)

        with em.each(0, b["n"]) as v:
            _put(b, v, level=-1)
        find(s, "0", F64.literal(1))
        with em.turns([("i64", "0")], lambda values: b.is_("slt", values[0], found.get())) as ((place,), new):
            u = b.get("order", place)
            paths, further = b.get("records", u, "paths"), str(em.add(b.get("records", u, "level"), 1))
            with em.each(*b.row(u)) as e:
                v = b.get("heads", e)
                level = b.get("records", v, "level")
                with em.when(b.is_("slt", level, 0)):
                    find(v, further, paths)
                with em.otherwise(), em.when(b.is_("eq", level, further)):
                    _put(b, v, paths=b.f("fadd", b.get("records", v, "paths"), paths))
            new.append(str(em.add(place, 1)))

    def back(s: str, u: str) -> None:
        paths, further = b.get("records", u, "paths"), str(em.add(b.get("records", u, "level"), 1))

        def edge(e: str, carried: list[str]) -> list[str]:
            v = b.get("heads", e)
            onward = b.is_("eq", b.get("records", v, "level"), further)
            share = b.select(onward, b.f("fmul", paths, b.get("records", v, "paths")), F64.literal(0))
            with em.when(onward):
                _keep_edge(b, e, share)
            return [b.f("fadd", carried[0], share)]

        (share,) = em.loop(*b.row(u), 1, edge, [("double", F64.literal(0))])
        _put(b, u, paths=b.f("fdiv", b.f("fadd", _worth(b, s, u), share), paths))
        _keep(b, s, u, share)

    return _each_source(b, search, back)


def _lengths() -> Emitter:
    """Emit ``lengths(args)`` by NetworkX's rules, including its order of ties."""
    b = Body("lengths", BetweennessWords, _NUMBERS, **_ARRAYS, records=_LENGTH)
    em, zero = b.em, F64.literal(0)

    def earlier(new: Sequence[Value], old: Sequence[Value]) -> str:
        """Compare entries by distance, then by number."""
        first = b.is_("slt", new[1].name, old[1].name)
        return b.either(b.less(new[0].name, old[0].name), b.both(b.equal(new[0].name, old[0].name), first))

    heap = Heap(Lowering(em, host(), 1), (F64, I64), b["queue"], b["room"], earlier)
    pushed = Variable(em)

    def push(v: str, distance: str) -> None:
        heap.push(v, [Value(distance, F64), Value(pushed.get(), I64)])
        pushed.add(1)

    def record(v: str, field: str) -> str:
        return b.get("records", v, field)

    def search(s: str, found: Variable) -> None:
        with em.each(0, b["n"]) as v:
            _put(b, v, found=_NEW, edge=-1, paths=zero, share=zero)
        _put(b, s, paths=F64.literal(1), distance=zero, before=s, found=_SEEN)
        push(s, zero)
        with em.turns([], lambda _: heap.filled()):
            u, (walk, _number) = heap.pop()
            with em.when(b.is_("ne", record(u, "found"), _FINAL)):
                _put(b, u, paths=b.f("fadd", record(u, "paths"), record(record(u, "before"), "paths")), found=_FINAL)
                b.put("order", found.get(), u)
                found.add(1)
                with em.each(*b.row(u)) as e:
                    edge(u, walk.name, e)

    def edge(u: str, walk: str, e: str) -> None:
        v = b.get("heads", e)
        known, distance = record(v, "found"), b.f("fadd", walk, b.get("weights", e))
        shorter = b.either(b.is_("eq", known, _NEW), b.both(b.is_("eq", known, _SEEN), b.less(distance, record(v, "distance"))))
        with em.when(shorter):
            _put(b, v, distance=distance, found=_SEEN, paths=zero, before=u, edge=e)
            b.put("links", e, -1)
            push(v, distance)
        with em.otherwise(), em.when(b.equal(distance, record(v, "distance"))):
            _put(b, v, paths=b.f("fadd", record(v, "paths"), record(u, "paths")))
            b.put("links", e, record(v, "edge"))
            _put(b, v, edge=e)

    def back(s: str, w: str) -> None:
        each = b.f("fdiv", b.f("fadd", _worth(b, s, w), record(w, "share")), record(w, "paths"))
        with em.turns([("i64", record(w, "edge"))], lambda values: b.is_("sge", values[0], 0)) as ((e,), new):
            v = b.get("tails", e)
            part = b.f("fmul", record(v, "paths"), each)
            _put(b, v, share=b.f("fadd", record(v, "share"), part))
            _keep_edge(b, e, part)
            new.append(b.get("links", e))
        _keep(b, s, w, record(w, "share"))  # a loop of weight 0 has handed it on to itself

    return _each_source(b, search, back)


betweenness_function = compiled("betweenness", _levels, _lengths)
"""The compiled loop of breadth-first searches (``"levels"``), or of best-first searches (``"lengths"``)."""
