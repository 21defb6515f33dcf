"""Bit-packed Boolean matrices on one GPU: tiles of products, kernels, and the engine; and hop counts by bits.

An algorithm packs its matrices into words of device memory once, and unpacks them at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import gpu_name
from semiring.arrays.memory import free_on
from semiring.common.html import Shown
from semiring.kernels import machine
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.arguments import Bits, StridedBatch, parameters
from semiring.kernels.cuda.blocks import copy_into, copy_rows, shares, stacked
from semiring.kernels.cuda.compiler import kernel_for
from semiring.kernels.cuda.elements import of_bytes, read_back
from semiring.kernels.cuda.launches import launched, recording
from semiring.kernels.cuda.tile import COLUMNS, GROUPS, ROWS, STAGES, THREADS, round_up
from semiring.kernels.engine import Block, Immediate, PackedBlock
from semiring.kernels.hardware import Device, device

__all__ = [
    "ALIGNMENT", "PIVOT", "PIVOT_WORDS", "BitTile", "CudaBooleanEngine", "bits_source", "candidate_bit_tiles", "choose_bit_tile",
    "close_by_levels", "levels_source",
]  # fmt: skip

ALIGNMENT = 128
"""Bits of one memory access; blocks begin at multiples."""

PIVOT_WORDS = (4, 8, 16)
"""Words per row of a pivot block, with one kernel each."""

PIVOT = 32 * PIVOT_WORDS[-1]
"""Side of the largest pivot block."""

CLUSTER, _PARTS = 8, 4
"""Thread blocks of a cluster for the rows of a large pivot block, and warps for the words of a row."""

WARPS, SPAN = 8, 2048
"""Warps in a thread block of the auxiliary kernels, and bits that a warp packs or unpacks."""


@dataclass(frozen=True)
class BitTile(Shown):
    """Sizes of a kernel for products of bits."""

    rows: int  # of C in a thread block
    columns: int
    depth: int  # bits of k in a slice
    part_rows: int  # of C in a warp's registers, or in a thread's without tensor cores
    part_columns: int
    stages: int  # slices in shared memory
    blocks: int  # thread blocks per multiprocessor, which bounds a thread's registers
    rate: float = 1.0  # steps per second relative to the other candidates, given enough work
    tensor: bool = True  # computed by tensor cores
    blocked: bool = False  # by their instructions for warpgroups, on operands in blocks of rows

    @property
    def threads(self) -> int:
        """Threads of a block."""
        if self.blocked:
            return THREADS
        parts = self.rows // self.part_rows * (self.columns // self.part_columns)
        return parts * 32 if self.tensor else parts

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and rows of a Jupyter table."""
        worker = "warpgroup" if self.blocked else "warp" if self.tensor else "thread"
        return f"{self.rows} × {self.columns} bits of C in a thread block", [
            (worker, f"{self.part_rows} × {self.part_columns} bits in registers"),
            ("block", f"{self.threads} threads, {self.blocks} blocks a multiprocessor"),
            ("shared memory", f"{self.stages} slices of {self.depth:,} steps"),
            ("computed by", "tensor cores" if self.tensor else "logical instructions"),
        ]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block in bytes: slices, with rows padded by 16 bytes unless they lie in blocks."""
        return self.stages * (self.rows + self.columns) * (self.depth // 8 + 16 * (not self.blocked))


_BLOCKED = BitTile(ROWS, COLUMNS, 1024, 64, COLUMNS, STAGES, 1, rate=2.0, blocked=True)
_TENSOR = (
    BitTile(128, 192, 1024, 64, 96, 2, 2),
    BitTile(128, 128, 1024, 64, 64, 2, 3, rate=0.975),
    BitTile(64, 64, 512, 32, 32, 3, 3, rate=0.57),
)
_LOGIC = (BitTile(64, 64, 512, 8, 8, 3, 4, tensor=False),)
_COPIED = 230  # steps of rate 1 that take as long as copying a bit, read and written at 3 TB/s


def candidate_bit_tiles(arch: int) -> tuple[BitTile, ...]:
    """List an architecture's tiles: tensor cores multiply bits on compute capabilities 8 and 9; later ones would emulate that."""
    return (_BLOCKED, *_TENSOR) if arch == 90 else _TENSOR if 80 <= arch < 100 else _LOGIC


