"""Sparse graphs of which not everything is asked: hop counts, closeness, diameters, one path, who reaches whom, beside networkit and SciPy.

    python -m benchmarks.hops
    python -m benchmarks.hops --only "power grid" --tasks diameter "one path"
    pip install -e ".[benchmark]"

Whole calls on graphs as users have them: SciPy's sparse arrays here and in SciPy, networkit's own graphs there; for one path also a list of
edges, which like networkit's graph was made before. Times are the least of some rounds, of one path the mean over twenty, on all threads
(SciPy has one); what comes out is compared.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph

import semiring as sr
from benchmarks.measure import machine, print_table, version
from benchmarks.problems import Problem, graph

_PAIRS = 20

Works = Mapping[str, Callable[[], Any] | None]


class Given(NamedTuple):
    """A graph: with lengths, with hops, and networkit's two, where it is installed."""

    name: str
    lengths: Any
    hops: Any
    directed: bool
    networkit: Any

    def theirs(self, *, weighted: bool) -> Any:
        """networkit's graph."""
        coo = self.lengths.tocoo()
        there = slice(None) if self.directed else coo.row <= coo.col
        edges = coo.data[there], (coo.row[there], coo.col[there])
        return self.networkit.GraphFromCoo(edges, n=self.lengths.shape[0], weighted=weighted, directed=self.directed)


def draw(kind: str, n: int, degree: int) -> Given:
    """A graph of `benchmarks.problems`."""
    directed = kind not in ("power grid", "grid")
    given = graph(Problem("apsp", kind.removeprefix("large "), n, degree, "weighted", "float64", n, n, False, 1))
    lengths = given if directed else ((given + given.T) / 2).tocsr()
    lengths.sort_indices()
    ones = lengths.copy()
    ones.data[:] = 1
    try:
        networkit = importlib.import_module("networkit")
    except ImportError:
        networkit = None
    return Given(f"{kind}, {n:,}", lengths, ones, directed, networkit)


def hop_counts(given: Given) -> Works:
    """Rows of hop counts."""
    sources = np.random.default_rng(2).permutation(given.hops.shape[0])[:2000]
    theirs = None if given.networkit is None else given.theirs(weighted=False)

    def peer() -> None:
        """Its breadth-first search from each source; distances to lists of Python's numbers would take longer."""
        for source in sources.tolist():
            given.networkit.distance.BFS(theirs, source, False).run()

    return {
        "semiring": lambda: sr.apsp(given.hops, sources=sources),
        "networkit": None if theirs is None else peer,
        "SciPy": lambda: csgraph.dijkstra(given.hops, indices=sources, unweighted=True),
    }


def statistics(given: Given) -> Works:
    """Average, eccentricities, histogram."""
    theirs = None if given.networkit is None else given.theirs(weighted=False)

    def peer() -> None:
        """Its closeness, which is defined for graphs of several components too."""
        given.networkit.centrality.Closeness(theirs, True, given.networkit.centrality.ClosenessVariant.GENERALIZED).run()

    return {"semiring": lambda: sr.statistics(given.hops).connected, "networkit": None if theirs is None else peer}


def diameter(given: Given) -> Works:
    """The greatest distance, in hops."""
    if given.networkit is None or given.directed:  # which networkit refuses
        return {"semiring": lambda: sr.diameter(given.hops)}
    theirs, distance = given.theirs(weighted=False), given.networkit.distance

    def peer() -> Any:
        """By bounds as well."""
        found = distance.Diameter(theirs, algo=distance.DiameterAlgo.Exact)
        found.run()
        return float(found.getDiameter()[0])

    return {"semiring": lambda: sr.diameter(given.hops), "networkit": peer}


def weighted_diameter(given: Given) -> Works:
    """The same with lengths, beside all rows."""
    return {"semiring": lambda: sr.diameter(given.lengths), "semiring, statistics": lambda: sr.statistics(given.lengths).diameter}


def one_path(given: Given) -> Works:
    """The distance of pairs, one call each; networkit's graph was made before, as a list of edges was that is read once."""
    n, coo = given.lengths.shape[0], given.lengths.tocoo()
    listed = sr.edges(coo.row, coo.col, coo.data, nodes=range(n))
    pairs = np.random.default_rng(3).integers(0, n, (_PAIRS, 2)).tolist()
    theirs = None if given.networkit is None else given.theirs(weighted=True)

    def peer() -> Any:
        """Its search from both ends."""
        found = []
        for source, target in pairs:
            search = given.networkit.distance.BidirectionalDijkstra(theirs, source, target, True)
            search.run()
            found.append(search.getDistance())
        return [np.inf if d == np.finfo(float).max else d for d in found]

    return {
        "semiring": lambda: [float(sr.apsp(listed, sources=s, targets=t)) for s, t in pairs],
        "semiring, SciPy's array": lambda: [float(sr.apsp(given.lengths, sources=s, targets=t)) for s, t in pairs],
        "networkit": None if theirs is None else peer,
        "SciPy": lambda: [float(csgraph.dijkstra(given.lengths, indices=s)[t]) for s, t in pairs],
    }


def reachability(given: Given) -> Works:
    """How many vertices each one reaches."""
    edges = given.lengths.astype(bool)
    n = edges.shape[0]
    theirs = None if given.networkit is None else given.theirs(weighted=False)

    def peer() -> Any:
        """Its counts, which include the vertex itself."""
        found = given.networkit.reachability.ReachableNodes(theirs, True)
        found.run()
        return [found.numberOfReachableNodes(v) for v in range(n)]

    return {
        "semiring": lambda: sr.reachability(edges, reflexive=True).counts.tolist(),
        "semiring, the matrix": lambda: sr.transitive_closure(edges),
        "networkit": None if theirs is None else peer,
    }


TASKS = {
    "hop counts from 2,000 vertices": hop_counts,
    "statistics, closeness": statistics,
    "diameter": diameter,
    "diameter by lengths": weighted_diameter,
    "one path": one_path,
    "who reaches whom": reachability,
}
GRAPHS = {"power grid": (9241, 0), "grid": (4900, 0), "random": (5000, 6), "acyclic": (9241, 3), "large random": (100_000, 8)}

LARGE = ("one path",)
"""What of the large one is measured."""


def measure(task: str, given: Given, rounds: int) -> list[str]:
    """A row of the table."""
    works = {name: work for name, work in TASKS[task](given).items() if work is not None}
    found = {name: work() for name, work in works.items()}
    told = [answer for answer in found.values() if isinstance(answer, float | list)]
    for answer in told[1:]:
        np.testing.assert_allclose(answer, told[0])
    seconds = dict.fromkeys(works, np.inf)
    for _ in range(rounds):
        for name, work in works.items():
            begun = time.perf_counter()
            work()
            seconds[name] = min(seconds[name], (time.perf_counter() - begun) / (_PAIRS if task == "one path" else 1))
    own = seconds["semiring"]
    others = [f"{name} {1e3 * s:.3g} ms" for name, s in seconds.items() if name != "semiring"]
    ratio = f"{own / seconds['networkit']:.2f}" if "networkit" in seconds else ""
    return [given.name, task, f"{1e3 * own:.3g} ms", ratio, ", ".join(others)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{machine()}; {', '.join(map(version, ('numpy', 'scipy')))}")
    rows = []
    for name in given.only:
        drawn = draw(name, *GRAPHS[name])
        rows += [measure(task, drawn, given.rounds) for task in given.tasks if "large" not in name or task in LARGE]
    print_table(["graph", "what", "time", "networkit's", "others"], rows, keys=2)


if __name__ == "__main__":
    main()
