"""Compiled kernels on disk.

The cache is an optimisation only: a folder that cannot be read or written, or a damaged file, means a compilation, never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from semiring.algebra import forks

__all__ = ["compiled", "folder"]

_DIGEST = 32
"""Bytes of the digest before the code in a file."""

_turns = [forks.lock() for _ in range(16)]
"""Held while a code is read or compiled, so that one thread compiles it and the others read it; codes by their digest."""


def compiled(identity: str, suffix: str, compile_now: Callable[[], bytes]) -> bytes:
    """The code for `identity`, which is everything that it depends on: from the folder, else compiled now and kept there."""
    digest = hashlib.sha256(identity.encode()).digest()
    name = digest.hex()[:40] + suffix
    with _turns[digest[0] % len(_turns)]:  # several GPUs need the same kernels at the same time
        code = _read(name)
        if code is None:
            code = compile_now()
            _write(name, code)
    return code


def folder() -> Path:
    """Where compiled code is kept: ``SEMIRING_CACHE_DIR``, or the platform's place for caches."""
    chosen = os.environ.get("SEMIRING_CACHE_DIR")
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


def _read(name: str) -> bytes | None:
    """What was written under `name`; None where there is nothing, or nothing whole."""
    try:
        data = (folder() / name).read_bytes()
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None


def _write(name: str, code: bytes) -> None:
    """Keep `code` under `name`, whole or not at all."""
    import tempfile

    path = folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
