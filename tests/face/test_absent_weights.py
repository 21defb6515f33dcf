"""One rule for absent weights in every form of a graph.

If no edge has a weight, each counts 1. If some have, an edge without one is refused, None and NaN too. None hides an edge of NetworkX, and
is no edge in a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.cli import main

ENDS = [(0, 1), (1, 2), (0, 2)]
ABSENT = object()
Weights = list[Any]


def listed(weights: Weights) -> Any:
    return sr.edges([(u, v) if w is ABSENT else (u, v, w) for (u, v), w in zip(ENDS, weights, strict=True)])


def columns(weights: Weights) -> Any:
    tails, heads = zip(*ENDS, strict=True)
    return sr.edges(tails, heads, [None if w is ABSENT else w for w in weights])


def of_networkx(kind: type) -> Callable[[Weights], Any]:
    def graph(weights: Weights) -> Any:
        made = kind()
        made.add_edges_from((u, v, {} if w is ABSENT else {"weight": w}) for (u, v), w in zip(ENDS, weights, strict=True))
        return made

    return graph


def of_igraph(weights: Weights) -> Any:
    igraph = pytest.importorskip("igraph")
    attributes = {} if all(w is ABSENT for w in weights) else {"weight": [None if w is ABSENT else w for w in weights]}
    return igraph.Graph(3, ENDS, directed=True, edge_attrs=attributes)


def of_rustworkx(weights: Weights) -> Any:
    rustworkx = pytest.importorskip("rustworkx")
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(3))
    graph.add_edges_from([(u, v, {} if w is ABSENT else {"weight": w}) for (u, v), w in zip(ENDS, weights, strict=True)])
    return graph


FORMS: dict[str, Callable[[Weights], Any]] = {
    "pairs and triples": listed,
    "columns": columns,
    "igraph": of_igraph,
    "rustworkx": of_rustworkx,
    **{f"NetworkX's {kind.__name__}": of_networkx(kind) for kind in (nx.DiGraph, nx.MultiDiGraph)},
}

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "apsp": sr.apsp,
    "paths": lambda graph: sr.apsp(graph, paths=True),
    "rows": lambda graph: sr.apsp(graph, sources=[0]),
    "most reliable": lambda graph: sr.closure(graph, "max-times", dtype=float),
    "statistics": sr.statistics,
    "diameter": sr.diameter,
    "factor": sr.factor,
    "next best": lambda graph: sr.k_shortest_paths(graph, 0, 2, 2),
    "power": lambda graph: sr.power(graph, 2, "min-plus"),
    "counts": lambda graph: sr.closure(graph, "distance-count"),
    "truth values": lambda graph: sr.closure(graph, "boolean"),
    "explain": sr.explain,
}

ABSENCES = {"absent": ABSENT, "None": None}


@pytest.mark.parametrize("form", FORMS)
def test_edges_count_1_if_none_has_a_weight(form: str) -> None:
    assert sr.apsp(FORMS[form]([ABSENT] * 3))[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("absence", ABSENCES)
def test_an_edge_without_a_weight_among_others_is_refused(form: str, question: str, absence: str) -> None:
    if form.startswith("NetworkX") and absence == "None":
        pytest.skip("None hides the edge")
    graph = FORMS[form]([0.5, ABSENCES[absence], 0.25])
    with pytest.raises(sr.GraphError, match=r"1 of 3 edges has no 'weight' though others do, such as edge [12] from 1 to 2; give every"):
        QUESTIONS[question](graph)
    assert sr.apsp(graph, weight=1)[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("form", FORMS)
def test_nan_is_refused(form: str) -> None:
    with pytest.raises(sr.DomainError, match=r"the weight of edge [12] from 1 to 2 = nan: NaN is no element"):
        sr.apsp(FORMS[form]([10, math.nan, 60]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("absence", ABSENCES)
def test_reachability_needs_no_weights(form: str, absence: str) -> None:
    """Without weight= an edge is an edge, as for NetworkX's has_path."""
    graph = FORMS[form]([10, ABSENCES[absence], ABSENCES[absence]])
    assert sr.transitive_closure(graph)[0].tolist() == [False, True, True]
    assert sr.reachability(graph).counts.tolist() == [2, 1, 0]


class TestHidden:
    @given(st.lists(st.sampled_from([1, 2, 5, None]), min_size=3, max_size=3))
    @pytest.mark.parametrize("kind", [nx.DiGraph, nx.Graph, nx.MultiDiGraph])
    def test_distances_are_those_of_networkx(self, kind: type, weights: Weights) -> None:
        graph = of_networkx(kind)(weights)
        expected = np.full((3, 3), math.inf)
        for u, row in nx.all_pairs_dijkstra_path_length(graph):
            for v, distance in row.items():
                expected[u, v] = distance
        np.testing.assert_array_equal(sr.apsp(graph), expected)
        np.testing.assert_array_equal(sr.apsp(graph, weight="weight", sources=[0, 1, 2]), expected)

    def test_of_another_attribute(self) -> None:
        graph = nx.DiGraph()
        graph.add_edge(1, 2, t=10)
        graph.add_edge(2, 3, t=None)
        graph.add_edge(1, 3, t=60)
        assert sr.apsp(graph, weight="t")[0].tolist() == [0, 10, 60]
        assert sr.k_shortest_paths(graph, 1, 3, 2, weight="t") == [(60, [1, 3])]
        assert sr.transitive_closure(graph, weight="t")[1].tolist() == [False, False, False]
        assert sr.transitive_closure(graph)[1].tolist() == [False, False, True]
        factor = sr.factor(graph, weight="t")
        factor.update([1, 2])  # the weights of the two visible edges
        assert factor.rows(1).tolist() == [0, 1, 2]

    def test_beside_absent_ones(self) -> None:
        """No visible edge has a weight, so each counts 1."""
        assert sr.apsp(of_networkx(nx.DiGraph)([None, ABSENT, ABSENT]))[1].tolist() == [math.inf, 0, 1]


def test_none_is_no_edge_in_a_matrix() -> None:
    assert sr.apsp([[0, 10.0, None], [None, 0, 5.0], [None, None, 0]])[0].tolist() == [0, 10, 15]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("triples.csv", "1,2,10\n2,3\n1,3,60\n"),
        ("cells.csv", "from,to,km\n1,2,10\n2,3,\n1,3,60\n"),
        ("data.edgelist", "1 2 {'weight': 10}\n2 3 {}\n1 3 {'weight': 60}\n"),
        ("nan.csv", "from,to,km\n1,2,10\n2,3,nan\n1,3,60\n"),
    ],
)
def test_files_and_the_command_line(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((sr.GraphError, sr.DomainError), match=r"no weight|no 'weight'|is no number|nan"):
        sr.apsp(sr.read_edges(path))
    assert main(["apsp", str(path)]) == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables(library: str) -> None:
    table = pytest.importorskip(library).DataFrame({"from": [1, 2, 1], "to": [2, 3, 3], "km": [10, None, 60]})
    with pytest.raises(sr.GraphError, match="the column 'km' has no value in row 1"):
        sr.edges(table)


def test_drop_ins_do_as_their_libraries() -> None:
    graph = of_networkx(nx.DiGraph)([10, ABSENT, 60])
    assert dict(nx.all_pairs_dijkstra_path_length(graph, backend="semiring"))[0] == {0: 0, 1: 10, 2: 11}
    graph[1][2]["weight"] = None
    assert dict(nx.all_pairs_dijkstra_path_length(graph.copy(), backend="semiring"))[0] == {0: 0, 1: 10, 2: 60}
