"""The CPU engine: generated kernels, tasks over threads, and what happens when an operand is part of the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.arrays import ArrayEngine
from semiring.kernels.block import Block
from semiring.kernels.cpu.arguments import STATUS, Shared, pack
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.operands import Operand, assign, copied, matrices
from semiring.kernels.cpu.plan import plan, stripe
from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.cpu.workspace import Workspace
from semiring.kernels.overlap import matched

__all__ = ["CpuEngine"]

_SIDE_BY_SIDE = 512
"""Matrices of a batch up to this side run one a thread."""


class CpuEngine(ArrayEngine):
    """`Engine` on NumPy arrays with kernels generated for this processor.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional
    isa : str, optional
        A narrower instruction set of this processor.
    """

    pivot = 128

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        super().__init__(semiring, dtypes)
        self.threads = thread_count(threads)
        self._kernels = kernels_for(semiring, dtypes, isa)
        self._workspaces = [Workspace() for _ in range(self.threads)]

    # The operations of `Engine`.

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._products(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._products(A, B, C, fresh=True)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._pivots("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._pivots("eliminate", A)

    # Products.

    def _products(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """C ← C ⊕ A⊗B, or A⊗B where C is `fresh`, for each matrix of a batch: many small ones side by side, large ones one by one."""
        if not C.batch:
            self._product(A, B, C, fresh, self.threads, 0)
            return
        # One matrix of the result is complete before another one begins.
        A, B = (X if all(matched(v, w) for v in X.values for w in C.values) else copied(X) for X in (A, B))

        def one(index: tuple[int, ...], threads: int, slot: int) -> None:
            self._product(A.at(index), B.at(index), C.at(index), fresh, threads, slot)

        indices = list(np.ndindex(C.batch))
        if len(indices) >= self.threads > 1 and max(C.shape) <= _SIDE_BY_SIDE:
            run(lambda index, slot: one(index, 1, slot), indices, self.threads)
        else:
            for index in indices:
                one(index, self.threads, 0)

    def _product(self, A: Block, B: Block, C: Block, fresh: bool, threads: int, slot: int) -> None:
        """One product, by so many workers, the first of which is number `slot`."""
        if 0 in C.shape:
            return
        a, b, c = Operand(A), Operand(B), Operand(C)
        if not c.writable:
            copy = copied(C, via=True)
            self._product(A, B, copy, fresh, threads, slot)
            assign(C, copy)
            return
        a, b = (x if x.aligned else x.copied() for x in (a, b))
        # An operand that is C itself is packed before C changes; one that is anything else of C, or a second one, is copied.
        hold_a, hold_b = a.shares(c), b.shares(c)
        if hold_a and (hold_b or a.layouts != c.layouts):
            a, hold_a = a.copied(), False
        if hold_b and b.layouts != c.layouts:
            b, hold_b = b.copied(), False
        if C.via is not None and not a.contiguous_rows:
            a, hold_a = a.copied(), False
        if C.via is not None and hold_a:
            (m, k), n = A.shape, C.shape[1]
            rows = stripe(m, n, k, self._kernels.representation, threads)
            if rows < m:
                for part in (slice(top, top + rows) for top in range(0, m, rows)):
                    self._product(copied(A[part, :]), B, C[part, :], fresh, threads, slot)
                return
        self._run(a, b, c, hold_a, hold_b, fresh, threads, slot)

    def _run(self, a: Operand, b: Operand, c: Operand, hold_a: bool, hold_b: bool, fresh: bool, threads: int, slot: int) -> None:
        """One product whose operands lie as the kernels need them."""
        (m, n), k = c.block.shape, a.block.shape[1]
        kernels, witness = self._kernels, c.block.via is not None
        tile = kernels.witness_tile if witness else kernels.tile
        planned = plan(m, n, k, tile, kernels.representation, threads, hold_a=hold_a, hold_b=hold_b, witness=witness)
        product = kernels.function("product_witness" if witness else "product")
        threshold = kernels.representation.threshold(signed=self.signed)

        def work(task: tuple[int, int, int, int], worker: int) -> None:
            top, bottom, left, right = task
            workspace = self._workspaces[slot + worker]
            places = matrices(a, b, c, top, left)
            if witness and hold_a:
                # The winners are looked up in the rows of A after C has changed: they are copied as they are, not only packed.
                kept = [workspace.keep(f"held{i}", v[top:bottom]) for i, v in enumerate(a.block.values)]
                places = [p._replace(A=address, A_rows=k) for p, address in zip(places, kept, strict=True)]
            via, via_rows = c.via(top, left)
            shared = Shared(
                m=bottom - top,
                n=right - left,
                k=k,
                first=a.block.column,
                hold_a=hold_a and not witness,
                hold_b=hold_b,
                fresh=fresh,
                threshold=threshold,
                via=via,
                via_rows=via_rows,
                transposed_rows=planned.transposed_rows,
                **{name: workspace.address(name, size) for name, size in planned.workspace.items()},
            )
            words = pack(shared, places)
            product(words.buffer_info()[0])

        run(work, planned.tasks, planned.threads)

    # Pivot blocks.

    def _pivots(self, name: str, A: Block) -> None:
        for matrix in (A.at(index) for index in np.ndindex(A.batch)) if A.batch else (A,):
            self._pivot(name, matrix)

    def _pivot(self, name: str, A: Block) -> None:
        if 0 in A.shape:
            return
        a = Operand(A)
        if not a.writable:
            copy = copied(A, via=True)
            try:
                self._pivot(name, copy)
            finally:
                assign(A, copy)
            return
        n, (via, via_rows) = A.shape[0], a.via()
        threshold = self._kernels.representation.threshold(signed=self.signed)
        words = pack(Shared(m=n, n=n, k=n, first=A.row, threshold=threshold, via=via, via_rows=via_rows), matrices(a, a, a))
        self._kernels.function(name)(words.buffer_info()[0])
        if words[STATUS] >= 0:
            raise HarmfulPivot(A.row + words[STATUS])
