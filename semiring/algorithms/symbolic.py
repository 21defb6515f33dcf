"""Symbolic analysis of a sparse elimination in a given order: the supernodes and the fill.

Eliminating a vertex joins its neighbours with each other, so the factor has more entries than the graph: the fill. A supernode is a run of
vertices, each joined with all later vertices of the run and with the same vertices beyond; its entries are a dense block. Small supernodes
are merged with the supernode above if few zero entries are added (Ashcraft and Grimes, 1989), since larger blocks are faster.

The parent of a vertex in the elimination tree is the next vertex in its column of the factor (Liu, 1990). The entries of row i of the
factor are found in the tree, on the walks up to i from the entries of the graph (Davis, Direct methods for sparse linear systems, 2006,
ch. 4).

Examples
--------
A path of five vertices; eliminating every second vertex first joins the neighbours:

>>> from semiring.algorithms.csr import CSR
>>> tails, heads = np.array([0, 1, 1, 2, 2, 3, 3, 4]), np.array([1, 0, 2, 1, 3, 2, 4, 3])
>>> path = CSR.of(tails, heads, (np.ones(8),), 5, (np.inf,))
>>> found = analysis(path, np.array([0, 2, 4, 1, 3]), relax=False)
>>> [found.order[slice(*pair)].tolist() for pair in zip(found.nodes.columns, found.nodes.columns[1:])]
[[4], [0], [2, 1, 3]]
>>> [rows.tolist() for rows in np.split(found.nodes.rows, found.nodes.row_starts[1:-1])]  # places: 4 is joined with 3, and 0 with 1
[[4], [3], []]
>>> found.fill.entries
5
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array
from semiring.common.errors import GraphError, install_of
from semiring.common.forks import cached_property
from semiring.kernels.compressed import Supernodes
from semiring.kernels.cpu.loops import Ints, loop

__all__ = [
    "ORDERS", "Fill", "Symbolic", "analysed", "analysis", "elimination_tree", "fill_reducing_order", "inverse_permutation", "postorder",
    "row_subtrees", "symmetric_pattern",
]  # fmt: skip

_RELAXED = ((4, 1.0), (16, 0.8), (48, 0.1), (1 << 62, 0.05))
"""The greatest share of zeros among the entries of a merged supernode of up to so many vertices, as in CHOLMOD."""


class Fill(NamedTuple):
    """The cost of an elimination."""

    entries: int  # entries of the factor above the diagonal, with the fill
    panels: int  # entries of the upper panels of all supernodes, as many of the lower, and as many as a sweep visits
    steps: int  # each vertex of a supernode updates its front
    side: int  # side of the largest front
    order: str  # of elimination, by name

    def memory(self, itemsize: int, n: int, threads: int) -> int:
        """Return the bytes of the panels, the kept Schur complements, the largest front, and a sweep over n vertices on each thread."""
        return itemsize * (3 * self.panels + 2 * self.side**2 + 64 * n * min(threads, n))


@dataclass(frozen=True, eq=False)
class Symbolic:
    """The symbolic factor of a graph of n vertices, with s supernodes."""

    order: Array  # vertices in the order of elimination, int64; a place is a position in this order
    place: Array  # place of each vertex, int64
    nodes: Supernodes
    parent: Array  # supernode above each supernode, int64; s for none
    entries: Array  # numbers of the graph's edges in the order of `nodes`
    fill: Fill

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.order)

    @cached_property
    def widths(self) -> Array:
        """The number of vertices of each supernode."""
        return np.diff(self.nodes.columns)

    @cached_property
    def beyond(self) -> Array:
        """The number of places beyond each supernode that are joined with it."""
        return np.diff(self.nodes.row_starts)

    @cached_property
    def sides(self) -> Array:
        """The side of the front of each supernode."""
        return self.widths + self.beyond

    @cached_property
    def height(self) -> int:
        """The number of supernodes on the longest path up to a root."""
        return int(self.through(np.ones(len(self.parent), np.int64)).max(initial=0))

    def through(self, sizes: Array) -> Array:
        """Sum the sizes of each supernode and all its ancestors."""
        above, sums = np.append(self.parent, len(self.parent)), np.append(sizes, 0)
        while (above < len(self.parent)).any():  # pointer jumping: as many rounds as the height has bits
            sums, above = sums + sums[above], above[above]
        return sums[:-1]

    @cached_property
    def positions(self) -> Array:
        """The position of each edge of the graph in the order of `nodes`."""
        return inverse_permutation(self.entries)

    @cached_property
    def supernode_of(self) -> Array:
        """The supernode of each place."""
        return np.repeat(np.arange(len(self.parent)), self.widths)

    def ancestors(self, places: Array) -> Array:
        """List the supernodes of some places, and all their ancestors, in ascending order."""
        found = np.zeros(len(self.parent) + 1, bool)
        found[self.supernode_of[places]] = True
        frontier = np.flatnonzero(found)
        found[-1] = True
        while len(frontier):
            found[frontier] = True
            frontier = np.unique(self.parent[frontier])
            frontier = frontier[~found[frontier]]
        return np.flatnonzero(found[:-1])


def _metis(starts: Array, heads: Array) -> Array:
    metis = importlib.import_module("pymetis")
    adjacency = metis.CSRAdjacency(starts.astype(np.int32), heads.astype(np.int32))
    # The first of two arrays lists the vertices in the new order, the second the position of each vertex.
    return np.asarray(metis.nested_dissection(adjacency=adjacency)[0], np.int64)


def _scipy(starts: Array, heads: Array) -> Array:
    """Find SuperLU's multiple minimum degree order, by a factorization that drops all entries."""
    sparse, linalg = (importlib.import_module(f"scipy.{name}") for name in ("sparse", "sparse.linalg"))
    n = len(starts) - 1
    matrix = sparse.csc_array((np.ones(len(heads)), heads.astype(np.int32), starts.astype(np.int32)), shape=(n, n))
    matrix.setdiag(2.0 * len(heads) + 2)
    found = linalg.spilu(matrix, permc_spec="MMD_AT_PLUS_A", drop_tol=1.0, fill_factor=1.0, diag_pivot_thresh=0.0)
    return np.argsort(found.perm_c).astype(np.int64)


