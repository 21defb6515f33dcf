"""Tallies of distances, while a sweep finds them: the sum, the count and the maximum from each source, and a histogram.

`Tally` has the arrays of one sweep. `TallyKernel` generates the function.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import I32, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["CELL_BYTES", "Tally", "TallyKernel", "TallyWords"]

_COPIES = 8
"""The copies of each cell of the histogram, used by sources in turn, so that a counter is not read right after it is written."""

CELL_BYTES = 2 * _COPIES * I32.bytes
"""The bytes of a cell of the histogram in the table of one sweep."""

_DOUBLE = Scalar("f", 8)

TallyWords = namedtuple("TallyWords", "below end sums counts largest farthest table cells scale base fractions", defaults=(0, 0, 0, 0, 0))
"""The arguments: targets before place `below` are counted in part 0, targets from there to `end` in part 1, others not at all.

Each part has a row of lanes in `sums` (float64) and in `counts` (int32), and an int32 `table`. The table has `_COPIES` of each cell, and
of one more cell for the distances beyond. `largest` has a row of lanes, for the largest distance from each source; `farthest`, unless
0, has the largest distance to each target. The cell of a distance is ⌊distance · scale − base⌋; `cells` = 0 means no histogram.
`fractions` has a row of lanes: the largest fractional part of a distance."""


class Tally:
    """The statistics of one sweep, in two parts of the targets: before a place, and from there on.

    Parameters
    ----------
    lanes : int
        The sources of the sweep.
    dtype : numpy.dtype
        The dtype of distances.
    cells : int
        The cells of the histogram; 0 for no histogram.
    scale, base : float
        The cell of a distance is ⌊distance · scale − base⌋.

    Attributes
    ----------
    sums, counts : arrays of shape (2, lanes)
        The sum and the number of finite distances from each source, for each part.
    largest, fractions : arrays of shape (lanes,)
        The largest distance from each source, and the largest fractional part of a distance.
    """

    def __init__(self, lanes: int, dtype: np.dtype[Any], cells: int, scale: float, base: float) -> None:
        self.sums, self.counts, self.largest = np.zeros((2, lanes)), np.zeros((2, lanes), np.int32), np.zeros(lanes, dtype)
        self.fractions, self._table = np.zeros(lanes), np.zeros((2, cells + 1, _COPIES), np.int32)
        self._cells, self._scale, self._base = cells, scale, base

    def words(self, below: int, end: int, farthest: Array | None) -> TallyWords:
        """Return the arguments of the kernel; `farthest` receives the largest distance to each target."""
        arrays = address(self.sums), address(self.counts), address(self.largest)
        words = TallyWords(below, end, *arrays, 0 if farthest is None else address(farthest))
        if not self._cells:
            return words
        scale, base = struct.unpack("<2q", struct.pack("<2d", self._scale, self._base))
        return words._replace(table=address(self._table), cells=self._cells, scale=scale, base=base, fractions=address(self.fractions))

    @property
    def fits(self) -> bool:
        """Return True if no distance is beyond the last cell."""
        return not (self._cells and self._table[:, -1].any())

    def counted(self, targets: tuple[int, int], *, own: int) -> Array:
        """Count the distances of different vertices in each cell, for both parts of the targets; the sources are in the last part."""
        counted: Array = self._table[:, :-1].sum(axis=2, dtype=np.int64)
        # The first cell also counts ∞, lanes without a source, and the sources themselves.
        counted[:, 0] -= np.array(targets) * self.counts.shape[1] - self.counts.sum(axis=1)
        counted[int(targets[1] > 0), 0] -= own
        return counted


class TallyKernel:
    """Generates ``tally``: statistics of rows of distances as they are found, for rows of `lanes` lanes, in vectors of `width`.

    ``tally(args, x, first, last)`` takes the rows `first` … `last` − 1 of X, which have a lane for each source. The float64 sums are
    separate for each source and follow the order of the sweep, so the number of threads does not change them. Distances are not negative,
    so infinite ones become 0 in a sum or a maximum. Infinite distances, and distances below the first cell, count in the histogram's
    first cell.
    """

    def __init__(self, rep: Representation, target: Target, lanes: int, width: int) -> None:
        (self.scalar,), (self.zero,) = rep.outer, rep.zero
        self.lanes, self.width, self.args = lanes, width, Arguments(TallyWords)
        self.em = Emitter("tally", "ptr %args, ptr %x, i64 %first, i64 %last", attributes="#1")
        self.low = Lowering(self.em, target, width)

    def function(self) -> Emitter:
        """Emit the function."""
        em, args = self.em, self.args
        self.scratch = em.let(f"alloca {I32.vector(self.width)}, align 64")
        self.x = args.words(em, "below end cells")
        cells, end = self.x["cells"], em.smin("%last", self.x["end"])
        middle = em.call("smax.i64", "i64", ("i64", "%first"), ("i64", em.smin("%last", self.x["below"])))
        counted = em.let(f"icmp ne i64 {cells}, 0")
        numbers = [em.load("double", args.place(em, name), 8) for name in ("scale", "base")]
        numbers.append(em.let(f"sitofp i64 {cells} to double"))
        self.scale, self.base, self.beyond = (em.splat(number, _DOUBLE, self.width) for number in numbers)
        for part, (start, stop) in enumerate((("%first", middle), (middle, end))):
            with em.when(em.let(f"icmp slt i64 {start}, {stop}")):
                with em.when(counted):
                    self._rows(part, start, stop, cells)
                with em.otherwise():
                    self._rows(part, start, stop, "")
        with em.when(em.let(f"icmp ne ptr {self.x['farthest']}, null")), em.each("%first", end) as place:
            self._target(place)
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
        em, width = self.em, self.width
        with em.each(0, self.lanes, width) as column:
            at = em.add(column, part * self.lanes)
            kept = [(_DOUBLE, self.x["sums"], at), (I32, self.x["counts"], at), (self.scalar, self.x["largest"], column)]
            kept += [(_DOUBLE, self.x["fractions"], column)] * bool(cells)
            carried = [(s.vector(width), em.get(s, array, i, width)) for s, array, i in kept]
            found = em.loop(start, stop, 1, lambda place, found: self._add(place, column, found, part, cells), carried)
            for (s, array, i), value in zip(kept, found, strict=True):
                em.put(s, value, array, i, width)

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
        table = em.at(I32.ir, self.x["table"], em.mul(em.mul(em.add(cells, 1), _COPIES), part))
        for lane in range(width):
            number = em.let(f"zext i32 {em.load('i32', em.at('i32', self.scratch, lane), 4)} to i64")
            counter = em.at("i32", em.at("i32", table, em.mul(number, _COPIES)), lane % _COPIES)
            em.store("i32", em.let(f"add i32 {em.load('i32', counter, 4)}, 1"), counter, 4)

    def _target(self, place: str) -> None:
        """Keep the largest distance to a place; numbers that are not negative sort as their bits do."""
        em, low, scalar, width = self.em, self.low, self.scalar, self.width
        some = [self._finite(place, column)[1].name for column in range(0, self.lanes, width)]
        while len(some) > 1:
            some = [low.arithmetic("max", scalar, pair) for pair in zip(some[::2], some[1::2], strict=True)]
        word = f"i{8 * scalar.bytes}"
        bits = em.let(f"bitcast {scalar.vector(width)} {some[0]} to <{width} x {word}>")
        largest = em.call(f"vector.reduce.umax.v{width}{word}", word, (f"<{width} x {word}>", bits))
        there = em.at(word, self.x["farthest"], place)
        em.store(word, em.call(f"umax.{word}", word, (word, largest), (word, em.load(word, there, scalar.bytes))), there, scalar.bytes)
