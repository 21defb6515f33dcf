"""A cache of compiled kernels on disk.

The cache only saves time. A kernel is compiled again, without an error, if the folder is unreadable or writable by others, or if the
file is damaged or another user's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from semiring.common import forks

__all__ = ["LOADED", "compiled", "folder", "is_trusted", "kept"]

LOADED = 256
"""The most entries of a cache of loaded code; the least recently used is dropped, and its memory freed.

An entry is a pair of semiring and dtypes on the CPU, and a kernel of a semiring on a GPU.
"""

_CHOSEN = "SEMIRING_CACHE_DIR"

_DIGEST = 32
"""Bytes of the digest at the start of a file."""

_ONLY_FILES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags of `os.open`: do not follow links, and do not wait for the writer of a pipe."""

_turns = [forks.lock() for _ in range(256)]
"""Locks by the first byte of the digest: one thread reads or compiles a kernel at a time, and the others read the result."""


def compiled(identity: str, suffix: str, compile_now: Callable[[], bytes]) -> bytes:
    """Return the code for `identity`, which names all that the code depends on; compile and keep the code if the folder has none."""
    digest, name = _place(identity, suffix)
    with _turns[digest[0]]:  # several GPUs need the same kernels at the same time
        code = _read(name, digest)
        if code is None:
            code = compile_now()
            _write(name, digest, code)
    return code


def kept(identity: str, suffix: str) -> bytes | None:
    """Return the code for `identity` from the folder, or None if it was never compiled."""
    digest, name = _place(identity, suffix)
    return _read(name, digest)


def _place(identity: str, suffix: str) -> tuple[bytes, str]:
    digest = hashlib.sha256(identity.encode()).digest()
    return digest, digest.hex()[:40] + suffix


def folder() -> Path:
    """Return the folder of compiled code: ``SEMIRING_CACHE_DIR``, or the platform's folder for caches."""
    if chosen := os.environ.get(_CHOSEN):
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    if base:
        return Path(base) / "semiring"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home: nothing can be kept
        home = Path(os.devnull)
    return home / {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache") / "semiring"


def is_trusted(status: os.stat_result) -> bool:
    """Return True if only this user may write to a file or folder. Windows is not asked: its folder for caches is private."""
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read(name: str, digest: bytes) -> bytes | None:
    """Return the code in a file; None if the file is missing, damaged, not trusted, or belongs to another identity."""
    place = folder()
    try:
        if not is_trusted(place.stat()):
            return None
        with open(place / name, "rb", opener=lambda path, flags: os.open(path, flags | _ONLY_FILES)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not is_trusted(status):
                return None
            data = file.read()
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if _seal(digest, code) == data[:_DIGEST] else None


def _seal(digest: bytes, code: bytes) -> bytes:
    """Return a digest of the code and of its identity's digest."""
    return hashlib.sha256(digest + code).digest()


def _write(name: str, digest: bytes, code: bytes) -> None:
    """Write `code` under `name`, whole or not at all."""
    import tempfile

    try:
        place = _prepared()
        if place is None:
            return
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_seal(digest, code) + code)
        os.replace(temporary, place / name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _prepared() -> Path | None:
    """Return the folder, or None if it is not trusted. A folder of the user's choice keeps its permissions; others are private."""
    place = folder()
    place.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    status = place.stat()
    mine = hasattr(os, "geteuid") and status.st_uid == os.geteuid()
    if mine and not os.environ.get(_CHOSEN) and stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
        place.chmod(stat.S_IRWXU)
        status = place.stat()
    return place if is_trusted(status) else None
