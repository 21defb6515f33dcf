"""What `Paths` asks: the elements between vertices, and a store of the best paths behind them, whatever form these have."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.extraction import expand
from semiring.algorithms.predecessors import SingleSource, next_hops, predecessors, weighs
from semiring.arrays.devices import entries, equal, host, namespace, on_gpu
from semiring.arrays.pieces import GPU, slices
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.graphs.vertices import Vertices, unknown_vertex

__all__ = ["ConstructionMatrix", "Names", "Store", "shown", "squeezed"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
ClosedMatrix = tuple[Any, ...]
"""The matrix that was closed, an array for each component, or what reads single rows of one."""

_GLANCE = 1 << 26
"""Entries that are counted in a tenth of a second on the host."""


class Names:
    """The names of the vertices: the caller's labels where the graph has some, and their numbers otherwise."""

    def __init__(self, labels: Sequence[Hashable] | None, n: int) -> None:
        self.labels = None if labels is None else tuple(labels)
        self.n = n

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """All of them in the order of the rows."""
        return tuple(range(self.n)) if self.labels is None else self.labels

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        """The number of each label."""
        return {node: i for i, node in enumerate(self.nodes)}

    def number(self, node: Any) -> int:
        """The number of the vertex of a name."""
        if self.labels is not None:
            try:
                return self._numbers[node]
            except (KeyError, TypeError):
                raise unknown_vertex(node, self.labels) from None
        if isinstance(node, int | np.integer) and not isinstance(node, bool) and 0 <= node < self.n:
            return int(node)
        raise unknown_vertex(node, range(self.n))

    def __contains__(self, node: Any) -> bool:
        try:
            self.number(node)
        except GraphError:
            return False
        return True

    def of(self, numbers: Iterable[int]) -> list[Any]:
        """The names of some vertices."""
        return list(numbers) if self.labels is None else [self.labels[v] for v in numbers]


