"""Statistics of all distances of a sparse graph without a row of distances: sums and counts by hops, extreme eccentricities by bounds.

`distance_sums` serves graphs with equally long edges. Breadth-first searches from many vertices at once count hops along reversed edges, a
bit for each vertex (`semiring.algorithms.hops`), so that each vertex counts its own distances to all others.

`extreme_eccentricity` finds diameter and periphery, radius and center by a few searches out of n (Takes and Kosters, 2011, 2013). A search
from v finds the eccentricity e(v), the greatest distance from v, and the triangle inequality bounds all other eccentricities,

    max(d(w, v), e(v) − d(v, w))  ≤  e(w)  ≤  d(w, v) + e(v),

where a backward search finds d(w, v) unless the graph is symmetric. For the diameter, searches begin by turns at the vertex with the
greatest upper bound and with the least lower bound; for the radius, always at the least lower bound. A backward search from the farthest
vertex f then raises each lower bound of e(w) to d(w, f): most vertices are farthest from the same end (SumSweep; Borassi et al., 2015).

The result is exactly the greatest or least of the n eccentricities that searches find. Rounding changes a distance of at most n
edges by a relative n·ε; the bounds are widened by as much, and no eccentricity counts as known without a search.

Examples
--------
>>> tails, heads = np.array([0, 1, 1, 2, 2, 3]), np.array([1, 0, 2, 1, 3, 2])
>>> line = CSR.of(tails, heads, (np.ones(6),), 4, (np.inf,))
>>> extreme_eccentricity(line, greatest=True, every=True)
(3.0, array([0, 3]))
>>> extreme_eccentricity(line, greatest=False, every=True)
(2.0, array([1, 2]))
>>> found = distance_sums(line)
>>> found.connected, found.totals, found.farthest, found.distances, found.counts
(array([3, 3, 3, 3]), array([6., 4., 4., 6.]), array([3., 2., 2., 3.]), array([1., 2., 3.]), array([6, 4, 2]))
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.bellman_ford import potentials_by_components, reweighed
from semiring.algorithms.csr import CSR
from semiring.algorithms.hops import hop_sums
from semiring.algorithms.rows_of_edges import rows_of_edges, search_order
from semiring.algorithms.search import searches_for
from semiring.arrays.conversion import Array
from semiring.arrays.pieces import HOST, slices
from semiring.arrays.threads import thread_count
from semiring.common.progress import Meter
from semiring.kernels.limits import half_range

__all__ = ["DistanceSums", "counts_hops", "distance_sums", "extreme_eccentricity", "extreme_of"]


class DistanceSums(NamedTuple):
    """Statistics of the distances between different vertices, as integers and float64."""

    connected: Array  # other vertices reached from each vertex
    totals: Array  # sum of the distances from each vertex
    farthest: Array  # greatest distance from each vertex; 0 if a vertex reaches no other
    distances: Array  # distances that occur, of shape (k,)
    counts: Array  # pairs of vertices at each of these distances


def distance_sums(edges: CSR, *, threads: int | None = None, meter: Meter | None = None) -> DistanceSums | None:
    """Count the distances of all pairs of a graph with equally long edges; return None for other graphs, or if rounding plays a part.

    Nothing is rounded if k·w is exact for each number k of hops, and sums of distances are exact in float64, in any order. The meter gets
    n + m steps for each search.
    """
    if not counts_hops(edges):
        return None
    graph = edges.transposed()
    found = hop_sums((graph.starts, graph.heads), np.arange(edges.n), thread_count(threads), meter=meter)
    if found is None or not _is_exact(edges.weights[0][0], len(found.found), int(found.total.sum())):
        return None
    length = float(edges.weights[0][0])
    distances = np.arange(1, len(found.found)) * length
    return DistanceSums(found.reaching - 1, found.total * length, found.last * length, distances, found.found[1:])


def counts_hops(edges: CSR) -> bool:
    """Return True if all edges are equally long, and sums of their lengths are exact."""
    m = len(edges.heads)
    if not m or edges.dtypes[0].kind == "O" or search_order(MIN_PLUS, edges) != "levels":
        return False
    return _is_exact(edges.weights[0][0], 1, m)


def _is_exact(length: Any, hops: int, total: int) -> bool:
    """Return True if a path of so many hops is exact in the dtype of the length, and a sum of `total` hops in float64."""
    dtype, whole = length.dtype, length.item().as_integer_ratio()[0]
    bits = np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 63
    return bool(hops * whole <= 1 << bits and hops * length.item() < half_range(dtype) and total * whole <= 1 << 53)


_PART, _FEW = {"levels": 128, "best": 4}, 16
"""n // _PART + _FEW is the most searches; beyond, other ways to all distances are faster."""


