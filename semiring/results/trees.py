"""Paths that were found source by source: a rectangle of a closure, and the predecessor tree of each row.

If only targets were named, each column has a next-hop tree. Trees of all vertices of a sparse graph yield the construction matrix too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from semiring.algorithms.csr import CSR, SparseArray
from semiring.algorithms.predecessors import NONE
from semiring.arrays.devices import host, namespace
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.results.store import ClosedMatrix, ConstructionMatrix, Store, Values

__all__ = ["PredecessorTrees", "via_of_trees"]

Array = np.ndarray[Any, Any]


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

    def construction(self) -> Any:
        """Return the construction matrix; None for a rectangle."""
        return None if self._whole is None else self._whole.via

    def predecessors(self) -> Any:
        """Return the tree of each source."""
        if self.backward:
            raise GraphError("these paths were found from the targets and have next_hops(); name the sources for predecessors()")
        return self._without_roots()

    def next_hops(self) -> Any:
        """Return the tree of each target."""
        if self.backward:
            return self._without_roots()
        if self._whole is None:
            raise GraphError("these paths were found from the sources and have predecessors(); name only targets for next_hops()")
        return self._whole.next_hops()

    def dense(self) -> Values | None:
        """Return the matrix of the graph; None for a rectangle."""
        return None if self.graph is None else self.graph.dense()

    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the edges of the graph."""
        matrix = self.kept() or ()
        if matrix and isinstance(matrix[0], SparseArray):
            edges = matrix[0].edges
            yield edges.tails, edges.heads, edges.weights[0]
        elif matrix:
            yield from self._nonzero(matrix)

    @cached_property
    def _whole(self) -> ConstructionMatrix | None:
        """The same elements with a construction matrix, if rows and columns are all vertices."""
        edges = self.graph
        if edges is None:
            return None
        via = self._via(edges)
        return ConstructionMatrix(self.semiring, self.values, self.names, self.sources, self.targets, self.reflexive, edges.dense, via)

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
