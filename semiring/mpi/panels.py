"""Row panels from their owners to all ranks: shared memory within a host, MPI broadcasts between hosts, and NCCL from GPU to GPU.

Panels travel one after the other, in the order of their rounds. Each goes through three stages:

1. Every rank declares the panel's slot (one of two, alternating) free, and its own progress.
2. The owner copies the panel to the slot, and tells the ranks of its host.
3. The first rank of this host broadcasts the panel to the first ranks of other hosts, and each tells the ranks of its host.

So every host receives a panel once, and its ranks share the copy. The stages are nonblocking collective operations that overlap the
products of a round. If a rank fails, all ranks complete the stages that any rank has begun, so that the communicator stays usable.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol, cast

import numpy as np

from semiring.arrays.conversion import Array
from semiring.mpi.ranks import Ranks, Stopped, pieces

__all__ = ["NcclPanels", "Panels", "SharedPanels", "has_nccl", "nccl_enabled"]

_SLOTS = 2
"""Slots for panels: the current panel and the next."""

_PAGE = 4096
"""Arrays of a shared slot begin at multiples of this many bytes: a GPU can register whole pages."""

_ALIGNMENT = 16
"""Rows of a panel on a GPU begin at multiples of this many bytes."""

_NCCL_BYTES = 0
"""NCCL's number for bytes, ncclInt8."""

_PROGRESS = 4
"""Numbers in a rank's progress."""

_STAGES = 3


class _Local(Protocol):
    """The interface of this rank's computation; `semiring.streaming.dependencies` says what each method does."""

    def check(self) -> None: ...
    def released(self, k: int) -> bool: ...
    def progress(self, k: int) -> tuple[int, ...]: ...
    def others(self, progress: Array) -> None: ...
    def writable(self, k: int) -> None: ...
    def published(self, k: int) -> bool: ...
    def arrived(self, k: int) -> None: ...


class Panels(ABC):
    """The transport of a closure's row panels from their owners to all ranks.

    `owners` has the owner's rank for each remaining row panel, in ascending order of panels; the same on all ranks.
    """

    direct = True  # devices compute with a panel in its slot
    ready: Future[None] | None = None  # done when the slots may be written to

    def __init__(self, ranks: Ranks, owners: dict[int, int]) -> None:
        self.ranks, self.owners = ranks, owners
        self._order = {k: place for place, k in enumerate(owners)}
        self._own, self._told = np.zeros(_PROGRESS, np.int64), np.zeros((ranks.size, _PROGRESS), np.int64)
        self._begun, self._requests = -1, deque[Any]()

    @abstractmethod
    def slot_of(self, turn: int) -> tuple[Any, ...]:
        """Return the arrays of a slot, one for each component."""

    @abstractmethod
    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Begin stage 1 or 2 (counted from 0) for the panel of a slot; return requests with a method ``Test()``."""

    @abstractmethod
    def close(self) -> None:
        """Free the memory: a collective call of all ranks."""

    def slot(self, k: int) -> tuple[Any, ...]:
        """Return the arrays of row panel k's slot."""
        return self.slot_of(self._order[k] % _SLOTS)

    def run(self, local: _Local, done: Callable[[], bool]) -> None:
        """Transport all panels in the calling thread, and wait until this rank's computation is `done`.

        Raises Stopped if another rank has failed, or if `local.check` does.
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
            if place >= _SLOTS:
                self.ranks.until(partial(local.released, keys[place - _SLOTS]), watch)
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
        """Complete the stages that any rank has begun, after a failure."""
        last = max(self.ranks.allgather(self._begun))
        self.ranks.until(self._over)
        for stage in range(self._begun + 1, (last // _STAGES + 1) * _STAGES):
            self._post(stage)
            self.ranks.until(self._over)

    def _post(self, number: int) -> None:
        place, stage = divmod(number, _STAGES)
        self._begun = number
        if stage == 0:
            self._requests = deque([self.ranks.all.Iallgather(self._own, self._told)])
        else:
            self._requests = deque(self.begin(place % _SLOTS, list(self.owners.values())[place], stage))

    def _over(self) -> bool:
        while self._requests and self._requests[0].Test():
            self._requests.popleft()
        return not self._requests


class SharedPanels(Panels):
    """Row panels of at most `rows` rows in memory that the ranks of a host share, with MPI broadcasts between hosts.

    `memory` holds the bytes of both slots. The first rank of each host receives n² elements in a closure.
    """

    def __init__(
        self, ranks: Ranks, owners: dict[int, int], rows: int, n: int, dtypes: Sequence[np.dtype[Any]], *, direct: bool = True
    ) -> None:
        from mpi4py import MPI

        super().__init__(ranks, owners)
        self.direct = direct
        sizes = [-(-rows * n * d.itemsize // _PAGE) * _PAGE * bool(owners) for d in dtypes]
        self._size = sum(sizes)
        self._window = MPI.Win.Allocate_shared(_SLOTS * self._size + _PAGE if ranks.host.rank == 0 else 0, 1, comm=ranks.host)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        everything: Array = np.frombuffer(cast(Any, self._window.Shared_query(0)[0]), np.uint8)
        skipped = -everything.ctypes.data % _PAGE
        self.memory: Array = everything[skipped : skipped + _SLOTS * self._size]
        self._shape, self._parts = (rows, n), list(zip(np.cumsum([0, *sizes]).tolist(), dtypes, strict=False))
        self._token = np.zeros(1, np.uint8)

    def slot_of(self, turn: int) -> tuple[Array, ...]:
        """Return the arrays of a slot, one for each component."""
        rows, n = self._shape
        starts = ((turn * self._size + start, d) for start, d in self._parts)
        return tuple(self.memory[start : start + rows * n * d.itemsize].view(d).reshape(rows, n) for start, d in starts)

    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Tell the owner's host (stage 1); broadcast between hosts and tell the ranks of the others (stage 2)."""
        ranks = self.ranks
        at_home = ranks.hosts[owner] == ranks.hosts[ranks.rank]
        self._window.Sync()
        if (stage == 1) == at_home:  # within the host: from the owner, or from the first rank when it has received the panel
            root = sum(h == ranks.hosts[owner] for h in ranks.hosts[:owner]) if at_home else 0
            return [ranks.host.Ibcast(self._token, root=root)]
        if ranks.leaders is None or ranks.leaders.size == 1:
            return []
        root = sorted(set(ranks.hosts)).index(ranks.hosts[owner])
        return [ranks.leaders.Ibcast(piece, root=root) for piece in pieces(self.memory[turn * self._size :][: self._size])]

    def close(self) -> None:
        """Free the memory: a collective call of all ranks."""
        self._window.Unlock_all()
        del self.memory
        self._window.Free()


