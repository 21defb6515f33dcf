"""One path by search from both ends, beside rows of searches from one, and SciPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring.algorithms.rows_of_edges import best_path, pays
from semiring.algorithms.search import searches_for
from semiring.execution import row_solvers
from semiring.graphs import edges_of

SEMIRINGS = {
    "min-plus": (sr.MIN_PLUS, st.integers(0, 9).map(float)),
    "max-min": (sr.MAX_MIN, st.integers(-4, 9).map(float)),
    "min-max": (sr.MIN_MAX, st.integers(-4, 9).map(float)),
    "max-times": (sr.MAX_TIMES, st.sampled_from([0.25, 0.5, 1.0])),
    "boolean": (sr.BOOLEAN, st.just(True)),
    "hops": (sr.MIN_PLUS, st.just(1.0)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SEMIRINGS)
@settings(max_examples=20)
@given(data=st.data())
def test_the_path_is_as_good_as_the_row_says(name: str, data: st.DataObject) -> None:
    semiring, weights = SEMIRINGS[name]
    n = data.draw(st.integers(2, 12))
    vertex = st.integers(0, n - 1)
    listed = data.draw(st.lists(st.tuples(vertex, vertex, weights), max_size=3 * n))
    graph = sr.edges(listed, nodes=range(n), directed=data.draw(st.booleans()))
    edges, _ = edges_of(graph, semiring) or pytest.fail("it lists its edges")
    searches = searches_for(semiring, edges.dtypes, "cpu")
    assert searches is not None
    source, target = data.draw(st.lists(vertex, min_size=2, max_size=2, unique=True))
    path, (element,) = best_path(edges, source, target, searches)
    matrix = edges.dense()[0]
    expected = sr.closure(matrix, semiring, nonedge=edges.zero[0])[source, target]
    assert element == expected  # all sums and products of these weights are exact
    if expected == edges.zero[0]:
        assert not len(path)
    else:
        assert (path[0], path[-1]) == (source, target)
        assert len(set(path.tolist())) == len(path)
        assert all(matrix[u, v] != edges.zero[0] for u, v in itertools.pairwise(path))


def roads(n: int, *, directed: bool, seed: int = 0) -> Any:
    """A ring with chords of random lengths, one way or both."""
    rng = np.random.default_rng(seed)
    tails, heads = np.arange(n).repeat(2), np.concatenate([np.roll(np.arange(n), -1)[:, None], rng.integers(0, n, (n, 1))], axis=1).ravel()
    graph = sp.coo_array((rng.random(2 * n) + 0.1, (tails, heads)), shape=(n, n)).tocsr()
    return graph if directed else (graph + graph.T).tocsr()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_calls_for_one_pair_search_from_both_ends(directed: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spied(*args: Any) -> Any:
        asked.append(args[1:3])
        return best_path(*args)

    monkeypatch.setattr(row_solvers, "best_path", spied)
    graph = roads(800, directed=directed)
    expected, before = csgraph.dijkstra(graph, indices=3, return_predecessors=True)
    for target in (4, 401, 799):
        assert sr.apsp(graph, sources=3, targets=target, dtype=dtype) == pytest.approx(expected[target], rel=1e-5)
        found = sr.apsp(graph, sources=[3], targets=target, paths=True, dtype=dtype)
        assert found.distances == pytest.approx(expected[target], rel=1e-5)
        walk = [target]
        while walk[-1] != 3:
            walk.append(int(before[walk[-1]]))
        assert found.path(3, target) == walk[::-1]
        assert np.array_equal(found.predecessors()[0], before)
    assert asked == [(3, t) for t in (4, 401, 799) for _ in range(2)]


def test_labels_and_shapes() -> None:
    line = sr.edges([(f"v{i}", f"v{i + 1}", 0.5) for i in range(400)], directed=False)
    assert sr.apsp(line, sources="v7", targets="v390") == 191.5
    assert sr.apsp(line, sources=["v7"], targets=["v390"]).shape == (1, 1)
    assert sr.apsp(line, sources="v7", targets="v7") == 0
    assert sr.apsp(line, sources="v7", targets="v9", paths=True).path("v7", "v9") == ["v7", "v8", "v9"]


def test_what_may_overflow_is_searched_from_one_end() -> None:
    long = sr.edges([(i, i + 1, 20_000) for i in range(400)], directed=False)
    assert edges_of(long, sr.MIN_PLUS, dtype="int16") is not None
    with pytest.raises(sr.OverflowRiskError):
        sr.apsp(long, sources=0, targets=3, dtype="int16")
    short = edges_of(long, sr.MIN_PLUS, dtype="int64")
    assert short is not None
    assert pays(short[0])
    assert not pays(edges_of(long, sr.MIN_PLUS, dtype="int16")[0])  # type: ignore[index]  # edges, as above


@pytest.mark.parametrize("directed", [False, True])
def test_the_ends_of_a_long_line(directed: bool) -> None:
    """Both ways to it: of few edges a vertex the row, of symmetric ones both ends; the elements are added up alike."""
    lengths = np.random.default_rng(0).random(5000).tolist()
    line = sr.edges([(i, i + 1, w) for i, w in enumerate(lengths)], directed=directed)
    total = float(np.cumsum(lengths)[-1])
    assert sr.apsp(line, sources=0, targets=5000) == sr.apsp(line, sources=0)[5000] == total
    paths = sr.apsp(line, sources=0, targets=5000, paths=True)
    assert paths.path(0, 5000) == list(range(5001))
    assert paths.distances == total


def test_negative_edges_and_cycles_are_not_for_it() -> None:
    chain = [(i, i + 1, 1.0) for i in range(400)]
    assert sr.apsp(sr.edges([*chain, (0, 400, -2.0)]), sources=0, targets=400) == -2
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(sr.edges([*chain, (5, 4, -3.0)]), sources=0, targets=400)
    cycle = sr.closure(sr.edges([*chain, (400, 0, 1.0)]), sr.MIN_PLUS, reflexive=False, sources=3, targets=3)
    assert cycle == 401
