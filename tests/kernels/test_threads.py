"""Threads: how many, the same results for any number, several callers at once, and errors of workers."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import BOOLEAN, LOG, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.arrays import threads as module
from semiring.arrays.threads import run, thread_count
from semiring.common.errors import SemiringError
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.select import engine_for
from semiring.planning import planner
from semiring.product import matmul
from semiring.solve import closure

F8 = (np.dtype(np.float64),)


@pytest.mark.parametrize("value", ["", "  "])
def test_all_cores_by_default(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert thread_count() == cores
    monkeypatch.delenv("SEMIRING_NUM_THREADS")
    assert thread_count() == cores
    assert CpuEngine(MIN_PLUS, F8).threads == cores


def test_the_environment_and_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", " 3 ")
    assert thread_count() == 3
    assert CpuEngine(MIN_PLUS, F8).threads == 3
    assert thread_count(2) == 2
    assert thread_count(np.int64(4)) == 4  # type: ignore[arg-type]  # NumPy's integers are integers too


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "2 3"])
def test_a_wrong_environment_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", value)
    monkeypatch.setattr(planner, "_plans", {})  # of a product that has its plan nobody asks how many threads there are
    with pytest.raises(SemiringError, match=f"SEMIRING_NUM_THREADS is '{value}'"):
        matmul(np.ones((2, 2)), np.ones((2, 2)), MIN_PLUS)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, float("inf")])
@pytest.mark.parametrize("semiring", [MIN_PLUS, BOOLEAN])
def test_a_wrong_argument_is_named(value: Any, semiring: Any) -> None:
    with pytest.raises(SemiringError, match="threads is"):
        matmul(np.ones((2, 2), dtype=bool), np.ones((2, 2), dtype=bool), semiring, threads=value) if semiring is BOOLEAN else matmul(
            np.ones((2, 2)), np.ones((2, 2)), semiring, threads=value
        )


THREADS = (1, 2, 3, 5, 40)


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("m", "k", "n"), [(300, 300, 300), (1, 5000, 1000), (900, 7, 611), (97, 2500, 131), (401, 1030, 33)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("semiring", [MIN_PLUS, PLUS_TIMES, LOG], ids=repr)
def test_products_are_the_same_bits_on_any_number_of_threads(semiring: Semiring, dtype: Any, m: int, k: int, n: int) -> None:
    """Where ⊕ rounds, the sums are those of one order."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    for old in (None, c):
        first, *others = (matmul(a, b, semiring, c=old, threads=threads).tobytes() for threads in THREADS)
        assert all(other == first for other in others)
    if semiring is MIN_PLUS:
        first, *others = (matmul(a, b, semiring, witness=True, threads=threads).witness.tobytes() for threads in THREADS)
        assert all(other == first for other in others)


@pytest.mark.parametrize("semiring", [PLUS_TIMES, LOG], ids=repr)
def test_an_operand_that_is_the_result_and_batches_are_the_same_bits(semiring: Semiring) -> None:
    rng = np.random.default_rng(0)
    square, stack = rng.standard_normal((500, 500)), rng.standard_normal((7, 170, 170))

    def found(threads: int) -> list[bytes]:
        left, right = square.copy(), square.copy()
        matmul(left, square, semiring, out=left, threads=threads)
        matmul(square, right, semiring, out=right, threads=threads)
        return [v.tobytes() for v in (left, right, matmul(stack, stack, semiring, threads=threads), matmul(stack[0], stack, semiring))]

    first, *others = map(found, THREADS)
    assert all(other == first for other in others)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["auto", "blocked", "iterative"])
@pytest.mark.parametrize("semiring", [PLUS_TIMES, LOG, MIN_PLUS], ids=repr)
def test_closures_are_the_same_bits_on_any_number_of_threads(semiring: Semiring, method: str) -> None:
    rng = np.random.default_rng(0)
    n = 150 if method == "iterative" else 400
    a = rng.random((2, n, n)) / n
    if semiring is not PLUS_TIMES:
        a = np.log(a) if semiring is LOG else -np.log(a)
    first, *others = (closure(a, semiring, method=method, threads=threads).tobytes() for threads in (1, 2, 5))
    assert all(other == first for other in others)


