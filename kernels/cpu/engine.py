"""The CPU engine: generated kernels, tasks over threads, and what happens when an operand is part of the result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.block import Block
from semiring.kernels.cpu.arguments import STATUS
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.launch import Launch
from semiring.kernels.cpu.operands import Operand, assign, copied
from semiring.kernels.cpu.tasks import stripe
from semiring.kernels.cpu.threads import Threaded, run
from semiring.kernels.engine import ArrayEngine
from semiring.kernels.machine import SERIAL
from semiring.kernels.overlap import address, matched
from semiring.kernels.reference.operations import Operations, operations_for

__all__ = ["CpuEngine"]

_SIDE_BY_SIDE = 512
"""Matrices of a batch up to this side run one a thread."""

_strides = operator.attrgetter("strides")


class CpuEngine(ArrayEngine, Threaded):
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
        self.semiring, self.dtypes, self.requested = semiring, dtypes, threads
        self._kernels = kernels_for(semiring, dtypes, isa)

    @property
    def _operations(self) -> Operations:  # type: ignore[override]
        return operations_for(self.semiring, self.dtypes)

    # The operations of `Engine`.

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._pivot("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._pivot("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        rep = self._kernels.representation
        if rep.extremum is None:
            super().add_identity(A)
            return
        # The same operation, without the folding of its expression, which takes longer than a small closure.
        (v,) = A.values
        diagonal = v.reshape(-1)[:: v.shape[-1] + 1] if v.ndim == 2 and v.flags.c_contiguous else np.einsum("...ii->...i", v)  # views
        (np.fmin if rep.extremum == "min" else np.fmax)(rep.one[0], diagonal, out=diagonal)

    # Products.

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool, threads: int | None = None) -> None:
        """C ← C ⊕ A⊗B, or A⊗B where C is `fresh`, by so many workers."""
        if len(C.values[0].shape) > 2:
            self._products(A, B, C, fresh)
            return
        kernel, launch, places = self._launch(A, B, C, fresh, threads)
        held = launch.held(places)
        if held is None:
            self._product_with_copies(A, B, C, fresh, threads)
        elif True in held:
            self._run(A, B, C, fresh, threads, *held)
        else:
            launch.run(kernel, places, A.column)

    def _launch(
        self, A: Block, B: Block, C: Block, fresh: bool, threads: int | None, hold_a: bool = False, hold_b: bool = False
    ) -> tuple[Callable[[int], None], Launch, list[int]]:
        """The kernel of a product, how it is run, and the addresses of its matrices."""
        (m, k), (_, n), witness = A.values[0].shape, C.values[0].shape, C.via is not None
        threads = 1 if m * n * k < SERIAL else threads or self.threads
        matrices = (*A.values, *B.values, *C.values, C.via) if witness else (*A.values, *B.values, *C.values)
        launch = self._kernels.product_launch(m, n, k, threads, fresh, self.signed, witness, hold_a, hold_b, *map(_strides, matrices))
        return self._kernels.function("product_witness" if witness else "product"), launch, list(map(address, matrices))

    def _product_with_copies(self, A: Block, B: Block, C: Block, fresh: bool, threads: int | None) -> None:
        """One product whose matrices kernels may not be able to take as they lie, or where an operand is part of the result."""
        if 0 in C.shape:
            return
        a, b, c = Operand(A), Operand(B), Operand(C)
        if not c.writable:
            copy = copied(C, via=True)
            self._product(A, B, copy, fresh=fresh, threads=threads)
            assign(C, copy)
            return
        a, b = (x if x.aligned else x.copied() for x in (a, b))
        # An operand that is C itself is packed before C changes; one that is anything else of C, or a second one, is copied.
        hold_a, hold_b = a.shares(c), b.shares(c)
        if hold_a and (hold_b or a.layouts != c.layouts):
            a, hold_a = a.copied(), False
        if hold_b and b.layouts != c.layouts:
            b, hold_b = b.copied(), False
        if C.via is not None and hold_a:
            # The winners are looked up in the rows of A after C has changed: copies of some rows take their place.
            (m, k), n = A.shape, C.shape[1]
            rows = stripe(m, n, k, self._kernels.representation)
            for part in (slice(top, top + rows) for top in range(0, m, rows)):
                self._run(copied(A[part, :]), b.block, C[part, :], fresh, threads)
            return
        if C.via is not None and not a.contiguous_rows:
            a = a.copied()
        self._run(a.block, b.block, C, fresh, threads, hold_a, hold_b)

    def _run(self, A: Block, B: Block, C: Block, fresh: bool, threads: int | None, hold_a: bool = False, hold_b: bool = False) -> None:
        """One product whose matrices lie as the kernels need them."""
        kernel, launch, places = self._launch(A, B, C, fresh, threads, hold_a, hold_b)
        launch.run(kernel, places, A.column)

    def _products(self, A: Block, B: Block, C: Block, fresh: bool) -> None:
        """The products of a batch: many small ones side by side, large ones one by one."""
        # One matrix of the result is complete before another one begins.
        A, B = (X if all(matched(v, w) for v in X.values for w in C.values) else copied(X) for X in (A, B))
        indices, (m, n) = list(np.ndindex(C.batch)), C.shape
        threads = self.threads if len(indices) * m * n * A.shape[1] >= SERIAL else 1
        aside = len(indices) >= threads > 1 and max(m, n) <= _SIDE_BY_SIDE

        def one(index: tuple[int, ...], _: int) -> None:
            self._product(A.at(index), B.at(index), C.at(index), fresh=fresh, threads=1 if aside else threads)

        run(one, indices, threads if aside else 1)

    # Pivot blocks.

    def _pivot(self, name: str, A: Block) -> None:
        """Close a pivot block, or those of a batch."""
        (*batch, n, _), matrices = A.values[0].shape, A.values if A.via is None else (*A.values, A.via)
        if batch or n == 0:
            for index in np.ndindex(*batch) if n else ():
                self._pivot(name, A.at(index))
            return
        launch, places = self._kernels.pivot_launch(n, self.signed, *map(_strides, matrices)), list(map(address, matrices))
        if launch.held(places) is None:
            copy = copied(A, via=True)
            try:
                self._pivot(name, copy)
            finally:
                assign(A, copy)
            return
        words = launch.arguments(places, A.row)
        self._kernels.function(name)(words.buffer_info()[0])
        if words[STATUS] >= 0:
            raise HarmfulPivot(A.row + words[STATUS])
