"""Block rows of a matrix: their side, memory, predicted time, and distribution over devices.

The side decides the order in which floats are added, and so the bits of a result and the choice among equally good paths. It follows only
from the sizes of matrix and entries and from the caller's memory limit. Measured speeds and free memory predict the time and set the number
of block rows in memory; they change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from semiring.algorithms.block_rows import block_cyclic
from semiring.common.errors import TooLargeError
from semiring.common.html import Shown
from semiring.common.units import counted, duration, format_bytes, step_rate
from semiring.kernels import machine
from semiring.kernels.machine import Speed

__all__ = [
    "ALIGNMENT", "PANELS", "BlockCyclicDistribution", "BlockRows", "Transport", "block_rows", "default_side", "even_side",
    "resident_bytes", "resident_rows", "streamed_rows",
]  # fmt: skip

ALIGNMENT = 64
"""The side of block rows is a multiple of this number, so that blocks begin at aligned addresses."""

_LEAST, _OVERLAPPING = (2, 3), (5, 6)
"""The least number of buffers of a device, and the number with which copies overlap products; of one device, and of each of several.

Buffers hold the row panel, the computed block row, the next row panel while others wait for it, and block rows that are loaded, written
back or computed ahead.
"""

PANELS = 2
"""Buffers of a device for row panels of other devices, if the matrix is distributed: the current panel and the next."""

_DEVICES = 8
"""The number of block rows is a multiple, so that up to this many devices get equal shares."""

_MOST = 1 << 32
"""The most bytes of a block row, so that small devices have room for some."""


@dataclass(frozen=True)
class BlockCyclicDistribution:
    """The block-cyclic distribution of block rows over the devices of several processes, as seen by process `rank`."""

    rank: int
    devices: tuple[int, ...]  # the number of devices of each process

    def owners(self, count: int) -> list[int]:
        """Return the process that owns each of `count` block rows."""
        ranks = [rank for rank, some in enumerate(self.devices) for _ in range(some)]
        return [ranks[i % len(ranks)] for i in range(count)]

    def own(self, count: int) -> list[int]:
        """Return the block rows of this process."""
        return [i for i, owner in enumerate(self.owners(count)) if owner == self.rank]

    def owned(self, count: int) -> list[range]:
        """Return the block rows of each device of this process."""
        first = sum(self.devices[: self.rank])
        return [block_cyclic(first + number, sum(self.devices), count) for number in range(self.devices[self.rank])]


@dataclass(frozen=True)
class Transport:
    """The transport of row panels from the owner's device to those of all ranks."""

    ranks: int
    hosts: int
    within: float  # bytes a second to all devices of a host
    between: float  # bytes a second from one host to all others

    def seconds(self, size: int) -> float:
        """Return the seconds for a panel of `size` bytes."""
        return machine.PANEL + size / self.within + (size / self.between if self.hosts > 1 else 0.0)


