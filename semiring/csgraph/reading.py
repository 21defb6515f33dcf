"""Graphs by SciPy's conventions: a dense matrix with ∞ for non-edges, or edges in compressed rows (CSR).

- A dense array has no edge at 0, NaN and ±∞.
- A masked array has no edge at masked, NaN and infinite entries; 0 is an edge.
- A sparse array has an edge at each stored entry except NaN and ∞; the lightest of parallel edges counts.

Unweighted calls count every stored or unmasked entry as an edge, as SciPy does except for Floyd–Warshall. SciPy reads every dense weight
below 1e-8 as 0 (it compares by `numpy.ma.masked_values`), and its Floyd–Warshall reads zeros of masked arrays as non-edges; here both are
edges.

`read` returns a `CSGraph`. The functions below it change compressed rows of float64 weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, in_order, in_range
from semiring.arrays.devices import device_of, equal, host, namespace, on_device, on_gpu
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import require_memory, require_row_starts
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.common.forks import cached_property
from semiring.graphs.array_like import ArrayLike, is_sparse, to_scipy
from semiring.graphs.dense import read_dense
from semiring.graphs.graph import Reading
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.statistics import value_statistics

__all__ = [
    "Array", "CSGraph", "as_scipys", "both_ways", "in_dtype", "is_held", "nulls", "read", "require_held", "require_square", "some",
    "with_root",
]  # fmt: skip

Array = np.ndarray[Any, Any]

_EXACT = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""Dtypes that are read without conversion; others become float64, as in SciPy."""

_HALF, _FLOAT64 = np.dtype(np.float16), np.dtype(np.float64)

_ZERO = (np.inf,)
"""The entry for no edge."""


@dataclass(frozen=True, eq=False)
class CSGraph:
    """A graph by SciPy's conventions, as the caller passed it: a dense array and where it has no edge, or edges in compressed rows.

    Attributes
    ----------
    dense : array of shape (n, n) or None
        Of the host, or of a GPU.
    missing : bool array of shape (n, n) or None
        Where a dense array has no edge, if not only where it is 0.
    entries : CSR or None
        What a sparse array stores, infinite weights too; ∞ for NaN.
    stored : int
        How many edges there are by SciPy's count.
    scipys : csr_array or csr_matrix, optional
        The same as `entries`, where SciPy's functions take it as it is.
    mask : bool array or None
        That of a masked array.
    restore : callable or None
        Makes of an array on a GPU one of the caller's library; in the host's memory results are NumPy's, as SciPy's are.
    statistics : ValueStatistics or None
        What the numbers of a dense array are, where edges are missing at 0, NaN and ±∞ alone.
    """

    dense: Any
    missing: Any
    entries: CSR | None
    stored: int
    scipys: Any = None
    mask: Any = None
    restore: Callable[[Any], Any] | None = None
    statistics: ValueStatistics | None = None

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.entries.n if self.entries is not None else len(self.dense)

    @cached_property
    def negative(self) -> bool:
        """True if an edge is negative."""
        if self.entries is not None:
            return self.csr.statistics[0].negative
        if self.statistics is not None:
            return self.statistics.negative
        below = self.dense < 0
        return bool(below.any()) and bool((below & ~self.absent).any())

    @cached_property
    def absent(self) -> Any:
        """Marks the entries of a dense array without an edge."""
        return nulls(self.dense, 0) if self.missing is None else self.missing

    @cached_property
    def ready(self) -> bool:
        """True if a dense array has ∞ for every missing edge, except for loops, which may be 0."""
        found = self.statistics
        if found is None or found.nan or found.negative_infinity:
            return False
        return not found.zeros or found.zeros == self.n - np.count_nonzero(self.dense.diagonal())

    @cached_property
    def csr(self) -> CSR:
        """The edges in compressed rows."""
        if self.entries is not None:
            (found,) = self.entries.statistics
            if found.negative_infinity:
                raise GraphError("csgraph stores −∞, which is no weight: no path through it has a length")
            if not found.positive_infinity:
                return self.entries
            return some(self.entries, self.entries.weights[0] < np.inf, (found._replace(positive_infinity=False),))
        there = ~host(self.absent)
        tails, heads = np.nonzero(there)
        return CSR.of(tails, heads, (host(self.dense)[there].astype(np.float64),), self.n, _ZERO)

    def unweighted(self, *, infinite: bool) -> CSGraph:
        """Give each edge the weight 1, with `infinite` edges of infinite weight too; a dense array becomes one broadcast number."""
        if self.entries is not None:
            csr = self.entries if infinite else self.csr
            return replace(self, entries=_weighing(csr, (np.ones_like(csr.weights[0]),)), scipys=None)
        with on_device(device_of(self.dense)):
            xp = namespace(self.dense)
            missing = self.mask if infinite and self.mask is not None else self.absent
            ones = xp.broadcast_to(xp.ones((), dtype=np.float32), self.dense.shape)
            return replace(self, dense=ones, missing=missing, statistics=None)

    def reached_from(self, sources: Array, *, directed: bool) -> CSGraph:
        """Keep the edges that paths from the sources can take."""
        csr = self.csr if directed else both_ways(self.csr)
        reached = np.zeros(self.n + 1, dtype=bool)
        reached[breadth_first_order(as_scipys(with_root(csr, sources)), self.n, return_predecessors=False)] = True
        reached = reached[:-1]
        if reached.all():
            return self
        if self.entries is not None:
            return replace(self, entries=in_dtype(some(self.csr, reached[self.csr.tails]), _FLOAT64), scipys=None)
        with on_device(device_of(self.dense)):
            missing = self.absent | ~namespace(self.dense).asarray(reached)[:, None]
            return replace(self, missing=missing, statistics=None)

    def matrix(
        self, dtype: np.dtype[Any], *, overwrite: bool = False, borrow: bool = False, paths: bool = False, device: str = "cpu"
    ) -> Any:
        """Return the edges as a dense matrix with ∞ elsewhere; a missing loop may be 0.

        Parameters
        ----------
        dtype : float32 or float64
        overwrite, borrow : bool
            Permits to return the caller's array, to be overwritten, or to be read only.
        paths : bool
            True if predecessors must fit into memory too.
        device : str
            The device on which the matrix of a sparse array is made.

        Raises
        ------
        TooLargeError, DTypeError
            For too little memory, or a weight beyond float32.
        """
        if self.entries is not None:
            require_memory(self.n, (dtype,), via=paths)
            require_held(self.csr, dtype)
            with on_device(device):
                return in_dtype(self.csr, dtype).dense(device)[0]
        if not overwrite and type(self.dense) is np.ndarray and self.dense.dtype == dtype:
            if self.ready and borrow:
                return self.dense
            require_memory(self.n, (dtype,), via=paths)
            return self.dense.copy() if self.ready else np.where(self.absent, dtype.type(np.inf), self.dense)
        reading = Reading(nonedge=np.inf, dtype=dtype, overwrite=overwrite, presence=False, paths=paths)
        return read_dense((ArrayLike(self.dense, self.absent),), MIN_PLUS, reading).values[0]


