"""Places for the vertices of a drawing, by multidimensional scaling: distances in the picture approximate distances in the graph.

- Classical scaling (Torgerson, 1952) takes the two directions in which squared distances vary most. For many vertices, the distances to a
  few pivots are enough (Brandes and Pich, 2007).
- Majorization of the stress (de Leeuw's SMACOF, with the weights of Kamada and Kawai) then separates coincident vertices, such as the
  leaves of a star.

The components of a graph are placed side by side.

Examples
--------
>>> square = layout(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.ones(4))
>>> sides = np.linalg.norm(square - np.roll(square, 1, axis=0), axis=1)
>>> bool(np.ptp(sides) < 0.01)
True
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.components import weak_of_edges
from semiring.algorithms.csr import CSR, in_order
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.kernels.select import searches_for

__all__ = ["layout"]

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

_ALL, _PIVOTS = 500, 50  # most vertices for which all distances are used; pivots of larger graphs
_ROUNDS = 50  # of the majorization


def layout(n: int, tails: Numbers, heads: Numbers, lengths: Array) -> Array:
    """Place the vertices of a graph, with edges of nonnegative lengths in either direction; the result has shape (n, 2)."""
    graph = _undirected(n, tails, heads, lengths)
    label = weak_of_edges(n, graph.tails, graph.heads)
    order = np.argsort(label, kind="stable")
    components = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if n else []
    components.sort(key=len, reverse=True)
    parts = [_placed(graph.induced(some) if len(some) > 1 else None) for some in components]
    places = np.zeros((n, 2))
    for some, part in zip(components, _side_by_side(parts), strict=True):
        places[some] = part
    return places


def _undirected(n: int, tails: Numbers, heads: Numbers, lengths: Array) -> CSR:
    """Return the graph with each edge in both directions; the shortest of parallel edges counts."""
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    order = np.lexsort((lengths, high, low))
    low, high, lengths = low[order], high[order], lengths[order]
    first = (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0)
    first &= low != high
    low, high, lengths = low[first], high[first], lengths[first]
    both = np.append(low, high), np.append(high, low), (np.append(lengths, lengths),)
    return CSR.of(*in_order(n, *both, lambda places, weights: (places, weights)), n, (math.inf,))


def _placed(graph: CSR | None) -> Array:
    if graph is None:
        return np.zeros((1, 2))
    everywhere = graph.n <= _ALL
    distances = _rows(graph, np.arange(graph.n)) if everywhere else _from_pivots(graph)
    places = _scaled(distances)
    return _upright(_majorized(places, distances) if everywhere else places)


def _rows(graph: CSR, sources: Numbers) -> Array:
    searches = searches_for(MIN_PLUS, graph.dtypes, "cpu")
    (distances,) = rows_of_edges(MIN_PLUS, graph, sources, searches=searches)
    return np.asarray(distances)


def _from_pivots(graph: CSR) -> Array:
    """Return the distances from pivots far apart: each pivot is the vertex farthest from the earlier ones."""
    rows = [_rows(graph, np.array([0]))[0]]
    nearest = np.full(graph.n, math.inf)
    for _ in range(_PIVOTS):
        pivot = int((nearest if len(rows) > 1 else rows[0]).argmax())
        rows.append(_rows(graph, np.array([pivot]))[0])
        nearest = np.minimum(nearest, rows[-1])
    return np.array(rows[1:])


def _scaled(distances: Array) -> Array:
    """Apply classical scaling to the distances from k pivots to n vertices."""
    squares = distances**2
    centered = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    sizes, vectors = np.linalg.eigh(centered @ centered.T)
    k, n = distances.shape
    roots = np.sqrt(np.maximum(sizes[:-3:-1], 0))  # centered = vectors · root · rightᵀ, and √root · right are the places
    wide = roots > 1e-9 * max(roots[0], 1e-300)
    places = np.zeros((n, 2))
    places[:, : len(roots)] = np.where(wide, centered.T @ vectors[:, :-3:-1] / np.sqrt(np.where(wide, roots, 1)) * (n / k) ** 0.25, 0)
    return places


def _majorized(places: Array, distances: Array) -> Array:
    """Move vertices closer to the wanted distances, in relative terms; each round minimizes a bound on the stress."""
    n = len(places)
    most = float(distances.max())
    if not most:  # all distances are 0
        angles = 2 * np.pi * np.arange(n) / n
        return np.column_stack([np.cos(angles), np.sin(angles)])
    wanted = np.maximum(distances, most / (3 * math.sqrt(n)))  # so that vertices do not cover each other
    np.fill_diagonal(wanted, 1)
    weights = wanted**-2.0
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + weights.mean())  # equal to the pseudoinverse of the Laplacian on centered places
    places = places + np.random.default_rng(0).normal(scale=most * 1e-3, size=places.shape)  # separates coincident vertices
    for _ in range(_ROUNDS):
        x, y = places.T
        pulls = -weights * wanted / np.maximum(np.hypot(x[:, None] - x, y[:, None] - y), 1e-9 * most)
        np.fill_diagonal(pulls, 0)
        np.fill_diagonal(pulls, -pulls.sum(axis=1))
        places = inverse @ (pulls @ places)
    return places


def _upright(places: Array) -> Array:
    """Rotate the places so that the picture is wider than high; signs are fixed, for reproducible pictures."""
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places.T @ places)
    places = places @ axes.T
    farthest = np.abs(places).argmax(axis=0)
    return places * np.where(places[farthest, [0, 1]] < 0, -1, 1)


def _side_by_side(parts: list[Array]) -> list[Array]:
    """Arrange components, the largest first, in rows as wide as the picture allows."""
    if len(parts) < 2:
        return parts
    sizes = np.array([np.ptp(part, axis=0) for part in parts])
    counts = np.array([len(part) for part in parts])
    spread = float(np.sqrt((sizes.max(axis=1) ** 2 / counts).max())) or 1.0  # about as far apart as neighbours
    sizes = sizes + 0.7 * spread
    width = max(float(sizes[0, 0]), 1.4 * math.sqrt(float(sizes.prod(axis=1).sum())))
    found, x, y, height = [], 0.0, 0.0, 0.0
    for part, (w, h) in zip(parts, sizes.tolist(), strict=True):
        if x and x + w > width:
            x, y, height = 0.0, y - height, 0.0
        low, high = part.min(axis=0), part.max(axis=0)
        found.append(part - (low[0], high[1]) + (x + (w - (high[0] - low[0])) / 2, y - (h - (high[1] - low[1])) / 2))
        x, height = x + w, max(height, h)
    return found
