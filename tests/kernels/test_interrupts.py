"""Signals while machine code runs: the handler runs soon, and what it raises stops the code of all threads."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algorithms import (
    betweenness,
    csr,
    cycle_mean,
    hops,
    reachability,
    search,
    simple_paths,
    spanning_tree,
    strong_components,
    symbolic,
    tight_edges,
)  # fmt: skip
from semiring.arrays.threads import run
from semiring.kernels.cpu import boolean
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.cpu.hops import SourceSets
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.loop_source import Parameter
from semiring.kernels.cpu.loops import Loop
from semiring.kernels.hardware import host
from semiring.kernels.select import element_operations

LOOK = "load volatile i64, ptr %stop"
F8 = (np.dtype(np.float64),)


class Rung(Exception):
    """What a handler raises that is not Ctrl-C's."""


@contextlib.contextmanager
def a_signal(number: signal.Signals, seconds: float = 0.2) -> Iterator[None]:
    """The process gets a signal after some time, unless the body ends before."""
    before = signal.getsignal(number)
    if number == signal.SIGINT:  # some libraries leave a handler of their own, which Python does not hear
        signal.signal(number, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if before is not None:  # as Python names a handler that it has not installed
            signal.signal(number, before)


@pytest.fixture(scope="module")
def endless() -> Function:
    """Machine code that counts in its first argument, and ends only when it is stopped."""

    def ir() -> str:
        em = Emitter("endless", ENTRY)
        with em.turns([], lambda _: em.let("icmp sge i64 0, 0")), em.each(0, 1000):
            em.store("i64", str(em.add(em.load("i64", "%args", 8), 1)), "%args", 8)
        em.line("ret void")
        return link([em])

    return compile_library(("endless",), host(), ir).function("endless")


def test_ctrl_c_stops_a_call(endless: Function) -> None:
    words = array("q", [0])
    with a_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        endless(words, 1e9)
    before = words[0]
    assert words[0] == before > 0  # nothing runs any more


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_ctrl_c_stops_all_workers(endless: Function, threads: int) -> None:
    begun: list[int] = []

    def work(task: int, slot: int) -> None:
        begun.append(task)
        endless(array("q", [0]), 1e9)

    with a_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        run(work, range(100), threads)
    assert len(begun) <= threads
    done: list[int] = []
    run(lambda task, slot: done.append(task), range(50), threads)  # as if nothing had been
    assert sorted(done) == list(range(50))


def test_ctrl_c_while_the_caller_waits_for_its_workers(endless: Function) -> None:
    begun = threading.Event()

    def work(task: int, slot: int) -> None:
        if slot == 0:
            assert begun.wait(60)
        else:
            begun.set()
            endless(array("q", [0]), 1e9)

    with a_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        run(work, range(2), 2)


def test_other_handlers_raise_too_and_may_compute(endless: Function) -> None:
    a = np.array([[0.0, 1.0], [np.inf, 0.0]])
    found: list[Any] = []
    sr.matmul(a, a, "min-plus")  # so that nothing is imported in the handler

    def ring(*_: object) -> None:
        found.append(sr.matmul(a, a, "min-plus"))
        if len(found) == 2:
            raise Rung

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(Rung):
            endless(array("q", [0]), 1e9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(found, [a, a])


def test_threads_that_are_not_the_main_one_go_on(endless: Function) -> None:
    """Ctrl-C is the main thread's: the product of another thread is complete."""
    a = np.random.default_rng(0).random((1200, 1200))
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(sr.matmul(a, a, "log", threads=2)))
    other.start()
    with a_signal(signal.SIGINT, 0.05), pytest.raises(KeyboardInterrupt):
        endless(array("q", [0]), 1e9)
    other.join()
    np.testing.assert_allclose(found[0], np.log(np.exp(a) @ np.exp(a)), rtol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("witness", [False, True])
def test_a_scan_of_hours(threads: int, witness: bool) -> None:
    lengths = [10**11] * 2 if not witness else [20_000_000]
    states = 2 if not witness else 3
    matrix = np.zeros((states, states))
    with a_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        sr.scan(matrix, "max-plus", np.zeros((len(lengths), states)), lengths=lengths, last=True, witness=witness, threads=threads)


KERNELS = [
    *("product", "product_witness", "product_lanes", "product_stack", "close", "close_witness", "close_lanes", "eliminate"),
    *("matrix_vector_streamed", "matrix_vector_dot", "vector_matrix_streamed", "vector_matrix_dot"),
    *("sparse_dense", "sparse_vector", "sparse_symbolic", "sparse_numeric", "scan", "scan_backward_witness"),
    *("tight_trees", "fronts_close", "fronts_eliminate", "sweep_rows", "sweep_statistics"),
]


def functions_of(ir: str) -> list[str]:
    """The text of each function in a module."""
    return ["define" + part for part in ir.split("define")[1:]]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_look(name: str) -> None:
    (function,) = (text for text in functions_of(kernels_for(sr.MIN_PLUS, F8).ir(name)) if f"@{name}({ENTRY})" in text)
    assert LOOK in function


def test_other_functions_look() -> None:
    plain, costs = (None,) * 20, (None,) * len(cycle_mean.Costs._fields)  # the elements of arguments that are no `Elements`
    sums = (None,) * len(betweenness._Shares._fields)
    keys = np.dtype(np.float64), np.dtype(np.float64), np.dtype(np.int64)
    modules = {
        "bits": [link(boolean.BitsKernel().functions())],
        "betweenness": [
            betweenness._add_by_levels.ir((*plain[:6], sums, *plain[:2]), {}),
            betweenness._add_by_lengths.ir((*plain[:8], sums, *plain[:4], keys[1:]), {}),
        ],
        "deviations": [simple_paths._search.ir((*plain[:7], keys, *plain[:2]), {})],
        "policy iteration": [
            cycle_mean._improve.ir((*plain[:8], costs), {}),
            cycle_mean._evaluate.ir((*plain[:4], costs, *plain[:2]), {}),
        ],
        "infinite walks": [cycle_mean._reach.ir(plain[:6], {})],
    }
    silent = [text.split("(")[0] for irs in modules.values() for ir in irs for text in functions_of(ir) if LOOK not in text]
    assert [name.split("@")[1] for name in silent if "bits_identity" not in name] == []


LOOPS: list[Loop[..., Any]] = [
    csr.transpose, csr.is_mirrored, strong_components.tarjan, reachability.unite, symbolic.find_parents, symbolic.walk_subtrees,
    spanning_tree.kruskal, hops.write_rows, hops.order_by_searches,
]  # fmt: skip

FOR_CONSTANTS: list[tuple[Loop[..., Any], dict[str, Any]]] = [
    (spanning_tree.prim, {"better": spanning_tree.smaller}),
    (spanning_tree.read_line, {"better": spanning_tree.smaller}),
    (hops.search, {"sets": SourceSets(1), "rows": True}),
    (hops.search, {"sets": SourceSets(8), "rows": False}),
]


def kinds(parameter: Parameter) -> Any:
    """The dtypes of an argument's elements: one of integers."""
    if parameter.kind == "tuple":
        return tuple(kinds(each) for _, each in parameter.fields)
    return (np.dtype(np.uint64),) if parameter.kind == "elements" else None


@pytest.mark.parametrize(("made", "constants"), [*((made, {}) for made in LOOPS), *FOR_CONSTANTS])
def test_loops_look(made: Loop[..., Any], constants: dict[str, Any]) -> None:
    assert LOOK in made.ir(tuple(map(kinds, made.parameters.values())), constants)


@pytest.mark.parametrize("made", [search.search_best_first, search.search_in_rounds, search.search_pair, tight_edges.grow_tree])
def test_searches_look(made: Loop[..., Any]) -> None:
    def doubles(parameter: Parameter) -> Any:
        if parameter.kind == "tuple":
            return tuple(doubles(each) for _, each in parameter.fields)
        return F8 if parameter.kind == "elements" else None

    given = {"semiring": element_operations(sr.MIN_PLUS, F8), "backward": False, "limited": False, "parts": True, "solution": False}
    constants = {a.arg: given[a.arg] for a in made.tree.args.kwonlyargs}
    assert LOOK in made.ir(tuple(map(doubles, made.parameters.values())), constants)
