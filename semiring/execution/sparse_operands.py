"""Sparse arrays of SciPy and of PyData as operands of a product: compressed as they are stored, and results in the caller's own kind.

What is not stored is the semiring's zero, and what is stored twice is added with ⊕; `scipy.sparse` would add numbers, so nothing here calls
what does.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import device_of, namespace, on_gpu
from semiring.arrays.exchange import Borrowed
from semiring.arrays.memory import require_row_starts
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.execution.operands import Arrays, elements
from semiring.graphs.array_like import comes_from, is_pydata, is_sparse, to_scipy
from semiring.kernels.compressed import CompressedRows, Mask, strange_columns

__all__ = ["SparseOperand", "mask_of", "require_places", "sparse_operand"]

DTypes = tuple[np.dtype[Any], ...]


class SparseOperand(NamedTuple):
    """A sparse matrix as it is stored.

    Attributes
    ----------
    rows : CompressedRows
        The rows of the matrix, or of the transpose for storage by columns.
    by_columns : bool
    like : sparse array
        The caller's array, or the first component.
    """

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
        """The same in other dtypes, ±∞ as it is written there."""
        values = elements(tuple(map(Borrowed, self.rows.values)), dtypes, semiring, f"{name}.data", "cpu")
        return self._replace(rows=self.rows._replace(values=tuple([namespace(v).ascontiguousarray(v) for v in values])))

    def stored(self, *, by_columns: bool) -> CompressedRows:
        """The compressed rows, or those of the transpose."""
        return self.rows if by_columns == self.by_columns else transposed(self.rows)

    def most_alike(self) -> int:
        """A bound for how many entries a place has: 1 where nothing is stored twice."""
        if all(is_pydata(x) or getattr(x, "has_canonical_format", False) for x in _components(self.like)):
            return 1
        starts = self.rows.starts
        return max(1, int((starts[1:] - starts[:-1]).max())) if len(starts) > 1 else 1

    def restored(self, product: CompressedRows, values: Arrays, fill: Arrays, *, by_columns: bool) -> tuple[Any, ...]:
        """Arrays of the caller's kind with these values at the entries of a product, and `fill` elsewhere where a library has that."""
        places = (product if c == 0 else _copied(product) for c in range(len(values)))  # the caller may change one of the two arrays
        parts = zip(places, values, fill, strict=True)
        return tuple([_restored(self.like, where, v, f, by_columns=by_columns) for where, v, f in parts])

    def witness(self, product: CompressedRows, via: Any, *, by_columns: bool) -> Any:
        """The same of a witness, whose arrays are its own."""
        return self.restored(_copied(product), (via,), (-1,), by_columns=by_columns)[0]


