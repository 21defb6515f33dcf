"""`Statistics`: a summary of all distances of a graph; `RunningDistances` gathers it from rows, in one process or in several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.distances import DistanceSums
from semiring.algorithms.distribution import Distribution, cell_exponent
from semiring.algorithms.factorization import Factorization
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_bytes
from semiring.common.errors import GraphError
from semiring.common.html import BAR, Shown, beside
from semiring.common.progress import Meter
from semiring.common.units import counted
from semiring.results.farthest import FarthestPair, Greatest
from semiring.results.views import as_floats

__all__ = ["BINS", "RunningDistances", "Statistics", "add_by_elimination"]

BINS = 64  # most bins of the default histogram, and bars of its picture
_FINEST = -1022  # the least exponent of a cell's width


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(Shown):
    """A summary of all distances of a graph; `statistics` returns one.

    Pairs are ordered, and of different vertices: in an undirected graph every two vertices count twice.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> line = sr.statistics(ways)
    >>> line.diameter, line.radius, line.average, line.connected
    (3.5, 2.0, 2.3333333333333335, 6)

    Attributes
    ----------
    nodes : tuple
        The vertices, or the chosen sources.
    eccentricities : float64 array of shape (n,)
        For each vertex the distance to the farthest one, or to the farthest target; ∞ if the vertex does not reach all within the limit.
    connected : int
        The number of pairs with a path, within the limit if one is given.
    total : float
        The sum of the distances of these pairs (for an undirected graph twice the Wiener index).
    counts : int64 array of shape (k,)
        The number of distances of connected pairs in each bin.
    bins : float64 array of shape (k + 1,)
        The edges of the bins. A bin includes its lower edge, and the last bin also its upper edge.
    farthest : FarthestPair or None
        Source, target and distance of the farthest connected pair, the first one in the order of rows. None if no pair is connected.
    pairs : int
        The number of pairs that are asked for.
    """

    nodes: tuple[Any, ...]
    eccentricities: Array
    connected: int
    total: float
    counts: Array
    bins: Array
    farthest: FarthestPair | None = None
    pairs: int = 0

    @property
    def radius(self) -> float:
        """The least eccentricity; NaN for a graph without vertices."""
        return float(self.eccentricities.min()) if self.eccentricities.size else math.nan

    @property
    def diameter(self) -> float:
        """The greatest eccentricity, ∞ unless every vertex reaches every other one; NaN for a graph without vertices."""
        return float(self.eccentricities.max()) if self.eccentricities.size else math.nan

    @property
    def largest(self) -> float:
        """The greatest finite distance, that of `farthest`; NaN if no pair is connected."""
        return math.nan if self.farthest is None else float(self.farthest.distance)

    @property
    def average(self) -> float:
        """The average distance of connected pairs; NaN if no pair is connected."""
        return self.total / self.connected if self.connected else math.nan

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table that Jupyter shows."""
        n = len(self.nodes)
        facts = [
            ("connected", f"{self.connected:,} of {self.pairs:,} pairs"),
            ("average", f"{self.average:.6g}"),
            ("radius", f"{self.radius:.6g}"),
            ("diameter", f"{self.diameter:.6g}"),
        ]
        if self.farthest is not None:
            source, target, distance = self.farthest
            facts.append(("largest finite distance", f"{distance:.6g}, from {source!r} to {target!r}"))
        return f"distances of {counted(n, 'vertex', 'vertices')}", facts

    def __repr__(self) -> str:
        title, ((_, connected), *figures) = self.facts()
        if math.isfinite(self.diameter):  # then it is the largest finite distance
            figures = figures[:3]
        return f"<{title}: {connected} connected, {', '.join(f'{name} {text}' for name, text in figures)}>"

    def _repr_html_(self) -> str:
        return beside(super()._repr_html_(), self._histogram())

    def _histogram(self) -> str:
        if not self.connected or not self.counts.any():
            return ""
        joined = -(-len(self.counts) // BINS)  # bins for a bar
        starts = np.arange(0, len(self.counts), joined)
        counts, edges = np.add.reduceat(self.counts, starts).tolist(), np.append(self.bins[starts], self.bins[-1]).tolist()
        bars = "".join(
            f"<div title='{count:,} from {low:.6g} to {high:.6g}' style='flex:1{_bar(count / max(counts))}'></div>"
            for count, (low, high) in zip(counts, pairwise(edges), strict=True)
        )
        base = "display:flex;align-items:flex-end;gap:1px;height:7em;border-bottom:1px solid rgba(128,128,128,0.35)"
        axis = f"<span>{edges[0]:.4g}</span><span style='opacity:0.7'>distance</span><span>{edges[-1]:.4g}</span>"
        below = f"<div style='display:flex;justify-content:space-between;font-size:85%'>{axis}</div>"
        return f"<div style='width:20em;padding-top:0.5em'><div style='{base}'>{bars}</div>{below}</div>"


def _bar(part: float) -> str:
    """Return the style of a bar, as a fraction of the highest one; a single pair stays visible."""
    return f";height:{100 * part:.3g}%;min-height:1px;background:{BAR}" if part else ""


class RunningDistances:
    """Sums, eccentricities, histogram and farthest pair of a graph's distances, gathered from rows in any order.

    Automatic bins are cells, numbered by ⌊d / width⌋. The width doubles as distances spread, and neighbours are joined, so the order of the
    distances does not matter. Sums are kept for each row, and added at the end. `asked` are the requested bins, `most` is the greatest
    number of automatic bins (0 for none), and `connected` counts pairs of different vertices with a path.
    """

    def __init__(self, bins: int | Sequence[float] | Array | None) -> None:
        self.connected = 0
        self._rows: list[tuple[int, Array, Array]] = []  # number of the first row, farthest distances, and sums
        self._greatest = Greatest(1)
        self.edges: Array | None = None
        self.exponent, self.cells = _FINEST, Counter[int]()
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
        """Add rows of float64; the first one has the number `first`."""
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
        """Add sums over all distances, and the row of shape (1, n) from `first`, the source of the farthest pair."""
        n = len(sums.connected)
        alone = n > 1 and sums.connected < n - 1
        self._rows.append((0, np.where(alone, math.inf, sums.farthest), sums.totals))
        self._greatest.add(row, (row < math.inf) & (np.arange(n) != first), first)
        if len(sums.distances):
            self._count(sums.distances, sums.counts)

    def add_all(self, found: Distribution, leaves: Array, row: Callable[[int], Array]) -> None:
        """Add all rows at once, with automatic bins or without a histogram.

        `leaves` marks the vertices with a path to another one, and `row` finds the distances from a vertex.
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
            distances[target] = farthest[source]  # the tallied distance, of the way back, if rounding differs
            self._greatest.add(distances[None], others[None], source)

    def add_pairs(self, sources: Array, targets: Array, parts: Iterable[tuple[Array, Array, Array]]) -> int:
        """Add parts of the distances from each source to each target, as arrays of places of sources and targets, and distances.

        No source and no target may repeat. The result is the number of pairs of different vertices.
        """
        count, others = len(sources), len(targets) - np.isin(sources, targets)
        reached, sums, farthest = np.zeros(count, np.int64), np.zeros(count), np.where(others == 0, 0, -math.inf)
        for part in parts:
            apart = sources[part[0]] != targets[part[1]]
            rows, columns, distances = (array[apart] for array in part)
            reached += np.bincount(rows, minlength=count)
            sums += np.bincount(rows, distances, count)
            np.maximum.at(farthest, rows, distances)
            if len(distances):
                best = np.flatnonzero(distances == distances.max())
                first = best[np.lexsort((columns[best], rows[best]))[:1]]
                self._greatest.join(rows[first], columns[first], distances[first])
                self._count(distances)
        self._rows.append((0, np.where(reached < others, math.inf, farthest), sums))
        return int(others.sum())

    def merge(self, other: RunningDistances) -> None:
        """Add the rows of another process."""
        self._rows += other._rows
        self._greatest.merge(other._greatest)
        self.connected += other.connected
        if self.edges is not None:
            self.counts += other.counts
            return
        self.whole &= other.whole
        if other.cells:
            self._join(other.exponent, other.cells)

    def _join(self, exponent: int, cells: Mapping[int, int]) -> None:
        """Add the counts of cells whose width is 2 to the power of `exponent`."""
        self._widen(exponent)
        for cell, count in cells.items():
            self.cells[cell >> self.exponent - exponent] += count
        while max(self.cells) - min(self.cells) >= self.most:
            self._widen(self.exponent + 1)

    def _widen(self, exponent: int) -> None:
        """Join cells until they are at least as wide."""
        if (times := exponent - self.exponent) > 0:
            cells, self.cells, self.exponent = self.cells, Counter(), exponent
            for cell, count in cells.items():
                self.cells[cell >> times] += count

    def summary(self, nodes: tuple[Any, ...], targets: tuple[Any, ...] | None = None, pairs: int | None = None) -> Statistics:
        """Return the statistics of all gathered distances, by default of all pairs of nodes.

        Raises TooLargeError if the bins of the histogram exceed the memory.
        """
        blocks = sorted(self._rows, key=lambda rows: rows[0])
        eccentricities, sums = (np.concatenate([block[c] for block in blocks] or [np.zeros(0)]) for c in (1, 2))
        best, pair = self._greatest, None
        if len(best.values):
            pair = FarthestPair(nodes[best.rows[0]], (targets or nodes)[best.columns[0]], float(best.values[0]))
        pairs = len(nodes) * (len(nodes) - 1) if pairs is None else pairs
        return Statistics(nodes, eccentricities, self.connected, float(sums.sum()), *self._histogram(), pair, pairs)

    def _count(self, distances: Array, times: Array | None = None) -> None:
        """Count distances of connected pairs, each once or `times`."""
        self.connected += distances.size if times is None else int(times.sum())
        if self.edges is not None:
            self.counts += np.histogram(distances, self.edges, weights=times)[0]
            return
        if not self.most:
            return
        self.whole = self.whole and bool((distances == np.floor(distances)).all())
        exponent = max(self.exponent, cell_exponent(float(distances.min()), float(distances.max()), self.most))
        cells, which, counts = np.unique(np.floor(np.ldexp(distances, -exponent)), return_inverse=True, return_counts=True)
        if times is not None:
            counts = np.zeros(len(cells), np.int64)
            np.add.at(counts, which, times)
        self._join(exponent, dict(zip(map(int, cells.tolist()), counts.tolist(), strict=True)))

    def _histogram(self) -> tuple[Array, Array]:
        """Return the counts, and the edges of the bins."""
        if self.edges is not None:
            return self.counts, self.edges
        if not self.cells:
            return np.zeros(0, dtype=np.int64), np.zeros(1)
        if self.whole:
            self._widen(0)
        first, last = min(self.cells), max(self.cells)
        count = last - first + 1
        require_bytes(16 * count, f"a histogram of {count:,} bins takes", "ask for fewer bins")
        counts = np.zeros(count, dtype=np.int64)
        counts[np.array(list(self.cells)) - first] = list(self.cells.values())
        return counts, np.ldexp(np.arange(first, last + 2, dtype=np.float64), self.exponent)


def add_by_elimination(found: RunningDistances, matrix: Factorization, meter: Meter | None = None) -> None:
    """Add all distances of an eliminated graph over min-plus: tallied as they are found, or by rows."""
    whole = matrix.distribution(found.most, meter=meter) if found.edges is None else None
    if whole is None:
        for first, (rows,) in matrix.blocks(meter):
            found.add(first, as_floats(rows, MIN_PLUS))
        return
    edges = matrix.edges
    every, leaves = np.arange(edges.n), np.zeros(edges.n, dtype=bool)
    leaves[edges.tails[(edges.tails != edges.heads) & (edges.weights[0] < edges.zero[0])]] = True
    found.add_all(whole, leaves, lambda source: as_floats(matrix.between(np.array([source]), every, every_target=True)[0], MIN_PLUS)[0])
