"""The files that the command line reads."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.errors import GraphError, TooLargeError
from semiring.files import read_file
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
        ("a.csv", "a,b,3\nb,c\nc,a,\n", [("a", "b", 3), ("b", "c", None), ("c", "a", None)]),
        ("a.csv", "\ufeffsource,target\r\na,b\r\n", [("a", "b", None)]),
        ("a.csv", "source,target,weight\na,b,3\n", [("a", "b", 3)]),
        ("a.csv", "Weight,Target,Source\n3,b,a\n", [("a", "b", 3)]),
        ("a.csv", "carrier,from,to,stops,km\nXY,a,b,0,3\n", [("a", "b", 3)]),
        ("a.csv", "from,to,minutes\na,b,3\n", [("a", "b", 3)]),
        ("a.csv", "town,other,how far\na,b,3\n", [("a", "b", 3)]),
        ("a.csv", "from,to,note,more\na,b,nice,x\n", [("a", "b", None)]),
        ("a.csv", "a;b;3\n", [("a", "b", 3)]),
        ("a.csv", '"New York, NY", "Boston, MA", 306\n', [("New York, NY", "Boston, MA", 306)]),
        ("a.csv", "# roads\n\na, b, 3\n  \n#end\n", [("a", "b", 3)]),
        ("a.csv", "a,b,inf\nb,a,-1e3\n", [("a", "b", INF), ("b", "a", -1000.0)]),
        ("a.csv", "10,2,1\n2,3,1\n", [(10, 2, 1), (2, 3, 1)]),
        ("a.csv", "007,2\n", [("007", "2", None)]),
        ("a.csv", "a,2\n", [("a", "2", None)]),
        ("a.csv", "-1,2\n", [("-1", "2", None)]),
        ("a.csv", "a,b,1\na,b,2\na,a,3\n", [("a", "b", 1), ("a", "b", 2), ("a", "a", 3)]),
        ("a.tsv", "a\tb\t3\nb\ta b\n", [("a", "b", 3), ("b", "a b", None)]),
        ("a.txt", "# Nodes: 2\n0 1\n1\t0  3\n", [(0, 1, None), (1, 0, 3)]),
        ("A.CSV", "a,b\n", [("a", "b", None)]),
    ],
)
def test_edge_lists(tmp_path: Path, name: str, content: str, expected: list[tuple[Any, ...]]) -> None:
    graph = read(tmp_path / name, content)
    assert listed(graph) == expected
    assert graph.directed


def test_integers_are_vertices_in_order(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "2,0\n1,2\n").labels == (0, 1, 2)
    assert read(tmp_path / "a.csv", "b,a\n").labels == ("b", "a")


def test_undirected(tmp_path: Path) -> None:
    assert not read(tmp_path / "a.csv", "a,b\n", directed=False).directed


@pytest.mark.parametrize("weight", ["1_000", "0x10", "1,5", "--1"])
def test_numbers_are_plain(tmp_path: Path, weight: str) -> None:
    with pytest.raises(GraphError, match="line 2"):
        read(tmp_path / "a.csv", f'a,b,1\na,b,"{weight}"\n')


def test_numpy_files(tmp_path: Path) -> None:
    matrix = np.array([[0, 3.5], [INF, 0]])
    np.save(tmp_path / "a.npy", matrix)
    np.savez(tmp_path / "a.npz", anything=matrix)
    np.testing.assert_array_equal(read_file(tmp_path / "a.npy"), matrix)
    np.testing.assert_array_equal(read_file(tmp_path / "a.npz"), matrix)
    np.savez(tmp_path / "b.npz", one=matrix, two=matrix)
    with pytest.raises(GraphError, match="holds 2: one, two"):
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
    ],
)
def test_matrix_market(tmp_path: Path, content: str, expected: Any) -> None:
    pytest.importorskip("scipy")
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix {content}")
    assert read_graph(read_file(tmp_path / "a.mtx"), MIN_PLUS).values[0].tolist() == expected


@pytest.mark.parametrize("name", ["a.mtx", "a.npz"])
def test_without_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "a.mtx").write_text("")
    np.savez(tmp_path / "a.npz", format="csr", data=1)
    for module in ("scipy", "scipy.io", "scipy.sparse"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(GraphError, match=r'pip install "semiring\[graphs\]"'):
        read_file(tmp_path / name)
