"""The device pipeline: load, compute, write back. Block rows are prefetched and written back while the device computes.

Three threads work for a device. The first loads block rows in the requested order, each when a buffer and its dependencies are ready. The
worker computes. The third writes block rows back after their computation. With five buffers (row panel, computed block row, one loading,
one writing back, next row panel), all copies hide behind products.

A pipeline knows its device by an engine and a `DeviceMemory`. `HostMemory` serves the CPU, `semiring.streaming.gpus` a GPU.
"""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.kernels.engine import Engine
from semiring.streaming.folder import Recorded
from semiring.streaming.layout import PANELS
from semiring.streaming.storage import ArrayRows, Matrix, RowAccess, memory_of

__all__ = ["Buffer", "DeviceMemory", "DevicePipeline", "HostMemory", "Loaded", "nothing", "resident_pipelines"]

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

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        """Copy the values of a row panel between buffers, possibly from another device, and wait; products need no more."""
        for there, here in zip(source[0], self.arrays(target, rows)[0], strict=True):
            self._copy(ArrayRows(there), slice(0, len(here)), here, back=False)
        self._wait()

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

    def _new(self, rows: int, n: int, dtype: np.dtype[Any]) -> Array:
        return np.empty((rows, n), dtype)

    def _copy(self, matrix: RowAccess, rows: slice, array: Array, *, back: bool) -> None:
        if back:
            matrix.write(rows, array)
        else:
            matrix.read(rows, array)

    def _wait(self) -> None:
        pass  # `_copy` has waited


Task = Callable[[], None]


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Loaded:
    """A block row on the device, and its buffer."""

    rows: slice
    buffer: Any
    values: tuple[Any, ...]
    via: Any


class DevicePipeline:
    """A device, with threads that load and write back block rows while it computes, in buffers of `side` rows."""

    def __init__(self, engine: Engine, memory: DeviceMemory, buffers: int, side: int) -> None:
        self.engine, self.memory = engine, memory
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with memory.active():
            for _ in range(buffers):
                self._free.put(memory.buffer(side))
        self._reader, self._writer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._loading: deque[Future[Loaded]] = deque()
        self._writing: deque[Future[None]] = deque()

    def prefetch(self, rows: slice, ready: Task = nothing, loaded: Task = nothing, *, first: bool, record: Recorded | None = None) -> None:
        """Begin to load rows, from a record if given, when a buffer is free and `ready` returns; call `loaded` afterwards."""

        def load() -> Loaded:
            resident = self.memory.resident(rows)
            buffer = self._free.get() if resident is None else resident
            if buffer is None:
                self._free.put(None)  # for the next waiting thread
                raise CancelledError
            ready()
            with self.memory.active():
                if record is None or not record.whole:
                    self.memory.load(rows, buffer, first=first)
                if record is not None:
                    with record.reading() as source:
                        self.memory.restore(rows, buffer, record.columns, source)
            loaded()
            return Loaded(rows, buffer, *self.memory.arrays(buffer, rows))

        self._loading.append(self._reader.submit(load))

    def load(self) -> Loaded:
        """Wait for the next prefetched rows, and return them."""
        return self._loading.popleft().result()

    def write_back(
        self,
        row: Loaded,
        done: Task,
        failed: Callable[[BaseException], None],
        *,
        keep: bool = False,
        last: bool = False,
        record: Recorded | None = None,
        publish: Task = nothing,
    ) -> None:
        """Begin to record computed rows, write them back and `publish` them to other processes; then call `done`.

        The buffer is freed, unless `keep`. An error goes to `failed` at once, because every device may wait for these rows.
        """
        computed = self.memory.event()

        def write() -> None:
            try:
                computed()
                with self.memory.active():
                    if record is not None:
                        with record.writing() as target:
                            self.memory.save(row.rows, row.buffer, record.columns, target)
                    self.memory.write_back(row.rows, row.buffer, last=last)
                    publish()
                done()
            except BaseException as error:
                failed(error)
                raise
            finally:
                if not keep:
                    self._free_buffer(row)

        self._submit(write)

    def release(self, row: Loaded, done: Task = nothing) -> None:
        """Free the buffer of rows that are no longer needed, when the device has finished with it; then call `done`."""
        computed = self.memory.event()

        def free() -> None:
            computed()
            self._free_buffer(row)
            done()

        self._submit(free)

    def _free_buffer(self, row: Loaded) -> None:
        if row.buffer is not self.memory.resident(row.rows):
            self._free.put(row.buffer)

    def _submit(self, task: Task) -> None:
        """Queue a task of the writer; raise errors of earlier tasks."""
        while self._writing and self._writing[0].done():
            self._writing.popleft().result()
        self._writing.append(self._writer.submit(task))

    def drain(self) -> None:
        """Wait until all rows are written back."""
        while self._writing:
            self._writing.popleft().result()

    def __enter__(self) -> DevicePipeline:
        return self

    def __exit__(self, *error: object) -> None:
        """End the threads after their current tasks."""
        self._free.put(None)
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._loading.clear()  # errors in here have this pipeline in their frames
        self._writing.clear()


def resident_pipelines(engines: Sequence[Engine], memories: Sequence[DeviceMemory], rows: Sequence[slice]) -> list[DevicePipeline]:
    """Return pipelines of devices over whose memories a matrix is distributed block-cyclically; see `resident_bytes`."""
    everyones: dict[int, Buffer] = {}
    side = max(r.stop - r.start for r in rows)
    for device, memory in enumerate(memories):
        memory.keep(rows[device :: len(memories)], everyones)
    return [DevicePipeline(engine, memory, PANELS, side) for engine, memory in zip(engines, memories, strict=True)]
