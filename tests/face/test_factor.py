"""Sparse elimination: any rows, columns and entries of the closure out of a factor, compared with SciPy, NetworkX and the dense closure."""

from __future__ import annotations

import itertools
import pickle
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

import semiring as sr
from semiring.algorithms import elimination, symbolic
from semiring.algorithms.bellman_ford import exact_weight
from semiring.arrays import memory
from semiring.graphs import read_graph

Array = np.ndarray[Any, Any]

CLOSED = [name for name in sr.semirings() if name not in ("plus-times", "gf2")]


@pytest.fixture(params=["small fronts", "large fronts"])
def fronts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fronts by compiled code, and by products of the engine, in one subtree or in many."""
    if request.param == "large fronts":
        monkeypatch.setattr(elimination, "_SMALL", 3)
        monkeypatch.setattr(elimination, "_TASK", 64)


def roads(n: int, rng: np.random.Generator, *, directed: bool = False, share: float = 3.0) -> Any:
    """A sparse matrix of small whole weights, which any order of sums gives exactly."""
    m = int(share * n)
    tails, heads = rng.integers(0, max(n, 1), (2, m if n else 0))
    matrix = sp.coo_array((rng.integers(1, 50, len(tails)).astype(float), (tails, heads)), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix if directed else (matrix + matrix.T).tocsr()


@pytest.mark.sampled(29)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 97, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("fronts")
def test_distances_are_scipys(n: int, dtype: str, directed: bool) -> None:
    rng = np.random.default_rng(n)
    graph = roads(n, rng, directed=directed)
    expected = csgraph.dijkstra(graph) if n else np.zeros((0, 0))
    f = sr.factor(graph, dtype=dtype)

    def same(found: Any, wanted: Array) -> None:
        assert (found.dtype, found.shape) == (dtype, wanted.shape)
        infinite = np.iinfo(dtype).max if dtype == "int32" else np.inf
        np.testing.assert_array_equal(np.where(found == infinite, np.inf, found), wanted)

    same(f.closure(), expected)
    some, others = (rng.permutation(n)[: n // 2] for _ in range(2))
    same(f.rows(some), expected[some])
    same(f.columns(others), expected[:, others])
    same(f[some, others], expected[np.ix_(some, others)])
    same(f[others[:1], some], expected[np.ix_(others[:1], some)])
    if n:
        same(f.rows(n - 1), expected[n - 1])
        same(f.columns(0), expected[:, 0])
        same(f[0, :], expected[0])
        same(f[[0, 0], n - 1], expected[[0, 0], n - 1])
    seen = [(list(sources), rows) for sources, rows in f.blocks(7)]
    assert sorted(v for sources, _ in seen for v in sources) == list(range(n))
    for sources, rows in seen:
        same(rows, expected[sources])


@pytest.mark.sampled(7)
@pytest.mark.parametrize("semiring", CLOSED)
@pytest.mark.usefixtures("fronts")
def test_every_semirings_closure(semiring: str) -> None:
    rng = np.random.default_rng(5)
    matrix = sr.testing.random_matrix(semiring, 41, density=0.06, rng=rng)
    if semiring == "log":
        matrix -= 6.0  # so that sums over all walks converge
    f = sr.factor(matrix, semiring)
    expected = sr.closure(matrix, semiring)
    for found, wanted in zip(_parts(f.closure()), _parts(expected), strict=True):
        assert found.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found, wanted)


def _parts(values: Any) -> tuple[Array, ...]:
    """The components."""
    return values if isinstance(values, tuple) else (values,)


@pytest.mark.parametrize("isa", ["avx512", "avx2", "sse2"])
def test_every_instruction_set(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    graph = roads(120, rng, directed=True)
    expected = csgraph.dijkstra(graph)
    monkeypatch.setenv("SEMIRING_ISA", isa)
    try:
        f = sr.factor(graph)
    except sr.SemiringError as error:
        pytest.skip(str(error))
    np.testing.assert_array_equal(f.closure(), expected)
    np.testing.assert_array_equal(sr.factor(graph, dtype="f4").columns(range(5)), expected[:, :5])
    for dtype in ("f8", "f4", "i2"):
        found, wanted = sr.factor(graph, dtype=dtype).statistics(), sr.statistics(expected)
        np.testing.assert_array_equal(found.counts, wanted.counts)
        assert (found.total, found.farthest, found.connected) == (wanted.total, wanted.farthest, wanted.connected)


@pytest.mark.usefixtures("fronts")
def test_plus_times_solves_linear_systems() -> None:
    rng = np.random.default_rng(3)
    a = roads(150, rng, directed=True)
    a *= 0.5 / abs(a).sum(axis=1).max()
    exact = splu(sp.csc_array(sp.eye_array(150) - a))
    f = sr.factor(a, "plus-times")
    b = rng.standard_normal((150, 3))
    np.testing.assert_allclose(f.solve(b), exact.solve(b), rtol=1e-12)
    np.testing.assert_allclose(f.solve(b[:, 0]), exact.solve(b[:, 0]), rtol=1e-12)
    np.testing.assert_allclose(f.rows([3, 7]), np.linalg.inv(np.eye(150) - a.toarray())[[3, 7]], rtol=1e-10, atol=1e-14)


def test_a_solution_is_the_least() -> None:
    rng = np.random.default_rng(4)
    graph = roads(80, rng, directed=True)
    b = np.where(rng.random((80, 70)) < 0.05, rng.integers(0, 9, (80, 70)), np.inf)
    f = sr.factor(graph)
    np.testing.assert_array_equal(f.solve(b), sr.matmul(sr.apsp(graph), b, "min-plus"))
    assert f.solve(np.zeros((80, 0))).shape == (80, 0)
    with pytest.raises(sr.ShapeError, match="80 vertices"):
        f.solve(b[1:])


def test_negative_edges_are_bellman_and_fords() -> None:
    rng = np.random.default_rng(6)
    p = rng.integers(-40, 40, 120)
    coo = roads(120, rng, directed=True).tocoo()
    graph = sp.csr_array((coo.data + p[coo.row] - p[coo.col], (coo.row, coo.col)), shape=(120, 120))
    assert (graph.data < 0).any()
    np.testing.assert_array_equal(sr.factor(graph).closure(), csgraph.johnson(graph))


@pytest.mark.usefixtures("fronts")
def test_a_negative_cycle_is_named() -> None:
    rng = np.random.default_rng(7)
    graph = roads(60, rng, directed=True).tolil()
    for u, v, w in ((3, 50, -5.0), (50, 8, 1.0), (8, 3, 3.0)):
        graph[u, v] = w
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.factor(graph.tocsr())
    assert set(caught.value.cycle or ()) == {3, 50, 8}
    loop = sr.edges([("a", "b", 1.0), ("b", "b", -1.0)])
    with pytest.raises(sr.NegativeCycleError, match="b → b, weight -1"):
        sr.factor(loop)
    with pytest.raises(sr.DivergenceError):
        sr.factor(np.array([[0.0, 1.0], [1.0, 0.0]]), "plus-times")


def test_cycles_that_only_rounding_makes_negative_do_no_harm() -> None:
    rng = np.random.default_rng(8)
    n = 60
    p = rng.standard_normal(n) * 10
    coo = roads(n, rng).tocoo()
    weights = p[coo.row] - p[coo.col]
    # Rounded up, so that in exact arithmetic no cycle is negative, though in floats many are.
    exact = [Fraction(x) - Fraction(y) for x, y in zip(p[coo.row].tolist(), p[coo.col].tolist(), strict=True)]
    short = [Fraction(w) < x for w, x in zip(weights.tolist(), exact, strict=True)]
    weights[short] = np.nextafter(weights[short], np.inf)
    graph = sp.csr_array((weights, (coo.row, coo.col)), shape=(n, n))
    reached = np.isfinite(csgraph.dijkstra(graph.astype(bool), unweighted=True))
    f = sr.factor(graph)
    np.testing.assert_allclose(f.closure()[reached], (p[:, None] - p)[reached], atol=1e-12)
    assert np.isinf(f.closure()[~reached]).all()
    np.testing.assert_allclose(f.columns(3)[reached[:, 3]], (p - p[3])[reached[:, 3]], atol=1e-12)
    np.testing.assert_allclose(f.solve(np.zeros(n)), np.where(reached, p[:, None] - p, np.inf).min(axis=1), atol=1e-12)
    f.closure()[0] = f.rows(0)[:] = f.columns(0)[:] = f.solve(np.zeros(n))[:] = 1  # which are the caller's own
    paths = f.paths([3])
    for v in np.flatnonzero(reached[3]).tolist():
        way = paths.path(3, v)
        assert (way[0], way[-1]) == (3, v)
        np.testing.assert_allclose(sum(graph[x, y] for x, y in pairwise(way)), p[3] - p[v], atol=1e-12)
    f.update(graph.data + 1)
    np.testing.assert_allclose(f.rows(0), sr.apsp(sp.csr_array((graph.data + 1, graph.indices, graph.indptr)), sources=0), rtol=1e-12)


class TestPaths:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("semiring", ["min-plus", "max-min", "max-times", "distance-hops"])
    @pytest.mark.parametrize("zeros", [False, True])
    def test_they_are_real_and_best(self, semiring: str, zeros: bool) -> None:
        rng = np.random.default_rng(13)
        ends = rng.integers(0, 40, (100, 2)).tolist()
        weights = rng.choice([0.0, 0.5, 1.0] if zeros else [0.25, 0.5, 1.0], 100).tolist()
        graph = sr.edges([(u, v, w) for (u, v), w in zip(ends, weights, strict=True)], nodes=range(40), directed=semiring != "min-plus")
        f = sr.factor(graph, semiring)
        matrix = sr.closure(graph, semiring, paths=True)
        values = read_graph(graph, sr.semirings()[semiring]).values
        given: Any = values[0] if len(values) == 1 else values
        sr.testing.assert_paths_valid(f.paths(), given)
        for sources, targets in [(range(10), range(40)), (range(20, 30), [5, 6, 7]), (range(40), [3, 4])]:
            paths = f.paths(None if len(sources) == 40 else sources, targets)
            for (i, u), (j, v) in itertools.product(enumerate(sources), enumerate(targets)):
                path, element = paths.path(u, v), [part[i, j] for part in _parts(paths.values)]
                if path and u != v:
                    assert (path[0], path[-1]) == (u, v)
                    weight: Any = exact_weight(sr.semirings()[semiring], values, path)
                    assert list(weight if isinstance(weight, tuple) else (weight,)) == element
        for whole, one in zip(_parts(matrix.values), _parts(f.paths().values), strict=True):
            np.testing.assert_array_equal(one, whole)

    def test_of_some_vertices(self) -> None:
        f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0), ("c", "a", 1.0)]))
        assert f.paths("a", "c").path("a", "c") == ["a", "b", "c"]
        assert f.paths(targets="a").path("b", "a") == ["b", "c", "a"]
        assert f.paths("a").predecessors().tolist() == [-9999, 0, 1]
        f.update((["a"], ["c"], [0.5]))
        assert f.paths().path("a", "c") == ["a", "c"]
        with pytest.raises(sr.LawError):
            sr.factor(sr.edges([(0, 1, 0.5)]), "plus-times").paths()


class TestUpdate:
    @pytest.mark.usefixtures("fronts")
    def test_some_and_all_edges(self) -> None:
        rng = np.random.default_rng(9)
        graph = roads(200, rng, directed=True)
        coo = graph.tocoo()
        f = sr.factor(graph)
        for count in (1, 3, 40, coo.nnz):
            some = rng.permutation(coo.nnz)[:count]
            new = rng.integers(1, 50, count).astype(float)
            graph[coo.row[some], coo.col[some]] = new
            f.update((coo.row[some], coo.col[some], new) if count < coo.nnz else graph.data)
            np.testing.assert_array_equal(f.closure(), csgraph.dijkstra(graph))

    @pytest.mark.parametrize("dtype", [float, np.int16])
    def test_edges_are_closed_and_opened_again(self, dtype: Any) -> None:
        streets = sr.edges([("a", "b", 2), ("b", "c", 3), ("a", "c", 9)], directed=False)
        f = sr.factor(streets, dtype=dtype)
        f.update((["b"], ["c"], [np.inf]))
        assert [*f["a", ["b", "c"]], f["c", "b"]] == [2, 9, 11]
        f.update([1, 1, 1])
        assert [*f["a", ["b", "c"]], f["c", "b"]] == [1, 1, 1]

    def test_edges_that_are_named_twice_combine(self) -> None:
        f = sr.factor(sr.edges([(0, 1, 5.0), (0, 1, 7.0), (1, 2, 1.0)]))
        f.update([4.0, 3.0, 2.0])
        assert f[0, :].tolist() == [0.0, 3.0, 5.0]

    def test_an_edge_that_the_graph_has_not_can_be_closed(self) -> None:
        f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        f.update((["a", "a"], ["b", "c"], [4.0, np.inf]))
        assert f.rows("a").tolist() == [0, 4, 6]
        f.update((["c"], ["a"], [np.inf]))
        assert f.rows("a").tolist() == [0, 4, 6]

    def test_what_is_refused_changes_nothing(self) -> None:
        f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "a", 2.0), ("b", "c", 3.0)]))
        before = f.closure()
        for weights, kind, text in [
            ((["a"], ["c"], [1.0]), sr.GraphError, "no edge from 'a' to 'c'"),
            ((["a"], ["x"], [1.0]), sr.GraphError, "no vertex 'x'"),
            ([1.0], sr.GraphError, "1 weight for 3 edges"),
            ([1.0, np.nan, 1.0], sr.DomainError, "NaN"),
            ([1.0, -np.inf, 1.0], sr.DomainError, "-inf"),
            ([1j, 1j, 1j], sr.DTypeError, "complex"),
            (["x", "y", "z"], sr.SemiringError, "weights"),
            ([[1.0]], sr.ShapeError, "1 vertex, and the factor has 3"),
            ([[[1.0]]], sr.GraphError, "flat"),
            ([1.0, -2.0, 1.0], sr.NegativeCycleError, "weight -1"),
        ]:
            with pytest.raises(kind, match=text):
                f.update(weights)
            np.testing.assert_array_equal(f.closure(), before)
        whole = sr.factor(sr.edges([(0, 1, 1)]), dtype="int32")
        for weight in (0.5, 2.0**40, -np.inf):
            with pytest.raises(sr.SemiringError, match="weights"):
                whole.update([weight])

    def test_what_is_refused_changes_nothing_of_a_factor_by_potentials(self) -> None:
        rng = np.random.default_rng(14)
        p = rng.standard_normal(12) * 10
        exact = [[Fraction(x) - Fraction(y) for y in p.tolist()] for x in p.tolist()]
        w = np.subtract.outer(p, p)
        for at in np.ndindex(w.shape):
            while Fraction(float(w[at])) < exact[at[0]][at[1]]:
                w[at] = np.nextafter(w[at], np.inf)
        edges = [(i, j, float(w[i, j])) for i, j in np.ndindex(w.shape) if i != j] + [(12, 13, 1.0), (13, 12, 1.0)]
        f = sr.factor(sr.edges(edges))
        before = f.closure()
        with pytest.raises(sr.NegativeCycleError):
            f.update(([12], [13], [-5.0]))
        assert f.closure().tobytes() == before.tobytes()

    def test_a_sparse_array_that_does_not_list_its_entries(self) -> None:
        coo = sp.coo_array(([1.0, 2.0, 3.0], ([2, 1, 0], [0, 2, 1])))
        f = sr.factor(coo.todok())
        with pytest.raises(sr.GraphError, match=r"have no order: pass .* or a sparse array"):
            f.update(coo.data)
        f.update((coo.row, coo.col, coo.data + 1))
        coo.data += 1
        np.testing.assert_array_equal(f.closure(), sr.apsp(coo))

    def test_one_edge_and_structured_elements(self) -> None:
        f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]))
        f.update(("a", "b", 5.0))
        assert f["a", ["b", "c"]].tolist() == [5.0, 7.0]
        g = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), "distance-hops")
        g.update((["a"], ["b"], ([4.0], [1.0])))
        assert [float(v) for v in g["a", "c"]] == [6.0, 2.0]


class TestOverflow:
    """What leaves the dtype is refused, also where only a part of a row is asked; what stays inside is found, whatever the detours."""

    def test_single_entries(self) -> None:
        f = sr.factor(sr.edges([(i, i + 1, 5000) for i in range(9)]), dtype="int16")
        for ask in (lambda: f.rows(0), lambda: f[0, 5], lambda: f[[0], [5, 6]], lambda: f.columns(9)):
            with pytest.raises(sr.OverflowRiskError):
                ask()
        for semiring, weight, dtype in (("min-plus", 1e38, "float32"), ("max-times", 100, "int32")):
            path = sr.factor(sr.edges([(i, i + 1, weight) for i in range(9)]), semiring, dtype=dtype)
            with pytest.raises(sr.OverflowRiskError):
                path[0, 6]

    def test_long_detours(self) -> None:
        grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(16, 16))
        nx.set_edge_attributes(grid, dict.fromkeys(grid.edges, 14000), "weight")
        grid.add_weighted_edges_from((256, v, 1) for v in range(256))
        expected = sr.apsp(grid, dtype="int64")
        assert expected.max() == 2
        for dtype in ("int16", "int32", "float32"):
            np.testing.assert_array_equal(sr.factor(grid, dtype=dtype).closure(), expected)
            np.testing.assert_array_equal(sr.factor(grid, dtype=dtype, order="natural").columns([3, 256]), expected[:, [3, 256]])

    def test_sums_that_would_wrap_on_the_way(self) -> None:
        """Supernodes in a chain, each with a long edge to the next one, while the distances are short."""
        edges: list[tuple[Any, Any, int]] = [("v0", "hub", 1)]
        order: list[Any] = ["v0"]
        for i in range(1, 6):
            edges += [(f"v{i - 1}", f"v{i}", 13107), ("hub", f"v{i}", 1), *(((i, p), f"v{i}", 1) for p in range(80))]
            order += [*((i, p) for p in range(80)), f"v{i}"]
        f = sr.factor(sr.edges(edges), dtype="int16", order=[*order, "hub"], check=False)
        assert f["v0", [f"v{i}" for i in range(6)]].tolist() == [0, 2, 2, 2, 2, 2]

    def test_solutions(self) -> None:
        f = sr.factor(sr.edges([(0, 1, 3), (0, 2, 9)]), dtype="int32")
        assert f.solve([np.inf, 5, 1]).tolist() == [8, 5, 1]
        signed = sr.factor(sr.edges([(0, 1, 3), (0, 2, -9)]), dtype="int32")
        assert signed.solve([np.inf, 5, 1]).tolist() == [-8, 5, 1]
        small = sr.factor(sr.edges([(0, 1, 100), (1, 2, -5)]), dtype="int16")
        for factored, b, kind in [
            (f, [0.5, 5, 1], sr.SemiringError),
            (small, [np.inf, 32700, np.inf], sr.OverflowRiskError),
            (sr.factor(sr.edges([(0, 1, 1.0)])), [np.nan, 5.0], sr.DomainError),
            (f, [1j, 1, 1], sr.DTypeError),
        ]:
            with pytest.raises(kind):
                factored.solve(b)


@settings(max_examples=25)
@given(st.data())
def test_any_graph_in_any_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 25))
    vertices = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertices, vertices, st.integers(0, 9)), max_size=60))
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(edges)
    f = sr.factor(graph, order=data.draw(st.permutations(range(n))))
    expected = np.array([[nx.single_source_dijkstra_path_length(graph, u).get(v, np.inf) for v in range(n)] for u in range(n)])
    np.testing.assert_array_equal(f.closure(), expected)
    sources, targets = (data.draw(st.lists(vertices, max_size=4)) for _ in range(2))
    np.testing.assert_array_equal(f[sources, targets], expected[np.ix_(sources, targets)])


@pytest.mark.parametrize("order", [*symbolic.ORDERS, "natural"])
def test_orders(order: str) -> None:
    assert sr.factor(sp.csr_array((0, 0)), order=order).closure().shape == (0, 0)
    module = symbolic.ORDERS.get(order, ("numpy",))[0]
    pytest.importorskip(module)
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 13))
    f = sr.factor(grid, order=order)
    np.testing.assert_array_equal(f.rows(5), sr.apsp(grid, sources=5))
    assert sorted(f.order) == list(range(156))
    again = sr.factor(grid, order=f.order)
    assert again.fill == f.fill
    if order != "natural":
        assert f.fill < sr.factor(grid, order="natural").fill


def test_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(11)
    graph = roads(400, rng)
    graph.data = rng.random(graph.nnz)
    one, three = (sr.factor(graph, threads=threads).closure() for threads in (1, 3))
    assert one.tobytes() == three.tobytes()


def test_whatever_is_no_graph_gets_an_error_of_the_family() -> None:
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (np.zeros((2, 3)), {}, sr.ShapeError, "square"),
        (np.ones((2, 3, 3)), {}, sr.GraphError, "batch"),
        (np.full((2, 2), np.nan), {}, sr.DomainError, "NaN"),
        (sp.csr_array((3, 4)), {}, sr.ShapeError, "square"),
        (np.array([[1, None]] * 2, dtype=object), {}, sr.DTypeError, "objects"),
        (sr.edges([(0, 1)]), {"order": "best"}, sr.GraphError, "'auto', 'metis'"),
        (sr.edges([(0, 1)]), {"order": [0, 0]}, sr.GraphError, "once"),
        (sr.edges([(0, 1)]), {"semiring": "no"}, sr.SemiringError, "no"),
        (sr.edges([(0, 1, 2**15)], directed=False), {"dtype": "int16"}, sr.SemiringError, "int16"),
    ]
    for graph, options, kind, text in cases:
        with pytest.raises(kind, match=text):
            sr.factor(graph, **options)
    f = sr.factor(sr.edges([("a", "b")]))
    for ends in ("a", ("a", "x"), ("a", "b", "a")):
        with pytest.raises(sr.GraphError):
            f[ends]


def test_entries_of_every_kind() -> None:
    """Unsorted rows, duplicates, of which the shorter counts, explicit zeros, which are edges, explicit ∞, which are none, and loops."""
    data = np.array([3.0, 0.0, 1.0, 2.0, np.inf, 7.0, 4.0])
    graph = sp.csr_array((data, np.array([2, 1, 2, 0, 3, 3, 2]), np.array([0, 3, 5, 6, 7])), shape=(4, 4))
    assert not graph.has_canonical_format
    expected = sr.apsp(graph)
    np.testing.assert_array_equal(sr.factor(graph).closure(), expected)
    assert expected[0].tolist() == [0.0, 0.0, 1.0, 8.0]
    np.testing.assert_array_equal(sr.factor(graph.tocoo(), dtype=np.float32).closure(), expected)


def test_fill_without_room_is_refused_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "fits", lambda size, device: size < 10_000)
    with pytest.raises(sr.TooLargeError, match=r"144 vertices in the order .* fills [0-9,]+ entries, and on 3 threads takes [0-9.]+ .?i?B"):
        sr.factor(nx.grid_2d_graph(12, 12), threads=3)
    monkeypatch.undo()
    f = sr.factor(nx.path_graph(5))
    monkeypatch.setattr(memory, "fits", lambda size, device: False)
    for ask, instead in ((f.closure, r"f\.blocks"), (f.rows, r"f\.blocks"), (f.paths, "paths from fewer vertices")):
        with pytest.raises(sr.TooLargeError, match=rf"5 × 5 elements .* {instead}"):
            ask()
    with pytest.raises(sr.TooLargeError, match=r"b would take .*; pass fewer at a time"):
        f.solve(np.zeros(5))


def test_threads_without_work_take_no_memory() -> None:
    assert sr.factor(nx.path_graph(5), threads=10**9).rows(0).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", ["a", 2.5, True, 0, np.ones(2)], ids=str)
def test_blocks_of_no_size_are_refused_before_the_first(size: Any) -> None:
    with pytest.raises(sr.GraphError, match=r"size is .*; it must be a whole number from 1"):
        sr.factor(nx.path_graph(5)).blocks(size)


def test_the_reference_engine_eliminates_nothing(tmp_path: Path) -> None:
    sr.factor(nx.path_graph(2)).save(tmp_path / "f.npz")
    others = r"use 'auto', 'cpu', 'cuda', 'cuda:0', …(?! or)"
    for device, text in (("reference", f"which only compiled code does; {others}"), ("tpu", f"unknown device 'tpu'; {others}")):
        with pytest.raises(sr.SemiringError, match=text):
            sr.factor(nx.path_graph(2), device=device)
        with pytest.raises(sr.SemiringError, match=text):
            sr.Factor.load(tmp_path / "f.npz", device=device)


def test_what_would_work_where_something_does_not() -> None:
    with pytest.raises(sr.LawError, match=r"a best path needs .*; f\.rows\(\), .* without paths"):
        sr.factor(sr.edges([("a", "b")]), sr.DISTANCE_COUNT).paths()
    for semiring in (sr.BOOLEAN, sr.GF2):
        with pytest.raises(sr.DTypeError, match="not a truth value; pass truth values"):
            sr.factor(sr.edges([("a", "b", True)]), semiring).solve([2, 1])
    f = sr.factor(sp.csr_array((1, 1)))
    with pytest.raises(sr.ShapeError, match="each of 1 vertex,"):
        f.solve(np.ones(2))
    with pytest.raises(sr.DTypeError, match="b must be numbers, not object"):
        f.solve([None])
    assert repr(f).startswith("<factor of 1 vertex over")
    assert ", 1 step, " in repr(f)
    assert "order natural, 1 entry of fill, height 1, " in repr(sr.factor(sr.edges([("a", "b", 1.0)]), "min-plus", order="natural"))


def test_nothing_of_the_callers_is_changed() -> None:
    rng = np.random.default_rng(12)
    graph = roads(50, rng)
    graph.data.flags.writeable = False
    kept = graph.copy()
    f = sr.factor(graph)
    f.update(kept.data + 1)
    assert (graph != kept).nnz == 0


def test_what_it_says() -> None:
    f = sr.factor(sr.edges([("a", "b"), ("b", "c")], directed=False), order="natural")
    assert repr(f).startswith("<factor of 3 vertices over min-plus: order natural, 2 entries of fill, height 1, ")
    assert re.search(r", [0-9,]+ steps, [0-9.]+ KiB>$", repr(f))
    text = f._repr_html_()
    assert all(word in text for word in ("order", "natural", "height", "steps", "memory"))


class TestUpdatesOfEveryKind:
    def test_one_edge_between_numbers(self) -> None:
        f = sr.factor(sr.edges([(0, 1, 10.0), (1, 2, 10.0), (2, 3, 10.0)]))
        f.update((0, 1, 5.0))
        assert f.rows(0).tolist() == [0, 5, 15, 25]

    @pytest.mark.parametrize("kind", ["list", "csr", "networkx"])
    def test_an_edge_that_was_closed_is_opened(self, kind: str) -> None:
        ends, weights = [(0, 1), (0, 2), (1, 2)], [4.0, np.inf, 1.0]
        graph: Any = sr.edges([(u, v, w) for (u, v), w in zip(ends, weights, strict=True)], nodes=range(3))
        if kind == "csr":
            graph = sp.csr_array((weights, tuple(np.transpose(ends))), shape=(3, 3))
        if kind == "networkx":
            graph = nx.DiGraph()
            graph.add_weighted_edges_from([(u, v, w) for (u, v), w in zip(ends, weights, strict=True)])
        f = sr.factor(graph)
        assert f.rows(0).tolist() == [0, 4, 5]
        assert f.paths(0).path(0, 2) == [0, 1, 2]
        f.update([4.0, 3.0, 1.0])
        assert f.rows(0).tolist() == [0, 4, 3]
        f.update(([0], [2], [np.inf]))
        assert f.rows(0).tolist() == [0, 4, 5]

    def test_a_vertex_behind_a_closed_edge_has_no_path(self) -> None:
        f = sr.factor(sr.edges([("a", "b", np.inf), ("b", "c", 1.0)]))
        assert f.paths("a").path("a", "c") == []
        assert f.paths("a").predecessors().tolist() == [-9999] * 3

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo", "unsorted", "duplicates", "pydata"])
    def test_weights_come_in_the_order_of_the_entries(self, kind: str) -> None:
        rng = np.random.default_rng(4)
        graph: Any = sp.random_array((20, 20), density=0.1, rng=rng, format="coo")
        graph.data = rng.integers(1, 90, graph.nnz).astype(float)
        if kind == "unsorted":
            graph = graph.tocsr()
            graph.indices, graph.data = (
                np.concatenate([x[i:j][::-1] for i, j in itertools.pairwise(graph.indptr)]) for x in (graph.indices, graph.data)
            )
            graph.has_sorted_indices = graph.has_canonical_format = False
        elif kind == "duplicates":
            graph = sp.coo_array((np.tile(graph.data, 2), (np.tile(graph.row, 2), np.tile(graph.col, 2))), shape=(20, 20))
        elif kind == "pydata":
            graph = pytest.importorskip("sparse").COO(graph)
        else:
            graph = graph.asformat(kind)
        f = sr.factor(graph)
        new = rng.integers(1, 90, graph.nnz).astype(float)
        f.update(new)
        other = graph.copy()
        other.data[:] = new
        np.testing.assert_array_equal(f.closure(), sr.apsp(other))

    @pytest.mark.parametrize("kind", ["array", "nested list", "frame", "sparse", "edges", "one way", "upper triangle"])
    def test_graphs_without_the_attribute_that_the_factor_was_told(self, kind: str) -> None:
        roads = nx.Graph()
        roads.add_edge(0, 1, km=2.0)
        roads.add_edge(1, 2, km=3.0)
        f = sr.factor(roads, weight="km")
        matrix = np.array([[0, 5.0, np.inf], [5, 0, 6], [np.inf, 6, 0]])
        graphs: dict[str, Any] = {
            "array": matrix,
            "nested list": matrix.tolist(),
            "frame": pd.DataFrame(matrix),
            "sparse": sp.csr_array(np.where(np.isinf(matrix), 0, matrix)),
            "edges": sr.edges([(0, 1, 5.0), (1, 2, 6.0)], directed=False),
            "one way": sr.edges([(0, 1, 5.0), (1, 2, 6.0)]),
            "upper triangle": np.where(np.triu(np.ones((3, 3)), 1) > 0, matrix, np.inf),
        }
        f.update(graphs[kind])
        assert f.closure().tolist() == [[0, 5, 11], [5, 0, 6], [11, 6, 0]]
        f.update(roads)
        assert f.rows(0).tolist() == [0, 2, 5]
        with pytest.raises(sr.GraphError, match="leave it out"):
            f.update(matrix, weight="km")

    def test_parallel_edges_both_ways_combine(self) -> None:
        f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "a", 2.0)], directed=False))
        f.update([5.0, 7.0])
        assert f.closure().tolist() == [[0, 5], [5, 0]]
        f.update((["a", "b"], ["b", "a"], [9.0, 8.0]))
        assert f.closure().tolist() == [[0, 8], [8, 0]]

    def test_dense_matrices_of_structured_elements(self) -> None:
        lengths, counts = np.array([[np.inf, 2.0], [3, np.inf]]), np.array([[0.0, 1], [1, 0]])
        f = sr.factor((lengths, counts), sr.DISTANCE_COUNT)
        f.update((2 * lengths, counts))
        assert f.closure()[0].tolist() == [[0, 4], [6, 0]]

    def test_graphs_of_the_same_vertices(self) -> None:
        matrix = sp.csr_array(np.array([[0, 4.0, 9.0], [0, 0, 1.0], [0, 0, 0]]))
        f = sr.factor(matrix)
        f.update(np.array([[np.inf, 7.0, 9.0], [np.inf] * 3, [np.inf] * 3]))  # a dense matrix, which says that one is closed
        assert f.rows(0).tolist() == [0, 7, 9]
        f.update(matrix * 2)
        assert f.rows(0).tolist() == [0, 8, 10]
        roads = nx.Graph()
        roads.add_weighted_edges_from([("a", "b", 1.0), ("b", "c", 2.0)])
        g = sr.factor(roads)
        roads["a"]["b"]["weight"] = 5.0
        g.update(roads)
        assert g.rows("c").tolist() == [7, 2, 0]
        g.update(sr.edges([("c", "b", 3.0)], directed=False))  # a part of it
        assert g.rows("c").tolist() == [8, 3, 0]
        with pytest.raises(sr.GraphError, match="there is no edge from 1 to 0"):
            f.update(sp.csr_array((([7.0]), ([1], [0])), shape=(3, 3)))
        with pytest.raises(sr.ShapeError, match="4 vertices, and the factor has 3"):
            f.update(sp.csr_array((4, 4)))
        assert f.rows(0).tolist() == [0, 8, 10]


def test_what_is_stored_twice_is_added_with_the_semirings_sum() -> None:
    graph = sp.coo_array(([5.0, 3.0, 1.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    for found in (sr.apsp(graph), sr.factor(graph).closure(), sr.closure(graph, "min-plus")):
        assert found[0].tolist() == [0, 3, 4]
    assert sr.closure(graph, "max-min")[0].tolist() == [np.inf, 5, 1]
    assert sr.power(graph, 2, "min-plus").toarray()[0, 2] == sr.matmul(graph, graph, "min-plus").toarray()[0, 2] == 4
    assert sr.statistics(graph).largest == 4


def test_a_factor_says_how_it_is_kept() -> None:
    with pytest.raises(TypeError, match=r"f\.save\(path\)"):
        pickle.dumps(sr.factor(nx.path_graph(3)))


@pytest.mark.parametrize("function", [sr.factor, sr.apsp, sr.statistics, sr.reachability, sr.cycle_mean, sr.transitive_closure])
def test_entries_outside_of_a_sparse_array_are_refused(function: Any) -> None:
    graph = sp.csr_array(np.array([[0, 1.0, 2], [0, 0, 3], [1, 0, 0]]))
    graph.indices[1] = 7
    with pytest.raises(sr.GraphError, match=r"outside of its shape \(3, 3\)"):
        function(graph)


@pytest.mark.parametrize("function", [sr.factor, sr.apsp, sr.statistics])
def test_more_vertices_than_there_is_memory(function: Any) -> None:
    graph = sp.coo_array(([1.0], ([0], [2**40])), shape=(2**41, 2**41))
    with pytest.raises(sr.TooLargeError, match="2,199,023,255,552 vertices"):
        function(graph)
