"""What NetworkX knows of the backend, and which calls it gets."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from semiring.networkx_backend import costs, interface
from semiring.networkx_backend.info import get_info

nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
OFFERED = sorted(get_info()["functions"])


def test_entry_points_are_installed() -> None:
    for group in ("networkx.backends", "networkx.backend_info"):
        assert "semiring" in importlib.metadata.entry_points(group=group).names, f"{group}: install this package again, pip install -e ."
    assert nx.utils.backends.backend_info["semiring"]["functions"].keys() == set(OFFERED)


@pytest.mark.parametrize("name", OFFERED)
def test_parameters_are_networkxs(name: str) -> None:
    ours = inspect.signature(getattr(interface, name)).parameters.values()
    if not hasattr(nx, name):
        pytest.skip(f"NetworkX {nx.__version__} has another name for it, or none yet")
    theirs = inspect.signature(getattr(nx, name).orig_func).parameters.values()
    known = [(p.name, p.kind, p.default) for p in ours]
    common = [(p.name, p.kind, p.default) for p in theirs]
    assert known[: len(common)] == common
    assert all(default is None for _, _, default in known[len(common) :])  # parameters of newer ones


LOADED = """
import json, sys
import networkx
print(json.dumps([m for m in sys.modules if m.startswith("semiring")] + [m for m in ("numpy", "llvmlite", "cupy") if m in sys.modules]))
"""


def test_importing_networkx_loads_the_info_alone() -> None:
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", LOADED], text=True))
    own = ["semiring", "semiring.common", "semiring.common.forks"]  # what every import of the library has
    assert sorted(loaded) == [*own, "semiring.networkx_backend", "semiring.networkx_backend.info"]


OLDER = """
import networkx as nx
nx.__version__ = "3.4.2"
graph = nx.path_graph(3)
assert nx.diameter(graph) == 2
import semiring as sr
assert sr.apsp(graph).max() == 2
nx.diameter(graph, backend="semiring")
"""


def test_older_networkxs_are_told_what_is_needed() -> None:
    run = subprocess.run([sys.executable, "-c", OLDER], capture_output=True, text=True, check=False)
    assert "ImportError: NetworkX's backend semiring needs networkx>=3.5, not 3.4.2" in run.stderr


def reason(name: str, graph: Any, **arguments: Any) -> Any:
    return interface.should_run(name, (graph,), arguments)


def test_small_and_sparse_graphs_are_networkxs() -> None:
    small, large = nx.gnp_random_graph(12, 0.5, seed=1), nx.gnp_random_graph(400, 0.1, seed=1)
    for name in ("diameter", "all_pairs_dijkstra_path_length", "transitive_closure", "closeness_centrality"):
        assert "12 nodes" in reason(name, small)
        assert reason(name, large) is True
    sparse = nx.empty_graph(5000)
    sparse.add_edge(0, 1)
    assert "5000 nodes and 1 edges" in reason("wiener_index", sparse)
    assert reason("floyd_warshall", nx.path_graph(60)) is True


def test_what_needs_few_searches_is_networkxs() -> None:
    graph = nx.gnp_random_graph(400, 0.1, seed=1)
    assert "search" in reason("has_path", graph, source=0, target=1)
    assert "search" in reason("is_strongly_connected", graph.to_directed())
    assert "cutoff" in reason("all_pairs_dijkstra_path_length", graph, cutoff=3)
    assert "reading the graph" in reason("multi_source_dijkstra_path", graph, sources=[0, 1])
    assert "reading the graph" in reason("voronoi_cells", graph, center_nodes=[0, 1])
    assert "a few nodes" in reason("eccentricity", graph, v=3)
    assert "a few nodes" in reason("closeness_centrality", graph, u=3)
    assert "a few nodes" in reason("harmonic_centrality", graph, nbunch=[3])


class Unread:
    """A graph of four nodes that cannot be read, as its edges can only be counted."""

    def __len__(self) -> int:
        return 4

    def number_of_edges(self) -> int:
        return 6

    def is_directed(self) -> bool:
        return True


@pytest.mark.parametrize("name", OFFERED)
def test_a_small_graph_is_declined_without_reading_or_planning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a small graph needs no such work")

    monkeypatch.setattr(costs, "plan", refuse)
    monkeypatch.setattr(inspect, "signature", refuse)
    ends: dict[str, Any] = {key: 0 for key in ("source", "target") if name in ("all_shortest_paths", "has_path", "shortest_simple_paths")}
    ends |= {"source": 0} if name == "single_source_all_shortest_paths" else {}
    ends |= {key: [0] for key in ("sources", "targets") if name.endswith("_subset")}
    ends |= {"sources": [0]} if name.startswith("multi_source") else {"center_nodes": [0]} if name == "voronoi_cells" else {}
    ends |= {"C": [0]} if name == "group_betweenness_centrality" else {}
    if name != "centroid" or nx.barycenter.name == name:
        assert interface.can_run(name, (Unread(),), ends) is True
    assert "NetworkX" in str(interface.should_run(name, (Unread(),), ends))


@pytest.mark.parametrize("name", OFFERED)
def test_arguments_are_bound_as_python_binds_them(name: str) -> None:
    signature = inspect.signature(getattr(interface, name))
    names = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((0,), {"none_such": 1}), ((0,), {"backend": None})]
    calls += [(tuple(range(i)), {key: key for key in names[j:]}) for i in range(len(names) + 2) for j in range(len(names) + 1)]
    for args, kwargs in calls:
        found = interface._arguments(name, args, kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            assert isinstance(found, str)
            assert found.startswith(f"{name}() ")
        else:
            bound.apply_defaults()
            assert found == bound.arguments


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("diameter", {"e": {}}, "e= is left to NetworkX"),
        ("eccentricity", {"sp": {}}, "sp= is left to NetworkX"),
        ("barycenter", {"attr": "a"}, "attr= is left to NetworkX"),
        ("radius", {"usebounds": True}, "few searches"),
        ("shortest_path", {"source": 0}, "single search"),
        ("shortest_path_length", {"target": 0}, "single search"),
        ("all_pairs_shortest_path", {"cutoff": float("nan")}, "not a number"),
        ("all_pairs_shortest_path", {"cutof": 3}, "cutof"),
        ("center", {}, "center of a tree"),
        ("floyd_warshall", {"weight": len}, "attribute"),
        ("has_path", {"source": None, "target": 0}, "no node"),
        ("multi_source_dijkstra", {"sources": iter([0])}, "only once"),
        ("multi_source_dijkstra_path", {"sources": [0], "cutoff": "3"}, "not a number"),
        ("voronoi_cells", {"center_nodes": iter([0])}, "only once"),
    ],
)
def test_what_is_left_to_networkx(name: str, arguments: dict[str, Any], why: str) -> None:
    graph = nx.path_graph(4)
    assert why in str(interface.can_run(name, (graph,), arguments))


def test_dispatch_by_priority_says_why_not(caplog: pytest.LogCaptureFixture) -> None:
    small, large = nx.path_graph(3), nx.gnp_random_graph(300, 0.1, seed=2)
    with nx.config.backend_priority(algos=["semiring"]), caplog.at_level(logging.DEBUG, "networkx"):
        assert nx.diameter(small) == 2
        assert "Backend 'semiring' shouldn't run `diameter`" in caplog.text
        assert "because: for 3 nodes and 2 edges NetworkX takes about" in caplog.text
        caplog.clear()
        assert nx.diameter(large) == 3
        assert "Using backend 'semiring' for call to 'diameter'" in caplog.text


def test_what_only_the_weights_tell_falls_back(caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.gnp_random_graph(200, 0.2, seed=2, directed=True)
    nx.set_edge_attributes(graph, 1, "weight")
    graph.edges[next(iter(graph.edges))]["weight"] = -0.5
    with nx.config.backend_priority(algos=["semiring"]), caplog.at_level(logging.DEBUG, "networkx"):
        with pytest.raises(ValueError, match="Contradictory paths"):
            nx.closeness_centrality(graph, distance="weight")
        assert "a weight is negative" in caplog.text
    with pytest.raises(NotImplementedError, match="closeness_centrality"):
        nx.closeness_centrality(graph, distance="weight", backend="semiring")


@pytest.mark.exhaustive
def test_what_exceeds_memory_is_left_to_networkx() -> None:
    for name, graph in (("floyd_warshall", nx.empty_graph(400_000)), ("transitive_reduction", nx.empty_graph(900_000, nx.DiGraph))):
        with pytest.raises(NotImplementedError) as raised:
            getattr(nx, name)(graph, backend="semiring")
        assert "GiB" in str(raised.value.__cause__)


def test_nothing_is_stale_and_nothing_of_the_callers_is_changed() -> None:
    graph = nx.cycle_graph(5)
    before = nx.wiener_index(graph, weight="weight", backend="semiring")
    graph[0][1]["weight"] = 10  # behind NetworkX's back, so that its cache still has the conversion
    assert nx.wiener_index(graph, weight="weight", backend="semiring") == nx.wiener_index(graph, weight="weight") != before
    assert [d for _, _, d in graph.edges(data=True)] == [{"weight": 10}, {}, {}, {}, {}]


def test_a_converted_graph_is_taken_too() -> None:
    graph = nx.DiGraph([(0, 1), (1, 2)])
    converted = interface.convert_from_nx(graph)
    assert nx.transitive_closure(converted).edges == nx.transitive_closure(graph).edges
    assert nx.floyd_warshall(G=converted)[0][2] == 2
    assert interface.convert_to_nx(converted) is graph
    with pytest.raises(nx.NetworkXNotImplemented, match="directed"):
        nx.global_efficiency(converted)


def test_errors_are_networkxs() -> None:
    with pytest.raises(nx.NetworkXError, match="not strongly connected"):
        nx.diameter(nx.DiGraph([(0, 1)]), backend="semiring")
    with pytest.raises(nx.NetworkXError, match="the graph is not connected"):
        nx.eccentricity(nx.empty_graph(2), backend="semiring")
    with pytest.raises(nx.NetworkXNoPath, match="disconnected"):
        nx.barycenter(nx.empty_graph(2), backend="semiring")
    with pytest.raises(nx.NodeNotFound, match="Source 7"):
        nx.has_path(nx.path_graph(2), 7, 0, backend="semiring")
    with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle"):
        nx.johnson(nx.DiGraph([(0, 1, {"weight": -2}), (1, 0, {"weight": 1})]), backend="semiring")
    with pytest.raises(nx.NetworkXPointlessConcept):
        nx.average_shortest_path_length(nx.Graph(), backend="semiring")
    with pytest.raises(nx.NetworkXError, match="Directed Acyclic Graph"):
        nx.transitive_reduction(nx.DiGraph([(0, 1), (1, 0)]), backend="semiring")
    with pytest.raises(nx.NetworkXUnfeasible, match="cycle"):
        nx.transitive_closure_dag(nx.DiGraph([(0, 0)]), backend="semiring")
