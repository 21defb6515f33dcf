"""The files that the command line reads."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import MIN_PLUS
from semiring.common.errors import AssumptionWarning, GraphError, SemiringError, TooLargeError
from semiring.files.edge_text import HeaderWarning, parse
from semiring.files.fields import Asked
from semiring.files.reading import read_edges, read_file
from semiring.graphs import EdgeList, read_graph

INF = np.inf


def read(path: Path, content: str, **options: Any) -> EdgeList:
    path.write_text(content, encoding="utf-8")
    graph = read_file(path, **options)
    assert isinstance(graph, EdgeList)
    return graph


def listed(graph: EdgeList) -> list[tuple[Any, ...]]:
    ends = zip(graph.sources, graph.targets, graph.weights, strict=True)
    return [(graph.labels[u], graph.labels[v], w) for u, v, w in ends]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "a,b,1\nb,c,2.5\n", [("a", "b", 1), ("b", "c", 2.5)]),
        ("a.csv", "a,b\nb,c", [("a", "b", None), ("b", "c", None)]),
        ("a.csv", "a,b,3,\nb,c,1,,\n", [("a", "b", 3), ("b", "c", 1)]),
        ("a.csv", "a,b,\nb,c\n", [("a", "b", None), ("b", "c", None)]),
        ("a.csv", "a,b,1\rb,c,2\r", [("a", "b", 1), ("b", "c", 2)]),
        ("a.csv", ",,\na,b,1\n , ,\n", [("a", "b", 1)]),
        ("a.csv", "\ufeffsource,target\r\na,b\r\n", [("a", "b", None)]),
        ("a.csv", "source,target,weight\na,b,3\n", [("a", "b", 3)]),
        ("a.csv", "Weight,Target,Source\n3,b,a\n", [("a", "b", 3)]),
        ("a.csv", "carrier,from,to,stops,km\nXY,a,b,0,3\n", [("a", "b", 3)]),
        ("a.csv", "from,to,minutes\na,b,3\n", [("a", "b", 3)]),
        ("a.csv", ",u,v\n0,a,b\n1,b,c\n", [("a", "b", None), ("b", "c", None)]),
        ("a.csv", "from,to,time,weight\na,b,3,4\n", [("a", "b", 4)]),
        ("a.csv", "u,v,1\nv,w,2\n", [("u", "v", 1), ("v", "w", 2)]),
        ("a.csv", "u,v,w\na,b,2\n", [("a", "b", 2)]),
        ("a.csv", "u,v\nv,w\n", [("u", "v", None), ("v", "w", None)]),
        ("a.csv", "start,end\nstart,a\n", [("start", "end", None), ("start", "a", None)]),
        ("a.csv", "from,to,2020\na,b,3\n", [("from", "to", 2020), ("a", "b", 3)]),
        ("a.csv", "from,to,note,more\na,b,nice,x\n", [("a", "b", None)]),
        ("a.csv", "a;b;3\n", [("a", "b", 3)]),
        ("a.csv", "a\tb\t3\n", [("a", "b", 3)]),
        ("a.csv", "a,\tb,\t3\n", [("a", "b", 3)]),
        ("a.csv", '"a;b",c,3\n', [("a;b", "c", 3)]),
        ("a.csv", '"#1","#2",3\n', [("#1", "#2", 3)]),
        ("a.csv", 'a,"b ""x""",3\n', [("a", 'b "x"', 3)]),
        ("a.csv", "a\x1b[31m,b\x85c\u2028d\x0be,3\n", [("a\x1b[31m", "b\x85c\u2028d\x0be", 3)]),
        ("a.csv", "a\u00a0,b,3\na,b,1\n", [("a\u00a0", "b", 3), ("a", "b", 1)]),
        ("a.csv", '"New York, NY", "Boston, MA", 306\n', [("New York, NY", "Boston, MA", 306)]),
        ("a.csv", "# roads\n\na, b, 3\n  \n#end\n", [("a", "b", 3)]),
        ("a.csv", "a;b;1,5\nb;c;1,500\n", [("a", "b", 1.5), ("b", "c", 1.5)]),
        ("a.csv", "Source;Target;Weight\n1,5;2,5;,25\n", [("1,5", "2,5", 0.25)]),
        ("a.tsv", "km\tu\tv\tt\n7\ta\tb\t1,5\n2,25\tb\tc\t1,5\n", [("a", "b", 7), ("b", "c", 2.25)]),
        ("a.txt", "0,0 0,1 3\n", [("0,0", "0,1", 3)]),
        ("a.csv", "a,b,inf\nb,a,-1e3\n", [("a", "b", INF), ("b", "a", -1000.0)]),
        ("a.csv", "10,2,1\n2,3,1\n", [(10, 2, 1), (2, 3, 1)]),
        ("a.csv", "\u00a0#,b,3\n#c\n \t#d\n", [("\u00a0#", "b", 3)]),
        ("a.csv", "007,2\n", [("007", "2", None)]),
        ("a.csv", "a,2\n", [("a", "2", None)]),
        ("a.csv", "1_0,٣\n", [("1_0", "٣", None)]),
        ("a.csv", f"{2**64 - 1},{2**64 - 2}\n", [(2**64 - 1, 2**64 - 2, None)]),
        ("a.csv", f"{2**64},1\n", [(str(2**64), "1", None)]),
        ("a.csv", "9" * 5000 + ",1\n", [("9" * 5000, "1", None)]),
        ("a.csv", f"a,b,{10**30}\nb,a,-0\n", [("a", "b", 10**30), ("b", "a", 0)]),
        ("a.csv", "a,b,+5\nb,c,5.\nc,d,.5\nd,e,1E2\n", [("a", "b", 5), ("b", "c", 5), ("c", "d", 0.5), ("d", "e", 100)]),
        ("a.csv", "-1,2\n", [("-1", "2", None)]),
        ("a.csv", "a,b,1\na,b,2\na,a,3\n", [("a", "b", 1), ("a", "b", 2), ("a", "a", 3)]),
        ("a.tsv", "a\tb\t3\nb\ta b\t4\t\n", [("a", "b", 3), ("b", "a b", 4)]),
        ("a.tsv", "a\tb,c;d\n", [("a", "b,c;d", None)]),
        ("a.txt", "# Nodes: 2\n0 1 2\n 1\t0  3 \n", [(0, 1, 2), (1, 0, 3)]),
        ("a.txt", "(0,0) a\u00a0b 1\n", [("(0,0)", "a\u00a0b", 1)]),
        ("A.CSV", "a,b\n", [("a", "b", None)]),
    ],
)
def test_edge_lists(tmp_path: Path, name: str, content: str, expected: list[tuple[Any, ...]]) -> None:
    graph = read(tmp_path / name, content)
    assert listed(graph) == expected
    assert graph.directed