@dataclass(eq=False)  # not frozen, which would make a store take four times as long to make
class Store(ABC):
    """A rectangle of a closure, or of each closure of a batch, and a way to the best path of each of its pairs.

    Attributes
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (…, s, t)
        The elements, an array for each component.
    names : Names
        Of all vertices of the graph.
    sources, targets : Vertices
        Those of the rows and of the columns.
    reflexive : bool
        Whether the empty path from each vertex to itself counts.
    kept : callable
        Gives the matrix that was closed, where it still exists.
    """

    semiring: Semiring
    values: Values
    names: Names
    sources: Vertices
    targets: Vertices
    reflexive: bool
    kept: Callable[[], ClosedMatrix | None]

    # What differs: how paths are held.

    @abstractmethod
    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        """That of one matrix, or of some, of a batch."""

    @abstractmethod
    def construction(self) -> Any:
        """The construction matrix, an int32 array of shape (…, n, n); None where only some pairs are known."""

    @abstractmethod
    def predecessors(self) -> Any:
        """The vertex before each one on the best paths from each source, −9999 for none: int32 of shape (…, s, n)."""

    @abstractmethod
    def next_hops(self) -> Any:
        """The vertex after each one on the best paths to each target, −9999 for none: int32 of shape (…, n, t)."""

    @abstractmethod
    def dense(self) -> Values | None:
        """The matrix that was closed, as arrays, where it still exists."""

    @abstractmethod
    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """The edges of the graph that was closed, some at a time: tails, heads, and the first component of weights. For one matrix."""

    @abstractmethod
    def _simple(self, rows: Array, columns: Array) -> Iterable[list[int] | None]:
        """A simple path for each of several pairs that have one of at least one edge; None where rounding has bent it into a circle."""

    @abstractmethod
    def _edges(self) -> ClosedMatrix | None:
        """A matrix in which bent paths are found again; None where there is none any more."""

    def _part(self, key: tuple[Any, ...], **more: Any) -> Self:
        """The same of one matrix, or of some, of a batch."""

        def kept() -> ClosedMatrix | None:
            arrays = self.kept()
            return None if arrays is None else tuple(v[key] for v in arrays)

        return replace(self, values=tuple(v[key] for v in self.values), kept=kept, **more)

    def __getstate__(self) -> dict[str, Any]:
        # Functions cannot be pickled: the matrix goes along instead, so that paths are still found where rounding has bent them.
        return {**self.__dict__, "kept": self.kept()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrix = state["kept"]
        vars(self).update(state, kept=lambda: matrix)

    # Which elements there are.

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.values[0].shape[:-2])

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of a matrix of elements."""
        rows, columns = self.values[0].shape[-2:]
        return int(rows), int(columns)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(v.dtype for v in self.values)

    @property
    def complete(self) -> bool:
        """Whether rows and columns are all vertices, in their order."""
        return self.sources.every and self.targets.every

    def counts(self) -> dict[str, int]:
        """How many vertices there are of each kind."""
        of_all = {"vertices": self.names.n}
        return of_all if self.complete else {"sources": self.shape[0], "targets": self.shape[1], **of_all}

    def device(self) -> contextlib.AbstractContextManager[Any]:
        """Makes the GPU of the arrays the current one, where they lie on one."""
        values: Any = self.values[0]
        return values.device if on_gpu(values) else contextlib.nullcontext()

    def ends(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The numbers of the vertices of some rows and columns."""
        return (rows, columns) if self.complete else (self.sources.numbers[rows], self.targets.numbers[columns])

    def place(self, source: Any, target: Any) -> tuple[int, int]:
        """The row and the column of two vertices that are named."""
        numbers = self.names.number(source), self.names.number(target)
        if self.complete:
            return numbers
        for number, places, node, what in zip(numbers, self._places, (source, target), ("source", "target"), strict=True):
            if number not in places:
                raise GraphError(f"{node!r} is no {what} of these paths; .{what}s lists all {len(places)}")
        return self._places[0][numbers[0]], self._places[1][numbers[1]]

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int]]:
        """The row of each source, and the column of each target; the first, of those that were named twice."""
        rows, columns = ({v: i for i, v in reversed(list(enumerate(e.numbers.tolist())))} for e in (self.sources, self.targets))
        return rows, columns

    # What they are.

    def element(self, row: int, column: int) -> tuple[Any, ...]:
        """One element, by its components."""
        return tuple(host(v[row, column])[()] for v in self.values)

    def zero(self) -> tuple[Any, ...]:
        """The semiring's zero in the dtypes of the elements."""
        return self.semiring.identities(self.dtypes)[0]

    def there(self, elements: tuple[Any, ...]) -> Any:
        """Which elements are not zero."""
        same = [equal(v, z).astype(bool) for v, z in zip(elements, self.zero(), strict=True)]
        return ~functools.reduce(operator.and_, same)

    def stripes(self) -> Iterator[slice]:
        """Slices of the rows, of which those of all matrices of a batch are looked at together."""
        rows, columns = self.shape
        return slices(rows, columns * math.prod(self.batch), GPU)

    @property
    def distributed(self) -> bool:
        """Whether the elements are in the memory of several processes, which have to ask for them together."""
        return not (on_gpu(self.values[0]) or isinstance(self.values[0], np.ndarray))

    @property
    def countable(self) -> bool:
        """Whether `connected` takes no longer than someone waits who only wants to see what this is."""
        return on_gpu(self.values[0]) or (not self.distributed and self.values[0].size <= _GLANCE)

    def connected(self) -> int:
        """How many pairs of different vertices are connected, counted where the arrays lie."""
        total: Any = 0
        with self.device():
            for rows in self.stripes():
                total = total + self.there(tuple(v[..., rows, :] for v in self.values)).sum()
            return int(total - self.there(self._own()).sum())

    def one_way(self) -> int:
        """How many pairs of all vertices are connected in one direction alone."""
        total: Any = 0
        with self.device():
            for some in self.stripes():
                there = self.there(tuple(v[..., some, :] for v in self.values))
                back = self.there(tuple(v[..., :, some] for v in self.values)).swapaxes(-2, -1)
                total = total + (there & ~back).sum()
            return int(total)

    def _own(self) -> Values:
        """The elements between a vertex and itself."""
        if self.complete:
            return tuple(v.diagonal(0, -2, -1) for v in self.values)
        rows, columns = map(namespace(self.values[0]).asarray, np.nonzero(self.sources.numbers[:, None] == self.targets.numbers))
        return tuple(v[..., rows, columns] for v in self.values)

    def _nonzero(self, matrix: Values, direct: Any = None) -> Iterator[tuple[Array, Array, Array]]:
        """The entries of a matrix of all vertices that are not zero, a stripe at a time; if `direct` is given, where it is negative."""
        for rows in slices(self.names.n, self.names.n, GPU):
            with self.device():
                there = self.there(tuple(v[rows] for v in matrix))
                tails, heads = np.nonzero(host(there if direct is None else there & (direct[rows] < 0)))
            tails += rows.start
            yield tails, heads, entries(matrix[0], tails, heads)

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """The rows and columns of connected vertices, a stripe at a time; empty paths do not count. For one matrix."""
        for stripe in self.stripes():
            with self.device():
                there = host(self.there(tuple(v[stripe] for v in self.values)))
            rows, columns = np.nonzero(there)
            rows += stripe.start
            sources, targets = self.ends(rows, columns)
            some = sources != targets if self.reflexive else slice(None)
            yield rows[some], columns[some]

    # The paths.

    def find(self, rows: Array, columns: Array) -> list[list[int]]:
        """A simple path for each of several pairs, as vertex numbers; empty where there is none. For one matrix."""
        sources, targets = self.ends(rows, columns)
        empty = (sources == targets) & self.reflexive
        found: list[list[int]] = [[] for _ in range(len(rows))]
        wanted = np.flatnonzero(self.there(tuple(entries(v, rows, columns) for v in self.values)) & ~empty)
        bent: dict[int, list[int]] = {}
        for pair, path in zip(wanted.tolist(), self._simple(rows[wanted], columns[wanted]), strict=True):
            if path is None:
                bent.setdefault(int(sources[pair]), []).append(pair)
            else:
                found[pair] = path
        edges = self._edges() if bent else None
        for source, some in bent.items():
            paths = None if edges is None else SingleSource(self.semiring, edges, source)
            for pair in some:
                target = int(targets[pair])
                path = [] if paths is None else paths.path(target)
                if edges is None or not path or not weighs(self.semiring, edges, path, self.element(int(rows[pair]), int(columns[pair]))):
                    ends = " to ".join(map(repr, self.names.of((source, target))))
                    raise GraphError(
                        f"rounding has bent the path from {ends} into a circle, and the input is no longer "
                        f"there to find it again: leave it unchanged, and use overwrite=False"
                    )
                found[pair] = path
        for pair in np.flatnonzero(empty).tolist():
            found[pair] = [int(sources[pair])]
        return found


