"""Potentials of sparse graphs with negative edges, and what rests on them: rows, trees, diameter and radius, the next best paths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph, csr_array

import semiring as sr
from semiring.algorithms import distances as searched_distances
from semiring.algorithms import rows_of_edges
from semiring.algorithms.bellman_ford import potentials_by_components
from semiring.algorithms.csr import CSR
from semiring.algorithms.search import Searches, searches_for

INF = math.inf


@st.composite
def reweighed_graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]]]:
    """Edges that are as light as potentials make them, so that no cycle is negative, though edges are."""
    n = draw(st.integers(1, 12))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    pairs = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=40, unique=True)) if n > 1 else []
    if draw(st.booleans()):
        pairs = [(u, v) for u, v in pairs if u < v]
        return n, [(u, v, draw(st.integers(-9, 9))) for u, v in pairs]
    height = draw(st.lists(st.integers(-20, 20), min_size=n, max_size=n))
    return n, [(u, v, draw(st.integers(0, 9)) - height[u] + height[v]) for u, v in pairs]


def distances(n: int, edges: list[tuple[int, int, int]]) -> Any:
    """All distances by NetworkX's Bellman–Ford."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(edges)
    found = np.full((n, n), INF)
    for u, row in nx.all_pairs_bellman_ford_path_length(graph):
        for v, length in row.items():
            found[u, v] = length
    return found


def searches(semiring: sr.Semiring, edges: CSR) -> Searches:
    found = searches_for(semiring, edges.dtypes, "cpu")
    assert found is not None
    return found


def compressed(n: int, edges: list[tuple[int, int, int]], dtype: Any = np.float64) -> CSR:
    tails, heads, weights = np.array(sorted(edges), dtype=np.int64).reshape(-1, 3).T
    return CSR.of(tails, heads, (weights.astype(dtype),), n, (INF if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max,))


@given(reweighed_graphs(), st.sampled_from([np.float64, np.float32, np.int64, np.int32]), st.booleans())
def test_no_edge_improves_with_them(graph: Any, dtype: Any, greatest: bool) -> None:
    n, edges = graph
    semiring = sr.MAX_PLUS if greatest else sr.MIN_PLUS
    if greatest:
        edges = [(u, v, -w) for u, v, w in edges]
    given_edges = compressed(n, edges, dtype)
    p = potentials_by_components(semiring, given_edges, searches(semiring, given_edges))
    assert p is not None
    assert p.dtype == dtype
    for u, v, w in edges:
        assert (p[u] + w <= p[v]) if greatest else (p[u] + w >= p[v])


def test_other_semirings_and_negative_cycles_have_none() -> None:
    circle = compressed(2, [(0, 1, 1), (1, 0, -2)])
    assert potentials_by_components(sr.MIN_PLUS, circle, searches(sr.MIN_PLUS, circle)) is None
    assert potentials_by_components(sr.MAX_TIMES, circle, searches(sr.MAX_TIMES, circle)) is None


@given(reweighed_graphs(), st.sampled_from(["float64", "float32", "int64", "int32"]))
def test_rows_whose_search_takes_long_go_by_potentials(graph: Any, dtype: str) -> None:
    n, edges = graph
    listed = sr.edges(edges, nodes=range(n))
    expected = distances(n, edges)
    infinite = INF if dtype.startswith("f") else np.iinfo(dtype).max
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_of_edges, "_SHORT_PATIENCE", 0)
        rows = sr.apsp(listed, sources=[0, n - 1], dtype=dtype)
        columns = sr.apsp(listed, targets=[0, n - 1], dtype=dtype)
        paths = sr.apsp(listed, sources=[0], paths=True, dtype=dtype)
        longest = sr.closure(sr.edges([(u, v, -w) for u, v, w in edges], nodes=range(n)), "max-plus", sources=[0], dtype=float)
    assert [[INF if x == infinite else x for x in row] for row in rows.tolist()] == expected[[0, n - 1]].tolist()
    assert [[INF if x == infinite else x for x in row] for row in columns.T.tolist()] == expected[:, [0, n - 1]].T.tolist()
    np.testing.assert_array_equal(-longest[0], expected[0])
    lengths = {(u, v): w for u, v, w in edges}
    for v in range(n):
        path = paths.path(0, v)
        assert bool(path) == (expected[0, v] < INF)
        assert not path or sum(lengths[step] for step in itertools.pairwise(path)) == expected[0, v]


