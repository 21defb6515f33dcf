"""`node_weight`: a path pays for each vertex that it enters."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

INF = math.inf


@given(data=st.data(), n=st.integers(0, 6), reflexive=st.booleans())
def test_the_matrix_with_the_costs_in_its_columns(data: Any, n: int, reflexive: bool) -> None:
    weights = data.draw(st.lists(st.sampled_from([INF, 0.0, 1.0, 2.0]), min_size=n * n, max_size=n * n))
    a = np.array(weights).reshape(n, n)
    np.fill_diagonal(a, INF)
    costs = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    before, paid = a.copy(), a + costs
    expected = sr.closure(paid, "min-plus", nonedge=INF, reflexive=reflexive)
    tails, heads = np.nonzero(np.isfinite(a))
    graph = nx.DiGraph()
    graph.add_nodes_from((v, {"cost": costs[v]}) for v in range(n))
    graph.add_edges_from((int(u), int(v), {"weight": a[u, v]}) for u, v in zip(tails, heads, strict=True))
    for g, cost in [
        (a, costs),
        (sp.csr_array((a[tails, heads], (tails, heads)), shape=(n, n)), costs.tolist()),
        (graph, "cost" if n else []),
    ]:
        cases: list[dict[str, Any]] = [{}, {"paths": True}, {"limit": 4.0}, {"sources": [0]} if n else {}, {"overwrite": True}]
        for more in cases:
            used = g.copy()
            nonedge = INF if isinstance(g, np.ndarray) else None
            found: Any = sr.closure(used, "min-plus", reflexive=reflexive, node_weight=cost, nonedge=nonedge, **more)
            if "paths" in more:
                for i, j in itertools.permutations(range(n), 2):
                    path = found.path(i, j)
                    assert (sum(paid[e] for e in itertools.pairwise(path)) if path else INF) == expected[i, j]
                    assert (next(iter(found.all_paths(i, j)), []) == []) == (path == [])
                found = found.values
            if "limit" in more:
                assert found.nnz == (expected <= 4).sum()
                continue
            assert np.array_equal(found, expected[[0]] if "sources" in more else expected)
    assert np.array_equal(a, before)


def test_kinds_and_the_diagonal() -> None:
    igraph = pytest.importorskip("igraph")
    a = np.array([[0, 1], [2, 0]])
    assert sr.apsp(a, node_weight=[5, 7]).tolist() == [[0, 8], [7, 0]]
    assert sr.apsp(a, node_weight=[-1, 7]).tolist() == [[0, 8], [1, 0]]  # what stands on the diagonal is no edge
    assert sr.apsp(np.stack([a, 2 * a]), node_weight=[5, 7]).tolist() == [[[0, 8], [7, 0]], [[0, 9], [9, 0]]]
    exact = sr.apsp(a.astype(object), node_weight=[Fraction(1, 3), Fraction(1, 2)])
    assert exact[0, 1] == Fraction(3, 2)
    top = np.iinfo(np.int64).max
    assert sr.apsp(np.array([[0, top], [2, 0]]), node_weight=[5, 7]).tolist() == [[0, top], [7, 0]]
    assert sr.closure(np.array([[0, 0.5], [0, 0]]), "max-times", node_weight=[1, 0.5])[0, 1] == 0.25
    hops = sr.closure(np.array([[INF, 1.0], [INF, INF]]), sr.DISTANCE_HOPS, node_weight=[2.0, 3.0], nonedge=INF)
    assert [v[0, 1] for v in hops] == [4, 2]
    graph = igraph.Graph(edges=[(0, 1)], directed=True, vertex_attrs={"toll": [1, 2]}, edge_attrs={"weight": [3]})
    assert sr.apsp(graph, node_weight="toll")[0].tolist() == [0, 5]
    reached = sr.transitive_closure(sr.edges([("a", "b"), ("b", "c")]), node_weight=[True, False, True])
    assert reached.tolist() == [[False, False, False], [False, False, True], [False, False, False]]


def test_refusals() -> None:
    a, graph = np.array([[0, 1], [2, 0]]), nx.DiGraph([(0, 1)])
    graph.nodes[0]["toll"] = 1
    for arguments, error, message in [
        ((a, [1, 2, 3]), sr.ShapeError, r"\(3,\).*\(2,\)"),
        ((a, "toll"), sr.GraphError, "no vertex of .* has the attribute 'toll'"),
        ((graph, "tolls"), sr.GraphError, "no vertex of .* has the attribute 'tolls'"),
        ((graph, "toll"), sr.GraphError, "vertex 1 has no 'toll'"),
        ((a, [0.5, 1]), sr.DTypeError, "vertex 0"),
        ((a, [np.iinfo(np.int64).max - 1, 1]), sr.OverflowRiskError, "int64"),
        ((a.astype(float), [math.nan, 1]), sr.SemiringError, "node_weight|NaN|nan"),
        (([a, a[:1, :1]], [1, 2]), sr.SemiringError, "one graph"),
    ]:
        with pytest.raises(error, match=message):
            sr.apsp(arguments[0], node_weight=arguments[1])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_on_a_gpu(dtype: Any) -> None:
    cupy = pytest.importorskip("cupy")
    rng, n = np.random.default_rng(0), 70
    none = INF if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    a = np.where(rng.random((n, n)) < 0.1, rng.integers(0, 9, (n, n)), none).astype(dtype)
    costs, given = rng.integers(0, 9, n).astype(dtype), cupy.asarray(a)
    cases: list[dict[str, Any]] = [{}, {"reflexive": False}, {"sources": [9, 3]}, {"targets": [2]}, {"overwrite": True}]
    for options in cases:
        expected = sr.closure(a, "min-plus", node_weight=costs, **options)
        for cost in (costs, costs.tolist(), cupy.asarray(costs)):
            found = sr.closure(given, "min-plus", node_weight=cost, **options)
            assert isinstance(found, cupy.ndarray)
            np.testing.assert_array_equal(found.get(), expected)
    expected = sr.apsp(a, node_weight=costs)
    np.testing.assert_array_equal(sr.apsp(a, node_weight=cupy.asarray(costs)), expected)
    paths, paid = sr.apsp(given, node_weight=costs, paths=True), a.astype(float) + costs
    np.testing.assert_array_equal(paths.values.get(), expected)
    for i, j in itertools.permutations(range(0, n, 7), 2):
        path = paths.path(i, j)
        assert (sum(paid[e] for e in itertools.pairwise(path)) if path else none) == expected[i, j]
    batch = np.stack([a, a.T])
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(batch), node_weight=costs).get(), sr.apsp(batch, node_weight=costs))
    np.testing.assert_array_equal(given.get(), a)


@pytest.mark.gpu
def test_other_elements_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    rng, n = np.random.default_rng(1), 50
    there = rng.random((n, n)) < 0.1
    distance, hops, odds = np.where(there, 3.0, INF), np.where(there, 1.0, INF), np.where(there, 0.5, 0.0)
    costs = rng.integers(0, 9, n).astype(float)
    found = sr.closure((cupy.asarray(distance), cupy.asarray(hops)), sr.DISTANCE_HOPS, node_weight=cupy.asarray(costs))
    for x, y in zip(found, sr.closure((distance, hops), sr.DISTANCE_HOPS, node_weight=costs), strict=True):
        np.testing.assert_array_equal(x.get(), y)
    halves = 2.0 ** -(costs % 2)
    expected = sr.closure(odds, "max-times", node_weight=halves)
    np.testing.assert_array_equal(sr.closure(cupy.asarray(odds), "max-times", node_weight=halves).get(), expected)
    expected = sr.transitive_closure(there, node_weight=costs > 2)
    np.testing.assert_array_equal(sr.transitive_closure(cupy.asarray(there), node_weight=cupy.asarray(costs > 2)).get(), expected)
    with pytest.raises(sr.ShapeError, match=r"\(2,\).*\(50,\)"):
        sr.apsp(cupy.asarray(distance), node_weight=cupy.ones(2))
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(v).cuda() for v in (distance, costs)]
    tensor = sr.apsp(tensors[0], node_weight=tensors[1])
    assert isinstance(tensor, torch.Tensor)
    assert tensor.is_cuda
    np.testing.assert_array_equal(tensor.cpu().numpy(), sr.apsp(distance, node_weight=costs))
