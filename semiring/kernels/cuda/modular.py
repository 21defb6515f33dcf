"""The CUDA engine of semirings that add and multiply modulo p: large products are sums in floats, see `semiring.kernels.modular`.

cuBLAS multiplies floats where CuPy finds it, and this library's kernels elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.catalogue import PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.blocks import row_slices
from semiring.kernels.cuda.engine import CudaEngine
from semiring.kernels.cuda.launches import Operands
from semiring.kernels.engine import Block
from semiring.kernels.limits import SafeRange
from semiring.kernels.machine import GPU_MODULAR_STEPS
from semiring.kernels.modular import Residues, blocks_for, multiply_modulo

__all__ = ["CudaModularEngine"]

_BYTES = 1 << 30  # memory of the floats and sums at a time


class CudaModularEngine(CudaEngine):
    """`CudaEngine` for sums and products modulo p."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        super().__init__(semiring, dtypes, number)
        self._residues = Residues.of(semiring, dtypes, GPU_MODULAR_STEPS)

    def launches(self, A: Block, B: Block, C: Block, *, fresh: bool) -> Any:
        """Return None for products by floats, which are no single launch."""
        return None if self._residues.by_floats(A, C) else super().launches(A, B, C, fresh=fresh)

    def launches_within(self, A: Block, B: Block, C: Block, safe: SafeRange) -> Any:
        """Return an empty list for products by floats."""
        return [] if self._residues.by_floats(A, C) else super().launches_within(A, B, C, safe)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Run ``schedule(A)``, never as a CUDA graph, because conversions to floats allocate memory."""
        compiler.run(lambda: self._tested(schedule, A), lambda: self._divergence_of(schedule, A))

    def _are_alone(self, products: Sequence[Operands]) -> bool:
        return any(self._residues.by_floats(A, C) for A, _, C in products)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """C ← C ⊕ A⊗B, or C ← A⊗B where C is `fresh`, in parts whose floats fit the scratch memory."""
        if not self._residues.by_floats(A, C):
            super()._product(A, B, C, fresh=fresh)
            return
        import cupy

        (m, n), k, count = C.shape, A.shape[1], len(C.values[0])
        dtype = blocks_for(self._residues.p, k).dtype
        engine = CudaEngine(PLUS_TIMES, (dtype,), self.number)
        engine.asynchronous = True

        def product(left: Any, right: Any) -> Any:
            into = cupy.empty((count, left.shape[1], n), dtype)
            engine.multiply(engine.blank((left,)), engine.blank((right,)), engine.blank((into,)))
            return into

        rows = list(row_slices(m, 24 * count * m * max(n, k), _BYTES))
        a, b, c = A.values[0], B.values[0], C.values[0]

        def multiply() -> None:
            to = c.copy() if compiler.rehearsing() else c  # CuPy writes in a rehearsal too
            multiply_modulo(self._residues.p, (a, b, to), product, rows, fresh=fresh)

        compiler.run(multiply)
        self._launched([(A, B, C)])
