"""The closure by block rows carried out: a worker thread for each device, and what they wait for from each other.

What is done, and in which order, `semiring.algorithms.block_rows.steps` says. Here a step becomes an operation of a device's engine or of
its pipeline. All loads are asked for ahead, and wait for room and for what they depend on in the pipeline's own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial

from semiring.algorithms.block_rows import (
    Broadcast,
    ClosePivot,
    Load,
    Receive,
    Release,
    Step,
    Store,
    UpdatePivotColumn,
    UpdatePivotRow,
    UpdateRest,
    block_cyclic,
    steps,
)
from semiring.algorithms.schedules import Pivots
from semiring.common.errors import DivergentPivot
from semiring.kernels.engine import Block
from semiring.streaming.journal import Journal, NoJournal
from semiring.streaming.pipeline import DevicePipeline, Loaded

__all__ = ["Stopped", "run_workers"]

StepsOfDevice = Callable[[], Iterator[Step]]
"""Yields the steps of a device, as often as they are asked for."""


class Stopped(Exception):
    """Another device has failed, or the caller has stopped the work."""


def run_workers(
    pipelines: Sequence[DevicePipeline],
    rows: tuple[slice, ...],
    *,
    reflexive: bool,
    progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
) -> None:
    """A ← A ⊕ A² ⊕ … or I ⊕ A ⊕ A² ⊕ …, for an idempotent ⊕.

    Parameters
    ----------
    pipelines : sequence of DevicePipeline
        The devices, which own block rows in a block-cyclic distribution.
    rows : tuple of slice
        The block rows, as `block_rows` gives them.
    reflexive : bool
    progress : callable, optional
        Called with how many rounds block rows have been through, all of them together, and how many that will be: first at the beginning.
    journal : Journal, optional
        Where this is kept, for another process to go on.

    Raises
    ------
    DivergentPivot
    KeyboardInterrupt
        When what was begun is done; a note says how to go on.

    Notes
    -----
    n³ steps. A device holds two row panels, the block row that it updates, and those that come and go; or its share of the matrix, and
    two row panels of other devices.
    """
    count, devices = len(rows), len(pipelines)
    journal = NoJournal(count) if journal is None else journal
    begun = [i for i, k in enumerate(journal.rounds) if journal.begun(i, k) is not None]
    owned = [block_cyclic(device, devices, count) for device in range(devices)]
    programs: list[StepsOfDevice] = [partial(steps, journal.rounds, own, look_ahead=devices > 1, begun=begun) for own in owned]
    dependencies = Dependencies(programs, journal, progress)
    if journal.finished:
        return

    def work(device: int) -> None:
        try:
            with pipelines[device].memory.active():
                _Worker(pipelines[device], programs[device], rows, dependencies, reflexive=reflexive).run()
        except BaseException as error:
            dependencies.stop(error)
            raise

    workers = ThreadPoolExecutor(devices)
    try:
        wait([workers.submit(work, device) for device in range(devices)])
    except BaseException as error:
        dependencies.stop(error)
    finally:
        workers.shutdown()
    if dependencies.error is not None:
        if not isinstance(dependencies.error, DivergentPivot):
            dependencies.error.add_note(journal.describe())
        raise dependencies.error
    journal.complete(count)


class Dependencies:
    """How many rounds each block row has been through, and who has received it as a row panel; what depends on that waits here.

    Parameters
    ----------
    programs : iterable of StepsOfDevice
        Of all devices.
    journal : Journal
    progress : callable, optional
    """

    def __init__(self, programs: Iterable[StepsOfDevice], journal: Journal, progress: Callable[[int, int], None] | None) -> None:
        self.journal, self._progress = journal, progress
        self._rounds = list(journal.rounds)
        self._receivers = [0] * len(self._rounds)
        for program in programs:
            for step in program():
                if isinstance(step, Receive):
                    self._receivers[step.k] += 1
        self._changed = threading.Condition()
        self.error: BaseException | None = None
        self._report()

    def wait_for(self, i: int, rounds: int) -> None:
        """Until a block row has been through so many rounds."""
        self._until(lambda: self._rounds[i] >= rounds)

    def wait_for_receivers(self, i: int) -> None:
        """Until every device that needs it has the row panel that a block row was."""
        self._until(lambda: self._receivers[i] == 0)

    def advance(self, i: int, rounds: int) -> None:
        """A block row has been through so many rounds."""
        self.journal.advance(i, rounds)
        with self._changed:
            self._rounds[i] = rounds
            self._changed.notify_all()
            least = min(self._rounds)
        if least < len(self._rounds):  # the last row panel is still to be given its own form
            self.journal.complete(least)
        self._report()

    def received(self, i: int) -> None:
        """A device has received a block row as a row panel."""
        with self._changed:
            self._receivers[i] -= 1
            self._changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Let nobody wait any longer, nor begin another block row."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def check(self) -> None:
        """Raise `Stopped` after `stop`."""
        if self.error is not None:
            raise Stopped from self.error

    def _report(self) -> None:
        """Tell how far all is."""
        if self._progress is not None:
            self._progress(sum(self._rounds), len(self._rounds) ** 2)

    def _until(self, true: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or true())
        self.check()


@dataclass(frozen=True)
class _Row:
    """A block row on the device, and what stands for it while the engine works."""

    loaded: Loaded
    block: Block


class _Worker:
    """One device, and its program."""

    def __init__(
        self, pipeline: DevicePipeline, program: StepsOfDevice, rows: tuple[slice, ...], dependencies: Dependencies, *, reflexive: bool
    ) -> None:
        self.pipeline, self.program, self.rows, self.dependencies, self.reflexive = pipeline, program, rows, dependencies, reflexive
        self.engine, self.pivots, self.journal = pipeline.engine, Pivots(pipeline.engine), dependencies.journal
        self.row: _Row
        self.panels: dict[int, _Row] = {}

    def run(self) -> None:
        """Ask for all loads, in their order, and do all steps."""
        for step in self.program():
            self._prefetch(step)
        for step in self.program():
            self._do(step)
        self.pipeline.drain()

    def _prefetch(self, step: Step) -> None:
        match step:
            case Load(i, k):
                ready = partial(self._wait_until_free, i, k)
                self.pipeline.prefetch(self.rows[i], ready, first=k == 0, record=self.journal.begun(i, k))
            case Receive(k):
                ready, loaded = partial(self.dependencies.wait_for, k, k + 1), partial(self.dependencies.received, k)
                self.pipeline.prefetch(self.rows[k], ready, loaded, first=False, record=self.journal.record(k, k))

    def _do(self, step: Step) -> None:
        match step:
            case Load(i, k):
                self.dependencies.check()
                self.row = self._loaded(first=k == 0, begun=self.journal.begun(i, k) is not None)
            case Receive(k):
                self.panels[k] = self._loaded()
            case ClosePivot(k):
                A, K = self.row.block, self.rows[k]
                # A_KK ← A_KK ⊕ A_KK² ⊕ …
                self.pivots.close(A[:, K])
            case UpdatePivotRow(k):
                A, K = self.row.block, self.rows[k]
                # A_KJ ← A_KJ ⊕ A_KK A_KJ
                for J in _beside(K, A.shape[1]):
                    self.engine.multiply_add(A[:, K], A[:, J], A[:, J])
            case UpdatePivotColumn(_, k):
                A, P, K = self.row.block, self.panels[k].block, self.rows[k]
                # A_IK ← A_IK ⊕ A_IK A_KK
                self.engine.multiply_add(A[:, K], P[:, K], A[:, K])
            case UpdateRest(_, k):
                A, P, K = self.row.block, self.panels[k].block, self.rows[k]
                # A_IJ ← A_IJ ⊕ A_IK A_KJ
                for J in _beside(K, A.shape[1]):
                    self.engine.multiply_add(A[:, K], P[:, J], A[:, J])
            case Broadcast(k):
                self.pipeline.memory.event()()  # what `verify` fetches would wait too, and meanwhile keep all threads from the GPU
                self.engine.verify()
                self.panels[k] = self.row
                self._write_back(self.row, k, k, keep=True)
            case Store(i, k) if i == k:
                self._wait_until_free(k, k + 1)
                self._write_back(self.panels.pop(k), k, k, last=True)
            case Store(i, k):
                self._write_back(self.row, i, k, last=k == len(self.rows) - 1)
            case Release(k):
                self.pipeline.release(self.panels.pop(k).loaded)

    def _wait_until_free(self, i: int, k: int) -> None:
        """Until block row i is through the rounds before k, and every device has received it if it was the row panel of one of them."""
        self.dependencies.wait_for(i, k)
        if i < k:
            self.dependencies.wait_for_receivers(i)

    def _loaded(self, *, first: bool = False, begun: bool = False) -> _Row:
        """The next block row that comes: for the `first` time, or with a round `begun`, or as the engine left it."""
        loaded = self.pipeline.load()
        # What was interrupted has elements of both forms; loading changes nothing that has the inner one.
        block = (self.engine.load if first or begun else self.engine.blank)(loaded.values, loaded.via)
        block = replace(block, row=loaded.rows.start)
        if first and self.reflexive:
            # A_II ← I ⊕ A_II
            self.engine.add_identity(block[:, loaded.rows])
        return _Row(loaded, block)

    def _write_back(self, row: _Row, i: int, k: int, *, keep: bool = False, last: bool = False) -> None:
        """Block row i is through round k; the `last` time it is given its own form."""
        if last:
            self.engine.store(row.block, row.loaded.values)
        record = None if last and i == k else self.journal.record(i, k)
        done = partial(self.dependencies.advance, i, k + 1)
        self.pipeline.write_back(row.loaded, done, self.dependencies.stop, keep=keep, last=last, record=record)


def _beside(K: slice, n: int) -> list[slice]:
    """The columns before and after a range."""
    return [J for J in (slice(0, K.start), slice(K.stop, n)) if J.start < J.stop]
