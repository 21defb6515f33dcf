"""The CUDA engine: kernels generated for the GPU at hand, on CuPy arrays, in the caller's stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import DivergentPivot
from semiring.kernels import machine
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.arguments import flat
from semiring.kernels.cuda.blocks import batches, copy_into, matrix_of, of_one_layout, stacked, via_of
from semiring.kernels.cuda.capture import recording
from semiring.kernels.cuda.elements import (
    NO_DIVERGENCE,
    clamp_infinity,
    earliest_divergence,
    mend,
    no_divergence,
    read_back,
    restore_infinity,
    zeros,
)
from semiring.kernels.cuda.events import launched
from semiring.kernels.cuda.kernels import PLAIN_THREADS, SMALL_PIVOT, STACK, pivot_threads
from semiring.kernels.cuda.launches import LaunchPlan, SplitKPlan, addresses
from semiring.kernels.cuda.products import CudaProducts, ProductPlan
from semiring.kernels.cuda.shapes import finds_safe
from semiring.kernels.cuda.statistics import begin
from semiring.kernels.engine import Block
from semiring.kernels.limits import SafeRange, ValueStatistics, interpreted, threshold

__all__ = ["CudaEngine"]

_SMALL = 64 << 20
"""Bytes of a matrix up to which its schedule is recorded, on a workspace of the same size."""


class CudaEngine(CudaProducts):
    """`Engine` on CuPy arrays of one GPU, with kernels generated for it.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.

    Attributes
    ----------
    asynchronous : bool
        Whether nothing but `verify` waits for the GPU, as where the current stream is recorded: floats of which neither `statistics` nor
        `signs` tell that they have no sign are then taken to have one, and the GPU itself looks whether integers are `signed`. Set it
        before the first operation.
    """

    alignment = 1
    sweep = 1024

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        super().__init__(semiring, dtypes, number)
        self.signed, self.asynchronous = False, False
        self.statistics: ValueStatistics | None = None
        sides = self._kernels.sides
        self.pivot, self.block = sides[-1], sides[0]
        self._plain = len(dtypes) == 1 and not self._representation.clamped and self._representation.dtypes == dtypes
        self._divergent: Any = None
        self._untested: Block | None = None

    def expect_signs(self, m: int, n: int, k: int) -> None:
        """Make `signs` for a product of which it saves more to know them than it takes to look."""
        if self._kernels.ordered_bits and m * n * k >= machine.SIGNS_STEPS and min(m, n) >= machine.SIGNS_SIDE:
            self.signs = zeros(1)

    def launches(self, A: Block, B: Block, C: Block) -> list[tuple[ProductPlan, int | None]] | None:
        """What is launched for C ← A⊗B of blocks that are nothing but arrays, if for some that lie alike it was planned before.

        With each launch what the `signs` have to be for it, or None for any.
        """
        if not self._plain:
            return None
        if self.signs is None:
            self._ordered_bits = False
        return self._launches_again(*map(self._again, (A, B, C)))

    def _again(self, A: Block) -> Block:
        """A block of arrays, as `load` makes it of such."""
        return self.blank(A.values, A.via)

    def launches_within(self, A: Block, B: Block, C: Block, safe: SafeRange) -> list[tuple[LaunchPlan | SplitKPlan, SafeRange]]:
        """The launches of C ← A⊗B that check their operands as they read them, and the range that each looks for; none where none does.

        C is the product once one has found the range that it looks for.
        """
        if not self._plain or 0 in A.values[0].shape or 0 in C.values[0].shape:
            return []
        operands = self._again(A), self._again(B), self._again(C)
        exponential = self._kernels.exponential is not None and self._is_exponential(operands[0], operands[2])
        if exponential or (plan := self._checked(*operands)) is None:
            return []
        chance = self._checked(*operands, ordered=True) if self._kernels.ordered_bits else None
        return [(plan, safe)] if chance is None else [(chance, safe._replace(low=0.0)), (plan, safe)]

    def multiply_within(self, A: Block, B: Block, C: Block, safe: SafeRange, _: object) -> bool:
        """C ← A⊗B where operands are checked while they are read: whether that was done, and all their numbers are in the safe range.

        Where it says no, C holds no product. It shares no memory with A and B. This waits for the GPU, in the place of a pass over them.
        """
        import cupy

        if compiler.rehearsing() or cupy.cuda.get_current_stream().is_capturing():
            return False
        operands = self._again(A), self._again(B), self._again(C)
        for tried, (plan, sought) in enumerate(self.launches_within(A, B, C, safe)):
            self._launched([operands])
            if finds_safe(plan, addresses([operands]), sought, self.dtypes[0]):
                if tried:
                    self._have_signs(*operands)
                return True
        return False

    # The operations of `Engine`.

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block of the arrays themselves, or of copies if they have to change and are not owned."""
        block = self.blank(values, via)
        if self._representation.clamped:
            signs = None
            if self.asynchronous and not owned:
                signs = self.signs = zeros(1) if self.signs is None else self.signs
            return replace(block, values=(clamp_infinity(block.values[0], self._representation.zero[0], owned=owned, signs=signs),))
        if self._ordered_bits and self.signs is None:
            self._ordered_bits = self._orders_bits(block.values[0], owned=owned)
        return block

    def _orders_bits(self, values: Any, *, owned: bool) -> bool:
        """Whether floats sort as the integers of their bits, once −0.0 is 0.0 where they are owned."""
        known = self.statistics
        if known is None:
            if self.asynchronous:
                return False
            known = interpreted(begin((values,))()[0], values.dtype, ())
        if known.negative:
            return False
        if known.negative_zero and owned:
            mend(values)
        return owned or not known.negative_zero

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of arrays that a product is written to."""
        dtypes = self._representation.dtypes
        arrays = tuple([stacked(v if v.dtype == d else v.view(d)) for v, d in zip(values, dtypes, strict=True)])
        return Block(arrays if len(arrays) == 1 else of_one_layout(arrays), None if via is None else stacked(via))

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Give elements back their own form, in `values`."""
        if self._representation.clamped:
            inner = int(self._representation.zero[0])
            infinity = self.semiring.identities(self.dtypes)[0][0]
            limits = threshold(inner, signed=self.signed), threshold(inner, signed=True)
            restore_infinity(A.values[0], A.via, *limits, infinity, self.signs)
        for source, target in zip(A.values, values, strict=True):
            if source.data.ptr != target.data.ptr:
                copy_into(source.view(target.dtype).reshape(target.shape), target)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._close("close" if A.via is None else "close_witness", A, int(self._tests(A)))

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._close("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        for _, some in batches(A):
            self._along_diagonal("add_identity", some)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``; where launches would take longer than the work, as a CUDA graph from its second use on.

        A schedule may run others on parts of A, of which those that are small are recorded if the whole is not.
        """
        # The kernels themselves are in the key, so that they live as long as what launches them.
        key = (self._kernels, A.values[0].shape, A.via is None, self._ordered_bits, name)
        small = not compiler.rehearsing() and self.pivot < A.shape[0] and sum([v.nbytes for v in A.values]) <= _SMALL
        meter, self.meter = self.meter, None if small else self.meter  # what is recorded is done when it is played
        recorded = recording(key, A, lambda block: self._divergence_of(schedule, block)) if small else None
        self.meter = meter
        if recorded is None:
            compiler.run(lambda: self._tested(schedule, A), lambda: self._divergence_of(schedule, A))
        else:
            if self._divergent is recorded.divergent:  # which the recording begins anew
                self._divergent = self._divergent.copy()
            recorded.play(A)
            if self._divergent is None and A.row == 0:
                self._divergent = recorded.divergent
            else:
                earliest_divergence(self._found(len(A.values[0])), recorded.divergent, A.row)
            launched(self.meter, A.values[0].size * A.shape[0])

    def _divergence_of(self, schedule: Callable[[Block], None], A: Block) -> Any:
        """Where ``schedule(A)``, while it is recorded, tells of divergent pivots."""
        outer, self._divergent = self._divergent, None
        try:
            self._tested(schedule, A)
            return self._found(len(A.values[0]))
        finally:
            self._divergent = outer

    def verify(self) -> None:
        """Raise what `close` and `eliminate` found since the last call; this waits for the GPU."""
        if self._divergent is None:
            return
        found, self._divergent = self._divergent, None
        least = int(read_back(found).min(initial=NO_DIVERGENCE))
        if least != NO_DIVERGENCE:
            raise DivergentPivot(least)

    # Pivot blocks.

    def _close(self, name: str, A: Block, *more: int) -> None:
        """Launch a kernel of pivot blocks on A, all of a batch at once."""
        n, count = A.shape[0], len(A.values[0])
        if n and count:
            side = SMALL_PIVOT if n <= SMALL_PIVOT and count >= STACK else self.block if n <= self.block else self.pivot
            function = self._kernels.function(name, ordered_bits=self._ordered_bits, side=side)
            arguments = (*flat(matrix_of(A)), n, *via_of(A, A.row), self._found(count).data.ptr, *more)
            function((count, 1, 1), (pivot_threads(self._representation, side), 1, 1), arguments)
            launched(self.meter, A.values[0].size * A.shape[0])

    def _tested(self, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``, and tell `verify` of loops that rounding made divergent after their pivot was tested."""
        outer, self._untested = self._untested, A if self._kernels.rounds else None
        try:
            schedule(A)
            if self._tests(A):
                found = self._found(len(A.values[0]))
                for start, some in batches(A):
                    self._along_diagonal("test_loops", some, A.row, found.data.ptr + found.itemsize * start)
        finally:
            self._untested = outer

    def _tests(self, A: Block) -> bool:
        """Whether A is a whole matrix whose loops have to be tested, which whoever asks does."""
        if self._untested is not A:
            return False
        self._untested = None
        return True

    def _along_diagonal(self, name: str, A: Block, *more: int) -> None:
        """Launch a kernel on the diagonals of A."""
        n = A.shape[0]
        function = self._kernels.function(name)
        function((-(-n // PLAIN_THREADS), len(A.values[0]), 1), (PLAIN_THREADS, 1, 1), (*flat(matrix_of(A)), n, *more))

    def _found(self, count: int) -> Any:
        """Where kernels tell of divergent pivots, a number for each matrix."""
        if self._divergent is None:
            self._divergent = no_divergence(count)
        assert len(self._divergent) == count, "one batch at a time"
        return self._divergent
