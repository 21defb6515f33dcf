"""The elimination of a sparse graph on the CPU: fronts over threads; sweeps and predecessor trees for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array, Values
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, return_scratch, run, take_scratch
from semiring.common.errors import DivergentPivot
from semiring.common.units import CACHE_LINE
from semiring.kernels.compressed import EliminationPanels, Supernodes, SweepLayout
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.fronts import FRONT_STATUS, FrontArrays, FrontWords
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.sweeps import GatherArrays, GatherWords, SweepWords, lanes_of
from semiring.kernels.cpu.tallies import CELL_BYTES, Tally, TallyWords
from semiring.kernels.cpu.tight_edges import TightArrays, TightWords, tight_lanes

__all__ = ["Eliminations", "TightTrees"]


class Eliminations(Threaded):
    """The compiled parts of sparse eliminations over a semiring, in dtypes that can be compiled.

    Attributes
    ----------
    lanes : int
        Sources of a sweep.
    cell_bytes : int
        Bytes of a cell of the histogram of a `tally`.
    """

    cell_bytes = CELL_BYTES

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.requested, self.dtypes = threads, dtypes
        self._kernels = kernels_for(semiring, dtypes)
        self.lanes = lanes_of(self._kernels.representation)

    # Elimination.

    def fronts(
        self,
        nodes: Supernodes,
        weights: Values,
        panels: EliminationPanels,
        complements: Array,
        some: Sequence[tuple[int, int, int]],
        keep: Callable[[int, Values], None],
        *,
        by_star: bool,
        signed: bool,
    ) -> None:
        """Eliminate independent ranges of supernodes, each with all supernodes below.

        `panels` are filled, and `complements`, int64 of shape (s, components), gets the addresses of Schur complements within the stacks.
        `some` lists (first supernode, one after the last, elements that the stack needs); ``keep(last, stack)`` takes over a stack, which
        begins with the last supernode's Schur complement. `by_star` is for any closed semiring; otherwise ⊕ must be idempotent. See
        `Engine` for `signed`. Raises DivergentPivot with the place of the pivot.
        """
        divergent: list[int] = []

        def work(task: tuple[int, int, int], worker: int) -> None:
            first, stop, size = task
            stack = tuple(np.empty(size, dtype) for dtype in self.dtypes)
            status = self._run(nodes, weights, panels, complements, (first, stop, stack), by_star=by_star, signed=signed)
            if status >= 0:
                divergent.append(status)
            else:
                keep(stop - 1, stack)

        run(work, some, self.threads)
        if divergent:  # after all ranges, so that the report does not depend on threads
            raise DivergentPivot(min(divergent))

    def assemble(self, nodes: Supernodes, weights: Values, complements: Array, s: int, front: Values, *, by_star: bool) -> None:
        """Assemble the front of one supernode from the edges and the children's Schur complements."""
        self._run(nodes, weights, None, complements, (s, s + 1, front), by_star=by_star, signed=False)

    def _run(
        self,
        nodes: Supernodes,
        weights: Values,
        panels: EliminationPanels | None,
        complements: Array,
        task: tuple[int, int, Values],
        *,
        by_star: bool,
        signed: bool,
    ) -> int:
        """Assemble fronts, and eliminate them if panels are given; return the place of a divergent pivot, or −1."""
        first, last, stack = task
        local, threshold = np.empty(int(nodes.columns[-1]), np.int64), self._kernels.representation.threshold(signed=signed)
        arrays = map(address, (*nodes, local, complements))
        words = FrontWords._make((first, last, panels is not None, not by_star, *arrays, threshold, -1))
        upper, lower = panels or (stack, stack)
        packed = pack(words, [FrontArrays(*map(address, arrays)) for arrays in zip(weights, stack, upper, lower, strict=True)])
        self._kernels.function("fronts_eliminate" if by_star else "fronts_close")(packed, 100 * len(upper[0]))
        return int(packed[FRONT_STATUS])

    # Sweeps.

    def buffer(self, rows: int) -> Values:
        """Allocate `rows` rows of lanes for a sweep."""
        return tuple(np.empty((rows, self.lanes), dtype) for dtype in self.dtypes)

    def sweep(
        self,
        nodes: Supernodes,
        panels: EliminationPanels,
        layout: SweepLayout,
        sources: Array | Values,
        up: Array,
        down: Array,
        x: Values,
        *,
        backward: bool = False,
        signed: bool,
        tally: TallyWords | None = None,
    ) -> None:
        """Compute rows of the closure (`backward`: columns) for at most `lanes` sources, at all places of the supernodes in `down`.

        `sources` are places, or arrays of shape (n, lanes) that replace unit vectors. `up` lists the supernodes of the sources and all
        above them, ascending; `down` those of the targets and all above them, descending. `x` is scratch and result, see `buffer`. See
        `Engine` for `signed`. `tally` adds up rows as soon as they are found, for single non-negative numbers.
        """
        active = np.zeros(len(nodes.row_starts) - 1, np.int64)
        active[up] = 1
        if isinstance(sources, tuple):
            own, held, starts, count = sources, layout.numbers, layout.numbers, -1
        else:
            # The sweep up needs only rows for the places above the sources.
            first = nodes.columns[up]
            widths = nodes.columns[up + 1] - first
            rows, held = layout.numbers[: widths.sum()], np.empty(len(layout.numbers), np.int64)
            held[rows + np.repeat(first - (np.cumsum(widths) - widths), widths)] = rows
            own, starts, count = self.buffer(len(rows)), sources, len(sources)
        arrays = *nodes[:4], layout.numbers, held, layout.slots, layout.slot_rows
        lists = address(up), len(up), address(down), len(down)
        tallied, threshold = pack(tally or ()), self._kernels.representation.threshold(signed=signed)
        given = address(active), address(starts), count, threshold, tallied.buffer_info()[0]
        words = SweepWords._make((*map(address, arrays), *lists, *given))
        packed = pack(words, [tuple(map(address, parts)) for parts in zip(x, own, panels.upper, panels.lower, strict=True)])
        name = "sweep_statistics" if tally else "sweep_columns" if backward else "sweep_rows"
        self._kernels.function(name)(packed, self.lanes * len(panels.upper[0]))

    def tally(self, cells: int, scale: float, base: float) -> Tally:
        """Return empty statistics for a sweep over one component."""
        return Tally(self.lanes, self.dtypes[0], cells, scale, base)

    def gather(self, x: Values, places: Array, out: Values, rows: Array) -> None:
        """out[rows[b]] ← lane b of x at the given places; elements in a row of `out` are contiguous."""
        words = GatherWords(address(rows), address(places), len(rows), out[0].shape[1], len(places))
        packed = pack(words, [GatherArrays(address(v), address(o)) for v, o in zip(x, out, strict=True)])
        self._kernels.function("gather")(packed)


