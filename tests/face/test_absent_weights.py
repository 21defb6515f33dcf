"""One rule for absent weights in every form of a graph.

If no edge has a weight, each counts 1. If some have, an edge without one is refused, None and NaN too. None hides an edge of NetworkX, and
is no edge in a matrix.
"""

from __future__ import annotations

import math
import re
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
    "radius": sr.radius,
    "cycle mean": sr.cycle_mean,
    "recording": sr.watch,
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
    with pytest.raises(sr.DomainError, match=r"the weight of edge [12] from 1 to 2 = nan: NaN is not an element"):
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

    @pytest.mark.parametrize("dtype", ["float64", "int32"])
    def test_of_a_factor_is_closed_and_may_open(self, dtype: str) -> None:
        graph = nx.DiGraph()
        graph.add_weighted_edges_from([("a", "b", 10), ("b", "c", 20), ("a", "c", 60)])
        factor = sr.factor(graph, dtype=dtype)
        graph["b"]["c"]["weight"] = None
        factor.update(graph)
        assert factor.rows("a").tolist() == sr.apsp(graph)[0].tolist() == [0, 10, 60]
        factor = sr.factor(graph, dtype=dtype)
        assert factor.rows("a").tolist() == [0, 10, 60]
        factor.update([1, 5, 3])  # in the order of graph.edges
        assert factor.rows("a").tolist() == [0, 1, 4]

    @pytest.mark.parametrize(
        ("semiring", "expected"),
        [("distance-hops", [[0, 7, math.inf], [0, 1, math.inf]]), ("max-min", [[math.inf, 7, -math.inf]]), ("max-times", [[1, 7, 0]])],
    )
    def test_is_the_zero_of_every_semiring(self, semiring: str, expected: list[list[float]]) -> None:
        found = sr.closure(of_networkx(nx.DiGraph)([7, None, None]), semiring)
        parts = found if isinstance(found, tuple) else (found,)
        assert [part[0].tolist() for part in parts] == expected

    def test_beside_integers_that_no_float_is(self) -> None:
        assert sr.apsp(of_networkx(nx.DiGraph)([2**60 + 1, None, None]), dtype="int64")[0, 1] == 2**60 + 1

    def test_beside_absent_ones(self) -> None:
        """No visible edge has a weight, so each counts 1."""
        assert sr.apsp(of_networkx(nx.DiGraph)([None, ABSENT, ABSENT]))[1].tolist() == [math.inf, 0, 1]


def test_none_is_no_edge_in_a_matrix() -> None:
    assert sr.apsp([[0, 10.0, None], [None, 0, 5.0], [None, None, 0]])[0].tolist() == [0, 10, 15]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("triples.csv", "1,2,10\n2,3\n1,3,60\n", "line 2: no weight, .* for the edge from '2' to '3'; fill it in"),
        ("cells.csv", "from,to,km\n1,2,10\n2,3,\n1,3,60\n", "line 3: no weight, .* for the edge from '2' to '3'; fill it in"),
        ("data.edgelist", "1 2 {'weight': 10}\n2 3 {}\n1 3 {'weight': 60}\n", "edge . from 2 to 3; give every edge a"),
        ("nan.csv", "from,to,km\n1,2,10\n2,3,nan\n1,3,60\n", "line 3: the weight 'nan' is not a number"),
    ],
)
def test_files_and_the_command_line(name: str, text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(sr.GraphError, match=problem):
        sr.read_edges(path)
    assert main(["apsp", str(path)]) == 2
    assert re.search(problem, capsys.readouterr().err)
    assert sr.apsp(sr.read_edges(path, weight=1))[0].tolist() == [0, 1, 1]
    assert main(["apsp", str(path), "--weight", "1"]) == 0


def test_an_update_without_weights_is_of_a_factor_without_weights() -> None:
    lone, bare = sr.edges([("a", "b")], nodes="abc"), nx.DiGraph()
    bare.add_nodes_from("abc")
    bare.add_edge("a", "b")
    for other in (lone, bare, sr.edges([("a", "b", None)], nodes="abc")):
        factor = sr.factor(sr.edges([("a", "b", 3.0), ("b", "c", 4.0)]), "min-plus")
        with pytest.raises(sr.GraphError, match="no edge has a weight, though the edges of the factor have"):
            factor.update(other)
        assert factor.rows("a")[2] == 7
        factor.update(other, weight=1)
        assert factor.rows("a")[2] == 5
        factor = sr.factor(sr.edges([("a", "b"), ("b", "c")]), "min-plus")
        factor.update(other)
        assert factor.rows("a")[2] == 2


def test_weights_of_an_update() -> None:
    factor = sr.factor(columns([10, 20, 60]))
    with pytest.raises(sr.DTypeError, match=r"weights\[1\] is None"):
        factor.update([1, None, 3])
    with pytest.raises(sr.GraphError, match="such as edge 1 from 1 to 2; give every edge a 'weight'"):
        factor.update(columns([1, ABSENT, 3]))
    with pytest.raises(sr.DomainError, match=r"weights\[1\] = nan"):
        factor.update([1, math.nan, 3])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables(library: str) -> None:
    table = pytest.importorskip(library).DataFrame({"from": [1, 2, 1], "to": [2, 3, 3], "km": [10, None, 60]})
    with pytest.raises(sr.GraphError, match=r"the column 'km' has no value in row 1 \(.*\), from 2 to 3; leave such rows out"):
        sr.edges(table)


def test_drop_ins_do_as_their_libraries() -> None:
    graph = of_networkx(nx.DiGraph)([10, ABSENT, 60])
    assert dict(nx.all_pairs_dijkstra_path_length(graph, backend="semiring"))[0] == {0: 0, 1: 10, 2: 11}
    graph[1][2]["weight"] = None
    assert dict(nx.all_pairs_dijkstra_path_length(graph.copy(), backend="semiring"))[0] == {0: 0, 1: 10, 2: 60}
