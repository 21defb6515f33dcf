"""Sparse matrices in compressed rows (CSR), on which searches run; `in_order`, `CSR.of` and `scatter` convert coordinates.

`transposition` is a counting sort, and `is_symmetric` does the same steps without writing the transpose.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import holds_symbols, is_gpu
from semiring.common.errors import library
from semiring.common.forks import cached_property
from semiring.kernels.cpu.loops import Elements, Ints, loop
from semiring.kernels.limits import ValueStatistics

__all__ = [
    "CSR", "SparseArray", "combine_runs", "consecutive", "in_order", "in_range", "is_symmetric", "present", "reached", "scatter",
    "starts_of", "transposition",
]  # fmt: skip

_RADIX = 1 << 12
"""Largest n for which NumPy sorts edges faster by both ends, in 16 bits each, than by places."""

_WHOLE = int, np.integer


def combine_runs(keys: Array, entries: Values, combine: Callable[[Values, Values], Values]) -> tuple[Array, Values]:
    """Return each key of a sorted array once, with its entries combined pairwise, so that a run of k entries takes log k rounds.

    `combine(first, second)` takes two tuples of arrays, the earlier entries first.
    """
    while (again := np.append(keys[1:] == keys[:-1], False)).any():
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        left = np.flatnonzero(again & (rank % 2 == 0))
        pairs = combine(tuple(e[left] for e in entries), tuple(e[left + 1] for e in entries))
        keep = np.ones(len(keys), dtype=bool)
        keep[left + 1] = False
        entries = tuple(_with(e, left, pair)[keep] for e, pair in zip(entries, pairs, strict=True))
        keys = keys[keep]
    return keys, entries


def _with(array: Array, where: Array, new: Array) -> Array:
    copy = array.copy()
    copy[where] = new
    return copy


def consecutive(first: Array, size: Array) -> tuple[Array, Array]:
    """Return runs of consecutive numbers, one run after the other: the position of each number's run, and the number."""
    position = np.repeat(np.arange(len(first)), size)
    return position, np.arange(len(position)) + (first - (np.cumsum(size) - size))[position]


def present(values: Values, zero: tuple[Any, ...]) -> Array:
    """Mark the elements that differ from zero, with one array a component."""
    found: Array = np.logical_or.reduce([np.asarray(v != z, dtype=bool) for v, z in zip(values, zero, strict=True)])
    return found


def starts_of(rows: Array, n: int) -> Array:
    """Return where each of n rows begins in a list that is sorted by row, and the end of the list: int64 of shape (n + 1,)."""
    starts = np.zeros(n + 1, np.int64)
    np.bincount(rows, minlength=n).cumsum(out=starts[1:])
    return starts


def in_order(
    n: int, tails: Array, heads: Array, weights: Values, combine: Callable[[Array, Values], tuple[Array, Values]]
) -> tuple[Array, Array, Values]:
    """Sort coordinates of an n × n matrix by row, then column, and combine duplicates: return tails, heads and weights. O(m log m).

    `combine` takes the sorted places u·n + v and their weights, and returns each place once.
    """
    places = tails.astype(np.int64, copy=False) * n + heads
    if (places[1:] > places[:-1]).all():
        return tails, heads, weights
    if n <= _RADIX:
        order = np.lexsort((heads.astype(np.uint16), tails.astype(np.uint16)))
    else:
        order = np.argsort(places, kind="stable")
    places, weights = places[order], tuple([w[order] for w in weights])
    if (places[1:] == places[:-1]).any():
        places, weights = combine(places, weights)
        return places // n, places % n, weights
    return tails[order], heads[order], weights


def in_range(vertices: Array, n: int) -> bool:
    """Return True if all numbers, of int64, are vertices; viewed as unsigned, negative numbers are large."""
    return not len(vertices) or bool(vertices.view(np.uint64).max() < n)


def scatter(
    n: int, tails: Array, heads: Array, weights: Values, zero: tuple[Any, ...], dtypes: tuple[np.dtype[Any], ...], device: str = "cpu"
) -> Values:
    """Return the dense matrix with weights in their places and zero elsewhere: NumPy arrays, or CuPy ones on the current GPU."""
    xp = importlib.import_module("cupy") if is_gpu(device) else np
    values = tuple([xp.full((n, n), z, dtype=d) for z, d in zip(zero, dtypes, strict=True)])
    places = xp.asarray(tails), xp.asarray(heads)
    for matrix, entries in zip(values, weights, strict=True):
        matrix[places] = xp.asarray(entries)
    return values


