"""The folder of a checkpoint: which closure it belongs to, who works on it, and whether its input and result are what they were.

What is kept there while the rounds run, the classes that derive from `CheckpointFolder` say: `semiring.streaming.checkpoint` and
`semiring.streaming.snapshots`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import CheckpointError
from semiring.kernels.limits import ValueStatistics
from semiring.mpi.ranks import Ranks
from semiring.streaming.identity import digests, identity_of, lock_file
from semiring.streaming.journal import STATE, TEMPORARY, State
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import Matrix, Rows

__all__ = ["LOCK", "CheckpointFolder", "folder_of", "state_in"]

_FORMAT = 3
LOCK = "lock"


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


def state_in(checkpoint: Any) -> State | None:
    """How far the closure is that was begun in a folder; None where there is none, or nothing that can be read."""
    try:
        return State.read(folder_of(checkpoint))
    except ValueError:
        return None


class CheckpointFolder:
    """A folder from which a closure by block rows goes on after the processes that computed it have ended, in whatever way.

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
    block : int, optional
        The rows of a block row that the caller asks for; those of the folder if there are some.
    threads : int, optional
        That read the input and the result for their digests.
    ranks : Ranks, optional
        The processes that work on it together; all of them see the folder. Each writes its own block rows, and the first one the state.
    own : callable, optional
        The block rows of this rank, of so many.
    **more : object
        What else has to be the same, of whatever JSON can keep.

    Attributes
    ----------
    rows : tuple of slice
        The block rows.
    matrix : Matrix
        The result, where it will be.

    Raises
    ------
    CheckpointError
        Where the folder has other files, the checkpoint of another closure, a damaged one, or one that another process works on.

    Notes
    -----
    ``state.json`` says what the closure is, and how far it is. A digest of each block row of the input, and in the end of the result, tells
    whether it is still the same, to the last bit.
    """

    kept = ""
    """What is kept while the rounds run."""

    matrix: Matrix

    def __init__(
        self,
        folder: str | os.PathLike[str],
        given: tuple[Rows, ...],
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
        identity = identity_of(given, semiring, reflexive=reflexive, paths=paths, device=device)
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
        """What else there is to open, to check and to bring to where the rounds go on from."""

    def __enter__(self) -> Self:
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

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return self._state.round == len(self.rows)

    def describe(self) -> str:
        """How to go on after an interruption."""
        done = f"{self._state.round} of {len(self.rows)} rounds are done"
        return f"{done}, and {self.folder} has what is needed: the same call goes on from there"

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
        strangers = sorted({p.name for p in self.folder.iterdir()} - {LOCK, STATE + TEMPORARY})
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
        self._lock = lock_file(self.folder / LOCK)
        if self._lock is None:
            raise CheckpointError(f"another process is working on the checkpoint in {self.folder}; wait for it, or end it")

    def _refused(self, why: str) -> CheckpointError:
        return CheckpointError(f"the checkpoint in {self.folder} cannot be used: {why}; delete the folder to begin again")

    def _arrays(self, suffix: str = "", *, begun: bool) -> tuple[tuple[Any, ...], Any]:
        """Files of the components and of the construction matrix, if there is one; made if nothing was `begun`."""
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
        except (ValueError, EOFError):  # NumPy's words advise to trust it
            raise self._refused(f"{name} is damaged") from None
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise self._refused(f"{name} is {array.shape} of {array.dtype}, and not {shape} of {dtype}")
        return np.load(path, mmap_mode="r+")  # which would have made a file that is too short longer

    # Whether the input and the result are what they were.

    def _require_input(self, numbers: Sequence[int]) -> None:
        """Refuse another input, by some of its block rows."""
        if self._state.entries and (changed := self._changed(self._given, numbers, self._state.entries)):
            raise self._state.another(f"entries: {changed} differ")

    def _require_result(self) -> None:
        """Refuse a finished result that is not what it was."""
        if self._state.result is not None and (changed := self._changed(self.matrix.all, list(self.own), self._state.result)):
            raise self._refused(f"{changed} of its result have been changed since it was finished")

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
