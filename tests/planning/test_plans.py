"""Plans: equal problems have equal plans, what `explain` shows is what runs, and what is kept is found again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.arrays import devices, memory
from semiring.execution import product, strategy, sums
from semiring.kernels import machine
from semiring.planning import Plan, Problem, block_rows, closure_problem, plan, planner
from semiring.planning.options import Options

INF = np.inf
FLOAT = (np.dtype(np.float64),)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_plans", {})


def square(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), INF)


def asked(n: int = 10, **how: Any) -> Problem:
    return closure_problem(sr.MIN_PLUS, FLOAT, (n, n), Options(**how))


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_row_panels_of_other_ranks_count_in_the_memory_limit(gpus: int) -> None:
    rows = sr.explain(32768, dtype="float32", ranks=2, gpus=gpus, memory_limit="1500 MB").rows
    assert rows is not None
    arriving = 0 if gpus == 2 else 2  # several GPUs of a rank copy them from the memory of the host
    assert (rows.buffers + arriving) * rows.side * rows.row_bytes == rows.memory <= 1.5e9


def test_equal_problems_have_one_plan() -> None:
    assert asked() == asked()
    assert hash(asked()) == hash(asked(memory_limit=None))
    assert plan(asked()) is plan(asked())
    assert plan(asked()) == plan(asked())
    assert plan(asked()) != plan(asked(method="blocked"))
    assert plan(asked(device=["cuda:0"][:0] or "cpu")).device == "cpu"


def test_a_list_of_devices_is_part_of_a_problem() -> None:
    assert asked(device=["cuda:0", "cuda:1"]) == asked(device=("cuda:0", "cuda:1"))
    hash(asked(device=["cuda:0", "cuda:1"]))


def test_plans_that_depend_on_free_memory_are_not_kept() -> None:
    large = asked(n=5000)
    assert plan(large) == plan(large)
    assert not planner._plans
    plan(asked())
    assert len(planner._plans) == 1


def test_few_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_KEPT", 3)
    for n in range(10):
        plan(asked(n=n))
    assert [problem.n for problem in planner._plans] == [7, 8, 9]


def test_a_gpu_that_is_warm_is_planned_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_found", lambda: (1, ""))
    monkeypatch.setattr(memory, "free_on_gpu", lambda number: 8 << 30)
    monkeypatch.setattr(machine, "_relative_size", lambda device: 1.0)
    monkeypatch.setattr(machine, "thread_count", lambda threads=None: 1)
    monkeypatch.setattr(machine, "used_devices", set())
    assert plan(asked(n=2000)).device == "cpu"
    monkeypatch.setattr(machine, "used_devices", {"cuda:0"})
    assert plan(asked(n=2000)).device == "cuda:0"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that calls have asked for."""
    found: list[Plan] = []

    def noting(problem: Problem) -> Plan:
        found.append(plan(problem))
        return found[-1]

    for module in (strategy, product, sums):
        monkeypatch.setattr(module, "plan", noting)
    return found


def shown(graph: Any, semiring: sr.Semiring = sr.MIN_PLUS, **how: Any) -> Plan:
    found = sr.explain(graph, semiring, **how)
    return plan(found.problem._replace(hypothetical=False))


@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize("method", ["auto", "blocked", "iterative"])
def test_what_is_explained_is_what_runs(paths: bool, method: str, ran: list[Plan]) -> None:
    for graph in (
        square(30),
        np.stack([square(20), square(20, 1)]),
        square(30).tolist(),
        sp.csr_array(np.where(square(60) < 0.02, 1.0, 0)),
    ):
        sr.apsp(graph, paths=paths, method=method, nonedge=None if sp.issparse(graph) else INF)
        nonedge = None if sp.issparse(graph) else INF
        assert ran.pop() == shown(graph, paths=paths, method=method, nonedge=nonedge)
    assert not ran


