"""Buffers in the memory of a device, and copies of block rows between buffers and the stored matrix.

A pipeline knows its device by an engine and a `DeviceMemory`. `HostMemory` serves the CPU, `semiring.streaming.gpus` a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from semiring.streaming.storage import Matrix, RowAccess, memory_of

__all__ = ["Buffer", "DeviceMemory", "HostMemory"]

Array = np.ndarray[Any, Any]
Buffer = tuple[tuple[Any, ...], Any]
"""Memory for a block row: an array for each component, and an array or None for the construction matrix."""


class DeviceMemory(ABC):
    """Buffers on a device, and copies of block rows to and from them.

    A device may `keep` its own block rows, so that a matrix is distributed over several memories, and take the row panels of other
    processes from slots.
    """

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._own: dict[int, Buffer] = {}  # the resident block rows of this device, by first row
        self._everyones: dict[int, Buffer] = {}  # and those of all devices
        self._slots: Mapping[int, Buffer] = {}  # the row panels of other processes
        self._direct = False
        self._loaded = set[int]()

    @abstractmethod
    def active(self) -> AbstractContextManager[Any]:
        """Return a context that every thread of the device has to enter."""

    @abstractmethod
    def event(self) -> Callable[[], None]:
        """Return a function that waits for the calling thread's work on the device so far."""

    @abstractmethod
    def view(self, rows: slice) -> Buffer | None:
        """Return the rows of the matrix as a buffer if they are in this memory, else None."""

    @abstractmethod
    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        """Copy the values of a row panel between buffers, possibly from another device, and wait; products need no more."""

    @abstractmethod
    def _new(self, rows: int, n: int, dtype: np.dtype[Any]) -> Any:
        """Allocate a matrix on the device."""

    @abstractmethod
    def _copy(self, matrix: RowAccess, rows: slice, array: Any, *, back: bool) -> None:
        """Begin to copy stored rows to an array of the device, or `back`."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait for the copies that the calling thread has begun."""

    def keep(self, own: Sequence[slice], everyones: dict[int, Buffer]) -> None:
        """Keep own block rows from first to last use; all devices share `everyones`, the resident buffers by first row."""
        with self.active():
            self._own = {rows.start: self.view(rows) or self.buffer(rows.stop - rows.start) for rows in own}
        everyones.update(self._own)
        self._everyones = everyones

    def take_panels(self, slots: Mapping[int, Buffer], *, direct: bool) -> None:
        """Take the row panels of other processes from their `slots`, by first row; if `direct`, without a copy."""
        self._slots, self._direct = slots, direct

    def buffer(self, rows: int) -> Buffer:
        """Allocate memory for a block row of `rows` rows."""
        return self._grouped([self._new(rows, m.shape[1], m.dtype) for m in self._matrix.all])

    def _grouped(self, arrays: Sequence[Any]) -> Buffer:
        count = len(self._matrix.values)
        return tuple(arrays[:count]), None if self._matrix.via is None else arrays[count]

    def arrays(self, buffer: Buffer, rows: slice) -> Buffer:
        """Return the used part of a buffer: an array for each component, and the construction matrix or None."""
        values, via = buffer
        count = rows.stop - rows.start
        return tuple(v[:count] for v in values), None if via is None else via[:count]

    def resident(self, rows: slice) -> Buffer | None:
        """Return the buffer in which rows stay, or the slot in which a panel is used; None if any free buffer will do."""
        if self._direct and rows.start in self._slots:
            return self._slots[rows.start]
        return self._own.get(rows.start)

    def load(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        """Copy rows to a buffer, the `first` time from the caller's matrix, later from `write_back`'s result; wait.

        Resident rows are copied once, and rows of other devices and processes from their buffers.
        """
        start = rows.start
        if start in self._slots:
            if not self._direct:
                self.copy(self._slots[start], buffer, rows)
        elif start in self._everyones and start not in self._own:
            self.copy(self._everyones[start], buffer, rows)
        elif start not in self._own or (first and start not in self._loaded):
            self._load(rows, buffer, first=first)
            self._loaded.add(start)

    def _load(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        values, via = self.arrays(buffer, rows)
        for matrix, target in zip(self._matrix.given if first else self._matrix.values, values, strict=True):
            self._copy(matrix, rows, target, back=False)
        if self._matrix.via is not None:
            if first:
                via.fill(-1)
            else:
                self._copy(self._matrix.via, rows, via, back=False)
        self._wait()

    def write_back(self, rows: slice, buffer: Buffer, *, last: bool) -> None:
        """Copy a buffer to its rows, and wait; resident rows are copied only the `last` time."""
        if rows.start in self._own and not last:
            return
        values, via = self.arrays(buffer, rows)
        # The construction matrix comes first: if interrupted, old values improve again, but new values would not.
        if self._matrix.via is not None:
            self._copy(self._matrix.via, rows, via, back=True)
        for matrix, source in zip(self._matrix.values, values, strict=True):
            self._copy(matrix, rows, source, back=True)
        self._wait()

    def save(self, rows: slice, buffer: Buffer, columns: slice, to: Iterable[RowAccess]) -> None:
        """Copy columns of a buffer to a record, and wait: components in order, then the construction matrix."""
        self._copy_record(rows, buffer, columns, to, back=True)

    def restore(self, rows: slice, buffer: Buffer, columns: slice, source: Iterable[RowAccess]) -> None:
        """Copy columns of a buffer from a record, and wait."""
        self._copy_record(rows, buffer, columns, source, back=False)

    def _copy_record(self, rows: slice, buffer: Buffer, columns: slice, record: Iterable[RowAccess], *, back: bool) -> None:
        values, via = self.arrays(buffer, rows)
        for array, place in zip(values if via is None else (*values, via), record, strict=False):
            self._copy(place, rows, array[:, columns], back=back)
        self._wait()


class HostMemory(DeviceMemory):
    """Buffers of the host, for the CPU engine."""

    def active(self) -> AbstractContextManager[Any]:
        """Return an empty context."""
        return nullcontext()

    def event(self) -> Callable[[], None]:
        """Return a function that does nothing: operations on the host are synchronous."""
        return lambda: None

    def view(self, rows: slice) -> Buffer | None:
        """Return the rows themselves if they are in writable memory, else None."""
        arrays: list[Any] = [memory_of(m, rows, writable=True) for m in self._matrix.all]
        if not all(isinstance(a, np.ndarray) and a.flags.writeable and a.strides[1] == a.itemsize for a in arrays):
            return None
        return self._grouped(arrays)

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        """Copy the values of rows from one buffer to another."""
        for there, here in zip(self.arrays(source, rows)[0], self.arrays(target, rows)[0], strict=True):
            np.copyto(here, there)

    def _new(self, rows: int, n: int, dtype: np.dtype[Any]) -> Array:
        return np.empty((rows, n), dtype)

    def _copy(self, matrix: RowAccess, rows: slice, array: Array, *, back: bool) -> None:
        if back:
            matrix.write(rows, array)
        else:
            matrix.read(rows, array)

    def _wait(self) -> None:
        pass  # `_copy` has waited
