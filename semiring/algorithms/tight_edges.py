"""Predecessor trees of rows of the closure, along tight edges.

In a row d from a source, d_v is the best offer d_u ⊗ a_uv over the edges to v, up to rounding. The edge of the best offer is *tight*.
In several rows at a time, each vertex takes the tail of its first tight edge (`semiring.kernels.cpu.tight_edges`). Edges of weight 0, for
example, may close a circle; `grow_tree` then grows the tree of a row from its source along tight edges, breadth-first. Rounding can hide
a tight edge; a row whose search then misses a vertex stays without a tree.

In a solution x of x = A ⊗ x ⊕ b, b_j is an offer too, and best paths end at the vertices j whose best offer is b_j.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array, Values
from semiring.arrays.threads import run, thread_count
from semiring.kernels import machine
from semiring.kernels.cpu.loops import Elements, Ints, Rows, ShortInts, ShortRows, loop
from semiring.kernels.select import element_operations, tight_trees

__all__ = ["ends_along_tight_edges", "trees_along_tight_edges"]

Graph = tuple[Array, Array, Values]


class ShortEdges(NamedTuple):
    """A graph in compressed rows, with vertices of 32 bits."""

    starts: Ints
    heads: ShortInts
    weights: Elements


@loop
def grow_tree(
    n: int, edges: ShortEdges, back: ShortEdges, root: int, i: int, rows: Rows, trees: ShortRows, queue: ShortInts, best: Elements,
    offers: Rows, walks: Rows, *, semiring: Any, backward: bool, solution: bool,
) -> bool:  # fmt: skip
    """Grow the tree of row i from its root; return True if it reaches all vertices of the row. `back` is the reversed graph.

    A `solution` has no root, but own offers of vertices, at which trees begin. `trees` then names the begin, and `walks` the path's weight.
    """
    row, tree, reached, taken = rows[i], trees[i], 0, 0
    for v in range(n):
        own = offers[i, v] if solution else semiring.zero
        offer = own
        for e in range(back.starts[v], back.starts[v + 1]):
            walk = row[back.heads[e]]
            new = semiring.mul(back.weights[e], walk) if backward else semiring.mul(walk, back.weights[e])
            if semiring.improves(new, offer) and semiring.better(walk, semiring.zero):  # ∞ plus a weight might wrap
                offer = new
        best[v] = offer
        tree[v] = -1
        if solution:
            walks[i, v] = semiring.one
        if v == root or semiring.better(row[v], semiring.zero):
            reached += 1
        if v == root or (semiring.improves(own, semiring.zero) and not semiring.better(offer, own)):
            tree[v] = v if solution else -1
            queue[taken] = v
            taken += 1
    place = 0
    while place < taken:
        u = queue[place]
        walk = row[u]
        for e in range(edges.starts[u], edges.starts[u + 1]):
            v = edges.heads[e]
            if tree[v] < 0 and v != root:
                along = semiring.mul(edges.weights[e], walk) if backward else semiring.mul(walk, edges.weights[e])
                if not semiring.better(best[v], along) and semiring.improves(along, semiring.zero):
                    tree[v] = tree[u] if solution else u
                    if solution:
                        walks[i, v] = semiring.mul(edges.weights[e], walks[i, u])
                    queue[taken] = v
                    taken += 1
        place += 1
    return taken == reached


def ends_along_tight_edges(
    semiring: Semiring, edges: CSR, offers: Values, rows: Values, ends: Array, walks: Values, threads: int | None
) -> Array:
    """Find the ends of best paths and the weights of these paths, for columns of b and x as rows; return a mask of the complete rows.

    `ends` receives vertices, −1 for none.
    """
    (count, n), m, dtypes = ends.shape, len(edges.heads), tuple([v.dtype for v in rows])
    complete, operations = np.zeros(count, bool), element_operations(semiring, dtypes)
    there, reverse = (_short((g.starts, g.heads, g.weights)) for g in (edges.transposed(), edges))
    queue, best = np.empty(0, np.int32), tuple([np.empty(0, d) for d in dtypes])
    grow_one = grow_tree.bind(
        n, there, reverse, -1, 0, rows, ends, queue, best, offers, walks, semiring=operations, backward=True, solution=True
    )

    def grow(i: int, _: int) -> None:
        queue, best = np.empty(n, np.int32), tuple([np.empty(n, d) for d in dtypes])
        complete[i] = grow_one(40 * (n + m), i=i, queue=queue, best=best)

    run(grow, range(count), thread_count(threads) if count * (n + m) >= machine.SEARCH_SERIAL else 1)
    return complete


def _short(graph: Graph) -> ShortEdges:
    starts, heads, weights = graph
    return ShortEdges(
        np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(heads, np.int32), tuple(map(np.ascontiguousarray, weights))
    )


def trees_along_tight_edges(
    semiring: Semiring, graph: Graph, back: Graph, roots: Array, values: Values, trees: Array, *, backward: bool, threads: int | None
) -> Array:
    """Grow trees of best paths along tight edges, given rows; return a mask of the rows that got a tree.

    `back` is the reversed graph. `trees` receives predecessors, −1 for none; a row without a tree is undefined. `backward` multiplies by
    edges from the left.
    """
    count, n, m, dtypes = len(roots), len(graph[0]) - 1, len(graph[1]), tuple([v.dtype for v in values])
    several = tight_trees(semiring, dtypes)
    there, reverse = map(_short, (graph, back))
    padded = np.append(roots, np.repeat(roots[-1:], several.lanes)).astype(np.int32)
    grown = np.zeros(count + several.lanes, np.uint8)
    grow_several = several.bind((reverse.starts, reverse.heads, reverse.weights), padded, values, trees, grown, backward=backward)
    queue, best = np.empty(0, np.int32), tuple([np.empty(0, d) for d in dtypes])
    grow_one = grow_tree.bind(
        n, there, reverse, 0, 0, values, trees, queue, best, values, values,
        semiring=element_operations(semiring, dtypes), backward=backward, solution=False,
    )  # fmt: skip

    def grow(first: int, _: int) -> None:
        last = min(first + several.lanes, count)
        if n >= several.lanes:
            grow_several(first, last)
        left = np.flatnonzero(grown[first:last] == 0) + first
        if len(left):
            queue, best = np.empty(n, np.int32), tuple([np.empty(n, d) for d in dtypes])
            for i in left.tolist():
                grown[i] = grow_one(40 * (n + m), root=int(roots[i]), i=i, queue=queue, best=best)

    workers = thread_count(threads) if count * (n + m) >= machine.SEARCH_SERIAL else 1
    run(grow, range(0, count, several.lanes), workers)
    return grown[:count].astype(bool)
