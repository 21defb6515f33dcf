"""Dense matrices of many types as arrays, without a copy if possible; and the library of an object."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.exchange import a_name_of, array_of, borrowed, lends_memory, lists_numbers, name_of, rounded_integer
from semiring.common.errors import AssumptionWarning, GraphError, callers_level, listing
from semiring.kernels.compressed import strange_columns, strange_starts

__all__ = [
    "ArrayLike", "as_array_like", "comes_from", "graph_library", "holds_sparse", "is_pydata", "is_sparse", "refuse_name", "sound_rows",
    "to_scipy",
]  # fmt: skip

_GRAPHS = {
    "networkx": "adj",
    "igraph": "get_edgelist",
    "rustworkx": "weighted_edge_list",
    "networkit": "iterEdgesWeights",
    "torch_geometric": "edge_attrs",
}
"""Libraries whose graphs are read, and an attribute that only a graph has."""


@dataclass(eq=False, slots=True)
class ArrayLike:
    """A dense matrix as the caller passed it."""

    array: Array  # of NumPy, or of CuPy on a GPU; the caller's memory if possible
    missing: Array | None = None  # entries that are non-edges whatever their value (masked, None)
    labels: tuple[Hashable, ...] | None = None
    restore: Callable[[Array], Any] | None = None  # converts a result to the caller's type; None for arrays
    # converts any array to an array of the caller's library; None for NumPy, CuPy, and libraries without arrays
    library: Callable[[Array], Any] | None = None
    constant: bool = False  # the caller's library requires that the array never changes, whatever its flags say
    numbers: bool = False  # the entries were Python numbers: no integer stands for ∞, whatever the dtype of the array
    # the index and the value of an integer among floats that float64 would round; the array then has objects
    rounded: tuple[tuple[int, ...], int] | None = None


def comes_from(value: Any, *libraries: str) -> bool:
    """Return True if the class of `value`, or a base class, belongs to one of the libraries."""
    kind: Any = type(value)
    return not _libraries(kind).isdisjoint(libraries)


@functools.lru_cache(maxsize=256)
def _libraries(kind: type) -> frozenset[str]:
    return frozenset([c.__module__.partition(".")[0] for c in kind.__mro__])


def graph_library(value: Any) -> str | None:
    """Return the library of a graph that `semiring.graphs.foreign` reads, without importing it; else None."""
    kind: Any = type(value)
    return next((library for library in _libraries(kind) & _GRAPHS.keys() if hasattr(value, _GRAPHS[library])), None)


def is_sparse(value: Any) -> bool:
    """Return True for a sparse array or matrix of SciPy, CuPy, or PyData's sparse."""
    return hasattr(value, "tocoo") if comes_from(value, "scipy", "cupyx") else is_pydata(value)


def holds_sparse(value: Any) -> bool:
    """Return True for a sparse array, or a tuple that begins with one, as for structured elements."""
    return is_sparse(value[0] if isinstance(value, tuple | list) and value else value)


def is_pydata(value: Any) -> bool:
    """Return True for an array of PyData's sparse, without importing it."""
    return comes_from(value, "sparse") and hasattr(value, "from_scipy_sparse")


