"""Safety of forks: no child waits for a lock of a thread that exists only in the parent.

A child is a copy of the process with the forking thread alone. A lock of another thread would never be released there, so the forking
thread holds all locks of the library during a fork. The child also forgets work that belongs to other threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property", "hold", "importing", "in_children", "lock"]

_PATIENCE = 0.05  # seconds that a fork waits for one lock while holding others

_finders: list[Callable[[], Any]] = []
_held: list[Any] = []


def lock() -> threading.RLock:
    """Make a lock that is free in every child; reentrant, because a signal handler may fork while its thread holds the lock."""
    made = threading.RLock()
    hold(lambda: made)
    return made


def hold(find: Callable[[], Any]) -> None:
    """Hold another reentrant lock during forks: the result of `find` at that time, unless None."""
    _finders.append(find)


importing = lock()
"""Held around imports of engines and of the public names at first use: a child would wait for ever for an import that another thread had
begun.
"""


def in_children(forget: Callable[[], None]) -> None:
    """Call `forget` in every child, before any other use of the library there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _hold_all() -> None:
    """Take every lock; wait for a busy one without holding others, because other threads take locks in another order."""
    missing: Any = None
    taken: list[Any] = []
    try:
        while True:
            if missing is not None:
                missing.acquire()
                taken.append(missing)
            missing = None
            for each in [found for find in _finders if (found := find()) is not None]:
                if not each.acquire(timeout=_PATIENCE):
                    missing = each
                    break
                taken.append(each)
            if missing is None:
                _held.extend(taken)
                return
            _release(taken)
    except BaseException:  # such as an interrupt: Python reports the error, and forks nevertheless
        _release(taken)
        raise


def _release_all() -> None:
    taken = _held.copy()
    _held.clear()  # before the release, after which another thread may fork
    _release(taken)


def _release(locks: list[Any]) -> None:
    while locks:
        locks.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property  # noqa: TID251  # this is the one place
else:
    import functools

    class cached_property(functools.cached_property):  # noqa: TID251  # this is the one place
        """The version of Python 3.12; an older one holds a lock for all objects of a class, which forks do not take."""

        def __get__(self, instance, owner=None):
            if instance is None or self.attrname is None:
                return super().__get__(instance, owner)
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
