"""Predecessor trees from rows d of the closure of a sparse graph, by tight edges: d_u ⊗ a_uv = d_v.

The predecessor of v on a best path is the vertex u with the best offer d_u ⊗ a_uv. If no cycle ties with the empty path, these edges are a
tree with the source as root. Else, as with edges of weight 0, the vertices may point at each other in a circle: then the tree grows from
the source along tight edges (`semiring.kernels.cpu.search`). If rounding hides tight edges, the row is searched instead.

Examples
--------
>>> from semiring import MIN_PLUS
>>> tails, heads, lengths = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), np.array([1.0, 5, 2, 1])
>>> edges = CSR.of(tails, heads, (lengths,), 4, (np.inf,))
>>> grow_trees(MIN_PLUS, edges, np.array([0]), (np.array([[0.0, 1, 3, 4]]),))
array([[-1,  0,  1,  2]], dtype=int32)
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import better
from semiring.algorithms.csr import CSR, combine_runs
from semiring.algorithms.divergence import extremum_of
from semiring.algorithms.predecessors import roots_of
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.kernels.operations import operations_for
from semiring.kernels.select import searches_for

__all__ = ["grow_trees"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def grow_trees(
    semiring: Semiring, edges: CSR, roots: Array, values: Values, *, backward: bool = False, threads: int | None = None
) -> Array:
    """Return the predecessor of each vertex on a best path from each root (`backward`: the successor, to the root), −1 for none.

    `values` holds the rows of the closure (`backward`: columns, as rows), of shape (s, n) for s roots; the result of a search overwrites
    the row. O(n + m) a row; ⊕ must be selective.
    """
    graph, back = (edges.transposed(), edges) if backward else (edges, edges.transposed())
    trees = np.full(values[0].shape, -1, np.int32)
    searches = searches_for(semiring, edges.dtypes, "cpu", threads)
    if searches is not None:
        there, reverse = ((g.starts, g.heads, g.weights) for g in (graph, back))
        grown = searches.trees(there, reverse, roots, values, trees, backward=backward)
    else:
        # The edges without loops, sorted by head, out of the reversed graph.
        kept = back.tails != back.heads
        others = back.heads[kept], back.tails[kept], tuple(w[kept] for w in back.weights)
        rows = zip(roots.tolist(), trees, *values, strict=True)
        grown = np.array([_grown(semiring, back.zero, others, *row, backward=backward) for row in rows], bool)
    for i in np.flatnonzero(~grown).tolist():
        trees[i] = -1
        some = slice(i, i + 1)
        found = rows_of_edges(semiring, edges, roots[some], backward=backward, tree=trees[some], searches=searches)
        for v, new in zip(values, found, strict=True):
            v[some] = new
    return trees


def _grown(
    semiring: Semiring,
    zero: tuple[Any, ...],
    edges: tuple[Array, Array, Values],
    root: int,
    tree: Array,
    *row: Array,
    backward: bool,
) -> bool:
    """Grow a tree with NumPy; return True if all paths lead to the root."""
    there = np.logical_or.reduce([np.asarray(v != z) for v, z in zip(row, zero, strict=True)])
    _take_tight(semiring, edges, row, tree, backward=backward)
    tree[~there] = -1
    tree[root] = -1
    return bool((roots_of(tree[None])[0, there] == root).all())


def _take_tight(semiring: Semiring, edges: tuple[Array, Array, Values], row: Values, tree: Array, *, backward: bool) -> None:
    """Write the tail of the first best edge of each vertex into the tree; edges are sorted by head."""
    tails, heads, weights = edges
    if not len(heads):
        return
    operations = operations_for(semiring, tuple(v.dtype for v in row))
    walks = tuple(v[tails] for v in row)
    with np.errstate(all="ignore"):
        offers = operations.mul(weights, walks) if backward else operations.mul(walks, weights)
    extremum = extremum_of(semiring)
    if extremum is None:
        heads, (*_, tails) = combine_runs(heads, (*offers, tails), functools.partial(better, operations))
    else:
        starts = np.flatnonzero(np.concatenate([[True], heads[1:] != heads[:-1]]))
        best = extremum.reduceat(offers[0], starts)
        tight = np.flatnonzero(offers[0] == np.repeat(best, np.diff(np.append(starts, len(heads)))))
        first = np.concatenate([[True], heads[tight][1:] != heads[tight][:-1]])
        heads, tails = heads[tight[first]], tails[tight[first]]
    tree[heads] = tails
