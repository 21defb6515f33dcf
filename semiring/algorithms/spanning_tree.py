"""Closures over min and max of symmetric matrices by a minimum spanning tree: n² steps instead of n³.

Over min-max an element of the closure is a bottleneck: the least value, over all paths, of the largest edge. In an undirected graph the
path along a minimum spanning tree has this value (Hu, 1961). So single linkage, the subdominant ultrametric and this closure are the same
numbers (Gower and Ross, 1969). Over max-min, maximum spanning trees give the widest paths.

The vertices are put in a line (`semiring.kernels.cpu.spanning_tree`); any row is read off the line in n steps.

Examples
--------
>>> from semiring import MIN_MAX
>>> a = np.array([[9.0, 1, 4], [1, 9, 2], [4, 2, 9]])
>>> close_symmetric(MIN_MAX, a, None)
True
>>> a
array([[-inf,   1.,   2.],
       [  1., -inf,   2.],
       [  2.,   2., -inf]])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algorithms.csr import CSR
from semiring.algorithms.divergence import extremum_of
from semiring.arrays.devices import holds_symbols
from semiring.arrays.pieces import HOST, slices
from semiring.arrays.threads import thread_count
from semiring.kernels.cpu.spanning_tree import kruskal, prim, rows_of_line

__all__ = ["SpanningForest", "close_symmetric", "is_bottleneck", "is_symmetric"]

Array = np.ndarray[Any, Any]

_STRIP = 32  # rows compared with as many columns at a time


@functools.lru_cache(maxsize=256)
def is_bottleneck(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Return True if ⊕ is the minimum of single numbers and ⊗ the maximum, or vice versa, under any name of the semiring."""
    if len(dtypes) != 1 or dtypes[0].kind not in "iufO":
        return False
    extremum = extremum_of(semiring)
    return extremum is not None and is_operation(semiring.program.mul[0], ("max" if extremum is np.fmin else "min",))


def is_symmetric(matrix: Array) -> bool:
    """Return True if a matrix equals the transpose; NaN equals nothing."""
    if len(matrix) and not (matrix[0] == matrix[:, 0]).all():  # decides for most asymmetric matrices
        return False
    strips = slices(len(matrix), 1, _STRIP)
    return all(bool((matrix[some, some.start :] == matrix[some.start :, some].T).all()) for some in strips)


