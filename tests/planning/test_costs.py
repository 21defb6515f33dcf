"""The costs of strategies: more work costs more, and the cheapest is the one that was measured to be fastest by far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.planning import costs

DOUBLE = np.dtype(np.float64)

COSTS: dict[str, Any] = {
    "best": lambda n, m, s, **how: costs.searches(n, m, s, order="best", **how),
    "levels": lambda n, m, s, **how: costs.searches(n, m, s, order="levels", **how),
    "rounds": lambda n, m, s, **how: costs.searches(n, m, s, order="rounds", **how),
    "closure": lambda n, m, s, **how: costs.closure(n, dtype=DOUBLE, **how),
    "bits": lambda n, m, s, **how: costs.closure(n, dtype=np.dtype(bool), **how),
    "products": lambda n, m, s, **how: costs.products(n, s, dtype=DOUBLE, **how),
    "dijkstra": lambda n, m, s, threads, **how: costs.dijkstra(n, m, s, **how),
    "johnson": lambda n, m, s, threads, **how: costs.johnson(n, m, s, **how),
    "floyd_warshall": lambda n, m, s, threads, **how: costs.floyd_warshall(n, **how),
}


@pytest.mark.parametrize("name", COSTS)
@given(data=st.data())
def test_more_work_costs_more(name: str, data: st.DataObject) -> None:
    n, degree = data.draw(st.integers(1, 100_000)), data.draw(st.integers(0, 100))
    sources, threads, paths = data.draw(st.integers(1, n)), data.draw(st.integers(1, 64)), data.draw(st.booleans())
    cost = COSTS[name]
    seconds = cost(n, n * degree, sources, threads=threads, paths=paths)
    assert seconds > 0
    assert cost(2 * n, 2 * n * degree, sources, threads=threads, paths=paths) >= seconds
    assert cost(n, n * (degree + 1), sources, threads=threads, paths=paths) >= seconds
    assert cost(n, n * degree, sources + 1, threads=threads, paths=paths) >= seconds
    assert name == "bits" or cost(n, n * degree, sources, threads=threads, paths=True) >= seconds  # paths of bits are not packed


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "float32", "int32", "float64", "int64", "longdouble"])
def test_every_dtype_has_a_cost(dtype: str) -> None:
    how: dict[str, Any] = {"threads": 2, "paths": False, "dtype": np.dtype(dtype)}
    assert costs.closure(100, **how) <= costs.closure(100, threads=2, paths=False, dtype=DOUBLE) or dtype == "bool"
    assert costs.products(100, 3, **how) > 0


def test_threads_share_long_work() -> None:
    for cost in (COSTS["best"], COSTS["closure"], COSTS["products"]):
        one, four = (cost(20_000, 100_000, 10_000, threads=t, paths=False) for t in (1, 4))
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
        (64, 4, 64, "best", "closure"),
    ],
)
def test_the_faster_way(n: int, degree: float, sources: int, order: costs.Order, faster: str) -> None:
    """Where one was measured to be several times as fast as the other."""
    searched = costs.searches(n, int(n * degree), sources, order=order, threads=2, paths=False)
    closed = costs.closure(n, threads=2, paths=False, dtype=DOUBLE)
    assert (searched < closed) == (faster == "searches")


def test_a_search_that_reaches_little_costs_little() -> None:
    how: dict[str, Any] = {"order": "best", "threads": 1, "paths": False}
    assert 5 * costs.searches(5000, 10_000, 5000, reach=0.01, **how) < costs.searches(5000, 10_000, 5000, **how)
