"""Block rows between a matrix and the memory that the CPU engine works on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from semiring.kernels.streaming.buffers import Buffer, Buffers
from semiring.kernels.streaming.storage import Matrix, RowAccess

__all__ = ["HostCarrier"]


class HostCarrier(Buffers):
    """A `Carrier` to buffers of the host.

    Parameters
    ----------
    matrix : Matrix
    """

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix

    def active(self) -> AbstractContextManager[Any]:
        """Nothing to enter."""
        return nullcontext()

    def buffer(self, rows: int) -> Buffer:
        """Memory for a block row of so many rows."""
        shape = (rows, self._matrix.values[0].shape[1])
        return tuple(np.empty(shape, m.dtype) for m in self._matrix.values), None if self._matrix.via is None else np.empty(shape, np.int32)

    def bring(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        """Copy rows to a buffer."""
        self._matrix.read(rows, *self.arrays(buffer, rows), first=first)

    def take_back(self, rows: slice, buffer: Buffer, *, last: bool) -> None:
        """Copy a buffer to its rows."""
        self._matrix.write(rows, *self.arrays(buffer, rows))

    def save(self, rows: slice, buffer: Buffer, columns: slice, to: RowAccess) -> None:
        """Copy columns of a buffer to a record."""
        for array in self.all_arrays(buffer, rows):
            to.write(rows, array[:, columns])

    def restore(self, rows: slice, buffer: Buffer, columns: slice, source: RowAccess) -> None:
        """Copy columns of a buffer from a record."""
        for array in self.all_arrays(buffer, rows):
            source.read(rows, array[:, columns])

    def mark(self) -> Callable[[], None]:
        """Nothing to wait for: an operation on the host is done when it returns."""
        return lambda: None
