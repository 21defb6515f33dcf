"""NetworkX's functions beside the same functions of the backend, on random graphs of several sizes and degrees.

    python -m benchmarks.networkx_backend
    python -m benchmarks.networkx_backend --sizes 500 --degrees 4 32 --only diameter johnson

The seconds are those of a user's call, conversion and results included; generators are drawn to their end, or as far as a row says.
`should_run` decides by the model in `semiring/networkx_backend/costs.py`; the last columns say what it predicted.
"""

from __future__ import annotations

import argparse
import importlib
import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from benchmarks.measure import alternate, machine, print_table, version
from semiring.networkx_backend import interface
from semiring.networkx_backend.costs import predicted

nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends

_PATIENCE = 20.0
"""Seconds that NetworkX may take, as predicted; what takes longer is not run."""

FUNCTIONS: dict[str, dict[str, Any]] = {
    "all_pairs_shortest_path_length": {},
    "all_pairs_shortest_path": {},
    "all_pairs_dijkstra_path_length": {},
    "all_pairs_dijkstra_path": {},
    "all_pairs_shortest_path_length, near": {"cutoff": 2},
    "all_pairs_dijkstra_path, near": {"cutoff": 30},
    "all_pairs_shortest_path, three rows": {"rows": 3},
    "all_pairs_dijkstra_path_length, twenty rows": {"rows": 20},
    "all_pairs_bellman_ford_path_length": {},
    "johnson": {},
    "floyd_warshall": {},
    "floyd_warshall_numpy": {},
    "diameter": {},
    "diameter, weighted": {"weight": "weight"},
    "closeness_centrality": {},
    "closeness_centrality, weighted": {"distance": "weight"},
    "global_efficiency": {},
    "local_efficiency": {},
    "wiener_index": {},
    "transitive_closure": {},
    "transitive_closure_dag": {},
    "transitive_reduction": {},
}


def graph_for(name: str, n: int, degree: int) -> Any:
    """A connected random graph with weights from 1 to 99, undirected; directed for closures, acyclic for those of acyclic graphs."""
    draw = random.Random(0)
    graph = nx.random_regular_graph(degree, n, seed=0)
    nx.set_edge_attributes(graph, {edge: draw.randint(1, 99) for edge in graph.edges}, "weight")
    if name in ("transitive_closure_dag", "transitive_reduction"):
        return nx.DiGraph((min(u, v), max(u, v)) for u, v in graph.edges)
    return nx.DiGraph(graph) if name == "transitive_closure" else graph


def call(name: str, graph: Any, backend: str, rows: int | None = None, **arguments: Any) -> None:
    """Call a function as a user does, and draw so many rows, or all."""
    result = getattr(nx, name)(graph, backend=backend, **arguments)
    if isinstance(result, Iterator):
        for _ in islice(result, rows):
            pass


def measure(names: Sequence[str], n: int, degree: int, repeats: int) -> None:
    """A table of one size and degree."""
    rows, others = [], 0.0
    for label in names:
        name, how = label.partition(",")[0], FUNCTIONS[label]
        arguments = {key: value for key, value in how.items() if key != "rows"}
        graph = graph_for(name, n, degree)
        theirs, ours = predicted(name, graph, arguments)
        works = {b: partial(call, name, graph, b, **how) for b in ("networkx", "semiring")}
        if theirs > _PATIENCE:
            del works["networkx"]
        long = theirs > 1
        if long:
            call(name, graph, "semiring", **how)
        times = alternate(works, 1 if long else repeats, patience=1 if long else 3, warm=long)
        others = max(others, times.others)
        own = times.median("semiring")
        peer = times.median("networkx") if "networkx" in works else None
        runs = "semiring" if interface.should_run(name, (graph,), arguments) is True else "networkx"
        rows.append(
            [
                label,
                "—" if peer is None else f"{1e3 * peer:,.1f}",
                f"{1e3 * own:,.1f}",
                "—" if peer is None else f"{peer / own:.2g}",
                f"{1e3 * theirs:,.1f}",
                f"{1e3 * ours:,.1f}",
                runs,
            ]
        )
    header = [f"n = {n}, degree {degree}", "NetworkX, ms", "semiring, ms", "times", "NetworkX, predicted", "semiring, predicted", "runs"]
    print_table(header, rows, others)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="NetworkX's functions beside the same functions of the backend.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--degrees", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--only", nargs="+", choices=FUNCTIONS, default=[*FUNCTIONS])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    nx.config.warnings_to_ignore.add("cache")
    print(f"{machine()}, networkx {version('networkx')}")
    for n in given.sizes:
        for degree in given.degrees:
            measure(given.only, n, degree, given.repeats)


if __name__ == "__main__":
    main()