def test_integers_are_vertices_in_order(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "2,0\n1,2\n0,1\n").labels == (0, 1, 2)
    assert read(tmp_path / "a.csv", "b,a\n").labels == ("b", "a")


def test_undirected(tmp_path: Path) -> None:
    assert not read(tmp_path / "a.csv", "a,b\n", directed=False).directed


NO_NUMBERS = [
    "1_000",
    "12 km",
    "0x10",
    "None",
    "1,5",
    "1 000",
    "--1",
    "1e",
    "1e5.0",
    "$5",
    "5 €",
    "n/a",
    "?",
    "٣",
    "５",
    "−5",
    "nan",
    "2020-01-01",
    "true",
]
NO_FLOATS = ["1e400", "-1e400", "1e-400", "0." + 400 * "0" + "1", 400 * "9" + ".", "9" * 5000]


@pytest.mark.sampled(68)
@pytest.mark.parametrize("weight", NO_NUMBERS + NO_FLOATS)
@pytest.mark.parametrize("line", [1, 2])
@pytest.mark.parametrize("ends", ["a,b", "c,d", "u,v", "from,to"])
def test_a_line_whose_weight_is_no_number(tmp_path: Path, weight: str, line: int, ends: str) -> None:
    lines = ["a,b,1", "a,b,1"]
    lines[line - 1] = f'{ends},"{weight}"'
    with pytest.raises(GraphError, match=rf"a\.csv, line {line}: the weight .*({re.escape(weight[:9])})"):
        read(tmp_path / "a.csv", "\n".join(lines))
    with pytest.raises(GraphError, match=r"a\.csv, line 1: the weight"):
        read(tmp_path / "a.csv", lines[line - 1])