def _components(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def sparse_operand(x: Any, semiring: Semiring, name: str) -> SparseOperand:
    """A sparse array, or for structured elements a tuple of such with entries in the same places.

    Raises
    ------
    ShapeError, GraphError
        Of another number of axes or components, with numbers of columns that it has not, or on a GPU.
    """
    given = _components(x)
    if len(given) != semiring.components or not all(map(is_sparse, given)):
        raise ShapeError(f"{name} must be {_wanted(semiring)}; it is {', '.join(type(v).__name__ for v in given)}")
    parts = [_compressed(v, name, semiring) for v in given]
    rows, by_columns = parts[0]
    for other, way in parts[1:]:
        same = way == by_columns and other.shape == rows.shape
        if not (same and np.array_equal(other.starts, rows.starts) and np.array_equal(other.columns, rows.columns)):
            raise ShapeError(f"the components of {name} must have entries in the same places, in the same order")
    return SparseOperand(rows._replace(values=tuple([part.values[0] for part, _ in parts])), by_columns, x)


def require_places(x: Any, name: str) -> None:
    """Refuse a sparse array with indices outside its shape."""
    _compressed(x, name)[0].require_sound()


def _wanted(semiring: Semiring) -> str:
    several = f"a tuple of {semiring.components} sparse arrays, one a component of {semiring.name}"
    return "a sparse array" if semiring.components == 1 else several


def _absent(semiring: Semiring, dtype: Any) -> tuple[Any, ...]:
    """Return the fill values that PyData's arrays may have: 0, as in SciPy, or the semiring's zero."""
    zeros = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    with contextlib.suppress(DTypeError):
        zeros += semiring.identities((dtype,) * semiring.components)[0]
    return 0, *zeros


def _compressed(x: Any, name: str, semiring: Semiring | None = None) -> tuple[CompressedRows, bool]:
    """Compressed rows of a sparse array, or those of its transpose."""
    if len(x.shape) != 2:
        raise ShapeError(f"{name} of shape {x.shape} is no matrix; a sparse operand has two axes")
    if comes_from(x, "cupyx"):
        return _compressed_on_gpu(x, name)
    if is_pydata(x):
        x = to_scipy(x, (0,) if semiring is None else _absent(semiring, x.dtype))
    if x.format not in ("csr", "csc"):
        require_row_starts(x.shape[0], name)
    if x.format in ("bsr", "dia"):  # which store numbers that only pad a block or a diagonal
        x = x.tocoo()
        _require_places(x)
        stored = x.data != 0
        x = _by_rows(x.row[stored], x.col[stored], x.data[stored], x.shape)
    elif x.format not in ("csr", "csc"):
        x = x.tocoo()
        _require_places(x)
        x = x.tocsr() if x.has_canonical_format else _by_rows(x.row, x.col, x.data, x.shape)
    by_columns = x.format == "csc"
    m, n = x.shape
    shape = (n, m) if by_columns else (m, n)
    count = int(x.indptr[-1]) if len(x.indptr) else 0  # SciPy lets more be stored than there is
    starts, columns = map(_indices, (x.indptr, x.indices[:count]))
    rows = CompressedRows(shape, starts, columns, (x.data[:count],))
    _require_lengths(rows, name)
    return rows, by_columns


def _compressed_on_gpu(x: Any, name: str) -> tuple[CompressedRows, bool]:
    """The same of a sparse matrix of CuPy."""
    import cupy

    m, n = x.shape
    if x.format == "coo":  # as CuPy's own conversion would add what is stored twice
        _require_places(x)
        require_row_starts(m, name, device_of(x.data))
        order = cupy.argsort(x.row, kind="stable")
        starts = cupy.searchsorted(x.row[order], cupy.arange(m + 1, dtype=x.row.dtype))
        rows, by_columns = CompressedRows((m, n), starts, x.col[order], (x.data[order],)), False
    else:
        x = x if x.format in ("csr", "csc") else x.tocsr()
        by_columns = x.format == "csc"
        starts, columns = map(cupy.ascontiguousarray, (x.indptr, x.indices))
        rows = CompressedRows((n, m) if by_columns else (m, n), starts, columns, (x.data,))
    _require_lengths(rows, name)
    return rows, by_columns


def _require_places(x: Any) -> None:
    """Refuse coordinates outside the shape, which converting libraries do not check."""
    for numbers, length in zip((x.row, x.col), x.shape, strict=True):
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < length):
            raise strange_columns()


def _indices(given: Any) -> Any:
    """Integers side by side, of one of the two widths that kernels have."""
    return np.ascontiguousarray(given, np.int32 if given.dtype == np.int32 else np.int64)


def _require_lengths(rows: CompressedRows, name: str) -> None:
    """Refuse arrays of other lengths. What they say is looked at where it is read."""
    if len(rows.starts) != rows.shape[0] + 1 or len(rows.columns) != len(rows.values[0]):
        raise GraphError(f"{name} has indices outside its shape; its check_format says more")


def _by_rows(row: Any, column: Any, data: Any, shape: tuple[int, int]) -> Any:
    """Compress coordinates by rows, and keep all entries at the same place."""
    # Row e of this matrix has a single entry, whose column is the row of entry e: by its columns, entries are sorted by rows.
    one_each = _scipy().csr_array((np.arange(len(row)), row, np.arange(len(row) + 1)), shape=(len(row), shape[0])).tocsc()
    return _scipy().csr_array((data[one_each.indices], column[one_each.indices], one_each.indptr), shape=shape)


