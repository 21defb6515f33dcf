"""Which column of a table is the weight: the same for tables of every library, for files and on the command line."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.cli import main

Table = dict[str, list[Any]]

NAMES = [
    *("weight", "w", "length", "len", "distance", "dist", "cost", "time", "duration", "capacity", "value", "price"),
    *("km", "miles", "metres", "meters", "minutes", "seconds", "hours"),
]
UNITS = [
    *("length_m", "Length_KM", "distance (mi)", "dist[km]", "time_s", "Duration min", "cost-EUR", "price_usd", "weight_kg"),
    *("capacity.mbps", "w_t", "len_yd"),
]
OTHERS = [
    *("toll", "lanes", "speed", "km_h", "probability", "weights", "lengthm", "length_rank", "time_of_day", "value_id", "cost_center"),
    *("kmh", "travel", "minutes_s", "weight_", "unweight", "flow"),
]


def text(table: Table) -> str:
    csv.writer(file := io.StringIO()).writerows([list(table), *zip(*table.values(), strict=True)])
    return file.getvalue()


def of_library(name: str) -> Callable[[Table, Path], Any]:
    return lambda table, _: sr.apsp(sr.edges(getattr(pytest.importorskip(name), "table" if name == "pyarrow" else "DataFrame")(table)))


def of_file(table: Table, folder: Path) -> Any:
    (folder / "roads.csv").write_text(text(table))
    return sr.apsp(sr.read_edges(folder / "roads.csv"))


def of_command_line(table: Table, folder: Path) -> Any:
    (folder / "roads.csv").write_text(text(table))
    if main(["apsp", str(folder / "roads.csv"), "-o", str(folder / "out.npy")]):
        raise sr.GraphError("refused")
    return np.load(folder / "out.npy")


READERS: dict[str, Callable[[Table, Path], Any]] = {
    **{name: of_library(name) for name in ("pandas", "polars", "pyarrow")},
    "structured array": lambda table, _: sr.apsp(sr.edges(pd.DataFrame(table).to_records(index=False))),
    "open file": lambda table, _: sr.apsp(sr.read_edges(io.StringIO(text(table)))),
    "file": of_file,
    "command line": of_command_line,
}
"""Distances from A to A, B and C by the edges of a table, from A to B and from B to C."""


@pytest.fixture(params=READERS)
def distances(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Table], Any]:
    return lambda table: READERS[request.param](table, tmp_path)[0].tolist()


def roads(**others: Any) -> Table:
    return {"from": ["A", "B"], "to": ["B", "C"], **others}


@pytest.mark.sampled(120)
@pytest.mark.parametrize("name", [*NAMES, *map(str.upper, NAMES), *UNITS])
def test_a_usual_name_is_the_weight(distances: Callable[[Table], Any], name: str) -> None:
    for table in (roads(**{name: [3, 4]}), roads(id=[7, 8], **{name: [3.0, 4.0]}, note=["x", "y"]), {name: [3, 4]} | roads()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert distances(table) == [0, 3, 7]


@pytest.mark.sampled(41)
@pytest.mark.parametrize("name", OTHERS)
def test_no_other_column_is(distances: Callable[[Table], Any], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for table in (roads(**{name: [3, 4]}), {name: [3, 4]} | roads()):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert distances(table) == [0, 1, 2]
        said = [str(w.message) for w in found if w.category is sr.AssumptionWarning] or [capsys.readouterr().err]
        assert len(said) == 1
        assert f"all have {name!r}" in said[0]


def test_weight_goes_before_others(distances: Callable[[Table], Any]) -> None:
    assert distances(roads(km=[1, 1], Weight=[3, 4], minutes=[2, 2])) == [0, 3, 7]


def test_two_are_refused(distances: Callable[[Table], Any], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sr.GraphError) as caught:
        distances(roads(km=[3, 4], note=["x", "y"], minutes=[1, 1]))
    said = str(caught.value) + capsys.readouterr().err.replace("--weight", "weight")
    assert "the columns 'km' and 'minutes' could both be the weight; pass weight='km' or weight='minutes', or weight=1 to count" in said


@pytest.mark.parametrize("values", [["12 km", "7 km"], ["2026-01-01", "2026-01-02"]])
def test_a_usual_name_of_what_is_no_number(distances: Callable[[Table], Any], values: list[str]) -> None:
    with pytest.raises(sr.SemiringError):
        distances(roads(time=values, lanes=[1, 2]))


def test_dates_are_told_with_their_column() -> None:
    table = pd.DataFrame(roads(time=pd.to_datetime(["2026-01-01", "2026-01-02"])))
    with pytest.raises(sr.DTypeError, match=r"the column 'time' is the weight by its name, but Timestamp.* pass weight=1 to count edges"):
        sr.edges(table)
    assert sr.apsp(sr.edges(table, weight=1))[0].tolist() == [0, 1, 2]


def test_columns_without_numbers_are_no_warning(distances: Callable[[Table], Any], capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert distances(roads(note=["x", "y"], name=["", "z"])) == [0, 1, 2]
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("others", "listed", "advice"),
    [
        ({"road_id": [3, 4]}, "'road_id'", "ids or dates by their looks"),
        ({"year": [1991, 2001]}, "'year'", "ids or dates by their looks"),
        ({"osmId": [3, 4], "toll": [2, 3]}, "'toll', 'osmId'", "pass weight='toll' to count that, or weight=1"),
        ({"built year": [3, 4], "ID": [1, 2], "toll": [2, 3], "lanes": [1, 1]}, "'toll', 'lanes', 'built year', 'ID'", "as weight='toll'"),
        ({"toll": [2, 3], "length m": [5, 6], "length km": [7, 8]}, None, "could both be the weight"),
    ],
)
@pytest.mark.parametrize("read", [lambda t: sr.edges(pd.DataFrame(t)), lambda t: sr.read_edges(io.StringIO(text(t)))])
def test_ids_and_years_are_listed_last_and_never_recommended(
    others: Table, listed: str | None, advice: str, read: Callable[[Table], sr.EdgeList]
) -> None:
    if listed is None:
        with pytest.raises(sr.GraphError, match=advice):
            read(roads(**others))
        return
    with pytest.warns(sr.AssumptionWarning) as caught:
        read(roads(**others))
    said = str(caught[0].message)
    assert caught[0].filename == __file__
    assert f"all have {listed}: " in said
    assert advice in said


def test_ids_and_years_by_their_looks() -> None:
    table = {
        "from": ["A", "B", "C", "D"],
        "to": ["B", "C", "D", "E"],
        "row": [0, 1, 2, 3],
        "way": [25, 41, 977, 978],
        "built": [1991, 1871, 2001, 1991],
        "toll": [2, 1, 4, 4],
        "height": [1.5, 2.5, 3.5, 4.5],
    }
    with pytest.warns(sr.AssumptionWarning, match="all have 'toll', 'height', 'row', 'way', 'built': pass one of them, as weight='toll'"):
        sr.edges(pd.DataFrame(table))


def test_lines_without_a_header_have_their_weight_in_the_third_place(tmp_path: Path) -> None:
    graph = sr.read_edges(io.StringIO("A,B,3\nB,C,4\n"))
    assert sr.apsp(graph)[0].tolist() == [0, 3, 7]
    with pytest.warns(sr.AssumptionWarning, match="all have 'road_id'"):
        graph = sr.read_edges(io.StringIO("road_id,start,end\n30,A,B\n41,B,C\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert sr.apsp(graph)[0].tolist() == [0, 1, 2]
    assert sr.apsp(graph, weight="road_id")[0].tolist() == [0, 30, 71]


class TestType:
    """Gephi writes in a column Type whether edges are directed."""

    @pytest.mark.parametrize("kind", ["Undirected", "UNDIRECTED", "Directed", "directed"])
    @pytest.mark.parametrize("title", ["Type", "type"])
    def test_one_kind(self, distances: Callable[[Table], Any], kind: str, title: str) -> None:
        table: Table = {"Source": ["B", "C"], "Target": ["A", "B"], title: [kind] * 2, "Weight": [3.0, 4.0]}
        both = kind.lower() == "undirected"
        found = distances(table)
        assert found == ([0, 3, 4] if both else [0, 3, np.inf])  # of B, A and C

    def test_both_kinds(self, distances: Callable[[Table], Any]) -> None:
        table: Table = {"Source": ["B", "C"], "Target": ["A", "B"], "Type": ["Undirected", "Directed"], "Weight": [3, 4]}
        assert distances(table) == [0, 3, np.inf]
        assert distances(table | {"Type": ["Directed", "undirected"]}) == [0, 3, 4]

    @pytest.mark.parametrize("ends", [("ABC", "BCC"), ([1, 2, 3], [2, 3, 3])])
    def test_an_undirected_row_is_an_edge_both_ways(self, ends: Any) -> None:
        table: Table = {"Source": list(ends[0]), "Target": list(ends[1]), "Type": ["Undirected", "Directed", "Undirected"]}
        table |= {"Weight": [3, 4, 5], "Label": ["x", "y", "z"]}
        a, b, c = range(3)
        for graph in (sr.edges(pd.DataFrame(table)), sr.read_edges(io.StringIO(text(table)))):
            assert graph.directed
            assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == [(a, b), (b, c), (c, c), (b, a)]
            assert list(graph.weights) == [3, 4, 5, 3]
            assert list(graph.columns["Label"]) == ["x", "y", "z", "x"]
            assert graph.lines in (None, [2, 3, 4, 2])
            assert sr.apsp(graph)[b].tolist() == [3, 0, 4]

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.booleans()), min_size=1))
    def test_rows_beside_networkx(self, rows: list[tuple[int, int, int, bool]]) -> None:
        table: Table = {"u": [r[0] for r in rows], "v": [r[1] for r in rows], "Weight": [r[2] for r in rows]}
        table["Type"] = ["Undirected" if r[3] else "Directed" for r in rows]
        graph = nx.MultiDiGraph()
        graph.add_weighted_edges_from((a, b, w) for u, v, w, both in rows for a, b in ([(u, v), (v, u)] if both else [(u, v)]))
        expected = nx.floyd_warshall_numpy(graph, sorted(graph))
        np.testing.assert_array_equal(sr.apsp(sr.edges(pd.DataFrame(table))), expected)
        np.testing.assert_array_equal(sr.apsp(sr.read_edges(io.StringIO(text(table)))), expected)

    def test_places(self) -> None:
        table = roads(Type=["Directed", "Mutual"], Weight=[3, 4])
        with pytest.raises(sr.GraphError, match=r"'Mutual' in row 1, and Directed or Undirected elsewhere; pass directed=False"):
            sr.edges(pd.DataFrame(table))
        with pytest.raises(sr.GraphError, match=r"the open file: .*'Mutual' in line 3"):
            sr.read_edges(io.StringIO(text(table)))

    def test_what_the_caller_says_goes_first(self) -> None:
        table = roads(Type=["Directed", "Undirected"], Weight=[3, 4])
        for directed in (True, False):
            assert sr.edges(pd.DataFrame(table), directed=directed).directed is directed
            assert sr.read_edges(io.StringIO(text(table)), directed=directed).directed is directed

    def test_other_types(self, distances: Callable[[Table], Any]) -> None:
        assert distances(roads(type=["primary", "secondary"], km=[3, 4])) == [0, 3, 7]
