"""How a matrix is cut into block rows: their side, the memory that they take, and the time that is predicted.

The side of the blocks decides in which order floats are added, and so the bits of a result and which of several best paths is found. It
follows from the size of the matrix and of its entries, and from the memory limit that a caller names. What is measured in the moment,
speeds and free memory, says what it will take and how many block rows come and go at once, and changes no bit.
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
    "ALIGNMENT",
    "PANELS",
    "BlockCyclicDistribution",
    "BlockRows",
    "Transport",
    "block_rows",
    "default_side",
    "even_side",
    "resident_bytes",
    "resident_rows",
    "streamed_rows",
]  # fmt: skip

ALIGNMENT = 64
"""Rows that the sides of block rows are multiples of, so that blocks begin at aligned addresses."""

_LEAST, _OVERLAPPING = (2, 3), (5, 6)
"""Buffers that a device needs, and those with which copies go on beside products: of one device, and of each of several.

They are for the row panel, the block row that is computed, the next row panel where others wait for it, and block rows that come, go and
are made ahead.
"""

PANELS = 2
"""Row panels of other devices that a device has buffers for where a matrix is distributed: the one that it works with, and the next."""

_DEVICES = 8
"""Devices over which the block rows can be distributed evenly, whatever their number is."""

_MOST = 1 << 32
"""Bytes of a block row at most, so that small devices have room for some."""


@dataclass(frozen=True)
class BlockCyclicDistribution:
    """The block-cyclic distribution of block rows over the devices of several processes, as one of them needs to know it.

    Attributes
    ----------
    rank : int
        The number of this process.
    devices : tuple of int
        How many each of them has.
    """

    rank: int
    devices: tuple[int, ...]

    def owners(self, count: int) -> list[int]:
        """The process that owns each of so many block rows."""
        ranks = [rank for rank, some in enumerate(self.devices) for _ in range(some)]
        return [ranks[i % len(ranks)] for i in range(count)]

    def own(self, count: int) -> list[int]:
        """The block rows of this process."""
        return [i for i, owner in enumerate(self.owners(count)) if owner == self.rank]

    def owned(self, count: int) -> list[range]:
        """The block rows of each of its devices."""
        first = sum(self.devices[: self.rank])
        return [block_cyclic(first + number, sum(self.devices), count) for number in range(self.devices[self.rank])]


@dataclass(frozen=True)
class Transport:
    """How row panels come from the device that makes one to those of all ranks.

    Attributes
    ----------
    ranks, hosts : int
    within, between : float
        Bytes a second on the way to all devices of a host, and from one host to all others.
    """

    ranks: int
    hosts: int
    within: float
    between: float

    def seconds(self, size: int) -> float:
        """Of a panel of so many bytes."""
        return machine.PANEL + size / self.within + (size / self.between if self.hosts > 1 else 0.0)


@dataclass(frozen=True)
class BlockRows(Shown):
    """The block rows that a matrix is cut into, for some devices.

    Attributes
    ----------
    n : int
        Vertices.
    rows : tuple of slice
        The block rows.
    devices : int
    buffers : int
        Block rows for which each device has room, beside those that stay there and the row panels that arrive where it uses them.
    row_bytes : int
        Bytes of one row, of all components and the construction matrix.
    memory : int
        Bytes of all that a device has room for.
    passes : int
        How often the matrix goes to the devices and back: once a round, or once if each keeps its share.
    speed : Speed
    overlaps : bool
        Whether there is room for block rows that come and go while another one is computed.
    panel_bytes : int
        Bytes of a row panel, of which only the components go from rank to rank.
    transport : Transport or None
        How they do, where there are ranks.
    """

    n: int
    rows: tuple[slice, ...]
    devices: int
    buffers: int
    row_bytes: int
    memory: int
    passes: int
    speed: Speed
    overlaps: bool = True
    panel_bytes: int = 0
    transport: Transport | None = None

    @property
    def side(self) -> int:
        """Rows of the largest block row."""
        return int(max(r.stop - r.start for r in self.rows))

    @property
    def share(self) -> int:
        """Rows of the device that owns the most of them, in a block-cyclic distribution."""
        return max(sum(int(r.stop - r.start) for r in self.rows[number :: self.devices]) for number in range(self.devices))

    @property
    def computing(self) -> float:
        """Seconds of products: n² steps for each row, and pivot blocks, which do half as many a second as large products."""
        return (self.n**2 * self.share + self.n * self.side**2) / self.speed.steps

    @property
    def chained(self) -> float:
        """Seconds of what can only be done one round after the other: the next row panel, which then comes to all ranks.

        It is updated by the panel before, its pivot block is closed, and the rest of it multiplied by that: n b² steps, b³ at half the
        speed of products, and n b² steps.
        """
        if self.transport is None:
            return 0.0
        steps = 2 * self.n * self.side**2 + 2 * self.side**3
        return len(self.rows) * (steps / self.speed.steps + self.transport.seconds(self.panel_bytes))

    @property
    def received(self) -> int:
        """Bytes of row panels that come to each host in all rounds."""
        return len(self.rows) * self.panel_bytes if self.transport is not None else 0

    @property
    def moving(self) -> float:
        """Seconds of copies in each direction."""
        return self.passes * self.share * self.row_bytes / self.speed.link

    @property
    def seconds(self) -> float:
        """Of the whole: the shorter of the two hides behind the other but for a tenth, the first block row's and the last one's copy."""
        if self.transport is not None:
            return max(self.computing, self.chained) + self.transport.seconds(self.panel_bytes) + 2 * self.moving
        if not self.overlaps:
            return self.computing + 2 * self.moving
        longer, shorter = max(self.computing, self.moving), min(self.computing, self.moving)
        return longer + machine.BESIDE * shorter + 2 * self.side * self.row_bytes / self.speed.link

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"n = {self.n:,} in {len(self.rows)} block rows", [
            ("block", counted(self.side, "row")),
            ("devices", f"{self.devices}, {format_bytes(self.memory)} each"),
            ("products", f"{duration(self.computing)} at {step_rate(self.speed.steps)}"),
            ("copies", f"{duration(self.moving)} each way at {self.speed.link / 1e9:.3g} GB/s, in {self.passes} passes"),
            *([("row panels", self._panels())] if self.transport is not None else []),
            ("in all", duration(self.seconds)),
        ]

    def _panels(self) -> str:
        """What row panels take, in words."""
        transport = self.transport
        assert transport is not None
        way = f"{duration(transport.seconds(self.panel_bytes))} on the way to {transport.ranks} ranks on {transport.hosts} hosts"
        hidden = (
            "hidden behind products" if self.chained <= self.computing else f"not hidden: rounds take {duration(self.chained)} at least"
        )
        return f"{format_bytes(self.panel_bytes)} each, {way}, {format_bytes(self.received)} to each host in all; {hidden}"

    def __str__(self) -> str:
        devices = f" on {self.devices} devices" if self.devices > 1 else ""
        return (
            f"n = {self.n:,} in {len(self.rows)} block rows of {self.side:,}{devices}, {format_bytes(self.memory)} each: "
            f"{duration(self.computing)} of products at {step_rate(self.speed.steps)}, {duration(self.moving)} of copies each way at "
            f"{self.speed.link / 1e9:.3g} GB/s, {duration(self.seconds)} in all"
            f"{'' if self.transport is None else f'; row panels of {self._panels()}'}"
        )


def block_rows(n: int, side: int) -> tuple[slice, ...]:
    """Block rows of `side` rows; the last one is what is left."""
    return tuple(slice(start, min(n, start + side)) for start in range(0, n, side))


def even_side(n: int, most: int) -> int:
    """At most `most` rows a block row, so that all are nearly as large: no mere rest costs a whole round."""
    side = -(-n // -(-n // most))
    return _whole(side) if _whole(side) <= most else side


def _whole(side: int) -> int:
    """The next multiple of the alignment."""
    return -(-side // ALIGNMENT) * ALIGNMENT


def _aligned(side: int) -> int:
    """The multiple of the alignment before it, if there is one."""
    return side // ALIGNMENT * ALIGNMENT or side


def default_side(n: int, row_bytes: int, limit: int | None = None) -> int:
    """The side of the block rows of a matrix: the same wherever, whenever and by however many devices it is closed.

    Parameters
    ----------
    n : int
        Vertices, at least one.
    row_bytes : int
        Bytes of one row, of all components and the construction matrix.
    limit : int, optional
        Bytes that the caller allows all block rows on a device.

    Notes
    -----
    Of side b, block rows in the memories of d devices take the time of about (1 + c/b) n³/d + 2b²n steps: a product loses some time
    whatever its depth, and in the beginning and in the end the others wait while one device computes a block row. This is least for
    b³ = c n²/(4d). One interpreter asks for all (n/b)² updates of block rows, which must not take longer than the n³/d steps. Where they
    come and go, the copies of a round must hide behind its products.
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
    """Block rows that come and go: as many of them at once as there is room for.

    Parameters
    ----------
    n : int
        Vertices, at least one.
    row_bytes : int
        Bytes of one row, of all components and the construction matrix.
    room : int
        Bytes that the buffers of one device may have.
    speed : Speed
    side : int
        Rows of a block row.
    devices : int
    slots : int
        Of the same size, in which the row panels of other processes arrive, and are used.

    Raises
    ------
    TooLargeError
        Naming how much more would do, and the largest side that fits.
    """
    cut = block_rows(n, side)
    size, least, most = cut[0].stop * row_bytes, _LEAST[devices > 1] + slots, _OVERLAPPING[devices > 1]
    held = min(most, max(room, 0) // size)
    if held < least:
        needed, fitting = least * size, min(n, max(room, 0) // (least * row_bytes))
        smaller = f", or pass block={_aligned(fitting)} at most, which may round floats otherwise" if fitting else ""
        raise TooLargeError(
            f"{least} block rows of {cut[0].stop:,} × {n:,} entries take {format_bytes(needed)} on each device, and "
            f"{format_bytes(max(room, 0))} are left; free memory or raise memory_limit by {format_bytes(needed - room)}{smaller}"
        )
    return BlockRows(n, cut, devices, held - slots, row_bytes, held * size, len(cut), speed, overlaps=held == most)


def resident_bytes(rows: Sequence[slice], devices: int, row_bytes: int) -> list[int]:
    """Bytes that each device needs for its share of a matrix and for row panels, beside what an engine takes for copies.

    Parameters
    ----------
    rows : sequence of slice
        The block rows.
    devices : int
    row_bytes : int
        Bytes of one row, of all components and the construction matrix. A device that has the whole matrix needs only the row panels more.
    """
    sides = [r.stop - r.start for r in rows]
    return [row_bytes * (sum(sides[number::devices]) + PANELS * max(sides)) for number in range(devices)]


def resident_rows(n: int, row_bytes: int, speed: Speed, side: int, devices: int) -> BlockRows:
    """The block rows of a matrix that is distributed over the memories of devices.

    Parameters
    ----------
    n : int
        Vertices, at least one.
    row_bytes : int
    speed : Speed
    side : int
        Rows of a block row.
    devices : int
    """
    rows = block_rows(n, side)
    return BlockRows(n, rows, devices, PANELS, row_bytes, max(resident_bytes(rows, devices, row_bytes)), 1, speed)
