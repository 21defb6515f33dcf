"""`PathsBetween`: a closure with paths between chosen vertices; and its store, a rectangle with the predecessor tree of each row.

If only targets were named, each column has a next-hop tree. Trees of all vertices of a sparse graph yield the construction matrix too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from semiring.algorithms.csr import CSR, SparseArray
from semiring.algorithms.predecessors import NONE
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host, namespace
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.results.paths import Paths
from semiring.results.store import ClosedMatrix, ConstructionMatrix, Store, Values

__all__ = ["PathsBetween", "PredecessorTrees", "paths_in", "via_of_trees"]


class PathsBetween(Paths):
    """The elements between chosen sources and targets, and a tree of paths for each source (or each target).

    The methods of `Paths` answer for these pairs alone. `values` has a row for each source and a column for each target, in the given
    order. Instead of a construction matrix, each source has a tree, `predecessors`; if only targets were named, each target, `next_hops`.
    `to_scipy` returns SciPy's result with ``indices``; `to_networkx` and `save` are for all pairs only.

    Examples
    --------
    >>> import semiring as sr
    >>> streets = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
    >>> paths = sr.apsp(streets, sources=["a"], targets=["c", "b"], paths=True)
    >>> paths
    <paths over min-plus: 1 source × 2 targets, 2 pairs connected>
    >>> paths.distances, paths.path("a", "c")
    (array([[3., 1.]]), ['a', 'b', 'c'])
    >>> paths.predecessors()
    array([[-9999,     0,     1]], dtype=int32)

    Attributes
    ----------
    sources, targets : tuple
        The vertices of the rows and of the columns.
    """

    @cached_property
    def sources(self) -> tuple[Any, ...]:
        """The vertices of the rows."""
        return tuple(self._store.names.of(self._store.sources.numbers.tolist()))

    @cached_property
    def targets(self) -> tuple[Any, ...]:
        """The vertices of the columns."""
        return tuple(self._store.names.of(self._store.targets.numbers.tolist()))


def paths_in(store: Store, restore: Callable[[Array], Any] | None = None, library: Callable[[Array], Any] | None = None) -> Paths:
    """Wrap a store for the caller: `Paths` of all pairs, or `PathsBetween` of some."""
    return (Paths if store.complete else PathsBetween)._of(store, restore, library)


@dataclass(eq=False)
class PredecessorTrees(Store):
    """Elements and a tree of best paths for each source (or each target); see `Store`."""

    # the vertex before each vertex on the path from the source, −1 for none; if `backward`, the vertex after it, of shape (…, n, t)
    tree: Array
    backward: bool = False
    graph: CSR | None = None  # the sparse graph, if the rows and columns are all its vertices
    whole: Callable[[], Array] | None = None  # returns the complete tree, if `tree` has only one requested path

    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        return self._part(key, tree=self.tree[key])

    @cached_property
    def expanded(self) -> ConstructionMatrix | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # a property, computed once
        """The same elements with a construction matrix, if rows and columns are all vertices."""
        edges = self.graph
        if edges is None:
            return None
        via = self._via(edges)
        return ConstructionMatrix(self.semiring, self.values, self.names, self.sources, self.targets, self.reflexive, edges.dense, via)

    def predecessors(self) -> Any:
        """Return the tree of each source."""
        if self.backward:
            raise GraphError("these paths were found from the targets and have next_hops(); name the sources for predecessors()")
        return self._without_roots()

    def next_hops(self) -> Any:
        """Return the tree of each target."""
        if self.backward:
            return self._without_roots()
        if self.expanded is None:
            raise GraphError("these paths were found from the sources and have predecessors(); name only targets for next_hops()")
        return self.expanded.next_hops()

    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the edges of the graph."""
        matrix = self.kept() or ()
        if matrix and isinstance(matrix[0], SparseArray):
            edges = matrix[0].edges
            yield edges.tails, edges.heads, edges.weights[0]
        elif matrix:
            yield from self._nonzero(matrix)

    def _via(self, edges: CSR) -> Any:
        return via_of_trees(self.tree, self.values, edges)

    def _without_roots(self) -> Any:
        """Return the trees in SciPy's form: −9999 for none, and for the roots."""
        tree: Any = self.tree[:] if self.whole is None else self.whole()  # one array, also from several processes
        xp, roots = namespace(tree), self.targets if self.backward else self.sources
        with self.device():
            found = xp.where(tree < 0, np.int32(NONE), tree)
            own, order = xp.asarray(roots.numbers), xp.arange(len(roots.numbers))
            found[(..., own, order) if self.backward else (..., order, own)] = NONE
            return found

    def _simple(self, rows: Array, columns: Array) -> Iterator[list[int] | None]:
        trees: dict[int, list[int]] = {}
        sources, targets = self.ends(rows, columns)
        for root, i, j in zip((columns if self.backward else rows).tolist(), sources.tolist(), targets.tolist(), strict=True):
            if root not in trees:
                trees[root] = host(self._tree_of(root)).tolist()
            yield self._climbed(trees[root], i, j)

    def _tree_of(self, root: int) -> Any:
        return self.tree[:, root] if self.backward else self.tree[root]

    def _climbed(self, tree: list[int], source: int, target: int) -> list[int] | None:
        """Follow a tree from one end to its root; None if rounding has bent the path into a circle."""
        start, root = (source, target) if self.backward else (target, source)
        walk, v = [start], start
        for _ in range(len(tree)):
            v = tree[v]
            if v < 0:
                return None
            walk.append(v)
            if v == root:
                return walk if self.backward else walk[::-1]
        return None

    def _edges(self) -> ClosedMatrix | None:
        """Return the given matrix; sparse components are objects that read single rows."""
        kept = self.kept()
        return None if kept is None else tuple(v if not hasattr(v, "ndim") else host(v) for v in kept)  # a SparseArray has no ndim


def via_of_trees(tree: Array, values: Values, edges: CSR, first: int = 0) -> Array:
    """Compute rows of a construction matrix from predecessor trees, elements and the edges of the whole graph.

    via[i, j] is the vertex before j, or −1 if this vertex is i or the edge from i to j is a best path. Expansion then shortens a path from
    j on, until only edges are left. `first` is the number of the first row.
    """
    last = first + len(tree)
    via = np.where(tree == np.arange(first, last, dtype=np.int32)[:, None], np.int32(-1), tree)
    some = slice(edges.starts[first], edges.starts[last])
    rows, heads = edges.tails[some] - first, edges.heads[some]
    best = np.logical_and.reduce([v[rows, heads] == w[some] for v, w in zip(values, edges.weights, strict=True)])
    via[rows[best], heads[best]] = -1
    return via
