"""Reachability in a sparse graph by condensation: strongly connected components, and the components reached from each.

All vertices of a component reach the same vertices. The graph of the components has no cycle, so unions of sets from the last component
to the first find the closure (Purdom, 1970). A set of few components is a list, and a set of many components is a row of bits. The sets
of c components take c²/16 bytes at most, and less if few are reached.

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

from semiring.algorithms.csr import CSR, consecutive
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import HOST, slices
from semiring.common.forks import cached_property
from semiring.kernels.cpu.patterns import Sets, reached_components, row_words, strong_components

__all__ = ["Condensation"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Condensation:
    """The strongly connected components of a graph of n vertices, and the components reached from each of c components."""

    component: Array  # number of each vertex's component, int of shape (n,); edges lead to the same or lower numbers
    sets: Sets  # components reached from each component
    cyclic: Array  # bool of shape (c,): a cycle leads through the component

    @classmethod
    def of(cls, edges: CSR) -> Condensation:
        """Condense a graph, in O(n + m) for the components and O(m·c / 32) at most for the sets.

        Raises
        ------
        TooLargeError
            If the sets do not fit into memory.
        """
        count, component = strong_components(edges.starts, edges.heads)
        what = f"which of {count:,} strongly connected components reach which takes"
        cyclic = np.bincount(component, minlength=count) > 1
        cyclic[component[edges.heads[edges.heads == edges.tails]]] = True

        def require(needed: int) -> None:
            require_bytes(needed, what, "name some sources of transitive_closure at a time")

        return cls(component, reached_components(edges.starts, edges.heads, count, component, require), cyclic)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.component)

    @property
    def count(self) -> int:
        """The number of components."""
        return len(self.cyclic)

    @cached_property
    def sizes(self) -> Array:
        """The number of vertices of each component."""
        return np.bincount(self.component, minlength=self.count)

    @cached_property
    def _members(self) -> tuple[Array, Array]:
        """List the vertices in the order of their components, and the start of each component."""
        return np.argsort(self.component, kind="stable"), np.cumsum(self.sizes) - self.sizes

    def counts(self, *, reflexive: bool) -> Array:
        """Count the vertices reached from each vertex; a vertex reaches itself if `reflexive`, else only through a cycle."""
        reached: Array = self.sets.reached if reflexive else self.sets.reached - ~self.cyclic
        return reached[self.component]

    def reaches(self, u: int, v: int, *, reflexive: bool) -> bool:
        """Return True if a path leads from u to v, with at least one edge unless `reflexive`."""
        c, d = int(self.component[u]), int(self.component[v])
        if c == d:
            return bool(self.cyclic[c]) or (reflexive and u == v)
        found = self._set(c)
        if not self._is_row(c):
            return bool((found == d).any())
        return d < c and bool(int(found[d >> 5]) >> (d & 31) & 1)

    def reached(self, u: int, *, reflexive: bool) -> Array:
        """List the vertices reached from u, in ascending order."""
        c = int(self.component[u])
        own = reflexive or bool(self.cyclic[c])
        found = self._set(c)
        if self._is_row(c):
            there = np.zeros(self.count, bool)
            there[:c] = np.unpackbits(found.view(np.uint8), count=c, bitorder="little")
            there[c] = own
            return np.flatnonzero(there[self.component])
        found = found if own else found[found != c]
        order, begins = self._members
        _, places = consecutive(begins[found], self.sizes[found])
        return np.sort(order[places])

    def pairs(self, *, reflexive: bool) -> tuple[Array, Array]:
        """List all pairs in compressed rows: the start of each vertex's row, and the reached vertices, ascending in each row."""
        counts = self.counts(reflexive=reflexive)
        starts = np.append(0, np.cumsum(counts))
        heads, rows = np.empty(starts[-1], np.int64), self._is_row(self.component)
        for v in np.flatnonzero(rows).tolist():
            heads[starts[v] : starts[v + 1]] = self.reached(v, reflexive=reflexive)
        listed = np.flatnonzero(~rows)
        ends = np.cumsum(counts[listed])
        for some in np.split(listed, np.unique(np.searchsorted(ends, np.arange(HOST, int(counts[listed].sum()), HOST)))):
            c = self.component[some]
            position, place = consecutive(self.sets.places[c], self.sets.lengths[c])
            d = self.sets.pool[place]
            kept = reflexive | self.cyclic[d] | (d != c[position])
            order, begins = self._members
            member, place = consecutive(begins[d[kept]], self.sizes[d[kept]])
            _, to = consecutive(starts[some], counts[some])
            heads[to] = order[place][np.lexsort((order[place], position[kept][member]))]
        return starts, heads

    def _set(self, c: int) -> Array:
        """Return the set of a component, as numbers or as a row of bits."""
        begin = int(self.sets.places[c])
        return self.sets.pool[begin : begin + min(int(self.sets.lengths[c]), row_words(c))]

    def _is_row(self, c: Any) -> Any:
        """Return True if the set of component c, a number or an array, is a row of bits."""
        return self.sets.lengths[c] > row_words(c)

    def matrix(self, *, reflexive: bool) -> Array:
        """Return the pairs as a bool array of shape (n, n)."""
        matrix = np.empty((self.n, self.n), dtype=bool)
        order, begins = self._members
        for some in slices(self.count, self.n, HOST):
            unpacked = self._unpacked(some, reflexive=reflexive)
            members = order[int(begins[some.start]) : int(begins[some.stop - 1] + self.sizes[some.stop - 1])]
            if self.count < self.n:
                unpacked = unpacked[self.component[members] - some.start]
            matrix[members] = unpacked.take(self.component, axis=1)
        return matrix

    def _unpacked(self, some: slice, *, reflexive: bool) -> Array:
        """Unpack the sets of a range of components to rows of bool."""
        own = np.arange(some.start, some.stop)
        rows, length = self._is_row(own), self.sets.lengths[own]
        packed = np.zeros((len(own), int(row_words(self.count - 1))), np.int32)
        position, place = consecutive(self.sets.places[own], np.where(rows, row_words(own), 0))
        packed[position, place - self.sets.places[own][position]] = self.sets.pool[place]
        bits = np.unpackbits(packed.view(np.uint8), axis=1, count=self.count, bitorder="little").view(bool)
        position, place = consecutive(self.sets.places[own], np.where(rows, 0, length))
        bits[position, self.sets.pool[place]] = True
        if not reflexive:
            bits[own - some.start, own] = self.cyclic[own]
        return bits
