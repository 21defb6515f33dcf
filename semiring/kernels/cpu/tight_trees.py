"""Predecessor trees of several rows of the closure at once: `tight_edges` with its arguments and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.overlap import address
from semiring.arrays.threads import return_scratch, take_scratch
from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.tight_edges import TightArrays, TightWords, tight_lanes

__all__ = ["TightTrees"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


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
