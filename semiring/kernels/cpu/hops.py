"""Hop counts from many sources at once, a bit for each source: compiled breadth-first search of a graph in compressed rows.

Then et al. (2014): each vertex has a word with a bit for every source. A round unites the words of the frontier into the words of the
neighbours; new bits are reached at this number of hops: frontier(v) ← ∪ frontier(u) ∖ reached(v) over the edges uv. Searches that meet at
a vertex in the same round visit its edges together.

Near sources meet early: ``hops_order`` numbers all vertices in the order of successive searches.

``hops_rows`` writes the level of each vertex from each of 64 sources, and ``hops_place_4`` etc. write the elements of levels, of 4 bytes
etc., into rows. ``hops_sums`` counts, for each vertex, how many of 512 sources reach the vertex, the sum of hops, and the last level,
without a row.
"""

from __future__ import annotations

from typing import NamedTuple

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.compiler import link
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar

__all__ = ["LEVELS", "SUMMED", "TOGETHER", "HopSearchWords", "OrderWords", "PlaceWords", "hops_ir"]

TOGETHER, SUMMED = 64, 512
"""Sources of one search: of ``hops_rows``, a word of them, and of ``hops_sums``, a vector of words."""

LEVELS = 1 << 16
"""A level is 0 where a vertex was not found, and k + 1 where that was at k hops."""

_LEVEL = Scalar("u", 2)

_BLOCK = 8
"""Vertices whose elements are placed side by side: a cache line of a row of float64."""


class HopSearchWords(NamedTuple):
    """The arguments of ``hops_rows`` and ``hops_sums``.

    `sources` are those of so many `searches`, reached at 0 hops if `reflexive`. `reached`, `frontier` and `coming` have a word, or
    a vector of words, for each vertex, and `listed` has room for two lists of vertices. `levels` are 64 a vertex. `reaching`, `total` and
    `last` count up for each vertex, and `found` for each round. There are at most `limit` rounds; `rounds` becomes how many there were,
    `left` how many vertices might have been found in the next one, and `looked` how many edges were looked at.
    """

    n: int
    starts: int
    heads: int
    sources: int
    searches: int
    reflexive: int
    limit: int
    reached: int
    frontier: int
    coming: int
    listed: int
    levels: int = 0
    reaching: int = 0
    total: int = 0
    last: int = 0
    found: int = 0
    rounds: int = 0
    left: int = 0
    looked: int = 0


class PlaceWords(NamedTuple):
    """Arguments of ``hops_place_4`` etc.: `table` has an element for each level, and `which` the row of each source."""

    n: int
    levels: int
    table: int
    rows: int
    which: int
    searches: int


class OrderWords(NamedTuple):
    """Arguments of ``hops_order``: `place` of each vertex is −1 at first."""

    n: int
    starts: int
    heads: int
    order: int
    place: int


def hops_ir(name: str) -> str:
    """The LLVM IR of a function."""
    if name == "hops_order":
        return link([_ordered()])
    return link([_placed(name) if name.startswith("hops_place") else _HopSearch(name).function()])


