"""A closure and its construction matrix by the numbers of vertices: which pairs are connected, and their paths."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.extraction import expand
from semiring.algorithms.predecessors import SingleSource, weighs
from semiring.arrays.devices import entries, equal, host, on_gpu
from semiring.arrays.pieces import GPU, slices
from semiring.common.errors import GraphError

__all__ = ["Construction"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_GLANCE = 1 << 26
"""Entries that are counted in a tenth of a second on the host."""


@dataclass(frozen=True, eq=False)
class Construction:
    """What `Paths` holds, without names.

    Attributes
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (…, n, n)
        The closure, one array for each component.
    via : int32 array of shape (…, n, n)
        The construction matrix.
    reflexive : bool
    kept : callable
        Gives the matrix that was closed, where it still exists.
    """

    semiring: Semiring
    values: Values
    via: Array
    reflexive: bool
    kept: Callable[[], Values | None]

    @property
    def n(self) -> int:
        """The number of vertices."""
        return int(self.via.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.via.shape[:-2])

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(v.dtype for v in self.values)

    def __getitem__(self, key: tuple[Any, ...]) -> Self:
        """That of one matrix, or of some, of a batch."""

        def kept() -> Values | None:
            arrays = self.kept()
            return None if arrays is None else tuple(v[key] for v in arrays)

        return replace(self, values=tuple(v[key] for v in self.values), via=self.via[key], kept=kept)

    def __getstate__(self) -> dict[str, Any]:
        # Functions cannot be pickled: the matrix goes along instead, so that paths are still found where rounding has bent them.
        return {**self.__dict__, "kept": self.kept()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrix = state["kept"]
        self.__dict__.update(state, kept=lambda: matrix)

    def device(self) -> contextlib.AbstractContextManager[Any]:
        """Makes the GPU of the arrays the current one, where they lie on one."""
        via: Any = self.via
        return via.device if on_gpu(via) else contextlib.nullcontext()

    def zero(self) -> tuple[Any, ...]:
        """The semiring's zero in the dtypes of the elements."""
        return self.semiring.identities(self.dtypes)[0]

    def there(self, elements: tuple[Any, ...]) -> Any:
        """Which elements are not zero."""
        same = [equal(v, z).astype(bool) for v, z in zip(elements, self.zero(), strict=True)]
        return ~functools.reduce(operator.and_, same)

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of a matrix of elements."""
        rows, columns = self.values[0].shape[-2:]
        return int(rows), int(columns)

    def ends(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The numbers of the vertices of some rows and columns: the same."""
        return rows, columns

    def element(self, i: int, j: int) -> tuple[Any, ...]:
        """One element, by its components."""
        return tuple(host(v[i, j])[()] for v in self.values)

    def stripes(self) -> Iterator[slice]:
        """Slices of the rows, of which those of all matrices of a batch are read together."""
        rows, columns = self.shape
        return slices(rows, columns * math.prod(self.batch), GPU)

    @property
    def countable(self) -> bool:
        """Whether `connected` takes no longer than someone waits who only wants to see what this is."""
        return on_gpu(self.via) or self.via.size <= _GLANCE

    def connected(self) -> int:
        """How many pairs of different vertices are connected, counted where the arrays lie."""
        total: Any = 0
        with self.device():
            for rows in self.stripes():
                total = total + self.there(tuple(v[..., rows, :] for v in self.values)).sum()
            return int(total - self.there(tuple(v.diagonal(0, -2, -1) for v in self.values)).sum())

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

    def find(self, sources: Array, targets: Array, names: Sequence[Any]) -> list[list[int]]:
        """Simple paths as vertex numbers; empty where there is none. `names` are those of the vertices, for errors."""
        there = self.there(tuple(entries(v, sources, targets) for v in self.values))
        empty = (sources == targets) & self.reflexive
        found: list[list[int]] = [[] for _ in range(len(sources))]
        wanted = np.flatnonzero(there & ~empty)
        spoilt: dict[int, list[int]] = {}
        for pair, path in zip(wanted.tolist(), expand(self.via, sources[wanted], targets[wanted]), strict=True):
            if path is None:
                spoilt.setdefault(int(sources[pair]), []).append(pair)
            else:
                found[pair] = path
        if spoilt:
            edges = self._edges()
            for source, some in spoilt.items():
                paths = SingleSource(self.semiring, edges, source)
                for pair in some:
                    found[pair] = self._confirmed(edges, paths.path(int(targets[pair])), source, int(targets[pair]), names)
        for pair in np.flatnonzero(empty).tolist():
            found[pair] = [int(sources[pair])]
        return found

    def _edges(self) -> Values:
        """The matrix, to find paths again that rounding has spoiled in `via`; or those of its edges that are best paths themselves."""
        kept = self.kept()
        if kept is not None:
            return tuple(map(host, kept))
        # Where no vertex lies between, the element is still the edge's own.
        direct = host(self.via) < 0
        return tuple(np.where(direct, host(v), zero).astype(v.dtype) for v, zero in zip(self.values, self.zero(), strict=True))

    def _confirmed(self, edges: Values, path: list[int], source: int, target: int, names: Sequence[Any]) -> list[int]:
        if path and weighs(self.semiring, edges, path, self.element(source, target)):
            return path
        raise GraphError(
            f"rounding has bent the path from {names[source]!r} to {names[target]!r} into a circle, and the input is no longer "
            f"there to find it again: leave it unchanged, and use overwrite=False"
        )
