"""Statistics of all distances of an eliminated graph: the sum and the maximum from each vertex, and a histogram, without keeping rows.

A sweep finds rows for as many sources as it has lanes, in the order of elimination, and tallies them place by place. Only supernodes below
read the values of a place, so the rows of a sweep form a stack: each supernode's rows follow those of the supernodes above. In a symmetric
graph a sweep skips targets after its sources, the last half of all rows, and each pair counts for both ways.

A distance is in the cell ⌊distance / 2^e⌋ of the histogram, and e grows with the distances seen. A sweep that meets a distance beyond the
last cell is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.elimination import Elimination
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import run
from semiring.common import forks
from semiring.kernels.compressed import SweepLayout

__all__ = ["Distribution", "cell_exponent", "distribution"]


class Distribution(NamedTuple):
    """Statistics of distances.

    Attributes
    ----------
    sums : float64 array of shape (n,)
        Sums of distances from vertices; their total is the sum over all pairs.
    farthest : array of shape (n,)
        The largest finite distance from each vertex.
    reached : int
        The number of pairs with a path, of all n².
    complete : bool array of shape (n,)
        True for vertices that reach all others.
    tables : dict
        Histograms by the exponents of their cells: the number of the first cell, and the count of distances between different vertices in
        this and each following cell.
    whole : bool
        All distances are whole numbers.
    """

    sums: Array
    farthest: Array
    reached: int
    complete: Array
    tables: dict[int, tuple[int, Array]]
    whole: bool


def cell_exponent(low: float, high: float, most: int) -> int:
    """Return the least exponent with which `low` to `high` span at most `most` cells, with numbers below 2⁵³."""
    exponent = max(-1022, math.frexp(max(abs(low), abs(high)))[1] - 52)
    while math.floor(math.ldexp(high, -exponent)) - math.floor(math.ldexp(low, -exponent)) >= most:
        exponent += 1
    return exponent


def distribution(
    elimination: Elimination, *, symmetric: bool, least: float | None, most: int, tell: Callable[[int, int], None]
) -> Distribution:
    """Compute the statistics of the distances of a graph without negative edges.

    Parameters
    ----------
    elimination : Elimination
        Over min-plus.
    symmetric : bool
        The distance from u to v equals that from v to u.
    least : float or None
        The least distance between different vertices; None if no two are connected.
    most : int
        The most cells of the histogram, from 2; 0 for no histogram.
    tell : callable
        Receives the number of finished rows, and the worker.

    Raises
    ------
    TooLargeError
        If the cells do not fit in memory.
    """
    found, kernels, lanes, panels = elimination.found, elimination.kernels, elimination.kernels.lanes, elimination.panels
    n, (dtype,) = found.n, kernels.dtypes
    if most:
        workers = min(kernels.threads, -(-n // lanes))
        require_bytes(most * (kernels.cell_bytes * workers + 8), f"tallying distances in {most:,} bins takes", "ask for fewer bins")
    layout, depth = _stacked(elimination)
    down = np.arange(len(found.parent))[::-1].copy()
    sums, reached, farthest = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, dtype)
    buffers: dict[int, tuple[Any, Array | None]] = {}
    cells = _Cells(least, most if least is not None else 0)

    def some(first: int, worker: int) -> None:
        sources = layout.numbers[first : first + lanes]
        if worker not in buffers:
            buffers[worker] = kernels.buffer(depth), np.zeros(n, dtype) if symmetric else None
        x, to = buffers[worker]
        up, wanted, below, end = found.ancestors(sources), down, n, n
        if symmetric:
            last = int(found.supernode_of[sources[-1]])
            wanted, below, end = np.concatenate([up[up > last][::-1], down[len(down) - 1 - last :]]), first, first + len(sources)
        while True:
            exponent = cells.exponent
            part = kernels.tally(cells.most, math.ldexp(1.0, -exponent), cells.first(exponent))
            kernels.sweep(found.nodes, panels, layout, sources, up, wanted, x, signed=False, tally=part.words(below, end, to))
            if part.fits:
                break
            cells.highest = max(cells.highest, float(part.largest.max()))
        each = slice(0, len(sources))
        # A distance to an earlier place counts for the way back too.
        weights = np.array([2 if symmetric else 1, 1])
        sums[sources], reached[sources] = (weights @ part.sums)[each], (weights @ part.counts)[each]
        farthest[sources] = part.largest[each]
        if cells.most:
            cells.add(weights @ part.counted((below, end - below), own=len(sources)), exponent, float(part.fractions.max()))
        tell(len(sources), worker)

    run(some, range(0, n, lanes), kernels.threads)
    for _, to in buffers.values():
        if to is not None:
            np.maximum(farthest, to, out=farthest)
    total = int(reached.sum())
    complete = np.full(n, total == n * n) if symmetric else reached == n
    place = found.place
    return Distribution(sums[place], farthest[place], total, complete[place], cells.tables, cells.fraction == 0)


_adding = forks.lock()  # one for all histograms, because forks take each lock for ever


class _Cells:
    """The histogram: tables of cells by exponent, the largest fraction seen, and the `highest` distance that needs a cell."""

    def __init__(self, least: float | None, most: int) -> None:
        self.least = self.highest = least or 0.0
        self.most, self.fraction = most, 0.0
        self.tables: dict[int, tuple[int, Array]] = {}

    @property
    def exponent(self) -> int:
        """Return the exponent with which all distances so far have cells."""
        return cell_exponent(self.least, self.highest, self.most) if self.most else 0

    def first(self, exponent: int) -> int:
        """Return the cell of the least distance."""
        return math.floor(math.ldexp(self.least, -exponent))

    def add(self, counts: Array, exponent: int, fraction: float) -> None:
        """Add the counts of a sweep, and its largest fraction."""
        with _adding:
            self.fraction = max(self.fraction, fraction)
            first, before = self.tables.get(exponent, (self.first(exponent), np.zeros(self.most, np.int64)))
            self.tables[exponent] = first, before + counts


def _stacked(elimination: Elimination) -> tuple[SweepLayout, int]:
    """Lay out the rows of each supernode after the rows of its ancestors; return the layout and the depth."""
    found = elimination.found
    ends = found.through(found.widths)
    numbers = np.arange(found.n)
    slots = numbers + (ends - found.nodes.columns[1:])[found.supernode_of]
    return SweepLayout(numbers, slots, slots[found.nodes.rows]), int(ends.max(initial=0))
