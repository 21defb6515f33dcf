"""A vertex that is not in the graph: the message names the one that is probably meant, wherever a vertex is named."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest

import semiring as sr
from semiring.cli import main
from semiring.common.errors import similar
from semiring.graphs.vertices import chosen

TOWNS = sr.edges([("Bern", "Basel", 1.0), ("Basel", "Genf", 2.0), ("Genf", "Zürich", 1.0)])
PATHS = sr.apsp(TOWNS, paths=True)
BETWEEN = sr.apsp(TOWNS, sources=["Bern"], paths=True)
ASKING: dict[str, Callable[[Any], Any]] = {
    "path": lambda v: PATHS.path(v, "Bern"),
    "target of a path": lambda v: PATHS.path("Bern", v),
    "distance": lambda v: PATHS.distance("Bern", v),
    "paths": lambda v: PATHS.paths([("Bern", v)]),
    "paths_from": lambda v: PATHS.paths_from(v),
    "paths between": lambda v: BETWEEN.path("Bern", v),
    "source": lambda v: sr.apsp(TOWNS, sources=v),
    "sources": lambda v: sr.apsp(TOWNS, sources=["Bern", v]),
    "targets": lambda v: sr.closure(TOWNS, sr.MAX_MIN, targets=[v]),
    "NetworkX": lambda v: sr.apsp(nx.Graph([("Bern", "Basel"), ("Genf", "Zürich")]), sources=v),
    "pandas": lambda v: sr.apsp(pd.DataFrame(np.eye(4), PATHS.nodes, PATHS.nodes), sources=[v], nonedge=0),
    "plan": lambda v: sr.explain(TOWNS, sources=v),
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Gnef", "Genf"),
        ("genf", "Genf"),
        ("BERN", "Bern"),
        (" Basel ", "Basel"),
        ("Zurich", "Zürich"),
        ("Base", "Basel"),
        ("ZÜRICH", "Zürich"),
    ],
)
@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING.keys())
def test_the_one_that_is_meant_is_named(ask: Callable[[Any], Any], given: str, meant: str) -> None:
    with pytest.raises(sr.GraphError, match=f"no vertex '{given}'; did you mean '{meant}'[?] There are 'Bern', 'Basel', 'Genf'"):
        ask(given)


@pytest.mark.parametrize("given", ["Rom", 7, None, (1, 2), ["Bern"], "", "x" * 10_000])
def test_nothing_is_guessed_where_nothing_is_near(given: Any) -> None:
    with pytest.raises(sr.GraphError, match=r"there is no vertex .*; there are 'Bern', 'Basel', 'Genf', 'Zürich'") as caught:
        PATHS.path(given, "Bern")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("labels", "given", "meant"),
    [((1, 2), "1", 1), (("1", "2"), 1, "1"), ((1, 2), " 2", 2), (("1", "2"), 2.0, "2"), (("a", 1), "A", "a"), ((True, "x"), "true", True),
     ((("a", 1), ("b", 2)), "('a', 1)", ("a", 1)), ((0.5, 1.5), "0.5", 0.5), ((None, "x"), "None", None)],
)  # fmt: skip
def test_a_text_for_a_number_and_the_other_way_round(labels: tuple[Hashable, ...], given: Any, meant: Any) -> None:
    graph = sr.edges([labels])
    for ask in (lambda: sr.apsp(graph, sources=[given]), lambda: sr.apsp(graph, paths=True).path(given, labels[0])):
        with pytest.raises(sr.GraphError) as caught:
            ask()
        assert f"there is no vertex {given!r}; did you mean {meant!r}? There are {', '.join(map(repr, labels))}" in str(caught.value)


@pytest.mark.parametrize("given", ["1", 1.0, " 1"])
def test_graphs_without_names_number_their_vertices(given: Any) -> None:
    matrix = np.ones((3, 3))
    for ask in (lambda: sr.apsp(matrix, sources=given), lambda: sr.apsp(matrix, paths=True).path(0, given)):
        with pytest.raises(sr.GraphError, match=f"no vertex {given!r}; did you mean 1[?] Vertices are the numbers from 0 to 2"):
            ask()
    with pytest.raises(sr.GraphError, match="no vertex '12'; vertices are the numbers from 0 to 2"):
        sr.apsp(matrix, sources="12")  # one vertex, not two
    with pytest.raises(sr.GraphError, match="no vertex 3; vertices are"):
        sr.apsp(matrix, targets=[0, 3])


def test_graphs_without_vertices_have_none() -> None:
    for graph in (np.zeros((0, 0)), sr.edges([])):
        with pytest.raises(sr.GraphError, match="no vertex 0; the graph has none"):
            sr.apsp(graph, sources=[0])
        with pytest.raises(sr.GraphError, match="no vertex 0; the graph has none"):
            sr.apsp(graph, paths=True).path(0, 0)


def test_the_command_line_asks_back_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "roads.csv"
    path.write_text("Bern,Basel,1\nBasel,Genf,2\n")
    for ends in (["--from", "bern"], ["--to", "Brn", "--from", "Basel"]):
        assert main(["apsp", str(path), *ends]) == 2
        assert "; did you mean 'Bern'? There are 'Bern', 'Basel', 'Genf'\n" in capsys.readouterr().err


def test_many_names_are_looked_through() -> None:
    labels = [f"{v:x} Street" for v in range(100_000)]
    assert similar("1fe stret", labels) == ["1fe Street"]
    with pytest.raises(sr.GraphError, match="did you mean '1234 Street'"):
        chosen("1234 street", len(labels), labels, "sources")
