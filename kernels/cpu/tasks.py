"""How a product is cut into tasks, and the scratch memory each worker needs.

A task is a tile of C. Every task packs the operands that it reads, so tasks share nothing and need no barrier; the cost is that a
part of B is packed once for each row of tasks, and a part of A once for each column of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.machine import SERIAL

__all__ = ["Tasks", "stripe", "tasks_of"]

SCRATCH = 16 << 20
"""Bytes that all workers together may hold of B, of its transpose, and of A's rows, unless a twentieth of C is more."""


@dataclass(frozen=True)
class Tasks:
    """Tiles (top, bottom, left, right), the number of threads, and the bytes of each buffer of a worker."""

    tiles: tuple[tuple[int, int, int, int], ...]
    threads: int
    scratch: dict[str, int]
    transposed_rows: int


def stripe(m: int, n: int, k: int, rep: Representation) -> int:
    """How many rows of A = C a witness product takes at a time: a copy of them takes A's place."""
    size = sum(s.bytes for s in rep.inner)
    return max(1, max(SCRATCH, m * n * size // 20) // max(1, k * size))


def tasks_of(m: int, n: int, k: int, tile: Tile, rep: Representation, threads: int, *, hold_a: bool, hold_b: bool, witness: bool) -> Tasks:
    """Tasks of one product.

    Parameters
    ----------
    m, n, k : int
    tile, rep
    threads : int
    hold_a, hold_b : bool
        The operand is C itself, so a task packs its whole part of it before it changes C: then tasks are whole rows (columns) of C.
        With a witness that is B alone.
    witness : bool
        A task also holds its part of Bᵀ.
    """
    size = sum(s.bytes for s in rep.inner)
    limit = max(SCRATCH, m * n * size // 20) // threads
    threads = 1 if m * n * k < SERIAL else threads
    down = across = 1
    if threads > 1:
        # Columns first: packing A again costs more than packing B again.
        across = 1 if hold_a else min(threads, max(1, n // (4 * tile.columns)))
        down = 1 if hold_b else -(-threads // across)
        if m * n * k >= 64 * SERIAL:
            down, across = (down * 2, across) if not hold_b else (down, across * 2)
    long = -(-k // 32) * 32 + 32 if witness else 0
    if hold_a:
        down = max(down, math.ceil(m / max(tile.rows, limit // (size * max(1, k)))))
        across = 1
    elif hold_b or witness:
        # Whole columns of B that one worker may hold.
        across = max(across, math.ceil(n / max(tile.columns, limit // (size * max(1, k)))))
    height = max(1, -(-math.ceil(m / down) // tile.rows)) * tile.rows
    width = max(1, -(-math.ceil(n / across) // tile.columns)) * tile.columns
    tiles = tuple((top, min(m, top + height), left, min(n, left + width)) for left in range(0, n, width) for top in range(0, m, height))
    height, width = min(height, -(-m // tile.rows) * tile.rows), min(width, -(-n // tile.columns) * tile.columns)
    depth = min(k, tile.depth)
    line = 64 * len(rep.inner)
    scratch = {
        "packed_a": (height * k if hold_a else tile.block * depth) * size + line,
        "packed_b": width * (k if hold_b else depth) * size + line,
    }
    if witness:
        scratch["transposed"] = width * long * size + line
    return Tasks(tiles, min(threads, len(tiles)), scratch, long)
