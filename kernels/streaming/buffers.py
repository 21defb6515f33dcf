"""What carriers have in common whose buffers any rows come to."""

from __future__ import annotations

from typing import Any

__all__ = ["Buffer", "Buffers"]

Buffer = tuple[tuple[Any, ...], Any]
"""Memory for a block row: an array for each component, and one for the construction matrix or None."""


class Buffers:
    """The part of a `Carrier` that is the same wherever the memory of its buffers is."""

    def arrays(self, buffer: Buffer, rows: slice) -> Buffer:
        """The part of a buffer that so many rows take."""
        values, via = buffer
        count = rows.stop - rows.start
        return tuple(v[:count] for v in values), None if via is None else via[:count]

    def all_arrays(self, buffer: Buffer, rows: slice) -> tuple[Any, ...]:
        """The same, the construction matrix after the components."""
        values, via = self.arrays(buffer, rows)
        return values if via is None else (*values, via)

    def home(self, rows: slice) -> None:
        """Rows come to any buffer."""
