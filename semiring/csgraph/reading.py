"""Graphs by SciPy's conventions: a dense matrix with ∞ for non-edges, or edges in compressed rows (CSR).

These entries are not edges:

- of a dense array: 0, NaN and ±∞;
- of a masked array: masked, NaN and infinite entries, so 0 is an edge;
- of a sparse array: entries that are not stored, NaN and ∞. The lightest of parallel edges counts.

An unweighted request counts every stored or unmasked entry, except for Floyd–Warshall, as in SciPy. SciPy itself takes every dense weight
below 1e-8 for 0 (like `numpy.ma.masked_values`), and SciPy's Floyd–Warshall takes zeros of masked arrays for non-edges; here neither.

`read` returns a `CSGraph`; the functions after `read` change compressed rows of float64 weights.
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
from semiring.arrays.conversion import Array
from semiring.arrays.devices import device_of, equal, host, namespace, on_device, on_gpu
from semiring.arrays.exchange import ArrayLike, borrowed, is_sparse, lends_memory
from semiring.arrays.memory import require_memory, require_row_starts
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.common.forks import cached_property
from semiring.graphs.coo import to_scipy
from semiring.graphs.dense import Reading, read_dense
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.statistics import value_statistics

__all__ = [
    "Array", "CSGraph", "as_scipys", "both_ways", "in_dtype", "is_held", "nulls", "read", "require_held", "require_square", "some",
    "with_root",
]  # fmt: skip

_EXACT = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""Dtypes that are kept; other numbers become float64, as in SciPy."""

_HALF, _FLOAT64 = np.dtype(np.float16), np.dtype(np.float64)

_ZERO = (np.inf,)
"""The entry of a matrix without an edge, for each component."""