ORDERS: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "metis": ("pymetis", _metis),
    "minimum degree": ("scipy", _scipy),
}
"""The module and the function that find each order, the best order first. (The wheels of suitesparse-amd take dense matrices only.)"""


def fill_reducing_order(starts: Array, heads: Array, order: Any = "auto") -> tuple[Array, str]:
    """Return the vertices of a symmetric pattern (without its diagonal) in an order of elimination, and the name of the order.

    `order` is a key of `ORDERS`, "natural", "auto" for the first installed order, or an array of the vertices. `GraphError` is raised for
    an array that is no permutation, an unknown name, or a library that is not installed.
    """
    n, names = len(starts) - 1, ", ".join(map(repr, [*ORDERS, "natural"]))
    if not isinstance(order, str):
        given = np.asarray(order)
        if given.shape != (n,) or given.dtype.kind not in "iu" or not np.array_equal(np.sort(given), np.arange(n)):
            raise GraphError(f"order must name each of the {n} vertices once, or be one of 'auto', {names}")
        return given.astype(np.int64), "given"
    if order == "natural" or not len(heads):
        return np.arange(n), "natural"
    if order != "auto" and order not in ORDERS:
        raise GraphError(f"order {order!r} is unknown; it may be 'auto', {names}, or an array of the vertices in their order")
    if len(heads) > np.iinfo(np.int32).max:
        raise GraphError(
            f"METIS and SciPy order at most 2³¹ − 1 entries, and this graph has {len(heads):,}; pass an array of the vertices in order"
        )
    for name in ORDERS if order == "auto" else (order,):
        module, find = ORDERS[name]
        try:
            return find(starts, heads), name
        except ImportError:
            if order != "auto":
                raise GraphError(f"order {order!r} needs {module}; {install_of('sparse')}, or pass order='auto'") from None
    modules = ", ".join(module for module, _ in ORDERS.values())
    raise GraphError(f"elimination needs one of {modules} to order the vertices: {install_of('sparse')}, or pass order='natural'")


_analysed: weakref.WeakKeyDictionary[CSR, Symbolic] = weakref.WeakKeyDictionary()


def analysed(edges: CSR, order: Any = "auto") -> Symbolic:
    """Analyse a graph in a given order; the analysis in the order "auto" is cached as long as the graph lives."""
    is_kept = isinstance(order, str) and order == "auto"
    if is_kept and (kept := _analysed.get(edges)) is not None:
        return kept
    pattern = symmetric_pattern(edges)
    vertices, name = fill_reducing_order(*pattern, order)
    found = analysis(edges, vertices, pattern=pattern, name=name)
    if is_kept:
        _analysed[edges] = found
    return found


