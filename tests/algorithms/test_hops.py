"""Hop counts from many vertices at once, their sums, and bounds of eccentricities, beside SciPy's searches one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring.algorithms import distances, rows_of_edges
from semiring.algorithms.csr import CSR
from semiring.algorithms.distances import distance_sums, extreme_eccentricity
from semiring.algorithms.hops import hop_order, hop_rows, hop_sums
from semiring.algorithms.search import searches_for
from semiring.kernels.cpu.loops import interpreted

Array = np.ndarray[Any, Any]
FLOAT64 = (np.dtype(np.float64),)


@st.composite
def patterns(draw: st.DrawFn, most: int = 12) -> Array:
    """Which edges a graph has, loops too."""
    n = draw(st.integers(1, most))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))
    matrix = np.zeros((n, n), dtype=bool)
    for u, v in pairs:
        matrix[u, v] = True
    if draw(st.booleans()):
        matrix |= matrix.T
    return matrix


def weighted(matrix: Array, length: Any = 1.0, zero: Any = np.inf) -> CSR:
    """The graph of a pattern with equal weights."""
    tails, heads = np.nonzero(matrix)
    weights = np.full(len(tails), length)
    return CSR.of(tails, heads, (weights,), len(matrix), (zero,))


def hop_counts_of(matrix: Array) -> Array:
    """SciPy's."""
    found: Array = csgraph.dijkstra(sp.csr_array(matrix.astype(float)), unweighted=True)
    return found


def sparse_random(n: int, degree: float, seed: int) -> Array:
    """A random pattern of so many vertices."""
    return np.random.default_rng(seed).random((n, n)) < degree / n


@pytest.mark.parametrize(("n", "degree"), [(16, 2), (63, 2), (64, 1.5), (65, 3), (130, 1), (200, 6), (257, 2)])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("backward", [False, True])
def test_rows_are_those_of_single_searches(n: int, degree: float, threads: int, backward: bool) -> None:
    matrix = sparse_random(n, degree, n)
    edges = weighted(matrix, 2.5)
    sources = np.random.default_rng(1).integers(0, n, n + 3)  # some of them twice
    searches = searches_for(sr.MIN_PLUS, FLOAT64, "cpu", threads)
    assert searches is not None
    expected = 2.5 * hop_counts_of(matrix.T if backward else matrix)[sources]
    (found,) = rows_of_edges.rows_of_edges(sr.MIN_PLUS, edges, sources, searches=searches, backward=backward)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("reflexive", [False, True])
def test_elements_are_those_of_the_closure(dtype: str, reflexive: bool) -> None:
    matrix = sparse_random(90, 1.5, 4)
    semiring = sr.BOOLEAN if dtype == "bool" else sr.MIN_PLUS
    zero = False if dtype == "bool" else np.inf if dtype[0] == "f" else np.iinfo(dtype).max
    dense = np.full(matrix.shape, zero, dtype)
    dense[matrix] = 1
    sources = np.arange(90)
    edges = weighted(matrix, np.dtype(dtype).type(1), zero)
    searches = searches_for(semiring, edges.dtypes, "cpu", 2)
    (found,) = rows_of_edges.rows_of_edges(semiring, edges, sources, searches=searches, reflexive=reflexive)
    assert found.dtype == dense.dtype
    assert np.array_equal(found, sr.closure(dense, semiring, reflexive=reflexive))


def test_lengths_that_are_rounded_are_added_up_as_searches_do() -> None:
    matrix = sparse_random(80, 1.2, 9)
    edges, sources = weighted(matrix, 0.1), np.arange(80)
    searches = searches_for(sr.MIN_PLUS, FLOAT64, "cpu")
    (together,) = rows_of_edges.rows_of_edges(sr.MIN_PLUS, edges, sources, searches=searches)
    alone = [rows_of_edges.rows_of_edges(sr.MIN_PLUS, edges, sources[i : i + 1], searches=searches)[0] for i in range(80)]
    assert np.array_equal(together, np.concatenate(alone))


def test_long_paths_are_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.eye(300, k=1, dtype=bool)
    expected = hop_counts_of(matrix)
    for levels in (1 << 16, 8):
        monkeypatch.setattr("semiring.algorithms.hops._LEVELS", levels)
        (found,) = rows_of_edges.rows_of_edges(
            sr.MIN_PLUS, weighted(matrix), np.arange(300), searches=searches_for(sr.MIN_PLUS, FLOAT64, "cpu")
        )
        assert np.array_equal(found, expected)
    assert distance_sums(weighted(matrix)) is None


@given(patterns())
def test_sums_count_what_rows_show(matrix: Array) -> None:
    distances = hop_counts_of(matrix)
    there = np.isfinite(distances)
    edges = weighted(matrix)
    found = hop_sums((edges.starts, edges.heads), np.arange(len(matrix)), 2)
    assert found is not None
    finite = np.where(there, distances, 0)
    assert np.array_equal(found.reaching, there.sum(axis=0))
    assert np.array_equal(found.total, finite.sum(axis=0))
    assert np.array_equal(found.last, finite.max(axis=0))
    assert np.array_equal(found.found, np.bincount(distances[there].astype(int)))


