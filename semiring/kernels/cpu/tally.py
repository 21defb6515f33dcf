"""Statistics of rows of distances as they are found: the number of finite distances, the sum, the maximum, and a histogram.

``tally(args, x, first, last)`` takes the rows `first` … `last` − 1 of X, which have a lane for each source of a sweep (see `sweeps`). The
float64 sums are separate for each source and follow the order of the sweep, so the number of threads does not change them. Distances are
not negative, so infinite ones become 0 in a sum or a maximum. Infinite distances, and distances below the first cell, count in the
histogram's first cell.
"""

from __future__ import annotations

import functools
import struct
from collections import namedtuple
from collections.abc import Sequence

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import I32, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["COPIES", "TallyKernel", "TallyWords", "float_word"]

COPIES = 8
"""The copies of each cell of the histogram, used by sources in turn, so that a counter is not read right after it is written."""

_DOUBLE = Scalar("f", 8)

TallyWords = namedtuple("TallyWords", "below end sums counts largest farthest table cells scale base fractions", defaults=(0, 0, 0, 0, 0))
"""The arguments: targets before place `below` are counted in part 0, targets from there to `end` in part 1, others not at all.

Each part has a row of lanes in `sums` (float64) and in `counts` (int32), and an int32 `table`. The table has `COPIES` of each cell, and
of one more cell for the distances beyond. `largest` has a row of lanes, for the largest distance from each source; `farthest`, unless
0, has the largest distance to each target. The cell of a distance is ⌊distance · scale − base⌋; `cells` = 0 means no histogram.
`fractions` has a row of lanes: the largest fractional part of a distance."""


