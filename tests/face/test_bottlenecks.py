"""Bottlenecks in undirected graphs: the numbers are SciPy's single linkage and NetworkX's spanning trees, and each path has its edges."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform

import semiring as sr
from semiring.algorithms import closure as closures
from semiring.algorithms import spanning_tree
from semiring.kernels import machine
from semiring.planning import planner

INF = np.inf
BETTER = {"min-max": np.minimum, "max-min": np.maximum}
WORSE = {"min-max": max, "max-min": min}

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def trees_of_small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SPANNING", 0)
    monkeypatch.setattr(planner, "spanning_seconds", lambda problem: 0.0)
    monkeypatch.setattr(planner, "_plans", {})


def symmetric(n: int, density: float, seed: int, dtype: Any = float, name: str = "min-max") -> Array:
    """Small numbers, so that many tie, and no edge at other places."""
    rng = np.random.default_rng(seed)
    zero = sr.semirings()[name].identities((np.dtype(dtype),))[0][0]
    low = 1 if np.dtype(dtype).kind == "u" else -9
    a = np.where(rng.random((n, n)) < density, rng.integers(low, 10, (n, n)).astype(dtype), np.array(zero, dtype))
    return np.where(np.tri(n, dtype=bool), a, a.T)


def by_definition(a: Array, name: str, *, reflexive: bool = True) -> Array:
    """Warshall's algorithm, a vertex at a time."""
    one = sr.semirings()[name].identities((a.dtype,))[1][0]
    closed, better = a.copy(), BETTER[name]
    through = BETTER["max-min" if name == "min-max" else "min-max"]
    for k in range(len(a)):
        closed = better(closed, through(closed[:, k, None], closed[k]))
    if reflexive:
        np.fill_diagonal(closed, one)
    return closed


def require_paths(paths: Any, a: Array, name: str, expected: Array, rows: Any = None, columns: Any = None) -> None:
    """Each path has edges of the graph, whose worst one is the element; there is one wherever the element says so."""
    zero = sr.semirings()[name].identities((a.dtype,))[0][0]
    every = range(len(a))
    for i in every if rows is None else rows:
        for j in every if columns is None else columns:
            path = paths.path(i, j)
            if len(path) != 1:  # an empty walk
                assert bool(path) == (expected[i, j] != zero)
            if len(path) > 1:
                edges = [a[u, v] for u, v in itertools.pairwise(path)]
                assert (path[0], path[-1]) == (i, j)
                assert WORSE[name](edges) == expected[i, j]
                assert zero not in edges


