"""Bit-packed Boolean matrices on one GPU: the tiles of a product, the kernels, each compiled at its first use, and their engine.

Matrices are packed into words of device memory for as long as an algorithm runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.html import Shown
from semiring.kernels.cuda import compiler
from semiring.kernels.cuda.arguments import Bits, Truths, parameters
from semiring.kernels.cuda.blocks import copy_into, copy_rows, shares, stacked
from semiring.kernels.cuda.capture import recording
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.events import launched
from semiring.kernels.engine import Block, Immediate, PackedBlock
from semiring.kernels.hardware import Device, device

__all__ = ["ALIGNMENT", "PIVOT", "PIVOT_WORDS", "BitTile", "CudaBooleanEngine", "bits_source", "candidate_bit_tiles", "choose_bit_tile"]

ALIGNMENT = 128
"""Bits that one access to memory takes: blocks begin at multiples of them."""

PIVOT_WORDS = (4, 8, 16)
"""Words of a row of a pivot block, for each of which there is a kernel."""

PIVOT = 32 * PIVOT_WORDS[-1]
"""Side of the largest pivot block."""

WARPS, SPAN = 8, 2048
"""Warps of a thread block of the kernels around a product, and bits that a warp packs or unpacks."""


@dataclass(frozen=True)
class BitTile(Shown):
    """Sizes of a product kernel.

    Attributes
    ----------
    rows, columns : int
        Of C in a thread block.
    depth : int
        Bits of k in a slice.
    part_rows, part_columns : int
        Of C in a warp's registers, or in a thread's without tensor cores.
    stages : int
        Slices in shared memory.
    blocks : int
        Thread blocks that a multiprocessor is to hold, which limits the registers of a thread.
    rate : float
        Steps a second beside those of the other candidates, where there is enough to do.
    tensor : bool
        Whether tensor cores compute it.
    """

    rows: int
    columns: int
    depth: int
    part_rows: int
    part_columns: int
    stages: int
    blocks: int
    rate: float = 1.0
    tensor: bool = True

    @property
    def threads(self) -> int:
        """Of a block."""
        parts = self.rows // self.part_rows * (self.columns // self.part_columns)
        return parts * 32 if self.tensor else parts

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"{self.rows} × {self.columns} bits of C in a thread block", [
            ("warp" if self.tensor else "thread", f"{self.part_rows} × {self.part_columns} bits in registers"),
            ("block", f"{self.threads} threads, {self.blocks} blocks a multiprocessor"),
            ("shared memory", f"{self.stages} slices of {self.depth:,} steps"),
            ("computed by", "tensor cores" if self.tensor else "logical instructions"),
        ]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: slices whose rows are padded by 16 bytes."""
        return self.stages * (self.rows + self.columns) * (self.depth // 8 + 16)


_TENSOR = (
    BitTile(128, 192, 1024, 64, 96, 2, 2),
    BitTile(128, 128, 1024, 64, 64, 2, 3, rate=0.975),
    BitTile(64, 64, 512, 32, 32, 3, 3, rate=0.57),
)
_LOGIC = (BitTile(64, 64, 512, 8, 8, 3, 4, tensor=False),)


def candidate_bit_tiles(arch: int) -> tuple[BitTile, ...]:
    """The tiles for an architecture: tensor cores of the compute capabilities 8 and 9 multiply bits, later ones would only emulate it."""
    return _TENSOR if 80 <= arch < 100 else _LOGIC


@functools.lru_cache(maxsize=4096)
def choose_bit_tile(m: int, n: int, batch: int, limits: Device) -> BitTile:
    """The candidate that is predicted fastest: by the work of the multiprocessor that has the most tiles."""

    def time(tile: BitTile) -> float:
        tiles = -(-m // tile.rows) * -(-n // tile.columns) * batch
        return -(-tiles // limits.multiprocessors) * tile.rows * tile.columns / tile.rate

    return min((t for t in candidate_bit_tiles(limits.arch) if t.shared_bytes <= limits.block_shared_bytes), key=time)


def bits_source(name: str, tile: BitTile | None = None, words: int = 0) -> str:
    """The CUDA C++ of one kernel: the template, and its instantiation that is called `name`.

    Parameters
    ----------
    name : {"product", "transpose", "pack", "unpack", "close", "add_identity"}
    tile : BitTile
        Of a product.
    words : int
        Of a row of the pivot block that is closed.
    """
    header, bounds, threads = "bits", "", 32 * WARPS
    (taken_a, a), (taken_b, b), (taken_c, c) = (parameters(Bits, x) for x in "abc")
    match name:
        case "product":
            assert tile is not None
            header, threads, bounds = "bits_product", tile.threads, f", {tile.blocks}"
            sizes = f"{tile.rows}, {tile.columns}, {tile.depth}"
            core = f"{'TensorCore' if tile.tensor else 'Logic'}<{sizes}, {tile.part_rows}, {tile.part_columns}>"
            taken = [taken_a, taken_b, taken_c, "long long m, long long n, long long k, long long fresh"]
            call = f"multiply_bits<{core}, {sizes}, {tile.stages}>({a}, {b}, {c}, m, n, k, fresh)"
        case "transpose":
            taken = [taken_a, taken_b, "long long m, long long n"]
            call = f"transpose_bits({a}, {b}, m, n)"
        case "pack" | "unpack":
            taken_truths, truths = parameters(Truths, "truths")
            taken = [taken_truths, taken_a, "long long m, long long n, long long aligned"]
            call = f"{name}_rows({f'{truths}, {a}' if name == 'pack' else f'{a}, {truths}'}, m, n, aligned)"
        case "close":
            threads = 32 * words
            taken = [taken_a, "long long n"]
            call = f"close_bits<{words}>({a}, n)"
        case _:
            taken = [taken_a, "long long n"]
            call = f"include_identity({a}, n)"
    kernel = f'extern "C" __global__ void __launch_bounds__({threads}{bounds}) {name}({", ".join(taken)}) {{\n  {call};\n}}\n'
    return f'#include "{header}.cuh"\n\n{kernel}'


class BitKernels:
    """Kernels on one GPU.

    Attributes
    ----------
    device : Device
    """

    def __init__(self, number: int) -> None:
        self.device = device(number)
        self._number = number
        self._functions: dict[Any, Kernel] = {}

    def function(self, name: str, tile: BitTile | None = None, words: int = 0) -> Kernel:
        """A kernel, which is called with a grid, a block, its arguments and its shared memory; see `bits_source`."""
        key = (name, tile, words)
        found = self._functions.get(key)
        if found is None:
            kernel = Kernel(name, lambda: bits_source(*key), self._number, tile.shared_bytes if tile else 0)
            found = self._functions.setdefault(key, kernel)
        return found


@functools.cache
def kernels_for_bits(number: int) -> BitKernels:
    """The kernels for GPU `number`."""
    return BitKernels(number)


_SMALL = 128 << 20
"""Bytes of a packed matrix up to which its schedule is recorded, on a workspace of the same size."""


class CudaBooleanEngine(Immediate):
    """`Engine` for (∨, ∧) on bits in the memory of one GPU, without witnesses.

    A tensor core takes rows of both operands, so that each product begins with B's transpose: n² bits of work before n³. That copy, and
    one of an A that is part of C, let a product read the old values. (Where the other operand is transitively closed, as in every
    closure, new bits would do no harm: they are in the result anyhow. Elsewhere the result would depend on who comes first.)

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    alignment = ALIGNMENT
    pivot = PIVOT
    signs = None

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._kernels = kernels_for_bits(number)

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> PackedBlock:
        """The block that holds `values` as bits."""
        assert via is None
        block, truths = self.blank(values), stacked(values[0])
        self._convert("pack", truths, block)
        return block

    def blank(self, values: tuple[Any, ...], via: Any = None) -> PackedBlock:
        """The block that stands for what a product will be."""
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
        """Pack truth values into a block, or unpack them."""
        batch, m, n = truths.shape
        if truths.size:
            grid = -(-m // WARPS) * -(-n // SPAN) * batch
            apart, row, column = truths.strides
            aligned = column == 1 and not any(x % 16 for x in (truths.data.ptr, row, apart if batch > 1 else 0))
            self._launch(name, grid, (truths.data.ptr, row, column, apart, *_matrix(A), m, n, int(aligned)))

    def _launch(self, name: str, grid: int, arguments: tuple[int, ...]) -> None:
        """Launch one of the kernels around a product."""
        self._kernels.function(name)((grid, 1, 1), (32 * WARPS, 1, 1), arguments)

    def expect_signs(self, m: int, n: int, k: int) -> None:
        """Nothing: truth values have none."""

    def launches(self, A: Block, B: Block, C: Block) -> None:
        """Nothing, because bits are packed for each product."""
        return

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ∪ A·B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        self._product(A, B, C, fresh=True)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """C ← C ∪ A·B, or A·B where C is `fresh`."""
        (m, n), k, batch = C.shape, A.shape[1], len(C.values[0])
        if 0 in (m, n, batch):
            return
        if shares(A, C):
            A = replace(A, values=(_copied(A.values[0]),))
        transposed = self._transposed(B)
        tile = choose_bit_tile(m, n, batch, self._kernels.device)
        grid = -(-m // tile.rows) * -(-n // tile.columns) * batch
        arguments = (*_matrix(A), *_matrix(transposed), *_matrix(C), m, n, k, int(fresh))
        self._kernels.function("product", tile)((grid, 1, 1), (tile.threads, 1, 1), arguments, tile.shared_bytes)
        launched(self.meter, m * n * k * batch)

    def _transposed(self, B: Block) -> PackedBlock:
        """The transpose of a block."""
        import cupy

        (k, n), batch = B.shape, len(B.values[0])
        transposed = PackedBlock((cupy.empty((batch, n, _words(k)), dtype=np.uint32),), None, 0, 0, k, ALIGNMENT)
        if k:
            grid = -(-k // ALIGNMENT) * -(-n // (32 * WARPS)) * batch
            self._launch("transpose", grid, (*_matrix(B), *_matrix(transposed), k, n))
        return transposed

    def close(self, A: Block) -> None:
        """A ← A ∪ A² ∪ …; every pivot is harmless."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            words = next(w for w in PIVOT_WORDS if n <= 32 * w)
            self._kernels.function("close", words=words)((batch, 1, 1), (32 * words, 1, 1), (*_matrix(A), n))
            launched(self.meter, n**3 * batch)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """A ← I ∪ A."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            self._launch("add_identity", -(-n // (32 * WARPS)) * batch, (*_matrix(A), n))

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``; where launches would take longer than the work, as a CUDA graph from its second use on."""
        recorded = None
        if A.shape[0] > self.pivot and A.values[0].nbytes <= _SMALL and not compiler.rehearsing():
            meter, self.meter = self.meter, None  # what is recorded is done when it is played
            recorded = recording(("bits", self.number, A.values[0].shape, A.shape, name), A, schedule)
            self.meter = meter
        if recorded is None:
            compiler.run(lambda: schedule(A), lambda: schedule(A))
        else:
            recorded.play(A)
            launched(self.meter, A.shape[0] ** 3 * len(A.values[0]))


def _copied(words: Any) -> Any:
    """A copy of packed words."""
    import cupy

    copied = cupy.empty(words.shape, words.dtype)
    copy_rows(words, copied)
    return copied


def _words(n: int) -> int:
    """Words of a row of n bits with its padding."""
    return -(-n // ALIGNMENT) * (ALIGNMENT // 32)


def _matrix(A: Block) -> tuple[int, int, int]:
    """The arguments that tell where a block lies: its address, and strides in words."""
    words = A.values[0]
    return words.data.ptr, words.strides[1] // 4, words.strides[0] // 4
