"""Devices that share a matrix out among their memories, and pass each other row panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from semiring.kernels.engine import Engine
from semiring.kernels.streaming.block_rows import PANELS
from semiring.kernels.streaming.lane import Carrier, Lane

__all__ = ["Neighbour", "Resident", "resident_lanes"]


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
    return [Lane(engine, share, PANELS, side) for engine, share in zip(engines, shares, strict=True)]
