"""`Nearest`: the nearest of several sources for each vertex, with paths."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.nearest import NearestSources
from semiring.arrays.conversion import Array
from semiring.common.errors import GraphError, raised_here
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.results.store import Names

__all__ = ["Nearest"]


class Nearest(Shown):
    """The nearest sources of each vertex; `nearest` returns one.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("a", "b", 1), ("b", "c", 2), ("c", "d", 2), ("d", "e", 1)], directed=False)
    >>> found = sr.nearest(roads, ["a", "e"])
    >>> found
    <nearest of 2 sources for 5 vertices: 5 reached>
    >>> found.values, found.sources
    (array([0., 1., 3., 1., 0.]), array(['a', 'a', 'a', 'e', 'e'], dtype=object))
    >>> found.path("c")
    ['a', 'b', 'c']

    Attributes
    ----------
    nodes : tuple
        The vertices.
    k : int
        The number of sources that are kept for each vertex.
    """

    def __init__(self, found: NearestSources, labels: Sequence[Hashable] | None, count: int) -> None:
        n, self.k = found.sources.shape
        self._found, self._count, self._names = found, count, Names(labels, n)
        self.nodes = self._names.nodes

    @property
    def values(self) -> Any:
        """The elements from the nearest sources: an array of shape (n,), or (n, k) in order of preference; several for structured elements.

        Where fewer sources reach a vertex, the element is the semiring's zero.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.nearest(sr.edges([(0, 1, 4), (2, 1, 3)]), [0, 2], k=2).values
        array([[ 0., inf],
               [ 3.,  4.],
               [ 0., inf]])
        """
        arrays: tuple[Any, ...] = tuple([self._shaped(v).copy() for v in self._found.values])
        return arrays[0] if len(arrays) == 1 else arrays

    @cached_property
    def sources(self) -> Array:
        """The nearest sources, in an array of the shape of `values`: labels or None; numbers or −9999 for a graph without labels.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.nearest([[0, 4, 5], [1, 0, 2], [1, 1, 0]], [0, 1]).sources
        array([0, 1, 1], dtype=int32)
        """
        numbers = self._shaped(self._found.sources)
        if self._names.labels is None:
            return np.where(numbers < 0, np.int32(-9999), numbers)
        names = np.empty(len(self.nodes) + 1, object)
        names[:-1] = self.nodes
        return np.asarray(names[numbers])

    @raised_here
    def path(self, vertex: Any, rank: int = 0) -> list[Any]:
        """Return a best path to a vertex from its nearest source, or from the next one for rank 1, and so on.

        Examples
        --------
        >>> import semiring as sr
        >>> found = sr.nearest(sr.edges([(0, 1, 4), (1, 2, 3)]), [0])
        >>> found.path(2), sr.nearest(sr.edges([(0, 1, 4), (1, 2, 3)]), [2]).path(0)
        ([0, 1, 2], [])

        Parameters
        ----------
        vertex : vertex
        rank : int

        Returns
        -------
        list
            Names of vertices from the source on; empty if no source reaches the vertex.
        """
        number = self._names.number(vertex)
        if not 0 <= rank < self.k:
            raise GraphError(f"rank is {rank!r}; {counted(self.k, 'source')} for each vertex are known, from rank 0 on")
        return self._names.of(self._found.path(number, rank))

    def cells(self) -> dict[Any, list[Any]]:
        """Return the vertices of each source that is the nearest one (Voronoi cells); None for vertices that no source reaches.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.nearest(sr.edges([(0, 1, 4), (2, 3, 3)]), [0, 2]).cells()
        {0: [0, 1], 2: [2, 3]}
        """
        found: dict[Any, list[Any]] = {}
        for node, source in zip(self.nodes, self._found.sources[:, 0].tolist(), strict=True):
            found.setdefault(None if source < 0 else self.nodes[source], []).append(node)
        return found

    def _shaped(self, array: Array) -> Array:
        return array[:, 0] if self.k == 1 else array

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table that Jupyter shows."""
        reached = f"{int((self._found.sources[:, 0] >= 0).sum()):,}"
        title = f"nearest of {counted(self._count, 'source')} for {counted(len(self.nodes), 'vertex', 'vertices')}"
        return title, [("reached", reached), ("kept for each vertex", f"{self.k:,}")]

    def __repr__(self) -> str:
        title, ((_, reached), _) = self.facts()
        return f"<{title}: {reached} reached>"
