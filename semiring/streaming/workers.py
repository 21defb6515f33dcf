"""Blocked closure by block rows, carried out by a thread for each device.

Blocked Floyd–Warshall, united with the construction matrix where there is one: Matsumoto, Nakasato and Sedukhin (2012), who move square
blocks and reuse the one that two updates in a row share. Here a whole block row moves, so that every copy is contiguous and
the pivot's row panel, A_K*, stays on the device for a round: n² elements each way in a round of n²b steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from semiring.algorithms.schedules import Pivots
from semiring.common.errors import DivergentPivot
from semiring.kernels.engine import Block
from semiring.streaming.journal import Journal, Unrecorded
from semiring.streaming.pipeline import Held, Lane

__all__ = ["Ledger", "Stopped", "streamed"]


class Stopped(Exception):
    """Another device has failed, or the caller has stopped the work."""


class Ledger:
    """How many rounds each block row has been through; what depends on that waits here.

    Parameters
    ----------
    count : int
        Block rows.
    lanes : int
        Devices, each of which reads every row panel.
    progress : callable, optional
        Called with how many rounds block rows have been through, all of them together, and how many that will be: first at the beginning.
    journal : Journal, optional
        Where this is kept, for another process to go on.
    """

    def __init__(self, count: int, lanes: int, progress: Callable[[int, int], None] | None = None, journal: Journal | None = None) -> None:
        self.count, self.lanes = count, lanes
        self.journal: Journal = Unrecorded(count) if journal is None else journal
        self._rounds, self._readers = list(self.journal.rounds), [0] * count
        self._changed = threading.Condition()
        self.error: BaseException | None = None
        self._progress = progress

    def wait_for(self, row: int, rounds: int) -> None:
        """Until a block row has been through so many rounds."""
        self._until(lambda: self._rounds[row] >= rounds)

    def wait_for_readers(self, row: int) -> None:
        """Until every device has the row panel that a block row was."""
        self._until(lambda: self._readers[row] == self.lanes)

    def advance(self, row: int, rounds: int) -> None:
        """A block row has been through so many rounds."""
        self.journal.advance(row, rounds)
        with self._changed:
            self._rounds[row] = rounds
            self._changed.notify_all()
            least = min(self._rounds)
        if least < self.count:  # the last row panel is still to be given its own form
            self.journal.complete(least)
        self.report()

    def report(self) -> None:
        """Tell how far all is."""
        if self._progress is not None:
            self._progress(sum(self._rounds), self.count * self.count)

    @contextmanager
    def panel(self, row: int) -> Iterator[None]:
        """Around the copy of a block row to a device as a row panel: waits until it is one, and counts the device afterwards."""
        self.wait_for(row, row + 1)
        yield
        self.panel_read(row)

    def panel_read(self, row: int) -> None:
        """A device has a block row as a row panel."""
        with self._changed:
            self._readers[row] += 1
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

    def _until(self, true: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or true())
        self.check()


def streamed(lanes: Sequence[Lane], rows: tuple[slice, ...], ledger: Ledger, *, reflexive: bool) -> None:
    """A ← A ⊕ A² ⊕ … or I ⊕ A ⊕ A² ⊕ …, for an idempotent ⊕.

    Parameters
    ----------
    lanes : sequence of Lane
        The devices.
    rows : tuple of slice
        The block rows, as `block_rows` gives them.
    ledger : Ledger
    reflexive : bool

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
    ledger.report()
    if ledger.journal.finished:
        return

    def work(number: int) -> None:
        try:
            with lanes[number].carrier.active():
                _Worker(lanes[number], number, len(lanes), rows, ledger, reflexive=reflexive).run()
        except BaseException as error:
            ledger.stop(error)
            raise

    workers = ThreadPoolExecutor(len(lanes))
    try:
        wait([workers.submit(work, number) for number in range(len(lanes))])
    except BaseException as error:
        ledger.stop(error)
    finally:
        workers.shutdown()
    if ledger.error is not None:
        if not isinstance(ledger.error, DivergentPivot):
            ledger.error.add_note(ledger.journal.describe())
        raise ledger.error
    ledger.journal.complete(len(rows))


@dataclass(frozen=True)
class _Row:
    """A block row on the device, what stands for it while the engine works, and whether its phase 3 was done and recorded before."""

    held: Held
    block: Block
    recorded: bool


