"""What threads share outside of compiled code, with turns at every step of Python."""

from __future__ import annotations

import operator
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import semiring as sr
from semiring.algebra.definition import Semiring
from semiring.common import forks
from semiring.results import store


@pytest.fixture(autouse=True)
def many_turns() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(work: Callable[[int], Any], threads: int = 8) -> list[Any]:
    """The results of `work` with the number of each thread; an error of a thread is raised."""
    found: list[Any] = [None] * threads
    errors: list[BaseException] = []
    begin = threading.Barrier(threads)

    def one(number: int) -> None:
        try:
            begin.wait(60)
            found[number] = work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert not any(thread.is_alive() for thread in running)
    for error in errors:
        raise error
    return found


class Slow(list[Any]):
    """A list with a turn of another thread after each append."""

    def append(self, x: Any) -> None:
        super().append(x)
        time.sleep(1e-3)


def test_numbers_of_semirings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Semiring, "numbered", Slow())
    own = [[Semiring(f"{thread} {i}", min, operator.add, np.inf, 0) for i in range(5)] for thread in range(8)]
    for semirings, found in zip(own, at_once(lambda thread: [semiring.number() for semiring in own[thread]]), strict=True):
        assert [Semiring.numbered[number] for number in found] == semirings


def test_best_paths_from_more_sources_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_SOURCES", 1)
    monkeypatch.setattr(store, "AllPaths", lambda semiring, edges, source, **_: source)  # at once, so that most of the time is the cache's
    paths = sr.apsp(np.ones((12, 12)), paths=True)._one
    orders = [np.random.default_rng(thread).integers(0, 12, 10_000).tolist() for thread in range(8)]
    assert at_once(lambda thread: [paths._best_from(u) for u in orders[thread]]) == orders


def test_histograms_leave_no_locks_behind() -> None:
    """Each fork takes all locks of the library, which live as long as the process."""
    factor = sr.factor(sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3)))
    factor.statistics()
    before = len(forks._finders)
    factor.statistics()
    assert len(forks._finders) == before
