"""Sparse matrices by compressed rows (CSR), their products by NumPy, and the supernodes of their eliminations.

Entries that are not stored are the semiring's zero. Columns may be in any order, and duplicate entries are added with ⊕, since ⊗
distributes over ⊕. Products by NumPy define the results of compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import namespace, on_gpu
from semiring.common.errors import GraphError
from semiring.kernels.operations import Operations, differ

__all__ = [
    "CompressedRows", "EliminationPanels", "Mask", "ReferenceSparseProducts", "Room", "Supernodes", "SweepLayout", "require_sound",
    "strange_columns", "strange_starts",
]  # fmt: skip

Terms = Callable[[Array], tuple[Values, Values]]
"""Returns the operands of terms, given their numbers."""


class CompressedRows(NamedTuple):
    """A sparse matrix by compressed rows, which may be invalid: see `require_sound`."""

    shape: tuple[int, int]
    starts: Array  # start of each row's entries, and end of the last row, int32 or int64; SciPy's ``indptr``
    columns: Array  # column of each entry, int32 or int64; SciPy's ``indices``
    values: Values = ()  # an array for each component, none for a pattern; SciPy's ``data``

    def in_order(self) -> CompressedRows:
        """Return the matrix with ascending columns in each row, so that the lowest column comes first among equal terms."""
        self.require_sound()
        xp, row = namespace(self.columns), self.row_numbers()
        if not ((self.columns[1:] < self.columns[:-1]) & (row[1:] == row[:-1])).any():
            return self
        order = xp.lexsort(xp.stack([self.columns.astype(np.int64), row]))
        return self._replace(columns=self.columns[order], values=tuple([v[order] for v in self.values]))

    def require_sound(self) -> None:
        """Raise `GraphError` if a row ends before it begins, or a column number is out of range. Libraries do not check this."""
        unsigned = self.columns.view(f"u{self.columns.itemsize}")  # negative numbers become large
        if bool(strange_starts(self.starts, len(unsigned)) | (unsigned >= self.shape[1]).any()):
            raise strange_columns()

    def row_numbers(self) -> Array:
        """Return the row number of each entry."""
        if on_gpu(self.columns):  # `repeat` would need the lengths on the host
            xp = namespace(self.columns)
            found: Array = xp.searchsorted(self.starts, xp.arange(len(self.columns), dtype=self.starts.dtype), side="right") - 1
            return found
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))


def require_sound(A: CompressedRows, B: CompressedRows, mask: Mask | None) -> None:
    """Raise `GraphError` if a factor or the mask is invalid."""
    for rows in (A, B, *(() if mask is None else (mask.pattern,))):
        rows.require_sound()


def strange_starts(starts: Array, count: int) -> Any:
    """Return True, as a scalar on the array's device, if rows overlap or do not hold exactly `count` entries."""
    return (starts[0] != 0) | (starts[-1] != count) | (starts[1:] < starts[:-1]).any()


def strange_columns() -> GraphError:
    """Return the error for a matrix whose row or column numbers are out of range."""
    return GraphError("a sparse array has indices outside its shape; its check_format says more")


class Mask(NamedTuple):
    """The wanted entries of a product: those of a pattern, or with `complement` all others."""

    pattern: CompressedRows
    complement: bool = False


Room = Callable[[int], None]
"""Called with the number of entries before a result is allocated; raises if they do not fit the memory."""


class Supernodes(NamedTuple):
    """The supernodes of an elimination in postorder, in int64 arrays. A place is a position in the order of elimination.

    Attributes
    ----------
    columns : array of shape (s + 1,)
        The first place of each of s supernodes.
    row_starts, rows : arrays
        The later places adjacent to each supernode, ascending.
    panel_starts : array of shape (s + 1,)
        The first entry of each supernode in either panel: a panel has as many entries as vertices times the side of the front.
    child_starts, children : arrays
        The children of each supernode, ascending.
    entry_starts, entry_rows, entry_columns : arrays
        Edges between each supernode and itself or later ones: the places of both ends.
    """

    columns: Array
    row_starts: Array
    rows: Array
    panel_starts: Array
    child_starts: Array
    children: Array
    entry_starts: Array
    entry_rows: Array
    entry_columns: Array


