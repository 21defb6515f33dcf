"""What paths are asked, by the names of vertices: elements, the vertices of best paths, the farthest pairs, and trees as matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.common.errors import raised_here
from semiring.results.exports import Exports
from semiring.results.store import squeezed

if TYPE_CHECKING:
    from semiring.results.farthest import FarthestPair

__all__ = ["Lookups"]

Array = np.ndarray[Any, Any]


class Lookups(Exports):
    """What `Paths` is asked."""

    _library: Callable[[Array], Any] | None

    @raised_here
    def distance(self, source: Hashable, target: Hashable) -> Any:
        """The element for one pair of vertices, such as the length of a shortest path.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
        >>> paths = sr.apsp(ways, paths=True)
        >>> float(paths.distance("a", "c"))
        3.0

        Returns
        -------
        scalar of the elements' dtype, or tuple of such
            The semiring's zero where there is no path; a tuple where elements are structured.

        Raises
        ------
        GraphError
            For a vertex that is not in the graph, or none of the chosen ones, and for the paths of a batch.
        """
        self._require_one()
        element = self._store.element(*self._store.place(source, target))
        return element[0] if len(element) == 1 else element

    @raised_here
    def path(self, source: Hashable, target: Hashable) -> list[Any]:
        """The vertices of a best path from `source` to `target`, both included.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
        >>> paths = sr.apsp(ways, paths=True)
        >>> paths.path("a", "c"), paths.path("c", "a")
        (['a', 'b', 'c'], [])

        Returns
        -------
        list
            Empty where there is no path, such as against the direction of edges (``directed=False`` of `edges` makes them lead both ways).
            From a vertex to itself it is that vertex alone, or a cycle that ends where it begins if the closure was not reflexive. No other
            vertex comes twice.

        Raises
        ------
        GraphError
            For a vertex that is not in the graph, or none of the chosen ones. Also where rounding has bent a path into a circle and the
            input to find it again was overwritten or changed.

        Notes
        -----
        Linear in the length of the path. More: How it works, Papers; How it works, Accuracy.
        """
        return self.paths([(source, target)])[0]

    @raised_here
    def paths_from(self, source: Hashable) -> list[list[Any]]:
        """The paths from one vertex to every target: a list of lists in their order, which without chosen ones is that of `nodes`.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
        >>> sr.apsp(ways, paths=True).paths_from("a")
        [['a'], ['a', 'b'], ['a', 'b', 'c']]
        """
        return self.paths((source, target) for target in self._store.names.of(self._store.targets.numbers.tolist()))

    @raised_here
    def paths(self, pairs: Iterable[tuple[Hashable, Hashable]]) -> list[list[Any]]:
        """The paths of many pairs (source, target) at once.

        Examples
        --------
        >>> import semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
        >>> paths.paths([("a", "c"), ("c", "a")])
        [['a', 'b', 'c'], []]

        Parameters
        ----------
        pairs : iterable of (vertex, vertex)

        Returns
        -------
        list of list
            In the order of the pairs; each as `path` gives it.

        Raises
        ------
        GraphError
            As `path`.

        Notes
        -----
        Linear in the lengths of the paths, and faster than one call for each.
        """
        self._require_one()
        places = np.array([self._store.place(source, target) for source, target in pairs], dtype=np.intp).reshape(-1, 2)
        return [self._store.names.of(path) for path in self._store.find(places[:, 0], places[:, 1])]

    @raised_here
    def farthest(self, k: int = 1) -> list[FarthestPair]:
        """List the pairs with the least preferred elements: the greatest where ⊕ is min, the least where ⊕ is max.

        Over min-plus these are the greatest finite distances, the diameter first; over max-min the narrowest of the widest paths. `longest`
        lists the greatest elements over every semiring.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("d", "c", 0.5)], directed=False)
        >>> paths = sr.apsp(ways, paths=True)
        >>> for source, target, distance in paths.farthest(2):
        ...     print(source, target, distance)
        a d 3.5
        a c 3.0

        Parameters
        ----------
        k : int
            The number of pairs; fewer are returned if there are fewer.

        Returns
        -------
        list of (source, target, distance)
            Named tuples, the farthest first; equal distances in the order of rows. Pairs without a path and pairs of a vertex with itself
            do not count. If distances are the same both ways, as in an undirected graph, two vertices are one pair, named in the order of
            `nodes`; chosen sources and targets form pairs of each source with each target.

        Raises
        ------
        SemiringError
            Over a semiring whose ⊕ is neither a minimum nor a maximum.
        GraphError
            For the paths of a batch.

        Notes
        -----
        One pass over the elements, and one more to find out if they are symmetric; memory for some rows, and for k pairs.
        """
        self._require_one()
        from semiring.results.farthest import farthest

        return farthest(self._store, k)

    @raised_here
    def longest(self, k: int = 1) -> list[FarthestPair]:
        """List the pairs of vertices with the greatest elements, such as the longest paths over max-plus.

        Over min-plus these are the farthest pairs, over max-min the pairs with the widest paths.

        Examples
        --------
        >>> import semiring as sr
        >>> tasks = sr.edges([("dig", "build", 2.0), ("build", "paint", 5.0), ("dig", "paint", 3.0)])
        >>> plan = sr.closure(tasks, "max-plus", paths=True)
        >>> source, target, days = plan.longest()[0]
        >>> source, target, days
        ('dig', 'paint', 7.0)

        Parameters
        ----------
        k : int
            The number of pairs; fewer are returned if there are fewer.

        Returns
        -------
        list of (source, target, distance)
            As from `farthest`, the greatest first.

        Raises
        ------
        SemiringError, GraphError
            As `farthest`.
        """
        self._require_one()
        from semiring.results.farthest import longest

        return longest(self._store, k)

    @raised_here
    def center(self) -> list[Any]:
        """The center of the graph: the vertices whose eccentricity is the least.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("d", "c", 0.5)], directed=False), paths=True).center()
        ['b']

        Returns
        -------
        list
            In the order of `nodes`. The eccentricity of a vertex is the distance to the farthest other one, ∞ where it does not reach all;
            from chosen sources, the distance to the farthest of the chosen targets.

        Raises
        ------
        GraphError
            Where no vertex reaches all others, and for the paths of a batch.
        SemiringError
            Over a semiring whose ⊕ is neither a minimum nor a maximum.

        Notes
        -----
        One pass over the elements where they lie. `semiring.statistics` gives all eccentricities, and keeps no n² numbers.
        """
        self._require_one()
        from semiring.results.farthest import center

        return center(self._store)

    @raised_here
    def predecessors(self) -> Any:
        """The predecessor matrix: the vertex before j on a best path from i to j, as SciPy gives it.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
        >>> sr.apsp(ways, paths=True).predecessors()
        array([[-9999,     0,     1],
               [-9999, -9999,     1],
               [-9999, -9999, -9999]], dtype=int32)

        Returns
        -------
        int32 array of shape (…, n, n), or (…, s, n) from s chosen sources
            −9999 on the diagonal and where there is none; of the caller's library. Each row is a tree whose paths are best paths. There is
            no axis of a source that was named by itself.

        Raises
        ------
        GraphError
            Where rounding has bent a path, as `path`; and where targets alone were chosen, to which there are `next_hops`.

        Notes
        -----
        O(n² log h) for paths of h edges, and up to n³ where many elements tie.
        """
        with self._store.device():
            return self._imported(squeezed(self._store.predecessors(), self._store.sources, -2))

    @raised_here
    def next_hops(self) -> Any:
        """The next-hop matrix: the vertex after i on a best path from i to j.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
        >>> sr.apsp(ways, paths=True).next_hops()
        array([[-9999,     1,     1],
               [-9999, -9999,     2],
               [-9999, -9999, -9999]], dtype=int32)

        Returns
        -------
        int32 array of shape (…, n, n), or (…, n, t) to t chosen targets
            −9999 on the diagonal and where there is none; of the caller's library. Each column is a tree whose paths are best paths. There
            is no axis of a target that was named by itself.

        Raises
        ------
        GraphError
            Where rounding has bent a path, as `path`; and where sources were chosen, from which there are `predecessors`.

        Notes
        -----
        As `predecessors`.
        """
        with self._store.device():
            return self._imported(squeezed(self._store.next_hops(), self._store.targets, -1))

    def _imported(self, array: Any) -> Any:
        """A matrix of vertices as an array of the caller's library."""
        return array if self._library is None else self._library(array)
