"""Forked children compute, whatever the other threads of their parent were about to do."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import ffi

import semiring
from semiring.algebra import expression
from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import const, node
from semiring.arrays import threads
from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.kernels import cache, hardware
from semiring.kernels.cpu import compiler
from semiring.product import matmul
from semiring.streaming import folder as checkpoint_folder

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),  # Python 3.12 and later warn of what is tested here,
    pytest.mark.filterwarnings("ignore:.*JAX is multithreaded.*:RuntimeWarning"),  # and so does JAX, if other tests have imported it
]


def forked(work: Callable[[], bool]) -> int:
    """A child that computes `work`, which must give True."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return child


def finished(child: int) -> None:
    """Wait for a child."""
    deadline = time.monotonic() + 120
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.005)
    if done == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done[0] == child, "the child hangs"
    assert os.waitstatus_to_exitcode(done[1]) == 0


def shifted(c: float) -> Semiring:
    """a ⊗ b = a + b + c, whose code nobody has."""
    return Semiring("shifted", min, lambda a, b: a + b + c, np.inf, -c)


def computes(c: float) -> bool:
    """What children do: a product by kernels that are to be compiled, and one by others that exist."""
    return bool(matmul([[2.0]], [[5.0]], shifted(c)).item() == 7 + c and matmul([[2.0]], [[5.0]], MIN_PLUS).item() == 7)


def computes_or_ends(c: float) -> None:
    sys.exit(0 if computes(c) else 2)


@pytest.fixture
def compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another thread that compiles one kernel after the other, in an empty cache."""
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path))
    assert computes(0.25)
    stopped = threading.Event()

    def work() -> None:
        for c in itertools.count(1):
            if stopped.is_set():
                return
            assert computes(float(c))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield
        finally:
            stopped.set()
        done.result()


@pytest.mark.exhaustive
def test_forks_while_another_thread_compiles(compiling: None) -> None:
    for i in range(12):
        time.sleep(0.003 * (i % 7))
        finished(forked(partial(computes, -i - 0.5)))


@pytest.mark.exhaustive
def test_processes_of_threads_while_another_one_compiles(compiling: None) -> None:
    context = multiprocessing.get_context("fork")

    codes: list[int | None] = []

    def one(i: int) -> None:
        process = context.Process(target=computes_or_ends, args=(-i - 0.5,))
        process.start()
        process.join(120)
        if process.is_alive():
            process.kill()
            process.join()
        codes.append(process.exitcode)

    # Not those of an executor: Python cannot end a process that one of them has forked without an error.
    parents = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for parent in parents:
        parent.start()
    for parent in parents:
        parent.join()
    assert codes == [0] * 6


def test_a_child_has_threads_of_its_own() -> None:
    a = np.random.default_rng(0).random((300, 300))
    expected = matmul(a, a, MIN_PLUS, threads=2)  # the pool exists
    finished(forked(lambda: bool((matmul(a, a, MIN_PLUS, threads=2) == expected).all())))


@pytest.mark.gpu
def test_a_child_of_a_process_that_has_used_a_gpu_computes_on_the_host() -> None:
    a = np.random.default_rng(0).random((700, 700), np.float32)
    expected = matmul(a, a, MIN_PLUS, device="cuda")
    assert (matmul(a, a, MIN_PLUS) == expected).all()

    def work() -> bool:
        assert (matmul(a, a, MIN_PLUS) == expected).all()
        with pytest.raises(SemiringError, match="forked from one that had used CUDA"):
            matmul(a, a, MIN_PLUS, device="cuda")
        return True

    finished(forked(work))


LOCKS: dict[str, Any] = {
    "the compiler's": compiler._lock,
    "LLVM's": ffi.lib._lock._lock,
    "the cache's": cache._turns[0],
    "the threads'": threads._lock,
    "the expressions'": expression._interning,
    "of first imports": forks.importing,
}


def test_every_lock_of_a_module_is_held() -> None:
    kinds = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event, threading.Semaphore)
    found: dict[str, Any] = {"LLVM's": ffi.lib._lock._lock}
    for module in pkgutil.walk_packages(semiring.__path__, "semiring."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # what an extra brings
                for name, value in vars(importlib.import_module(module.name)).items():
                    for i, each in enumerate(value if isinstance(value, list | tuple) else (value,)):
                        if isinstance(each, kinds):
                            found[f"{module.name}.{name}[{i}]"] = each
    held = [find() for find in forks._finders]
    assert [name for name, lock in found.items() if not any(lock is other for other in held)] == []
    assert len(found) > len(cache._turns)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOCKS)
def test_a_fork_waits_for_a_thread_that_has_a_lock(name: str) -> None:
    taken, leave = threading.Event(), threading.Event()
    was_left: list[bool] = []

    def work() -> None:
        with LOCKS[name]:
            taken.set()
            leave.wait(0.1)
            was_left.append(True)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        assert taken.wait(120)
        child = forked(lambda: bool(was_left) and computes(0.125))
        done.result()
    finished(child)
    with LOCKS[name]:  # the parent has given it back
        assert computes(0.125)


def test_a_fork_where_the_own_thread_has_locks() -> None:
    """As in the handler of a signal, which runs anywhere."""
    with compiler._lock, cache._turns[3], threads._lock:
        finished(forked(lambda: computes(0.375)))
    finished(forked(lambda: computes(0.375)))


@pytest.mark.exhaustive
def test_forks_beside_threads_that_take_locks_in_any_order() -> None:
    stopped = threading.Event()
    locks = [forks.lock() for _ in range(4)]

    def work(order: tuple[int, ...]) -> None:
        while not stopped.is_set():
            with locks[order[0]], locks[order[1]]:
                time.sleep(0)

    def fork(count: int) -> None:
        for _ in range(count):
            finished(forked(lambda: all(lock.acquire(blocking=False) for lock in locks)))

    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(work, order) for order in ((0, 1), (3, 2))]
        try:
            for done in [pool.submit(fork, 8), pool.submit(fork, 8)]:
                done.result(60)
        finally:
            stopped.set()
        for each in busy:
            each.result()


def test_llvmlite_without_such_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    for stand_in in (None, object()):
        monkeypatch.setitem(sys.modules, "llvmlite.binding.ffi", stand_in)
        assert hardware._lock_of_llvm() is None
        finished(forked(lambda: True))


def test_a_cached_property_holds_no_lock() -> None:
    """Python 3.11's own has one for all objects of a class."""

    class Slow:
        @forks.cached_property
        def value(self) -> int:
            begun.set()
            leave.wait(120)
            return 1

    def other() -> bool:
        leave.set()
        return second.value == first.value == 1

    begun, leave = threading.Event(), threading.Event()
    first, second = Slow(), Slow()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: first.value)
        assert begun.wait(120)
        child = forked(other)
        leave.set()
        assert done.result() == first.value == 1
    finished(child)
    assert isinstance(Slow.value, forks.cached_property)


