"""A file that one process at a time has open."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

__all__ = ["locked"]


def locked(path: Path) -> IO[Any] | None:
    """The open file, until it is closed or the process ends; None if another one has it."""
    file = open(path, "ab")  # noqa: SIM115  # the caller closes it
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except (ImportError, OSError):  # Windows, and file systems without locks: two processes at once are left to the caller
        pass
    return file