def symmetric_pattern(edges: CSR) -> tuple[Array, Array]:
    """Return the pattern of A ⊕ Aᵀ without the diagonal, in compressed rows."""
    n, tails, heads = edges.n, edges.tails, edges.heads
    apart = tails != heads
    tails, heads = tails[apart].astype(np.int64), heads[apart].astype(np.int64)
    keys = np.concatenate([tails * n + heads, heads * n + tails])
    keys.sort(kind="stable")
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    rows = keys // max(n, 1)
    return _starts(np.bincount(rows, minlength=n)), keys - rows * n


def inverse_permutation(order: Array) -> Array:
    """Return the position of each of 0 … n − 1 in a permutation."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _renumbered(starts: Array, heads: Array, order: Array) -> tuple[Array, Array]:
    """Renumber the vertices of a pattern by their places in an order."""
    place = inverse_permutation(order)
    counts = np.diff(starts)[order]
    new = _starts(counts)
    position = np.repeat(starts[order] - new[:-1], counts) + np.arange(len(heads))
    return new, place[heads[position]]


def analysis(edges: CSR, order: Array, *, pattern: tuple[Array, Array] | None = None, relax: bool = True, name: str = "given") -> Symbolic:
    """Find the supernodes of a graph for an order of elimination, refined to a postorder. O(entries of the factor).

    `pattern` is the `symmetric_pattern` of the graph, if known; `relax` merges small supernodes with their parents.
    """
    n = edges.n
    starts, heads = _renumbered(*(symmetric_pattern(edges) if pattern is None else pattern), order)
    parent = elimination_tree(starts, heads)
    number = postorder(parent)
    old = inverse_permutation(number)
    order = order[old]
    starts, heads = _renumbered(starts, heads, old)
    above = np.append(number, n)[parent][old]
    counts = np.zeros(n, np.int64)  # entries below the diagonal in each column of the factor
    row_subtrees(starts, heads, np.arange(n), above, counts, None)
    # Fundamental supernodes: the parent of each vertex is the next vertex, with one row less.
    joined = (above[:-1] == np.arange(1, n)) & (counts[:-1] == counts[1:] + 1) if n else np.zeros(0, bool)
    columns = np.append(np.flatnonzero(np.concatenate([[True] * (n > 0), ~joined])), n).astype(np.int64)
    if relax:
        columns = _merged(columns, above, counts)
    supernodes = len(columns) - 1
    node = np.repeat(np.arange(supernodes), np.diff(columns))
    ends = columns[1:] - 1
    parents = np.append(node, supernodes)[above[ends]]
    row_starts = _starts(counts[ends])
    rows, place_of_next = np.empty(row_starts[-1], np.int64), row_starts[:-1].copy()
    row_subtrees(starts, heads, node, parents, place_of_next, rows)
    place = inverse_permutation(order)
    entry_rows, entry_columns = place[edges.tails], place[edges.heads]
    owner = node[np.minimum(entry_rows, entry_columns)] if len(entry_rows) else np.zeros(0, np.int64)
    entries = np.argsort(owner, kind="stable")
    entry_starts = _starts(np.bincount(owner, minlength=supernodes))
    widths = np.diff(columns)
    sides = widths + counts[ends]
    panel_starts = _starts(widths * sides)
    child_starts = _starts(np.bincount(parents, minlength=supernodes + 1)[:supernodes])
    children = np.argsort(parents, kind="stable").astype(np.int64)
    edges_of_nodes = entry_starts, entry_rows[entries], entry_columns[entries]
    nodes = Supernodes(columns, row_starts, rows, panel_starts, child_starts, children, *edges_of_nodes)
    fill = Fill(int(counts.sum()), int(panel_starts[-1]), int((widths * sides**2).sum()), int(sides.max(initial=0)), name)
    return Symbolic(order, place, nodes, parents, entries, fill)


def _starts(sizes: Array) -> Array:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _merged(columns: Array, parent: Array, counts: Array) -> Array:
    """Merge supernodes with the next supernode above, if few zero entries are added."""
    merged: list[tuple[int, int, int, int, int]] = []  # start, width, zeros, parent, rows beyond
    above, rows = parent[columns[1:] - 1].tolist(), counts[columns[1:] - 1].tolist()
    for s, (start, stop) in enumerate(zip(columns[:-1].tolist(), columns[1:].tolist(), strict=True)):
        width, side, zero = stop - start, rows[s], 0
        # The merged supernode before is a child if the parent of its last vertex belongs to this supernode.
        while merged and start <= merged[-1][3] < stop:
            first, narrow, zeros, _, beyond = merged[-1]
            wide = narrow + width
            more = zero + zeros + narrow * (width + side - beyond)
            entries = wide * (wide + 1) // 2 + wide * side
            share = next(share for most, share in _RELAXED if wide <= most)
            if more > share * entries:
                break
            merged.pop()
            start, width, zero = first, wide, more
        merged.append((start, width, zero, above[s], side))
    return np.array([*(first for first, *_ in merged), len(parent)], np.int64)


def elimination_tree(starts: Array, heads: Array) -> Array:
    """Return each vertex's parent in the elimination tree of a symmetric pattern in compressed rows; n for a root. O(m log n)."""
    n = len(starts) - 1
    parent, ancestor = np.full(n, n, np.int64), np.full(n, n, np.int64)
    find_parents.bind(n, starts, heads, parent, ancestor)(20 * (n + len(heads)))
    return parent


