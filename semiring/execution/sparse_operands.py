"""Sparse arrays of SciPy, PyData and CuPy as operands of a product: compressed rows or columns, and results in the caller's kind.

Entries that are not stored are the semiring's zero, and duplicate entries are added with ⊕. Conversions of `scipy.sparse` that add
duplicates as numbers are therefore never called.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import device_of, namespace, on_gpu
from semiring.arrays.exchange import Borrowed, comes_from, is_pydata, is_sparse
from semiring.arrays.memory import require_row_starts
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.execution.operands import Arrays, DTypes, elements
from semiring.graphs.coo import to_scipy
from semiring.kernels.compressed import CompressedRows, Mask, strange_columns

__all__ = ["SparseOperand", "mask_of", "require_places", "sparse_operand"]


class SparseOperand(NamedTuple):
    """Sparse matrix as stored: compressed rows, or (`by_columns`) those of the transpose; `like` is the caller's object."""

    rows: CompressedRows
    by_columns: bool
    like: Any

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        m, n = self.rows.shape
        return (n, m) if self.by_columns else (m, n)

    @property
    def dtypes(self) -> DTypes:
        """The dtypes of the components."""
        return tuple([v.dtype for v in self.rows.values])

    def converted(self, dtypes: DTypes, semiring: Semiring, name: str) -> SparseOperand:
        """Convert the matrix to other dtypes, with the ±∞ of these dtypes."""
        given = elements(tuple(map(Borrowed, self.rows.values)), dtypes, semiring, f"{name}.data", "cpu")
        values = tuple([namespace(v).ascontiguousarray(v) for v in given])
        return self if all(map(operator.is_, values, self.rows.values)) else self._replace(rows=self.rows._replace(values=values))

    def stored(self, *, by_columns: bool) -> CompressedRows:
        """Return the compressed rows, or those of the transpose."""
        return self.rows if by_columns == self.by_columns else transposed(self.rows)

    def most_duplicates(self) -> int:
        """Return a bound on the entries with the same row and column: 1 without duplicates."""
        if all(is_pydata(x) or getattr(x, "has_canonical_format", False) for x in _components(self.like)):
            return 1
        starts = self.rows.starts
        return max(1, int((starts[1:] - starts[:-1]).max())) if len(starts) > 1 else 1

    def restored(self, product: CompressedRows, values: Arrays, fill: Arrays, *, by_columns: bool) -> tuple[Any, ...]:
        """Return arrays of the caller's kind with these values at the entries of a product (and `fill` elsewhere, for PyData)."""
        places = (product if c == 0 else _copied(product) for c in range(len(values)))  # because the caller may change a component in place
        parts = zip(places, values, fill, strict=True)
        return tuple([_restored(self.like, where, v, f, by_columns=by_columns) for where, v, f in parts])

    def witness(self, product: CompressedRows, via: Any, *, by_columns: bool) -> Any:
        """Return a witness as `restored` does, in arrays that it does not share with the product."""
        return self.restored(_copied(product), (via,), (-1,), by_columns=by_columns)[0]


