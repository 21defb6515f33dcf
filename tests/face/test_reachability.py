"""Who reaches whom without a matrix, diameters and radii by bounds, and statistics by hop counts, beside all pairs."""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring.arrays import memory
from semiring.kernels import machine
from semiring.planning import costs, planner

Array = np.ndarray[Any, Any]


ALIKE = st.just(1.0)
FEW = settings(max_examples=20)


@st.composite
def graphs(draw: st.DrawFn, lengths: Any = ALIKE) -> tuple[Any, Array]:
    """The edges of a small graph, and which there are."""
    n = draw(st.integers(1, 14))
    vertex = st.integers(0, n - 1)
    listed = draw(st.lists(st.tuples(vertex, vertex, lengths), max_size=3 * n))
    directed = draw(st.booleans())
    matrix = np.zeros((n, n), dtype=bool)
    for u, v, _ in listed:
        matrix[u, v] = True
        matrix[v, u] |= not directed
    return sr.edges(listed, nodes=range(n), directed=directed), matrix


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reflexive", [False, True])
@pytest.mark.parametrize("kind", ["any", "acyclic", "chains"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_sets_of_few_and_of_many(kind: str, reflexive: bool, data: st.DataObject) -> None:
    """Lists, rows of bits, and unions of both, beside NetworkX."""
    n = data.draw(st.sampled_from([1, 63, 64, 65, 130, 257, 400]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    tails, heads = rng.integers(0, n, (2, data.draw(st.integers(0, 2 * n))))
    if kind == "acyclic":
        tails, heads = np.minimum(tails, heads), np.maximum(tails, heads)
    elif kind == "chains":
        tails = np.flatnonzero(rng.random(n - 1) < 0.98)
        heads = tails + 1
    matrix = sp.csr_array((np.ones(len(tails), bool), (tails, heads)), shape=(n, n))
    found = sr.reachability(matrix, reflexive=reflexive)
    closed = nx.transitive_closure(nx.from_scipy_sparse_array(matrix, create_using=nx.DiGraph), reflexive=bool(reflexive))
    expected = nx.to_numpy_array(closed, nodelist=range(n), weight=None) > 0  # pyright: ignore[reportArgumentType]  # NetworkX takes None
    assert np.array_equal(found.counts, expected.sum(axis=1))
    assert np.array_equal(found.to_scipy().toarray(), expected)
    assert np.array_equal(sr.transitive_closure(matrix, reflexive=reflexive), expected)
    u, v = rng.integers(0, n, (2, 50))
    assert [found.reaches(int(x), int(y)) for x, y in zip(u, v, strict=True)] == expected[u, v].tolist()


def test_sets_take_the_memory_of_what_they_have() -> None:
    n = 100_000
    matrix = sp.csr_array((np.ones(n // 2, bool), (np.arange(0, n, 2), np.arange(1, n, 2))), shape=(n, n))
    sr.reachability(matrix[:4, :4])  # compiled
    tracemalloc.start()
    try:
        found = sr.reachability(matrix)
        assert found.counts.tolist() == [1, 0] * (n // 2)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20  # a row of bits for each component would take more than 600 MiB
    finally:
        tracemalloc.stop()
    assert (found.reached(n - 2), found.reaches(0, 1), found.reaches(1, 0)) == ([n - 1], True, False)


@pytest.mark.parametrize("reflexive", [False, True])
@FEW
@given(drawn=graphs())
def test_everything_is_told_as_the_matrix_does(reflexive: bool, drawn: tuple[Any, Array]) -> None:
    graph, matrix = drawn
    expected = sr.transitive_closure(matrix, reflexive=reflexive)
    for given_graph in (graph, matrix):
        found = sr.reachability(given_graph, reflexive=reflexive)
        assert np.array_equal(found.counts, expected.sum(axis=1))
        assert np.array_equal(found.to_scipy().toarray(), expected)
        for u in range(len(matrix)):
            assert found.reached(u) == np.flatnonzero(expected[u]).tolist()
            assert [found.reaches(u, v) for v in range(len(matrix))] == expected[u].tolist()
    mutual = sr.transitive_closure(matrix, reflexive=True)
    same = found.components[:, None] == found.components
    assert np.array_equal(same, mutual & mutual.T)
    assert (found.components[:, None] >= found.components)[matrix].all()


@pytest.mark.parametrize("reflexive", [False, True])
@pytest.mark.parametrize("kind", ["one component", "acyclic", "both"])
def test_the_matrix_of_a_sparse_graph(kind: str, reflexive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.planning.planner.condensation_seconds", lambda _: 0.0)
    n, rng = 477, np.random.default_rng(1)
    ends = rng.integers(0, n, (2, 3 * n))
    if kind == "acyclic":
        ends.sort(axis=0)
        ends = ends[:, ends[0] < ends[1]]
    elif kind == "both":
        ends = ends[:, : n + 100]
    graph = sp.coo_array((np.ones(ends.shape[1], dtype=bool), tuple(ends)), shape=(n, n)).tocsr()
    assert sr.explain(graph, sr.BOOLEAN, device="cpu").strategy == "condensation"
    found = sr.transitive_closure(graph, reflexive=reflexive, device="cpu")
    assert found.dtype == bool
    reached = np.isfinite(csgraph.dijkstra(graph, unweighted=True))
    assert np.array_equal(found, reached if reflexive else graph.toarray().astype(np.float32) @ reached > 0)
    assert np.array_equal(sr.reachability(graph, reflexive=reflexive).counts, found.sum(axis=1))


def test_large_sparse_graphs_are_condensed() -> None:
    ring = sp.csr_array(np.roll(np.eye(3000, dtype=bool), 1, axis=1))
    assert sr.explain(ring, sr.BOOLEAN, device="cpu", threads=2).strategy == "condensation"  # many threads search as fast
    assert sr.transitive_closure(ring, device="cpu").all()


def test_labels() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("b", (1, 2))])
    found = sr.reachability(graph)
    assert found.nodes == ("a", "b", (1, 2))
    assert found.reached("a") == ["a", "b", (1, 2)]
    assert found.reaches("a", (1, 2))
    assert "6 of 9 pairs" in repr(found)
    assert "6 of 9 pairs" in found._repr_html_()
    with pytest.raises(sr.GraphError, match="no vertex 'c'"):
        found.reached("c")
    with pytest.raises(sr.GraphError, match="one vertex"):
        found.reaches(["a", "b"], "a")


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sr.GraphError, match="batch"):
        sr.reachability(np.zeros((2, 3, 3), dtype=bool))
    graph = sr.edges([(0, 1)])
    found = sr.reachability(graph)
    monkeypatch.setattr(memory, "fits", lambda needed, device: needed > 16)  # there is room to read the graph
    with pytest.raises(sr.TooLargeError, match="2 strongly connected components"):
        sr.reachability(graph)
    with pytest.raises(sr.TooLargeError, match="1 pairs"):
        found.to_scipy()
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(sr.SemiringError, match=r'to_scipy needs scipy, which is not installed: pip install -e "\.\[graphs\]"'):
        found.to_scipy()


def test_no_vertices() -> None:
    empty = sr.reachability(sp.csr_array((0, 0)))
    assert empty.counts.tolist() == []
    assert empty.to_scipy().shape == (0, 0)
    assert np.isnan(sr.diameter(sp.csr_array((0, 0))))
    assert np.isnan(sr.radius(sp.csr_array((0, 0))))


@pytest.mark.parametrize("lengths", [st.just(1.0), st.floats(0, 9), st.integers(0, 3)])
@given(data=st.data())
def test_diameter_and_radius_are_those_of_all_pairs(lengths: Any, data: st.DataObject) -> None:
    graph, matrix = data.draw(graphs(lengths))
    whole = sr.statistics(graph)
    for found, expected in ((sr.diameter(graph), whole.diameter), (sr.radius(graph), whole.radius)):
        assert found == pytest.approx(expected, rel=1e-12)
    if matrix.all():
        assert np.isfinite(sr.diameter(graph))


def test_diameter_and_radius_of_what_is_not_searched() -> None:
    dense = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert (sr.diameter(dense), sr.radius(dense)) == (2, 1)
    signed = sr.edges([(0, 1, -1.0), (1, 0, 3.0)])
    assert (sr.diameter(signed), sr.radius(signed)) == (3, -1)
    ring = sr.edges([(i, (i + 1) % 300) for i in range(300)], directed=False)
    assert (sr.diameter(ring), sr.radius(ring)) == (150, 150)
    assert sr.diameter(ring, weight=2.5) == 375
    with pytest.raises(sr.NegativeCycleError):
        sr.diameter(sr.edges([(0, 1, -1.0), (1, 0, 0.5)]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bins", [64, 3, [0.0, 1.5, 4.0, 20.0]])
@pytest.mark.parametrize("length", [0, 1, 2.5])
@FEW
@given(data=st.data())
def test_counted_statistics_are_those_of_rows_to_the_last_bit(bins: Any, length: float, data: st.DataObject) -> None:
    graph, _ = data.draw(graphs(st.just(length)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "PART", 0)
        patch.setattr(planner, "_plans", {})
        counted = sr.statistics(graph, bins=bins)
        patch.setattr(costs, "counts_hops", lambda _: False)
        patch.setattr(planner, "_plans", {})
        rows = sr.statistics(graph, bins=bins)
    assert np.array_equal(counted.eccentricities, rows.eccentricities)
    assert np.array_equal(counted.counts, rows.counts)
    assert np.array_equal(counted.bins, rows.bins)
    assert (counted.connected, counted.total, counted.farthest) == (rows.connected, rows.total, rows.farthest)


def test_counting_tells_how_far_it_is() -> None:
    told: list[float] = []
    ring = sr.edges([(i, (i + 1) % 100) for i in range(100)])
    sr.statistics(ring, progress=lambda now: told.append(now.done / now.total))
    assert told[-1] == 1


def test_components_are_the_callers_own() -> None:
    found = sr.reachability(sr.edges([(0, 1), (1, 0), (1, 2)]))
    found.components[:] = 0
    assert found.components.tolist() == [1, 1, 0]