def test_it_is_single_linkage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SPANNING", 128)
    points = np.random.default_rng(0).random((300, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    closed = sr.closure(distances, sr.MIN_MAX, nonedge=INF)
    np.fill_diagonal(closed, 0)
    assert np.array_equal(closed, squareform(cophenet(linkage(squareform(distances, checks=False), "single"))))


def test_widest_paths_are_those_of_networkx() -> None:
    a = symmetric(40, 0.2, 3, name="max-min")
    graph = nx.Graph((i, j, {"weight": a[i, j]}) for i, j in zip(*np.nonzero(a != -INF), strict=True) if i != j)
    graph.add_nodes_from(range(40))
    forest = nx.maximum_spanning_tree(graph)
    closed = sr.closure(a, "max-min", nonedge=-INF)
    for i, paths in nx.all_pairs_shortest_path(forest):
        for j in range(40):
            path = paths.get(j)
            width = -INF if path is None else min((forest.edges[e]["weight"] for e in itertools.pairwise(path)), default=INF)
            assert closed[i, j] == width


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", ["min-max", "max-min"])
@given(n=st.integers(0, 23), density=st.sampled_from([0, 0.03, 0.1, 0.4, 1]), reflexive=st.booleans(), seed=st.integers(0, 10**6))
def test_every_dtype(dtype: str, name: str, n: int, density: float, reflexive: bool, seed: int) -> None:
    a = symmetric(n, density, seed, dtype, name)
    given, expected = a.copy(), by_definition(a, name, reflexive=reflexive)
    zero = sr.semirings()[name].identities((a.dtype,))[0][0]
    closed = sr.closure(a, name, reflexive=reflexive, nonedge=zero)
    assert closed.dtype == dtype
    assert np.array_equal(closed, expected)
    paths = sr.closure(a, name, reflexive=reflexive, nonedge=zero, paths=True)
    assert np.array_equal(paths.values, expected)
    require_paths(paths, a, name, expected)
    assert np.array_equal(a, given)


@given(n=st.integers(1, 23), density=st.sampled_from([0.03, 0.1, 0.4, 1]), reflexive=st.booleans(), sparse=st.booleans(), data=st.data())
@pytest.mark.parametrize("name", ["min-max", "max-min"])
def test_some_rows_and_sparse_graphs(name: str, n: int, density: float, reflexive: bool, sparse: bool, data: st.DataObject) -> None:
    a = symmetric(n, density, data.draw(st.integers(0, 10**6)), float, name)
    zero = sr.semirings()[name].identities((a.dtype,))[0][0]
    expected, graph, how = by_definition(a, name, reflexive=reflexive), a, {"nonedge": zero}
    if sparse:
        rows, columns = np.nonzero(a != zero)
        graph, how = sp.csr_array((a[rows, columns], (rows, columns)), shape=(n, n)), {}
    ends = st.none() | st.lists(st.integers(0, n - 1), min_size=1, max_size=4)
    sources, targets = data.draw(ends), data.draw(ends)
    how |= {"sources": sources, "targets": targets, "reflexive": reflexive}
    part = expected[np.ix_(range(n) if sources is None else sources, range(n) if targets is None else targets)]
    assert np.array_equal(sr.closure(graph, name, **how), part)
    paths = sr.closure(graph, name, paths=True, **how)
    assert np.array_equal(paths.values, part)
    require_paths(paths, a, name, expected, sources, targets)


@given(n=st.integers(0, 12), reflexive=st.booleans(), paths=st.booleans(), seed=st.integers(0, 10**6))
def test_fractions_are_compared_by_their_ranks(n: int, reflexive: bool, paths: bool, seed: int) -> None:
    a = symmetric(n, 0.4, seed)
    exact = np.array([[v if v == INF else Fraction(int(v), 7) for v in row] for row in a.tolist()], object).reshape(n, n)
    expected = by_definition(exact, "min-max", reflexive=reflexive)
    found = sr.closure(exact, "min-max", reflexive=reflexive, paths=paths, nonedge=INF)
    assert np.array_equal(found.values if paths else found, expected)


def test_infinite_entries_are_edges_without_a_limit() -> None:
    a = np.array([[INF, -INF, 3], [-INF, INF, INF], [3, INF, INF]])
    assert np.array_equal(sr.closure(a, "min-max"), [[-INF, -INF, 3], [-INF, -INF, 3], [3, 3, -INF]])


def test_a_stack_and_its_asymmetric_matrix() -> None:
    stack = np.stack([symmetric(150, 0.1, seed) for seed in range(3)])
    stack[1, 0, 5] = -20
    assert np.array_equal(sr.closure(stack, "min-max", nonedge=INF), [by_definition(a, "min-max") for a in stack])


def test_layouts_and_read_only_memory() -> None:
    a = symmetric(30, 0.3, 5)
    expected = by_definition(a, "min-max")
    twice = np.repeat(np.repeat(a, 2, axis=0), 2, axis=1)[::2, ::2]
    a.flags.writeable = False
    for matrix in (a, np.asfortranarray(a), twice, a[::-1, ::-1][::-1, ::-1]):
        assert np.array_equal(sr.closure(matrix, "min-max", nonedge=INF), expected)
        assert np.array_equal(sr.closure(matrix, "min-max", nonedge=INF, sources=[3, 1]), expected[[3, 1]])


def test_a_semiring_of_ones_own_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    def watched(*args: Any, **how: Any) -> bool:
        closed.append(spanning_tree.close_symmetric(*args, **how))
        return closed[-1]

    monkeypatch.setattr(closures, "close_symmetric", watched)
    fuzzy = sr.Semiring(
        "fuzzy", add=lambda a, b: a if a > b else b, mul=lambda a, b: a if a < b else b, zero=0.0, one=1.0, domain=(0, 1)
    )  # similarities, and their transitive closure
    a = np.random.default_rng(1).random((20, 20))
    a = np.maximum(a, a.T)
    expected = by_definition(a, "max-min")
    np.fill_diagonal(expected, 1)
    assert np.array_equal(sr.closure(a, fuzzy), expected)
    assert closed == [True]


def test_what_is_not_symmetric_or_no_number_is_closed_as_before() -> None:
    a = symmetric(20, 0.3, 7)
    a[19, 3] = -30
    assert np.array_equal(sr.closure(a, "min-max", nonedge=INF), by_definition(a, "min-max"))
    a[19, 3] = a[3, 19] = np.nan
    with pytest.raises(sr.DomainError):
        sr.closure(a, "min-max", nonedge=INF)
    sympy = pytest.importorskip("sympy")
    x = sympy.Symbol("x")
    symbols = np.array([[INF, x], [x, INF]], object)
    assert sr.closure(symbols, "min-max")[0, 1] == x


def test_a_method_that_is_named_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closures, "close_symmetric", lambda *args, **how: pytest.fail("a method was named"))
    a = symmetric(20, 0.3, 7)
    ways: list[dict[str, Any]] = [{"method": "blocked"}, {"block": 4}, {"device": "reference"}]
    for how in ways:
        assert np.array_equal(sr.closure(a, "min-max", nonedge=INF, **how), by_definition(a, "min-max"))


def test_explain_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "if symmetric  minimum spanning tree, " in repr(sr.explain(1000, "min-max", device="cpu"))
    assert "if symmetric" not in repr(sr.explain(1000, "min-plus", device="cpu"))
    assert "if symmetric" not in repr(sr.explain(1000, "min-max", method="blocked", device="cpu"))
    edges = sr.edges([(i, i + 1, i) for i in range(300)], directed=False)
    plan = sr.explain(edges, "max-min")
    assert (plan.strategy, plan.algorithm) == ("spanning tree", "Kruskal")
    one_way = sr.edges([(i, i + 1, i) for i in range(300)])
    assert sr.explain(one_way, "max-min").strategy != "spanning tree"


def test_statistics_and_weights_that_tie() -> None:
    ring = sr.edges([(i, (i + 1) % 50, 2) for i in range(50)], directed=False)
    assert np.array_equal(sr.closure(ring, "min-max"), np.where(np.eye(50, dtype=bool), -INF, 2))
    paths = sr.closure(ring, "min-max", paths=True)
    assert all(len(paths.path(0, j)) <= 50 for j in range(50))
    assert (np.asarray(paths.next_hops())[0, 1:] >= 0).all()
