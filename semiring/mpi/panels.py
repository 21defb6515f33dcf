"""Row panels from their owners to all ranks: in memory that the ranks of a host share, and from host to host by MPI's broadcasts.

Panels come in the order of their rounds, one after the other, and each goes through three stages:

1. All ranks say that they need the panel no more whose slot this one takes (two slots take turns), and how far they are.
2. Its owner copies it to the slot, and tells the ranks of its host.
3. The first rank of that host broadcasts it to the first ranks of the others, and these tell those of theirs.

So every host receives a panel once, however many ranks it has, and no rank copies what another one of its host has received. The stages are
nonblocking collective operations, and the products of a round go on beside them. If a rank fails, the stages that others have begun are
gone through by all, whatever is in the slots, so that the communicator can be used as before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from semiring.mpi.ranks import Ranks, Stopped

__all__ = ["PROGRESS", "SLOTS", "Local", "Panels", "SharedPanels"]

Array = np.ndarray[Any, Any]

SLOTS = 2
"""Panels that there is room for: the one that products are made with, and the next."""

_ALIGNMENT = 4096
"""Bytes that each array of a slot begins at multiples of: whole pages can be registered with a GPU."""

_PIECE = 1 << 28
"""Bytes of one broadcast: MPI counts no more than 2³¹, and pieces follow each other from host to host."""

PROGRESS = 4
"""Numbers that say how far a rank is."""

_STAGES = 3


class Local(Protocol):
    """What the panels ask of, and tell, those who compute on this rank."""

    def check(self) -> None:
        """Raise `Stopped` after an error on this rank."""

    def released(self, k: int) -> bool:
        """Whether no device of this rank needs row panel k any more."""
        ...

    def progress(self, k: int) -> tuple[int, ...]:
        """How far this rank is while row panel k is on its way, for the others to know, in `PROGRESS` numbers."""
        ...

    def others(self, progress: Array) -> None:
        """How far all ranks were when they had room for the next panel: an array of shape (ranks, PROGRESS)."""

    def writable(self, k: int) -> None:
        """The owner may copy row panel k to its slot."""

    def published(self, k: int) -> bool:
        """Whether the owner has done so."""
        ...

    def arrived(self, k: int) -> None:
        """Row panel k is in its slot."""


class Panels(ABC):
    """The row panels of a closure, of which each rank owns some, on their way to all ranks.

    Parameters
    ----------
    ranks : Ranks
    owners : dict of int to int
        The rank that owns each row panel that comes, by its number and in ascending order. The same on all ranks.

    Attributes
    ----------
    direct : bool
        Whether devices compute with a panel in its slot.
    ready : concurrent.futures.Future or None
        After which the slots may be written to.
    """

    direct = True
    ready: Future[None] | None = None

    def __init__(self, ranks: Ranks, owners: dict[int, int]) -> None:
        self.ranks, self.owners = ranks, owners
        self._order = {k: place for place, k in enumerate(owners)}
        self._own, self._told = np.zeros(PROGRESS, np.int64), np.zeros((ranks.size, PROGRESS), np.int64)
        self._begun, self._requests = -1, deque[Any]()

    @abstractmethod
    def slot_of(self, turn: int) -> tuple[Any, ...]:
        """The memory of one of the slots: an array for each component."""

    @abstractmethod
    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Begin the second stage (1) or the third (2) for the panel of a slot: requests, which are over when ``Test()`` says so."""

    @abstractmethod
    def close(self) -> None:
        """Give the memory back. All ranks call it."""

    def slot(self, k: int) -> tuple[Any, ...]:
        """The memory of row panel k."""
        return self.slot_of(self._order[k] % SLOTS)

    def run(self, local: Local, done: Callable[[], bool]) -> None:
        """Bring all panels, in the thread that made the call, and wait until all that this rank computes is `done`.

        Raises
        ------
        Stopped
            Where another rank has failed; and what `local.check` raises.
        """

        def watch() -> None:
            local.check()
            if self.ranks.failed():
                raise Stopped

        keys = list(self.owners)
        if keys and self.ready is not None:
            self.ranks.until(self.ready.done, watch)
            self.ready.result()
        for place, k in enumerate(keys):
            if place >= SLOTS:
                self.ranks.until(partial(local.released, keys[place - SLOTS]), watch)
            self._own[:] = local.progress(k)
            for stage in range(_STAGES):
                if stage == 1 and self.owners[k] == self.ranks.rank:
                    local.writable(k)
                    self.ranks.until(partial(local.published, k), watch)
                self._post(_STAGES * place + stage)
                self.ranks.until(self._over, watch)
                if stage == 0:
                    local.others(self._told)
            local.arrived(k)
        self.ranks.until(done, watch)

    def finish(self) -> None:
        """Go through the stages that any rank has begun, after a failure."""
        last = max(self.ranks.allgather(self._begun))
        self.ranks.until(self._over)
        for stage in range(self._begun + 1, (last // _STAGES + 1) * _STAGES):
            self._post(stage)
            self.ranks.until(self._over)

    def _post(self, number: int) -> None:
        """Begin a stage of a panel."""
        place, stage = divmod(number, _STAGES)
        self._begun = number
        if stage == 0:
            self._requests = deque([self.ranks.all.Iallgather(self._own, self._told)])
        else:
            self._requests = deque(self.begin(place % SLOTS, list(self.owners.values())[place], stage))

    def _over(self) -> bool:
        """Whether the stage that was begun last is over."""
        while self._requests and self._requests[0].Test():
            self._requests.popleft()
        return not self._requests


class SharedPanels(Panels):
    """Row panels in memory that the ranks of a host share, brought from host to host by MPI's broadcasts.

    Parameters
    ----------
    ranks, owners
        See `Panels`.
    rows : int
        Of a panel, at most.
    n : int
    dtypes : sequence of numpy.dtype
    direct : bool

    Attributes
    ----------
    memory : array of bytes
        Of both slots.

    Notes
    -----
    Each host has two panels in its memory, and receives n² elements in a closure, the first ranks among the hosts as many.
    """

    def __init__(
        self, ranks: Ranks, owners: dict[int, int], rows: int, n: int, dtypes: Sequence[np.dtype[Any]], *, direct: bool = True
    ) -> None:
        from mpi4py import MPI

        super().__init__(ranks, owners)
        self.direct = direct
        sizes = [-(-rows * n * d.itemsize // _ALIGNMENT) * _ALIGNMENT * bool(owners) for d in dtypes]
        self._size = sum(sizes)
        self._window = MPI.Win.Allocate_shared(SLOTS * self._size + _ALIGNMENT if ranks.host.rank == 0 else 0, 1, comm=ranks.host)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        everything: Array = np.frombuffer(cast(Any, self._window.Shared_query(0)[0]), np.uint8)
        skipped = -everything.ctypes.data % _ALIGNMENT
        self.memory: Array = everything[skipped : skipped + SLOTS * self._size]
        self._shape, self._parts = (rows, n), list(zip(np.cumsum([0, *sizes]).tolist(), dtypes, strict=False))
        self._token = np.zeros(1, np.uint8)

    def slot_of(self, turn: int) -> tuple[Array, ...]:
        """The memory of one of the slots: an array for each component."""
        rows, n = self._shape
        starts = ((turn * self._size + start, d) for start, d in self._parts)
        return tuple(self.memory[start : start + rows * n * d.itemsize].view(d).reshape(rows, n) for start, d in starts)

    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Within the host that has the panel the owner tells of it; then it is broadcast between hosts; and within the others."""
        ranks = self.ranks
        at_home = ranks.hosts[owner] == ranks.hosts[ranks.rank]
        self._window.Sync()
        if (stage == 1) == at_home:  # within the host: from the owner, or from the first rank when it has received the panel
            root = sum(h == ranks.hosts[owner] for h in ranks.hosts[:owner]) if at_home else 0
            return [ranks.host.Ibcast(self._token, root=root)]
        if ranks.leaders is None or ranks.leaders.size == 1:
            return []
        root = sorted(set(ranks.hosts)).index(ranks.hosts[owner])
        slot = self.memory[turn * self._size :][: self._size]
        return [ranks.leaders.Ibcast(slot[start : start + _PIECE], root=root) for start in range(0, self._size, _PIECE)]

    def close(self) -> None:
        """Give the memory back. All ranks call it."""
        self._window.Unlock_all()
        del self.memory
        self._window.Free()
