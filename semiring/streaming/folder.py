"""The write-ahead journal of a closure, and the folder that holds one: identity of the closure, state, lock, digests of input and result.

Before a block row changes, a `Recorded` keeps what its update needs to be done again. `semiring.streaming.checkpoint` and
`semiring.streaming.snapshots` derive classes that say what the folder keeps between rounds.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Self
from weakref import WeakSet

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import flat
from semiring.arrays.conversion import Array
from semiring.arrays.devices import is_gpu
from semiring.arrays.threads import run, thread_count
from semiring.common import forks
from semiring.common.errors import CheckpointError
from semiring.kernels.limits import ValueStatistics
from semiring.mpi.ranks import Ranks
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import Matrix, RowAccess, RowStorage

__all__ = ["LOCK", "TEMPORARY", "CheckpointFolder", "Journal", "Recorded", "digests", "folder_of", "state_in"]

_FORMAT = 3
LOCK, STATE, TEMPORARY = "lock", "state.json", ".tmp"
"""Names of files, and the ending of files that are not complete yet."""


@dataclass(frozen=True)
class Recorded(ABC):
    """A kept part of a block row: some or all columns of its components, then of the construction matrix."""

    columns: slice
    whole: bool  # all columns

    @abstractmethod
    def writing(self) -> AbstractContextManager[Iterable[RowAccess]]:
        """Return a context with a place for each array, to which the arrays are written in order."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Iterable[RowAccess]]:
        """Return a context with the places, from which the arrays are read in the same order."""


class Journal:
    """The rounds of each block row, and records from which another process repeats interrupted updates.

    This journal keeps nothing, for closures of `count` block rows without a checkpoint. `rounds` are the rounds that each block row had
    finished when the journal was opened.
    """

    def __init__(self, count: int) -> None:
        self.rounds = [0] * count

    @property
    def finished(self) -> bool:
        """Return True if no work is left."""
        return False

    def record(self, i: int, k: int) -> Recorded | None:
        """Return the record of block row i, or of a part, from which the update of round k can be repeated."""
        return None

    def begun(self, i: int, k: int) -> Recorded | None:
        """Return the record of block row i if k was its first unfinished round when the journal was opened.

        The record has some columns if phase 3 of round k was done, and all columns if the round had not begun.
        """
        return None

    def advance(self, i: int, rounds: int) -> None:
        """Note that block row i has finished `rounds` rounds and is stored."""

    def complete(self, rounds: int) -> None:
        """Note that all block rows have finished `rounds` rounds."""

    def tell(self, k: int) -> tuple[int, int]:
        """Return two numbers for the other ranks, while row panel k is on its way."""
        return 0, 0

    def told(self, least: int, numbers: Array) -> None:
        """Take the numbers of all ranks, of shape (ranks, 2), and the rounds that all block rows have finished."""

    def describe(self) -> str:
        """Tell the user how to continue after an interruption."""
        return "no work was kept; with checkpoint=folder, the same call would go on from here"


