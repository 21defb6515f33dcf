"""Brandes's algorithm as compiled loops: a search from each source counts shortest paths, and the way back accumulates dependencies.

``levels`` searches breadth-first, ``lengths`` best-first (Dijkstra's algorithm). Both count the shortest paths σ to each vertex as float64,
and visit the vertices in reverse order of discovery. The dependency of a source on u is δ_u = Σ σ_u (worth_v + δ_v) / σ_v, summed over the
edges u → v of shortest paths. Paths tie if their float64 lengths, summed from the source, are equal.

``lengths`` stores the edges of shortest paths in NetworkX's order, ties included. So an edge of weight 0 counts for a vertex found before,
even if that vertex has already passed its paths on.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.body import F64, Body, Variable
from semiring.kernels.cpu.compiler import Function, compile_library, link
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

_NUMBERS = "n first last own ends edges room"

_ARRAYS: dict[str, Any] = {
    **dict.fromkeys(("starts", "sources"), np.int64),
    **dict.fromkeys(("heads", "tails", "order", "links"), np.int32),
    **dict.fromkeys(("weights", "worth", "nodes"), np.float64),
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


@functools.cache
def betweenness_function(*, weighted: bool) -> Function:
    """Return the compiled loop of best-first searches, or of breadth-first searches."""
    library = compile_library(("betweenness",), host(), lambda: link([_levels(), _lengths()]))
    return library.function("lengths" if weighted else "levels")


def _each_source(b: Body, search: Callable[[str, Variable], None], back: Callable[[str, str], None]) -> Emitter:
    """Emit a search from each source, which fills `order`, and the way back through the order."""
    em, found = b.em, Variable(b.em)

    def source(i: str, _: list[str]) -> None:
        s = b.get("sources", i)
        found.set(0)
        search(s, found)
        count = found.get()

        def count_ends() -> None:
            b.put("nodes", s, b.f("fadd", b.get("nodes", s), b.as_float(str(em.sub(count, 1)))))

        em.branch(b.is_("ne", b["ends"], 0), count_ends)
        em.loop(0, count, 1, lambda k, _: back(s, b.get("order", em.sub(em.sub(count, 1), k))))

    em.loop(b["first"], b["last"], 1, source)
    return b.done()


def _put(b: Body, v: str, **fields: str | int) -> None:
    for field, value in fields.items():
        b.put("records", v, value, field)


def _worth(b: Body, s: str, v: str) -> str:
    """Emit the weight of a path from s to v."""
    nothing = b.both(b.is_("eq", s, v), b.is_("eq", b["own"], 0))
    return b.select(nothing, F64.literal(0), b.get("worth", v))


def _keep(b: Body, s: str, v: str, share: str) -> None:
    def add() -> None:
        more = b.select(b.is_("ne", b["ends"], 0), F64.literal(1), F64.literal(0))
        b.put("nodes", v, b.f("fadd", b.get("nodes", v), b.f("fadd", share, more)))

    b.em.branch(b.is_("ne", s, v), add)


def _keep_edge(b: Body, e: str, share: str) -> None:
    em = b.em

    def add() -> None:
        place = em.at("double", em.let(f"inttoptr i64 {b['edges']} to ptr"), e)
        em.store("double", b.f("fadd", em.load("double", place, 8), share), place, 8)

    em.branch(b.is_("ne", b["edges"], 0), add)


def _levels() -> Emitter:
    """Emit ``levels(args)``: an edge of shortest paths leads one level further."""
    b = Body("levels", BetweennessWords, _NUMBERS, **_ARRAYS, records=_LEVEL)
    em = b.em

    def edges(u: str) -> tuple[str, str]:
        return b.get("starts", u), b.get("starts", em.add(u, 1))

    def search(s: str, found: Variable) -> None:
        em.loop(0, b["n"], 1, lambda v, _: _put(b, v, level=-1))

        def find(v: str, level: str, paths: str) -> None:
            _put(b, v, level=level, paths=paths)
            b.put("order", found.get(), v)
            found.add(1)

        def turn(carried: list[str]) -> list[str]:
            u = b.get("order", carried[0])
            paths, further = b.get("records", u, "paths"), str(em.add(b.get("records", u, "level"), 1))

            def edge(e: str, _: list[str]) -> None:
                v = b.get("heads", e)
                level = b.get("records", v, "level")

                def more() -> None:
                    _put(b, v, paths=b.f("fadd", b.get("records", v, "paths"), paths))

                new = b.is_("slt", level, 0)
                em.branch(new, lambda: find(v, further, paths), lambda: em.branch(b.is_("eq", level, further), more))

            em.loop(*edges(u), 1, edge)
            return [str(em.add(carried[0], 1))]

        find(s, "0", F64.literal(1))
        em.repeat([("i64", "0")], lambda carried: b.is_("slt", carried[0], found.get()), turn)

    def back(s: str, u: str) -> None:
        paths, further = b.get("records", u, "paths"), str(em.add(b.get("records", u, "level"), 1))

        def edge(e: str, carried: list[str]) -> list[str]:
            v = b.get("heads", e)
            onward = b.is_("eq", b.get("records", v, "level"), further)
            share = b.select(onward, b.f("fmul", paths, b.get("records", v, "paths")), F64.literal(0))
            em.branch(onward, lambda: _keep_edge(b, e, share))
            return [b.f("fadd", carried[0], share)]

        (share,) = em.loop(*edges(u), 1, edge, [("double", F64.literal(0))])
        _put(b, u, paths=b.f("fdiv", b.f("fadd", _worth(b, s, u), share), paths))
        _keep(b, s, u, share)

    return _each_source(b, search, back)


def _lengths() -> Emitter:
    """Emit ``lengths(args)`` by NetworkX's rules, including its order of ties."""
    b = Body("lengths", BetweennessWords, _NUMBERS, **_ARRAYS, records=_LENGTH)
    em = b.em

    def earlier(new: Sequence[Value], old: Sequence[Value]) -> str:
        """Compare entries by distance, then by number."""
        first = b.is_("slt", new[1].name, old[1].name)
        return b.either(b.less(new[0].name, old[0].name), b.both(em.let(f"fcmp oeq double {new[0].name}, {old[0].name}"), first))

    heap = Heap(Lowering(em, host(), 1), (F64, I64), b["queue"], b["room"], earlier)
    pushed = Variable(em)

    def push(v: str, distance: str) -> None:
        heap.push(v, [Value(distance, F64), Value(pushed.get(), I64)])
        pushed.add(1)

    def record(v: str, field: str) -> str:
        return b.get("records", v, field)

    def search(s: str, found: Variable) -> None:
        zero = F64.literal(0)
        em.loop(0, b["n"], 1, lambda v, _: _put(b, v, found=_NEW, edge=-1, paths=zero, share=zero))
        _put(b, s, paths=F64.literal(1), distance=zero, before=s, found=_SEEN)
        push(s, zero)

        def turn(_: list[str]) -> list[str]:
            u, (walk, *_number) = heap.pop()

            def leave() -> None:
                _put(b, u, paths=b.f("fadd", record(u, "paths"), record(record(u, "before"), "paths")), found=_FINAL)
                b.put("order", found.get(), u)
                found.add(1)
                em.loop(b.get("starts", u), b.get("starts", em.add(u, 1)), 1, edge)

            def edge(e: str, _: list[str]) -> None:
                v = b.get("heads", e)
                known, distance = record(v, "found"), b.f("fadd", walk.name, b.get("weights", e))
                shorter = b.either(b.is_("eq", known, _NEW), b.both(b.is_("eq", known, _SEEN), b.less(distance, record(v, "distance"))))

                def take() -> None:
                    _put(b, v, distance=distance, found=_SEEN, paths=zero, before=u, edge=e)
                    b.put("links", e, -1)
                    push(v, distance)

                def tie() -> None:
                    _put(b, v, paths=b.f("fadd", record(v, "paths"), record(u, "paths")))
                    b.put("links", e, record(v, "edge"))
                    _put(b, v, edge=e)

                em.branch(shorter, take, lambda: em.branch(em.let(f"fcmp oeq double {distance}, {record(v, 'distance')}"), tie))

            em.branch(b.is_("ne", record(u, "found"), _FINAL), leave)
            return []

        em.repeat([], lambda _: heap.filled(), turn)

    def back(s: str, w: str) -> None:
        each = b.f("fdiv", b.f("fadd", _worth(b, s, w), record(w, "share")), record(w, "paths"))

        def step(carried: list[str]) -> list[str]:
            (e,) = carried
            v = b.get("tails", e)
            part = b.f("fmul", record(v, "paths"), each)
            _put(b, v, share=b.f("fadd", record(v, "share"), part))
            _keep_edge(b, e, part)
            return [b.get("links", e)]

        em.repeat([("i64", record(w, "edge"))], lambda carried: b.is_("sge", carried[0], 0), step)
        _keep(b, s, w, record(w, "share"))  # a loop of weight 0 has handed it on to itself

    return _each_source(b, search, back)
