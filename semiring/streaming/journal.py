"""The write-ahead journal of a closure by block rows, from which another process can go on with it.

Before a block row changes, what is needed to do its update again is a `Record`, a file with a checksum. The `State`, which changes as a
whole, says which closure this is and how many rounds are done. A `Journal` has both; `NoJournal` is that of a closure without a checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from semiring.common.errors import CheckpointError
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import RowAccess

__all__ = ["STATE", "TEMPORARY", "Journal", "NoJournal", "Record", "Recorded", "State"]

STATE, TEMPORARY = "state.json", ".tmp"
"""The file, and what the names of files end in that are not yet what they are going to be."""

_KEYS = ("closure", "side", "entries", "round", "found", "result", "turn")
"""The keys of the file, in the order of the attributes."""


@dataclass
class State:
    """The state of a closure by block rows, in a file that changes as a whole.

    Attributes
    ----------
    folder : Path
    closure : dict
        All that has to be the same for another process to go on, of whatever JSON can keep.
    side : int or None
        Rows of a block row; None where nothing was begun.
    entries : list of str
        A digest of each block row of the input, as it was in the beginning.
    round : int
        How many rounds all block rows are through.
    found : dict
        What is known of the input.
    result : list of str or None
        A digest of each block row of what will not change any more; None where it may.
    turn : int or None
        Which of two sets of files has the last snapshot, or the result; None where there is none.
    """

    folder: Path
    closure: dict[str, Any]
    side: int | None = None
    entries: list[str] = field(default_factory=list)
    round: int = 0
    found: dict[str, Any] = field(default_factory=dict)
    result: list[str] | None = None
    turn: int | None = None

    @classmethod
    def read(cls, folder: Path) -> State | None:
        """The state in a folder; None if there is none.

        Raises
        ------
        ValueError
            Where the file is damaged.
        """
        try:
            text = (folder / STATE).read_bytes()
        except FileNotFoundError:
            return None
        try:
            content = json.loads(text)
            state = cls(folder, dict(content["closure"]), *(content[name] for name in _KEYS[1:]))
            side = state.side
            rows = 0 if side is None else len(block_rows(state.closure["n"], side))
            cut = (side is None or side > 0) and 0 <= state.round <= rows == len(state.entries)
            if not (cut and isinstance(state.found, dict) and (state.result is None or len(state.result) == rows)):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{STATE} is damaged") from None
        return state

    def write(self, *, durable: bool = False) -> None:
        """Put it in the place of the one before; a `durable` one is on the disk then."""
        content = {name: getattr(self, name) for name in _KEYS}
        temporary = self.folder / (STATE + TEMPORARY)
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1))
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, self.folder / STATE)
        if durable and hasattr(os, "O_DIRECTORY"):
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def require(self, closure: dict[str, Any]) -> None:
        """Refuse to go on with another closure.

        Raises
        ------
        CheckpointError
            Naming the differences.
        """
        if self.closure != closure:
            keys = [key for key in closure if self.closure.get(key) != closure[key]]
            raise self.another("; ".join(f"{key}: {self.closure.get(key)!r} there, {closure[key]!r} here" for key in keys))

    def another(self, differ: str) -> CheckpointError:
        """The error that says in what another closure differs from this one."""
        return CheckpointError(
            f"{self.folder} is the checkpoint of another closure ({differ}); use another folder for this one, or delete that one"
        )


Array = np.ndarray[Any, Any]

_PIECE = 1 << 20
"""Bytes that are written or read at a time."""

_TRAILER = 4
"""Bytes of the CRC-32 at the end of a record."""


class Journal(Protocol):
    """How far each block row is, and what is needed to do again what was begun."""

    @property
    def rounds(self) -> Sequence[int]:
        """How many rounds each block row was through when the journal was opened."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        ...

    def record(self, i: int, k: int) -> Recorded | None:
        """Where the part of block row i is recorded from which its update in round k can be done again, or all of it."""

    def begun(self, i: int, k: int) -> Recorded | None:
        """The record of block row i in the first round k that was left for it when the journal was opened.

        Of some columns if it was through phase 3 of that round; of the whole row if it was where the round begins.
        """

    def advance(self, i: int, rounds: int) -> None:
        """Block row i has been through so many rounds, and is where it belongs."""

    def complete(self, rounds: int) -> None:
        """All block rows have been through so many rounds."""

    def tell(self, k: int) -> tuple[int, int]:
        """What other ranks have to know while row panel k is on its way."""
        ...

    def told(self, least: int, numbers: Array) -> None:
        """What all ranks have told, an array of shape (ranks, 2), and the rounds that all block rows are through."""

    def describe(self) -> str:
        """How to go on after an interruption."""
        ...


