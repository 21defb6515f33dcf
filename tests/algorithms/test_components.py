"""Components: found without recursion, used where they pay, and never visible in the answer."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import semiring as sr
from semiring import testing
from semiring.algorithms import components
from semiring.kernels import machine

Array = np.ndarray[Any, Any]


def random_edges(n: int, density: float, seed: int) -> Array:
    return np.asarray(np.random.default_rng(seed).random((n, n)) < density)


def islands(sizes: list[int], density: float, seed: int) -> Array:
    """Groups of vertices without edges between them, in a random order."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return np.asarray((rng.random((len(group), len(group))) < density) & (group[:, None] == group))


@given(n=st.integers(1, 60), factor=st.floats(0, 3), seed=st.integers(0, 10**6))
def test_weak_components_are_scipys(n: int, factor: float, seed: int) -> None:
    edges = random_edges(n, factor / n, seed)
    count, expected = connected_components(edges, connection="weak")
    label = components.weak((edges,), (False,))
    if label is None:
        assert count == 1
    else:
        assert len(set(label.tolist())) == count == len(set(zip(label.tolist(), expected.tolist(), strict=True)))
        assert (label <= np.arange(n)).all()


@pytest.mark.parametrize("density", [0.002, 0.02, 0.2])
def test_weak_components_of_large_graphs_in_several_blocks(density: float) -> None:
    edges = islands([700, 400, 1, 1, 100], density, seed=5)
    count, expected = connected_components(edges, connection="weak")
    label = components.weak((np.where(edges, 1.0, np.inf),), (np.inf,))
    assert label is not None
    assert len(set(label.tolist())) == count == len(set(zip(label.tolist(), expected.tolist(), strict=True)))


@given(n=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_permutation_in_place(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, order = rng.random((n, n)), rng.permutation(n)
    b = a.copy()
    components.permute(b, order)
    assert np.array_equal(b, a[np.ix_(order, order)])


@pytest.mark.parametrize("seed", range(4))
def test_strong_components_are_networkxs_where_they_are_large(seed: int) -> None:
    n = 300
    edges = islands([180, 100, 20], 0.05, seed)
    edges[edges.sum(axis=1).argmax(), 7] = True
    condensed = components.condense(edges)
    assert condensed is not None
    label, between = condensed
    expected = nx.strongly_connected_components(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    found = [set(np.flatnonzero(label == c).tolist()) for c in range(len(between))]
    assert all(len(members) == 1 or members in found for members in expected if len(members) > n // 4)
    for c, d in np.ndindex(between.shape):
        assert between[c, d] == edges[np.ix_(label == c, label == d)].any()


def test_strong_components_give_up_where_they_do_not_pay() -> None:
    assert components.condense(np.triu(np.ones((300, 300), dtype=bool), 1)) is None


@pytest.mark.sampled(5)
@pytest.mark.parametrize("density", [0.004, 0.01, 0.05])
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("sizes", [[300], [250, 50], [100, 100, 100], [1] * 200, [150, 1, 1, 1, 140]])
def test_reachability_is_networkxs(density: float, reflexive: bool, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CONDENSED", 2)
    edges = islands(sizes, density, seed=1)
    graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
    expected = nx.to_numpy_array(nx.transitive_closure(graph, reflexive=reflexive), nodelist=range(len(edges))) > 0
    assert np.array_equal(sr.transitive_closure(edges, reflexive=reflexive), expected)


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_MIN, sr.DISTANCE_COUNT, sr.PLUS_TIMES], ids=lambda s: s.name)
@pytest.mark.parametrize("reflexive", [True, False])
def test_answers_do_not_depend_on_components(semiring: sr.Semiring, reflexive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = islands([130, 70, 3, 1, 56], 0.05, seed=2)
    weights = np.random.default_rng(0).integers(1, 9, edges.shape).astype(float)
    zero = semiring.identities(semiring.dtypes(float))[0]
    if semiring is sr.DISTANCE_COUNT:
        a: Any = (np.where(edges, weights, zero[0]), edges.astype(float))
    else:
        a = np.where(edges, weights / 512 if semiring is sr.PLUS_TIMES else weights, zero[0])
    monkeypatch.setattr(machine, "COMPONENTS", 2)
    apart = sr.closure(a, semiring, reflexive=reflexive)
    monkeypatch.setattr(machine, "COMPONENTS", 10**9)
    whole = sr.closure(a, semiring, reflexive=reflexive)
    for x, y in zip(apart if isinstance(apart, tuple) else (apart,), whole if isinstance(whole, tuple) else (whole,), strict=True):
        assert np.allclose(x, y, rtol=1e-12) if semiring is sr.PLUS_TIMES else np.array_equal(x, y)


def test_via_holds_the_vertices_of_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = islands([120, 90, 40], 0.06, seed=3)
    a = np.where(edges, np.random.default_rng(0).random(edges.shape), np.inf)
    monkeypatch.setattr(machine, "COMPONENTS", 2)
    paths = sr.apsp(a, paths=True, method="iterative")
    testing.assert_paths_valid(paths, a, pairs=np.random.default_rng(1).integers(0, 250, (300, 2)).tolist())
    monkeypatch.setattr(machine, "COMPONENTS", 10**9)
    assert np.array_equal(paths.via, sr.apsp(a, paths=True, method="iterative").via)


def test_a_negative_cycle_in_one_component_has_the_graphs_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "COMPONENTS", 2)
    edges = islands([150, 150], 0.05, seed=4)
    a = np.where(edges, 5.0, np.inf)
    u, v = np.argwhere(edges & ~np.eye(300, dtype=bool))[-1]
    a[v, u] = -6.0
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a)
    cycle = caught.value.cycle or []
    assert testing.path_weight(sr.MIN_PLUS, a, [*cycle, cycle[0]]) < 0


@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")
def test_rounding_in_one_component_is_mended_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "COMPONENTS", 2)
    p = 10 * np.random.default_rng(0).random(300)
    label = np.repeat([0, 1], 150)
    a = np.where(label[:, None] == label, np.nextafter(p[None] - p[:, None] + 1e-15, np.inf), np.inf)
    d = sr.apsp(a)
    expected = np.where(label[:, None] == label, p[None] - p[:, None], np.inf)
    assert np.allclose(d, expected, rtol=0, atol=1e-13)
