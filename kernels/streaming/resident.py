"""Devices that share a matrix out among their memories, and pass each other row panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from semiring.kernels.engine import Engine
from semiring.kernels.machine import Speed
from semiring.kernels.streaming.block_rows import BlockRows, block_rows
from semiring.kernels.streaming.lane import Carrier, Lane

__all__ = ["Neighbour", "Resident", "resident_bytes", "resident_lanes", "resident_rows"]

_PANELS = 2
"""Row panels of other devices that a device has room for: the one that it works with, and the next."""


class Neighbour(Carrier, Protocol):
    """A `Carrier` that has block rows from other devices too."""

    def place(self, rows: slice) -> Any:
        """The buffer that rows of the matrix are in already, or None."""

    def copy(self, source: Any, target: Any, rows: slice) -> None:
        """Copy the values of rows, which are all that products read of a row panel, from any device's buffer to one. Waits for that."""


class Resident:
    """A `Carrier` of a device that has block rows of its own, from their first use to their last, and gets row panels from other devices.

    Parameters
    ----------
    carrier : Neighbour
        Brings own rows from the matrix the first time, and takes them back the last.
    own : sequence of slice
    homes : dict
        Where block rows are, by their first row: one for all devices.
    """

    def __init__(self, carrier: Neighbour, own: Sequence[slice], homes: dict[int, Any]) -> None:
        self._carrier, self._homes = carrier, homes
        self.active, self.buffer, self.arrays, self.mark = carrier.active, carrier.buffer, carrier.arrays, carrier.mark
        self.save, self.restore = carrier.save, carrier.restore
        with carrier.active():
            self._own = {rows.start: carrier.place(rows) or carrier.buffer(rows.stop - rows.start) for rows in own}
        homes.update(self._own)

    def home(self, rows: slice) -> Any:
        """Where own rows stay; None for those of another device."""
        return self._own.get(rows.start)

    def bring(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Own rows are copied from the matrix the first time, and are there then; those of another device are copied from there."""
        if rows.start not in self._own:
            self._carrier.copy(self._homes[rows.start], buffer, rows)
        elif first:
            self._carrier.bring(rows, buffer, first=True)

    def take_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy own rows to the matrix the last time."""
        if last:
            self._carrier.take_back(rows, buffer, last=True)


def resident_lanes(engines: Sequence[Engine], carriers: Sequence[Neighbour], rows: Sequence[slice]) -> list[Lane]:
    """A lane for each device, which has every so many-th block row; for the memory that takes see `resident_bytes`."""
    homes: dict[int, Any] = {}
    side = max(r.stop - r.start for r in rows)
    shares = [Resident(carrier, rows[number :: len(carriers)], homes) for number, carrier in enumerate(carriers)]
    return [Lane(engine, share, _PANELS, side) for engine, share in zip(engines, shares, strict=True)]


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
    return [row_bytes * (sum(sides[number::devices]) + _PANELS * max(sides)) for number in range(devices)]


def resident_rows(n: int, row_bytes: int, speed: Speed, side: int, devices: int) -> BlockRows:
    """The block rows of devices that share a matrix out.

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
    return BlockRows(n, rows, devices, _PANELS, row_bytes, max(resident_bytes(rows, devices, row_bytes)), 1, speed)