@functools.lru_cache(maxsize=4096)
def choose_bit_tile(m: int, n: int, k: int, batch: int, limits: Device) -> BitTile:
    """Return the candidate with the shortest predicted time: of the multiprocessor with the most tiles, and of copies of the operands."""

    def time(tile: BitTile) -> float:
        tiles, depth = -(-m // tile.rows) * -(-n // tile.columns) * batch, round_up(max(k, 1), tile.depth)
        copied = (round_up(m, tile.rows) + round_up(n, tile.columns)) * depth if tile.blocked else n * round_up(k, ALIGNMENT)
        steps = -(-tiles // limits.multiprocessors) * tile.rows * tile.columns * depth / tile.rate
        return steps + _COPIED * copied * batch / limits.multiprocessors

    return min((t for t in candidate_bit_tiles(limits.arch) if t.shared_bytes <= limits.block_shared_bytes), key=time)


def bits_source(name: str, tile: BitTile | None = None, words: int = 0, cluster: bool = False) -> str:
    """Return the CUDA C++ of one kernel: the template, and an instantiation called `name`.

    `name` is "product", "transpose", "arrange", "pack", "unpack", "close" or "add_identity". A product takes a `tile`. Blocks are arranged
    or transposed for a tile that reads blocks. "close" takes the `words` per row of the pivot block, and divides it by a cluster's blocks.
    """
    bounds, threads = "", 32 * WARPS
    (taken_a, a), (taken_b, b), (taken_c, c) = (parameters(Bits, x) for x in "abc")
    match name:
        case "product":
            assert tile is not None
            threads, bounds = tile.threads, f", {tile.blocks}"
            sizes = f"{tile.rows}, {tile.columns}, {tile.depth}"
            core = f"{'TensorCore' if tile.tensor else 'Logic'}<{sizes}, {tile.part_rows}, {tile.part_columns}>"
            taken = [taken_a, taken_b, taken_c, "long long m, long long n, long long k, long long batch, long long fresh"]
            call = f"multiply_bits<{core}, {sizes}, {tile.stages}>({a}, {b}, {c}, m, n, k, fresh)"
            if tile.blocked:
                call = f"multiply_blocked_bits<{GROUPS}, {tile.stages}>({a}, {b}, {c}, m, n, k, batch, fresh)"
        case "transpose" | "arrange":
            taken = [taken_a, taken_b, "long long m, long long n"]
            blocked = 0 if tile is None or not tile.blocked else tile.columns if name == "transpose" else tile.rows
            call = f"{name}_bits<{blocked}>({a}, {b}, m, n)"
        case "pack" | "unpack":
            taken_truths, truths = parameters(StridedBatch, "truths", template="unsigned char")
            taken = [taken_truths, taken_a, "long long m, long long n, long long aligned"]
            call = f"{name}_rows({f'{truths}, {a}' if name == 'pack' else f'{a}, {truths}'}, m, n, aligned)"
        case "close":
            blocks, parts, threads = _divided(words, cluster=cluster)
            bounds = f") __cluster_dims__({blocks}, 1, 1" if cluster else ""
            taken = [taken_a, "long long n"]
            call = f"close_bits<{words}, {blocks}, {parts}>({a}, n)"
        case _:
            taken = [taken_a, "long long n"]
            call = f"include_identity({a}, n)"
    kernel = f'extern "C" __global__ void __launch_bounds__({threads}{bounds}) {name}({", ".join(taken)}) {{\n  {call};\n}}\n'
    return f'#include "bits.cuh"\n\n{kernel}'


def _divided(words: int, *, cluster: bool) -> tuple[int, int, int]:
    """Return the thread blocks for the rows of a pivot block, the warps for the words of a row, and the threads of a block."""
    blocks, parts = (CLUSTER, _PARTS) if cluster else (1, 1)
    return blocks, parts, 32 * words // blocks * parts


_SMALL = 128 << 20  # bytes of packed matrices whose schedules are captured as CUDA graphs, on a workspace of the same size


class CudaBooleanEngine(Immediate):
    """`Engine` for (∨, ∧) on bits in the memory of one GPU, without witnesses.

    Tensor cores take rows of both operands, so each product first transposes B: n² bits of work before n³. That copy, and a copy of A in
    blocks, or where A overlaps C, let a product read the old values. In a closure new bits would be harmless, because the result contains
    them anyway. In other products the result would depend on timing.
    """

    alignment = ALIGNMENT
    pivot = PIVOT
    signs = None

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> PackedBlock:
        """Return a block that holds `values` as bits."""
        assert via is None
        block, truths = self.blank(values), stacked(values[0])
        self._convert("pack", truths, block)
        return block

    def blank(self, values: tuple[Any, ...], via: Any = None) -> PackedBlock:
        """Return an empty block for a result of the shape of `values`."""
        import cupy

        *batch, m, n = values[0].shape
        words = cupy.zeros((int(np.prod(batch)), m, _words(n)), dtype=np.uint32)
        return PackedBlock((words,), None, 0, 0, n, ALIGNMENT)

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write the block's elements into `values`."""
        import cupy

        truths = stacked(values[0])
        self._convert("unpack", truths, A)
        if not cupy.may_share_memory(truths, values[0]):
            copy_into(truths.reshape(values[0].shape), values[0])

    def _convert(self, name: str, truths: Any, A: Block) -> None:
        batch, m, n = truths.shape
        if truths.size:
            grid = -(-m // WARPS) * -(-n // SPAN) * batch
            apart, row, column = truths.strides
            aligned = column == 1 and not any(x % 16 for x in (truths.data.ptr, row, apart if batch > 1 else 0))
            self._launch(name, grid, (truths.data.ptr, row, column, apart, *_layout(A.values[0]), m, n, int(aligned)))

    def _launch(self, name: str, grid: int, arguments: tuple[int, ...]) -> None:
        kernel_for(name, self.number, bits_source, name)((grid, 1, 1), (32 * WARPS, 1, 1), arguments)

    def expect_signs(self, m: int, n: int, k: int) -> None:
        """Do nothing: truth values have no signs."""

    def expect_small_integers(self, m: int, n: int, k: int, count: int, read: Callable[[], object]) -> None:
        """Do nothing: truth values have their own products."""

    def launches(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """Return None: operands are packed anew for each product."""
        return

    small_integers = launches

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ∪ A·B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        self._product(A, B, C, fresh=True)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        import cupy

        (m, n), k, batch = C.shape, A.shape[1], len(C.values[0])
        if 0 in (m, n, batch):
            return
        tile = choose_bit_tile(m, n, k, batch, device(self.number))
        grid = -(-m // tile.rows) * -(-n // tile.columns) * batch
        if tile.blocked:
            left, grid = self._rearranged("arrange", A, tile), min(grid, device(self.number).multiprocessors)
        elif shares(A, C):
            left = cupy.empty(A.values[0].shape, np.uint32)
            copy_rows(A.values[0], left)
        else:
            left = A.values[0]
        right = self._rearranged("transpose", B, tile)
        arguments = (*_layout(left), *_layout(right), *_layout(C.values[0]), m, n, k, batch, int(fresh))
        kernel = kernel_for("product", self.number, bits_source, "product", tile, shared_bytes=tile.shared_bytes)
        kernel((grid, 1, 1), (tile.threads, 1, 1), arguments, tile.shared_bytes)
        launched(self.meter, m * n * k * batch)

    def _rearranged(self, name: str, X: Block, tile: BitTile) -> Any:
        """Return the rows of an operand ("arrange"), or of its transpose, as the tile reads them."""
        import cupy

        (m, n), batch, transposed = X.shape, len(X.values[0]), name == "transpose"
        rows, bits = (n, m) if transposed else (m, n)
        if tile.blocked:
            rows, bits = round_up(rows, tile.columns if transposed else tile.rows), round_up(bits, tile.depth)
        words = cupy.empty((batch, rows, _words(bits)), np.uint32)
        if words.size:
            grid = -(-rows // (32 * WARPS)) * -(-bits // ALIGNMENT) if transposed else rows // 32 * (bits // tile.depth)
            kernel = kernel_for(name, self.number, bits_source, name, tile if tile.blocked else None)
            kernel((grid * batch, 1, 1), (32 * WARPS, 1, 1), (*_layout(X.values[0]), *_layout(words), m, n))
        return words

    def close(self, A: Block) -> None:
        """Compute A ← A ∪ A² ∪ …; no pivot diverges."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            words = next(w for w in PIVOT_WORDS if n <= 32 * w)
            limits = device(self.number)
            cluster = words == PIVOT_WORDS[-1] and limits.arch >= 90 and batch * CLUSTER <= limits.multiprocessors
            kernel = kernel_for("close", self.number, bits_source, "close", None, words, cluster)
            blocks, _, threads = _divided(words, cluster=cluster)
            kernel((batch * blocks, 1, 1), (threads, 1, 1), (*_layout(A.values[0]), n))
            launched(self.meter, n**3 * batch)

    def eliminate(self, A: Block) -> None:
        """Compute A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """Compute A ← I ∪ A."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            self._launch("add_identity", -(-n // (32 * WARPS)) * batch, (*_layout(A.values[0]), n))

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Run ``schedule(A)``; for small matrices as a CUDA graph from the second use on, as launches would take longer than the work."""
        small, key = A.shape[0] > self.pivot and A.values[0].nbytes <= _SMALL, ("bits", self.number, A.values[0].shape, A.shape, name)
        recorded = recording(self, key, A, schedule) if small else None
        if recorded is None:
            compiler.run(lambda: schedule(A))
        else:
            recorded.play(A)
            launched(self.meter, A.shape[0] ** 3 * len(A.values[0]))


def _words(n: int) -> int:
    return -(-n // ALIGNMENT) * (ALIGNMENT // 32)


def _layout(words: Any) -> tuple[int, int, int]:
    return words.data.ptr, words.strides[1] // 4, words.strides[0] // 4


# Hop counts between all vertices of a sparse graph with equally long edges: breadth-first search from all vertices at once, in bits. A
# level of all searches is a union of bit rows per edge, and takes as long as reading the rows. A distance is the number of levels at which
# the vertex was not reached yet, so all levels are kept until the end.

_LEVEL_BLOCKS = 64  # across the words of a row when levels are counted

_LEVEL_DTYPES = ("float32", "float64", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def levels_source(dtype: np.dtype[Any]) -> str:
    """Return the CUDA C++ of the kernels for matrices of a dtype."""
    return f'#include "arithmetic.cuh"\n\nusing Number = {dtype};\n#include "levels.cuh"\n'


def close_by_levels(matrix: Any, nothing: Any, length: Any) -> bool:
    """Replace a matrix of equally long edges by distances, with 0 on the diagonal; return False, with the matrix unchanged, if unsuitable.

    Unsuitable are edges of different lengths, graphs whose edges or path lengths make products faster, and graphs whose levels exceed the
    memory. `nothing` and `length` are the entries of no edge, and of each edge; all multiples of `length` below n must be exact. The
    diagonal is not read.
    """
    import cupy

    n, dtype = len(matrix), matrix.dtype
    if dtype.name not in _LEVEL_DTYPES or compiler.rehearsing():
        return False
    number = cupy.cuda.runtime.getDevice()
    row, column = (step // matrix.itemsize for step in matrix.strides)
    list_edges, first_level, next_level, count_levels = (
        kernel_for(name, number, levels_source, dtype) for name in ("list_edges", "first_level", "next_level", "count_levels")
    )
    blocks, block = -(-n // WARPS), (32 * WARPS, 1, 1)
    told = of_bytes(n + 1, 0)  # the degrees of all vertices, and a flag for other edges
    given = matrix.data.ptr, row, column, n, dtype.type(nothing), dtype.type(length)
    list_edges((blocks, 1, 1), block, (*given, told.data.ptr, 0, 0, told.data.ptr + 4 * n))
    *degrees, others = read_back(told)
    starts = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    width = -(-n // 128)
    nbytes, edges = 16 * n * width, int(starts[-1])
    most = min(machine.LEVELS, machine.most_levels(n, edges), (free_on(gpu_name(number)) or 0) // (2 * nbytes))
    if others or most < 2:
        return False
    where, heads = cupy.asarray(starts), cupy.empty(max(1, edges), np.int32)
    list_edges((blocks, 1, 1), block, (*given, 0, where.data.ptr, heads.data.ptr, 0))
    levels = [cupy.empty(nbytes, np.uint8)]
    levels[0].data.memset_async(0, nbytes)
    first_level((-(-n // (32 * WARPS)), 1, 1), block, (levels[0].data.ptr, n, 4 * width))
    changed = of_bytes(most, 0)
    for level in range(most):
        levels.append(cupy.empty(nbytes, np.uint8))
        taken = levels[level].data.ptr, levels[level + 1].data.ptr, n, width, where.data.ptr, heads.data.ptr, changed.data.ptr + 4 * level
        next_level((blocks, -(-width // 32), 1), block, taken)
        if not read_back(changed[level : level + 1])[0]:
            break
    else:
        return False
    table = cupy.asarray(np.array([v.data.ptr for v in levels[:-1]], np.uint64))
    there = matrix.data.ptr, row, column, dtype.type(nothing), dtype.type(length)
    count_levels((blocks, min(_LEVEL_BLOCKS, -(-n // 32)), 1), block, (table.data.ptr, len(levels) - 1, n, 4 * width, *there))
    return True