@dataclass
class State:
    """The state of a closure by block rows, in a file that is replaced atomically."""

    folder: Path
    closure: dict[str, Any]  # identity of the closure in JSON types; a process that continues must have the same
    side: int | None = None  # rows of a block row; None before `begin`
    entries: list[str] = field(default_factory=list)  # a digest of each block row of the original input
    round: int = 0  # rounds that all block rows have finished
    found: dict[str, Any] = field(default_factory=dict)  # the input's value statistics
    result: list[str] | None = None  # a digest of each block row of the final result; None before `seal`
    turn: int | None = None  # the set of files (0 or 1) with the last snapshot or the result; None before the first snapshot

    @classmethod
    def read(cls, folder: Path) -> State | None:
        """Return the state in a folder, or None; raise `ValueError` if the file is damaged."""
        try:
            text = (folder / STATE).read_bytes()
        except FileNotFoundError:
            return None
        try:
            content = json.loads(text)
            closure, *others = (content[f.name] for f in fields(cls)[1:])
            state = cls(folder, dict(closure), *others)
            side = state.side
            rows = 0 if side is None else len(block_rows(state.closure["n"], side))
            cut = (side is None or side > 0) and 0 <= state.round <= rows == len(state.entries)
            if not (cut and isinstance(state.found, dict) and (state.result is None or len(state.result) == rows)):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{STATE} is damaged") from None
        return state

    def write(self, *, durable: bool = False) -> None:
        """Replace the file; with `durable`, wait until it is on the disk."""
        content = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
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
        """Raise `CheckpointError`, naming the differences, unless the folder belongs to this closure."""
        if self.closure != closure:
            keys = [key for key in closure if self.closure.get(key) != closure[key]]
            raise self.another("; ".join(f"{key}: {self.closure.get(key)!r} there, {closure[key]!r} here" for key in keys))

    def another(self, differ: str) -> CheckpointError:
        """Return the error for another closure's folder."""
        return CheckpointError(
            f"{self.folder} is the checkpoint of another closure ({differ}); use another folder for this one, or delete that one"
        )


def folder_of(checkpoint: Any) -> Path:
    """Return the caller's folder; raise `CheckpointError` if it is no path, or the empty one (the current folder)."""
    named = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise CheckpointError(f"checkpoint is {checkpoint!r}; pass the path of a folder to keep the work in, a string or a pathlib.Path")
    return Path(named)


def state_in(checkpoint: Any) -> State | None:
    """Return the state in a folder, or None if the folder has no readable one."""
    try:
        return State.read(folder_of(checkpoint))
    except ValueError:
        return None


