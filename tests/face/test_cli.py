"""The command line: what it prints, writes and returns."""

from __future__ import annotations

import csv
import errno
import io
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import semiring as sr
from semiring.cli import main

ROADS = "source,target,weight\nhome,shop,2\nshop,park,1.5\nhome,park,5\npark,home,1\n"
DISTANCES = [[0, 2, 3.5], [2.5, 0, 1.5], [1, 3, 0]]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    path = tmp_path / "roads.csv"
    path.write_text(ROADS)
    return path


class TestAPSP:
    def test_a_small_graph_is_a_table_with_labels(self, run: Run, roads: Path) -> None:
        code, out, err = run("apsp", roads)
        assert (code, err) == (0, "")
        assert out.splitlines()[:4] == [
            "      home  shop  park",
            "home     0     2   3.5",
            "shop   2.5     0   1.5",
            "park     1     3     0",
        ]
        assert "3 vertices, 4 edges, 6 of 6 ordered pairs connected" in out
        assert "diameter 3.5, from home to park" in out
        assert "s in float64" in out

    def test_a_large_graph_is_a_summary(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "ring.tsv"
        path.write_text("".join(f"{i}\t{i + 1}\n" for i in range(40)))
        code, out, _ = run("apsp", path)
        assert code == 0
        assert out.splitlines()[:2] == [
            "41 vertices, 40 edges, 820 of 1,640 ordered pairs connected",
            "largest finite distance 40, from 0 to 40",
        ]

    def test_paths(self, run: Run, roads: Path) -> None:
        code, out, _ = run("apsp", roads, "--paths")
        assert code == 0
        assert "3.5: home → shop → park" in out
        assert "3: park → home → shop" in out

    def test_one_path(self, run: Run, roads: Path) -> None:
        assert run("apsp", roads, "--from", "home", "--to", "park") == (0, "3.5: home → shop → park\n", "")
        assert run("apsp", roads, "--from", "home", "--to", "home")[1] == "0: home\n"

    def test_from_one_and_to_one(self, run: Run, roads: Path) -> None:
        assert run("apsp", roads, "--from", "home")[1] == "2: home → shop\n3.5: home → shop → park\n"
        assert run("apsp", roads, "--to", "home")[1] == "2.5: shop → park → home\n1: park → home\n"

    def test_what_is_written_is_the_whole_matrix(self, run: Run, roads: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.npy"
        assert run("apsp", roads, "--from", "home", "--to", "park", "-o", out)[:2] == (0, "3.5: home → shop → park\n")
        assert np.load(out).tolist() == DISTANCES

    def test_one_path_in_a_graph_that_is_too_large_as_a_matrix(self, run: Run, tmp_path: Path) -> None:
        n, path = 300_000, tmp_path / "tree.npz"
        child = np.arange(1, n)
        save_npz(path, csr_array((np.ones(n - 1), ((child - 1) // 2, child)), shape=(n, n)))
        assert run("apsp", path, "--from", 0, "--to", 12) == (0, "3: 0 → 2 → 5 → 12\n", "")
        assert run("apsp", path, "--from", 12, "--to", 0)[1] == "no path from 12 to 0\n"
        assert run("apsp", path, "--from", 0, "--to", 12, "-o", tmp_path / "out.npy")[0] == 2

    @pytest.mark.parametrize("ends", [("--from", "a"), ("--to", "d"), ("--from", "a", "--to", "d")])
    def test_a_search_finds_what_the_matrix_has(self, run: Run, tmp_path: Path, ends: tuple[str, ...]) -> None:
        path = tmp_path / "roads.csv"
        path.write_text("a,b,3\nb,c,-2\nc,d,4\na,d,7\nd,b,9\ne,a,1\n")
        whole = tmp_path / "out.npy"
        assert run("apsp", path, *ends)[:2] == run("apsp", path, *ends, "-o", whole)[:2]

    def test_a_negative_cycle_matters_where_it_is_reached(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "debts.csv"
        path.write_text("a,b,1\nb,a,-3\nc,d,1\n")
        assert run("apsp", path, "--from", "c", "--to", "d") == (0, "1: c → d\n", "")
        code, _, err = run("apsp", path, "--from", "a")
        assert code == 1
        assert "b → a → b, weight -2" in err

    def test_no_path_and_no_vertex(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "one_way.txt"
        path.write_text("7 9\n")
        hint = "the edges are directed; with --undirected there is a path\n"
        assert run("apsp", path, "--from", "9", "--to", "7") == (0, "no path from 9 to 7\n", hint)
        assert run("apsp", path, "--from", "9", "--to", "7", "--undirected")[1:] == ("1: 9 → 7\n", "")
        path.write_text("7 9\n8 10\n8 10\n")
        assert run("apsp", path, "--from", "9", "--to", "8") == (0, "no path from 9 to 8\n", "")
        path.write_text("7 9\n")
        code, _, err = run("apsp", path, "--from", "8")
        assert code == 2
        assert "there is no vertex '8'; there are 7, 9" in err
        assert "·" in run("apsp", path)[1]

    def test_the_farthest_pair_is_of_two_vertices(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "level.csv"
        path.write_text("a,b,0\n")
        assert "largest finite distance 0, from a to b" in run("apsp", path)[1]

    def test_undirected(self, run: Run, roads: Path) -> None:
        assert run("apsp", roads, "--undirected", "--from", "shop", "--to", "home")[1] == "2: shop → home\n"

    @pytest.mark.parametrize("method", ["iterative", "blocked", "recursive"])
    def test_methods_and_dtype(self, run: Run, roads: Path, method: str) -> None:
        code, out, _ = run("apsp", roads, "--method", method, "--dtype", "float32")
        assert code == 0
        assert "s in float32" in out
        assert "park     1     3     0" in out

    def test_matrix_files_have_numbers_for_vertices(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, np.array([[0, 3, math.inf], [math.inf, 0, 4], [2, math.inf, 0]]))
        code, out, err = run("apsp", path, "--from", 0, "--to", 2)
        assert (code, out, err) == (0, "7: 0 → 1 → 2\n", "")
        assert "3 vertices, 3 edges" in run("apsp", path)[1]

    def test_zeros_warn_and_nonedge_silences(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, np.array([[0, 3], [0, 0]]))
        code, out, err = run("apsp", path)
        assert code == 0
        assert err.startswith("semiring: warning: ")
        assert "pass --nonedge=0" in err
        assert "--nonedge=inf" in err
        code, out, err = run("apsp", path, "--nonedge", 0)
        assert (code, err) == (0, "")
        assert "2 vertices, 1 edge, 1 of 2 ordered pairs connected" in out
        np.save(path, np.array([[0, 3], [np.nan, 0]]))
        assert "1 edge," in run("apsp", path, "--nonedge", "nan")[1]

    def test_empty_and_single(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, np.zeros((0, 0)))
        code, out, _ = run("apsp", path)
        assert code == 0
        assert out.startswith("0 vertices, 0 edges, 0 of 0")
        np.save(path, np.zeros((1, 1)))
        assert "1 vertex, 0 edges, 0 of 0" in run("apsp", path)[1]


class TestInput:
    @pytest.fixture
    def typed(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | bytes], None]:
        """Puts a text on standard input."""

        def typed(text: str | bytes) -> None:
            raw = text.encode() if isinstance(text, str) else text
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="ascii"))

        return typed

    @pytest.mark.parametrize("separator", [",", ";", "\t", " "])
    def test_standard_input(self, run: Run, typed: Callable[[str | bytes], None], separator: str) -> None:
        typed(ROADS.replace(",", separator))
        assert run("apsp", "-", "--from", "home", "--to", "park") == (0, "3.5: home → shop → park\n", "")
        typed("")
        assert run("apsp", "-") == (2, "", "semiring: error: standard input: the file has no edges\n")
        typed("a,b,1\nb,c,far\n")
        assert run("apsp", "-")[2] == "semiring: error: standard input, line 2: the weight 'far' is not a number\n"

    def test_standard_input_that_is_closed(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert run("apsp", "-") == (2, "", "semiring: error: standard input is closed\n")

    def test_encoding(self, run: Run, typed: Callable[[str | bytes], None], tmp_path: Path) -> None:
        path = tmp_path / "roads.csv"
        path.write_bytes("a,b,1\nb,Köln,2\n".encode("latin-1"))
        code, _, err = run("apsp", path)
        assert (code, len(err.splitlines())) == (2, 1)
        assert "line 2: not a text in UTF-8 (invalid" in err
        assert run("apsp", path, "--encoding", "latin-1", "--from", "a", "--to", "Köln")[:2] == (0, "3: a → b → Köln\n")
        typed(path.read_bytes())
        assert run("apsp", "-", "--encoding", "latin-1", "--from", "a", "--to", "Köln")[0] == 0
        np.save(tmp_path / "graph.npy", np.ones((2, 2)))
        assert "leave out --encoding" in run("apsp", tmp_path / "graph.npy", "--encoding", "utf-8")[2]

    @pytest.mark.parametrize("encoding", ["utf-9", "rot13", ""])
    def test_no_encoding(self, roads: Path, encoding: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["apsp", str(roads), "--encoding", encoding])
        assert caught.value.code == 2
        assert f"unknown encoding {encoding!r}; examples are utf-8, latin-1" in capsys.readouterr().err

    def test_a_guessed_header_is_a_warning(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "roads.csv"
        path.write_text("town,other,how far\na,b,3\n")
        code, out, err = run("apsp", path, "--from", "a")
        header, hops = err.splitlines()
        assert (code, out) == (0, "1: a → b\n")
        assert header == f"semiring: warning: {path}, line 1 is read as a header: town, other, how far"
        assert "each edge counts 1" in hops
        assert "pass --weight='how far' to count that, or --weight=1 to count edges" in hops
        assert run("apsp", path, "--from", "a", "--weight", "how far") == (0, "3: a → b\n", "")

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            ("from,start,to\na,b,c\n", [], "pass --source-column='from' or --source-column='start' and --target-column="),
            ("a,b,c,d\nA,B,1,2\n", ["--weight", "d"], "name them by --source-column= and --target-column=, of 'a', 'b'"),
            ("a,b,c,d\nA,B,1,2\n", ["--source-column", "a"], "name both, --source-column= and --target-column=; the columns are"),
            ("from,to,km,minutes\na,b,1,2\n", [], "pass --weight='km' or --weight='minutes', or --weight=1 to count edges"),
            ("u,v,Type\na,b,Directed\nb,c,Mutual\n", [], "pass --undirected if all edges go both ways, or --directed if none does"),
            ("a;b;1,500\n", [], "is not a number; if the comma is the decimal mark, pass --decimal=','; if the comma separates"),
        ],
    )
    def test_messages_name_the_options(self, run: Run, tmp_path: Path, text: str, options: list[str], message: str) -> None:
        path = tmp_path / "roads.csv"
        path.write_text(text)
        code, out, err = run("apsp", path, *options)
        assert (code, out) == (2, "")
        assert message in err

    def test_columns_of_the_ends(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "roads.csv"
        path.write_text("town,other,note,km\nA,B,1,2\nB,C,1,3\n")
        named = ["--source-column", "other", "--target-column", "town"]
        assert run("apsp", path, *named, "--from", "C", "--to", "A") == (0, "5: C → B → A\n", "")
        np.save(tmp_path / "graph.npy", np.ones((2, 2)))
        assert "leave out --source-column" in run("apsp", tmp_path / "graph.npy", *named)[2]

    @pytest.mark.parametrize("value", ["1_0", "0x10", "zero", "1e400", ""])
    def test_a_nonedge_is_a_number(self, roads: Path, value: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["apsp", str(roads), f"--nonedge={value}"])
        assert caught.value.code == 2
        assert "argument --nonedge: " in capsys.readouterr().err

    def test_an_integer_nonedge_is_itself(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, np.array([[0, 2**53 + 1], [2**53, 0]]))
        assert "2 vertices, 1 edge" in run("apsp", path, "--nonedge", 2**53)[1]

    def test_what_stands_for_infinity_is_not_counted(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        for dtype in (np.int64, np.int8, np.uint16):
            np.save(path, np.array([[0, np.iinfo(dtype).max], [1, 0]], dtype=dtype))
            assert "2 vertices, 1 edge, 1 of 2" in run("apsp", path)[1]


class TestNames:
    """Names of vertices cannot command a terminal, and are what they are in files."""

    NASTY = ("\x1b[31mred", "bell\x07", "c1\x9b0m", "bidi\u202e", "two\u2028lines", "tab\x0b")

    @pytest.fixture
    def nasty(self, tmp_path: Path) -> Path:
        path = tmp_path / "na\u202esty.csv"
        path.write_text("".join(f"{a},{b},1\n" for a, b in itertools.pairwise(self.NASTY)), encoding="utf-8")
        return path

    @pytest.mark.parametrize(
        "arguments",
        [
            (),
            ("--paths",),
            ("--from", NASTY[0]),
            ("--to", NASTY[0]),
            ("--from", "no\x1b"),
            ("-o", "out.json\u202e"),
            ("--dtype", "int32", "-o", "{}/out\u202e.csv"),
        ],
    )
    def test_on_a_terminal(self, run: Run, nasty: Path, arguments: tuple[str, ...]) -> None:
        _, out, err = run("apsp", nasty, *(a.format(nasty.parent) for a in arguments))
        assert out + err
        assert all(c == "\n" or c.isprintable() for c in out + err)

    def test_aligned(self, run: Run, nasty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        table = run("apsp", nasty)[1].splitlines()[:7]
        assert len(set(map(len, table))) == 1
        assert r"\x1b[31mred" in table[0]

    @pytest.mark.parametrize(
        "content",
        ["\x1b,b,1\nb,c,\x1b\n", "\x1b,b,1\nb,\x1b,-inf\n", "\x1b,\x1bb,\x1bc\n1,2,3\n", "k\x1b,m,how\x1bfar\n1,2,3\n", "\x1b,b,\0\n"],
    )
    def test_in_errors_and_warnings(self, run: Run, tmp_path: Path, content: str) -> None:
        path = tmp_path / "a.csv"
        path.write_text(content)
        _, out, err = run("apsp", path)
        assert err
        assert all(c == "\n" or c.isprintable() for c in out + err)

    def test_in_cycles(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "debts.csv"
        path.write_text("".join(f"\x1b{i},\x1b{(i + 1) % 20},-1\n" for i in range(20)))
        code, out, err = run("apsp", path)
        assert (code, out) == (1, "")
        assert r"cycle: \x1b" in err
        assert all(c == "\n" or c.isprintable() for c in err)

    def test_in_errors_of_the_library(self) -> None:
        with pytest.raises(sr.NegativeCycleError) as caught:
            sr.apsp(sr.edges([("\x1b[31m", "b", -1), ("b", "\x1b[31m", -1)]))
        assert r"\x1b[31m" in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert set(caught.value.cycle or ()) == {"\x1b[31m", "b"}

    def test_in_files(self, run: Run, nasty: Path) -> None:
        for name in ("out.csv", "out.npz"):
            assert run("apsp", nasty, "-o", nasty.parent / name)[0] == 0
        with (nasty.parent / "out.csv").open(encoding="utf-8", newline="") as file:
            assert tuple(row[0] for row in csv.reader(file))[1:] == self.NASTY
        with np.load(nasty.parent / "out.npz") as archive:
            assert tuple(archive["labels"].tolist()) == self.NASTY


class TestOutput:
    def test_numpy(self, run: Run, roads: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.npy"
        assert run("apsp", roads, "-o", out)[0] == 0
        assert np.load(out).tolist() == DISTANCES

    @pytest.mark.parametrize(
        ("name", "options", "written"),
        [
            ("out.npy", ["--paths"], "the matrix, 3 × 3 in float64"),
            ("out.npz", [], "the matrix and the labels, 3 × 3 in float64"),
            ("out.npz", ["--paths"], "the paths, 3 × 3 in float64"),
            ("out.csv", ["--dtype", "float32"], "the matrix and the labels, 3 × 3 in float32"),
        ],
    )
    def test_it_says_what_was_written(self, run: Run, roads: Path, tmp_path: Path, name: str, options: list[str], written: str) -> None:
        code, _, err = run("apsp", roads, *options, "-o", tmp_path / name)
        assert (code, err) == (0, f"semiring: wrote {tmp_path / name}: {written}\n")
        assert (tmp_path / name).exists()

    def test_archive(self, run: Run, roads: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.npz"
        assert run("apsp", roads, "-o", out)[0] == 0
        with np.load(out) as archive:
            assert sorted(archive.files) == ["labels", "values"]
            assert archive["labels"].tolist() == ["home", "shop", "park"]

    @pytest.mark.parametrize("ends", [[], ["--from", "home", "--to", "park"]])
    def test_paths_are_what_the_library_saves(self, run: Run, roads: Path, tmp_path: Path, ends: list[str]) -> None:
        out = tmp_path / "out.npz"
        assert run("apsp", roads, "--paths", *ends, "-o", out)[0] == 0
        paths = sr.Paths.load(out)
        assert paths.distances.tolist() == DISTANCES
        assert paths.path("home", "park") == ["home", "shop", "park"]
        assert run("apsp", out)[2].endswith("out.npz has saved paths, not a graph; semiring.Paths.load(path) reads them\n")

    @pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
    def test_table(self, run: Run, roads: Path, tmp_path: Path, suffix: str, delimiter: str) -> None:
        out = tmp_path / f"out.{suffix}"
        assert run("apsp", roads, "-o", out)[0] == 0
        expected = ",home,shop,park\nhome,0.0,2.0,3.5\nshop,2.5,0.0,1.5\npark,1.0,3.0,0.0\n"
        assert out.read_text() == expected.replace(",", delimiter)

    @pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.npz"])
    @pytest.mark.parametrize(
        "text",
        [
            ROADS,
            "3,1,2\n1,2,2.5\n",
            "a,a,1\n",
            '"#a;b","c, ""d""",2\n"c, ""d""",007,5\n007,"x;y z",-1\n',
            "a,b,9007199254740993\nb,c,1\n",
        ],
    )
    @pytest.mark.parametrize("command", [["apsp"], ["closure", "--semiring", "max-min"]])
    def test_what_is_written_is_a_graph_again(self, run: Run, tmp_path: Path, name: str, text: str, command: list[str]) -> None:
        graph, out, again = tmp_path / "graph.csv", tmp_path / name, tmp_path / f"again_{name}"
        graph.write_text(text)
        dtype = ["--dtype", "int64"] if "9007199254740993" in text else []
        assert run(*command, graph, *dtype, "-o", out)[0] == 0
        code, _, err = run(*command, out, "-o", again)
        assert (code, len(err.splitlines())) == (0, 1)
        if name == "out.npz":
            with np.load(out) as first, np.load(again) as second:
                assert first["labels"].tolist() == second["labels"].tolist()
                assert first["values"].tolist() == second["values"].tolist()
        else:
            assert out.read_text() == again.read_text()

    def test_tables_have_words_for_what_integers_stand_for(self, run: Run, tmp_path: Path) -> None:
        graph, out = tmp_path / "graph.txt", tmp_path / "out.csv"
        graph.write_text("0 1 5\n")
        assert run("apsp", graph, "--dtype", "int16", "-o", out)[0] == 0
        assert out.read_text() == ",0,1\n0,0,5\n1,inf,0\n"
        assert run("closure", graph, "--semiring", "boolean", "-o", out)[0] == 0
        assert out.read_text() == ",0,1\n0,1,1\n1,0,1\n"

    @pytest.mark.parametrize("name", ["out.json", "out"])
    def test_another_ending_is_refused_before_the_work(self, run: Run, roads: Path, tmp_path: Path, name: str) -> None:
        code, out, err = run("apsp", roads, "-o", tmp_path / name)
        assert (code, out) == (2, "")
        assert ".npy, .npz, .csv, .tsv" in err

    @pytest.fixture
    def idle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing may be computed."""

        def apsp(*_: object, **__: object) -> None:
            raise AssertionError("computed")

        monkeypatch.setattr("semiring.solve.apsp", apsp)

    @pytest.mark.usefixtures("idle")
    def test_a_place_that_cannot_be_written_is_refused_before_the_work(self, run: Run, roads: Path, tmp_path: Path) -> None:
        (tmp_path / "folder.npy").mkdir()
        (tmp_path / "link.csv").hardlink_to(roads)
        for name, problem in (
            ("none/out.npy", f"{tmp_path / 'none'}: No such file or directory"),
            ("roads.csv/out.npy", f"{tmp_path / 'roads.csv'}: Not a directory"),
            ("folder.npy", f"{tmp_path / 'folder.npy'}: Is a directory"),
            ("roads.csv", f"{tmp_path / 'roads.csv'}: the answer would overwrite the graph; choose another name"),
            ("link.csv", f"{tmp_path / 'link.csv'}: the answer would overwrite the graph; choose another name"),
        ):
            assert run("apsp", roads, "-o", tmp_path / name) == (2, "", f"semiring: error: {problem}\n")
        assert "text; use .csv or .tsv" in run("apsp", roads, "--dtype", "object", "-o", tmp_path / "out.npz")[2]
        assert roads.read_text() == ROADS

    @pytest.mark.usefixtures("idle")
    def test_what_may_not_be_written(self, run: Run, roads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.access", lambda path, mode: False)
        assert run("apsp", roads, "-o", tmp_path / "out.npy") == (2, "", f"semiring: error: {tmp_path}: Permission denied\n")

    def test_exact_integers(self, run: Run, tmp_path: Path) -> None:
        graph, out = tmp_path / "graph.csv", tmp_path / "out.csv"
        graph.write_text(f"a,b,{2**63 - 1}\nb,c,{10**30}\n")
        assert run("apsp", graph, "--dtype", "object", "-o", out)[0] == 0
        assert out.read_text().splitlines()[1] == f"a,0,{2**63 - 1},{2**63 - 1 + 10**30}"
        graph.write_text(f"a,b,{2**63 - 1}\n")
        code, _, err = run("apsp", graph, "--dtype", "int64")
        assert code == 2
        assert "stands for ∞ in int64; use float64, or object for exact integers, or inf to mean ∞" in err

    def test_endings_in_capitals(self, run: Run, roads: Path, tmp_path: Path) -> None:
        assert run("apsp", roads, "-o", tmp_path / "OUT.NPY")[0] == 0
        assert np.load(tmp_path / "OUT.NPY").tolist() == DISTANCES

    def test_what_was_there_stays_until_the_new_one_is_complete(
        self, run: Run, roads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "out.npy"
        out.write_text("precious")

        def full(file: Any, *_: object) -> None:
            with file if hasattr(file, "write") else open(file, "wb") as begun:
                begun.write(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("numpy.save", full)
            code, _, err = run("apsp", roads, "-o", out)
        assert (code, "No space left" in err) == (2, True)
        assert out.read_text() == "precious"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["out.npy", "roads.csv"]


class TestClosure:
    @pytest.mark.parametrize("name", ["max-min", "MAX_MIN", "max_min"])
    def test_names_as_in_python(self, run: Run, roads: Path, name: str) -> None:
        code, out, _ = run("closure", roads, "--semiring", name)
        assert code == 0
        assert "home   inf     2     5" in out

    @pytest.mark.parametrize(
        ("semiring", "row"),
        [
            ("boolean", "home     1     1     1"),
            ("max-min", "home   inf     2     5"),
            ("min-max", "home  -inf     2     2"),
            ("min-plus", "home     0     2   3.5"),
        ],
    )
    def test_named_semirings(self, run: Run, roads: Path, semiring: str, row: str) -> None:
        code, out, err = run("closure", roads, "--semiring", semiring)
        assert (code, err) == (0, "")
        assert row in out.splitlines()

    def test_reachability_of_a_matrix(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
        code, out, _ = run("closure", path, "--semiring", "boolean")
        assert code == 0
        assert out.splitlines()[:4] == ["   0  1  2", "0  1  1  1", "1  ·  1  1", "2  ·  ·  1"]
        assert "2 edges, 3 of 6 ordered pairs" in out

    def test_errors_name_the_options(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "weights.npy"
        np.save(path, np.array([[0.0, 2.5], [0.0, 0.0]]))
        code, _, err = run("closure", path, "--semiring", "boolean")
        assert code == 2
        assert "Pass --nonedge= (0 for SciPy-style matrices, inf for distances)" in err
        assert run("closure", path, "--semiring", "boolean", "--nonedge", "0")[0] == 0

    def test_minus_zero_is_zero(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "one.csv"
        path.write_text("a,b,1\n")
        assert "-0" not in run("closure", path, "--semiring", "log")[1]

    def test_unknown_semiring(self, roads: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["closure", str(roads), "--semiring", "nope"])
        assert caught.value.code == 2
        assert "there is no semiring 'nope'; the built-in semirings are bitset, " in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["closure", str(roads), "--semiring", "distance-count"])
        assert "elements of distance-count are tuples" in capsys.readouterr().err


class TestErrors:
    def test_a_negative_cycle_is_printed(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "trap.csv"
        path.write_text("start,a,1\na,b,-3\nb,c,1\nc,a,1\n")
        code, out, err = run("apsp", path)
        assert (code, out) == (1, "")
        assert "negative cycle" in err
        assert any(cycle in err for cycle in ("a → b → c → a", "b → c → a → b", "c → a → b → c"))

    def test_a_long_cycle_is_printed_too(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "ring.txt"
        path.write_text("".join(f"v{i} v{(i + 1) % 60} -1\n" for i in range(60)))
        code, _, err = run("apsp", path)
        assert code == 1
        assert all(f"v{i} → v{(i + 1) % 60}" in err for i in range(60))

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", "", "no edges"),
            ("a.csv", "\n# only a comment\n", "no edges"),
            ("a.csv", "source,target,weight\n", "without edges after it"),
            ("a.csv", "a,b,1\na,c,far\n", "a.csv, line 2: the weight 'far' is not a number"),
            ("a.csv", "a,b,1\n\na,c,nan\n", "a.csv, line 3: the weight 'nan' is not a number"),
            ("a.csv", "a,b\nc\n", "a.csv, line 2: an edge is source, target"),
            ("a.csv", "a,b,1,2\n", "not 4 fields"),
            ("a.csv", "source,weight,target\na,1\n", "line 2: an edge needs a source and a target"),
            ("a.csv", "a,b\n,c\n", "line 2: an edge needs a source and a target"),
            ("a.csv", b"a,b\n\xff\xfe,c\n", "a.csv, line 2: not a text in UTF-8"),
            ("a.csv", "a,b,1\n\nb,a,-inf\n", "edge 1 from 'b' to 'a' (line 3)"),
            ("a.csv", "a,b,9007199254740993\n", "(line 1) is 9007199254740993, which float64 would round; pass --dtype=int64"),
            ("a.csv", "a,b,9223372036854775807\n", "(line 1) is 9223372036854775807, which float64 would round; pass --dtype=object"),
            ("a.csv", "a,b," + "9" * 400 + "\n", "(line 1): about 1e400 does not fit float64"),
            ("a.xyz", "{}", "the name must end in one of .csv"),
            ("a.json", "{}", "JSON without nodes is not read, but node-link data are"),
            ("a", "", "the name must end in one of"),
            ("a.npy", "no array", "not a NumPy array"),
            ("a.npy", "", "not a NumPy array"),
            ("a.npz", "no archive", "not an archive"),
            ("a.mtx", "nothing", "not a MatrixMarket file"),
        ],
    )
    def test_bad_files(self, run: Run, tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code, out, err = run("apsp", path)
        assert (code, out) == (2, "")
        assert err.startswith("semiring: error: ")
        assert message in err
        assert len(err.splitlines()) == 1

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((2, 3)), "square"),
            (np.zeros(3), "square"),
            (np.zeros((2, 2, 2)), "square"),
            (np.array([[0, np.nan], [1, 0]]), "graph[0, 1]"),
            (np.zeros((2, 2), complex), "complex"),
        ],
    )
    def test_bad_matrices(self, run: Run, tmp_path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], message: str) -> None:
        path = tmp_path / "graph.npy"
        np.save(path, array)
        code, out, err = run("apsp", path)
        assert (code, out) == (2, "")
        assert message in err

    def test_no_such_file(self, run: Run, tmp_path: Path) -> None:
        code, _, err = run("apsp", tmp_path / "none.csv")
        assert (code, err) == (2, f"semiring: error: {tmp_path / 'none.csv'}: No such file or directory\n")
        assert run("apsp", tmp_path)[0] == 2

    def test_bad_dtype(self, run: Run, roads: Path) -> None:
        assert "not a dtype" in run("apsp", roads, "--dtype", "float99")[2]
        code, _, err = run("apsp", roads, "--dtype", "int32")
        assert code == 2
        assert "edge 1 from 'shop' to 'park' (line 3) is 1.5" in err

    def test_undirected_is_for_edge_lists(self, run: Run, tmp_path: Path) -> None:
        np.save(tmp_path / "graph.npy", np.ones((2, 2)))
        code, _, err = run("apsp", tmp_path / "graph.npy", "--undirected")
        assert code == 2
        assert "leave out --undirected" in err

    def test_nothing_to_do(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main([])
        assert caught.value.code == 2
        assert "usage:" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
def test_a_reader_that_stops(tmp_path: Path) -> None:
    path = tmp_path / "ring.txt"
    path.write_text("".join(f"{i} {(i + 1) % 300}\n" for i in range(300)))
    command = f'"{sys.executable}" -m semiring apsp "{path}" --from 0 | head -n 1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1: 0 → 1\n", "")


def test_a_terminal_without_unicode(roads: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "semiring", "apsp", str(roads), "--from", "home", "--to", "park"],
        capture_output=True, text=True, check=True, env={"PYTHONIOENCODING": "ascii", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "3.5: home ? shop ? park\n"


def test_pairs_within_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are printed one a line, or written as an edge list that can be read again."""
    file, out = tmp_path / "roads.csv", tmp_path / "near.csv"
    file.write_text("a,b,1\nb,c,2.5\nc,d,4\n")
    assert main(["apsp", str(file), "--limit", "3.5"]) == 0
    assert capsys.readouterr().out.splitlines() == ["a → b: 1", "a → c: 3.5", "b → c: 2.5"]
    assert main(["apsp", str(file), "--limit", "99", "--from", "b", "-o", str(out)]) == 0
    assert "2 pairs" in capsys.readouterr().err
    assert out.read_text().splitlines() == ["source,target,weight", "b,c,2.5", "b,d,6.5"]
    assert main(["closure", "--semiring", "max-min", str(file), "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ["b → c: 2.5", "b → d: 2.5", "c → d: 4"]
    assert main(["apsp", str(file), "--limit", "1", "-o", str(tmp_path / "near.npy")]) == 2
    assert "written as .csv, .tsv or .txt" in capsys.readouterr().err


def test_pairs_that_cannot_be_written_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, file: io.TextIOBase, **_: str) -> None:
            file.write("source")

        def writerows(self, rows: list[Any]) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    file, out = tmp_path / "roads.csv", tmp_path / "near.csv"
    file.write_text("a,b,1\nb,c,2.5\n")
    out.write_text("old")
    monkeypatch.setattr("semiring.cli.csv.writer", Full)
    assert main(["apsp", str(file), "--limit", "3.5", "-o", str(out)]) == 2
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["near.csv", "roads.csv"]


def test_a_tolerance_for_rounded_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("source,target,weight\na,b,1.0001\nb,a,1\n")
    command = ["closure", "--semiring", "max-times", str(rates)]
    assert main(command) == 1
    assert main([*command, "--tolerance", "1e-3"]) == 0
    assert "rests on --tolerance=0.001: a cycle improves, b → a → b" in capsys.readouterr().err
    assert main(["closure", "--semiring", "max-min", str(rates), "--tolerance", "1e-3"]) == 2
    assert "needs a minimum or maximum of sums or products" in capsys.readouterr().err


def test_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, turns = tmp_path / "streets.csv", tmp_path / "turns.csv"
    file.write_text("from,to,hours\nhome,crossing,2\ncrossing,shop,1\ncrossing,park,3\npark,crossing,3\n")
    given = ["apsp", str(file), "--directed", "--from", "home", "--to", "shop"]
    for text, path in [
        ("from,via,to,cost\nhome,crossing,shop\n", "9: home → crossing → park → crossing → shop"),
        ("home,crossing,shop,4\n\npark,crossing,shop,0.5\n", "7: home → crossing → shop"),
        ("\ufefffrom,via,to,cost\nhome, crossing, shop, inf\n", "9: home → crossing → park → crossing → shop"),
        ("", "3: home → crossing → shop"),
    ]:
        turns.write_text(text)
        assert main([*given, "--turns", str(turns)]) == 0
        assert capsys.readouterr().out == path + "\n"
    for text, said in [
        ("home,crossing,shap,9\n", "line 1: there is no vertex 'shap'; did you mean 'shop'?"),
        ("home,crossing,shop,1\nhome,crossing,park,x\n", "line 2: 'x' is not a number"),
        ("home,crossing\n", "line 1: a turn has the fields from, via, to and cost, not 2 fields"),
        ("home,park,crossing,1\n", "home"),
        ("x,y,z,7\n", "line 1: there is no vertex 'x'"),
        ("home,crossing,shop,1\nhome,crossing,shop,2\n", "line 2: the turn home → crossing → shop stands twice"),
    ]:
        turns.write_text(text)
        assert main([*given, "--turns", str(turns)]) == 2
        assert said in capsys.readouterr().err
    turns.write_bytes("from,via,to\nhöme,crossing,shop\n".encode("latin-1"))
    assert main([*given, "--turns", str(turns)]) == 2
    assert "name its encoding by --encoding" in capsys.readouterr().err
    assert main([*given, "--turns", str(turns), "--encoding", "latin-1"]) == 2
    assert "there is no vertex 'höme'" in capsys.readouterr().err
    assert main(["apsp", str(file), "--turns", str(tmp_path / "none.csv")]) == 2
    np.save(tmp_path / "matrix.npy", np.ones((2, 2)))
    assert main(["apsp", str(tmp_path / "matrix.npy"), "--turns", str(turns)]) == 2
    assert "--turns needs a list of edges" in capsys.readouterr().err
