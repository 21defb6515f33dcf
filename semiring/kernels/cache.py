"""Compiled kernels on disk.

The cache is an optimisation only: a folder that cannot be read or written, or to which others can write, and a file that is damaged or
not this user's, means a compilation, never an error.
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
"""Semirings, each in its dtypes, whose code an engine has loaded at most; the ones used least recently go, and their memory with them."""

_DIGEST = 32
"""Bytes of the digest before the code in a file."""

_ONLY_FILES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags to open a file with: not what a link leads to, and without waiting for whoever would write to a pipe."""

_turns = [forks.lock() for _ in range(256)]
"""Held while a code is read or compiled, so that one thread compiles it and the others read it; codes by their digest."""


def compiled(identity: str, suffix: str, compile_now: Callable[[], bytes]) -> bytes:
    """The code for `identity`, which is everything that it depends on: from the folder, else compiled now and kept there."""
    digest, name = _place(identity, suffix)
    with _turns[digest[0]]:  # several GPUs need the same kernels at the same time
        code = _read(name, digest)
        if code is None:
            code = compile_now()
            _write(name, digest, code)
    return code


def kept(identity: str, suffix: str) -> bytes | None:
    """The code for `identity` from the folder; None where it was never compiled."""
    digest, name = _place(identity, suffix)
    return _read(name, digest)


def _place(identity: str, suffix: str) -> tuple[bytes, str]:
    """The digest of an identity, and the name of its file."""
    digest = hashlib.sha256(identity.encode()).digest()
    return digest, digest.hex()[:40] + suffix


def folder() -> Path:
    """Where compiled code is kept: ``SEMIRING_CACHE_DIR``, or the platform's place for caches."""
    chosen = _chosen()
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    if base:
        return Path(base) / "semiring"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home: nothing can be kept there
        home = Path(os.devnull)
    return home / {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache") / "semiring"


def _chosen() -> str | None:
    """The folder that the user has chosen."""
    return os.environ.get("SEMIRING_CACHE_DIR")


def is_trusted(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's, and nobody else may write to it. On Windows, where its place says so, it is not asked."""
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read(name: str, digest: bytes) -> bytes | None:
    """What was written under `name` for an identity with this digest; None where there is nothing, or nothing whole that is trusted."""
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
    """The digest in a file: of the code, and of what it is the code for."""
    return hashlib.sha256(digest + code).digest()


def _write(name: str, digest: bytes, code: bytes) -> None:
    """Keep `code` under `name`, whole or not at all."""
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
    """The folder, which only this user may enter if it was made here; None if it is not trusted.

    One that the user has chosen stays as the user has made it.
    """
    place = folder()
    place.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    status = place.stat()
    if hasattr(os, "geteuid") and not _chosen() and status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
        place.chmod(stat.S_IRWXU)
        status = place.stat()
    return place if is_trusted(status) else None
