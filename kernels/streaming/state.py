"""What a checkpoint's folder says of its closure: which one it is, and how far."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiring.algebra.errors import CheckpointError
from semiring.kernels.streaming.plan import block_rows

__all__ = ["STATE", "TEMPORARY", "State"]

STATE, TEMPORARY = "state.json", ".tmp"
"""The file, and what the names of files end in that are not yet what they are going to be."""


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
    round : int
        How many rounds all block rows are through.
    found : dict
        What is known of the input.
    result : object
        The fingerprint of what will not change any more; None where it may.
    """

    folder: Path
    closure: dict[str, Any]
    side: int | None = None
    round: int = 0
    found: dict[str, Any] = field(default_factory=dict)
    result: Any = None

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
            state = cls(folder, dict(kept["closure"]), kept["side"], kept["round"], dict(kept["found"]), kept["result"])
            side, rounds = state.side, state.round
            if not (rounds == 0 if side is None else side > 0 and 0 <= rounds <= len(block_rows(state.closure["n"], side))):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{STATE} is damaged") from None
        return state

    def write(self) -> None:
        """Put it in the place of the one before."""
        kept = {"closure": self.closure, "side": self.side, "round": self.round, "found": self.found, "result": self.result}
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
            differ = "; ".join(f"{key}: {self.closure.get(key)!r} there, {closure[key]!r} here" for key in keys)
            raise CheckpointError(
                f"{self.folder} is the checkpoint of another closure ({differ}); use another folder for this one, or delete that one"
            )
