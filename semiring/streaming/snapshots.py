"""The checkpoint of a closure whose matrix is in memory: a snapshot of it now and then, from which other processes go on.

A round changes the whole matrix, which is written to disk in much more time than a round takes. So the matrix stays where it is computed,
and every now and then each block row is also written to a file as it leaves a round, the same round for all of them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.pieces import DISK, slices
from semiring.kernels.limits import ValueStatistics
from semiring.streaming.folder import CheckpointFolder
from semiring.streaming.storage import Matrix, RowStorage, rows_of

__all__ = ["EVERY", "Snapshots"]

Array = np.ndarray[Any, Any]

EVERY, SHARE = 300.0, 10
"""Seconds between the beginnings of two snapshots at least, and how many times as long as one of them takes."""


class Snapshots(CheckpointFolder):
    """A `Journal` of snapshots, which survive the machine.

    Parameters
    ----------
    folder, given, semiring
        See `CheckpointFolder`, as for all others.

    Attributes
    ----------
    values, via : tuple of numpy.memmap, and numpy.memmap or None
        The result, when it is there.

    Notes
    -----
    The snapshot of round S has every block row after that round; and A_S+1*, which is the next row panel by then, after phases 1 and 2. The
    first rank decides on it while row panel S − 1 is on its way, when no rank has begun with the rounds that count. Two sets of files take
    turns: ``state.json`` names one of them when it is on the disk as a whole, and no earlier. So a folder takes the place of two matrices,
    and at most a tenth of the time goes into snapshots, or five minutes of work are lost: whichever is more.
    """

    kept = "snapshots"

    def _open(self) -> None:
        self._changing, self._disk = threading.Lock(), ThreadPoolExecutor(1)
        self._sets: list[Matrix] = []
        self._in_turn(self._open_files)
        with self._together():
            self._require_input(list(self.own))
            if self.finished:
                self._require_result()
        self._from = self._state.turn
        self._begun = self._durable = self._settled = self._state.round - 1
        self._left = set[tuple[int, int]]()
        self._syncing: Future[None] | None = None
        self._begun_at, self._next = 0.0, time.monotonic() + EVERY
        self.rounds = self._rounds()

    def _open_files(self) -> None:
        """The files of both sets, or those of the result."""
        if self.finished:
            self._rename_result()
            self.values, self.via = self._arrays(begun=True)
            self.matrix = self._matrix(self.values, self.via)
        else:
            self._sets = [self._matrix(*self._arrays(f"-{turn}", begun=turn == self._state.turn)) for turn in range(2)]

    def _matrix(self, values: Sequence[Any], via: Any) -> Matrix:
        return Matrix(self._given, tuple(map(rows_of, values)), None if via is None else rows_of(via))

    def _rounds(self) -> list[int]:
        """How many rounds each block row was through in the last snapshot."""
        done = self._state.round
        return [done + (i == done > 0) for i in range(len(self.rows))]

    def begin(self, side: int, statistics: tuple[ValueStatistics, ...]) -> None:
        """Settle what stays the same when another process goes on."""
        super().begin(side, statistics)
        self.rounds = self._rounds()

    def close(self) -> None:
        """Let another process go on."""
        if hasattr(self, "_disk"):
            self._disk.shutdown()
        super().close()

    # The `Journal`.

    def record(self, i: int, k: int) -> Snapshot | None:
        """Where block row i goes after round k, or where the row panel is kept that was there at the beginning."""
        if (i, k) in self._left:
            return Snapshot(self._sets[self._target].all, self.rows[i])
        return self.begun(i, k + 1) if i == k else None

    def begun(self, i: int, k: int) -> Snapshot | None:
        """Block row i before round k, if it is the first round that was left for it at the beginning."""
        return Snapshot(self._sets[self._from].all, self.rows[i]) if self._from is not None and self.rounds[i] == k else None

    def advance(self, i: int, rounds: int) -> None:
        """Block row i has been through so many rounds."""
        with self._changing:
            if (i, rounds - 1) in self._left:
                self._left.remove((i, rounds - 1))
                if not self._left:
                    self._syncing = self._disk.submit(self._synchronize, self._begun)

    def tell(self, k: int) -> tuple[int, int]:
        """The last round whose snapshot is on the disk as far as this rank goes, and the last one that is wanted."""
        if self._syncing is not None and self._syncing.done():
            self._syncing.result()  # a disk that is full
        if self._first and self._settled == self._begun and time.monotonic() >= self._next and k + 2 < len(self.rows):
            self._begun_at = time.monotonic()
            return self._durable, k + 1
        return self._durable, self._begun

    def told(self, least: int, numbers: Array) -> None:
        """What all ranks have told."""
        durable, wanted = int(numbers[:, 0].min()), int(numbers[0, 1])
        if durable > self._settled:
            self._state.turn, self._settled, self._state.round = self._target, durable, durable + 1
            if self._first:
                self._state.write(durable=True)
                self._next = self._begun_at + max(EVERY, SHARE * (time.monotonic() - self._begun_at))
        if wanted > self._begun:
            with self._changing:
                self._begun, self._left = wanted, {(i, wanted + (i == wanted + 1)) for i in self.own}
                if not self._left:
                    self._durable = wanted

    def complete(self, rounds: int) -> None:
        """Nothing to write down: the result follows."""

    @property
    def _target(self) -> int:
        """The set of files that the next snapshot goes to."""
        return 0 if self._state.turn is None else 1 - self._state.turn

    def _synchronize(self, round: int) -> None:
        """Wait until a snapshot of this rank is on the disk."""
        for rows in self._sets[self._target].all:
            _to_disk(rows)
        self._durable = round

    # The result.

    def keep_result(self, values: Sequence[RowStorage], via: RowStorage | None) -> None:
        """Write the result, of which each rank has its own rows, in the place of the older snapshot."""
        target = self._target
        self.matrix = self._sets[target]
        with self._together():
            for source, file in zip((*values, *(() if via is None else (via,))), self.matrix.all, strict=True):
                for own in (self.rows[i] for i in self.own):
                    for piece in slices(own.stop - own.start, self._n * source.dtype.itemsize, DISK):
                        some = slice(own.start + piece.start, own.start + piece.stop)
                        part = np.empty((some.stop - some.start, self._n), source.dtype)
                        source.read(some, part)
                        file.write(some, part)
                _to_disk(file)
        self._state.turn, self._state.round = target, len(self.rows)
        self.seal()
        self._in_turn(self._open_files)

    def _rename_result(self) -> None:
        """Give the files of the result their names, and delete the others."""
        if self._first:
            for path in self.folder.glob(f"*-{self._state.turn}.npy"):
                os.replace(path, path.with_name(path.name.replace(f"-{self._state.turn}.npy", ".npy")))
            for path in self.folder.glob("*-[01].npy"):
                path.unlink()


@dataclass(frozen=True)
class Snapshot:
    """A block row in a set of files, written and read as the `Record` of a journal is.

    Attributes
    ----------
    files : tuple of RowStorage
        One for each component, and one for the construction matrix.
    rows : slice
    """

    files: tuple[RowStorage, ...]
    rows: slice
    whole = True

    @property
    def columns(self) -> slice:
        """All of them."""
        return slice(0, self.files[0].shape[1])

    @contextlib.contextmanager
    def writing(self) -> Iterator[_Turns]:
        """Takes arrays, one after the other, each by some rows at a time."""
        yield _Turns(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[_Turns]:
        """Gives the arrays back, in the same order."""
        yield _Turns(self)


class _Turns:
    """The files of a snapshot, one after the other."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._files, self._last = iter(snapshot.files), snapshot.rows.stop
        self._file: RowStorage | None = None

    def _current(self, rows: slice) -> RowStorage:
        """The file of the array whose turn it is; with its last rows the turn is over."""
        file = self._file or next(self._files)
        self._file = None if rows.stop == self._last else file
        return file

    def read(self, rows: slice, out: Array) -> None:
        """Copy some rows to an array of their shape."""
        self._current(rows).read(rows, out)

    def write(self, rows: slice, array: Array) -> None:
        """Copy an array to some rows."""
        self._current(rows).write(rows, array)


def _to_disk(rows: RowStorage) -> None:
    """Wait until what has been written to a file is on the disk."""
    array = getattr(rows, "array", None)
    if isinstance(array, np.memmap):
        with open(str(array.filename), "r+b") as file:
            os.fsync(file.fileno())
