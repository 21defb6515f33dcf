"""The backend's functions by each strategy of the planner: NetworkX's answers by all, and elimination where it is predicted to win."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from semiring.planning import planner
from tests.campaign.strategies import taking
from tests.networkx_backend.samples import INTEGERS, KINDS, MIXED, SIGNED, agree, agree_in_length, graphs, outcome
from tests.networkx_backend.test_against_networkx import LENGTHS, PATHS, WITHOUT_TREES

nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends

pytestmark = [
    pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning"),
    pytest.mark.usefixtures("no_first_rows"),
]
FEW = settings(max_examples=10)
STRATEGIES = ["search", "elimination", "whole"]


def grid(side: int, kind: Any = nx.Graph, *, whole: bool = False, parts: int = 1) -> Any:
    """Grids, each beside the others, with weights that differ by edge and by direction."""
    rng = np.random.default_rng(1)
    graph = kind()
    for part in range(parts):
        graph.add_edges_from(((part, *u), (part, *v)) for u, v in nx.grid_2d_graph(side, side, create_using=nx.DiGraph).edges)
    for *_, data in graph.edges(data=True):
        data["weight"] = int(rng.integers(1, 30)) if whole else float(rng.random())
    return graph


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The strategies of sparse graphs, as they are planned."""
    found: list[str] = []
    plan = planner._sparse

    def recorded(*given: Any) -> Any:
        how = plan(*given)
        found.append(how.strategy)
        return how

    monkeypatch.setattr(planner, "_sparse", recorded)
    monkeypatch.setattr(planner, "_plans", {})
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("closeness_centrality", {"distance": "weight"}),
        ("harmonic_centrality", {"distance": "weight"}),
        ("eccentricity", {"weight": "weight"}),
        ("wiener_index", {"weight": "weight"}),
        ("average_shortest_path_length", {"weight": "weight"}),
        ("barycenter", {"weight": "weight"}),
        ("floyd_warshall_numpy", {}),
        ("all_pairs_dijkstra_path_length", {}),
    ],
)
def test_weighted_grids_are_eliminated(taken: list[str], monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", "2")
    outcome(name, grid(40), "semiring", **arguments)
    assert taken == ["elimination"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [False, True])
def test_grids(taken: list[str], strategy: str, kind: Any, whole: bool) -> None:
    """Also two that are apart, where there is no path."""
    with taking(strategy):
        for graph in (grid(5, kind, whole=whole), grid(4, kind, whole=whole, parts=2)):
            for name, arguments in LENGTHS + WITHOUT_TREES:
                if {*arguments.values()} & {"weight", "floyd-warshall", "bellman-ford"} or name.endswith(("_numpy", "_length")):
                    agree(outcome(name, graph, "semiring", **arguments), outcome(name, graph, "networkx", **arguments))
            for name, arguments in PATHS:
                ours, theirs = outcome(name, graph, "semiring", **arguments), outcome(name, graph, "networkx", **arguments)
                agree_in_length(ours, theirs, graph, arguments.get("weight"))
    assert set(taken) == {strategy}


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEW
@given(graph=graphs(MIXED), signed=graphs(SIGNED))
def test_small_graphs(strategy: str, graph: Any, signed: Any) -> None:
    with taking(strategy):
        for name, arguments in LENGTHS:
            if not name.startswith(("transitive", "betweenness", "edge_betweenness", "is_")):
                agree(outcome(name, graph, "semiring", **arguments), outcome(name, graph, "networkx", **arguments))
        for name in ("all_pairs_bellman_ford_path", "johnson"):
            ours, theirs = outcome(name, signed, "semiring"), outcome(name, signed, "networkx")
            if isinstance(theirs, type):
                assert ours is theirs
            else:
                agree_in_length(ours, theirs, signed, "weight")


@pytest.mark.parametrize("name", ["center", "periphery"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_nodes_that_tie_are_networkxs(name: str, strategy: str, seed: int) -> None:
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1: eccentricities are equal where NetworkX, which adds from the source on, has equal ones."""
    rng = np.random.default_rng(seed)
    graph = nx.cycle_graph(20)
    graph.add_edges_from(rng.integers(0, 20, (10, 2)).tolist())
    nx.set_edge_attributes(graph, {edge: 0.1 * int(rng.integers(1, 4)) for edge in graph.edges}, "weight")
    with taking(strategy):
        assert outcome(name, graph, "semiring", weight="weight") == outcome(name, graph, "networkx", weight="weight")


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEW
@given(graph=graphs(INTEGERS))
def test_integers_stay_integers(strategy: str, graph: Any) -> None:
    with taking(strategy):
        distances = outcome("all_pairs_dijkstra_path_length", graph, "semiring")
        farthest = outcome("eccentricity", graph, "semiring", weight="weight")
    assert all(type(d) is int for row in distances.values() for d in row.values())
    assert isinstance(farthest, type) or all(type(d) is int for d in farthest.values())


@pytest.mark.parametrize("length", [1, 7, 0.5])
def test_sums_of_equal_lengths_are_larger_than_any_of_them(length: float) -> None:
    """Of 1,500 nodes in a circle distances fit 16 bits, and their sums do not."""
    graph = nx.cycle_graph(1500)
    nx.set_edge_attributes(graph, length, "length")
    found = nx.closeness_centrality(graph, distance="length", backend="semiring")
    assert set(found.values()) == {1499 / (length * 750 * 750)}