class CheckpointFolder(Journal):
    """A folder from which a closure by block rows continues after its processes have ended, in whatever way.

    ``state.json`` identifies the closure and counts its rounds. Digests of all block rows of the input, and at the end of the result,
    detect any changed bit. `rows` are the block rows, and `matrix` is the storage of the result.

    The folder is new, empty or has a checkpoint of this closure; otherwise, and if another process works on it, CheckpointError is raised.
    The default `block` is the checkpoint's side of block rows. Integers have another form on a GPU, so the `device` counts. `ranks` work
    together: each writes its own block rows, and the first the state. `own` returns the block rows of this rank, given their total number,
    and `more` are further parts of the closure's identity, in JSON types.
    """

    kept = ""
    """The kind of data that is kept between rounds."""

    matrix: Matrix

    def __init__(
        self,
        folder: str | os.PathLike[str],
        given: tuple[RowStorage, ...],
        semiring: Semiring,
        *,
        reflexive: bool,
        paths: bool,
        device: str = "cpu",
        block: int | None = None,
        threads: int | None = None,
        ranks: Ranks | None = None,
        own: Callable[[int], Collection[int]] = range,
        **more: Any,
    ) -> None:
        self.folder = folder_of(folder)
        self._given, self._n, self._threads, self._paths = given, given[0].shape[0], threads, paths
        self._ranks, self._own_of, self._first = ranks, own, ranks is None or ranks.rank == 0
        identity = _identity(given, semiring, reflexive=reflexive, paths=paths, device=device)
        closure = {"format": _FORMAT, **identity, **more, "kept": self.kept}
        self._lock: IO[Any] | None = None
        try:
            self._in_turn(lambda: self._settle(closure))
            with self._together():
                if block is not None and self.side not in (None, min(block, self._n)):
                    raise self._state.another(f"block: {self.side} there, {block} here")
            self.rows = block_rows(self._n, self.side or self._n)
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open and check further files, and restore block rows to a state from which rounds can continue."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder for other processes."""
        if self._lock is not None:
            self._lock.close()

    def begin(self, side: int, statistics: tuple[ValueStatistics, ...]) -> None:
        """Record what another process needs: the side of block rows, which determines rounding, and the original input's statistics."""
        self.rows = block_rows(self._n, side)
        self._state.side, self._state.found, self._state.entries = side, {"seen": statistics}, self._digests_of_all(self._given)
        self._write_state()
        self.rounds = [0] * len(self.rows)

    def seal(self) -> None:
        """Record digests of the final result, so that a later change of its files is detected."""
        self._state.result = self._digests_of_all(self.matrix.all)
        self._write_state()

    def _write_state(self) -> None:
        with self._together():
            if self._first:
                self._state.write()

    @property
    def side(self) -> int | None:
        """Return the rows of a block row, or None before `begin`."""
        return self._state.side

    @property
    def statistics(self) -> tuple[ValueStatistics, ...]:
        """Return the value statistics of the original input."""
        return tuple(ValueStatistics(None if finite is None else tuple(finite), *kinds) for finite, *kinds in self._state.found["seen"])

    @property
    def finished(self) -> bool:
        """Return True if the result is complete."""
        return self._state.round == len(self.rows)

    def describe(self) -> str:
        """Tell the user how to continue after an interruption."""
        return f"{self._state.round} of {len(self.rows)} rounds are done and kept in {self.folder}: the same call goes on from there"

    # Several ranks.

    @property
    def own(self) -> Collection[int]:
        """Return the block rows of this rank."""
        return self._own_of(len(self.rows))

    def _together(self) -> AbstractContextManager[None]:
        """Return a context in which all ranks raise an error of any rank."""
        return nullcontext() if self._ranks is None else self._ranks.together()

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Call `work` on the first rank, then on the others."""
        for first in (True, False) if self._ranks is not None else (True,):
            with self._together():
                if self._first == first:
                    work()

    def _gathered(self, value: Any) -> list[Any]:
        return [value] if self._ranks is None else self._ranks.allgather(value)

    # The folder.

    def _settle(self, closure: dict[str, Any]) -> None:
        """Lock the folder; read this closure's state, or write a new one."""
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
        strangers = sorted({p.name for p in self.folder.iterdir()} - {LOCK, STATE + TEMPORARY})
        if strangers:
            raise CheckpointError(f"{self.folder} has {strangers[0]!r} in it and no checkpoint; use an empty folder, or a new one")
        self._state = State(self.folder, closure)
        self._state.write()

    def _occupy(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CheckpointError(f"{self.folder} is a file, or would lie in one; name another folder") from None
        self._lock = lock_file(self.folder / LOCK)
        if self._lock is None:
            raise CheckpointError(f"another process is working on the checkpoint in {self.folder}; wait for it, or end it")

    def _refused(self, why: str) -> CheckpointError:
        return CheckpointError(f"the checkpoint in {self.folder} cannot be used: {why}; delete the folder to begin again")

    def _arrays(self, suffix: str = "", *, begun: bool) -> tuple[tuple[Any, ...], Any]:
        """Open the files of the components and the construction matrix; create missing ones unless work has `begun`."""
        names = ["values"] if len(self._given) == 1 else [f"values{c}" for c in range(len(self._given))]
        values = tuple(self._file(f"{name}{suffix}.npy", g.dtype, begun) for name, g in zip(names, self._given, strict=True))
        return values, self._file(f"via{suffix}.npy", np.dtype(np.int32), begun) if self._paths else None

    def _file(self, name: str, dtype: np.dtype[Any], begun: bool) -> Any:
        path, shape = self.folder / name, (self._n, self._n)
        if not path.exists():
            if begun:
                raise self._refused(f"{name} is missing")
            temporary = path.with_name(name + TEMPORARY)
            np.lib.format.open_memmap(temporary, "w+", dtype, shape)
            os.replace(temporary, path)
        try:
            array = np.load(path, mmap_mode="r")
        except (ValueError, EOFError):  # NumPy's message advises allow_pickle
            raise self._refused(f"{name} is damaged") from None
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise self._refused(f"{name} is {array.shape} of {array.dtype}, and not {shape} of {dtype}")
        return np.load(path, mmap_mode="r+")  # not earlier: this would extend a truncated file

    # Digests of the input and the result.

    def _require_input(self, numbers: Sequence[int]) -> None:
        """Refuse an input whose block rows `numbers` differ from the recorded digests."""
        if self._state.entries and (changed := self._changed(self._given, numbers, self._state.entries)):
            raise self._state.another(f"entries: {changed} differ")

    def _require_result(self) -> None:
        if self._state.result is not None and (changed := self._changed(self.matrix.all, list(self.own), self._state.result)):
            raise self._refused(f"{changed} of its result have been changed since it was finished")

    def _digests_of_all(self, matrices: Sequence[RowStorage]) -> list[str]:
        found = dict[int, str]()
        with self._together():
            found = dict(zip(self.own, digests(matrices, [self.rows[i] for i in self.own], self._threads), strict=True))
        every = {i: digest for part in self._gathered(found) for i, digest in part.items()}
        return [every[i] for i in range(len(self.rows))]

    def _changed(self, matrices: Sequence[RowStorage], numbers: Sequence[int], expected: list[str]) -> str:
        """Name the first block row with an unexpected digest; return "" if none has."""
        found = zip(numbers, digests(matrices, [self.rows[i] for i in numbers], self._threads), strict=True)
        changed = next((self.rows[i] for i, digest in found if digest != expected[i]), None)
        return "" if changed is None else f"rows {changed.start} to {changed.stop - 1}"


_AT_ONCE = 1 << 22
"""Bytes that a thread reads at a time."""


def _identity(given: tuple[RowStorage, ...], semiring: Semiring, *, reflexive: bool, paths: bool, device: str) -> dict[str, Any]:
    """Return what another process must have in common, except the entries, in JSON types."""
    dtypes = tuple(g.dtype for g in given)
    clamped = is_gpu(device) and any(d.kind in "iu" for d in dtypes)
    operations = semiring.identities(dtypes), flat((*semiring.program.add, *semiring.program.mul))  # the name does not count
    return {
        "n": given[0].shape[0],
        "dtypes": [str(d) for d in dtypes],
        "semiring": semiring.name,
        "operations": hashlib.sha256(repr(operations).encode()).hexdigest()[:16],
        "reflexive": reflexive,
        "paths": paths,
        "form of elements": "as on a GPU" if clamped else "their own",
    }


def digests(matrices: Sequence[RowStorage], rows: Sequence[slice], threads: int | None = None) -> list[str]:
    """Return a digest of each block row in `rows`, over the bytes of all matrices."""
    found = [""] * len(rows)

    def digest(number: int, worker: int) -> None:
        block, state = rows[number], hashlib.blake2b(digest_size=16)
        for matrix in matrices:
            n = matrix.shape[1]
            step = max(1, _AT_ONCE // (n * matrix.dtype.itemsize))
            entries = np.empty((min(step, block.stop - block.start), n), matrix.dtype)
            for start in range(block.start, block.stop, step):
                some = slice(start, min(block.stop, start + step))
                matrix.read(some, entries[: some.stop - some.start])
                state.update(entries[: some.stop - some.start].reshape(-1).view(np.uint8).data)
        found[number] = state.hexdigest()

    run(digest, range(len(rows)), thread_count(threads))
    return found


_opening = forks.lock()
_open: WeakSet[IO[Any]] = WeakSet()


def lock_file(path: Path) -> IO[Any] | None:
    """Open and lock a file until it is closed or the process ends; return None if another process holds the lock."""
    with _opening:
        file = open(path, "ab")  # noqa: SIM115  # the caller closes it
        _open.add(file)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except (ImportError, OSError):  # Windows, and file systems without locks: the caller must not start two processes
        pass
    return file


def _leave() -> None:
    """Close a forked child's copies of locked files, which would stay locked after the parent closes them."""
    for file in list(_open):
        file.close()


forks.in_children(_leave)
