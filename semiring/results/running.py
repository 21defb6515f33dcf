"""Distances as rows of them come by, in one process or in several: eccentricities, their sum, their histogram and the farthest pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.distances import DistanceSums
from semiring.algorithms.distribution import Distribution, cell_exponent
from semiring.arrays.memory import require_bytes
from semiring.common.errors import GraphError
from semiring.results.farthest import Greatest

__all__ = ["BINS", "RunningDistances"]

Array = np.ndarray[Any, Any]

BINS = 64
"""Bins of the histogram at most, where nobody names them, and bars of its picture."""


class RunningDistances:
    """The distances of a graph as rows of them come by, in ascending order: what `statistics` says of them.

    Automatic bins are cells, numbered by ⌊d / width⌋, whose width doubles as distances spread: neighbours are then joined, so that the
    order of the distances does not matter. Sums are of single rows, and added at last.

    Parameters
    ----------
    bins : int, increasing sequence of numbers, or None
        See `statistics`.

    Attributes
    ----------
    asked : int, list or None
        The bins.
    most : int
        How many bins there are at most, of which the library chooses the edges; 0 for none.
    connected : int
        Pairs of different vertices with a path.
    """

    def __init__(self, bins: int | Sequence[float] | Array | None) -> None:
        self.connected = 0
        self._rows: list[tuple[int, Array, Array]] = []
        self._greatest = Greatest(1)
        self.edges: Array | None = None
        self.exponent: int | None = None
        self.cells: dict[int, int] = {}
        self.whole, self.most = True, 0
        if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
            if bins < 2:  # no bin has 0 inside
                raise GraphError(f"bins is {bins}; it must be at least 2, or the edges of the bins")
            self.most = int(bins)
        elif bins is not None:
            try:
                self.edges = np.asarray(bins, dtype=np.float64)
            except (TypeError, ValueError):
                raise GraphError(f"bins is {bins!r}; pass a number of bins, their edges, or None") from None
            if self.edges.ndim != 1 or len(self.edges) < 2 or not (np.diff(self.edges) > 0).all():
                raise GraphError("the edges of the bins must be at least two numbers that increase")
            self.counts = np.zeros(len(self.edges) - 1, dtype=np.int64)
        self.asked: Any = (self.most or None) if self.edges is None else self.edges.tolist()

    def add(self, first: int, distances: Array) -> None:
        """Some more rows, of float64, the first of which has the number `first`."""
        count, n = distances.shape
        own = np.arange(count)
        others = np.ones(distances.shape, dtype=bool)
        others[own, first + own] = False
        connected = others & (distances < math.inf)
        farthest = distances.max(axis=1, where=others, initial=-math.inf if n > 1 else 0)
        self._rows.append((first, farthest, np.where(connected, distances, 0).sum(axis=1)))
        self._greatest.add(distances, connected, first)
        if (some := distances[connected]).size:
            self._count(some)

    def add_sums(self, sums: DistanceSums, first: int, row: Array) -> None:
        """What all distances come to, and, of shape (1, n), those from the first of the vertices whose farthest one is the farthest."""
        n = len(sums.connected)
        alone = n > 1 and sums.connected < n - 1
        self._rows.append((0, np.where(alone, math.inf, sums.farthest), sums.totals))
        self._greatest.add(row, (row < math.inf) & (np.arange(n) != first), first)
        if len(sums.distances):
            self._count(sums.distances, sums.counts)

    def add_all(self, found: Distribution, leaves: Array, row: Callable[[int], Array]) -> None:
        """Add all rows at once, in bins with edges that the library chooses, or in none.

        Parameters
        ----------
        found : Distribution
        leaves : bool array of shape (n,)
            Marks the vertices with a path to another one.
        row : callable
            Finds the distances from a vertex.
        """
        n = len(found.sums)
        farthest = found.farthest.astype(np.float64)
        self._rows.append((0, np.where(found.complete, farthest, math.inf), found.sums))
        self.connected += found.reached - n
        self.whole &= found.whole
        for exponent, (first, counts) in found.tables.items():
            if len(there := np.flatnonzero(counts)):
                self._join(exponent, dict(zip((first + there).tolist(), counts[there].tolist(), strict=True)))
        if found.reached > n:
            source = int(np.where(leaves, farthest, -1).argmax())
            distances = row(source)
            others = distances < math.inf
            others[source] = False
            target = np.where(others, distances, -1).argmax()
            distances[target] = farthest[source]  # that of the way back, where rounding tells them apart
            self._greatest.add(distances[None], others[None], source)

    def merge(self, other: RunningDistances) -> None:
        """The rows that another process has seen."""
        self._rows += other._rows
        self._greatest.merge(other._greatest)
        self.connected += other.connected
        if self.edges is not None:
            self.counts += other.counts
            return
        self.whole &= other.whole
        if other.exponent is not None:
            self._join(other.exponent, other.cells)

    def _join(self, exponent: int, cells: dict[int, int]) -> None:
        """Cells of another width, or of this one."""
        if self.exponent is None:
            self.exponent = exponent
        self._widen(exponent)
        for cell, count in cells.items():
            wide = cell >> (self.exponent - exponent)
            self.cells[wide] = self.cells.get(wide, 0) + count
        self._fit()

    @property
    def eccentricities(self) -> Array:
        """For each vertex the distance to the farthest other one."""
        return np.concatenate([farthest for _, farthest, _ in self._sorted()] or [np.zeros(0)])

    @property
    def total(self) -> float:
        """The sum of the distances of connected pairs."""
        return float(np.concatenate([sums for _, _, sums in self._sorted()] or [np.zeros(0)]).sum())

    @property
    def farthest(self) -> tuple[int, int, float] | None:
        """The row, the column and the distance of the pair that is the farthest apart; of several, the first one."""
        found = self._greatest
        return (int(found.rows[0]), int(found.columns[0]), float(found.values[0])) if len(found.values) else None

    def _sorted(self) -> list[tuple[int, Array, Array]]:
        """Of each block of rows, in their order, the number of the first, the farthest distances and the sums."""
        return sorted(self._rows, key=lambda rows: rows[0])

    def _count(self, distances: Array, times: Array | None = None) -> None:
        """Some more distances of connected pairs, each once, or so many `times`."""
        self.connected += distances.size if times is None else int(times.sum())
        if self.edges is not None:
            self.counts += np.histogram(distances, self.edges, weights=times)[0]
            return
        if not self.most:
            return
        self.whole = self.whole and bool((distances == np.floor(distances)).all())
        exponent = cell_exponent(float(distances.min()), float(distances.max()), self.most)
        if self.exponent is not None:
            exponent = max(exponent, self.exponent)
        cells, which, counts = np.unique(np.floor(np.ldexp(distances, -exponent)), return_inverse=True, return_counts=True)
        if times is not None:
            counts = np.zeros(len(cells), np.int64)
            np.add.at(counts, which, times)
        self._join(exponent, dict(zip(map(int, cells.tolist()), counts.tolist(), strict=True)))

    def _widen(self, exponent: int) -> None:
        """Cells at least so wide."""
        assert self.exponent is not None
        while self.exponent < exponent:
            self._double()

    def _fit(self) -> None:
        """No more cells than bins are asked for."""
        while max(self.cells) - min(self.cells) >= self.most:
            self._double()

    def _double(self) -> None:
        """Cells of twice the width: each two neighbours are one."""
        assert self.exponent is not None
        self.exponent += 1
        joined: dict[int, int] = {}
        for cell, count in self.cells.items():
            joined[cell // 2] = joined.get(cell // 2, 0) + count
        self.cells = joined

    def histogram(self) -> tuple[Array, Array]:
        """The counts, and the edges of the bins.

        Raises
        ------
        TooLargeError
            For more bins than there is memory.
        """
        if self.edges is not None:
            return self.counts, self.edges
        if self.exponent is None:
            return np.zeros(0, dtype=np.int64), np.zeros(1)
        if self.whole:
            self._widen(0)
        first, last = min(self.cells), max(self.cells)
        count = last - first + 1
        require_bytes(16 * count, f"a histogram of {count:,} bins takes", "ask for fewer bins")
        counts = np.zeros(count, dtype=np.int64)
        counts[np.array(list(self.cells)) - first] = list(self.cells.values())
        return counts, np.ldexp(np.arange(first, last + 2, dtype=np.float64), self.exponent)
