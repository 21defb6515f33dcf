"""Buffers in the memory of a device, and the copies of block rows between them and where the matrix is stored.

A `DeviceMemory` is all that a pipeline knows of its device beside the engine: here that of the host, on which the CPU computes, and that of
a device that keeps the block rows it owns, so that a matrix is distributed over the memories of several. That of a GPU is in
`semiring.streaming.gpus`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from semiring.streaming.storage import Matrix, RowAccess, memory_of

__all__ = ["Buffer", "Buffers", "DeviceMemory", "HostMemory", "PanelMemory", "PeerMemory", "ResidentMemory"]

Buffer = tuple[tuple[Any, ...], Any]
"""Memory for a block row: an array for each component, and one for the construction matrix or None."""


class DeviceMemory(Protocol):
    """Buffers on a device, and how block rows are copied to them and back."""

    def active(self) -> AbstractContextManager[Any]:
        """What every thread that works for the device has to enter."""
        ...

    def buffer(self, rows: int) -> Any:
        """New memory for a block row of so many rows."""

    def arrays(self, buffer: Any, rows: slice) -> tuple[tuple[Any, ...], Any]:
        """The part of a buffer that so many rows take: an array for each component, and the construction matrix or None."""
        ...

    def resident(self, rows: slice) -> Any:
        """The buffer in which rows stay, or None where any that is free will do."""

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy rows to a buffer, as the caller gave them the `first` time, else as `write_back` left them; wait until they are there."""

    def write_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy a buffer to its rows, unless nobody asks for them there before the `last` time. Waits until they are there."""

    def save(self, rows: slice, buffer: Any, columns: slice, to: RowAccess) -> None:
        """Copy columns of a buffer to a record: of each array that `arrays` gives, in that order."""

    def restore(self, rows: slice, buffer: Any, columns: slice, source: RowAccess) -> None:
        """Copy columns of a buffer from a record. Waits until they are there."""

    def copy(self, source: Any, target: Any, rows: slice) -> None:
        """Copy the values of rows, which are all that products read of a row panel, from one buffer to another. Waits for that.

        One of them may be on another device.
        """

    def event(self) -> Callable[[], None]:
        """A function that waits for all that the calling thread has asked the device to do so far."""
        ...


class Buffers:
    """The part of a `DeviceMemory` that is the same on every device whose rows come to any buffer."""

    def arrays(self, buffer: Buffer, rows: slice) -> Buffer:
        """The part of a buffer that so many rows take."""
        values, via = buffer
        count = rows.stop - rows.start
        return tuple(v[:count] for v in values), None if via is None else via[:count]

    def all_arrays(self, buffer: Buffer, rows: slice) -> tuple[Any, ...]:
        """The same, the construction matrix after the components."""
        values, via = self.arrays(buffer, rows)
        return values if via is None else (*values, via)

    def resident(self, rows: slice) -> None:
        """No rows stay."""


class HostMemory(Buffers):
    """Buffers of the host, on which the CPU engine works.

    Parameters
    ----------
    matrix : Matrix
    """

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix

    def active(self) -> AbstractContextManager[Any]:
        """Nothing to enter."""
        return nullcontext()

    def buffer(self, rows: int) -> Buffer:
        """New memory for a block row of so many rows."""
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
        """Nothing to wait for: an operation on the host is done when it returns."""
        return lambda: None

    def view(self, rows: slice) -> Buffer | None:
        """The rows themselves, if they are in memory and may be written to."""
        arrays: list[Any] = [memory_of(m, rows, writable=True) for m in self._matrix.all]
        if not all(isinstance(a, np.ndarray) and a.flags.writeable and a.strides[1] == a.itemsize for a in arrays):
            return None
        return tuple(arrays[: len(self._matrix.values)]), None if self._matrix.via is None else arrays[-1]

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        """Copy the values of rows from one buffer to another."""
        for there, here in zip(self.arrays(source, rows)[0], self.arrays(target, rows)[0], strict=True):
            np.copyto(here, there)


class PeerMemory(DeviceMemory, Protocol):
    """A `DeviceMemory` that may have the matrix itself."""

    def view(self, rows: slice) -> Any:
        """A buffer that is the rows of the matrix themselves, where they are in this memory already, or None."""


class ResidentMemory:
    """A `DeviceMemory` that keeps own block rows from their first use to their last, and gets row panels from their owners.

    Parameters
    ----------
    memory : PeerMemory
        Loads own rows from the matrix the first time, and writes them back the last.
    own : sequence of slice
    buffers : dict
        The buffers in which block rows stay, by their first row: one dictionary for all devices.
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
        """The buffer of own rows; None for those of another device."""
        return self._own.get(rows.start)

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Own rows are copied from the matrix once, and are there then; those of another device are copied from there."""
        if rows.start not in self._own:
            self._memory.copy(self._buffers[rows.start], buffer, rows)
        elif first and rows.start not in self._loaded:
            self._memory.load(rows, buffer, first=True)
            self._loaded.add(rows.start)

    def write_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy own rows to the matrix the last time."""
        if last:
            self._memory.write_back(rows, buffer, last=True)


class PanelMemory:
    """A `DeviceMemory` that gets the row panels of other processes from where they arrive.

    Parameters
    ----------
    memory : DeviceMemory
        Of the block rows of this process.
    slots : dict
        Where the row panels of others arrive: a buffer for each, by their first row.
    direct : bool
        Whether the device computes with them there, and copies none.
    """

    def __init__(self, memory: DeviceMemory, slots: Mapping[int, Buffer], *, direct: bool) -> None:
        self._memory, self._slots, self._direct = memory, slots, direct
        self.active, self.buffer, self.arrays, self.event = memory.active, memory.buffer, memory.arrays, memory.event
        self.save, self.restore, self.copy, self.write_back = memory.save, memory.restore, memory.copy, memory.write_back

    def resident(self, rows: slice) -> Any:
        """The buffer of own rows that stay, and of panels of others that are used where they arrive."""
        arrived = self._slots.get(rows.start) if self._direct else None
        return self._memory.resident(rows) if arrived is None else arrived

    def load(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy rows to a buffer, unless they are used where they are."""
        arrived = self._slots.get(rows.start)
        if arrived is None:
            self._memory.load(rows, buffer, first=first)
        elif not self._direct:
            self._memory.copy(arrived, buffer, rows)
