"""The closure of a matrix by block rows: checks of overflow and divergence, and a worker thread for each device of this rank.

`semiring.algorithms.block_rows.steps` defines the steps and their order; here each becomes an operation of a device's engine or pipeline.
All loads are queued ahead, and wait for a buffer and their dependencies in the pipeline's thread. Dependencies between devices and ranks
are in `semiring.streaming.dependencies`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

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
from semiring.algorithms.divergence import Diagnosis, divergent_loop
from semiring.algorithms.schedules import Pivots
from semiring.arrays.conversion import Values
from semiring.arrays.devices import host
from semiring.common.errors import DivergentPivot
from semiring.common.progress import Meter
from semiring.kernels.engine import Block
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.closures import guard_for
from semiring.mpi.ranks import Stopped
from semiring.streaming.dependencies import Dependencies, Share, StepsOfDevice
from semiring.streaming.folder import Journal, Recorded
from semiring.streaming.layout import BlockCyclicDistribution
from semiring.streaming.pipeline import Buffer, DevicePipeline, Loaded, nothing

__all__ = ["closure_by_rows", "run_workers", "visit"]


def visit(
    pipelines: Sequence[DevicePipeline],
    owned: Sequence[Sequence[slice]],
    visitor: Callable[[int, Values], None],
    check: Callable[[], None] = nothing,
) -> None:
    """Call ``visitor(first row, values)`` for the caller's block rows of each device, on all devices at once.

    An error of `check`, which is called before each block row, ends the visit.
    """
    stopped = threading.Event()

    def share(device: int) -> None:
        pipeline, own = pipelines[device], owned[device]
        for some in own:
            pipeline.prefetch(some, first=True)
        with pipeline.memory.active():
            for some in own:
                loaded = pipeline.load()
                if stopped.is_set():
                    return
                check()
                visitor(some.start, loaded.values)
                pipeline.release(loaded)
            pipeline.drain()

    with ThreadPoolExecutor(len(pipelines)) as workers:
        shares = [workers.submit(share, device) for device in range(len(pipelines))]
        try:
            while shares:
                shares.pop(0).result()  # an error and a frame with its future would keep each other
        except BaseException:
            stopped.set()
            shares.clear()
            raise


def closure_by_rows(
    pipelines: Sequence[DevicePipeline],
    rows: tuple[slice, ...],
    values: Values,
    via: Any,
    statistics: tuple[ValueStatistics, ...],
    *,
    reflexive: bool,
    snapshot: Callable[[], Values | None],
    names: Sequence[Any] | None = None,
    meter: Meter | None = None,
    journal: Journal | None = None,
    share: Share | None = None,
) -> None:
    """values ← A* or A⁺, for an idempotent ⊕, in n³ steps; see `run_workers`. Raises OverflowRiskError and DivergenceError.

    The pipelines load the caller's block rows, and write results to `values` and `via`: arrays, or objects indexed alike. Each of several
    ranks has at least its own rows. Each component has `statistics`. `snapshot` returns the caller's input, or None if it was overwritten,
    and `names` are the caller's names of the vertices, for errors.

    A cycle that improves only by rounding is refused: the remedy of `closure` needs the whole matrix in memory.
    """
    engine = pipelines[0].engine
    semiring, dtypes, n = engine.semiring, engine.dtypes, rows[-1].stop
    guard = guard_for(semiring, dtypes, n - 1 if reflexive else n)
    guard.before(statistics)
    for pipeline in pipelines:
        pipeline.engine.signed, pipeline.engine.statistics = guard.signed, statistics[0]
    own = rows if share is None else tuple(rows[i] for i in share.distribution.own(len(rows)))
    progress = None if meter is None else lambda done, total: meter.reach(n**3 * done // total, n**3)
    stopped = None
    try:
        run_workers(pipelines, rows, reflexive=reflexive, progress=progress, journal=journal, share=share)
        if own:
            loop = divergent_loop(semiring, tuple(np.concatenate([host(v[I, I].diagonal()) for I in own]) for v in values))
            stopped = None if loop is None else int(np.concatenate([np.r_[I] for I in own])[loop])
    except DivergentPivot as stop:
        stopped = stop.vertex
    if share is not None:
        stopped = min((v for v in share.ranks.allgather(stopped) if v is not None), default=None)
    if stopped is not None:
        given = snapshot()
        if given is not None and share is None:
            given = tuple(map(host, given))
        diagnosis = Diagnosis(semiring, lambda: given, lambda v: v if names is None else names[v])
        if given is None:
            raise diagnosis.error(None, None, stopped)
        diagnosis.potentials(stopped, given, None, np.arange(n))
        raise diagnosis.only_rounding(dtypes, large=True)
    if share is None:
        guard.after(values, via)
        return
    with share.ranks.together():
        for I in own:
            guard.after(tuple(v[I] for v in values), None if via is None else via[I])


def run_workers(
    pipelines: Sequence[DevicePipeline],
    rows: tuple[slice, ...],
    *,
    reflexive: bool,
    progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
    share: Share | None = None,
) -> None:
    """Compute A ← A ⊕ A² ⊕ … or I ⊕ A ⊕ A² ⊕ …, for an idempotent ⊕.

    The devices own block rows in a block-cyclic distribution; `share` is this rank's part if other ranks have devices too. From the
    beginning on, `progress` takes the finished and the total rounds of all block rows. `journal` keeps the work for another process.

    Raises DivergentPivot, any error of another rank, and KeyboardInterrupt after the current steps; a note says how to continue.

    A streaming device holds two row panels, the updated block row, and those being loaded or written back. Otherwise it holds
    its share of the matrix, and two row panels of other devices.
    """
    count, here = len(rows), len(pipelines)
    distribution = BlockCyclicDistribution(0, (here,)) if share is None else share.distribution
    journal = Journal(count) if journal is None else journal
    begun = [i for i, k in enumerate(journal.rounds) if (kept := journal.begun(i, k)) is not None and not kept.whole]
    owned, look_ahead = distribution.owned(count), sum(distribution.devices) > 1
    programs: list[StepsOfDevice] = [partial(steps, journal.rounds, own, look_ahead=look_ahead, begun=begun) for own in owned]
    dependencies = Dependencies(programs, owned, journal, progress, share)

    def work(device: int, task: Callable[[DevicePipeline], None]) -> None:
        try:
            with pipelines[device].memory.active():
                task(pipelines[device])
        except BaseException as error:
            dependencies.stop(error)  # and not raised: futures in a traceback would keep errors, and these files

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
    failure, dependencies.error = dependencies.error, Stopped()  # pipelines may still be writing, and fail
    try:
        if failure is not None and not isinstance(failure, DivergentPivot):
            failure.add_note(journal.describe())
        if share is not None:
            try:
                share.ranks.settle(failure)
            except BaseException:
                share.panels.finish()
                raise
        elif failure is not None:
            raise failure
    finally:
        del failure  # else the error and this frame keep each other, and the files mapped
    journal.complete(count)


def _publish_recorded(rows: Sequence[slice], dependencies: Dependencies, pipeline: DevicePipeline) -> None:
    journal = dependencies.journal
    for k in sorted(dependencies.sent):
        record = journal.record(k, k)
        if journal.rounds[k] > k and record is not None:
            dependencies.publish(k, partial(_restore, pipeline, record, rows[k]))


def _restore(pipeline: DevicePipeline, record: Recorded, rows: slice, target: Buffer) -> None:
    """Copy the values of a block row from a whole record."""
    with record.reading() as source:
        pipeline.memory.restore(rows, target, record.columns, source)


@dataclass(frozen=True)
class _Row:
    """A block row on the device, and the engine's form of it."""

    loaded: Loaded
    block: Block