@loop
def find_parents(n: int, starts: Ints, heads: Ints, parent: Ints, ancestor: Ints) -> None:
    """Walk up from the entries of each row k to the roots of the tree so far, which become children of k.

    `ancestor` leads up faster than `parent`, by path compression; n is "none yet" in both.
    """
    for k in range(n):
        for e in range(starts[k], starts[k + 1]):
            i = heads[e]
            while i < k:  # all ancestors so far are below k; only k itself and n end the walk
                above = ancestor[i]
                ancestor[i] = k
                if above == n:
                    parent[i] = k
                i = above


def postorder(parent: Array) -> Array:
    """Return each vertex's number in a postorder of a forest whose parents have larger numbers than children; n is no parent. O(n).

    The vertices of each subtree have consecutive numbers, the root the last one.
    """
    n = len(parent)
    size, place = np.ones(n + 1, np.int64), np.full(n + 1, n, np.int64)
    number_subtrees.bind(n, parent, size, place)(20 * n)
    return place[:n]


@loop
def number_subtrees(n: int, parent: Ints, size: Ints, place: Ints) -> None:
    """Find the sizes of subtrees from the leaves up, then their places from the roots down, the last child first.

    The arrays have one more place, for a root of all roots.
    """
    for v in range(n):
        size[parent[v]] += size[v]
    for v in range(n - 1, -1, -1):
        # While a subtree is placed before its root, the root's place is counted down by the subtree's size, added again below.
        above = parent[v]
        end = place[above]
        place[above] = end - size[v]
        place[v] = end - 1
    for v in range(n):
        place[v] += size[v] - 1


def row_subtrees(starts: Array, heads: Array, node: Array, parent: Array, place: Array, rows: Array | None) -> None:
    """Walk all row subtrees of a pattern in compressed rows, whose vertices belong to nodes of a tree; O(entries of the factor).

    All arrays are int64. `node` is the node of each vertex (consecutive vertices may share one), and `parent` the parent of each node.
    `place` grows by one for each row that a node has outside of itself. `rows`, if given, receives these rows, from `place` on for each
    node.
    """
    steps = len(starts) + len(heads) + (0 if rows is None else len(rows))
    walk_subtrees.bind(len(starts) - 1, starts, heads, node, parent, np.full(len(parent), -1, np.int64), place, rows)(20 * steps)


@loop
def walk_subtrees(
    n: int, starts: Ints, heads: Ints, node: Ints, parent: Ints, mark: Ints, place: Ints, rows: Ints | None
) -> None:  # fmt: skip
    """Walk up to each vertex i from the entries of row i left of the diagonal, until a node that is marked by i.

    The nodes on the way are the columns of the factor with an entry in row i. These entries are counted, or listed in ascending order.
    """
    for i in range(n):
        mark[node[i]] = i
        for e in range(starts[i], starts[i + 1]):
            j = heads[e]
            if j < i:
                s = node[j]
                while mark[s] != i:
                    mark[s] = i
                    at = place[s]
                    place[s] = at + 1
                    if rows is not None:
                        rows[at] = i
                    s = parent[s]