@dataclass(frozen=True)
class BlockRows(Shown):
    """The block rows of a matrix, for some devices."""

    n: int  # vertices
    rows: tuple[slice, ...]
    devices: int
    buffers: int  # buffers of a device for block rows, besides resident block rows and slots of row panels
    row_bytes: int  # bytes of one row, of all components and the construction matrix
    memory: int  # bytes of all buffers of a device
    passes: int  # copies of the matrix to the devices and back: one a round, or one in all if each device keeps its share
    speed: Speed
    overlaps: bool = True  # block rows are loaded and written back while another one is computed
    outside: float = 0.0  # seconds before and after the rounds: the host's pages are allotted and pinned, value statistics gathered
    panel_bytes: int = 0  # bytes of a row panel's components, which travel between ranks
    transport: Transport | None = None  # the transport between ranks, if any

    @property
    def side(self) -> int:
        """Return the rows of the largest block row."""
        return int(max(r.stop - r.start for r in self.rows))

    @property
    def share(self) -> int:
        """Return the most rows that one device owns."""
        return max(sum(int(r.stop - r.start) for r in self.rows[number :: self.devices]) for number in range(self.devices))

    @property
    def computing(self) -> float:
        """Return the seconds of products: n² steps for each row, and pivot blocks at half the speed of large products."""
        return (self.n**2 * self.share + self.n * self.side**2) / self.speed.steps

    @property
    def chained(self) -> float:
        """Return the seconds of the critical path: the next row panel of every round, on its way to all ranks.

        A panel takes an update by the panel before (n b² steps), the closure of the pivot block (b³ at half speed), and a product with
        the pivot block (n b²).
        """
        if self.transport is None:
            return 0.0
        steps = 2 * self.n * self.side**2 + 2 * self.side**3
        return len(self.rows) * (steps / self.speed.steps + self.transport.seconds(self.panel_bytes))

    @property
    def received(self) -> int:
        """Return the bytes of row panels that each host receives in all rounds."""
        return len(self.rows) * self.panel_bytes if self.transport is not None else 0

    @property
    def moving(self) -> float:
        """Return the seconds of copies in each direction."""
        return self.passes * self.share * self.row_bytes / self.speed.link

    @property
    def seconds(self) -> float:
        """Return the seconds of the closure: a tenth of the shorter task is not hidden, nor the first and last block row's copies."""
        longer, shorter = max(self.computing, self.moving), min(self.computing, self.moving)
        if self.transport is not None:
            rounds = max(self.computing, self.chained) + self.transport.seconds(self.panel_bytes) + 2 * self.moving
        elif not self.overlaps:
            rounds = self.computing + 2 * self.moving
        else:
            rounds = longer + machine.BESIDE * shorter + 2 * self.side * self.row_bytes / self.speed.link
        return self.outside + rounds

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the lines that Jupyter shows."""
        return f"n = {self.n:,} in {len(self.rows)} block rows", [
            ("block", counted(self.side, "row")),
            ("devices", f"{self.devices}, {format_bytes(self.memory)} each"),
            ("products", f"{duration(self.computing)} at {step_rate(self.speed.steps)}"),
            ("copies", f"{duration(self.moving)} each way at {self.speed.link / 1e9:.3g} GB/s, in {self.passes} passes"),
            *([("host's memory", f"{duration(self.outside)} before and after the rounds")] if self.outside else []),
            *([("row panels", self._panels())] if self.transport is not None else []),
            ("in all", duration(self.seconds)),
        ]

    def _panels(self) -> str:
        transport = self.transport
        assert transport is not None
        way = f"{duration(transport.seconds(self.panel_bytes))} on the way to {transport.ranks} ranks on {transport.hosts} hosts"
        hidden = (
            "hidden behind products" if self.chained <= self.computing else f"not hidden: rounds take {duration(self.chained)} at least"
        )
        size, total = format_bytes(self.panel_bytes), format_bytes(self.received)
        return f"{size} each, {way}, {total} to each host in all; {hidden}"

    def __str__(self) -> str:
        devices = f" on {self.devices} devices" if self.devices > 1 else ""
        return (
            f"n = {self.n:,} in {len(self.rows)} block rows of {self.side:,}{devices}, {format_bytes(self.memory)} each: "
            f"{duration(self.computing)} of products at {step_rate(self.speed.steps)}, {duration(self.moving)} of copies each way at "
            f"{self.speed.link / 1e9:.3g} GB/s, {f'{duration(self.outside)} for pages of the host, ' if self.outside else ''}"
            f"{duration(self.seconds)} in all"
            f"{'' if self.transport is None else f'; row panels of {self._panels()}'}"
        )


def block_rows(n: int, side: int) -> tuple[slice, ...]:
    """Return block rows of `side` rows; the last one may be shorter."""
    return tuple(slice(start, min(n, start + side)) for start in range(0, n, side))


def even_side(n: int, most: int) -> int:
    """Return a side of at most `most` rows that makes all block rows nearly equal, so that no small remainder costs a round."""
    side = -(-n // -(-n // most))
    return _whole(side) if _whole(side) <= most else side


def _whole(side: int) -> int:
    """Round up to a multiple of the alignment."""
    return -(-side // ALIGNMENT) * ALIGNMENT


def _aligned(side: int) -> int:
    """Round down to a multiple of the alignment, if it is not 0."""
    return side // ALIGNMENT * ALIGNMENT or side


def default_side(n: int, row_bytes: int, limit: int | None = None) -> int:
    """Return the side of a matrix's block rows, independent of the machine, the time and the number of devices.

    There are n ≥ 1 vertices, rows have `row_bytes` bytes with the construction matrix, and `limit` bounds the bytes of all block rows on
    a device.

    With side b, block rows in the memories of d devices take about (1 + c/b) n³/d + 2b²n steps, with a minimum at b³ = c n²/(4d). The
    term c/b is the fixed loss of a product; in 2b²n steps, at the start and end, other devices wait for one block row. One interpreter
    launches all (n/b)² updates, which must take less time than n³/d steps. Streamed copies must hide behind the round's products.
    """
    best = (machine.LOST_DEPTH * n * n / (4 * _DEVICES)) ** (1 / 3)
    asked = math.isqrt(n**3 // (_DEVICES * machine.ASKED_STEPS))
    hidden = max(2 * _DEVICES, n * n / (machine.HIDDEN_STEPS * row_bytes))
    count = max(min(n / best, asked, hidden), n * row_bytes / _MOST)
    side = min(n, _whole(-(-n // (_DEVICES * max(1, round(count / _DEVICES))))))
    if limit is None:
        return side
    most = _aligned(limit // (max(_OVERLAPPING) * row_bytes))
    return min(side, even_side(n, min(n, max(ALIGNMENT, most))))


def streamed_rows(n: int, row_bytes: int, room: int, speed: Speed, side: int, *, devices: int = 1, slots: int = 0) -> BlockRows:
    """Return block rows that are loaded and written back, as many at once as fit.

    There are n ≥ 1 vertices, rows have `row_bytes` bytes with the construction matrix, and a device has `room` bytes for buffers. Of
    these, `slots` hold row panels of other processes, which are used in place. Raises `TooLargeError` with the largest side that fits.
    """
    cut = block_rows(n, side)
    size, least, most = cut[0].stop * row_bytes, _LEAST[devices > 1] + slots, _OVERLAPPING[devices > 1]
    held = min(most, max(room, 0) // size)
    if held < least:
        needed, fitting = least * size, min(n, max(room, 0) // (least * row_bytes))
        smaller = f", or pass block={_aligned(fitting)} at most, which may change the rounding of floats" if fitting else ""
        raise TooLargeError(
            f"{least} block rows of {cut[0].stop:,} × {n:,} entries take {format_bytes(needed)} on each device, and "
            f"{format_bytes(max(room, 0))} are left; free memory or raise memory_limit by {format_bytes(needed - room)}{smaller}"
        )
    return BlockRows(n, cut, devices, held - slots, row_bytes, held * size, len(cut), speed, overlaps=held == most)


def resident_bytes(rows: Sequence[slice], devices: int, row_bytes: int) -> list[int]:
    """Return the bytes that each device needs for its share of a matrix and for row panels, without an engine's own buffers.

    A row has `row_bytes` bytes, of all components and the construction matrix. A device that holds the whole matrix only needs the row
    panels in addition.
    """
    sides = [r.stop - r.start for r in rows]
    return [row_bytes * (sum(sides[number::devices]) + PANELS * max(sides)) for number in range(devices)]


def resident_rows(n: int, row_bytes: int, speed: Speed, side: int, devices: int) -> BlockRows:
    """Return the block rows of a matrix that is distributed over the memories of devices."""
    rows = block_rows(n, side)
    return BlockRows(n, rows, devices, PANELS, row_bytes, max(resident_bytes(rows, devices, row_bytes)), 1, speed)
