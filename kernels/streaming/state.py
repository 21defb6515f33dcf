"""What a checkpoint's folder says of its closure: which one it is, and how far."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiring.algebra.errors import CheckpointError
from semiring.kernels.streaming.block_rows import block_rows

__all__ = ["STATE", "TEMPORARY", "State"]

STATE, TEMPORARY = "state.json", ".tmp"
"""The file, and what the names of files end in that are not yet what they are going to be."""

_KEPT = ("closure", "side", "entries", "round", "found", "result")
"""What the file has, in the order of the attributes."""


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
    """

    folder: Path
    closure: dict[str, Any]
    side: int | None = None
    entries: list[str] = field(default_factory=list)
    round: int = 0
    found: dict[str, Any] = field(default_factory=dict)
    result: list[str] | None = None

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
            kept = json.loads(text)
            state = cls(folder, dict(kept["closure"]), *(kept[name] for name in _KEPT[1:]))
            side = state.side
            rows = 0 if side is None else len(block_rows(state.closure["n"], side))
            cut = (side is None or side > 0) and 0 <= state.round <= rows == len(state.entries)
            if not (cut and isinstance(state.found, dict) and (state.result is None or len(state.result) == rows)):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{STATE} is damaged") from None
        return state

    def write(self) -> None:
        """Put it in the place of the one before."""
        kept = {name: getattr(self, name) for name in _KEPT}
        temporary = self.folder / (STATE + TEMPORARY)
        temporary.write_text(json.dumps(kept, indent=1))
        os.replace(temporary, self.folder / STATE)

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
