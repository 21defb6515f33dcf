"""The store of all pairs: a closure and its construction matrix, out of which paths are expanded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from semiring.algorithms.extraction import expand
from semiring.algorithms.predecessors import next_hops, predecessors
from semiring.arrays.devices import host
from semiring.arrays.pieces import GPU
from semiring.results.store import ClosedMatrix, Store, Values

__all__ = ["ConstructionMatrix"]

Array = np.ndarray[Any, Any]


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