FIRST = """
import os, signal, sys, threading, time, warnings
from importlib.abc import MetaPathFinder

warnings.simplefilter("ignore", DeprecationWarning)  # of forks
import numpy as np
import semiring as sr

reached = threading.Event()

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            reached.set()
            time.sleep(0.2)

def compute():
    assert sr.matmul(np.array([[2.0]]), np.array([[5.0]]), sr.MIN_PLUS).item() == 7

sys.meta_path.insert(0, Slow())
other = threading.Thread(target=compute)
other.start()
assert reached.wait(120)
child = os.fork()
signal.alarm(120)  # the end of whoever hangs
compute()
if child == 0:
    os._exit(0)
other.join()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("module", ["semiring.product", "semiring.kernels.cpu.engine", "llvmlite.binding", "semiring.kernels.cpu.product"])
def test_a_fork_while_another_thread_computes_its_first_product(module: str, tmp_path: Path) -> None:
    """It imports what is needed, and a child cannot go on with the import of another thread."""
    environment = os.environ | {"SEMIRING_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", FIRST, module], env=environment, check=True, timeout=300)


def test_a_child_leaves_a_locked_file_to_its_parent(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    file = checkpoint_folder.lock_file(tmp_path / "lock")
    assert file is not None
    ready, end = (os.pipe() for _ in range(2))

    def stay() -> bool:
        os.close(end[1])
        os.write(ready[1], b"!")
        return os.read(end[0], 1) == b""

    child = forked(stay)
    try:
        os.read(ready[0], 1)
        assert checkpoint_folder.lock_file(tmp_path / "lock") is None  # the parent has it still
        file.close()
        again = checkpoint_folder.lock_file(tmp_path / "lock")
        assert again is not None, "the child has it"
        again.close()
    finally:
        os.close(end[1])
        finished(child)
        for each in (*ready, end[0]):
            os.close(each)


@pytest.mark.exhaustive
def test_expressions_are_interned_in_children_too() -> None:
    stopped = threading.Event()

    def work() -> None:
        for i in itertools.count():
            if stopped.is_set():
                return
            node("add", const(i), const(0.5))
            gc.collect(0)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            for _ in range(20):
                finished(forked(lambda: node("add", const(1), const(2)) is node("add", const(1), const(2))))
        finally:
            stopped.set()
        done.result()
