"""The checkpoint of a closure whose matrix is on disk: a write-ahead journal, so that interrupted updates can be repeated.

The notes of `Checkpoint` say what is recorded, and why that is enough. A folder that is opened again is checked first (input, records,
result); then block rows are restored to a state from which rounds can continue.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.pieces import slices
from semiring.common.errors import CheckpointError
from semiring.streaming.folder import TEMPORARY, CheckpointFolder, Recorded
from semiring.streaming.storage import FileRows, Matrix, RowAccess, RowStorage, rows_of

__all__ = ["Checkpoint"]

_RECORD = re.compile(r"row(\d+)-round(\d+)")


class Checkpoint(CheckpointFolder):
    """A `Journal` in a folder, with the matrix in files.

    A process may be killed at any time: the same call continues, and gives the same bits. Nothing waits for the disk, so written data
    survives the process, but not a crash of the machine.

    With `overwrite`, the closure works in the input's own files, if all components are files with elements at multiples of their size.
    `values` and `via` are the files of the result.

    Before block row I changes in round K, a record is written of A_IK after phase 3. With A_K*, this is all that phase 4 depends on.
    Since ⊕ is idempotent, and the construction matrix is written before the values, phase 4 can be repeated on a half-written block
    row, with the same result. Phases 1 to 3 cannot: rounded sums may improve again.

    Some records are whole block rows, and so themselves the result: of the next row panel, and of elements of several components, which
    can be half written. So is the first record of an overwritten input, whose construction matrix is not written yet.

    A record is marked finished when its block row is written, and its file is reused when all block rows have finished the round. On
    reopening, the last row panel in the matrix must equal its record.
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
            self._require_same()
        self.rounds = self._resume()

    def _open_files(self) -> None:
        """Open the files, which the first rank creates, after the first rank has listed the records."""
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

    # The `Journal`.

    def record(self, i: int, k: int) -> Record:
        """Return the record of block row i in round k: A_IK, or the whole row."""
        whole = i == k or len(self._given) > 1 or (k == 0 and bool(self._files))
        columns = slice(0, self._n) if whole else self.rows[k]
        entry = sum(g.dtype.itemsize for g in self._given) + (np.dtype(np.int32).itemsize if self._paths else 0)
        size = (self.rows[i].stop - self.rows[i].start) * (columns.stop - columns.start) * entry + _TRAILER
        return Record(columns, whole, self.folder / f"row{i}-round{k}", size, self._spares[size])

    def begun(self, i: int, k: int) -> Record | None:
        """Return the record of block row i after phase 3 of round k, if its update was begun before."""
        return self._begun.get((i, k))

    def advance(self, i: int, rounds: int) -> None:
        """Mark the record of block row i as finished."""
        if i != rounds - 1:
            self.record(i, rounds - 1).finish()

    def complete(self, rounds: int) -> None:
        """Write the rounds that all block rows have finished to the state; then free the records of these rounds."""
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
        """Return the finished rounds in the state."""
        return self._state.round, 0

    def told(self, least: int, numbers: Array) -> None:
        """Complete rounds that all ranks have finished; other ranks wait until the first rank has written the state."""
        done = least if self._first else int(numbers[0, 0])
        if done < len(self.rows):
            self.complete(done)

    # Checks of the input, the matrix and the result.

    def _refused(self, why: str) -> CheckpointError:
        lost = " (its input was to be overwritten: bring that back first)" if self._files else ""
        return CheckpointError(f"{super()._refused(why)}{lost}")

    def _require_same(self) -> None:
        """Refuse another input, and a changed result. Of an overwritten input, only block rows without a record can be checked."""
        every = list(self.own)
        begun = {i for i, _ in self._keys} if self._state.round == 0 else set(every)
        if self._files and begun:
            unbegun = [i for i in every if i not in begun]
            if self._state.entries and (changed := self._changed(self._given, unbegun, self._state.entries)):
                raise self._refused(f"{changed} of its input have been changed since it was begun")
        else:
            self._require_input(every)
        self._require_result()

    def _require_panels(self) -> None:
        """Refuse a matrix whose row panel differs from its record, once another block row was begun with this panel.

        The last row panel is not checked: it is converted afterwards.
        """
        for k in {k for _, k in self._keys if k < len(self.rows) - 1 and k in self.own}:
            used, updated = any(i != k and r == k for i, r in self._keys), any(i == k and r > k for i, r in self._keys)
            if used and not updated:
                for matrix, some, recorded in self._recorded(self.record(k, k), self.rows[k]):
                    found = np.empty_like(recorded)
                    matrix.read(some, found)
                    if found.tobytes() != recorded.tobytes():
                        raise self._refused(f"row {some.start} of the matrix that is worked on has been changed")

    # Records.

    def _record_keys(self) -> set[tuple[int, int]]:
        """Return the block row and round of each record; delete temporary and outdated files."""
        keys = set()
        for path in self.folder.iterdir():
            named = _RECORD.fullmatch(path.name)
            key = (int(named[1]), int(named[2])) if named else None
            if path.suffix == TEMPORARY or (key and key[1] < self._state.round):
                path.unlink(missing_ok=True)  # another rank may be faster
            elif key:
                keys.add(key)
        return keys

    def _resume(self) -> list[int]:
        """Return the rounds that each block row has finished; restore block rows from whole records."""
        keys = self._keys
        panels = {(k, k) for _, k in keys} | {(k, k) for k in [self._state.round] if 0 < k < len(self.rows)}
        records = {key: self.record(*key) for key in keys}
        with self._together():
            found = {key for key, record in records.items() if record.is_finished()} if self._first else None
        finished = self._gathered(found)[0]
        with self._together():
            if missing := panels - keys:
                raise self._refused(f"{self.record(*min(missing)).path.name} is missing")
            for (i, k), record in records.items():
                if i in self.own and (i == k or (i, k) not in finished) and not record.is_intact():
                    raise self._refused(f"{record.path} is damaged: its size or checksum is wrong")
            self._require_panels()
        rounds = [self._state.round] * len(self.rows)
        for i, k in sorted(keys):  # the last round of each block row comes last
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
                    for matrix, some, recorded in self._recorded(records[key], self.rows[i]):
                        matrix.write(some, recorded)
                    self.advance(i, after)
        return rounds

    def _recorded(self, record: Record, rows: slice) -> Iterator[tuple[RowStorage, slice, Any]]:
        """Yield single rows of a whole record, matrix by matrix."""
        with record.reading() as streams:
            for matrix, stream in zip(self.matrix.all, streams, strict=False):
                for start in range(rows.start, rows.stop):
                    row = np.empty((1, self._n), matrix.dtype)
                    stream.read(slice(start, start + 1), row)
                    yield matrix, slice(start, start + 1), row


