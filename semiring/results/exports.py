"""Paths for other programs: SciPy's arrays, NetworkX's graph, pandas' table, files, and Matplotlib's pictures.

What each method does is in `views`, `saving` and `pictures`, which are imported when they are asked for.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from semiring.common.errors import GraphError, raised_here
from semiring.results.store import Store

__all__ = ["Exports"]

Array = np.ndarray[Any, Any]


class Exports:
    """What `Paths` gives to other programs."""

    _store: Store

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
            Where each vertex is drawn. By default where distances in the picture are about those in the graph, along its edges in either
            direction: their lengths for min-plus if none is negative, else their number.
        highlight : (source, target), or list of such pairs, optional
            Whose best paths are drawn in colours, with the names of their vertices and a legend of their lengths.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure without a background, for pages light and dark.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        SemiringError
            Without Matplotlib, and for the paths of a batch.
        GraphError
            For vertices that are not there, and a `pos` without a place for each vertex.

        Notes
        -----
        The edges are those of the matrix that was closed, or those that are best paths themselves where it was overwritten or has more than
        2,000 vertices. Up to 50 vertices have their names, and edges that go one way have arrows; from 2,000 on vertices and edges are
        points and lines in a raster, and more than 200,000 edges are left out. Without `pos`, up to 500 vertices are placed by all
        distances between them, in a second, and more by those from 50 of them.
        """
        self._require_one()
        from semiring.results.pictures import plot

        return plot(self._store, pos, highlight, ax)

    @raised_here
    def heatmap(self, ax: Any = None) -> Any:
        """Draw the elements as a heat map with Matplotlib, with the vertices along its sides; what has no path is hatched.

        Examples
        --------
        >>> import semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
        >>> ax = paths.heatmap()  # doctest: +SKIP

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure without a background, for pages light and dark.

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
        Of more than 600 rows or columns (128 in a file), so many are drawn, evenly spread, and only these elements are read. Structured
        elements are shown by their first component, infinite ones in the colour of the nearest finite one.
        """
        self._require_one()
        from semiring.results.pictures import heatmap

        return heatmap(self._store, ax)

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
            ∞ where there is no path, also where an integer stood for it.
        predecessors : int32 array of the same shape
            As `predecessors`, on the host: what SciPy gives with ``indices``, where sources were chosen.

        Raises
        ------
        SemiringError
            Over any other semiring.
        DTypeError
            Where distances are no numbers, such as symbols.
        """
        from semiring.results import views

        return views.to_scipy(self._store)

    @raised_here
    def to_networkx(self) -> Any:
        """The metric closure: a graph with an edge for each pair of connected vertices.

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
            All `nodes`, and where there is a path from u to v ≠ u an edge whose ``weight`` is its element (a tuple where elements are
            structured) and whose ``via`` is a vertex on the way, None where the best path is an edge of the graph that was closed. If the
            closure is not reflexive, a loop tells of a cycle.

        Raises
        ------
        SemiringError
            Without NetworkX, between chosen vertices, and for the paths of a batch.

        Notes
        -----
        NetworkX takes several hundred bytes for an edge: for graphs of up to a few thousand vertices.
        """
        self._require_all("to_networkx")
        self._require_one()
        from semiring.results import views

        return views.to_networkx(self._store)

    @raised_here
    def to_frame(self, *, paths: bool = False) -> Any:
        """The connected pairs of vertices as a table.

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
            With a column ``path``, the list of the vertices of each path.

        Returns
        -------
        pandas.DataFrame
            The columns ``source``, ``target`` and ``value`` (``value0``, ``value1`` … where elements are structured), in the order of
            the rows of the matrix. A vertex and itself are a row only if the closure is not reflexive and there is a cycle.

        Raises
        ------
        SemiringError
            Without pandas.

        Notes
        -----
        For a square table instead, ``pandas.DataFrame(paths.values, paths.nodes, paths.nodes)``.
        """
        self._require_one()
        from semiring.results import views

        return views.to_frame(self._store, paths=paths)

    @raised_here
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that `load` needs to answer the same questions: elements, construction matrix, names of the vertices, semiring.

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
            ``.npz`` for one file of NumPy arrays, uncompressed; ``.zarr`` for a folder of Zarr's, compressed, and ``.zarr.zip`` for one
            file of them. A file, or a folder with other paths, is replaced when the new one is complete.

        Raises
        ------
        GraphError
            For another ending, names that cannot be read back safely, a folder of something else, and between chosen vertices.
        DTypeError
            For object arrays.
        DomainError
            For values that are no elements of the semiring, which `load` would refuse.
        SemiringError
            Without Zarr where that is wanted.

        Notes
        -----
        Nothing is pickled. Names may be None, truth values, numbers, texts, bytes, and tuples of these. Matrices are written by rows, so
        that those in files (`numpy.memmap`) or on a GPU are never in the memory of the host as a whole. The matrix that was closed is
        written too where rounding may have bent a path: floats of which some improve on 1, as negative distances do.
        """
        self._require_all("save")
        if self._store.distributed:
            raise GraphError(
                "the paths are in the memory of several processes: with checkpoint=folder they are in files, which one of them can save; "
                ".values.to_zarr(store) writes the elements alone"
            )
        from semiring.results import saving

        saving.save(path, self._store)

    def _require_one(self) -> None:
        """Refuse what is not said of a batch."""
        if self._store.batch:
            raise GraphError(f"these are the paths of a batch of shape {self._store.batch}; choose one first, as in paths[0].path(…)")

    def _require_all(self, method: str) -> None:
        """Refuse what is not said of some pairs alone."""
        if not self._store.complete:
            what = "the paths between all vertices; leave out sources and targets, or use .to_frame(paths=True)"
            raise GraphError(f"{method}() is for {what}")
