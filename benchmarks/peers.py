"""Other ways to all-pairs shortest paths from Python, each used as its documentation suggests and only where it is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property  # noqa: TID251  # no benchmark forks
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["PEERS", "Graph", "Peer"]

Array = np.ndarray[Any, Any]
Solver = Callable[[], Any]
"""Computes the distances of a graph that has been handed over before."""


@dataclass(frozen=True)
class Graph:
    """A random directed graph with weights in (0.001, 1.001).

    Attributes
    ----------
    n : int
    degree : int or None
        Edges that leave a vertex; None for all n − 1.
    """

    n: int
    degree: int | None = None

    @cached_property
    def dense(self) -> Array:
        """The float32 matrix: 0 on the diagonal, ∞ where there is no edge."""
        random = np.random.default_rng(self.n)
        weights = random.random((self.n, self.n), dtype=np.float32) + np.float32(1e-3)
        if self.degree is not None:
            edges = np.zeros((self.n, self.n), dtype=bool)
            edges[np.repeat(np.arange(self.n), self.degree), random.integers(0, self.n, self.n * self.degree)] = True
            weights[~edges] = np.inf
        np.fill_diagonal(weights, 0)
        return weights

    @cached_property
    def edges(self) -> tuple[Array, Array, Array]:
        """Sources, targets and weights."""
        sources, targets = np.nonzero(np.isfinite(self.dense) & ~np.eye(self.n, dtype=bool))
        return np.ascontiguousarray(sources), np.ascontiguousarray(targets), self.dense[sources, targets].astype(float)

    @property
    def sparse(self) -> Any:
        """SciPy's sparse array of the edges."""
        sources, targets, weights = self.edges
        return import_module("scipy.sparse").csr_array((weights, (sources, targets)), shape=(self.n, self.n))


@dataclass(frozen=True)
class Peer:
    """A way to compare with.

    Attributes
    ----------
    package : str
        What has to be installed.
    prepare : callable
        Hands a graph over, which is not timed, and gives the solver, which is.
    largest : int
        More vertices take too long.
    dense : bool
        Whether it solves complete graphs; else those of few edges, which suit it better (or take less time to hand over).
    """

    package: str
    prepare: Callable[[Graph], Solver]
    largest: int = 4096
    dense: bool = True


def scipy_floyd_warshall(graph: Graph) -> Solver:
    floyd_warshall = import_module("scipy.sparse.csgraph").floyd_warshall
    return lambda: floyd_warshall(graph.dense)


def scipy_dijkstra(graph: Graph) -> Solver:
    dijkstra, sparse = import_module("scipy.sparse.csgraph").dijkstra, graph.sparse
    return lambda: dijkstra(sparse)


def rustworkx_floyd_warshall(graph: Graph) -> Solver:
    rustworkx = import_module("rustworkx")
    g = rustworkx.PyDiGraph(multigraph=False)
    g.add_nodes_from(range(graph.n))
    g.add_edges_from(list(zip(*(x.tolist() for x in graph.edges), strict=True)))
    return lambda: rustworkx.floyd_warshall_numpy(g, weight_fn=float)


def networkit_dijkstra(graph: Graph) -> Solver:
    networkit = import_module("networkit")
    sources, targets, weights = graph.edges
    g = networkit.GraphFromCoo((weights, (sources, targets)), n=graph.n, weighted=True, directed=True)
    return lambda: networkit.distance.APSP(g).run().getDistances(asarray=True)


def networkx_floyd_warshall(graph: Graph) -> Solver:
    networkx = import_module("networkx")
    g = networkx.DiGraph()
    g.add_nodes_from(range(graph.n))
    g.add_weighted_edges_from(zip(*(x.tolist() for x in graph.edges), strict=True))
    return lambda: networkx.floyd_warshall_numpy(g)


def graphblas_squaring(graph: Graph) -> Solver:
    graphblas = import_module("graphblas")
    weights = graphblas.Matrix.from_dense(graph.dense)
    min_plus, minimum = graphblas.semiring.min_plus, graphblas.binary.min

    def solve() -> Any:
        d = weights.dup()
        for _ in range(math.ceil(math.log2(graph.n))):
            d(minimum).update(min_plus(d @ d))
        return d.to_dense()

    return solve


def numba_floyd_warshall(graph: Graph) -> Solver:
    return lambda: _numba_kernel(graph.dense.copy())


def _numba_kernel(d: Array) -> Array:
    global _compiled
    if _compiled is None:
        numba = import_module("numba")
        prange = numba.prange

        def floyd_warshall(d: Array) -> Array:
            n = len(d)
            for k in range(n):
                for i in prange(n):
                    through = d[i, k]
                    for j in range(n):
                        d[i, j] = min(d[i, j], through + d[k, j])
            return d

        _compiled = numba.njit(parallel=True)(floyd_warshall)
    result: Array = _compiled(d)
    return result


_compiled: Any = None


def torch_rank_one(graph: Graph) -> Solver:
    torch = import_module("torch")
    weights = torch.from_numpy(graph.dense)

    def solve() -> Any:
        d, through = weights.clone(), torch.empty_like(weights)
        for k in range(graph.n):
            torch.add(d[:, k : k + 1], d[k], out=through)
            torch.minimum(d, through, out=d)
        return d.numpy()

    return solve


def jax_rank_one(graph: Graph) -> Solver:
    jax = import_module("jax")
    numpy, lax = jax.numpy, jax.lax
    weights = numpy.asarray(graph.dense)

    def update(k: Any, d: Any) -> Any:
        return numpy.minimum(d, lax.dynamic_slice_in_dim(d, k, 1, 1) + lax.dynamic_slice_in_dim(d, k, 1, 0))

    closure = jax.jit(lambda d: lax.fori_loop(0, graph.n, update, d)).lower(weights).compile()
    return lambda: np.asarray(closure(weights))


def tropical_gemm_squaring(graph: Graph) -> Solver:
    product = import_module("tropical_gemm").minplus_matmul_2d

    def solve() -> Any:
        d = graph.dense
        for _ in range(math.ceil(math.log2(graph.n))):
            d = product(d, d)
        return d

    return solve


PEERS = {
    "scipy floyd_warshall": Peer("scipy", scipy_floyd_warshall),
    "scipy dijkstra, degree 20": Peer("scipy", scipy_dijkstra, dense=False),
    "rustworkx floyd_warshall_numpy": Peer("rustworkx", rustworkx_floyd_warshall, dense=False),
    "networkit APSP, degree 20": Peer("networkit", networkit_dijkstra, dense=False),
    "networkx floyd_warshall_numpy": Peer("networkx", networkx_floyd_warshall, largest=1024, dense=False),
    "python-graphblas min_plus squaring": Peer("python-graphblas", graphblas_squaring, largest=1024),
    "numba prange Floyd–Warshall": Peer("numba", numba_floyd_warshall),
    "torch rank-1 updates": Peer("torch", torch_rank_one),
    "jax rank-1 updates": Peer("jax", jax_rank_one),
    "tropical-gemm squaring": Peer("tropical-gemm", tropical_gemm_squaring),
}
"""The peers by name."""
