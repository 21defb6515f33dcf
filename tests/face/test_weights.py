"""`weight=`: which attribute or column is the weight of an edge, and what is said where none is."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.cli import main

INF = math.inf

CALLS: dict[str, Callable[..., Any]] = {
    "apsp": lambda g, **how: sr.apsp(g, **how)[0],
    "paths": lambda g, **how: sr.apsp(g, paths=True, **how).distances[0],
    "sources": lambda g, **how: sr.apsp(g, sources="home", **how),
    "sources, paths": lambda g, **how: sr.apsp(g, sources=["home"], paths=True, **how).distances[0],
    "targets": lambda g, **how: sr.apsp(g, targets=["home", "shop", "park"], **how)[0],
    "block rows": lambda g, **how: sr.apsp(g, memory_limit="1MiB", **how)[0],
    "closure": lambda g, **how: sr.closure(g, sr.MIN_PLUS, **how)[0],
    "power": lambda g, **how: np.fmin([0, INF, INF], np.fmin(sr.power(g, 1, sr.MIN_PLUS, **how)[0], sr.power(g, 2, sr.MIN_PLUS, **how)[0])),
}
"""Distances from home to home, shop and park."""


def streets(nx: Any = None, kind: str = "DiGraph") -> Any:
    """home → shop → park, with lengths."""
    graph = getattr(nx or pytest.importorskip("networkx"), kind)()
    graph.add_edge("home", "shop", length=2.5, name="A")
    graph.add_edge("shop", "park", length=4, name="B")
    return graph


def table(**columns: list[Any]) -> sr.EdgeList:
    """The same as a table of edges."""
    return replace(sr.edges([("home", "shop"), ("shop", "park")]), columns=columns)


@pytest.mark.parametrize("call", CALLS)
class TestEveryCall:
    def test_takes_the_attribute(self, call: str) -> None:
        assert CALLS[call](streets(), weight="length").tolist() == [0, 2.5, 6.5]
        assert CALLS[call](table(minutes=[3, 1]), weight="minutes").tolist() == [0, 3, 4]

    def test_warns_once_of_lengths_that_nobody_looks_at_and_names_the_callers_line(self, call: str) -> None:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert CALLS[call](streets()).tolist() == [0, 1, 2]
        assert len(found) == (2 if call == "power" else 1)  # which is called twice
        assert found[0].category is sr.AssumptionWarning
        assert found[0].filename == __file__
        assert str(found[0].message) == (
            "each edge counts 1, as none has a 'weight'; all have 'length': pass weight='length' to count that, or weight=1 to count edges"
        )

    def test_counts_edges_where_that_is_meant(self, call: str) -> None:
        assert CALLS[call](streets(), weight=1).tolist() == [0, 1, 2]
        assert CALLS[call](streets(), weight=np.float64(2.5)).tolist() == [0, 2.5, 5]
        assert CALLS[call](sr.edges([("home", "shop", 7), ("shop", "park", 8)]), weight=1).tolist() == [0, 1, 2]

    def test_refuses_a_name_that_no_edge_has(self, call: str) -> None:
        with pytest.raises(
            sr.GraphError, match="no edge has the attribute or column 'lenght'; did you mean 'length'\\? Edges have 'length', 'name'"
        ):
            CALLS[call](streets(), weight="lenght")

    def test_refuses_arrays(self, call: str) -> None:
        sparse = pytest.importorskip("scipy.sparse")
        for graph, name in ((np.eye(3), "numpy.ndarray"), ([[0, 1], [1, 0]], "list"), (sparse.csr_array(np.eye(3)), "scipy.csr_array")):
            with pytest.raises(sr.GraphError, match=f"weight='length' is for edges .* entries of a {name} are the weights .* leave it out"):
                CALLS[call](graph, weight="length")
        with pytest.raises(sr.GraphError, match="weight=1 is for edges"):
            CALLS[call](np.eye(3), weight=1)


def test_statistics_and_plans_know_the_weight() -> None:
    assert sr.statistics(streets(), weight="length").total == 2.5 + 4 + 6.5
    assert sr.statistics(table(minutes=[3, 1]), weight="minutes").total == 3 + 1 + 4
    with pytest.warns(sr.AssumptionWarning, match="weight='length'") as found:
        assert sr.statistics(streets()).total == 1 + 1 + 2
    assert len(found) == 1
    signed = table(minutes=[3, -1])
    assert sr.explain(signed, weight="minutes").problem != sr.explain(signed, weight=1).problem
    for call in (sr.statistics, sr.explain):
        with pytest.raises(sr.GraphError, match="'lenght'; did you mean 'length'"):
            call(streets(), weight="lenght")
        with pytest.raises(sr.GraphError, match="weight='length' is for edges"):
            call(np.eye(2), weight="length")


def test_reachability_asks_for_no_weights() -> None:
    reached = sr.transitive_closure(streets())
    assert reached[0].tolist() == [False, True, True]
    assert sr.closure(streets(), sr.BOOLEAN, reflexive=False).tolist() == reached.tolist()
    assert sr.transitive_closure(streets(), weight="length").tolist() == reached.tolist()
    assert sr.transitive_closure(table(open=[True, False]), weight="open")[0].tolist() == [False, True, False]
    some = streets()
    del some["home"]["shop"]["length"]
    assert sr.transitive_closure(some, weight="length").tolist() == reached.tolist()
    with pytest.raises(sr.GraphError, match="no edge has the attribute or column 'width'"):
        sr.transitive_closure(streets(), weight="width")
    with pytest.raises(sr.GraphError, match="is for edges"):
        sr.transitive_closure([[0, 1], [0, 0]], weight="width")


class TestWhatIsWarnedOf:
    def test_only_numbers(self) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.Graph()
        graph.add_edge(0, 1, name="A", open=True, when=None)
        graph.add_edge(1, 2, name="B", open=False, when=None)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sr.apsp(graph)[0, 2] == 2
            assert sr.apsp(nx.path_graph(4))[0, 3] == 3
            assert sr.apsp(nx.Graph()).shape == (0, 0)
            assert sr.apsp(nx.empty_graph(2), weight="length")[0, 1] == INF  # no edge lacks it
            assert sr.apsp(table())[0, 2] == 2
            assert sr.apsp(replace(sr.edges([]), columns={"km": []})).shape == (0, 0)

    @pytest.mark.parametrize("odd", [None, "7.25", [2, 3]])
    def test_numbers_on_some_edges(self, odd: Any) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.MultiDiGraph()
        for position in range(10):
            graph.add_edge(position, position + 1, length=10.5 if position else odd, lanes="2")
        with pytest.warns(sr.AssumptionWarning, match="not all have a number as 'length': pass weight='length' once each edge has one"):
            assert sr.apsp(graph)[0, 10] == 10

    @pytest.mark.parametrize("some", [[9, None, None], [9.0, math.nan, 2.0], np.array([math.nan, 1.5, math.nan])], ids=repr)
    def test_columns_with_gaps(self, some: Any) -> None:
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"u": [1, 2, 3], "v": [2, 3, 4], "toll": some})
        with pytest.warns(sr.AssumptionWarning, match="not all have a number as 'toll'"):
            sr.edges(frame)

    def test_several(self) -> None:
        with pytest.warns(sr.AssumptionWarning, match="all have 'a', 'b': pass one of them, as weight='a', or weight=1"):
            sr.apsp(table(a=[1, 2], b=[1.5, 2], c=["x", "y"]))
        with pytest.warns(sr.AssumptionWarning, match="all have 'a', 'b', .* 'k', 'l', …: pass one of them"):
            sr.apsp(table(**{name: [1, 2] for name in "abcdefghijklm"}))

    def test_numbers_of_edges_are_no_weights(self) -> None:
        assert sr.apsp(table(id=[0, 1]))[0, 2] == 2
        with pytest.warns(sr.AssumptionWarning, match="all have 'km': pass weight='km' to count that"):
            sr.apsp(table(id=[0, 1], km=[3, 4]))

    def test_a_number_that_is_the_name_of_a_column(self) -> None:
        """As it is where a table is read."""
        columns: Any = {2: [3, 4]}
        graph = replace(table(), columns=columns)
        assert sr.apsp(graph, weight=2)[0, 2] == 7
        assert sr.apsp(graph, weight=3)[0, 2] == 6

    def test_a_weight_settles_it(self) -> None:
        weighted = streets()
        for _, _, data in weighted.edges(data=True):
            data["weight"] = 10
        assert sr.apsp(weighted)[0, 2] == sr.apsp(weighted, weight="weight")[0, 2] == 20
        assert sr.apsp(weighted, weight="length")[0, 2] == 6.5
        assert sr.apsp(replace(sr.edges([("a", "b", 3)]), columns={"km": [9]}))[0, 1] == 3

    def test_nothing_is_changed(self) -> None:
        graph, listed = streets(), table(minutes=[3, 1])
        before = [dict(data) for *_, data in graph.edges(data=True)]
        sr.apsp(graph, weight="length")
        sr.apsp(listed, weight="minutes")
        assert [data for *_, data in graph.edges(data=True)] == before
        assert listed.weights == [None, None]


class TestGraphs:
    @pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
    def test_agrees_with_networkx(self, kind: str) -> None:
        nx = pytest.importorskip("networkx")
        rng = np.random.default_rng(3)
        graph = getattr(nx, kind)()
        graph.add_nodes_from("hgfedcba")
        for u, v, w in zip(rng.integers(0, 8, 20), rng.integers(0, 8, 20), rng.integers(1, 50, 20), strict=True):
            graph.add_edge("abcdefgh"[u], "abcdefgh"[v], length=int(w), other=1)
        found = sr.apsp(graph, weight="length", paths=True)
        for u, row in nx.all_pairs_dijkstra_path_length(graph, weight="length"):
            for v, distance in row.items():
                assert found.distance(u, v) == distance
        assert np.isfinite(found.distances).sum() == sum(len(row) for _, row in nx.all_pairs_dijkstra_path_length(graph, weight="length"))

    def test_parallel_edges_combine(self) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.MultiDiGraph()
        graph.add_edges_from([("a", "b", {"width": w}) for w in (3, 9, 5)])
        assert sr.closure(graph, sr.MAX_MIN, weight="width")[0, 1] == 9
        assert sr.apsp(graph, weight="width")[0, 1] == 3
        assert sr.power(graph, 1, sr.PLUS_TIMES, weight=1)[0, 1] == 3

    def test_names_need_not_be_texts(self) -> None:
        nx = pytest.importorskip("networkx")
        name: Any = ("km", 2026)
        graph = nx.DiGraph()
        graph.add_edge("a", "b", x=1)
        graph["a"]["b"][name] = 5
        assert sr.apsp(graph, weight=name)[0, 1] == 5

    def test_structured_elements(self) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.DiGraph()
        graph.add_edge("a", "b", pair=(3.0, 2))
        assert [v[0, 1] for v in sr.closure(graph, sr.DISTANCE_COUNT, weight="pair")] == [3, 2]

    def test_columns_of_edges_that_go_both_ways(self) -> None:
        both = replace(sr.edges([("a", "b"), ("b", "c")], directed=False), columns={"km": [3, 4]})
        assert sr.apsp(both, weight="km").tolist() == [[0, 3, 7], [3, 0, 4], [7, 4, 0]]

    def test_the_networkx_backend_has_its_own_weight(self) -> None:
        nx = pytest.importorskip("networkx")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            lengths = dict(nx.all_pairs_dijkstra_path_length(streets(), backend="semiring"))
            assert lengths["home"] == {"home": 0, "shop": 1, "park": 2}
            lengths = dict(nx.all_pairs_dijkstra_path_length(streets(), weight="length", backend="semiring"))
            assert lengths["home"] == {"home": 0, "shop": 2.5, "park": 6.5}


class TestRefusals:
    @pytest.mark.parametrize(("weight", "shown"), [(True, "True"), (["length"], "a list"), (len, "a builtin_function_or_method")])
    def test_what_is_no_name(self, weight: Any, shown: str) -> None:
        for graph in (streets(), np.eye(2)):
            with pytest.raises(sr.GraphError, match=f"weight is {shown}; pass the name of an attribute of edges, or a number"):
                sr.apsp(graph, weight=weight)

    def test_weights_are_no_array(self) -> None:
        weight: Any = np.array([2.5, 4])
        for function in (sr.apsp, sr.statistics):
            with pytest.raises(sr.SemiringError, match=r"weight is an array of shape \(2,\)"):
                function(streets(), weight=weight)

    def test_text_is_no_number(self) -> None:
        with pytest.raises(sr.DTypeError, match="the weight of edge 0 from 'home' to 'shop' is 'A', which is no real number"):
            sr.apsp(streets(), weight="name")

    def test_no_columns(self) -> None:
        with pytest.raises(sr.GraphError, match=r"no edge has the attribute or column 'km'(\n|$)"):
            sr.apsp(sr.edges([("a", "b")]), weight="km")
        with pytest.raises(sr.GraphError, match=r"no edge has the attribute or column 'km'; edges have 'weight'"):
            sr.apsp(sr.edges([("a", "b", 2)]), weight="km")

    def test_data_frames(self) -> None:
        pd = pytest.importorskip("pandas")
        with pytest.raises(sr.GraphError, match=r"of a table with a row for each edge pass sr\.edges\(frame, .*weight='km'\)"):
            sr.apsp(pd.DataFrame(np.eye(2)), weight="km")
        roads = pd.DataFrame({"from": ["a"], "to": ["b"], "km": [3.0]})
        for weight in (None, "km"):
            with pytest.raises(sr.GraphError, match=r"A table with a row for each edge is read by sr\.edges\(frame"):
                sr.apsp(roads, weight=weight)
        with pytest.raises(sr.ShapeError, match=r"shape \(4, 3\); sr\.edges reads a list of edges"):
            sr.apsp(np.ones((4, 3)))

    @pytest.mark.parametrize("graph", [None, 5, object()])
    def test_what_is_no_graph(self, graph: Any) -> None:
        with pytest.raises(sr.GraphError, match="is no graph"):
            sr.apsp(graph, weight="km")


class TestNamesOfFiles:
    @pytest.mark.parametrize(
        ("name", "reader"),
        [
            ("roads.csv", "sr.read_edges('roads.csv')"),
            (Path("roads.npy"), "numpy.load('roads.npy')"),
            ("a/b.npz", "scipy.sparse.load_npz('a/b.npz')"),
            ("Bern", "sr.read_edges('Bern')"),
        ],
    )
    @pytest.mark.parametrize("call", [*CALLS, "statistics", "explain", "transitive_closure", "structured", "weight"])
    def test_are_no_graphs(self, call: str, name: str | os.PathLike[str], reader: str) -> None:
        others: dict[str, Callable[..., Any]] = {
            "statistics": sr.statistics,
            "explain": sr.explain,
            "transitive_closure": sr.transitive_closure,
            "structured": lambda graph: sr.closure(graph, sr.DISTANCE_COUNT),
            "weight": lambda graph: sr.apsp(graph, weight="km"),
        }
        with pytest.raises(sr.GraphError) as found:
            (CALLS | others)[call](name)
        assert str(found.value) == f"a graph is expected, and not the name of a file; {reader} reads one"


class TestCommandLine:
    def test_a_number(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "roads.csv").write_text("a,b,3\nb,c,4\n")
        for weight, distance in (("1", 2), ("2.5", 5)):
            assert main(["apsp", str(tmp_path / "roads.csv"), "--weight", weight, "--from", "a", "--to", "c"]) == 0
            assert f"{distance}: a → b → c" in capsys.readouterr().out
        assert main(["closure", "--semiring", "max-min", str(tmp_path / "roads.csv"), "--weight", "2"]) == 0
        assert "2" in capsys.readouterr().out

    def test_a_column(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "roads.csv").write_text("from,to,toll,2026\na,b,3,5\nb,c,4,6\n")
        for weight, distance in (("toll", 7), ("2026", 11), ("2", 4)):
            assert main(["apsp", str(tmp_path / "roads.csv"), "--weight", weight, "--from", "a", "--to", "c"]) == 0
            assert f"{distance}: a → b → c" in capsys.readouterr().out
        assert main(["apsp", str(tmp_path / "roads.csv")]) == 0
        assert "pass one of them, as --weight='toll', or --weight=1 to count edges" in capsys.readouterr().err

    def test_refusals(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "roads.csv").write_text("a,b,3\n")
        assert main(["apsp", str(tmp_path / "roads.csv"), "--weight", "km"]) == 2
        assert "--weight='km': there is no such column" in capsys.readouterr().err
        np.save(tmp_path / "roads.npy", np.eye(2))
        assert main(["apsp", str(tmp_path / "roads.npy"), "--weight", "km"]) == 2
        assert "--weight" in capsys.readouterr().err