class _Worker:
    """A device and its program."""

    def __init__(
        self, pipeline: DevicePipeline, program: StepsOfDevice, rows: tuple[slice, ...], dependencies: Dependencies, *, reflexive: bool
    ) -> None:
        self.pipeline, self.program, self.rows, self.dependencies, self.reflexive = pipeline, program, rows, dependencies, reflexive
        self.engine, self.pivots, self.journal = pipeline.engine, Pivots(pipeline.engine), dependencies.journal
        self.row: _Row
        self.panels: dict[int, _Row] = {}

    def run(self) -> None:
        """Queue all loads in order, then do all steps."""
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
                self.pipeline.memory.event()()  # `verify` would wait too, but meanwhile keep all threads from the GPU
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
        """Return the callback for a received row panel, to be called on release if the panel is used in its slot, else on loading."""
        share = self.dependencies.share
        in_place = share is not None and share.panels.direct and self.dependencies.is_elsewhere(k)
        return partial(self.dependencies.received, k) if in_place == released else nothing

    def _wait_until_free(self, i: int, k: int) -> None:
        """Wait until block row i has finished k rounds, and all receivers have it if it was a row panel by then."""
        self.dependencies.wait_for(i, k)
        if i < k:
            self.dependencies.wait_for_receivers(i)

    def _loaded(self, *, first: bool = False, begun: bool = False) -> _Row:
        """Return the next loaded block row: the caller's (`first`), an interrupted one (`begun`), or the engine's result."""
        loaded = self.pipeline.load()
        # An interrupted block row has elements of both forms; `load` leaves the engine's form unchanged.
        block = (self.engine.load if first or begun else self.engine.blank)(loaded.values, loaded.via)
        block = replace(block, row=loaded.rows.start)
        if first and self.reflexive:
            # A_II ← I ⊕ A_II
            self.engine.add_identity(block[:, loaded.rows])
        return _Row(loaded, block)

    def _write_back(self, row: _Row, i: int, k: int, *, keep: bool = False, last: bool = False) -> None:
        """Write block row i back after round k, the `last` time in the caller's form."""
        if last:
            self.engine.store(row.block, row.loaded.values)
        record = None if last and i == k else self.journal.record(i, k)
        done = partial(self.dependencies.advance, i, k + 1)
        copy = partial(self.pipeline.memory.copy, row.loaded.buffer, rows=row.loaded.rows)
        publish = partial(self.dependencies.publish, k, copy) if i == k and not last else nothing
        self.pipeline.write_back(row.loaded, done, self.dependencies.stop, keep=keep, last=last, record=record, publish=publish)


def _beside(K: slice, n: int) -> list[slice]:
    """Return the non-empty ranges of columns before and after K."""
    return [J for J in (slice(0, K.start), slice(K.stop, n)) if J.start < J.stop]
