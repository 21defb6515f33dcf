"""Problems of shortest paths, drawn at random: kinds of graphs, their weights, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay

__all__ = ["KINDS", "Problem", "draw", "graph"]

Array = np.ndarray[Any, Any]
Random = np.random.Generator

_LARGEST = 20_000
"""Vertices of a problem."""

_EDGES = 2_000_000
"""Edges of a problem."""

_ENTRIES = 100_000_000
"""Entries of the rows that are asked for."""

_TIES = 0.2
"""How many of the edges of a triangulation that are not in its tree a power grid has: 1.4 lines a bus."""


@dataclass(frozen=True)
class Problem:
    """A graph and what is asked of it.

    Attributes
    ----------
    face : {"apsp", "csgraph"}
        Which of the library's functions is asked: `semiring.apsp`, or `semiring.csgraph.shortest_path`.
    kind : str
        Of the graph, see `KINDS`.
    n : int
    degree : int
        Edges that leave a vertex, on average; of a grid, a tree or a power grid it follows from the kind.
    weights : {"weighted", "unit", "negative"}
        Negative: of some edges, but of no cycle.
    dtype : str
    sources, targets : int
        How many vertices paths begin at and end at; n for all.
    paths : bool
    seed : int
    """

    face: str
    kind: str
    n: int
    degree: int
    weights: str
    dtype: str
    sources: int
    targets: int
    paths: bool
    seed: int

    def __str__(self) -> str:
        rows = "all pairs" if self.sources == self.n else "one pair" if self.targets == 1 else f"{self.sources} sources"
        what = f"{self.kind} {self.n:,}" + (f", degree {self.degree}" if KINDS[self.kind] is not None else "")
        return f"{self.face}: {what}, {self.weights} {self.dtype}, {rows}{' with paths' if self.paths else ''}"

    @property
    def which(self) -> Array:
        """The vertices that paths begin at."""
        return np.linspace(0, self.n - 1, self.sources).astype(np.intp)


def draw(count: int, seed: int, *, most: int = _LARGEST) -> list[Problem]:
    """Problems of up to `most` vertices; as many of each kind as of any other."""
    rng = np.random.default_rng(seed)
    return [_problem(tuple(KINDS)[i % len(KINDS)], rng, most) for i in range(count)]


def _problem(kind: str, rng: Random, most: int) -> Problem:
    face = rng.choice(["apsp", "apsp", "csgraph"])
    n = int(np.exp(rng.uniform(np.log(8), np.log(min(most, 4000) if kind == "complete" else most))))
    degree = int(min(np.exp(rng.uniform(0, np.log(64))), _EDGES / n, n - 1))
    dtype = rng.choice(["float64", "float32"] if face == "csgraph" else ["float64", "float32", "int32"])
    sources = int(rng.choice([n, n, n, n, n, n, min(n, 8), min(n, 100), n // 2, 1]))
    pair = bool(sources == 1 and face == "apsp")
    paths = bool(rng.random() < 0.3)
    weights = rng.choice(["weighted", "weighted", "unit", "negative"])
    return Problem(
        str(face),
        kind,
        n,
        n - 1 if kind == "complete" else degree,
        str(weights),
        str(dtype),
        max(1, min(sources, _ENTRIES // n)),
        1 if pair else n,
        paths,
        int(rng.integers(1 << 31)),
    )


def graph(problem: Problem) -> Any:
    """The graph of a problem: a sparse array of its dtype, or if it is complete a dense one."""
    rng = np.random.default_rng(problem.seed)
    n, dtype = problem.n, np.dtype(problem.dtype)
    make = KINDS[problem.kind]
    tails, heads = _ends(problem.kind, n, rng) if make is None else make(n, problem.degree, rng)
    edges = np.unique(np.stack([tails, heads])[:, tails != heads], axis=1)
    # Whole numbers, which every dtype adds exactly. w + h(v) − h(u) is negative on some edges, but on a cycle the sum of w; it is odd, so
    # that no weight is 0, which dense matrices cannot have everywhere.
    weights = np.ones(edges.shape[1]) if problem.weights == "unit" else 2.0 * rng.integers(0, 500, edges.shape[1]) + 1
    if problem.weights == "negative":
        height = 2.0 * rng.integers(0, 500, n)
        weights += height[edges[1]] - height[edges[0]]
    if problem.kind != "complete":
        return sp.csr_array((weights.astype(dtype), tuple(edges)), shape=(n, n))
    infinity = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    matrix = np.full((n, n), infinity, dtype)
    matrix[tuple(edges)] = weights
    np.fill_diagonal(matrix, 0)
    return matrix


def _ends(kind: str, n: int, rng: Random) -> tuple[Array, Array]:
    """Both ends of the edges of a graph whose degree follows from its kind, which all go both ways."""
    if kind == "grid":
        side = max(2, int(np.sqrt(n)))
        v = np.arange(n)
        along, down = v[(v % side < side - 1) & (v + 1 < n)], v[v + side < n]
        u, v = np.concatenate([along, down]), np.concatenate([along + 1, down + side])
    elif kind == "tree":
        v = np.arange(1, n)
        u = (rng.random(n - 1) * v).astype(np.intp)
    else:
        u, v = _power_grid(n, rng)
    order = rng.permutation(n)  # numbers that say nothing of who is near
    u, v = order[u], order[v]
    return np.concatenate([u, v]), np.concatenate([v, u])


def _power_grid(n: int, rng: Random) -> tuple[Array, Array]:
    """A shortest tree of points in the plane, and some more edges of their triangulation."""
    points = rng.random((n, 2))
    corners = Delaunay(points).simplices
    pairs = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    tree = minimum_spanning_tree(sp.csr_array((lengths, tuple(pairs.T)), shape=(n, n))).tocoo()
    more = pairs[rng.random(len(pairs)) < _TIES]
    return np.concatenate([tree.row, more[:, 0]]), np.concatenate([tree.col, more[:, 1]])


def _random(n: int, degree: int, rng: Random) -> tuple[Array, Array]:
    tails, heads = rng.integers(0, n, (2, n * degree))
    return tails, heads


def _power_law(n: int, degree: int, rng: Random) -> tuple[Array, Array]:
    """Few vertices have most of the edges, which go both ways."""
    likely = 1 / np.arange(1, n + 1) ** 0.6
    ends = rng.choice(n, (2, -(-n * degree // 2)), p=likely / likely.sum())
    return np.concatenate(list(ends)), np.concatenate(list(ends[::-1]))


def _acyclic(n: int, degree: int, rng: Random) -> tuple[Array, Array]:
    ends = np.sort(rng.integers(0, n, (2, n * degree)), axis=0)
    return ends[0], ends[1]


def _apart(n: int, degree: int, rng: Random, parts: int = 8) -> tuple[Array, Array]:
    """Eight random graphs, no edge between them."""
    tails, heads = rng.integers(0, n, (2, n * degree))
    heads = np.minimum(heads // parts * parts + tails % parts, n - 1)
    return tails, np.where(heads % parts == tails % parts, heads, tails)


def _complete(n: int, degree: int, rng: Random) -> tuple[Array, Array]:
    ends = np.indices((n, n)).reshape(2, -1)
    return ends[0], ends[1]


KINDS: Mapping[str, Callable[[int, int, Random], tuple[Array, Array]] | None] = {
    "grid": None,
    "tree": None,
    "power grid": None,
    "random": _random,
    "power law": _power_law,
    "acyclic": _acyclic,
    "apart": partial(_apart, parts=8),
    "complete": _complete,
}
"""Kinds of graphs, by how both ends of their edges are drawn; None where the number of edges follows from n."""