def _components(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def sparse_operand(x: Any, semiring: Semiring, name: str) -> SparseOperand:
    """Read a sparse array, or a tuple of sparse arrays with entries in the same places for structured elements.

    ShapeError is raised for a wrong number of axes or components, and GraphError for indices that do not fit the shape.
    """
    given = _components(x)
    if len(given) != semiring.components or not all(map(is_sparse, given)):
        several = f"a tuple of {semiring.components} sparse arrays, one a component of {semiring.name}"
        wanted = "a sparse array" if semiring.components == 1 else several
        raise ShapeError(f"{name} must be {wanted}; it is {', '.join(type(v).__name__ for v in given)}")
    parts = [_compressed(v, name, semiring) for v in given]
    rows, by_columns = parts[0]
    for other, way in parts[1:]:
        same = way == by_columns and other.shape == rows.shape
        if not (same and np.array_equal(other.starts, rows.starts) and np.array_equal(other.columns, rows.columns)):
            raise ShapeError(f"the components of {name} must have entries in the same places, in the same order")
    if len(parts) > 1:
        rows = rows._replace(values=tuple([part.values[0] for part, _ in parts]))
    return SparseOperand(rows, by_columns, x)


def require_places(x: Any, name: str) -> None:
    """Refuse a sparse array with indices outside its shape."""
    _compressed(x, name)[0].require_sound()


def _absent(semiring: Semiring, dtype: Any) -> tuple[Any, ...]:
    """List the fill values that PyData's arrays may have: 0, as in SciPy's arrays, or the semiring's zero."""
    zeros = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    with contextlib.suppress(DTypeError):
        zeros += semiring.identities((dtype,) * semiring.components)[0]
    return 0, *zeros


def _compressed(x: Any, name: str, semiring: Semiring | None = None) -> tuple[CompressedRows, bool]:
    """Return the compressed rows of a sparse array and False, or those of its transpose and True."""
    if len(x.shape) != 2:
        raise ShapeError(f"{name} of shape {x.shape} is no matrix; a sparse operand has two axes")
    if comes_from(x, "cupyx"):
        return _compressed_on_gpu(x, name)
    if is_pydata(x):
        x = to_scipy(x, (0,) if semiring is None else _absent(semiring, x.dtype))
    if x.format not in ("csr", "csc"):
        require_row_starts(x.shape[0], name)
        padded, x = x.format in ("bsr", "dia"), x.tocoo()  # blocks and diagonals are padded with zeros
        _require_places(x)
        if padded:
            stored = x.data != 0
            x = _by_rows(x.row[stored], x.col[stored], x.data[stored], x.shape)
        else:
            x = x.tocsr() if x.has_canonical_format else _by_rows(x.row, x.col, x.data, x.shape)
    by_columns = x.format == "csc"
    m, n = x.shape
    shape = (n, m) if by_columns else (m, n)
    count = int(x.indptr[-1]) if len(x.indptr) else 0  # SciPy allows arrays longer than the number of entries
    # Kernels read integers of two widths.
    starts, columns = (np.ascontiguousarray(v, np.int32 if v.dtype == np.int32 else np.int64) for v in (x.indptr, x.indices[:count]))
    rows = CompressedRows(shape, starts, columns, (x.data[:count],))
    _require_lengths(rows, name)
    return rows, by_columns


def _compressed_on_gpu(x: Any, name: str) -> tuple[CompressedRows, bool]:
    import cupy

    m, n = x.shape
    if x.format == "coo":  # because CuPy's own conversion adds duplicates as numbers
        _require_places(x)
        require_row_starts(m, name, device_of(x.data))
        order, starts = _sorted_on_gpu(x.row, m)
        rows, by_columns = CompressedRows((m, n), starts, x.col[order], (x.data[order],)), False
    else:
        x = x if x.format in ("csr", "csc") else x.tocsr()
        by_columns = x.format == "csc"
        starts, columns = map(cupy.ascontiguousarray, (x.indptr, x.indices))
        rows = CompressedRows((n, m) if by_columns else (m, n), starts, columns, (x.data,))
    _require_lengths(rows, name)
    return rows, by_columns


def _require_places(x: Any) -> None:
    """Refuse coordinates outside the shape, which conversions of the libraries do not check."""
    for numbers, length in zip((x.row, x.col), x.shape, strict=True):
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < length):
            raise strange_columns()


def _require_lengths(rows: CompressedRows, name: str) -> None:
    """Refuse index arrays of wrong lengths; kernels check the indices when they read them."""
    if len(rows.starts) != rows.shape[0] + 1 or len(rows.columns) != len(rows.values[0]):
        raise GraphError(f"the index arrays of {name} do not fit its shape and data; its check_format says more")


def _by_rows(row: Any, column: Any, data: Any, shape: tuple[int, int]) -> Any:
    """Return the compressed rows of coordinates, duplicates included."""
    # Row e of the matrix `one_each` has a single entry, in column row[e]; the columns of `one_each` then list the entries by rows.
    one_each = _scipy().csr_array((np.arange(len(row)), row, np.arange(len(row) + 1)), shape=(len(row), shape[0])).tocsc()
    return _scipy().csr_array((data[one_each.indices], column[one_each.indices], one_each.indptr), shape=shape)


