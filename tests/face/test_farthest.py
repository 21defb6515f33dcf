"""The farthest pairs, the center, and elements by an index, beside NetworkX and beside all pairs in a list."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.results import farthest, store

INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows at a time also of small matrices."""
    for module in (store, farthest):
        monkeypatch.setattr(module, "GPU", 30)


def random_graph(n: int, seed: int, *, directed: bool, density: float = 0.15, top: int = 6) -> Any:
    rng = np.random.default_rng(seed)
    graph: Any = nx.gnp_random_graph(n, density, seed=seed, directed=directed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = int(rng.integers(1, top))
    return graph


def pairs_in_order(values: Any, zero: Any, *, once: bool, least: bool = False) -> list[tuple[int, int, Any]]:
    """All pairs of different vertices that are connected, the farthest first, by plain Python."""
    n, t = values.shape
    order = [(i, j, values[i, j]) for i in range(n) for j in range(t) if (i < j if once else i != j) and values[i, j] != zero]
    return sorted(order, key=lambda pair: pair[2] if least else -pair[2])


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["sparse", "f8", "f4", "i4", "u2", object])
@pytest.mark.parametrize("k", [1, 7, 10_000])
def test_farthest_pairs_are_the_first_of_all_in_order(directed: bool, kind: Any, k: int) -> None:
    graph = random_graph(23, 1, directed=directed)
    matrix = nx.to_numpy_array(graph, nonedge=INF)
    np.fill_diagonal(matrix, 0)
    expected = pairs_in_order(sr.apsp(matrix), INF, once=not directed)[:k]
    if kind == "sparse":
        given: Any = graph
    else:
        top = INF if np.dtype(kind).kind in "fO" else np.iinfo(kind).max
        given = np.where(matrix == INF, top, matrix).astype(kind)
    found = sr.apsp(given, paths=True).farthest(k)
    assert found == expected
    assert all(pair.source == pair[0] and pair.distance == pair[2] for pair in found)
    if k == 1 and not directed:
        part = graph.subgraph(max(nx.connected_components(graph), key=len))
        assert found[0].distance == nx.diameter(part, weight="weight")


@given(
    st.integers(0, 6).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from([INF, 0.0, 1.0, 2.5]), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([sr.MIN_PLUS, sr.MAX_MIN, sr.MIN_MAX, sr.MAX_TIMES]),
)
def test_any_small_graph(rows: list[list[float]], k: int, symmetric: bool, semiring: sr.Semiring) -> None:
    a = np.array(rows).reshape(len(rows), len(rows))
    if symmetric:
        a = np.minimum(a, a.T)
    a = np.where(a == INF, semiring.zero, np.minimum(a, 1) if semiring is sr.MAX_TIMES else a)
    np.fill_diagonal(a, semiring.one)
    paths = sr.closure(a, semiring, paths=True)
    least = semiring in (sr.MAX_MIN, sr.MAX_TIMES)
    values = paths.values
    once = np.array_equal(values, values.T)
    assert paths.farthest(k) == pairs_in_order(values, semiring.zero, once=once, least=least)[:k]
    assert paths.longest(k) == pairs_in_order(values, semiring.zero, once=once)[:k]
    others = [[values[i, j] for j in range(len(a)) if j != i] for i in range(len(a))]
    if len(a) < 2:
        assert paths.center() == list(range(len(a)))
        return
    eccentricities = [min(row) if least else max(row) for row in others]
    nearest = max(eccentricities) if least else min(eccentricities)
    if nearest == semiring.zero:
        with pytest.raises(sr.GraphError, match="no vertex reaches all others"):
            paths.center()
    else:
        assert paths.center() == [v for v, e in enumerate(eccentricities) if e == nearest]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("directed", [False, True])
def test_the_center_is_that_of_networkx(seed: int, directed: bool) -> None:
    graph = random_graph(30, seed, directed=directed, density=0.2)
    graph.add_weighted_edges_from((v, (v + 1) % 30, 3) for v in range(30))
    assert sr.apsp(graph, paths=True).center() == nx.center(graph, weight="weight")
    hops = sr.edges(list(graph.edges), directed=directed, nodes=range(30))
    assert sr.apsp(hops, paths=True).center() == nx.center(graph)
    longest = nx.diameter(graph, weight="weight")
    assert sr.apsp(graph, paths=True).farthest()[0].distance == longest == sr.statistics(graph).largest


