"""How calls of `semiring.csgraph` are computed: by the closure, by searches, or by SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring import csgraph
from semiring.arrays.devices import gpus
from semiring.kernels import machine
from semiring.planning import Plan, closure_problem, costs, plan, planner
from semiring.planning.options import Options

FLOAT64 = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_plans", {})
    for module in (machine, costs):
        monkeypatch.setattr(module, "thread_count", lambda threads=None: 2)


def planned(n: int, degree: float, sources: int | None = None, *, paths: bool = False, device: Any = "auto", **more: Any) -> Plan:
    options = Options(paths, device=device)
    more = {"edges": int(n * degree), "searches": sources, "scipy": True, **more}
    return plan(closure_problem(sr.MIN_PLUS, (FLOAT64,), (n, n), options, **more))


@pytest.mark.skipif(gpus() > 0, reason="a GPU closes sparse ones too")
def test_dense_graphs_are_closed_and_sparse_ones_searched() -> None:
    assert planned(2000, 1999).strategy == "whole"
    assert planned(2000, 1999, 1).strategy in ("search", "SciPy")
    assert planned(20000, 2).strategy in ("search", "SciPy")
    assert planned(20000, 2, order="rounds").strategy in ("search", "SciPy")


def test_the_predicted_fastest_is_taken() -> None:
    for n in (1, 10, 300, 2000, 20000):
        for degree in (0, 2, 16, n):
            for sources in (None, 1, max(1, n // 10)):
                found = planned(n, degree, sources)
                assert found.seconds == min(seconds for _, seconds in found.considered)
                assert dict(found.considered)[found.strategy] == found.seconds


def test_a_named_device_is_this_library_s_but_for_a_single_search() -> None:
    for device in ("cpu", "reference"):
        assert planned(20000, 2, device=device).strategy != "SciPy"
    assert planned(20000, 2, 1, device="cpu", wanted="nearest").strategy == "SciPy"


def test_what_does_not_fit_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(5000, 4999).strategy == "whole"
    monkeypatch.setattr(planner, "_plans", {})
    monkeypatch.setattr(planner, "fits", lambda needed, device: needed <= 10**8)
    assert planned(5000, 4999).strategy in ("search", "SciPy")


def test_searches_that_find_little_are_quick() -> None:
    rng = np.random.default_rng(0)
    apart = sp.block_diag([sp.coo_array(rng.random((60, 60)))] * 8)  # every search ends soon
    together = sp.random_array((480, 480), density=60 / 480, rng=rng)
    little, much = (dict(csgraph.explain(graph).considered) for graph in (apart, together))
    for name in ("search", "SciPy"):
        assert 3 * little[name] < much[name]


def test_explain_says_it() -> None:
    complete, sparse = np.ones((1500, 1500)), sp.random_array((4000, 4000), density=1e-4, rng=0)
    text = str(csgraph.explain(complete))
    assert text.startswith("closure of 1,500 vertices and 2,250,000 edges over min-plus in float64")
    assert "considered" in text
    assert csgraph.explain(-complete).strategy == "whole"
    assert csgraph.explain(-sparse, indices=[0, 1]).problem.order == "rounds"
    assert csgraph.explain(-sparse, indices=[0, 1], unweighted=True).problem.order == "levels"
    assert csgraph.explain(complete, "D", indices=0, device="cpu").strategy != "whole"
    assert csgraph.explain(complete, min_only=True, device="cpu").strategy == "SciPy"
    with pytest.raises(ValueError, match="Cannot specify indices"):
        csgraph.explain(complete, "FW", indices=0)


def test_what_explain_says_is_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    from semiring.csgraph import solving

    ran: list[str] = []

    def noting(name: str, strategy: str) -> None:
        really = getattr(solving, name)

        def noted(*args: Any) -> Any:
            answer = really(*args)
            ran.extend([strategy] * (answer is not None))
            return answer

        monkeypatch.setattr(solving, name, noted)

    for name, strategy in (("by_closure", "whole"), ("by_searches", "search"), ("by_scipy", "SciPy"), ("small_rows", "search")):
        noting(name, strategy)
    rng = np.random.default_rng(0)
    for n in (5, 80, 300):
        graph = sp.random_array((n, n), density=4 / n, rng=rng)
        several: list[dict[str, Any]] = [{}, {"indices": 0}, {"return_predecessors": True}, {"device": "cpu"}, {"unweighted": True}]
        for options in several:
            csgraph.shortest_path(graph, **options)
            assert ran.pop() == csgraph.explain(graph, **options).strategy
    assert not ran


def test_a_call_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from semiring.csgraph import solving
    from semiring.execution import strategy

    plans: list[Plan] = []

    def counted(problem: Any) -> Plan:
        plans.append(plan(problem))
        return plans[-1]

    for module in (solving, strategy):
        monkeypatch.setattr(module, "plan", counted)
    rng = np.random.default_rng(0)
    for graph in (rng.random((300, 300)), sp.random_array((1500, 1500), density=0.003, rng=rng)):
        several: list[dict[str, Any]] = [{}, {"indices": [0, 1]}, {"return_predecessors": True}, {"device": "cpu"}]
        for options in several:
            csgraph.shortest_path(graph, **options)
            assert len(plans) == 1
            assert plans.pop().strategy == csgraph.explain(graph, **options).strategy
            plans.clear()
    csgraph.shortest_path(sp.random_array((300, 300), density=0.01, rng=rng), indices=[0, 1])
    assert not plans  # as the search itself takes less time


@pytest.mark.parametrize("n", [1, 2, 7, 18, 90, 400, 1000])
def test_small_sparse_graphs_are_searched_as_explain_says(n: int) -> None:
    from semiring.csgraph.solving import Request, small_rows

    rng = np.random.default_rng(n)
    for degree in (0.5, 3, n):
        graph = sp.csr_array(sp.random_array((n, n), density=min(1, degree / n), rng=rng))
        for sources in (1, min(n, 20), n):
            for directed, paths, unweighted in itertools.product([False, True], repeat=3):
                request = Request("D", directed, paths, unweighted, indices=np.arange(sources))
                if small_rows(graph, request) is not None:
                    options = {"directed": directed, "return_predecessors": paths, "unweighted": unweighted}
                    assert csgraph.explain(graph, "D", indices=np.arange(sources), **options).strategy == "search"
            height, coo = rng.random(n), graph.tocoo()  # no cycle becomes negative by potentials
            signed = sp.csr_array((coo.data + height[coo.row] - height[coo.col], (coo.row, coo.col)), shape=(n, n))
            if small_rows(signed, Request("BF", True, False, False, indices=np.arange(sources))) is not None:
                assert csgraph.explain(signed, "BF", indices=np.arange(sources)).strategy == "search"


def test_a_few_rows_of_a_dense_graph_are_found_by_products() -> None:
    complete = np.ones((1000, 1000))
    if not gpus():  # which closes it faster
        assert csgraph.explain(complete, indices=range(8)).strategy == "rows by products"
    assert csgraph.explain(complete, indices=range(8), device="cpu").strategy == "rows by products"
    assert csgraph.explain(complete, indices=range(8), device="reference").strategy != "rows by products"
    assert csgraph.explain(sp.csr_array(complete), indices=range(8)).strategy != "rows by products"
    assert "products" in str(csgraph.explain(complete, indices=range(8), device="cpu"))


@pytest.mark.parametrize("strategy", ["whole", "search", "SciPy"])
@pytest.mark.parametrize("negative", [False, True])
def test_every_strategy_has_the_same_answer(strategy: str, negative: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"whole": "closure_seconds", "search": "search_seconds", "SciPy": "scipy_seconds"}
    for name in names.values():
        monkeypatch.setattr(planner, name, lambda *_, **__: 1.0)
    monkeypatch.setattr(planner, names[strategy], lambda *_, **__: 0.0)
    monkeypatch.setattr("semiring.csgraph.solving.FEW_STEPS", 0)
    rng = np.random.default_rng(1)
    n = 60
    graph = sp.random_array((n, n), density=4 / n, rng=rng, format="csr")
    graph.data = np.rint(9 * graph.data) + 1
    if negative:  # no cycle becomes negative by potentials
        p = rng.integers(0, 20, n)
        coo = graph.tocoo()
        graph = sp.csr_array((coo.data + p[coo.row] - p[coo.col], (coo.row, coo.col)), shape=(n, n))
    ways: list[dict[str, Any]] = [{}, {"indices": [3, 5, 3]}, {"indices": 7}, {"directed": negative}, {"unweighted": True}]
    for options in ways:
        assert csgraph.explain(graph, **options).strategy == strategy
        lengths, before = csgraph.shortest_path(graph, return_predecessors=True, **options)
        theirs = abs(graph) if options.get("unweighted") else graph
        expected = sp.csgraph.shortest_path(theirs, method="J" if negative else "D", **options)
        np.testing.assert_array_equal(lengths, expected)
        assert before.dtype == np.int32
        assert ((before >= 0) <= np.isfinite(lengths)).all()
        np.testing.assert_array_equal(csgraph.dijkstra(abs(graph), limit=12), sp.csgraph.dijkstra(abs(graph), limit=12))


@pytest.mark.gpu
def test_an_array_on_a_gpu_stays_there() -> None:
    import cupy

    found = csgraph.explain(cupy.ones((50, 50)))
    assert (found.strategy, found.device) == ("whole", "cuda:0")
    with pytest.raises(sr.SemiringError):
        csgraph.shortest_path(cupy.ones((50, 50)), device="cpu")
