"""All best paths beside NetworkX, and beside the elements of all simple paths."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.all_paths import AllPaths
from semiring.algorithms.csr import CSR
from semiring.algorithms.search import searches_for
from semiring.common.errors import GraphError, LawError
from semiring.kernels.operations import Operations
from tests.algorithms.test_search import graphs

CASES: list[Any] = [
    (sr.MIN_PLUS, (np.float64,)),
    (sr.MIN_PLUS, (np.int32,)),
    (sr.MAX_MIN, (np.float32,)),
    (sr.BOOLEAN, (np.bool_,)),
    (sr.DISTANCE_HOPS, (np.float64, np.int32)),
]


def simple_walks(edges: CSR, source: int, target: int, *, reflexive: bool) -> list[list[int]]:
    """All simple paths, or cycles from a vertex to itself."""
    if source == target and reflexive:
        return [[source]]
    found, waiting = [], [[source]]
    while waiting:
        path = waiting.pop()
        for v in edges.heads[edges.starts[path[-1]] : edges.starts[path[-1] + 1]].tolist():
            if v == target:
                found.append([*path, v])
            elif v not in path:
                waiting.append([*path, v])
    return found


@pytest.mark.parametrize(("semiring", "dtypes"), CASES)
@given(data=st.data(), reflexive=st.booleans())
def test_the_simple_paths_of_the_best_element(semiring: sr.Semiring, dtypes: Any, data: Any, reflexive: bool) -> None:
    drawn = data.draw(graphs(dtypes))
    weights = tuple(w % 3 if w.dtype != bool else w for w in drawn.weights)
    edges = CSR.of(drawn.tails, drawn.heads, weights, drawn.n, semiring.identities(drawn.dtypes)[0])
    if not edges.n:
        return
    operations, dense = Operations(semiring, edges.dtypes), edges.dense()
    source, target = data.draw(st.integers(0, edges.n - 1)), data.draw(st.integers(0, edges.n - 1))
    found = AllPaths(semiring, edges, source, reflexive=reflexive, searches=searches_for(semiring, edges.dtypes, "cpu"))
    elements: dict[tuple[int, ...], Any] = {}
    for path in simple_walks(edges, source, target, reflexive=reflexive):
        walk = operations.one
        for u, v in itertools.pairwise(path):
            walk = operations.mul(walk, tuple(w[u, v] for w in dense))
        if any(x != z for x, z in zip(walk, edges.zero, strict=True)):
            elements[tuple(path)] = tuple(np.asarray(x).item() for x in walk)
    best = best_of(operations, list(elements.values()))
    expected = sorted(list(p) for p, x in elements.items() if x == best)
    paths = list(found.paths(target))
    assert sorted(paths) == expected
    try:
        count = found.count(target)
    except GraphError:
        return
    assert count == len(expected)


def best_of(operations: Operations, elements: list[Any]) -> Any:
    best: Any = None
    for x in elements:
        best = x if best is None else tuple(np.asarray(v).item() for v in operations.add(best, x))
    return best


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_networkx(seed: int, directed: bool) -> None:
    graph = nx.gnp_random_graph(14, 0.25, seed=seed, directed=directed)
    rng = np.random.default_rng(seed)
    for u, v in graph.edges:
        graph[u][v]["weight"] = int(rng.integers(1, 4))
    both = [(u, v, d) for u, v, d in graph.edges(data="weight")] + [(v, u, d) for u, v, d in graph.edges(data="weight") if not directed]
    tails, heads, weights = (np.array(x) for x in zip(*sorted(both), strict=True))
    edges = CSR.of(tails, heads, (weights,), 14, (np.iinfo(np.int64).max,))
    for source in range(14):
        found = AllPaths(sr.MIN_PLUS, edges, source)
        for target in range(14):
            try:
                expected = sorted(nx.all_shortest_paths(graph, source, target, weight="weight"))
            except nx.NetworkXNoPath:
                expected = []
            assert sorted(found.paths(target)) == expected
            assert found.count(target) == len(expected)


def test_many_paths_are_counted_at_once() -> None:
    """A ladder of squares has 2^k paths of the same length, whose number a float would round."""
    k = 80
    edges = sorted((2 * i + a, 2 * i + 2 + b) for i in range(k) for a in range(2) for b in range(2))
    tails, heads = (np.array(x) for x in zip(*edges, strict=True))
    graph = CSR.of(tails, heads, (np.array([Fraction(1, 3)] * len(edges)),), 2 * k + 2, (float("inf"),))
    found = AllPaths(sr.MIN_PLUS, graph, 0)
    assert found.count(2 * k) == 2 ** (k - 1)
    assert len(next(found.paths(2 * k))) == k + 1


def test_refusals() -> None:
    ring = CSR.of(np.array([0, 1, 2, 2]), np.array([1, 2, 1, 3]), (np.array([1.0, 0, 0, 2]),), 4, (np.inf,))
    found = AllPaths(sr.MIN_PLUS, ring, 0, name="abcd".__getitem__)
    assert list(found.paths(3)) == [[0, 1, 2, 3]]
    with pytest.raises(GraphError, match=r"'d' may go around the cycle '[bc]' → '[bc]' → '[bc]' any number"):
        found.count(3)
    lopsided = sr.Semiring("lopsided", min, lambda a, b: abs(a) + b, zero=np.inf, one=0)
    with pytest.raises(LawError, match="unlike lopsided"):
        AllPaths(lopsided, ring, 0)
