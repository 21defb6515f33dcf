"""Sparse graphs by elimination: `semiring.factor`, and rows out of it, beside searches of other libraries and RoutingKit's hierarchies.

    python -m benchmarks.sparse
    python -m benchmarks.sparse --only roads --vertices 20000 --statistics
    python -m benchmarks.sparse --device cuda
    pip install -e ".[benchmark]"

Roads are planar: the spanning tree of random lengths of a Delaunay triangulation, and an eighth of its other edges. Rows of all pairs are
those of some sources that follow each other in the order of elimination, as `Factor.blocks` has them; the time is said for one of them, as
it is of the statistics of all distances. RoutingKit's customizable contraction hierarchy eliminates vertices too; it has whole weights, the
places of vertices, and one thread for a table. Times are the best of three rounds on all threads (SciPy has one), in memory that was
written before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.spatial import Delaunay

import semiring as sr
from benchmarks.measure import best, hardware, installed, machine, print_table, version

_SOURCES = 1024
"""Rows out of a factor that are timed together."""


def _weighted(ends: Any, n: int, *, directed: bool, seed: int = 1) -> Any:
    """The graph of some edges with random weights, both ways, different ones if it is directed."""
    rng = np.random.default_rng(seed)
    tails, heads = ends.T
    weights = rng.random(len(ends)).astype(np.float32) + np.float32(0.1)
    back = rng.random(len(ends)).astype(np.float32) + np.float32(0.1) if directed else weights
    both = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    return sp.coo_array((np.concatenate([weights, back]), both), shape=(n, n)).tocsr()


def _points(n: int) -> Any:
    """Random points."""
    return np.random.default_rng(n).random((n, 2))


def _triangles(n: int) -> Any:
    """The edges of a Delaunay triangulation of random points."""
    corners = Delaunay(_points(n)).simplices
    ends = np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    return np.unique(np.sort(ends, axis=1), axis=0)


def triangulation(n: int, *, directed: bool) -> Any:
    """A Delaunay triangulation."""
    return _weighted(_triangles(n), n, directed=directed)


def roads(n: int, *, directed: bool) -> Any:
    """A planar graph of 1.25 edges a vertex."""
    ends, rng = _triangles(n), np.random.default_rng(2)
    tree = csgraph.minimum_spanning_tree(sp.coo_array((rng.random(len(ends)) + 0.01, ends.T), shape=(n, n)).tocsr()).tocoo()
    some = np.sort(np.column_stack([tree.row, tree.col]), axis=1)
    return _weighted(np.unique(np.vstack([some, ends[rng.random(len(ends)) < 0.13]]), axis=0), n, directed=directed)


def cube(n: int, *, directed: bool) -> Any:
    """A grid in space."""
    side = round(n ** (1 / 3))
    number = np.arange(side**3).reshape(side, side, side)
    pairs = [(number[:-1], number[1:]), (number[:, :-1], number[:, 1:]), (number[..., :-1], number[..., 1:])]
    ends = np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    return _weighted(ends, side**3, directed=directed)


GRAPHS: Mapping[str, Callable[..., Any]] = {"roads": roads, "triangulation": triangulation, "cube": cube}


def _networkit(graph: Any, sources: Any) -> Callable[[], Any] | None:
    """Its Dijkstra from each source, on all threads."""
    if (networkit := installed("networkit")) is None:
        return None
    coo = graph.tocoo()
    theirs = networkit.GraphFromCoo((coo.data.astype(float), (coo.row, coo.col)), n=graph.shape[0], weighted=True, directed=True)
    every = list(range(graph.shape[0]))
    return lambda: networkit.distance.SPSP(theirs, sources.tolist(), every).run()


def _igraph(graph: Any, sources: Any) -> Callable[[], Any] | None:
    """Its Dijkstra from each source."""
    if (igraph := installed("igraph")) is None:
        return None
    coo = graph.tocoo()
    theirs = igraph.Graph(n=graph.shape[0], edges=np.column_stack([coo.row, coo.col]), directed=True)
    return partial(theirs.distances, source=sources.tolist(), weights=coo.data.tolist(), algorithm="dijkstra")


def _routingkit(graph: Any, few: Any, many: tuple[Any, Any]) -> dict[str, tuple[Callable[[], Any], int]]:
    """Tables of its hierarchy over points in the plane, whose order it finds by their places: of all vertices, and of some."""
    if (routingkit := installed("pyroutingkit")) is None:
        return {}
    n, (tails, heads) = graph.shape[0], (v.astype(np.uint32) for v in graph.nonzero())
    x, y = np.ascontiguousarray(_points(n).T, np.float32)  # other strides it does not see
    weights, hierarchy = (graph.data * 1e6).astype(np.uint32), routingkit.CCH()
    begun = time.perf_counter()
    hierarchy.build_topology(tails, heads, x, y, node_count=n)
    built = time.perf_counter() - begun
    print(f"RoutingKit: order and topology {built:.2f} s, all weights anew {best(lambda: hierarchy.customize_weights(weights)):.3f} s")
    table, every = hierarchy.distances_many_to_many, np.arange(n, dtype=np.uint32)
    few, *ends = (v.astype(np.uint32) for v in (few, *many))
    np.testing.assert_allclose(table(few[:3], every) / 1e6, csgraph.dijkstra(graph, indices=few[:3]), rtol=1e-4)
    return {"RoutingKit's rows": (lambda: table(few, every), len(few)), "RoutingKit's entries": (lambda: table(*ends), len(ends[0]))}


def measure(name: str, graph: Any, *, statistics: bool) -> list[list[str]]:
    """A row of the table for each way, checked against SciPy."""
    n = graph.shape[0]
    begun = time.perf_counter()
    f = sr.factor(graph, dtype="float32")
    made = time.perf_counter() - begun
    again = best(lambda: f.update(graph.data))
    near, far = np.array(f.order[: min(n, _SOURCES)]), np.random.default_rng(3).permutation(n)[: min(n, _SOURCES)]
    few = far[:16]
    expected = csgraph.dijkstra(graph, indices=few[:3])
    np.testing.assert_allclose(f.rows(few[:3]), expected, rtol=1e-4)
    entry = graph.nonzero()[0][:1], graph.nonzero()[1][:1], graph.data[:1]
    print(f"{name}: {f}; factor {made:.2f} s, all weights anew {again:.3f} s, one edge {best(lambda: f.update(entry)):.4f} s")
    ways: dict[str, tuple[Callable[[], Any] | None, int]] = {
        "rows in the order of elimination": (lambda: f.rows(near), len(near)),
        "rows of random sources": (lambda: f.rows(far), len(far)),
        "rows of random sources and their trees": (lambda: f.paths(far), len(far)),
        "1,000 × 1,000 entries": (lambda: f[far[:1000], far[-1000:]], min(n, 1000)),
        "searches of this library": (lambda: sr.apsp(graph, sources=few, dtype="float32"), len(few)),
        "SciPy's Dijkstra": (lambda: csgraph.dijkstra(graph, indices=few), len(few)),
        "the same with its trees": (lambda: csgraph.dijkstra(graph, indices=few, return_predecessors=True), len(few)),
        "networkit's": (_networkit(graph, few), len(few)),
        "igraph's": (_igraph(graph, few), len(few)),
    }
    if name != "cube":
        ways |= _routingkit(graph, few, (far[:1000], far[-1000:]))
    seconds = {way: best(work) / count for way, (work, count) in ways.items() if work is not None}
    if statistics:
        for way, bins in (("statistics", 64), ("statistics without a histogram", None)):
            seconds[way] = best(partial(f.statistics, bins=bins), rounds=1) / n
    theirs = seconds["SciPy's Dijkstra"]
    return [[name, way, f"{1e3 * s:.3f} ms", f"{theirs / s:.1f} ×"] for way, s in seconds.items()]


def measure_on_gpu(name: str, graph: Any) -> list[list[str]]:
    """The same on a GPU: all rows, which are left there, and other weights."""
    import cupy

    def waited(work: Callable[[], Any]) -> None:
        work()
        cupy.cuda.get_current_stream().synchronize()

    begun = time.perf_counter()
    f = sr.factor(graph, dtype="float32", device="cuda")
    print(f"{name}: {f}; factor {time.perf_counter() - begun:.2f} s")
    sources = np.random.default_rng(3).permutation(graph.shape[0])[:2048]
    np.testing.assert_allclose(f.rows(sources)[:3].get(), csgraph.dijkstra(graph, indices=sources[:3]), rtol=1e-4)
    some = np.random.default_rng(4).permutation(graph.nnz)[:100]
    tails, heads = graph.nonzero()
    ways: dict[str, Callable[[], Any]] = {
        "all rows": f.closure,
        "2,048 rows": lambda: f.rows(sources),
        "all weights anew": lambda: f.update(graph.data),
        "100 weights anew": lambda: f.update((tails[some], heads[some], graph.data[some])),
        "one weight anew": lambda: f.update((tails[:1], heads[:1], graph.data[:1])),
    }
    return [[name, way, f"{best(partial(waited, work)):.3f} s"] for way, work in ways.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--directed", action="store_true")
    parser.add_argument("--statistics", action="store_true", help="of all distances too")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    given = parser.parse_args()
    graphs = {name: GRAPHS[name](given.vertices, directed=given.directed) for name in given.only}
    place, kind = machine() if given.device == "cpu" else hardware("cuda"), "directed" if given.directed else "symmetric"
    print(f"{place}; {', '.join(map(version, ('numpy', 'scipy')))}; float32, {kind}")
    if given.device == "cpu":
        rows = [row for name, graph in graphs.items() for row in measure(name, graph, statistics=given.statistics)]
        print_table(["graph", "way", "a source", "SciPy's time"], rows, keys=2)
    else:
        rows = [row for name, graph in graphs.items() for row in measure_on_gpu(name, graph)]
        print_table(["graph", "way", "whole call"], rows, keys=2)


if __name__ == "__main__":
    main()
