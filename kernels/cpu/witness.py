"""From the slab that won to the k that won: the second pass of a witness product.

Where ``via`` says −2 − slab, the k is the first in that slab whose a⊗b equals C. A row of A and a row of the transposed B are
read a vector at a time, so an entry costs a few cache lines, whatever the depth.
"""

from __future__ import annotations

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import I32, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.tile import Tile

__all__ = ["WitnessKernel"]

_STRIP = 16
"""Columns of B that are transposed together."""


class WitnessKernel:
    """Generates ``transpose(args)`` and ``resolve(args)``."""

    def __init__(self, rep: Representation, target: Target, tile: Tile) -> None:
        self.rep, self.target, self.tile = rep, target, tile
        self.components = range(len(rep.outer))
        self.args = Arguments(len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Both functions."""
        return [self._transpose(), self._resolve()]

    def _bases(self, em: Emitter) -> list[str]:
        """Where each component of the transposed B begins."""
        size = em.mul(self.args.load(em, "n"), self.args.load(em, "transposed_rows"))
        bases = [self.args.pointer(em, "transposed")]
        for c in list(self.components)[:-1]:
            bases.append(em.at("i8", bases[-1], em.align64(em.mul(size, self.rep.inner[c].bytes))))
        return bases

    def _transpose(self) -> Emitter:
        """Inner elements of Bᵀ, [n][transposed_rows]."""
        em = Emitter("transpose", "ptr %args")
        low = Lowering(em, self.target, 1)
        n, k, long = (self.args.load(em, x) for x in ("n", "k", "transposed_rows"))
        for c, base in enumerate(self._bases(em)):
            self._transpose_component(em, low, c, base, n, k, long)
        em.line("ret void")
        return em

    def _transpose_component(self, em: Emitter, low: Lowering, c: int, base: str, n: str, k: str, long: str) -> None:
        inner, outer = self.rep.inner[c], self.rep.outer[c]
        start = self.args.pointer(em, ("B", c))
        down, across = self.args.load(em, ("B.rows", c)), self.args.load(em, ("B.columns", c))

        def strip(j: str, _: list[str]) -> None:
            count = em.smin(em.sub(n, j), _STRIP)

            def row(p: str, _: list[str]) -> None:
                source = em.at(outer.ir, start, em.add(em.mul(p, down), em.mul(j, across)))
                target = em.at(inner.ir, base, em.add(em.mul(j, long), p))

                def one(q: str, _: list[str]) -> None:
                    value = em.load(outer.ir, em.at(outer.ir, source, em.mul(q, across)), outer.bytes)
                    em.store(inner.ir, self.rep.encode(low, c, value), em.at(inner.ir, target, em.mul(q, long)), inner.bytes)

                em.loop(0, count, 1, one)

            em.loop(0, k, 1, row)

        em.loop(0, n, _STRIP, strip)

    def _resolve(self) -> Emitter:
        """Every −2 − slab in ``via`` becomes first + k. A's columns are contiguous."""
        em = Emitter("resolve", "ptr %args")
        m, n, k = (self.args.load(em, x) for x in ("m", "n", "k"))
        first, long = self.args.load(em, "first"), self.args.load(em, "transposed_rows")
        via, via_down = self.args.pointer(em, "via"), self.args.load(em, "via_rows")
        bases = self._bases(em)
        a = [(self.args.pointer(em, ("A", c)), self.args.load(em, ("A.rows", c))) for c in self.components]
        to = [(self.args.pointer(em, ("C", c)), self.args.load(em, ("C.rows", c))) for c in self.components]
        lanes = max(2, self.target.vector_bytes // 4)
        end = em.mul(em.let(f"sdiv i64 {n}, {lanes}"), lanes)
        lows = {w: Lowering(em, self.target, w, infinities=self.rep.inner_infinities) for w in (self.tile.width, 1)}

        def row(i: str, _: list[str]) -> None:
            a_row = [em.at(self.rep.outer[c].ir, a[c][0], em.mul(i, a[c][1])) for c in self.components]
            c_row = [em.at(self.rep.outer[c].ir, to[c][0], em.mul(i, to[c][1])) for c in self.components]
            via_row = em.at("i32", via, em.mul(i, via_down))

            def entry(j: str) -> None:
                place = em.at("i32", via_row, j)
                code = em.let(f"sext i32 {em.load('i32', place, 4)} to i64")
                slab = em.mul(em.sub(em.let(f"sub i64 0, {code}"), 2), self.tile.slab)
                b_row = [em.at(self.rep.inner[c].ir, bases[c], em.mul(j, long)) for c in self.components]
                c_place = [em.at(self.rep.outer[c].ir, c_row[c], j) for c in self.components]

                def search(width: int, start: str | int, stop: str | int) -> str:
                    """The lowest k in [start, stop) that gives C's value; stop if none."""
                    low = lows[width]

                    def at(p: str, best: list[str]) -> list[str]:
                        equal = self._equal(low, a_row, b_row, c_place, p)
                        if width == 1:
                            hit = equal
                            found = p
                        else:
                            bits = em.let(f"bitcast {low.mask} {equal} to i{width}")
                            hit = em.let(f"icmp ne i{width} {bits}, 0")
                            zeros = em.call(f"cttz.i{width}", f"i{width}", (f"i{width}", bits), ("i1", "false"))
                            offset = zeros if width == 64 else em.let(f"zext i{width} {zeros} to i64")
                            found = str(em.add(p, offset))
                        better = em.let(f"icmp slt i64 {found}, {best[0]}")
                        take = em.let(f"and i1 {hit}, {better}")
                        return [em.select_i64(take, found, best[0])]

                    return em.loop(start, stop, width, at, [("i64", str(stop))])[0]

                whole = em.let(f"icmp sle i64 {em.add(slab, self.tile.slab)}, {k}")

                def write(found: str) -> None:
                    em.store("i32", em.let(f"trunc i64 {em.add(first, found)} to i32"), place, 4)

                em.branch(
                    whole,
                    lambda: write(search(self.tile.width, slab, em.add(slab, self.tile.slab))),
                    lambda: write(search(1, slab, k)),
                )

            def vector(j: str, _: list[str]) -> None:
                codes = em.load(I32.vector(lanes), em.at("i32", via_row, j), 4)
                open_ = lows[1].em.let(f"icmp slt {I32.vector(lanes)} {codes}, {I32.constant(-1, lanes)}")
                bits = em.let(f"bitcast <{lanes} x i1> {open_} to i{lanes}")
                wide = em.let(f"zext i{lanes} {bits} to i64")
                count = em.call("ctpop.i64", "i64", ("i64", wide))

                def next_entry(_: str, left: list[str]) -> list[str]:
                    lane = em.call("cttz.i64", "i64", ("i64", left[0]), ("i1", "true"))
                    entry(str(em.add(j, lane)))
                    return [em.let(f"and i64 {left[0]}, {em.sub(left[0], 1)}")]

                em.loop(0, count, 1, next_entry, [("i64", wide)])

            def single(j: str, _: list[str]) -> None:
                code = em.load("i32", em.at("i32", via_row, j), 4)
                em.branch(em.let(f"icmp slt i32 {code}, -1"), lambda: entry(j))

            em.loop(0, end, lanes, vector)
            em.loop(end, n, 1, single)

        em.loop(0, m, 1, row)
        em.line("ret void")
        return em

    def _equal(self, low: Lowering, a_row: list[str], b_row: list[str], c_place: list[str], p: str) -> str:
        """Whether a⊗b equals C, for `width` values of k from p on."""
        em, width = low.em, low.width
        a, b, wanted = [], [], []
        for c in self.components:
            inner, outer = self.rep.inner[c], self.rep.outer[c]
            value = em.load(outer.vector(width), em.at(outer.ir, a_row[c], p), outer.bytes)
            a.append(Value(self.rep.encode(low, c, value), inner))
            b.append(Value(em.load(inner.vector(width), em.at(inner.ir, b_row[c], p), inner.bytes), inner))
            value = em.splat(em.load(outer.ir, c_place[c], outer.bytes), outer, width)
            wanted.append(self.rep.encode(low, c, value))
        product = low.evaluate(self.rep.mul, a, b, self.rep.inner)
        equal = ""
        for value, want, inner in zip(product, wanted, self.rep.inner, strict=True):
            same = low.compare("eq", inner, value.name, want)
            equal = em.let(f"and {low.mask} {equal}, {same}") if equal else same
        return equal
