"""The plan of a closure by block rows: the side of a block row, and the memory of each device.

A process closes by block rows for a memory limit, a checkpoint or several GPUs, and for matrices that do not fit. The ranks of a
communicator close every matrix by block rows, and send each other row panels.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from semiring.algebra.laws import is_idempotent
from semiring.arrays.devices import is_gpu
from semiring.arrays.memory import free_on, with_scratch
from semiring.arrays.pieces import CPU_SCRATCH, GPU_SCRATCH
from semiring.common.errors import SemiringError, TooLargeError
from semiring.common.units import format_bytes
from semiring.kernels import machine
from semiring.mpi.panels import nccl_enabled
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem
from semiring.streaming.layout import PANELS, Transport, block_rows, default_side, resident_bytes, resident_rows, streamed_rows

__all__ = ["by_block_rows", "by_block_rows_of_ranks", "bytes_of_results", "cut"]

_SCRATCH_SHARE = 32
"""The divisor of a limit that gives the memory of an engine, if that exceeds the engine's scratch."""

_OURS = 0.95
"""The share of free memory that a closure takes without a limit."""


def by_block_rows(problem: Problem, devices: tuple[str, ...], *, listed: bool) -> Plan | None:
    """Plan a closure by block rows; None if the matrix is closed as a whole."""
    n, wanted, limit = problem.n, problem.needs_block_rows, problem.memory_limit
    if devices[0] == "reference" or n == 0 or len(problem.shape) > 2 or problem.exact:
        return None
    if problem.device == "auto" and limit is not None and limit < 2 * GPU_SCRATCH:
        devices = ("cpu",)  # a GPU's engine would have no room beside its scratch
    # One listed GPU is treated like several: the number of GPUs does not change a bit of the result.
    shared = listed and (n >= machine.SHARED or problem.block is not None)
    if not shared:
        devices = devices[:1]
    gpu, blocked = is_gpu(devices[0]), problem.method in ("auto", "blocked")
    idempotent = is_idempotent(problem.semiring, problem.dtypes)
    alone = len(devices) == 1 and not (shared and blocked and idempotent)
    if alone and not wanted and (problem.there or not (gpu or problem.place == "disk")):
        return None
    room, size = _room(problem, devices), problem.result_bytes
    needed = with_scratch(size) if gpu else size
    if alone and not problem.checkpoint and needed <= room:
        return None
    if not idempotent:
        if not wanted and not listed:
            return None
        raise SemiringError(
            f"closures over {problem.semiring.name} are eliminated, which takes the matrix as a whole, because ⊕ is not idempotent: leave "
            f"out memory_limit and checkpoint, and name one device"
        )
    side, share, room = _divided(problem, devices, room)
    resident = shared and not wanted and share <= room
    if problem.there and not resident:
        if len(devices) == 1:
            return None
        raise TooLargeError(
            f"a share of the matrix and two row panels take {format_bytes(share)} on each GPU, where "
            f"{format_bytes(max(room, 0))} are free; bring it to the host, from where GPUs get it by block rows"
        )
    return cut(Plan(problem, devices, "block rows", "blocked", side, room=room, resident=resident), side)


def by_block_rows_of_ranks(problem: Problem) -> Plan:
    """Plan a closure by block rows, distributed over the devices of several processes."""
    devices = problem.device if isinstance(problem.device, tuple) else (str(problem.device),)
    room = _room(problem, devices, 1 if is_gpu(devices[0]) else problem.beside)
    side, share, room = _divided(problem, devices, room)
    resident = problem.memory_limit is None and share <= room
    return cut(Plan(problem, devices, "block rows", "blocked", side, room=room, resident=resident), side)


