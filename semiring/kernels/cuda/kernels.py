"""The kernels of a semiring in its dtypes for one GPU, as CUDA C++.

`kernel_source` writes one kernel: the templates, the semiring's struct, and an instantiation. `Kernels` has the kernels of a semiring, each
compiled at its first launch; `source` shows one to readers.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.html import Code
from semiring.kernels import cache
from semiring.kernels.cuda import boolean
from semiring.kernels.cuda.arguments import DeviceMatrix, Via, parameters
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.launches import BlasPlan, LaunchPlan, SplitKPlan, is_plus_times
from semiring.kernels.cuda.representation import Representation, Step, StepOperations, best_step, represent
from semiring.kernels.cuda.source import semiring_struct
from semiring.kernels.cuda.tile import Tile, TileProblem, candidate_tiles
from semiring.kernels.hardware import device
from semiring.kernels.operations import is_reachability

__all__ = [
    "GROUP", "PLAIN_THREADS", "SHALLOW", "SHALLOW_STACK", "SHALLOW_TILES", "SMALL_PIVOT", "STACK", "STACKS", "STACK_SIDES", "VECTORS",
    "VECTOR_ROWS", "Kernels", "ShallowTile", "kernel_source", "kernels_for", "pivot_sides", "pivot_threads", "pivot_tile",
    "problem_for", "reads_vectors", "source", "stack_side", "stack_warps", "step_for",
]  # fmt: skip

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
    steps = (best_step(StepOperations(r.add[0], r.mul[0], dtype, ordered_bits, r.zero[0] >= 0, arch)) for dtype in dtypes)
    return next(filter(None, steps), None)


def problem_for(
    r: Representation,
    step: Step | None,
    shape: tuple[int, int, int, int],
    *,
    witness: bool,
    light: bool,
    side: int = 0,
    shared_lookup: bool = False,
    splittable: bool = False,
) -> TileProblem:
    """Return the product of m × k and k × n elements; `shape` is (m, n, k, matrices). See `TileProblem` for the other parameters."""
    name = step.name if step else None
    return TileProblem(*shape, r.size, witness, light, r.has_series, name, r.is_heavy(witness=witness), side, shared_lookup, splittable)


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
) -> str:
    """Return the CUDA C++ of one kernel: the templates, the semiring's struct, and an instantiation called `name`.

    Parameters
    ----------
    r : Representation
    step : Step or None
    name : {"product", "product_witness", "product_shared_witness", "add_parts", "close", "close_witness", "eliminate", ...}
        Or "product_stack", "product_stack_witness", "product_shallow", "multiply_column", "multiply_row", "add_identity", "test_loops".
    tile, access, count
        Of a product: the tile, how to read A and B ("vectors", "rows" or "columns"), and how many products a launch has.
    side : int
        The largest pivot block (one of `pivot_sides`, or `SMALL_PIVOT`), or the largest matrix of a stack (one of `STACK_SIDES`).
    checked, signless : bool
        Check the operands of stacks, vectors or few steps, see `CheckedProducts`; and reject signs, as `step` compares floats as integers.
    shallow : ShallowTile
        The tile of "product_shallow".
    """
    product = name.startswith("product") or name == "add_parts"
    template = "shapes" if name in (*STACKS, SHALLOW, *VECTORS) else "product" if product else "pivot"
    parts = [
        f'#include "{template}.cuh"',
        "",
        semiring_struct(r, None if name in (*STACKS, *VECTORS) else step, star=name == "eliminate", epilogue=name == "product"),
    ]
    launch = "Products<Semiring, 1>" if not checked else "SignlessProducts<Semiring>" if signless else "CheckedProducts<Semiring>"
    arguments, values = [f"const __grid_constant__ {launch} products"], ["products"]
    if tile is not None:
        held = max(tile.held, step.count if step else 1)
        sizes = f"{tile.rows}, {tile.columns}, {tile.depth}, {tile.thread_rows}, {tile.thread_columns}, {tile.stages}"
        sizes += f", {held}, {max(2 * held, min(tile.unrolled, tile.depth))}"
        arguments = [f"const __grid_constant__ Products<Semiring, {count}> products"]
        bounds, call = (
            f"__launch_bounds__({tile.threads}, {tile.blocks}) ",
            f"multiply_tile<Semiring, {sizes}, Access::{access[0]}, Access::{access[1]}, Lookup::{_LOOKUPS[name]}, {count}>",
        )
    elif name in STACKS:
        warps, witness = stack_warps(r, side), str(name.endswith("_witness")).lower()
        bounds, call = f"__launch_bounds__({32 * warps}) ", f"multiply_stack<Semiring, {side}, {warps}, {witness}>"
    elif name == SHALLOW:
        sizes = f"{shallow.rows}, {shallow.columns}, {shallow.depth}, 8, 8"
        flags = ", ".join(str(x).lower() for x in (shallow.stack, access == ("vectors", "vectors")))
        bounds, call = f"__launch_bounds__({shallow.threads}, {shallow.blocks}) ", f"multiply_shallow<Semiring, {sizes}, {flags}>"
    elif name in VECTORS:
        sizes = f"{PLAIN_THREADS // 32}, {VECTOR_ROWS}" if name == "multiply_column" else f"{PLAIN_THREADS}"
        vectors = str("vectors" in access).lower()
        bounds, call = f"__launch_bounds__({PLAIN_THREADS}) ", f"{name}<Semiring, {sizes}, {vectors}>"
    elif name == "add_parts":
        sizes = "long long m, long long n, long long count, long long fresh"
        arguments = [f"DeviceMatrix<Semiring> C, DeviceMatrix<Semiring> parts, {sizes}, LaunchPredicate predicate"]
        values = ["C, parts, int(m), int(n), int(count), fresh, predicate"]
        bounds, call = f"__launch_bounds__({PLAIN_THREADS}) ", "add_parts<Semiring>"
    else:
        taken, matrix = parameters(DeviceMatrix, "a", components=tuple([d.name for d in r.dtypes]), template="Semiring")
        arguments, values = [taken, "long long n"], [matrix, "int(n)"]
        threads = PLAIN_THREADS
        match name:
            case "add_identity":
                call = "include_identity<Semiring>"
            case "test_loops":
                arguments.append("long long first, int* divergent")
                values.append("int(first), divergent")
                call = "test_loops<Semiring>"
            case _:
                taken, via = parameters(Via, "via")
                arguments += [taken, "int* divergent"]
                values += [via, "divergent"]
                if name != "eliminate":
                    arguments.append("long long loops")
                    values.append("loops")
                threads = pivot_threads(r, side)
                rows, columns = pivot_tile(r, side)
                rest = {"close": ", false", "close_witness": ", true", "eliminate": ""}[name]
                call = f"{name.removesuffix('_witness')}_block<Semiring, {side}, {rows}, {columns}{rest}>"
        # Two large blocks per multiprocessor, unless registers run out.
        bounds = f"__launch_bounds__({threads}, {2 if name == 'close' and side == 128 and r.registers == r.dtypes else 1}) "
    parts.append(f'extern "C" __global__ void {bounds}{name}({", ".join(arguments)}) {{\n  {call}({", ".join(values)});\n}}\n')
    return "\n".join(parts)


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
        # Launches of products without copies, by operation and arrangement; None for products that need copies.
        self.plans: dict[Hashable, LaunchPlan | SplitKPlan | BlasPlan | None] = {}
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
            found = self._functions.setdefault(key, self._kernel(name, ordered_bits, tile, how))
        return found

    def _kernel(self, name: str, ordered_bits: bool, tile: Tile | None, how: dict[str, Any]) -> Kernel:
        r, step = self.representation, self.step(ordered_bits=ordered_bits, pairs=name == "product")
        shared_bytes = 0
        if tile is not None:
            shared_bytes = tile.shared_bytes(r.size, witness=name.endswith("_witness"), shared_lookup=_LOOKUPS[name] == "shared")
        return Kernel(name, lambda: kernel_source(r, step, name, tile, **how), self._number, shared_bytes)


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
