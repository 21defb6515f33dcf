"""How a product is cut into tasks, and the scratch memory each worker needs.

A task is a tile of C. Every task packs the operands that it reads, so tasks share nothing and need no barrier; the cost is that a
part of B is packed once for each row of tasks, and a part of A once for each column of them.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile

__all__ = ["Plan", "plan", "stripe"]

SCRATCH = 16 << 20
"""Bytes that all workers together may hold of B, of its transpose, and of A's rows, unless a twentieth of C is more."""

SERIAL = 160**3
"""Steps below which waking another thread costs more than it saves."""


@dataclass(frozen=True)
class Plan:
    """Tasks (top, bottom, left, right), the number of threads, and the bytes of each buffer of a worker."""

    tasks: tuple[tuple[int, int, int, int], ...]
    threads: int
    workspace: dict[str, int]
    transposed_rows: int


def stripe(m: int, n: int, k: int, rep: Representation, threads: int) -> int:
    """How many rows of A = C a witness product takes at a time.

    Its tasks are whole rows, so every worker holds all of Bᵀ. Where that is too much, a copy of some rows takes A's place, and tasks
    are tiles.
    """
    size = sum(s.bytes for s in rep.inner)
    limit = max(SCRATCH, m * n * size // 20)
    return m if n * k * size * threads <= limit else max(1, limit // (k * size))


@functools.lru_cache(maxsize=512)
def plan(m: int, n: int, k: int, tile: Tile, rep: Representation, threads: int, *, hold_a: bool, hold_b: bool, witness: bool) -> Plan:
    """Tasks of one product.

    Parameters
    ----------
    m, n, k : int
    tile, rep
    threads : int
    hold_a, hold_b : bool
        The operand is C itself, so a task packs its whole part of it before it changes C: then tasks are whole rows (columns) of C.
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
    # Whole columns of B that one worker may hold.
    if hold_b or witness:
        columns = max(tile.columns, limit // (size * max(1, k)))
        across = max(across, math.ceil(n / columns)) if not hold_a or witness else across
    if hold_a:
        down = max(down, math.ceil(m / max(tile.rows, limit // (size * max(1, k)))))
        across = 1
    height = -(-math.ceil(m / down) // tile.rows) * tile.rows
    width = -(-math.ceil(n / across) // tile.columns) * tile.columns
    tasks = [(top, min(m, top + height), left, min(n, left + width)) for left in range(0, n, width) for top in range(0, m, height)]
    height, width = min(height, -(-m // tile.rows) * tile.rows), min(width, -(-n // tile.columns) * tile.columns)
    depth = min(k, tile.depth)
    line = 64 * len(rep.inner)
    workspace = {
        "packed_a": (height * k if hold_a and not witness else tile.block * depth) * size + line,
        "packed_b": width * (k if hold_b else depth) * size + line,
    }
    if witness:
        workspace["transposed"] = width * long * size + line
    return Plan(tuple(tasks), min(threads, len(tasks)), workspace, long)
