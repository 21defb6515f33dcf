"""Paths out of the construction matrix: real, simple, of the right weight; trees that are trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.predecessors import SingleSource, erase_loops, expand, predecessors

METHODS = ("iterative", "blocked", "recursive")
SELECTIVE = [s for s in sr.semirings().values() if is_idempotent(s) and is_selective(s)]
INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # zeros everywhere, on purpose


def grid(side: int, low: int, high: int, seed: int) -> np.ndarray[Any, Any]:
    """A square grid with random whole weights, the same both ways."""
    rng, n = np.random.default_rng(seed), side * side
    a = np.full((n, n), INF)
    for v in range(n):
        for u in ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < n else []):
            a[u, v] = a[v, u] = rng.integers(low, high + 1)
    return a


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", [None, 1, 2, 3])
def test_the_four_vertex_example_with_a_zero_cycle(method: str, block: int | None) -> None:
    a = np.full((5, 5), INF)
    for u, v, w in ((4, 3, 1), (3, 0, 0), (0, 2, 0), (2, 0, 0)):
        a[u, v] = w
    paths = sr.apsp(a, paths=True, method=method, block=block)
    assert paths.path(4, 2) == [4, 3, 0, 2]
    testing.assert_paths_valid(paths, a)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("semiring", SELECTIVE, ids=lambda s: s.name)
@given(data=st.data())
def test_every_path_is_real_simple_and_of_the_right_weight(semiring: sr.Semiring, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([d for d in semiring.supported_dtypes if d.kind in "bf"] or list(semiring.supported_dtypes)))
    a = data.draw(testing.matrices(semiring, dtype, max_n=7))
    paths = sr.closure(
        a, semiring, paths=True, reflexive=data.draw(st.booleans()), method=data.draw(st.sampled_from(METHODS)),
        block=data.draw(st.sampled_from([None, 1, 2, 3])), device=data.draw(st.sampled_from(["cpu", "reference"])),
    )  # fmt: skip
    testing.assert_paths_valid(paths, a)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (0, 3), (1, 1)])
def test_grids_full_of_ties_and_zero_cycles(method: str, low: int, high: int) -> None:
    a = grid(7, low, high, seed=1)
    paths = sr.apsp(a, paths=True, method=method, block=16)
    testing.assert_paths_valid(paths, a)


@pytest.mark.exhaustive
def test_zero_cycles_on_every_level_do_not_make_expansions_explode() -> None:
    a = grid(30, 0, 1, seed=0)
    paths = sr.apsp(a, paths=True)
    pairs = np.random.default_rng(0).integers(0, 900, (200, 2)).tolist()
    testing.assert_paths_valid(paths, a, pairs=pairs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_weights(method: str, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    a = rng.random((60, 60)).astype(dtype)
    a[rng.random((60, 60)) < 0.87] = INF
    testing.assert_paths_valid(sr.apsp(a, paths=True, method=method), a)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", METHODS)
def test_rounded_weights_of_either_sign(method: str) -> None:
    rng = np.random.default_rng(6)
    n = 60
    p = 5 * rng.random(n)
    a = rng.random((n, n)) + p[None, :] - p[:, None]
    a[rng.random((n, n)) < 0.87] = INF
    testing.assert_paths_valid(sr.apsp(a, paths=True, method=method), a, absolute=1e-13)


def test_long_paths_need_no_recursion() -> None:
    n = 3000
    a = np.full((n, n), INF, dtype=np.float32)
    order = np.random.default_rng(0).permutation(n)
    a[order[:-1], order[1:]] = 1
    paths = sr.apsp(a, paths=True)
    assert paths.path(int(order[0]), int(order[-1])) == order.tolist()
    assert paths.path(int(order[-1]), int(order[0])) == []


def test_deep_expansions_of_the_iterative_schedule() -> None:
    n = 400
    a = np.full((n, n), INF)
    a[np.arange(n - 1), np.arange(1, n)] = 1
    paths = sr.apsp(a, paths=True, method="iterative")
    assert paths.path(0, n - 1) == list(range(n))
    assert np.array_equal(paths.predecessors()[0, 1:], np.arange(n - 1))
    assert np.array_equal(paths.next_hops()[:-1, -1], np.arange(1, n))


def test_trees_are_scipys_where_shortest_paths_are_unique() -> None:
    from scipy.sparse.csgraph import floyd_warshall

    rng = np.random.default_rng(7)
    a = rng.random((120, 120))
    a[rng.random((120, 120)) < 0.93] = INF
    np.fill_diagonal(a, 0)
    distances, expected = floyd_warshall(a, return_predecessors=True)
    paths = sr.apsp(a, paths=True)
    assert np.allclose(paths.distances, distances)
    found = paths.predecessors()
    assert found.dtype == expected.dtype == np.int32
    assert np.array_equal(found, expected)
    backwards = floyd_warshall(np.ascontiguousarray(a.T), return_predecessors=True)[1]
    assert np.array_equal(paths.next_hops(), backwards.T)


def test_what_rounding_spoils_is_found_again_on_the_input() -> None:
    """A construction matrix bent into circles, as negative floats may leave it."""
    a = np.array([[INF, 1.0, INF, INF], [INF, INF, 1.0, INF], [INF, INF, INF, 1.0], [1.0, INF, INF, INF]])
    good = sr.apsp(a, paths=True)
    via = good.via.copy()
    via[0, 3], via[0, 2], via[1, 3] = 2, 3, 2  # 0→3 by way of 2, 0→2 by way of 3
    assert expand(via, np.array([0]), np.array([3])) == [None]
    spoilt = sr.Paths(sr.MIN_PLUS, (good.distances,), via, kept=lambda: (a,))
    assert spoilt.path(0, 3) == [0, 1, 2, 3]
    testing.assert_paths_valid(spoilt, a)
    overwritten = sr.Paths(sr.MIN_PLUS, (good.distances,), via)
    assert overwritten.path(0, 3) == [0, 1, 2, 3]
    testing.assert_paths_valid(overwritten, a)
    changed = sr.Paths(sr.MIN_PLUS, (good.distances,), via, kept=lambda: (a + 1,))
    with pytest.raises(sr.GraphError, match="unchanged"):
        changed.path(0, 3)


@given(data=st.data())
def test_single_source_paths(data: st.DataObject) -> None:
    a = data.draw(testing.matrices(sr.MIN_PLUS, float, max_n=7))
    n = len(a)
    plus = sr.closure(a, sr.MIN_PLUS, reflexive=False)
    for source in range(n):
        found = SingleSource(sr.MIN_PLUS, (a,), source)
        for target in range(n):
            path = found.path(target)
            if plus[source, target] == INF:
                assert path == []
            else:
                assert path[0] == source
                assert path[-1] == target
                assert testing.path_weight(sr.MIN_PLUS, a, path) == plus[source, target]


@pytest.mark.exhaustive
def test_trees_grown_from_ties_and_from_paths_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from semiring.algorithms import predecessors

    a = grid(6, 0, 1, seed=3)
    paths = sr.apsp(a, paths=True)
    for circles in (0, 1, 5):
        monkeypatch.setattr(predecessors, "_CIRCLES", circles)
        testing.assert_paths_valid(paths, a)
    monkeypatch.setattr(predecessors._Grower, "attach_by_ties", lambda *_: False)  # as if rounding hid every tie
    testing.assert_paths_valid(paths, a)
    monkeypatch.undo()
    for edges in (1, 7):
        monkeypatch.setattr(predecessors, "HOST", edges)
        monkeypatch.setattr(predecessors, "CACHE", 100)
        testing.assert_paths_valid(paths, a)


def test_trees_of_nothing_and_of_one_vertex() -> None:
    for n in (0, 1):
        values, via = np.zeros((n, n)), np.full((n, n), -1, dtype=np.int32)
        for backward in (False, True):
            assert predecessors(sr.MIN_PLUS, (values,), via, lambda _: lambda *_: [], backward=backward).tolist() == [[-9999]] * n


@pytest.mark.parametrize(
    ("walk", "path"),
    [
        ([1], [1]),
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 3, 2, 4], [1, 2, 4]),
        ([1, 2, 3, 1, 4], [1, 4]),
        ([1, 2, 4, 3, 4], [1, 2, 4]),
        ([1, 2, 3, 2, 1], [1, 2, 1]),
        ([1, 1], [1, 1]),
        ([1, 2, 1, 3, 1], [1, 3, 1]),
    ],
)
def test_loops_are_erased(walk: list[int], path: list[int]) -> None:
    assert erase_loops(walk) == path