def float_word(value: float) -> int:
    """Return a float64 as a word."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


class TallyKernel:
    """Generates ``tally`` for rows of `lanes` lanes, in vectors of `width`."""

    def __init__(self, rep: Representation, target: Target, lanes: int, width: int) -> None:
        (self.scalar,), (self.zero,) = rep.outer, rep.zero
        self.lanes, self.width, self.args = lanes, width, Arguments(TallyWords)
        self.em = Emitter("tally", "ptr %args, ptr %x, i64 %first, i64 %last", attributes="#1")
        self.low = Lowering(self.em, target, width)

    def function(self) -> Emitter:
        """Emit the function."""
        em, args = self.em, self.args
        self.scratch = em.let(f"alloca {I32.vector(self.width)}, align 64")
        self.pointers = {name: args.pointer(em, name) for name in ("sums", "counts", "largest", "farthest", "table", "fractions")}
        below, end, cells = (args.load(em, name) for name in ("below", "end", "cells"))
        middle = em.call("smax.i64", "i64", ("i64", "%first"), ("i64", em.smin("%last", below)))
        counted = em.let(f"icmp ne i64 {cells}, 0")
        numbers = [em.load("double", args.place(em, name), 8) for name in ("scale", "base")]
        numbers.append(em.let(f"sitofp i64 {cells} to double"))
        self.scale, self.base, self.beyond = (em.splat(number, _DOUBLE, self.width) for number in numbers)
        for part, (start, stop) in enumerate((("%first", middle), (middle, em.smin("%last", end)))):
            rows = functools.partial(self._rows, part, start, stop)
            some = functools.partial(em.branch, counted, functools.partial(rows, cells), functools.partial(rows, ""))
            em.branch(em.let(f"icmp slt i64 {start}, {stop}"), some)

        def targets() -> None:
            em.loop("%first", em.smin("%last", end), 1, self._target)

        em.branch(em.let(f"icmp ne i64 {args.load(em, 'farthest')}, 0"), targets)
        return em.done()

    def _finite(self, place: str, column: str | int) -> tuple[str, Value]:
        """Return a mask of the finite distances from some sources to a place, and the distances with 0 for others."""
        em, low, scalar = self.em, self.low, self.scalar
        row = em.mul(em.sub(place, "%first"), self.lanes)
        x = em.get(scalar, "%x", em.add(row, column), self.width)
        finite = low.compare("ne", scalar, x, scalar.constant(self.zero, self.width))
        return finite, Value(low.select(finite, scalar, x, scalar.constant(0, self.width)), scalar)

    def _rows(self, part: int, start: str, stop: str, cells: str) -> None:
        """Add the rows of some places, also to the histogram if `cells` is given."""
        em, scalars = self.em, (_DOUBLE, I32, self.scalar, *[_DOUBLE] * bool(cells))

        def some(column: str, _: list[str]) -> None:
            at = em.add(column, part * self.lanes)
            places = [em.at(_DOUBLE.ir, self.pointers["sums"], at), em.at(I32.ir, self.pointers["counts"], at)]
            places += [em.at(self.scalar.ir, self.pointers["largest"], column)]
            places += [em.at(_DOUBLE.ir, self.pointers["fractions"], column)] * bool(cells)
            ends = [em.load(s.vector(self.width), p, s.bytes) for s, p in zip(scalars, places, strict=True)]

            def row(place: str, found: list[str]) -> Sequence[str]:
                return self._add(place, column, found, part, cells)

            found = em.loop(start, stop, 1, row, [(s.vector(self.width), e) for s, e in zip(scalars, ends, strict=True)])
            for s, p, value in zip(scalars, places, found, strict=True):
                em.store(s.vector(self.width), value, p, s.bytes)

        em.loop(0, self.lanes, self.width, some)

    def _add(self, place: str, column: str, found: list[str], part: int, cells: str) -> list[str]:
        """Add one more target to the sum, the count, the maximum and the largest fraction of some sources."""
        em, low, (total, count, most, *fraction) = self.em, self.low, found
        finite, x = self._finite(place, column)
        distance = low.convert(x, _DOUBLE).name
        total = low.arithmetic("add", _DOUBLE, [total, distance])
        count = low.arithmetic("add", I32, [count, low.convert(Value(finite, None), I32).name])
        most = low.arithmetic("max", self.scalar, [most, x.name])
        if not cells:
            return [total, count, most]
        ir = _DOUBLE.vector(self.width)
        whole = em.call(f"floor.{_DOUBLE.overload(self.width)}", ir, (ir, distance))
        behind = em.let(f"fsub {ir} {distance}, {whole}")
        self._count(distance, part, cells)
        return [total, count, most, low.arithmetic("max", _DOUBLE, [fraction[0], behind])]

    def _count(self, distance: str, part: int, cells: str) -> None:
        em, low, width = self.em, self.low, self.width
        scaled = low.arithmetic("sub", _DOUBLE, [low.arithmetic("mul", _DOUBLE, [distance, self.scale]), self.base])
        inside = low.arithmetic("max", _DOUBLE, [scaled, _DOUBLE.constant(0.0, width)])
        cell = low.convert(Value(low.arithmetic("min", _DOUBLE, [inside, self.beyond]), _DOUBLE), I32)
        em.store(I32.vector(width), cell.name, self.scratch, 64)
        table = em.at(I32.ir, self.pointers["table"], em.mul(em.mul(em.add(cells, 1), COPIES), part))
        for lane in range(width):
            number = em.let(f"zext i32 {em.load('i32', em.at('i32', self.scratch, lane), 4)} to i64")
            counter = em.at("i32", em.at("i32", table, em.mul(number, COPIES)), lane % COPIES)
            em.store("i32", em.let(f"add i32 {em.load('i32', counter, 4)}, 1"), counter, 4)

    def _target(self, place: str, _: list[str]) -> None:
        """Keep the largest distance to a place; numbers that are not negative sort as their bits do."""
        em, low, scalar, width = self.em, self.low, self.scalar, self.width
        some = [self._finite(place, column)[1].name for column in range(0, self.lanes, width)]
        while len(some) > 1:
            some = [low.arithmetic("max", scalar, pair) for pair in zip(some[::2], some[1::2], strict=True)]
        word = f"i{8 * scalar.bytes}"
        bits = em.let(f"bitcast {scalar.vector(width)} {some[0]} to <{width} x {word}>")
        largest = em.call(f"vector.reduce.umax.v{width}{word}", word, (f"<{width} x {word}>", bits))
        there = em.at(word, self.pointers["farthest"], place)
        em.store(word, em.call(f"umax.{word}", word, (word, largest), (word, em.load(word, there, scalar.bytes))), there, scalar.bytes)
