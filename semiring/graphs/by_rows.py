"""Dense matrices that are read by block rows, because they are on disk or too large for a copy.

`given_rows` reads the caller's arrays, `rows_of_graph` a `Graph`; `RunningStatistics` of `dense` gathers value statistics on the way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.devices import on_gpu
from semiring.arrays.exchange import ArrayLike
from semiring.arrays.memory import entry_bytes, fits
from semiring.graphs.dense import Graph, Reading, matrix_form, needs_no_change, overwritable, rewrite
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import RowStorage, rows_of

__all__ = ["GivenRows", "ReadRows", "given_rows", "is_on_disk", "rows_of_graph", "square_arrays"]

_AT_ONCE = 256  # rows that are converted at once


@dataclass(frozen=True, eq=False)
class GivenRows:
    """A matrix over a semiring, read by block rows."""

    rows: tuple[RowStorage, ...]  # one for each component. A missing edge is the semiring's zero
    arrays: tuple[Any, ...]  # the caller's arrays
    as_they_are: bool  # `rows` are those of `arrays`, without any change
    overwritable: bool  # results may overwrite the arrays
    warned: bool = False  # the caller was already warned of zeros

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.rows[0].shape[0]

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(r.dtype for r in self.rows)

    def whole(self) -> tuple[Any, ...] | None:
        """Return the matrix in arrays: the caller's arrays if unchanged, else copies, or None if copies exceed the memory."""
        if self.as_they_are:
            return self.arrays
        if not fits(self.n * self.n * entry_bytes(self.dtypes, via=False), "cpu"):
            return None
        copies = tuple(np.empty(r.shape, r.dtype) for r in self.rows)
        for rows, copy in zip(self.rows, copies, strict=True):
            for some in block_rows(self.n, _AT_ONCE):
                rows.read(some, copy[some])
        return copies


def is_on_disk(array: Any) -> bool:
    """Return True if the entries of an array are read from a file."""
    return isinstance(array, np.memmap) or _is_zarr(array)


def _is_zarr(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "zarr" and hasattr(value, "shape") and hasattr(value, "dtype")


def square_arrays(graph: Any, semiring: Semiring) -> tuple[Any, ...] | None:
    """Return the arrays of a square matrix, one a component: plain arrays of numbers in memory or in a file, or Zarr arrays; else None."""
    arrays = tuple(graph) if semiring.components > 1 and isinstance(graph, tuple | list) else (graph,)
    plain = (type(a) in (np.ndarray, np.memmap) and a.dtype.kind in "biuf" if isinstance(a, np.ndarray) else _is_zarr(a) for a in arrays)
    if len(arrays) != semiring.components or not all(plain):
        return None
    shape = tuple(arrays[0].shape)
    square = len(shape) == 2 and shape[0] == shape[1] and all(tuple(a.shape) == shape for a in arrays)
    return arrays if square else None


def rows_of_graph(graph: Graph) -> GivenRows:
    """Return the block rows of one matrix of numbers that was read as a whole, on the host or on a GPU."""
    warned = not any(map(on_gpu, graph.values))
    return GivenRows(tuple(map(rows_of, graph.values)), graph.values, as_they_are=True, overwritable=graph.owned, warned=warned)


def given_rows(inputs: tuple[ArrayLike, ...], semiring: Semiring, reading: Reading) -> GivenRows:
    """Prepare `square_arrays` for reading by block rows, as `read_graph` would read them; no row is read yet. Raises DTypeError."""
    arrays = tuple(s.array for s in inputs)
    form = matrix_form(inputs, semiring, reading)
    same = form.kept and needs_no_change(inputs, semiring, reading.nonedge, form.zeros)

    def converted(component: int) -> RowStorage:
        def read(rows: slice, out: Array) -> None:
            some = tuple(replace(s, array=np.asarray(s.array[rows])) for s in inputs)  # all components determine the edges
            outs = tuple(out if c == component else np.empty(out.shape, d) for c, d in enumerate(form.dtypes))
            rewrite(some, outs, semiring, reading, form.zeros, first=rows.start)

        return ReadRows(arrays[0].shape, form.dtypes[component], read)

    rows = tuple(map(rows_of, arrays)) if same else tuple(map(converted, range(len(arrays))))
    return GivenRows(rows, arrays, same, _overwritable(inputs))


class ReadRows:
    """The `RowStorage` of one component whose rows a function reads; the caller keeps the matrix."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], read: Callable[[slice, Array], None]) -> None:
        self.shape, self.dtype, self._read = shape, dtype, read

    def read(self, rows: slice, out: Array) -> None:
        """Copy rows to an array of their shape."""
        self._read(rows, out)

    def write(self, rows: slice, array: Array) -> None:
        """Refuse every array."""
        raise NotImplementedError


def _overwritable(inputs: tuple[ArrayLike, ...]) -> bool:
    """Return True if results can overwrite all components: contiguous rows, and no two components in one array or file."""
    inside = tuple(s for s in inputs if isinstance(s.array, np.ndarray))
    files = [os.path.realpath(f) for s in inside if (f := getattr(s.array, "filename", None)) is not None]
    apart = len(set(files)) == len(files) and len({id(s.array) for s in inputs}) == len(inputs)
    writable = not any(getattr(s.array, "read_only", False) for s in inputs)
    return apart and writable and overwritable(inside) and all(s.array.strides[1] == s.array.itemsize for s in inside)
