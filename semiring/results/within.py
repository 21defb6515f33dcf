"""Elements within a limit: `SparseMatrix`, which stores read like an array, and the store of their best paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from semiring.arrays.conversion import Array
from semiring.common.errors import library
from semiring.common.forks import cached_property
from semiring.results.store import PredecessorTrees

__all__ = ["SparseMatrix", "TreesWithin"]


class SparseMatrix:
    """A matrix in compressed rows with ascending columns; entries that are not stored are `zero`. Indices give arrays, as of NumPy."""

    ndim = 2

    def __init__(self, starts: Array, columns: Array, entries: Array, shape: tuple[int, int], zero: Any) -> None:
        self.starts, self.columns, self.entries, self.shape, self.zero = starts, columns, entries, shape, zero
        self.dtype = entries.dtype

    @classmethod
    def of_scipy(cls, array: Any, zero: Any) -> SparseMatrix:
        """Read an array in compressed rows of SciPy."""
        array.sort_indices()
        return cls(array.indptr, array.indices, array.data, array.shape, zero)

    def to_scipy(self) -> Any:
        """Return a sparse array of SciPy, in compressed rows."""
        return library("scipy.sparse", "limit=").csr_array((self.entries, self.columns, self.starts), shape=self.shape)

    def transposed(self) -> SparseMatrix:
        """Return the transpose."""
        return self.of_scipy(self.to_scipy().T.tocsr(), self.zero)

    def part(self, rows: Array | None, columns: Array | None) -> SparseMatrix:
        """Return some rows and columns, None for all."""
        array = self.to_scipy()
        array = array if rows is None else array[rows]
        return self if rows is columns is None else self.of_scipy(array if columns is None else array[:, columns], self.zero)

    @cached_property
    def _places(self) -> Array:
        rows = np.arange(self.shape[0], dtype=np.int64).repeat(np.diff(self.starts))
        return rows * self.shape[1] + self.columns

    def __getitem__(self, key: Any) -> Any:
        """Return elements by rows, or by rows and columns."""
        given = [k for k in (key if isinstance(key, tuple) else (key,)) if k is not Ellipsis]
        rows, columns = (*given, slice(None), slice(None))[:2]
        numbers = np.arange(self.shape[0])[rows]
        if not isinstance(columns, slice):
            if isinstance(rows, slice):
                return self[rows][:, columns]
            places = numbers * self.shape[1] + np.arange(self.shape[1])[columns]
            found = np.minimum(np.searchsorted(self._places, places), len(self._places) - 1)
            there = self._places[found] == places if len(self._places) else np.zeros(np.shape(places), bool)
            out = np.full(np.shape(places), self.zero, self.dtype)
            out[there] = self.entries[found[there]]
            return out[()]
        flat = numbers.ravel()
        counts = self.starts[flat + 1] - self.starts[flat]
        position = np.arange(len(flat)).repeat(counts)
        number = np.arange(len(position)) + (self.starts[flat] - (np.cumsum(counts) - counts)).repeat(counts)
        dense = np.full((len(flat), self.shape[1]), self.zero, self.dtype)
        dense[position, self.columns[number]] = self.entries[number]
        return dense[:, columns].reshape(*np.shape(numbers), -1)

    def diagonal(self, *_: int) -> Array:
        """Return the elements on the diagonal."""
        every = np.arange(min(self.shape))
        return cast(Array, self[every, every])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype)


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
        rows, columns = np.arange(matrix.shape[0]).repeat(np.diff(matrix.starts)), matrix.columns.astype(np.intp)
        sources, targets = self.ends(rows, columns)
        some = slice(None) if own else sources != targets
        yield rows[some], columns[some]