@dataclass(frozen=True, eq=False)
class SpanningForest:
    """A minimum spanning forest (over max-min a maximum one) of an undirected graph of n vertices."""

    smallest: bool  # smaller edges are better
    zero: Any
    one: Any
    order: Array  # line of vertices, int64
    position: Array  # position of each vertex in the line, int64
    gaps: Array  # edge before each vertex of the line; zero before the first vertex of each tree
    parents: Array  # vertex above each vertex, −1 for roots, int32

    @classmethod
    def of_matrix(cls, matrix: Array, zero: Any, one: Any, *, smallest: bool) -> Self:
        """Grow the forest of a symmetric matrix of machine numbers, with contiguous rows, by Prim's algorithm. O(n²)."""
        return cls._of(smallest, zero, one, *prim(matrix, zero, smallest=smallest))

    @classmethod
    def of_edges(cls, semiring: Semiring, edges: CSR) -> Self:
        """Join the forest of a symmetric sparse graph by Kruskal's algorithm. O(m log m)."""
        (zero,), (one,), (weights,) = edges.zero, semiring.identities(edges.dtypes)[1], edges.weights
        smallest = extremum_of(semiring) is np.fmin
        ranks = np.argsort(weights, kind="stable")
        order, entries, parents = kruskal(edges.n, edges.tails, edges.heads, ranks if smallest else ranks[::-1])
        gaps = np.full(edges.n, zero, weights.dtype)
        gaps[entries >= 0] = weights[entries[entries >= 0]]
        return cls._of(smallest, zero, one, order, gaps, parents)

    @classmethod
    def _of(cls, smallest: bool, zero: Any, one: Any, order: Array, gaps: Array, parents: Array) -> Self:
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        return cls(smallest, zero, one, order, position, gaps, parents)

    def fill(self, sources: Array, rows: Array, trees: Array | None = None, threads: int | None = None) -> None:
        """Fill contiguous rows of A*, and contiguous int32 predecessor trees if wanted, with −1 for no path. O(n) for each."""
        line = self.order, self.position, self.gaps, self.parents
        sources = np.ascontiguousarray(sources, np.int64)
        rows_of_line(sources, line, self.one, rows, trees, thread_count(threads), smallest=self.smallest)
        if trees is not None and (self.parents < 0).sum() > 1:
            trees[rows == self.zero] = -1

    def rows(
        self, sources: Array, edges_of: Callable[[int], tuple[Array, Array]], *, reflexive: bool, paths: bool, threads: int | None = None
    ) -> tuple[Array, Array | None]:
        """Return rows of A* or A⁺, and predecessor trees if `paths`; over A⁺ with the predecessor of each source on the best cycle.

        `edges_of` returns the weights and heads of the edges from a vertex.
        """
        shape = len(sources), len(self.order)
        rows, trees = np.empty(shape, self.gaps.dtype), np.empty(shape, np.int32) if paths else None
        self.fill(sources, rows, trees, threads)
        for i, source in enumerate(() if reflexive else sources.tolist()):
            weights, heads = edges_of(source)
            rows[i, source] = self.zero
            if len(weights):  # there and back along the best edge
                best = weights.argmin() if self.smallest else weights.argmax()
                rows[i, source] = weights[best]
                if trees is not None and weights[best] != self.zero:
                    trees[i, source] = heads[best]
        return rows, trees


def close_symmetric(semiring: Semiring, matrix: Array, via: Array | None, *, reflexive: bool = True, threads: int | None = None) -> bool:
    """matrix ← A*, or A⁺, in place, for a semiring that `is_bottleneck`; return False for an asymmetric matrix, left unchanged.

    `matrix` has contiguous rows. `via` is the construction matrix to fill: the second last vertex of each best path, −1 for an edge.
    """
    if not is_symmetric(matrix):
        return False
    (zero,), (one,) = semiring.identities((matrix.dtype,))
    smallest, how = extremum_of(semiring) is np.fmin, (via, reflexive, threads)
    if matrix.dtype.kind != "O":
        _close(SpanningForest.of_matrix(matrix, zero, one, smallest=smallest), matrix, *how)
        return True
    if holds_symbols((matrix,)):
        return False
    kinds, found = np.unique(np.array([*matrix.flat, zero, one], object), return_inverse=True)
    ranks = found[:-2].reshape(matrix.shape)  # objects are compared only in this sort
    _close(SpanningForest.of_matrix(ranks, *found[-2:], smallest=smallest), ranks, *how)
    matrix[...] = kinds[ranks]
    return True


def _close(forest: SpanningForest, matrix: Array, via: Array | None, reflexive: bool, threads: int | None) -> None:
    n = len(matrix)
    own, loops = np.arange(n), matrix.diagonal().copy()
    nearest = None if reflexive else matrix.argmin(axis=1) if forest.smallest else matrix.argmax(axis=1)
    back = loops if nearest is None else matrix[own, nearest]
    if via is None:
        forest.fill(own, matrix, None, threads)
    else:
        for some in slices(n, n, HOST):
            rows, trees = np.empty_like(matrix[some]), np.empty((some.stop - some.start, n), np.int32)
            forest.fill(own[some], rows, trees, threads)
            via[some] = np.where(rows == matrix[some], np.int32(-1), trees)
            matrix[some] = rows
    if nearest is not None:
        matrix[own, own] = back
        if via is not None:
            via[own, own] = np.where(back == loops, -1, nearest)
