"""The k best entries of each row of a matrix that is never stored: blocks of columns are offered one after the other.

Each row has a heap whose first entry is the worst of the best so far. An entry is compared with it, and mostly rejected: for numbers in
random order, k log(n / k) of n entries enter the heap. Ties go to the lowest column, and NaN comes last.

>>> best = BestEntries(np.empty((1, 0)), 1, 2, largest=False)
>>> best.offer(slice(0, 1), 0, np.array([[3.0, 1.0, 2.0]]))
>>> best.offer(slice(0, 1), 3, np.array([[1.0]]))
>>> best.result()
(array([[1., 1.]]), array([[1, 3]]))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.arrays.devices import namespace, on_gpu
from semiring.kernels.cpu.loops import Element, Elements, Rows, loop

__all__ = ["BestEntries", "best_entries", "comes_after", "offer_rows"]

Array = Any
_NONE = np.iinfo(np.int64).max
"""The column of a place without an entry, after all columns."""


class BestEntries:
    """The k smallest (or largest) entries of rows.

    Parameters
    ----------
    like : array
        An array of the dtype, on the device.
    count : int
        The number of rows.
    k : int
    largest : bool
    """

    def __init__(self, like: Array, count: int, k: int, *, largest: bool) -> None:
        self._xp, self._largest = namespace(like), largest
        self._loops = not on_gpu(like) and like.dtype.kind in "fiu"
        if self._loops:
            kind = like.dtype.kind
            last = np.nan if kind == "f" else np.iinfo(like.dtype).min if largest else np.iinfo(like.dtype).max
            self._values, self._columns = np.full((count, k), last, like.dtype), np.full((count, k), _NONE)
        else:
            self._k, self._nothing = k, (self._xp.empty((0, k), like.dtype), self._xp.empty((0, k), np.int64))
            self._rows: dict[int, tuple[Array, Array]] = {}  # the best of some rows, by the first row

    def offer(self, rows: slice, first: int, block: Array) -> None:
        """Offer the entries of some rows, in columns from `first` on; columns ascend from offer to offer."""
        if self._loops:
            block = block if block.flags.c_contiguous or block.strides[-1] == block.itemsize else np.ascontiguousarray(block)
            (count, columns), k = block.shape, self._values.shape[1]
            flat = self._values[rows].reshape(-1), self._columns[rows].reshape(-1)
            offer_rows.bind(count, columns, k, first, (block,), flat, largest=self._largest)(2.0 * block.size)
            return
        columns = self._xp.broadcast_to(self._xp.arange(first, first + block.shape[1]), block.shape)
        if (before := self._rows.get(rows.start)) is not None:
            block, columns = (self._xp.concatenate(pair, axis=1) for pair in zip(before, (block, columns), strict=True))
        self._rows[rows.start] = best_entries(block, columns, self._k, largest=self._largest)

    def result(self) -> tuple[Array, Array]:
        """Return the entries of each row in order, and their columns."""
        if not self._loops:
            parts = [self._rows[start] for start in sorted(self._rows)] or [self._nothing]
            values, columns = (self._xp.concatenate(part) for part in zip(*parts, strict=True))
            return values, columns
        order = np.argsort(self._columns, axis=1)
        values, columns = (np.take_along_axis(v, order, axis=1) for v in (self._values, self._columns))
        return best_entries(values, columns, values.shape[1], largest=self._largest)


def best_entries(values: Array, columns: Array, k: int, *, largest: bool) -> tuple[Array, Array]:
    """Return the k best values of each row in order, and their columns; equal values stay in their order, and NaN is last."""
    xp, keys = namespace(values), values
    if largest:
        keys = ~values if values.dtype.kind in "iub" else -values
    order = (keys.argsort(axis=1) if on_gpu(keys) else keys.argsort(axis=1, kind="stable"))[:, :k]  # CuPy's is stable
    return xp.take_along_axis(values, order, axis=1), xp.take_along_axis(columns, order, axis=1)


@loop
def comes_after(x: Element, y: Element, *, largest: bool) -> bool:
    """Return True if an entry, a value with its column, comes after another in the order of preference."""
    if x[0] == y[0] or (x[0] != x[0] and y[0] != y[0]):
        return bool(x[1] > y[1])
    return bool(x[0] != x[0] or (x[0] < y[0] if largest else x[0] > y[0]))


@loop
def offer_rows(rows: int, columns: int, k: int, first: int, block: Rows, best: Elements, *, largest: bool) -> None:
    """Replace the worst of the k entries of each row in `best`, values and columns, by better entries of a block.

    The children of place p of a heap are places 2p + 1 and 2p + 2, and do not come after p in the order of preference.
    """
    for i in range(rows):
        top = i * k
        for j in range(columns):
            value, worst = block[i][j][0], best[top][0]
            rejected = value < worst if largest else value > worst
            if not rejected and comes_after(best[top], (value, first + j), largest=largest):
                place, child = 0, 1
                while child < k:
                    if child + 1 < k and comes_after(best[top + child + 1], best[top + child], largest=largest):
                        child += 1
                    if comes_after((value, first + j), best[top + child], largest=largest):
                        break
                    best[top + place] = best[top + child]
                    place, child = child, 2 * child + 1
                best[top + place] = (value, first + j)
