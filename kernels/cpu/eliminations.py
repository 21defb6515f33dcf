"""The elimination of a sparse graph by generated code: fronts over threads, and sweeps through their panels for many sources at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, run
from semiring.kernels.cpu.emitter import pack
from semiring.kernels.cpu.fronts import FRONT_STATUS, FrontArrays, FrontWords, Supernodes
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.sweeps import SweepArrays, SweepWords, lanes_of
from semiring.common.errors import DivergentPivot

__all__ = ["Eliminations", "Panels"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_FIRST, _LAST, _LOCAL = map(FrontWords._fields.index, ("first", "last", "local"))


class Panels(NamedTuple):
    """What an elimination keeps, one array a component: D* [I U] of each supernode, and [I; L] D*, side by side in its order."""

    upper: Values
    lower: Values


class Eliminations(Threaded):
    """The compiled parts of sparse eliminations over a semiring, in dtypes for which it can be compiled.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    reflexive : bool
        Whether closures of fronts begin with 1 on their diagonals, for an idempotent ⊕; elimination by star(pivot) otherwise.
    threads : int, optional

    Attributes
    ----------
    lanes : int
        Sources of a sweep.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.requested, self.dtypes = threads, dtypes
        self._kernels = kernels_for(semiring, dtypes)
        self._zero, self._one = semiring.identities(dtypes)
        self.lanes = lanes_of(self._kernels.representation)

    # Elimination.

    def fronts(
        self,
        nodes: Supernodes,
        weights: Values,
        panels: Panels,
        complements: Array,
        some: Sequence[tuple[int, int, Values]],
        *,
        eliminate: bool,
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
            The first supernode, the one after the last, and memory for the stack, one array a component.
        eliminate : bool
            By star(pivot), for any closed semiring.
        signed : bool
            See `Engine`.

        Raises
        ------
        DivergentPivot
            With the place.
        """
        function = self._kernels.function("fronts_eliminate" if eliminate else "fronts_close")
        divergent: list[int] = []

        def work(task: tuple[int, int, Values], worker: int) -> None:
            if not divergent:
                status = self._run(function, nodes, weights, panels, complements, task, whole=True, reflexive=not eliminate, signed=signed)
                if status >= 0:
                    divergent.append(status)

        run(work, some, self.threads)
        if divergent:
            raise DivergentPivot(divergent[0])

    def assemble(self, nodes: Supernodes, weights: Values, complements: Array, s: int, front: Values, *, eliminate: bool) -> None:
        """Make the front of one supernode of its edges and of the Schur complements of its children."""
        function = self._kernels.function("fronts_eliminate" if eliminate else "fronts_close")
        self._run(function, nodes, weights, None, complements, (s, s + 1, front), whole=False, reflexive=not eliminate, signed=False)

    def _run(
        self,
        function: Callable[[int], None],
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
        threshold = self._kernels.representation.threshold(signed=signed)
        words = FrontWords(first, last, whole, reflexive, *map(address, nodes), address(local), address(complements), threshold)
        upper, lower = panels or (stack, stack)
        packed = pack(words, [FrontArrays(*map(address, arrays)) for arrays in zip(weights, stack, upper, lower, strict=True)])
        function(packed.buffer_info()[0])
        return int(packed[FRONT_STATUS])

    # Sweeps.

    def sweep(
        self, nodes: Supernodes, panels: Panels, sources: Array, up: Array, down: Array, x: Values, *, backward: bool, given: bool = False
    ) -> None:
        """Rows of the closure (`backward`: columns) from some sources, no more than lanes, at all places of the supernodes in `down`.

        Parameters
        ----------
        nodes : Supernodes
        panels : Panels
        sources : int64 array
            Their places.
        up, down : int64 arrays
            The supernodes of the sources and all above them, ascending; those of the targets and all above them, descending.
        x : tuple of arrays of shape (n, lanes)
            Whatever is in them; or, where `given`, the rows that take the place of a unit vector for each source.
        backward, given : bool
        """
        count = len(nodes.row_starts) - 1
        active = np.zeros(count, np.int64)
        active[up] = 1
        widest = int(np.diff(nodes.columns).max(initial=0))
        own = tuple(np.empty((widest, self.lanes), dtype) for dtype in self.dtypes)
        numbers = np.arange(len(x[0]))
        words = SweepWords(
            *map(address, nodes[:4]), address(numbers), address(up), len(up), address(down), len(down), address(active), address(sources),
            -1 if given else len(sources), 0, 0,
        )  # fmt: skip
        packed = pack(words, [SweepArrays(*map(address, arrays), 0) for arrays in zip(x, own, panels.upper, panels.lower, strict=True)])
        self._kernels.function("sweep_columns" if backward else "sweep_rows")(packed.buffer_info()[0])

    def gather(self, x: Values, places: Array, out: Values) -> None:
        """out[b] ← lane b of x at given places, for contiguous rows of `out`."""
        count, k = out[0].shape
        words = SweepWords(*(0,) * 10, address(places), count, out[0].strides[0] // out[0].itemsize, k)
        packed = pack(words, [SweepArrays(address(v), 0, 0, 0, address(o)) for v, o in zip(x, out, strict=True)])
        self._kernels.function("gather")(packed.buffer_info()[0])