def read(csgraph: Any) -> CSGraph:
    """A graph by SciPy's conventions.

    Parameters
    ----------
    csgraph : array_like, masked array, sparse array or matrix, array of PyData's sparse, or array on a GPU

    Raises
    ------
    GraphError, ShapeError
        Both are ValueErrors, as SciPy's are: where it is no square matrix, or one of texts or dates.
    """
    array, mask, restore = csgraph, None, None
    if type(csgraph) is not np.ndarray:
        if issparse(csgraph) or is_sparse(csgraph):
            return _read_sparse(to_scipy(csgraph))
        if isinstance(csgraph, np.ma.MaskedArray):
            mask = np.ma.getmask(csgraph)
        elif lends_memory(csgraph):
            there = borrowed(csgraph)
            array, restore = there.array, there.restore if on_gpu(there.array) else None
        if not on_gpu(array):
            array = np.asarray(array)
    require_square(array)
    if array.dtype.kind not in "biufcO":
        raise GraphError(f"graph has entries of dtype {array.dtype}, which are no numbers; pass .astype(float) if they stand for some")
    if array.dtype not in _EXACT:
        array = array.astype(np.float64)
    if mask is None and array.dtype != _HALF and type(array) is np.ndarray and array.flags.aligned:
        found = value_statistics((array,))[0]
        missing = None if found.all_finite else nulls(array, 0)
        none = found.zeros if missing is None else int(np.count_nonzero(missing))
        return CSGraph(array, missing, None, array.size - none, statistics=found)
    missing = nulls(array, None if mask is not None else 0)
    if mask is None:
        absent = missing.sum() if on_gpu(missing) else np.count_nonzero(missing)
        return CSGraph(array, missing, None, array.size - int(absent), restore=restore)
    mask = np.broadcast_to(mask, array.shape)
    return CSGraph(array, missing | mask, None, array.size - int(mask.sum()), mask=mask)


def require_square(array: Any) -> None:
    """Refuse a dense array that is no square matrix."""
    if array.ndim != 2:
        raise ShapeError(f"graph should have two dimensions; this one has the shape {array.shape}")
    if array.shape[0] != array.shape[1]:
        raise ShapeError(f"graph should be a square array; this one has the shape {array.shape}")


