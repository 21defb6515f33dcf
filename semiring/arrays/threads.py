"""Threads of the CPU engine, and the scratch memory that their workers keep from call to call.

`run` spreads independent tasks over threads; the kernels release the GIL while they run. Scratch belongs to whoever takes it alone, also
where the handler of a signal computes in the middle of another product.

Python runs the handlers of signals in the main thread, between two of its instructions. So the main thread gives long machine code to
another thread, and waits. When a handler raises, as the one of Ctrl-C does, the main thread sets a word that the machine code looks at.
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
"""Nanoseconds from which on the main thread gives machine code to another thread, at the price of about 30,000 nanoseconds."""

_LISTENING = 0.05
"""Seconds that the main thread waits at a time."""

_never = np.zeros(1, np.int64)
NEVER = address(_never)
"""The address of a word that is always 0, for machine code that is not stopped."""


class _Stopped(BaseException):
    """Ends the task of a helper whose machine code was stopped; the caller raises something else."""


class _Stop(threading.local):
    """The word that stops the machine code of a thread: the caller of `run` and its helpers have the same word."""

    word: np.ndarray[Any, Any] | None = None


_stop = _Stop()


class Threaded:
    """Whoever runs on as many threads as were asked for, or else on all cores, which are counted where there is work for several."""

    requested: int | None

    @property
    def threads(self) -> int:
        """How many."""
        return thread_count(self.requested)


def thread_count(threads: int | None = None) -> int:
    """`threads`, else ``SEMIRING_NUM_THREADS``, else the cores this process may use."""
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
    """Refuse what is no number of threads, also where nothing would come to count them; None stands for the default.

    Raises
    ------
    SemiringError
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1):
        raise SemiringError(f"threads is {described(threads)}; it must be a whole number from 1, or None for the default")


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(work: Callable[[Task, int], None], tasks: Sequence[Task], threads: int) -> None:
    """``work(task, slot)`` for every task; slot < threads tells which worker runs it. The caller is worker 0.

    Where the caller is interrupted, the machine code of all workers stops.
    """
    threads = min(threads, len(tasks))
    if threads <= 1:
        for task in tasks:
            work(task, 0)
        return
    queue, errors, jobs = deque(tasks), list[BaseException](), list[_Job]()  # an iterator gives one task twice where Python has no GIL
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
        queue.clear()  # after an error, as when the user interrupts, nothing else is begun
        _finish(jobs, stop)  # also after an error: they write to what the caller owns
    if errors:
        raise errors.pop()  # which no frame has any more


def stoppable(code: Callable[[int, int], None], words: int) -> None:
    """Run machine code with the addresses of its arguments and of a word that stops the code; signals are heard in the main thread."""
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
    except BaseException:  # of the handler of a signal
        stop[0] = 1
        _finish([job], stop)
        raise


def _finish(jobs: Sequence[_Job], stop: np.ndarray[Any, Any]) -> None:
    """Take back jobs that no helper has begun, and wait for the others; what is raised meanwhile, by handlers of signals, stops them."""
    raised: BaseException | None = None
    for job in jobs:
        waiting = not job.taken()  # else another program keeps the helper from its core
        while waiting:
            try:
                job.wait()
                waiting = False
            except BaseException as error:
                stop[0], raised = 1, error
    if raised is not None:
        raise raised


class _Job:
    """What a helper does once, unless whoever asked for it has taken it back first."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = deque([work])
        self.end, self.done = _taken_lock(), False

    def wait(self) -> None:
        """Wait until the work is done, and let handlers of signals run now and then: a signal may have come to another thread."""
        while not self.done:
            self.end.acquire(timeout=_LISTENING)

    def taken(self) -> Callable[[], None] | None:
        """The work, for the first who asks."""
        try:
            return self._work.pop()
        except IndexError:
            return None


class _Helper(threading.Thread):
    """A thread that waits for jobs. Two locks a job wake it and its caller, for which a pool of futures takes three times as long."""

    def __init__(self) -> None:
        super().__init__(name="semiring", daemon=True)
        self._wake = _taken_lock()
        self._job: _Job | None = None
        self.start()

    def begin(self, job: _Job) -> None:
        """Begin a job, which raises nothing."""
        self._job = job
        self._wake.release()

    def run(self) -> None:
        """Whatever comes, one job after the other, of which nothing is kept."""
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            work = job.taken()
            if work is not None:
                work()
                del work
            _idle.append(self)
            job.done = True  # before the caller wakes, whom a signal may make forget that it has the lock
            job.end.release()


def _taken_lock() -> Any:
    """A lock for whoever waits until another thread releases it."""
    made = threading.Lock()
    made.acquire()
    return made


_idle: deque[_Helper] = deque()  # the last one first, whose caches are warm


def _idle_helper(most: int) -> _Helper | None:
    """A helper without a job; None where there are `most`, who all have one: then their callers do with fewer."""
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
    """A forked child has none of the parent's threads."""
    global _helpers
    _helpers = 0
    _idle.clear()


forks.in_children(_forget)


_LARGEST = 8 << 20
"""Bytes of what is kept at most: the product that needs more takes so long that new memory does not count."""

_MOST = 256
"""Pieces that are kept at most; there are as many as workers that have run at once."""


class Scratch(NamedTuple):
    """A piece of memory: its bytes, where it begins, and the array that owns it."""

    size: int
    address: int
    owner: np.ndarray[Any, Any]

    def arrays(self, parts: Sequence[tuple[int, np.dtype[Any]]]) -> list[np.ndarray[Any, Any]]:
        """Arrays of so many elements of a dtype in it, which begin on cache lines."""
        found, start = [], self.address - address(self.owner)
        for count, dtype in parts:
            found.append(self.owner[start : start + count * dtype.itemsize].view(dtype))
            start += -(-count * dtype.itemsize // CACHE_LINE) * CACHE_LINE
        return found


# The last one first, which a cache may still have. Taking and giving back are atomic.
_free: deque[Scratch] = deque(maxlen=_MOST)


def take_scratch(size: int) -> Scratch:
    """At least `size` bytes, with anything in them."""
    if size > _LARGEST:
        return new_scratch(size)
    try:
        scratch = _free.pop()
    except IndexError:
        return new_scratch(size)
    return scratch if scratch.size >= size else new_scratch(size)


def new_scratch(size: int) -> Scratch:
    """Memory that nobody has to return, which begins on a cache line."""
    owner = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = address(owner)
    return Scratch(size, start + -start % CACHE_LINE, owner)


def return_scratch(scratch: Scratch) -> None:
    """Keep it for whoever needs some next."""
    if scratch.size <= _LARGEST:
        _free.append(scratch)
