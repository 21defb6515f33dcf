"""Whether two strided views share elements."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["overlap", "same"]


def same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether `x` and `y` are the same elements in the same order."""
    return (
        x.shape == y.shape and x.strides == y.strides and x.dtype == y.dtype and x.ctypes.data == y.ctypes.data
    )


def overlap(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether two matrices share memory: exact for blocks of one matrix, cautious otherwise."""
    if not np.may_share_memory(x, y):
        return False
    if x.ndim == y.ndim == 2 and x.strides == y.strides and x.strides[0] >= abs(x.strides[1]) * max(x.shape[1], y.shape[1]) > 0:
        # Blocks of one matrix: two rectangles on the grid of its rows and columns.
        down, across = divmod(y.ctypes.data - x.ctypes.data, x.strides[0])
        if x.strides[1] > 0 and across % x.strides[1] == 0:
            across //= x.strides[1]
            wide = x.strides[0] // x.strides[1]
            for rows, columns in ((down, across), (down + 1, across - wide)):
                if -y.shape[0] < rows < x.shape[0] and -y.shape[1] < columns < x.shape[1]:
                    return True
            return False
    try:
        return bool(np.shares_memory(x, y, max_work=1000))
    except np.exceptions.TooHardError:
        return True
