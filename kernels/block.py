"""A block: a view of a matrix over a semiring, as the algorithms see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Block"]


@dataclass(eq=False, slots=True)  # not frozen, which makes a block take four times as long to make
class Block:
    """A view of rows and columns of a matrix, together with its construction matrix where paths are wanted.

    Nobody changes a block; who needs another one makes it.

    Attributes
    ----------
    values : tuple of arrays
        One array of shape (…, m, n) for each component of an element (one, unless the semiring is structured).
    via : int32 array of shape (…, m, n) or None
        The construction matrix: the intermediate vertex of each entry's best path, −1 for none.
    row, column : int
        Global indices of the first row and the first column, so that `via` holds global vertices.
    """

    values: tuple[Any, ...]
    via: Any = None
    row: int = 0
    column: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values[0].shape[-2:]
        return int(m), int(n)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.values[0].shape[:-2])

    def at(self, index: tuple[int, ...] | slice) -> Block:
        """The matrix at an index of the leading axes; with a slice, the matrices of a part of the first one."""
        return replace(self, values=tuple(v[index] for v in self.values), via=None if self.via is None else self.via[index])

    def __getitem__(self, key: tuple[slice, slice]) -> Block:
        """The view ``block[rows, columns]``; both are slices of step 1."""
        (m, n), (rows, columns) = self.shape, key
        top, bottom, _ = rows.indices(m)
        left, right, _ = columns.indices(n)
        view = (..., slice(top, max(top, bottom)), slice(left, max(left, right)))
        return Block(
            tuple(v[view] for v in self.values),
            None if self.via is None else self.via[view],
            self.row + top,
            self.column + left,
        )