def test_sources_and_other_semirings(ran: list[Plan]) -> None:
    a, sparse = square(40), sp.csr_array(np.where(square(40) < 0.05, 1.0, 0))
    sr.apsp(a, sources=[1, 2, 1])
    assert ran.pop() == shown(a, sources=[1, 2, 1])
    assert ran == []
    sr.apsp(sparse, sources=[1, 2], targets=[0])
    assert ran.pop() == shown(sparse, sources=[1, 2], targets=[0])
    sr.closure(-a, sr.MAX_PLUS, nonedge=-INF)
    assert ran.pop() == shown(-a, sr.MAX_PLUS, nonedge=-INF)
    bits = a < 0.1
    sr.transitive_closure(bits)
    assert ran.pop() == shown(bits, sr.BOOLEAN)


def test_products_ask_for_a_plan(ran: list[Plan]) -> None:
    a = square(20)
    sr.matmul(a, a[:, :7], sr.MIN_PLUS, witness=True)
    (how,) = ran
    assert (how.strategy, how.problem.shape, how.problem.depth, how.paths) == ("product", (20, 7), 20, True)
    assert str(how).startswith("product of 20 × 20 and 20 × 7 over min-plus in float64 with paths")
    ran.clear()
    sr.power(a, 5, sr.MIN_PLUS)
    assert {found.strategy for found in ran} == {"product"}
    assert sr.explain(how.problem).strategy == "product"


def test_statistics_ask_for_a_plan(ran: list[Plan]) -> None:
    sr.statistics(sp.csr_array(np.where(square(40) < 0.05, 1.0, 0)))
    assert ran


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"method": "fast"}, "unknown method"),
        ({"block": 0}, "block is 0"),
        ({"device": "tpu"}, "unknown device"),
        ({"memory_limit": "much"}, "memory_limit is"),
        ({"block": [3]}, r"block is \[3\]"),
        ({"threads": [2]}, r"threads is \[2\]"),
        ({"device": [[0]]}, "a list names different GPUs"),
        ({"sources": 0, "memory_limit": "1GiB"}, "name fewer at a time"),
        ({"method": "recursive", "memory_limit": "24MB"}, "takes the matrix as a whole"),
    ],
)
def test_what_contradicts_itself_is_refused_while_planning(how: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an entry is looked at."""
    monkeypatch.setattr("semiring.graphs.dense.value_statistics", lambda *_, **__: 1 / 0)
    a = np.broadcast_to(np.float32(1), (2600, 2600)) if "recursive" in how.values() else square(5)
    if "sources" not in how:
        with pytest.raises(sr.SemiringError, match=said):
            sr.apsp(a, nonedge=INF, **how)
    with pytest.raises(sr.SemiringError, match=said):
        sr.explain(a, nonedge=INF, **how)


def test_a_plan_is_shown() -> None:
    text = str(sr.explain(sp.csr_array(np.eye(3000, k=1)), sources=[0, 1]))
    assert text.startswith("closure of 3,000 vertices and 2,999 edges, 2 rows of it, over min-plus in float64")
    assert "search: breadth-first search" in text
    assert "considered" in text
    assert "2 graphs of 5 vertices" in str(sr.explain(np.ones((2, 5, 5)), nonedge=INF))
    assert "<table" in sr.explain(sp.csr_array(np.eye(30, k=1)))._repr_html_()


def test_ranks_search_or_go_by_block_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    line = sp.csr_array(np.eye(3000, k=1))
    found = sr.explain(line, ranks=4)
    assert (found.strategy, [name for name, _ in found.considered]) == ("search", ["search", "block rows"])
    assert found.seconds == min(seconds for _, seconds in found.considered)
    assert found.memory == {"cpu": 750 * 3000 * 8}
    full = sp.csr_array(1.0 + np.arange(1_000_000).reshape(1000, 1000) % 7)
    assert sr.explain(full, ranks=4, threads=1).strategy == "block rows"
    assert sr.explain(line, ranks=4, method="blocked").strategy == sr.explain(line, ranks=4, memory_limit="1GB").strategy == "block rows"
    assert sr.explain(full, ranks=4, sources=[1, 2]).strategy == "search"
    with pytest.raises(sr.SemiringError, match="sparse graphs that are searched"):
        sr.explain(3000, ranks=4, sources=[1, 2])
    monkeypatch.setattr(block_rows, "free_on", lambda _: 1 << 20)  # too little for row panels
    assert sr.explain(full, ranks=4).strategy == "search"