def test_many_callers_at_once() -> None:
    """Each call has its own engine; the pool of workers is everybody's."""
    rng = np.random.default_rng(0)
    problems = [
        rng.integers(0, 99, (2, n, n)).astype(dtype)
        for n, dtype in ((40, np.float32), (200, np.float64), (90, np.int32), (260, np.float32))
    ] * 4
    expected = [matmul(a, b, MIN_PLUS, threads=1) for a, b in problems]

    def solve(problem: Any) -> Any:
        a, b = problem
        matmul(a > 50, b > 50, BOOLEAN, threads=2)
        return matmul(a, b, MIN_PLUS, witness=True, threads=2).values

    with ThreadPoolExecutor(8) as callers:
        for found, wanted in zip(callers.map(solve, problems), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_callers_that_compile_at_once() -> None:
    def compute(i: int) -> Any:
        semiring = Semiring("own", max, lambda a, b: a + b - i, -np.inf, i)
        return matmul(np.full((3, 3), 2.0), np.full((3, 3), 5.0), semiring)[0, 0]

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(compute, range(8))) == [7 - i for i in range(8)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_task_runs_once(threads: int) -> None:
    done: list[tuple[int, int]] = []

    def work(task: int, slot: int) -> None:
        done.append((task, slot))

    run(work, range(50), threads)
    assert sorted(task for task, _ in done) == list(range(50))
    assert {slot for _, slot in done} <= set(range(threads))
    run(work, [], threads)
    assert len(done) == 50


@pytest.mark.parametrize("bad", [0, 7, 19])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_error_of_a_worker_reaches_the_caller(bad: int, threads: int) -> None:
    """After all workers have stopped: they write to memory that is the caller's."""
    active = []
    lock = threading.Lock()

    def work(task: int, slot: int) -> None:
        with lock:
            active.append(task)
        time.sleep(0.002)
        with lock:
            active.remove(task)
        if task == bad:
            raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match=f"task {bad}"):
        run(work, range(20), threads)
    assert not active


def test_after_an_interrupt_nothing_else_is_begun() -> None:
    """Whoever stops a long computation does not wait for the rest of it."""
    done = []

    def work(task: int, slot: int) -> None:
        if slot == 0:
            raise KeyboardInterrupt
        time.sleep(0.01)
        done.append(task)

    with pytest.raises(KeyboardInterrupt):
        run(work, range(1000), 3)
    assert len(done) < 100


def test_the_pool_grows() -> None:
    run(lambda task, slot: None, range(4), 2)
    barrier = threading.Barrier(7, timeout=120)

    def meet(task: int, slot: int) -> None:
        barrier.wait()

    run(meet, range(7), 7)  # all seven at once
    assert module._helpers >= 6


def test_tasks_may_have_tasks() -> None:
    """Whoever finds no idle thread does the work alone, and waits for nobody."""
    done: list[tuple[int, int]] = []

    def outer(task: int, slot: int) -> None:
        run(lambda inner, slot: done.append((task, inner)), range(5), 3)

    run(outer, range(20), 3)
    assert sorted(done) == [(task, inner) for task in range(20) for inner in range(5)]


def test_nobody_waits_for_a_thread_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another program has its core: the caller has done all of the work meanwhile."""
    helper, begun, going_on = module._Helper(), threading.Event(), threading.Event()
    idle: Any = deque([helper])  # which it is not
    monkeypatch.setattr(module, "_idle", idle)

    def other() -> None:
        begun.set()
        assert going_on.wait(120)

    job = module._Job(other)
    helper.begin(job)
    assert begun.wait(120)
    done: list[int] = []
    run(lambda task, slot: done.append(task), range(5), 2)
    assert sorted(done) == list(range(5))
    going_on.set()
    assert job.end.acquire(timeout=120)


def test_threads_keep_nothing_of_their_work() -> None:
    array = np.zeros(3)
    gone = weakref.ref(array)
    barrier = threading.Barrier(3, timeout=120)

    def work(task: int, slot: int, array: Any = array) -> None:
        barrier.wait()

    run(work, range(3), 3)
    del array, work
    assert gone() is None


def test_an_engine_for_more_threads_than_tasks() -> None:
    engine = engine_for(MIN_PLUS, F8, threads=64)
    assert isinstance(engine, CpuEngine)
    np.testing.assert_array_equal(matmul(np.ones((1, 1)), np.ones((1, 1)), MIN_PLUS, threads=64), [[2]])
