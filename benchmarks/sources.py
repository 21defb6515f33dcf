"""Distances from some vertices of a sparse graph: `semiring.apsp(graph, sources=…)` beside SciPy on the same graphs.

    python -m benchmarks.sources
    python -m benchmarks.sources --only "random 2,000" grid --sources 1 --paths
    python -m benchmarks.sources --near
    python -m benchmarks.sources --only "grid 500" --best 10

SciPy's Dijkstra; with ``--negative`` its Bellman–Ford, which does n rounds over all edges, so that only the smaller graphs are compared.
Every way is timed from the sparse array to the distances, once on one thread and once on all; SciPy has one. Widest paths and reachability
follow, which SciPy has no search for, or one from a single vertex.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import semiring as sr
from benchmarks.measure import alternate, machine, print_table, version

_MOST = 3_000_000
"""Distances that one call may find."""

_SLOW = 100_000_000
"""Vertices times edges that SciPy's Bellman–Ford may take from one source."""


def random(n: int, degree: int) -> Any:
    """A graph with edges between random vertices."""
    rng = np.random.default_rng(n)
    tails, heads = rng.integers(0, n, (2, n * degree))
    return sp.coo_array((rng.random(n * degree) + 0.01, (tails, heads)), shape=(n, n)).tocsr()


def grid(side: int, width: int = 0) -> Any:
    """A grid, by default a square one, with weights of their own in both directions."""
    n = side * (width or side)
    number = np.arange(n).reshape(side, -1)
    first = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    second = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    weights = np.random.default_rng(side).random(2 * len(first)) + 0.01
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return sp.coo_array((weights, ends), shape=(n, n)).tocsr()


GRAPHS: Mapping[str, Callable[[], Any]] = {
    "random 2,000": partial(random, 2_000, 8),
    "random 100,000": partial(random, 100_000, 8),
    "grid 300 × 300": partial(grid, 300),
    "grid 1000 × 1000": partial(grid, 1000),
    "grid 500 × 400": partial(grid, 500, 400),
}


def with_potentials(graph: Any) -> Any:
    """Some edges made negative, but no cycle."""
    edges, height = graph.tocoo(), np.random.default_rng(1).random(graph.shape[0])
    return sp.csr_array((edges.data + height[edges.col] - height[edges.row], (edges.row, edges.col)), shape=graph.shape)


