"""`Reachability`: the vertices that each vertex of a sparse graph reaches, without an n × n matrix."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.reachability import Condensation
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_bytes
from semiring.common.errors import GraphError, library, raised_here
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.graphs.vertices import chosen

__all__ = ["Reachability"]


class Reachability(Shown):
    """The vertices that each vertex of a graph reaches; `reachability` returns one.

    Examples
    --------
    >>> import semiring as sr
    >>> calls = sr.edges([("main", "parse"), ("parse", "eval"), ("eval", "parse"), ("eval", "print")])
    >>> found = sr.reachability(calls)
    >>> found
    <reachability among 4 vertices: 9 of 16 pairs connected, 3 strongly connected components>
    >>> found.counts
    array([3, 3, 3, 0])

    Attributes
    ----------
    nodes : tuple
        The vertices.
    reflexive : bool
        Every vertex reaches itself; otherwise only through a cycle.
    """

    def __init__(self, condensation: Condensation, labels: Sequence[Hashable] | None, *, reflexive: bool) -> None:
        self._condensation, self.reflexive = condensation, reflexive
        self.nodes: tuple[Any, ...] = tuple(range(condensation.n)) if labels is None else tuple(labels)
        self._labels = None if labels is None else self.nodes

    @cached_property
    def counts(self) -> Array:
        """The number of vertices that each vertex reaches.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 2)]), reflexive=True).counts
        array([3, 2, 1])
        """
        return self._condensation.counts(reflexive=self.reflexive)

    @property
    def components(self) -> Array:
        """The number of each vertex's strongly connected component; edges lead to an equal or a lower number.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 0), (1, 2)])).components
        array([1, 1, 0])
        """
        return self._condensation.component.copy()

    @raised_here
    def reaches(self, source: Any, target: Any) -> bool:
        """Return True if a path leads from the source to the target.

        Examples
        --------
        >>> import semiring as sr
        >>> found = sr.reachability(sr.edges([("a", "b"), ("b", "c")]))
        >>> found.reaches("a", "c"), found.reaches("c", "a")
        (True, False)
        """
        return self._condensation.reaches(self._number(source, "source"), self._number(target, "target"), reflexive=self.reflexive)

    @raised_here
    def reached(self, source: Any) -> list[Any]:
        """List the vertices that the source reaches, in the order of `nodes`.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([("a", "b"), ("b", "c")])).reached("a")
        ['b', 'c']
        """
        found = self._condensation.reached(self._number(source, "source"), reflexive=self.reflexive).tolist()
        return found if self._labels is None else [self.nodes[v] for v in found]

    @raised_here
    def to_scipy(self) -> Any:
        """Return all pairs as a SciPy sparse array of truth values.

        Examples
        --------
        >>> import semiring as sr
        >>> sr.reachability(sr.edges([(0, 1), (1, 2)])).to_scipy().nnz
        3
        """
        scipy = library("scipy.sparse", "to_scipy", "graphs")
        n, pairs = self._condensation.n, int(self.counts.sum())
        require_bytes(9 * pairs, f"{pairs:,} pairs take", "ask for .counts, .reaches() or .reached()")
        starts, heads = self._condensation.pairs(reflexive=self.reflexive)
        return scipy.csr_array((np.ones(pairs, dtype=bool), heads, starts), shape=(n, n))

    def _number(self, vertex: Any, what: str) -> int:
        found = chosen(vertex, self._condensation.n, self._labels, what)
        if not found.single:
            raise GraphError(f"{what} is one vertex, not {vertex!r}")
        return int(found.numbers[0])

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table that Jupyter shows."""
        n = len(self.nodes)
        facts = [
            ("connected", f"{int(self.counts.sum()):,} of {counted(n * n, 'pair')}"),
            ("strongly connected components", f"{self._condensation.count:,}"),
        ]
        return f"reachability among {counted(n, 'vertex', 'vertices')}", facts

    def __repr__(self) -> str:
        title, ((_, connected), _) = self.facts()
        components = counted(self._condensation.count, "strongly connected component")
        return f"<{title}: {connected} connected, {components}>"
