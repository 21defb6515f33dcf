"""`Statistics`: what the distances of a graph are, all together; and those of a graph that was eliminated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.factorization import Factorization
from semiring.common.html import BAR, Shown, beside
from semiring.common.progress import Meter
from semiring.common.units import counted
from semiring.results.farthest import FarthestPair
from semiring.results.running import BINS, RunningDistances
from semiring.results.views import as_floats

__all__ = ["Statistics", "add_by_elimination", "statistics_from"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(Shown):
    """What the distances of a graph are, all together; `statistics` makes it.

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
        The vertices.
    eccentricities : float64 array of shape (n,)
        For each vertex the distance to the farthest one; ∞ where it does not reach all.
    connected : int
        Pairs between which there is a path.
    total : float
        The sum of their distances (of an undirected graph twice the Wiener index).
    counts : int64 array of shape (k,)
        How many distances of connected pairs lie in each bin.
    bins : float64 array of shape (k + 1,)
        The edges of the bins, each of which has its lower edge, and the last one also its upper edge.
    farthest : FarthestPair or None
        The source, the target and the distance of the pair that is the farthest apart of all connected ones; of several, that of the
        first row. None where no pair is connected.
    """

    nodes: tuple[Any, ...]
    eccentricities: Array
    connected: int
    total: float
    counts: Array
    bins: Array
    farthest: FarthestPair | None = None

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
        """The greatest finite distance, that of `farthest`; NaN where no pair is connected."""
        return math.nan if self.farthest is None else float(self.farthest.distance)

    @property
    def average(self) -> float:
        """The average distance of connected pairs; NaN where there is none."""
        return self.total / self.connected if self.connected else math.nan

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        n = len(self.nodes)
        facts = [
            ("connected", f"{self.connected:,} of {n * (n - 1):,} pairs"),
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
        if math.isfinite(self.diameter):  # which is the largest finite distance
            figures = figures[:3]
        return f"<{title}: {connected} connected, {', '.join(f'{name} {text}' for name, text in figures)}>"

    def _repr_html_(self) -> str:
        return beside(super()._repr_html_(), self._histogram())

    def _histogram(self) -> str:
        """The histogram as HTML: a bar for each bin."""
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
    """The style of a bar that is so high beside the highest one; a single pair is seen too."""
    return f";height:{100 * part:.3g}%;min-height:1px;background:{BAR}" if part else ""


def statistics_from(found: RunningDistances, nodes: tuple[Any, ...]) -> Statistics:
    """What distances have come to."""
    pair = None
    if found.farthest is not None:
        source, target, distance = found.farthest
        pair = FarthestPair(nodes[source], nodes[target], distance)
    return Statistics(nodes, found.eccentricities, found.connected, found.total, *found.histogram(), pair)


def add_by_elimination(found: RunningDistances, matrix: Factorization, meter: Meter | None = None) -> None:
    """Add all distances of a graph that was eliminated over min-plus: tallied as they are found, or rows as they come by."""
    whole = matrix.distribution(found.most, meter=meter) if found.edges is None else None
    if whole is None:
        for first, (rows,) in matrix.blocks(meter):
            found.add(first, as_floats(rows, MIN_PLUS))
        return
    edges = matrix.edges
    every, leaves = np.arange(edges.n), np.zeros(edges.n, dtype=bool)
    leaves[edges.tails[(edges.tails != edges.heads) & (edges.weights[0] < edges.zero[0])]] = True
    found.add_all(whole, leaves, lambda source: as_floats(matrix.between(np.array([source]), every, every_target=True)[0], MIN_PLUS)[0])