class TightTrees:
    """The trees of rows over a semiring with a selective ⊕."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self._kernels = kernels_for(semiring, dtypes)
        self.lanes = tight_lanes(self._kernels.representation, self._kernels.target)

    def bind(
        self, back: tuple[Array, Array, Values], roots: Array, values: Values, tree: Array, grown: Array, *, backward: bool
    ) -> Callable[[int, int], None]:
        """Return a function that grows the trees of a range of rows, at most as many as lanes; see `TightWords`."""
        starts, tails, weights = back
        n, lanes, function = len(starts) - 1, self.lanes, self._kernels.function(f"tight_trees{'_backward' if backward else ''}")
        sizes = [4 * lanes * lanes, *(n * lanes * w.itemsize for w in weights)]
        sizes = [size + -size % CACHE_LINE for size in sizes]

        def grow(first: int, last: int) -> None:
            scratch = take_scratch(sum(sizes))
            queue, *panels = (scratch.address + sum(sizes[:i]) for i in range(len(sizes)))
            given = TightWords._make((n, first, last, *map(address, (roots, starts, tails)), queue, address(tree), address(grown)))
            arrays = [TightArrays(address(w), address(v), panel) for w, v, panel in zip(weights, values, panels, strict=True)]
            function(pack(given, arrays), 4 * lanes * (n + len(tails)))
            return_scratch(scratch)

        return grow