def test_rounding_does_not_part_the_two_directions() -> None:
    """A search adds lengths from its source on, so that there and back may differ in the last bit."""
    rng = np.random.default_rng(3)
    tree = [(int(rng.integers(0, v)), v, float(rng.random())) for v in range(1, 300)]
    paths = sr.apsp(sr.edges(tree, directed=False), paths=True)
    there = paths.distances
    assert not np.array_equal(there, there.T)
    found = paths.farthest(50)
    assert len({frozenset(pair[:2]) for pair in found}) == 50
    assert [pair.distance for pair in found] == sorted(np.triu(there, 1).ravel().tolist())[::-1][:50]
    almost = np.array([[0.0, 1.0], [1.0 + 1e-12, 0.0]])
    assert len(sr.apsp(almost, paths=True).farthest(2)) == 2


def test_a_disconnected_graph_has_no_center_but_a_directed_one_may() -> None:
    parts = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("d", "e", 1.0)], directed=False), paths=True)
    with pytest.raises(sr.GraphError, match=r"no vertex reaches all others.*'a' reaches the most, 2 of 4.*largest component"):
        parts.center()
    assert parts.farthest(2) == [("a", "c", 3.0), ("b", "c", 2.0)]
    assert sr.apsp(sr.edges([("a", "b", 1.0), ("a", "c", 5.0)]), paths=True).center() == ["a"]


def test_graphs_of_few_vertices() -> None:
    for n in (0, 1):
        paths = sr.apsp(np.zeros((n, n)), paths=True)
        assert (paths.farthest(3), paths.center()) == ([], list(range(n)))
    assert sr.apsp(np.array([[0, INF], [INF, 0]]), paths=True).farthest() == []
    cycle = sr.closure(np.array([[INF, 1.0], [2.0, INF]]), sr.MIN_PLUS, paths=True, reflexive=False)
    assert cycle.farthest(5) == [(1, 0, 2.0), (0, 1, 1.0)]
    assert cycle.center() == [0]
    negative = sr.apsp(np.array([[0.0, -3.0], [5.0, 0.0]]), paths=True)
    assert negative.center() == [0]
    assert negative.farthest(2) == [(1, 0, 5.0), (0, 1, -3.0)]


def test_chosen_sources_and_targets() -> None:
    ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("c", "d", 4.0)], directed=False)
    paths = sr.apsp(ways, sources=["c", "a"], targets=["b", "a"], paths=True)
    assert paths.farthest(9) == [("c", "a", 3.0), ("c", "b", 2.0), ("a", "b", 1.0)]
    assert paths.center() == ["a"]
    assert (paths["c", "a"], paths["a", "a"]) == (3.0, 0.0)
    with pytest.raises(sr.GraphError, match="'d' is no source"):
        paths["d", "a"]
    backward = sr.apsp(ways, targets="d", paths=True)
    assert backward.farthest(2) == [("a", "d", 7.0), ("b", "d", 6.0)]
    assert backward.center() == ["d"]
    assert sr.apsp(ways, targets=[], paths=True).center() == ["a", "b", "c", "d"]
    assert sr.apsp(ways, sources=[], paths=True).farthest() == []


@pytest.mark.usefixtures("small_pieces")
def test_elements_in_a_file(tmp_path: Path) -> None:
    a = nx.to_numpy_array(random_graph(40, 0, directed=True), nonedge=INF)
    np.fill_diagonal(a, 0)
    here = sr.apsp(a, paths=True)
    here.save(tmp_path / "paths.npz")
    there = sr.Paths.load(tmp_path / "paths.npz", mmap=True)
    assert there.farthest(5) == here.farthest(5)


