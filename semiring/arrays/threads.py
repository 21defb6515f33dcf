"""Threads of the CPU engine, and the scratch memory that their workers keep from call to call.

`run` spreads independent tasks over threads; the kernels release the GIL while they run. Scratch belongs to whoever takes it alone, also
where the handler of a signal computes in the middle of another product.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from semiring.arrays.overlap import address
from semiring.common import forks
from semiring.common.errors import SemiringError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Scratch", "Threaded", "return_scratch", "run", "take_scratch", "thread_count"]

Task = TypeVar("Task")
_pool: ThreadPoolExecutor | None = None
_size = 0
_lock = forks.lock()


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
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise SemiringError(f"threads is {threads!r}; it must be a whole number from 1, or None for the default")
    return int(threads)


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(work: Callable[[Task, int], None], tasks: Sequence[Task], threads: int) -> None:
    """``work(task, slot)`` for every task; slot < threads tells which worker runs it. The caller is worker 0."""
    threads = min(threads, len(tasks))
    if threads <= 1:
        for task in tasks:
            work(task, 0)
        return
    queue = deque(tasks)  # an iterator gives one task twice where Python has no GIL

    def worker(slot: int) -> None:
        while True:
            try:
                task = queue.popleft()
            except IndexError:
                return
            work(task, slot)

    from concurrent.futures import wait  # here, because a small product never needs it

    helpers = [_executor(threads - 1).submit(worker, slot) for slot in range(1, threads)]
    try:
        worker(0)
    finally:
        queue.clear()  # after an error, as when the user interrupts, nothing else is begun
        wait(helpers)  # also then: they write to what the caller owns
        for helper in helpers:
            helper.result()


def _executor(size: int) -> ThreadPoolExecutor:
    """The pool of threads, of at least so many."""
    global _pool, _size
    with _lock:
        from concurrent.futures import ThreadPoolExecutor

        if _pool is None or _size < size:
            _pool, _size = ThreadPoolExecutor(size, thread_name_prefix="semiring"), size
        return _pool


def _forget() -> None:
    """A forked child has none of the parent's threads."""
    global _pool, _size
    _pool, _size = None, 0


forks.in_children(_forget)


_LINE = 64
"""Bytes of a cache line, on which scratch begins."""

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
            start += -(-count * dtype.itemsize // _LINE) * _LINE
        return found


# The last one first, which a cache may still have. Taking and giving back are atomic.
_free: deque[Scratch] = deque(maxlen=_MOST)


def take_scratch(size: int) -> Scratch:
    """At least `size` bytes, with anything in them."""
    if size > _LARGEST:
        return _made(size)
    try:
        scratch = _free.pop()
    except IndexError:
        return _made(size)
    return scratch if scratch.size >= size else _made(size)


def _made(size: int) -> Scratch:
    """New scratch, which begins on a cache line."""
    owner = np.empty(size + _LINE, dtype=np.uint8)
    start = address(owner)
    return Scratch(size, start + -start % _LINE, owner)


def return_scratch(scratch: Scratch) -> None:
    """Keep it for whoever needs some next."""
    if scratch.size <= _LARGEST:
        _free.append(scratch)
