"""Chosen sources and targets: a rectangle of the whole closure, by whatever way it is found."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
import tracemalloc
from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.algorithms import rows_of_edges
from semiring.planning import planner

INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # zeros everywhere, on purpose

WAYS = ["dense", "edges", "whole"]
"""How rows are found: by products, edge by edge, or out of the whole closure."""


@pytest.fixture(autouse=True)
def as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs, whose closure would always be faster, take the way of large ones unless a method is named."""
    monkeypatch.setattr(planner, "_plans", {})
    monkeypatch.setattr(planner, "closure_seconds", lambda *_: math.inf)


def listed(a: Any, semiring: Any = sr.MIN_PLUS) -> sr.EdgeList:
    """A dense matrix as the list of its edges, with vertices 0 … n − 1; an infinite 1 is written so, whatever integer stands for it."""
    parts: list[Any] = list(a) if isinstance(a, tuple) else [a]
    zero, one = semiring.identities([p.dtype for p in parts])
    n = len(parts[0])
    there = [(i, j) for i in range(n) for j in range(n) if any(p[i, j] != z for p, z in zip(parts, zero, strict=True))]
    weights = [tuple(p[i, j] for p in parts) if len(parts) > 1 else parts[0][i, j] for i, j in there]
    if semiring.one in (INF, -INF):
        weights = [semiring.one if w == one[0] else w for w in weights]
    return sr.edges([(i, j, w) for (i, j), w in zip(there, weights, strict=True)], nodes=range(n))


def asked(a: Any, semiring: Any, way: str, **how: Any) -> Any:
    """The closure of what is asked, in one of the ways."""
    if way == "whole":
        how["method"] = "recursive"
    if way == "edges":
        how["dtype"] = [p.dtype for p in a] if isinstance(a, tuple) else a.dtype
        a = listed(a, semiring)
    return sr.closure(a, semiring, **how)


def rectangle(full: Any, sources: Any, targets: Any) -> Any:
    if isinstance(full, tuple):
        return tuple(rectangle(part, sources, targets) for part in full)
    return full[np.ix_(range(len(full)) if sources is None else sources, range(len(full)) if targets is None else targets)]


def assert_equal(found: Any, expected: Any) -> None:
    for x, y in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        assert np.array_equal(x, y)


def ends(n: int) -> Any:
    some = st.none() | st.lists(st.integers(0, n - 1), max_size=n + 2)
    return st.tuples(some, some).filter(lambda e: e != (None, None))


CASES: list[tuple[Any, Any]] = [
    (sr.MIN_PLUS, "float64"),
    (sr.MIN_PLUS, "float32"),
    (sr.MIN_PLUS, "int32"),
    (sr.MIN_PLUS, "uint8"),
    (sr.MIN_PLUS, object),
    (sr.MAX_PLUS, "int16"),
    (sr.MAX_MIN, "float64"),
    (sr.MIN_MAX, "int64"),
    (sr.MAX_TIMES, "float64"),
    (sr.BOOLEAN, "bool"),
    (sr.BITSET, "uint32"),
    (sr.DISTANCE_HOPS, "float64"),
    (sr.PLUS_TIMES, "float64"),
]


