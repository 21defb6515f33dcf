"""The CPU engine: dense operations on NumPy arrays, with copies where kernels cannot read or write the layout.

A product or a pivot block with known strides goes straight to its cached launch. Otherwise an operand that is the result itself is packed
before the result changes, and an unsupported layout is copied.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.overlap import Layout, address, layout, matched
from semiring.arrays.threads import Threaded, new_scratch
from semiring.common.errors import DivergentPivot
from semiring.kernels.cpu.bounds import bounds_in_words
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.launch import THIN, Launch, has_rows, is_aligned, overlaps
from semiring.kernels.engine import ArrayEngine, Block
from semiring.kernels.limits import SafeRange
from semiring.kernels.machine import SERIAL, VECTOR_SERIAL
from semiring.kernels.operations import Operations, operations_for

__all__ = ["CpuEngine"]


def _copied(block: Block, *, via: bool = False) -> Block:
    """Copy a block contiguously; on request also its construction matrix."""
    kept = _on_cache_lines(block.via) if via and block.via is not None else None
    return Block(tuple(map(_on_cache_lines, block.values)), kept, block.row, block.column)


def _on_cache_lines(matrix: NDArray[Any]) -> NDArray[Any]:
    """Copy a matrix to the start of a cache line, so that no vector of a row of whole lines straddles two."""
    (elements,) = new_scratch(matrix.nbytes).arrays([(matrix.size, matrix.dtype)])
    copy = elements.reshape(matrix.shape)
    copy[...] = matrix
    return copy


def _layouts(block: Block) -> list[Layout]:
    return [layout(v) for v in block.values]


def _aligned(layouts: Sequence[Layout]) -> bool:
    """Return True if addresses and strides are multiples of the element size; fields of packed records may not be."""
    return all(x.address % x.size == 0 and is_aligned(x) for x in layouts)


def _assign(to: Block, source: Block) -> None:
    """Copy the elements of a block, and its construction matrix, to another block."""
    for x, y in zip(to.values, source.values, strict=True):
        x[...] = y
    if to.via is not None:
        to.via[...] = source.via


_SIDE_BY_SIDE = 512
"""Largest side of matrices of a stack for which each thread multiplies whole matrices."""

_strides = operator.attrgetter("strides")


class CpuEngine(ArrayEngine, Threaded):
    """`Engine` on NumPy arrays with kernels generated for this processor; `isa` names a narrower instruction set of it."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        self.semiring, self.dtypes, self.requested = semiring, dtypes, threads
        self._kernels = kernels_for(semiring, dtypes, isa)
        self.pivot = self._kernels.pivot

    @property
    def _operations(self) -> Operations:  # type: ignore[override]  # derived here
        """Operations ⊕ and ⊗, and 1, on arrays, where there is no kernel."""
        return operations_for(self.semiring, self.dtypes)

    # The operations of `Engine`.

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def multiply_within(self, A: Block, B: Block, C: Block, safe: SafeRange, are_safe: Callable[[Sequence[Array]], bool]) -> bool:
        """C ← A⊗B with the range check in the same pass; return True if all numbers of A and B are in the safe range.

        On False, C holds no valid product. C shares no memory with A and B. `are_safe` checks rows left over from groups of 16.
        """
        bounds = bounds_in_words(safe, self.dtypes[0])
        if bounds is None or 0 in A.values[0].shape or 0 in C.values[0].shape:
            return False
        a, b, c, rest = A, B, C, slice(0, 0)
        launch, places = self._launch(a, b, c, True)
        if launch.thin:
            a, b, c, rest = self._thin_parts(A, B, C)
            launch, places = self._launch(a, b, c, True)
        if not launch.checks or launch.held(places) != (False, False):
            return False
        _, beyond = launch.run(self._kernels.function, places, A.column, self.meter, bounds)
        below = A[rest, slice(None)]
        if beyond or not (rest.start == rest.stop or are_safe(below.values)):
            return False
        if rest.start < rest.stop:
            self._product(below, B, C[rest, slice(None)], fresh=True)
        return True

    def close(self, A: Block) -> None:
        """Compute A ← A ⊕ A² ⊕ …, for an idempotent ⊕."""
        self._pivot("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """Compute A ← A*."""
        self._pivot("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """Compute A ← I ⊕ A."""
        rep = self._kernels.representation
        if rep.extremum is None:
            super().add_identity(A)
            return
        # The same operation; evaluating its expression takes longer than a small closure.
        (v,) = A.values
        diagonal = v.reshape(-1)[:: v.shape[-1] + 1] if v.ndim == 2 and v.flags.c_contiguous else np.einsum("...ii->...i", v)  # views
        (np.fmin if rep.extremum == "min" else np.fmax)(rep.one[0], diagonal, out=diagonal)

    # Products.

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """C ← C ⊕ A⊗B, or C ← A⊗B where C is `fresh`."""
        if len(C.values[0].shape) > 2:
            self._products(A, B, C, fresh)
            return
        launch, places = self._launch(A, B, C, fresh)
        held = launch.held(places)
        if held is None:
            self._product_with_copies(A, B, C, fresh)
        elif True in held:
            self._run(A, B, C, fresh, *held)
        elif launch.thin:
            a, b, c, rest = self._thin_parts(A, B, C)
            self._products(a, b, c, fresh)
            if rest.start < rest.stop:
                self._product(A[rest, slice(None)], B, C[rest, slice(None)], fresh=fresh)
        elif self.meter is None or launch.name != "product" or not self._product_in_slabs(A, B, C, fresh, self.meter.piece):
            launch.run(self._kernels.function, places, A.column, self.meter)

    def _thin_parts(self, A: Block, B: Block, C: Block) -> tuple[Block, Block, Block, slice]:
        """Return stacks of groups of rows of A, all of B, and groups of rows of C; and the slice of remaining rows."""
        many = A.shape[0] // THIN
        top = slice(0, many * THIN)

        def split(v: Array) -> Array:
            return v[top].reshape(many, THIN, v.shape[1])

        return (
            Block(tuple(map(split, A.values)), None, A.row, A.column),
            Block(tuple([np.broadcast_to(v, (many, *v.shape)) for v in B.values])),
            Block(tuple(map(split, C.values)), None if C.via is None else split(C.via)),
            slice(top.stop, A.shape[0]),
        )

    def _product_in_slabs(self, A: Block, B: Block, C: Block, fresh: bool, most: int) -> bool:
        """Multiply in depth slabs of about `most` steps, as the kernel does within itself; return False if one call is enough.

        Products with witnesses are cut into many tasks anyway, for their scratch memory.
        """
        (m, n), k, depth = C.shape, A.shape[1], self._kernels.tile.depth
        slab = max(1, -(-most // (m * n * depth))) * depth
        if C.via is not None or slab >= k:
            return False
        everything = slice(None)
        for steps in (slice(start, start + slab) for start in range(0, k, slab)):
            self._product(A[everything, steps], B[steps, everything], C, fresh=fresh and steps.start == 0)
        return True

    def _launch(self, A: Block, B: Block, C: Block, fresh: bool, hold_a: bool = False, hold_b: bool = False) -> tuple[Launch, list[int]]:
        """Return the launch of a product or of a stack of products, and the addresses of its (first) matrices."""
        shape = C.values[0].shape
        batch, (m, n), k, witness = shape[:-2], shape[-2:], A.values[0].shape[-1], C.via is not None
        threads = 1 if not batch and m * n * k < (SERIAL if m > 1 < n else VECTOR_SERIAL) else self.threads
        matrices = (*A.values, *B.values, *C.values, C.via) if witness else (*A.values, *B.values, *C.values)
        strides = map(_strides, matrices)
        launch = self._kernels.product_launch(batch, m, n, k, threads, fresh, self.signed, witness, hold_a, hold_b, *strides)
        return launch, list(map(address, matrices))

    def _product_with_copies(self, A: Block, B: Block, C: Block, fresh: bool) -> None:
        """Multiply where a layout may need a copy, or an operand overlaps the result."""
        if 0 in C.shape:
            return
        c = _layouts(C)
        if not (_aligned([x._replace(across=0) for x in c]) and all(map(has_rows, [*c, *([] if C.via is None else [layout(C.via)])]))):
            copy = _copied(C, via=True)
            self._product(A, B, copy, fresh=fresh)
            _assign(C, copy)
            return
        A, B = (X if _aligned(_layouts(X)) else _copied(X) for X in (A, B))
        a = _layouts(A)
        hold_a, hold_b, copy_a, copy_b = overlaps(a, _layouts(B), c)
        if copy_a or (C.via is not None and not all(map(has_rows, a))):
            A = _copied(A)
        if copy_b:
            B = _copied(B)
        self._run(A, B, C, fresh, hold_a and not copy_a, hold_b and not copy_b)

    def _run(self, A: Block, B: Block, C: Block, fresh: bool, hold_a: bool, hold_b: bool) -> None:
        launch, places = self._launch(A, B, C, fresh, hold_a, hold_b)
        launch.run(self._kernels.function, places, A.column, self.meter)

    def _products(self, A: Block, B: Block, C: Block, fresh: bool) -> None:
        """Multiply stacks: small matrices by a compiled loop, large matrices by a product each."""
        if 0 in C.values[0].shape:
            return
        # Results are written one matrix at a time, so operands that overlap other matrices are copied.
        A, B = (X if all(matched(v, w) for v in X.values for w in C.values) else _copied(X) for X in (A, B))
        if max(*A.shape, *C.shape) > _SIDE_BY_SIDE:
            self._one_by_one(A, B, C, fresh)
            return
        launch, places = self._launch(A, B, C, fresh)
        if launch.held(places) is None:
            copy = _copied(C, via=True)
            self._products(_copied(A), _copied(B), copy, fresh)
            _assign(C, copy)
        elif not launch.lanes and any(np.may_share_memory(v, w) for v in (*A.values, *B.values) for w in C.values):
            self._products(_copied(A), _copied(B), C, fresh)
        elif not launch.lanes and math.prod(C.batch) < self.threads:  # same kernel: results do not depend on threads
            self._one_by_one(A, B, C, fresh)
        else:
            launch.run(self._kernels.function, places, A.column, self.meter)

    def _one_by_one(self, A: Block, B: Block, C: Block, fresh: bool) -> None:
        for index in np.ndindex(C.batch):
            self._product(A.at(index), B.at(index), C.at(index), fresh=fresh)

    # Pivot blocks.

    def _pivot(self, name: str, A: Block) -> None:
        """Close a pivot block, or a stack of pivot blocks."""
        shape = A.values[0].shape
        if 0 in shape:
            return
        batch, n = shape[:-2], shape[-1]
        matrices = A.values if A.via is None else (*A.values, A.via)
        launch = self._kernels.pivot_launch(name, batch, n, self.threads if batch else 1, self.signed, *map(_strides, matrices))
        places = list(map(address, matrices))
        if launch.held(places) is not None:
            divergent, _ = launch.run(self._kernels.function, places, A.row, self.meter)
            if divergent is not None:
                raise DivergentPivot(A.row + divergent)
            return
        copy = _copied(A, via=True)
        try:
            self._pivot(name, copy)
        finally:
            _assign(A, copy)