@dataclass(frozen=True, eq=False)
class CSGraph:
    """A graph by SciPy's conventions: a dense array with a mask of non-edges, or edges in compressed rows."""

    dense: Any  # array of shape (n, n) on the host or a GPU, or None
    missing: Any  # mask of the non-edges of `dense`; None if only zeros are non-edges
    entries: CSR | None  # stored entries of a sparse array, infinite weights included; NaN becomes ∞
    stored: int  # number of edges by SciPy's count
    scipys: Any = None  # the caller's csr_array or csr_matrix of `entries`, if SciPy's functions can take it
    mask: Any = None  # mask of a masked array
    restore: Callable[[Any], Any] | None = None  # converts a GPU array to the caller's library; host results are NumPy's, as in SciPy
    statistics: ValueStatistics | None = None  # of `dense`, if only 0, NaN and ±∞ are non-edges

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
        """Mask of the non-edges of a dense array."""
        return nulls(self.dense, 0) if self.missing is None else self.missing

    @cached_property
    def ready(self) -> bool:
        """True if a dense array has ∞ for every non-edge; a missing loop may also be 0."""
        found = self.statistics
        if found is None or found.nan or found.negative_infinity:
            return False
        return not found.zeros or found.zeros == self.n - np.count_nonzero(self.dense.diagonal())

    @cached_property
    def csr(self) -> CSR:
        """Edges in compressed rows."""
        if self.entries is not None:
            (found,) = self.entries.statistics
            if found.negative_infinity:
                raise GraphError("csgraph stores −∞, but a path through such an edge has no length")
            if not found.positive_infinity:
                return self.entries
            return some(self.entries, self.entries.weights[0] < np.inf, (found._replace(positive_infinity=False),))
        there = ~host(self.absent)
        tails, heads = np.nonzero(there)
        return CSR.of(tails, heads, (host(self.dense)[there].astype(np.float64),), self.n, _ZERO)

    def unweighted(self, *, infinite: bool) -> CSGraph:
        """Return the graph with weight 1 for every edge, with `infinite` also for edges of infinite weight.

        A dense array becomes a broadcast view of one number.
        """
        if self.entries is not None:
            csr = self.entries if infinite else self.csr
            return replace(self, entries=_weighing(csr, (np.ones_like(csr.weights[0]),)), scipys=None)
        with on_device(device_of(self.dense)):
            xp = namespace(self.dense)
            missing = self.mask if infinite and self.mask is not None else self.absent
            ones = xp.broadcast_to(xp.ones((), dtype=np.float32), self.dense.shape)
            return replace(self, dense=ones, missing=missing, statistics=None)

    def reached_from(self, sources: Array, *, directed: bool) -> CSGraph:
        """Return the graph of the edges that a path from one of the sources can take."""
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
        """Return the edges as a float32 or float64 matrix with ∞ for non-edges; a missing loop may also be 0.

        With `overwrite` or `borrow` (only to read) the result may be the caller's array; `device` is for sparse arrays. TooLargeError means
        that the matrix, with `paths` also the predecessors, does not fit; DTypeError that a weight does not fit float32.
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
    """Read a dense, masked or sparse array (also PyData's sparse, or on a GPU) by SciPy's conventions.

    Raises
    ------
    GraphError, ShapeError
        If the array is not a square matrix of numbers; both are ValueErrors, like SciPy's errors.
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
        raise GraphError(
            f"graph has entries of dtype {array.dtype}, not numbers; pass graph.astype(float) if the entries represent numbers"
        )
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
    """Raise ShapeError unless a dense array is a square matrix."""
    if array.ndim != 2:
        raise ShapeError(f"graph should have two dimensions; this one has the shape {array.shape}")
    if array.shape[0] != array.shape[1]:
        raise ShapeError(f"graph should be a square array; this one has the shape {array.shape}")


def nulls(array: Any, null_value: float | None, *, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """Return the mask of the entries that equal `null_value`, are NaN, or are ±∞."""
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
    stored = graph.nnz
    if graph.ndim != 2:
        raise ShapeError("compressed-sparse graph must be 2-D")
    n = int(graph.shape[0])
    if graph.shape[1] != n:
        raise ShapeError(f"compressed-sparse graph must be shape (N, N), not {graph.shape}")
    if graph.dtype.kind in "iu":
        graph = graph.astype(np.float64)  # before duplicates of a COO array are added, which could wrap
    if graph.format != "csr":
        require_row_starts(n, "csgraph", rows="vertices", entries="edges")
    matrix = graph.tocsr()
    ordered = bool(matrix.has_canonical_format)
    heads, weights = matrix.indices.astype(np.int64, copy=False), matrix.data.astype(np.float64, copy=False)
    if not in_range(heads, n):
        raise GraphError(f"csgraph stores an entry in column {heads[(heads < 0) | (heads >= n)][0]}, but has only {n} columns")
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
    """Build compressed rows from coordinates in any order, with the lightest of parallel edges."""

    def minima(places: Array, weights: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        first = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
        return places[first], (np.minimum.reduceat(weights[0], first),)

    return CSR.of(*in_order(n, tails, heads, (weights,), minima), n, _ZERO)


def _weighing(csr: CSR, weights: tuple[Array, ...]) -> CSR:
    """Return the same edges with other weights, and the statistics of these weights."""
    return CSR(csr.n, csr.starts, csr.heads, weights, _ZERO, value_statistics(weights))


def some(csr: CSR, kept: Array, statistics: tuple[ValueStatistics, ...] = ()) -> CSR:
    """Return the edges of a mask, with the statistics of the weights if known."""
    return csr if kept.all() else CSR.of(csr.tails[kept], csr.heads[kept], (csr.weights[0][kept],), csr.n, _ZERO, statistics)


def both_ways(csr: CSR) -> CSR:
    """Return the undirected graph, in which the lighter of two opposite edges goes both ways."""
    tails, heads = np.concatenate([csr.tails, csr.heads]), np.concatenate([csr.heads, csr.tails])
    return _lightest(csr.n, tails, heads, np.tile(csr.weights[0], 2))


def with_root(csr: CSR, sources: Array) -> CSR:
    """Add a vertex n with an edge of weight 0 to each of the sources."""
    tails, heads = np.concatenate([csr.tails, np.full(len(sources), csr.n)]), np.concatenate([csr.heads, sources])
    return _lightest(csr.n + 1, tails, heads, np.concatenate([csr.weights[0], np.zeros(len(sources))]))


def in_dtype(csr: CSR, dtype: np.dtype[Any]) -> CSR:
    """Convert the weights to a dtype, with statistics; a weight that the dtype cannot hold becomes infinite."""
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
    """Raise DTypeError if a dtype cannot hold a weight, which as ∞ would look like a non-edge."""
    if not is_held(csr, dtype):
        (weights,) = csr.weights
        at = int(np.argmax(np.abs(weights)))
        raise DTypeError(f"csgraph[{csr.tails[at]}, {csr.heads[at]}] is {weights[at]}, which {dtype} cannot hold; use float64")


def as_scipys(csr: CSR, given: CSGraph | None = None) -> Any:
    """Convert compressed rows for SciPy's functions, or return the caller's own array if `csr` holds the entries of `given`."""
    if given is not None and given.scipys is not None and csr is given.entries:
        return given.scipys
    index = np.int32 if max(csr.n, len(csr.heads)) <= np.iinfo(np.int32).max else np.int64
    return csr_array((csr.weights[0], csr.heads.astype(index), csr.starts.astype(index)), shape=(csr.n, csr.n))
