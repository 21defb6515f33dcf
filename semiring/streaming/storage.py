"""Storage backends: matrices that are read and written by rows.

`ArrayRows` are arrays in memory, of the host or a GPU, or objects indexed like arrays, such as Zarr's. `FileRows` are NumPy files, read
without a memory map. `OwnRows` are this process's rows of a matrix that other processes share. A `Matrix` combines the backends of input,
result and construction matrix.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import on_gpu
from semiring.arrays.pieces import slices
from semiring.arrays.threads import run, thread_count

__all__ = ["ArrayRows", "FileRows", "Matrix", "OwnRows", "RowAccess", "RowStorage", "memory_of", "rows_of"]

_AT_ONCE = 1 << 30
"""Bytes of one read or write call: macOS refuses 2 GiB."""


_PART = 1 << 22
"""Bytes of a file that one thread reads: a core copies cached files at less than a tenth of the memory's speed."""


class RowAccess(Protocol):
    """Any object whose rows can be read and written."""

    def read(self, rows: slice, out: Array) -> None:
        """Copy rows to an array of their shape."""

    def write(self, rows: slice, array: Array) -> None:
        """Copy an array to rows."""


class RowStorage(RowAccess, Protocol):
    """A storage backend: a matrix of this `shape` and `dtype` whose rows can be read and written."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]


class ArrayRows:
    """The rows of an array in memory, or of an object indexed like an array."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    def read(self, rows: slice, out: Array) -> None:
        """Copy rows to an array of their shape."""
        out[...] = self.array[rows]

    def write(self, rows: slice, array: Array) -> None:
        """Copy an array to rows."""
        self.writable[rows] = array

    @property
    def writable(self) -> Any:
        """Return the array, once it may be written to."""
        return self.array


class FileRows:
    """The rows of a C-contiguous matrix in a file, read and written without a memory map.

    `by_elements` is True if the file is writable, and a killed writer leaves each element old or new.
    """

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = array.dtype
        self._file = os.open(str(array.filename), os.O_RDWR if array.flags.writeable else os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._offset, self._row = array.offset, array.strides[0]
        # Elements across a page boundary could be half written.
        self.by_elements = bool(array.flags.writeable) and array.offset % array.dtype.itemsize == 0

    @property
    def place(self) -> list[str | int]:
        """Return the file, and the byte offset of the matrix."""
        return [os.path.realpath(str(self.array.filename)), self.array.offset]

    def read(self, rows: slice, out: Array) -> None:
        """Copy rows to an array of their shape."""
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        memory, start = whole.reshape(-1).view(np.uint8).data, self._offset + rows.start * self._row

        def read_part(part: slice, _: int) -> None:
            left, at = memory[part], start + part.start
            while left:
                done = os.preadv(self._file, [left[:_AT_ONCE]], at)
                if not done:
                    raise EOFError(f"{self.array.filename} ends before row {rows.stop} of the matrix")
                left, at = left[done:], at + done

        run(read_part, list(slices(len(memory), 1, _PART)), thread_count())
        if whole is not out:
            out[...] = whole

    def write(self, rows: slice, array: Array) -> None:
        """Copy an array to rows."""
        left, at = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, self._offset + rows.start * self._row
        while left:
            done = os.pwritev(self._file, [left[:_AT_ONCE]], at)
            left, at = left[done:], at + done


class OwnRows:
    """The rows of a matrix that one process owns, contiguous in memory.

    The matrix has `count` rows, and the process owns the block rows `rows`, in ascending order. `store` is an array of these rows that
    may not be ready yet.
    """

    def __init__(self, count: int, rows: Sequence[slice], store: ArrayRows) -> None:
        self.shape, self.dtype = (count, store.shape[1]), store.dtype
        self._store, self._starts = store, [r.start for r in rows]
        self._ends = list(itertools.accumulate((r.stop - r.start for r in rows), initial=0))

    @classmethod
    def new(cls, n: int, rows: Sequence[slice], dtype: np.dtype[Any]) -> OwnRows:
        """Allocate the owned rows of a square matrix."""
        return cls(n, rows, ArrayRows(np.empty((sum(r.stop - r.start for r in rows), n), dtype)))

    @property
    def array(self) -> Array:
        """Return the owned rows as one array."""
        return self._store.writable  # type: ignore[no-any-return]  # an array of the host

    def __getitem__(self, key: slice | tuple[slice, slice]) -> Array:
        """Return some rows of one owned block row, or columns of these rows, as a view."""
        rows, *columns = key if isinstance(key, tuple) else (key,)
        number = bisect.bisect_right(self._starts, rows.start) - 1
        first = self._ends[number] + rows.start - self._starts[number]
        found: Array = self.array[(slice(first, first + rows.stop - rows.start), *columns)]
        return found

    def read(self, rows: slice, out: Array) -> None:
        """Copy rows to an array of their shape."""
        out[...] = self[rows]

    def write(self, rows: slice, array: Array) -> None:
        """Copy an array to rows."""
        self[rows][...] = array


def memory_of(matrix: RowAccess, rows: slice, *, writable: bool = False) -> Any | None:
    """Return a view of rows in host or GPU memory, or None if the rows are elsewhere."""
    if isinstance(matrix, OwnRows):
        return matrix[rows]
    if isinstance(matrix, ArrayRows) and (isinstance(matrix.array, np.ndarray) or on_gpu(matrix.array)):
        return (matrix.writable if writable else matrix.array)[rows]
    return None


def rows_of(array: Any) -> RowStorage:
    """Return the storage backend of a matrix."""
    if isinstance(array, np.memmap) and _is_whole_file(array) and hasattr(os, "preadv"):
        return FileRows(array)
    return ArrayRows(array)


def _is_whole_file(array: np.memmap[Any, Any]) -> bool:
    """Return True if the array is a whole matrix in a file: no view (unknown offset), private copy or deleted file."""
    mapped = isinstance(array.base, mmap.mmap) and array.filename is not None and os.path.isfile(array.filename)
    return mapped and array.flags.c_contiguous and array.mode != "c"


@dataclass(frozen=True)
class Matrix:
    """The storage of a closure by block rows."""

    given: tuple[RowStorage, ...]  # the caller's matrix, for each component; only read
    values: tuple[RowStorage, ...]  # the result, for each component, written and read again
    via: RowStorage | None = None  # the construction matrix; its old content is ignored

    @property
    def all(self) -> tuple[RowStorage, ...]:
        """Return the components of the result, and the construction matrix if wanted."""
        return self.values if self.via is None else (*self.values, self.via)
