"""The kernels for matrices of bits on one GPU, each compiled at its first use: the tiles of a product, and the CUDA C++."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from semiring.algebra.html import Shown
from semiring.kernels.cuda.device import device
from semiring.kernels.cuda.loading import Kernel
from semiring.kernels.cuda.tile import Device

__all__ = [
    "GRANULE", "PIVOT", "PIVOT_WORDS", "SPAN", "WARPS", "BitKernels", "BitTile", "bits_source", "candidates", "choose_bits",
    "kernels_for_bits",
]  # fmt: skip

GRANULE = 128
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


def candidates(arch: int) -> tuple[BitTile, ...]:
    """The tiles for an architecture: tensor cores of the compute capabilities 8 and 9 multiply bits, later ones would only emulate it."""
    return _TENSOR if 80 <= arch < 100 else _LOGIC


@functools.lru_cache(maxsize=4096)
def choose_bits(m: int, n: int, batch: int, limits: Device) -> BitTile:
    """The candidate that is predicted fastest: by the work of the multiprocessor that has the most tiles."""

    def time(tile: BitTile) -> float:
        tiles = -(-m // tile.rows) * -(-n // tile.columns) * batch
        return -(-tiles // limits.multiprocessors) * tile.rows * tile.columns / tile.rate

    return min((t for t in candidates(limits.arch) if t.shared_bytes <= limits.block_shared_bytes), key=time)


_BITS = "unsigned* {0}, long long {0}_row, long long {0}_batch"
_TRUTHS = "unsigned char* truths, long long row, long long column, long long batch"
_MATRIX = "Bits{{{0}, {0}_row, {0}_batch}}"


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
    a, b, c = (_MATRIX.format(x) for x in "abc")
    match name:
        case "product":
            assert tile is not None
            header, threads, bounds = "bits_product", tile.threads, f", {tile.blocks}"
            sizes = f"{tile.rows}, {tile.columns}, {tile.depth}"
            core = f"{'TensorCore' if tile.tensor else 'Logic'}<{sizes}, {tile.part_rows}, {tile.part_columns}>"
            parameters = [*map(_BITS.format, "abc"), "long long m, long long n, long long k, long long fresh"]
            call = f"multiply_bits<{core}, {sizes}, {tile.stages}>({a}, {b}, {c}, m, n, k, fresh)"
        case "transpose":
            parameters = [*map(_BITS.format, "ab"), "long long m, long long n"]
            call = f"transpose_bits({a}, {b}, m, n)"
        case "pack" | "unpack":
            parameters = [_TRUTHS, _BITS.format("a"), "long long m, long long n, long long aligned"]
            truths = "Truths{truths, row, column, batch}"
            call = f"{name}_rows({f'{truths}, {a}' if name == 'pack' else f'{a}, {truths}'}, m, n, aligned)"
        case "close":
            header, threads = "bits_pivot", 32 * words
            parameters = [_BITS.format("a"), "long long n"]
            call = f"close_bits<{words}>({a}, n)"
        case _:
            parameters = [_BITS.format("a"), "long long n"]
            call = f"include_identity({a}, n)"
    kernel = f'extern "C" __global__ void __launch_bounds__({threads}{bounds}) {name}({", ".join(parameters)}) {{\n  {call};\n}}\n'
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
