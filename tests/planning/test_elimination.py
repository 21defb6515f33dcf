"""Calls that the planner answers by sparse elimination: the same numbers as by searches, the same errors, and when it is thought of."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import semiring as sr
from semiring.kernels import machine
from semiring.planning import planner


@pytest.fixture
def eliminated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elimination is thought of for any graph from which more than a few rows are asked, and predicted to take nothing."""
    monkeypatch.setattr(machine, "TRIAL", 0)
    monkeypatch.setattr(machine, "TRIAL_ELIMINATION", 0)
    monkeypatch.setattr(planner, "elimination_seconds", lambda problem: 0.0)


def grid(side: int = 12) -> Any:
    """A grid with whole weights, each of which differs from that of the other direction."""
    rng = np.random.default_rng(1)
    pattern = nx.to_scipy_sparse_array(nx.grid_2d_graph(side, side), format="csr")
    pattern.data = rng.integers(1, 30, len(pattern.data)).astype(float)
    return pattern


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_all_rows_and_some(dtype: str) -> None:
    graph = grid()
    expected = csgraph.dijkstra(graph)
    assert sr.explain(graph).strategy == "elimination"
    np.testing.assert_array_equal(sr.apsp(graph, dtype=dtype), expected)
    some = np.random.default_rng(2).permutation(144)[:100]
    np.testing.assert_array_equal(sr.apsp(graph, sources=some, dtype=dtype), expected[some])
    np.testing.assert_array_equal(sr.apsp(graph, targets=some, dtype=dtype), expected[:, some])
    np.testing.assert_array_equal(sr.apsp(graph, sources=some[:70], targets=some[5:], dtype=dtype), expected[np.ix_(some[:70], some[5:])])
    widest = sr.closure(graph, "max-min")
    np.testing.assert_array_equal(widest, sr.closure(graph.toarray(), "max-min", nonedge=0))


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("options", [{}, {"directed": False}, {"unweighted": True}, {"indices": range(2, 90)}, {"limit": 40.0}])
def test_csgraph(options: dict[str, Any]) -> None:
    graph = grid()
    assert sr.csgraph.explain(graph, **options).strategy == "elimination"
    np.testing.assert_array_equal(sr.csgraph.dijkstra(graph, **options), csgraph.dijkstra(graph, **options))


def are_trees(graph: Any, roots: Any, found: Any, *, backward: bool = False) -> None:
    """Each vertex that is reached has its distance by the edge from its predecessor, and leads back to its root."""
    for root, row, before in zip(roots, *found, strict=True):
        reached = np.flatnonzero(np.isfinite(row) & (np.arange(len(row)) != root))
        u, v = (reached, before[reached]) if backward else (before[reached], reached)
        np.testing.assert_allclose(row[before[reached]] + np.asarray(graph[u, v]).ravel(), row[reached], rtol=1e-13)
        for _ in range(len(row)):
            reached = before[reached[reached != root]]
        assert not len(reached)
        assert before[root] < 0


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("weights", ["whole", "zero", "real", "negative"])
def test_predecessors(weights: str) -> None:
    """Also where edges weigh nothing, so that vertices of a circle tie, and where sums are rounded in another order than along paths."""
    graph, rng = grid(), np.random.default_rng(3)
    if weights == "zero":
        graph.data = rng.integers(0, 2, len(graph.data)).astype(float)
    elif weights == "real":
        graph.data = rng.random(len(graph.data)) * rng.choice([1e-17, 1.0], len(graph.data))
    elif weights == "negative":
        height = rng.integers(-20, 20, 144).astype(float)
        tails = np.repeat(np.arange(144), np.diff(graph.indptr))
        graph.data += height[tails] - height[graph.indices]
    some = rng.permutation(144)[:70]
    assert sr.csgraph.explain(graph, "J", return_predecessors=True).strategy == "elimination"
    found = sr.csgraph.johnson(graph, return_predecessors=True)
    np.testing.assert_allclose(found[0], csgraph.johnson(graph), rtol=1e-13, atol=1e-13)
    are_trees(graph, range(144), found)
    if weights != "negative":
        are_trees(graph, some, sr.csgraph.dijkstra(graph, indices=some, return_predecessors=True))
    paths = sr.apsp(graph, paths=True)
    are_trees(graph, range(144), (paths.values, paths.predecessors()))
    back = sr.factor(graph).paths(targets=some)
    are_trees(graph, some, (back.values.T, back.next_hops().T), backward=True)


