"""Predecessor trees of rows of the closure of a sparse graph, by the edges that are tight: d_u ⊗ a_uv is what d_v is, the best of all.

In a row d of the closure from a source, the vertex before v on a best path is the u whose edge offers v the most. Where no cycle ties with
the empty path that makes a tree, with the source at its root. Where one does, as where edges weigh zero, the vertices may point at each
other in a circle: then the tree grows from the source along tight edges (`semiring.kernels.cpu.tight_edges`). A row in which rounding hides
what is tight is searched instead.

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
    """Find the vertex before each vertex on a best path from each root (`backward`: after, to the root), −1 for none. O(n + m) a row.

    Parameters
    ----------
    semiring : Semiring
        With a selective ⊕.
    edges : CSR
    roots : int array of shape (s,)
    values : tuple of arrays of shape (s, n)
        Rows of the closure; `backward`: columns, as rows. A row that has to be searched is overwritten by what that finds.
    backward : bool
    threads : int, optional
    """
    graph, back = (edges.transposed(), edges) if backward else (edges, edges.transposed())
    trees = np.full(values[0].shape, -1, np.int32)
    searches = searches_for(semiring, edges.dtypes, "cpu", threads)
    if searches is not None:
        there, reverse = ((g.starts, g.heads, g.weights) for g in (graph, back))
        grown = searches.trees(there, reverse, roots, values, trees, backward=backward)
    else:
        others = _without_loops(back)
        rows = zip(roots.tolist(), trees, *values, strict=True)
        grown = np.array([_grown(semiring, back.zero, others, *row, backward=backward) for row in rows], bool)
    for i in np.flatnonzero(~grown).tolist():
        trees[i] = -1
        some = slice(i, i + 1)
        found = rows_of_edges(semiring, edges, roots[some], backward=backward, tree=trees[some], searches=searches)
        for v, new in zip(values, found, strict=True):
            v[some] = new
    return trees


def _without_loops(back: CSR) -> tuple[Array, Array, Values]:
    """Return tails, heads and weights of edges sorted by head, from the reversed graph."""
    others = back.tails != back.heads
    return back.heads[others], back.tails[others], tuple(w[others] for w in back.weights)


def _grown(
    semiring: Semiring,
    zero: tuple[Any, ...],
    edges: tuple[Array, Array, Values],
    root: int,
    tree: Array,
    *row: Array,
    backward: bool,
) -> bool:
    """Grow a tree with NumPy; return True if the edges form a tree."""
    there = np.logical_or.reduce([np.asarray(v != z) for v, z in zip(row, zero, strict=True)])
    _take_tight(semiring, edges, row, tree, backward=backward)
    tree[~there] = -1
    tree[root] = -1
    return bool((roots_of(tree[None])[0, there] == root).all())


def _take_tight(semiring: Semiring, edges: tuple[Array, Array, Values], row: Values, tree: Array, *, backward: bool) -> None:
    """Write the tail of the first tight edge of each vertex into the tree; edges are sorted by head."""
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
