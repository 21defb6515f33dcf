"""The checkpoint of a closure whose matrix is in memory: occasional snapshots, from which other processes continue.

A round changes the whole matrix, and writing it to disk takes much longer than a round. So the matrix stays in memory, and from time to
time each block row is also written to a file after a round, the same round for all block rows.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.pieces import DISK, slices
from semiring.streaming.folder import CheckpointFolder, Recorded
from semiring.streaming.storage import Matrix, RowAccess, RowStorage, rows_of

__all__ = ["EVERY", "Snapshots"]

EVERY, SHARE = 300.0, 10
"""The least seconds between the starts of two snapshots, and the least multiple of a snapshot's duration."""


class Snapshots(CheckpointFolder):
    """A `Journal` of snapshots, which survive a crash of the machine; `values` and `via` are the files of the complete result.

    The snapshot of round S has every block row after round S, except A_S+1*: the next row panel is already through phases 1 and 2. The
    first rank decides on a snapshot while row panel S − 1 is on its way, before any rank begins these rounds. Two sets of files
    alternate, and ``state.json`` names a set only when all of it is on the disk. So a folder takes the space of two matrices. Snapshots
    start at least five minutes apart, and take at most a tenth of the time. A crash costs the work since the last snapshot.
    """

    kept = "snapshots"

    def _open(self) -> None:
        self._changing, self._disk = threading.Lock(), ThreadPoolExecutor(1)
        self._sets: list[Matrix] = []
        self._in_turn(self._open_files)
        with self._together():
            self._require_input(list(self.own))
            self._require_result()
        self._from = self._state.turn
        self._begun = self._durable = self._settled = self._state.round - 1
        self._left = set[tuple[int, int]]()
        self._syncing: Future[None] | None = None
        self._begun_at, self._next = 0.0, time.monotonic() + EVERY
        done = self._state.round
        self.rounds = [done + (i == done > 0) for i in range(len(self.rows))]  # as in the last snapshot

    def _open_files(self) -> None:
        if self.finished:
            self._rename_result()
            self.values, self.via = self._arrays(begun=True)
            self.matrix = self._matrix(self.values, self.via)
        else:
            self._sets = [self._matrix(*self._arrays(f"-{turn}", begun=turn == self._state.turn)) for turn in range(2)]

    def _matrix(self, values: Sequence[Any], via: Any) -> Matrix:
        return Matrix(self._given, tuple(map(rows_of, values)), None if via is None else rows_of(via))

    def close(self) -> None:
        """Unlock the folder for other processes."""
        if hasattr(self, "_disk"):
            self._disk.shutdown()
        super().close()

    # The `Journal`.

    def record(self, i: int, k: int) -> Snapshot | None:
        """Return the snapshot's place for block row i after round k, or the last snapshot of row panel i = k."""
        if (i, k) in self._left:
            return self._snapshot(self._target)
        return self.begun(i, k + 1) if i == k else None

    def begun(self, i: int, k: int) -> Snapshot | None:
        """Return the last snapshot of block row i, if k was its first unfinished round when the folder was opened."""
        return self._snapshot(self._from) if self._from is not None and self.rounds[i] == k else None

    def _snapshot(self, turn: int) -> Snapshot:
        return Snapshot(slice(0, self._n), True, self._sets[turn].all)

    def advance(self, i: int, rounds: int) -> None:
        """Note that block row i is written; after the last block row, begin to wait for the disk."""
        with self._changing:
            if (i, rounds - 1) in self._left:
                self._left.remove((i, rounds - 1))
                if not self._left:
                    self._syncing = self._disk.submit(self._synchronize, self._begun)

    def tell(self, k: int) -> tuple[int, int]:
        """Return the last round whose snapshot this rank has on the disk, and the round of the last wanted snapshot."""
        if self._syncing is not None and self._syncing.done():
            self._syncing.result()  # raises if the disk is full
        if self._first and self._settled == self._begun and time.monotonic() >= self._next and k + 2 < len(self.rows):
            self._begun_at = time.monotonic()
            return self._durable, k + 1
        return self._durable, self._begun

    def told(self, least: int, numbers: Array) -> None:
        """Name a snapshot in the state when all ranks have it on the disk; begin the snapshot that the first rank wants."""
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

    @property
    def _target(self) -> int:
        """Return the set of files for the next snapshot."""
        return 0 if self._state.turn is None else 1 - self._state.turn

    def _synchronize(self, round: int) -> None:
        for rows in self._sets[self._target].all:
            _to_disk(rows)
        self._durable = round

    # The result.

    def keep_result(self, values: Sequence[RowStorage], via: RowStorage | None) -> None:
        """Overwrite the older snapshot with the result; each rank writes its own rows."""
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
        """Rename the result's files, and delete the other set."""
        if self._first:
            for path in self.folder.glob(f"*-{self._state.turn}.npy"):
                os.replace(path, path.with_name(path.name.replace(f"-{self._state.turn}.npy", ".npy")))
            for path in self.folder.glob("*-[01].npy"):
                path.unlink()


@dataclass(frozen=True)
class Snapshot(Recorded):
    """A set of files for block rows, one for each component and for the construction matrix."""

    files: tuple[RowStorage, ...]

    def writing(self) -> AbstractContextManager[Iterable[RowAccess]]:
        """Write arrays, each to its file."""
        return nullcontext(self.files)

    reading = writing


def _to_disk(rows: RowStorage) -> None:
    """Wait until written rows are on the disk."""
    array = getattr(rows, "array", None)
    if isinstance(array, np.memmap):
        with open(str(array.filename), "r+b") as file:
            os.fsync(file.fileno())
