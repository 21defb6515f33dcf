"""Sparse matrices by compressed rows (CSR) as operands of products, and these by NumPy: the definition of what the kernels compute.

An entry that is not stored is the semiring's zero. Columns may stand in any order, and several entries of one place are added with ⊕, as
⊗ distributes over it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import namespace, on_gpu
from semiring.common.errors import GraphError
from semiring.kernels.operations import Operations

__all__ = ["CompressedRows", "Mask", "ReferenceSparseProducts", "Room", "SparseProducts", "strange_columns", "strange_starts"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class CompressedRows(NamedTuple):
    """A sparse matrix.

    Attributes
    ----------
    shape : tuple of int
    starts : int32 or int64 array
        Where the entries of each row begin, and where the last one's end; SciPy's ``indptr``.
    columns : int32 or int64 array
        SciPy's ``indices``. Nobody has looked at what these arrays say: see `require_sound`.
    values : tuple of arrays
        One for each component; SciPy's ``data``. A pattern alone has none.
    """

    shape: tuple[int, int]
    starts: Array
    columns: Array
    values: Values = ()

    def in_order(self) -> CompressedRows:
        """The same with the columns of each row in ascending order, so that of equal terms the first is that of the lowest."""
        self.require_sound()
        xp, row = namespace(self.columns), self.row_numbers()
        if not ((self.columns[1:] < self.columns[:-1]) & (row[1:] == row[:-1])).any():
            return self
        order = xp.lexsort(xp.stack([self.columns.astype(np.int64), row]))
        return self._replace(columns=self.columns[order], values=tuple([v[order] for v in self.values]))

    def require_sound(self) -> None:
        """Refuse rows that end before they begin, and numbers of columns that there are not, which libraries do not look at."""
        unsigned = self.columns.view(f"u{self.columns.itemsize}")  # negative ones are large without a sign
        if bool(strange_starts(self.starts, len(unsigned)) | (unsigned >= self.shape[1]).any()):
            raise strange_columns()

    def row_numbers(self) -> Array:
        """The row of each entry."""
        if on_gpu(self.columns):  # where lengths would have to come to the host
            xp = namespace(self.columns)
            found: Array = xp.searchsorted(self.starts, xp.arange(len(self.columns), dtype=self.starts.dtype), side="right") - 1
            return found
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))


def strange_starts(starts: Array, count: int) -> Any:
    """Whether rows end before they begin, or not all of so many entries are in one; a truth value where the array lies."""
    return (starts[0] != 0) | (starts[-1] != count) | (starts[1:] < starts[:-1]).any()


def strange_columns() -> GraphError:
    """What is raised for a matrix that has entries in rows or columns that it has not."""
    return GraphError("a sparse array has indices that do not belong to a matrix of its shape; see its check_format")


class Mask(NamedTuple):
    """Where a product is wanted: at the entries of a pattern, or with `complement` everywhere else."""

    pattern: CompressedRows
    complement: bool = False


Room = Callable[[int], None]
"""Is told how many entries a result has before it is made, and may refuse it."""


class SparseProducts(Protocol):
    """Products of sparse matrices over a semiring in its dtypes; `swapped` ones have the second operand's elements left in ⊗."""

    def times_dense(
        self, A: CompressedRows, B: Values, C: Values, via: Array | None = None, *, swapped: bool = False, signed: bool = False
    ) -> None:
        """C ← A⊗B with a dense B, whose rows are contiguous or single elements; `via` gets the k that won.

        Raises
        ------
        GraphError
            For rows or columns that A has not; then C holds no product.
        """
        ...

    def times_sparse(
        self,
        A: CompressedRows,
        B: CompressedRows,
        room: Room,
        mask: Mask | None = None,
        *,
        witness: bool = False,
        swapped: bool = False,
        signed: bool = False,
    ) -> tuple[CompressedRows, Array | None]:
        """A⊗B with columns in ascending order, and the k that won each entry, whatever its value, where one of its terms beats zero."""
        ...


class ReferenceSparseProducts:
    """The same by NumPy, for objects too: in each round one term more of every element that has one."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.dtypes, self._operations = dtypes, Operations(semiring, dtypes)

    def times_dense(
        self, A: CompressedRows, B: Values, C: Values, via: Array | None = None, *, swapped: bool = False, signed: bool = False
    ) -> None:
        """C ← A⊗B."""
        A.require_sound()
        for c, zero in zip(C, self._operations.zero, strict=True):
            c[...] = zero
        if via is not None:
            via[...] = -1
        entries, rows = tuple(v[:, None] for v in A.values), A.columns
        self._add(A.starts, lambda e: tuple(v[e] for v in entries), lambda e: tuple(b[rows[e]] for b in B), C, via, rows, swapped)

    def times_sparse(
        self,
        A: CompressedRows,
        B: CompressedRows,
        room: Room,
        mask: Mask | None = None,
        *,
        witness: bool = False,
        swapped: bool = False,
        signed: bool = False,
    ) -> tuple[CompressedRows, Array | None]:
        """A⊗B."""
        for rows in (A, B, *(() if mask is None else (mask.pattern,))):
            rows.require_sound()
        m, n = A.shape[0], B.shape[1]
        # Of each term the entry of A, that of B, and the place of the result.
        count = (B.starts[1:] - B.starts[:-1])[A.columns]
        left = np.repeat(np.arange(len(A.columns)), count)
        right = np.arange(len(left)) + (B.starts[A.columns] - (count.cumsum() - count))[left]
        place = np.repeat(np.arange(m), np.diff(A.starts))[left] * n + B.columns[right]
        if mask is not None:
            pattern = mask.pattern
            wanted = np.repeat(np.arange(m), np.diff(pattern.starts)) * n + pattern.columns
            kept = np.isin(place, wanted, invert=mask.complement)
            left, right, place = left[kept], right[kept], place[kept]
        order = np.argsort(place, kind="stable")
        left, right = left[order], right[order]
        places, runs = np.unique(place[order], return_index=True)
        room(len(places))
        values = tuple(np.full(len(places), z, d) for z, d in zip(self._operations.zero, self.dtypes, strict=True))
        via = np.full(len(places), -1, np.int32) if witness else None
        starts = np.append(runs, len(left))
        self._add(
            starts,
            lambda t: tuple(v[left[t]] for v in A.values),
            lambda t: tuple(v[right[t]] for v in B.values),
            values,
            via,
            A.columns[left],
            swapped,
        )
        begins = np.searchsorted(places, np.arange(m + 1) * n)
        return CompressedRows((m, n), begins, (places % max(n, 1)).astype(B.columns.dtype), values), via

    def _add(
        self,
        starts: Array,
        left: Callable[[Array], Values],
        right: Callable[[Array], Values],
        C: Values,
        via: Array | None,
        codes: Array,
        swapped: bool,
    ) -> None:
        """Add to each row of C its terms, those from one of `starts` to the next, in their order."""
        lengths = np.diff(starts)
        for turn in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > turn)
            terms = starts[rows] + turn
            pair = (right(terms), left(terms)) if swapped else (left(terms), right(terms))
            old = tuple(c[rows] for c in C)
            new = self._operations.add(old, self._operations.mul(*pair))
            if via is not None:
                changed = np.logical_or.reduce([np.asarray(x != y, bool) for x, y in zip(new, old, strict=True)])
                code = np.broadcast_to(codes[terms].reshape(-1, *(1,) * (changed.ndim - 1)), changed.shape)
                via[rows] = np.where(changed, code, via[rows])
            for c, x in zip(C, new, strict=True):
                c[rows] = x
