"""A few searches of a sparse graph are tried where they may decide, and tell what follows from the graph alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring import csgraph
from semiring.algorithms.rows_of_edges import Reach, reach
from semiring.graphs import edges_of
from semiring.kernels import machine
from semiring.planning import Problem, costs, edges_problem
from semiring.planning.options import Options


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The searches that are asked for, each time that some are tried."""
    asked: list[int] = []

    def counted(semiring: Any, edges: Any, count: int, *how: Any) -> Reach:
        asked.append(count)
        return Reach(0.5, 0.25)

    monkeypatch.setattr(costs, "reach", counted)
    monkeypatch.setattr(costs, "gpus", lambda: 0)
    return asked


def problem(graph: Any, searches: int | None = None) -> Problem:
    listed = edges_of(graph, sr.MIN_PLUS)
    assert listed is not None
    return edges_problem(sr.MIN_PLUS, listed[0], Options(threads=2), searches)


def test_searches_are_tried_where_they_may_decide(tries: list[int]) -> None:
    rng = np.random.default_rng(0)
    thick, thin = (sp.random_array((400, 400), density=degree / 400, rng=rng, format="csr") for degree in (60, 0.2))
    assert problem(thick).reach == Reach(0.5, 0.25)
    assert problem(thick, 100).reach.found == 0.5
    assert tries == [400, 100]
    assert problem(thick, 64).reach == Reach()  # which is soon done
    assert problem(thin).reach == Reach()  # faster than the closure however far they go
    assert problem(sp.csr_array((0, 0))).reach == Reach()
    assert tries == [400, 100]


def test_nothing_is_tried_where_only_one_way_is_left(tries: list[int]) -> None:
    thick = sp.random_array((900, 900), density=30 / 900, rng=0, format="csr")
    problem(thick)
    assert tries
    tries.clear()
    sr.explain(thick, sr.PLUS_TIMES)  # which is eliminated
    sr.explain(thick, block=64)
    csgraph.explain(thick, indices=range(300), min_only=True)
    assert not tries


def test_a_trial_tells_how_often_rounds_look_at_an_edge() -> None:
    n = 300
    height = np.random.default_rng(1).integers(0, 100, n)
    tails, heads = np.arange(n - 1), np.arange(1, n)
    path = sp.csr_array((1.0 + height[heads] - height[tails], (tails, heads)), shape=(n, n))
    v = np.arange(n)
    i, j = np.concatenate([v, v]), np.concatenate([(v + 1) % n, (v * 7 + 3) % n])
    ring = sp.csr_array((np.random.default_rng(2).integers(1, 1000, 2 * n) + 0.0, (i, j)), shape=(n, n))
    once, often = (reach(sr.MIN_PLUS, listed[0], n, "rounds") for g in (path, ring) if (listed := edges_of(g, sr.MIN_PLUS)))
    assert once.seen is not None
    assert often.seen is not None
    assert once.seen <= 1
    assert often.seen > 1.2
    first, second = (reach(sr.MIN_PLUS, listed[0], n, "rounds") for _ in range(2) if (listed := edges_of(ring, sr.MIN_PLUS)))
    assert first == second
    asked = problem(path)._replace(order="rounds")
    seconds = [costs.search_seconds(asked._replace(reach=found), compiled=True) for found in (Reach(1, 1), Reach(1, 4), Reach(0.2, 0.1))]
    assert seconds[2] < seconds[0] < seconds[1]


def test_each_cost_has_one_meaning() -> None:
    """A name that is given twice would silently be the second."""
    names = [
        name.id
        for statement in ast.parse(Path(machine.__file__).read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(name, ast.Name)
    ]
    assert len(names) == len(set(names))
