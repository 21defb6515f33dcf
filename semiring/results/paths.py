"""`Paths`: a closure with its best paths, by the names of the vertices; `PathsBetween`: the same between chosen sources and targets.

A store (`semiring.results.store`) finds the elements and paths. `farthest`, `views`, `saving` and `pictures` are imported on first use.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.divergence import is_min_plus
from semiring.arrays.conversion import Array, Values
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, raised_here
from semiring.common.forks import cached_property
from semiring.graphs.vertices import Vertices
from semiring.results.store import ConstructionMatrix, Names, Store, shown, squeezed

if TYPE_CHECKING:
    from semiring.results.farthest import FarthestPair

__all__ = ["Paths", "PathsBetween", "paths_in"]


class Paths:
    """A closure with its paths: the elements of the matrix, and the best path between every two vertices.

    `apsp`, `closure` and `transitive_closure` return one with ``paths=True``. Vertices are named by the caller's labels, or by their
    index if the graph has none: ``paths["a", "c"]`` is a distance. For a batch, ``paths[b]`` are the paths of matrix b.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
    >>> paths = sr.apsp(ways, paths=True)
    >>> paths.path("a", "c")
    ['a', 'b', 'c']
    >>> float(paths["a", "c"])
    3.0

    Attributes
    ----------
    semiring : Semiring
    values : array of shape (…, n, n), or tuple of arrays
        The closure, as the function returns it without paths.
    via : int32 array of shape (…, n, n)
        The construction matrix: an intermediate vertex of the path from i to j; −1 for an edge or no path.
    nodes : tuple
        The names of the vertices in the order of the rows.
    reflexive : bool
        Count the empty path from each vertex to itself.

    Notes
    -----
    Arrays on a GPU stay there: matrices are computed there and returned as arrays of the caller's library. Only the vertices of paths are
    copied to the host.
    """

    def __init__(
        self,
        semiring: Semiring,
        values: Values,
        via: Array,
        *,
        nodes: Sequence[Hashable] | None = None,
        reflexive: bool = True,
        kept: Callable[[], Values | None] = lambda: None,
        restore: Callable[[Array], Any] | None = None,
        library: Callable[[Array], Any] | None = None,
    ) -> None:
        names = Names(nodes, int(via.shape[-1]))
        every = Vertices.all_of(names.n)
        self._hold(ConstructionMatrix(semiring, values, names, every, every, reflexive, kept, via), restore, library)

    def _hold(self, store: Store, restore: Callable[[Array], Any] | None, library: Callable[[Array], Any] | None) -> None:
        self.semiring, self.reflexive = store.semiring, store.reflexive
        self._store, self._restore, self._library = store, restore, library

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The names of the vertices in the order of the rows."""
        return self._store.names.nodes

    @property
    @raised_here
    def via(self) -> Any:
        """The construction matrix.

        Raises
        ------
        AttributeError
            Between chosen vertices, whose paths are stored as trees.
        """
        whole = self._store.expanded
        if whole is None:
            raise AttributeError("paths between chosen vertices have trees instead of a construction matrix: predecessors() or next_hops()")
        return self._imported(whole.via)

    @property
    def values(self) -> Any:
        """The closure; a source or target passed as a single vertex has no axis."""
        return shown(self._store.values, self._store.sources, self._store.targets, self._restore)

    @property
    @raised_here
    def distances(self) -> Any:
        """The distances of shortest paths; only for min-plus.

        Raises
        ------
        AttributeError
            Over any other semiring, whose elements are in `values`.
        """
        if not is_min_plus(self.semiring):
            raise AttributeError(f"elements of {self.semiring.name} are no distances; they are in .values")
        return self.values

    @raised_here
    def __getitem__(self, index: Any) -> Any:
        """Return the element of a pair of vertices, as from `distance`; for a batch, the paths of some matrices.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
        >>> float(paths["a", "c"])
        3.0
        >>> batch = sr.apsp(np.array([[[0.0, 1.0], [4.0, 0.0]], [[0.0, 2.0], [5.0, 0.0]]]), paths=True)
        >>> float(batch[1][0, 1])
        2.0

        Raises
        ------
        GraphError
            For anything but a pair of vertices of the graph, or of the chosen ones.
        IndexError
            For a matrix outside the batch.
        """
        axes = len(self._store.batch)
        if not axes:
            return self.distance(*self._pair(index))
        key = index if isinstance(index, tuple) else (index,)
        if len(key) > axes:
            one = ", ".join("0" * axes)
            raise IndexError(f"paths of a batch with {axes} axes take no index {index!r}; paths[{one}] are those of one matrix")
        some = copy.copy(self)
        some._store = self._store[key]
        return some

    def _pair(self, index: Any) -> tuple[Any, Any]:
        """Return the two vertices of an index; a tuple may also be the name of a single vertex."""
        names = self._store.names
        alone = index in names
        if isinstance(index, tuple) and len(index) == 2 and not (alone and not all(node in names for node in index)):
            return index
        example = "paths[source, target] is the element of a pair of vertices"
        if not alone:
            raise GraphError(f"paths of one graph take no index {index!r}; {example}")
        row = "distances" if is_min_plus(self.semiring) else "values"
        raise GraphError(f"{index!r} is one vertex, and {example}; .paths_from({index!r}) are all paths from it, and its row is in .{row}")

    @raised_here
    def __len__(self) -> int:
        """Return the number of matrices of a batch."""
        if not self._store.batch:
            raise TypeError("the paths of one matrix have no length; .nodes tells its vertices")
        return self._store.batch[0]

    def __repr__(self) -> str:
        from semiring.results.views import paths_text

        return paths_text(self._store)

    def _repr_html_(self) -> str:
        from semiring.results.views import paths_html

        return paths_html(self._store)

    @raised_here
    def distance(self, source: Hashable, target: Hashable) -> Any:
        """Return the element for one pair of vertices, such as the length of a shortest path.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
        >>> paths = sr.apsp(ways, paths=True)
        >>> float(paths.distance("a", "c"))
        3.0

        Returns
        -------
        scalar of the elements' dtype, or tuple of scalars
            The semiring's zero without a path; a tuple for structured elements.

        Raises
        ------
        GraphError
            For a vertex outside the graph or the chosen vertices, and for a batch.
        """
        store = self._one
        element = store.element(*store.place(source, target))
        return element[0] if len(element) == 1 else element

    @raised_here
    def path(self, source: Hashable, target: Hashable) -> list[Any]:
        """Return the vertices of a best path from `source` to `target`, both included.

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
            Empty without a path, such as against the direction of edges (``directed=False`` of `edges` makes them lead both ways). The path
            from a vertex to itself is this vertex alone, or a cycle through it if the closure is not reflexive. No other vertex repeats,
            unless turns have costs.

        Raises
        ------
        GraphError
            For a vertex outside the graph or the chosen vertices. Also if rounding has bent the path into a circle and the input, needed to
            find it again, was overwritten or changed.

        Notes
        -----
        Linear in the length of the path. More: How it works, Papers; How it works, Accuracy.
        """
        return self.paths([(source, target)])[0]

    @raised_here
    def paths_from(self, source: Hashable) -> list[list[Any]]:
        """Return the paths from one vertex to every target, in the order of the targets (by default `nodes`).

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
        """Return the paths of many pairs (source, target) at once; faster than one call for each.

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
            In the order of the pairs, each as from `path`. Linear in the lengths of the paths.

        Raises
        ------
        GraphError
            As `path`.
        """
        store = self._one
        places = np.array([store.place(source, target) for source, target in pairs], dtype=np.intp).reshape(-1, 2)
        return [store.names.of(path) for path in store.find(places[:, 0], places[:, 1])]

    @raised_here
    def all_paths(self, source: Hashable, target: Hashable) -> Iterator[list[Any]]:
        """Iterate over all best paths from `source` to `target`, each once, in no particular order.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1), ("b", "d", 2), ("a", "c", 2), ("c", "d", 1), ("a", "d", 4)])
        >>> paths = sr.apsp(ways, paths=True)
        >>> sorted(paths.all_paths("a", "d")), paths.count("a", "d")
        ([['a', 'b', 'd'], ['a', 'c', 'd']], 2)

        Returns
        -------
        iterator of list
            The vertices of each path, as from `path`; nothing without a path. No vertex of a path repeats, so cycles of weight 1 (zero, for
            shortest paths) do not make the paths infinite.

        Raises
        ------
        GraphError
            For a vertex outside the graph or the chosen vertices, and for a batch. Also if the given matrix was overwritten, or if rounding
            hides all paths.
        LawError
            For a ⊗ other than sums, products, one minimum or one maximum.
        DTypeError
            For symbols.

        Notes
        -----
        A path is best if each edge u → v has d(u) ⊗ a(u, v) = d(v), for the best elements d from the source. Integers and fractions are
        exact; floats tie only if rounding leaves their sums equal.

        The first call compresses a dense matrix in O(n²), the first call for a source is a search, and a target takes O(m) steps for m
        edges. Then each path takes steps linear in its length, and O(m) for each vertex if best edges form a cycle. Memory for the
        edges, and for the rows of eight sources. `networkx.all_shortest_paths` answers the same question.
        """
        store = self._one
        found, end = store.all_best(source, target)
        paths = iter(()) if found is None else found.paths(end)
        first = next(paths, None)
        if found is not None and first is None:
            raise GraphError(f"rounding hides the paths from {source!r} to {target!r}; path returns one, and fractions are exact")
        return map(store.names.of, () if first is None else itertools.chain([first], paths))

    @raised_here
    def count(self, source: Hashable, target: Hashable) -> int:
        """Count the best paths from `source` to `target`.

        Examples
        --------
        >>> import semiring as sr
        >>> city = sr.edges([((x, y), (x + a, y + 1 - a), 1) for x in range(30) for y in range(30) for a in (0, 1)])
        >>> sr.apsp(city, paths=True).count((0, 0), (29, 29))
        30067266499541040

        Returns
        -------
        int
            A Python integer of any size; 0 without a path.

        Raises
        ------
        GraphError
            As `all_paths`. Also if a best walk may go around a cycle of weight 1 (zero, for shortest paths); the message names the cycle.
        LawError, DTypeError
            As `all_paths`.

        Notes
        -----
        O(m) steps for m edges; the paths are not listed.
        """
        found, end = self._one.all_best(source, target)
        return 0 if found is None else found.count(end)

    @raised_here
    def along(self, other: Any, *, semiring: Semiring | str | None = None, pairs: Iterable[tuple[Hashable, Hashable]] | None = None) -> Any:
        """Sum another attribute of the edges along the best paths, such as the metres of the fastest path.

        Examples
        --------
        >>> import semiring as sr, networkx as nx
        >>> roads = nx.DiGraph()
        >>> roads.add_edge("a", "b", minutes=5, metres=900, lanes=2)
        >>> roads.add_edge("b", "c", minutes=3, metres=700, lanes=1)
        >>> roads.add_edge("a", "c", minutes=9, metres=1000, lanes=1)
        >>> fastest = sr.apsp(roads, weight="minutes", paths=True)
        >>> fastest.along("metres")
        array([[   0.,  900., 1600.],
               [  inf,    0.,  700.],
               [  inf,   inf,    0.]])
        >>> fastest.along("lanes", semiring="max-min", pairs=[("a", "b"), ("a", "c")])
        array([2., 1.])

        Parameters
        ----------
        other : str, number, array of shape (n, n), or sparse array
            The name of an attribute or a column of the edges, if the graph has such; of parallel edges the first one with the best weight
            counts. Or a number for every edge: 1 counts edges. Or an array in the order of `nodes`, with the value of the edge from u to v
            in row u and column v. Entries that a sparse array does not store are 0.
        semiring : Semiring or str, optional
            Multiply values by the ⊗ of this semiring instead of a sum. Its ⊕ is not used. `from_weight` gives structured elements.
        pairs : iterable of (vertex, vertex), optional
            Only the paths of these pairs, as from `path`; by default those of all pairs, as from `predecessors` (or `next_hops`, if only
            targets were chosen).

        Returns
        -------
        array of the shape of `values`, or of shape (p,) for p pairs
            Float64 for an attribute, as in `apsp`. Integers of an array are int64, and other arrays keep their dtype. The zero of the
            semiring without a path: for sums ∞, or the largest integer. The one (0 for sums) from a vertex to itself. A sparse array for
            paths within a limit, and a tuple of arrays for structured elements.

        Raises
        ------
        GraphError
            For an attribute that an edge lacks, a graph without attributes, and for the paths of a batch; otherwise as `path`.
        ShapeError
            For an array of another shape.
        DTypeError, DomainError
            For values that are no elements of the semiring.
        OverflowRiskError
            For integers whose sums may leave int64.

        Notes
        -----
        O(n²) after `predecessors`, one ⊗ for each entry; linear in the lengths of paths for chosen pairs and paths within a limit.
        Names read the caller's graph again, so leave it unchanged. Paths read from a file or a pickle have no attributes.
        """
        from semiring.results import along

        store, chosen = self._one, as_semiring("min-plus" if semiring is None else semiring)
        arrays = along.all_along(store, other, chosen) if pairs is None else along.pairs_along(store, other, chosen, pairs)
        found = [v if hasattr(v, "indptr") else self._imported(v) for v in arrays]
        if pairs is None:
            return shown(tuple(found), store.sources, store.targets, None)
        return tuple(found) if len(found) > 1 else found[0]

    @raised_here
    def farthest(self, k: int = 1) -> list[FarthestPair]:
        """List the pairs with the least preferred elements: the greatest if ⊕ is min, the least if ⊕ is max.

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
            `nodes`. Each chosen source forms a pair with each chosen target.

        Raises
        ------
        SemiringError
            Over a semiring whose ⊕ is neither a minimum nor a maximum.
        GraphError
            For the paths of a batch.

        Notes
        -----
        One pass over the elements, and a second one to test symmetry. Memory for some rows, and for k pairs.
        """
        from semiring.results.farthest import extremes

        return extremes(self._one, k, "farthest")

    @raised_here
    @described_by(farthest)
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

        Returns
        -------
        list of (source, target, distance)
            As from `farthest`, the greatest first.
        """
        from semiring.results.farthest import extremes

        return extremes(self._one, k, "longest")

    @raised_here
    def center(self) -> list[Any]:
        """Return the center of the graph: the vertices with the least eccentricity.

        The eccentricity of a vertex is the distance to the farthest other vertex (of the chosen targets), ∞ if it does not reach all.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("d", "c", 0.5)], directed=False), paths=True).center()
        ['b']

        Returns
        -------
        list
            In the order of `nodes`.

        Raises
        ------
        GraphError
            If no vertex reaches all others, and for the paths of a batch.
        SemiringError
            Over a semiring whose ⊕ is neither a minimum nor a maximum.

        Notes
        -----
        One pass over the elements. `semiring.statistics` returns all eccentricities, and keeps no n² numbers.
        """
        from semiring.results.farthest import center

        return center(self._one)

    @raised_here
    def predecessors(self) -> Any:
        """Return the predecessor matrix: the vertex before j on a best path from i to j, as in SciPy.

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
            −9999 on the diagonal and without a path; an array of the caller's library. Each row is a tree of best paths. A source
            passed as a single vertex has no axis.

        Raises
        ------
        GraphError
            If rounding has bent a path, as for `path`; and if only targets were chosen, which have `next_hops`.

        Notes
        -----
        O(n² log h) for paths of h edges, and up to n³ with many ties.
        """
        with self._store.device():
            return self._imported(squeezed(self._store.predecessors(), self._store.sources, -2))

    @raised_here
    def next_hops(self) -> Any:
        """Return the next-hop matrix: the vertex after i on a best path from i to j.

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
            −9999 on the diagonal and without a path; an array of the caller's library. Each column is a tree of best paths. A target
            passed as a single vertex has no axis.

        Raises
        ------
        GraphError
            If rounding has bent a path, as for `path`; and if sources were chosen, which have `predecessors`.

        Notes
        -----
        The complexity of `predecessors`.
        """
        with self._store.device():
            return self._imported(squeezed(self._store.next_hops(), self._store.targets, -1))

    @raised_here
    def plot(self, pos: Any = None, *, highlight: Any = None, ax: Any = None) -> Any:
        """Draw the graph with Matplotlib, and best paths in it.

        Examples
        --------
        >>> import semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)]), paths=True)
        >>> ax = paths.plot(highlight=("a", "c"))  # doctest: +SKIP
        >>> ax = paths.plot({"a": (0, 0), "b": (1, 1), "c": (2, 0)}, highlight=[("a", "b"), ("b", "c")])  # doctest: +SKIP

        Parameters
        ----------
        pos : dict of (x, y), or array of shape (n, 2), optional
            The place of each vertex. By default distances in the picture approximate distances in the undirected graph: sums of weights for
            min-plus without negative weights, else numbers of edges.
        highlight : (source, target), or list of such pairs, optional
            Draw the best paths of these pairs in colours, with the names of the vertices and a legend of the lengths.
        ax : matplotlib.axes.Axes, optional
            The axes to draw in; by default a new figure without a background, for pages light and dark.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        SemiringError
            Without Matplotlib, and for the paths of a batch.
        GraphError
            For unknown vertices, and a `pos` without a place for each vertex.

        Notes
        -----
        The edges are those of the given matrix. If it was overwritten or has more than 2,000 vertices, only edges that are best paths are
        drawn. Up to 50 vertices are named, and one-way edges have arrows; from 2,000 on vertices and edges are rasterized, and more than
        200,000 edges are left out. Without `pos`, up to 500 vertices are placed by all distances between them, in a second, and more by
        the distances from 50 of them.
        """
        from semiring.results.pictures import plot

        return plot(self._one, pos, highlight, ax)

    @raised_here
    def heatmap(self, ax: Any = None) -> Any:
        """Draw the elements as a heat map with Matplotlib, with the vertices along its sides; pairs without a path are hatched.

        Examples
        --------
        >>> import semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
        >>> ax = paths.heatmap()  # doctest: +SKIP

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw in; by default a new figure without a background, for pages light and dark.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        SemiringError
            Without Matplotlib.
        DTypeError
            For elements that are no numbers, such as symbols.
        GraphError
            For the paths of a batch.

        Notes
        -----
        At most 600 rows and columns (128 from a file) are drawn, evenly spread, and only these elements are read. Structured elements are
        shown by the first component, infinite elements in the colour of the nearest finite one.
        """
        from semiring.results.pictures import heatmap

        return heatmap(self._one, ax)

    @raised_here
    def to_scipy(self) -> tuple[Array, Array]:
        """Distances and predecessors in the form of `scipy.sparse.csgraph.shortest_path`; only for min-plus.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.apsp([[0, 2], [None, 0]], paths=True).to_scipy()
        (array([[ 0.,  2.],
               [inf,  0.]]), array([[-9999,     0],
               [-9999, -9999]], dtype=int32))

        Returns
        -------
        distances : float64 array of shape (…, n, n), or (…, s, n) from s chosen sources
            ∞ without a path, also for integer distances.
        predecessors : int32 array of the same shape
            As from `predecessors`, on the host. For chosen sources this is SciPy's result with ``indices``.

        Raises
        ------
        SemiringError
            Over any other semiring.
        DTypeError
            For distances that are no numbers, such as symbols.
        """
        from semiring.results import views

        return views.to_scipy(self._store)

    @raised_here
    def to_networkx(self) -> Any:
        """Return the metric closure: a graph with an edge for each pair of connected vertices.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
        >>> graph = sr.apsp(ways, paths=True).to_networkx()
        >>> sorted(graph.edges(data="weight"))
        [('a', 'b', 1.0), ('a', 'c', 3.0), ('b', 'c', 2.0)]
        >>> graph["a"]["c"]["via"]
        'b'

        Returns
        -------
        networkx.DiGraph
            All `nodes`, and for each path from u to v ≠ u an edge. The attribute ``weight`` is the element (a tuple for structured
            elements). The attribute ``via`` is a vertex on the way, or None if an edge of the given graph is a best path. Loops are
            cycles, in a closure that is not reflexive.

        Raises
        ------
        SemiringError
            Without NetworkX, between chosen vertices, and for the paths of a batch.

        Notes
        -----
        NetworkX takes several hundred bytes for an edge: for graphs of up to a few thousand vertices.
        """
        self._require_all("to_networkx")
        from semiring.results import views

        return views.to_networkx(self._one)

    @raised_here
    def to_frame(self, *, paths: bool = False) -> Any:
        """Return the connected pairs of vertices as a table.

        Examples
        --------
        >>> import semiring as sr
        >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
        >>> sr.apsp(ways, paths=True).to_frame(paths=True)
          source target  value       path
        0      a      b    1.0     [a, b]
        1      a      c    3.0  [a, b, c]
        2      b      c    2.0     [b, c]

        Parameters
        ----------
        paths : bool
            Add a column ``path``, the list of the vertices of each path.

        Returns
        -------
        pandas.DataFrame
            The columns ``source``, ``target`` and ``value`` (``value0``, ``value1`` … for structured elements), in the order of the rows of
            the matrix. A vertex and itself are a row only for a cycle, in a closure that is not reflexive.

        Raises
        ------
        SemiringError
            Without pandas.

        Notes
        -----
        For a square table instead, ``pandas.DataFrame(paths.values, paths.nodes, paths.nodes)``.
        """
        from semiring.results import views

        return views.to_frame(self._one, paths=paths)

    @raised_here
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the elements, the construction matrix, the names of the vertices and the semiring to a file that `load` reads.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> paths = sr.apsp(sr.edges([("a", "b", 1), ("b", "c", 2)]), paths=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths.save(f"{folder}/paths.npz")
        ...     sr.Paths.load(f"{folder}/paths.npz").path("a", "c")
        ['a', 'b', 'c']

        Parameters
        ----------
        path : path
            ``.npz`` for one file of NumPy arrays, uncompressed; ``.zarr`` for a folder of Zarr arrays, compressed; ``.zarr.zip`` for one
            file of Zarr arrays. A file, or a folder that `save` has written, is replaced when the new one is complete.

        Raises
        ------
        GraphError
            For another ending, names that cannot be read back safely, a folder with other contents, and between chosen vertices.
        DTypeError
            For object arrays.
        DomainError
            For values that are no elements of the semiring, which `load` would refuse.
        SemiringError
            For a Zarr file without Zarr.

        Notes
        -----
        Nothing is pickled. Names may be None, truth values, numbers, texts, bytes, and tuples of these. Matrices are written by rows, so
        matrices in files (`numpy.memmap`) or on a GPU never fill the memory of the host. The given matrix is written too if rounding may
        have bent a path: if some floats improve on 1, as negative distances do.
        """
        self._require_all("save")
        from semiring.results.saving import save_paths

        save_paths(path, self._store)

    @staticmethod
    @raised_here
    def load(path: str | os.PathLike[str], *, semiring: Semiring | str | None = None, mmap: bool = False) -> Paths:
        """Read paths that `save` has written, as NumPy arrays.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sr.apsp([[0, 2], [None, 0]], paths=True).save(f"{folder}/paths.npz")
        ...     sr.Paths.load(f"{folder}/paths.npz")
        <paths over min-plus: 2 vertices, 1 pair connected, 1 of them one way only>

        Parameters
        ----------
        path : path
        semiring : Semiring or str, optional
            Needed unless it is one of `semirings`. It must compute the same as the saved semiring.
        mmap : bool
            Leave the matrices of an ``.npz`` file on disk, as `numpy.memmap`, if they are larger than memory. They are read once in either
            case, to verify checksums, elements of the semiring, and vertex numbers.

        Returns
        -------
        Paths

        Raises
        ------
        GraphError
            For a damaged file, or one that `save` has not written; the message names the part.
        TooLargeError
            A MemoryError, if the matrices do not fit.
        SemiringError
            For another semiring, and for a Zarr file without Zarr.

        Notes
        -----
        A file need not be trusted: nothing in the file is executed, and memory use is bounded by the matrices in the file. The result is
        well formed: elements of the semiring, valid vertex numbers, different names. Whether the paths are right is another question.
        """
        from semiring.results.saving import load_paths

        return paths_in(load_paths(path, None if semiring is None else as_semiring(semiring), mmap=mmap))

    def _imported(self, array: Any) -> Any:
        return array if self._library is None else self._library(array)

    @property
    def _one(self) -> Store:
        """The store of one graph; refuse a batch."""
        if self._store.batch:
            raise GraphError(f"these are the paths of a batch of shape {self._store.batch}; choose one first, as in paths[0].path(…)")
        return self._store

    def _require_all(self, method: str) -> None:
        if not self._store.complete:
            what = "the paths between all vertices; leave out sources and targets, or use .to_frame(paths=True)"
            raise GraphError(f"{method}() is for {what}")


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
    """Wrap a store for the caller: `Paths` of all pairs, or `PathsBetween` of some.

    `restore` and `library` convert elements and vertex matrices to arrays of the caller's library.
    """
    found = object.__new__(Paths if store.complete else PathsBetween)
    found._hold(store, restore, library)
    return found
