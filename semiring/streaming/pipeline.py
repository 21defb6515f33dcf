"""The device pipeline of a streamed closure: load, compute, write back, with prefetch and dependency tracking.

A device with its engine, and the block rows of a matrix that come to it ahead of their use and go back behind it.

Devices that share a matrix out among their memories, and pass each other row panels.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from semiring.kernels.engine import Engine
from semiring.streaming.journal import Record
from semiring.streaming.layout import PANELS
from semiring.streaming.storage import RowAccess

__all__ = ["Carrier", "Held", "Lane", "Neighbour", "Resident", "resident_lanes"]

Task = Callable[[], None]


class Carrier(Protocol):
    """How block rows get to a device and back."""

    def active(self) -> AbstractContextManager[Any]:
        """What every thread that works for the device has to enter."""
        ...

    def buffer(self, rows: int) -> Any:
        """Memory of the device for a block row of so many rows."""

    def arrays(self, buffer: Any, rows: slice) -> tuple[tuple[Any, ...], Any]:
        """The part of a buffer that so many rows take: an array for each component, and the construction matrix or None."""
        ...

    def home(self, rows: slice) -> Any:
        """The buffer in which rows stay, or None where they come to any that is free."""

    def bring(self, rows: slice, buffer: Any, *, first: bool) -> None:
        """Copy rows to a buffer, as the caller gave them the `first` time, else as `take_back` left them; wait until they are there."""

    def take_back(self, rows: slice, buffer: Any, *, last: bool) -> None:
        """Copy a buffer to its rows, unless nobody asks for them there before the `last` time. Waits until they are there."""

    def save(self, rows: slice, buffer: Any, columns: slice, to: RowAccess) -> None:
        """Copy columns of a buffer to a record: of each array that `arrays` gives, in that order."""

    def restore(self, rows: slice, buffer: Any, columns: slice, source: RowAccess) -> None:
        """Copy columns of a buffer from a record. Waits until they are there."""

    def mark(self) -> Task:
        """A function that waits for all that the calling thread has asked the device to do so far."""
        ...


@dataclass(frozen=True)
class Held:
    """A block row on the device, and its memory."""

    rows: slice
    buffer: Any
    values: tuple[Any, ...]
    via: Any


class Lane:
    """A device, with threads that carry block rows while it computes.

    Parameters
    ----------
    engine : Engine
    carrier : Carrier
    buffers : int
        How many block rows it has room for.
    side : int
        Rows of the largest of them.
    """

    def __init__(self, engine: Engine, carrier: Carrier, buffers: int, side: int) -> None:
        self.engine, self.carrier = engine, carrier
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with carrier.active():
            for _ in range(buffers):
                self._free.put(carrier.buffer(side))
        self._reader, self._writer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._coming: deque[Future[Held]] = deque()
        self._going: deque[Future[None]] = deque()

    def expect(self, rows: slice, turn: AbstractContextManager[Any], *, first: bool, record: Record | None = None) -> None:
        """Begin to bring rows here as soon as there is room and it is their `turn`, which is left when they are here.

        What is recorded of them comes from the record.
        """

        def bring() -> Held:
            home = self.carrier.home(rows)
            buffer = self._free.get() if home is None else home
            if buffer is None:
                self._free.put(None)  # for whoever waits after this one
                raise CancelledError
            with turn, self.carrier.active():
                if record is None or not record.whole:
                    self.carrier.bring(rows, buffer, first=first)
                if record is not None:
                    with record.reading() as source:
                        self.carrier.restore(rows, buffer, record.columns, source)
            return Held(rows, buffer, *self.carrier.arrays(buffer, rows))

        self._coming.append(self._reader.submit(bring))

    def take(self) -> Held:
        """The next of the rows that are expected."""
        return self._coming.popleft().result()

    def give(
        self,
        held: Held,
        done: Task,
        failed: Callable[[BaseException], None],
        *,
        keep: bool = False,
        last: bool = False,
        record: Record | None = None,
    ) -> None:
        """Take rows back when they are computed and recorded, and then tell `done`; the buffer is free then, unless it is kept.

        An error is told to `failed` at once, because all may be waiting for these rows.
        """
        computed = self.carrier.mark()

        def take_back() -> None:
            try:
                computed()
                with self.carrier.active():
                    if record is not None:
                        with record.writing() as target:
                            self.carrier.save(held.rows, held.buffer, record.columns, target)
                    self.carrier.take_back(held.rows, held.buffer, last=last)
                done()
            except BaseException as error:
                failed(error)
                raise
            finally:
                if not keep:
                    self._leave(held)

        self._later(take_back)

    def release(self, held: Held) -> None:
        """The buffer of rows that are no longer needed, when they are neither computed with nor on their way back."""
        computed = self.carrier.mark()

        def free() -> None:
            computed()
            self._leave(held)

        self._later(free)

    def _leave(self, held: Held) -> None:
        if held.buffer is not self.carrier.home(held.rows):
            self._free.put(held.buffer)

    def _later(self, task: Task) -> None:
        while self._going and self._going[0].done():
            self._going.popleft().result()
        self._going.append(self._writer.submit(task))

    def finish(self) -> None:
        """Wait until all rows are back."""
        while self._going:
            self._going.popleft().result()

    def __enter__(self) -> Lane:
        return self

    def __exit__(self, *error: object) -> None:
        """End the threads, when what they began is done."""
        self._free.put(None)
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()


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
