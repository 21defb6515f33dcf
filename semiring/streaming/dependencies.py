"""What the devices of a closure by block rows wait for from each other: how far each block row is, and who has received it.

Of the block rows of other ranks only the row panels matter, which come by `semiring.mpi.panels` while the thread that made the call looks
after them; `Share` says which part of the whole this process has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algorithms.block_rows import Receive, Step
from semiring.mpi.panels import Panels
from semiring.mpi.ranks import Ranks, Stopped
from semiring.streaming.buffers import Buffer
from semiring.streaming.journal import Journal
from semiring.streaming.layout import BlockCyclicDistribution

__all__ = ["Dependencies", "Share", "StepsOfDevice"]

Array = np.ndarray[Any, Any]

StepsOfDevice = Callable[[], Iterator[Step]]
"""Yields the steps of a device, as often as they are asked for."""


@dataclass(frozen=True)
class Share:
    """What one rank has of a closure that several do together.

    Attributes
    ----------
    ranks : Ranks
    distribution : BlockCyclicDistribution
        Of the block rows over the devices of all ranks.
    panels : Panels
        The row panels that come from one rank to the others.
    """

    ranks: Ranks
    distribution: BlockCyclicDistribution
    panels: Panels


class Dependencies:
    """How many rounds each block row has been through, and who has received it as a row panel; what depends on that waits here.

    Parameters
    ----------
    programs : sequence of StepsOfDevice
        Of all devices of this process.
    owned : sequence of range
        Their block rows.
    journal : Journal
    progress : callable, optional
    share : Share, optional
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
        self._receivers = [0] * len(self._rounds)
        for program in programs:
            for step in program():
                if isinstance(step, Receive):
                    self._receivers[step.k] += 1
        self.sent = set[int]() if share is None else {k for k, owner in share.panels.owners.items() if owner == share.ranks.rank}
        for k in self.sent:
            self._receivers[k] += 1
        self._arrived, self._writable, self._published = set[int](), set[int](), set[int]()
        self._changed = threading.Condition()
        self.error: BaseException | None = None

    # What the devices of this process wait for, and tell.

    def is_elsewhere(self, k: int) -> bool:
        """Whether row panel k is another rank's."""
        return self.share is not None and self.share.panels.owners.get(k, self.share.ranks.rank) != self.share.ranks.rank

    def wait_for(self, i: int, rounds: int) -> None:
        """Until a block row has been through so many rounds."""
        self._until(lambda: self._rounds[i] >= rounds)

    def wait_for_panel(self, k: int) -> None:
        """Until block row k is a row panel, and here."""
        self._until(lambda: k in self._arrived if self.is_elsewhere(k) else self._rounds[k] > k)

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
        if self.share is None and least < len(self._rounds):  # the last row panel is still to be given its own form
            self.journal.complete(least)
        self.report()

    def received(self, i: int) -> None:
        """A device has received a block row as a row panel, or used it where it arrived."""
        with self._changed:
            self._receivers[i] -= 1
            self._changed.notify_all()

    def publish(self, k: int, copy: Callable[[Buffer], None]) -> None:
        """Copy row panel k of this rank to its slot, for the other ranks, when there is room."""
        if k in self.sent:
            assert self.share is not None
            self._until(lambda: k in self._writable)
            copy((self.share.panels.slot(k), None))
            with self._changed:
                self._published.add(k)
                self._receivers[k] -= 1
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

    # What the row panels of other ranks ask and tell: `semiring.mpi.panels.Local`.

    def released(self, k: int) -> bool:
        """Whether no device of this rank needs row panel k any more."""
        return self._receivers[k] == 0

    def progress(self, k: int) -> tuple[int, ...]:
        """The least number of rounds of block rows here, the sum of them, and what the journal tells."""
        own = [self._rounds[i] for i in self._own]
        return min(own, default=len(self._rounds)), sum(own), *self.journal.tell(k)

    def others(self, progress: Array) -> None:
        """How far all ranks are."""
        assert self.share is not None
        self._elsewhere = int(progress[:, 1].sum() - progress[self.share.ranks.rank, 1])
        self.journal.told(int(progress[:, 0].min()), progress[:, 2:])
        self.report()

    def writable(self, k: int) -> None:
        """Row panel k may be copied to its slot."""
        with self._changed:
            self._writable.add(k)
            self._changed.notify_all()

    def published(self, k: int) -> bool:
        """Whether row panel k is in its slot, for the others."""
        return k in self._published

    def arrived(self, k: int) -> None:
        """Row panel k is in its slot, from another rank."""
        with self._changed:
            self._arrived.add(k)
            self._changed.notify_all()

    def report(self) -> None:
        """Tell how far all is."""
        if self._progress is not None:
            self._progress(self._elsewhere + sum(self._rounds[i] for i in self._own), len(self._rounds) ** 2)

    def _until(self, true: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or true())
        self.check()
