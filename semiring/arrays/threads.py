"""Threads of the CPU engine, and the scratch memory that workers reuse.

`run` spreads independent tasks over threads; kernels release the GIL. Scratch has a single owner at a time, even if a signal handler
computes in the middle of another product.

Python runs signal handlers in the main thread, between two of its instructions. So the main thread gives long machine code to another
thread, and waits. If a handler raises, as for Ctrl-C, the main thread sets a word that the machine code polls.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np

from semiring.arrays.overlap import address
from semiring.common import forks
from semiring.common.errors import SemiringError, described
from semiring.common.units import CACHE_LINE

__all__ = [
    "LONG", "NEVER", "Scratch", "Threaded", "new_scratch", "require_threads", "return_scratch", "run", "stoppable", "take_scratch",
    "thread_count",
]  # fmt: skip

Task = TypeVar("Task")
_helpers = 0
_lock = forks.lock()

LONG = 20_000_000
"""Nanoseconds from which the main thread gives machine code to another thread, at a cost of about 30,000 nanoseconds."""

_LISTENING = 0.05  # seconds that the main thread waits at a time

_never = np.zeros(1, np.int64)
NEVER = address(_never)
"""The address of a word that stays 0: machine code with this stop word runs to its end."""


class _Stopped(BaseException):
    """Ends the task of a helper with stopped machine code; the caller raises another error."""


class _Stop(threading.local):
    """The word that stops the machine code of a thread, shared by the caller of `run` and its helpers."""

    word: np.ndarray[Any, Any] | None = None


_stop = _Stop()


class Threaded:
    """A base class with a requested number of threads, or by default all cores, counted at first use."""

    requested: int | None

    @property
    def threads(self) -> int:
        """The number of threads."""
        return thread_count(self.requested)


def thread_count(threads: int | None = None) -> int:
    """Return `threads`, else ``SEMIRING_NUM_THREADS``, else the number of cores of this process."""
    if threads is None:
        chosen = os.environ.get("SEMIRING_NUM_THREADS", "").strip()
        if not chosen:
            return _cores()
        if not chosen.isdecimal() or int(chosen) < 1:
            raise SemiringError(f"SEMIRING_NUM_THREADS is {chosen!r}; it must be a whole number from 1")
        return int(chosen)
    require_threads(threads)
    return int(threads)


def require_threads(threads: Any) -> None:
    """Refuse an invalid number of threads; None stands for the default."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1):
        raise SemiringError(f"threads is {described(threads)}; it must be a whole number from 1, or None for the default")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(work: Callable[[Task, int], None], tasks: Sequence[Task], threads: int) -> None:
    """Call ``work(task, slot)`` for every task; slot < threads is the number of the worker, 0 for the caller.

    An interrupt of the caller stops the machine code of all workers.
    """
    threads = min(threads, len(tasks))
    if threads <= 1:
        for task in tasks:
            work(task, 0)
        return
    queue, errors, jobs = deque(tasks), list[BaseException](), list[_Job]()  # without a GIL, an iterator may give a task twice
    outermost = _stop.word is None
    stop = np.zeros(1, np.int64) if _stop.word is None else _stop.word

    def worker(slot: int) -> None:
        while not stop[0]:
            try:
                task = queue.popleft()
            except IndexError:
                return
            work(task, slot)

    def help_out(slot: int) -> None:
        _stop.word = stop
        try:
            worker(slot)
        except BaseException as error:
            queue.clear()
            errors.append(error)
        finally:
            _stop.word = None

    try:
        _stop.word = stop
        for slot in range(1, threads):
            helper = _idle_helper(threads - 1)
            if helper is None:
                break
            jobs.append(_Job(functools.partial(help_out, slot)))
            helper.begin(jobs[-1])
        worker(0)
    except BaseException as error:
        if outermost or not isinstance(error, Exception):
            stop[0] = 1
        raise
    finally:
        if outermost:
            _stop.word = None
        queue.clear()  # after an error or an interrupt, no other task begins
        _finish(jobs, stop)  # also after an error, because workers write to arrays of the caller
    if errors:
        raise errors.pop()  # popped, so that no frame keeps the error


