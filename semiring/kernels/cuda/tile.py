"""Tiles of a product on a GPU: the problem, the candidates, the tile with the shortest predicted time, and split-K.

`looks_up_in_shared` decides where witnesses are looked up, and so which tiles are candidates. `choose_tile` takes the best one, and
`split_k` decides whether several thread blocks share the tiles that would leave part of the GPU idle. Everything is arithmetic, without a
GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from semiring.common.errors import SemiringError
from semiring.common.html import Shown
from semiring.kernels import machine
from semiring.kernels.hardware import Device

__all__ = [
    "COLUMNS", "GROUPS", "ROWS", "STAGES", "THREADS", "SplitK", "Tile", "TileProblem", "candidate_tiles", "choose_tile",
    "looks_up_in_shared", "round_up", "split_k",
]  # fmt: skip

GROUPS, STAGES, ROWS, COLUMNS, THREADS = 2, 4, 128, 256, 384
"""Tiles on Hopper's tensor cores, see ``tensor.cuh``: warpgroups that compute, buffers, rows, columns, and threads of a block."""

_ENTRY = 4  # bytes that name an element with a winner, and the slab to search


def round_up(length: int, step: int) -> int:
    """Return the least multiple of a step that is not below a length."""
    return -(-length // step) * step


@dataclass(frozen=True)
class TileProblem:
    """The properties of a product that determine its tile."""

    m: int
    n: int
    k: int
    batch: int
    bytes: int  # of an element
    witness: bool = False
    light: bool = True  # operands are read by vectors, so that most registers are for the sums
    series: bool = False  # a step is many instructions, such as an exponential: few steps are unrolled
    step: str | None = None  # the row of the instruction table
    heavy: bool = False  # ⊕ and ⊗ take more than an instruction each: fewer steps fit the instruction cache
    side: int = 0  # the fewest rows and columns of a tile: a whole block of a result that is also an operand
    shared_lookup: bool = False  # witnesses are looked up in shared memory, which holds all slices, instead of global memory
    splittable: bool = False  # a sum may be added from parts of the steps, with any split of k


@dataclass(frozen=True)
class Tile(Shown):
    """Sizes of one product kernel."""

    rows: int  # of C in a thread block
    columns: int
    depth: int  # steps of k in a slice
    thread_rows: int  # of C in a thread's registers
    thread_columns: int
    stages: int  # slices in shared memory
    blocks: int  # thread blocks per multiprocessor, which bounds a thread's registers
    held: int = 2  # steps whose operands a thread holds, twice: the current ones and the next
    unrolled: int = 16  # steps that are unrolled, at least 2 × held
    cost: float = 1.0  # time per element and step given enough work, relative to the first candidate

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and rows of a Jupyter table."""
        return f"{self.rows} × {self.columns} elements of C in a thread block", [
            ("thread", f"{self.thread_rows} × {self.thread_columns} elements in registers"),
            ("block", f"{self.threads} threads, {self.blocks} blocks a multiprocessor"),
            ("shared memory", f"{self.stages} slices of {self.depth} steps"),
            ("written out", f"{self.unrolled} steps, operands of {self.held} held twice"),
        ]

    def count(self, m: int, n: int) -> int:
        """Return the number of tiles that cover m × n elements."""
        return -(-m // self.rows) * -(-n // self.columns)

    def shared_bytes(self, size: int, *, witness: bool = False, shared_lookup: bool = False) -> int:
        """Return the shared memory of a block in bytes; a witness needs a list at the end, and slices to look it up in."""
        vector = max(1, 16 // size)
        slices = self.stages * (self.rows * (self.depth + vector) + self.depth * self.columns) * size
        improved = witness * self.rows * self.columns * _ENTRY
        return slices + improved if shared_lookup else max(slices, improved)

    def fits(self, problem: TileProblem, device: Device) -> bool:
        """Return True if the kernel and the device have room for the tile."""
        vector = max(1, 16 // problem.bytes)
        warps = self.rows % (4 * self.thread_rows) == self.columns % (8 * self.thread_columns) == 0
        vectors = self.thread_columns % vector == self.depth % vector == 0
        room = self.shared_bytes(problem.bytes, witness=problem.witness, shared_lookup=problem.shared_lookup) <= device.block_shared_bytes
        return warps and vectors and room and (not problem.shared_lookup or problem.k <= self.stages * self.depth)


_TILES: dict[tuple[bool, bool], dict[int, tuple[Tile, ...]]] = {
    (False, True): {
        4: (
            Tile(64, 128, 16, 8, 8, 3, 4),
            Tile(64, 64, 16, 8, 4, 3, 4, cost=1.03),
            Tile(64, 64, 32, 4, 4, 2, 4, cost=1.1),
            Tile(32, 64, 32, 4, 4, 2, 6, cost=1.1),
        ),
        8: (Tile(32, 64, 16, 4, 4, 3, 4),),
        16: (Tile(32, 64, 8, 4, 4, 3, 2, held=1), Tile(32, 32, 8, 4, 4, 3, 2, held=1)),
    },
    (False, False): {4: (Tile(64, 64, 16, 8, 4, 3, 3),), 8: (Tile(32, 64, 16, 4, 4, 3, 3),), 16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),)},
    (True, True): {
        4: (
            Tile(64, 64, 32, 4, 8, 2, 3, unrolled=32),
            Tile(64, 64, 32, 4, 4, 2, 2, unrolled=32, cost=1.03),
            Tile(32, 32, 32, 4, 4, 3, 8, unrolled=32, cost=1.05),
            Tile(32, 32, 32, 2, 4, 3, 6, unrolled=32, cost=1.15),
            Tile(16, 32, 32, 1, 4, 3, 8, unrolled=32, cost=1.6),
        ),
        8: (Tile(32, 64, 16, 4, 4, 3, 3),),
        16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),),
    },
    (True, False): {4: (Tile(64, 64, 16, 4, 8, 3, 2),), 8: (Tile(32, 64, 16, 4, 4, 3, 2),), 16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),)},
}
"""The candidates by (witness, light) and bytes per element, fastest first given enough work."""

_PAIRS = (
    Tile(128, 64, 16, 8, 8, 3, 3, held=4),
    Tile(64, 64, 16, 8, 8, 3, 6, held=4, unrolled=8, cost=1.07),
    Tile(64, 64, 16, 8, 4, 3, 4, cost=1.07),
    Tile(32, 64, 32, 4, 4, 2, 6, unrolled=8, cost=1.3),
)
_BY_STEP = {None: tuple(replace(tile, held=1) for tile in _TILES[False, True][4]), "VIADDMNMX.S16x2": _PAIRS, "VIADDMNMX.U16x2": _PAIRS}
"""Candidates of light products of four bytes by step. With one instruction each for ⊕ and ⊗, one step at a time is best."""

_SHARED_LOOKUP: dict[bool, dict[int, tuple[Tile, ...]]] = {
    True: {
        4: (
            Tile(64, 64, 32, 4, 4, 2, 2, unrolled=32),
            Tile(32, 32, 32, 4, 4, 2, 8, unrolled=32, cost=1.1),
            Tile(16, 32, 32, 1, 4, 2, 8, unrolled=32, cost=1.6),
        ),
        8: (Tile(32, 64, 16, 4, 4, 4, 3), Tile(64, 64, 16, 4, 4, 4, 1, cost=1.1)),
        16: (Tile(32, 32, 16, 4, 4, 4, 2, held=1, unrolled=8),),
    },
    False: {
        4: (Tile(64, 64, 32, 8, 4, 2, 2),),
        8: (Tile(32, 64, 16, 4, 4, 4, 2), Tile(64, 64, 16, 4, 4, 4, 1, cost=1.1)),
        16: (Tile(32, 32, 16, 4, 4, 4, 2, held=1, unrolled=8),),
    },
}
"""Tiles with room for all slices of a shallow product, by `light` and bytes per element."""

_SERIES = Tile(32, 32, 32, 1, 4, 2, 3, held=1, unrolled=4), Tile(16, 32, 32, 1, 4, 3, 6, held=1, unrolled=4, cost=1.03)


def candidate_tiles(problem: TileProblem) -> tuple[Tile, ...]:
    """Return the tiles for a problem's elements."""
    if problem.series:
        return _SERIES
    size = next((s for s in (4, 8, 16) if problem.bytes <= s), 16)
    tiles = _SHARED_LOOKUP[problem.light][size] if problem.shared_lookup else _TILES[problem.witness, problem.light][size]
    if problem.light and not problem.witness and size == 4:
        tiles = _BY_STEP.get(problem.step, tiles)
    return tuple(replace(tile, unrolled=8) for tile in tiles) if problem.heavy else tiles


_WARP = 32
_SHALLOW = 64  # the most steps of a product with a witness whose slices all stay in shared memory

_PARTS, _DEPTH, _GRAIN, _PARTS_BYTES = 16, 256, 64, 48 << 20
"""The most parts; the fewest steps of a part, and a divisor of these steps; and the most bytes of all parts' sums."""


@dataclass(frozen=True)
class SplitK:
    """Split-K of the tiles left over when the others fill the GPU a whole number of times: blocks share the steps of a tile."""

    rows: int  # of C in whole tiles
    depth: int  # steps of a part
    parts: int


@functools.lru_cache(maxsize=4096)
def looks_up_in_shared(problem: TileProblem, device: Device) -> bool:
    """Return True if few enough steps remain in shared memory to look a witness up there."""
    shared = replace(problem, shared_lookup=True)
    return problem.witness and problem.k <= _SHALLOW and not problem.series and any(t.fits(shared, device) for t in candidate_tiles(shared))


def _time(problem: TileProblem, tile: Tile, device: Device, split: SplitK | None) -> float:
    """Predict the time of a product, in steps of a multiprocessor.

    Four running warps keep a multiprocessor busy; then blocks take equally long at once and in turn. The start costs a quarter of the time
    of a block of four warps. A witness lookup counts only in global memory.
    """
    tiles, parts = tile.count(problem.m, problem.n) * problem.batch, split.parts if split else 1
    together = max(1, 4 * _WARP // tile.threads)
    blocks = -(-tiles * parts // (device.multiprocessors * together)) * together / parts
    steps = problem.k + (problem.witness and not problem.shared_lookup) * machine.GLOBAL_LOOKUP
    time = (blocks + _WARP / tile.threads) * tile.rows * tile.columns * tile.cost * steps
    if split:
        rest = (problem.m - split.rows) * problem.n
        time += rest * parts * machine.SPLIT_K_ELEMENT / device.multiprocessors + machine.SPLIT_K_LAUNCH
    return time


def _splits(problem: TileProblem, tile: Tile, device: Device) -> Iterator[SplitK]:
    """Yield the splits of the tiles left over when whole tiles fill the GPU as often as possible."""
    across, down = tile.count(1, problem.n), tile.count(problem.m, 1)
    together = device.multiprocessors * tile.blocks
    rows = across * down // together * together // across
    if not problem.splittable or rows == down:
        return
    size = (down - rows) * across * tile.rows * tile.columns * problem.bytes
    for parts in range(2, min(_PARTS, problem.k // _DEPTH, _PARTS_BYTES // size) + 1):
        depth = -(-problem.k // (parts * _GRAIN)) * _GRAIN
        yield SplitK(rows * tile.rows, depth, -(-problem.k // depth))


@functools.lru_cache(maxsize=4096)
def split_k(problem: TileProblem, tile: Tile, device: Device) -> SplitK | None:
    """Return the split with the shortest predicted time, or None if whole tiles are faster."""
    return min((None, *_splits(problem, tile, device)), key=lambda split: _time(problem, tile, device, split))


@functools.lru_cache(maxsize=4096)
def choose_tile(problem: TileProblem, device: Device) -> Tile:
    """Return the candidate with the shortest predicted time.

    Raises SemiringError for a problem that no launch can number, and for elements too large for any candidate.
    """
    m, n, k = problem.m, problem.n, problem.k
    if max(m, n, k) >= 2**31:
        raise SemiringError(f"a product of {m} × {k} and {k} × {n} is beyond 32-bit indices; use smaller blocks")

    def time(tile: Tile) -> float:
        return _time(problem, tile, device, split_k(problem, tile, device))

    fitting = [t for t in candidate_tiles(problem) if t.fits(problem, device)]
    if not fitting:
        raise SemiringError(f"elements of {problem.bytes} bytes are too large for the shared memory of sm_{device.arch}; use device='cpu'")
    return min([t for t in fitting if min(t.rows, t.columns) >= problem.side] or fitting, key=time)
