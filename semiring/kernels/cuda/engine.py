"""The CUDA engine: kernels generated for the GPU in use, on CuPy arrays, in the caller's stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.pieces import GPU_SCRATCH
from semiring.common.errors import DivergentPivot
from semiring.common.progress import Meter
from semiring.kernels import machine
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate, flat
from semiring.kernels.cuda.blocks import (
    BATCH,
    access,
    aligned_copy,
    aligned_empty,
    batches,
    copy_into,
    matrix_of,
    of_one_layout,
    row_slices,
    same_block,
    shares,
    stacked,
    via_of,
)
from semiring.kernels.cuda.clamped import ClampedPlan, clamp_infinity, clamped_plan, restore_infinity
from semiring.kernels.cuda.elements import (
    NO_DIVERGENCE,
    earliest_divergence,
    for_each,
    mend,
    of_bytes,
    read_back,
)
from semiring.kernels.cuda.exponential import ExponentialPlan, exponential_plan, multiply_exponentials, pays
from semiring.kernels.cuda.kernels import (
    GROUP,
    PLAIN_THREADS,
    SMALL_PIVOT,
    STACK,
    ProductPlan,
    finds_safe,
    kernels_for,
    pivot_threads,
    plan_for_shape,
    problem_for,
    reads_vectors,
    split_plan,
)
from semiring.kernels.cuda.launches import (
    BlasPlan,
    LaunchPlan,
    Operands,
    Parts,
    SplitKPlan,
    TransposedPlan,
    addresses,
    arrangement,
    is_faster,
    launched,
    planned,
    recording,
    start_variants,
    transposed_plan,
)
from semiring.kernels.cuda.representation import Step
from semiring.kernels.cuda.small_integers import (
    Scales,
    SmallIntegerPlan,
    fits_tensor_cores,
    fitting,
    scales_for,
    side_of,
    small_integer_plan,
)
from semiring.kernels.cuda.statistics import begin
from semiring.kernels.cuda.tile import Tile, TileProblem, choose_tile, looks_up_in_shared, split_k
from semiring.kernels.engine import Block
from semiring.kernels.limits import RawStatistics, SafeRange, ValueStatistics, absorbing, interpreted

__all__ = ["CudaEngine"]

_SMALL = 64 << 20  # bytes of matrices whose schedules are captured as CUDA graphs, on a workspace of the same size
_SLAB = 1 << 17  # the most steps of one launch: kernels number slices, of four steps at least, by 16 bits
_BLOCK = 64  # the side of tiles where C is also an operand: a result within one tile needs no copy
_PLANS = 4096  # the most launch plans kept
_ROWS = 1024  # parts of a product have a multiple of so many rows: addresses stay aligned, and the last tiles waste little


class CudaEngine:
    """`Engine` on CuPy arrays of one GPU, with kernels generated for that GPU.

    With `asynchronous`, only `verify` waits for the GPU, as required while the current stream is captured. Floats then count as signed
    unless `statistics` or `signs` say otherwise, and the GPU itself tests whether integers are `signed`. Set it before the first operation.

    `signs`, if not None, is an int32 array of one number. Before a product the GPU sets it to 1 if operands contain negative numbers other
    than −∞, or −0.0. The kernel for floats compared as integers then runs if `signs` is 0, and the general kernel otherwise.
    """

    alignment = 1
    sweep = 1024

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._kernels = kernels_for(semiring, dtypes, number)
        self._representation = self._kernels.representation
        self._ordered_bits = self._kernels.ordered_bits
        self.signs: Any = None
        self.scales: Scales | None = None
        self.meter: Meter | None = None
        self._when = ALWAYS
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
            self.signs = of_bytes(1, 0)

    def expect_small_integers(self, m: int, n: int, k: int, count: int, read: Callable[[], Sequence[RawStatistics]]) -> None:
        """Prepare for a product of `count` matrices of small integers, if its operands are such; ``read()`` waits for their statistics."""
        r, limits = self._representation, self._kernels.device
        if fits_tensor_cores(r, limits, (m, n, k, count)):
            self.scales = fitting(read(), self.dtypes[0], side_of(r, limits), absorbing(self.semiring, self.dtypes))

    def launches(
        self, A: Block, B: Block, C: Block, *, fresh: bool
    ) -> Sequence[tuple[ProductPlan | ExponentialPlan | ClampedPlan, int | None]] | None:
        """Return the planned launches of C ← A⊗B if `fresh`, else of C ← C ⊕ A⊗B, each with its value of `signs` (None: any).

        None is returned if the arrays are neither plain nor clamped, and if no product of this arrangement was planned before.
        """
        if self._representation.clamped:
            return self._clamped(*map(self._again, (A, B, C)), fresh=fresh)
        if not self._plain:
            return None
        if self.signs is None:
            self._ordered_bits = False
        A, B, C = map(self._again, (A, B, C))
        alike = arrangement(A, B, C)
        if self._kernels.exponential is not None and self._is_exponential(A, C):
            plan = self._kernels.exponential_plans.get((fresh, alike))
            return None if plan is None else [(plan, None)]
        found: list[tuple[ProductPlan | ExponentialPlan, int | None]] = []
        for _, signed in self._variants():
            known = self._kernels.plans.get((fresh, False, self._ordered_bits, alike))
            if known is None:
                return None
            found.append((known, None if self.signs is None else signed))
        return found

    def _clamped(self, A: Block, B: Block, C: Block, *, fresh: bool) -> list[tuple[ClampedPlan, None]] | None:
        import cupy

        left, right = (cupy.empty(X.values[0].shape, X.values[0].dtype) for X in (A, B))
        tiles = self._kernels.plans.get((fresh, False, False, arrangement(Block((left,)), Block((right,)), C)))
        return None if tiles is None else [(clamped_plan(tiles, A, B, C, left, right, *self._infinities(), fresh=fresh), None)]

    def _infinities(self) -> tuple[int, int]:
        """Return the inner ∞ of clamped integers, and the caller's."""
        return int(self._representation.zero[0]), int(self.semiring.identities(self.dtypes)[0][0])

    def small_integers(self, A: Block, B: Block, C: Block, *, fresh: bool) -> SmallIntegerPlan | None:
        """Return the launches of C ← A⊗B, or of C ← C ⊕ A⊗B, for the caller's small integers; None if tensor cores do not pay."""
        zero, _ = self.semiring.identities(self.dtypes)
        return small_integer_plan(self._representation, self.number, zero[0], *map(self._again, (A, B, C)), fresh=fresh)

    def multiplies_small_integers(self, A: Block) -> bool:
        """Return True if tensor cores multiply the matrix by itself; floats are read, and have to be integers or infinite."""
        plan = small_integer_plan(self._representation, self.number, self._representation.zero[0], A, A, A, fresh=False)
        if plan is None or self.dtypes[0].kind != "f":
            return plan is not None
        fraction = of_bytes(1, 0)
        test = "if (x - x == 0 && x != decltype(x + 0)(int64(x))) *reinterpret_cast<int32*>(fraction) = 1"
        for_each(test, {"x": A.values[0]}, fraction=fraction.data.ptr)
        return not read_back(fraction)[0]

    def take_small_integers(self, g: int, left: tuple[int, int], right: tuple[int, int]) -> None:
        """Multiply large matrices on tensor cores from now on; entries outside of an operand's span from its origin count as ∞.

        Origins and spans count in the direction in which sums get worse.
        """
        side = side_of(self._representation, self._kernels.device)
        self.scales = scales_for(g, (side * left[0], left[1]), (side * right[0], right[1]), side=side)

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
                signs = self.signs = of_bytes(1, 0) if self.signs is None else self.signs
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
            restore_infinity(A.values[0], A.via, *self._infinities(), signed=self.signed, signs=self.signs)
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
        small = self.pivot < A.shape[0] and sum([v.nbytes for v in A.values]) <= _SMALL
        small = small and (self.scales is None or A.shape[0] ** 3 < machine.POWERS_STEPS)  # the graph would keep the scales
        recorded = recording(self, key, A, lambda block: self._divergence_of(schedule, block)) if small else None
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
            self._divergent = of_bytes(count, NO_DIVERGENCE & 0xFF)
        assert len(self._divergent) == count, "one batch at a time"
        return self._divergent

    # Products: copies of operands, parts, and launches.

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply_add_each(self, *products: Operands) -> None:
        """C ← C ⊕ A⊗B for independent products: in one launch if no operand has to be copied."""
        plan = None
        if products and not self._are_alone(products):
            plan = self._planned(products, fresh=False, together=True)
        if plan is not None:
            plan.start(addresses(products))
            self._launched(products)
        else:
            for operands in products:
                self.multiply_add(*operands)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def _variants(self) -> Iterator[LaunchPredicate]:
        """Yield the predicate of each kernel variant to launch: one variant, or two if `signs` will decide."""
        if self.signs is None or not self._kernels.ordered_bits:
            yield self._when
            return
        for signed in (True, False):  # False last, so that bits count as ordered afterwards
            self._ordered_bits = not signed
            yield LaunchPredicate(self.signs.data.ptr, int(signed))

    def tile_for(self, problem: TileProblem) -> Tile:
        """Return the tile of a product."""
        return choose_tile(problem, self._kernels.device)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """Multiply in one launch, or in parts of C for which copies of operands fit the scratch memory."""
        if C.values[0].size == 0:
            return
        if self._kernels.exponential is not None and self._is_exponential(A, C):
            known = self._exponential(A, B, C, fresh=fresh)
            if known is None:
                compiler.run(lambda: self._by_exponentials(A, B, C, fresh=fresh))
            else:
                compiler.run(lambda: known.start(addresses([(A, B, C)])))
                self._launched([(A, B, C)])
            return
        if self.scales is not None and self._by_powers(self.scales, A, B, C, fresh=fresh):
            self._launched([(A, B, C)])
            return
        # cuBLAS may add in another order if the number of rows differs.
        parts = [] if self.meter is None or self._kernels.plus_times else self._parts(A, B, C, self.meter.piece)
        if parts:
            for rows in parts:
                self._product(A[rows, :], B, C[rows, :], fresh=fresh)
            return
        plans = [(self._planned([(A, B, C)], fresh=fresh, together=False), predicate) for predicate in self._variants()]
        if all(plan is not None for plan, _ in plans):
            start_variants(plans, addresses([(A, B, C)]))
            self._launched([(A, B, C)])
        elif len(C.values[0]) > BATCH:
            # No part may change elements that another part reads.
            A, B = (aligned_copy(X) if shares(X, C) and not same_block(X, C) else X for X in (A, B))
            for start, some in batches(C):
                those = slice(start, start + BATCH)
                self._product(A.at(those), B.at(those), some, fresh=fresh)
        else:
            compiler.run(lambda: self._by_rows(A, B, C, fresh))

    def _by_powers(self, scales: Scales, A: Block, B: Block, C: Block, *, fresh: bool) -> bool:
        """Multiply on tensor cores; return False if that does not pay, memory is short, or a float is no integer."""
        plan = small_integer_plan(self._representation, self.number, self._representation.zero[0], A, B, C, fresh=fresh)
        return plan is not None and bool(compiler.run(lambda: plan.scaled(scales).start(addresses([(A, B, C)]))))

    def _exponential(self, A: Block, B: Block, C: Block, *, fresh: bool) -> ExponentialPlan | None:
        """Return the plan of a product by exponentials; None if operands overlap C or have to be copied, or for parts of C."""
        plans, scale, alike = self._kernels.exponential_plans, self._kernels.exponential, arrangement(A, B, C)
        try:
            return plans[fresh, alike]
        except KeyError:
            steps = None if shares(A, C) or shares(B, C) else self._planned([(A, B, C)], fresh=fresh, together=False)
            assert scale is not None
            if len(plans) >= _PLANS:
                plans.clear()
            plans[fresh, alike] = plan = None if steps is None else exponential_plan(A, B, C, scale, steps, fresh=fresh)
            return plan

    def _by_exponentials(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """Multiply by exponentials; the GPU has parts computed step by step if float64 exponents do not reach far enough."""
        scale = self._kernels.exponential
        assert scale is not None

        def by_steps(A: Block, B: Block, C: Block, predicate: LaunchPredicate) -> None:
            self._when = predicate
            try:
                self._by_rows(A, B, C, fresh)
            finally:
                self._when = ALWAYS

        multiply_exponentials(A, B, C, scale, by_steps, fresh=fresh)

    def _is_exponential(self, A: Block, C: Block) -> bool:
        """Return True if the product is computed by exponentials, which takes less time than an exponential per step."""
        count, (m, n), dtype = len(C.values[0]), C.shape, self.dtypes[0]
        return C.via is None and pays(dtype, count, m, n, A.shape[1])

    def _are_alone(self, products: Sequence[Operands]) -> bool:
        """Return True if each of several products is launched separately, because one uses exponentials or cuBLAS."""
        if self._kernels.exponential is not None:
            return any(self._is_exponential(A, C) for A, _, C in products)
        least, size = machine.BLAS_STEPS, self._representation.size
        return self._kernels.plus_times and any(is_faster(least, size, len(C.values[0]), *C.shape, A.shape[1]) for A, _, C in products)

    def _planned(self, products: Sequence[Operands], *, fresh: bool, together: bool) -> ProductPlan | None:
        """Return the launches of products without copies; None if copies are needed. With `together` there may be several products."""
        arrangements = [arrangement(*operands) for operands in products]
        plans, key = self._kernels.plans, (fresh, together, self._ordered_bits, *arrangements)
        if key in plans:
            return plans[key]
        plan = self._plan(products, fresh=fresh, together=together)
        if None not in arrangements:
            if len(plans) >= _PLANS:
                plans.clear()
            plans[key] = plan
        return plan

    def _checked(self, A: Block, B: Block, C: Block, *, ordered: bool = False) -> LaunchPlan | SplitKPlan | None:
        """Return the launches of A⊗B by a kernel that checks the operands while reading; None if there is no such kernel.

        With `ordered`, the kernel compares floats as integers, and bets on operands without signs.
        """
        plans, key = self._kernels.plans, ("signless" if ordered else "checked", arrangement(A, B, C))
        if key not in plans:
            vectors = self._reads_vectors(witness=False)
            plans[key] = plan_for_shape(self._kernels, A, B, C, ordered_bits=ordered, vectors=vectors, fresh=True, checked=True)
        plan = plans[key]
        assert not isinstance(plan, BlasPlan | TransposedPlan)
        return plan

    def _have_signs(self, A: Block, B: Block, C: Block) -> None:
        """Stop betting on operands of this arrangement: one had a sign."""
        self._kernels.plans["signless", arrangement(A, B, C)] = None

    def _plan(self, products: Sequence[Operands], *, fresh: bool, together: bool) -> ProductPlan | None:
        A, B, C = products[0]
        if not together:
            vectors = self._reads_vectors(witness=False)
            special = plan_for_shape(self._kernels, A, B, C, ordered_bits=self._ordered_bits, vectors=vectors, fresh=fresh)
            if special is not None:
                return special
        if together or shares(A, C) or shares(B, C):
            whole, side = self._in_one_launch(products), _BLOCK
        else:
            whole, side = self._as_it_lies(A, B, C), 0
        if not whole:
            return None
        if side or C.via is None or self._looks_up_in_shared(products):
            return self._tiled(products, None, fresh=fresh, side=side)
        columns = aligned_empty(B, transposed=True)
        tiles = self._tiled(products, columns, fresh=fresh)
        assert isinstance(tiles, LaunchPlan), "winners need whole sums"
        return transposed_plan(tiles, B, columns)

    def _as_it_lies(self, A: Block, B: Block, C: Block) -> bool:
        """Return True if a product, whose result overlaps no operand, needs no slabs, and no copies but a small transpose of B."""
        if len(C.values[0]) > BATCH or A.shape[1] > _SLAB:
            return False
        large = C.via is not None and B.values[0].nbytes > _scratch(C) and not self._looks_up_in_shared([(A, B, C)])
        return not (large or any(self._copied(A, B, C)))

    def _copied(self, A: Block, B: Block, C: Block) -> list[bool]:
        """Return True for A, and for B, if a copy in aligned rows pays: tiles read an operand once per row or column of tiles."""
        (m, n), k = C.shape, A.shape[1]
        large = m * n * k >= machine.ALIGNED_STEPS and self._reads_vectors(witness=C.via is not None)
        copied = [large and side >= machine.ALIGNED_SIDE and access(X) != "vectors" for X, side in ((A, n), (B, m))]
        size = sum(X.values[0].nbytes for X, aside in zip((A, B), copied, strict=True) if aside)
        return copied if size * machine.ALIGNED_DEPTH <= _scratch(C) * k else [False, False]

    def _by_rows(self, A: Block, B: Block, C: Block, fresh: bool) -> None:
        """Multiply at most `BATCH` matrices, with copies of the operands that overlap C."""
        limit, shared_a, shared_b = _scratch(C), shares(A, C), shares(B, C)
        if shared_a and (shared_b or not same_block(A, C)):
            A, shared_a = aligned_copy(A), False
        if shared_b and not same_block(B, C):
            B, shared_b = aligned_copy(B), False
        if not shared_a:
            self._by_columns(A, B, C, shared_b, limit, fresh)
            return
        # Copies of A's rows are made before C changes them.
        for rows in row_slices(C.shape[0], A.values[0].nbytes, limit):
            self._by_columns(aligned_copy(A[rows, :]), B, C[rows, :], shared_b, limit, fresh)

    def _by_columns(self, A: Block, B: Block, C: Block, shared_b: bool, limit: int, fresh: bool) -> None:
        """Multiply in columns of C, for which copies of B and of its transpose fit the scratch memory."""
        global_lookup = C.via is not None and not self._looks_up_in_shared([(A, B, C)])
        if not (shared_b or global_lookup):
            self._by_slabs(A, B, C, None, limit, fresh)
            return
        for columns in row_slices(C.shape[1], B.values[0].nbytes * (shared_b + global_lookup), limit):
            some = aligned_copy(B[:, columns]) if shared_b else B[:, columns]
            self._by_slabs(A, some, C[:, columns], aligned_copy(some, transposed=True) if global_lookup else None, limit, fresh)

    def _by_slabs(self, A: Block, B: Block, C: Block, transposed: Block | None, limit: int, fresh: bool) -> None:
        """Multiply operands that do not overlap C, in slabs of steps; if it pays, from copies in aligned rows."""
        k, copied = A.shape[1], self._copied(A, B, C)
        size = sum(X.values[0].nbytes for X, aside in zip((A, B), copied, strict=True) if aside)
        for steps in row_slices(max(k, 1), size, limit, _SLAB):
            left, right = (aligned_copy(X) if aside else X for X, aside in zip((A[:, steps], B[steps, :]), copied, strict=True))
            products, columns = [(left, right, C)], transposed and transposed[:, steps]
            own = addresses(products, columns)
            for predicate in self._variants():
                self._tiled(products, columns, fresh=fresh and steps.start == 0).start(own, predicate)
            self._launched(products)

    def _in_one_launch(self, products: Sequence[Operands]) -> bool:
        """Return True if products need no copies: each tile reads only itself from C, and no witness is looked up in global memory."""
        results = [C for *_, C in products]
        if not 0 < len(products) <= GROUP or any(C.values[0].size == 0 or len(C.values[0]) > BATCH for C in results):
            return False
        witness = results[0].via is not None
        how = {(A.shape[1], self._access(A, B, witness=witness)) for A, B, _ in products}
        if len(how) > 1 or (witness and not self._looks_up_in_shared(products)):
            return False
        tile = self.tile_for(self._problem(products, side=_BLOCK, shared_lookup=witness))

        def apart(X: Block, C: Block, *, one_tile: bool) -> bool:
            return not shares(X, C) or (same_block(X, C) and one_tile)

        return all(
            apart(A, C, one_tile=C.shape[1] <= tile.columns) and apart(B, C, one_tile=C.shape[0] <= tile.rows) for A, B, C in products
        )

    def _looks_up_in_shared(self, products: Sequence[Operands]) -> bool:
        return looks_up_in_shared(self._problem(products), self._kernels.device)

    def _step(self, *, witness: bool) -> Step | None:
        return self._kernels.step(ordered_bits=self._ordered_bits, pairs=not witness)

    def _reads_vectors(self, *, witness: bool) -> bool:
        return reads_vectors(self._representation, self._step(witness=witness))

    def _access(self, A: Block, B: Block, *, witness: bool) -> tuple[str, str]:
        vectors = self._reads_vectors(witness=witness)
        return access(A, vectors=vectors), access(B, vectors=vectors)

    def _problem(self, products: Sequence[Operands], *, side: int = 0, shared_lookup: bool = False) -> TileProblem:
        """Return the tile problem of the largest product; all products have equally many steps."""
        A, B, C = max(products, key=lambda p: p[2].values[0].size)
        shape, witness = (*C.shape, A.shape[1], len(C.values[0])), C.via is not None
        light = self._access(A, B, witness=witness) == ("vectors", "vectors")
        splittable = self.semiring.selects and not witness and side == 0 and shape[3] == 1
        r, step = self._representation, self._step(witness=witness)
        return problem_for(r, step, shape, witness=witness, light=light, side=side, shared_lookup=shared_lookup, splittable=splittable)

    def _parts(self, A: Block, B: Block, C: Block, most: int) -> list[slice]:
        """Return rows of C with about `most` steps each, if one launch would take many more; else an empty list."""
        (m, n), k = C.shape, A.shape[1]
        rows = max(1, -(-most // (max(n * k, 1) * _ROWS))) * _ROWS
        if len(C.values[0]) > 1 or 2 * rows > m or shares(A, C) or shares(B, C):
            return []
        return [slice(start, start + rows) for start in range(0, m, rows)]

    def _launched(self, products: Sequence[Operands]) -> None:
        if self.meter is not None:
            launched(self.meter, sum([A.shape[1] * C.values[0].size for A, _, C in products]))

    def _tiled(self, products: Sequence[Operands], transposed: Block | None, *, fresh: bool, side: int = 0) -> LaunchPlan | SplitKPlan:
        """Plan products by tiles; `transposed` is B with contiguous columns, for witnesses that are looked up in global memory."""
        problem = self._problem(products, side=side, shared_lookup=transposed is None and products[0][2].via is not None)
        tile = self.tile_for(problem)
        if (split := split_k(problem, tile, self._kernels.device)) is not None:
            return split_plan(self._kernels, split, products[0], partial(self._tiles, problem, tile, transposed=None), fresh=fresh)
        return self._tiles(problem, tile, [(*operands, operands[0].shape[1], fresh) for operands in products], transposed)

    def _tiles(self, problem: TileProblem, tile: Tile, products: Parts, transposed: Block | None) -> LaunchPlan:
        """Plan the launch of products with one batch and access."""
        # A product that may be launched in a group uses the group's kernel also when alone.
        count = 1 if len(products) == 1 and problem.side == 0 else GROUP
        kernel = self._kernels.function(
            "product" if not problem.witness else "product_shared_witness" if problem.shared_lookup else "product_witness",
            ordered_bits=self._ordered_bits,
            tile=tile,
            access=self._access(*products[0][:2], witness=problem.witness),
            count=count,
        )
        each = [
            (A, B, C, tile.count(*C.shape) * max(1, -(-A.shape[1] // max(1, depth))), depth, fresh) for A, B, C, depth, fresh in products
        ]
        grid = sum(tiles for *_, tiles, _, _ in each), problem.batch, 1
        shared_bytes = tile.shared_bytes(problem.bytes, witness=problem.witness, shared_lookup=problem.shared_lookup)
        return planned(kernel, grid, tile.threads, shared_bytes, count, each, transposed)


def _scratch(C: Block) -> int:
    return max(GPU_SCRATCH, int(C.values[0].nbytes) // 50)
