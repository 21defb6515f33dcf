"""What SciPy calls a graph, by its conventions; either as a dense matrix with ∞ for non-edges or edge by edge.

In a dense array 0, NaN and ±∞ are no edges; in a masked array what is masked, NaN or infinite, so that 0 is an edge; in a sparse array
what is not stored, NaN or ∞. Where edges are counted instead of weighed, whatever is stored or not masked is one, as in SciPy, whose
Floyd–Warshall alone goes by the weight there too. SciPy's own reading takes every dense weight below 1e-8 for 0 (it compares as
`numpy.ma.masked_values` does), and its Floyd–Warshall the zeros of masked arrays for non-edges; here it is all as said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import breadth_first_order

from semiring.algebra.catalogue import MIN_PLUS
from semiring.arrays.devices import device_of, equal, host, namespace, on_device, on_gpu
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import require_memory
from semiring.common.errors import GraphError, ShapeError
from semiring.common.forks import cached_property
from semiring.csgraph.arcs import Arcs, Array
from semiring.graphs.array_like import Source, is_sparse, to_scipy
from semiring.graphs.dense import read_dense
from semiring.graphs.graph import Reading
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.statistics import value_statistics

__all__ = ["Given", "nulls", "read", "require_square"]

_EXACT = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
"""What is read as it is; everything else as float64, as SciPy does."""

_HALF = np.dtype(np.float16)


@dataclass(frozen=True, eq=False)
class Given:
    """A graph as the caller passed it: a dense array and where it has no edge, or single edges.

    Attributes
    ----------
    dense : array of shape (n, n) or None
        Of the host, or of a GPU.
    missing : bool array of shape (n, n) or None
        Where a dense array has no edge, if not only where it is 0.
    entries : Arcs or None
        What a sparse array stores, infinite weights too; ∞ for NaN.
    stored : int
        How many edges there are by SciPy's count.
    mask : bool array or None
        That of a masked array.
    restore : callable or None
        Makes of an array on a GPU one of the caller's library; in the host's memory results are NumPy's, as SciPy's are.
    statistics : ValueStatistics or None
        What the numbers of a dense array are, where edges are missing at 0, NaN and ±∞ alone.
    """

    dense: Any
    missing: Any
    entries: Arcs | None
    stored: int
    mask: Any = None
    restore: Callable[[Any], Any] | None = None
    statistics: ValueStatistics | None = None

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return self.entries.n if self.entries is not None else len(self.dense)

    @cached_property
    def negative(self) -> bool:
        """Whether an edge is negative."""
        if self.entries is not None:
            return self.arcs.statistics.negative
        if self.statistics is not None:
            return self.statistics.negative
        below = self.dense < 0
        return bool(below.any()) and bool((below & ~self.absent).any())

    @cached_property
    def absent(self) -> Any:
        """Where a dense array has no edge."""
        return nulls(self.dense, 0) if self.missing is None else self.missing

    @cached_property
    def ready(self) -> bool:
        """Whether a dense array is ∞ where it has no edge, but for loops, which may be 0 then."""
        found = self.statistics
        if found is None or found.nan or found.negative_infinity:
            return False
        return not found.zeros or found.zeros == self.n - np.count_nonzero(self.dense.diagonal())

    @cached_property
    def arcs(self) -> Arcs:
        """The edges one by one."""
        if self.entries is not None:
            if self.entries.statistics.negative_infinity:
                raise GraphError("csgraph stores −∞, which is no weight: no path through it has a length")
            return self.entries.where(self.entries.weights < np.inf) if self.entries.statistics.positive_infinity else self.entries
        there = ~host(self.absent)
        rows, columns = np.nonzero(there)
        return Arcs.of(self.n, rows, columns, host(self.dense)[there].astype(np.float64))

    def unweighted(self, *, infinite: bool) -> Given:
        """Each edge of weight 1, with `infinite` also those of no finite weight; a dense array of them is one number, seen everywhere."""
        if self.entries is not None:
            return replace(self, entries=(self.entries if infinite else self.arcs).unweighted())
        with on_device(device_of(self.dense)):
            xp = namespace(self.dense)
            missing = self.mask if infinite and self.mask is not None else self.absent
            ones = xp.broadcast_to(xp.ones((), dtype=np.float32), self.dense.shape)
            return replace(self, dense=ones, missing=missing, statistics=None)

    def reached_from(self, sources: Array, *, directed: bool) -> Given:
        """Only those edges that a path from one of the sources can take."""
        arcs = self.arcs if directed else self.arcs.both_ways()
        reached = np.zeros(self.n + 1, dtype=bool)
        reached[breadth_first_order(arcs.with_root(sources).compressed(), self.n, return_predecessors=False)] = True
        reached = reached[:-1]
        if reached.all():
            return self
        if self.entries is not None:
            return replace(self, entries=self.entries.where(reached[self.entries.rows]))
        with on_device(device_of(self.dense)):
            missing = self.absent | ~namespace(self.dense).asarray(reached)[:, None]
            return replace(self, missing=missing, statistics=None)

    def matrix(
        self, dtype: np.dtype[Any], *, overwrite: bool = False, borrow: bool = False, paths: bool = False, device: str = "cpu"
    ) -> Any:
        """The edges as a dense matrix with ∞ elsewhere, but for loops, which may be 0 where there are none.

        Parameters
        ----------
        dtype : float32 or float64
        overwrite, borrow : bool
            Whether it may be the caller's own, to be overwritten or only to be read.
        paths : bool
            Whether predecessors have to fit into memory as well.
        device : str
            Where the matrix of a sparse array is made.

        Raises
        ------
        TooLargeError, DTypeError
            Where there is no memory for it, or no place for a weight in float32.
        """
        if self.entries is not None:
            require_memory(self.n, (dtype,), via=paths)
            self.arcs.require_held(dtype)
            with on_device(device):
                return self.arcs.edges(dtype).dense(device)[0]
        if not overwrite and type(self.dense) is np.ndarray and self.dense.dtype == dtype:
            if self.ready and borrow:
                return self.dense
            require_memory(self.n, (dtype,), via=paths)
            return self.dense.copy() if self.ready else np.where(self.absent, dtype.type(np.inf), self.dense)
        reading = Reading(nonedge=np.inf, dtype=dtype, overwrite=overwrite, presence=False, paths=paths)
        return read_dense((Source(self.dense, self.absent),), MIN_PLUS, reading).values[0]


def read(csgraph: Any) -> Given:
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
            csgraph = csgraph if issparse(csgraph) else to_scipy(csgraph)
            return Given(None, None, _entries(csgraph), csgraph.nnz)
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
        return Given(array, missing, None, array.size - none, statistics=found)
    missing = nulls(array, None if mask is not None else 0)
    if mask is None:
        absent = missing.sum() if on_gpu(missing) else np.count_nonzero(missing)
        return Given(array, missing, None, array.size - int(absent), restore=restore)
    mask = np.broadcast_to(mask, array.shape)
    return Given(array, missing | mask, None, array.size - int(mask.sum()), mask)


def require_square(array: Any) -> None:
    """Refuse a dense array that is no square matrix."""
    if array.ndim != 2:
        raise ShapeError(f"graph should have two dimensions; this one has the shape {array.shape}")
    if array.shape[0] != array.shape[1]:
        raise ShapeError(f"graph should be a square array; this one has the shape {array.shape}")


def nulls(array: Any, null_value: float | None, *, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """Where a dense array has no edge: at `null_value` exactly, NaN and ±∞."""
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


def _entries(graph: Any) -> Arcs:
    """What a sparse array stores."""
    if graph.ndim != 2:
        raise ShapeError("compressed-sparse graph must be 2-D")
    n = int(graph.shape[0])
    if graph.shape[1] != n:
        raise ShapeError(f"compressed-sparse graph must be shape (N, N), not {graph.shape}")
    if graph.dtype.kind in "iu":
        graph = graph.astype(np.float64)  # so that no sum of a COO array's duplicates wraps
    matrix = graph.tocsr()
    ordered = bool(matrix.has_canonical_format)
    starts, targets = matrix.indptr, matrix.indices.astype(np.int64, copy=False)
    if len(targets) and targets.view(np.uint64).max() >= n:  # negative ones are large then
        raise GraphError(f"csgraph stores an entry in column {targets[(targets < 0) | (targets >= n)][0]}, of {n}")
    arcs = Arcs(n, starts, targets, matrix.data.astype(np.float64, copy=False), matrix if matrix.dtype == np.float64 else None)
    if arcs.statistics.nan:
        arcs = Arcs(n, starts, targets, np.where(np.isnan(arcs.weights), np.inf, arcs.weights))
    return arcs if ordered and len(targets) == starts[-1] else Arcs.combined(n, arcs.rows, targets, arcs.weights)
