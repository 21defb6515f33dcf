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

    def writing(self) -> AbstractContextManager[RowAccess]:
        """Takes arrays, one after the other."""
        ...

    def reading(self) -> AbstractContextManager[RowAccess]:
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

    def record(self, i: int, k: int) -> Recorded | None:
        """Nothing is recorded."""
        return None

    def begun(self, i: int, k: int) -> Recorded | None:
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
