"""Whether a matrix is closed by block rows: because it does not fit, because several devices share it, or for the sake of a checkpoint."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError, TooLargeError
from semiring.algebra.laws import is_idempotent
from semiring.algebra.namespace import on_gpu
from semiring.graphs.by_rows import GivenRows
from semiring.kernels.devices import is_gpu
from semiring.kernels.placement import place, several
from semiring.kernels.room import format_bytes, free_on, with_scratch
from semiring.kernels.streaming.checkpoint import folder_of
from semiring.kernels.streaming.plan import Plan, Speed, block_rows, choose_plan, default_side
from semiring.kernels.streaming.resident import resident_bytes, resident_plan
from semiring.options import Options

__all__ = ["Large", "route", "side_of", "size_of"]

_CPU_SCRATCH, _GPU_SCRATCH, _SCRATCH_SHARE = 1 << 24, 1 << 26, 32
"""Bytes of an engine's own memory, for copies of operands and packed panels, and the share of a limit that this is where it is more."""

_WORTH_SHARING = 1 << 14
"""Vertices from which on several GPUs are faster than one."""

_OURS = 0.95
"""The share of free memory that is taken where there is no limit."""


@dataclass(frozen=True)
class Large:
    """How a matrix is closed by block rows.

    Attributes
    ----------
    devices : tuple of str
        "cpu", or GPUs.
    room : int
        Bytes that block rows may have on each of them.
    side : int
        Rows of a block row: the caller's `block`, or what `default_side` gives.
    resident : bool
        Whether each device keeps its share in its memory.
    """

    devices: tuple[str, ...]
    room: int
    side: int
    resident: bool

    @property
    def gpu(self) -> bool:
        """Whether the devices are GPUs."""
        return is_gpu(self.devices[0])

    def plan(self, n: int, row_bytes: int, speed: Speed, begun: int | None = None) -> Plan:
        """The plan for a matrix of n vertices; by block rows of the side with which a checkpoint has `begun`, if it has.

        Raises
        ------
        TooLargeError
            Where not even a few block rows fit the limit.
        """
        side, devices = self.side if begun is None else begun, len(self.devices)
        if self.resident:
            return resident_plan(n, row_bytes, speed, side, devices)
        return choose_plan(n, row_bytes, self.room, speed, side, devices=devices)


def route(given: GivenRows, semiring: Semiring, options: Options, *, paths: bool) -> Large | None:
    """Whether a matrix is closed by block rows, and how; None where it is closed as a whole.

    Raises
    ------
    SemiringError
        Where the caller wants what only block rows can give, and they cannot.
    """
    shared = several(options.device)
    limit = None if options.memory_limit is None else size_of(options.memory_limit)
    if options.checkpoint is not None:
        folder_of(options.checkpoint)
    wanted = options.needs_block_rows
    there = on_gpu(given.arrays[0])
    if there and wanted:
        raise SemiringError("memory_limit and checkpoint are for a matrix in the memory of the host or on disk; this one lies on a GPU")
    devices = shared or (place(options.device, given.arrays, float(given.n) ** 3, 0),)
    if devices[0] == "reference" and wanted:
        raise SemiringError("the reference engine takes a matrix as a whole: leave out memory_limit and checkpoint, or use device='cpu'")
    if devices[0] == "reference" or given.n == 0:
        return None
    if options.device == "auto" and limit is not None and limit < 2 * _GPU_SCRATCH:
        devices = ("cpu",)  # a GPU's engine would have no room beside its scratch
    # One GPU that is named by a list goes the way of several: their number does not show in the bits of the result.
    listed = shared is not None and (given.n >= _WORTH_SHARING or options.block is not None)
    if not listed:
        devices = devices[:1]
    gpu, blocked = is_gpu(devices[0]), options.method in ("auto", "blocked")
    alone = len(devices) == 1 and not (listed and blocked and is_idempotent(semiring, given.dtypes))
    if alone and not wanted and (there or not (gpu or given.on_disk)):
        return None
    row_bytes = given.row_bytes(paths=paths)
    left = [int(_OURS * free) for d in devices if (free := free_on(d)) is not None]
    room = min(*left, sys.maxsize, sys.maxsize if limit is None else limit)
    needed = with_scratch(given.n * row_bytes) if gpu else given.n * row_bytes
    if alone and options.checkpoint is None and needed <= room:
        return None
    if not is_idempotent(semiring, given.dtypes):
        if not wanted and shared is None:
            return None
        raise SemiringError(
            f"closures over {semiring.name} are eliminated, which takes the matrix as a whole, because ⊕ is not idempotent: leave out "
            f"memory_limit and checkpoint, and name one device"
        )
    if not blocked:
        raise SemiringError(f"method={options.method!r} takes the matrix as a whole; by block rows there is 'blocked', which 'auto' takes")
    room = _beside_scratch(room, given.n * row_bytes, gpu=gpu)
    side = side_of(options, given.n, row_bytes, gpu=gpu)
    share = max(resident_bytes(block_rows(given.n, side), len(devices), row_bytes))
    resident = listed and not wanted and share <= room
    if there and not resident:
        if len(devices) == 1:
            return None
        raise TooLargeError(
            f"a share of the matrix and two row panels take {format_bytes(share)} on each GPU, where "
            f"{format_bytes(max(room, 0))} are free; bring it to the host, from where GPUs get it by block rows"
        )
    return Large(devices, room, side, resident)


def side_of(options: Options, n: int, row_bytes: int, *, gpu: bool) -> int:
    """Rows of a block row, which decide the bits of the result: from the problem and what the caller says, and nothing else."""
    if options.block is not None:
        return min(int(options.block), n)
    limit = None if options.memory_limit is None else _beside_scratch(size_of(options.memory_limit), n * row_bytes, gpu=gpu)
    return default_side(n, row_bytes, limit)


def _beside_scratch(room: int, size: int, *, gpu: bool) -> int:
    """What an engine's own memory leaves of some bytes, for a matrix of a `size`."""
    return room - max(_GPU_SCRATCH if gpu else _CPU_SCRATCH, min(room, size) // _SCRATCH_SHARE)


def size_of(limit: int | str) -> int:
    """Bytes of a memory limit: a number of them, or a string such as "8GiB", "512 MiB" or "2.5 GB".

    Raises
    ------
    SemiringError
    """
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit > 0:
        return int(limit)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", limit, re.IGNORECASE) if isinstance(limit, str) else None
    if found is None or not float(found[1]):
        raise SemiringError(f"memory_limit is {limit!r}; use a number of bytes, or a string such as '8GiB' or '512MiB'")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " "))
