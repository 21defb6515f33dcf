"""Factors on disk: the same bits afterwards, whatever they are of, and files that are foreign or damaged."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr

SUFFIXES = [".npz", ".zarr", ".zarr.zip"]
TRUST = sr.Semiring("trust", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))


def parts(values: Any) -> tuple[Any, ...]:
    """The components."""
    return values if isinstance(values, tuple) else (values,)


def same(loaded: sr.Factor, f: sr.Factor) -> None:
    """All is the same, to the last bit."""
    assert (loaded.nodes, loaded.order, loaded.fill, loaded.dtypes, repr(loaded)) == (f.nodes, f.order, f.fill, f.dtypes, repr(f))
    for found, wanted in zip(parts(loaded.closure()), parts(f.closure()), strict=True):
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()


def again(f: sr.Factor, path: Path, **how: Any) -> sr.Factor:
    """The factor after it was saved."""
    f.save(path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    return sr.Factor.load(path, **how)


def test_graphs_as_weights_are_read_as_the_factors_was(tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", length=5.0, weight=1.0)
    graph.add_edge("b", "c", length=7.0, weight=1.0)
    f = sr.factor(graph, weight="length")
    loaded = again(f, tmp_path / "f.npz")
    graph["a"]["b"]["length"] = 50.0
    for factor in (f, loaded):
        factor.update(graph)
        np.testing.assert_array_equal(factor.rows("a"), [0, 50, 57])
        factor.update(graph, weight="weight")
        np.testing.assert_array_equal(factor.rows("a"), [0, 1, 2])
    closed = sp.csr_array(np.array([[0, 2.0, -1], [0, 0, 3], [-1, 0, 0]]))
    f = sr.factor(closed, nonedge=-1)
    f.update(closed)
    np.testing.assert_array_equal(again(f, tmp_path / "f.npz").rows(0), [0, 2, 5])


@pytest.mark.parametrize("semiring", [*(name for name in sr.semirings() if name != "gf2"), TRUST], ids=str)
def test_round_trips(semiring: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    matrix = sr.testing.random_matrix(semiring, 41, density=0.06, rng=rng)
    if semiring in ("log", "plus-times"):
        matrix = matrix - 6.0 if semiring == "log" else matrix / 100
    f = sr.factor(matrix, semiring)
    same(again(f, tmp_path / "f.npz", **({"semiring": TRUST} if semiring is TRUST else {})), f)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("n", [0, 1, 30])
def test_formats_and_dtypes(suffix: str, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    matrix = np.where(rng.random((n, n)) < 0.1, rng.integers(1, 50, (n, n)), np.iinfo(np.int32).max).astype(np.int32)
    f = sr.factor(matrix)
    same(again(f, tmp_path / f"f{suffix}"), f)


def test_names_lists_and_updates(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ends = [(f"v{u}", ("w", int(v)), float(w)) for u, v, w in zip(*rng.integers(0, 30, (2, 60)), rng.random(60), strict=True)]
    for directed in (False, True):
        f = sr.factor(sr.edges(ends, directed=directed))
        path = tmp_path / f"{directed}" / "f.npz"
        path.parent.mkdir()
        loaded = again(f, path)
        same(loaded, f)
        for change in (rng.random(60), ([ends[3][0]], [ends[3][1]], [0.001]), ([ends[9][0]], [ends[9][1]], [np.inf])):
            f.update(change)
            loaded.update(change)
            same(loaded, f)
        with pytest.raises(sr.GraphError):
            loaded.update((["v0"], ["v0"], [1.0]))
        same(loaded, f)


def test_rounding_that_makes_a_cycle_improve(tmp_path: Path) -> None:
    """Edges that were reweighed by potentials."""
    graph = sr.edges([(0, 1, 0.1), (1, 2, 0.2), (2, 0, -0.3)])
    f = sr.factor(graph)
    same(again(f, tmp_path / "f.npz"), f)


def test_the_semiring_has_to_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    sr.factor(np.array([[0, 0.5], [0.25, 0]]), TRUST).save(path)
    with pytest.raises(sr.SemiringError, match=r"a factor over 'trust', which is none of the built-in semirings: pass it"):
        sr.Factor.load(path)
    with pytest.raises(sr.SemiringError, match="give other elements"):
        sr.Factor.load(path, semiring="max-times")


def rewritten(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> None:
    """The file with other members or another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["factor.json"])
    change(members, header)
    members["factor.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _entry(name: str, place: int, value: Any) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    """Another entry in an array."""

    def change(members: dict[str, bytes], header: dict[str, Any]) -> None:
        content = bytearray(members[f"{name}.npy"])
        array = np.frombuffer(content, type(value), offset=128)
        array[place] = value
        members[f"{name}.npy"] = bytes(content)

    return change


@pytest.mark.parametrize(("change", "message"), [
    (lambda members, header: members.pop("upper0.npy"), "upper0.npy is missing"),
    (lambda members, header: members.update({"lower0.npy": members["lower0.npy"][:-8]}), "lower0.npy has"),
    (lambda members, header: header.update({"edges": 4}), "tail.npy begins with the header"),
    (lambda members, header: header.update({"vertices": -1}), "-1 vertices"),
    (lambda members, header: header.update({"nodes": ["a", "a", "c", "d"]}), "3 different names"),
    (lambda members, header: header.update({"factor": 2}), "version 2"),
    (lambda members, header: header.pop("directed"), "'directed'"),
    (_entry("order", 0, np.int64(3)), "order names a vertex twice"),
    (_entry("order", 0, np.int64(4)), "number of a vertex that is none"),
    (_entry("head", 0, np.int64(-1)), "number of a vertex that is none"),
    (_entry("head", 2, np.int64(0)), "not in the order of rows"),
    (_entry("weight0", 0, np.float64(np.nan)), "outside the carrier"),
    (_entry("upper0", 1, np.float64(-np.inf)), "outside the carrier"),
])  # fmt: skip
def test_damaged_files_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("c", "d", 3.0)], directed=False), order=["a", "b", "c", "d"]).save(path)
    rewritten(path, change)
    with pytest.raises(sr.GraphError, match=message):
        sr.Factor.load(path)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sr.Factor.load(tmp_path / "f.npz")
    sr.apsp([[0, 1], [1, 0]], paths=True).save(tmp_path / "p.npz")
    with pytest.raises(sr.GraphError, match=r"was not written by Factor.save: factor.json is missing"):
        sr.Factor.load(tmp_path / "p.npz")
    with pytest.raises(sr.GraphError, match="must end in"):
        sr.factor([[0, 1], [1, 0]]).save(tmp_path / "f.txt")
