"""A rectangle of a closure and the trees of its paths, by the numbers of vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algorithms.predecessors import SingleSource
from semiring.arrays.devices import entries, host, namespace
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.graphs.vertices import Vertices
from semiring.results.construction import Array, Construction

__all__ = ["TreesBetween"]


@dataclass(frozen=True, eq=False)
class TreesBetween(Construction):
    """What `PathsBetween` holds, without names.

    Attributes
    ----------
    values : tuple of arrays of shape (…, s, t)
    via : int32 array of shape (…, s, n)
        The vertex before each one on the path from the source, −1 for none; `backward`: of shape (…, n, t), the vertex after it.
    sources, targets : Vertices
    backward : bool
    """

    sources: Vertices
    targets: Vertices
    backward: bool

    @property
    def n(self) -> int:
        """The number of vertices."""
        return int(self.via.shape[-2 if self.backward else -1])

    def ends(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The numbers of the vertices of some rows and columns."""
        return self.sources.numbers[rows], self.targets.numbers[columns]

    def element(self, i: int, j: int) -> tuple[Any, ...]:
        """One element, by its components."""
        place = self._place(i, j, range(self.n))
        return tuple(host(v[place])[()] for v in self.values)

    def connected(self) -> int:
        """How many pairs of different vertices are connected."""
        same = self.sources.numbers[:, None] == self.targets.numbers
        with self.device():
            there = self.there(self.values)
            return int((there & ~namespace(there).asarray(same)).sum())

    def find(self, sources: Array, targets: Array, names: Any) -> list[list[int]]:
        """Simple paths as vertex numbers; empty where there is none. `names` are those of the vertices, for errors."""
        places = [self._place(i, j, names) for i, j in zip(sources.tolist(), targets.tolist(), strict=True)]
        rows, columns = np.array(places, dtype=np.intp).reshape(-1, 2).T
        there = self.there(tuple(entries(v, rows, columns) for v in self.values))
        trees: dict[int, list[int]] = {}
        found: list[list[int]] = []
        for (row, column), i, j, connected in zip(places, sources.tolist(), targets.tolist(), there.tolist(), strict=True):
            if i == j and self.reflexive:
                found.append([i])
            elif not connected:
                found.append([])
            else:
                root = column if self.backward else row
                if root not in trees:
                    trees[root] = host(self.via[:, root] if self.backward else self.via[root]).tolist()
                found.append(self._climbed(trees[root], i, j) or self._again(i, j, names))
        return found

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int]]:
        """The row of each source, and the column of each target."""
        rows, columns = ({v: i for i, v in reversed(list(enumerate(e.numbers.tolist())))} for e in (self.sources, self.targets))
        return rows, columns

    def _place(self, i: int, j: int, names: Any) -> tuple[int, int]:
        for number, places, what in zip((i, j), self._places, ("source", "target"), strict=True):
            if number not in places:
                raise GraphError(f"{names[number]!r} is no {what} of these paths; .{what}s lists all {len(places)}")
        return self._places[0][i], self._places[1][j]

    def _climbed(self, tree: list[int], source: int, target: int) -> list[int] | None:
        """The path along a tree; None where rounding has bent it into a circle."""
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

    def _again(self, source: int, target: int, names: Any) -> list[int]:
        """The path found on the matrix itself."""
        kept = self.kept()
        edges = () if kept is None else tuple(v if not hasattr(v, "ndim") else host(v) for v in kept)  # one of edges is no array
        path = SingleSource(self.semiring, edges, source).path(target) if edges else []
        return self._confirmed(edges, path, source, target, names)
