"""The CUDA engine: kernels generated for the GPU in use, on CuPy arrays, in the caller's stream."""

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
from semiring.kernels.cuda.kernels import PLAIN_THREADS, SMALL_PIVOT, STACK, pivot_threads
from semiring.kernels.cuda.launches import LaunchPlan, SplitKPlan, addresses, launched, recording
from semiring.kernels.cuda.products import CudaProducts, ProductPlan
from semiring.kernels.cuda.shapes import finds_safe
from semiring.kernels.cuda.statistics import begin
from semiring.kernels.engine import Block
from semiring.kernels.limits import SafeRange, ValueStatistics, interpreted, threshold

__all__ = ["CudaEngine"]

_SMALL = 64 << 20  # bytes of matrices whose schedules are captured as CUDA graphs, on a workspace of the same size


class CudaEngine(CudaProducts):
    """`Engine` on CuPy arrays of one GPU, with kernels generated for that GPU.

    With `asynchronous`, only `verify` waits for the GPU, as required while the current stream is captured. Floats then count as signed
    unless `statistics` or `signs` say otherwise, and the GPU itself tests whether integers are `signed`. Set it before the first operation.
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
        """Allocate `signs` for a product large enough that knowing the signs saves more time than finding them takes."""
        if self._kernels.ordered_bits and m * n * k >= machine.SIGNS_STEPS and min(m, n) >= machine.SIGNS_SIDE:
            self.signs = zeros(1)

    def launches(self, A: Block, B: Block, C: Block) -> list[tuple[ProductPlan, int | None]] | None:
        """Return the planned launches of C ← A⊗B for plain arrays, each with the value of `signs` that it requires (None: any).

        Returns None if no product of this arrangement was planned before.
        """
        if not self._plain:
            return None
        if self.signs is None:
            self._ordered_bits = False
        return self._launches_again(*map(self._again, (A, B, C)))

    def _again(self, A: Block) -> Block:
        return self.blank(A.values, A.via)

    def launches_within(self, A: Block, B: Block, C: Block, safe: SafeRange) -> list[tuple[LaunchPlan | SplitKPlan, SafeRange]]:
        """Return the launches of C ← A⊗B that check the operands while reading, each with the range to check.

        The list is empty if there is no such kernel. C is the product once a launch finds all operands in its range.
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
        """Multiply C ← A⊗B with checks on the fly; return True if this was possible and all operands are in the safe range.

        On False, C holds no product. C must not overlap A or B. The call waits for the GPU, instead of a separate pass over the operands.
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
        """Return the block of the arrays themselves, or of copies if they have to change and are not `owned`."""
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
        """Return True if floats sort as the integers of their bits, once −0.0 is replaced in `owned` arrays."""
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
        """Return the block of arrays for the result of a product."""
        dtypes = self._representation.dtypes
        arrays = tuple([stacked(v if v.dtype == d else v.view(d)) for v, d in zip(values, dtypes, strict=True)])
        return Block(arrays if len(arrays) == 1 else of_one_layout(arrays), None if via is None else stacked(via))

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Convert elements back to the caller's form, in `values`."""
        if self._representation.clamped:
            inner = int(self._representation.zero[0])
            infinity = self.semiring.identities(self.dtypes)[0][0]
            limits = threshold(inner, signed=self.signed), threshold(inner, signed=True)
            restore_infinity(A.values[0], A.via, *limits, infinity, self.signs)
        for source, target in zip(A.values, values, strict=True):
            if source.data.ptr != target.data.ptr:
                copy_into(source.view(target.dtype).reshape(target.shape), target)

    def close(self, A: Block) -> None:
        """Compute A ← A ⊕ A² ⊕ …."""
        self._close("close" if A.via is None else "close_witness", A, int(self._tests(A)))

    def eliminate(self, A: Block) -> None:
        """Compute A ← A*."""
        self._close("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """Compute A ← I ⊕ A."""
        for _, some in batches(A):
            self._along_diagonal("add_identity", some)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Run ``schedule(A)``; for small matrices as a CUDA graph from the second use on, as launches would take longer than the work.

        A schedule may run others on parts of A; small parts are captured even if A is not.
        """
        # The key keeps the kernels alive as long as the graph.
        key = (self._kernels, A.values[0].shape, A.via is None, self._ordered_bits, name)
        small = not compiler.rehearsing() and self.pivot < A.shape[0] and sum([v.nbytes for v in A.values]) <= _SMALL
        meter, self.meter = self.meter, None if small else self.meter  # capturing computes nothing; playing the graph does
        recorded = recording(key, A, lambda block: self._divergence_of(schedule, block)) if small else None
        self.meter = meter
        if recorded is None:
            compiler.run(lambda: self._tested(schedule, A), lambda: self._divergence_of(schedule, A))
        else:
            if self._divergent is recorded.divergent:  # the graph is about to overwrite this report
                self._divergent = self._divergent.copy()
            recorded.play(A)
            if self._divergent is None and A.row == 0:
                self._divergent = recorded.divergent
            else:
                earliest_divergence(self._found(len(A.values[0])), recorded.divergent, A.row)
            launched(self.meter, A.values[0].size * A.shape[0])

    def _divergence_of(self, schedule: Callable[[Block], None], A: Block) -> Any:
        """Run ``schedule(A)`` while it is captured, and return the array where it reports divergent pivots."""
        outer, self._divergent = self._divergent, None
        try:
            self._tested(schedule, A)
            return self._found(len(A.values[0]))
        finally:
            self._divergent = outer

    def verify(self) -> None:
        """Wait for the GPU, and raise DivergentPivot if `close` or `eliminate` found one since the last call."""
        if self._divergent is None:
            return
        found, self._divergent = self._divergent, None
        least = int(read_back(found).min(initial=NO_DIVERGENCE))
        if least != NO_DIVERGENCE:
            raise DivergentPivot(least)

    # Pivot blocks.

    def _close(self, name: str, A: Block, *more: int) -> None:
        n, count = A.shape[0], len(A.values[0])
        if n and count:
            side = SMALL_PIVOT if n <= SMALL_PIVOT and count >= STACK else self.block if n <= self.block else self.pivot
            function = self._kernels.function(name, ordered_bits=self._ordered_bits, side=side)
            arguments = (*flat(matrix_of(A)), n, *via_of(A, A.row), self._found(count).data.ptr, *more)
            function((count, 1, 1), (pivot_threads(self._representation, side), 1, 1), arguments)
            launched(self.meter, A.values[0].size * A.shape[0])

    def _tested(self, schedule: Callable[[Block], None], A: Block) -> None:
        """Run ``schedule(A)``, and report to `verify` loops that rounding made divergent after their pivot was tested."""
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
        """Return True if A is the whole matrix and nobody has tested its loops yet; the caller then has to."""
        if self._untested is not A:
            return False
        self._untested = None
        return True

    def _along_diagonal(self, name: str, A: Block, *more: int) -> None:
        n = A.shape[0]
        function = self._kernels.function(name)
        function((-(-n // PLAIN_THREADS), len(A.values[0]), 1), (PLAIN_THREADS, 1, 1), (*flat(matrix_of(A)), n, *more))

    def _found(self, count: int) -> Any:
        """Return the array where kernels report divergent pivots, one number per matrix."""
        if self._divergent is None:
            self._divergent = no_divergence(count)
        assert len(self._divergent) == count, "one batch at a time"
        return self._divergent
