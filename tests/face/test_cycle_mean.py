"""Cycle means beside all simple cycles of NetworkX, and Karp's algorithm in exact fractions; eigenvectors by products of this library."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

INF = np.inf


def karp(n: int, edges: list[tuple[int, int, Any]]) -> Fraction | None:
    """The least cycle mean by Karp (1978): min over v of max over k of (D_n(v) − D_k(v)) / (n − k), with walks from anywhere."""
    walks: list[dict[int, Fraction]] = [{v: Fraction(0) for v in range(n)}]
    for _ in range(n):
        longer = dict[int, Fraction]()
        for u, v, w in edges:
            if u in walks[-1]:
                longer[v] = min(longer.get(v, walks[-1][u] + Fraction(w)), walks[-1][u] + Fraction(w))
        walks.append(longer)
    last = walks[-1]
    return min((max((d - walks[k][v]) / (n - k) for k in range(n) if v in walks[k]) for v, d in last.items()), default=None)


def checked(found: sr.CycleMean, n: int, edges: list[tuple[int, int, Any]], semiring: sr.Semiring) -> None:
    """The cycle is one of the graph and has the mean; the eigenvector is one, and finite where the cycle can be reached."""
    weights = {(u, v): Fraction(w) for u, v, w in edges}
    assert found.cycle is not None
    around = [*found.cycle, found.cycle[0]]
    assert len(set(found.cycle)) == len(found.cycle)
    total = sum(weights[e] for e in itertools.pairwise(around))
    assert found.total == float(total)
    assert found.mean == found.total / len(found.cycle)
    zero = semiring.zero
    a = np.full((n, n), zero)
    for (u, v), w in weights.items():
        a[u, v] = float(w)
    x = found.eigenvector
    assert x[found.cycle[0]] == 0
    scale = max(1.0, *(abs(float(w)) for w in weights.values()))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(sr.matmul(a, x, semiring), found.mean + x, rtol=1e-12, atol=1e-12 * scale * n)
    reaching = nx.ancestors(nx.DiGraph(list(weights)), found.cycle[0]) | {found.cycle[0]}
    assert set(np.flatnonzero(np.isfinite(x)).tolist()) == reaching


@st.composite
def graphs(draw: st.DrawFn, weights: st.SearchStrategy[Any]) -> tuple[int, list[tuple[int, int, Any]]]:
    n = draw(st.integers(1, 8))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), unique=True, max_size=24))
    return n, [(u, v, draw(weights)) for u, v in ends]


SMALL = st.integers(-6, 6)
LARGE = st.integers(-(10**9), 10**9)


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS], ids=lambda s: s.name)
@given(graph=st.one_of(graphs(SMALL), graphs(LARGE)))
def test_integers_are_exact(graph: tuple[int, list[tuple[int, int, int]]], semiring: sr.Semiring) -> None:
    n, edges = graph
    found = sr.cycle_mean(sr.edges(edges, nodes=range(n)), semiring)
    sign = 1 if semiring is sr.MIN_PLUS else -1
    expected = karp(n, [(u, v, sign * w) for u, v, w in edges])
    if expected is None:
        assert found.cycle is None
        assert found.mean == semiring.zero
        assert (found.eigenvector == semiring.zero).all()
        return
    assert found.cycle is not None
    assert sign * Fraction(int(found.total), len(found.cycle)) == expected
    checked(found, n, edges, semiring)


@given(graph=graphs(st.floats(-1e6, 1e6)))
def test_floats_are_within_rounding(graph: tuple[int, list[tuple[int, int, float]]]) -> None:
    n, edges = graph
    found = sr.cycle_mean(sr.edges(edges, nodes=range(n)), "min-plus")
    expected = karp(n, edges)
    assert (found.cycle is None) == (expected is None)
    if expected is not None:
        assert found.mean == pytest.approx(float(expected), rel=1e-12, abs=1e-12 * max(abs(w) for *_, w in edges))
        checked(found, n, edges, sr.MIN_PLUS)


def test_all_simple_cycles() -> None:
    rng = np.random.default_rng(5)
    for n in (3, 5, 7, 9):
        graph = nx.gnp_random_graph(n, 0.4, seed=n, directed=True)
        for *_, data in graph.edges(data=True):
            data["weight"] = int(rng.integers(-20, 20))
        means = [Fraction(sum(graph.edges[e]["weight"] for e in itertools.pairwise([*c, c[0]])), len(c)) for c in nx.simple_cycles(graph)]
        for semiring, best in ((sr.MAX_PLUS, max), (sr.MIN_PLUS, min)):
            found = sr.cycle_mean(graph, semiring)
            if means:
                assert found.cycle is not None
                assert Fraction(int(found.total), len(found.cycle)) == best(means)
            else:
                assert found.cycle is None


@pytest.mark.parametrize("shape", ["ring", "way to a loop", "two rings", "grid"])
def test_long_graphs(shape: str) -> None:
    n = 1000
    edges = {
        "ring": [(v, (v + 1) % n, v % 7) for v in range(n)],
        "way to a loop": [*((v, v + 1, -(v % 5)) for v in range(n - 1)), (n - 1, n - 1, 3)],
        "two rings": [
            *((v, (v + 1) % 600, 2) for v in range(600)),
            *((v, v + 1 if v < n - 1 else 600, 3) for v in range(600, n)),
            (7, 800, 1),
        ],
        "grid": [e for v in range(n) for u in (v + 1, v + 40) if u < n for e in ((v, u, v % 11 + 1), (u, v, u % 13 + 1))],
    }[shape]
    found = sr.cycle_mean(sr.edges(edges, nodes=range(n)), sr.MIN_PLUS)
    expected = {"ring": Fraction(sum(v % 7 for v in range(n)), n), "way to a loop": 3, "two rings": 2, "grid": None}[shape]
    assert found.cycle is not None
    if expected is not None:
        assert Fraction(int(found.total), len(found.cycle)) == expected
    checked(found, n, edges, sr.MIN_PLUS)
    less = sr.edges([(u, v, w - found.mean + 1e-9) for u, v, w in edges], nodes=range(n))
    sr.apsp(less, sources=[0])  # no cycle is less than the mean
    if shape != "two rings":
        with pytest.raises(sr.NegativeCycleError):
            sr.apsp(sr.edges([(u, v, w - found.mean - 1e-2) for u, v, w in edges], nodes=range(n)), sources=[0])


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(3)
    n, m = 40_000, 120_000
    graph = sp.coo_array((rng.normal(size=m), (rng.integers(0, n, m), rng.integers(0, n, m))), (n, n)).tocsr()
    one, *others = (sr.cycle_mean(graph, threads=threads) for threads in (1, 2, 5))
    for other in others:
        assert (other.mean, other.cycle) == (one.mean, one.cycle)
        assert other.eigenvector.tobytes() == one.eigenvector.tobytes()


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS], ids=lambda s: s.name)
@pytest.mark.parametrize("rounds", [0, 1])
def test_an_eigenvector_that_takes_too_many_rounds_is_searched_for(
    rounds: int, semiring: sr.Semiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    n, m = 300, 900
    graph = sp.coo_array((rng.integers(0, 50, m).astype(float), (rng.integers(0, n, m), rng.integers(0, n, m))), (n, n)).tocsr()
    expected = sr.cycle_mean(graph, semiring).eigenvector
    monkeypatch.setattr("semiring.algorithms.cycle_mean._ROUNDS", rounds)
    np.testing.assert_allclose(sr.cycle_mean(graph, semiring).eigenvector, expected, rtol=1e-12)


def test_kinds_of_graphs() -> None:
    a = np.array([[-INF, 3, -INF], [-INF, -INF, 4], [2, -INF, 1]])
    for graph in (a, np.asfortranarray(a), a.tolist(), sp.csr_array(np.where(np.isfinite(a), a, 0))):
        found = sr.cycle_mean(graph)
        assert (found.mean, found.cycle, found.total) == (3.0, [0, 1, 2], 9.0)
    network = nx.DiGraph()
    network.add_edge("x", "y", minutes=3)
    network.add_edge("y", "x", minutes=4)
    found = sr.cycle_mean(network, weight="minutes")
    assert (found.mean, found.cycle, found.nodes) == (3.5, ["x", "y"], ("x", "y"))
    assert sr.cycle_mean(sr.edges([(0, 1, 1), (0, 1, 5), (1, 0, 2)])).mean == 3.5  # of parallel edges the heaviest


def test_none_and_refusals() -> None:
    for n in (0, 1, 4):
        found = sr.cycle_mean(np.full((n, n), -INF))
        assert (found.mean, found.cycle, found.total) == (-INF, None, 0.0)
        assert "no cycle" in repr(found)
        assert "mean" in found._repr_html_()
    assert sr.cycle_mean(np.array([[-2.5]])).cycle == [0]
    with pytest.raises(sr.LawError, match="max-plus or min-plus"):
        sr.cycle_mean(np.ones((2, 2)), sr.MAX_MIN)
    with pytest.raises(sr.GraphError, match="batch"):
        sr.cycle_mean(np.ones((2, 3, 3)))
    with pytest.raises(sr.SemiringError):
        sr.cycle_mean(np.array([[np.nan]]))
    with pytest.raises(sr.OverflowRiskError, match="scale them down"):
        sr.cycle_mean(np.array([[1.0, 1e308], [-1e308, 2.0]]))


def test_a_nearly_critical_cycle_of_integers_is_told_apart() -> None:
    """Means that differ by 1/(p·q) with large weights: float64 alone might not see it."""
    p, q, w = 97, 101, 10**7
    one = [(v, (v + 1) % p, w) for v in range(p)]
    other = [(p + v, p + (v + 1) % q, w) for v in range(q)]
    other[0] = (p, p + 1, w - 1)
    one[0] = (0, 1, w - 1)
    graph = sr.edges([*one, *other, (0, p, w), (p, 0, w)])
    assert len(sr.cycle_mean(graph, sr.MIN_PLUS).cycle or []) == p
    assert math.isclose(sr.cycle_mean(graph).mean, w, rel_tol=1e-9)


def turned(cycle: list[Any]) -> tuple[Any, ...]:
    """The cycle from its least vertex on."""
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])


def simple_cycles(edges: list[tuple[int, int, Any]]) -> dict[tuple[int, ...], Fraction]:
    """All simple cycles by NetworkX, with their exact means; weights are decimals of one digit."""
    weights = {(u, v): Fraction(round(10 * w), 10) for u, v, w in edges}
    return {
        turned(c): sum(weights[e] for e in itertools.pairwise([*c, c[0]])) / len(c)  # type: ignore[misc]  # not empty
        for c in nx.simple_cycles(nx.DiGraph(list(weights)))
    }


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS], ids=lambda s: s.name)
@given(graph=st.one_of(graphs(st.integers(-2, 2)), graphs(st.sampled_from([-0.2, -0.1, 0.1, 0.3, 1e6])), graphs(LARGE)))
def test_all_critical_cycles(graph: tuple[int, list[tuple[int, int, Any]]], semiring: sr.Semiring) -> None:
    n, edges = graph
    means = simple_cycles(edges)
    best = (min if semiring is sr.MIN_PLUS else max)(means.values(), default=None)
    expected = [c for c, mean in means.items() if mean == best]
    found = sr.cycle_mean(sr.edges(edges, nodes=range(n)), semiring)
    cycles = list(found.cycles())
    assert sorted(map(turned, cycles)) == sorted(expected)
    critical = found.critical_graph
    assert critical.labels == found.nodes
    on_cycles = {e for c in expected for e in itertools.pairwise([*c, c[0]])}
    listed = zip(critical.sources.tolist(), critical.targets.tolist(), np.asarray(critical.weights).tolist(), strict=True)
    assert sorted(listed) == sorted((u, v, w) for u, v, w in edges if (u, v) in on_cycles)
    if found.cycle is not None:
        assert turned(found.cycle) in expected
        assert sr.cycle_mean(critical, semiring).mean == found.mean


def test_critical_cycles_of_rounded_weights() -> None:
    """Long cycles of one mean in decimals, whose float64 sums differ, beside a cycle that is 10⁻⁹ worse."""
    rng = np.random.default_rng(8)
    edges, first = [], 0
    for n in (50, 70, 90):
        weights = np.round(rng.uniform(-50, 50, n), 1)
        weights[-1] = np.round(0.7 * n - weights[:-1].sum(), 1)
        ring = [*range(first, first + n)]
        edges += [*zip(ring, np.roll(ring, -1).tolist(), weights.tolist(), strict=True), (first, (first + 100) % 210, 1e4)]
        first += n
    found = sr.cycle_mean(sr.edges([*edges, (7, 7, 0.7 + 1e-9)], nodes=range(210)), "min-plus")
    assert sorted(map(len, found.cycles())) == [50, 70, 90]
    assert found.mean == pytest.approx(0.7, rel=1e-14)


def test_critical_cycles_follow_each_other_at_once() -> None:
    n = 40
    found = sr.cycle_mean(np.ones((n, n)))  # more than 40! cycles
    some = list(itertools.islice(found.cycles(), 1000))
    assert len(set(map(turned, some))) == 1000
    assert found.critical_graph.sources.size == n * n
    ring = sr.cycle_mean(sp.coo_array((np.ones(30_000), (np.arange(30_000), np.roll(np.arange(30_000), -1)))))
    assert [len(c) for c in ring.cycles()] == [30_000]
    pairs = np.arange(30_000)
    many = sr.cycle_mean(sp.coo_array((np.ones(30_000), (pairs, pairs ^ 1))))
    assert sum(1 for _ in many.cycles()) == 15_000


def test_critical_cycles_of_no_cycle_and_of_names() -> None:
    for n in (0, 1, 3):
        found = sr.cycle_mean(np.full((n, n), -INF))
        assert list(found.cycles()) == []
        assert len(found.critical_graph.sources) == 0
    named = sr.cycle_mean(sr.edges([("x", "y", 1), ("y", "x", 1), ("x", "x", 1), ("y", "z", 9)]), "min-plus")
    assert list(named.cycles()) == [["x"], ["x", "y"]]


@st.composite
def timed(
    draw: st.DrawFn, weights: st.SearchStrategy[Any], transits: st.SearchStrategy[Any]
) -> tuple[int, list[tuple[int, int, Any, Any]]]:
    n, edges = draw(graphs(weights))
    return n, [(*edge, draw(transits)) for edge in edges]


RATIOS = st.one_of(timed(SMALL, st.integers(0, 3)), timed(LARGE, st.integers(1, 10**6)), timed(st.floats(-9, 9), st.floats(0.5, 2)))


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS], ids=lambda s: s.name)
@given(graph=RATIOS)
def test_ratios_beside_all_simple_cycles(graph: tuple[int, list[tuple[int, int, Any, Any]]], semiring: sr.Semiring) -> None:
    n, edges = graph
    network = nx.DiGraph()
    network.add_nodes_from(range(n))
    network.add_edges_from((u, v, {"cost": Fraction(w), "tokens": Fraction(t)}) for u, v, w, t in edges)
    sums = {
        turned(c): tuple(sum(network.edges[e][name] for e in itertools.pairwise([*c, c[0]])) for name in ("cost", "tokens"))
        for c in nx.simple_cycles(network)
    }
    listed = sr.edges([e[:3] for e in edges], nodes=range(n))
    transit = np.array([t for *_, t in edges], float)
    if any(t == 0 for _, t in sums.values()):
        with pytest.raises(sr.GraphError, match="has a transit of 0") as caught:
            sr.cycle_mean(listed, semiring, transit=transit)
        named = [int(v) for v in str(caught.value).split(" has a transit")[0].removeprefix("the cycle ").split(" → ")[:-1]]
        assert sums[turned(named)][1] == 0
        return
    ratios = {c: w / t for c, (w, t) in sums.items()}
    best = (min if semiring is sr.MIN_PLUS else max)(ratios.values(), default=None)
    found = sr.cycle_mean(listed, semiring, transit=transit)
    if best is None:
        assert (found.mean, found.cycle, found.transit) == (semiring.zero, None, 0)
        return
    assert found.cycle is not None
    total, around = sums[turned(found.cycle)]
    assert (found.total, found.transit, found.mean) == (float(total), float(around), float(total / around))
    x, a = found.eigenvector, np.full((n, n), semiring.zero)
    for u, v, w, t in edges:
        a[u, v] = w - found.mean * t
    scale = max(1.0, *(abs(w) + abs(found.mean) * t for *_, w, t in edges))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(sr.matmul(a, x, semiring), x, rtol=1e-11, atol=1e-11 * scale * n)
    cycles = sorted(map(turned, found.cycles()))
    if all(isinstance(w, int) for *_, w, _ in edges):
        assert total / around == best
        assert cycles == sorted(c for c, ratio in ratios.items() if ratio == best)
    else:
        assert found.mean == pytest.approx(float(best), rel=1e-12, abs=1e-12)
        assert turned(found.cycle) in cycles


def test_kinds_of_transits() -> None:
    edges = [("x", "y", 3), ("y", "x", 4), ("y", "z", 2), ("z", "x", 1)]
    network = nx.DiGraph()
    network.add_edges_from((u, v, {"weight": w, "tokens": t}) for (u, v, w), t in zip(edges, (1, 0, 1, 1), strict=True))
    matrix = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0.0]])
    read_only = np.array([1, 0, 1, 1])
    read_only.flags.writeable = False
    table = sr.edges(pd.DataFrame([(*edge, t) for edge, t in zip(edges, (1, 0, 1, 1), strict=True)], columns=[*"uv", "weight", "tokens"]))
    for graph, transit in (
        (network, "tokens"),
        (table, "tokens"),
        (sr.edges(edges), read_only),
        (sr.edges(edges), (1, 0, 1, 1)),
        (sr.edges(edges), matrix),
        (sr.edges(edges), matrix[::1, ::1].tolist()),
        (network, sp.csr_array((np.array([1, 0, 1, 1]), (np.array([0, 1, 1, 2]), np.array([1, 0, 2, 0]))))),
    ):
        found = sr.cycle_mean(graph, transit=transit)
        assert (found.mean, found.cycle, found.total, found.transit) == (7.0, ["x", "y"], 7.0, 1.0)
    assert sr.cycle_mean(network, transit=2).mean == sr.cycle_mean(network).mean / 2
    assert sr.cycle_mean(network).transit == 2
    doubled = sr.edges([*edges, ("x", "y", 9)])
    assert sr.cycle_mean(doubled, transit=[1, 0, 1, 1, 1]).mean == 13
    for graph, transit, message in (
        (doubled, [1, 0, 1, 1, 2], "parallel edges have different transits: the edge 'x' → 'y'"),
        (sr.edges(edges), [1, 0, 1, -1], "the transit of the edge 'z' → 'x' is -1.0"),
        (sr.edges(edges), [1, 0, 1], r"shape \(3,\), and 4 edges need \(4,\)"),
        (sr.edges(edges), matrix[:2], r"transit has shape \(2, 3\); it must be \(3, 3\)"),
        (network, sp.csr_array((3, 3)), "transit has no number for the edge 'x' → 'y'"),
        (network, "minutes", "minutes"),
        (network, math.inf, "is inf"),
        (network, 0, "has a transit of 0"),
    ):
        with pytest.raises(sr.SemiringError, match=message):
            sr.cycle_mean(graph, transit=transit)


def test_a_ratio_takes_a_few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    from semiring.algorithms import cycle_mean

    calls, solve = [], cycle_mean.least_cycle_mean

    def counted(*args: Any) -> Any:
        calls.append(1)
        return solve(*args)

    monkeypatch.setattr(cycle_mean, "least_cycle_mean", counted)
    rng = np.random.default_rng(2)
    n, m = 3000, 12_000
    ends = rng.integers(0, n, m), rng.integers(0, n, m)
    graph = sp.coo_array((rng.integers(1, 1000, m).astype(float), ends), (n, n)).tocsr()
    transit = graph.copy()
    transit.data = rng.integers(1, 50, transit.nnz).astype(float)
    assert sr.cycle_mean(graph, "min-plus", transit=transit).transit > 0
    assert len(calls) < 10


@pytest.mark.parametrize("transit", [object(), {"a": 1}, np.array([["x", "y"], ["y", "x"]])])
def test_transits_that_are_no_numbers(transit: Any) -> None:
    with pytest.raises(sr.GraphError, match=r"transit is .*; it must be the name of an attribute, a number, or an array of numbers"):
        sr.cycle_mean(np.ones((2, 2)), transit=transit)
