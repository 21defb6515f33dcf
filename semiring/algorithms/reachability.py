"""Reachability in a sparse graph by condensation: strongly connected components, and the components reached from each.

All vertices of a component reach the same vertices. The graph of the components has no cycle, so unions of sets from the last component
to the first find the closure (Purdom, 1970): the set of a component is united with the set of each head of its edges, unless the head is
in the set already. A set of few components is a list, and a set of many components is a row of bits. The sets of c components take c²/16
bytes at most, and less if few are reached.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.csr import CSR, consecutive
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import HOST, slices
from semiring.common.forks import cached_property
from semiring.kernels.cpu.loops import Ints, ShortInts, Words, loop, popcount, trailing_zeros

__all__ = ["Condensation", "Sets", "reached_components", "row_words"]


class Sets(NamedTuple):
    """The set of reached components for each component, which contains the component itself.

    The int32 `pool` has all sets, each from an even place on (`places`): numbers in any order, or ``row_words(c)`` words of bits. `lengths`
    has the number of components in each set; a set of more components than ``row_words(c)`` is a row of bits. `reached` has the number of
    vertices of all components in each set.
    """

    pool: ShortInts
    places: Ints
    lengths: Ints
    reached: Ints


def row_words(c: Any) -> Any:
    """Return the 32-bit words of a row of bits for component c (or several): two for each 64 components up to c."""
    return 2 * ((c >> 6) + 1)


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


class Components(NamedTuple):
    """A graph in compressed rows, and its c strong components, each of ``sizes[c]`` vertices, at ``order[begins[c] : begins[c + 1]]``."""

    starts: Ints
    heads: Ints
    component: Ints
    order: Ints
    begins: Ints
    sizes: Ints
    several: Words  # a bit for each component of more than one vertex


def reached_components(starts: Array, heads: Array, count: int, component: Array, require: Callable[[int], None]) -> Sets:
    """Return the set of components reached from each component. O(m · count / 32) at most, in the memory of the sets.

    For `count` and `component` see `strong_components`. `require` raises an error if the sets' bytes do not fit the memory.
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    order = np.argsort(component, kind="stable")
    sizes = np.bincount(component, minlength=count)
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    several = np.packbits(np.pad(sizes > 1, (0, -count % 64)), bitorder="little").view(np.uint64)
    graph = Components(starts, heads, component, order, begins, sizes, several)
    sets = Sets(np.empty(0, np.int32), *np.empty((3, count), np.int64))
    bits, listed = np.zeros_like(several), np.empty(count, np.int32)
    most, more = int(row_words(np.arange(count)).sum()), 4 * count + int(row_words(count))
    first, used = 0, 0
    while first < count:
        size = min(most, 2 * len(sets.pool) + more)
        require(4 * size)
        pool = np.concatenate([sets.pool[:used], np.empty(size - used, np.int32)])
        sets, rows = sets._replace(pool=pool), pool.view(np.uint64)
        first, used = unite.bind(count, first, used, size, graph, bits, listed, sets, rows)(len(heads) + size)
    return sets


@loop
def unite(
    count: int, first: int, used: int, room: int, graph: Components, bits: Words, listed: ShortInts, sets: Sets, rows: Words
) -> tuple[int, int]:
    """Find the sets of the components from `first` on, while the pool has room; return the next component and the used places.

    The set in the making has its bits in `bits`, which are zero before and after. Its numbers are in `listed` unless a row was added.
    `rows` is the pool as 64-bit words.
    """
    c, place = first, used
    while c < count and place + 2 * words_up_to(c) <= room:
        bits[c >> 6] |= 1 << (c & 63)
        listed[0] = c
        size, mixed = 1, False
        for i in range(graph.begins[c], graph.begins[c + 1]):
            u = graph.order[i]
            for e in range(graph.starts[u], graph.starts[u + 1]):
                d = int(graph.component[graph.heads[e]])
                if has(bits, d):
                    continue
                if sets.lengths[d] > 2 * words_up_to(d):
                    size += add_row(bits, rows, sets.places[d] // 2, words_up_to(d))
                    mixed = True
                else:
                    size = add_list(bits, listed, size, sets.pool, sets.places[d], sets.lengths[d])
        sets.places[c], sets.lengths[c] = place, size
        if size > 2 * words_up_to(c):
            written = 2 * words_up_to(c)
            sets.reached[c] = keep_row(bits, rows, place // 2, words_up_to(c), graph)
        else:
            written = size
            if mixed:
                list_bits(bits, words_up_to(c), listed)
            sets.reached[c] = keep_list(bits, listed, size, sets.pool, place, graph)
        c += 1
        place += (written + 1) // 2 * 2
    return c, place


@loop
def words_up_to(c: int) -> int:
    """Return the 64-bit words of a row of bits for component c."""
    return (c >> 6) + 1


@loop
def has(bits: Words, d: int) -> bool:
    """Return True if a set has a component."""
    return bool(bits[d >> 6] >> (d & 63) & 1)


@loop
def add_row(bits: Words, rows: Words, place: int, words: int) -> int:
    """Add a row of bits to a set, and return the number of new components."""
    new = 0
    for w in range(words):
        new += popcount(rows[place + w] & ~bits[w])
        bits[w] |= rows[place + w]
    return new


@loop
def add_list(bits: Words, listed: ShortInts, size: int, pool: ShortInts, place: int, length: int) -> int:
    """Add listed components to a set, and return its new size."""
    for k in range(length):
        d = pool[place + k]
        if not has(bits, d):
            bits[d >> 6] |= 1 << (d & 63)
            listed[size] = d
            size += 1
    return size


@loop
def list_bits(bits: Words, words: int, listed: ShortInts) -> None:
    """List the components of a set."""
    size = 0
    for w in range(words):
        rest = bits[w]
        while rest != 0:
            listed[size] = 64 * w + trailing_zeros(rest)
            size += 1
            rest &= rest - 1


@loop
def keep_row(bits: Words, rows: Words, place: int, words: int, graph: Components) -> int:
    """Move the bits of a set to a row, and return the number of vertices."""
    total = 0
    for w in range(words):
        row = bits[w]
        bits[w] = 0
        rows[place + w] = row
        total += popcount(row)
        row &= graph.several[w]
        while row != 0:
            total += graph.sizes[64 * w + trailing_zeros(row)] - 1
            row &= row - 1
    return total


@loop
def keep_list(bits: Words, listed: ShortInts, size: int, pool: ShortInts, place: int, graph: Components) -> int:
    """Copy a list of components to the pool, clear their bits, and return the number of vertices."""
    total = 0
    for k in range(size):
        d = listed[k]
        pool[place + k] = d
        bits[d >> 6] = 0
        total += int(graph.sizes[d])
    return total
