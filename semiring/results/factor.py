"""`Factor`: a sparse graph after elimination, and its rows, columns, entries, solutions, statistics and new weights."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import require
from semiring.algorithms.csr import combine_runs
from semiring.algorithms.divergence import is_min_plus
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.rows_of_edges import grow_trees
from semiring.arrays.conversion import Array
from semiring.arrays.exchange import borrowed, comes_from
from semiring.arrays.followed import is_recorded, refuse_compiling
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import HOST
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, SemiringError, described, raised_here
from semiring.common.html import Shown
from semiring.common.units import counted, format_bytes
from semiring.graphs.reweighing import Listing, as_columns, as_elements, reweighed
from semiring.graphs.vertices import Vertices, chosen
from semiring.kernels.operations import operations_for
from semiring.planning.options import named_device
from semiring.results.paths import Paths, paths_in
from semiring.results.statistics import BINS, RunningDistances, Statistics, add_by_elimination
from semiring.results.store import Names, PredecessorTrees, shown

__all__ = ["Factor"]


class Factor(Shown):
    """A sparse graph after elimination; `factor` returns one.

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
        self._matrix, self._listing, self._names = matrix, listing, Names(labels, matrix.edges.n)
        self._labels, self.nodes = self._names.labels, self._names.nodes

    @property
    def semiring(self) -> Semiring:
        """The semiring of the elements."""
        return self._matrix.semiring

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component of an element."""
        return self._matrix.edges.dtypes

    @property
    def order(self) -> tuple[Any, ...]:
        """The vertices in the order of elimination, for `factor` of other weights of the same graph.

        Examples
        --------
        >>> import semiring as sr
        >>> star = sr.edges([("hub", "a"), ("hub", "b"), ("hub", "c")], directed=False)
        >>> sr.factor(star, order=["a", "b", "c", "hub"]).order
        ('a', 'b', 'c', 'hub')
        """
        return tuple(self._names.of(self._matrix.found.order.tolist()))

    @property
    def fill(self) -> int:
        """The number of entries above the diagonal of the eliminated matrix: edges of the graph, and entries added by elimination.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.factor(sr.edges([(0, 1), (1, 2), (2, 3)], directed=False), order="natural").fill
        3
        """
        return self._matrix.found.fill.entries

    @property
    def nbytes(self) -> int:
        """The size in bytes, without the graph.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.factor(sr.edges([(0, 1)])).nbytes > 0
        True
        """
        return self._matrix.elimination.nbytes

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table that Jupyter shows."""
        found = self._matrix.found
        return f"factor of {counted(found.n, 'vertex', 'vertices')} over {self._matrix.semiring.name}", [
            ("order", found.fill.order),
            ("fill", f"{counted(found.fill.entries, 'entry', 'entries')}, of {counted(len(self._matrix.edges.heads), 'edge')}"),
            ("height", f"{found.height:,} of {counted(len(found.parent), 'supernode')}"),
            ("elimination", counted(found.fill.steps, "step")),
            ("memory", format_bytes(self.nbytes)),
        ]

    def __repr__(self) -> str:
        found = self._matrix.found
        fill, steps = counted(self.fill, "entry", "entries"), counted(found.fill.steps, "step")
        size = f"{fill} of fill, height {found.height:,}, {steps}, {format_bytes(self.nbytes)}"
        return f"<{self.facts()[0]}: order {found.fill.order}, {size}>"

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
            A tuple of arrays for structured elements.

        Raises
        ------
        GraphError
            For an unknown vertex.
        DivergenceError
            If a sum of non-negative numbers diverges.
        TooLargeError
            If the elements exceed the memory; `blocks` returns some rows at a time.
        """
        return self._between(sources, None)

    @raised_here
    @described_by(rows)
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
        """
        return self._between(None, targets)

    @raised_here
    def __getitem__(self, ends: Any) -> Any:
        """``f[sources, targets]``: elements between some vertices. A single vertex has no axis, and `:` means all vertices."""
        if not (isinstance(ends, tuple) and len(ends) == 2):
            raise GraphError("f[sources, targets] needs both; f.rows(sources) and f.columns(targets) have all of the others")
        sources, targets = (None if isinstance(e, slice) and e == slice(None) else e for e in ends)
        return self._between(sources, targets)

    @raised_here
    def closure(self) -> Any:
        """Return the closure as a dense matrix: the best elements between all vertices.

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
            If the matrix exceeds the memory.
        """
        return self._between(None, None)

    @raised_here
    def paths(self, sources: Any = None, targets: Any = None) -> Paths:
        """Return the best paths between some vertices, with the elements: the result of ``apsp(graph, sources=…, targets=…, paths=True)``.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)]))
        >>> f.paths("a").path("a", "c")
        ['a', 'b', 'c']

        Parameters
        ----------
        sources, targets : vertex or sequence of vertices, optional
            By default all. A tree is grown for each source, or for each target if only targets are given.

        Returns
        -------
        PathsBetween, or Paths between all vertices

        Raises
        ------
        LawError
            If ⊕ is not selective: no single path is the best.
        GraphError, TooLargeError
            As `rows`.

        Notes
        -----
        O(m) steps for the tree of a source, besides its row. One of several equally good paths is returned. If rounding hides the tree of a
        source, a search from the source finds the paths.
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
        whole = edges if ends[0].every and ends[1].every else None
        return paths_in(PredecessorTrees(self.semiring, values, self._names, *ends, True, edges.arrays, tree, backward, whole))

    @raised_here
    def blocks(self, size: int | None = None) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Iterate over all rows of the closure, a block at a time, with little memory.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([(0, 1, 4.0), (1, 2, 1.0)], directed=False))
        >>> max(float(rows.max()) for sources, rows in f.blocks())
        5.0

        Parameters
        ----------
        size : int, optional
            Rows per block; the default takes little memory and keeps all threads busy.

        Yields
        ------
        sources : tuple of vertices
            In the order of elimination, the fastest order.
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
        order, every = self._matrix.found.order, Vertices.all_of(n)
        parts = (order[first : first + int(size)] for first in range(0, n, int(size)))
        return ((tuple(self._names.of(part.tolist())), self._elements(Vertices(part), every)) for part in parts)

    @raised_here
    def solve(self, b: Any) -> Any:
        """Return the least solution of x = A ⊗ x ⊕ b, namely A* ⊗ b; over plus-times the solution of (I − A) x = b.

        Examples
        --------
        The distance from each vertex to the nearest of two stations, where a train leaves after 5 and 1:

        >>> import numpy as np, semiring as sr
        >>> f = sr.factor(sr.edges([("home", "north", 3.0), ("home", "south", 9.0)]))
        >>> f.solve([np.inf, 5.0, 1.0])
        array([8., 5., 1.])

        Parameters
        ----------
        b : array of shape (n,) or (n, k)
            A tuple of arrays for structured elements. Tensors of PyTorch may require a gradient, which needs a factor of floats.

        Returns
        -------
        array of that shape
            A tensor for a tensor.

        Raises
        ------
        ShapeError, DTypeError, DomainError, OverflowRiskError, TooLargeError
            For a wrong number of rows, invalid elements, sums that could leave the dtype, and arrays that exceed the memory.
        GraphError
            If a tensor requires a gradient, and no gradient passes through closures over the semiring.
        SemiringError
            If the solution needs pivoting (floats over plus-times), and SciPy is not installed.
        """
        refuse_compiling("solve", b)
        if is_recorded(b):
            from semiring.results.factor_gradients import solve_with_gradient  # only where PyTorch is

            return solve_with_gradient(self._matrix, b)
        given = as_elements(b, self.semiring, self.dtypes, "b")
        columns = tuple(map(np.ascontiguousarray, as_columns(given, len(self.nodes))))
        answer = tuple(v.reshape(given[0].shape) for v in self._matrix.solve(columns))
        first = b[0] if isinstance(b, tuple) else b
        if comes_from(first, "torch") and (restore := borrowed(first).restore) is not None:
            answer = tuple(map(restore, answer))
        return answer[0] if len(answer) == 1 else answer

    @raised_here
    def update(self, weights: Any, *, weight: Any = None, nonedge: Any = None) -> None:
        """Give edges other weights, and repeat the part of the elimination that depends on them.

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
            - An array of the weights of all edges, in the order of the list, graph or sparse array that was given to `factor`. The edges
              of a dense matrix are ordered by rows, then by columns.
            - The ends and weights of some edges, or a graph with these edges. A dense matrix closes all edges that it lacks.

            For structured elements weights are a tuple of arrays. In an undirected list, an edge gets the weight both ways. Several weights
            of one edge combine with ⊕.
        weight, nonedge
            How to read a graph, as for `apsp`; by default as in `factor`. A file keeps these options if they are texts or numbers.

        Raises
        ------
        GraphError, DTypeError, DomainError
            For a weight of an unknown edge, a wrong number of weights, or a weight that is no element. The factor is unchanged.
        DivergenceError, OverflowRiskError
            As for `factor`. The factor is unchanged.
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

    @raised_here
    def statistics(self, *, bins: int | Sequence[float] | Array | None = BINS) -> Statistics:
        """Diameter, radius, eccentricities, average path length and histogram of all shortest distances, as `semiring.statistics`.

        Examples
        --------
        >>> import semiring as sr
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)], directed=False))
        >>> f.statistics()
        <distances of 3 vertices: 6 of 6 pairs connected, average 2, radius 2, diameter 3>

        Parameters
        ----------
        bins : int, increasing sequence of numbers, or None
            See `semiring.statistics`. None for no histogram, which takes half the time.

        Returns
        -------
        Statistics

        Raises
        ------
        SemiringError
            Over another semiring than min-plus.
        GraphError
            For bins that do not increase.

        Notes
        -----
        Without negative weights and explicit bins, distances are tallied as they are found, and no row is stored. For an undirected graph
        they are tallied once for both directions. Sums do not depend on the number of threads.
        """
        if not is_min_plus(self._matrix.semiring):
            raise SemiringError(
                f"statistics are of distances, over min-plus; those of {self._matrix.semiring.name} are other elements: see f.blocks()"
            )
        found = RunningDistances(bins)
        add_by_elimination(found, self._matrix)
        return found.summary(self.nodes)

    @raised_here
    @described_by(Paths.save)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write graph, order, eliminated matrix and names to a file. `load` then answers the same questions with the same bits.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     f.save(f"{folder}/roads.npz")
        ...     sr.Factor.load(f"{folder}/roads.npz").rows("a")
        array([0., 1., 3.])

        Raises
        ------
        GraphError
            For another ending, names that cannot be read back safely, and a folder with other contents.
        SemiringError
            For a Zarr file without Zarr.

        Notes
        -----
        Nothing is pickled. Names may be None, truth values, numbers, texts, bytes, and tuples of these.
        """
        from semiring.results.saving import save_factor  # only on use, for a quick first call

        save_factor(path, self._matrix, self._labels, self._listing)

    @staticmethod
    @raised_here
    def load(
        path: str | os.PathLike[str], *, semiring: Semiring | str | None = None, device: str = "auto", threads: int | None = None
    ) -> Factor:
        """Read a factor that `save` has written; its first `update` repeats the whole elimination.

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
            Needed unless it is one of `semirings`. It must compute the same as the saved semiring.
        device : str
            "cuda", "cuda:0", … copies the factor to a GPU, as in `factor`; "auto" is the CPU.
        threads : int, optional
            By default ``SEMIRING_NUM_THREADS``, or all cores.

        Returns
        -------
        Factor

        Raises
        ------
        GraphError
            For a damaged file, or one that `save` has not written; the message names the part.
        TooLargeError
            A MemoryError, if the factor does not fit.
        SemiringError
            For another semiring, a missing device, and for a Zarr file without Zarr.

        Notes
        -----
        A file need not be trusted: nothing of it is executed, and the result is well formed: elements of the semiring, and valid vertex
        numbers. Whether the elements are right is another question.
        """
        from semiring.results.saving import load_factor

        place = named_device(device, "cpu", exact=False, compiled=True) or "cpu"
        return Factor(*load_factor(path, None if semiring is None else as_semiring(semiring), threads, place))

    def __reduce__(self) -> Any:
        raise TypeError("a factor cannot be pickled; f.save(path) writes it, and sr.Factor.load(path) reads it, in another process too")

    def _between(self, sources: Any, targets: Any) -> Any:
        n = len(self.nodes)
        return self._elements(chosen(sources, n, self._labels, "sources"), chosen(targets, n, self._labels, "targets"))

    def _elements(self, sources: Vertices, targets: Vertices) -> Any:
        self._require_room(
            len(sources.numbers), len(targets.numbers), sum(d.itemsize for d in self.dtypes), "fewer, or go through f.blocks()"
        )
        ends = sources.numbers, targets.numbers
        found = self._matrix.between(*ends, every_source=sources.every, every_target=targets.every, on_host=False)
        return shown(found, sources, targets, None)

    def _require_room(self, rows: int, columns: int, size: int, instead: str) -> None:
        require_bytes(rows * columns * size, f"{rows:,} × {columns:,} elements take", f"ask for {instead}", self._matrix.device)