@given(reweighed_graphs())
def test_extreme_eccentricities(graph: Any) -> None:
    n, edges = graph
    apart = np.where(np.eye(n, dtype=bool), -INF, distances(n, edges))
    eccentricities = apart.max(axis=1) if n > 1 else np.zeros(1)
    listed = sr.edges(edges, nodes=range(n))
    assert sr.diameter(listed) == eccentricities.max()
    assert sr.radius(listed) == eccentricities.min()


def test_a_line_of_negative_edges_has_no_diameter() -> None:
    n = 20_000
    line = csr_array((-np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))
    assert sr.diameter(line) == INF
    assert sr.apsp(line, sources=0, targets=n - 1) == 1 - n


def test_a_negative_cycle_beside_components_is_told() -> None:
    for question in (sr.diameter, sr.radius):
        with pytest.raises(sr.NegativeCycleError, match="weight -1"):
            question(sr.edges([(0, 1, -2.0), (1, 0, 1.0), (2, 3, 4.0)]))


def test_vertices_without_distance_have_one_eccentricity() -> None:
    """Leaves of weight 0 are as central as the hub, and need no searches of their own."""
    n = 5_000
    weights = np.concatenate([np.zeros(n // 2), np.random.default_rng(0).random(n - 1 - n // 2)])
    star = sr.edges(np.zeros(n - 1, dtype=int), np.arange(1, n), weights, directed=False)
    assert sr.radius(star) == weights.max()


@pytest.mark.parametrize("shape", ["star", "tree"])
def test_the_radius_takes_few_searches_where_ways_back_differ(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, rng, made, search = 600, np.random.default_rng(1), list[int](), rows_of_edges.rows_of_edges

    def counted(*args: Any, **kwargs: Any) -> Any:
        made.append(1)
        return search(*args, **kwargs)

    monkeypatch.setattr(searched_distances, "rows_of_edges", counted)
    leaves = np.arange(1, n)
    parents = 0 * leaves if shape == "star" else (leaves * rng.random(n - 1)).astype(int)
    graph = csr_array((rng.random(2 * n - 2), (np.r_[parents, leaves], np.r_[leaves, parents])), shape=(n, n))
    expected = csgraph.dijkstra(graph).max(axis=1)
    assert sr.radius(graph) == pytest.approx(expected.min(), rel=1e-12)
    assert len(made) <= 20
    tails, heads = graph.nonzero()
    edges = CSR.of(tails, heads, (graph[tails, heads],), n, (INF,))
    center = searched_distances.extreme_eccentricity(edges, greatest=False, every=True)
    assert center is not None
    assert center[1].tolist() == np.flatnonzero(expected <= expected.min() * (1 + 1e-12)).tolist()


@given(reweighed_graphs(), st.integers(1, 6))
def test_the_next_best_paths_are_those_of_enumeration(graph: Any, k: int) -> None:
    n, edges = graph
    simple = nx.DiGraph()
    simple.add_nodes_from(range(n))
    simple.add_weighted_edges_from(edges)
    every = [[0]] if n == 1 else nx.all_simple_paths(simple, 0, n - 1)
    lengths = sorted(sum(simple[u][v]["weight"] for u, v in itertools.pairwise(path)) for path in every)
    found = sr.k_shortest_paths(sr.edges(edges, nodes=range(n)), 0, n - 1, k)
    assert [path.distance for path in found] == lengths[:k]
    assert len({tuple(path.path) for path in found}) == len(found)
    for path in found:
        assert len(set(path.path)) == len(path.path)
        assert sum(simple[u][v]["weight"] for u, v in itertools.pairwise(path.path)) == path.distance


@pytest.mark.parametrize("count", [1, 7, 300])
def test_a_factor_of_many_components(count: int) -> None:
    """Whole components share a task; their rows are those of each component alone."""
    rng = np.random.default_rng(count)
    sizes = rng.integers(1, 6, count)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    edges = [
        (int(first + u), int(first + v), float(rng.integers(1, 9)))
        for first, size in zip(starts, sizes, strict=False)
        for u in range(size)
        for v in range(size)
        if u != v and rng.random() < 0.7
    ]
    n = int(starts[-1])
    factor = sr.factor(sr.edges(edges, nodes=range(n)))
    np.testing.assert_array_equal(factor.rows(range(n)), distances(n, edges))  # type: ignore[arg-type]  # floats that are whole
    others = [(u, v, w + 1) for u, v, w in edges]
    factor.update(np.array([w for _, _, w in others]))
    np.testing.assert_array_equal(factor.rows(range(n)), distances(n, others))  # type: ignore[arg-type]  # floats that are whole
