"""Policies of random graphs, improved and evaluated by compiled loops and by the same loops in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algorithms import cycle_mean
from semiring.algorithms.csr import CSR
from semiring.algorithms.cycle_mean import Costs, Policy, PolicyCycle, best_to_cycle, least_cycle_mean, reaching_cycles
from semiring.kernels.cpu.loops import interpreted

Graph = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs in compressed rows, with loops and parallel edges."""
    n = draw(st.integers(0, 9))
    degrees = [draw(st.integers(0, 3)) for _ in range(n)]
    m = sum(degrees)
    heads = [draw(st.integers(0, n - 1)) for _ in range(m)]
    weights = draw(st.lists(st.integers(-4, 4) | st.floats(-4, 4), min_size=m, max_size=m))
    return np.cumsum([0, *degrees]), np.array(heads, np.int32), np.array(weights, np.float64)


def history(graph: Graph, costs: list[Costs], threads: int = 1) -> list[bytes]:
    """Every bit of a policy, and of what its steps return."""
    starts, heads, weights = graph
    endless = reaching_cycles(starts, heads)
    policy = Policy(starts, heads, weights, np.where(endless, 0.0, np.inf), threads)
    found = [endless.tobytes(), repr(policy.improve(Costs(1.0, 0.0, least=-np.inf))).encode()]
    cycle: PolicyCycle | None = None
    for each in costs:
        cycle = policy.evaluate(each, cycle)
        found += [repr(cycle).encode(), policy.values.tobytes(), policy.edges.tobytes()]
        found += [repr(policy.improve(each)).encode(), policy.values.tobytes(), policy.edges.tobytes()]
    return found


@given(graphs(), st.lists(st.builds(Costs, st.integers(1, 4).map(float), st.floats(-4, 4), st.sampled_from([0.0, 0.25])), max_size=5))
def test_policies(graph: Graph, costs: list[Costs]) -> None:
    found = history(graph, costs)
    with interpreted():
        assert found == history(graph, costs)


@pytest.mark.parametrize(("n", "m"), [(1, 0), (1, 1), (60, 200), (100, 90)])
def test_cycle_means(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    graph = CSR.of(rng.integers(0, n, m), rng.integers(0, n, m), (rng.normal(size=m).round(2),), n, (np.inf,))
    found = least_cycle_mean(graph)
    with interpreted():
        expected = least_cycle_mean(graph)
    assert repr(found) == repr(expected)
    if found is not None:
        row = best_to_cycle(graph, found)
        with interpreted():
            assert best_to_cycle(graph, found).tobytes() == row.tobytes()


def test_shares_of_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares of vertices, and their threads, change no result."""
    rng = np.random.default_rng(1)
    degrees = rng.integers(0, 5, 200)
    graph = np.cumsum([0, *degrees]), rng.integers(0, 200, degrees.sum()).astype(np.int32), rng.normal(size=degrees.sum())
    costs = [Costs(2.0, p) for p in (3.0, 1.0, -1.0)]
    found = history(graph, costs)
    monkeypatch.setattr(cycle_mean, "_SHARE", 7)
    assert history(graph, costs, 3) == found