class Recorded(Protocol):
    """Some or all columns of a block row that are kept: the arrays of its components and of the construction matrix, in that order."""

    @property
    def columns(self) -> slice:
        """Which columns."""
        ...

    @property
    def whole(self) -> bool:
        """Whether these are all columns."""
        ...

    def writing(self) -> contextlib.AbstractContextManager[RowAccess]:
        """Takes arrays, one after the other."""
        ...

    def reading(self) -> contextlib.AbstractContextManager[RowAccess]:
        """Gives the arrays back, in the same order."""
        ...


class NoJournal:
    """The `Journal` of a closure without a checkpoint, which has to be done again from its beginning.

    Parameters
    ----------
    count : int
        Block rows.
    """

    finished = False

    def __init__(self, count: int) -> None:
        self.rounds: Sequence[int] = (0,) * count

    def record(self, i: int, k: int) -> Record | None:
        """Nothing is recorded."""
        return None

    def begun(self, i: int, k: int) -> Record | None:
        """Everything begins anew."""
        return None

    def advance(self, i: int, rounds: int) -> None:
        """Nothing to write down."""

    def complete(self, rounds: int) -> None:
        """Nothing to write down."""

    def tell(self, k: int) -> tuple[int, int]:
        """Nothing to know."""
        return 0, 0

    def told(self, least: int, numbers: Array) -> None:
        """Nothing to write down."""

    def describe(self) -> str:
        """Nothing is left of it."""
        return "nothing was kept of what was done; with checkpoint=folder, the same call would go on from here"


@dataclass(frozen=True)
class Record:
    """A file of some columns of a block row: each component's, the construction matrix's, and their CRC-32.

    Without the CRC-32, or empty, it stands for a block row that is where it belongs.

    Attributes
    ----------
    path : pathlib.Path
    columns : slice
    whole : bool
        Whether these are all columns.
    size : int
        Bytes of the file.
    spares : list of pathlib.Path
        Files of that size that nobody needs. To write them once more is many times faster than to write new ones.
    """

    path: Path
    columns: slice
    whole: bool
    size: int
    spares: list[Path]

    @contextlib.contextmanager
    def writing(self) -> Iterator[Stream]:
        """Takes arrays, one after the other. The record is there as a whole when they are all written, or not at all."""
        temporary = self.path.with_name(self.path.name + TEMPORARY)
        with contextlib.suppress(IndexError):
            os.replace(self.spares.pop(), temporary)
        with open(temporary, "r+b" if temporary.exists() else "wb") as file:
            stream = Stream(file)
            yield stream
            file.write(stream.crc.to_bytes(_TRAILER, "little"))
        os.replace(temporary, self.path)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Stream]:
        """Gives the arrays back, in the same order."""
        with open(self.path, "rb") as file:
            yield Stream(file)

    def finish(self) -> None:
        """The block row is where it belongs."""
        os.truncate(self.path, 0 if self.whole else self.size - _TRAILER)

    def is_finished(self) -> bool:
        """Whether the block row is where it belongs."""
        return self.path.stat().st_size in (0, self.size - _TRAILER)

    def check(self) -> None:
        """Refuse a file that is not what was written.

        Raises
        ------
        CheckpointError
        """
        crc, left = 0, self.size - _TRAILER
        with open(self.path, "rb") as file:
            while left > 0 and (data := file.read(min(left, _PIECE))):
                crc, left = zlib.crc32(data, crc), left - len(data)
            if left or file.read(_TRAILER + 1) != crc.to_bytes(_TRAILER, "little"):
                raise CheckpointError(f"{self.path} is damaged: its size or its checksum is not that of what was written")

    @staticmethod
    def size_of(entries: int, entry_bytes: int) -> int:
        """Bytes of a record."""
        return entries * entry_bytes + _TRAILER


class Stream:
    """Arrays one after the other in a file, written and read without a second copy of any.

    Parameters
    ----------
    file : binary file

    Attributes
    ----------
    crc : int
        The CRC-32 of what was written.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.crc = 0

    def read(self, rows: slice, out: Array) -> None:
        """The next of the arrays."""
        for part in _pieces(out):
            whole = part if part.flags.c_contiguous else np.empty(part.shape, part.dtype)
            self._file.readinto(whole.reshape(-1).view(np.uint8).data)
            if whole is not part:
                part[...] = whole

    def write(self, rows: slice, array: Array) -> None:
        """One more array."""
        for part in _pieces(array):
            data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
            self.crc = zlib.crc32(data, self.crc)
            self._file.write(data)


def _pieces(array: Array) -> Iterator[Array]:
    """Some rows of an array at a time."""
    step = max(1, _PIECE // (array.shape[1] * array.itemsize))
    return (array[start : start + step] for start in range(0, len(array), step))
