"""Which closure a checkpoint belongs to, digests of its input and result, and the lock that one process holds on it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import flat
from semiring.arrays.devices import is_gpu
from semiring.arrays.threads import run, thread_count
from semiring.common import forks
from semiring.streaming.storage import Rows

__all__ = ["digests", "identity_of", "lock_file"]

_AT_ONCE = 1 << 22
"""Bytes that a thread reads at a time."""

_DIGEST = 16
"""Bytes of a digest."""


def identity_of(given: tuple[Rows, ...], semiring: Semiring, *, reflexive: bool, paths: bool, device: str) -> dict[str, Any]:
    """All that has to be the same for another process to go on with a closure, but the entries, in what JSON can keep."""
    dtypes = tuple(g.dtype for g in given)
    clamped = is_gpu(device) and any(d.kind in "iu" for d in dtypes)
    return {
        "n": given[0].shape[0],
        "dtypes": [str(d) for d in dtypes],
        "semiring": semiring.name,
        "operations": _digest(semiring, dtypes),
        "reflexive": reflexive,
        "paths": paths,
        "form of elements": "as on a GPU" if clamped else "their own",
    }


def _digest(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> str:
    """What ⊕ and ⊗ do, and their identities, whatever the semiring is called."""
    meaning = semiring.identities(dtypes), flat((*semiring.program.add, *semiring.program.mul))
    return hashlib.sha256(repr(meaning).encode()).hexdigest()[:16]


def digests(matrices: Sequence[Rows], rows: Sequence[slice], threads: int | None = None) -> list[str]:
    """A digest of every byte of each block row, of all matrices.

    A part of the matrix gives a part of the list, whoever reads it.

    Parameters
    ----------
    matrices : sequence of Rows
        Components, and the construction matrix where it counts.
    rows : sequence of slice
        The block rows.
    threads : int, optional
    """
    found = [""] * len(rows)

    def digest(number: int, worker: int) -> None:
        found[number] = _digest_of(matrices, rows[number])

    run(digest, range(len(rows)), thread_count(threads))
    return found


def _digest_of(matrices: Sequence[Rows], rows: slice) -> str:
    """The digest of one block row, read a few rows at a time."""
    state = hashlib.blake2b(digest_size=_DIGEST)
    for matrix in matrices:
        n = matrix.shape[1]
        step = max(1, _AT_ONCE // (n * matrix.dtype.itemsize))
        entries = np.empty((min(step, rows.stop - rows.start), n), matrix.dtype)
        for start in range(rows.start, rows.stop, step):
            some = slice(start, min(rows.stop, start + step))
            matrix.read(some, entries[: some.stop - some.start])
            state.update(entries[: some.stop - some.start].reshape(-1).view(np.uint8).data)
    return state.hexdigest()


_opening = forks.lock()
_open: WeakSet[IO[Any]] = WeakSet()


def lock_file(path: Path) -> IO[Any] | None:
    """Lock a file for this process: the open file, locked until it is closed or the process ends; None if another process has it."""
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
