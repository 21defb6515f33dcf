"""Launches for special shapes: cuBLAS for large products of floats, and kernels for small matrices, vectors and split-K.

In a stack of small matrices each warp has one matrix, or each thread block one of up to 64 × 64. In a product of few steps each thread
block has a tile. A product of a matrix and a vector takes as long as reading the matrix.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.kernels import machine
from semiring.kernels.cuda.arguments import ALWAYS, Bounds
from semiring.kernels.cuda.blocks import access, matrix_of, same_block, shares
from semiring.kernels.cuda.elements import Flags
from semiring.kernels.cuda.kernels import (
    PLAIN_THREADS,
    SHALLOW,
    SHALLOW_STACK,
    SHALLOW_TILES,
    STACK,
    STACK_SIDES,
    STACKS,
    VECTOR_ROWS,
    Kernels,
    ShallowTile,
    stack_side,
    stack_warps,
)
from semiring.kernels.cuda.launches import BlasPlan, LaunchPlan, Operands, SplitKPlan, blas_plan, is_faster, planned
from semiring.kernels.cuda.tile import SplitK
from semiring.kernels.engine import Block
from semiring.kernels.limits import HIGHEST, LOWEST, SafeRange, finite_range

__all__ = ["bounds_of", "finds_safe", "plan_for_shape", "split_plan"]

_DEPTH, _ROWS, _COLUMNS = 256, 2048, 1024  # the fewest steps, rows and columns of products with a vector that have their own kernel
_DOWN = 8  # the most tiles, one below the other, of a block in a product of few steps
_BLOCKS, _LEAST_PART = 4, 64  # blocks per multiprocessor in products by a row or of few steps, and the fewest steps of a row's part


def plan_for_shape(
    kernels: Kernels, A: Block, B: Block, C: Block, *, ordered_bits: bool, vectors: bool, fresh: bool, checked: bool = False
) -> LaunchPlan | SplitKPlan | BlasPlan | None:
    """Plan a product by a kernel for its shape; None if there is none.

    With `ordered_bits`, floats are compared as the integers of their bits; with `vectors`, aligned operands may be read by vectors. With
    `checked`, operands are checked while they are read, see `CheckedProducts`; cuBLAS can't do that. `checked` with `ordered_bits` is only
    for products dominated by the time of steps; numbers with a sign are then beyond the bounds.
    """
    (m, n), k, count = C.shape, A.shape[1], len(C.values[0])
    chance = checked and ordered_bits
    if count >= STACK and not chance and (side := stack_side(kernels.representation, max(m, n, k))) is not None:
        # No warp may change elements that another warp reads.
        if any(shares(X, C) and not same_block(X, C) for X in (A, B)):
            return None
        return _stack(kernels, side, A, B, C, ordered_bits=ordered_bits, fresh=fresh, checked=checked)
    if C.via is not None or shares(A, C) or shares(B, C):
        return None
    if kernels.plus_times and is_faster(machine.BLAS_STEPS, kernels.representation.size, count, m, n, k):
        return None if checked else blas_plan(A.values[0], B.values[0], C.values[0], fresh=fresh)
    if (tile := _shallow_tile(kernels, count, m, n, k)) is not None:
        return _shallow(kernels, tile, A, B, C, ordered_bits=ordered_bits, vectors=vectors, fresh=fresh, checked=checked)
    if count > 1 or k < _DEPTH or chance:
        return None
    vectors = vectors and kernels.representation.same_registers
    if n == 1 and m >= _ROWS and (how := access(A, vectors=vectors)) != "columns":
        kernel = kernels.function("multiply_column", ordered_bits=ordered_bits, access=(how, how), checked=checked)
        grid = -(-m // (PLAIN_THREADS // 32 * VECTOR_ROWS))
        return planned(kernel, (grid, 1, 1), PLAIN_THREADS, 0, 1, [(A, B, C, grid, k, fresh)], None, checked=checked)
    # Splitting sums among all blocks of a GPU makes their bits depend on the GPU, unless ⊕ selects.
    if m == 1 and n >= _COLUMNS and kernels.selects and (how := access(B, vectors=vectors)) != "columns":
        return _row(kernels, how, A, B, C, ordered_bits=ordered_bits, fresh=fresh, checked=checked)
    return None


def finds_safe(plan: LaunchPlan | SplitKPlan, own: Sequence[int], safe: SafeRange, dtype: np.dtype[Any]) -> bool:
    """Launch a product that checks its operands, wait, and return True if all numbers are in the range."""
    flags = Flags.taken()
    plan.start(own, ALWAYS, bounds_of(safe, dtype, flags.addresses[0]))
    beyond, *_ = flags.read()
    return not beyond


@functools.lru_cache(maxsize=256)
def bounds_of(safe: SafeRange, dtype: np.dtype[Any], beyond: int) -> Bounds:
    """Return the bounds that a kernel compares operands with, and the flag for numbers beyond."""
    floats = dtype.kind == "f"
    lowest, highest = (-math.inf, math.inf) if floats else finite_range(dtype, ())

    def word(x: float) -> int:
        return struct.unpack("=q", struct.pack("=d", x))[0] if floats else (int(x) + 2**63) % 2**64 - 2**63

    bottom, top = lowest if safe.kinds & LOWEST else safe.low, highest if safe.kinds & HIGHEST else safe.high
    return Bounds(word(safe.low), word(safe.high), word(bottom), word(top), beyond)


def _stack(kernels: Kernels, side: int, A: Block, B: Block, C: Block, *, ordered_bits: bool, fresh: bool, checked: bool) -> LaunchPlan:
    count, warps = len(C.values[0]), stack_warps(kernels.representation, side)
    kernel = kernels.function(STACKS[C.via is not None], ordered_bits=ordered_bits, side=side, checked=checked)
    return planned(kernel, (-(-count // warps), 1, 1), 32 * warps, 0, 1, [(A, B, C, count, A.shape[1], fresh)], None, checked=checked)


def _shallow_tile(kernels: Kernels, count: int, m: int, n: int, k: int) -> ShallowTile | None:
    """Return the tile of products of few steps with 4-byte elements: for a stack, or for one matrix with enough tiles for all blocks."""
    r, stack, (narrow, wide) = kernels.representation, SHALLOW_STACK, SHALLOW_TILES
    if not r.same_registers or r.size != 4 or r.has_series:
        return None
    if count >= STACK:  # sizes near the kernel's maximum
        return stack if max(m, n, k) <= stack.rows and min(m, n, k) > STACK_SIDES[-1] else None
    tile = narrow if n <= narrow.columns else wide
    enough = math.prod(_tiles(tile, m, n)) >= _BLOCKS * kernels.device.multiprocessors
    return tile if count == 1 and 0 < k <= tile.depth and enough else None


def _tiles(tile: ShallowTile, m: int, n: int) -> tuple[int, int]:
    return -(-m // tile.rows), -(-n // tile.columns)


def _shallow(
    kernels: Kernels, tile: ShallowTile, A: Block, B: Block, C: Block, *, ordered_bits: bool, vectors: bool, fresh: bool, checked: bool
) -> LaunchPlan:
    width, count, each = 16 // kernels.representation.size, len(C.values[0]), 1
    if not tile.stack:
        down, across = _tiles(tile, *C.shape)
        each = max(1, min(_DOWN, down * across // (_BLOCKS * tile.blocks * kernels.device.multiprocessors)))
        count = -(-down // each) * across
    whole = vectors and all(X.shape[1] % width == 0 and access(X) == "vectors" for X in (A, B, C))
    how = "vectors" if whole else "rows"
    kernel = kernels.function(
        SHALLOW, ordered_bits=ordered_bits, access=(how, how), checked=checked, signless=checked and ordered_bits, shallow=tile
    )
    return planned(kernel, (count, 1, 1), tile.threads, 0, 1, [(A, B, C, count, each, fresh)], None, checked=checked)


def _row(kernels: Kernels, how: str, A: Block, B: Block, C: Block, *, ordered_bits: bool, fresh: bool, checked: bool) -> SplitKPlan:
    """Plan the product of a row and a matrix: parts of the steps, and their sum."""
    k, width = A.shape[1], 16 // kernels.representation.size if how == "vectors" else 1
    kernel = kernels.function("multiply_row", ordered_bits=ordered_bits, access=(how, how), checked=checked)
    across = -(-C.shape[1] // (PLAIN_THREADS * width))
    parts = max(1, min(k // _LEAST_PART, _BLOCKS * kernels.device.multiprocessors // across))
    depth = -(-k // parts)
    split = SplitK(0, depth, -(-k // depth))

    def launch(products: Sequence[tuple[Block, Block, Block, int, bool]]) -> LaunchPlan:
        each = [(left, right, sums, across, steps, fresh) for left, right, sums, steps, fresh in products]
        return planned(kernel, (across * split.parts, 1, 1), PLAIN_THREADS, 0, 1, each, None, checked=checked)

    return split_plan(kernels, split, (A, B, C), launch, fresh=fresh)


def split_plan(
    kernels: Kernels,
    split: SplitK,
    operands: Operands,
    launch: Callable[[Sequence[tuple[Block, Block, Block, int, bool]]], LaunchPlan],
    *,
    fresh: bool,
) -> SplitKPlan:
    """Plan a product whose last rows are sums of parts; `launch` plans the parts as products of some depth each."""
    import cupy

    A, B, C = operands
    rows, whole, rest = split.rows, slice(split.rows), slice(split.rows, None)
    below = C[rest, :]
    parts = Block(tuple([cupy.empty((split.parts, *v.shape[1:]), v.dtype) for v in below.values]))
    products = [(A[whole, :], B, C[whole, :], A.shape[1], fresh)] if rows else []
    products.append((A[rest, :], B, parts, split.depth, True))
    return SplitKPlan(
        launch(products),
        bool(rows),
        tuple([rows * v.strides[1] for v in A.values]),
        tuple([rows * v.strides[1] for v in C.values]),
        (split.parts, *below.shape),
        tuple([v.dtype for v in C.values]),
        kernels.function("add_parts"),
        (-(-math.prod(below.shape) // PLAIN_THREADS), 1, 1),
        (PLAIN_THREADS, 1, 1),
        matrix_of(below)[1:],
        fresh,
    )
