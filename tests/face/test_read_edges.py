"""`read_edges`: graphs from files."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import io as scipy_io
from scipy import sparse

import semiring as sr
from semiring.cli import main
from semiring.files.dimacs import parse_dimacs

ROADS = "from,to,km,minutes,name\nA,B,125,85,\nB,C,160.5,,A1\n"


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    path = tmp_path / "roads.csv"
    path.write_text(ROADS)
    return path


def listed(graph: sr.EdgeList) -> list[tuple[Any, ...]]:
    return [(graph.labels[u], graph.labels[v], w) for u, v, w in zip(graph.sources, graph.targets, graph.weights, strict=True)]


class TestText:
    def test_columns_of_a_header(self, roads: Path) -> None:
        graph = sr.read_edges(roads, weight="km")
        assert listed(graph) == [("A", "B", 125), ("B", "C", 160.5)]
        assert graph.directed
        assert graph.lines == [2, 3]
        assert list(graph.columns) == ["minutes", "name", "km"]
        assert graph.columns["km"] == [125, 160.5]
        assert graph.columns["name"] == ["", "A1"]
        assert graph.columns["minutes"][0] == 85
        assert math.isnan(graph.columns["minutes"][1])

    def test_columns_that_are_named(self, roads: Path) -> None:
        assert listed(sr.read_edges(str(roads), source="to", target="from", weight="km"))[0] == ("B", "A", 125)
        assert listed(sr.read_edges(roads, weight=1)) == [("A", "B", 1), ("B", "C", 1)]
        both = sr.read_edges(roads, weight="km", directed=False, nodes="CBA")
        assert listed(both) == [("A", "B", 125), ("B", "C", 160.5)]
        assert not both.directed
        with pytest.raises(sr.GraphError, match="line 3: no weight, though the header has one"):
            sr.read_edges(roads, weight="minutes")

    @pytest.mark.parametrize(
        ("text", "options", "expected"),
        [
            ("a,b,km,t\nA,B,1,2\n", {"source": "a", "target": "b", "weight": "t"}, [("A", "B", 2)]),
            ("a,b,len\nA,B,2\n", {"source": "a", "target": "b"}, [("A", "B", 2)]),
            ("a,b\nA,B\n", {"source": "b", "target": "a"}, [("B", "A", None)]),
            ("a,b,t\nA,B,2\n", {"weight": "t"}, [("A", "B", 2)]),
            ("t,a,b\n2,A,B\n", {"weight": "t"}, [("A", "B", 2)]),
            ("A,B,2\n", {"weight": 1}, [("A", "B", 1)]),
            ("from,to,name\nA,B,x\n", {"weight": 1}, [("A", "B", 1)]),
            ("from,to,t,s\nA,B,1,2\n", {"weight": 1}, [("A", "B", 1)]),
            ("from,to,1\nA,B,7\n", {"weight": "1"}, [("A", "B", 7)]),
        ],
    )
    def test_which_column_is_what(self, text: str, options: dict[str, Any], expected: Any) -> None:
        assert listed(sr.read_edges(io.StringIO(text), **options)) == expected

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            (
                ROADS,
                {"weight": "Minutes"},
                r"line 1: weight='Minutes': there is no such column; did you mean 'minutes'\? There are 'from',",
            ),
            (ROADS, {"source": "from"}, "line 1: name both"),
            (ROADS, {"source": "from", "target": "from"}, "line 1: .* the same column, 'from'"),
            (
                "a,b,c,d\nA,B,1,2\n",
                {"weight": "d"},
                "line 1: no columns are called source and target; name them by source= and target=, of 'a'",
            ),
            ("a,b,c,d\nA,B,1,2\n", {}, "line 1: .* not 4 fields; for more columns, add a header that calls two of them source and target"),
            ("from,to,km,km\nA,B,1,2\n", {"weight": "km"}, "line 1: the columns 'km' and 'km' could both be the weight"),
            ("A,B,1\n", {"nodes": ["A"]}, "edge 0, .* has a vertex that is not in nodes: 'B'"),
        ],
    )
    def test_what_cannot_be_read(self, text: str, options: dict[str, Any], message: str) -> None:
        with pytest.raises(sr.GraphError, match=f"the open file(, |: ){message}"):
            sr.read_edges(io.StringIO(text), **options)

    def test_open_files(self, roads: Path) -> None:
        for mode in ("r", "rb"):
            with roads.open(mode) as file:
                assert listed(sr.read_edges(file, weight="km")) == listed(sr.read_edges(roads, weight="km"))
        assert listed(sr.read_edges(io.BytesIO("Z\xfcrich,Bern\n".encode("latin-1")), encoding="latin-1"))[0][0] == "Zürich"
        assert listed(sr.read_edges(io.StringIO("Zürich Bern 3\n")))[0] == ("Zürich", "Bern", 3)

    def test_compressed(self, roads: Path) -> None:
        packed = roads.with_name("roads.csv.gz")
        packed.write_bytes(gzip.compress(roads.read_bytes()))
        assert listed(sr.read_edges(packed, weight="km")) == listed(sr.read_edges(roads, weight="km"))
        for damaged in (packed.read_bytes()[:-9], ROADS.encode(), b""):
            packed.write_bytes(damaged)
            with pytest.raises(sr.GraphError, match=r"roads\.csv\.gz(: not a file that gzip has compressed|: the file has no edges)"):
                sr.read_edges(packed)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("https://example.org/roads.csv", r"an address, not a file; pass urllib\.request\.urlopen"),
        (ROADS, r"not the name of a file; pass io\.StringIO\(text\)"),
        ("roads.xyz", r"the name must end in one of \.csv, .*\.graphml"),
        ("roads.dot", r"Graphviz's DOT is not read; pass the NetworkX graph to which networkx\.nx_pydot\.read_dot converts it"),
        ("roads.xlsx", r"a spreadsheet is not read; save it as CSV"),
        ("roads.gdf.gz", r"GUESS's format is not read; save it as GraphML or as an edge list"),
        ("roads.npy", r"a matrix, not a list of edges; .* numpy\.load"),
        (7, "an int is not a file; pass a path"),
        (np.eye(2), "is not a file"),
    ],
)
def test_what_is_no_file(file: Any, message: str) -> None:
    with pytest.raises(sr.GraphError, match=message):
        sr.read_edges(file)


@pytest.mark.parametrize("name", ["none.csv", "none.mtx", "none.graphml", "-"])
def test_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises((FileNotFoundError, sr.GraphError)) as caught:
        sr.read_edges(tmp_path / name)
    assert isinstance(caught.value, FileNotFoundError) or name == "-"


GRAPHS = {
    "undirected": nx.Graph([("a", "b", {"weight": 2.5, "length": 3}), ("b", "c", {"weight": 1.0, "length": 4})]),
    "directed": nx.DiGraph([("b", "a", {"weight": 2.5, "length": 3}), ("b", "c", {"weight": 1.0, "length": 4})]),
    "parallel": nx.MultiDiGraph([("a", "b", {"weight": 2.5, "length": 3}), ("a", "b", {"weight": 1.0, "length": 4})]),
    "integers": nx.DiGraph([(10, 2, {"weight": 2.5, "length": 3}), (2, 3, {"weight": 1.0, "length": 4})]),
}
for _graph in GRAPHS.values():
    _graph.add_node(77 if 10 in _graph else "alone")


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
@pytest.mark.parametrize("suffix", ["graphml", "gml", "gexf", "graphml.gz"])
def test_files_of_networkx(graph: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph.{suffix}"
    {"graphml": nx.write_graphml_xml, "gml": nx.write_gml, "gexf": nx.write_gexf}[suffix.partition(".")[0]](graph, path)
    found = sr.read_edges(path)
    assert found.directed == graph.is_directed()
    assert set(found.labels) == set(graph)
    order = sorted(graph) if 10 in graph else list(graph)
    expected = sr.apsp(sr.edges(graph.edges(data="weight"), directed=graph.is_directed(), nodes=order))
    np.testing.assert_array_equal(sr.apsp(sr.read_edges(path, nodes=order)), expected)
    assert found.labels == tuple(order) or 10 not in graph
    assert sorted(found.columns["length"]) == [3, 4]
    lengths = sr.apsp(sr.edges(graph.edges(data="length"), directed=graph.is_directed(), nodes=order))
    np.testing.assert_array_equal(sr.apsp(sr.read_edges(path, nodes=order, weight="length")), lengths)
    with pytest.raises(sr.GraphError, match=r"no edge has the attribute or column 'lenght'; did you mean 'length'\? Edges have "):
        sr.read_edges(path, weight="lenght")
    refused: list[dict[str, Any]] = [{"directed": True}, {"source": "a", "target": "b"}, {"encoding": "utf-8"}]
    for option in refused:
        with pytest.raises(sr.GraphError, match=rf"{next(iter(option))}= is for edge lists as text, .*leave out"):
            sr.read_edges(path, **option)


@pytest.mark.parametrize("directed", [True, False])
def test_lists_of_networkx(directed: bool, tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(9, 0.4, seed=1, directed=directed)
    for u, v, data in graph.edges(data=True):
        data["km"] = u + 2 * v
    nx.write_edgelist(graph, tmp_path / "a.edgelist")
    nx.write_weighted_edgelist(nx.Graph(graph) if not directed else graph, tmp_path / "b.edgelist")
    nx.write_adjlist(graph, tmp_path / "c.adjlist")
    hops = sr.apsp(sr.edges(graph.edges, directed=directed, nodes=range(9)))
    for name in ("a.edgelist", "c.adjlist"):
        found = sr.read_edges(tmp_path / name, directed=directed, weight=1, nodes=range(9))
        np.testing.assert_array_equal(sr.apsp(found), hops)
    lengths = sr.apsp(sr.edges(graph.edges(data="km"), directed=directed, nodes=range(9)))
    np.testing.assert_array_equal(sr.apsp(sr.read_edges(tmp_path / "a.edgelist", directed=directed, weight="km", nodes=range(9))), lengths)


def test_attributes_that_may_be_meant_are_named(tmp_path: Path) -> None:
    path = tmp_path / "streets.graphml"
    graph = nx.MultiDiGraph([("a", "b", {"length": "12.5", "name": "Main"}), ("b", "a", {"length": "7", "name": "Main"})])
    nx.write_graphml_xml(graph, path)
    with pytest.warns(sr.AssumptionWarning, match=r"each edge counts 1, .*pass weight='length' to count that"):
        assert list(sr.read_edges(path).weights) == [1, 1]
    assert list(sr.read_edges(path, weight="length").weights) == [12.5, 7]  # which some programs write as texts
    assert list(sr.read_edges(path, weight=1).weights) == [1, 1]
    with pytest.raises(sr.DTypeError, match="is 'Main', which is no real number"):
        sr.read_edges(path, weight="name")
    graph.add_edge("b", "c", weight=5)
    nx.write_graphml_xml(graph, path)
    with pytest.raises(sr.GraphError, match=r"streets.graphml: 2 of 3 edges have no 'weight' though others do, such as edge "):
        sr.read_edges(path)


@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".gexf", ".net"])
@pytest.mark.parametrize("content", ["", "<graphml", "graph [ node", "no such thing\0"])
def test_damaged_files_of_networkx(suffix: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(content)
    with pytest.raises(sr.GraphError, match=re.escape(f"{path}: not a {suffix} file (")):
        sr.read_edges(path)


@pytest.mark.parametrize("content", ["", "\n", "# nothing\n"])
def test_a_list_of_neighbours_without_any(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.adjlist"
    path.write_text(content)
    with pytest.raises(sr.GraphError, match=r"not a \.adjlist file \(the file has no vertices\)"):
        sr.read_edges(path)


def test_pajek(tmp_path: Path) -> None:
    path = tmp_path / "a.net"
    path.write_text('*Vertices 2\n1 "a"\n2 "b"\n*Arcs\n1 2 3\n')
    assert listed(sr.read_edges(path)) == [("a", "b", 3)]
    path.write_text("*vertices 0\n")
    assert sr.read_edges(path).labels == ()


PAJEK = '*Vertices 3\n1 "a"\n2 "b b"\n3 c 0.1 0.2 box\n'


@pytest.mark.parametrize(
    ("lines", "directed", "expected"),
    [
        ("*Arcslist\n1 2 3\n", True, [("a", "b b", 1), ("a", "c", 1)]),
        ("*Edgeslist\n1 2 3\n", False, [("a", "b b", 1), ("a", "c", 1)]),
        ("*Matrix\n0 2.5 0\n0 0 0\n0 0 7\n", True, [("a", "b b", 2.5), ("c", "c", 7)]),
        ("*Arcs\n1 2 3\n*Edges\n% both ways\n1 3 7\n", True, [("a", "b b", 3), ("a", "c", 7), ("c", "a", 7)]),
        ('*Edges :2 "r r"\n1 2 7\n\n*Arcs\n', False, [("a", "b b", 7)]),
        ("*Arcs\n", True, []),
    ],
)
def test_sections_of_pajek(lines: str, directed: bool, expected: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.net"
    path.write_text(f"*Network roads\n{PAJEK}{lines}")
    graph = sr.read_edges(path)
    assert (graph.labels, graph.directed) == (("a", "b b", "c"), directed)
    assert sorted(listed(graph)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAJEK, "line 4: the file ends before 3 vertices and a section"),
        (f"{PAJEK}foo bar\nbaz\n", "line 5: 'foo bar' is not an edge"),
        (f"{PAJEK}1 2 3\n", "line 5: '1 2 3' is not an edge: .* after \\*Arcs or"),
        (f"{PAJEK}*Arc\n1 2 3\n", "line 5: '\\*Arc' begins no section of edges; use \\*Arcs, \\*Edges"),
        (f"{PAJEK}*Arcs\n1 9 3\n", "line 6: '1 9 3' is not an edge"),
        (f"{PAJEK}*Arcs\n1 2 x\n", "line 6: '1 2 x' is not an edge"),
        (f"{PAJEK}*Matrix\n0 1 0\n", "line 6: the matrix ends before 3 rows"),
        (f"{PAJEK}*Matrix\n0 1\n", "line 6: '0 1' is none of the 3 rows"),
        ("*Vertices 2\n1 a\n*Arcs\n1 2\n", "line 3: '\\*Arcs' is not the number and the label of another vertex"),
        ("*Vertices 2\n1 a\n2 a\n*Arcs\n1 2\n", "line 3: '2 a' is not the number"),
        ("*Vertices 2\n1 a\n2 O'Hare\n", "line 3: the fields of .* cannot be split"),
        (f"roads\n{PAJEK}*Arcs\n", "line 1: 'roads' is not \\*Vertices"),
    ],
)
def test_what_pajek_has_not(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.net").write_text(text)
    with pytest.raises(sr.GraphError, match=rf"a\.net, {message}"):
        sr.read_edges(tmp_path / "a.net")


DIMACS = "c roads\np sp 4 3\nc arcs\na 1 2 7\n\na 2 3 4\na 3 1 2.5\n"


@pytest.mark.parametrize("suffix", ["gr", "gr.gz"])
def test_dimacs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(DIMACS.encode()) if suffix == "gr.gz" else DIMACS.encode())
    graph = sr.read_edges(path)
    assert (graph.labels, graph.directed) == ((1, 2, 3, 4), True)
    assert listed(graph) == [(1, 2, 7), (2, 3, 4), (3, 1, 2.5)]
    assert listed(sr.read_edges(path, weight=1, nodes=[4, 3, 2, 1])) == [(1, 2, 1), (2, 3, 1), (3, 1, 1)]
    with pytest.raises(sr.GraphError, match=r"directed= is for edge lists as text, and a \.gr file defines which edges go both ways"):
        sr.read_edges(path, directed=False)


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 1)])
def test_dimacs_without_arcs(n: int, expected: int, tmp_path: Path) -> None:
    (tmp_path / "a.gr").write_text(f"p sp {n} 0\n")
    assert len(sr.read_edges(tmp_path / "a.gr").labels) == expected


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(1, n)] * 2, st.integers(0, 2**53))))))
def test_dimacs_of_any_arcs(problem: Any) -> None:
    n, arcs = problem
    found = parse_dimacs(f"p sp {n} {len(arcs)}\n" + "".join(f"a {u} {v} {w}\n" for u, v, w in arcs))
    assert (listed(found), found.labels) == (arcs, tuple(range(1, n + 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no line begins with p"),
        ("p tw 3 2\n1 2\n", "line 1: 'p tw 3 2' is not 'p sp' and the numbers of vertices and arcs"),
        ("p sp 3\n", "line 1: 'p sp 3' is not 'p sp'"),
        ("p sp 3 x\n", "line 1: 'p sp 3 x' is not 'p sp'"),
        ("p sp 3 1\ne 1 2\n", "line 2: 'e 1 2' is not an arc such as 'a 1 2 7'"),
        ("p sp 3 1\na 1 2\n", "line 2: 'a 1 2' is not an arc: a, two vertices from 1 to 3"),
        ("p sp 3 2\na 1 2 3\na 1 4 3\n", "line 3: 'a 1 4 3' is not an arc"),
        ("p sp 3 1\na 0 2 3\n", "line 2: 'a 0 2 3' is not an arc"),
        ("p sp 3 1\na 1.5 2 3\n", "line 2: 'a 1.5 2 3' is not an arc"),
        ("p sp 3 1\na 1 2 3_0\n", "line 2: 'a 1 2 3_0' is not an arc"),
        (f"p sp 3 1\na {10**30} 2 3\n", f"line 2: 'a {10**30} 2 3' is not an arc"),
        ("p sp 3 1\na 1_0 2 3\n", "line 2: 'a 1_0 2 3' is not an arc"),
        ("p sp 3 2\na 1 2 3\n", "line 1: the problem announces 2 arcs, and the file has 1; it may be incomplete"),
    ],
)
def test_what_dimacs_has_not(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.gr").write_text(text)
    with pytest.raises(sr.GraphError, match=rf"a\.gr, {message}"):
        sr.read_edges(tmp_path / "a.gr")


def test_ncol(tmp_path: Path) -> None:
    path = tmp_path / "a.ncol"
    path.write_text("a b 3\nb c 4\nfrom to 1\n")
    with pytest.warns(sr.AssumptionWarning, match=r"the edges go both ways, as \.ncol is defined; pass directed=True if"):
        assert not sr.read_edges(path).directed
    for directed in (False, True):
        graph = sr.read_edges(path, directed=directed)
        assert graph.directed is directed
        assert listed(graph) == [("a", "b", 3), ("b", "c", 4), ("from", "to", 1)]
    assert main(["apsp", str(path), "--directed", "--from", "b", "--to", "a"]) == 0
    path.write_text("0 1 2\n1 0 3\n2 3 0\n")
    assert listed(sr.read_edges(path, directed=True)) == [(0, 1, 2), (1, 0, 3), (2, 3, 0)]


class TestJSON:
    @pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
    @pytest.mark.parametrize("form", ["links", "edges", "adjacency", "cytoscape"])
    def test_what_networkx_writes(self, graph: Any, form: str, tmp_path: Path) -> None:
        if form == "adjacency":
            data = nx.adjacency_data(graph)
        elif form == "cytoscape":
            data = nx.cytoscape_data(graph)
        else:
            data = nx.node_link_data(graph, edges=form)
        path = tmp_path / "a.json"
        path.write_text(json.dumps(data))
        order = sorted(graph) if 10 in graph else list(graph)
        found = sr.read_edges(path, nodes=order)
        assert found.directed == graph.is_directed()
        expected = sr.apsp(sr.edges(graph.edges(data="weight"), directed=graph.is_directed(), nodes=order))
        np.testing.assert_array_equal(sr.apsp(found), expected)
        assert sorted(found.columns["length"]) == [3, 4]

    def test_directions(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "a.json"
        data: dict[str, Any] = {"nodes": [{"name": "x"}, {"name": "y"}], "links": [{"source": 0, "target": 1, "value": 3}]}
        path.write_text(json.dumps(data))
        with pytest.raises(sr.GraphError, match="does not say whether edges lead one way; pass directed=True, or directed=False"):
            sr.read_edges(path, weight="value")
        for directed in (False, True):
            graph = sr.read_edges(path, weight="value", directed=directed)
            assert (listed(graph), graph.directed) == ([(0, 1, 3)], directed)
        assert main(["apsp", str(path), "--weight", "value"]) == 2
        assert "pass --directed, or --undirected if all go both ways" in capsys.readouterr().err
        assert main(["apsp", str(path), "--weight", "value", "--undirected", "--from", "1", "--to", "0"]) == 0
        path.write_text(json.dumps(data | {"directed": True}))
        assert sr.read_edges(path, weight="value").directed
        with pytest.raises(sr.GraphError, match="says that edges lead one way; leave out directed=False"):
            sr.read_edges(path, directed=False)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ([], "JSON without nodes is not read"),
            ({"graph": {"nodes": {}, "edges": []}}, "JSON Graph Format is not read, but node-link data are"),
            ({"directed": True, "nodes": []}, r"not a \.json file \(it has neither links nor edges"),
            ({"directed": True, "nodes": [], "links": [], "edges": []}, "it has both links and edges"),
            ({"directed": True, "nodes": [{"id": 1}], "links": [{"from": 1, "to": 1}]}, "the edge .* has no source or no target"),
            ({"directed": True, "nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}, "2 ends an edge, and is no node"),
            ({"directed": True, "nodes": [{"id": 1}, {"id": 1}], "links": []}, "two nodes have one id"),
            ({"directed": True, "nodes": 7, "links": []}, r"not a \.json file"),
            ("{", "JSON without nodes"),
        ],
    )
    def test_refusals(self, data: Any, message: str, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(json.dumps(data))
        with pytest.raises(sr.GraphError, match=message):
            sr.read_edges(path)
        for text in ("", "{", "[" * 100_000):
            path.write_text(text)
            with pytest.raises(sr.GraphError, match=r"not a \.json file"):
                sr.read_edges(path)


def test_further_formats_of_networkx(tmp_path: Path) -> None:
    graph = nx.cycle_graph(5)
    nx.write_graph6(graph, tmp_path / "a.g6")
    nx.write_sparse6(graph, tmp_path / "a.s6")
    (tmp_path / "a.lgr").write_text("LEDA.GRAPH\nstring\nint\n-1\n2\n|{a}|\n|{b}|\n1\n1 2 0 |{7}|\n")
    for name in ("a.g6", "a.s6"):
        np.testing.assert_array_equal(sr.apsp(sr.read_edges(tmp_path / name)), nx.floyd_warshall_numpy(graph))
    assert listed(sr.read_edges(tmp_path / "a.lgr", weight="label")) == [("a", "b", 7)]
    for name in ("a.g6", "a.s6", "a.lgr"):
        (tmp_path / name).write_text("\n\x01")
        with pytest.raises(sr.GraphError, match="not a"):
            sr.read_edges(tmp_path / name)


def test_decimal_commas() -> None:
    german = "von;nach;Gewicht\nA;B;1,500\nB;C;2,250\n"
    options: dict[str, Any] = {"source": "von", "target": "nach", "weight": "Gewicht"}
    with pytest.raises(
        sr.GraphError, match=r"line 2: the weight '1,500' is not a number; if the comma is the decimal mark, pass decimal=','"
    ):
        sr.read_edges(io.StringIO(german), **options)
    assert listed(sr.read_edges(io.StringIO(german), **options, decimal=",")) == [("A", "B", 1.5), ("B", "C", 2.25)]
    assert listed(sr.read_edges(io.StringIO('A,B,"1,5"\n'), decimal=",")) == [("A", "B", 1.5)]
    further = sr.read_edges(io.StringIO("from;to;km;toll\nA;B;1,5;2,5\nB;C;2;3\n"))
    assert (further.columns["toll"], further.weights) == ([2.5, 3], [1.5, 2])
    with pytest.raises(sr.GraphError, match=r"line 2: '1\.500' has a decimal point, though decimal=','"):
        sr.read_edges(io.StringIO("A;B;1,5\nB;C;1.500\n"), decimal=",")
    with pytest.raises(sr.GraphError, match="line 1: ';' and ',' could both separate"):
        sr.read_edges(io.StringIO("A;B;1,5\n"), decimal=".")
    with pytest.raises(sr.GraphError, match=r"decimal= is '\.' or ',', not ';'"):
        sr.read_edges(io.StringIO(german), decimal=";")


def test_gml_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.gml"
    path.write_text("graph [ directed 1 node [ id 4 ] node [ id 2 ] edge [ source 4 target 2 weight 3 ] ]")
    assert listed(sr.read_edges(path)) == [(4, 2, 3)]


class TestMatrixMarket:
    @pytest.mark.parametrize("suffix", ["mtx", "mtx.gz"])
    @pytest.mark.parametrize("symmetric", [True, False])
    def test_sparse(self, symmetric: bool, suffix: str, tmp_path: Path) -> None:
        matrix = sparse.random_array((12, 12), density=0.2, rng=np.random.default_rng(0), format="coo")
        matrix = (matrix + matrix.T).tocoo() if symmetric else matrix
        scipy_io.mmwrite(tmp_path / "a.mtx", matrix)
        path = tmp_path / f"a.{suffix}"
        if suffix == "mtx.gz":
            path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
        found = sr.read_edges(path)
        assert found.directed is not symmetric
        assert found.labels == tuple(range(12))
        np.testing.assert_array_equal(sr.apsp(found), sr.apsp(matrix))
        hops = sr.apsp(sr.read_edges(path, weight=1))
        np.testing.assert_array_equal(hops, sparse.csgraph.shortest_path(matrix.tocsr(), unweighted=True))

    @pytest.mark.parametrize(
        ("content", "options", "message"),
        [
            ("array real general\n1 1\n1\n", {}, "a dense matrix, not a list of edges; pass scipy.io.mmread"),
            ("coordinate real general\n2 3 1\n1 3 1\n", {}, "a graph needs a square matrix"),
            ("coordinate real general\n2 2 1\n1 2 1\n", {"weight": "km"}, "weight= is for edge lists as text"),
            ("coordinate real general\n2 2 1\n1 2 1\n", {"directed": False}, "a matrix defines which edges go both ways"),
            ("coordinate real general\n2 2 1\n1 2 1_0\n", {}, "line 3: '1_0' is not a number"),
            ("coordinate complex general\n2 2 1\n1 2 1 1\n", {}, "no real number"),
            (f"coordinate real general\n{10**12} {10**12} 1\n1 2 1\n", {}, "the graph has 1,000,000,000,000 vertices, and their names"),
            (f"array real general\n{10**9} {10**9}\n1\n", {}, r"a\.mtx: (the announced content does not fit the memory|not a)"),
        ],
    )
    def test_refusals(self, content: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
        path = tmp_path / "a.mtx"
        path.write_text(f"%%MatrixMarket matrix {content}")
        with pytest.raises((sr.GraphError, sr.DTypeError, sr.TooLargeError), match=message):
            sr.read_edges(path, **options)


@pytest.mark.parametrize("name", ["a.gml", "a.json", "a.net", "a.g6", "a.adjlist"])
def test_without_networkx(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.write_text("graph [ ]")
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    with pytest.raises(sr.SemiringError, match=r'needs networkx, which is not installed: pip install -e "\.\[graphs\]"'):
        sr.read_edges(path)


class TestCommandLine:
    def test_a_column_by_its_name(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "roads.csv"
        path.write_text("from,to,km,minutes\nA,B,125,85\nB,C,160,105\n")
        for options, distance in ((["--weight", "minutes"], 190), (["--weight", "km"], 285), (["--weight", "1"], 2)):
            assert main(["apsp", str(path), "--from", "A", "--to", "C", *options]) == 0
            assert capsys.readouterr().out.startswith(f"{distance}: ")
        assert main(["apsp", str(path), "--weight", "minuten"]) == 2
        assert "--weight='minuten': there is no such column; did you mean 'minutes'?" in capsys.readouterr().err
        path.write_text("from,to,minutes,toll\nA,B,125,85\n")
        assert main(["apsp", str(path), "--from", "A", "--to", "B"]) == 0
        assert capsys.readouterr() == ("125: A → B\n", "")

    def test_graphs_of_networkx(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "streets.graphml"
        nx.write_graphml_xml(nx.Graph([("a", "b", {"length": 12.5})]), path)
        assert main(["apsp", str(path), "--from", "b", "--to", "a", "--weight", "length"]) == 0
        assert capsys.readouterr().out == "12.5: b → a\n"
        assert main(["apsp", str(path), "--from", "b", "--to", "a"]) == 0
        assert "semiring: warning: " in capsys.readouterr().err
        assert main(["apsp", str(path), "--undirected"]) == 2
        assert "leave out --undirected" in capsys.readouterr().err
