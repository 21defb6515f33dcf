"""A file that one process at a time has open."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

from semiring.algebra import forks

__all__ = ["locked"]

_opening = forks.lock()
_open: WeakSet[IO[Any]] = WeakSet()


def locked(path: Path) -> IO[Any] | None:
    """The open file, until it is closed or the process ends; None if another one has it."""
    with _opening:
        file = open(path, "ab")  # noqa: SIM115  # the caller closes it
        _open.add(file)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except (ImportError, OSError):  # Windows, and file systems without locks: two processes at once are left to the caller
        pass
    return file


def _leave() -> None:
    """A child has the open files too, and would keep them locked when the parent, which works with them, has closed them or ended."""
    for file in list(_open):
        file.close()


forks.in_children(_leave)