def test_exact_numbers_and_symbols() -> None:
    paths = sr.apsp(np.array([[0, Fraction(1, 3)], [Fraction(1, 2), 0]], dtype=object), paths=True)
    assert paths.farthest(2) == [(1, 0, Fraction(1, 2)), (0, 1, Fraction(1, 3))]
    assert paths.center() == [0]
    x, y = sympy.symbols("x y", positive=True)
    symbols = sr.apsp(sympy.Matrix([[0, x, sympy.oo], [sympy.oo, 0, sympy.oo], [y, sympy.oo, 0]]), paths=True)
    with pytest.raises(sr.DTypeError, match="no order"):
        symbols.farthest()


def test_what_has_no_order_is_refused() -> None:
    for paths in (
        sr.transitive_closure([[0, 1], [0, 0]], paths=True),
        sr.closure((np.array([[INF]]), np.array([[INF]])), sr.DISTANCE_HOPS, paths=True),
    ):
        for method in (paths.farthest, paths.center):
            with pytest.raises(sr.SemiringError, match="minimum or a maximum"):
                method()
    one = sr.apsp([[0, 1], [1, 0]], paths=True)
    for k in (0, -1, 1.5, "2", None):
        with pytest.raises(sr.GraphError, match="k is"):
            one.farthest(k)  # pyright: ignore[reportArgumentType] (on purpose)
    batch = sr.apsp(np.ones((2, 3, 3)), paths=True)
    for method in (batch.farthest, batch.center):
        with pytest.raises(sr.GraphError, match="batch"):
            method()


class TestIndex:
    def test_every_pair(self) -> None:
        paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.5)]), paths=True)
        for pair in itertools.product("abc", repeat=2):
            assert paths[pair] == paths.distance(*pair)
        assert paths["c", "a"] == INF

    def test_other_semirings(self) -> None:
        assert sr.closure(np.array([[INF, 5.0], [-INF, INF]]), sr.MAX_MIN, paths=True)[0, 1] == 5
        assert bool(sr.transitive_closure([[0, 1], [0, 0]], paths=True)[0, 1]) is True
        hops = sr.closure((np.array([[INF, 2.0], [INF, INF]]), np.array([[INF, 1.0], [INF, INF]])), sr.DISTANCE_HOPS, paths=True)
        assert hops[0, 1] == (2, 1)

    def test_names_that_are_tuples(self) -> None:
        paths = sr.apsp(sr.edges([(("x", 1), ("y", 2), 3.0), (("y", 2), "x", 1.0), ("x", 1, 7.0)]), paths=True)
        assert paths[("x", 1), ("y", 2)] == 3
        assert paths["x", 1] == 7  # not the vertex ("x", 1), which would be refused alone
        with pytest.raises(sr.GraphError, match=r"\('y', 2\) is one vertex.*paths_from"):
            paths["y", 2]

    def test_one_vertex_alone(self) -> None:
        paths = sr.apsp(sr.edges([("a", "b", 1.0)]), paths=True)
        with pytest.raises(sr.GraphError, match=r"'a' is one vertex.*\.paths_from\('a'\).*\.distances"):
            paths["a"]
        for index in ("z", 0, slice(None), ..., ("a", "b", "a"), [], ["a", "b"]):
            with pytest.raises(sr.GraphError, match=r"paths\[source, target\]"):
                paths[index]
        with pytest.raises(sr.GraphError, match="no vertex 'z'"):
            paths["a", "z"]
        with pytest.raises(sr.GraphError, match="0 is one vertex"):
            list(sr.apsp([[0, 1], [1, 0]], paths=True))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_on_a_gpu(dtype: str) -> None:
    import cupy

    a = nx.to_numpy_array(random_graph(200, 2, directed=True, density=0.02), nonedge=np.iinfo(np.int32).max if dtype == "i4" else INF)
    np.fill_diagonal(a, 0)
    a = a.astype(dtype)
    there, here = sr.apsp(cupy.asarray(a), paths=True), sr.apsp(a, paths=True)
    assert there.farthest(20) == here.farthest(20)
    both = np.minimum(a, a.T)
    assert sr.apsp(cupy.asarray(both), paths=True).farthest(20) == sr.apsp(both, paths=True).farthest(20)
    ring = np.minimum(both, np.roll(np.eye(200) * 9 + (1 - np.eye(200)) * 1e6, 1, axis=1).astype(dtype))
    assert sr.apsp(cupy.asarray(ring), paths=True).center() == sr.apsp(ring, paths=True).center()
