"""What a `Factor` tells of itself and gives beside elements: order and fill, the statistics of all distances, and a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algorithms.divergence import is_min_plus
from semiring.algorithms.factorization import Factorization
from semiring.common.errors import SemiringError, raised_here
from semiring.common.html import Shown
from semiring.common.units import counted, format_bytes
from semiring.graphs.reweighing import Listing
from semiring.results.running import BINS, RunningDistances
from semiring.results.statistics import Statistics, add_by_elimination, statistics_from

__all__ = ["FactorExports"]

Array = np.ndarray[Any, Any]


class FactorExports(Shown):
    """See `Factor`, which says what these are."""

    nodes: tuple[Any, ...]
    _matrix: Factorization
    _labels: tuple[Any, ...] | None
    _listing: Listing

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
        return tuple([self.nodes[v] for v in self._matrix.found.order.tolist()])

    @property
    def fill(self) -> int:
        """Entries above the diagonal of the eliminated matrix, those of the graph and those that elimination made.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.factor(sr.edges([(0, 1), (1, 2), (2, 3)], directed=False), order="natural").fill
        3
        """
        return self._matrix.found.fill.entries

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds beside the graph.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.factor(sr.edges([(0, 1)])).nbytes > 0
        True
        """
        return self._matrix.elimination.nbytes

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
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
        Where no weight is negative and bins are not named one by one, distances are tallied while they are found, so that the memory holds
        no row of them; those of an undirected graph only once for both ways. Sums are the same by however many threads.
        """
        if not is_min_plus(self._matrix.semiring):
            raise SemiringError(
                f"statistics are of distances, over min-plus; those of {self._matrix.semiring.name} are other elements: see f.blocks()"
            )
        found = RunningDistances(bins)
        add_by_elimination(found, self._matrix)
        return statistics_from(found, self.nodes)

    @raised_here
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that `load` needs to answer the same questions with the same bits: graph, order, what was eliminated, and names.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     f.save(f"{folder}/roads.npz")
        ...     sr.Factor.load(f"{folder}/roads.npz").rows("a")
        array([0., 1., 3.])

        Parameters
        ----------
        path : path
            ``.npz`` for one file of NumPy arrays, uncompressed; ``.zarr`` for a folder of Zarr's, compressed, and ``.zarr.zip`` for one
            file of them. A file, or a folder with another factor, is replaced when the new one is complete.

        Raises
        ------
        GraphError
            For another ending, names that cannot be read back safely, and a folder of something else.
        SemiringError
            Without Zarr where that is wanted.

        Notes
        -----
        Nothing is pickled. Names may be None, truth values, numbers, texts, bytes, and tuples of these.
        """
        from semiring.results import factor_files  # only where it is wanted: a first call should be quick

        factor_files.save(path, factor_files.Saved(self._matrix, self._labels, self._listing))

    def __reduce__(self) -> Any:
        """A factor is no pickle: what it holds is compiled, or lies on a GPU."""
        raise TypeError("a factor cannot be pickled; f.save(path) writes it, and sr.Factor.load(path) reads it, in another process too")
