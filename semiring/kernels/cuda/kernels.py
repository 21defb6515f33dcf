"""The kernels of a semiring in its dtypes for one GPU, as CUDA C++.

`kernel_source` writes one kernel: the templates, the semiring's struct, and an instantiation. `Kernels` has the kernels of a semiring, each
compiled at its first launch; `source` shows one to readers. `plan_for_shape` chooses the kernel of a special shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.html import Code
from semiring.kernels import cache, machine
from semiring.kernels.cuda import boolean
from semiring.kernels.cuda.arguments import ALWAYS, Bounds, DeviceMatrix, Via, parameters, word_of
from semiring.kernels.cuda.blocks import access, matrix_of, same_block, shares
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.elements import Flags
from semiring.kernels.cuda.exponential import ExponentialPlan
from semiring.kernels.cuda.launches import (
    BlasPlan,
    LaunchPlan,
    Operands,
    Parts,
    SplitKPlan,
    TransposedPlan,
    blas_plan,
    is_faster,
    is_plus_times,
    planned,
)
from semiring.kernels.cuda.representation import STEPS, Representation, Step, StepOperations, represent
from semiring.kernels.cuda.source import semiring_struct
from semiring.kernels.cuda.tile import SplitK, Tile, TileProblem, candidate_tiles
from semiring.kernels.engine import Block
from semiring.kernels.hardware import device
from semiring.kernels.limits import HIGHEST, LOWEST, SafeRange, finite_range
from semiring.kernels.operations import is_reachability

__all__ = [
    "GROUP", "PLAIN_THREADS", "SHALLOW", "SHALLOW_STACK", "SHALLOW_TILES", "SMALL_PIVOT", "STACK", "STACKS", "STACK_SIDES", "VECTORS",
    "VECTOR_ROWS", "Kernels", "ProductPlan", "ShallowTile", "bounds_of", "finds_safe", "kernel_source", "kernels_for", "pivot_sides",
    "pivot_threads", "pivot_tile", "plan_for_shape", "problem_for", "reads_vectors", "source", "split_plan", "stack_side", "stack_warps",
    "step_for",
]  # fmt: skip

ProductPlan = LaunchPlan | SplitKPlan | BlasPlan | TransposedPlan

GROUP = 4
"""The most products of one launch."""

PLAIN_THREADS = 256
"""Threads in a block of kernels with independent elements: along a diagonal, or in the parts of a sum."""

STACKS = ("product_stack", "product_stack_witness")
"""The kernels of stacks of small matrices, one matrix per warp."""

STACK, SMALL_PIVOT = 32, 32
"""The fewest matrices of a stack, and the side of matrices that one or two warps close."""

STACK_SIDES = (8, 16, 32)
"""The largest sides of small matrices, with one kernel each."""


@dataclass(frozen=True)
class ShallowTile:
    """A thread block's share of products of few steps, all steps at once: a tile of the result, or one matrix of a stack."""

    rows: int  # of the tile; a thread has 8 × 8 elements
    columns: int
    depth: int  # the most steps
    stack: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows * self.columns // 64

    @property
    def blocks(self) -> int:
        """Blocks per multiprocessor: as many as shared memory allows, or registers at 128 per thread."""
        return 6 if self.stack else 512 // self.threads


SHALLOW, SHALLOW_STACK = "product_shallow", ShallowTile(64, 64, 64, stack=True)
"""The kernel of products of few steps, and the tile for stacks."""

SHALLOW_TILES = (ShallowTile(64, 32, 32), ShallowTile(64, 64, 32))
"""The tiles for single products: for results with few columns, and for others."""

THIN, THIN_SIDES = ("product_thin", "product_thin_witness"), (2, 8)
"""The kernels of products whose results have a short side, and the bounds of this side, with one kernel each."""

VECTORS = ("multiply_column", "multiply_row")
"""The kernels of products with a vector."""

VECTOR_ROWS = 4
"""Rows that a warp multiplies by a column."""

_STACK_BYTES = 48 << 10  # shared memory for the operands of a thread block's matrices

_LOOKUPS = {"product": "none", "product_witness": "global", "product_shared_witness": "shared"}  # the memory where witnesses are looked up


