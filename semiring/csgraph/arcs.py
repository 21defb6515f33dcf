"""The edges of a graph one by one, each pair of vertices once: what searches and single look-ups work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from semiring.algorithms.edges import Edges
from semiring.common.errors import DTypeError
from semiring.common.forks import cached_property
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.statistics import value_statistics

__all__ = ["Arcs", "Array"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Arcs:
    """Edges in the order of their rows, then of their columns.

    Attributes
    ----------
    n : int
    starts : int array of shape (n + 1,)
        Those of row u are from starts[u] to starts[u + 1].
    columns : int array of shape (m,)
    weights : float64 array of shape (m,)
    matrix : csr_array or csr_matrix, optional
        The same in SciPy's compressed rows, where it is there already.
    """

    n: int
    starts: Array
    columns: Array
    weights: Array
    matrix: Any = None

    @cached_property
    def rows(self) -> Array:
        """Where each edge begins."""
        return np.arange(self.n).repeat(self.starts[1:] - self.starts[:-1])

    @cached_property
    def statistics(self) -> ValueStatistics:
        """What the weights are."""
        return value_statistics((self.weights,))[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and of both ends."""
        return 16 * len(self.columns) + self.weights.nbytes

    @staticmethod
    def of(n: int, rows: Array, columns: Array, weights: Array) -> Arcs:
        """From coordinates in this order."""
        starts = np.zeros(n + 1, dtype=np.intp)
        np.cumsum(np.bincount(rows, minlength=n), out=starts[1:])
        return Arcs(n, starts, columns, weights)

    @staticmethod
    def combined(n: int, rows: Array, columns: Array, weights: Array) -> Arcs:
        """From coordinates in any order; of parallel edges the lightest."""
        rows, columns = rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
        places = rows * n + columns
        if (places[1:] <= places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, weights = places[order], weights[order]
            first = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
            places, weights = places[first], np.minimum.reduceat(weights, first)
            rows, columns = places // n, places % n
        return Arcs.of(n, rows, columns, weights)

    def both_ways(self) -> Arcs:
        """The graph without directions: the lighter of two opposite edges goes both ways."""
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        return Arcs.combined(self.n, rows, columns, np.tile(self.weights, 2))

    def unweighted(self) -> Arcs:
        """Every edge of weight 1."""
        return Arcs(self.n, self.starts, self.columns, np.ones_like(self.weights))

    def without_loops(self) -> Arcs:
        """No edge from a vertex to itself."""
        return self.where(self.rows != self.columns)

    def where(self, kept: Array) -> Arcs:
        """Some of the edges, by a mask."""
        return self if kept.all() else Arcs.of(self.n, self.rows[kept], self.columns[kept], self.weights[kept])

    def with_root(self, sources: Array) -> Arcs:
        """With one more vertex, n, and an edge of weight 0 from it to each of the sources."""
        rows = np.concatenate([self.rows, np.full(len(sources), self.n)])
        columns, weights = np.concatenate([self.columns, sources]), np.concatenate([self.weights, np.zeros(len(sources))])
        return Arcs.combined(self.n + 1, rows, columns, weights)

    def find(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The weights at some places, and where there are such edges."""
        places, wanted = self.rows * self.n + self.columns, rows.astype(np.int64) * self.n + columns
        at = np.searchsorted(places, wanted)
        there = at < len(places)
        there[there] = places[at[there]] == wanted[there]
        weights = np.full(len(wanted), np.inf)
        weights[there] = self.weights[at[there]]
        return weights, there

    def held_by(self, dtype: np.dtype[Any]) -> bool:
        """Whether a dtype can hold all weights."""
        return bool(dtype == np.float64 or self.statistics.largest <= float(np.finfo(dtype).max))

    def require_held(self, dtype: np.dtype[Any]) -> None:
        """Refuse an edge that weighs more than a dtype can hold, which would seem to be none.

        Raises
        ------
        DTypeError
        """
        if not self.held_by(dtype):
            at = int(np.argmax(np.abs(self.weights)))
            raise DTypeError(f"csgraph[{self.rows[at]}, {self.columns[at]}] is {self.weights[at]}, which {dtype} cannot hold; use float64")

    def edges(self, dtype: np.dtype[Any]) -> Edges:
        """The matrix of distances with these edges, in a dtype that holds them."""
        starts, heads = self.starts.astype(np.intp, copy=False), self.columns.astype(np.intp, copy=False)
        weights = self.weights.astype(dtype, copy=False)
        statistics = self.statistics if weights is self.weights else value_statistics((weights,))[0]
        return Edges(self.n, starts, heads, (weights,), (np.inf,), (statistics,))

    def compressed(self) -> Any:
        """SciPy's compressed rows."""
        if self.matrix is not None:
            return self.matrix
        index = np.int32 if max(self.n, len(self.columns)) <= np.iinfo(np.int32).max else np.int64
        return csr_array((self.weights, self.columns.astype(index), self.starts.astype(index)), shape=(self.n, self.n))
