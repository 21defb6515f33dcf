"""The device pipeline: load, compute, write back. Block rows are prefetched and written back while the device computes.

Three threads work for a device. The first loads block rows in the requested order, each when a buffer and its dependencies are ready. The
worker computes. The third writes block rows back after their computation. With five buffers (row panel, computed block row, one loading,
one writing back, next row panel), all copies hide behind products.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from semiring.kernels.engine import Engine
from semiring.streaming.buffers import Buffer, DeviceMemory
from semiring.streaming.folder import Recorded
from semiring.streaming.layout import PANELS

__all__ = ["DevicePipeline", "Loaded", "nothing", "resident_pipelines"]

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


def resident_pipelines(engines: Sequence[Engine], memories: Sequence[DeviceMemory], rows: Sequence[slice]) -> list[DevicePipeline]:
    """Return pipelines of devices over whose memories a matrix is distributed block-cyclically; see `resident_bytes`."""
    everyones: dict[int, Buffer] = {}
    side = max(r.stop - r.start for r in rows)
    for device, memory in enumerate(memories):
        memory.keep(rows[device :: len(memories)], everyones)
    return [DevicePipeline(engine, memory, PANELS, side) for engine, memory in zip(engines, memories, strict=True)]
