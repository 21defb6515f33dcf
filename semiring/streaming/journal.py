"""The interface of a closure's write-ahead journal, from which another process can go on.

Before a block row changes, a `Recorded` keeps what its update needs to be done again. `semiring.streaming.checkpoint` and
`semiring.streaming.snapshots` implement `Journal` on disk; `NoJournal` serves closures without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from semiring.streaming.storage import RowAccess

__all__ = ["Journal", "NoJournal", "Recorded"]

Array = np.ndarray[Any, Any]


class Journal(Protocol):
    """The rounds of each block row, and records from which an interrupted update can be repeated."""

    @property
    def rounds(self) -> Sequence[int]:
        """Return the rounds that each block row had finished when the journal was opened."""
        ...

    @property
    def finished(self) -> bool:
        """Return True if no work is left."""
        ...

    def record(self, i: int, k: int) -> Recorded | None:
        """Return the record of block row i, or of a part, from which the update of round k can be repeated."""

    def begun(self, i: int, k: int) -> Recorded | None:
        """Return the record of block row i if k was its first unfinished round when the journal was opened.

        The record has some columns if phase 3 of round k was done, and all columns if the round had not begun.
        """

    def advance(self, i: int, rounds: int) -> None:
        """Note that block row i has finished `rounds` rounds and is stored."""

    def complete(self, rounds: int) -> None:
        """Note that all block rows have finished `rounds` rounds."""

    def tell(self, k: int) -> tuple[int, int]:
        """Return two numbers for the other ranks, while row panel k is on its way."""
        ...

    def told(self, least: int, numbers: Array) -> None:
        """Take the numbers of all ranks, of shape (ranks, 2), and the rounds that all block rows have finished."""

    def describe(self) -> str:
        """Tell the user how to continue after an interruption."""
        ...


class Recorded(Protocol):
    """A kept part of a block row: some or all columns of its components, then of the construction matrix."""

    @property
    def columns(self) -> slice:
        """Return the columns."""
        ...

    @property
    def whole(self) -> bool:
        """Return True if all columns are kept."""
        ...

    def writing(self) -> AbstractContextManager[RowAccess]:
        """Return a context for writing the arrays in order."""
        ...

    def reading(self) -> AbstractContextManager[RowAccess]:
        """Return a context for reading the arrays in the same order."""
        ...


class NoJournal:
    """The `Journal` of a closure without a checkpoint: nothing is kept. `count` is the number of block rows."""

    finished = False

    def __init__(self, count: int) -> None:
        self.rounds: Sequence[int] = (0,) * count

    def record(self, i: int, k: int) -> Recorded | None:
        """Return None: nothing is recorded."""
        return None

    def begun(self, i: int, k: int) -> Recorded | None:
        """Return None: every block row begins anew."""
        return None

    def advance(self, i: int, rounds: int) -> None:
        """Do nothing."""

    def complete(self, rounds: int) -> None:
        """Do nothing."""

    def tell(self, k: int) -> tuple[int, int]:
        """Return zeros."""
        return 0, 0

    def told(self, least: int, numbers: Array) -> None:
        """Do nothing."""

    def describe(self) -> str:
        """Tell the user that nothing was kept."""
        return "no work was kept; with checkpoint=folder, the same call would go on from here"
