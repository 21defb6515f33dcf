"""Which tile a product is predicted to be fastest in, and what becomes of the tiles that do not fill the GPU."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from semiring.algebra.errors import SemiringError
from semiring.kernels import machine
from semiring.kernels.cuda.tile import Device, Problem, Tile, candidates

__all__ = ["Division", "choose", "divide", "is_near"]

_WARP = 32

_SHALLOW = 64
"""Steps up to which a product with a witness keeps all its slices in shared memory."""

_PARTS, _DEPTH, _GRAIN, _PARTS_BYTES = 16, 256, 64, 48 << 20
"""The most parts, the fewest steps of a part, what these are a multiple of, and the most bytes of all sums of parts."""


@dataclass(frozen=True)
class Division:
    """What becomes of the tiles that are left when the others have filled the GPU once or several times: blocks share their steps.

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
def is_near(problem: Problem, device: Device) -> bool:
    """Whether the steps are so few that a witness can be looked for in shared memory."""
    near = replace(problem, near=True)
    return problem.witness and problem.k <= _SHALLOW and not problem.series and any(t.fits(near, device) for t in candidates(near))


def _time(problem: Problem, tile: Tile, device: Device, division: Division | None) -> float:
    """What a product is predicted to take, in steps of a multiprocessor.

    A multiprocessor takes its blocks one after the other, whether they run at once or not, if only four warps do; besides, it takes a
    quarter of the time of a block of four warps until all are at work. To look for a witness counts where it is in device memory.
    """
    tiles, parts = tile.count(problem.m, problem.n) * problem.batch, division.parts if division else 1
    together = max(1, 4 * _WARP // tile.threads)
    blocks = -(-tiles * parts // (device.multiprocessors * together)) * together / parts
    steps = problem.k + (problem.witness and not problem.near) * machine.FAR_WITNESS
    time = (blocks + _WARP / tile.threads) * tile.rows * tile.columns * tile.cost * steps
    if division:
        rest = (problem.m - division.rows) * problem.n
        time += rest * parts * machine.PART_ELEMENT / device.multiprocessors + machine.PARTS_LAUNCH
    return time


def _divisions(problem: Problem, tile: Tile, device: Device) -> Iterator[Division]:
    """The divisions of what is left when whole tiles have filled the GPU as often as they can."""
    across, down = tile.count(1, problem.n), tile.count(problem.m, 1)
    together = device.multiprocessors * tile.blocks
    rows = across * down // together * together // across
    if not problem.divisible or rows == down:
        return
    size = (down - rows) * across * tile.rows * tile.columns * problem.bytes
    for parts in range(2, min(_PARTS, problem.k // _DEPTH, _PARTS_BYTES // size) + 1):
        depth = -(-problem.k // (parts * _GRAIN)) * _GRAIN
        yield Division(rows * tile.rows, depth, -(-problem.k // depth))


@functools.lru_cache(maxsize=4096)
def divide(problem: Problem, tile: Tile, device: Device) -> Division | None:
    """The division that is predicted fastest for such tiles, or None where whole tiles are."""
    return min((None, *_divisions(problem, tile, device)), key=lambda division: _time(problem, tile, device, division))


@functools.lru_cache(maxsize=4096)
def choose(problem: Problem, device: Device) -> Tile:
    """The candidate that is predicted fastest.

    Raises
    ------
    SemiringError
        For a problem that no launch can number, or elements too large for any candidate.
    """
    problem.validate()

    def time(tile: Tile) -> float:
        return _time(problem, tile, device, divide(problem, tile, device))

    fitting = [t for t in candidates(problem) if t.fits(problem, device)]
    if not fitting:
        raise SemiringError(f"no tile of elements of {problem.bytes} bytes fits the shared memory of sm_{device.arch}; use device='cpu'")
    return min([t for t in fitting if min(t.rows, t.columns) >= problem.side] or fitting, key=time)
