"""The pipeline of a device: block rows are loaded ahead of their use, and written back behind it, while the device computes.

Three threads work for a device. One loads block rows in the order in which they were asked for, each as soon as there is a buffer and what
it depends on is done; the worker computes; and one writes back, when the computing of a block row is done. Buffers go round: with five of
them (the row panel, the block row that is computed, one that comes, one that goes, the next row panel) all copies hide behind products.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from semiring.kernels.engine import Engine
from semiring.streaming.buffers import DeviceMemory, PeerMemory, ResidentMemory
from semiring.streaming.journal import Recorded
from semiring.streaming.layout import PANELS

__all__ = ["DevicePipeline", "Loaded", "nothing", "resident_pipelines"]

Task = Callable[[], None]


def nothing() -> None:
    """Nothing to wait for, nobody to tell."""


@dataclass(frozen=True)
class Loaded:
    """A block row on the device, and its buffer."""

    rows: slice
    buffer: Any
    values: tuple[Any, ...]
    via: Any


class DevicePipeline:
    """A device, with threads that load and write back block rows while it computes.

    Parameters
    ----------
    engine : Engine
    memory : DeviceMemory
    buffers : int
        How many block rows it has room for.
    side : int
        Rows of the largest of them.
    """

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
        """Begin to load rows as soon as there is a free buffer and `ready` returns, and then tell `loaded`.

        What is recorded of them comes from the record.
        """

        def load() -> Loaded:
            resident = self.memory.resident(rows)
            buffer = self._free.get() if resident is None else resident
            if buffer is None:
                self._free.put(None)  # for whoever waits after this one
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
        """The next of the rows that are prefetched, when they are there."""
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
        """Begin to write rows back when they are computed and recorded, `publish` them to other processes, and then tell `done`.

        The buffer is free then, unless it is kept. An error is told to `failed` at once, because all may be waiting for these rows.
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
        """Free the buffer of rows that are not needed any more, when they are neither computed with nor being written back; tell `done`."""
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
        """Give the writer a task, and raise what its earlier ones have raised."""
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
        """End the threads, when what they began is done."""
        self._free.put(None)
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()


def resident_pipelines(engines: Sequence[Engine], memories: Sequence[PeerMemory], rows: Sequence[slice]) -> list[DevicePipeline]:
    """Of devices in whose memories a matrix is distributed block-cyclically; for what that takes see `resident_bytes`."""
    buffers: dict[int, Any] = {}
    side = max(r.stop - r.start for r in rows)
    shares = [ResidentMemory(memory, rows[device :: len(memories)], buffers) for device, memory in enumerate(memories)]
    return [DevicePipeline(engine, share, PANELS, side) for engine, share in zip(engines, shares, strict=True)]