# From GPU to GPU.


def nccl_enabled() -> bool:
    """Return False if the environment variable ``SEMIRING_NCCL=0`` forbids NCCL."""
    return os.environ.get("SEMIRING_NCCL") != "0"


def has_nccl(ranks: Ranks, gpu: int | None) -> bool:
    """Return True if each rank has its own GPU, and NCCL is installed and allowed. All ranks call it.

    `gpu` is the only GPU of this rank, or None.
    """
    place: Any = None
    if gpu is not None and nccl_enabled():
        try:
            import cupy

            nccl = importlib.import_module("cupy.cuda.nccl")
            place = nccl.get_version() and (ranks.hosts[ranks.rank], cupy.cuda.runtime.deviceGetPCIBusId(gpu))
        except (ImportError, AttributeError):
            place = None
    places = ranks.allgather(place)
    return all(places) and len(set(places)) == ranks.size > 1


class NcclPanels(Panels):
    """Row panels of at most `rows` rows in GPU memory, broadcast by NCCL on `device` and `stream`. Each GPU holds two panels.

    A broadcast's kernel occupies multiprocessors while it waits for other ranks' kernels, so no rank begins before all can.
    """

    def __init__(self, ranks: Ranks, owners: dict[int, int], rows: int, n: int, dtypes: Sequence[np.dtype[Any]], gpu: int) -> None:
        import cupy

        super().__init__(ranks, owners)
        self._cupy, self.device = cupy, cupy.cuda.Device(gpu)
        with ranks.together(), self.device:
            widths = [-(-n * d.itemsize // _ALIGNMENT) * _ALIGNMENT // d.itemsize for d in dtypes]
            self._memory = [[cupy.empty((rows, width), d) for width, d in zip(widths, dtypes, strict=True)] for _ in range(_SLOTS)]
            self._n, self.stream = n, cupy.cuda.Stream(non_blocking=True)
            self._token = np.zeros(1, np.uint8)
        self._communicator = _communicator(ranks, gpu)

    def slot_of(self, turn: int) -> tuple[Any, ...]:
        """Return the arrays of a slot, one for each component."""
        return tuple(array[:, : self._n] for array in self._memory[turn])

    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Tell all ranks that the owner's panel is in its slot (stage 1), or begin the broadcast (2)."""
        if stage == 1:
            return [self.ranks.all.Ibcast(self._token, root=owner)]
        with self.device:
            for array in self._memory[turn]:
                self._communicator.bcast(array.data.ptr, array.nbytes, _NCCL_BYTES, owner, self.stream.ptr)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return [SimpleNamespace(Test=lambda: bool(event.done))]  # with the interface of an MPI request

    def close(self) -> None:
        """Free the memory."""
        self._memory.clear()


def _communicator(ranks: Ranks, gpu: int) -> Any:
    """Return NCCL's communicator of these ranks, cached because its creation takes seconds."""
    import cupy

    nccl = importlib.import_module("cupy.cuda.nccl")
    if not all(ranks.allgather(gpu in ranks.nccl)):
        identity = ranks.allgather(nccl.get_unique_id() if ranks.rank == 0 else None)[0]
        with ranks.together(), cupy.cuda.Device(gpu):
            ranks.nccl[gpu] = nccl.NcclCommunicator(ranks.size, identity, ranks.rank)
    return ranks.nccl[gpu]