def cut(found: Plan, side: int) -> Plan:
    """Cut the matrix of a plan into block rows of a side, as many in memory as fit; raise `TooLargeError` if not even a few fit."""
    problem, speed = found.problem, found.speed
    count = max(1, problem.ranks) * len(found.devices)
    assert speed is not None
    if found.gpu and problem.place == "cpu":
        speed = replace(speed, link=machine.PINNED)
    row_bytes, size = problem.n * problem.entry_bytes, problem.result_bytes // max(1, problem.ranks)  # of the rows of one rank
    notes, by_nccl = found.notes, found.gpu and len(found.devices) == 1 and nccl_enabled()
    rows = None
    try:
        if found.resident:
            rows = resident_rows(problem.n, row_bytes, speed, side, count)
        else:
            slots = PANELS if problem.ranks > 1 and (by_nccl or not found.gpu) else 0
            rows = streamed_rows(problem.n, row_bytes, found.room, speed, side, devices=count, slots=slots)
    except TooLargeError as error:
        if not problem.hypothetical:
            raise
        notes = (*notes, str(error))
    if rows is not None and problem.ranks > 1:
        # From GPU to GPU if each rank has one, else through the shared memory of a host.
        within = machine.NCCL if by_nccl else machine.PINNED / 2 if found.gpu else machine.COPIED
        transport = Transport(problem.ranks, -(-problem.ranks // problem.beside), within, machine.NETWORK)
        rows = replace(rows, panel_bytes=rows.side * problem.n * problem.element_bytes, transport=transport)
    if rows is not None and found.gpu and not problem.there:
        hosts = 1 if rows.transport is None else rows.transport.hosts
        rows = replace(rows, outside=problem.n * row_bytes / hosts / machine.PAGES)
    own = 0 if rows is None else rows.memory
    memory = bytes_of_results(problem, found.devices, size, own or with_scratch(size)) if found.gpu else {"cpu": size + own}
    seconds = None if rows is None else rows.seconds
    return replace(found, block=side, rows=rows, memory=memory, seconds=seconds, notes=notes)


def bytes_of_results(problem: Problem, devices: tuple[str, ...], size: int, own: int) -> dict[str, int]:
    """Return the bytes on each device: results of a `size`, and on GPUs `own` bytes of working memory."""
    if not is_gpu(devices[0]):
        return {devices[0]: size}
    returned = not problem.there and devices != ("cuda",)
    return ({"cpu": size} if returned else {}) | dict.fromkeys(devices, own)


def _room(problem: Problem, devices: tuple[str, ...], sharing: int = 1) -> int:
    """Return the bytes that are free on every device, of memory that some processes share, below the caller's limit."""
    left = [int(_OURS * free) // sharing for d in devices if d != "cuda" and (free := free_on(d)) is not None]
    return min(*left, sys.maxsize, sys.maxsize if problem.memory_limit is None else problem.memory_limit)


def _divided(problem: Problem, devices: tuple[str, ...], room: int) -> tuple[int, int, int]:
    """Return the side of a block row, the bytes of the largest share of a device, and the room beside an engine.

    The side follows from the problem and its options alone, as the side decides the bits of the result.
    """
    if problem.method not in ("auto", "blocked"):
        raise SemiringError(f"method={problem.method!r} takes the matrix as a whole; by block rows there is 'blocked', which 'auto' takes")
    n, size, gpu = problem.n, problem.result_bytes, is_gpu(devices[0])
    if problem.block is not None:
        side = min(int(problem.block), n)
    else:
        limit = None if problem.memory_limit is None else _beside_scratch(problem.memory_limit, size, gpu=gpu)
        side = default_side(n, size // n, limit)
    share = max(resident_bytes(block_rows(n, side), max(1, problem.ranks) * len(devices), size // n))
    return side, share, _beside_scratch(room, size, gpu=gpu)


def _beside_scratch(room: int, size: int, *, gpu: bool) -> int:
    """Subtract the memory of an engine from some bytes, for a matrix of a `size`."""
    return room - max(GPU_SCRATCH if gpu else CPU_SCRATCH, min(room, size) // _SCRATCH_SHARE)
