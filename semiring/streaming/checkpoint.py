"""The checkpoint of a closure whose matrix is on disk: a journal of what is changed there, so that what was cut short can be done again.

What a `Checkpoint` keeps, and why that is enough, is in its notes. Where a folder is opened again, it first tells whether input, records
and result are still what they were, and then brings block rows to where the rounds go on from.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import CheckpointError
from semiring.kernels.limits import ValueStatistics
from semiring.streaming.folder import TEMPORARY, CheckpointFolder
from semiring.streaming.storage import FileRows, Matrix, RowStorage, rows_of

__all__ = ["Checkpoint"]

Array = np.ndarray[Any, Any]

_RECORD = re.compile(r"row(\d+)-round(\d+)")


class Checkpoint(CheckpointFolder):
    """A `Journal` in a folder, and the matrix that is worked on, in files.

    Whenever the process is killed, the same call goes on, and gives the same bits. Nothing waits for the disk: what a process has
    written survives it, but not the machine.

    Parameters
    ----------
    folder, given, semiring
        See `CheckpointFolder`, as for all others.
    overwrite : bool
        Work in the files of the input, if it is in files and the elements lie there at multiples of their size.

    Attributes
    ----------
    values, via : tuple of numpy.memmap, and numpy.memmap or None
        Where the result will be.
    rounds : list of int
        How many rounds each block row was through.

    Notes
    -----
    Before anything of block row I changes in the round of K, a record is there of A_IK after phase 3, which with A_K* is all that phase 4
    depends on; as ⊕ is idempotent and each construction matrix is written before its values, phase 4 can be done again on whatever is
    there, and gives what it gave. Phases 1 to 3 could not: rounded sums may improve once more. So the next row panel is recorded as a
    whole; and so are elements of several components, which can be half written, and the first update of an overwritten input, whose
    construction matrix is not there yet. Then the record itself is the result. A record is marked when its block row is written; the file
    serves again when all block rows are through the round. Of a matrix that is worked on, the last row panel must be as it was recorded.
    """

    kept = "a journal"

    def __init__(
        self, folder: str | os.PathLike[str], given: tuple[RowStorage, ...], semiring: Semiring, *, overwrite: bool = False, **how: Any
    ) -> None:
        files = tuple(g for g in given if isinstance(g, FileRows))
        self._files = files if overwrite and len(files) == len(given) and all(f.by_elements for f in files) else ()
        self._writing = threading.Lock()
        self._spares: defaultdict[int, list[Path]] = defaultdict(list)
        self._keys = set[tuple[int, int]]()
        self._begun: dict[tuple[int, int], Record] = {}
        super().__init__(folder, given, semiring, **how, overwritten=[f.place for f in self._files] or None)

    def _open(self) -> None:
        self._in_turn(self._open_files)
        self._keys = self._gathered(self._keys)[0]
        with self._together():
            self._require_same(self._keys)
        self.rounds = self._resume(self._keys)

    def _open_files(self) -> None:
        """The files of the work, which the first rank makes, and what is recorded there, as the first rank finds it."""
        if self._first:
            self._keys = self._record_keys()
        self.values, self.via = self._arrays(begun=bool(self._keys) or self._state.round > 0)
        rows: tuple[RowStorage, ...] = self._files or tuple(map(rows_of, self.values))
        self.matrix = Matrix(self._given, rows, None if self.via is None else rows_of(self.via))

    def _arrays(self, suffix: str = "", *, begun: bool) -> tuple[tuple[Any, ...], Any]:
        if not self._files:
            return super()._arrays(suffix, begun=begun)
        via = self._file("via.npy", np.dtype(np.int32), begun) if self._paths else None
        return tuple(f.array for f in self._files), via

    def begin(self, side: int, statistics: tuple[ValueStatistics, ...]) -> None:
        """Settle what stays the same when another process goes on."""
        super().begin(side, statistics)
        self.rounds = [0] * len(self.rows)

    # The `Journal`.

    def record(self, i: int, k: int) -> Record:
        """The record of block row i in round k: A_IK, or all of the row."""
        whole = i == k or len(self._given) > 1 or (k == 0 and bool(self._files))
        columns = slice(0, self._n) if whole else self.rows[k]
        entry = sum(g.dtype.itemsize for g in self._given) + (np.dtype(np.int32).itemsize if self._paths else 0)
        size = Record.size_of((self.rows[i].stop - self.rows[i].start) * (columns.stop - columns.start), entry)
        return Record(self.folder / f"row{i}-round{k}", columns, whole, size, self._spares[size])

    def begun(self, i: int, k: int) -> Record | None:
        """The record of block row i after phase 3 of round k, if its update was begun before."""
        return self._begun.get((i, k))

    def advance(self, i: int, rounds: int) -> None:
        """Block row i has been through so many rounds."""
        if i != rounds - 1:
            self.record(i, rounds - 1).finish()

    def complete(self, rounds: int) -> None:
        """All block rows have been through so many rounds: their records are not needed when the state says so."""
        with self._writing:
            before = self._state.round
            if rounds > before:
                self._state.round = rounds
                if self._first:
                    self._state.write()
                for i, k in itertools.product(self.own, range(before, rounds)):
                    record = self.record(i, k)
                    if record.whole and i != k:
                        record.path.unlink(missing_ok=True)
                    elif record.path.exists():
                        record.spares.append(record.path)
                if self.finished and self._first:
                    self._record_keys()

    def tell(self, k: int) -> tuple[int, int]:
        """How many rounds the state says that all block rows are through."""
        return self._state.round, 0

    def told(self, least: int, numbers: Array) -> None:
        """What is done everywhere the first rank writes down; after that nobody needs what the rounds before have recorded."""
        done = least if self._first else int(numbers[0, 0])
        if done < len(self.rows):
            self.complete(done)

    # Whether the input, the matrix that is worked on and the result are what they were.

    def _refused(self, why: str) -> CheckpointError:
        lost = " (its input was to be overwritten: bring that back first)" if self._files else ""
        return CheckpointError(f"{super()._refused(why)}{lost}")

    def _require_same(self, keys: set[tuple[int, int]]) -> None:
        """Refuse another input, and a finished result that is not what it was.

        An input that is overwritten is the matrix that is worked on: its rows are what they were until they are begun.
        """
        every = list(self.own)
        begun = {i for i, _ in keys} if self._state.round == 0 else set(every)
        if self._files and begun:
            unbegun = [i for i in every if i not in begun]
            if self._state.entries and (changed := self._changed(self._given, unbegun, self._state.entries)):
                raise self._refused(f"{changed} of its input have been changed since it was begun")
        else:
            self._require_input(every)
        self._require_result()

    def _require_panels(self, keys: set[tuple[int, int]]) -> None:
        """Refuse a matrix in which a row panel is not what was recorded of it: it was written before another block row was begun with it.

        The last one is given another form afterwards.
        """
        for k in {k for _, k in keys if k < len(self.rows) - 1 and k in self.own}:
            used, updated = any(i != k and r == k for i, r in keys), any(i == k and r > k for i, r in keys)
            if used and not updated:
                for matrix, some, recorded in self._recorded(self.record(k, k), self.rows[k]):
                    found = np.empty_like(recorded)
                    matrix.read(some, found)
                    if found.tobytes() != recorded.tobytes():
                        raise self._refused(f"row {some.start} of the matrix that is worked on has been changed")

    # Files of the matrix that is worked on, records, and how far each block row is.

    def _record_keys(self) -> set[tuple[int, int]]:
        """The block row and the round of each record; what was half written, or should have been deleted, is deleted."""
        keys = set()
        for path in self.folder.iterdir():
            named = _RECORD.fullmatch(path.name)
            key = (int(named[1]), int(named[2])) if named else None
            if path.suffix == TEMPORARY or (key and key[1] < self._state.round):
                path.unlink(missing_ok=True)  # another rank may be faster
            elif key:
                keys.add(key)
        return keys

    def _resume(self, keys: set[tuple[int, int]]) -> list[int]:
        """How many rounds each block row is through; those that are recorded as a whole are copied from there."""
        panels = {(k, k) for _, k in keys} | {(k, k) for k in [self._state.round] if 0 < k < len(self.rows)}
        records = {key: self.record(*key) for key in keys}
        with self._together():
            found = {key for key, record in records.items() if record.is_finished()} if self._first else None
        finished = self._gathered(found)[0]
        with self._together():
            if missing := panels - keys:
                raise self._refused(f"{self.record(*min(missing)).path.name} is missing")
            for (i, k), record in records.items():
                if i in self.own and (i == k or (i, k) not in finished):
                    try:
                        record.check()
                    except CheckpointError as error:
                        raise self._refused(str(error)) from None
            self._require_panels(keys)
        rounds = [self._state.round] * len(self.rows)
        for i, k in sorted(keys):  # so that the last round of each block row comes last
            rounds[i] = k + 1
        with self._together():
            for i, after in enumerate(rounds):
                key = i, after - 1
                if key not in records or key in finished:
                    continue
                if not records[key].whole:
                    self._begun[key] = records[key]
                    rounds[i] = after - 1
                elif i in self.own:
                    self._redo(records[key], self.rows[i])
                    self.advance(i, after)
        return rounds

    def _redo(self, record: Record, rows: slice) -> None:
        """Copy a block row that is recorded as a whole to where it belongs."""
        for matrix, some, recorded in self._recorded(record, rows):
            matrix.write(some, recorded)

    def _recorded(self, record: Record, rows: slice) -> Iterator[tuple[RowStorage, slice, Any]]:
        """The rows of a block row that is recorded as a whole, of each matrix."""
        with record.reading() as stream:
            for matrix in self.matrix.all:
                for start in range(rows.start, rows.stop):
                    row = np.empty((1, self._n), matrix.dtype)
                    stream.read(slice(start, start + 1), row)
                    yield matrix, slice(start, start + 1), row


_PIECE = 1 << 20
"""Bytes that are written or read at a time."""

_TRAILER = 4
"""Bytes of the CRC-32 at the end of a record."""


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

    @contextmanager
    def writing(self) -> Iterator[Stream]:
        """Takes arrays, one after the other. The record is there as a whole when they are all written, or not at all."""
        temporary = self.path.with_name(self.path.name + TEMPORARY)
        with suppress(IndexError):
            os.replace(self.spares.pop(), temporary)
        with open(temporary, "r+b" if temporary.exists() else "wb") as file:
            stream = Stream(file)
            yield stream
            file.write(stream.crc.to_bytes(_TRAILER, "little"))
        os.replace(temporary, self.path)

    @contextmanager
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