_PIECE = 1 << 20
"""Bytes that are written or read at a time."""

_TRAILER = 4
"""Bytes of the CRC-32 at the end of a record."""


@dataclass(frozen=True)
class Record(Recorded):
    """A file with some columns of a block row: of each component, of the construction matrix, and their CRC-32.

    Truncated to 0 bytes, or by the CRC-32, the file marks a block row that is stored.
    """

    path: Path
    size: int  # bytes of the file
    spares: list[Path]  # unused files of this size: overwriting one is many times faster than writing a new file

    @contextmanager
    def writing(self) -> Iterator[Iterable[RowAccess]]:
        """Write arrays in order; the record appears when all are written, or not at all."""
        temporary = self.path.with_name(self.path.name + TEMPORARY)
        with suppress(IndexError):
            os.replace(self.spares.pop(), temporary)
        with open(temporary, "r+b" if temporary.exists() else "wb") as file:
            stream = Stream(file)
            yield itertools.repeat(stream)
            file.write(stream.crc.to_bytes(_TRAILER, "little"))
        os.replace(temporary, self.path)

    @contextmanager
    def reading(self) -> Iterator[Iterable[RowAccess]]:
        """Read the arrays in the same order."""
        with open(self.path, "rb") as file:
            yield itertools.repeat(Stream(file))

    def finish(self) -> None:
        """Mark the block row as stored."""
        os.truncate(self.path, 0 if self.whole else self.size - _TRAILER)

    def is_finished(self) -> bool:
        """Return True if the block row is marked as stored."""
        return self.path.stat().st_size in (0, self.size - _TRAILER)

    def is_intact(self) -> bool:
        """Return True if the file has the bytes that were written."""
        crc, left = 0, self.size - _TRAILER
        with open(self.path, "rb") as file:
            while left > 0 and (data := file.read(min(left, _PIECE))):
                crc, left = zlib.crc32(data, crc), left - len(data)
            return not left and file.read(_TRAILER + 1) == crc.to_bytes(_TRAILER, "little")


class Stream:
    """Consecutive arrays in a binary file, written and read in pieces; `crc` is the CRC-32 of the written bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.crc = 0

    def read(self, rows: slice, out: Array) -> None:
        """Read the next array."""
        for part in _pieces(out):
            part[...] = np.frombuffer(self._file.read(part.nbytes), part.dtype).reshape(part.shape)

    def write(self, rows: slice, array: Array) -> None:
        """Append an array."""
        for part in _pieces(array):
            data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
            self.crc = zlib.crc32(data, self.crc)
            self._file.write(data)


def _pieces(array: Array) -> Iterator[Array]:
    return (array[some] for some in slices(len(array), array.shape[1] * array.itemsize, _PIECE))
