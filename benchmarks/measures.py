"""Cycle means, betweenness and the k shortest simple paths, beside igraph, networkit, NetworkX and SciPy.

    python -m benchmarks.measures
    python -m benchmarks.measures --only "cycle mean" --vertices 1000000 --degree 10
    pip install networkx igraph networkit

Cycle means are of random graphs on a ring, with integers from 1 to 10,000 for weights or floats from 0 to 1, and include the reading of
SciPy's array. Betweenness and paths are those of NetworkX's functions by this library's backend, which read a NetworkX graph; peers get the
graph in their own form. Times are the best of three rounds on all threads; igraph, NetworkX and SciPy have one. What NetworkX takes for
betweenness is told by a few of its sources.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import semiring as sr
from benchmarks.measure import best, installed, machine, print_table, version

_SOURCES, _PATHS = 10, 20
"""Sources by which NetworkX's time for betweenness is told; simple paths that are asked for."""


def _on_a_ring(n: int, degree: int, *, integers: bool) -> Any:
    """A random graph with a cycle through all vertices."""
    rng = np.random.default_rng(n + degree)
    tails = np.concatenate([np.arange(n), rng.integers(0, n, n * (degree - 1))])
    heads = np.concatenate([(np.arange(n) + 1) % n, rng.integers(0, n, n * (degree - 1))])
    weights = rng.integers(1, 10_001, n * degree).astype(float) if integers else rng.random(n * degree)
    return sp.coo_array((weights, (tails, heads)), shape=(n, n)).tocsr()


def _cycle_means(n: int, degree: int) -> None:
    rows = []
    for integers in (True, False):
        graph = _on_a_ring(n, degree, integers=integers)
        for semiring in (sr.MAX_PLUS, sr.MIN_PLUS):
            found = sr.cycle_mean(graph, semiring)
            assert found.cycle is not None
            seconds = best(partial(sr.cycle_mean, graph, semiring))
            with_vector = best(partial(_eigenvector, graph, semiring), 2)
            kind = "integers" if integers else "floats"
            rows.append([kind, semiring.name, f"{found.mean:.8g}", str(len(found.cycle)), f"{seconds:.2f} s", f"{with_vector:.2f} s"])
    print_table([f"n = {n:,}, m = {graph.nnz:,}", "over", "mean", "edges", "mean and cycle", "with the eigenvector"], rows, keys=2)


def _eigenvector(graph: Any, semiring: sr.Semiring) -> Any:
    """The eigenvector beside the mean."""
    return sr.cycle_mean(graph, semiring).eigenvector


def _by_networkit(networkit: Any, graph: Any) -> None:
    """Betweenness of all vertices."""
    networkit.centrality.Betweenness(graph).run()


def _networks() -> dict[str, Any]:
    """Graphs of NetworkX with integer weights."""
    graphs = {
        "random, n = 3,000, m = 15,000": nx.gnm_random_graph(3000, 15_000, seed=1),
        "grid, 60 × 60": nx.convert_node_labels_to_integers(nx.grid_2d_graph(60, 60)),
        "power law, n = 5,000, m = 20,000": nx.barabasi_albert_graph(5000, 4, seed=1),
    }
    for graph in graphs.values():
        rng = np.random.default_rng(2)
        for *_, data in graph.edges(data=True):
            data["weight"] = int(rng.integers(1, 100))
    return graphs


def _betweenness() -> None:
    rows = []
    for name, graph in _networks().items():
        for weight in (None, "weight"):
            ours = best(partial(nx.betweenness_centrality, graph, weight=weight, backend="semiring"))
            theirs = best(partial(nx.betweenness_centrality, graph, _SOURCES, weight=weight, seed=1, backend="networkx"), 1)
            peers: list[Callable[[], Any] | None] = [None, None]
            if (igraph := installed("igraph")) is not None:
                peers[0] = partial(igraph.Graph.from_networkx(graph).betweenness, weights=weight)
            if (networkit := installed("networkit")) is not None:
                peers[1] = partial(_by_networkit, networkit, networkit.nxadapter.nx2nk(graph, weightAttr=weight))
            seconds = [f"{best(work, 2):.2f} s" if work else "-" for work in peers]
            share = f"{theirs * len(graph) / _SOURCES:.0f} s"
            rows.append([name, "lengths" if weight else "hops", f"{ours:.2f} s", *seconds, share])
    print_table(["betweenness", "of", "semiring", "igraph", "networkit", "NetworkX"], rows, keys=2)


def _simple_paths() -> None:
    rows = []
    for name, graph in _networks().items():
        last = len(graph) - 1

        def paths(backend: str, graph: Any = graph, last: int = last) -> list[Any]:
            return list(itertools.islice(nx.shortest_simple_paths(graph, 0, last, weight="weight", backend=backend), _PATHS))

        matrix = nx.to_scipy_sparse_array(graph, dtype=float, format="csr")
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        ours = [distance for distance, _ in sr.k_shortest_paths(matrix, 0, last, _PATHS)]
        np.testing.assert_allclose(ours, csgraph.yen(matrix, 0, last, _PATHS))
        seconds = [
            best(partial(sr.k_shortest_paths, matrix, 0, last, _PATHS)),
            best(partial(csgraph.yen, matrix, 0, last, _PATHS), 1),
            best(partial(paths, "semiring")),
            best(partial(paths, "networkx"), 1),
        ]
        rows.append([name, *(f"{1e3 * s:.1f} ms" for s in seconds)])
    print_table([f"{_PATHS} simple paths", "k_shortest_paths", "SciPy's yen", "NetworkX's by semiring", "NetworkX's"], rows)


def main() -> None:
    every = ["cycle mean", "betweenness", "simple paths"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=10)
    given = parser.parse_args()
    print(f"{machine()}; {', '.join(map(version, ('scipy', 'networkx', 'igraph', 'networkit')))}")
    nx.config.warnings_to_ignore.add("cache")
    if "cycle mean" in given.only:
        _cycle_means(given.vertices, given.degree)
    if "betweenness" in given.only:
        _betweenness()
    if "simple paths" in given.only:
        _simple_paths()


if __name__ == "__main__":
    main()
