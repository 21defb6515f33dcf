"""The nearest sources of each vertex, beside all rows, NetworkX and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring.algorithms.csr import CSR
from semiring.algorithms.nearest import nearest_sources
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import Searches, searches_for
from semiring.kernels.cpu.loops import interpreted
from tests.algorithms.test_rows_of_edges import matrix
from tests.algorithms.test_search import graphs

CASES: list[Any] = [
    (sr.MIN_PLUS, (np.float64,)),
    (sr.MIN_PLUS, (np.int16,)),
    (sr.MAX_MIN, (np.float32,)),
    (sr.BOOLEAN, (np.bool_,)),
    (sr.DISTANCE_HOPS, (np.float64, np.int32)),
]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("semiring", "dtypes"), CASES)
@given(data=st.data(), k=st.integers(1, 4))
def test_the_best_of_all_rows(semiring: sr.Semiring, dtypes: Any, compiled: bool, data: Any, k: int) -> None:
    drawn = data.draw(graphs(dtypes))
    zero, one = semiring.identities(drawn.dtypes)
    edges = CSR.of(drawn.tails, drawn.heads, drawn.weights, drawn.n, zero)
    n = edges.n
    sources = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5, unique=True)) if n else [], np.int64)
    if not len(sources):
        return
    searches = searches_for(semiring, edges.dtypes, "cpu") if compiled else None
    found = nearest_sources(semiring, edges, sources, k, searches)
    with interpreted():
        again = nearest_sources(semiring, edges, sources, k, searches)
    for x, y in zip((*found.values, found.sources, found.tree), (*again.values, again.sources, again.tree), strict=True):
        assert x.tobytes() == y.tobytes()
    rows = rows_of_edges(semiring, edges, sources)
    operations = Searches(semiring, edges.dtypes).operations
    dense = edges.dense()
    for v in range(n):
        elements = {int(s): tuple(x[i, v] for x in rows) for i, s in enumerate(sources)}
        reached = [s for s, x in elements.items() if operations.better(x, zero)]
        mine = [int(s) for s in found.sources[v] if s >= 0]
        assert len(mine) == len(set(mine)) == min(k, len(reached))
        for rank, s in enumerate(mine):
            element = tuple(x[v, rank] for x in found.values)
            assert element == elements[s]
            assert not any(operations.better(elements[t], element) for t in reached if t not in mine[: rank + 1])
            path, walk = found.path(v, rank), one
            assert (path[0], path[-1]) == (s, v)
            for a, b in itertools.pairwise(path):
                walk = operations.mul(walk, tuple(w[a, b] for w in dense))
            assert walk == element
        for rank in range(len(mine), k):
            assert tuple(x[v, rank] for x in found.values) == zero
            assert found.path(v, rank) == []


def test_negative_edges() -> None:
    """Where no search is best-first, one source and several."""
    graph = nx.gnp_random_graph(12, 0.3, seed=4, directed=True)
    rng = np.random.default_rng(1)
    height = rng.integers(0, 9, 12)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.integers(0, 5) + height[v] - height[u])
    tails, heads, weights = (np.array(x) for x in zip(*sorted(graph.edges(data="weight")), strict=True))
    edges, sources = CSR.of(tails, heads, (weights,), 12, (np.inf,)), np.array([5, 2, 9])
    lengths = np.array([[nx.single_source_bellman_ford_path_length(graph, s).get(v, np.inf) for s in sources] for v in range(12)])
    for k in (1, 2, 3):
        found = nearest_sources(sr.MIN_PLUS, edges, sources, k, searches_for(sr.MIN_PLUS, edges.dtypes, "cpu"))
        np.testing.assert_allclose(found.values[0], np.sort(lengths, axis=1)[:, :k])


def test_many_sources_beside_scipy() -> None:
    n, rng = 2000, np.random.default_rng(0)
    places = np.unique(rng.integers(0, n * n, 3 * n))
    edges = CSR.of(places // n, places % n, (rng.random(len(places)),), n, (np.inf,))
    sources = rng.choice(n, 40, replace=False)
    searches = searches_for(sr.MIN_PLUS, edges.dtypes, "cpu")
    distances, _, nearest = csgraph.dijkstra(matrix(edges), indices=sources, min_only=True, return_predecessors=True)
    one = nearest_sources(sr.MIN_PLUS, edges, sources, 1, searches)
    np.testing.assert_allclose(one.values[0][:, 0], distances)
    assert np.array_equal(one.sources[:, 0], np.where(nearest < 0, -1, nearest))
    three = nearest_sources(sr.MIN_PLUS, edges, sources, 3, searches)
    every = np.sort(csgraph.dijkstra(matrix(edges), indices=sources), axis=0)
    np.testing.assert_allclose(three.values[0].T, every[:3])


@pytest.mark.parametrize("compiled", [True, False])
def test_paths_among_ties(compiled: bool) -> None:
    """Where many elements tie, the vertex before may keep other sources; a path follows its own source all the same."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        a = np.where(rng.random((n, n)) < 0.5, rng.integers(0, 3, (n, n)), -np.inf).astype(np.float32)
        tails, heads = np.nonzero(a > -np.inf)
        edges = CSR.of(tails, heads, (a[tails, heads],), n, (-np.inf,))
        sources = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
        found = nearest_sources(sr.MAX_MIN, edges, sources, 2, searches_for(sr.MAX_MIN, edges.dtypes, "cpu") if compiled else None)
        for v in range(n):
            for rank in range(2):
                path = found.path(v, rank)
                assert bool(path) == (found.sources[v, rank] >= 0)
                if path:
                    width = min((a[x, y] for x, y in itertools.pairwise(path)), default=np.inf)
                    assert (path[0], path[-1], width) == (found.sources[v, rank], v, found.values[0][v, rank])