def pivot_sides(r: Representation) -> tuple[int, ...]:
    """Return the sides of pivot blocks with kernels, as large as a thread's registers allow."""
    return (64, 128) if r.size <= 4 else (64,)


def pivot_tile(r: Representation, side: int) -> tuple[int, int]:
    """Return the rows and columns of a pivot block that a thread has."""
    return (8, 8) if side == 128 else (8, 4) if r.size <= 4 else (4, 4)


def pivot_threads(r: Representation, side: int) -> int:
    """Return the threads of a block that closes or eliminates a pivot block."""
    rows, columns = pivot_tile(r, side)
    return side // rows * (side // columns)


def stack_side(r: Representation, length: int) -> int | None:
    """Return the kernel side for matrices with at most `length` rows, columns and steps; None if shared memory is too small."""
    sides = STACK_SIDES[:1] if r.has_series else STACK_SIDES  # with more elements per thread, unrolled series would be long
    return next((s for s in sides if length <= s and s * (2 * s + 1) * r.size <= _STACK_BYTES), None)


def stack_warps(r: Representation, side: int) -> int:
    """Return the warps of a block for small matrices: as many as shared memory has room for, up to eight."""
    return max(1, min(8, _STACK_BYTES // (side * (2 * side + 1) * r.size)))


def step_for(r: Representation, arch: int, *, ordered_bits: bool, pairs: bool = False) -> Step | None:
    """Return the instruction table's row for single numbers; None for structured elements and where no row fits.

    With `pairs`, two tropical numbers of 16 bits may share a register: sums then stay in 16 bits.
    """
    if len(r.dtypes) != 1:
        return None
    dtypes = [r.dtypes[0], r.registers[0]] if pairs and r.clamped else [r.registers[0]]
    conditions = [StepOperations(r.add[0], r.mul[0], dtype, ordered_bits, r.zero[0] >= 0, arch) for dtype in dtypes]
    return next((row for x in conditions for row in STEPS if row.fits(x)), None)


def problem_for(
    r: Representation, step: Step | None, shape: tuple[int, int, int, int], *, witness: bool, light: bool, **how: Any
) -> TileProblem:
    """Return the product of m × k and k × n elements; `shape` is (m, n, k, matrices). See `TileProblem` for the other parameters."""
    name = step.name if step else None
    return TileProblem(*shape, r.size, witness, light, r.has_series, name, r.is_heavy(witness=witness), **how)


def reads_vectors(r: Representation, step: Step | None) -> bool:
    """Return True if products may read aligned operands by vectors."""
    return len(r.dtypes) == 1 and not r.has_series and (r.dtypes[0].itemsize >= 4 or (step is not None and step.pairs))


def kernel_source(
    r: Representation,
    step: Step | None,
    name: str,
    tile: Tile | None = None,
    access: tuple[str, str] = ("rows", "rows"),
    *,
    count: int = 1,
    side: int = 64,
    checked: bool = False,
    signless: bool = False,
    shallow: ShallowTile = SHALLOW_STACK,
    short_rows: bool = False,
) -> str:
    """Return the CUDA C++ of one kernel: the templates, the semiring's struct, and an instantiation called `name`.

    `name` is that of a template in ``product.cuh``, ``shapes.cuh`` or ``pivot.cuh``, such as "product_witness" or "close". A product has a
    `tile`, the `access` to A and B ("vectors", "rows" or "columns"), and the `count` of products in a launch. `side` bounds a pivot block
    (one of `pivot_sides`, or `SMALL_PIVOT`), a matrix of a stack (one of `STACK_SIDES`), or the columns of a thin result, or
    with `short_rows` the rows. `checked` kernels of stacks, vectors or few
    steps check their operands, see `CheckedProducts`; `signless` ones reject signs, as `step` compares floats as integers. `shallow` is the
    tile of "product_shallow".
    """
    product = name.startswith("product") or name == "add_parts"
    template = "shapes" if name in (*STACKS, *THIN, SHALLOW, *VECTORS) else "product" if product else "pivot"
    struct = semiring_struct(r, None if name in (*STACKS, *THIN, *VECTORS) else step, star=name == "eliminate", epilogue=name == "product")
    launch = "Products<Semiring, 1>" if not checked else "SignlessProducts<Semiring>" if signless else "CheckedProducts<Semiring>"
    arguments, values, bounds = [f"const __grid_constant__ {launch} products"], ["products"], f"{PLAIN_THREADS}"
    if tile is not None:
        held = max(tile.held, step.count if step else 1)
        sizes = f"{tile.rows}, {tile.columns}, {tile.depth}, {tile.thread_rows}, {tile.thread_columns}, {tile.stages}"
        sizes += f", {held}, {max(2 * held, min(tile.unrolled, tile.depth))}"
        arguments, bounds = [f"const __grid_constant__ Products<Semiring, {count}> products"], f"{tile.threads}, {tile.blocks}"
        call = f"multiply_tile<Semiring, {sizes}, Access::{access[0]}, Access::{access[1]}, Lookup::{_LOOKUPS[name]}, {count}>"
    elif name in STACKS:
        warps, witness = stack_warps(r, side), str(name.endswith("_witness")).lower()
        bounds, call = f"{32 * warps}", f"multiply_stack<Semiring, {side}, {warps}, {witness}>"
    elif name in THIN:
        call = f"multiply_thin<Semiring, {side}, {str(short_rows).lower()}, {str(name.endswith('_witness')).lower()}>"
    elif name == SHALLOW:
        sizes = f"{shallow.rows}, {shallow.columns}, {shallow.depth}, 8, 8"
        flags = ", ".join(str(x).lower() for x in (shallow.stack, access == ("vectors", "vectors")))
        bounds, call = f"{shallow.threads}, {shallow.blocks}", f"multiply_shallow<Semiring, {sizes}, {flags}>"
    elif name in VECTORS:
        sizes = f"{PLAIN_THREADS // 32}, {VECTOR_ROWS}" if name == "multiply_column" else f"{PLAIN_THREADS}"
        call = f"{name}<Semiring, {sizes}, {str('vectors' in access).lower()}>"
    elif name == "add_parts":
        sizes = "long long m, long long n, long long count, long long fresh"
        arguments = [f"DeviceMatrix<Semiring> C, DeviceMatrix<Semiring> parts, {sizes}, LaunchPredicate predicate"]
        values, call = ["C, parts, int(m), int(n), int(count), fresh, predicate"], "add_parts<Semiring>"
    else:
        taken, matrix = parameters(DeviceMatrix, "a", components=tuple([d.name for d in r.dtypes]), template="Semiring")
        arguments, values, bounds = [taken, "long long n"], [matrix, "int(n)"], f"{PLAIN_THREADS}, 1"
        if name == "add_identity":
            call = "include_identity<Semiring>"
        elif name == "test_loops":
            arguments, values = [*arguments, "long long first, int* divergent"], [*values, "int(first), divergent"]
            call = "test_loops<Semiring>"
        else:
            taken, via = parameters(Via, "via")
            arguments, values = [*arguments, taken, "int* divergent"], [*values, via, "divergent"]
            if name != "eliminate":
                arguments, values = [*arguments, "long long loops"], [*values, "loops"]
            rows, columns = pivot_tile(r, side)
            rest = {"close": ", false", "close_witness": ", true", "eliminate": ""}[name]
            call = f"{name.removesuffix('_witness')}_block<Semiring, {side}, {rows}, {columns}{rest}>"
            # Two large blocks per multiprocessor, unless registers run out.
            bounds = f"{pivot_threads(r, side)}, {2 if name == 'close' and side == 128 and r.registers == r.dtypes else 1}"
    kernel = f"{name}({', '.join(arguments)}) {{\n  {call}({', '.join(values)});\n}}\n"
    return f'#include "{template}.cuh"\n\n{struct}\nextern "C" __global__ void __launch_bounds__({bounds}) {kernel}'


class Kernels:
    """The kernels of a semiring in its dtypes on one GPU."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> None:
        self.representation = represent(semiring, dtypes)
        self.device = device(number)
        self.sides = pivot_sides(self.representation)  # of pivot blocks
        self.selects = semiring.selects  # ⊕ returns one of its operands
        self.plus_times = is_plus_times(semiring, dtypes)  # products are sums of products of floats
        # s, where ⊕ is log(e^{sa} + e^{sb}) / s and ⊗ is a + b.
        self.exponential = semiring.program.exponential if len(dtypes) == 1 and dtypes[0].kind == "f" else None
        self.rounds = any(d.kind == "f" for d in dtypes)
        # Launches of products by operation and arrangement; None for products that need more copies than B's transpose.
        self.plans: dict[Hashable, ProductPlan | None] = {}
        self.exponential_plans: dict[Hashable, ExponentialPlan | None] = {}
        self._number = number
        self._steps: dict[tuple[bool, bool], Step | None] = {}
        # The instruction table has better rows for floats that sort as the integers of their bits.
        self.ordered_bits = self.representation.keeps_bits_ordered and any(
            self.step(ordered_bits=True, pairs=pairs) != self.step(ordered_bits=False, pairs=pairs) for pairs in (False, True)
        )
        self._functions: dict[Any, Kernel] = {}

    def step(self, *, ordered_bits: bool, pairs: bool) -> Step | None:
        """Return the instruction table's row; with `pairs`, two small numbers may share a register."""
        key = (ordered_bits, pairs)
        if key not in self._steps:
            self._steps[key] = step_for(self.representation, self.device.arch, ordered_bits=ordered_bits, pairs=pairs)
        return self._steps[key]

    def function(self, name: str, *, ordered_bits: bool = False, tile: Tile | None = None, **how: Any) -> Kernel:
        """Return a kernel, to be called with a grid, a block, its arguments and its shared memory; see `kernel_source` for the options."""
        key = (name, ordered_bits, tile, *how.items())
        found = self._functions.get(key)
        if found is None:
            r, step, shared_bytes = self.representation, self.step(ordered_bits=ordered_bits, pairs=name == "product"), 0
            if tile is not None:
                shared_bytes = tile.shared_bytes(r.size, witness=name.endswith("_witness"), shared_lookup=_LOOKUPS[name] == "shared")
            kernel = Kernel(name, lambda: kernel_source(r, step, name, tile, **how), self._number, shared_bytes)
            found = self._functions.setdefault(key, kernel)
        return found


@functools.lru_cache(maxsize=cache.LOADED)
def kernels_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> Kernels:
    """Return the kernels of `semiring` in `dtypes` for GPU `number`."""
    return Kernels(semiring, dtypes, number)


def source(semiring: Semiring, dtype: Any, *, kernel: str, arch: int, ordered_bits: bool) -> Code:
    """Return the code of one kernel, see `semiring.kernels.source`."""
    dtypes = semiring.dtypes([np.dtype(dtype)] * semiring.components)
    heading = f"CUDA C++ of {kernel} over {semiring.name} in {', '.join(map(str, dtypes))} for sm_{arch}"
    if is_reachability(semiring, dtypes) and kernel in ("product", "close", "add_identity"):
        return Code(boolean.bits_source(kernel, boolean.candidate_bit_tiles(arch)[0], boolean.PIVOT // 32), heading)
    r = represent(semiring, dtypes)
    step = step_for(r, arch, ordered_bits=ordered_bits and r.keeps_bits_ordered, pairs=kernel == "product")
    light = reads_vectors(r, step)
    tile = candidate_tiles(problem_for(r, step, (1, 1, 1, 1), witness=kernel == "product_witness", light=light))[0]
    access = ("vectors", "vectors") if light else ("rows", "rows")
    return Code(kernel_source(r, step, kernel, tile if kernel.startswith("product") else None, access), heading)


# Plans for special shapes: cuBLAS for large products of floats, and kernels for small matrices, vectors and split-K. In a stack of small
# matrices each warp has one matrix, or each thread block one of up to 64 × 64. In a product of few steps each thread block has a tile, or
# each thread the short side of a thin result. A product of a matrix and a vector takes as long as reading the matrix.

_DEPTH, _ROWS, _COLUMNS = 256, 2048, 1024  # the fewest steps, rows and columns of products with a vector that have their own kernel
_DOWN = 8  # the most tiles, one below the other, of a block in a product of few steps
_THIN, _THIN_STEPS = 4096, 16  # the fewest places of the long sides, and the most steps, of products with a short side
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
    r, chance = kernels.representation, checked and ordered_bits

    def launch(name: str, grid: int, threads: int, tiles: int, depth: int, **how: Any) -> LaunchPlan:
        kernel = kernels.function(name, ordered_bits=ordered_bits, checked=checked, **how)
        return planned(kernel, (grid, 1, 1), threads, 0, 1, [(A, B, C, tiles, depth, fresh)], None, checked=checked)

    if (short := _short_side(count, m, n, k)) is not None and not (shares(A, C) or shares(B, C)):
        if chance:
            return None  # memory bounds its time, not steps
        blocks = -(-count * max(m, n) // PLAIN_THREADS)
        return launch(THIN[C.via is not None], blocks, PLAIN_THREADS, count, k, side=short, short_rows=m < n)
    if count >= STACK and not chance and (side := stack_side(r, max(m, n, k))) is not None:
        # No warp may change elements that another warp reads.
        if any(shares(X, C) and not same_block(X, C) for X in (A, B)):
            return None
        warps = stack_warps(r, side)
        return launch(STACKS[C.via is not None], -(-count // warps), 32 * warps, count, k, side=side)
    if C.via is not None or shares(A, C) or shares(B, C):
        return None
    if kernels.plus_times and is_faster(machine.BLAS_STEPS, r.size, count, m, n, k):
        return None if checked else blas_plan(A.values[0], B.values[0], C.values[0], fresh=fresh)
    if (tile := _shallow_tile(kernels, count, m, n, k)) is not None:
        blocks, each = count, 1
        if not tile.stack:
            down, across = _tiles(tile, m, n)
            each = max(1, min(_DOWN, down * across // (_BLOCKS * tile.blocks * kernels.device.multiprocessors)))
            blocks = -(-down // each) * across
        whole = vectors and all(X.shape[1] % (16 // r.size) == 0 and access(X) == "vectors" for X in (A, B, C))
        how = "vectors" if whole else "rows"
        return launch(SHALLOW, blocks, tile.threads, blocks, each, access=(how, how), signless=chance, shallow=tile)
    if count > 1 or k < _DEPTH or chance:
        return None
    vectors = vectors and r.same_registers
    if n == 1 and m >= _ROWS and (how := access(A, vectors=vectors)) != "columns":
        grid = -(-m // (PLAIN_THREADS // 32 * VECTOR_ROWS))
        return launch("multiply_column", grid, PLAIN_THREADS, grid, k, access=(how, how))
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
        return word_of(x) if floats else (int(x) + 2**63) % 2**64 - 2**63

    bottom, top = lowest if safe.kinds & LOWEST else safe.low, highest if safe.kinds & HIGHEST else safe.high
    return Bounds(word(safe.low), word(safe.high), word(bottom), word(top), beyond)


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


def _short_side(count: int, m: int, n: int, k: int) -> int | None:
    """Return the bound of a thin result's short side; None for other results."""
    short, long = min(m, n), max(m, n)
    few = k <= _THIN_STEPS if long > STACK_SIDES[-1] or count < STACK else short * k <= _THIN_STEPS
    return next((side for side in THIN_SIDES if short <= side), None) if few and count * long >= _THIN else None


def _tiles(tile: ShallowTile, m: int, n: int) -> tuple[int, int]:
    return -(-m // tile.rows), -(-n // tile.columns)


def _row(kernels: Kernels, how: str, A: Block, B: Block, C: Block, *, ordered_bits: bool, fresh: bool, checked: bool) -> SplitKPlan:
    """Plan the product of a row and a matrix: parts of the steps, and their sum."""
    k, width = A.shape[1], 16 // kernels.representation.size if how == "vectors" else 1
    kernel = kernels.function("multiply_row", ordered_bits=ordered_bits, access=(how, how), checked=checked)
    across = -(-C.shape[1] // (PLAIN_THREADS * width))
    parts = max(1, min(k // _LEAST_PART, _BLOCKS * kernels.device.multiprocessors // across))
    depth = -(-k // parts)
    split = SplitK(0, depth, -(-k // depth))

    def launch(products: Parts) -> LaunchPlan:
        each = [(left, right, sums, across, steps, fresh) for left, right, sums, steps, fresh in products]
        return planned(kernel, (across * split.parts, 1, 1), PLAIN_THREADS, 0, 1, each, None, checked=checked)

    return split_plan(kernels, split, (A, B, C), launch, fresh=fresh)


def split_plan(kernels: Kernels, split: SplitK, operands: Operands, launch: Callable[[Parts], LaunchPlan], *, fresh: bool) -> SplitKPlan:
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