def compare(graphs: Mapping[str, Any], counts: Sequence[int], *, paths: bool, negative: bool) -> None:
    """Distances (and paths) from some sources, checked."""
    search: Callable[..., Any] = csgraph.bellman_ford if negative else csgraph.dijkstra
    rows, others = [], 0.0
    for name, graph in graphs.items():
        n = graph.shape[0]
        if negative and n * graph.nnz > _SLOW:
            continue
        for count in (c for c in counts if c * n <= _MOST):
            sources = np.arange(count) * (n // count)
            one: Callable[[], Any] = partial(sr.apsp, graph, sources=sources, paths=paths, threads=1)
            every: Callable[[], Any] = partial(sr.apsp, graph, sources=sources, paths=paths)
            theirs: Callable[[], Any] = partial(search, graph, indices=sources, return_predecessors=paths)
            found, expected = (f() for f in (every, theirs))
            np.testing.assert_allclose(found.distances if paths else found, expected[0] if paths else expected, rtol=1e-9, atol=1e-9)
            timings = alternate({"one": one, "all": every, "SciPy": theirs}, 5 if count * n < 1_000_000 else 3, patience=1, warm=True)
            others = max(others, timings.others)
            ratio = f"{timings.ratio('SciPy', 'one'):.2f} ×", f"{timings.ratio('SciPy', 'all'):.2f} ×"
            rows.append((name, str(count), *(f"{1e3 * timings.median(w):,.1f}" for w in ("SciPy", "one", "all")), *ratio))
            print(*rows[-1], flush=True)
    header = "graph", "sources", "SciPy, ms", "one thread, ms", "all threads, ms", "SciPy / one", "SciPy / all"
    print_table(header, rows, others, keys=2)


def other_semirings(graphs: Mapping[str, Any]) -> None:
    """Widest paths and reachability from ten sources, beside the distances."""
    rows, others = [], 0.0
    for name, graph in graphs.items():
        sources = np.arange(10) * (graph.shape[0] // 10)
        works = {s.name: partial(sr.closure, graph, s, sources=sources, threads=1) for s in (sr.MIN_PLUS, sr.MAX_MIN)}
        works["boolean"] = partial(sr.transitive_closure, graph, sources=sources, reflexive=True, threads=1)
        timings = alternate(works, 3, patience=1)
        others = max(others, timings.others)
        rows.append((name, *(f"{1e3 * timings.median(w):,.1f}" for w in works)))
    print_table(("10 sources, one thread, ms", "min-plus", "max-min", "boolean"), rows, others)


def near(graphs: Mapping[str, Any]) -> None:
    """Distances within a limit from some vertices and from all, and from the nearest of 400 vertices, beside SciPy's.

    About 100 vertices are within the limit.
    """
    rows, others = [], 0.0
    for name, graph in graphs.items():
        n = graph.shape[0]
        some, centers = np.arange(0, n, -(-n // 1000)), np.arange(0, n, -(-n // 400))
        limit = float(np.median(np.partition(csgraph.dijkstra(graph, indices=some[:25]), 100)[:, 100]))
        found, theirs = sr.apsp(graph, limit=limit, sources=some[:5]), csgraph.dijkstra(graph, indices=some[:5], limit=limit)
        assert found.nnz == np.isfinite(theirs).sum()
        whole = partial(csgraph.dijkstra, graph, indices=some, limit=limit)  # a matrix
        nearest = partial(csgraph.dijkstra, graph, indices=centers, min_only=True, return_predecessors=True)
        works: dict[str, Callable[[], Any]] = {
            "ours": partial(sr.apsp, graph, limit=limit, sources=some),
            "all": partial(sr.apsp, graph, limit=limit),
            "nearest": partial(sr.nearest, graph, centers),
            "SciPy nearest": nearest,
        }
        if len(some) * n <= 100 * _MOST:
            works["SciPy"] = whole
        timings = alternate(works, 3)
        others = max(others, timings.others)
        times = {w: f"{1e3 * timings.median(w):,.1f}" for w in works}
        rows.append((name, times.get("SciPy", "-"), times["ours"], times["all"], times["SciPy nearest"], times["nearest"]))
    header = "about 100 within the limit, ms", "SciPy, 1,000 rows", "1,000 rows", "all rows", "SciPy, nearest of 400", "nearest of 400"
    print_table(header, rows, others)


def best(graphs: Mapping[str, Any], k: int) -> None:
    """The k nearest vertices of 2,000 sources, beside whole rows from which they are selected.

    Rows are those of the first sources only; their times are extrapolated.
    """
    rows, others = [], 0.0
    for name, graph in graphs.items():
        n = graph.shape[0]
        some = np.arange(0, n, max(1, n // 2000))[:2000]
        few = some[: max(1, _MOST // n)]

        def selected(search: Callable[..., Any], graph: Any = graph, **named: Any) -> Any:
            distances = search(graph, **named)
            nearest = np.argpartition(distances, k - 1)[:, :k]
            values = np.take_along_axis(distances, nearest, 1)
            order = np.argsort(values)
            return np.take_along_axis(values, order, 1), np.take_along_axis(nearest, order, 1)

        works: dict[str, Callable[[], Any]] = {
            "one": partial(sr.apsp, graph, sources=some, k=k, threads=1),
            "all": partial(sr.apsp, graph, sources=some, k=k),
            "rows": partial(selected, sr.apsp, sources=few),
            "SciPy": partial(selected, csgraph.dijkstra, indices=few),
        }
        found, expected = works["one"](), works["SciPy"]()
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[: len(few)], other)
        timings = alternate(works, 3)
        others = max(others, timings.others)
        times = {w: timings.median(w) * (len(some) / len(few) if w in ("rows", "SciPy") else 1) for w in works}
        rows.append((name, str(len(some)), *(f"{times[w]:,.3g}" for w in ("SciPy", "rows", "one", "all"))))
    print_table((f"{k} nearest, s", "sources", "SciPy, rows", "our rows", "k=, one thread", "k=, all threads"), rows, others, keys=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="distances from some vertices beside SciPy's")
    parser.add_argument("--only", nargs="+", default=[""], help="graphs whose names begin so")
    parser.add_argument("--sources", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--paths", action="store_true", help="with predecessors")
    parser.add_argument("--negative", action="store_true", help="with negative edges: SciPy's Bellman–Ford")
    parser.add_argument("--near", action="store_true", help="within a limit, and from the nearest of many vertices")
    parser.add_argument("--best", type=int, metavar="K", help="the K nearest vertices of 2,000 sources")
    options = parser.parse_args()
    print(f"{machine()}, SciPy {version('scipy')}")
    graphs = {name: make() for name, make in GRAPHS.items() if name.startswith(tuple(options.only))}
    if options.best:
        best(graphs, options.best)
        return
    if options.near:
        near(graphs)
        return
    if options.negative:
        graphs = {name: with_potentials(graph) for name, graph in graphs.items()}
    compare(graphs, options.sources, paths=options.paths, negative=options.negative)
    if not options.negative and not options.paths:
        other_semirings(graphs)


if __name__ == "__main__":
    main()