class EliminationPanels(NamedTuple):
    """The panels of all supernodes in order, one array per component: `upper` has D* [I U], and `lower` has [I; L] D*."""

    upper: Values
    lower: Values


class SweepLayout(NamedTuple):
    """The rows of X in a sweep, in int64 arrays."""

    numbers: Array  # 0 … n − 1
    slots: Array  # the row of each place; rows of a supernode are contiguous
    slot_rows: Array  # the rows of the places in `Supernodes.rows`


class ReferenceSparseProducts:
    """Products of sparse matrices by NumPy, objects included: each round adds one term to every element that has another.

    The CPU and GPUs have classes of the same methods. With `swapped`, the second operand's elements come first in ⊗; for `signed` see
    `Engine`.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.dtypes, self._operations = dtypes, Operations(semiring, dtypes)

    def times_dense(
        self, A: CompressedRows, B: Values, C: Values, via: Array | None = None, *, swapped: bool = False, signed: bool = False
    ) -> None:
        """C ← A⊗B with a dense B, whose rows are contiguous or single elements; `via` receives the winning k.

        Raises
        ------
        GraphError
            If row or column numbers of A are out of range; C is then undefined.
        """
        A.require_sound()
        for c, zero in zip(C, self._operations.zero, strict=True):
            c[...] = zero
        if via is not None:
            via[...] = -1

        def terms(e: Array) -> tuple[Values, Values]:
            return tuple(v[e, None] for v in A.values), tuple(b[A.columns[e]] for b in B)

        self._add(A.starts, terms, C, via, A.columns, swapped=swapped)

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
        """Return A⊗B with ascending columns, and the winning k of each entry (−1 if no term beats zero); entries equal to zero stay."""
        require_sound(A, B, mask)
        m, n = A.shape[0], B.shape[1]
        # The entry of A, the entry of B, and the place in the result, for each term.
        count = (B.starts[1:] - B.starts[:-1])[A.columns]
        left = np.repeat(np.arange(len(A.columns)), count)
        right = np.arange(len(left)) + (B.starts[A.columns] - (count.cumsum() - count))[left]
        place = A.row_numbers()[left] * n + B.columns[right]
        if mask is not None:
            wanted = mask.pattern.row_numbers() * n + mask.pattern.columns
            kept = np.isin(place, wanted, invert=mask.complement)
            left, right, place = left[kept], right[kept], place[kept]
        order = np.argsort(place, kind="stable")
        left, right = left[order], right[order]
        places, runs = np.unique(place[order], return_index=True)
        room(len(places))
        values = tuple(np.full(len(places), z, d) for z, d in zip(self._operations.zero, self.dtypes, strict=True))
        via = np.full(len(places), -1, np.int32) if witness else None

        def terms(t: Array) -> tuple[Values, Values]:
            return tuple(v[left[t]] for v in A.values), tuple(v[right[t]] for v in B.values)

        self._add(np.append(runs, len(left)), terms, values, via, A.columns[left], swapped=swapped)
        begins = np.searchsorted(places, np.arange(m + 1) * n)
        return CompressedRows((m, n), begins, (places % max(n, 1)).astype(B.columns.dtype), values), via

    def _add(self, starts: Array, terms: Terms, C: Values, via: Array | None, codes: Array, *, swapped: bool) -> None:
        """Add the terms starts[i] … starts[i + 1] − 1, by their codes, to row i of C, in their order."""
        lengths = np.diff(starts)
        for turn in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > turn)
            places = starts[rows] + turn
            x, y = terms(places)
            old = tuple(c[rows] for c in C)
            new = self._operations.add(old, self._operations.mul(y, x) if swapped else self._operations.mul(x, y))
            if via is not None:
                changed = differ(new, old)
                code = np.broadcast_to(codes[places].reshape(-1, *(1,) * (changed.ndim - 1)), changed.shape)
                via[rows] = np.where(changed, code, via[rows])
            for c, values in zip(C, new, strict=True):
                c[rows] = values
