"""The k shortest simple paths beside all simple paths of NetworkX, and SciPy's."""

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
from scipy.sparse import csgraph as scipys

import semiring as sr
from semiring import csgraph


@st.composite
def graphs(draw: st.DrawFn, weights: st.SearchStrategy[Any]) -> tuple[int, dict[tuple[int, int], Any]]:
    n = draw(st.integers(1, 7))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    return n, draw(st.dictionaries(ends, weights, max_size=22))


def every(n: int, edges: dict[tuple[int, int], Any], source: int, target: int) -> list[tuple[Fraction, tuple[int, ...]]]:
    """All simple paths with their exact lengths, the shortest first."""
    graph = nx.DiGraph(list(edges))
    graph.add_nodes_from(range(n))
    paths = [[source]] if source == target else list(nx.all_simple_paths(graph, source, target))
    return sorted((sum(map(Fraction, map(edges.__getitem__, itertools.pairwise(p))), Fraction(0)), tuple(p)) for p in paths)


def agree(found: list[sr.SimplePath], expected: list[tuple[Fraction, tuple[int, ...]]], k: int) -> None:
    assert [d for d, _ in found] == [float(d) for d, _ in expected[:k]]
    paths = [tuple(p) for _, p in found]
    assert len(set(paths)) == len(paths)
    assert {(float(d), p) for d, p in expected} >= set(zip([d for d, _ in found], paths, strict=True))


@given(graph=graphs(st.integers(0, 5)), data=st.data())
def test_all_simple_paths(graph: tuple[int, dict[tuple[int, int], int]], data: st.DataObject) -> None:
    n, edges = graph
    source, target = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    k = data.draw(st.integers(0, 40))
    expected = every(n, edges, source, target)
    given = sr.edges([(u, v, w) for (u, v), w in edges.items()], nodes=range(n))
    agree(sr.k_shortest_paths(given, source, target, k), expected, k)


@given(graph=graphs(st.integers(-3, 5)), data=st.data())
def test_negative_edges(graph: tuple[int, dict[tuple[int, int], int]], data: st.DataObject) -> None:
    n, edges = graph
    potentials = data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n))
    edges = {(u, v): abs(w) + potentials[u] - potentials[v] for (u, v), w in edges.items()}  # so that no cycle is negative
    given = sr.edges([(u, v, w) for (u, v), w in edges.items()], nodes=range(n))
    agree(sr.k_shortest_paths(given, 0, n - 1, 9), every(n, edges, 0, n - 1), 9)


@given(graph=graphs(st.floats(0, 10)))
def test_floats_within_rounding(graph: tuple[int, dict[tuple[int, int], float]]) -> None:
    n, edges = graph
    found = sr.k_shortest_paths(sr.edges([(u, v, w) for (u, v), w in edges.items()], nodes=range(n)), 0, n - 1, 12)
    expected = every(n, edges, 0, n - 1)[:12]
    assert [d for d, _ in found] == pytest.approx([float(d) for d, _ in expected], rel=1e-14)


@pytest.mark.parametrize("directed", [True, False])
def test_beside_scipys(directed: bool) -> None:
    rng = np.random.default_rng(3)
    for n in (2, 5, 30):
        dense = np.where(rng.random((n, n)) < 0.3, rng.integers(1, 50, (n, n)), 0).astype(float)
        for graph in (dense, sp.csr_array(dense)):
            theirs = scipys.yen(sp.csr_array(dense), 0, n - 1, 7, directed=directed)
            ours, before = csgraph.yen(graph, 0, n - 1, 7, directed=directed, return_predecessors=True)
            np.testing.assert_array_equal(ours, theirs)
            assert before.shape == (len(ours), n)
            for length, row in zip(ours, before, strict=True):
                v, total = n - 1, 0.0
                while v:
                    u = int(row[v])
                    total += min(w for w in (dense[u, v], 0 if directed else dense[v, u]) if w)
                    v = u
                assert total == length
    with pytest.raises(ValueError, match="must have 0 <= vertex < 30"):
        csgraph.yen(dense, 0, 30, 1)


def test_names_and_refusals() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", cost=2)
    graph.add_edge("b", "c", cost=2)
    graph.add_edge("a", "c", cost=5)
    assert sr.k_shortest_paths(graph, "a", "c", 9, weight="cost") == [(4.0, ["a", "b", "c"]), (5.0, ["a", "c"])]
    assert sr.k_shortest_paths(graph, "c", "a", 9, weight="cost") == []
    assert sr.k_shortest_paths(graph, "c", "c", 9, weight="cost") == [(0.0, ["c"])]
    with pytest.raises(sr.GraphError, match="target"):
        sr.k_shortest_paths(graph, "a", "x", 1, weight="cost")
    for several in (["a", "b"], None):
        with pytest.raises(sr.GraphError, match="source must be one vertex"):
            sr.k_shortest_paths(graph, several, "c", 1, weight="cost")
    for k in (-1, 1.5, True):
        wrong: Any = k
        with pytest.raises(sr.GraphError, match="whole number"):
            sr.k_shortest_paths(graph, "a", "c", wrong)
    with pytest.raises(sr.NegativeCycleError, match="b → a → b"):
        sr.k_shortest_paths(sr.edges([("a", "b", 1), ("b", "a", -3), ("b", "c", 1)]), "a", "c", 2)
