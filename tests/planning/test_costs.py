"""The costs of strategies: more work costs more, and the cheapest is the one that was measured to be fastest by far."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.rows_of_edges import Order, Reach
from semiring.planning import Problem, closure_problem, costs
from semiring.planning.options import Options

COSTS: dict[str, tuple[Callable[[Problem], float], dict[str, Any]]] = {
    "best": (partial(costs.search_seconds, compiled=True), {}),
    "levels": (partial(costs.search_seconds, compiled=True), {"order": "levels"}),
    "rounds": (partial(costs.search_seconds, compiled=True), {"order": "rounds"}),
    "NumPy": (partial(costs.search_seconds, compiled=False), {}),
    "closure": (lambda problem: costs.closure_seconds(problem, "cpu"), {}),
    "on a GPU": (lambda problem: costs.closure_seconds(problem, "cuda"), {}),
    "products": (lambda problem: costs.rows_seconds(problem, "cpu"), {}),
    "dijkstra": (costs.scipy_seconds, {}),
    "johnson": (costs.scipy_seconds, {"order": "rounds"}),
}


def problem(n: int, m: int, s: int, *, dtype: str = "f8", threads: int | None = None, paths: bool = False, **more: Any) -> Problem:
    semiring = sr.BOOLEAN if dtype == "bool" else sr.MIN_PLUS
    return closure_problem(semiring, (np.dtype(dtype),), (n, n), Options(paths, threads=threads), edges=m, searches=s, **more)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", COSTS)
@given(data=st.data())
def test_more_work_costs_more(name: str, data: st.DataObject) -> None:
    n, degree = data.draw(st.integers(1, 100_000)), data.draw(st.integers(0, 100))
    sources, threads, paths = data.draw(st.integers(1, n)), data.draw(st.integers(1, 64)), data.draw(st.booleans())
    cost, more = COSTS[name]
    how: dict[str, Any] = {"threads": threads, "paths": paths, **more}
    seconds = cost(problem(n, n * degree, sources, **how)) * (1 - 1e-12)  # but for rounding
    assert seconds > 0
    assert cost(problem(2 * n, 2 * n * degree, sources, **how)) >= seconds
    assert cost(problem(n, n * (degree + 1), sources, **how)) >= seconds
    assert cost(problem(n, n * degree, sources + 1, **how)) >= seconds
    assert cost(problem(n, n * degree, sources, threads=threads, paths=True, **more)) >= seconds


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "float32", "int32", "float64", "int64"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_dtype_has_a_cost(dtype: str, device: str) -> None:
    asked = problem(1000, 5000, 3, dtype=dtype)
    assert 0 < costs.closure_seconds(asked, device) <= costs.closure_seconds(problem(1000, 5000, 3), device)
    assert costs.rows_seconds(asked, device) > 0


def test_threads_share_long_work() -> None:
    for name in ("best", "closure", "products"):
        one, four = (COSTS[name][0](problem(20_000, 100_000, 10_000, threads=t)) for t in (1, 4))
        assert 2.5 * four < one


@pytest.mark.parametrize(
    ("n", "degree", "sources", "order", "faster"),
    [
        (9241, 2.7, 9241, "best", "searches"),  # a power grid
        (4900, 4, 4900, "best", "searches"),  # a grid
        (4900, 4, 4900, "levels", "searches"),
        (2000, 1999, 2000, "best", "closure"),
        (1000, 64, 1000, "best", "closure"),
        (1000, 64, 1, "best", "searches"),
        (300, 60, 300, "best", "closure"),
    ],
)
def test_the_faster_way(n: int, degree: float, sources: int, order: Order, faster: str) -> None:
    """Where one was measured to be several times as fast as the other, on two threads."""
    asked = problem(n, int(n * degree), sources, order=order, threads=2)
    assert (costs.search_seconds(asked, compiled=True) < costs.closure_seconds(asked, "cpu")) == (faster == "searches")


def test_a_search_that_reaches_little_costs_little() -> None:
    asked = (problem(5000, 10_000, 5000, reach=Reach(found), threads=1) for found in (0.01, 1.0))
    little, much = (costs.search_seconds(each, compiled=True) for each in asked)
    assert 5 * little < much
