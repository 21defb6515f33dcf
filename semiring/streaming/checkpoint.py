"""Checkpoints: the folder from which a closure by block rows goes on after the process that computed it has ended, in whatever way.

What a `Checkpoint` keeps, and why that is enough, is in its notes. It is a journal while the rounds run. Where a folder is opened again, it
first tells whether input, records and result are still what they were, and then brings block rows to where the rounds go on from.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import CheckpointError
from semiring.kernels.limits import ValueStatistics
from semiring.mpi.ranks import Ranks
from semiring.streaming.identity import digests, identity_of, lock_file
from semiring.streaming.journal import STATE, TEMPORARY, Record, State
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import FileRows, Matrix, Rows, rows_of

__all__ = ["Checkpoint", "folder_of", "side_in"]

_FORMAT = 2
_LOCK = "lock"
_RECORD = re.compile(r"row(\d+)-round(\d+)")


def folder_of(checkpoint: Any) -> Path:
    """The folder that a caller names.

    Raises
    ------
    CheckpointError
        Where it is no path, or the empty one, which would be the current folder.
    """
    named = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise CheckpointError(f"checkpoint is {checkpoint!r}; pass the path of a folder to keep the work in, a string or a pathlib.Path")
    return Path(named)


def side_in(checkpoint: Any) -> int | None:
    """The rows of a block row of the closure that was begun in a folder; None where there is none, or no state that can be read."""
    try:
        state = State.read(folder_of(checkpoint))
    except ValueError:
        return None
    return None if state is None else state.side


class Checkpoint:
    """A `Journal` in a folder, and the matrix that is worked on.

    Whenever the process is killed, the same call goes on, and gives the same bits. Nothing waits for the disk: what a process has
    written survives it, but not the machine.

    Parameters
    ----------
    folder : path
        A new or an empty one, or one with a checkpoint of this closure.
    given : tuple of Rows
        The input, one for each component.
    semiring : Semiring
    reflexive, paths : bool
    device : str
        What computes: "cpu", or "cuda:0" and so on. Integers have another form on a GPU while the rounds run.
    overwrite : bool
        Work in the files of the input, if it is in files and the elements lie there at multiples of their size.
    block : int, optional
        The rows of a block row that the caller asks for; those of the folder if there are some.
    threads : int, optional
        That read the input and the result for their digests.
    ranks : Ranks, optional
        The processes that work on it together; all of them see the folder. Each writes its own block rows and their records, and the first
        one the state.
    own : callable, optional
        The block rows of this rank, of so many.

    Attributes
    ----------
    matrix : Matrix
    values, via : tuple of numpy.memmap, and numpy.memmap or None
        Where the result will be.
    rows : tuple of slice
        The block rows.
    rounds : list of int
        How many rounds each of them was through.

    Raises
    ------
    CheckpointError
        Where the folder has other files, the checkpoint of another closure, a damaged one, or one that another process works on.

    Notes
    -----
    ``state.json`` says what the closure is, and how many rounds all block rows are through. Before anything of block row I changes in
    the round of K, a record is there of A_IK after phase 3, which with A_K* is all that phase 4 depends on; as ⊕ is idempotent and each
    construction matrix is written before its values, phase 4 can be done again on whatever is there, and gives what it gave. Phases
    1 to 3 could not: rounded sums may improve once more. So the next row panel is recorded as a whole; and so are elements of several
    components, which can be half written, and the first update of an overwritten input, whose construction matrix is not there yet.
    Then the record itself is the result. A record is marked when its block row is written; the file serves again when all block rows
    are through the round.

    A digest of each block row of the input, and in the end of the result, tells whether it is still the same, to the last bit. Of a
    matrix that is worked on, the last row panel must be as it was recorded.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        given: tuple[Rows, ...],
        semiring: Semiring,
        *,
        reflexive: bool,
        paths: bool,
        device: str = "cpu",
        overwrite: bool = False,
        block: int | None = None,
        threads: int | None = None,
        ranks: Ranks | None = None,
        own: Callable[[int], Collection[int]] = range,
    ) -> None:
        self.folder = folder_of(folder)
        self._given, self._n, self._threads = given, given[0].shape[0], threads
        self._ranks, self._own_of, self._first = ranks, own, ranks is None or ranks.rank == 0
        self._overwritten = overwrite and all(isinstance(g, FileRows) and g.by_elements for g in given)
        closure: dict[str, Any] = {
            "format": _FORMAT,
            **identity_of(given, semiring, reflexive=reflexive, paths=paths, device=device),
            "overwritten": [g.place for g in self._files()] if self._overwritten else None,
        }
        self._entry = sum(g.dtype.itemsize for g in given) + (np.dtype(np.int32).itemsize if paths else 0)
        self._writing = threading.Lock()
        self._spares: defaultdict[int, list[Path]] = defaultdict(list)
        self._lock: IO[Any] | None = None
        try:
            self._in_turn(lambda: self._settle(closure))
            with self._together():
                if block is not None and self.side not in (None, min(block, self._n)):
                    raise self._state.another(f"block: {self.side} there, {block} here")
            self.rows = block_rows(self._n, self.side or self._n)
            self._keys = set[tuple[int, int]]()
            self._in_turn(lambda: self._open(paths))
            self._keys = self._gathered(self._keys)[0]
            with self._together():
                self._require_same(self._keys)
            self._begun: dict[tuple[int, int], Record] = {}
            self.rounds = self._resume(self._keys)
        except BaseException:
            self.close()
            raise

    # Several ranks.

    @property
    def own(self) -> Collection[int]:
        """The block rows of this rank."""
        return self._own_of(len(self.rows))

    def _together(self) -> AbstractContextManager[None]:
        """What all ranks do, or each of them raises what one has raised."""
        return nullcontext() if self._ranks is None else self._ranks.together()

    def _in_turn(self, work: Callable[[], None]) -> None:
        """The first rank does something before the others do it too."""
        for first in (True, False) if self._ranks is not None else (True,):
            with self._together():
                if self._first == first:
                    work()

    def _gathered(self, value: Any) -> list[Any]:
        """What each rank says."""
        return [value] if self._ranks is None else self._ranks.allgather(value)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process go on."""
        if self._lock is not None:
            self._lock.close()

    def begin(self, side: int, statistics: tuple[ValueStatistics, ...]) -> None:
        """Settle what stays the same when another process goes on.

        Parameters
        ----------
        side : int
            Rows of a block row: another cut could round floats in another way.
        statistics : tuple of ValueStatistics
            Of the input, which may be overwritten when they are asked for again.
        """
        self.rows = block_rows(self._n, side)
        self._state.side, self._state.found, self._state.entries = side, {"seen": statistics}, self._digests_of_all(self._given)
        self._write_state()
        self.rounds = [0] * len(self.rows)

    def seal(self) -> None:
        """The result will not change any more: what takes its place later, such as another input in the same file, is refused."""
        self._state.result = self._digests_of_all(self.matrix.all)
        self._write_state()

    def _write_state(self) -> None:
        with self._together():
            if self._first:
                self._state.write()

    @property
    def side(self) -> int | None:
        """Rows of a block row; None where nothing was begun."""
        return self._state.side

    @property
    def statistics(self) -> tuple[ValueStatistics, ...]:
        """The value statistics of the input, from when it was begun."""
        return tuple(ValueStatistics(None if finite is None else tuple(finite), *kinds) for finite, *kinds in self._state.found["seen"])

    # The `Journal`.

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return self._state.round == len(self.rows)

    @property
    def round(self) -> int:
        """How many rounds all block rows are known to be through."""
        return self._state.round

    def record(self, i: int, k: int) -> Record:
        """The record of block row i in round k: A_IK, or all of the row."""
        whole = i == k or len(self._given) > 1 or (k == 0 and self._overwritten)
        columns = slice(0, self._n) if whole else self.rows[k]
        size = Record.size_of((self.rows[i].stop - self.rows[i].start) * (columns.stop - columns.start), self._entry)
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

    def describe(self) -> str:
        """How to go on after an interruption."""
        done = f"{self._state.round} of {len(self.rows)} rounds are done"
        return f"{done}, and {self.folder} has what is needed: the same call goes on from there"

    # The folder.

    def _settle(self, closure: dict[str, Any]) -> None:
        """Take the folder, and the state in it, if it is this closure's; a new one if there is none."""
        if self._first:
            self._occupy()
        try:
            state = State.read(self.folder)
        except ValueError as error:
            raise self._refused(str(error)) from None
        if state is not None:
            state.require(closure)
            self._state = state
            return
        strangers = sorted({p.name for p in self.folder.iterdir()} - {_LOCK, STATE + TEMPORARY})
        if strangers:
            raise CheckpointError(f"{self.folder} has {strangers[0]!r} in it and no checkpoint; use an empty folder, or a new one")
        self._state = State(self.folder, closure)
        self._state.write()

    def _occupy(self) -> None:
        """Make the folder, and lock it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CheckpointError(f"{self.folder} is a file, or would lie in one; name another folder") from None
        self._lock = lock_file(self.folder / _LOCK)
        if self._lock is None:
            raise CheckpointError(f"another process is working on the checkpoint in {self.folder}; wait for it, or end it")

    def _open(self, paths: bool) -> None:
        """The files of the work, which the first rank makes, and what is recorded there, as the first rank finds it."""
        if self._first:
            self._keys = self._record_keys()
        self.values, self.via, self.matrix = self._work_matrix(paths, begun=bool(self._keys) or self._state.round > 0)

    def _refused(self, why: str) -> CheckpointError:
        lost = " (its input was to be overwritten: bring that back first)" if self._overwritten else ""
        return CheckpointError(f"the checkpoint in {self.folder} cannot be used: {why}; delete the folder to begin again{lost}")

    # Whether the input, the matrix that is worked on and the result are what they were.

    def _require_same(self, keys: set[tuple[int, int]]) -> None:
        """Refuse another input, and a finished result that is not what it was.

        An input that is overwritten is the matrix that is worked on: its rows are what they were until they are begun.
        """
        state, every = self._state, list(self.own)
        begun = {i for i, _ in keys} if state.round == 0 else set(every)
        own = [i for i in every if not self._overwritten or i not in begun] if state.entries else []
        if changed := self._changed(self._given, own, state.entries):
            if begun and self._overwritten:
                raise self._refused(f"{changed} of its input have been changed since it was begun")
            raise state.another(f"entries: {changed} differ")
        if state.result is not None and (changed := self._changed(self.matrix.all, every, state.result)):
            raise self._refused(f"{changed} of its result have been changed since it was finished")

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

    def _digests(self, matrices: Sequence[Rows], numbers: Iterable[int]) -> list[str]:
        """The digests of block rows."""
        return digests(matrices, [self.rows[i] for i in numbers], self._threads)

    def _digests_of_all(self, matrices: Sequence[Rows]) -> list[str]:
        """The digests of all block rows, of which each rank reads its own."""
        found = dict[int, str]()
        with self._together():
            found = dict(zip(self.own, self._digests(matrices, self.own), strict=True))
        every = {i: digest for part in self._gathered(found) for i, digest in part.items()}
        return [every[i] for i in range(len(self.rows))]

    def _changed(self, matrices: Sequence[Rows], numbers: Sequence[int], expected: list[str]) -> str:
        """The first block row of some whose digest is not the one expected; empty where there is none."""
        found = zip(numbers, self._digests(matrices, numbers), strict=True)
        changed = next((self.rows[i] for i, digest in found if digest != expected[i]), None)
        return "" if changed is None else f"rows {changed.start} to {changed.stop - 1}"

    # Files of the matrix that is worked on, records, and how far each block row is.

    def _work_matrix(self, paths: bool, *, begun: bool) -> tuple[tuple[Any, ...], Any, Matrix]:
        """The files of the result; made if nothing was `begun`."""
        square = (self._n, self._n)
        if self._overwritten:
            values = tuple(g.array for g in self._files())
            rows = self._given
        else:
            names = ["values.npy"] if len(self._given) == 1 else [f"values{c}.npy" for c in range(len(self._given))]
            values = tuple(self._file(name, square, g.dtype, begun) for name, g in zip(names, self._given, strict=True))
            rows = tuple(map(rows_of, values))
        via = self._file("via.npy", square, np.dtype(np.int32), begun) if paths else None
        return values, via, Matrix(self._given, rows, None if via is None else rows_of(via))

    def _files(self) -> tuple[FileRows, ...]:
        return tuple(g for g in self._given if isinstance(g, FileRows))

    def _file(self, name: str, shape: tuple[int, int], dtype: np.dtype[Any], begun: bool) -> Any:
        path = self.folder / name
        if not path.exists():
            if begun:
                raise self._refused(f"{name} is missing")
            temporary = path.with_name(name + TEMPORARY)
            np.lib.format.open_memmap(temporary, "w+", dtype, shape)
            os.replace(temporary, path)
        try:
            array = np.load(path, mmap_mode="r")
        except (ValueError, EOFError):  # NumPy's words advise to trust it
            raise self._refused(f"{name} is damaged") from None
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise self._refused(f"{name} is {array.shape} of {array.dtype}, and not {shape} of {dtype}")
        return np.load(path, mmap_mode="r+")  # which would have made a file that is too short longer

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
        finished = self._gathered({key for key, record in records.items() if record.is_finished()} if self._first else None)[0]
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

    def _recorded(self, record: Record, rows: slice) -> Iterator[tuple[Rows, slice, Any]]:
        """The rows of a block row that is recorded as a whole, of each matrix."""
        with record.reading() as stream:
            for matrix in self.matrix.all:
                for start in range(rows.start, rows.stop):
                    row = np.empty((1, self._n), matrix.dtype)
                    stream.read(slice(start, start + 1), row)
                    yield matrix, slice(start, start + 1), row
