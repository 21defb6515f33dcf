"""The ranks of a communicator, which share values and errors.

MPI does not transport errors: a rank that raises leaves the others waiting forever. Here all ranks agree at the end of each joint piece of
work: all have done it, or all raise the first rank's error. A failing rank tells the others at once, by a message on a separate
communicator, so that they stop.

MPI's blocking calls spin on a core that others could use. So the calling thread tests requests, with pauses. Only this thread calls MPI,
as the lowest levels of thread support demand.
"""

from __future__ import annotations

import functools
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from semiring.arrays.conversion import Array
from semiring.common.errors import SemiringError, described

__all__ = ["Ranks", "Stopped", "pieces"]

T = TypeVar("T")

_EAGER, _LONGEST = 200, 1e-3
"""Tests of a request before the first pause, and the longest pause in seconds."""

_PIECE = 1 << 28
"""Bytes of one message: MPI's counts end at 2³¹, and the transport of several pieces overlaps."""


class Stopped(Exception):
    """Another device or rank has failed, or the caller has stopped the work."""


class Ranks:
    """The processes of an MPI communicator, which make the same calls in the same order. `Ranks.of` makes it.

    `rank` is the number of this process, of `size`, and `hosts` has the first rank on the host of each rank. Row panels travel by `all`
    ranks, those of this `host`, and the `leaders`: the first rank of each host (None on other ranks). Every communicator here is a
    duplicate, so that the caller's messages cannot be mistaken for ours. `nccl` has NCCL's communicators by this rank's GPU.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._comm, self._control, self.all = comm.Dup(), comm.Dup(), comm.Dup()
        self.rank, self.size = int(comm.rank), int(comm.size)
        self.host = self.ranks_of_host(self._comm)
        first = np.array(self.rank if self.host.rank == 0 else -1)
        self._wait(self.host.Ibcast(first, root=0))
        leaders = self._comm.Split(0 if self.host.rank == 0 else MPI.UNDEFINED, key=self.rank)
        self.leaders = leaders if self.host.rank == 0 else None
        self.hosts: tuple[int, ...] = tuple(self.allgather(int(first)))
        self.nccl: dict[int, Any] = {}
        self._told: list[Any] | None = None
        self._epoch = 0

    @classmethod
    def of(cls, comm: Any) -> Ranks:
        """Return the ranks of a communicator, which caches them.

        Raises SemiringError for no communicator, or if MPI does not permit calls in this thread.
        """
        if type(comm).__module__.partition(".")[0] != "mpi4py" or not hasattr(comm, "Ibcast"):
            raise SemiringError(f"comm is {described(comm)}; it is a communicator of mpi4py, such as MPI.COMM_WORLD")
        from mpi4py import MPI

        if comm == MPI.COMM_NULL or comm.Is_inter():
            raise SemiringError("comm is no communicator within one group of processes; use MPI.COMM_WORLD, or a subgroup")
        level = MPI.Query_thread()
        if level < MPI.THREAD_FUNNELED or (level == MPI.THREAD_FUNNELED and not MPI.Is_thread_main()):
            raise SemiringError(
                "MPI does not permit calls in this thread: leave mpi4py.rc.threads and mpi4py.rc.thread_level at their defaults, or call "
                "this in the main thread, with at least MPI_THREAD_FUNNELED"
            )
        found = comm.Get_attr(_key())
        if found is None:
            found = cls(comm)
            comm.Set_attr(_key(), found)
        return found  # type: ignore[no-any-return]  # MPI keeps any object

    @staticmethod
    def ranks_of_host(comm: Any) -> Any:
        """Return the communicator of the ranks that share memory with this one."""
        from mpi4py import MPI

        return comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)

    def __deepcopy__(self, memo: Any) -> Ranks:
        return self

    # Messages.

    def allgather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in order."""
        from mpi4py import MPI

        data = np.frombuffer(pickle.dumps(value), np.uint8)
        sizes = np.empty(self.size, np.int64)
        own = np.array([data.size])
        self._wait(self._comm.Iallgather(own, sizes))
        ends = np.cumsum(sizes)
        everything = np.empty(ends[-1], np.uint8)
        self._wait(self._comm.Iallgatherv(data, [everything, sizes.tolist(), (ends - sizes).tolist(), MPI.BYTE]))
        return [pickle.loads(everything[end - size : end].data) for end, size in zip(ends, sizes, strict=True)]

    def bcast(self, array: Array, root: int) -> None:
        """Copy a contiguous array of rank `root` to all ranks."""
        for request in [self._comm.Ibcast(piece, root=root) for piece in pieces(array)]:
            self._wait(request)

    def send(self, array: Array, to: int) -> None:
        """Send a contiguous array to one rank, which calls `receive`."""
        for piece in pieces(array):
            self._wait(self._comm.Isend(piece, dest=to))

    def receive(self, array: Array, source: int) -> None:
        """Receive a contiguous array from one rank."""
        for piece in pieces(array):
            self._wait(self._comm.Irecv(piece, source=source))

    def same(self, **values: Any) -> None:
        """Raise `SemiringError` on all ranks if a named value differs between two ranks."""
        found = self.allgather(values)
        for what, value in found[0].items():
            for rank, others in enumerate(found):
                if others[what] != value:
                    name = what.replace("_", " ")
                    raise SemiringError(
                        f"{name} differs between ranks, which have to make the same call: {value} on rank 0, {others[what]} on rank {rank}"
                    )

    # Errors.

    @contextmanager
    def together(self) -> Iterator[None]:
        """Return a context after which all ranks raise the first rank's error, if any rank raised."""
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
        self.settle(error)

    def working(self, work: Callable[[Callable[[], None]], T]) -> T:
        """Do long work together; `work` takes a function that raises `Stopped` when another rank has failed."""
        stop = deque([False], maxlen=1)

        def check() -> None:
            if stop[0]:
                raise Stopped

        thread = ThreadPoolExecutor(1)
        done = thread.submit(work, check)
        error: BaseException | None = None
        try:
            self.until(done.done, lambda: stop.append(self.failed()))
            error = done.exception()
        except BaseException as raised:
            stop.append(True)
            error = raised
        finally:
            thread.shutdown()
        self.settle(error)
        return done.result()

    def failed(self) -> bool:
        """Return True if another rank has failed in the current joint work."""
        from mpi4py import MPI

        return bool(self._control.Iprobe(source=MPI.ANY_SOURCE, tag=self._epoch))

    def tell_of_failure(self) -> None:
        """Tell the others at once that this rank has failed; `settle` follows."""
        if self._told is None:
            self._told = [self._control.Isend(b"", dest=other, tag=self._epoch) for other in range(self.size) if other != self.rank]

    def settle(self, error: BaseException | None) -> None:
        """End joint work on all ranks, given this rank's error or None.

        All raise the error of the first rank with an error other than `Stopped`, with a note that names the rank.
        """
        own = None if error is None or isinstance(error, Stopped) else error
        if own is not None:
            self.tell_of_failure()
        found = self.allgather(None if own is None else _pickled(own))
        for rank, other in enumerate(found):
            if other is not None and rank != self.rank:
                self._wait(self._control.Irecv(bytearray(0), source=rank, tag=self._epoch))
        for request in self._told or ():
            self._wait(request)
        self._told, self._epoch = None, (self._epoch + 1) % 16384
        first = next((rank for rank, other in enumerate(found) if other is not None), None)
        if first is None:
            if error is not None:
                raise error
            return
        raised = own if first == self.rank and own is not None else pickle.loads(found[first])
        if self.size > 1:
            raised.add_note(f"raised by rank {first} of {self.size}")
        raise raised

    def until(self, true: Callable[[], Any], watch: Callable[[], Any] | None = None) -> None:
        """Wait until `true` returns True, with pauses, and call `watch` meanwhile."""
        tests, pause = 0, 1e-5
        while not true():
            if watch is not None:
                watch()
            tests += 1
            if tests > _EAGER:
                time.sleep(pause)
                pause = min(1.3 * pause, _LONGEST)

    def _wait(self, request: Any) -> None:
        self.until(request.Test)


def pieces(array: Array) -> list[Array]:
    """Cut the bytes of a contiguous array into messages."""
    flat = array.reshape(-1).view(np.uint8)
    return [flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE)]


def _pickled(error: BaseException) -> bytes:
    """Pickle an error; if its type cannot be pickled, as a `SemiringError`."""
    try:
        made = pickle.dumps(error)
        pickle.loads(made)
    except Exception:
        made = pickle.dumps(SemiringError(f"{type(error).__name__}: {error}"))
    return made


@functools.cache
def _key() -> int:
    """Return MPI's key under which a communicator caches its `Ranks`."""
    from mpi4py import MPI

    return int(MPI.Comm.Create_keyval())
