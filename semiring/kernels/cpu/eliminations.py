"""The elimination of a sparse graph by generated code: fronts over threads, and sweeps through their panels for many sources at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, run
from semiring.common.errors import DivergentPivot
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.compiler import Function
from semiring.kernels.cpu.fronts import FRONT_STATUS, FrontArrays, FrontWords, Supernodes
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.sweeps import GatherArrays, GatherWords, SweepWords, lanes_of
from semiring.kernels.cpu.tally import TallyWords

__all__ = ["Eliminations", "Layout", "Panels"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class Panels(NamedTuple):
    """What an elimination keeps, one array a component: D* [I U] of each supernode, and [I; L] D*, side by side in its order."""

    upper: Values
    lower: Values


class Layout(NamedTuple):
    """Where the rows of X are in a sweep, in int64 arrays.

    Attributes
    ----------
    numbers : array of shape (n,)
        All places.
    slots : array of shape (n,)
        The row of each place; those of a supernode follow each other.
    slot_rows : array
        Those of the places in `Supernodes.rows`.
    """

    numbers: Array
    slots: Array
    slot_rows: Array


class Eliminations(Threaded):
    """The compiled parts of sparse eliminations over a semiring, in dtypes for which it can be compiled.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional

    Attributes
    ----------
    lanes : int
        Sources of a sweep.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.requested, self.dtypes = threads, dtypes
        self._kernels = kernels_for(semiring, dtypes)
        self.lanes = lanes_of(self._kernels.representation)

    # Elimination.

    def fronts(
        self,
        nodes: Supernodes,
        weights: Values,
        panels: Panels,
        complements: Array,
        some: Sequence[tuple[int, int, int]],
        keep: Callable[[int, Values], None],
        *,
        by_star: bool,
        signed: bool,
    ) -> None:
        """Eliminate ranges of supernodes, each with those below it, that do not depend on each other.

        Parameters
        ----------
        nodes : Supernodes
        weights : tuple of arrays
            Of the edges, in their order.
        panels : Panels
            Are filled.
        complements : int64 array of shape (s, components)
            Gets the addresses of Schur complements, which lie in the stacks.
        some : sequence of tuple
            The first supernode, the one after the last, and how many elements the stack needs.
        keep : callable
            Is given the last one and its stack, which begins with its Schur complement.
        by_star : bool
            For any closed semiring; else ⊕ must be idempotent.
        signed : bool
            See `Engine`.

        Raises
        ------
        DivergentPivot
            With the place.
        """
        function = self._kernels.function("fronts_eliminate" if by_star else "fronts_close")
        divergent: list[int] = []

        def work(task: tuple[int, int, int], worker: int) -> None:
            first, stop, size = task
            stack = tuple(np.empty(size, dtype) for dtype in self.dtypes)
            how = {"whole": True, "reflexive": not by_star, "signed": signed}
            status = self._run(function, nodes, weights, panels, complements, (first, stop, stack), **how)
            if status >= 0:
                divergent.append(status)
            else:
                keep(stop - 1, stack)

        run(work, some, self.threads)
        if divergent:  # all of them are through, so that threads do not tell which
            raise DivergentPivot(min(divergent))

    def assemble(self, nodes: Supernodes, weights: Values, complements: Array, s: int, front: Values, *, by_star: bool) -> None:
        """Make the front of one supernode of its edges and of the Schur complements of its children."""
        function = self._kernels.function("fronts_eliminate" if by_star else "fronts_close")
        self._run(function, nodes, weights, None, complements, (s, s + 1, front), whole=False, reflexive=not by_star, signed=False)

    def _run(
        self,
        function: Function,
        nodes: Supernodes,
        weights: Values,
        panels: Panels | None,
        complements: Array,
        task: tuple[int, int, Values],
        *,
        whole: bool,
        reflexive: bool,
        signed: bool,
    ) -> int:
        """One call; the place of a divergent pivot, or −1."""
        first, last, stack = task
        local = np.empty(int(nodes.columns[-1]), np.int64)
        threshold = self._threshold(signed)
        arrays = (*nodes, local, complements)
        words = FrontWords._make((first, last, whole, reflexive, *map(address, arrays), threshold, -1))
        upper, lower = panels or (stack, stack)
        packed = pack(words, [FrontArrays(*map(address, arrays)) for arrays in zip(weights, stack, upper, lower, strict=True)])
        function(packed, 100 * len(upper[0]))
        return int(packed[FRONT_STATUS])

    def _threshold(self, signed: bool) -> int:
        """What tropical integers are compared with."""
        return self._kernels.representation.threshold(signed=signed)

    # Sweeps.

    def buffer(self, rows: int) -> Values:
        """Memory for a sweep: so many rows of lanes."""
        return tuple(np.empty((rows, self.lanes), dtype) for dtype in self.dtypes)

    def sweep(
        self,
        nodes: Supernodes,
        panels: Panels,
        layout: Layout,
        sources: Array | Values,
        up: Array,
        down: Array,
        x: Values,
        *,
        backward: bool = False,
        signed: bool,
        tally: TallyWords | None = None,
    ) -> None:
        """Rows of the closure (`backward`: columns) for no more sources than lanes, at all places of the supernodes in `down`.

        Parameters
        ----------
        nodes : Supernodes
        panels : Panels
        layout : Layout
        sources : int64 array, or tuple of arrays of shape (n, lanes)
            Their places, or rows that take the place of unit vectors.
        up, down : int64 arrays
            The supernodes of the sources and all above them, ascending; those of the targets and all above them, descending.
        x : tuple of arrays of shape (rows, lanes)
            See `buffer`; whatever is in them.
        backward, signed : bool
            The latter as of `Engine`.
        tally : TallyWords, optional
            What rows come to, which are tallied as soon as they are found. For single numbers, none of which is negative.
        """
        active = np.zeros(len(nodes.row_starts) - 1, np.int64)
        active[up] = 1
        if isinstance(sources, tuple):
            own, held, starts, count = sources, layout.numbers, layout.numbers, -1
        else:
            # The sweep up has rows of its own, as many as there are places above the sources.
            first = nodes.columns[up]
            widths = nodes.columns[up + 1] - first
            rows, held = layout.numbers[: widths.sum()], np.empty(len(layout.numbers), np.int64)
            held[rows + np.repeat(first - (np.cumsum(widths) - widths), widths)] = rows
            own, starts, count = self.buffer(len(rows)), sources, len(sources)
        arrays = *nodes[:4], layout.numbers, held, layout.slots, layout.slot_rows
        lists = address(up), len(up), address(down), len(down)
        tallied = pack(tally or ())
        words = SweepWords._make(
            (*map(address, arrays), *lists, address(active), address(starts), count, self._threshold(signed), tallied.buffer_info()[0])
        )
        packed = pack(words, [tuple(map(address, parts)) for parts in zip(x, own, panels.upper, panels.lower, strict=True)])
        name = "sweep_statistics" if tally else "sweep_columns" if backward else "sweep_rows"
        self._kernels.function(name)(packed, self.lanes * len(panels.upper[0]))

    def gather(self, x: Values, places: Array, out: Values, rows: Array) -> None:
        """out[rows[b]] ← lane b of x at given places; the elements of a row of `out` lie side by side."""
        words = GatherWords(address(rows), address(places), len(rows), out[0].shape[1], len(places))
        packed = pack(words, [GatherArrays(address(v), address(o)) for v, o in zip(x, out, strict=True)])
        self._kernels.function("gather")(packed)
