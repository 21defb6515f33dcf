"""Matrices as text are matrices, on the command line and for `read_edges`, and lists of edges stay what they are."""

from __future__ import annotations

import io
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.arrays.exchange import ArrayLike
from semiring.cli import main
from semiring.files.edge_text import parse
from semiring.files.reading import read_file
from semiring.graphs import EdgeList

INF = np.inf


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("0,3,9\n3,0,4\n9,4,0\n", [[0, 3, 7], [3, 0, 4], [7, 4, 0]]),
        ("0,3,inf\ninf,0,4\n1,inf,0\n", [[0, 3, 7], [5, 0, 4], [1, 4, 0]]),
        ("inf,3,9\n3,inf,4\n9,4,inf\n", [[0, 3, 7], [3, 0, 4], [7, 4, 0]]),
        ("1.5,3,9\n3,1.5,4\n9,4,1.5\n", [[0, 3, 7], [3, 0, 4], [7, 4, 0]]),
        ("0,7\n7,0\n", [[0, 7], [7, 0]]),
        ("0,2.5\n1,0\n", [[0, 2.5], [1, 0]]),
        ("5,1,1,1\n1,5,1,1\n1,1,5,1\n1,1,1,5\n", (1 - np.eye(4)).tolist()),
        ("0e0,1e0\n1e0,0e0\n", [[0, 1], [1, 0]]),
    ],
)
def test_numbers_alone(rows: str, expected: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(rows.replace(",", {"a.csv": ",", "a.tsv": "\t", "a.txt": " "}[name]))
    assert main(["apsp", str(path), "-o", str(tmp_path / "out.npy")]) == 0
    assert np.load(tmp_path / "out.npy").tolist() == expected
    n = len(expected)
    said = f"semiring: warning: {path} is read as a matrix of {n} × {n}; if its lines are edges, pass --no-matrix\n"
    assert (said in capsys.readouterr().err) == (n <= 3)
    np.testing.assert_array_equal(sr.apsp(quietly(path)), expected)
    np.testing.assert_array_equal(sr.apsp(sr.read_edges(path, matrix=True)), expected)


def quietly(path: Path, **options: Any) -> EdgeList:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sr.read_edges(path, **options)


NAMES_IN_ROW_ONE = [
    ("0,1\n0,3.0\n1,0.0\n", (0, 1), [[0, 3], [1, 0]], "pass matrix=False"),
    ("0,1\n0,3\n1,0\n", (0, 1), [[0, 3], [1, 0]], "pass matrix=False"),
    ("a,b\n0,3\n3,0\n", ("a", "b"), [[0, 3], [3, 0]], "pass matrix=False"),
    ("a,b,c\n0,3,9\n3,0,4\n9,4,0\n", ("a", "b", "c"), [[0, 3, 9], [3, 0, 4], [9, 4, 0]], "pass matrix=False"),
    ("0,1,2,3\n" + "1,1,1,1\n" * 4, (0, 1, 2, 3), np.ones((4, 4)).tolist(), "pass matrix=False"),
    ("a,b,len,d\n0,1,1,1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n", ("a", "b", "len", "d"), (1 - np.eye(4)).tolist(), ""),
]


@pytest.mark.parametrize(("rows", "labels", "expected", "otherwise"), NAMES_IN_ROW_ONE)
def test_names_in_the_first_row_alone(rows: str, labels: tuple[Any, ...], expected: Any, otherwise: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        matrix = read_file(path)
    assert (matrix.labels, matrix.array.tolist()) == (labels, expected)
    assert [w.category for w in found] == [sr.AssumptionWarning] * bool(otherwise)
    assert all(otherwise in str(w.message) for w in found)
    graph = quietly(path)
    assert graph.labels == labels
    np.testing.assert_array_equal(sr.apsp(graph), sr.apsp(matrix.array, nonedge=np.inf))
    if isinstance(labels[0], str):
        source, target = labels[:2]
        assert len(sr.read_edges(path, source=source, target=target, weight=1).weights) == len(labels)


@pytest.mark.parametrize(
    ("rows", "labels", "expected"),
    [
        ("city,a,b\na,0,3\nb,1,0\n", ("a", "b"), [[0, 3], [1, 0]]),
        ("city,1,2,3\n1,0,3,4\n2,1,0,4\n3,5,5,0\n", (1, 2, 3), [[0, 3, 4], [1, 0, 4], [5, 5, 0]]),
        (",a,b\na,0,\nb,3,0\n", ("a", "b"), [[0, None], [3, 0]]),
        (",a,b\na,,\nb,3,\n", ("a", "b"), [[None, None], [3, None]]),
        (",a,b\nb,3,0\na,0,1\n", ("b", "a"), [[0, 3], [1, 0]]),
        (",0,1\n0,,4\n1,4,\n", (0, 1), [[None, 4], [4, None]]),
        ("0,1,2,3\n1,0,,3\n1,2,0,3\n1,2,3,\n", None, [[0, 1, 2, 3], [1, 0, None, 3], [1, 2, 0, 3], [1, 2, 3, None]]),
        ("0,3,9,2\n3,0,4,1\n9,4,0,5\n2,1,5,0\n", None, [[0, 3, 9, 2], [3, 0, 4, 1], [9, 4, 0, 5], [2, 1, 5, 0]]),
        (",a,b\na,0,1/3\nb,1,0\n", ("a", "b"), [[0, Fraction(1, 3)], [1, 0]]),
    ],
)
def test_what_tables_of_matrices_have(rows: str, labels: Any, expected: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows)
    found = read_file(path)
    entries = found.array.astype(object)
    if found.missing is not None:
        entries[found.missing] = None
    assert (found.labels, entries.tolist()) == (labels, expected)
    edges = sum(entry is not None and i != j for i, row in enumerate(expected) for j, entry in enumerate(row))
    assert main(["apsp", str(path)]) == 0
    assert f" vertices, {edges} edge" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("x,1,2\n1,0,3\n2,1,0\n", "a matrix of 2 × 2; if its lines are edges, pass matrix=False"),
        (",3,9\n3,,4\n9,4,\n", "a matrix of 2 × 2; if its first row and column are entries, fill its empty cells with inf"),
        ("0,3\n,0\n", "a matrix of 2 × 2; if its lines are edges, pass matrix=False"),
    ],
)
def test_what_may_mean_something_else_is_said(rows: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(rows)
    with pytest.warns(sr.AssumptionWarning, match=said):
        assert isinstance(read_file(tmp_path / "a.csv"), ArrayLike)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("semiring", "dtype", "edge"),
    [
        ("bitset", "int64", "6"),
        ("bitset", "uint64", "6"),
        ("boolean", "object", "1"),
        ("max-min", "int16", "6"),
        ("plus-times", "object", "-3"),
    ],
)
def test_what_closures_write_is_read(semiring: str, dtype: str, edge: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"a,a,{edge}\na,b,{edge}\n")
    out, options = tmp_path / f"out.{suffix}", ["--semiring", semiring]
    assert main(["closure", str(tmp_path / "a.csv"), *options, "--dtype", dtype, "-o", str(out)]) == 0
    assert main(["closure", str(out), *options]) < 2  # not every closure has one itself


