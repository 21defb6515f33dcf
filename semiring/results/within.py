"""The store of the best paths within a limit; its elements are a `SparseArray`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.results.store import PredecessorTrees

__all__ = ["TreesWithin"]


@dataclass(eq=False)
class TreesWithin(PredecessorTrees):
    """The trees of best paths within a limit: `values` and `tree` are sparse matrices."""

    @property
    def distributed(self) -> bool:
        """False, as for arrays."""
        return False

    @property
    def countable(self) -> bool:
        """True: the stored elements are counted."""
        return True

    def connected(self) -> int:
        """Count the pairs of different vertices within the limit."""
        return sum(len(rows) for rows, _ in self._stored(own=False))

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """Return the rows and columns of the pairs; empty paths do not count."""
        return self._stored(own=not self.reflexive)

    def _stored(self, *, own: bool) -> Iterator[tuple[Array, Array]]:
        matrix: Any = self.values[0]
        rows, columns = matrix.edges.tails, matrix.edges.heads.astype(np.intp)
        sources, targets = self.ends(rows, columns)
        some = slice(None) if own else sources != targets
        yield rows[some], columns[some]