def refuse_name(value: Any, wanted: str) -> None:
    """Refuse the name of a file, and say how to read such a file. Raises GraphError."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        readers = {".npy": "numpy.load", ".npz": "scipy.sparse.load_npz", ".zarr": "zarr.open"}
        reader = readers.get(os.path.splitext(path)[1], "sr.read_edges")
        raise GraphError(f"{wanted} is expected, and not the name of a file; {reader}({path!r}) reads one")


def to_scipy(value: Any, absent: tuple[Any, ...] = (0, np.inf, -np.inf, np.nan)) -> Any:
    """Convert a sparse array to SciPy; entries that are not stored must be one of `absent`.

    Raises GraphError for an array on a GPU, another fill value, and inconsistent row starts.
    """
    if comes_from(value, "cupyx"):
        raise GraphError(f"the {name_of(value)} is sparse and on a GPU; pass .get() and device='cuda', which copies only the edges")
    if not is_pydata(value):
        return sound_rows(value)
    try:
        return value.asformat("coo").to_scipy_sparse(accept_fv=list(absent))
    except ValueError as error:
        raise GraphError(f"the {name_of(value)} has an edge wherever it stores none ({error}); pass .todense()") from None


def sound_rows(matrix: Any) -> Any:
    """Drop entries of a SciPy array that are stored after the last row; SciPy ignores them too.

    Raises GraphError for row starts that decrease or exceed the stored entries, which SciPy's compiled code does not check.
    """
    starts = getattr(matrix, "indptr", None)
    if starts is None or not len(starts):
        return matrix
    indices, data, count = matrix.indices, matrix.data, int(starts[-1])
    if count > min(len(indices), len(data)) or bool(strange_starts(starts, count)):
        raise strange_columns()
    if len(indices) == len(data) == count:
        return matrix
    return type(matrix)((data[:count], indices[:count], starts), shape=matrix.shape)


def as_array_like(value: Any) -> ArrayLike:
    """Return `value` as an array.

    Raises GraphError if it is no matrix, or cannot be read in place. Raises ShapeError for a ragged nested list.
    """
    if isinstance(value, ArrayLike):
        return value
    # numpy.ma is slow to import, and already imported by the owner of a masked array.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmask(value)
        return ArrayLike(np.asarray(value.data), None if mask is np.ma.nomask else np.asarray(mask))
    if lends_memory(value):
        return _lent(value)
    if isinstance(value, list | tuple):
        return _nested(value)
    if comes_from(value, "sympy"):
        return _sympy_matrix(value)
    if comes_from(value, "pandas") and hasattr(value, "columns"):
        return _data_frame(value)
    if hasattr(value, "__array__") or _is_buffer(value):
        return _lent(value)
    raise GraphError(
        f"{a_name_of(value)} is no graph; pass a square array, a nested list, a SciPy sparse array, a graph of NetworkX, igraph, "
        "rustworkx, networkit or PyTorch Geometric, or semiring.edges([(u, v, weight), …])"
    )


def _lent(value: Any) -> ArrayLike:
    found = borrowed(value)
    return replace(_objects(found.array), restore=found.restore, library=found.restore, constant=found.constant)


def _is_buffer(value: Any) -> bool:
    try:
        return bool(memoryview(value).format)
    except TypeError:
        return False


def _objects(array: Array) -> ArrayLike:
    if array.dtype.kind != "O":
        return ArrayLike(array)
    missing = np.asarray(np.frompyfunc(lambda v: v is None, 1, 1)(array), dtype=bool)
    return ArrayLike(array, missing if missing.any() else None)


def _nested(rows: Any) -> ArrayLike:
    if len(rows) == 0:
        return ArrayLike(np.empty((0, 0)))
    if isinstance(rows, list) and all(isinstance(row, tuple) and len(row) in (2, 3) for row in rows):
        _warn_of_edges(rows)
    array, masked = array_of(rows, "the nested list")
    rounded = rounded_integer(array, rows)
    found = replace(_objects(array if rounded is None else np.array(rows, dtype=object)), numbers=lists_numbers(rows), rounded=rounded)
    if masked is not None:
        return replace(found, missing=masked if found.missing is None else masked | found.missing)
    if found.missing is None:
        return found
    # Without None, the numbers would have a numeric dtype.
    filled = array.copy()
    filled[found.missing] = 0
    typed = np.array(filled.tolist())
    rounded = rounded_integer(typed, filled)
    return replace(found, array=typed if typed.shape == array.shape and rounded is None else filled, rounded=rounded)


def _warn_of_edges(rows: list[tuple[Any, ...]]) -> None:
    """Warn of a matrix that may be a list of edges, and refuse a certain one."""
    if any(isinstance(end, str) for row in rows for end in row[:2]):
        raise GraphError("a list of edges is no matrix; pass sr.edges of it")
    if len(rows) == len(rows[0]):
        warnings.warn(
            f"{len(rows)} tuples are read as the rows of a matrix; if they are edges, pass sr.edges of them, and if not, lists",
            AssumptionWarning,
            stacklevel=callers_level(),
        )


def _sympy_matrix(matrix: Any) -> ArrayLike:
    try:
        array = np.empty(matrix.shape, dtype=object)
        array[...] = np.array(matrix.tolist(), dtype=object).reshape(matrix.shape)
    except (AttributeError, TypeError):
        raise GraphError(f"{a_name_of(matrix)} is no matrix") from None
    return ArrayLike(array, restore=partial(_to_sympy, type(matrix)))


def _to_sympy(kind: Callable[..., Any], result: Array) -> Any:
    rows, columns = result.shape if result.ndim == 2 else (1, result.size)  # SymPy's matrices have two axes
    return kind(rows, columns, result.ravel().tolist())


def _data_frame(frame: Any) -> ArrayLike:
    labels = tuple(frame.index)
    if len(set(labels)) < len(labels):
        raise GraphError("the index of the DataFrame names a vertex twice")
    if labels != tuple(frame.columns):
        if set(labels) != set(frame.columns) or len(frame.columns) != len(labels):
            only = listing(sorted(set(labels) ^ set(frame.columns), key=repr), 3)
            raise GraphError(
                f"the index and the columns of the DataFrame must name the same vertices; {only} differ. "
                "A table with a row for each edge is read by sr.edges(frame, source=…, target=…, weight=…)"
            )
        frame = frame[list(labels)]
    array, rounded = frame.to_numpy(), None
    whole = [kind.kind in "iu" for kind in frame.dtypes]
    if array.dtype.kind == "f" and any(whole) and (rounded := rounded_integer(np.where(whole, array, 0), frame.iloc)):
        array = frame.astype(object).to_numpy()
    return replace(_objects(array), rounded=rounded, labels=labels, restore=_Framed(type(frame), frame.index, frame.index))


@dataclass(frozen=True, eq=False)
class _Framed:
    """Convert a result to a DataFrame with names for rows and columns, or a single row or column to a Series."""

    kind: Callable[..., Any]
    rows: Any
    columns: Any

    def part(self, rows: Array, columns: Array) -> _Framed:
        return replace(self, rows=self.rows[rows], columns=self.columns[columns])

    def __call__(self, result: Array) -> Any:
        frame = self.kind(result.reshape(len(self.rows), len(self.columns)), index=self.rows, columns=self.columns)
        if result.ndim == 2:
            return frame
        if result.ndim == 0:
            return result[()]
        return frame.iloc[0] if len(self.rows) == 1 and len(self.columns) == result.size else frame.iloc[:, 0]