@pytest.mark.parametrize("n", [511, 512, 600])
def test_sums_of_many_sources(n: int) -> None:
    matrix = sparse_random(n, 2, n)
    distances = hop_counts_of(matrix)
    there = np.isfinite(distances)
    found = distance_sums(weighted(matrix, 0.5))
    assert found is not None
    assert np.array_equal(found.connected, there.sum(axis=1) - 1)
    assert np.array_equal(found.totals, 0.5 * np.where(there, distances, 0).sum(axis=1))
    assert np.array_equal(found.farthest, 0.5 * np.where(there, distances, 0).max(axis=1))
    assert np.array_equal(found.distances, 0.5 * np.arange(1, len(found.counts) + 1))
    assert np.array_equal(found.counts, np.bincount(distances[there].astype(int))[1:])


@pytest.mark.parametrize("length", [0.1, np.float32(0.3)])
def test_sums_are_not_counted_where_they_are_rounded(length: Any) -> None:
    assert distance_sums(weighted(sparse_random(50, 3, 0), length)) is None


@given(patterns(), st.integers(1, 140), st.sampled_from(["float64", "float32", "int16", "uint8"]), st.booleans(), st.integers(0, 99))
def test_loops_find_what_python_finds(matrix: Array, count: int, dtype: str, reflexive: bool, seed: int) -> None:
    n, edges = len(matrix), weighted(matrix)
    graph = edges.starts, edges.heads
    sources = np.random.default_rng(seed).integers(0, n, count)

    def table(most: int) -> tuple[Array]:
        return (np.concatenate([[99], np.arange(most + 1)]).astype(dtype),)

    def found() -> list[Any]:
        rows = np.full((count, n), 77, dtype)
        looked, sums = hop_rows(graph, sources, (rows,), table, 1, reflexive=reflexive), hop_sums(graph, sources, 1)
        assert sums is not None
        return [looked, None if looked is None else rows.tobytes(), *(v.tobytes() for v in (*sums, hop_order(graph)))]

    compiled = found()
    with interpreted():
        assert found() == compiled


def test_the_order_of_no_vertices() -> None:
    assert hop_order((np.zeros(1, np.int64), np.zeros(0, np.int64))).tolist() == []


@given(patterns())
def test_the_order_has_each_vertex_once(matrix: Array) -> None:
    edges = weighted(matrix)
    assert sorted(hop_order((edges.starts, edges.heads)).tolist()) == list(range(len(matrix)))


def test_the_order_goes_from_neighbour_to_neighbour() -> None:
    line = np.roll(np.eye(6, dtype=bool), 1, axis=1)
    edges = weighted(line[::-1, ::-1])
    assert hop_order((edges.starts, edges.heads)).tolist() == [0, 5, 4, 3, 2, 1]


KINDS = {
    "hops": st.just(1.0),
    "whole": st.integers(0, 5).map(float),
    "floats": st.floats(0.0, 4.0),
    "float32": st.floats(0.0, 4.0, width=32),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_extreme_eccentricities_are_those_of_all_searches(kind: str, data: st.DataObject) -> None:
    matrix = data.draw(patterns())
    tails, heads = np.nonzero(matrix)
    symmetric = np.array_equal(matrix, matrix.T)
    weights = np.zeros(matrix.shape, "float32" if kind == "float32" else "float64")
    weights[tails, heads] = data.draw(st.lists(KINDS[kind], min_size=len(tails), max_size=len(tails)))
    if symmetric:
        weights = np.maximum(weights, weights.T)
    edges = CSR.of(tails, heads, (weights[tails, heads],), len(matrix), (np.inf,))
    every = np.arange(len(matrix))
    (rows,) = rows_of_edges.rows_of_edges(sr.MIN_PLUS, edges, every, searches=searches_for(sr.MIN_PLUS, edges.dtypes, "cpu"))
    expected = rows.max(axis=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "_FEW", 1000)
        for greatest in (False, True):
            value = expected.max() if greatest else expected.min()
            one, some = (extreme_eccentricity(edges, greatest=greatest, every=every) for every in (False, True))
            assert one is not None
            assert some is not None
            assert one[0] == some[0] == value
            assert some[1].tolist() == np.flatnonzero(expected == value).tolist()
            assert {*one[1].tolist()} <= {*some[1].tolist()}
            assert len(one[1])


def test_a_few_searches_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    side = 40
    number = np.arange(side**2).reshape(side, side)
    ends = np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in ((number[1:], number[:-1]), (number[:, 1:], number[:, :-1]))])
    grid = np.zeros((side**2, side**2), dtype=bool)
    grid[tuple(ends.T)] = grid[tuple(ends[:, ::-1].T)] = True
    asked = 0

    def search(*args: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        return rows_of_edges.rows_of_edges(*args, **more)

    monkeypatch.setattr(distances, "rows_of_edges", search)
    found = extreme_eccentricity(weighted(grid), greatest=True, every=True)
    assert found is not None
    assert found[0] == 2 * (side - 1)
    assert found[1].tolist() == [0, side - 1, side**2 - side, side**2 - 1]
    assert asked < 20


@pytest.mark.parametrize("length", [-1.0, np.int64(1 << 60)])
def test_bounds_are_given_up(length: Any) -> None:
    """Every vertex is wanted and edges are negative, or integers exceed what float64 holds."""
    zero = np.inf if length < 0 else np.iinfo(np.int64).max
    assert extreme_eccentricity(weighted(np.eye(5, k=1, dtype=bool), length, zero), greatest=True, every=length < 0) is None


def test_bounds_that_do_not_get_on_are_given_up() -> None:
    ring = np.roll(np.eye(200, dtype=bool), 1, axis=1)
    edges = weighted(ring | ring.T)
    assert extreme_eccentricity(edges, greatest=True, every=True) is None
    assert distances.distance_sums(edges) is not None
