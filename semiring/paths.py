"""What a closure with paths returns: the elements, and a way to each of them."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import GraphError
from semiring.algebra.namespace import entries, equal, host, on_gpu
from semiring.algorithms.divergence import is_min_plus
from semiring.algorithms.extraction import expand
from semiring.algorithms.sources import SingleSource, weighs
from semiring.algorithms.trees import next_hops, predecessors

__all__ = ["Paths"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_STRIPE = 1 << 24
"""Entries that are looked at together where pairs are counted."""


class Paths:
    """The closure of a matrix together with its construction matrix.

    `apsp`, `closure` and `transitive_closure` make it with ``paths=True``. Vertices are named by the caller's labels where the graph had
    some, and by their index otherwise. A batch is indexed: ``paths[b]`` are the paths of matrix b. What lies on a GPU stays there: matrices
    are computed there and given in the caller's own kind, and of paths only their vertices come to the host.

    Attributes
    ----------
    semiring : Semiring
    values : array of shape (…, n, n), or tuple of arrays
        The closure, as it would have been returned without paths.
    via : int32 array of shape (…, n, n)
        The construction matrix: an intermediate vertex of the path from i to j, −1 where it is an edge or there is none.
    nodes : tuple
        The names of the vertices in the order of the rows.
    reflexive : bool
        Whether the empty path from each vertex to itself counts.

    Examples
    --------
    >>> import semiring as sr
    >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)]), paths=True)
    >>> paths.path("a", "c")
    ['a', 'b', 'c']
    >>> float(paths.distance("a", "c"))
    3.0
    >>> paths.predecessors()
    array([[-9999,     0,     1],
           [-9999, -9999,     1],
           [-9999, -9999, -9999]], dtype=int32)
    """

    def __init__(
        self,
        semiring: Semiring,
        values: Values,
        via: Array,
        *,
        nodes: Sequence[Hashable] | None = None,
        reflexive: bool = True,
        kept: Callable[[], Values | None] = lambda: None,
        restore: Callable[[Array], Any] | None = None,
        library: Callable[[Array], Any] | None = None,
    ) -> None:
        self.semiring = semiring
        self._given = values, via
        self.reflexive = reflexive
        self.nodes: tuple[Any, ...] = tuple(range(via.shape[-1])) if nodes is None else tuple(nodes)
        self._kept, self._restore, self._library = kept, restore, library
        self._index = None if nodes is None else {node: i for i, node in enumerate(self.nodes)}

    @property
    def via(self) -> Any:
        """The construction matrix."""
        return self._imported(self._given[1])

    @property
    def values(self) -> Any:
        """The closure."""
        values = self._given[0]
        restored = values if self._restore is None else tuple(map(self._restore, values))
        return restored[0] if len(restored) == 1 else restored

    @property
    def distances(self) -> Any:
        """The distances of shortest paths; only for min-plus.

        Raises
        ------
        AttributeError
            Over any other semiring, whose elements are in `values`.
        """
        if not is_min_plus(self.semiring):
            raise AttributeError(f"elements of {self.semiring.name} are no distances; they are in .values")
        return self.values

    def distance(self, source: Hashable, target: Hashable) -> Any:
        """The element for one pair of vertices (a tuple where elements are structured)."""
        self._require_one()
        element = self._element(self._number(source), self._number(target))
        return element[0] if len(element) == 1 else element

    def path(self, source: Hashable, target: Hashable) -> list[Any]:
        """The vertices of a best path from `source` to `target`, both included.

        Returns
        -------
        list
            Empty where there is no path. From a vertex to itself it is that vertex alone, or a cycle that ends where it begins if the
            closure was not reflexive.

        Raises
        ------
        GraphError
            For a vertex that is not in the graph. Also where rounding has bent a path into a circle, as it can where floats are negative
            and cycles weigh 1 (0, for distances), and the input to find it again was overwritten or changed.

        Notes
        -----
        Linear in the length of the path. Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2, without recursion; loops of weight 1 (zero,
        for shortest paths) are erased, so that no vertex comes twice.
        """
        return self.paths([(source, target)])[0]

    def paths_from(self, source: Hashable) -> list[list[Any]]:
        """The paths from one vertex to every vertex, in the order of `nodes`."""
        return self.paths((source, target) for target in self.nodes)

    def paths(self, pairs: Iterable[tuple[Hashable, Hashable]]) -> list[list[Any]]:
        """The paths of many pairs (source, target) at once; see `path`."""
        self._require_one()
        numbers = np.array([(self._number(s), self._number(t)) for s, t in pairs], dtype=np.intp).reshape(-1, 2)
        found = self._find(numbers[:, 0], numbers[:, 1])
        return found if self._index is None else [[self.nodes[v] for v in path] for path in found]

    def predecessors(self) -> Any:
        """The vertex before j on a best path from i to j, as SciPy gives it: int32, −9999 on the diagonal and where there is none.

        Each row is a tree whose paths are best paths. O(n² log h) for paths of h edges, and up to n³ where many elements tie.
        """
        return self._trees(predecessors)

    def next_hops(self) -> Any:
        """The vertex after i on a best path from i to j: int32, −9999 on the diagonal and where there is none.

        Each column is a tree whose paths are best paths. O(n² log h) for paths of h edges, and up to n³ where many elements tie.
        """
        return self._trees(next_hops)

    def __getitem__(self, index: Any) -> Paths:
        """The paths of one matrix of a batch."""
        given, via = self._given
        batch = via.ndim - 2
        key = index if isinstance(index, tuple) else (index,)
        if batch == 0 or len(key) > batch:
            raise IndexError(f"paths of {'one matrix' if batch == 0 else f'a batch with {batch} axes'} take no index {index!r}")

        def kept() -> Values | None:
            arrays = self._kept()
            return None if arrays is None else tuple(v[key] for v in arrays)

        nodes = None if self._index is None else self.nodes
        values = tuple(v[key] for v in given)
        return Paths(
            self.semiring,
            values,
            via[key],
            nodes=nodes,
            reflexive=self.reflexive,
            kept=kept,
            restore=self._restore,
            library=self._library,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Functions cannot be pickled: the matrix goes along instead, so that paths are still found where rounding has bent them.
        return {**self.__dict__, "_kept": self._kept()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrix = state["_kept"]
        self.__dict__.update(state, _kept=lambda: matrix)

    def __len__(self) -> int:
        """How many matrices a batch holds."""
        via = self._given[1]
        if via.ndim == 2:
            raise TypeError("the paths of one matrix have no length; .nodes tells its vertices")
        return len(via)

    def __repr__(self) -> str:
        *batch, _, n = self._given[1].shape
        many = f", batch of {' × '.join(map(str, batch))}" if batch else ""
        return f"<paths over {self.semiring.name}: {n} vertices{many}, {self._reached()} pairs connected>"

    def _repr_html_(self) -> str:
        import html

        rows = [
            ("semiring", self.semiring.name),
            ("vertices", f"{len(self.nodes):,}"),
            ("connected pairs", self._reached()),
            ("elements", ", ".join(str(v.dtype) for v in self._given[0])),
        ]
        cells = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
        return f"<table><caption>Paths</caption>{cells}</table>"

    def _reached(self) -> str:
        """How many pairs of different vertices are connected, counted where the arrays lie."""
        values, via = self._given
        step = max(1, _STRIPE // max(1, via.size // max(1, len(self.nodes))))
        total: Any = 0
        with self._device():
            for start in range(0, len(self.nodes), step):
                total = total + self._there(tuple(v[..., start : start + step, :] for v in values)).sum()
            total = total - self._there(tuple(v.diagonal(0, -2, -1) for v in values)).sum()
        return f"{int(total):,}"

    def _there(self, elements: tuple[Any, ...]) -> Any:
        """Which elements are not zero."""
        zero = self._zero()
        same = [equal(v, z).astype(bool) for v, z in zip(elements, zero, strict=True)]
        return ~functools.reduce(operator.and_, same)

    def _zero(self) -> tuple[Any, ...]:
        return self.semiring.identities([v.dtype for v in self._given[0]])[0]

    def _element(self, i: int, j: int) -> tuple[Any, ...]:
        return tuple(host(v[i, j])[()] for v in self._given[0])

    def _device(self) -> contextlib.AbstractContextManager[Any]:
        via: Any = self._given[1]
        return via.device if on_gpu(via) else contextlib.nullcontext()

    def _imported(self, array: Any) -> Any:
        """A matrix of vertices as an array of the caller's library."""
        return array if self._library is None else self._library(array)

    def _require_one(self) -> None:
        batch = self._given[1].shape[:-2]
        if batch:
            raise GraphError(f"these are the paths of a batch of shape {batch}; choose one first, as in paths[0].path(…)")

    def _number(self, node: Any) -> int:
        n = len(self.nodes)
        if self._index is not None:
            try:
                return self._index[node]
            except (KeyError, TypeError):
                raise GraphError(f"there is no vertex {node!r}; .nodes lists all {n}") from None
        if isinstance(node, int | np.integer) and not isinstance(node, bool) and 0 <= node < n:
            return int(node)
        raise GraphError(f"there is no vertex {node!r}; vertices are the numbers from 0 to {n - 1}")

    def _find(self, sources: Array, targets: Array) -> list[list[int]]:
        """Simple paths as vertex numbers; empty where there is none."""
        values, via = self._given
        there = self._there(tuple(entries(v, sources, targets) for v in values))
        empty = (sources == targets) & self.reflexive
        found: list[list[int]] = [[] for _ in range(len(sources))]
        wanted = np.flatnonzero(there & ~empty)
        spoilt: dict[int, list[int]] = {}
        for pair, path in zip(wanted.tolist(), expand(via, sources[wanted], targets[wanted]), strict=True):
            if path is None:
                spoilt.setdefault(int(sources[pair]), []).append(pair)
            else:
                found[pair] = path
        if spoilt:
            edges = self._edges()
            for source, pairs in spoilt.items():
                paths = SingleSource(self.semiring, edges, source)
                for pair in pairs:
                    found[pair] = self._confirmed(edges, paths.path(int(targets[pair])), source, int(targets[pair]))
        for pair in np.flatnonzero(empty).tolist():
            found[pair] = [int(sources[pair])]
        return found

    def _edges(self) -> Values:
        """The matrix, to find paths again that rounding has spoiled in `via`; or those of its edges that are best paths themselves."""
        kept = self._kept()
        if kept is not None:
            return tuple(map(host, kept))
        # Where no vertex lies between, the element is still the edge's own.
        values, via = self._given
        direct = host(via) < 0
        return tuple(np.where(direct, host(v), zero).astype(v.dtype) for v, zero in zip(values, self._zero(), strict=True))

    def _confirmed(self, edges: Values, path: list[int], source: int, target: int) -> list[int]:
        if path and weighs(self.semiring, edges, path, self._element(source, target)):
            return path
        raise GraphError(
            f"rounding has bent the path from {self.nodes[source]!r} to {self.nodes[target]!r} into a circle, and the input is no longer "
            f"there to find it again: leave it unchanged, and use overwrite=False"
        )

    def _trees(self, grow: Callable[..., Any]) -> Any:
        with self._device():
            return self._imported(grow(self.semiring, *self._given, lambda index: self[index]._find if index else self._find))
