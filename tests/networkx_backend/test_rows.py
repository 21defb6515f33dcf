"""Rows of all pairs: the first by NetworkX's searches, the others by blocks, and where these fail by NetworkX again."""

from __future__ import annotations

import importlib
from itertools import islice
from typing import Any

import numpy as np
import pytest

from semiring.networkx_backend import paths
from semiring.networkx_backend.distances import Distances
from tests.networkx_backend.samples import KINDS, agree, agree_in_length, outcome

nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
LENGTHS = ["all_pairs_shortest_path_length", "all_pairs_dijkstra_path_length", "all_pairs_bellman_ford_path_length"]
PATHS = ["all_pairs_shortest_path", "all_pairs_dijkstra_path", "all_pairs_bellman_ford_path"]


def graph_of(kind: Any = nx.Graph, n: int = 160, *, weights: tuple[int, int] = (1, 30), degree: int = 12) -> Any:
    """A random graph with nodes that are texts, and a few nodes without a path."""
    rng = np.random.default_rng(n)
    graph = kind()
    graph.add_nodes_from(f"v{i}" for i in range(n))
    for u, v in rng.integers(0, n - 3, (n * degree // 2, 2)).tolist():
        graph.add_edge(f"v{u}", f"v{v}", weight=int(rng.integers(*weights)))
    return graph


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The first row and the number of rows of each block that is found here, which begin behind the first row."""
    made: list[tuple[int, int]] = []

    class Noted(Distances):
        def __init__(self, nodes: Any, matrix: Any, before: Any, first: int) -> None:
            made.append((first, len(matrix)))
            super().__init__(nodes, matrix, before, first)

    monkeypatch.setattr(paths, "Distances", Noted)

    def first_row(*given: Any) -> Any:
        yield from islice(paths._by_networkx(*given), 1)
        return 1, 8

    monkeypatch.setattr(paths, "_first_rows", first_row)
    return made


@pytest.mark.sampled(9)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LENGTHS + PATHS)
def test_rows_of_both_are_one_answer(name: str, kind: Any, blocks: list[tuple[int, int]]) -> None:
    graph = graph_of(kind, 70, degree=4)
    ours, theirs = (outcome(name, graph, backend) for backend in ("semiring", "networkx"))
    assert list(ours) == list(graph)
    if name in LENGTHS:
        agree(ours, theirs)
    else:
        agree_in_length(ours, theirs, graph, None if name == "all_pairs_shortest_path" else "weight")
    assert blocks == [(1, 1), (2, 2), (4, 4), (8, 62)]


def test_lengths_and_paths_of_both_are_one_answer(blocks: list[tuple[int, int]]) -> None:
    graph = graph_of(n=70, degree=4)
    for cutoff in (None, 40):
        ours, theirs = (outcome("all_pairs_dijkstra", graph, b, cutoff=cutoff) for b in ("semiring", "networkx"))
        agree({u: d for u, (d, _) in ours.items()}, {u: d for u, (d, _) in theirs.items()})
        agree_in_length({u: p for u, (_, p) in ours.items()}, {u: p for u, (_, p) in theirs.items()}, graph, "weight")
        assert blocks or cutoff  # near rows come from one sparse answer
        blocks.clear()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["all_pairs_dijkstra", *LENGTHS, *PATHS])
def test_the_first_rows_and_near_targets_read_no_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a search of NetworkX needs no other graph")

    monkeypatch.setattr(paths, "sparse", refuse)
    graph = graph_of()
    assert len(list(islice(getattr(nx, name)(graph, backend="semiring"), 2))) == 2
    if "bellman_ford" not in name:
        near = {"cutoff": 1 if "shortest" in name else 3}
        assert outcome(name, graph, "semiring", **near) == outcome(name, graph, "networkx", **near)


@pytest.mark.parametrize("name", ["all_pairs_dijkstra", "all_pairs_dijkstra_path_length", "all_pairs_bellman_ford_path_length"])
@pytest.mark.parametrize("number", [np.int64, np.float64, np.float32, np.int16])
def test_lengths_are_numbers_of_python_in_every_row(name: str, number: Any) -> None:
    graph = graph_of()
    for *_, data in graph.edges(data=True):
        data["weight"] = number(data["weight"])
    kind = float if np.dtype(number).kind == "f" else int
    for _, row in getattr(nx, name)(graph, backend="semiring"):
        assert set(map(type, (row[0] if isinstance(row, tuple) else row).values())) <= {kind, int}


@pytest.mark.parametrize("name", ["all_pairs_bellman_ford_path_length", "all_pairs_bellman_ford_path"])
def test_rows_before_a_negative_cycle_are_found_and_then_networkx_refuses(name: str) -> None:
    graph = graph_of(nx.DiGraph)
    graph.add_weighted_edges_from([("c", "d", -2), ("d", "c", 1)])
    found = getattr(nx, name)(graph, backend="semiring")
    before = dict(islice(found, 160))
    agree_all = outcome(name, graph.subgraph(list(graph)[:160]), "networkx")
    assert before.keys() == agree_all.keys()
    with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle"):
        next(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weight", [-0.5, float("inf"), None, "7"])
def test_what_is_read_late_and_refused_ends_as_in_networkx(weight: Any) -> None:
    graph = graph_of()
    graph.edges[list(graph.edges)[-1]]["weight"] = weight
    for name in ("all_pairs_dijkstra_path_length", "all_pairs_dijkstra_path"):
        ours, theirs = (outcome(name, graph, backend) for backend in ("semiring", "networkx"))
        if isinstance(theirs, type) or name == "all_pairs_dijkstra_path_length":
            assert ours == theirs
        else:
            agree_in_length(ours, theirs, graph, "weight")


def test_graphs_without_nodes_and_with_one() -> None:
    for graph in (nx.Graph(), nx.empty_graph(1)):
        for name in LENGTHS + PATHS:
            assert outcome(name, graph, "semiring") == outcome(name, graph, "networkx")
