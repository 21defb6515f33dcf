"""Dependencies between the devices of a closure by block rows: the rounds of each block row, and receivers of row panels.

Other ranks' row panels arrive by `semiring.mpi.panels`, driven by the calling thread. `Share` is this process's part of the closure.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from semiring.algorithms.block_rows import Receive, Step
from semiring.arrays.conversion import Array
from semiring.mpi.panels import Panels
from semiring.mpi.ranks import Ranks, Stopped
from semiring.streaming.folder import Journal
from semiring.streaming.layout import BlockCyclicDistribution
from semiring.streaming.pipeline import Buffer

__all__ = ["Dependencies", "Share", "StepsOfDevice"]

StepsOfDevice = Callable[[], Iterator[Step]]
"""Yields the steps of a device, anew at each call."""


@dataclass(frozen=True)
class Share:
    """One rank's part of a joint closure."""

    ranks: Ranks
    distribution: BlockCyclicDistribution  # the block rows of the devices of all ranks
    panels: Panels  # the row panels that travel between ranks


class Dependencies:
    """Finished rounds and pending receivers of each block row; threads wait here for their dependencies.

    `programs` and `owned` are the programs and block rows of this process's devices.
    """

    def __init__(
        self,
        programs: Sequence[StepsOfDevice],
        owned: Sequence[range],
        journal: Journal,
        progress: Callable[[int, int], None] | None,
        share: Share | None = None,
    ) -> None:
        self.journal, self.share, self._progress = journal, share, progress
        self._rounds = list(journal.rounds)
        self._own = sorted(i for own in owned for i in own)
        self._elsewhere = sum(self._rounds) - sum(self._rounds[i] for i in self._own)
        self._receivers = Counter(step.k for program in programs for step in program() if isinstance(step, Receive))
        self.sent = set[int]() if share is None else {k for k, owner in share.panels.owners.items() if owner == share.ranks.rank}
        self._receivers.update(self.sent)
        self._arrived, self._writable, self._published = set[int](), set[int](), set[int]()
        self._changed = threading.Condition()
        self.error: BaseException | None = None

    # Called by the devices of this process.

    def is_elsewhere(self, k: int) -> bool:
        """Return True if another rank owns row panel k."""
        return self.share is not None and self.share.panels.owners.get(k, self.share.ranks.rank) != self.share.ranks.rank

    def wait_for(self, i: int, rounds: int) -> None:
        """Wait until block row i has finished `rounds` rounds."""
        self._until(lambda: self._rounds[i] >= rounds)

    def wait_for_panel(self, k: int) -> None:
        """Wait until row panel k is computed, and here."""
        self._until(lambda: k in self._arrived if self.is_elsewhere(k) else self._rounds[k] > k)

    def wait_for_receivers(self, i: int) -> None:
        """Wait until every device that needs row panel i has received it."""
        self._until(lambda: self._receivers[i] == 0)

    def advance(self, i: int, rounds: int) -> None:
        """Note that block row i has finished `rounds` rounds."""
        self.journal.advance(i, rounds)
        with self._changed:
            self._rounds[i] = rounds
            self._changed.notify_all()
            least = min(self._rounds)
        if self.share is None and least < len(self._rounds):  # the last row panel has yet to be converted
            self.journal.complete(least)
        self.report()

    def received(self, i: int) -> None:
        """Note that a device has received row panel i, or has used it in its slot."""
        with self._changed:
            self._receivers[i] -= 1
            self._changed.notify_all()

    def publish(self, k: int, copy: Callable[[Buffer], None]) -> None:
        """Copy row panel k of this rank to its slot for the other ranks, when the slot is free."""
        if k in self.sent:
            assert self.share is not None
            self._until(lambda: k in self._writable)
            copy((self.share.panels.slot(k), None))
            with self._changed:
                self._published.add(k)
                self._receivers[k] -= 1
                self._changed.notify_all()

    def stop(self, error: BaseException) -> None:
        """Wake all waiting threads, and let no device begin another block row."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def check(self) -> None:
        """Raise `Stopped` after `stop`."""
        if self.error is not None:
            raise Stopped from self.error

    # Called by the exchange of row panels, `Panels.run`, as `check` is.

    def released(self, k: int) -> bool:
        """Return True if no device of this rank needs row panel k any more."""
        return self._receivers[k] == 0

    def progress(self, k: int) -> tuple[int, ...]:
        """Return the least rounds of own block rows, their sum, and the journal's two numbers, before row panel k travels."""
        own = [self._rounds[i] for i in self._own]
        return min(own, default=len(self._rounds)), sum(own), *self.journal.tell(k)

    def others(self, progress: Array) -> None:
        """Take the progress of all ranks, an array with a row for each."""
        assert self.share is not None
        self._elsewhere = int(progress[:, 1].sum() - progress[self.share.ranks.rank, 1])
        self.journal.told(int(progress[:, 0].min()), progress[:, 2:])
        self.report()

    def writable(self, k: int) -> None:
        """Allow row panel k to be copied to its slot."""
        with self._changed:
            self._writable.add(k)
            self._changed.notify_all()

    def published(self, k: int) -> bool:
        """Return True if row panel k of this rank is in its slot, for the others."""
        return k in self._published

    def arrived(self, k: int) -> None:
        """Note that row panel k has arrived in its slot from another rank."""
        with self._changed:
            self._arrived.add(k)
            self._changed.notify_all()

    def report(self) -> None:
        """Report the finished rounds of all block rows."""
        if self._progress is not None:
            self._progress(self._elsewhere + sum(self._rounds[i] for i in self._own), len(self._rounds) ** 2)

    def _until(self, true: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or true())
        self.check()
