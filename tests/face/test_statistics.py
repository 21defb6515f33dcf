"""Statistics of all distances, beside NetworkX and NumPy on all of them."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

import semiring as sr
from semiring.algorithms import rows_of_edges
from semiring.execution import row_solvers, strategy, sums, within
from semiring.planning import planner
from semiring.results.statistics import RunningDistances
from tests.campaign.strategies import taking

INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")


@pytest.fixture(params=["whole", "rows"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """All distances at once, or three rows at a time."""
    name: str = request.param
    monkeypatch.setattr(planner, "fits", lambda *_: name == "whole")
    monkeypatch.setattr(planner, "_plans", {})
    for module in (sums, strategy, row_solvers):
        monkeypatch.setattr(module, "HOST", 100)
    with taking("whole" if name == "whole" else "search"):
        yield name


@pytest.mark.parametrize("weighted", [False, True])
def test_networkx(way: str, weighted: bool) -> None:
    graph = nx.connected_watts_strogatz_graph(40, 4, 0.2, seed=1)
    rng = np.random.default_rng(0)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.random()) if weighted else 1
    found = sr.statistics(graph)
    expected: Any = nx.eccentricity(graph, weight="weight")
    assert found.nodes == tuple(graph.nodes)
    np.testing.assert_allclose(found.eccentricities, [expected[v] for v in graph.nodes])
    assert found.radius == pytest.approx(nx.radius(graph, weight="weight"))
    assert found.diameter == pytest.approx(nx.diameter(graph, weight="weight"))
    assert found.average == pytest.approx(nx.average_shortest_path_length(graph, weight="weight"))
    assert found.total == pytest.approx(2 * nx.wiener_index(graph, weight="weight"))
    assert found.connected == found.counts.sum() == 40 * 39
    distances = csgraph.shortest_path(nx.to_scipy_sparse_array(graph))
    apart = distances[~np.eye(40, dtype=bool)]
    assert np.array_equal(found.counts, np.histogram(apart, found.bins)[0])
    assert len(found.counts) <= 64
    assert np.log2(found.bins[1] - found.bins[0]) % 1 == 0
    if not weighted:
        assert np.array_equal(found.bins, np.arange(1, found.diameter + 2))


@pytest.mark.sampled(9)
@pytest.mark.parametrize("dtype", ["float32", "int16", "int64", object])
@pytest.mark.parametrize("seed", range(3))
def test_dense_and_disconnected(way: str, dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 25
    p = rng.integers(-9, 9, n)
    a: Any = np.where(rng.random((n, n)) < 0.08, rng.integers(0, 30, (n, n)) + p[:, None] - p, INF).astype(object)
    kind = np.dtype(dtype)
    infinity: Any = np.iinfo(kind).max if kind.kind == "i" else INF
    given = np.where(a == INF, infinity, a).astype(kind)
    distances = sr.apsp(a.astype(float))
    others = distances[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    apart = others[others < INF]
    for bins in (64, 5, 2, [-20, 0, 10, 25]):
        found = sr.statistics(given, bins=bins)
        assert found.connected == len(apart)
        assert found.total == apart.sum()
        assert found.average == pytest.approx(apart.mean())
        assert np.array_equal(found.eccentricities, others.max(axis=1))
        apart_first = np.where(np.isfinite(distances) & ~np.eye(n, dtype=bool), distances, -INF)
        i, j = np.unravel_index(apart_first.argmax(), distances.shape)
        assert found.farthest == (i, j, distances[i, j])
        assert found.largest == apart.max()
        assert np.array_equal(found.counts, np.histogram(apart, found.bins)[0])
        if not isinstance(bins, list):
            assert len(found.counts) <= bins
            assert found.counts.sum() == len(apart)
    assert found.diameter == INF


def test_small_graphs(way: str) -> None:
    empty = sr.statistics(np.empty((0, 0)))
    assert math.isnan(empty.radius)
    assert math.isnan(empty.average)
    assert (empty.connected, empty.counts.size) == (0, 0)
    one = sr.statistics([[0.0]])
    assert (one.radius, one.diameter, one.connected) == (0, 0, 0)
    two = sr.statistics([[0, 0.001], [INF, 0]])
    assert two.eccentricities.tolist() == [0.001, INF]
    assert two.counts.tolist() == [1]
    assert repr(two) == (
        "<distances of 2 vertices: 1 of 2 pairs connected, average 0.001, radius 0.001, diameter inf, "
        "largest finite distance 0.001, from 0 to 1>"
    )
    for none in (empty, one, sr.statistics([[0, None], [None, 0]])):
        assert none.farthest is None
        assert math.isnan(none.largest)
    assert sr.statistics(sr.edges([("a", "b", 0.0)], directed=False)).counts.tolist() == [2]


@pytest.mark.parametrize("small", [0.0, 1e-300, 1.0])
def test_distances_far_apart_come_in_any_order(small: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "HOST", 1)
    a = np.array([[0.0, small], [1e305, 0.0]])
    for matrix in (a, a.T):
        found = sr.statistics(matrix, bins=4)
        assert found.counts.tolist() == np.histogram([small, 1e305], found.bins)[0].tolist()
        assert found.counts.sum() == 2
        assert len(found.counts) <= 4


def test_a_disconnected_graph_tells_its_farthest_pair(way: str) -> None:
    graph = sr.edges([("A", "B", 12.0), ("B", "D", 0.5), ("C", "E", 2.0)], directed=False)
    found = sr.statistics(graph)
    assert repr(found).endswith("radius inf, diameter inf, largest finite distance 12.5, from 'A' to 'D'>")
    assert found.farthest == ("A", "D", 12.5)
    assert found.farthest == sr.apsp(graph, paths=True).farthest()[0]


@pytest.mark.parametrize("strategy", ["whole", "search", "elimination"])
def test_the_farthest_pair_of_distances_that_are_all_zero(strategy: str) -> None:
    graph = sp.csr_array((np.zeros(2), ([2, 3], [4, 3])), shape=(5, 5))
    with taking(strategy):
        found = sr.statistics(graph)
    assert found.farthest == (2, 4, 0.0)
    assert found.connected == 1


def test_bad_arguments(way: str) -> None:
    a = np.array([[0.0, 1.0], [INF, 0.0]])
    for bins in (1, 0, -1, [1], [2, 1], [[1, 2]], "many", [0, np.nan]):
        with pytest.raises(sr.SemiringError, match="bins"):
            sr.statistics(a, bins=bins)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(sr.GraphError, match="batch"):
        sr.statistics(np.stack([a, a]))
    with pytest.raises(sr.NegativeCycleError):
        sr.statistics(np.array([[0.0, -1.0], [0.5, 0.0]]))


def test_without_a_histogram(way: str) -> None:
    a = np.array([[0.0, 1.0], [INF, 0.0]])
    found = sr.statistics(a, bins=None)
    assert (found.connected, found.total, len(found.counts), len(found.bins)) == (1, 1.0, 0, 1)


def test_how_the_closure_is_done(tmp_path: Path) -> None:
    n = 60
    a = np.full((n, n), INF, dtype=np.float32)
    a[np.arange(n), np.arange(1, n + 1) % n] = 1
    expected = sr.statistics(a)
    assert expected.diameter == n - 1
    hows: list[dict[str, Any]] = [{"overwrite": True}, {"checkpoint": tmp_path / "kept"}, {"memory_limit": "1GiB"}]
    for how in hows:
        found = sr.statistics(a.copy(), **how)
        assert np.array_equal(found.eccentricities, expected.eccentricities)
        assert np.array_equal(found.counts, expected.counts)


def test_labels_of_a_data_frame(way: str) -> None:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

    frame = pd.DataFrame([[0.0, 3, INF], [INF, 0, 4], [2, INF, 0]], index=list("abc"), columns=list("abc"))
    for overwrite in (False, True):
        found = sr.statistics(frame, overwrite=overwrite)
        assert found.nodes == ("a", "b", "c")
        assert found.eccentricities.tolist() == [7, 6, 5]


@pytest.mark.parametrize("library", ["array_api_strict", "torch", "jax.numpy"])
@pytest.mark.parametrize("how", [{}, {"memory_limit": "64MiB"}, {"overwrite": True}, {"dtype": "float64"}], ids=str)
def test_arrays_of_other_libraries(way: str, library: str, how: dict[str, Any]) -> None:
    a = np.random.default_rng(5).integers(1, 99, (30, 30)).astype(np.float32)
    given = pytest.importorskip(library).asarray(a)
    if library == "jax.numpy":  # where there is a GPU, its arrays lie there
        jax = pytest.importorskip("jax")
        given = jax.device_put(given, jax.devices("cpu")[0])
    found, expected = sr.statistics(given, **how), sr.statistics(a)
    np.testing.assert_array_equal(found.eccentricities, expected.eccentricities)
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.total == expected.total
    if library == "jax.numpy":
        np.testing.assert_array_equal(np.asarray(given), a)


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1500
    graph = sp.random_array((n, n), density=2 / n, rng=np.random.default_rng(0), format="csr")
    for module in (row_solvers, rows_of_edges):
        monkeypatch.setattr(module, "HOST", 1 << 16)
    with taking("search"):
        sr.statistics(graph[:50, :50])
        tracemalloc.start()
        try:
            found = sr.statistics(graph)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 12 << 20  # all distances would take 18 MB
    distances = csgraph.dijkstra(graph)
    apart = distances[(distances < INF) & ~np.eye(n, dtype=bool)]
    assert found.connected == len(apart)
    assert found.total == pytest.approx(apart.sum())


@pytest.mark.parametrize("bins", [64, 3, [0, 0.5, 2, 7]])
@pytest.mark.parametrize("whole", [False, True])
def test_distances_that_several_processes_see(bins: Any, whole: bool) -> None:
    rng = np.random.default_rng(1)
    distances = rng.integers(0, 90, (101, 101)).astype(float) if whole else np.exp(3 * rng.normal(size=(101, 101)))
    distances[rng.random((101, 101)) < 0.3] = INF
    together = RunningDistances(bins)
    together.add(0, distances)
    for _ in range(5):
        parts = [RunningDistances(bins) for _ in range(4)]
        cuts = [0, *sorted(rng.choice(np.arange(1, 101), 6, replace=False).tolist()), 101]
        for first, last in itertools.pairwise(cuts):
            parts[rng.integers(0, 3)].add(first, distances[first:last])
        found, *others = parts
        for other in others:
            found.merge(other)
        summed, expected = (some.summary(tuple(range(101))) for some in (found, together))
        assert (summed.total, summed.connected, summed.farthest) == (expected.total, expected.connected, expected.farthest)
        for name in ("eccentricities", "counts", "bins"):
            np.testing.assert_array_equal(getattr(summed, name), getattr(expected, name))


@pytest.mark.filterwarnings("error")
def test_zeros_that_are_edges_are_not_warned_of() -> None:
    assert sr.statistics(np.array([[0.0, 0.0], [3.0, 0.0]]), nonedge=np.inf).connected == 2


# Of chosen vertices, and within a limit.


def _by_definition(distances: Any, sources: list[int], targets: list[int], limit: float) -> tuple[list[float], list[float]]:
    """Eccentricities of the sources, and the distances that count."""
    eccentricities, counted = [], []
    for u in sources:
        row = [distances[u, v] if distances[u, v] <= limit else INF for v in targets if v != u]
        eccentricities.append(max(row, default=0.0))
        counted += [d for d in row if d < INF]
    return eccentricities, counted


@pytest.mark.sampled(12)
@pytest.mark.parametrize("limit", [None, 0, 7, INF])
@pytest.mark.parametrize("strategy", ["whole", "search", "elimination", "dense"])
@pytest.mark.parametrize("ends", ["both", "sources", "targets", "none"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_chosen_vertices_within_a_limit(dtype: str, ends: str, strategy: str, limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within, "HOST", 60)
    monkeypatch.setattr(planner, "_plans", {})
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, p = 20, rng.integers(-9, 9, 20) * (seed % 2)
        a = np.where(rng.random((n, n)) < 0.12, rng.integers(0, 6, (n, n)) + p[:, None] - p, INF)
        nothing = np.iinfo(dtype).max if dtype == "int32" else INF
        dense = np.where(a == INF, nothing, a).astype(dtype)
        tails, heads = np.nonzero(a < INF)
        graph = dense if strategy == "dense" else sp.csr_array((dense[tails, heads], (tails, heads)), shape=(n, n))
        sources = [*rng.permutation(n)[:7].tolist(), 3, 3] if ends in ("both", "sources") else None
        targets = [*rng.permutation(n)[: [4, 12][seed // 2]].tolist(), 3] if ends in ("both", "targets") else None
        before = dense.copy()
        with taking(None if strategy == "dense" else strategy):
            found = sr.statistics(graph, sources=sources, targets=targets, limit=limit, nonedge=nothing if strategy == "dense" else None)
        assert np.array_equal(before, dense)
        chosen, reached = (list(range(n)) if some is None else list(dict.fromkeys(some)) for some in (sources, targets))
        distances = sr.apsp(a, nonedge=INF)
        eccentricities, counted = _by_definition(distances, chosen, reached, INF if limit is None else limit)
        assert found.nodes == tuple(chosen)
        assert found.eccentricities.tolist() == eccentricities
        assert (found.connected, found.total) == (len(counted), sum(counted))
        assert found.pairs == sum(u != v for u in chosen for v in reached)
        assert found.counts.sum() == len(counted)
        assert np.array_equal(found.counts, np.histogram(counted, found.bins)[0]) or not counted
        pairs = [(u, v, distances[u, v]) for u in chosen for v in reached if u != v]
        greatest = max(counted, default=None)
        assert found.farthest == next(((u, v, d) for u, v, d in pairs if d == greatest), None)


def test_chosen_vertices_of_a_graph_with_labels() -> None:
    ways = sr.edges([("a", "b", 2.0), ("b", "c", 1.0), ("d", "c", 4.0)])
    found = sr.statistics(ways, sources=["b", "a"], targets="c", bins=[0, 2, 4])
    assert found.nodes == ("b", "a")
    assert found.eccentricities.tolist() == [1, 3]
    assert found.farthest == ("a", "c", 3.0)
    assert found.counts.tolist() == [1, 1]
    assert repr(found) == "<distances of 2 vertices: 2 of 2 pairs connected, average 2, radius 1, diameter 3>"
    alone = sr.statistics(ways, sources="a", targets="a")
    assert (alone.pairs, alone.connected, alone.eccentricities.tolist()) == (0, 0, [0])
    assert math.isnan(sr.statistics(ways, sources=[]).diameter)
    assert sr.statistics(ways, targets=[]).eccentricities.tolist() == [0] * 4
    assert sr.statistics(np.empty((0, 0)), limit=3).connected == 0
    assert sr.statistics(ways, limit=-1).connected == 0


def test_bad_choices() -> None:
    ways = sr.edges([("a", "b", 2.0), ("b", "c", 1.0)])
    with pytest.raises(sr.GraphError, match="sources: there is no vertex 'z'"):
        sr.statistics(ways, sources=["a", "z"])
    for limit in (np.nan, "2", (1, 2)):
        with pytest.raises(sr.SemiringError, match="limit is"):
            sr.statistics(ways, limit=limit)
    with pytest.raises(sr.SemiringError, match="leave out comm and checkpoint"):
        sr.statistics(ways, limit=1, checkpoint="folder")
    with pytest.raises(sr.SemiringError, match="memory_limit"):
        sr.statistics(np.ones((3, 3)), sources=[0], memory_limit="1GiB")
    with pytest.raises(sr.GraphError, match="batch"):
        sr.statistics(np.ones((2, 3, 3)), sources=[0])
    with pytest.raises(sr.NegativeCycleError):
        sr.statistics(sr.edges([("a", "b", 2.0), ("b", "a", -3.0)]), sources="a")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_progress_of_chosen_vertices(kind: str) -> None:
    a = np.random.default_rng(0).random((200, 200))
    told: list[float] = []
    sr.statistics(
        a if kind == "dense" else sp.csr_array(a * (a < 0.05)), sources=range(150), progress=lambda now: told.append(now.done / now.total)
    )
    assert told[-1] == 1
