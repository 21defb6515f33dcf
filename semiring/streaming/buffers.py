"""Buffers in the memory of a device, and copies of block rows between buffers and the stored matrix.

A pipeline knows its device by an engine and a `DeviceMemory`. `HostMemory` serves the CPU, `semiring.streaming.gpus` a GPU.
`ResidentMemory` keeps the device's own block rows, so that a matrix is distributed over several memories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from semiring.streaming.storage import Matrix, RowAccess, memory_of

__all__ = ["Buffer", "Buffers", "DeviceMemory", "HostMemory", "PanelMemory", "PeerMemory", "ResidentMemory"]

Buffer = tuple[tuple[Any, ...], Any]
"""Memory for a block row: an array for each component, and an array or None for the construction matrix."""


class DeviceMemory(Protocol):
    """Buffers on a device, and copies of block rows to and from them."""

    def active(self) -> AbstractContextManager[Any]:
        """Return a context that every thread of the device has to enter."""
        ...

    def buffer(self, rows: int) -> Any:
        """Allocate memory for a block row of `rows` rows."""

    def arrays(self, buffer: Any, rows: slice) -> tuple[tuple[Any, ...], Any]:
        """Return the used part of a buffer: an array for each component, and the construction matrix or None."""
        ...

    def resident(self, rows: slice) -> Any:
        """Return the buffer in which rows stay, or None if any free buffer will do."""

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy rows to a buffer, the `first` time from the caller's matrix, later from `write_back`'s result; wait."""

    def write_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy a buffer to its rows, and wait; resident rows are copied only the `last` time."""

    def save(self, rows: slice, buffer: Any, columns: slice, to: RowAccess) -> None:
        """Copy columns of a buffer to a record, array by array in the order of `arrays`."""

    def restore(self, rows: slice, buffer: Any, columns: slice, source: RowAccess) -> None:
        """Copy columns of a buffer from a record, and wait."""

    def copy(self, source: Any, target: Any, rows: slice) -> None:
        """Copy the values of a row panel between buffers, possibly from another device, and wait; products need no more."""

    def event(self) -> Callable[[], None]:
        """Return a function that waits for the calling thread's work on the device so far."""
        ...


class Buffers:
    """The shared part of a `DeviceMemory` without resident rows."""

    def arrays(self, buffer: Buffer, rows: slice) -> Buffer:
        """Return the used part of a buffer."""
        values, via = buffer
        count = rows.stop - rows.start
        return tuple(v[:count] for v in values), None if via is None else via[:count]

    def all_arrays(self, buffer: Buffer, rows: slice) -> tuple[Any, ...]:
        """Return the arrays in one tuple, the construction matrix last."""
        values, via = self.arrays(buffer, rows)
        return values if via is None else (*values, via)

    def resident(self, rows: slice) -> None:
        """Return None: no rows are resident."""


class HostMemory(Buffers):
    """Buffers of the host, for the CPU engine."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix

    def active(self) -> AbstractContextManager[Any]:
        """Return an empty context."""
        return nullcontext()

    def buffer(self, rows: int) -> Buffer:
        """Allocate memory for a block row of `rows` rows."""
        shape = (rows, self._matrix.values[0].shape[1])
        return tuple(np.empty(shape, m.dtype) for m in self._matrix.values), None if self._matrix.via is None else np.empty(shape, np.int32)

    def load(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        """Copy rows to a buffer."""
        self._matrix.read(rows, *self.arrays(buffer, rows), first=first)

    def write_back(self, rows: slice, buffer: Buffer, *, last: bool) -> None:
        """Copy a buffer to its rows."""
        self._matrix.write(rows, *self.arrays(buffer, rows))

    def save(self, rows: slice, buffer: Buffer, columns: slice, to: RowAccess) -> None:
        """Copy columns of a buffer to a record."""
        for array in self.all_arrays(buffer, rows):
            to.write(rows, array[:, columns])

    def restore(self, rows: slice, buffer: Buffer, columns: slice, source: RowAccess) -> None:
        """Copy columns of a buffer from a record."""
        for array in self.all_arrays(buffer, rows):
            source.read(rows, array[:, columns])

    def event(self) -> Callable[[], None]:
        """Return a function that does nothing: operations on the host are synchronous."""
        return lambda: None

    def view(self, rows: slice) -> Buffer | None:
        """Return the rows themselves if they are in writable memory, else None."""
        arrays: list[Any] = [memory_of(m, rows, writable=True) for m in self._matrix.all]
        if not all(isinstance(a, np.ndarray) and a.flags.writeable and a.strides[1] == a.itemsize for a in arrays):
            return None
        return tuple(arrays[: len(self._matrix.values)]), None if self._matrix.via is None else arrays[-1]

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        """Copy the values of rows from one buffer to another."""
        for there, here in zip(self.arrays(source, rows)[0], self.arrays(target, rows)[0], strict=True):
            np.copyto(here, there)


class PeerMemory(DeviceMemory, Protocol):
    """A `DeviceMemory` that may hold the matrix itself."""

    def view(self, rows: slice) -> Any:
        """Return the rows of the matrix as a buffer if they are in this memory, else None."""


class ResidentMemory:
    """A `DeviceMemory` that keeps own block rows from first to last use, and copies row panels from their owners.

    The underlying `memory` loads own rows once, and writes them back once. All devices share `buffers`, the resident buffers by first row.
    """

    def __init__(self, memory: PeerMemory, own: Sequence[slice], buffers: dict[int, Any]) -> None:
        self._memory, self._buffers = memory, buffers
        self.active, self.buffer, self.arrays, self.event = memory.active, memory.buffer, memory.arrays, memory.event
        self.save, self.restore, self.copy = memory.save, memory.restore, memory.copy
        with memory.active():
            self._own = {rows.start: memory.view(rows) or memory.buffer(rows.stop - rows.start) for rows in own}
        buffers.update(self._own)
        self._loaded = set[int]()

    def resident(self, rows: slice) -> Any:
        """Return the buffer of own rows, or None for another device's."""
        return self._own.get(rows.start)

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy own rows from the matrix, once; copy another device's rows from its buffer."""
        if rows.start not in self._own:
            self._memory.copy(self._buffers[rows.start], buffer, rows)
        elif first and rows.start not in self._loaded:
            self._memory.load(rows, buffer, first=True)
            self._loaded.add(rows.start)

    def write_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy own rows to the matrix, the `last` time only."""
        if last:
            self._memory.write_back(rows, buffer, last=True)


class PanelMemory:
    """A `DeviceMemory` that takes the row panels of other processes from their `slots`, by first row; if `direct`, without a copy."""

    def __init__(self, memory: DeviceMemory, slots: Mapping[int, Buffer], *, direct: bool) -> None:
        self._memory, self._slots, self._direct = memory, slots, direct
        self.active, self.buffer, self.arrays, self.event = memory.active, memory.buffer, memory.arrays, memory.event
        self.save, self.restore, self.copy, self.write_back = memory.save, memory.restore, memory.copy, memory.write_back

    def resident(self, rows: slice) -> Any:
        """Return the buffer of resident rows or of a panel that is used in its slot, else None."""
        arrived = self._slots.get(rows.start) if self._direct else None
        return self._memory.resident(rows) if arrived is None else arrived

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy rows to a buffer, unless a panel is used in its slot."""
        arrived = self._slots.get(rows.start)
        if arrived is None:
            self._memory.load(rows, buffer, first=first)
        elif not self._direct:
            self._memory.copy(arrived, buffer, rows)
