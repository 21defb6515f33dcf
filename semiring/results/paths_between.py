"""What closures with paths return where paths were found edge by edge, source by source: of chosen vertices, or of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.edges import Edges
from semiring.algorithms.predecessors import NONE
from semiring.arrays.devices import namespace
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.graphs.vertices import Vertices
from semiring.results import views
from semiring.results.construction import Construction
from semiring.results.paths import Paths, Values
from semiring.results.trees_between import TreesBetween

__all__ = ["PathsBetween", "PathsOfTrees"]

Array = np.ndarray[Any, Any]


class PathsBetween(Paths):
    """The elements between chosen sources and targets, and a tree of paths for each source (or each target).

    It answers as `Paths` does, for these pairs alone: `values` has a row for each source and a column for each target, in the order in
    which they were named. Instead of a construction matrix it has the tree of each source, `predecessors`; where no sources were named,
    that of each target, `next_hops`.

    Attributes
    ----------
    sources, targets : tuple
        The vertices of the rows and of the columns.

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
    """

    def __init__(
        self,
        semiring: Semiring,
        values: Values,
        tree: Array,
        sources: Vertices,
        targets: Vertices,
        *,
        backward: bool = False,
        nodes: Sequence[Hashable] | None = None,
        reflexive: bool = True,
        kept: Callable[[], Values | None] = lambda: None,
        restore: Callable[[Array], Any] | None = None,
        library: Callable[[Array], Any] | None = None,
    ) -> None:
        super().__init__(semiring, values, tree, nodes=nodes, reflexive=reflexive, restore=restore, library=library)
        self._found: TreesBetween = TreesBetween(semiring, values, tree, reflexive, kept, sources, targets, backward)

    @cached_property
    def sources(self) -> tuple[Any, ...]:
        """The vertices of the rows."""
        return self._named(self._found.sources)

    @cached_property
    def targets(self) -> tuple[Any, ...]:
        """The vertices of the columns."""
        return self._named(self._found.targets)

    def _named(self, ends: Vertices) -> tuple[Any, ...]:
        numbers = ends.numbers.tolist()
        return tuple(numbers) if self._names is None else tuple([self._names[v] for v in numbers])

    @property
    def via(self) -> Any:
        """There is none.

        Raises
        ------
        AttributeError
        """
        raise AttributeError("paths between chosen vertices have trees instead of a construction matrix: predecessors() or next_hops()")

    @property
    def values(self) -> Any:
        """The elements, without an axis for a vertex that was named by itself."""
        return shown(self._found.values, self._found.sources, self._found.targets, self._restore)

    def paths_from(self, source: Hashable) -> list[list[Any]]:
        """The paths from one of the sources to each target, in the order of `targets`."""
        return self.paths((source, target) for target in self.targets)

    def predecessors(self) -> Any:
        """The vertex before v on a best path from each source to every vertex v of the graph, as SciPy gives it.

        Returns
        -------
        int32 array of shape (…, s, n)
            −9999 for none; without the axis of the sources where one was named by itself.

        Raises
        ------
        GraphError
            Where paths were found from the targets.
        """
        if self._found.backward:
            raise GraphError("these paths were found from their targets, so there are next_hops(); name the sources for predecessors()")
        return self._tree(self._found.sources)

    def next_hops(self) -> Any:
        """The vertex after v on a best path from every vertex v of the graph to each target.

        Returns
        -------
        int32 array of shape (…, n, t)
            −9999 for none; without the axis of the targets where one was named by itself.

        Raises
        ------
        GraphError
            Where paths were found from the sources.
        """
        if not self._found.backward:
            raise GraphError("these paths were found from their sources, so there are predecessors(); name targets alone for next_hops()")
        return self._tree(self._found.targets)

    def to_scipy(self) -> tuple[Array, Array]:
        """Distances and predecessors as SciPy's functions give them for ``indices``; see `Paths.to_scipy`."""
        floats, before = views.to_scipy(self._found, self.predecessors())
        return _squeezed(_squeezed(floats, self._found.sources, -2), self._found.targets, -1), before

    def to_networkx(self) -> Any:
        """Not of a rectangle; see `Paths.to_networkx`."""
        raise self._for_all_pairs("to_networkx")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Not of a rectangle; see `Paths.save`."""
        raise self._for_all_pairs("save")

    def _for_all_pairs(self, method: str) -> GraphError:
        return GraphError(f"{method}() is for the paths between all vertices; leave out sources and targets, or use .to_frame(paths=True)")

    def __repr__(self) -> str:
        many = f", batch of {' × '.join(map(str, self._found.batch))}" if self._found.batch else ""
        ends = (f"{len(e):,} {name}{'s' * (len(e) != 1)}" for e, name in ((self.sources, "source"), (self.targets, "target")))
        connected = f", {self._found.connected():,} pairs connected" if self._found.countable else ""
        return f"<paths over {self.semiring.name}: {' × '.join(ends)}{many}{connected}>"

    def _counts(self) -> dict[str, int]:
        return {"sources": len(self.sources), "targets": len(self.targets), "vertices": len(self.nodes)}

    def _tree(self, roots: Vertices) -> Any:
        tree: Any = self._found.via
        xp, backward = namespace(tree), self._found.backward
        with self._found.device():
            found = xp.where(tree < 0, np.int32(NONE), tree)
            own, order = xp.asarray(roots.numbers), xp.arange(len(roots.numbers))
            found[(..., own, order) if backward else (..., order, own)] = NONE
            return self._imported(_squeezed(found, roots, -1 if backward else -2))


class PathsOfTrees(Paths):
    """The paths between all vertices of a sparse graph, by a tree for each source; the construction matrix is made when it is asked for.

    Parameters
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (n, n)
    tree : int32 array of shape (n, n)
        The vertex before each one on the path from the source, −1 for none.
    edges : Edges
        The graph.
    nodes : sequence or None
    reflexive : bool
    """

    def __init__(
        self, semiring: Semiring, values: Values, tree: Array, edges: Edges, *, nodes: Sequence[Hashable] | None, reflexive: bool
    ) -> None:
        super().__init__(semiring, values, tree, nodes=nodes, reflexive=reflexive)
        every = Vertices.all_of(edges.n)
        self._found: TreesBetween = TreesBetween(semiring, values, tree, reflexive, edges.arrays, every, every, False)
        self._edges = edges

    @cached_property
    def _construction(self) -> Construction:
        """The last edge of a path is an edge: via[i, j] is the vertex before j, or −1 where that is i, and wherever an edge is a best path.

        So paths shorten from j on, until nothing but edges is left.
        """
        tree, edges = self._found.via, self._edges
        via = np.where(tree == np.arange(edges.n, dtype=np.int32)[:, None], np.int32(-1), tree)
        best = [v[edges.tails, edges.heads] == w for v, w in zip(self._found.values, edges.weights, strict=True)]
        there = np.flatnonzero(np.logical_and.reduce(best))
        via[edges.tails[there], edges.heads[there]] = -1
        return Construction(self.semiring, self._found.values, via, self.reflexive, edges.dense)

    @property
    def via(self) -> Any:
        """The construction matrix."""
        return self._construction.via

    def predecessors(self) -> Any:
        """See `Paths.predecessors`; these are the trees themselves."""
        before = np.where(self._found.via < 0, np.int32(NONE), self._found.via)
        np.fill_diagonal(before, NONE)
        return before

    def next_hops(self) -> Any:
        """See `Paths.next_hops`."""
        return self._whole().next_hops()

    def to_scipy(self) -> tuple[Array, Array]:
        """See `Paths.to_scipy`."""
        return views.to_scipy(self._found, self.predecessors())

    def to_networkx(self) -> Any:
        """See `Paths.to_networkx`."""
        return self._whole().to_networkx()

    def save(self, path: str | os.PathLike[str]) -> None:
        """See `Paths.save`."""
        self._whole().save(path)

    def _whole(self) -> Paths:
        """The same with the construction matrix in the place of trees."""
        found, names = self._construction, None if self._index is None else self.nodes
        return Paths(self.semiring, found.values, found.via, nodes=names, reflexive=self.reflexive, kept=found.kept)


def shown(values: Values, sources: Vertices, targets: Vertices, restore: Callable[[Array], Any] | None) -> Any:
    """Elements of shape (…, sources, targets) as the caller gets them, without the axis of a vertex that was named by itself."""
    found: tuple[Any, ...] = tuple([_squeezed(_squeezed(v, sources, -2), targets, -1) for v in values])
    restored = tuple([v[()] for v in found]) if restore is None else tuple(map(restore, found))
    return restored[0] if len(restored) == 1 else restored


def _squeezed(array: Any, vertices: Vertices, axis: int) -> Any:
    return array.squeeze(axis) if vertices.single else array