@pytest.mark.usefixtures("eliminated")
def test_a_negative_cycle_that_no_source_reaches_does_no_harm() -> None:
    graph = sp.block_diag([grid(), np.array([[0.0, -1.0], [0.5, 0.0]])], format="csr")
    found = sr.apsp(graph, sources=range(100))
    np.testing.assert_array_equal(found[:, :144], csgraph.dijkstra(grid())[:100])
    with pytest.raises(sr.NegativeCycleError, match="144"):
        sr.apsp(graph)


@pytest.mark.usefixtures("eliminated")
def test_statistics() -> None:
    graph = grid()
    found, distances = sr.statistics(graph), csgraph.dijkstra(graph)
    assert found.diameter == distances.max()
    np.testing.assert_array_equal(found.eccentricities, distances.max(axis=1))
    assert found.total == distances.sum()
    assert found.counts.sum() == found.connected == 144 * 143


@pytest.mark.usefixtures("eliminated")
def test_statistics_need_no_room_for_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(40)
    monkeypatch.setattr(planner, "fits", lambda size, device: size < 8 * 1600**2)
    assert sr.explain(graph).strategy != "elimination"
    told: list[sr.Progress] = []
    found = sr.statistics(graph, progress=told.append)
    assert told[-1].plan.strategy == "elimination"
    assert (told[-1].done, found.connected) == (told[-1].total, 1600 * 1599)


@pytest.mark.usefixtures("eliminated")
@pytest.mark.parametrize("columns", [False, True])
def test_sums_over_walks_that_converge(columns: bool) -> None:
    walks = grid()
    walks.data /= 1.001 * np.repeat(walks.sum(axis=1), np.diff(walks.indptr))
    walks = walks.T.tocsr() if columns else walks
    expected = np.linalg.inv(np.eye(144) - walks.toarray())
    assert sr.explain(walks, "plus-times").strategy == "elimination"
    np.testing.assert_allclose(sr.closure(walks, "plus-times"), expected, rtol=1e-10)
    logarithms = walks.copy()
    logarithms.data = np.log(walks.data)
    assert sr.explain(logarithms, "log").strategy == "elimination"
    np.testing.assert_allclose(sr.closure(logarithms, "log"), np.log(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sr.closure(walks, "plus-times", reflexive=False), expected - np.eye(144), rtol=1e-9)


@pytest.mark.usefixtures("eliminated")
def test_sums_that_may_not_converge_are_found_in_the_order_of_the_matrix() -> None:
    """A first pivot that is 1 is an error, and one that is not is none, wherever nested dissection would begin."""
    walks = grid()
    walks.data[:] = 0.6
    assert sr.explain(walks, "plus-times").strategy == "whole"
    signed = grid()
    signed.data *= np.where(np.arange(len(signed.data)) % 2, 1, -1) / 1000
    assert sr.explain(signed, "plus-times").strategy == "whole"
    np.testing.assert_allclose(sr.closure(signed, "plus-times"), np.linalg.inv(np.eye(144) - signed.toarray()), rtol=1e-9)


@pytest.mark.usefixtures("eliminated")
def test_progress_labels_and_errors() -> None:
    graph = nx.grid_2d_graph(10, 10)
    nx.set_edge_attributes(graph, {edge: 1.0 + i % 7 for i, edge in enumerate(graph.edges)}, "weight")
    told: list[sr.Progress] = []
    found = sr.apsp(graph, progress=told.append)
    np.testing.assert_array_equal(found, nx.floyd_warshall_numpy(graph))
    assert told[0].plan.strategy == "elimination"
    assert told[-1].done == told[-1].total
    directed = graph.to_directed()
    directed.edges[(3, 3), (3, 4)]["weight"] = -20.0
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(directed)
    assert set(caught.value.cycle or ()) == {(3, 3), (3, 4)}
    with pytest.raises(sr.OverflowRiskError):
        sr.apsp(sp.csr_array(grid() * 1000), dtype="int16")


@pytest.mark.usefixtures("eliminated")
def test_what_it_cannot_answer_goes_other_ways() -> None:
    graph = grid()
    assert sr.explain(graph, device="reference").strategy != "elimination"
    cycles = sr.closure(graph, "min-plus", reflexive=False)
    assert (np.diag(cycles) > 0).all()


def test_graphs_without_small_separators_are_left_to_searches() -> None:
    graph = nx.to_scipy_sparse_array(nx.random_regular_graph(8, 2000, seed=1), dtype=float)
    considered = dict(sr.explain(graph, threads=2).considered)
    assert considered.get("elimination", np.inf) > min(considered.values())
    road = sr.explain(grid(70), threads=2)
    assert road.strategy == "elimination"
    assert "elimination: nested dissection" in repr(road) or "elimination: minimum degree" in repr(road)