def nulls(array: Any, null_value: float | None, *, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """Mark the entries of a dense array without an edge: `null_value` exactly, NaN and ±∞."""
    xp = namespace(array)
    missing = xp.zeros(array.shape, dtype=bool) if null_value is None or np.isnan(null_value) else equal(array, null_value)
    if array.dtype.kind in "fc":
        if nan_null and infinity_null:
            missing |= ~xp.isfinite(array)
        elif nan_null:
            missing |= xp.isnan(array)
        elif infinity_null:
            missing |= xp.isinf(array)
    return missing


def _read_sparse(graph: Any) -> CSGraph:
    """Read the stored entries of a sparse array."""
    stored = graph.nnz
    if graph.ndim != 2:
        raise ShapeError("compressed-sparse graph must be 2-D")
    n = int(graph.shape[0])
    if graph.shape[1] != n:
        raise ShapeError(f"compressed-sparse graph must be shape (N, N), not {graph.shape}")
    if graph.dtype.kind in "iu":
        graph = graph.astype(np.float64)  # so that no sum of a COO array's duplicates wraps
    if graph.format != "csr":
        require_row_starts(n, "csgraph", rows="vertices", entries="edges")
    matrix = graph.tocsr()
    ordered = bool(matrix.has_canonical_format)
    heads, weights = matrix.indices.astype(np.int64, copy=False), matrix.data.astype(np.float64, copy=False)
    if not in_range(heads, n):
        raise GraphError(f"csgraph stores an entry in column {heads[(heads < 0) | (heads >= n)][0]}, of {n}")
    (found,) = value_statistics((weights,))
    scipys = None if found.nan or matrix.dtype != np.float64 else matrix
    if found.nan:
        weights = np.where(np.isnan(weights), np.inf, weights)
        (found,) = value_statistics((weights,))
    csr = CSR(n, matrix.indptr.astype(np.intp, copy=False), heads, (weights,), _ZERO, (found,))
    if ordered and len(heads) == csr.starts[-1]:
        return CSGraph(None, None, csr, stored, scipys)
    return CSGraph(None, None, in_dtype(_lightest(n, csr.tails, heads, weights), _FLOAT64), stored)


def _lightest(n: int, tails: Array, heads: Array, weights: Array) -> CSR:
    """From coordinates in any order; of parallel edges the lightest."""
    return CSR.of(*in_order(n, tails, heads, (weights,), _minima), n, _ZERO)


def _minima(places: Array, weights: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """Each of the sorted places once, and the least of its weights."""
    first = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    return places[first], (np.minimum.reduceat(weights[0], first),)


def _weighing(csr: CSR, weights: tuple[Array, ...]) -> CSR:
    """The same edges with other weights, and what these are."""
    return CSR(csr.n, csr.starts, csr.heads, weights, _ZERO, value_statistics(weights))


def some(csr: CSR, kept: Array, statistics: tuple[ValueStatistics, ...] = ()) -> CSR:
    """Some of the edges, by a mask, and what these are if that is known."""
    return csr if kept.all() else CSR.of(csr.tails[kept], csr.heads[kept], (csr.weights[0][kept],), csr.n, _ZERO, statistics)


def both_ways(csr: CSR) -> CSR:
    """The graph without directions: the lighter of two opposite edges goes both ways."""
    tails, heads = np.concatenate([csr.tails, csr.heads]), np.concatenate([csr.heads, csr.tails])
    return _lightest(csr.n, tails, heads, np.tile(csr.weights[0], 2))


def with_root(csr: CSR, sources: Array) -> CSR:
    """The graph with one more vertex, n, and an edge of weight 0 from it to each of the sources."""
    tails, heads = np.concatenate([csr.tails, np.full(len(sources), csr.n)]), np.concatenate([csr.heads, sources])
    return _lightest(csr.n + 1, tails, heads, np.concatenate([csr.weights[0], np.zeros(len(sources))]))


def in_dtype(csr: CSR, dtype: np.dtype[Any]) -> CSR:
    """Convert weights to a dtype, with their value statistics; too large a weight becomes infinite."""
    if csr.weights[0].dtype == dtype:
        return csr if csr.statistics else _weighing(csr, csr.weights)
    with np.errstate(over="ignore"):
        return _weighing(csr, (csr.weights[0].astype(dtype),))


def is_held(csr: CSR, dtype: np.dtype[Any]) -> bool:
    """Return True if a dtype can hold all weights."""
    if dtype == np.float64:
        return True
    (found,) = csr.statistics or value_statistics(csr.weights)
    return bool(found.largest <= float(np.finfo(dtype).max))


def require_held(csr: CSR, dtype: np.dtype[Any]) -> None:
    """Refuse an edge that weighs more than a dtype can hold, which would seem to be none.

    Raises
    ------
    DTypeError
    """
    if not is_held(csr, dtype):
        (weights,) = csr.weights
        at = int(np.argmax(np.abs(weights)))
        raise DTypeError(f"csgraph[{csr.tails[at]}, {csr.heads[at]}] is {weights[at]}, which {dtype} cannot hold; use float64")


def as_scipys(csr: CSR, given: CSGraph | None = None) -> Any:
    """Return compressed rows as SciPy's array; the caller's own, if the rows are its `entries`."""
    if given is not None and given.scipys is not None and csr is given.entries:
        return given.scipys
    index = np.int32 if max(csr.n, len(csr.heads)) <= np.iinfo(np.int32).max else np.int64
    return csr_array((csr.weights[0], csr.heads.astype(index), csr.starts.astype(index)), shape=(csr.n, csr.n))
