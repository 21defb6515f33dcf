"""Products of two sparse matrices on a GPU: terms are expanded, sorted by row and column, and added within equal places (ESC).

See Bell, Dalton and Olson (2012), Exposing fine-grained parallelism in algebraic multigrid methods. The sorted terms form a sparse matrix
themselves: one row per entry of the product, with an entry of A per term, in the column of B's entry. The sums are the product of this
matrix and the vector of B's entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiring.kernels.compressed import CompressedRows, Mask, Room

__all__ = ["expanded_product"]

TimesVector = Callable[[CompressedRows, tuple[Any, ...], tuple[Any, ...], Any], object]
"""Computes C ← A⊗B for a B of one column, and the k that won each row."""

_TERMS = 1 << 26
"""Terms sorted at a time, at some 60 bytes each; a single row of the product may have more."""


def expanded_product(
    A: CompressedRows, B: CompressedRows, room: Room, mask: Mask | None, times_vector: TimesVector, *, witness: bool
) -> tuple[CompressedRows, Any]:
    """Return A⊗B with ascending columns, and the k that won each entry; see `SparseProducts.times_sparse`.

    Raises GraphError for invalid row starts and columns out of range.
    """
    import cupy

    for rows in (A, B, *(() if mask is None else (mask.pattern,))):
        rows.require_sound()
    (m, _), n, dtypes = A.shape, B.shape[1], [v.dtype for v in A.values]
    row, lengths = A.row_numbers().astype(np.int64), (B.starts[1:] - B.starts[:-1]).astype(np.int64)[A.columns]
    ends = cupy.cumsum(lengths)
    begins = ends - lengths
    # Term t, of entry e of A, takes entry t + shift_e of B.
    shift = B.starts.astype(np.int64)[A.columns] - begins
    wanted = None if mask is None else cupy.sort(mask.pattern.row_numbers().astype(np.int64) * n + mask.pattern.columns)
    index = np.int32 if max(len(B.columns), _TERMS) < 2**31 else np.int64
    places, parts, winners = [], [], []
    count = 0
    for first, last in _stretches(A, ends):
        t = cupy.arange(int(begins[first]), int(ends[last - 1]), dtype=np.int64)
        left = cupy.searchsorted(ends[first:last], t, side="right") + first  # skips entries without terms
        right = t + shift[left]
        place = row[left] * n + B.columns[right]
        if wanted is not None and mask is not None:
            kept = _among(place, wanted) ^ mask.complement
            left, right, place = left[kept], right[kept], place[kept]
        if len(place) == 0:
            continue
        order = cupy.argsort(place, kind="stable")
        left, right, place = left[order], right[order], place[order]
        runs = cupy.flatnonzero(cupy.concatenate([cupy.ones(1, bool), place[1:] != place[:-1]]))
        count += len(runs)
        room(count)
        wide = index if len(place) < 2**31 else np.int64
        starts = cupy.concatenate([runs, cupy.full(1, len(place))]).astype(wide)
        terms = CompressedRows((len(runs), len(B.columns)), starts, right.astype(wide), tuple([v[left] for v in A.values]))
        values = tuple([cupy.empty((len(runs), 1), d) for d in dtypes])
        via = cupy.empty((len(runs), 1), np.int32) if witness else None
        times_vector(terms, tuple([v[:, None] for v in B.values]), values, via)
        places.append(place[runs])
        parts.append(tuple([v[:, 0] for v in values]))
        if via is not None:
            winners.append(via[:, 0])
    where = _joined(places, np.dtype(np.int64))
    found = tuple([_joined([part[c] for part in parts], d) for c, d in enumerate(dtypes)])
    starts = cupy.searchsorted(where, cupy.arange(m + 1, dtype=np.int64) * n)
    product = CompressedRows((m, n), starts, (where % max(n, 1)).astype(B.columns.dtype), found)
    return product, _rows_of(B, _joined(winners, np.dtype(np.int32))) if witness else None


def _stretches(A: CompressedRows, ends: Any) -> Iterator[tuple[int, int]]:
    """Yield ranges of A's entries: whole rows with at most `_TERMS` terms together, or single rows with more."""
    total = int(ends[-1]) if len(ends) else 0
    if total <= _TERMS:
        if total:
            yield 0, len(ends)
        return
    import cupy

    starts = cupy.asnumpy(A.starts).astype(np.int64)
    terms = np.append(0, cupy.asnumpy(ends))[starts]  # before each row
    row = 0
    while row < len(starts) - 1:
        beyond = max(row + 1, int(np.searchsorted(terms, terms[row] + _TERMS, side="right")) - 1)
        if terms[beyond] > terms[row]:
            yield int(starts[row]), int(starts[beyond])
        row = beyond


def _among(numbers: Any, others: Any) -> Any:
    """Return which numbers occur in `others`, which is sorted."""
    import cupy

    if len(others) == 0:
        return cupy.zeros(len(numbers), bool)
    at = cupy.minimum(cupy.searchsorted(others, numbers), len(others) - 1)
    return others[at] == numbers


def _joined(parts: list[Any], dtype: np.dtype[Any]) -> Any:
    import cupy

    return parts[0] if len(parts) == 1 else cupy.concatenate(parts) if parts else cupy.empty(0, dtype)


def _rows_of(B: CompressedRows, entries: Any) -> Any:
    """Return the row of each entry, with −1 for −1."""
    import cupy

    row = B.row_numbers().astype(np.int32)
    return cupy.where(entries < 0, np.int32(-1), row[cupy.maximum(entries, 0)]) if len(row) else entries
