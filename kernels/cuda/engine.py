"""The CUDA engine: kernels generated for the GPU at hand, on CuPy arrays, in the caller's stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.block import Block
from semiring.kernels.cuda.choice import Division, choose, divide, is_near
from semiring.kernels.cuda.conversion import halved, has_ordered_bits, restore
from semiring.kernels.cuda.graphs import recording
from semiring.kernels.cuda.harmful import NONE, earlier, nothing
from semiring.kernels.cuda.kernels import GROUP, PLAIN_THREADS, kernels_for, pivot_sides, pivot_threads, problem_for, reads_vectors
from semiring.kernels.cuda.operands import access, by_value, copy, matrix, of_one_layout, parts, same, shares, stacked, via_arguments
from semiring.kernels.cuda.steps import Step
from semiring.kernels.cuda.tile import Problem, Tile, launch
from semiring.kernels.infinities import threshold
from semiring.kernels.survey import Survey

__all__ = ["CudaEngine"]

_SCRATCH = 64 << 20
"""Bytes that a copy of an operand may have, unless a fiftieth of C is more."""

_SMALL = 64 << 20
"""Bytes of a matrix up to which its schedule is recorded, on a workspace of the same size."""

_BATCH = 65535
"""Matrices that one launch can number."""

_SLAB = 1 << 17
"""Steps that one launch takes; the kernels number its slices, of four steps at least, by 16 bits."""

_LARGE, _WIDE, _DEEP = 1 << 29, 512, 512
"""Steps of a product, and its rows or columns, from which on a copy in aligned rows pays; and the depth of its slabs."""

_BLOCK = 64
"""Rows and columns that one tile covers of a result that is an operand too, so that it needs no copy."""

Operands = tuple[Block, Block, Block]
"""A, B and C of a product."""


class CudaEngine:
    """`Engine` on CuPy arrays of one GPU, with kernels generated for it.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    granule = 1
    sweep = 1024

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self.signed = False
        self.seen: Survey | None = None
        self._kernels = kernels_for(semiring, dtypes, number)
        self._representation = self._kernels.representation
        self._sides = pivot_sides(self._representation)
        self.pivot, self.block = max(self._sides), min(self._sides)
        self._ordered_bits = self._representation.keeps_bits_ordered
        self._harmful: Any = None

    # The operations of `Engine`.

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block of the arrays themselves, or of copies if they have to change and are not owned."""
        r, block = self._representation, self.blank(values, via)
        if r.halved:
            return replace(block, values=(halved(block.values[0], r.zero[0], owned=owned),))
        self._ordered_bits = self._ordered_bits and self._orders_bits(block.values[0], owned=owned)
        return block

    def _orders_bits(self, values: Any, *, owned: bool) -> bool:
        """Whether floats sort as the integers of their bits, once −0.0 is 0.0 where they are owned."""
        if self.seen is not None and (self.seen.negative or not self.seen.negative_zero):
            return not self.seen.negative
        return has_ordered_bits(values, mend=owned)

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of arrays that a product is written to."""
        as_held = (v if v.dtype == d else v.view(d) for v, d in zip(values, self._representation.dtypes, strict=True))
        arrays = of_one_layout(tuple(map(stacked, as_held)))
        return Block(arrays, None if via is None else stacked(via))

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Give elements back their own form, in `values`."""
        if self._representation.halved:
            half = int(self._representation.zero[0])
            infinity = self.semiring.identities(self.dtypes)[0][0]
            restore(A.values[0], A.via, threshold(half, signed=self.signed), infinity)
        for source, target in zip(A.values, values, strict=True):
            if source.data.ptr != target.data.ptr:
                target[...] = source.view(target.dtype).reshape(target.shape)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply_add_each(self, *products: Operands) -> None:
        """C ← C ⊕ A⊗B for products that do not depend on each other: in one launch where no operand has to be copied."""
        if self._in_one_launch(products):
            self._launch(products, None, fresh=False, side=_BLOCK)
        else:
            for operands in products:
                self.multiply_add(*operands)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._close("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._close("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        for _, some in _batches(A):
            self._along_diagonal("add_identity", some)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``; where launches would take longer than the work, as a CUDA graph from its second use on.

        A schedule may run others on parts of A, of which those that are small are recorded if the whole is not.
        """
        # The kernels themselves are in the key, so that they live as long as what launches them.
        key = (self._kernels, A.values[0].shape, A.via is None, self._ordered_bits, name)
        small = self.pivot < A.shape[0] and sum(v.nbytes for v in A.values) <= _SMALL
        recorded = recording(key, A, lambda block: self._told(schedule, block)) if small else None
        if recorded is None:
            schedule(A)
            self._test_loops(A)
        else:
            if self._harmful is recorded.harmful:  # which the recording begins anew
                self._harmful = self._harmful.copy()
            recorded.play(A)
            if self._harmful is None and A.row == 0:
                self._harmful = recorded.harmful
            else:
                earlier(self._found(len(A.values[0])), recorded.harmful, A.row)

    def _told(self, schedule: Callable[[Block], None], A: Block) -> Any:
        """Where ``schedule(A)``, while it is recorded, tells of harmful pivots."""
        outer, self._harmful = self._harmful, None
        try:
            schedule(A)
            self._test_loops(A)
            return self._found(len(A.values[0]))
        finally:
            self._harmful = outer

    def verify(self) -> None:
        """Raise what `close` and `eliminate` found since the last call; this waits for the GPU."""
        if self._harmful is None:
            return
        least = int(self._harmful.get().min(initial=NONE))
        self._harmful = None
        if least != NONE:
            raise HarmfulPivot(least)

    # Pivot blocks.

    def _close(self, name: str, A: Block) -> None:
        n, count = A.shape[0], len(A.values[0])
        if n and count:
            side = min(s for s in self._sides if n <= s)
            function = self._kernels.function(name, ordered_bits=self._ordered_bits, side=side)
            arguments = (*matrix(A), n, *via_arguments(A), A.row, self._found(count).data.ptr)
            function((count, 1, 1), (pivot_threads(self._representation, side), 1, 1), arguments)

    def _test_loops(self, A: Block) -> None:
        """Tell `verify` of loops that rounding made harmful after their pivot was tested."""
        if any(d.kind == "f" for d in self.dtypes):
            found = self._found(len(A.values[0]))
            for start, some in _batches(A):
                self._along_diagonal("test_loops", some, A.row, found.data.ptr + found.itemsize * start)

    def _along_diagonal(self, name: str, A: Block, *more: int) -> None:
        n = A.shape[0]
        function = self._kernels.function(name)
        function((-(-n // PLAIN_THREADS), len(A.values[0]), 1), (PLAIN_THREADS, 1, 1), (*matrix(A), n, *more))

    def _found(self, count: int) -> Any:
        """Where kernels tell of harmful pivots, a number for each matrix."""
        if self._harmful is None:
            self._harmful = nothing(count)
        assert len(self._harmful) == count, "one batch at a time"
        return self._harmful

    # Products.

    def tile_for(self, problem: Problem) -> Tile:
        """The tile of a product."""
        return choose(problem, self._kernels.device)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """One launch, or one for each part of C for which copies of operands fit the scratch memory."""
        if 0 in C.shape or C.values[0].size == 0:
            return
        if len(C.values[0]) > _BATCH:
            # No part may change what another one reads.
            A, B = (replace(X, values=tuple(v.copy() for v in X.values)) if shares(X, C) and not same(X, C) else X for X in (A, B))
            for start, some in _batches(C):
                those = slice(start, start + _BATCH)
                self._product(A.at(those), B.at(those), some, fresh=fresh)
            return
        limit = max(_SCRATCH, C.values[0].nbytes // 50)
        shared_a, shared_b = shares(A, C), shares(B, C)
        if (shared_a or shared_b) and self._in_one_launch([(A, B, C)]):
            self._launch([(A, B, C)], None, fresh=fresh, side=_BLOCK)
            return
        if shared_a and (shared_b or not same(A, C)):
            A, shared_a = copy(A), False
        if shared_b and not same(B, C):
            B, shared_b = copy(B), False
        if not shared_a:
            self._by_columns(A, B, C, shared_b, limit, fresh)
            return
        # A's rows are copied before the first of their elements changes.
        for rows in parts(C.shape[0], A.values[0].nbytes, limit):
            self._by_columns(copy(A[rows, :]), B, C[rows, :], shared_b, limit, fresh)

    def _by_columns(self, A: Block, B: Block, C: Block, shared_b: bool, limit: int, fresh: bool) -> None:
        far = C.via is not None and not self._is_near([(A, B, C)])
        if not (shared_b or far):
            self._by_slabs(A, B, C, None, limit, fresh)
            return
        for columns in parts(C.shape[1], B.values[0].nbytes * (shared_b + far), limit):
            some = copy(B[:, columns]) if shared_b else B[:, columns]
            self._by_slabs(A, some, C[:, columns], copy(some, transposed=True) if far else None, limit, fresh)

    def _by_slabs(self, A: Block, B: Block, C: Block, transposed: Block | None, limit: int, fresh: bool) -> None:
        """The product of operands that C shares nothing with, in slabs of steps; where it pays, of copies in aligned rows."""
        (m, n), k = C.shape, A.shape[1]
        vectors = self._reads_vectors(witness=C.via is not None)
        large = vectors and m * n * k >= _LARGE
        # A copy is read once for each row or column of tiles.
        apart = [large and side >= _WIDE and access(X) != "vectors" for X, side in ((A, n), (B, m))]
        size = sum(X.values[0].nbytes for X, aside in zip((A, B), apart, strict=True) if aside)
        if size * _DEEP > limit * k:
            apart, size = [False, False], 0
        for steps in parts(max(k, 1), size, limit, _SLAB):
            left, right = (copy(X) if aside else X for X, aside in zip((A[:, steps], B[steps, :]), apart, strict=True))
            self._launch([(left, right, C)], transposed and transposed[:, steps], fresh=fresh and steps.start == 0)

    def _in_one_launch(self, products: Sequence[Operands]) -> bool:
        """Whether products need no copies: of C each tile reads nothing but itself, and no witness is looked for in device memory."""
        results = [C for *_, C in products]
        if not 0 < len(products) <= GROUP or any(C.values[0].size == 0 or len(C.values[0]) > _BATCH for C in results):
            return False
        witness = results[0].via is not None
        how = {(A.shape[1], self._access(A, B, witness=witness)) for A, B, _ in products}
        if len(how) > 1 or (witness and not self._is_near(products)):
            return False
        tile = self.tile_for(self._problem(products, side=_BLOCK, near=witness))

        def apart(X: Block, C: Block, *, one_tile: bool) -> bool:
            return not shares(X, C) or (same(X, C) and one_tile)

        return all(
            apart(A, C, one_tile=C.shape[1] <= tile.columns) and apart(B, C, one_tile=C.shape[0] <= tile.rows) for A, B, C in products
        )

    def _is_near(self, products: Sequence[Operands]) -> bool:
        """Whether witnesses are looked for in shared memory, where all slices of so few steps are."""
        return is_near(self._problem(products), self._kernels.device)

    def _step(self, *, witness: bool) -> Step | None:
        return self._kernels.step(ordered_bits=self._ordered_bits, pairs=not witness)

    def _reads_vectors(self, *, witness: bool) -> bool:
        return reads_vectors(self._representation, self._step(witness=witness))

    def _access(self, A: Block, B: Block, *, witness: bool) -> tuple[str, str]:
        vectors = self._reads_vectors(witness=witness)
        return access(A, vectors=vectors), access(B, vectors=vectors)

    def _problem(self, products: Sequence[Operands], *, side: int = 0, near: bool = False) -> Problem:
        """The largest of the products, all of which have as many steps."""
        A, B, C = max(products, key=lambda p: p[2].values[0].size)
        shape, witness = (*C.shape, A.shape[1], len(C.values[0])), C.via is not None
        light = self._access(A, B, witness=witness) == ("vectors", "vectors")
        divisible = self.semiring.selects and not witness and side == 0 and shape[3] == 1
        r, step = self._representation, self._step(witness=witness)
        return problem_for(r, step, shape, witness=witness, light=light, side=side, near=near, divisible=divisible)

    def _launch(self, products: Sequence[Operands], transposed: Block | None, *, fresh: bool, side: int = 0) -> None:
        """Products of one batch and access, of as many steps; a single one where a witness is looked for in the transpose of B."""
        problem = self._problem(products, side=side, near=transposed is None and products[0][2].via is not None)
        tile = self.tile_for(problem)
        division = divide(problem, tile, self._kernels.device)
        if division is None:
            self._launch_tiles(problem, tile, [(*operands, operands[0].shape[1], fresh) for operands in products], transposed)
        else:
            self._launch_parts(problem, tile, division, products[0], fresh=fresh)

    def _launch_parts(self, problem: Problem, tile: Tile, division: Division, operands: Operands, *, fresh: bool) -> None:
        """A product, of which the last rows are sums of parts."""
        import cupy

        A, B, C = operands
        whole, rest = slice(division.rows), slice(division.rows, None)
        parts = Block(tuple(cupy.empty((division.parts, *v[0, rest].shape), v.dtype) for v in C.values))
        products = [(A[whole, :], B, C[whole, :], A.shape[1], fresh)] if division.rows else []
        self._launch_tiles(problem, tile, [*products, (A[rest, :], B, parts, division.depth, True)], None)
        below = C[rest, :]
        arguments = (by_value(matrix(below)), by_value(matrix(parts)), *below.shape, division.parts, int(fresh))
        self._kernels.function("add_parts")((-(-math.prod(below.shape) // PLAIN_THREADS), 1, 1), (PLAIN_THREADS, 1, 1), arguments)

    def _launch_tiles(
        self, problem: Problem, tile: Tile, products: Sequence[tuple[Block, Block, Block, int, bool]], transposed: Block | None
    ) -> None:
        """Products with the steps of their parts, each fresh or not."""
        count = 1 if len(products) == 1 else GROUP
        function = self._kernels.function(
            "product" if not problem.witness else "product_near_witness" if problem.near else "product_witness",
            ordered_bits=self._ordered_bits,
            tile=tile,
            access=self._access(*products[0][:2], witness=problem.witness),
            count=count,
        )
        tiles = [tile.count(*C.shape) * max(1, -(-A.shape[1] // max(1, depth))) for A, _, C, depth, _ in products]
        # The fields of `Product` in product.cuh.
        fields = [
            [
                *(number for X in (A, B, C) for number in matrix(X)),
                *(*C.shape, A.shape[1], some, fresh, depth),
                *(*matrix(transposed or B), *via_arguments(C), A.column),
            ]
            for (A, B, C, depth, fresh), some in zip(products, tiles, strict=True)
        ]
        arguments = np.zeros((count, len(fields[0])), dtype=np.int64)
        arguments[: len(fields)] = fields
        shape = launch(problem, tile, sum(tiles))
        function((*shape.grid, 1), (shape.threads, 1, 1), (by_value(arguments),), shape.shared_bytes)


def _batches(A: Block) -> Iterator[tuple[int, Block]]:
    """The matrices of a batch, as many at a time as a launch can number, with the number of the first; none where they are empty."""
    count = len(A.values[0]) if A.values[0].size else 0
    if 0 < count <= _BATCH:
        return iter([(0, A)])
    return ((start, A.at(slice(start, start + _BATCH))) for start in range(0, count, _BATCH))
