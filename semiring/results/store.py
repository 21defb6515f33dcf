"""`Store`: a rectangle of a closure and the best paths of its pairs. `Paths` reads one of its subclasses.

`ConstructionMatrix` expands paths between all vertices. `PredecessorTrees` has a tree for each row of a rectangle, or a next-hop tree for
each column if only targets were named. Trees of all vertices of a sparse graph yield the construction matrix too.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.all_paths import AllPaths
from semiring.algorithms.csr import CSR, SparseArray, present
from semiring.algorithms.predecessors import NONE, SingleSource, expand, predecessors, weighs
from semiring.algorithms.search import searches_for
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import entries, equal, host, namespace, on_gpu
from semiring.arrays.pieces import GPU, slices
from semiring.common.errors import DTypeError, GraphError
from semiring.common.forks import cached_property
from semiring.graphs.vertices import Vertices, unknown_vertex

__all__ = ["ConstructionMatrix", "Names", "PredecessorTrees", "Store", "shown", "squeezed", "via_of_trees", "visited"]

ClosedMatrix = tuple[Any, ...]
"""The given matrix: an array for each component, or an object that reads single rows of a component."""

_GLANCE = 1 << 26  # entries that the host counts in a tenth of a second
_SOURCES = 8  # sources whose best paths are kept for further targets


class Names:
    """The names of the vertices: the caller's labels, or the vertex numbers of a graph without labels."""

    def __init__(self, labels: Sequence[Hashable] | None, n: int) -> None:
        self.labels = None if labels is None else tuple(labels)
        self.n = n

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """Names of all vertices, in the order of the rows."""
        return tuple(range(self.n)) if self.labels is None else self.labels

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {node: i for i, node in enumerate(self.nodes)}

    def number(self, node: Any) -> int:
        """Return the number of a named vertex."""
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
        """Return the names of vertices."""
        return list(numbers) if self.labels is None else [self.labels[v] for v in numbers]