def test_a_header_that_names_nothing_known_is_said(tmp_path: Path) -> None:
    for content, title in (
        ("town,other,how far\na,b,3\n", "town, other, how far"),
        ("town,other,km\na,b,3\n", "town, other, km"),
        ("from,town,km\na,b,3\n", "from, town, km"),
        ("u,v\na,b\n", "u, v"),
    ):
        with pytest.warns(HeaderWarning, match=rf"a\.csv, line 1 is read as a header: {title}"):
            assert listed(read(tmp_path / "a.csv", content, **({"weight": 1} if "far" in title else {})))[0][:2] == ("a", "b")
    with pytest.warns(HeaderWarning) as caught:
        read_edges(tmp_path / "a.csv")
    assert caught[0].filename == __file__


def test_names_above_integers_may_be_a_header(tmp_path: Path) -> None:
    with pytest.warns(AssumptionWarning, match=r"line 1 is read as an edge: a, b; if it is a header, pass source='a', target='b'"):
        assert len(read(tmp_path / "a.csv", "a,b\n0,1\n1,2\n2,3\n").weights) == 4
    assert listed(read(tmp_path / "a.csv", "a,b\n0,1\n1,2\n", source="a", target="b")) == [(0, 1, None), (1, 2, None)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # A header is like no other line.
        ("a.csv", "a,b,far\nb,c,3\n", "line 1: the weight 'far' is not a number"),
        ("a.csv", "a,b,far\nc,d,near\n", "line 1: the weight 'far' is not a number"),
        ("a.csv", "a,b,far\n", "line 1: the weight 'far' is not a number"),
        ("a.csv", "a,,far\nc,d,3\n", "line 1: an edge needs a source and a target"),
        ("a.csv", "u,v,far\nv,x,3\n", "line 1: the weight 'far' is not a number"),
        ("a.csv", "source,target,weight\na,b,1\nsource,target,weight\n", "line 3: the weight 'weight' is not a number"),
        ("a.csv", "from,to,minutes\na,b,x\n", "line 2: the weight 'x' is not a number"),
        ("a.csv", "from,to\n", "line 1: a header without edges after it"),
        # One column is the weight.
        ("a.csv", "from,to,distance,time\na,b,3,4\n", "line 1: the columns 'distance' and 'time' could both be the weight"),
        ("a.csv", "from,to,km,Minutes\na,b,3,4\n", "line 1: the columns 'km' and 'Minutes' could both be the weight; pass weight='km'"),
        ("a.csv", "from,start,to,km\na,b,c,4\n", "line 1: the columns 'from' and 'start' could both be the source"),
        # All lines have a weight, or none.
        ("a.csv", "a,b,3\nb,c\n", "line 2: no weight, though line 1 has one"),
        ("a.csv", "a,b,3\n\nb,c,\n", "line 3: no weight, though line 1 has one"),
        (
            "a.csv",
            "a,b\nb,c,3\n",
            "line 1: no weight, though line 2 has one, for the edge from 'a' to 'b'; fill it in, leave",
        ),
        (
            "a.csv",
            "a,b,NaN\n",
            "line 1: the weight 'NaN' is not a number, for the edge from 'a' to 'b'; fill it in",
        ),
        ("a.csv", "from,to,km\na,b,3\na,c,NA\n", "line 3: the weight 'NA' is not a number, for the edge from 'a' to 'c'; fill it in"),
        # Both ends are named, or none.
        (
            "a.csv",
            "from,start,km\na,b,5\n",
            "line 1: a header, but which columns hold the two ends of each edge? Name them by",
        ),
        ("a.csv", "town,from,km\na,b,5\n", "line 1: a header, but which columns"),
        ("a.csv", "to,town,how far\na,b,5\n", "line 1: a header, but which columns"),
        ("a.csv", "source,target,weight\na,b\n", "line 2: no weight, though the header has one"),
        ("a.csv", "from,to,minutes\na,b,\n", "line 2: no weight"),
        # All fields are used.
        ("a.csv", "source,target,weight\na,b,1,500\n", "line 2: the header has 3, not 4 fields"),
        ("a.csv", "from,to\na,b,3\n", "line 2: the header has 2, not 3 fields"),
        ("a.csv", "a,b,1\na,b,1,500\n", "line 2: an edge is source, target and perhaps a weight, not 4 fields"),
        ("a.csv", "a b 3\n", "line 1: an edge is source, target and perhaps a weight, not 1 field"),
        ("a.tsv", "\tb\t3\n", "line 1: an edge needs a source and a target"),
        ("a.csv", "\tb\t3\n", "line 1: an edge needs a source and a target"),
        ("a.txt", "a,b,3\n", "line 1: an edge is"),
        # One separator.
        ("a.csv", "1;2,3;4\n", "line 1: ';' and ',' could both separate the fields"),
        ("a.csv", "a;x,b,3\n", "line 1: ';' and ',' could both"),
        ("a.csv", "New York, NY\tBoston\n", "line 1: '\\t' and ',' could both"),
        ("a.csv", "a;b;1,500\n", "line 1: the weight '1,500' is not a number; if the comma is the decimal mark, pass decimal=','; if"),
        ("a.csv", "von;nach;km\na;b;1,500\n", "line 2: the weight '1,500' is not a number; if the comma is the decimal mark"),
        ("a.csv", "a;b;1,5\nb;c;1.5\n", "line 1: the weight '1,5' is not a number; if the comma is the decimal mark"),
        ("a.txt", "a, b, 3\n", "line 1: spaces separate the fields"),
        # A line is a line.
        ("a.csv", '"a,b,1\nb,c,2\n"c,d,3\n', "line 1: the fields cannot be split"),
        ("a.csv", 'a,b,1\n"a\nb",c,2\n', "line 2: the fields cannot be split"),
        ("a.csv", 'a,b,1\n"a"b,c,2\n', "line 2: the fields cannot be split"),
        ("a.csv", 'a,b,1\n"' + "c" * 200000 + '",d,1\n', "line 2: the fields cannot be split"),
        ("a.txt", 'a b\n"c d"\n', "line 2: spaces separate the fields"),
        ("a.csv", "a,b,1\nb\0,c,2\n", r"line 2: '\\x00' does not occur in text; encoding='utf-16'"),
    ],
)
def test_a_line_that_is_no_edge(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    with pytest.raises(GraphError) as caught:
        read_file(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}, {message}".replace("\\\\", "\\"))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1).filter(lambda s: s == s.strip(" \t"))
WEIGHTS = st.one_of(st.integers(), st.floats(allow_nan=False))


@given(st.lists(st.tuples(NAMES, NAMES, WEIGHTS), min_size=1), st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_is_written_as_csv_is_read(rows: list[tuple[str, str, Any]], delimiter: str, end: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    graph = parse("a.csv", file.getvalue().encode(), "\t;,", Asked(directed=True))
    assert isinstance(graph, EdgeList)
    assert [(str(u), str(v), w) for u, v, w in listed(graph)] == rows


@given(st.text('ab1.,;\t \n\r#"-e_\0\ufeffu v', max_size=40) | st.text(max_size=40), st.sampled_from(["\t;,", "\t", " ", "\t;, "]))
def test_every_line_is_an_edge_a_header_or_an_error(text: str, separators: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a header that is guessed
        try:
            graph, problem = parse("a.csv", text.encode(errors="surrogatepass"), separators), ""
        except GraphError as error:
            graph, problem = None, str(error)
    if not isinstance(graph, EdgeList) or graph.lines is None:
        if graph is not None:  # a matrix
            return
        assert re.match(r"a\.csv(, line \d+)?: ", problem)
        return
    lines = enumerate(io.StringIO(text.removeprefix("\ufeff"), newline=""), 1)
    said = [n for n, line in lines if line.strip(' \t\r\n,;"') and not line.lstrip(" \t").startswith("#")]
    assert [n for n in said if n not in graph.lines] in ([], said[:1])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Zürich,Köln,3\nKöln,a,1\n"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    assert listed(read_file(tmp_path / "a.csv", encoding=encoding))[0] == ("Zürich", "Köln", 3)
    if encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert listed(read_file(tmp_path / "a.csv"))[0] == ("Zürich", "Köln", 3)
    else:
        with pytest.raises(GraphError, match="line 1"):
            read_file(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("raw", "encoding", "message"),
    [
        (b"a,b,1\r\n\r\nc\xfc,d,1\n", None, "line 3: not a text in UTF-8"),
        (b"\xef\xbb\xbfa,b,1\n\xff\n", None, "line 2: not a text in UTF-8"),
        ("a,b,1\nb,c,2\n".encode("utf-16")[:-1], None, "line 2: not a text in UTF-16"),
        ("a,b,1\n".encode("utf-16-le"), None, r"line 1: '\\x00' does not occur in text; encoding='utf-16'"),
        (b"\\ud800,b,1\n", "unicode_escape", r"line 1: '\\ud800' does not occur in text"),
        (b"a,b,1\n", "rot13", "not a text in rot13"),
        (b"a,b,1\n", "punycode", "not a text in punycode"),
    ],
)
def test_what_is_no_text(tmp_path: Path, raw: bytes, encoding: str | None, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(raw)
    with pytest.raises(GraphError, match=rf"a\.csv(, |: ){message}"):
        read_file(tmp_path / "a.csv", encoding=encoding)


def test_numpy_files(tmp_path: Path) -> None:
    matrix = np.array([[0, 3.5], [INF, 0]])
    np.save(tmp_path / "a.npy", matrix)
    np.savez(tmp_path / "a.npz", anything=matrix)
    np.testing.assert_array_equal(read_file(tmp_path / "a.npy"), matrix)
    np.testing.assert_array_equal(read_file(tmp_path / "a.npz"), matrix)
    np.savez(tmp_path / "b.npz", one=matrix, two=matrix)
    with pytest.raises(GraphError, match=r"has 2 arrays \(one, two\)"):
        read_file(tmp_path / "b.npz")
    np.save(tmp_path / "c.npy", np.array([[{}]], dtype=object))
    with pytest.raises(GraphError, match="not a NumPy array of numbers"):
        read_file(tmp_path / "c.npy")
    np.savez(tmp_path / "c.npz", np.array([[{}]], dtype=object))
    with pytest.raises(GraphError, match="not an archive"):
        read_file(tmp_path / "c.npz")


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def saved(array: Any) -> bytes:
    np.save(file := io.BytesIO(), array, allow_pickle=True)
    return file.getvalue()


HOSTILE = {
    "objects": saved(np.array([[None]])),
    "a pickle": b"\x80\x04K\x01.",
    "a long header": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }" + " " * 20000),
    "brackets": npy("(" * 9000),
    "minuses": npy("-" * 9000 + "1"),
    "an immense shape": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }"),
    "nothing": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_arrays_are_refused_without_numpys_advice_to_trust_them(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for suffix, method in (("stored", zipfile.ZIP_STORED), ("lzma", zipfile.ZIP_LZMA), ("sparse", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(tmp_path / f"{suffix}.npz", "w", method) as archive:
            archive.writestr("format.npy" if suffix == "sparse" else "a.npy", content)
    spoilt = bytearray((tmp_path / "sparse.npz").read_bytes())
    spoilt[42:50] = b"\xff" * 8
    (tmp_path / "spoilt.npz").write_bytes(spoilt)
    for path in tmp_path.iterdir():
        with pytest.raises((GraphError, TooLargeError), match=path.name) as caught:
            read_file(path)
        assert "pickle" not in str(caught.value)
        assert "max_header_size" not in str(caught.value)


def test_indices_beyond_a_sparse_matrix_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("scipy.sparse")
    np.savez(tmp_path / "a.npz", format=b"csr", data=np.ones(2), indices=np.array([0, 9]), indptr=np.array([0, 1, 2]), shape=(2, 2))
    with pytest.raises(GraphError, match="not a SciPy sparse array"):
        read_file(tmp_path / "a.npz")


def test_sparse_archives(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(np.array([[0, 3.5], [0, 0]])))
    assert read_graph(read_file(tmp_path / "a.npz"), MIN_PLUS).values[0].tolist() == [[INF, 3.5], [INF, INF]]
    np.savez(tmp_path / "b.npz", format="none", data=1)
    with pytest.raises(GraphError, match="not a SciPy sparse array"):
        read_file(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("coordinate real general\n2 2 2\n1 2 0\n2 1 4.5\n", [[INF, 0], [4.5, INF]]),
        ("coordinate pattern symmetric\n2 2 1\n2 1\n", [[INF, 1], [1, INF]]),
        ("coordinate integer general\n2 2 1\n1 1 7\n", [[7, INF], [INF, INF]]),
        ("array real general\n2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
        ("coordinate real general\n% roads\n\n2 2 1\n1 2 inf\n", [[INF, INF], [INF, INF]]),
    ],
)
def test_matrix_market(tmp_path: Path, content: str, expected: Any) -> None:
    pytest.importorskip("scipy")
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix {content}")
    assert read_graph(read_file(tmp_path / "a.mtx"), MIN_PLUS).values[0].tolist() == expected


@pytest.mark.parametrize("weight", ["1_000", "12 km", "0x10", "None", "1,5", "", "1e400", "1e-400", "٣"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_matrix_market_numbers(tmp_path: Path, weight: str, form: str) -> None:
    """SciPy reads the 1 of 1_000."""
    pytest.importorskip("scipy")
    entries = f"1 1 3\n1 2 {weight}\n" if form == "coordinate" else f"5\n{weight or '1 2'}\n3\n4\n"
    size = "2 2 2" if form == "coordinate" else "2 2"
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix {form} real general\n% roads\n{size}\n{entries}", encoding="utf-8")
    with pytest.raises(GraphError, match=r"a\.mtx, line 5: "):
        read_file(tmp_path / "a.mtx")


def test_matrix_market_integers(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    header = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 "
    for weight in ("1.5", "1e3", "inf"):
        (tmp_path / "a.mtx").write_text(header + weight + "\n")
        with pytest.raises(GraphError, match=rf"a\.mtx, line 3: '{re.escape(weight)}' is not an integer"):
            read_file(tmp_path / "a.mtx")
    (tmp_path / "a.mtx").write_text(header + str(2**63) + "\n")
    with pytest.raises(GraphError, match="out of range"):
        read_file(tmp_path / "a.mtx")


def test_endings_of_numpy_files_do_not_matter(tmp_path: Path) -> None:
    matrix = np.array([[0, 3.5], [INF, 0]])
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, matrix)
    with (tmp_path / "a.npy").open("wb") as file:
        np.savez(file, matrix)
    for name in ("a.npz", "a.npy"):
        np.testing.assert_array_equal(read_file(tmp_path / name), matrix)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_damaged_numpy_files(tmp_path: Path, name: str) -> None:
    (np.save if name == "a.npy" else np.savez_compressed)(tmp_path / name, np.arange(10000.0).reshape(100, 100))
    whole = (tmp_path / name).read_bytes()
    rng, messages = np.random.default_rng(0), []
    for _ in range(60):
        damaged = bytearray(whole)
        for at in rng.integers(0, 160 if name == "a.npy" else len(whole), 3):
            damaged[at] = rng.integers(256)
        (tmp_path / name).write_bytes(bytes(damaged[: rng.integers(1, len(whole))]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read_file(tmp_path / name)
            except (GraphError, MemoryError) as error:
                messages.append(str(error))
    assert len(messages) > 20
    assert not any("allow_pickle" in message for message in messages)


def test_objects_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[{}]], dtype=object))
    with pytest.raises(GraphError, match=r"not a NumPy array of numbers .*Python objects") as caught:
        read_file(tmp_path / "a.npy")
    assert "allow_pickle" not in str(caught.value)


@pytest.mark.parametrize("member", ["indices", "indptr"])
def test_indices_of_sparse_files_are_not_believed(tmp_path: Path, member: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(np.arange(9).reshape(3, 3)), compressed=False)
    with np.load(tmp_path / "a.npz") as archive:
        members = dict(archive)
    members[member] = members[member].copy()
    members[member][1] = 10**6
    np.savez(tmp_path / "a.npz", **members)
    with pytest.raises(GraphError, match="not a SciPy sparse array"):
        read_file(tmp_path / "a.npz")


def test_encrypted_and_foreign_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.txt", "x")
        archive.writestr("b.txt", "x")
    with pytest.raises(GraphError, match=r"has 2 arrays \(a\.txt, b\.txt\)"):
        read_file(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.mtx", "a.npz"])
def test_without_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "a.mtx").write_text("")
    np.savez(tmp_path / "a.npz", format="csr", data=1)
    for module in ("scipy", "scipy.io", "scipy.sparse"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(SemiringError, match=r'needs scipy, which is not installed: pip install -e "\.\[graphs\]"'):
        read_file(tmp_path / name)