class _HopSearch:
    """Generates ``hops_rows`` or ``hops_sums``."""

    def __init__(self, name: str) -> None:
        self.em = em = Emitter(name, ENTRY)
        self.sums = name == "hops_sums"
        self.width = (SUMMED if self.sums else TOGETHER) // 64
        self.ir = I64.vector(self.width)
        self.args = args = Arguments(HopSearchWords)
        numbers = {"n", "searches", "reflexive", "limit"}
        self.x = {word: (args.load if word in numbers else args.pointer)(em, word) for word in HopSearchWords._fields[:-3]}
        self.candidates = em.at("i64", self.x["listed"], self.x["n"])

    def function(self) -> Emitter:
        """The function."""
        em, x = self.em, self.x
        active, found, looked = (em.variable(0) for _ in range(3))
        em.loop(0, x["n"], 1, self._clear)
        (waiting,) = em.loop(0, x["searches"], 1, self._begin, [("i64", "0")])

        def turn(values: list[str]) -> list[str]:
            level, waiting = values
            em.store("i64", "0", active, 8)
            em.store("i64", "0", found, 8)
            # What is found at 0 hops are the sources themselves.
            first = em.let(f"icmp eq i64 {level}, 0")
            counts = em.splat(em.select_i64(first, em.let(f"sub i64 0, {x['reflexive']}"), -1), I64, self.width)

            def candidate(i: str, _: list[str]) -> None:
                v = em.load("i64", em.at("i64", self.candidates, i), 8)
                before = self._get("reached", v)
                new = em.let(f"and {self.ir} {self._get('coming', v)}, {em.let(f'xor {self.ir} {before}, {self._all(-1)}')}")
                self._put("coming", v, self._all(0))

                def take() -> None:
                    counted = em.let(f"and {self.ir} {new}, {counts}")
                    self._put("frontier", v, new)
                    self._put("reached", v, em.let(f"or {self.ir} {before}, {counted}"))
                    size = em.load("i64", active, 8)
                    em.store("i64", v, em.at("i64", x["listed"], size), 8)
                    em.store("i64", str(em.add(size, 1)), active, 8)
                    if self.sums:
                        em.store("i64", str(em.add(em.load("i64", found, 8), self._sum(v, counted, level))), found, 8)
                    else:
                        self._note(v, counted, level)

                em.branch(self._some(new), take)

            em.loop(0, waiting, 1, candidate)
            if self.sums:
                self._count("found", level, em.load("i64", found, 8))

            def expand(i: str, carried: list[str]) -> list[str]:
                u = em.load("i64", em.at("i64", x["listed"], i), 8)
                here = self._get("frontier", u)
                first, last = (em.load("i64", em.at("i64", x["starts"], e), 8) for e in (u, em.add(u, 1)))
                em.store("i64", str(em.add(em.load("i64", looked, 8), str(em.sub(last, first)))), looked, 8)

                def edge(e: str, carried: list[str]) -> list[str]:
                    v = em.load("i64", em.at("i64", x["heads"], e), 8)
                    return [self._unite(v, here, carried[0])]

                return em.loop(first, last, 1, edge, [("i64", carried[0])])

            (waiting,) = em.loop(0, em.load("i64", active, 8), 1, expand, [("i64", "0")])
            return [str(em.add(level, 1)), waiting]

        def more(values: list[str]) -> str:
            level, waiting = values
            some, goes_on = em.let(f"icmp ne i64 {waiting}, 0"), em.let(f"icmp slt i64 {level}, {x['limit']}")
            return em.let(f"and i1 {some}, {goes_on}")

        level, waiting = em.repeat([("i64", "0"), ("i64", waiting)], more, turn)
        for word, value in (("rounds", level), ("left", waiting), ("looked", em.load("i64", looked, 8))):
            em.store("i64", value, self.args.place(em, word), 8)
        em.line("ret void")
        return em

    def _clear(self, v: str, _: list[str]) -> None:
        """Nothing has been found yet."""
        for name in ("reached", "coming"):
            self._put(name, v, self._all(0))
        if not self.sums:
            kind = _LEVEL.vector(TOGETHER)
            self.em.store(kind, "zeroinitializer", self.em.at(kind, self.x["levels"], v), 2)

    def _begin(self, i: str, carried: list[str]) -> list[str]:
        """The bit of source i."""
        em = self.em
        v = em.load("i64", em.at("i64", self.x["sources"], i), 8)
        word, bit = em.let(f"lshr i64 {i}, 6"), em.let(f"shl i64 1, {em.let(f'and i64 {i}, 63')}")
        lanes = self._all(0)
        if self.width == 1:
            return [self._unite(v, bit, carried[0])]
        return [self._unite(v, em.let(f"insertelement {self.ir} {lanes}, i64 {bit}, i64 {word}"), carried[0])]

    def _unite(self, v: str, bits: str, size: str) -> str:
        """Unite bits into a vertex, which becomes a candidate; emit the number of candidates."""
        em, old = self.em, self._get("coming", v)
        self._put("coming", v, em.let(f"or {self.ir} {old}, {bits}"))
        em.store("i64", v, em.at("i64", self.candidates, size), 8)
        return str(em.add(size, em.let(f"zext i1 {em.let(f'xor i1 {self._some(old)}, true')} to i64")))

    def _note(self, v: str, bits: str, level: str) -> None:
        """Write down the level at which a vertex is found from the sources of some bits."""
        em, kind = self.em, _LEVEL.vector(TOGETHER)
        place = em.at(kind, self.x["levels"], v)
        number = em.splat(em.let(f"trunc i64 {em.add(level, 1)} to {_LEVEL.ir}"), _LEVEL, TOGETHER)
        there = em.let(f"bitcast i64 {bits} to <{TOGETHER} x i1>")
        em.store(kind, em.let(f"select <{TOGETHER} x i1> {there}, {kind} {number}, {kind} {em.load(kind, place, 2)}"), place, 2)

    def _sum(self, v: str, bits: str, level: str) -> str:
        """Count the sources of some bits, which find a vertex: how many these are."""
        em = self.em
        each = em.call(f"ctpop.{I64.overload(self.width)}", self.ir, (self.ir, bits))
        count = em.call(f"vector.reduce.add.{I64.overload(self.width)}", "i64", (self.ir, each))
        self._count("reaching", v, count)
        self._count("total", v, str(em.mul(count, level)))
        place = em.at("i64", self.x["last"], v)
        some = em.let(f"icmp ne i64 {count}, 0")
        em.store("i64", em.call("smax.i64", "i64", ("i64", em.load("i64", place, 8)), ("i64", em.select_i64(some, level, -1))), place, 8)
        return count

    def _count(self, name: str, i: str, more: str) -> None:
        """A number counts up."""
        place = self.em.at("i64", self.x[name], i)
        self.em.store("i64", str(self.em.add(self.em.load("i64", place, 8), more)), place, 8)

    def _get(self, name: str, v: str) -> str:
        """The bits of a vertex."""
        return self.em.load(self.ir, self.em.at(self.ir, self.x[name], v), 8)

    def _put(self, name: str, v: str, bits: str) -> None:
        """Write them."""
        self.em.store(self.ir, bits, self.em.at(self.ir, self.x[name], v), 8)

    def _all(self, bits: int) -> str:
        """A constant in all words."""
        return I64.constant(bits, self.width)

    def _some(self, bits: str) -> str:
        """Emit True if a bit is set."""
        if self.width == 1:
            return self.em.let(f"icmp ne i64 {bits}, 0")
        words = self.em.let(f"icmp ne {self.ir} {bits}, zeroinitializer")
        return self.em.let(f"icmp ne i{self.width} {self.em.let(f'bitcast <{self.width} x i1> {words} to i{self.width}')}, 0")