def extreme_eccentricity(edges: CSR, *, greatest: bool, every: bool, threads: int | None = None) -> tuple[float, Array] | None:
    """Find the greatest or the least eccentricity, and the vertices with this eccentricity: `every` one, or at least one.

    Return None if bounds do not help: without vertices and for distances beyond float64. For graphs with negative edges also return None
    if potentials are not found quickly, if `every` vertex is wanted, or if the result is 0 or less.
    """
    order, n, slack = search_order(MIN_PLUS, edges), edges.n, _slack(edges)
    if not n or slack is None:
        return None
    searches, p = searches_for(MIN_PLUS, edges.dtypes, "cpu", threads), None
    if order == "rounds":  # Johnson's algorithm: searches of p_u + a_uv − p_v ≥ 0
        p = None if every or searches is None else potentials_by_components(MIN_PLUS, edges, searches)
        if p is None:
            return None
        edges, order = reweighed(MIN_PLUS, edges, (p,), (-p,)), "best"
        p = p.astype(np.float64)

    def distances(v: int, *, backward: bool) -> Array:
        (row,) = rows_of_edges(MIN_PLUS, edges, np.array([v]), backward=backward, searches=searches, order=order)[0]
        found = np.where(row == edges.zero[0], math.inf, row).astype(np.float64)
        return found if p is None else found + (p[v] - p if backward else p - p[v])

    asked = set[int]()
    bounds, degrees = _Bounds(n, slack, 0.0 if p is None else slack * float(np.abs(p).max())), edges.starts[1:] - edges.starts[:-1]
    for turn in range(n // _PART[order] + _FEW):
        some = bounds.candidates(greatest=greatest, every=every)
        if not len(some):
            value, vertices = bounds.extreme(greatest=greatest)
            return None if p is not None and value <= 0 else (value, vertices)
        far = bounds.upper[some] if greatest and turn % 2 == 0 else -bounds.lower[some]
        some = some[far == far.max()]
        v = int(some[degrees[some].argmax()])
        there = distances(v, backward=False)
        bounds.learn(there, there if edges.symmetric else distances(v, backward=True))
        if not greatest and (f := int(there.argmax())) not in asked:
            asked.add(f)
            back = distances(f, backward=True)
            bounds.learn(back if edges.symmetric else None, back)
    return None


def extreme_of(edges: CSR, farthest: Array, *, greatest: bool, every: bool, threads: int | None = None) -> tuple[float, Array]:
    """Find the greatest or least of given finite eccentricities, and the vertices with this eccentricity; no edge may be negative.

    A given distance may be rounded in any order of its edges. If `every` vertex is wanted, searches from the candidates repeat the
    eccentricities, so that ties are the ties of searches.
    """
    best, slack, order = farthest.max() if greatest else farthest.min(), _slack(edges), search_order(MIN_PLUS, edges)
    near = np.flatnonzero(np.abs(farthest - best) <= best * slack) if slack else np.flatnonzero(farthest == best)
    if slack and every and order == "best" and len(near) > 1:
        found, searches = np.empty(len(near)), searches_for(MIN_PLUS, edges.dtypes, "cpu", threads)
        for some in slices(len(near), edges.n, HOST):
            (rows,) = rows_of_edges(MIN_PLUS, edges, near[some], searches=searches, order=order)
            found[some] = rows.max(axis=1)
        best = found.max() if greatest else found.min()
        near = near[found == best]
    return best, near


def _slack(edges: CSR) -> float | None:
    """Return the relative rounding error of a bound: 0 for exact sums of whole numbers, None for large integers and objects."""
    (weights,) = edges.weights
    if weights.dtype.kind == "O":
        return None
    eps = float(np.finfo(weights.dtype if weights.dtype.kind == "f" else np.float64).eps)
    if 2 * edges.n * float(np.abs(weights).max(initial=0)) * eps < 1 and bool((weights == np.floor(weights)).all()):
        return 0.0
    return 4 * edges.n * eps if weights.dtype.kind == "f" else None


class _Bounds:
    """Lower and upper bounds of all eccentricities, equal for known eccentricities."""

    def __init__(self, n: int, slack: float, margin: float = 0.0) -> None:
        self.slack, self.margin = slack, margin
        self.lower, self.upper = np.zeros(n), np.full(n, math.inf)

    def learn(self, there: Array | None, back: Array) -> None:
        """Narrow the bounds by the distances `back` to a vertex v, and `there` from v, if known."""
        unknown = self.lower < self.upper
        if there is None:
            np.fmax(self.lower, back * (1 - self.slack) - self.margin, out=self.lower, where=unknown)
            return
        farthest = float(there.max())
        with np.errstate(invalid="ignore"):  # ∞ − ∞ is NaN, which bounds nothing
            np.fmax(self.lower, np.fmax(back, farthest - there) * (1 - self.slack) - self.margin, out=self.lower, where=unknown)
        np.minimum(self.upper, (back + farthest) * (1 + self.slack) + self.margin, out=self.upper, where=unknown)
        same = (there == 0) & (back == 0)  # v itself, and vertices at distance 0 both ways
        self.lower[same] = self.upper[same] = farthest

    def candidates(self, *, greatest: bool, every: bool) -> Array:
        """List the vertices that may have a more extreme eccentricity than the best known (`every`: or as extreme)."""
        bound, best = (-self.upper, -self.lower.max()) if greatest else (self.lower, self.upper.min())
        return np.flatnonzero((self.lower < self.upper) & ((bound <= best) if every else (bound < best)))

    def extreme(self, *, greatest: bool) -> tuple[float, Array]:
        """Return the extreme eccentricity and the vertices known to have it, after the last candidate."""
        value = float(self.lower.max() if greatest else self.upper.min())
        return value, np.flatnonzero((self.lower == value) & (self.upper == value))