def transposed(rows: CompressedRows) -> CompressedRows:
    """Return the compressed rows of the transpose."""
    m, n = rows.shape
    require_row_starts(n, "a sparse array", device_of(rows.columns), rows="columns")
    if on_gpu(rows.columns):
        order, starts = _sorted_on_gpu(rows.columns, n)
        numbers = rows.row_numbers()[order].astype(rows.columns.dtype)
        return CompressedRows((n, m), starts, numbers, tuple([v[order] for v in rows.values]))
    rows.require_sound()
    numbers = _scipy().csr_array((np.arange(len(rows.columns)), rows.columns, rows.starts), shape=(m, n)).tocsc()
    values = tuple([v[numbers.data] for v in rows.values])
    return CompressedRows((n, m), numbers.indptr, numbers.indices, values)


def _sorted_on_gpu(numbers: Any, count: int) -> tuple[Any, Any]:
    """Return the stable order of row numbers (or column numbers), and the starts of `count` rows in this order."""
    xp = namespace(numbers)
    order = xp.argsort(numbers, kind="stable")
    return order, xp.searchsorted(numbers[order], xp.arange(count + 1, dtype=numbers.dtype))


def mask_of(mask: Any, shape: tuple[int, ...], *, complement: bool, by_columns: bool, there: bool = False) -> Mask:
    """Return the mask of a product: the stored entries of a sparse array, or the True entries of a dense one.

    A mask of the host is copied for a product on a GPU (`there`). ShapeError and GraphError are raised for a wrong shape or dtype.
    """
    if is_sparse(mask):
        if mask.shape != shape:
            raise ShapeError(f"mask has shape {mask.shape}; the product has {shape}")
        rows, way = _compressed(mask, "mask")
        pattern = (rows if way == by_columns else transposed(rows))._replace(values=())
    else:
        given = mask if on_gpu(mask) else np.asarray(mask)
        if given.shape != shape or given.dtype != bool:
            raise ShapeError(f"mask must be a sparse or a bool array of shape {shape}; it is {given.dtype} of shape {given.shape}")
        given, xp = given.T if by_columns else given, namespace(given)
        starts = xp.concatenate([xp.zeros(1, np.int64), xp.count_nonzero(given, axis=1).cumsum()])
        pattern = CompressedRows((given.shape[0], given.shape[1]), starts, xp.ascontiguousarray(xp.nonzero(given)[1]))
    if on_gpu(pattern.columns) and not there:
        raise ShapeError("mask is on a GPU, and the sparse arrays are on the host; copy the mask to the host")
    if there:
        xp = importlib.import_module("cupy")
        pattern = pattern._replace(starts=xp.asarray(pattern.starts), columns=xp.asarray(pattern.columns))
    return Mask(pattern, complement)


def _copied(product: CompressedRows) -> CompressedRows:
    return product._replace(starts=product.starts.copy(), columns=product.columns.copy())


def _restored(like: Any, product: CompressedRows, values: Any, fill: Any, *, by_columns: bool) -> Any:
    """Return one component of a product in the kind of the sparse array `like`."""
    first = _components(like)[0]
    m, n = product.shape
    shape = (n, m) if by_columns else (m, n)
    if is_pydata(first):
        sparse: Any = importlib.import_module("sparse")
        places = np.repeat(np.arange(m), np.diff(product.starts)), product.columns
        coo = sparse.COO(np.stack(places[::-1] if by_columns else places), values, shape=shape, has_duplicates=False, fill_value=fill)
        return coo.asformat("gcxs") if type(first).__name__ == "GCXS" else coo
    scipy: Any = importlib.import_module("cupyx.scipy.sparse") if on_gpu(values) else _scipy()
    if on_gpu(values):  # CuPy's sparse matrices cannot hold integers
        values = values if values.dtype.kind in "bf" else values.astype(float)
    kind = f"{'csc' if by_columns else 'csr'}_{'array' if isinstance(first, getattr(scipy, 'sparray', ())) else 'matrix'}"
    made = getattr(scipy, kind)((values, product.columns, product.starts), shape=shape)
    made.has_canonical_format = True
    return made


def _scipy() -> Any:
    """Import SciPy's sparse arrays, which the caller of a sparse array has imported already."""
    return importlib.import_module("scipy.sparse")