def test_a_name_of_two_lines_is_in_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gml"
    path.write_text('graph [ node [ id 0 label "x&#10;y" ] node [ id 1 label "z" ] edge [ source 0 target 1 weight 2 ] ]')
    assert main(["apsp", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    assert "a table cannot have the name 'x\\ny'" in capsys.readouterr().err
    assert main(["apsp", str(path), "-o", str(tmp_path / "out.npz")]) == 0


@pytest.mark.parametrize(
    "rows",
    [
        "0,0,1\n",
        "0,1,0\n1,0,0\n",
        "a,b,0\nb,0,0\n0,a,0\n",
        "0,1\n1,2\n2,0\n",
        "1,2,5\n2,3,4\n3,1,2\n4,1,3\n",
    ],
)
def test_edges_stay_edges(rows: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(read_file(tmp_path / "a.csv"), EdgeList)
        assert len(sr.read_edges(tmp_path / "a.csv").weights) == rows.count("\n")


@pytest.mark.parametrize(
    ("rows", "n"),
    [
        ("5,1,2\n1,3,4\n2,4,7\n", 3),
        ("1,2,5\n2,3,4\n3,1,2\n", 3),
        ("0,1\n2,0\n", 2),
        ("0,1\n1,2\n", 2),
        ("x,1,2\n1,0,3\n2,1,5\n", 2),
    ],
)
def test_rows_that_may_be_either_are_edges_or_a_matrix_as_the_caller_says(
    rows: str, n: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows)
    said = f"is read as edges, one a line; if the lines are the rows of a matrix of {n} × {n}, pass"
    with pytest.warns(sr.AssumptionWarning, match=f"a.csv {said} matrix=True"):
        assert len(sr.read_edges(path).weights) == rows.count("\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(sr.read_edges(path, matrix=False).weights) == rows.count("\n")
        matrix = read_file(path, matrix=True)
    assert matrix.array.shape == (n, n)
    np.testing.assert_array_equal(sr.apsp(quietly(path, matrix=True)), sr.apsp(matrix.array, nonedge=np.inf))
    assert main(["apsp", str(path)]) == 0
    assert f"{said} --matrix\n" in capsys.readouterr().err
    assert main(["apsp", str(path), "--matrix", "-o", str(tmp_path / "out.csv")]) == 0
    assert f"{n} vertices, " in capsys.readouterr().out
    assert main(["apsp", str(tmp_path / "out.csv"), "--nonedge", "inf"]) == 0
    assert capsys.readouterr().err == ""


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from([0, 1, 7, -0.5, INF, None]), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    st.booleans(),
)
def test_entries_of_matrices_are_edges(rows: list[list[Any]], symmetric: bool) -> None:
    n = len(rows)
    if symmetric:
        rows = [[rows[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    text = "\n".join(
        ",".join(["", *(f"v{i}" for i in range(n))] if i < 0 else [f"v{i}", *("" if e is None else str(e) for e in rows[i])])
        for i in range(-1, n)
    )
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        graph = sr.read_edges(io.StringIO(text))
    assert graph.labels == tuple(f"v{i}" for i in range(n))
    expected = {(i, j): e for i, row in enumerate(rows) for j, e in enumerate(row) if e not in (None, INF) and (e != 0 or i != j)}
    got = dict(zip(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True), graph.weights, strict=True))
    assert graph.directed or got.keys() <= {(i, j) for i in range(n) for j in range(i + 1)}
    if not graph.directed:
        got |= {(j, i): e for (i, j), e in got.items()}
    assert got == expected
    zeros = not any(e in (None, INF) and (i != j or e is None) for i, row in enumerate(rows) for j, e in enumerate(row))
    zeros = zeros and any(e == 0 and i != j for i, row in enumerate(rows) for j, e in enumerate(row))
    assert [w.category for w in found] == [sr.NonEdgeWarning] * zeros
    again = sr.read_edges(io.StringIO(text), matrix=True, nodes=graph.labels[::-1]) if not zeros else graph
    assert again.labels == (graph.labels if zeros else graph.labels[::-1])


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("text", ["0,1,5\n1,2,4\n0,3,-1\n3,4,0\n", "a,b,3\nb,a,3\n", "a,a,1\n"])
def test_what_the_command_line_writes_is_read_as_edges(text: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    out = tmp_path / f"out.{suffix}"
    assert main(["apsp", str(tmp_path / "a.csv"), "-o", str(out)]) == 0
    graph = sr.read_edges(tmp_path / "a.csv")
    found = sr.read_edges(out)
    assert found.labels == graph.labels
    np.testing.assert_array_equal(sr.apsp(found), sr.apsp(graph))
    off = ~np.eye(len(graph.labels), dtype=bool)
    np.testing.assert_array_equal(sr.transitive_closure(found)[off], (sr.apsp(graph) < INF)[off])


def test_what_is_asked_of_a_matrix(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",a,b\na,0,3\nb,1,0\n")
    several: list[dict[str, Any]] = [{"directed": False}, {"weight": 1}, {"source": "a", "target": "b"}]
    for options in several:
        with pytest.raises(sr.GraphError, match=rf"{next(iter(options))}= is for edge lists as text"):
            sr.read_edges(path, **options)
    path.write_text("a,b,3\nb,c,4\n")
    with pytest.raises(sr.GraphError, match="matrix=True is for a square table of numbers"):
        sr.read_edges(path, matrix=True)
    path.write_text(",a,b,c\na,,inf,1\nb,-inf,0,1\nc,1,1,1\n")
    with pytest.raises(sr.GraphError, match="inf and -inf could both mean no edge"):
        sr.read_edges(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
@pytest.mark.parametrize("separator", [";", "\t", " "])
def test_decimal_commas_in_matrices(name: str, separator: str, tmp_path: Path) -> None:
    if (name == "a.txt") != (separator == " ") or (name == "a.tsv" and separator != "\t"):
        return
    path = tmp_path / name
    path.write_text("0;1,5;9\n1,5;0;-2,25e0\n9;-2,25e0;0\n".replace(";", separator))
    expected = [[0, 1.5, 9], [1.5, 0, -2.25], [9, -2.25, 0]]
    if separator == ";":
        with pytest.raises(sr.GraphError, match=r"';' and ',' could both separate the fields; .* decimal=','"):
            sr.read_edges(path)
    assert read_file(path, matrix=True, decimal=",").array.tolist() == expected
    path.write_text("_;a;b\na;0;1,5\nb;2,5;0\n".replace(";", separator))
    assert read_file(path).array.tolist() == [[0, 1.5], [2.5, 0]]


def test_whoever_speaks_of_edges_gets_edges(tmp_path: Path) -> None:
    rows = "0,3,9\n3,0,4\n9,4,0\n"
    several: list[dict[str, Any]] = [{"directed": True}, {"directed": False}, {"weight": 1}, {"nodes": [0, 3, 4, 9]}]
    for options in several:
        assert len(sr.read_edges(io.StringIO(rows), **options).weights) == 3
    assert len(sr.read_edges(io.StringIO(f"source,target,weight\n{rows}")).weights) == 3
    path = tmp_path / "a.edgelist"
    path.write_text(rows.replace(",", " "))
    assert len(sr.read_edges(path).weights) == 3


def test_names_in_the_first_row_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    frame = pd.DataFrame([[0, 3.5, INF], [INF, 0, -1], [2, INF, 0]], index=["A", "B", "C 1"], columns=["A", "B", "C 1"])
    path.write_text(frame.to_csv())
    assert main(["apsp", str(path), "--from", "A", "--to", "C 1"]) == 0
    assert capsys.readouterr() == ("2.5: A → B → C 1\n", "")
    np.testing.assert_array_equal(sr.apsp(sr.read_edges(path)), sr.apsp(frame))
    frame.loc["C 1", "A"] = -3
    path.write_text(frame.to_csv())
    assert main(["apsp", str(path)]) == 1
    assert "B → C 1 → A → B, weight -0.5" in capsys.readouterr().err


def test_options_of_edges_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    for rows in (",a,b\na,0,3\nb,1,0\n", "5,1,1,1\n1,5,1,1\n1,1,5,1\n1,1,1,5\n"):
        path.write_text(rows)
        for options in (["--undirected"], ["--weight", "1"], ["--source-column", "a", "--target-column", "b"]):
            assert main(["apsp", str(path), *options]) == 2
            assert f"{options[0]}" in capsys.readouterr().err
        with pytest.raises(sr.GraphError, match="directed= is for edge lists as text"):
            sr.read_edges(path, directed=False)


def test_closures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    for rows, semiring, row in (
        (",a,b,c\na,0,1,0\nb,0,0,1\nc,0,0,0\n", "boolean", "a  1  1  1"),
        (",a,b,c\na,0,2,0\nb,0,0,3\nc,0,0,0\n", "plus-times", "a  1  2  6"),
        (",a,b,c\na,0,2,0\nb,0,0,3\nc,0,0,0\n", "max-min", "a  inf    2    2"),
    ):
        path.write_text(rows)
        assert main(["closure", str(path), "--semiring", semiring]) == 0
        assert row in capsys.readouterr().out


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b",a,b\na,0,3\nb,1,0\n")))
    assert main(["apsp", "-", "--from", "a", "--to", "b"]) == 0
    assert capsys.readouterr() == ("3: a → b\n", "")


def test_nonedges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",a,b,c\na,0,3,0\nb,0,0,4\nc,0,0,0\n")
    assert main(["apsp", str(path), "--nonedge", "0"]) == 0
    assert "3 vertices, 2 edges, 3 of 6 ordered pairs connected" in capsys.readouterr().out
    assert main(["apsp", str(path)]) == 0
    assert "pass --nonedge=0" in capsys.readouterr().err
    path.write_text(",a,b\na,0,nan\nb,1,0\n")
    assert main(["apsp", str(path), "--nonedge", "nan"]) == 0
    assert main(["apsp", str(path)]) == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (",a,b\na,0,x\nb,1,0\n", "line 2: the entry 'x' is not a number"),
        (",a,b\na,0,1e400\nb,1,0\n", "line 2: the entry 1e400 is beyond every float"),
        (",a,b\na,0,1\nb,1\n", "line 3: the matrix has 2 columns, and this row 1 entry"),
        (",a,b\na,0,1,5\nb,1,0\n", "line 2: the matrix has 2 columns, and this row 3 entries"),
        (",a,a\na,0,1\na,1,0\n", "line 1: the first row of the matrix names a vertex twice"),
        (",a,b\na,0,1\nc,1,0\n", "line 1: an edge needs a source and a target; a matrix needs the same names .* where 'b', 'c' differ"),
        ("0,1,2,3\n1,0,2,3\n1,2,0,x\n1,2,3,0\n", "line 1: an edge is source, target and perhaps a weight, not 4 fields"),
    ],
)
def test_what_is_no_matrix(rows: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(rows)
    with pytest.raises(sr.GraphError, match=f"a.csv, {message}"):
        read_file(tmp_path / "a.csv")


def test_integers_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f",a,b\na,0,{2**53 + 1}\nb,inf,0\n")
    assert main(["apsp", str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == f"a,0,{2**53 + 1}"
    path.write_text(f",a,b\na,0,{2**63 - 1}\nb,inf,0\n")
    assert main(["apsp", str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == f"a,0,{2**63 - 1}"


ENTRIES = st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False))


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(ENTRIES, min_size=n, max_size=n), min_size=n, max_size=n)), st.booleans())
def test_what_pandas_writes_is_read(rows: list[list[Any]], named: bool) -> None:
    n = len(rows)
    labels = [f"v{i}" for i in range(n)] if named else list(range(n))
    frame = pd.DataFrame(np.array(rows, dtype=object), index=labels, columns=labels)
    found = parse("a.csv", frame.to_csv().encode(), ",")
    assert isinstance(found, ArrayLike)
    assert found.labels == tuple(labels)
    assert found.array.tolist() == rows


def test_labels_of_archives(tmp_path: Path) -> None:
    for labels in (np.array(["a"]), np.array(["a", "a"]), np.array([["a", "b"]])):
        np.savez(tmp_path / "a.npz", values=np.eye(2), labels=labels)
        with pytest.raises(sr.GraphError, match=r"a.npz: not an archive of NumPy arrays \(labels of shape"):
            read_file(tmp_path / "a.npz")