def transposition(starts: Array, heads: Array) -> tuple[Array, Array, Array]:
    """Transpose a pattern: return the starts and columns of its rows, and each entry's number in the given pattern. O(n + m).

    Examples
    --------
    >>> transposition(np.array([0, 2, 3, 3]), np.array([1, 2, 2]))  # 0 → 1, 0 → 2, 1 → 2
    (array([0, 0, 1, 3]), array([0, 0, 1]), array([0, 1, 2]))
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    n = len(starts) - 1
    begins = starts_of(heads, n)
    tails, numbers = np.empty_like(heads), np.empty_like(heads)
    transpose.bind(n, starts, heads, begins.copy(), tails, numbers)(10 * len(heads))
    return begins, tails, numbers


@loop
def transpose(n: int, starts: Ints, heads: Ints, place: Ints, tails: Ints, numbers: Ints) -> None:
    """Write the entries of each column v from `place[v]` on; `place` moves to the ends of the columns."""
    for u in range(n):
        for e in range(starts[u], starts[u + 1]):
            v = heads[e]
            at = place[v]
            tails[at], numbers[at] = u, e
            place[v] = at + 1


def is_symmetric(starts: Array, heads: Array, entries: Array) -> bool:
    """Return True if a matrix with ascending rows equals its transpose, bit for bit. O(n + m).

    Examples
    --------
    >>> is_symmetric(np.array([0, 1, 2]), np.array([1, 0]), np.array([2.5, 2.5]))
    True
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    bits = np.ascontiguousarray(entries).view(f"u{entries.itemsize}")  # as numbers, NaN would differ from itself, and 0.0 equal −0.0
    place = starts[:-1].copy()
    mirrored = is_mirrored.bind(len(place), starts, heads, place, (bits,))(10 * len(heads))
    return mirrored and np.array_equal(place, starts[1:])