def transposed(rows: CompressedRows) -> CompressedRows:
    """Compressed rows of the transpose."""
    m, n = rows.shape
    require_row_starts(n, "a sparse array", device_of(rows.columns), rows="columns")
    if on_gpu(rows.columns):
        xp = namespace(rows.columns)
        order = xp.argsort(rows.columns, kind="stable")
        starts = xp.searchsorted(rows.columns[order], xp.arange(n + 1, dtype=rows.columns.dtype))
        numbers = rows.row_numbers()[order].astype(rows.columns.dtype)
        return CompressedRows((n, m), starts, numbers, tuple([v[order] for v in rows.values]))
    rows.require_sound()
    numbers = _scipy().csr_array((np.arange(len(rows.columns)), rows.columns, rows.starts), shape=(m, n)).tocsc()
    values = tuple([v[numbers.data] for v in rows.values])
    return CompressedRows((n, m), numbers.indptr, numbers.indices, values)


def mask_of(mask: Any, shape: tuple[int, ...], *, complement: bool, by_columns: bool, there: bool = False) -> Mask:
    """The mask of a product: where a sparse array stores anything, or a dense one of truth values is True.

    A product on a GPU, `there`, takes one of the host too.

    Raises
    ------
    ShapeError, GraphError
        For another shape or dtype.
    """
    if is_sparse(mask):
        if mask.shape != shape:
            raise ShapeError(f"mask has shape {mask.shape}; the product has {shape}")
        rows, way = _compressed(mask, "mask")
        pattern = (rows if way == by_columns else transposed(rows))._replace(values=())
    else:
        given = mask if on_gpu(mask) else np.asarray(mask)
        if given.shape != shape or given.dtype != bool:
            found = f"it is {given.dtype} of shape {given.shape}"
            raise ShapeError(f"mask must be a sparse array, or one of truth values, of shape {shape}; {found}")
        given, xp = given.T if by_columns else given, namespace(given)
        starts = xp.concatenate([xp.zeros(1, np.int64), xp.count_nonzero(given, axis=1).cumsum()])
        pattern = CompressedRows((given.shape[0], given.shape[1]), starts, xp.ascontiguousarray(xp.nonzero(given)[1]))
    if on_gpu(pattern.columns) and not there:
        raise ShapeError("mask lies on a GPU, and the sparse arrays do not; bring it to them")
    if there:
        xp = importlib.import_module("cupy")
        pattern = pattern._replace(starts=xp.asarray(pattern.starts), columns=xp.asarray(pattern.columns))
    return Mask(pattern, complement)


def _copied(product: CompressedRows) -> CompressedRows:
    return product._replace(starts=product.starts.copy(), columns=product.columns.copy())


def _restored(like: Any, product: CompressedRows, values: Any, fill: Any, *, by_columns: bool) -> Any:
    """One component of a product in the kind of a sparse array."""
    first = _components(like)[0]
    m, n = product.shape
    shape = (n, m) if by_columns else (m, n)
    if is_pydata(first):
        sparse: Any = importlib.import_module("sparse")
        places = np.repeat(np.arange(m), np.diff(product.starts)), product.columns
        coo = sparse.COO(np.stack(places[::-1] if by_columns else places), values, shape=shape, has_duplicates=False, fill_value=fill)
        return coo.asformat("gcxs") if type(first).__name__ == "GCXS" else coo
    scipy: Any = importlib.import_module("cupyx.scipy.sparse") if on_gpu(values) else _scipy()
    if on_gpu(values):  # CuPy's matrices have no integers
        values = values if values.dtype.kind in "bf" else values.astype(float)
    kind = f"{'csc' if by_columns else 'csr'}_{'array' if isinstance(first, getattr(scipy, 'sparray', ())) else 'matrix'}"
    made = getattr(scipy, kind)((values, product.columns, product.starts), shape=shape)
    made.has_canonical_format = True
    return made


def _scipy() -> Any:
    """Return SciPy's module of sparse arrays, which a caller with such an array has imported."""
    return importlib.import_module("scipy.sparse")