def _placed(name: str) -> Emitter:
    """``hops_place_4(args)`` and so on: what levels stand for, from 64 a vertex to rows."""
    em, args = Emitter(name, ENTRY), Arguments(PlaceWords)
    n, count = (args.load(em, word) for word in ("n", "searches"))
    levels, table, rows, which = (args.pointer(em, word) for word in ("levels", "table", "rows", "which"))
    size = int(name.rpartition("_")[2])
    element = Scalar("u", size)
    whole = em.round_down(n, _BLOCK)

    def place(start: str, several: int) -> None:
        def row(s: str, _: list[str]) -> None:
            number = em.load("i64", em.at("i64", which, s), 8)
            to = em.at(element.ir, rows, em.add(em.mul(number, n), start))
            for j in range(several):
                at = em.at(_LEVEL.ir, levels, em.add(em.mul(em.add(start, j), TOGETHER), s))
                level = em.let(f"zext {_LEVEL.ir} {em.load(_LEVEL.ir, at, 2)} to i64")
                em.store(element.ir, em.load(element.ir, em.at(element.ir, table, level), size), em.at(element.ir, to, j), size)

        em.loop(0, count, 1, row)

    em.loop(0, whole, _BLOCK, lambda v, _: place(v, _BLOCK))
    em.loop(whole, n, 1, lambda v, _: place(v, 1))
    em.line("ret void")
    return em


def _ordered() -> Emitter:
    """Generate ``hops_order(args)``: vertices in the order of breadth-first searches from each vertex not yet found."""
    em, args = Emitter("hops_order", ENTRY), Arguments(OrderWords)
    n = args.load(em, "n")
    starts, heads, order, place = (args.pointer(em, word) for word in OrderWords._fields[1:])

    def find(v: str, size: str) -> str:
        """Append the vertex to the order, unless listed already; emit the length."""
        there, end = em.at("i64", place, v), em.at("i64", order, size)
        old = em.load("i64", there, 8)
        fresh = em.let(f"icmp slt i64 {old}, 0")
        em.store("i64", em.select_i64(fresh, size, old), there, 8)
        em.store("i64", v, end, 8)
        return str(em.add(size, em.let(f"zext i1 {fresh} to i64")))

    def root(r: str, carried: list[str]) -> list[str]:
        def turn(values: list[str]) -> list[str]:
            done, size = values
            u = em.load("i64", em.at("i64", order, done), 8)
            first, last = (em.load("i64", em.at("i64", starts, e), 8) for e in (u, em.add(u, 1)))

            def edge(e: str, carried: list[str]) -> list[str]:
                return [find(em.load("i64", em.at("i64", heads, e), 8), carried[0])]

            return [str(em.add(done, 1)), *em.loop(first, last, 1, edge, [("i64", size)])]

        both = [("i64", carried[0]), ("i64", find(r, carried[0]))]
        return em.repeat(both, lambda values: em.let(f"icmp slt i64 {values[0]}, {values[1]}"), turn)[:1]

    em.loop(0, n, 1, root, [("i64", "0")])
    em.line("ret void")
    return em
