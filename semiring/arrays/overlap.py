"""Memory layouts of matrices, and aliasing: whether two of them share elements."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Layout", "address", "extent", "layout", "matched", "overlap", "share", "span"]


class Layout(NamedTuple):
    """A strided matrix: its address, the bytes between rows and between columns, its shape, and the bytes of an element."""

    address: int
    down: int
    across: int
    rows: int
    columns: int
    size: int


_FIELD = object.__basicsize__
"""Where the address stands in a NumPy array: the first field after what every Python object begins with, in all versions of the ABI."""

_at = ctypes.c_void_p.from_address


def _field(array: np.ndarray[Any, Any]) -> int:
    return _at(id(array) + _FIELD).value or 0


def _told(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def _reader() -> Callable[[np.ndarray[Any, Any]], int]:
    """What reads addresses: the field itself takes 0.1 µs, and NumPy makes an object or a dictionary to tell it, for 0.8 µs."""
    if sys.implementation.name != "cpython":  # an id is no address elsewhere
        return _told
    samples = np.empty(9), np.empty((3, 4), np.int8)[1:, ::2]
    return _field if all(_field(v) == _told(v) for v in samples) else _told


address = _reader()
"""The address of the first element of an array."""


def layout(matrix: np.ndarray[Any, Any]) -> Layout:
    """The layout of a two-dimensional array."""
    down, across = matrix.strides
    rows, columns = matrix.shape
    return Layout(address(matrix), down, across, rows, columns, matrix.itemsize)


def share(x: Layout, y: Layout) -> bool:
    """Whether two matrices share elements: exact for blocks of one matrix, and yes where only their extents are known to meet."""
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
    """Whether two arrays share elements: of two dimensions as `share` tells, batches as far as their extents tell."""
    return np.may_share_memory(x, y) and (x.ndim != 2 or y.ndim != 2 or share(layout(x), layout(y)))


def matched(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether a matrix of the batch x shares memory with at most that matrix of the batch y which stands in its place."""
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
    """The bytes that two matrices span together: pairs of such matrices that lie as far apart do not meet."""
    (x_low, x_high), (y_low, y_high) = extent(x), extent(y)
    return max(x_high, y_high) - min(x_low, y_low)


def extent(x: Layout) -> tuple[int, int]:
    """The first byte of a matrix and the one after its last."""
    if x.rows == 0 or x.columns == 0:
        return x.address, x.address
    down, across = (x.rows - 1) * x.down, (x.columns - 1) * x.across
    return x.address + min(down, 0) + min(across, 0), x.address + max(down, 0) + max(across, 0) + x.size