class _Worker:
    """One of the devices, which owns every `lanes`-th block row."""

    def __init__(self, lane: Lane, number: int, lanes: int, rows: tuple[slice, ...], ledger: Ledger, *, reflexive: bool) -> None:
        self.lane, self.number, self.lanes, self.rows, self.ledger, self.reflexive = lane, number, lanes, rows, ledger, reflexive
        self.engine, self.pivots = lane.engine, Pivots(lane.engine)

    def run(self) -> None:
        """All rounds. Round −1 does nothing but make the first row panel."""
        self._expect_all()
        panel: _Row | None = None
        for k in range(-1, len(self.rows)):
            if self._fetches(k):
                panel = self._take(k, k)
            following: _Row | None = None
            for i in self._order(k):
                self.ledger.check()
                row = self._take(i, k)
                if panel is not None:
                    self._update(row.block, panel.block, self.rows[k], recorded=row.recorded)
                if i == k + 1:
                    self._lead(row.block, self.rows[i])
                    self.ledger.panel_read(i)
                    following = row
                    self._give(row, i, k + 1, keep=True)
                else:
                    self._give(row, i, k, last=k == len(self.rows) - 1)
            if panel is not None and self._finishes(k):
                self._until_ready(k, k + 1)
                self._give(panel, k, k, last=True)
            elif panel is not None:
                self.lane.release(panel.held)
            panel = following
        self.lane.finish()

    def _owns(self, i: int) -> bool:
        return i % self.lanes == self.number

    def _order(self, k: int) -> list[int]:
        """The own block rows that are still to go through round k.

        The next row panel comes first where other devices wait for it, and else last, when this round's is about to go.
        """
        own = [i for i, done in enumerate(self.ledger.journal.rounds) if self._owns(i) and i != k and done <= max(k, 0)]
        following = [i for i in own if i == k + 1]
        others = [i for i in own if i != k + 1 and k >= 0]
        return following + others if self.lanes > 1 else others + following

    def _leads(self, k: int) -> bool:
        """Whether the row panel of round k is made here."""
        return k in self._order(k - 1)

    def _finishes(self, k: int) -> bool:
        """Whether the row panel of round k, which is through all rounds then, is given its own form here."""
        return k == len(self.rows) - 1 and self._owns(k)

    def _fetches(self, k: int) -> bool:
        """Whether the row panel of round k has to be brought."""
        return k >= 0 and not self._leads(k) and (self._finishes(k) or bool(self._order(k)))

    def _expect_all(self) -> None:
        recorded = self.ledger.journal.source
        for k in range(-1, len(self.rows)):
            if self._fetches(k):
                self.lane.expect(self.rows[k], self.ledger.panel(k), first=False, record=recorded(k, k))
            elif k >= 0 and not self._leads(k):
                self.ledger.panel_read(k)  # nobody has to wait for a device that does without
            for i in self._order(k):
                self.lane.expect(self.rows[i], self._turn(i, k), first=_first(i, k), record=recorded(i, k))

    @contextmanager
    def _turn(self, i: int, k: int) -> Iterator[None]:
        """The turn of block row i to come here for round k."""
        self._until_ready(i, k)
        yield

    def _until_ready(self, i: int, k: int) -> None:
        """Until block row i is through the rounds before k, and every device has read it if it was the row panel of one of them."""
        self.ledger.wait_for(i, k)
        if i < k:
            self.ledger.wait_for_readers(i)

    def _take(self, i: int, k: int) -> _Row:
        first, recorded = _first(i, k), i != k and self.ledger.journal.source(i, k) is not None
        held = self.lane.take()
        # What was interrupted has elements of both forms; loading changes nothing that has the inner one.
        block = (self.engine.load if first or recorded else self.engine.blank)(held.values, held.via)
        block = replace(block, row=held.rows.start)
        if first and self.reflexive:
            # A_II ← I ⊕ A_II
            self.engine.add_identity(block[:, held.rows])
        return _Row(held, block, recorded)

    def _give(self, row: _Row, i: int, k: int, *, keep: bool = False, last: bool = False) -> None:
        if last:
            self.engine.store(row.block, row.held.values)
        record = None if last and i == k else self.ledger.journal.record(i, k)
        self.lane.give(row.held, partial(self.ledger.advance, i, k + 1), self.ledger.stop, keep=keep, last=last, record=record)

    def _update(self, A: Block, P: Block, K: slice, *, recorded: bool) -> None:
        """Phases 3 and 4 for a block row A, with the row panel P of the block row K; phase 3 unless its result is recorded."""
        if not recorded:
            # A_IK ← A_IK ⊕ A_IK A_KK
            self.engine.multiply_add(A[:, K], P[:, K], A[:, K])
        # A_IJ ← A_IJ ⊕ A_IK A_KJ
        for J in _beside(K, A.shape[1]):
            self.engine.multiply_add(A[:, K], P[:, J], A[:, J])

    def _lead(self, A: Block, K: slice) -> None:
        """Phases 1 and 2 for the block row K, which becomes the row panel."""
        # A_KK ← A_KK ⊕ A_KK² ⊕ …
        self.pivots.close(A[:, K])
        # A_KJ ← A_KJ ⊕ A_KK A_KJ
        for J in _beside(K, A.shape[1]):
            self.engine.multiply_add(A[:, K], A[:, J], A[:, J])
        self.lane.carrier.mark()()  # what `verify` fetches would wait too, and meanwhile keep all threads from the GPU
        self.engine.verify()


def _first(i: int, k: int) -> bool:
    """Whether nothing has happened to block row i before round k."""
    return k < 0 or (k == 0 and i > 0)


def _beside(K: slice, n: int) -> list[slice]:
    """The columns before and after a range."""
    return [J for J in (slice(0, K.start), slice(K.stop, n)) if J.start < J.stop]