@dataclass(eq=False)
class ConstructionMatrix(Store):
    """See `Store`; rows and columns are all vertices.

    Attributes
    ----------
    via : int32 array of shape (…, n, n)
        The construction matrix: an intermediate vertex of the path from i to j, −1 where it is an edge or there is none.
    """

    via: Array

    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        return self._part(key, via=self.via[key])

    def construction(self) -> Any:
        """The construction matrix."""
        return self.via

    def predecessors(self) -> Any:
        """A tree of best paths for each source, grown from the construction matrix."""
        return self._grown(predecessors)

    def next_hops(self) -> Any:
        """A tree of best paths for each target, grown from the construction matrix."""
        return self._grown(next_hops)

    def dense(self) -> Values | None:
        """The matrix that was closed, where it still exists."""
        return self.kept()

    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Those of the matrix, or where that is gone or large those that are best paths themselves."""
        kept = self.kept() if self.names.n**2 <= GPU else None  # to read it once more may take as much memory as it does
        return self._nonzero(self.values, self.via) if kept is None else self._nonzero(kept)

    def _grown(self, grow: Callable[..., Any]) -> Any:
        """Trees that are grown on this construction matrix, or on each of a batch."""

        def find(index: tuple[int, ...]) -> Callable[[Array, Array], list[list[int]]]:
            return self[index].find if index else self.find

        with self.device():
            return grow(self.semiring, self.values, self.via, find)

    def _simple(self, rows: Array, columns: Array) -> list[list[int] | None]:
        """The paths, expanded from the construction matrix."""
        return expand(self.via, rows, columns)

    def _edges(self) -> ClosedMatrix:
        """The matrix, or those of its edges that are best paths themselves."""
        kept = self.kept()
        if kept is not None:
            return tuple(map(host, kept))
        # Where no vertex lies between, the element is still the edge's own.
        direct = host(self.via) < 0
        return tuple(np.where(direct, host(v), zero).astype(v.dtype) for v, zero in zip(self.values, self.zero(), strict=True))


def shown(values: Values, sources: Vertices, targets: Vertices, restore: Callable[[Array], Any] | None) -> Any:
    """Elements of shape (…, sources, targets) as the caller gets them, without the axis of a vertex that was named by itself."""
    found: tuple[Any, ...] = tuple([squeezed(squeezed(v, sources, -2), targets, -1) for v in values])
    if restore is not None:
        found = tuple(map(restore, found))
    elif sources.single and targets.single:
        found = tuple([v[()] for v in found])
    return found[0] if len(found) == 1 else found


def squeezed(array: Any, vertices: Vertices, axis: int) -> Any:
    """The array without the axis of a vertex that was named by itself."""
    return array.squeeze(axis) if vertices.single else array
