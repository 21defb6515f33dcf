"""Rows of dense graphs by products, against SciPy's searches, by SciPy's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipys

from semiring import csgraph
from semiring.planning import planner

INF = np.inf

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True, scope="module")
def by_products() -> Any:
    """Products are predicted to be fastest, wherever they apply."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "_plans", {})
        for name in ("closure_seconds", "search_seconds", "scipy_seconds"):
            patch.setattr(planner, name, lambda *_, **__: 1.0)
        patch.setattr(planner, "rows_seconds", lambda *_, **__: 0.0)
        yield


def solved(graph: Any, indices: Any, **options: Any) -> tuple[Array, Array]:
    """Distances and predecessors, which are asked for without each other too."""
    assert csgraph.explain(graph, indices=indices, **options).strategy == "rows by products"
    distances, before = csgraph.shortest_path(graph, return_predecessors=True, indices=indices, **options)
    np.testing.assert_array_equal(csgraph.shortest_path(graph, indices=indices, **options), distances)
    return distances, before


def assert_trees(graph: Array, indices: Array, distances: Array, before: Array) -> None:
    """Each predecessor is at the beginning of an edge that makes up the distance; `graph` has ∞ for no edge."""
    assert before.dtype == np.int32
    for source, lengths, tree in zip(indices, distances, before, strict=True):
        there = np.isfinite(lengths) & (np.arange(len(graph)) != source)
        assert ((tree >= 0) == there).all()
        assert (tree[~there] == -9999).all()
        assert (lengths[tree[there]] + graph[tree[there], np.flatnonzero(there)] == lengths[there]).all()


@given(data=st.data())
def test_any_dense_graph(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    entries = st.integers(0, 6).map(float) | st.sampled_from([INF, -INF, np.nan, 0.0])
    graph = np.array(data.draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
    graph = graph.astype(data.draw(st.sampled_from(["float64", "float32", "float16"])))
    if np.isfinite(graph).all() and data.draw(st.booleans()):
        graph = graph.astype(data.draw(st.sampled_from(["int64", "uint8"])))
    if data.draw(st.booleans()):
        graph = np.repeat(np.asfortranarray(graph), 2, axis=1)[:, ::2]
    indices = np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=n + 2)))
    directed, unweighted = data.draw(st.booleans()), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    kept = graph.copy()
    distances, before = solved(graph, indices, directed=directed, unweighted=unweighted, dtype=dtype)
    np.testing.assert_array_equal(graph, kept)
    clean = graph.astype(float)
    clean[~np.isfinite(clean)] = 0
    expected = scipys.dijkstra(clean, directed, indices, unweighted=unweighted)
    np.testing.assert_array_equal(distances, expected)
    assert distances.dtype == dtype
    weights = np.where(clean == 0, INF, 1.0 if unweighted else clean)
    assert_trees(weights if directed else np.minimum(weights, weights.T), indices % n, distances, before)


@given(data=st.data())
def test_negative_edges(data: st.DataObject) -> None:
    """Of no negative cycle: those of potentials. Then with one, which counts where a source reaches it."""
    n = data.draw(st.integers(2, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    height = rng.integers(0, 20, n)
    graph = np.where(rng.random((n, n)) < data.draw(st.sampled_from([0.3, 1.0])), 2.0 * rng.integers(0, 9, (n, n)) + 1, INF)
    graph += 2 * (height[None] - height[:, None])
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n)))
    distances, before = solved(graph, indices)
    np.testing.assert_array_equal(distances, scipys.johnson(graph, indices=indices))
    np.fill_diagonal(graph, INF)
    assert_trees(graph, indices, distances, before)
    apart = np.full((n + 2, n + 2), INF)
    apart[:n, :n] = graph
    apart[n, n + 1] = apart[n + 1, n] = -1
    np.testing.assert_array_equal(solved(apart, indices)[0][:, :n], distances)
    apart[indices[0], n] = 5
    with pytest.raises(csgraph.NegativeCycleError) as caught:
        csgraph.shortest_path(apart, indices=indices)
    assert set(caught.value.cycle or ()) == {n, n + 1}


def test_a_negative_loop_counts_where_it_is_reached() -> None:
    graph = np.array([[0, 1, 0], [1, 0, 0], [0, 1, -1.0]])
    assert solved(graph, [0])[0].tolist() == [[0, 1, INF]]
    with pytest.raises(csgraph.NegativeCycleError):
        csgraph.shortest_path(graph, indices=[0, 2])


def test_shapes_limits_and_masks() -> None:
    rng = np.random.default_rng(0)
    graph = rng.integers(1, 100, (40, 40)).astype(float)
    for indices in (7, -1, [3], [[1, 2, 1], [0, 39, 5]]):
        np.testing.assert_array_equal(solved(graph, indices)[0], scipys.dijkstra(graph, indices=indices))
    found, before = csgraph.dijkstra(graph, indices=[4, 4], limit=9, return_predecessors=True)
    expected = scipys.dijkstra(graph, indices=[4, 4], limit=9)
    np.testing.assert_array_equal(found, expected)
    assert ((before >= 0) <= np.isfinite(found)).all()
    masked = np.ma.masked_greater(graph - 1, 50)
    np.testing.assert_array_equal(solved(masked, [0, 3])[0], scipys.dijkstra(masked, indices=[0, 3]))
    assert solved(np.zeros((1, 1)), 0)[0].tolist() == [0]


def test_weights_that_float32_cannot_hold() -> None:
    graph = np.full((3, 3), 1e300)
    with pytest.raises(TypeError, match="float32"):
        csgraph.shortest_path(graph, indices=0, dtype=np.float32)
