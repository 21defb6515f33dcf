"""The CPU engine of semirings that add and multiply modulo p: large products are sums in floats, see `semiring.kernels.modular`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.catalogue import PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.limits import SafeRange
from semiring.kernels.machine import MODULAR_STEPS, SERIAL
from semiring.kernels.modular import Residues, blocks_for, multiply_modulo

__all__ = ["ModularEngine"]

_ROWS = 64  # the fewest rows of a part, which packs all of B
_ELEMENTS = 1 << 22  # the most elements of a part


class ModularEngine(CpuEngine):
    """`CpuEngine` for sums and products modulo p."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        super().__init__(semiring, dtypes, threads, isa)
        self._residues = Residues.of(semiring, dtypes, MODULAR_STEPS)

    def multiply_within(self, A: Block, B: Block, C: Block, safe: SafeRange, are_safe: Callable[[Sequence[Array]], bool]) -> bool:
        """Return False for products by floats, which read each operand once anyway."""
        return not self._residues.by_floats(A, C) and super().multiply_within(A, B, C, safe, are_safe)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """C ← C ⊕ A⊗B, or C ← A⊗B where C is `fresh`."""
        if not self._residues.by_floats(A, C):
            super()._product(A, B, C, fresh=fresh)
            return
        (m, n), k, rows_of_all = C.shape, A.shape[1], math.prod(C.values[0].shape[:-1])
        threads = self.threads if rows_of_all == m >= 2 * _ROWS and m * n * k >= SERIAL else 1
        parts = max(2 * threads if threads > 1 else 1, rows_of_all * max(n, k) // _ELEMENTS)
        height = -(-m // max(1, min(m // _ROWS, parts)))
        rows = [slice(top, min(m, top + height)) for top in range(0, m, height)]
        dtype = blocks_for(self._residues.p, k).dtype
        engine = CpuEngine(PLUS_TIMES, (dtype,), 1 if threads > 1 else self.requested)

        def product(left: Array, right: Array) -> Array:
            into = np.empty((*left.shape[:-1], right.shape[-1]), dtype)
            engine.multiply(Block((left,)), Block((right,)), Block((into,)))
            return into

        multiply_modulo(self._residues.p, (A.values[0], B.values[0], C.values[0]), product, rows, threads, fresh=fresh)
        if self.meter is not None:
            self.meter.add(C.values[0].size * k)