def stoppable(code: Callable[[int, int], None], words: int) -> None:
    """Run machine code with the addresses of its arguments and of a stop word; the main thread handles signals meanwhile."""
    stop = _stop.word
    helper = _idle_helper(sys.maxsize) if threading.current_thread() is threading.main_thread() else None
    if helper is None:
        code(words, NEVER if stop is None else address(stop))
        if stop is not None and stop[0]:
            raise _Stopped
        return
    stop = np.zeros(1, np.int64) if stop is None else stop
    job = _Job(functools.partial(code, words, address(stop)))
    try:
        helper.begin(job)
        job.wait()
    except BaseException:  # of a signal handler
        stop[0] = 1
        _finish([job], stop)
        raise


def _finish(jobs: Sequence[_Job], stop: np.ndarray[Any, Any]) -> None:
    """Take back jobs that no helper has begun, and wait for the others; errors of signal handlers stop them."""
    raised: BaseException | None = None
    for job in jobs:
        waiting = not job.taken()  # a helper without a core may not have begun the job
        while waiting:
            try:
                job.wait()
                waiting = False
            except BaseException as error:
                stop[0], raised = 1, error
    if raised is not None:
        raise raised


class _Job:
    """Work for a helper, at most once; the caller may take it back first."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = deque([work])
        self.end, self.done = _taken_lock(), False

    def wait(self) -> None:
        """Wait for the work, and let signal handlers run now and then, because another thread may receive the signal."""
        while not self.done:
            self.end.acquire(timeout=_LISTENING)

    def taken(self) -> Callable[[], None] | None:
        """Return the work to the first caller."""
        try:
            return self._work.pop()
        except IndexError:
            return None


class _Helper(threading.Thread):
    """A thread that waits for jobs; two locks a job take a third of the time of a pool of futures."""

    def __init__(self) -> None:
        super().__init__(name="semiring", daemon=True)
        self._wake = _taken_lock()
        self._job: _Job | None = None
        self.start()

    def begin(self, job: _Job) -> None:
        """Begin a job that raises nothing."""
        self._job = job
        self._wake.release()

    def run(self) -> None:
        """Run one job after the other, without references to finished ones."""
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            work = job.taken()
            if work is not None:
                work()
                del work
            _idle.append(self)
            job.done = True  # before the release: a signal may make the caller forget that it has the lock
            job.end.release()


def _taken_lock() -> Any:
    made = threading.Lock()
    made.acquire()
    return made


_idle: deque[_Helper] = deque()  # last in, first out, for warm caches


def _idle_helper(most: int) -> _Helper | None:
    """Return a helper without a job; None if `most` helpers exist and all are busy, so that the caller does with fewer."""
    global _helpers
    try:
        return _idle.pop()
    except IndexError:
        with _lock:
            if _helpers >= most:
                return None
            made = _Helper()
            _helpers += 1
            return made


def _forget() -> None:
    """Reset the helpers: a forked child has none of the parent's threads."""
    global _helpers
    _helpers = 0
    _idle.clear()


forks.in_children(_forget)


_LARGEST = 8 << 20  # the most bytes of a reused piece; a product with more takes so long that an allocation does not matter
_MOST = 256  # the most kept pieces, one for each simultaneous worker


class Scratch(NamedTuple):
    """A piece of memory: size in bytes, address, and the owning array."""

    size: int
    address: int
    owner: np.ndarray[Any, Any]

    def arrays(self, parts: Sequence[tuple[int, np.dtype[Any]]]) -> list[np.ndarray[Any, Any]]:
        """Carve arrays out of the piece, each of a count and a dtype, aligned to cache lines."""
        found, start = [], self.address - address(self.owner)
        for count, dtype in parts:
            found.append(np.ndarray(count, dtype, self.owner, start))
            start += -(-count * dtype.itemsize // CACHE_LINE) * CACHE_LINE
        return found


# Last in, first out, for warm caches; append and pop are atomic.
_free: deque[Scratch] = deque(maxlen=_MOST)


def take_scratch(size: int) -> Scratch:
    """Return at least `size` bytes with arbitrary content."""
    if size > _LARGEST:
        return new_scratch(size)
    try:
        scratch = _free.pop()
    except IndexError:
        return new_scratch(size)
    return scratch if scratch.size >= size else new_scratch(size)


def new_scratch(size: int) -> Scratch:
    """Allocate memory that begins on a cache line and need not be returned."""
    owner = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = address(owner)
    return Scratch(size, start + -start % CACHE_LINE, owner)


def return_scratch(scratch: Scratch) -> None:
    """Keep a piece for the next owner."""
    if scratch.size <= _LARGEST:
        _free.append(scratch)
