"""Who reaches whom in a sparse graph, by its condensation: the strongly connected components, and a row of bits for each of them.

All vertices of a component reach the same ones, and the graph of the components has no cycle, so that its closure is found from the
last component to the first by unions of rows (Purdom, 1970). With c components that takes c²/8 bytes, whatever n is.

Examples
--------
>>> tails, heads = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 3])  # 0 ⇄ 1 → 2 → 3
>>> found = Condensation.of(CSR.of(tails, heads, (np.ones(4),), 4, (np.inf,)))
>>> found.component, found.counts(reflexive=False), found.counts(reflexive=True)
(array([2, 2, 1, 0]), array([4, 4, 1, 0]), array([4, 4, 2, 1]))
>>> found.reached(2, reflexive=False)
array([3])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import HOST, slices
from semiring.common.forks import cached_property
from semiring.kernels.cpu.strong_components import reached_components, strong_components

__all__ = ["Condensation"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Condensation:
    """The strongly connected components of a graph, and which of them reach which.

    Attributes
    ----------
    component : int array of shape (n,)
        The number of each vertex's component. Edges lead to the same or to lower numbers.
    rows : uint64 array of shape (c, ⌈c / 64⌉)
        Bit d of row c: whether component c is d or reaches it.
    cyclic : bool array of shape (c,)
        Whether the vertices of a component reach themselves by an edge at least.
    """

    component: Array
    rows: Array
    cyclic: Array

    @classmethod
    def of(cls, edges: CSR) -> Condensation:
        """That of a graph. O(n + m) for its components, and O(m·c / 64) at most for the rows.

        Raises
        ------
        TooLargeError
            Where there is no room for the rows.
        """
        count, component = strong_components(edges.starts, edges.heads)
        what = f"which of {count:,} strongly connected components reach which takes"
        require_bytes(-(-count // 64) * count * 8, what, "name some sources of transitive_closure at a time")
        cyclic = np.bincount(component, minlength=count) > 1
        cyclic[component[edges.heads[edges.heads == edges.tails]]] = True
        return cls(component, reached_components(edges.starts, edges.heads, count, component), cyclic)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.component)

    @cached_property
    def sizes(self) -> Array:
        """The number of vertices of each component."""
        return np.bincount(self.component, minlength=len(self.rows))

    def counts(self, *, reflexive: bool) -> Array:
        """How many vertices each one reaches; itself if `reflexive`, or else through a cycle."""
        counts = np.bitwise_count(self.rows).sum(axis=1, dtype=np.int64)
        for d in np.flatnonzero(self.sizes > 1).tolist():
            counts += self._column(d) * (int(self.sizes[d]) - 1)
        if not reflexive:
            counts -= ~self.cyclic
        found: Array = counts[self.component]
        return found

    def reaches(self, u: int, v: int, *, reflexive: bool) -> bool:
        """Whether a path leads from one vertex to another one, or to itself, of an edge at least unless `reflexive`."""
        c, d = int(self.component[u]), int(self.component[v])
        if c == d:
            return bool(self.cyclic[c]) or (reflexive and u == v)
        return bool(int(self.rows[c, d >> 6]) >> (d & 63) & 1)

    def reached(self, u: int, *, reflexive: bool) -> Array:
        """The vertices that one reaches, in ascending order."""
        c = int(self.component[u])
        there = self._unpacked(slice(c, c + 1), reflexive=reflexive)[0][self.component]
        return np.flatnonzero(there)

    def matrix(self, *, reflexive: bool) -> Array:
        """The same as a bool array of shape (n, n)."""
        matrix = np.empty((self.n, self.n), dtype=bool)
        order = np.argsort(self.component, kind="stable")
        ends = np.cumsum(self.sizes)
        for some in slices(len(self.rows), self.n, HOST):
            unpacked = self._unpacked(some, reflexive=reflexive)
            first = int(ends[some.start] - self.sizes[some.start])
            members = order[first : int(ends[some.stop - 1])]
            if len(self.rows) < self.n:
                unpacked = unpacked[self.component[members] - some.start]
            matrix[members] = unpacked.take(self.component, axis=1)
        return matrix

    def _column(self, d: int) -> Array:
        """Which components reach one, as 0 and 1."""
        bits: Array = self.rows[:, d >> 6] >> np.uint64(d & 63) & np.uint64(1)
        return bits.astype(np.int64)

    def _unpacked(self, some: slice, *, reflexive: bool) -> Array:
        """Rows of bits as rows of truth values."""
        bits = np.unpackbits(self.rows[some].view(np.uint8), axis=1, count=len(self.rows), bitorder="little").view(bool)
        if not reflexive:
            own = np.arange(some.start, some.stop)
            bits[own - some.start, own] = self.cyclic[own]
        return bits