@loop
def is_mirrored(n: int, starts: Ints, heads: Ints, place: Ints, entries: Elements) -> bool:
    """Compare rows with columns, side by side, up to the first entry without its mirror image.

    `place` moves from the begin of each row to its end. Beyond the end is an entry of another row, so the caller checks the ends.
    """
    last = starts[n] - 1
    for u in range(n):
        for e in range(starts[u], starts[u + 1]):
            v = heads[e]
            at = place[v]
            place[v] = at + 1
            at = min(at, last)
            if heads[at] != u or entries[at][0] != entries[e][0]:
                return False
    return True


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse matrix in compressed rows with ascending columns; an entry that is not stored is `zero`. Rows of a matrix are one too."""

    n: int  # the number of vertices, and of columns
    starts: Array  # the edges from vertex u are numbers starts[u] … starts[u + 1] − 1; SciPy's ``indptr``
    heads: Array  # the head of each edge, its column; SciPy's ``indices``
    weights: Values  # one array for each component of an element; SciPy's ``data``
    zero: tuple[Any, ...]
    statistics: tuple[ValueStatistics, ...] = field(default=(), repr=False)  # of the weights, one a component; empty if unknown

    @classmethod
    def of(
        cls,
        tails: Array,
        heads: Array,
        weights: Values,
        n: int,
        zero: tuple[Any, ...],
        statistics: tuple[ValueStatistics, ...] = (),
    ) -> CSR:
        """Compress coordinates that are `in_order`."""
        return cls(n, starts_of(tails, n), heads.astype(np.intp, copy=False), weights, zero, statistics)

    @cached_property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple([w.dtype for w in self.weights])

    @cached_property
    def tails(self) -> Array:
        """Return the tail of each edge, its row."""
        return np.arange(len(self.starts) - 1).repeat(self.starts[1:] - self.starts[:-1])

    @cached_property
    def places(self) -> Array:
        """Return the ascending places u·n + v of the edges."""
        return self.tails.astype(np.int64, copy=False) * self.n + self.heads

    def with_weights(self, weights: Values) -> CSR:
        """Return the same edges with other weights; cached tails and places are kept."""
        other = CSR(self.n, self.starts, self.heads, weights, self.zero)
        other.__dict__.update({name: self.__dict__[name] for name in ("tails", "places") if name in self.__dict__})
        return other

    @cached_property
    def symmetric(self) -> bool:
        """Return True if each edge has one of the same weight back."""
        return all(w.dtype.kind != "O" and is_symmetric(self.starts, self.heads, w) for w in self.weights)

    def transposed(self) -> CSR:
        """Return the reversed edges; the graph itself if symmetric."""
        return self if self.symmetric else self._reverse

    @cached_property
    def _reverse(self) -> CSR:
        starts, heads, order = transposition(self.starts, self.heads)
        return CSR(self.n, starts, heads, tuple([w[order] for w in self.weights]), self.zero, self.statistics)

    def leaving(self, vertices: Array) -> tuple[Array, Array]:
        """List the edges from several vertices, one vertex after the other: the position of each edge's vertex, and its number."""
        first = self.starts[vertices]
        return consecutive(first, self.starts[vertices + 1] - first)

    def induced(self, vertices: Array) -> CSR:
        """Return the subgraph of some vertices, given ascending and renumbered from 0."""
        number = np.full(self.n, -1, dtype=np.intp)
        number[vertices] = np.arange(len(vertices))
        tails, edges = self.leaving(vertices)
        heads = number[self.heads[edges]]
        inside = heads >= 0
        edges = edges[inside]
        return CSR.of(tails[inside], heads[inside], tuple(w[edges] for w in self.weights), len(vertices), self.zero)

    def reachable(self, sources: Array) -> Array:
        """List the vertices reachable from any of the sources, these included, ascending."""
        return reached(self.n, sources, lambda vertices: self.heads[self.leaving(vertices)[1]])

    def dense(self, device: str = "cpu") -> Values:
        """Return the dense matrix, see `scatter`."""
        return scatter(self.n, self.tails, self.heads, self.weights, self.zero, self.dtypes, device)

    @property
    def symbolic(self) -> bool:
        """Return True if a weight is SymPy's."""
        return any(d.kind == "O" for d in self.dtypes) and holds_symbols(self.weights)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the edges with both their ends."""
        return len(self.heads) * (2 * self.heads.itemsize + sum(d.itemsize for d in self.dtypes))

    def arrays(self) -> tuple[Any, ...]:
        """Return the components as arrays that can be read by rows and entries."""
        return tuple(SparseArray(self, c) for c in range(len(self.weights)))


def reached(n: int, sources: Array, heads: Callable[[Array], Array]) -> Array:
    """List the vertices reachable from any of the sources, these included, ascending.

    `heads` returns the heads of the edges from an array of vertices, in any order and number.
    """
    there = np.zeros(n, dtype=bool)
    there[sources] = True
    frontier = np.flatnonzero(there)
    while len(frontier) and not there.all():
        ends = heads(frontier)
        frontier = np.unique(ends[~there[ends]])
        there[frontier] = True
    return np.flatnonzero(there)


class SparseArray:
    """One component of a sparse matrix, read like a dense array: single entries, rows, columns and the diagonal."""

    ndim = 2

    def __init__(self, edges: CSR, component: int = 0) -> None:
        self.edges, self.shape = edges, (len(edges.starts) - 1, edges.n)
        self.entries, self._zero = edges.weights[component], edges.zero[component]
        self.dtype = self.entries.dtype

    @classmethod
    def of_scipy(cls, array: Any, zero: Any) -> SparseArray:
        """Read an array in compressed rows of SciPy."""
        array.sort_indices()
        return cls(CSR(array.shape[1], array.indptr, array.indices, (array.data,), (zero,)))

    def to_scipy(self) -> Any:
        """Return a sparse array of SciPy, in compressed rows."""
        return library("scipy.sparse", "limit=").csr_array((self.entries, self.edges.heads, self.edges.starts), shape=self.shape)

    def transposed(self) -> SparseArray:
        """Return the transpose."""
        return self.of_scipy(self.to_scipy().T.tocsr(), self._zero)

    def part(self, rows: Array | None, columns: Array | None) -> SparseArray:
        """Return some rows and columns, None for all."""
        array = self.to_scipy()
        array = array if rows is None else array[rows]
        return self if rows is columns is None else self.of_scipy(array if columns is None else array[:, columns], self._zero)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Return an element, or arrays of elements, as NumPy does: by rows, or by rows and columns."""
        edges = self.edges
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], _WHOLE) and isinstance(key[1], _WHOLE):
            u, v = range(self.shape[0])[key[0]], range(edges.n)[key[1]]
            row = edges.heads[edges.starts[u] : edges.starts[u + 1]]
            i = int(np.searchsorted(row, v))
            return self.entries[edges.starts[u] + i] if i < len(row) and row[i] == v else self.dtype.type(self._zero)
        given = [k for k in (key if isinstance(key, tuple) else (key,)) if k is not Ellipsis]
        rows, columns = (*given, slice(None), slice(None))[:2]
        numbers = np.arange(self.shape[0])[rows]
        if not isinstance(columns, slice):
            if isinstance(rows, slice):
                return self[rows][:, columns]
            places = numbers * edges.n + np.arange(edges.n)[columns]
            found = np.minimum(np.searchsorted(edges.places, places), len(edges.places) - 1)
            there = edges.places[found] == places if len(edges.places) else np.zeros(np.shape(places), bool)
            out = np.full(np.shape(places), self._zero, self.dtype)
            out[there] = self.entries[found[there]]
            return out[()]
        position, number = edges.leaving(numbers.ravel())
        dense = np.full((numbers.size, edges.n), self._zero, self.dtype)
        dense[position, edges.heads[number]] = self.entries[number]
        dense = dense[:, columns]
        return dense.reshape(*np.shape(numbers), dense.shape[1])

    def diagonal(self, *_: int) -> Array:
        """Return the elements on the diagonal."""
        every = np.arange(min(self.shape))
        return cast(Array, self[every, every])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype)
