"""Tiles of a product on a GPU: the problem, the candidates, the one that is predicted fastest, and split-K.

`looks_up_in_shared` says where a witness is looked up, which decides which tiles there are; `choose_tile` takes the best of these; and
`split_k` says whether tiles that would leave a part of the GPU idle are shared by several thread blocks. All of it is arithmetic, and
needs no GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from semiring.common.errors import SemiringError
from semiring.common.html import Shown
from semiring.kernels import machine
from semiring.kernels.hardware import Device

__all__ = ["SplitK", "Tile", "TileProblem", "candidate_tiles", "choose_tile", "looks_up_in_shared", "split_k"]

_ENTRY = 4
"""Bytes that tell which element has a winner, and where to look it up."""


@dataclass(frozen=True)
class TileProblem:
    """A product as far as its tile depends on it.

    Attributes
    ----------
    m, n, k, batch : int
    bytes : int
        Of an element.
    witness : bool
    light : bool
        Operands are read by vectors, so that most registers are for the sums.
    series : bool
        A step is many instructions, as exponentials and logarithms are: few of them are written out.
    step : str or None
        The row of the table of steps.
    heavy : bool
        ⊕ and ⊗ are more than an instruction each, and fewer steps fit the instruction cache.
    side : int
        What a tile should have of rows and columns at least: of a result that is an operand too, a whole block.
    shared_lookup : bool
        A witness is looked up in shared memory, where all slices have to be in the end, instead of global memory.
    splittable : bool
        A sum may be that of parts of its steps, wherever k is split.
    """

    m: int
    n: int
    k: int
    batch: int
    bytes: int
    witness: bool = False
    light: bool = True
    series: bool = False
    step: str | None = None
    heavy: bool = False
    side: int = 0
    shared_lookup: bool = False
    splittable: bool = False

    def validate(self) -> None:
        """Refuse what no launch can number."""
        if max(self.m, self.n, self.k) >= 2**31:
            raise SemiringError(f"a product of {self.m} × {self.k} and {self.k} × {self.n} is beyond 32-bit indices; use smaller blocks")


@dataclass(frozen=True)
class Tile(Shown):
    """Sizes of one product kernel.

    Attributes
    ----------
    rows, columns : int
        Of C in a thread block.
    depth : int
        Steps of k in a slice.
    thread_rows, thread_columns : int
        Of C in a thread's registers.
    stages : int
        Slices in shared memory.
    blocks : int
        Thread blocks that a multiprocessor is to hold, which limits the registers of a thread.
    held : int
        Steps whose operands a thread holds, twice: those it works on, and the next.
    unrolled : int
        Steps that are written out, two times `held` at least.
    cost : float
        Time for an element and a step where there is enough to do, as a multiple of the first candidate's.
    """

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int
    stages: int
    blocks: int
    held: int = 2
    unrolled: int = 16
    cost: float = 1.0

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"{self.rows} × {self.columns} elements of C in a thread block", [
            ("thread", f"{self.thread_rows} × {self.thread_columns} elements in registers"),
            ("block", f"{self.threads} threads, {self.blocks} blocks a multiprocessor"),
            ("shared memory", f"{self.stages} slices of {self.depth} steps"),
            ("written out", f"{self.unrolled} steps, operands of {self.held} held twice"),
        ]

    def count(self, m: int, n: int) -> int:
        """Tiles that cover m × n elements."""
        return -(-m // self.rows) * -(-n // self.columns)

    def shared_bytes(self, size: int, *, witness: bool = False, shared_lookup: bool = False) -> int:
        """Shared memory of a block for elements of `size` bytes; a witness needs a list in the end, beside slices to look it up in."""
        vector = max(1, 16 // size)
        slices = self.stages * (self.rows * (self.depth + vector) + self.depth * self.columns) * size
        improved = witness * self.rows * self.columns * _ENTRY
        return slices + improved if shared_lookup else max(slices, improved)

    def fits(self, problem: TileProblem, device: Device) -> bool:
        """Whether the kernel and the device have room for it."""
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
    (False, False): {
        4: (Tile(64, 64, 16, 8, 4, 3, 3),),
        8: (Tile(32, 64, 16, 4, 4, 3, 3),),
        16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),),
    },
    (True, True): {
        4: (
            Tile(64, 64, 32, 4, 8, 2, 3, unrolled=32),
            Tile(64, 64, 32, 4, 4, 2, 2, unrolled=32, cost=1.03),
            Tile(32, 32, 32, 4, 4, 3, 8, unrolled=32, cost=1.05),
        ),
        8: (Tile(32, 64, 16, 4, 4, 3, 3),),
        16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),),
    },
    (True, False): {
        4: (Tile(64, 64, 16, 4, 8, 3, 2),),
        8: (Tile(32, 64, 16, 4, 4, 3, 2),),
        16: (Tile(32, 32, 8, 4, 4, 3, 2, held=1),),
    },
}
"""The candidates by (witness, light) and by the bytes of an element, those first that are fastest where there is enough to do."""

_PAIRS = (
    Tile(128, 64, 16, 8, 8, 3, 3, held=4),
    Tile(64, 64, 16, 8, 8, 3, 6, held=4, unrolled=8, cost=1.07),
    Tile(64, 64, 16, 8, 4, 3, 4, cost=1.07),
    Tile(32, 64, 32, 4, 4, 2, 6, unrolled=8, cost=1.3),
)
_BY_STEP = {
    None: tuple(replace(tile, held=1) for tile in _TILES[False, True][4]),
    "VIADDMNMX.S16x2": _PAIRS,
    "VIADDMNMX.U16x2": _PAIRS,
}
"""The same where light products of four bytes have others: ⊕ and ⊗ of an instruction each are best one step at a time."""

_SHARED_LOOKUP: dict[bool, dict[int, tuple[Tile, ...]]] = {
    True: {
        4: (
            Tile(64, 64, 32, 4, 4, 2, 2, unrolled=32),
            Tile(32, 32, 32, 4, 4, 2, 8, unrolled=32, cost=1.1),
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
"""The tiles that have the room for all slices of a shallow product, by light and bytes."""

_SERIES = (Tile(32, 64, 4, 4, 4, 3, 3, held=1, unrolled=4),)


def candidate_tiles(problem: TileProblem) -> tuple[Tile, ...]:
    """The tiles for elements of this size."""
    if problem.series:
        return _SERIES
    size = next((s for s in (4, 8, 16) if problem.bytes <= s), 16)
    tiles = _SHARED_LOOKUP[problem.light][size] if problem.shared_lookup else _TILES[problem.witness, problem.light][size]
    if problem.light and not problem.witness and size == 4:
        tiles = _BY_STEP.get(problem.step, tiles)
    return tuple(replace(tile, unrolled=8) for tile in tiles) if problem.heavy else tiles


_WARP = 32

_SHALLOW = 64
"""Steps up to which a product with a witness keeps all its slices in shared memory."""

_PARTS, _DEPTH, _GRAIN, _PARTS_BYTES = 16, 256, 64, 48 << 20
"""The most parts, the fewest steps of a part, what these are a multiple of, and the most bytes of all sums of parts."""


@dataclass(frozen=True)
class SplitK:
    """Split-K of the tiles that are left when the others have filled the GPU once or several times: blocks share the steps of a tile.

    Attributes
    ----------
    rows : int
        Of C, that are computed in whole tiles.
    depth : int
        Steps of a part.
    parts : int
    """

    rows: int
    depth: int
    parts: int


@functools.lru_cache(maxsize=4096)
def looks_up_in_shared(problem: TileProblem, device: Device) -> bool:
    """Whether the steps are so few that a witness can be looked up in shared memory."""
    shared = replace(problem, shared_lookup=True)
    return problem.witness and problem.k <= _SHALLOW and not problem.series and any(t.fits(shared, device) for t in candidate_tiles(shared))


def _time(problem: TileProblem, tile: Tile, device: Device, split: SplitK | None) -> float:
    """What a product is predicted to take, in steps of a multiprocessor.

    A multiprocessor takes its blocks one after the other, whether they run at once or not, if only four warps do; besides, it takes a
    quarter of the time of a block of four warps until all are at work. To look up a witness counts where that is in global memory.
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
    """The splits of what is left when whole tiles have filled the GPU as often as they can."""
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
    """The split that is predicted fastest for such tiles, or None where whole tiles alone are."""
    return min((None, *_splits(problem, tile, device)), key=lambda split: _time(problem, tile, device, split))


@functools.lru_cache(maxsize=4096)
def choose_tile(problem: TileProblem, device: Device) -> Tile:
    """The candidate that is predicted fastest.

    Raises
    ------
    SemiringError
        For a problem that no launch can number, or elements too large for any candidate.
    """
    problem.validate()

    def time(tile: Tile) -> float:
        return _time(problem, tile, device, split_k(problem, tile, device))

    fitting = [t for t in candidate_tiles(problem) if t.fits(problem, device)]
    if not fitting:
        raise SemiringError(f"no tile of elements of {problem.bytes} bytes fits the shared memory of sm_{device.arch}; use device='cpu'")
    return min([t for t in fitting if min(t.rows, t.columns) >= problem.side] or fitting, key=time)
