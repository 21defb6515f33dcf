"""Closures over min and max of symmetric matrices by a minimum spanning tree: n² steps instead of n³.

Over min-max an element of the closure is a bottleneck: the least value, over all paths, of the largest edge. In an undirected graph the
path along a minimum spanning tree has this value (Hu, 1961). So single linkage, the subdominant ultrametric and this closure are the same
numbers (Gower and Ross, 1969). Over max-min, maximum spanning trees give the widest paths.

``prim`` grows the forest of a dense matrix vertex by vertex (Prim, 1957); ``kruskal`` joins the trees of a sparse graph edge by edge
(Kruskal, 1956). Both write the vertices in a line such that a best path between two vertices weighs the worst edge between their places.
Prim's algorithm leaves a cluster only when nothing better leads on, and Kruskal's joins two lines at their ends. ``read_line`` reads any
row off the line in n steps, in both directions from the source, and roots the source's tree there.

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
from typing import Any, NamedTuple, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algorithms.csr import CSR
from semiring.algorithms.divergence import extremum_of
from semiring.arrays.conversion import Array
from semiring.arrays.devices import holds_symbols
from semiring.arrays.pieces import HOST, slices
from semiring.arrays.threads import run, thread_count
from semiring.kernels.cpu.loops import Element, Elements, Ints, Loop, Rows, ShortInts, ShortRows, loop

__all__ = ["SpanningForest", "close_symmetric", "is_bottleneck", "is_symmetric"]

_STRIP = 32  # rows compared with as many columns at a time

_TASK, _SHARES = 1 << 17, 4  # the entries of rows per task, and the fewest tasks per thread of more entries


@loop
def smaller(x: Element, y: Element) -> bool:
    """Return True if an edge is better in a minimum spanning forest."""
    return bool(x[0] < y[0])


@loop
def greater(x: Element, y: Element) -> bool:
    """Return True if an edge is better in a maximum spanning forest."""
    return bool(x[0] > y[0])


@loop
def prim(n: int, matrix: Rows, order: Ints, gaps: Elements, parents: ShortInts, *, better: Loop[Any, bool]) -> None:
    """Put the vertices 0 … n − 1 of `order` in a line, with the edge before each of them and its parent. O(n²).

    At first each gap is the element of no edge, and each parent is −1. Vertices behind place k wait, each with its best edge so far.
    """
    for k in range(1, n):
        v = order[k - 1]
        row = matrix[v]
        best, at = gaps[k], k
        for j in range(k, n):
            edge, known, parent = row[order[j]], gaps[j], parents[j]
            nearer = better(edge, known)
            now = edge if nearer else known
            gaps[j] = now
            parents[j] = v if nearer else parent
            ahead = better(now, best)
            best = now if ahead else best
            at = j if ahead else at
        order[k], order[at] = order[at], order[k]
        gaps[k], gaps[at] = gaps[at], gaps[k]
        parents[k], parents[at] = parents[at], parents[k]


class Lines(NamedTuple):
    """Lines of vertices, one for each tree, named by their first vertices."""

    line: Ints  # line of each vertex
    after: Ints  # next vertex in the line, −1 for none
    last: Ints  # last vertex of each line
    size: Ints  # vertices of each line
    entry: Ints  # number of the edge before each line, −1 for none

    @classmethod
    def apart(cls, n: int) -> Self:
        """Make a line of each vertex."""
        return cls(np.arange(n), np.full(n, -1), np.arange(n), np.ones(n, np.int64), np.full(n, -1))


@loop
def kruskal(n: int, m: int, tails: Ints, heads: Ints, ranks: Ints, lines: Lines, parents: ShortInts, order: Ints, gaps: Ints) -> None:
    """Join trees and their lines by the edges `ranks`, best first; write one line of all, with the numbers of its edges. O(m + n log n).

    An edge appends the shorter line to the longer one, and roots the shorter line's tree at the edge.
    """
    for i in range(m):
        e = ranks[i]
        u, v = tails[e], heads[e]
        into, moved = lines.line[u], lines.line[v]
        if into != moved:
            if lines.size[into] < lines.size[moved]:
                u, v, into, moved = v, u, moved, into
            above = u
            while v >= 0:
                parents[v], above, v = above, v, parents[v]
            w = moved
            while w >= 0:
                lines.line[w] = into
                w = lines.after[w]
            lines.entry[moved] = e
            lines.after[lines.last[into]] = moved
            lines.last[into] = lines.last[moved]
            lines.size[into] += lines.size[moved]
    place = 0
    for first in range(n):
        if lines.line[first] == first:
            v = first
            while v >= 0:
                order[place], gaps[place] = v, lines.entry[v]
                place += 1
                v = lines.after[v]


class Line(NamedTuple):
    """The line of a forest; see `SpanningForest`."""

    order: Ints
    position: Ints
    gaps: Elements
    parents: ShortInts


@loop
def read_line(
    n: int, first: int, stop: int, sources: Ints, line: Line, one: Elements, rows: Rows, trees: ShortRows | None,
    *, better: Loop[Any, bool],
) -> None:  # fmt: skip
    """Fill rows first … stop − 1 with the weights of best paths from their sources, and root trees at the sources. O(n) for each.

    At first each tree is a copy of the parents.
    """
    for i in range(first, stop):
        source, row = sources[i], rows[i]
        place = line.position[source]
        row[source] = one[0]
        worst = one[0]
        for j in range(place, 0, -1):
            gap = line.gaps[j]
            worst = gap if better(worst, gap) else worst
            row[line.order[j - 1]] = worst
        worst = one[0]
        for j in range(place + 1, n):
            gap = line.gaps[j]
            worst = gap if better(worst, gap) else worst
            row[line.order[j]] = worst
        if trees is not None:
            tree = trees[i]
            v, below = source, -1
            while v >= 0:
                tree[v], below, v = below, v, line.parents[v]


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
        n = len(matrix)
        order, gaps, found, parents = np.arange(n), np.full(n, zero, matrix.dtype), np.full(n, -1, np.int32), np.empty(n, np.int32)
        if n > 1:
            prim.bind(n, (matrix,), order, (gaps,), found, better=smaller if smallest else greater)(n * n)
        parents[order] = found
        return cls._of(smallest, zero, one, order, gaps, parents)

    @classmethod
    def of_edges(cls, semiring: Semiring, edges: CSR) -> Self:
        """Join the forest of a symmetric sparse graph by Kruskal's algorithm. O(m log m)."""
        (zero,), (one,), (weights,) = edges.zero, semiring.identities(edges.dtypes)[1], edges.weights
        smallest = extremum_of(semiring) is np.fmin
        n, m, ranks = edges.n, len(weights), np.argsort(weights, kind="stable")
        best_first = ranks if smallest else ranks[::-1]
        tails, heads, ranks = (np.ascontiguousarray(v, np.int64) for v in (edges.tails, edges.heads, best_first))
        parents, order, entries = np.full(n, -1, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
        kruskal.bind(n, m, tails, heads, ranks, Lines.apart(n), parents, order, entries)(20 * (n + m))
        gaps = np.full(n, zero, weights.dtype)
        gaps[entries >= 0] = weights[entries[entries >= 0]]
        return cls._of(smallest, zero, one, order, gaps, parents)

    @classmethod
    def _of(cls, smallest: bool, zero: Any, one: Any, order: Array, gaps: Array, parents: Array) -> Self:
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        return cls(smallest, zero, one, order, position, gaps, parents)

    def fill(self, sources: Array, rows: Array, trees: Array | None = None, threads: int | None = None) -> None:
        """Fill contiguous rows of A*, and contiguous int32 predecessor trees if wanted, with −1 for no path. O(n) for each."""
        n, count, sources = len(self.order), len(sources), np.ascontiguousarray(sources, np.int64)
        if not count:
            return
        if trees is not None:
            trees[...] = self.parents
        line, one = Line(self.order, self.position, (self.gaps,), self.parents), np.array([self.one], rows.dtype)
        read = read_line.bind(n, 0, count, sources, line, (one,), (rows,), trees, better=smaller if self.smallest else greater)
        threads = thread_count(threads)
        step = max(1, _TASK // n, -(-count // (_SHARES * threads)))
        if step < count:
            run(lambda i, _: read(step * n, first=i, stop=min(i + step, count)), range(0, count, step), threads)
        else:
            read(count * n)
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
