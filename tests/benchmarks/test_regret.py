"""The problems that regret is measured on, and that strategies which are forced give what the public call gives."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import bellman_ford

from benchmarks import regret
from benchmarks.problems import KINDS, Problem, draw, graph

PROBLEMS = [replace(p, n=min(p.n, 40), sources=min(p.sources, 40), paths=False) for p in draw(4 * len(KINDS), 5, most=40)]


def test_the_same_seed_draws_the_same_problems() -> None:
    assert draw(30, 7) == draw(30, 7)
    assert draw(30, 7) != draw(30, 8)
    assert {p.kind for p in draw(len(KINDS), 7)} == set(KINDS)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_strategies_agree(problem: Problem) -> None:
    g = graph(problem)
    assert g.dtype == problem.dtype
    weights = g.data if sp.issparse(g) else g[~np.eye(problem.n, dtype=bool)]
    assert problem.weights != "unit" or (weights == 1).all()
    infinity = np.inf if g.dtype.kind == "f" else np.iinfo(g.dtype).max
    dense = np.where(g == infinity, 0, g) if isinstance(g, np.ndarray) else g.toarray()
    expected = bellman_ford(sp.csr_array(dense.astype(float)), indices=problem.which)  # no weight is 0; no negative cycle, or it raises
    for name, strategy in regret.STRATEGIES.items():
        if strategy.applies(problem):
            found: Any = strategy.work(problem, g, problem.which)()
            found = found[0] if isinstance(found, tuple) else found
            assert np.array_equal(np.where(found == infinity, np.inf, found), expected), name
    assert regret.planned(problem, g).strategy.removesuffix(" from both ends") in {strategy.name for strategy in regret.STRATEGIES.values()}


def test_sampled_sources_are_scaled() -> None:
    """To all of them, when one run is long enough."""
    asked: list[int] = []
    problem = replace(PROBLEMS[0], n=1000, sources=1000)

    def work(which: Any) -> Any:
        asked.append(len(which))
        return lambda: time.sleep(1e-4 * len(which))

    found = regret._by_sources(work, problem, 2e-3)
    assert found.mark == "~"
    assert asked == [8, 32]
    assert 0.08 < found.seconds < 0.5


def test_ratios() -> None:
    times = {"searches": regret.Time(1.0), "closure": regret.Time(3.0, "≈")}
    outcome = regret.Outcome(PROBLEMS[0], times, regret.Time(2.0), "closure", {"searches": 9.0, "closure": 4.0})
    assert (outcome.best, outcome.regret, outcome.cheapest, outcome.cheapest_regret) == ("searches", 2.0, "closure", 3.0)
