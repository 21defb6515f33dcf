"""Safety of forks: no child waits for a lock of a thread that it does not have.

A child is a copy of the process with the one thread that forked. A lock that another thread had would never be released there, so
whoever forks holds all locks of the library meanwhile; and what only the other threads could do or give back, the child forgets.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property", "hold", "importing", "in_children", "lock"]

_PATIENCE = 0.05
"""Seconds that a fork waits for a lock while it has others, for which their next owner may wait."""

_finders: list[Callable[[], Any]] = []
_held: list[Any] = []


def lock() -> threading.RLock:
    """A lock that no child ever finds held by another thread. It is reentrant: the handler of a signal may fork where its thread has it."""
    made = threading.RLock()
    hold(lambda: made)
    return made


def hold(find: Callable[[], Any]) -> None:
    """Hold another reentrant lock at forks too: the one that `find` gives then, if it is not None."""
    _finders.append(find)


importing = lock()
"""Held around imports of engines and of the public names at a first use: a child would wait for ever for the rest of one that another
thread had begun."""


def in_children(forget: Callable[[], None]) -> None:
    """Call `forget` in every child, before anything else uses the library there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _hold_all() -> None:
    """Take every lock, in whatever order others take them: what cannot be had soon is waited for without the others."""
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
    except BaseException:  # as when the user interrupts: Python tells of it, and forks nevertheless
        _release(taken)
        raise


def _release_all() -> None:
    taken = _held.copy()
    _held.clear()  # first: another thread that forks may have the locks as soon as they are released
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
        """As from Python 3.12 on. Before, one lock for all objects of a class is held while a value is computed, and not by who forks."""

        def __get__(self, instance, owner=None):
            if instance is None or self.attrname is None:
                return super().__get__(instance, owner)
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