@pytest.mark.sampled(14)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("semiring", "dtype"), CASES, ids=lambda v: getattr(v, "name", str(v)))
@settings(max_examples=10)
@given(data=st.data())
def test_it_is_the_rectangle_of_the_whole(semiring: Any, dtype: Any, way: str, data: st.DataObject) -> None:
    a = data.draw(testing.matrices(semiring, dtype, max_n=6).filter(lambda a: len(a[0] if isinstance(a, tuple) else a) > 0))
    if semiring is sr.PLUS_TIMES:
        a = np.triu(a, 1)  # its closure is a sum of few terms
    n = len(a[0] if isinstance(a, tuple) else a)
    sources, targets = data.draw(ends(n))
    reflexive = data.draw(st.booleans())
    expected = rectangle(sr.closure(a, semiring, reflexive=reflexive), sources, targets)
    assert_equal(asked(a, semiring, way, reflexive=reflexive, sources=sources, targets=targets), expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float64", "int32", object])
@settings(max_examples=20)
@given(data=st.data())
def test_negative_edges_and_cycles(way: str, dtype: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    kind = np.dtype(dtype)
    infinity: Any = np.iinfo(kind).max if kind.kind == "i" else INF
    entries = data.draw(st.lists(st.just(infinity) | st.integers(-2, 5), min_size=n * n, max_size=n * n))
    a = np.array([w if w == infinity or kind.kind != "O" else Fraction(w) for w in entries], dtype=kind).reshape(n, n)
    sources, targets = data.draw(ends(n))
    roots, backward = (sources, False) if sources is not None else (targets, True)
    if sources is not None and targets is not None and len(targets) < len(sources):
        roots, backward = targets, True
    # Reachable vertices, and the graph that they induce: only its cycles count. SciPy says which those are.
    dense = np.where(a == infinity, 0, 1).astype(int)
    reach = {
        v for r in roots for v in csgraph.breadth_first_order(sp.csr_array(dense.T if backward else dense), r, return_predecessors=False)
    }
    part = a.copy()
    outside = [v for v in range(n) if v not in reach]
    part[outside, :] = part[:, outside] = infinity
    try:
        full = sr.closure(part, sr.MIN_PLUS)
    except sr.NegativeCycleError:
        with pytest.raises(sr.NegativeCycleError) as caught:
            asked(a, sr.MIN_PLUS, way, sources=sources, targets=targets)
        cycle = caught.value.cycle
        assert cycle is not None
        assert sum(a[u, v] for u, v in zip(cycle, cycle[1:] + cycle[:1], strict=True)) < 0
        return
    assert np.array_equal(asked(a, sr.MIN_PLUS, way, sources=sources, targets=targets), rectangle(full, sources, targets))


def weight_of(a: Any, path: list[int]) -> Any:
    return sum((a[u, v] for u, v in itertools.pairwise(path)), start=0)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=20)
@given(data=st.data())
def test_paths(way: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    potential = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)))
    entries = data.draw(st.lists(st.just(INF) | st.integers(0, 3), min_size=n * n, max_size=n * n))
    # Edges of any sign on cycles of none that is negative, many of which weigh 0.
    a = np.array(entries, dtype=float).reshape(n, n) + potential[:, None] - potential
    sources, targets = data.draw(ends(n))
    reflexive = data.draw(st.booleans())
    full = sr.closure(a, sr.MIN_PLUS, reflexive=reflexive)
    paths = asked(a, sr.MIN_PLUS, way, reflexive=reflexive, sources=sources, targets=targets, paths=True)
    rows, columns = (range(n) if e is None else e for e in (sources, targets))
    assert isinstance(paths, sr.PathsBetween)
    assert (paths.sources, paths.targets) == (tuple(rows), tuple(columns))
    assert np.array_equal(paths.distances, rectangle(full, sources, targets))
    for i in rows:
        for j, path in zip(columns, paths.paths_from(i), strict=True):
            assert path == paths.path(i, j)
            assert paths.distance(i, j) == full[i, j]
            assert bool(path) == (full[i, j] < INF)
            if path:
                assert (path[0], path[-1]) == (i, j)
                assert weight_of(a, path) == full[i, j]
                assert len(set(path)) >= len(path) - (not reflexive and i == j)
    if sources is None:
        hops = paths.next_hops()
        assert hops.shape == (n, len(columns))
        for i in range(n):
            for column, j in enumerate(columns):
                path = paths.path(i, j)
                assert hops[i, column] == (path[1] if len(path) > 1 and i != j else -9999)
    else:
        before = paths.predecessors()
        assert before.dtype == np.int32
        assert before.shape == (len(rows), n)
        for row, i in enumerate(rows):
            for j in range(n):
                connected = i != j and full[i, j] < INF
                assert (before[row, j] >= 0) == connected
                if connected:
                    u = before[row, j]
                    assert (0 if u == i else full[i, u]) + a[u, j] == full[i, j]


