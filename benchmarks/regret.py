"""How much longer calls take than the fastest strategy would have: the regret of what the library chooses, on problems drawn at random.

    python -m benchmarks.regret
    python -m benchmarks.regret --quick
    python -m benchmarks.regret --problems 200 --seed 7

Half of the problems come from a fixed seed, and half from `--seed`, which otherwise is a fresh one. For each problem every strategy that
applies is timed, then the public call as it chooses. Its ratio is its time beside that of the best strategy; the second ratio is that of
the strategy which the plan predicts to be fastest.

What would take long is estimated, and marked so: ~ is a search from some of the sources, scaled to all of them; ≈ a closure (or SciPy's
Floyd–Warshall) of a smaller graph of the same kind, scaled by n³. The public call runs in a process of its own, which is ended where it
takes five times as long as the best strategy; > marks that.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph as scipys

import semiring as sr
from benchmarks.measure import machine, print_table, version
from benchmarks.problems import Problem, draw, graph
from semiring import csgraph
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.rows_of_matrix import rows_of_matrix
from semiring.algorithms.search import searches_for
from semiring.graphs import edges_of, read_graph
from semiring.kernels.select import engine_for
from semiring.planning import Plan

_FIXED = 2026
"""The seed of half of the problems."""

_STOP = 5.0
"""How many times as long as the best strategy the public call may take."""

_REPEATS, _SHORT, _LONG = 3, 0.05, 1.0
"""Runs of which the best counts: more within the shorter time, and no more after the longer one."""

_FIRST = 2.0
"""Seconds that a call in a process of its own may take longer, as it loads or compiles its code."""


class Budget(NamedTuple):
    """What the measurement of one problem may take.

    Attributes
    ----------
    searches : float
        Seconds of a run from some of the sources, from which on that is scaled to all.
    closure : int
        Vertices of a closure that is scaled, where the whole one would take long.
    most : int
        Vertices of the largest problem.
    """

    searches: float
    closure: int
    most: int


class Time(NamedTuple):
    """Seconds, and the mark of how they were found: "" measured, "~" from some of the sources, "≈" from a smaller graph, ">" stopped."""

    seconds: float
    mark: str = ""

    def __str__(self) -> str:
        s = self.seconds
        return self.mark + (f"{s:,.1f} s" if s >= 1 else f"{1e3 * s:.3g} ms" if s >= 1e-3 else f"{1e6 * s:.0f} µs")


class Strategy(NamedTuple):
    """A way to solve a problem that can be forced.

    Attributes
    ----------
    applies : callable
        Whether it can solve a problem.
    work : callable
        Of a problem, its graph and the vertices that paths begin at: what is to be timed.
    by_sources : bool
        Whether its time is proportional to the sources, besides a constant; otherwise it is to n³.
    name : str
        That of a plan's strategy; "" for what is never planned.
    """

    applies: Callable[[Problem], bool]
    work: Callable[[Problem, Any, Any], Callable[[], object]]
    by_sources: bool
    name: str = ""


def _closure(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    sources = {} if p.sources == p.n else {"sources": which}
    work = partial(sr.apsp, g, method="recursive", dtype=p.dtype, paths=p.paths, **sources)
    return (lambda: work().predecessors()) if p.paths and p.face == "csgraph" else work


def _searches(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    def work() -> object:
        listed = edges_of(g, sr.MIN_PLUS, nonedge=None, dtype=p.dtype, presence=False)
        assert listed is not None
        tree = np.full((len(which), p.n), -1, dtype=np.int32) if p.paths else None
        return rows_of_edges(sr.MIN_PLUS, listed[0], which, tree=tree, searches=searches_for(sr.MIN_PLUS, listed[0].dtypes, "cpu", None))

    return work


def _elimination(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    return lambda: sr.factor(g, dtype=p.dtype).rows(which)


def _products(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    def work() -> object:
        read_graph(g, sr.MIN_PLUS, dtype=p.dtype)
        engine = engine_for(sr.MIN_PLUS, (g.dtype,), "cpu", None, witness=True)
        engine.signed = p.weights == "negative"
        return rows_of_matrix(engine, (g,), which, tree=np.full((len(which), p.n), -1, dtype=np.int32) if p.paths else None)

    return work


def _scipys_searches(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    search = scipys.johnson if p.weights == "negative" else scipys.dijkstra
    return partial(search, g, indices=which, return_predecessors=p.paths)


def _floyd_warshall(p: Problem, g: Any, which: Any) -> Callable[[], object]:
    return partial(scipys.floyd_warshall, g, return_predecessors=p.paths)


STRATEGIES: Mapping[str, Strategy] = {
    "searches": Strategy(lambda p: p.kind != "complete", _searches, True, "search"),
    "elimination": Strategy(lambda p: p.kind != "complete" and not p.paths, _elimination, True, "elimination"),
    "SciPy's searches": Strategy(lambda p: p.face == "csgraph", _scipys_searches, True, "SciPy"),
    "products": Strategy(lambda p: p.kind == "complete" and p.sources < p.n, _products, True, "rows by products"),
    "closure": Strategy(lambda p: True, _closure, False, "whole"),
    "Floyd–Warshall": Strategy(lambda p: p.face == "csgraph" and p.kind == "complete" and p.sources == p.n, _floyd_warshall, False),
}
"""The strategies by name, those first that are cheap to estimate."""


def public(p: Problem, g: Any) -> Callable[[], object]:
    """The call as a user makes it."""
    if p.face == "csgraph":
        indices = None if p.sources == p.n else p.which
        return partial(csgraph.shortest_path, g, indices=indices, return_predecessors=p.paths, dtype=p.dtype)
    ends: dict[str, Any] = {} if p.sources == p.n else {"sources": p.which}
    if p.targets == 1:
        ends = {"sources": int(p.which[0]), "targets": p.n - 1}
    return partial(sr.apsp, g, dtype=p.dtype, paths=p.paths, **ends)


def planned(p: Problem, g: Any) -> Plan:
    """The plan of the call."""
    if p.face == "csgraph":
        indices = None if p.sources == p.n else p.which
        return csgraph.explain(g, indices=indices, return_predecessors=p.paths, dtype=p.dtype)
    ends: dict[str, Any] = {} if p.sources == p.n else {"sources": p.which}
    if p.targets == 1:
        ends = {"sources": int(p.which[0]), "targets": p.n - 1}
    return sr.explain(g, dtype=p.dtype, paths=p.paths, **ends)


def measured(strategy: Strategy, p: Problem, g: Any, budget: Budget, best: float) -> Time:
    """The time of a strategy, estimated where it is long, also beside `best`, that of those before it."""
    if strategy.by_sources:
        return _by_sources(lambda which: strategy.work(p, g, which), p, budget.searches)
    if p.n > budget.closure:
        smaller = replace(p, n=budget.closure, sources=budget.closure, degree=min(p.degree, budget.closure - 1))
        scaled = _best(strategy.work(smaller, graph(smaller), None)) * (p.n / smaller.n) ** 3
        if scaled > min(_STOP * best, 20 * budget.searches):
            return Time(scaled, "≈")
    return Time(_best(strategy.work(p, g, p.which)))


def _by_sources(work: Callable[[Any], Callable[[], object]], p: Problem, enough: float) -> Time:
    """Seconds from all sources; from more and more of them, until that takes long, and as much for each of the others."""
    before, count = (0, 0.0), min(8, p.sources)
    while True:
        seconds = _best(work(p.which[np.linspace(0, p.sources - 1, count).astype(np.intp)]))
        if count == p.sources:
            return Time(seconds)
        if seconds > enough:
            break
        before, count = (count, seconds), min(4 * count, p.sources)
    each = (seconds - before[1]) / (count - before[0]) if before[0] else seconds / count
    return Time(seconds + each * (p.sources - count), "~")


def _best(work: Callable[[], object]) -> float:
    """The best of a few runs, of many where they are short, and of one where that is long."""
    least, begin, runs = math.inf, time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < _SHORT or (runs < _REPEATS and spent < _LONG):
        start = time.perf_counter()
        work()
        least, runs = min(least, time.perf_counter() - start), runs + 1
    return least


def called(p: Problem, g: Any, limit: float, *, long: bool) -> Time:
    """The time of the public call; if it may be `long`, in a process that is ended after so many seconds."""
    if not long:
        return Time(_best(public(p, g)))
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(there, p))
    process.start()
    here.recv()  # the graph is there
    found = Time(here.recv()) if here.poll(limit + _FIRST) else Time(limit, ">")
    process.kill()
    process.join()
    return found


def _call(pipe: Connection, p: Problem) -> None:
    work = public(p, graph(p))
    pipe.send(None)
    start = time.perf_counter()
    work()
    pipe.send(time.perf_counter() - start)


class Outcome(NamedTuple):
    """What was found about a problem: the time of each strategy and of the call, its choice, and what the costs predict."""

    problem: Problem
    times: Mapping[str, Time]
    call: Time
    choice: str
    predicted: Mapping[str, float]

    @property
    def best(self) -> str:
        """The fastest strategy."""
        return min(self.times, key=lambda name: self.times[name].seconds)

    @property
    def cheapest(self) -> str:
        """The strategy that is predicted to be fastest."""
        return min(self.predicted.keys() & self.times.keys(), key=lambda name: self.predicted[name])

    @property
    def regret(self) -> float:
        """The time of the call beside that of the best strategy."""
        return self.call.seconds / self.times[self.best].seconds

    @property
    def cheapest_regret(self) -> float:
        """The time of what is predicted to be fastest, beside that of the best strategy."""
        return self.times[self.cheapest].seconds / self.times[self.best].seconds

    def row(self) -> tuple[str, ...]:
        """Of the table of worst cases."""
        best = f"{self.best} {self.times[self.best]}"
        return str(self.problem), self.choice, str(self.call), best, f"{self.regret:.2f}", self.cheapest, f"{self.cheapest_regret:.2f}"


def examine(p: Problem, budget: Budget) -> Outcome:
    """Time what solves a problem."""
    g = graph(p)
    times: dict[str, Time] = {}
    for name, strategy in STRATEGIES.items():
        if strategy.applies(p):
            times[name] = measured(strategy, p, g, budget, min((t.seconds for t in times.values()), default=math.inf))
    plan = planned(p, g)
    costs = dict(plan.considered) or {plan.strategy: plan.seconds or 0.0}
    predicted = {name: costs[s.name] for name, s in STRATEGIES.items() if s.name in costs}
    planned_name = plan.strategy.removesuffix(" from both ends")  # of one pair; the strategies search its row
    choice = next(name for name, s in STRATEGIES.items() if s.name == planned_name)
    limit = _STOP * min(t.seconds for t in times.values())
    # The searches of a dense graph are not among the strategies.
    expected = times[choice].seconds if choice in times else costs[plan.strategy]
    call = called(p, g, limit, long=expected > max(limit, _LONG))
    return Outcome(p, times, call, choice, predicted)


def report(outcomes: Sequence[Outcome], worst: int) -> None:
    """Shares, worst cases, and how far predictions were from what was measured."""
    header = ("problem", "choice", "call", "best", "ratio", "by costs", "ratio")
    print_table(header, [o.row() for o in sorted(outcomes, key=lambda o: -o.regret)[:worst]])
    for name, ratios in (("the call", [o.regret for o in outcomes]), ("by costs", [o.cheapest_regret for o in outcomes])):
        within = ", ".join(f"{sum(r <= bound for r in ratios) / len(ratios):.0%} within {bound} ×" for bound in (1.3, 2))
        print(f"{name}: {within}, worst {max(ratios):.1f} × ({len(ratios)} problems)")
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for o in outcomes:
        for name in o.times.keys() & o.predicted.keys():
            for group in ("all", o.problem.kind):
                groups[name, group].append(o.predicted[name] / o.times[name].seconds)
    rows = [(f"{name}, {kind}", str(len(ratios)), *_percentiles(ratios)) for (name, kind), ratios in sorted(groups.items())]
    print_table(("predicted / measured", "problems", "10 %", "50 %", "90 %"), rows)


def _percentiles(ratios: Sequence[float]) -> list[str]:
    return [f"{x:.2f}" for x in np.percentile(ratios, (10, 50, 90))]


def main() -> None:
    parser = argparse.ArgumentParser(description="how much longer calls take than the fastest strategy")
    parser.add_argument("--problems", type=int, default=96)
    parser.add_argument("--seed", type=int, help="of half of the problems; by default another one each time")
    parser.add_argument("--worst", type=int, default=15, help="rows of the table of worst cases")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, in three minutes")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    budget = Budget(0.1, 1200, 5000) if options.quick else Budget(0.5, 2500, 20_000)
    count = (min(options.problems, 64) if options.quick else options.problems) // 2
    print(f"{machine()}, SciPy {version('scipy')}; seeds {_FIXED} and {seed}")
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["benchmarks.problems", "semiring.csgraph", "semiring.execution.whole"]
    )
    outcomes = []
    for p in (*draw(count, _FIXED, most=budget.most), *draw(count, seed, most=budget.most)):
        o = examine(p, budget)
        outcomes.append(o)
        times = ", ".join(f"{name} {t}" for name, t in o.times.items())
        print(f"{p}: {o.choice} {o.call}; {times}; ratio {o.regret:.2f}, by costs {o.cheapest} {o.cheapest_regret:.2f}", flush=True)
    report(outcomes, options.worst)


if __name__ == "__main__":
    main()
