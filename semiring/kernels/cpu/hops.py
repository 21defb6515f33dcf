"""Hop counts from many vertices at once, one bit per source: compiled breadth-first search of a graph in compressed rows, over threads.

Each vertex has a word with a bit for every source (Then et al., 2014). In round k, frontier(v) ← ∪ frontier(u) ∖ reached(v) over the edges
uv: the new bits are the sources at k hops from v. Searches that meet at a vertex in the same round share the scan of its edges. Sources
near each other meet early: ``hops_order`` numbers all vertices in breadth-first order.

``hops_rows`` records the level of each vertex from each of 64 sources. ``hops_place_4`` and so on map levels to elements, named by the
bytes of an element, and write rows. ``hops_sums`` keeps no rows: each vertex has the number of the 512 sources that reach the vertex, the
sum of the hop counts, and the largest.
"""

from __future__ import annotations

import functools
import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import Scratch, run, take_scratch
from semiring.common.progress import Meter
from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import Body, Variable, bit_of
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import I64, Emitter, Scalar, scalar_type
from semiring.kernels.hardware import host

__all__ = ["HopSums", "hop_order", "hop_rows", "hop_sums", "hops_ir"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_TOGETHER, _SUMMED = 64, 512
"""The sources of one search: a word of bits for ``hops_rows``, a vector of words for ``hops_sums``."""

_LEVELS = 1 << 16
"""The number of levels: 0 for a vertex that was not found, k + 1 for a vertex found at k hops."""

_LEVEL = Scalar("u", 2)

_BLOCK = 8
"""Vertices whose elements are written side by side: a cache line of a row of float64."""

_PROBES, _DEPTH, _SPREAD, _REACH = 8, 256, 2, 3
"""Limits of the probing searches, which decide if sharing pays. The `_PROBES` searches must end within `_DEPTH` rounds and a round for each
`_SPREAD` sources, because longer searches rarely meet, and see at least an edge for each `_REACH` vertices."""

_HopWords = namedtuple(
    "_HopWords",
    "n starts heads sources searches reflexive limit reached frontier coming listed levels reaching total last found rounds left looked",
    defaults=(0, 0, 0, 0, 0, 0, 0, 0),
)
"""The arguments of ``hops_rows`` and ``hops_sums``.

The `searches` begin at `sources`, found at 0 hops if `reflexive`. `reached`, `frontier` and `coming` have a word, or a
vector of words, for each vertex; `listed` has room for two lists of vertices. `levels` has 64 levels a vertex. `reaching`, `total` and
`last` are sums and maxima for each vertex, `found` counts for each round. The function makes at most `limit` rounds. It sets `rounds`
to the rounds made, `left` to the candidates of the next round, and `looked` to the edges seen."""

_RESULTS = {name: _HopWords._fields.index(name) for name in ("rounds", "left", "looked")}

_PlaceWords = namedtuple("_PlaceWords", "n levels table rows which searches")
"""The arguments of ``hops_place_4`` and so on: `table` has an element for each level, and `which` the row of each source."""

_OrderWords = namedtuple("_OrderWords", "n starts heads order place")
"""The arguments of ``hops_order``; `place` is −1 for each vertex at first."""


class HopSums(NamedTuple):
    """Sums over the hop counts from some sources.

    For each vertex: the number of sources `reaching` the vertex, the `total` of their hop counts, and the `last` (largest) hop count.
    `found` has the number of pairs at 0, 1, 2, … hops.
    """

    reaching: Array
    total: Array
    last: Array
    found: Array


def hop_rows(
    graph: tuple[Array, Array],
    sources: Array,
    values: Values,
    table: Callable[[int], Values],
    threads: int,
    *,
    reflexive: bool = True,
    meter: Meter | None = None,
) -> int | None:
    """Fill rows with the elements that belong to the hop counts from their sources.

    Return the number of edges seen; None, with undefined rows, if searches would share too little. `graph` is in compressed rows (starts
    and heads); `values` are contiguous arrays of shape (s, n). ``table(k)`` returns the elements of no path, and of the paths of 0 … k
    edges. `reflexive` counts the empty walk. `meter` advances by n + m steps for each search.
    """
    count, n, lock = len(sources), len(graph[0]) - 1, threading.Lock()
    step = min(_TOGETHER, -(-count // threads))
    few = _HopSearches("hops_rows", graph, sources[:: -(-count // _PROBES)], reflexive)
    probed, _ = few.run(slice(0, _PROBES), 0, limit=min(_DEPTH, count // _SPREAD))
    if probed.left or probed.looked * _REACH < probed.searches * n:
        return None
    which = np.arange(count) if count <= step else np.argsort(hop_order(graph)[sources], kind="stable")
    search = _HopSearches("hops_rows", graph, sources[which], reflexive)
    looked, known, complete = 0, table(0), True

    def rows(first: int, worker: int) -> None:
        nonlocal looked, known, complete
        found, levels = search.run(slice(first, first + step), worker)
        with lock:
            looked += found.looked
            complete = complete and not found.left
            if not complete:
                return
            if len(known[0]) <= found.rounds:
                known = table(found.rounds)
            elements = known
        for array, each in zip(values, elements, strict=True):
            place = pack(_PlaceWords(n, levels, address(each), address(array), address(which) + first * which.itemsize, found.searches))
            _function(f"hops_place_{array.itemsize}")(place, found.searches * n)
        if meter is not None:
            meter.add(found.searches * (n + len(graph[1])), tell=worker == 0)

    run(rows, range(0, count, step), threads)
    return looked if complete else None


def hop_sums(graph: tuple[Array, Array], sources: Array, threads: int, *, meter: Meter | None = None) -> HopSums | None:
    """Sum the hop counts from all sources to each vertex, itself included; None if a path has 65,535 edges. See `hop_rows`."""
    n, count, deepest = len(graph[0]) - 1, len(sources), [0] * threads
    step = min(_SUMMED, -(-count // threads))
    which = np.argsort(hop_order(graph)[sources], kind="stable")
    search = _HopSearches("hops_sums", graph, sources[which], True)

    def sums(first: int, worker: int) -> None:
        found, _ = search.run(slice(first, first + step), worker)
        deepest[worker] = max(deepest[worker], _LEVELS if found.left else found.rounds)
        if meter is not None:
            meter.add(found.searches * (n + len(graph[1])), tell=worker == 0)

    run(sums, range(0, count, step), threads)
    if max(deepest) == _LEVELS:
        return None
    reaching, total, last, found = (np.array([each[i] for each in search.counts.values()]) for i in range(4))
    found = found.sum(axis=0)
    return HopSums(reaching.sum(axis=0), total.sum(axis=0), last.max(axis=0), found[: int(np.flatnonzero(found).max(initial=-1)) + 1])


def hop_order(graph: tuple[Array, Array]) -> Array:
    """Return each vertex's place in the order in which breadth-first searches find all vertices, so near ones are close. O(n + m)."""
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in graph)
    n = len(starts) - 1
    order, place = np.empty(n + 1, np.int64), np.full(n, -1, np.int64)
    arguments = pack(_OrderWords(n, *map(address, (starts, heads, order, place))))
    _function("hops_order")(arguments, 10 * (n + len(heads)))
    return place


class _HopSearches:
    """Searches from some sources at a time; each worker has separate memory, and for sums separate `counts`."""

    def __init__(self, name: str, graph: tuple[Array, Array], sources: Array, reflexive: bool) -> None:
        self.function, self.sums, self.reflexive = _function(name), name == "hops_sums", reflexive
        self.starts, self.heads, self.sources = (np.ascontiguousarray(v, np.int64) for v in (*graph, sources))
        self.counts: dict[int, list[Array]] = {}
        self._memory: dict[int, Scratch] = {}

    def run(self, some: slice, worker: int, limit: int = _LEVELS - 1) -> tuple[_HopWords, int]:
        """Search from some of the sources; return the arguments with their results, and the address of the levels."""
        n, sources = len(self.starts) - 1, self.sources[some]
        width = (_SUMMED if self.sums else _TOGETHER) // 8
        sizes = (width * n, width * n, width * n, 8 * (2 * n + 1), 0 if self.sums else 2 * _TOGETHER * n)
        if worker not in self._memory:
            self._memory[worker] = take_scratch(sum(sizes) + CACHE_LINE * len(sizes))
            self.counts[worker] = [np.zeros(size, np.int64) for size in (n, n, n, min(n, _LEVELS) + 1)] if self.sums else []
        places = [self._memory[worker].address]
        for size in sizes[:-1]:
            places.append(places[-1] + size + -size % CACHE_LINE)
        graph, counts = map(address, (self.starts, self.heads, sources)), map(address, self.counts[worker])
        words = _HopWords(*[n, *graph, len(sources), self.reflexive, min(limit, _LEVELS - 1), *places, *counts])
        arguments = pack(words)
        self.function(arguments, 40 * (n + len(self.heads)))
        return words._replace(**{name: arguments[i] for name, i in _RESULTS.items()}), words.levels


@functools.cache
def _function(name: str) -> Function:
    return compile_library((name,), host(), lambda: hops_ir(name)).function(name)


def hops_ir(name: str) -> str:
    """Generate the LLVM IR of a function."""
    if name == "hops_order":
        return link([_ordered()])
    return link([_placed(name) if name.startswith("hops_place") else _HopKernel(name).function()])


class _HopKernel:
    """Generates ``hops_rows`` or ``hops_sums``."""

    def __init__(self, name: str) -> None:
        self.sums = name == "hops_sums"
        self.width = (_SUMMED if self.sums else _TOGETHER) // 64
        self.ir = I64.vector(self.width)
        self.b = Body(name, _HopWords, "n searches reflexive limit", **dict.fromkeys(_HopWords._fields, np.int64))
        self.em = self.b.em
        self.candidates = self.em.at("i64", self.b["listed"], self.b["n"])

    def function(self) -> Emitter:
        em, b = self.em, self.b
        active, found, looked = (Variable(em) for _ in range(3))
        with em.each(0, b["n"]) as v:
            self._clear(v)
        (waiting,) = em.loop(0, b["searches"], 1, self._begin, [("i64", "0")])

        def expand(i: str, carried: list[str]) -> list[str]:
            u = b.get("listed", i)
            here, (first, last) = self._get("frontier", u), b.row(u)
            looked.add(em.sub(last, first))
            return em.loop(first, last, 1, lambda e, size: [self._unite(b.get("heads", e), here, size[0])], [("i64", carried[0])])

        def more(values: list[str]) -> str:
            level, waiting = values
            return b.both(b.is_("ne", waiting, 0), b.is_("slt", level, b["limit"]))

        with em.turns([("i64", "0"), ("i64", waiting)], more) as ((level, waiting), new):
            active.set(0)
            found.set(0)
            # Round 0 finds the sources themselves.
            counts = em.splat(em.select_i64(b.is_("eq", level, 0), em.let(f"sub i64 0, {b['reflexive']}"), -1), I64, self.width)
            with em.each(0, waiting) as i:
                v = em.get(I64, self.candidates, i)
                before = self._get("reached", v)
                fresh = em.let(f"and {self.ir} {self._get('coming', v)}, {em.let(f'xor {self.ir} {before}, {self._all(-1)}')}")
                self._put("coming", v, self._all(0))
                with em.when(self._some(fresh)):
                    counted = em.let(f"and {self.ir} {fresh}, {counts}")
                    self._put("frontier", v, fresh)
                    self._put("reached", v, em.let(f"or {self.ir} {before}, {counted}"))
                    b.put("listed", active.get(), v)
                    active.add(1)
                    if self.sums:
                        found.add(self._sum(v, counted, level))
                    else:
                        self._note(v, counted, level)
            if self.sums:
                self._count("found", level, found.get())
            new += [str(em.add(level, 1)), *em.loop(0, active.get(), 1, expand, [("i64", "0")])]
        for word, value in (("rounds", level), ("left", waiting), ("looked", looked.get())):
            b.answer(word, value)
        return b.done()

    def _clear(self, v: str) -> None:
        for name in ("reached", "coming"):
            self._put(name, v, self._all(0))
        if not self.sums:
            kind = _LEVEL.vector(_TOGETHER)
            self.em.store(kind, "zeroinitializer", self.em.at(kind, self.b["levels"], v), 2)

    def _begin(self, i: str, carried: list[str]) -> list[str]:
        """Set the bit of source i."""
        v, (word, bit) = self.b.get("sources", i), bit_of(self.em, i)
        if self.width > 1:
            bit = self.em.let(f"insertelement {self.ir} {self._all(0)}, i64 {bit}, i64 {word}")
        return [self._unite(v, bit, carried[0])]

    def _unite(self, v: str, bits: str, size: str) -> str:
        """Unite bits into the word of a vertex, which becomes a candidate; return the number of candidates."""
        em, old = self.em, self._get("coming", v)
        self._put("coming", v, em.let(f"or {self.ir} {old}, {bits}"))
        em.put(I64, v, self.candidates, size)
        return str(em.add(size, em.let(f"zext i1 {em.let(f'xor i1 {self._some(old)}, true')} to i64")))

    def _note(self, v: str, bits: str, level: str) -> None:
        """Record the level of a vertex for the sources of some bits."""
        em, kind = self.em, _LEVEL.vector(_TOGETHER)
        place = em.at(kind, self.b["levels"], v)
        number = em.splat(em.let(f"trunc i64 {em.add(level, 1)} to {_LEVEL.ir}"), _LEVEL, _TOGETHER)
        there = em.let(f"bitcast i64 {bits} to <{_TOGETHER} x i1>")
        em.store(kind, em.let(f"select <{_TOGETHER} x i1> {there}, {kind} {number}, {kind} {em.load(kind, place, 2)}"), place, 2)

    def _sum(self, v: str, bits: str, level: str) -> str:
        """Add the sources that find a vertex to its sums; return the number of sources."""
        em, b = self.em, self.b
        each = em.call(f"ctpop.{I64.overload(self.width)}", self.ir, (self.ir, bits))
        count = em.call(f"vector.reduce.add.{I64.overload(self.width)}", "i64", (self.ir, each))
        self._count("reaching", v, count)
        self._count("total", v, em.mul(count, level))
        last = em.select_i64(b.is_("ne", count, 0), level, -1)
        b.put("last", v, em.call("smax.i64", "i64", ("i64", b.get("last", v)), ("i64", last)))
        return count

    def _count(self, name: str, i: str, more: str | int) -> None:
        self.b.put(name, i, self.em.add(self.b.get(name, i), more))

    def _get(self, name: str, v: str) -> str:
        return self.em.load(self.ir, self.em.at(self.ir, self.b[name], v), 8)

    def _put(self, name: str, v: str, bits: str) -> None:
        self.em.store(self.ir, bits, self.em.at(self.ir, self.b[name], v), 8)

    def _all(self, bits: int) -> str:
        return I64.constant(bits, self.width)

    def _some(self, bits: str) -> str:
        if self.width == 1:
            return self.b.is_("ne", bits, 0)
        words = self.em.let(f"icmp ne {self.ir} {bits}, zeroinitializer")
        return self.em.let(f"icmp ne i{self.width} {self.em.let(f'bitcast <{self.width} x i1> {words} to i{self.width}')}, 0")


def _placed(name: str) -> Emitter:
    """Emit ``hops_place_4`` and so on: elements instead of levels, and rows instead of 64 levels a vertex."""
    element = np.dtype(f"u{name.rpartition('_')[2]}")
    b = Body(name, _PlaceWords, "n searches", levels=_LEVEL.dtype, table=element, rows=element, which=np.int64)
    em, n, scalar = b.em, b["n"], scalar_type(element)
    whole = em.round_down(n, _BLOCK)
    for start, stop, several in ((0, whole, _BLOCK), (whole, n, 1)):
        with em.each(start, stop, several) as v, em.each(0, b["searches"]) as s:
            number = b.get("which", s)
            to = em.at(scalar.ir, b["rows"], em.add(em.mul(number, n), v))
            for j in range(several):
                level = b.get("levels", em.add(em.mul(em.add(v, j), _TOGETHER), s))
                em.put(scalar, b.get("table", em.let(f"zext {_LEVEL.ir} {level} to i64")), to, j)
    return b.done()


def _ordered() -> Emitter:
    """Emit ``hops_order``: breadth-first searches, each from the first vertex that no search before has found."""
    b = Body("hops_order", _OrderWords, "n", **dict.fromkeys(("starts", "heads", "order", "place"), np.int64))
    em = b.em

    def find(v: str, size: str) -> str:
        """Append the vertex to the order unless it is there already; return the size of the order."""
        old = b.get("place", v)
        fresh = b.is_("slt", old, 0)
        b.put("place", v, em.select_i64(fresh, size, old))
        b.put("order", size, v)
        return str(em.add(size, em.let(f"zext i1 {fresh} to i64")))

    def root(r: str, carried: list[str]) -> list[str]:
        both = [("i64", carried[0]), ("i64", find(r, carried[0]))]
        with em.turns(both, lambda values: b.is_("slt", *values)) as ((done, size), new):
            edges = b.row(b.get("order", done))
            new.append(str(em.add(done, 1)))
            new += em.loop(*edges, 1, lambda e, size: [find(b.get("heads", e), size[0])], [("i64", size)])
        return [done]

    em.loop(0, b["n"], 1, root, [("i64", "0")])
    return b.done()
