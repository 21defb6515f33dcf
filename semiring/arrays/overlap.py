"""Memory layouts and aliasing of matrices."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DATA_OFFSET", "Layout", "address", "extent", "layout", "matched", "overlap", "share", "span"]


class Layout(NamedTuple):
    """A strided matrix: address, bytes between rows and between columns, shape, and bytes of an element."""

    address: int
    down: int
    across: int
    rows: int
    columns: int
    size: int


DATA_OFFSET = object.__basicsize__
"""The offset of the data pointer in a NumPy array: the first field after the object header, in all versions of the ABI."""

_at = ctypes.c_void_p.from_address


def _field(array: np.ndarray[Any, Any]) -> int:
    return _at(id(array) + DATA_OFFSET).value or 0


def _told(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def _reader() -> Callable[[np.ndarray[Any, Any]], int]:
    """Return the function that reads addresses: the field takes 0.1 µs; NumPy makes an object or a dictionary, in 0.8 µs."""
    if sys.implementation.name != "cpython":  # an id is no address elsewhere
        return _told
    samples = np.empty(9), np.empty((3, 4), np.int8)[1:, ::2]
    return _field if all(_field(v) == _told(v) for v in samples) else _told


address = _reader()
"""The address of the first element of an array."""


def layout(matrix: np.ndarray[Any, Any]) -> Layout:
    """Return the layout of a two-dimensional array."""
    down, across = matrix.strides
    rows, columns = matrix.shape
    return Layout(address(matrix), down, across, rows, columns, matrix.itemsize)


def share(x: Layout, y: Layout) -> bool:
    """Return True if two matrices share elements: exact for blocks of one matrix, otherwise by their extents."""
    (x_low, x_high), (y_low, y_high) = extent(x), extent(y)
    if x_high <= y_low or y_high <= x_low:
        return False
    if (x.down, x.across) != (y.down, y.across) or x.across < max(x.size, y.size) or x.down < x.across * max(x.columns, y.columns):
        return True
    # Blocks of one matrix: two rectangles on the grid of its rows and columns.
    down, offset = divmod(y.address - x.address, x.down)
    across, rest = divmod(offset, x.across)
    if rest:
        return True
    return any(-y.rows < i < x.rows and -y.columns < j < x.columns for i, j in ((down, across), (down + 1, across - x.down // x.across)))


def overlap(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Return True if two arrays share elements: by `share` for two dimensions, by extents for batches."""
    return np.may_share_memory(x, y) and (x.ndim != 2 or y.ndim != 2 or share(layout(x), layout(y)))


def matched(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Return True if each matrix of the batch x shares memory with no matrix of the batch y, or only with the one at the same index."""
    if not np.may_share_memory(x, y):
        return True
    batch = [(n, s, t) for n, s, t in zip(x.shape[:-2], x.strides, y.strides, strict=False) if n > 1]
    if any(s != t for _, s, t in batch):
        return False
    first = (0,) * (x.ndim - 2)
    apart = span(layout(x[first]), layout(y[first]))
    places = np.zeros(1, dtype=np.int64)
    for n, stride, _ in batch:
        places = np.add.outer(places, stride * np.arange(n)).ravel()
    places.sort()
    return bool((np.diff(places) >= apart).all())


def span(x: Layout, y: Layout) -> int:
    """Return the bytes that two matrices span together; pairs further apart do not meet."""
    (x_low, x_high), (y_low, y_high) = extent(x), extent(y)
    return max(x_high, y_high) - min(x_low, y_low)


def extent(x: Layout) -> tuple[int, int]:
    """Return the first byte of a matrix, and the byte after its last."""
    if x.rows == 0 or x.columns == 0:
        return x.address, x.address
    down, across = (x.rows - 1) * x.down, (x.columns - 1) * x.across
    return x.address + min(down, 0) + min(across, 0), x.address + max(down, 0) + max(across, 0) + x.size
