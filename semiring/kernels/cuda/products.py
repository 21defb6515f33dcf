"""Products of blocks on a GPU: copies of operands, parts, and launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.pieces import GPU_SCRATCH
from semiring.common.progress import Meter
from semiring.kernels import machine
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate
from semiring.kernels.cuda.blocks import BATCH, access, aligned_copy, batches, row_slices, same_block, shares
from semiring.kernels.cuda.exponential import multiply_exponentials, pays
from semiring.kernels.cuda.kernels import GROUP, kernels_for, problem_for, reads_vectors
from semiring.kernels.cuda.launches import BlasPlan, LaunchPlan, Operands, SplitKPlan, addresses, arrangement, is_faster, launched, planned
from semiring.kernels.cuda.representation import Step
from semiring.kernels.cuda.shapes import plan_for_shape, split_plan
from semiring.kernels.cuda.tile import Tile, TileProblem, choose_tile, looks_up_in_shared, split_k
from semiring.kernels.engine import Block

__all__ = ["CudaProducts", "ProductPlan"]

_SLAB = 1 << 17  # the most steps of one launch: kernels number slices, of four steps at least, by 16 bits
_BLOCK = 64  # the side of tiles where C is also an operand: a result within one tile needs no copy
_PLANS = 4096  # the most launch plans kept
_ROWS = 1024  # parts of a product have a multiple of so many rows: addresses stay aligned, and the last tiles waste little

ProductPlan = LaunchPlan | SplitKPlan | BlasPlan


class CudaProducts:
    """The products of `CudaEngine`.

    `signs`, if not None, is an int32 array of one number. Before a product the GPU sets it to 1 if operands contain negative numbers other
    than −∞, or −0.0. The kernel for floats compared as integers then runs if `signs` is 0, and the general kernel otherwise.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._kernels = kernels_for(semiring, dtypes, number)
        self._representation = self._kernels.representation
        self._ordered_bits = self._kernels.ordered_bits
        self.signs: Any = None
        self.meter: Meter | None = None
        self._when = ALWAYS

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

    def _launches_again(self, A: Block, B: Block, C: Block) -> list[tuple[ProductPlan, int | None]] | None:
        """Return the planned launches of a product into a new array; None unless a product of this arrangement was planned before."""
        if self._kernels.exponential is not None and self._is_exponential(A, C):
            return None
        alike, found = arrangement(A, B, C), []
        for _, signed in self._variants():
            plan = self._kernels.plans.get((True, False, self._ordered_bits, alike))
            if plan is None:
                return None
            found.append((plan, None if self.signs is None else signed))
        return found

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
            compiler.run(lambda: self._by_exponentials(A, B, C, fresh=fresh))
            return
        # cuBLAS may add in another order if the number of rows differs.
        parts = [] if self.meter is None or self._kernels.plus_times else self._parts(A, B, C, self.meter.piece)
        if parts:
            for rows in parts:
                self._product(A[rows, :], B, C[rows, :], fresh=fresh)
            return
        plans = [(self._planned([(A, B, C)], fresh=fresh, together=False), predicate) for predicate in self._variants()]
        if all(plan is not None for plan, _ in plans):
            own = addresses([(A, B, C)])
            for plan, predicate in plans:
                assert plan is not None
                plan.start(own, predicate)
            self._launched([(A, B, C)])
        elif len(C.values[0]) > BATCH:
            # No part may change elements that another part reads.
            A, B = (aligned_copy(X) if shares(X, C) and not same_block(X, C) else X for X in (A, B))
            for start, some in batches(C):
                those = slice(start, start + BATCH)
                self._product(A.at(those), B.at(those), some, fresh=fresh)
        else:
            compiler.run(lambda: self._by_rows(A, B, C, fresh))

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
        assert not isinstance(plan, BlasPlan)
        return plan

    def _have_signs(self, A: Block, B: Block, C: Block) -> None:
        """Stop betting on operands of this arrangement: one had a sign."""
        self._kernels.plans["signless", arrangement(A, B, C)] = None

    def _plan(self, products: Sequence[Operands], *, fresh: bool, together: bool) -> ProductPlan | None:
        A, B, C = products[0]
        if not together:
            vectors = self._reads_vectors(witness=False)
            if (
                special := plan_for_shape(self._kernels, A, B, C, ordered_bits=self._ordered_bits, vectors=vectors, fresh=fresh)
            ) is not None:
                return special
        if together or shares(A, C) or shares(B, C):
            whole, side = self._in_one_launch(products), _BLOCK
        else:
            whole, side = self._as_it_lies(A, B, C), 0
        if not whole:
            return None
        problem = self._problem(products, side=side, shared_lookup=C.via is not None)
        tile = self.tile_for(problem)
        if (split := split_k(problem, tile, self._kernels.device)) is not None:
            return split_plan(self._kernels, split, products[0], partial(self._tiles, problem, tile, transposed=None), fresh=fresh)
        return self._tiles(problem, tile, [(*operands, operands[0].shape[1], fresh) for operands in products], None)

    def _as_it_lies(self, A: Block, B: Block, C: Block) -> bool:
        """Return True if a product, whose result overlaps no operand, needs neither copies nor slabs."""
        if len(C.values[0]) > BATCH or A.shape[1] > _SLAB or (C.via is not None and not self._looks_up_in_shared([(A, B, C)])):
            return False
        return not any(self._copied(A, B, C))

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
            self._launch((left, right, C), transposed and transposed[:, steps], fresh=fresh and steps.start == 0)

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

    def _launch(self, operands: Operands, transposed: Block | None, *, fresh: bool) -> None:
        own = addresses([operands], transposed)
        for predicate in self._variants():
            problem = self._problem([operands], shared_lookup=transposed is None and operands[2].via is not None)
            tile = self.tile_for(problem)
            split = split_k(problem, tile, self._kernels.device)
            if split is None:
                self._tiles(problem, tile, [(*operands, operands[0].shape[1], fresh)], transposed).start(own, predicate)
            else:
                launch = partial(self._tiles, problem, tile, transposed=None)
                split_plan(self._kernels, split, operands, launch, fresh=fresh).start(own, predicate)
        self._launched([operands])

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

    def _tiles(
        self, problem: TileProblem, tile: Tile, products: Sequence[tuple[Block, Block, Block, int, bool]], transposed: Block | None
    ) -> LaunchPlan:
        """Plan the launch of products with one batch and access, each with the steps of a part and `fresh`."""
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
