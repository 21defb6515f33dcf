"""`DivergenceError.cycles`: further divergent cycles, beside all simple cycles of NetworkX in exact numbers."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
import semiring.csgraph as csgraph

INF = np.inf


def around(cycle: Any) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise([*cycle, cycle[0]]))


@given(
    ends=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-3, 6)), unique_by=lambda e: e[:2], max_size=25),
    kind=st.sampled_from(["dense", "integers", "edges", "rows"]),
)
def test_negative_cycles_share_no_edge_and_leave_none(ends: list[tuple[int, int, int]], kind: str) -> None:
    matrix = np.full((7, 7), INF)
    for u, v, w in ends:
        matrix[u, v] = w
    graph: Any = sr.edges(ends, nodes=range(7)) if kind in ("edges", "rows") else matrix
    if kind == "integers":
        graph = np.where(np.isfinite(matrix), matrix, 0).astype(np.int64)
        graph[~np.isfinite(matrix)] = np.iinfo(np.int64).max
    reached = set(range(7))
    if kind == "rows":
        reached = {0} | nx.descendants(nx.DiGraph([(0, 0), *((u, v) for u, v, _ in ends)]), 0)
    network = nx.DiGraph()
    network.add_weighted_edges_from(e for e in ends if e[0] in reached)
    negative = [c for c in nx.simple_cycles(network) if sum(network.edges[e]["weight"] for e in around(c)) < 0]
    options: dict[str, Any] = {"sources": [0]} if kind == "rows" else {}
    if not negative:
        sr.apsp(graph, **options)
        return
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(graph, **options)
    cycles = list(caught.value.cycles())
    assert cycles[0] == caught.value.cycle
    used = [e for c in cycles for e in around(c)]
    assert len(set(used)) == len(used)
    for c in cycles:
        assert len(set(c)) == len(c)
        assert sum(matrix[e] for e in around(c)) < 0
    assert all(set(around(c)) & set(used) for c in negative)
    assert list(caught.value.cycles(2)) == cycles[:2]
    assert list(caught.value.cycles(0)) == []
    assert list(caught.value.cycles()) == cycles


def test_rates_labels_and_tolerance() -> None:
    rates = sr.edges([("CHF", "EUR", 1.1), ("EUR", "CHF", 1.0), ("EUR", "USD", 1.2), ("USD", "EUR", 0.9), ("USD", "CHF", 0.8)])
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(rates, "max-times")
    found = list(caught.value.cycles())
    assert sorted(map(sorted, found)) == [["CHF", "EUR"], ["EUR", "USD"]]
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(rates, "max-times", tolerance=0.045)
    assert [sorted(c) for c in caught.value.cycles()] == [["CHF", "EUR"]]


def test_errors_travel_without_their_graph() -> None:
    a = np.array([[INF, -1, INF, INF], [-1, INF, INF, INF], [INF, INF, INF, 1], [INF, INF, -2, INF]])
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(np.stack([a, a]))
    error = caught.value
    assert len(list(error.cycles())) == 2
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(other), other.cycle, other.index) == (str(error), error.cycle, error.index)
        assert list(other.cycles()) == [error.cycle]
    with pytest.raises(sr.NegativeCycleError) as caught:
        csgraph.shortest_path(a)
    assert caught.value.cycle in list(caught.value.cycles(5))
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a.copy(), overwrite=True)
    assert len(list(caught.value.cycles())) in (0, 1, 2)
    assert list(sr.DivergenceError("no cycle").cycles(3)) == []
    with pytest.raises(sr.DivergenceError) as together:
        sr.closure(np.array([[0.6, 0.6], [0.6, 0.6]]), "plus-times")
    assert list(together.value.cycles()) == []
    with pytest.raises(sr.DivergenceError) as alone:
        sr.closure(np.array([[0, 2.0], [1.0, 0]]), "plus-times")
    assert list(alone.value.cycles()) == [alone.value.cycle]
