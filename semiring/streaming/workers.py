"""The closure by block rows carried out: a worker thread for each device.

What is done, and in which order, `semiring.algorithms.block_rows.steps` says. Here a step becomes an operation of a device's engine or of
its pipeline. All loads are asked for ahead, and wait for room and for what they depend on in the pipeline's own thread.

Where several ranks have devices, each has the threads of its own, and what they wait for from each other and from other ranks is in
`semiring.streaming.dependencies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    StoreBlockRow,
    UpdatePivotColumn,
    UpdatePivotRow,
    UpdateRest,
    steps,
)
from semiring.algorithms.schedules import Pivots
from semiring.common.errors import DivergentPivot
from semiring.kernels.engine import Block
from semiring.mpi.ranks import Stopped
from semiring.streaming.buffers import Buffer
from semiring.streaming.dependencies import Dependencies, Share, StepsOfDevice
from semiring.streaming.journal import Journal, NoJournal, Recorded
from semiring.streaming.layout import Distribution
from semiring.streaming.pipeline import DevicePipeline, Loaded, nothing

__all__ = ["run_workers"]


def run_workers(
    pipelines: Sequence[DevicePipeline],
    rows: tuple[slice, ...],
    *,
    reflexive: bool,
    progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
    share: Share | None = None,
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
    share : Share, optional
        Where other ranks have devices too.

    Raises
    ------
    DivergentPivot
    BaseException
        Whatever another rank has raised.
    KeyboardInterrupt
        When what was begun is done; a note says how to go on.

    Notes
    -----
    n³ steps. A device holds two row panels, the block row that it updates, and those that come and go; or its share of the matrix, and
    two row panels of other devices.
    """
    count, here = len(rows), len(pipelines)
    distribution = Distribution(0, (here,)) if share is None else share.distribution
    journal = NoJournal(count) if journal is None else journal
    begun = [i for i, k in enumerate(journal.rounds) if (kept := journal.begun(i, k)) is not None and not kept.whole]
    owned, look_ahead = distribution.owned(count), sum(distribution.devices) > 1
    programs: list[StepsOfDevice] = [partial(steps, journal.rounds, own, look_ahead=look_ahead, begun=begun) for own in owned]
    dependencies = Dependencies(programs, owned, journal, progress, share)

    def work(device: int, task: Callable[[DevicePipeline], None]) -> None:
        try:
            with pipelines[device].memory.active():
                task(pipelines[device])
        except BaseException as error:
            dependencies.stop(error)
            raise

    def compute(device: int) -> None:
        work(device, lambda pipeline: _Worker(pipeline, programs[device], rows, dependencies, reflexive=reflexive).run())

    workers = ThreadPoolExecutor(here + 1)
    try:
        dependencies.report()
        working = [workers.submit(compute, device) for device in range(here) if not journal.finished]
        if share is None:
            wait(working)
        else:
            working.append(workers.submit(work, 0, partial(_publish_recorded, rows, dependencies)))
            share.panels.run(dependencies, lambda: all(done.done() for done in working))
    except BaseException as error:
        dependencies.stop(error)
    finally:
        if share is not None and not isinstance(dependencies.error, Stopped | None):
            share.ranks.tell_of_failure()
        workers.shutdown()
    if dependencies.error is not None and not isinstance(dependencies.error, DivergentPivot):
        dependencies.error.add_note(journal.describe())
    if share is not None:
        try:
            share.ranks.settle(dependencies.error)
        except BaseException:
            share.panels.finish()
            raise
    elif dependencies.error is not None:
        raise dependencies.error
    journal.complete(count)


def _publish_recorded(rows: Sequence[slice], dependencies: Dependencies, pipeline: DevicePipeline) -> None:
    """Let other ranks have the row panels that were made before this process began."""
    journal = dependencies.journal
    for k in sorted(dependencies.sent):
        record = journal.record(k, k)
        if journal.rounds[k] > k and record is not None:
            dependencies.publish(k, partial(_restore, pipeline, record, rows[k]))


def _restore(pipeline: DevicePipeline, record: Recorded, rows: slice, target: Buffer) -> None:
    """Copy the values of a block row that is recorded as a whole."""
    with record.reading() as source:
        pipeline.memory.restore(rows, target, record.columns, source)


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
                ready = partial(self.dependencies.wait_for_panel, k)
                record = None if self.dependencies.is_elsewhere(k) else self.journal.record(k, k)
                self.pipeline.prefetch(self.rows[k], ready, self._received(k, released=False), first=False, record=record)

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
            case StoreBlockRow(i, k) if i == k:
                self._wait_until_free(k, k + 1)
                self._write_back(self.panels.pop(k), k, k, last=True)
            case StoreBlockRow(i, k):
                self._write_back(self.row, i, k, last=k == len(self.rows) - 1)
            case Release(k):
                self.pipeline.release(self.panels.pop(k).loaded, self._received(k, released=True))

    def _received(self, k: int, *, released: bool) -> Callable[[], None]:
        """Says that the device has row panel k: where it computes with it in place, not before it is released."""
        share = self.dependencies.share
        in_place = share is not None and share.panels.direct and self.dependencies.is_elsewhere(k)
        return partial(self.dependencies.received, k) if in_place == released else nothing

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
        publish = partial(self._publish, row, k) if i == k and not last else nothing
        self.pipeline.write_back(row.loaded, done, self.dependencies.stop, keep=keep, last=last, record=record, publish=publish)

    def _publish(self, row: _Row, k: int) -> None:
        """Let other ranks have a row panel."""
        self.dependencies.publish(k, lambda slot: self.pipeline.memory.copy(row.loaded.buffer, slot, self.rows[k]))


def _beside(K: slice, n: int) -> list[slice]:
    """The columns before and after a range."""
    return [J for J in (slice(0, K.start), slice(K.stop, n)) if J.start < J.stop]