@dataclass(eq=False)  # not frozen, which would make a store take four times as long to make
class Store(ABC):
    """A rectangle of a closure, or of each closure of a batch, and the best paths of its pairs."""

    semiring: Semiring
    values: Values  # the elements, an array for each component
    names: Names  # the names of all vertices of the graph
    sources: Vertices  # the vertices of the rows and of the columns
    targets: Vertices
    reflexive: bool  # count the empty path from each vertex to itself
    kept: Callable[[], ClosedMatrix | None]  # returns the given matrix, or None if it was overwritten
    given: ClassVar[Any] = None  # the graph with its attributes, and the question about it

    @abstractmethod
    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        """Return the store of one or several matrices of a batch."""

    @property
    @abstractmethod
    def expanded(self) -> ConstructionMatrix | None:
        """Return the same closure with a construction matrix; None if only some pairs are known."""

    @abstractmethod
    def predecessors(self) -> Any:
        """Return the vertex before each vertex on the best paths from each source, −9999 for none: int32 of shape (…, s, n)."""

    @abstractmethod
    def next_hops(self) -> Any:
        """Return the vertex after each vertex on the best paths to each target, −9999 for none: int32 of shape (…, n, t)."""

    @abstractmethod
    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the edges of one given graph, in blocks: tails, heads, and the first component of weights."""

    @abstractmethod
    def _simple(self, rows: Array, columns: Array) -> Iterable[list[int] | None]:
        """Find a simple path for each connected pair (not an empty path); None if rounding has bent the path into a circle."""

    def _edges(self) -> ClosedMatrix | None:
        """Return the given matrix, in which bent paths can be searched again; None if it was overwritten."""
        kept = self.kept()
        return None if kept is None else tuple(v if isinstance(v, SparseArray) else host(v) for v in kept)

    def _part(self, key: tuple[Any, ...], **more: Any) -> Self:
        def kept() -> ClosedMatrix | None:
            arrays = self.kept()
            return None if arrays is None else tuple(v[key] for v in arrays)

        return replace(self, values=tuple(v[key] for v in self.values), kept=kept, **more)

    def __getstate__(self) -> dict[str, Any]:
        # Functions cannot be pickled. The matrix replaces `kept`, so that bent paths can still be searched again.
        return {**{name: value for name, value in self.__dict__.items() if name not in ("_best_from", "given")}, "kept": self.kept()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrix = state["kept"]
        vars(self).update(state, kept=lambda: matrix)

    def all_best(self, source: Any, target: Any) -> tuple[AllPaths | None, int]:
        """Return the best paths from a named source, None without a path, and the number of the target."""
        rows, columns = np.array([self.place(source, target)]).T
        starts, ends = self.ends(rows, columns)
        there = self.there(tuple(entries(v, rows, columns) for v in self.values))
        return self._best_from(int(starts[0])) if there[0] else None, int(ends[0])

    @cached_property
    def _best_from(self) -> Callable[[int], AllPaths]:
        """Find the best paths from a source; those of the last few sources are kept."""
        edges = self._compressed()
        if edges.symbolic:
            raise DTypeError("all_paths and count compare numbers, and these elements are symbols; path returns one path")
        searches = searches_for(self.semiring, edges.dtypes, "cpu")

        @functools.lru_cache(maxsize=_SOURCES)  # which threads may share
        def best_from(source: int) -> AllPaths:
            name = self.names.nodes.__getitem__
            return AllPaths(self.semiring, edges, source, reflexive=self.reflexive, searches=searches, name=name)

        return best_from

    def _compressed(self) -> CSR:
        """Return the given matrix in compressed rows."""
        kept = Store._edges(self)
        if kept is None:
            raise GraphError(
                "all_paths and count follow the edges of the given matrix, which was overwritten or not saved; compute the paths again "
                "with overwrite=False, and leave the matrix unchanged"
            )
        if isinstance(kept[0], SparseArray):
            return kept[0].edges
        matrix, zero = tuple(map(np.asarray, kept)), self.zero()
        tails, heads = np.nonzero(present(matrix, zero))
        return CSR.of(tails, heads, tuple([m[tails, heads] for m in matrix]), self.names.n, zero)

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
        """True if rows and columns are all vertices, in the order of the graph."""
        return self.sources.every and self.targets.every

    def device(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which the GPU of the arrays is current; an empty context on the host."""
        values: Any = self.values[0]
        return values.device if on_gpu(values) else contextlib.nullcontext()

    def ends(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """Return the vertex numbers of rows and columns."""
        return (rows, columns) if self.complete else (self.sources.numbers[rows], self.targets.numbers[columns])

    def place(self, source: Any, target: Any) -> tuple[int, int]:
        """Return the row and the column of two named vertices."""
        numbers = self.names.number(source), self.names.number(target)
        if self.complete:
            return numbers
        for number, places, node, what in zip(numbers, self._places, (source, target), ("source", "target"), strict=True):
            if number not in places:
                raise GraphError(f"{node!r} is no {what} of these paths; .{what}s lists all {len(places)}")
        return self._places[0][numbers[0]], self._places[1][numbers[1]]

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int]]:
        """Row of each source and column of each target; the first one of a vertex that is named twice."""
        rows, columns = ({v: i for i, v in reversed(list(enumerate(e.numbers.tolist())))} for e in (self.sources, self.targets))
        return rows, columns

    def element(self, row: int, column: int) -> tuple[Any, ...]:
        """Return one element, by its components."""
        return tuple(host(v[row, column])[()] for v in self.values)

    def zero(self) -> tuple[Any, ...]:
        """Return the semiring's zero in the dtypes of the elements."""
        return self.semiring.identities(self.dtypes)[0]

    def there(self, elements: tuple[Any, ...]) -> Any:
        """Return a mask of the elements that are not zero."""
        same = [equal(v, z).astype(bool) for v, z in zip(elements, self.zero(), strict=True)]
        return ~functools.reduce(operator.and_, same)

    def stripes(self) -> Iterator[slice]:
        """Iterate over slices of rows, small enough to process for all matrices of a batch at once."""
        rows, columns = self.shape
        return slices(rows, columns * math.prod(self.batch), GPU)

    @property
    def distributed(self) -> bool:
        """True if the elements are in the memory of several processes; reading them is then collective."""
        return not (on_gpu(self.values[0]) or isinstance(self.values[0], np.ndarray))

    @property
    def countable(self) -> bool:
        """True if `connected` is fast enough for a repr."""
        return on_gpu(self.values[0]) or (not self.distributed and self.values[0].size <= _GLANCE)

    def connected(self) -> int:
        """Count the connected pairs of different vertices, on the device of the arrays."""
        total: Any = 0
        with self.device():
            for rows in self.stripes():
                total = total + self.there(tuple(v[..., rows, :] for v in self.values)).sum()
            return int(total - self.there(self._own()).sum())

    def one_way(self) -> int:
        """Count the pairs of all vertices that are connected in one direction only."""
        total: Any = 0
        with self.device():
            for some in self.stripes():
                there = self.there(tuple(v[..., some, :] for v in self.values))
                back = self.there(tuple(v[..., :, some] for v in self.values)).swapaxes(-2, -1)
                total = total + (there & ~back).sum()
            return int(total)

    def _own(self) -> Values:
        if self.complete:
            return tuple(v.diagonal(0, -2, -1) for v in self.values)
        rows, columns = map(namespace(self.values[0]).asarray, np.nonzero(self.sources.numbers[:, None] == self.targets.numbers))
        return tuple(v[..., rows, columns] for v in self.values)

    def _nonzero(self, matrix: Values, direct: Any = None) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the nonzero entries of a matrix of all vertices, in stripes; `direct` selects the entries with ``direct < 0``."""
        for rows in slices(self.names.n, self.names.n, GPU):
            with self.device():
                there = self.there(tuple(v[rows] for v in matrix))
                tails, heads = np.nonzero(host(there if direct is None else there & (direct[rows] < 0)))
            tails += rows.start
            yield tails, heads, entries(matrix[0], tails, heads)

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """Iterate over the rows and columns of connected vertices of one matrix, a stripe at a time; empty paths do not count."""
        for stripe in self.stripes():
            with self.device():
                there = host(self.there(tuple(v[stripe] for v in self.values)))
            rows, columns = np.nonzero(there)
            rows += stripe.start
            sources, targets = self.ends(rows, columns)
            some = sources != targets if self.reflexive else slice(None)
            yield rows[some], columns[some]

    def find(self, rows: Array, columns: Array) -> list[list[int]]:
        """Find a simple path for each pair of one matrix, as vertex numbers; an empty list for no path."""
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
                        f"there to find it again: leave the input unchanged, and use overwrite=False"
                    )
                found[pair] = path
        for pair in np.flatnonzero(empty).tolist():
            found[pair] = [int(sources[pair])]
        return found


@dataclass(eq=False)
class ConstructionMatrix(Store):
    """A closure of all vertices and its construction matrix, from which paths are expanded."""

    via: Array  # an intermediate vertex of the path from i to j; −1 for an edge or no path

    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        return self._part(key, via=self.via[key])

    @property
    def expanded(self) -> Self:
        """Return the store itself."""
        return self

    def predecessors(self) -> Any:
        """Grow a tree of best paths for each source from the construction matrix."""
        return self._grown(backward=False)

    def next_hops(self) -> Any:
        """Grow a tree of best paths for each target from the construction matrix."""
        return self._grown(backward=True)

    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the edges of the given matrix; only edges that are best paths if it was overwritten or is large."""
        kept = self.kept() if self.names.n**2 <= GPU else None  # reading it again may take as much memory as the matrix
        return self._nonzero(self.values, self.via) if kept is None else self._nonzero(kept)

    def _grown(self, *, backward: bool) -> Any:
        with self.device():
            return predecessors(self.semiring, self.values, self.via, lambda i: (self[i] if i else self).find, backward=backward)

    def _simple(self, rows: Array, columns: Array) -> list[list[int] | None]:
        return expand(self.via, rows, columns)

    def _edges(self) -> ClosedMatrix:
        """Return the given matrix, or else its edges that are best paths."""
        kept = super()._edges()
        if kept is not None:
            return kept
        # Without an intermediate vertex, the element is the weight of the edge.
        direct = host(self.via) < 0
        return tuple(np.where(direct, host(v), zero).astype(v.dtype) for v, zero in zip(self.values, self.zero(), strict=True))


