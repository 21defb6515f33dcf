"""`Factor`: a sparse graph that was eliminated, and what follows from it: rows, columns, entries, solutions, and new weights."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import require
from semiring.algorithms.csr import combine_runs
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.tight_edges import grow_trees
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import HOST
from semiring.common.errors import GraphError, ShapeError, described, raised_here
from semiring.common.units import counted
from semiring.graphs.reweighing import Listing, as_elements, reweighed
from semiring.graphs.vertices import Vertices, chosen
from semiring.kernels.operations import operations_for
from semiring.planning.options import named_device
from semiring.results.factor_exports import FactorExports
from semiring.results.paths import Paths
from semiring.results.paths_between import paths_in
from semiring.results.store import Names, shown
from semiring.results.trees import PredecessorTrees

__all__ = ["Factor"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class Factor(FactorExports):
    """A sparse graph that was eliminated; `factor` makes it.

    Examples
    --------
    >>> import semiring as sr
    >>> ring = sr.edges([(0, 1, 2.0), (1, 2, 2.0), (2, 3, 2.0), (3, 0, 2.0)])
    >>> f = sr.factor(ring)
    >>> f.rows([0, 2])
    array([[0., 2., 4., 6.],
           [4., 6., 0., 2.]])

    Attributes
    ----------
    nodes : tuple
        The vertices, in the order of rows and columns.
    """

    def __init__(self, matrix: Factorization, labels: Sequence[Hashable] | None, listing: Listing) -> None:
        self._matrix, self._listing = matrix, listing
        self.nodes: tuple[Any, ...] = tuple(range(matrix.edges.n)) if labels is None else tuple(labels)
        self._labels = None if labels is None else self.nodes

    @property
    def semiring(self) -> Semiring:
        """The semiring of its elements."""
        return self._matrix.semiring

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component of an element."""
        return self._matrix.edges.dtypes

    # What follows from it.

    @raised_here
    def rows(self, sources: Any = None) -> Any:
        """Rows of the closure: the best elements from some vertices to all.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        >>> f.rows("a")
        array([0., 1., 3.])

        Parameters
        ----------
        sources : vertex or sequence of vertices, optional
            By default all.

        Returns
        -------
        array of shape (k, n), or (n,) for one vertex
            A tuple of arrays where elements are structured.

        Raises
        ------
        GraphError
            For what is no vertex.
        DivergenceError
            Where sums of non-negative numbers diverge from there.
        TooLargeError
            Where the memory has no room for the rows; `blocks` gives some at a time.
        """
        return self._between(sources, None)

    @raised_here
    def columns(self, targets: Any = None) -> Any:
        """Columns of the closure: the best elements from all vertices to some.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        >>> f.columns(["c"])
        array([[3.],
               [2.],
               [0.]])

        Parameters
        ----------
        targets : vertex or sequence of vertices, optional
            By default all.

        Returns
        -------
        array of shape (n, k), or (n,) for one vertex

        Raises
        ------
        GraphError, DivergenceError, TooLargeError
            As `rows`.
        """
        return self._between(None, targets)

    @raised_here
    def __getitem__(self, ends: Any) -> Any:
        """``f[sources, targets]``: elements between some vertices; one vertex by itself has no axis, and `:` is all."""
        if not (isinstance(ends, tuple) and len(ends) == 2):
            raise GraphError("f[sources, targets] needs both; f.rows(sources) and f.columns(targets) have all of the others")
        sources, targets = (None if isinstance(e, slice) and e == slice(None) else e for e in ends)
        return self._between(sources, targets)

    @raised_here
    def closure(self) -> Any:
        """The closure as a dense matrix: the best elements between all vertices.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.factor(sr.edges([(0, 1, 4.0)])).closure()
        array([[ 0.,  4.],
               [inf,  0.]])

        Returns
        -------
        array of shape (n, n)

        Raises
        ------
        TooLargeError
            Where the memory has no room for it.
        """
        return self._between(None, None)

    @raised_here
    def paths(self, sources: Any = None, targets: Any = None) -> Paths:
        """The best paths between some vertices, with the elements: what ``apsp(graph, sources=…, targets=…, paths=True)`` gives.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)]))
        >>> f.paths("a").path("a", "c")
        ['a', 'b', 'c']

        Parameters
        ----------
        sources, targets : vertex or sequence of vertices, optional
            By default all. A tree is grown for each source, or for each target where only these are named.

        Returns
        -------
        PathsBetween, or Paths between all vertices

        Raises
        ------
        LawError
            Where ⊕ is not selective, so that there are no best paths.
        GraphError, TooLargeError
            As `rows`.

        Notes
        -----
        O(m) steps for a source beside its row. Of paths that tie one is told. Where rounding hides the tree of a source, it is searched
        instead.
        """
        elements = "f.rows(), f.columns() and f[sources, targets] have the elements without paths"
        require(self.semiring, self.dtypes, "selective", for_what="a best path", instead=elements)
        n, edges = len(self.nodes), self._matrix.edges
        ends = chosen(sources, n, self._labels, "sources"), chosen(targets, n, self._labels, "targets")
        backward = sources is None and targets is not None
        roots, others = ends[::-1] if backward else ends
        self._require_room(len(roots.numbers), n, sum(d.itemsize for d in self.dtypes) + 4, "paths from fewer vertices")
        every = np.arange(n)
        between = (every, roots.numbers) if backward else (roots.numbers, every)
        found = self._matrix.between(*between, every_source=backward or roots.every, every_target=not backward or roots.every)
        rows = tuple(np.ascontiguousarray(v.T) for v in found) if backward else found
        tree = grow_trees(self.semiring, edges, roots.numbers, rows, backward=backward, threads=self._matrix.elimination.kernels.threads)
        values = tuple(v if others.every else v[:, others.numbers] for v in rows)
        if backward:
            values, tree = tuple(v.T for v in values), tree.T
        names, whole = Names(self._labels, n), edges if ends[0].every and ends[1].every else None
        return paths_in(PredecessorTrees(self.semiring, values, names, *ends, True, edges.arrays, tree, backward, whole))

    @raised_here
    def blocks(self, size: int | None = None) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """All rows of the closure, some at a time, where all would not fit: pairs of sources and their rows.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([(0, 1, 4.0), (1, 2, 1.0)], directed=False))
        >>> max(float(rows.max()) for sources, rows in f.blocks())
        5.0

        Parameters
        ----------
        size : int, optional
            Rows at a time; by default what takes little memory and keeps all threads busy.

        Yields
        ------
        sources : tuple of vertices
            In the order of elimination, in which rows are found fastest.
        rows : array of shape (k, n)

        Raises
        ------
        GraphError
            For a size that is no whole number from 1.
        """
        n, least = len(self.nodes), self._matrix.elimination.together
        if size is None:
            size = max(least, HOST // max(1, n) // least * least)
        elif isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise GraphError(f"size is {described(size)}; it must be a whole number from 1, or None for the default")
        return self._some_rows(int(size))

    def _some_rows(self, size: int) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Blocks of so many rows: as a generator, it begins only where the first is asked for."""
        n = len(self.nodes)
        for first in range(0, n, size):
            numbers = self._matrix.found.order[first : first + size]
            yield tuple([self.nodes[v] for v in numbers.tolist()]), self._elements(Vertices(numbers), Vertices.all_of(n))

    @raised_here
    def solve(self, b: Any) -> Any:
        """The least solution of x = A ⊗ x ⊕ b, which is A* ⊗ b; over plus-times the solution of (I − A) x = b.

        Examples
        --------
        How far it is from each vertex to the nearest of two stations, where a train leaves after 5 and 1:

        >>> import numpy as np, semiring as sr
        >>> f = sr.factor(sr.edges([("home", "north", 3.0), ("home", "south", 9.0)]))
        >>> f.solve([np.inf, 5.0, 1.0])
        array([8., 5., 1.])

        Parameters
        ----------
        b : array of shape (n,) or (n, k)
            A tuple of arrays where elements are structured.

        Returns
        -------
        array of that shape

        Raises
        ------
        ShapeError, DTypeError, DomainError, OverflowRiskError, TooLargeError
            For another number of rows, or elements that are none, or so large that a sum could leave the dtype, or more than fit.
        SemiringError
            Where the solution needs pivoting (floats over plus-times), and SciPy is not installed.
        """
        given, n = as_elements(b, self.semiring, self.dtypes, "b"), len(self.nodes)
        shape = given[0].shape
        if len(shape) not in (1, 2) or shape[0] != n:
            raise ShapeError(f"b must have a row for each of {counted(n, 'vertex', 'vertices')}, shape ({n},) or ({n}, k); got {shape}")
        columns = tuple(np.ascontiguousarray(v.reshape(n, math.prod(shape[1:]))) for v in given)
        answer = tuple(v.reshape(shape) for v in self._matrix.solve(columns))
        return answer[0] if len(answer) == 1 else answer

    # Other weights.

    @raised_here
    def update(self, weights: Any, *, weight: Any = None, nonedge: Any = None) -> None:
        """Give edges other weights, and eliminate what depends on them again.

        The zero of the semiring, ∞ for distances, closes an edge; the graph need not have the edge.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        >>> f.update([4.0, 5.0])
        >>> float(f["a", "c"])
        9.0
        >>> f.update((["b"], ["c"], [1.0]))
        >>> float(f["a", "c"])
        5.0

        Parameters
        ----------
        weights : array, tuple (tails, heads, weights), or graph
            Of all edges: in the order of the list, or of the graph of another library, that `factor` was given; of a sparse array in the
            order of its entries, and of a matrix by rows, then by columns. Or of some, by their ends, or as a graph that has them; what a
            dense matrix has not is closed. Where elements are structured, weights are a tuple of arrays. An edge of an undirected list has
            the same weight both ways where one is named. Of edges that are named several times weights combine with ⊕.
        weight, nonedge
            How a graph is read, as for `apsp`; by default as `factor` was told, which a file knows where it is a text or a number.

        Raises
        ------
        GraphError, DTypeError, DomainError
            For a weight of an edge that the graph has not, another number of weights, or what is no element. The factor is as it was.
        DivergenceError, OverflowRiskError
            As for `factor`. The factor is as it was.
        """
        how = {"weight": weight, "nonedge": nonedge}
        tails, heads, given = reweighed(weights, self.semiring, self._matrix.edges, self._labels, self._listing, **how)
        numbers = self._matrix.located(tails, heads)
        absent = numbers < 0
        opened = absent & ~np.logical_and.reduce([v == z for v, z in zip(given, self._matrix.edges.zero, strict=True)])
        if opened.any():
            u, v = (self.nodes[int(x[np.argmax(opened)])] for x in (tails, heads))
            raise GraphError(f"there is no edge from {u!r} to {v!r}; factor a graph that has it")
        order = np.argsort(numbers, kind="stable")[int(absent.sum()) :]
        add = operations_for(self.semiring, self.dtypes).add
        self._matrix.update(*combine_runs(numbers[order], tuple(v[order] for v in given), add))

    @staticmethod
    @raised_here
    def load(
        path: str | os.PathLike[str], *, semiring: Semiring | str | None = None, device: str = "auto", threads: int | None = None
    ) -> Factor:
        """The factor that `save` has written; its first `update` eliminates all of it once more.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sr.factor(sr.edges([(0, 1, 4.0), (1, 2, 1.0)])).save(f"{folder}/f.npz")
        ...     sr.Factor.load(f"{folder}/f.npz").rows(0)
        array([0., 4., 5.])

        Parameters
        ----------
        path : path
        semiring : Semiring or str, optional
            Needed where it is not one of `semirings`. It is refused if it does not compute what the one that was saved did.
        device : str
            "cuda", "cuda:0", … brings it to a GPU, as `factor` does; "auto" is the CPU.
        threads : int, optional
            By default ``SEMIRING_NUM_THREADS``, or all cores.

        Returns
        -------
        Factor

        Raises
        ------
        GraphError
            For a file or folder that is damaged or nothing that `save` has written, naming its part and what is wrong with it.
        TooLargeError
            A MemoryError, where it does not fit.
        SemiringError
            For another semiring, a device that is not there, and without Zarr where that is needed.

        Notes
        -----
        A file need not be trusted: nothing of it is executed, and what comes out has the form of a factor: elements of the semiring and
        vertices that exist. Whether they are right is another question.
        """
        from semiring.results import factor_files

        place = named_device(device, "cpu", exact=False, compiled=True) or "cpu"
        saved = factor_files.load(path, None if semiring is None else as_semiring(semiring), threads, place)
        return Factor(*saved)

    # Elements.

    def _between(self, sources: Any, targets: Any) -> Any:
        """Elements between vertices that the caller names."""
        n = len(self.nodes)
        return self._elements(chosen(sources, n, self._labels, "sources"), chosen(targets, n, self._labels, "targets"))

    def _elements(self, sources: Vertices, targets: Vertices) -> Any:
        """Elements between vertices, where the memory has room for them."""
        self._require_room(
            len(sources.numbers), len(targets.numbers), sum(d.itemsize for d in self.dtypes), "fewer, or go through f.blocks()"
        )
        ends = sources.numbers, targets.numbers
        found = self._matrix.between(*ends, every_source=sources.every, every_target=targets.every, on_host=False)
        return shown(found, sources, targets, None)

    def _require_room(self, rows: int, columns: int, size: int, instead: str) -> None:
        """Refuse so many elements of so many bytes, if the memory has no room for them."""
        require_bytes(rows * columns * size, f"{rows:,} × {columns:,} elements take", f"ask for {instead}", self._matrix.device)
