"""`sr.nearest` as users call it: kinds of graphs, labels, semirings, and errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr


def test_labels_and_cells_beside_networkx() -> None:
    graph = nx.relabel_nodes(nx.gnp_random_graph(30, 0.1, seed=3), {v: f"v{v}" for v in range(30)})
    for i, (u, v) in enumerate(graph.edges):
        graph[u][v]["weight"] = 1 + i * 0.618 % 1
    centers = ["v0", "v7", "v20"]
    found = sr.nearest(graph, centers)
    searched: Any = nx.multi_source_dijkstra(graph, set(centers))
    lengths, paths = searched
    for node, value, source in zip(found.nodes, found.values, found.sources, strict=True):
        assert (value, source) == ((lengths[node], paths[node][0]) if node in lengths else (np.inf, None))
        assert found.path(node) == paths.get(node, [])
    expected = {k: set(v) for k, v in nx.voronoi_cells(graph, set(centers)).items()}
    cells = {k: set(v) for k, v in found.cells().items()}
    assert {k: v for k, v in cells.items() if k is not None} == {k: v for k, v in expected.items() if k in centers}


@pytest.mark.parametrize("k", [1, 2, 5])
def test_dense_and_sparse_matrices(k: int) -> None:
    rng = np.random.default_rng(0)
    a = np.where(rng.random((20, 20)) < 0.2, rng.integers(0, 5, (20, 20)), np.inf)
    a.flags.writeable = False
    one = sr.nearest(np.asfortranarray(a), [3, 4, 9, 9], k=k)
    tails, heads = np.nonzero(np.isfinite(a))
    other = sr.nearest(sp.coo_array((a[tails, heads], (tails, heads)), shape=a.shape), np.array([9, 3, 4]), k=k)
    assert np.array_equal(one.values, other.values)
    rows = np.sort(sr.apsp(a, sources=[3, 4, 9]), axis=0).T
    padded = np.full((20, 5), np.inf)
    padded[:, :3] = rows
    assert np.array_equal(one.values, padded[:, 0] if k == 1 else padded[:, :k])
    assert one.sources.shape == ((20,) if k == 1 else (20, k))
    assert set(np.unique(one.sources).tolist()) <= {3, 4, 9, -9999}


def test_other_semirings() -> None:
    widths = sr.edges([("a", "b", 5.0), ("b", "c", 2.0), ("d", "c", 3.0)])
    found = sr.nearest(widths, ["a", "d"], "max-min")
    assert found.values.tolist() == [np.inf, 5.0, 3.0, np.inf]
    assert found.sources.tolist() == ["a", "a", "d", "d"]
    counted = sr.nearest(sr.edges([(0, 1, 2.0), (1, 2, 2.0), (3, 2, 4.0)]), [0, 3], sr.DISTANCE_HOPS)
    assert [v.tolist() for v in counted.values] == [[0, 2, 4, 0], [0, 1, 1, 0]]
    exact = np.array([[0, Fraction(1, 3)], [Fraction(1, 7), 0]], dtype=object)
    assert sr.nearest(exact, [0], k=2).values.tolist() == [[0, np.inf], [Fraction(1, 3), np.inf]]


def test_negative_edges_and_cycles() -> None:
    assert sr.nearest(sr.edges([("a", "b", 4), ("b", "c", -3)]), "a").values.tolist() == [0, 4, 1]
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.nearest(sr.edges([("a", "b", 1), ("b", "c", -3), ("c", "b", 1)]), "a")
    assert set(caught.value.cycle or ()) == {"b", "c"}
    assert sr.nearest(sr.edges([("a", "b", 1), ("c", "d", -3), ("d", "c", 1)]), "a").values.tolist() == [0, 1, np.inf, np.inf]


def test_graphs_of_few_vertices() -> None:
    nothing = sr.nearest(np.zeros((0, 0)), [])
    assert (nothing.values.shape, nothing.cells(), repr(nothing)) == ((0,), {}, "<nearest of 0 sources for 0 vertices: 0 reached>")
    assert sr.nearest(np.zeros((1, 1)), []).sources.tolist() == [-9999]
    assert "reached" in sr.nearest(np.zeros((1, 1)), [0])._repr_html_()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: sr.nearest(g, ["x"]), sr.GraphError, "'x'"),
        (lambda g: sr.nearest(g, [0], k=0), sr.SemiringError, "k is 0; k must be a whole number from 1"),
        (lambda g: sr.nearest(g, [0], k=True), sr.SemiringError, "k is True"),
        (lambda g: sr.nearest(g, [0], "plus-times"), sr.LawError, "selective"),
        (lambda g: sr.nearest(np.stack([g, g]), [0]), sr.GraphError, "batch"),
        (lambda g: sr.nearest(g, [0]).path(5), sr.GraphError, "5"),
        (lambda g: sr.nearest(g, [0]).path([0, 1]), sr.GraphError, "no vertex"),
        (lambda g: sr.nearest(g, [0], k=2).path(0, 2), sr.GraphError, "rank is 2; 2 sources"),
        (lambda g: sr.nearest(np.full((2, 2), np.nan), [0]), sr.DomainError, "NaN"),
    ],
)
def test_refusals(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(np.array([[0.0, 1.0], [1.0, 0.0]]))