@dataclass(eq=False)
class PredecessorTrees(Store):
    """Elements and a tree of best paths for each source (or each target); see `Store`."""

    # the vertex before each vertex on the path from the source, −1 for none; if `backward`, the vertex after it, of shape (…, n, t)
    tree: Array
    backward: bool = False
    graph: CSR | None = None  # the sparse graph, if the rows and columns are all its vertices
    whole: Callable[[], Array] | None = None  # returns the complete tree, if `tree` has only one requested path
    # with turn costs: the paths of the expansion, whose nodes are those of `tree`, and the vertex of each node
    expansion: tuple[Store, Array] | None = None

    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        return self._part(key, tree=self.tree[key])

    @cached_property
    def expanded(self) -> ConstructionMatrix | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # a property, computed once
        """The same elements with a construction matrix, if rows and columns are all vertices."""
        self._require_trees()
        edges = self.graph
        if edges is None:
            return None
        via = self._via(edges)
        return ConstructionMatrix(self.semiring, self.values, self.names, self.sources, self.targets, self.reflexive, edges.dense, via)

    def predecessors(self) -> Any:
        """Return the tree of each source."""
        if self.backward:
            raise GraphError("these paths were found from the targets and have next_hops(); name the sources for predecessors()")
        return self._without_roots()

    def next_hops(self) -> Any:
        """Return the tree of each target."""
        if self.backward:
            return self._without_roots()
        if self.expanded is None:
            raise GraphError("these paths were found from the sources and have predecessors(); name only targets for next_hops()")
        return self.expanded.next_hops()

    def edges(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over the edges of the graph."""
        matrix = self.kept() or ()
        if matrix and isinstance(matrix[0], SparseArray):
            edges = matrix[0].edges
            yield edges.tails, edges.heads, edges.weights[0]
        elif matrix:
            yield from self._nonzero(matrix)

    def find(self, rows: Array, columns: Array) -> list[list[int]]:
        """Find the path of each pair; see `Store.find`. With turn costs, a path may visit a vertex again."""
        if self.expansion is None:
            return super().find(rows, columns)
        store, visits = self.expansion
        return [visited(path, visits) for path in store.find(rows, columns)]

    def _require_trees(self) -> None:
        if self.expansion is not None:
            raise GraphError(
                "best paths with turn costs form no trees of vertices, and no construction matrix; .path(…) returns one, and "
                ".to_frame(paths=True) all of them"
            )

    def _via(self, edges: CSR) -> Any:
        return via_of_trees(self.tree, self.values, edges)

    def _without_roots(self) -> Any:
        """Return the trees in SciPy's form: −9999 for none, and for the roots."""
        self._require_trees()
        tree: Any = self.tree[:] if self.whole is None else self.whole()  # one array, also from several processes
        xp, roots = namespace(tree), self.targets if self.backward else self.sources
        with self.device():
            found = xp.where(tree < 0, np.int32(NONE), tree)
            own, order = xp.asarray(roots.numbers), xp.arange(len(roots.numbers))
            found[(..., own, order) if self.backward else (..., order, own)] = NONE
            return found

    def _simple(self, rows: Array, columns: Array) -> Iterator[list[int] | None]:
        trees: dict[int, list[int]] = {}
        sources, targets = self.ends(rows, columns)
        for root, i, j in zip((columns if self.backward else rows).tolist(), sources.tolist(), targets.tolist(), strict=True):
            if root not in trees:
                trees[root] = host(self._tree_of(root)).tolist()
            yield self._climbed(trees[root], i, j)

    def _tree_of(self, root: int) -> Any:
        return self.tree[:, root] if self.backward else self.tree[root]

    def _climbed(self, tree: list[int], source: int, target: int) -> list[int] | None:
        """Follow a tree from one end to its root; None if rounding has bent the path into a circle."""
        start, root = (source, target) if self.backward else (target, source)
        walk, v = [start], start
        for _ in range(len(tree)):
            v = tree[v]
            if v < 0:
                return None
            walk.append(v)
            if v == root:
                return walk if self.backward else walk[::-1]
        return None


def visited(path: list[int], visits: Array) -> list[int]:
    """Return the vertices of a path of nodes; nodes beyond `visits` are no vertices."""
    return [int(visits[v]) for v in path if v < len(visits)]


def via_of_trees(tree: Array, values: Values, edges: CSR, first: int = 0) -> Array:
    """Compute rows of a construction matrix from predecessor trees, elements and the edges of the whole graph.

    via[i, j] is the vertex before j, or −1 if this vertex is i or the edge from i to j is a best path. Expansion then shortens a path from
    j on, until only edges are left. `first` is the number of the first row.
    """
    last = first + len(tree)
    via = np.where(tree == np.arange(first, last, dtype=np.int32)[:, None], np.int32(-1), tree)
    some = slice(edges.starts[first], edges.starts[last])
    rows, heads = edges.tails[some] - first, edges.heads[some]
    best = np.logical_and.reduce([v[rows, heads] == w[some] for v, w in zip(values, edges.weights, strict=True)])
    via[rows[best], heads[best]] = -1
    return via


def shown(values: Values, sources: Vertices, targets: Vertices, restore: Callable[[Array], Any] | None) -> Any:
    """Return elements of shape (…, sources, targets) for the caller; a single vertex has no axis."""
    found: tuple[Any, ...] = tuple([squeezed(squeezed(v, sources, -2), targets, -1) for v in values])
    if restore is not None:
        found = tuple(map(restore, found))
    elif sources.single and targets.single:
        found = tuple([v[()] for v in found])
    return found[0] if len(found) == 1 else found


def squeezed(array: Any, vertices: Vertices, axis: int) -> Any:
    """Drop the axis of a single vertex."""
    return array.squeeze(axis) if vertices.single else array