@pytest.mark.parametrize("way", ["dense", "edges", "whole"])
def test_the_cases_of_scipy(way: str) -> None:
    rng = np.random.default_rng(3)
    for n, density, low in ((40, 0.08, 0.5), (60, 0.05, -0.2), (200, 0.02, 0.1)):
        a = np.where(rng.random((n, n)) < density, low + rng.random((n, n)) * 10 + (n if low < 0 else 0), INF)
        p = rng.random(n) * (n if low < 0 else 0)
        a = a + p[:, None] - p
        indices = rng.integers(0, n, 7)
        graph = csgraph.csgraph_from_dense(a, null_value=INF)
        expected, before = csgraph.bellman_ford(graph, indices=indices, return_predecessors=True)
        paths = asked(a, sr.MIN_PLUS, way, sources=indices, paths=True)
        np.testing.assert_allclose(paths.distances, expected, atol=1e-9)
        assert np.array_equal(paths.predecessors(), before)
        np.testing.assert_allclose(asked(a.T, sr.MIN_PLUS, way, targets=indices).T, expected, atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_counting_paths(way: str) -> None:
    graph = nx.gnp_random_graph(30, 0.15, seed=2)
    a = np.where(nx.to_numpy_array(graph, nodelist=range(30)) > 0, 1.0, INF)
    counts = np.where(a < INF, 1.0, 0.0)
    distance, number = asked((a, counts), sr.DISTANCE_COUNT, way, sources=[4, 0])
    for row, source in enumerate((4, 0)):
        for target, length in nx.single_source_shortest_path_length(graph, source).items():
            assert distance[row, target] == length
            assert number[row, target] == len(list(nx.all_shortest_paths(graph, source, target)))
    with pytest.raises(sr.DivergenceError):
        asked((np.where(a < INF, 0.0, INF), counts), sr.DISTANCE_COUNT, way, sources=[4])


@pytest.mark.parametrize("way", WAYS)
def test_a_far_negative_cycle(way: str) -> None:
    n = 120
    a = np.full((n, n), INF)
    a[np.arange(n - 1), np.arange(1, n)] = 1.0
    a[n - 1, n - 4] = -3.5
    with pytest.raises(sr.NegativeCycleError) as caught:
        asked(a, sr.MIN_PLUS, way, sources=[0, 3])
    assert caught.value.cycle is not None
    assert set(caught.value.cycle) == set(range(n - 4, n))
    a[n - 1, n - 4] = -3.0
    assert asked(a, sr.MIN_PLUS, way, sources=0)[n - 1] == n - 1
    a[n - 1, n - 4], a[59, 60] = -3.5, INF
    assert asked(a, sr.MIN_PLUS, way, sources=[0, 3])[1, 59] == 56
    assert asked(a, sr.MIN_PLUS, way, targets=[5])[0, 0] == 5


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_where_only_rounding_makes_a_cycle_negative(way: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:
        start, x, y = (float(v) for v in rng.random(3) * [1000, 1, 1])
        z = -(x + y)
        if start + x + y + z < start and sum(map(Fraction, (x, y, z))) >= 0:
            break
    n = 40
    a = np.full((n, n), INF)
    a[0, 1], a[1, 2], a[2, 3], a[3, 1] = start, x, y, z
    a[np.arange(3, n - 1), np.arange(4, n)] = rng.random(n - 4)
    exact = np.array([[Fraction(w) if w < INF else INF for w in row] for row in a.tolist()], dtype=object)
    expected = sr.apsp(exact)
    paths = asked(a, sr.MIN_PLUS, way, sources=[0, 2], paths=True)
    np.testing.assert_allclose(paths.distances, expected[[0, 2]].astype(float), rtol=n * 1e-15)
    for source in (0, 2):
        for target in range(n):
            path = paths.path(source, target)
            assert bool(path) == (expected[source, target] < INF)
            assert len(set(path)) == len(path)
            if path:
                assert float(weight_of(exact, path)) == pytest.approx(float(expected[source, target]), rel=n * 1e-15)


@pytest.mark.parametrize("side", ["sources", "targets"])
def test_many_rows_with_cycles_of_rounding_go_by_potentials(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hills of which steps are as long as they are high, rounded up; rounds of NumPy would take a fraction of a second for each row."""
    monkeypatch.setattr(rows_of_edges._Search, "run", None)
    r, rng = 12, np.random.default_rng(4)
    n = r * r
    height = rng.random(2 * n) * np.exp(rng.normal(size=2 * n) * 3)
    number = np.arange(n).reshape(r, r)
    across = np.concatenate([np.stack([number[:, 1:], number[:, :-1]], -1), np.stack([number[1:], number[:-1]], -1).swapaxes(0, 1)])
    ends = np.concatenate([across.reshape(-1, 2), across.reshape(-1, 2) + n])
    tails, heads = np.concatenate([ends, ends[:, ::-1]]).T
    weights = height[tails] - height[heads]
    exact = [Fraction(x) - Fraction(y) for x, y in zip(height[tails].tolist(), height[heads].tolist(), strict=True)]
    short = [Fraction(w) < x for w, x in zip(weights.tolist(), exact, strict=True)]
    weights[short] = np.nextafter(weights[short], INF)
    graph = sp.csr_array((weights, (tails, heads)), shape=(2 * n, 2 * n))
    some = rng.permutation(2 * n)[:20]
    ends_of: dict[str, Any] = {side: some}
    down = height[:, None] - height
    expected = np.where((np.arange(2 * n)[:, None] < n) == (np.arange(2 * n) < n), down, INF)
    expected = expected[some] if side == "sources" else expected[:, some]
    paths = sr.apsp(graph, **ends_of, paths=True)
    for found in (paths.distances, sr.apsp(graph, **ends_of), sr.closure(graph, sr.MIN_PLUS, reflexive=False, **ends_of)):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    for other in range(0, 2 * n, 9):
        u, v = (int(some[0]), other) if side == "sources" else (other, int(some[0]))
        path = paths.path(u, v)
        assert bool(path) == ((u < n) == (v < n))
        assert sum(graph[x, y] for x, y in pairwise(path)) == pytest.approx(down[u, v] if path else 0, abs=1e-9)


@given(data=st.data())
def test_near_the_limits_integers_are_exact_or_refused(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(st.sampled_from(["int16", "uint8", "int64"])))
    limit = int(np.iinfo(dtype).max)  # type: ignore[type-var]  # an integer dtype, as just drawn
    n = data.draw(st.integers(1, 5))
    scale = data.draw(st.sampled_from([5, limit // 20, limit // 6, limit // 2, limit]))
    low = data.draw(st.sampled_from([0, -scale // 4])) if dtype.kind == "i" else 0
    entries = data.draw(st.lists(st.just(limit) | st.integers(low, scale), min_size=n * n, max_size=n * n))
    a = np.array(entries, dtype=dtype).reshape(n, n)
    exact = np.array([[INF if w == limit else w for w in row] for row in a.tolist()], dtype=object)
    for way in WAYS:
        try:
            found = asked(a, sr.MIN_PLUS, way, sources=[0])
        except sr.OverflowRiskError:
            continue
        except sr.NegativeCycleError:
            with pytest.raises(sr.NegativeCycleError):
                asked(exact, sr.MIN_PLUS, "dense", sources=[0])
            continue
        expected = asked(exact, sr.MIN_PLUS, "dense", sources=[0])
        assert [[INF if w == limit else w for w in row] for row in found.tolist()] == expected.tolist()


def test_labels_and_shapes() -> None:
    roads = sr.edges([("Bern", "Basel", 95), ("Basel", "Genf", 250), (("a", 1), "Bern", 5)])
    assert sr.apsp(roads, sources="Bern").tolist() == [0, 95, 345, INF]
    assert sr.apsp(roads, sources=["Bern"]).tolist() == [[0, 95, 345, INF]]
    assert sr.apsp(roads, targets="Genf").tolist() == [345, 250, 0, 350]
    assert sr.apsp(roads, sources=("a", 1), targets="Genf") == 350
    assert isinstance(sr.apsp(roads, sources=("a", 1), targets="Genf"), float)
    assert sr.apsp(roads, sources=iter(["Genf", "Genf"]), targets={"Bern"}).tolist() == [[INF], [INF]]
    assert sr.apsp(roads, sources=[]).shape == (0, 4)
    assert sr.apsp(roads, sources=[], targets=[]).shape == (0, 0)
    assert sr.transitive_closure(roads, sources=["Bern"]).tolist() == [[False, True, True, False]]
    assert sr.transitive_closure(roads, sources=["Bern"], reflexive=True).tolist() == [[True, True, True, False]]
    graph = nx.path_graph(["x", "y", "z"])
    assert sr.apsp(graph, sources=["z", "x"], targets=["y", "z"]).tolist() == [[1, 0], [1, 2]]
    grid = nx.grid_2d_graph(3, 3)
    assert sr.apsp(grid, sources=(0, 0), targets=[(2, 2), (0, 0)]).tolist() == [4, 0]
    paths = sr.apsp(roads, sources="Bern", paths=True)
    assert paths.distances.tolist() == [0, 95, 345, INF]
    assert paths.path("Bern", "Genf") == ["Bern", "Basel", "Genf"]
    assert paths.predecessors().tolist() == [-9999, 0, 1, -9999]
    with pytest.raises(sr.GraphError, match="'Basel' is no source"):
        paths.path("Basel", "Genf")
    with pytest.raises(sr.GraphError, match="'Basel' is no source"):
        paths.distance("Basel", "Genf")
    with pytest.raises(sr.GraphError, match="only targets"):
        paths.next_hops()
    with pytest.raises(AttributeError, match="predecessors"):
        _ = paths.via
    assert repr(paths) == "<paths over min-plus: 1 source × 4 targets, 2 pairs connected>"
    distances, before = paths.to_scipy()
    assert distances.shape == before.shape == (4,)
    refusing: list[Any] = [paths.to_networkx, lambda: paths.save("nowhere.npz")]
    for refused in refusing:
        with pytest.raises(sr.GraphError, match="all vertices"):
            refused()
    again = pickle.loads(pickle.dumps(paths))
    assert again.path("Bern", "Genf") == ["Bern", "Basel", "Genf"]
    backward = sr.apsp(roads, targets=["Genf"], paths=True)
    assert backward.path("Bern", "Genf") == ["Bern", "Basel", "Genf"]
    assert backward.next_hops().tolist() == [[1], [2], [-9999], [0]]
    with pytest.raises(sr.GraphError, match="name the sources"):
        backward.predecessors()


@pytest.mark.parametrize("reflexive", [True, False])
def test_frames_are_rows_of_that_of_all_pairs(reflexive: bool) -> None:
    rng = np.random.default_rng(2)
    edges = sr.edges([(f"v{u}", f"v{v}", float(w)) for u, v, w in rng.integers(0, 12, (25, 3))], nodes=[f"v{v}" for v in range(12)])
    whole = sr.closure(edges, sr.MIN_PLUS, paths=True, reflexive=reflexive).to_frame().set_index(["source", "target"])
    sources, targets = ["v7", "v3", "v7"], ["v3", "v11", "v0", "v7"]
    several: list[dict[str, Any]] = [{"sources": sources, "targets": targets}, {"targets": targets}, {"sources": "v7"}, {"sources": []}]
    for chosen in several:
        frame = sr.closure(edges, sr.MIN_PLUS, paths=True, reflexive=reflexive, **chosen).to_frame(paths=True)
        assert list(frame) == ["source", "target", "value", "path"]
        starts = [chosen["sources"]] if chosen.get("sources") == "v7" else chosen.get("sources", [f"v{v}" for v in range(12)])
        pairs = [(s, t) for s in starts for t in chosen.get("targets", [f"v{v}" for v in range(12)]) if (s, t) in whole.index]
        assert list(zip(frame["source"], frame["target"], strict=True)) == pairs
        assert frame["value"].tolist() == [whole.loc[pair, "value"] for pair in pairs]
        for (source, target), path in zip(pairs, frame["path"], strict=True):
            assert (path[0], path[-1]) == (source, target)
    numbers = sr.apsp(sp.csr_array(np.diag([1.0, 2.0], 1)), sources=[1], paths=True).to_frame(paths=True)
    pd.testing.assert_frame_equal(numbers, pd.DataFrame({"source": [1], "target": [2], "value": [2.0], "path": [[1, 2]]}))
    both = (np.array([[INF, 2.0], [INF, INF]]), np.array([[INF, 1.0], [INF, INF]]))
    pair = sr.closure(both, sr.DISTANCE_HOPS, sources=[0], paths=True).to_frame()
    assert pair.to_dict("list") == {"source": [0], "target": [1], "value0": [2.0], "value1": [1.0]}
    with pytest.raises(sr.GraphError, match="choose one"):
        sr.apsp(np.zeros((2, 3, 3)), sources=[0], paths=True, nonedge=INF).to_frame()


def test_the_callers_own_kind() -> None:
    frame = pd.DataFrame([[0.0, 3, INF], [INF, 0, 4], [2, INF, 0]], index=list("abc"), columns=list("abc"))
    found = sr.apsp(frame, sources=["c", "a"], targets=["b", "a"])
    pd.testing.assert_frame_equal(found, pd.DataFrame([[5.0, 2.0], [3.0, 0.0]], index=list("ca"), columns=list("ba")))
    pd.testing.assert_series_equal(sr.apsp(frame, sources="c"), pd.Series([2.0, 5, 0], index=list("abc"), name="c"))
    pd.testing.assert_series_equal(sr.apsp(frame, targets="a"), pd.Series([0.0, 6, 2], index=list("abc"), name="a"))
    assert sr.apsp(frame, sources="c", targets="b") == 5
    x, y = sympy.symbols("x y", positive=True)
    assert sr.closure(sympy.Matrix([[0, x], [y, 0]]), sr.PLUS_TIMES, sources=[1]) == sympy.Matrix([[y / (1 - x * y), 1 / (1 - x * y)]])
    fractions = np.array([[0, Fraction(1, 3)], [Fraction(1, 7), 0]], dtype=object)
    assert sr.closure(fractions, sr.PLUS_TIMES, sources=0).tolist() == [Fraction(21, 20), Fraction(7, 20)]


@pytest.mark.parametrize("way", WAYS)
def test_the_input_stays(way: str) -> None:
    a = np.array([[INF, 1.0, INF], [INF, INF, 2.0], [INF, INF, INF]])
    a.flags.writeable = False
    assert asked(a, sr.MIN_PLUS, way, sources=[0]).tolist() == [[0, 1, 3]]
    wide = np.full((6, 6), 7.0)
    wide[::2, ::2] = a
    assert asked(wide[::2, ::2], sr.MIN_PLUS, way, sources=[0]).tolist() == [[0, 1, 3]]


@pytest.mark.parametrize("graph", [lambda a: np.where(a > 0, a, INF), sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("chosen", [{"sources": [3, 0]}, {"targets": [2, 3]}], ids=["predecessors", "next hops"])
def test_paths_that_are_no_longer_in_the_trees_are_found_again(chosen: dict[str, Any], graph: Any) -> None:
    paths = sr.apsp(graph(np.roll(np.eye(4), 1, axis=1)), paths=True, **chosen)  # of a ring
    pairs = list(itertools.product(paths.sources, paths.targets))
    expected = paths.paths(pairs)
    paths._store.tree[...] = 1  # as if rounding had bent them all
    assert paths.paths(pairs) == expected
    lost = copy.copy(paths)
    lost._store = dataclasses.replace(paths._store, kept=lambda: None)
    with pytest.raises(sr.GraphError, match="from 0 to 3 into a circle"):
        lost.path(0, 3)


def test_batches() -> None:
    a = np.full((2, 3, 4, 4), INF)
    a[..., 0, 1] = a[..., 1, 2] = 1
    a[1, 2, 0, 2] = 0.5
    assert np.array_equal(sr.apsp(a, sources=[0, 3], targets=[2, 1]), sr.apsp(a)[..., [0, 3], :][..., [2, 1]])
    assert np.array_equal(sr.apsp(a, targets=2), sr.apsp(a)[..., 2])
    paths = sr.apsp(a, sources=[1, 0], paths=True)
    assert len(paths) == 2
    assert paths[1, 2].path(0, 2) == [0, 2]
    assert paths[1][1].path(0, 2) == [0, 1, 2]
    assert paths.predecessors().shape == (2, 3, 2, 4)
    assert sr.apsp(a[:0], sources=[1]).shape == (0, 3, 1, 4)
    a[1, 0, 0, 0] = -1
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a, sources=[0])
    assert "batch index [1, 0]" in str(caught.value)
    assert caught.value.index == (1, 0)
    assert sr.apsp(a, sources=[1]).shape == (2, 3, 1, 4)


@pytest.mark.parametrize("graph", [np.full((3, 3), INF), sp.csr_array((3, 3))], ids=["dense", "sparse"])
@pytest.mark.parametrize("sources", [3, -1, [0, 3], True, [True], 1.0, [None], "0", [[0, 1]], np.ones((1, 1), int)])
def test_unknown_numbers(graph: Any, sources: Any) -> None:
    with pytest.raises(sr.GraphError, match="sources"):
        sr.apsp(graph, sources=sources)
    with pytest.raises(sr.GraphError, match="targets"):
        sr.apsp(graph, sources=[0], targets=sources)


@pytest.mark.parametrize("sources", ["Paris", ["Bern", "Paris"], 0, ["Bern", ["Bern"]], 3.5, b"Bern"])
def test_unknown_labels(sources: Any) -> None:
    with pytest.raises(sr.GraphError, match="there is no vertex"):
        sr.apsp(sr.edges([("Bern", "Basel", 95)]), sources=sources)


@pytest.mark.skipif(tuple(map(int, np.__version__.split(".")[:2])) < (2, 2), reason="NumPy 2.2 gave equal times equal hashes")
@pytest.mark.parametrize("unit", ["ns", "D"])
def test_times_are_names(unit: str) -> None:
    days = np.array(["2020-01-02", "2020-01-01"], dtype=f"M8[{unit}]")
    index = pd.DatetimeIndex(days)
    graph = pd.DataFrame([[0.0, 2.0], [3.0, 0.0]], index, index)
    for sources in (days[1:], index[1:], list(days[1:])):
        assert sr.apsp(graph, sources=sources).to_numpy().tolist() == [[3.0, 0.0]]


@pytest.mark.parametrize("graph", [np.full((2, 2), INF), sr.edges([(0, 1)])], ids=["numbers", "labels"])
@pytest.mark.parametrize("mask", [np.array([True, False]), [True, False], (np.True_, np.False_), [0, True], True], ids=repr)
def test_masks_name_no_vertices(graph: Any, mask: Any) -> None:
    with pytest.raises(sr.GraphError, match="flatnonzero"):
        sr.apsp(graph, sources=mask)


def test_truth_values_may_be_names() -> None:
    graph = sr.edges([(True, False, 2.0), (False, "maybe", 3.0)])
    for sources in ([True], np.array([True])):
        assert sr.apsp(graph, sources=sources, targets=["maybe", False]).tolist() == [[5.0, 2.0]]
    pairs = sr.edges([((True, 0), 1)])
    assert sr.apsp(pairs, sources=(True, 0), targets=1) == 1


def test_what_does_not_go_together() -> None:
    a = np.array([[0.0, 1.0], [INF, 0.0]])
    refused: list[dict[str, Any]] = [{"memory_limit": "1GiB"}, {"checkpoint": "somewhere"}]
    for how in refused:
        with pytest.raises(sr.SemiringError, match="leave out both"):
            sr.apsp(a, sources=[0], **how)
    with pytest.raises(sr.SemiringError, match="edge by edge"):
        sr.apsp(sp.csr_array(a), sources=[0], device="cuda")
    with pytest.raises(sr.SemiringError, match="method"):
        sr.apsp(a, sources=[0], method="dijkstra")
    with pytest.raises(sr.LawError, match="selective"):
        sr.closure(np.array([[0.0, 1.0], [0.0, 0.0]]), sr.PLUS_TIMES, sources=[0], paths=True)
    with pytest.raises(sr.DomainError, match="NaN"):
        sr.apsp(np.array([[0.0, np.nan], [INF, 0.0]]), sources=[0])
    with pytest.raises(sr.DomainError, match="NaN"):
        sr.apsp(sr.edges([(0, 1, np.nan)]), sources=[0])
    assert sr.apsp(a.copy(), sources=[0], overwrite=True, progress=False, threads=1, device="reference").tolist() == [[0, 1]]


def test_a_semiring_with_its_witness_gives_paths() -> None:
    assert sr.closure(np.array([[0.0, 1.0], [INF, 0.0]]), sr.TROPICAL_ARGMIN, sources=[0]).path(0, 1) == [0, 1]


@pytest.mark.parametrize("way", WAYS)
def test_an_order_of_factors(way: str) -> None:
    """Triangular 2 × 2 matrices of truth values, whose product does not commute."""
    triangular = sr.Semiring(
        "triangular",
        lambda a, b: (a[0] | b[0], a[1] | b[1], a[2] | b[2]),
        lambda a, b: (a[0] & b[0], (a[0] & b[1]) | (a[1] & b[2]), a[2] & b[2]),
        (False, False, False),
        (True, False, True),
        domain=({False, True},) * 3,
    )
    rng = np.random.default_rng(1)
    a = tuple(np.triu(rng.random((12, 12)) < 0.4, 1) for _ in range(3))
    full = sr.closure(a, triangular)
    assert_equal(asked(a, triangular, way, targets=[11, 4]), rectangle(full, None, [11, 4]))
    assert_equal(asked(a, triangular, way, sources=[3, 0, 1], targets=[9]), rectangle(full, [3, 0, 1], [9]))


def test_memory_of_a_sparse_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    n = 20_000
    graph = sp.random_array((n, n), density=4 / n, rng=np.random.default_rng(0), format="csr")
    sr.apsp(graph[:50, :50], sources=[0])
    tracemalloc.start()
    try:
        asked: list[dict[str, Any]] = [{"sources": [0, 17, n - 1]}, {"targets": [5, 6, 7], "paths": True}]
        for how in asked:
            tracemalloc.reset_peak()
            sr.apsp(graph, **how)
            assert tracemalloc.get_traced_memory()[1] < 60 << 20  # the matrix would take 3.2 GB
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(sr.apsp(graph, sources=[3, 4]), csgraph.dijkstra(graph, indices=[3, 4]))


def test_more_rows_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.arrays.memory.free_on_host", lambda: 1 << 20)
    graph = sp.coo_array(([1.0], ([0], [1])), shape=(100_000, 100_000))
    with pytest.raises(sr.TooLargeError, match="fewer sources at a time"):
        sr.apsp(graph, sources=range(1000))
    assert sr.apsp(graph, sources=[0])[0, 1] == 1


def test_a_dense_graph_whose_paths_are_long_is_closed_as_a_whole() -> None:
    n = 300
    a = np.full((n, n), INF)
    a[np.arange(n - 1), np.arange(1, n)] = 1
    for sources in ([0], range(200)):
        assert np.array_equal(sr.apsp(a, sources=sources), sr.apsp(a)[list(sources)])


def test_edges_that_cannot_be_doubted_are_not_searched_for_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("nothing can be wrong with these weights")

    monkeypatch.setattr(rows_of_edges, "find_cycle", never)
    line = sr.edges([(i, i + 1, 1.0) for i in range(200)])
    assert sr.apsp(line, sources=0)[200] == 200
