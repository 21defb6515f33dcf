"""Paths on disk: the same answers afterwards, whatever they were of; and files that are foreign, damaged or half written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.files import formats
from semiring.results import saving

INF = np.inf
SUFFIXES = [".npz", ".zarr", ".zarr.zip"]
TRUST = sr.Semiring("trust", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))


@pytest.fixture(autouse=True)
def _zarr(request: pytest.FixtureRequest) -> None:
    """Skip the cases of Zarr without Zarr."""
    if "zarr" in request.node.name:
        pytest.importorskip("zarr")


a_graph = np.array([[0, 1.0, INF, 9], [INF, 0, 1.0, INF], [INF, INF, 0, 2.5], [INF, INF, INF, 0]])


def same(loaded: sr.Paths, paths: sr.Paths) -> None:
    """All answers are the same."""
    assert loaded.nodes == paths.nodes
    assert list(map(type, loaded.nodes)) == list(map(type, paths.nodes))
    assert loaded.semiring == paths.semiring
    assert loaded.reflexive == paths.reflexive
    assert loaded.via.dtype == np.int32
    np.testing.assert_array_equal(loaded.via, paths.via)
    values, expected = (v if isinstance(v, tuple) else (v,) for v in (loaded.values, paths.values))
    for v, w in zip(values, expected, strict=True):
        assert v.dtype == w.dtype
        np.testing.assert_array_equal(v, w)
    if paths.via.ndim == 2:
        assert [loaded.paths_from(v) for v in loaded.nodes] == [paths.paths_from(v) for v in paths.nodes]
    assert repr(loaded) == repr(paths)


def again(paths: sr.Paths, folder: Path, suffix: str = ".npz", **how: Any) -> sr.Paths:
    path = folder / f"paths{suffix}"
    paths.save(path)
    assert sorted(os.listdir(folder)) == [path.name]  # nothing half written is left
    return sr.Paths.load(path, **how)


CASES = [
    (s, d) for s, dtypes in [
        (sr.MIN_PLUS, "f8 f4 i2 u4 i8"), (sr.MAX_MIN, "f4 i4"), (sr.BOOLEAN, "?"), (sr.MAX_TIMES, "f8"), (sr.DISTANCE_HOPS, "f8"),
        (sr.MAX_PLUS, "f4"), (TRUST, "f8"),
    ] for d in dtypes.split()
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # of a matrix of zeros
@pytest.mark.parametrize(("semiring", "dtype"), CASES, ids=lambda x: getattr(x, "name", x))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_round_trips(semiring: sr.Semiring, dtype: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    matrix = data.draw(testing.matrices(semiring, dtype, max_n=5))
    paths = sr.closure(matrix, semiring, paths=True, reflexive=data.draw(st.booleans()))
    how: dict[str, Any] = {} if semiring is not TRUST else {"semiring": TRUST}
    same(again(paths, tmp_path_factory.mktemp("there"), **how), paths)
    same(again(paths, tmp_path_factory.mktemp("there"), **how, mmap=True), paths)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_zarr_round_trips(suffix: str, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    a = np.where(rng.random((n, n)) < 0.1, rng.integers(1, 9, (n, n)), INF)
    same(again(sr.apsp(a, paths=True), tmp_path, suffix), sr.apsp(a, paths=True))


names = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)) | st.binary(),
    lambda part: st.lists(part, max_size=3).map(tuple),
    max_leaves=4,
)


@settings(max_examples=24)
@given(nodes=st.lists(names, min_size=2, max_size=6, unique_by=lambda name: name))
def test_names_come_back(nodes: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    paths = sr.apsp(sr.edges([(nodes[0], nodes[1], 1.0)], nodes=nodes), paths=True)
    same(again(paths, tmp_path_factory.mktemp("names")), paths)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_odd_names_in_zarr(suffix: str, tmp_path: Path) -> None:
    nodes: list[Any] = ["\ud800", "Ω\n", INF, 10**30, ("a", (1, None)), b"\xff", True]
    paths = sr.apsp(sr.edges([(nodes[0], nodes[1], 1.0)], nodes=nodes), paths=True)
    same(again(paths, tmp_path, suffix), paths)


def test_names_that_are_scalars_of_numpy_find_their_vertices(tmp_path: Path) -> None:
    nodes = [np.str_("a"), np.int64(4), np.float32(0.1)]
    loaded = again(sr.apsp(sr.edges([(nodes[0], nodes[2], 1.0)], nodes=nodes), paths=True), tmp_path)
    assert loaded.nodes == tuple(nodes)
    assert loaded.path(nodes[0], nodes[2]) == ["a", np.float32(0.1)]


class Place(NamedTuple):
    x: int


TIMES = [np.datetime64("2020-01-01", "ns"), np.timedelta64(1, "ns"), (np.datetime64(0, "ns"),)]
"""Of nanoseconds, for which Python has nothing but whole numbers."""


@pytest.mark.parametrize("name", [frozenset({1}), 1j, Place(1), np.datetime64("2020-01-01"), np.longdouble(1), *TIMES], ids=repr)
def test_names_that_cannot_be_kept_are_refused(name: Any, tmp_path: Path) -> None:
    paths = sr.apsp(sr.edges([(name, "b", 1.0)]), paths=True)
    with pytest.raises(sr.GraphError, match="name vertices by"):
        paths.save(tmp_path / "p.npz")
    assert not list(tmp_path.iterdir())


def test_paths_between_chosen_vertices_load_those_of_all(tmp_path: Path) -> None:
    paths = sr.apsp(sr.edges([("a", "b", 1.0)]), paths=True)
    paths.save(tmp_path / "p.npz")
    loaded = type(sr.apsp(sr.edges([("a", "b", 1.0)]), sources=["a"], paths=True)).load(tmp_path / "p.npz")
    assert type(loaded) is sr.Paths
    assert loaded.path("a", "b") == ["a", "b"]


def test_exact_entries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sr.DTypeError, match="pickle"):
        sr.apsp(np.array([[0, 1], [2, 0]], dtype=object), paths=True).save(tmp_path / "p.npz")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_batches_and_views(suffix: str, tmp_path: Path) -> None:
    paths = sr.apsp(np.stack([a_graph, a_graph.T])[None], paths=True)
    loaded = again(paths, tmp_path, suffix)
    same(loaded, paths)
    assert loaded[0, 1].path(2, 0) == [2, 1, 0]
    strided = sr.Paths(sr.MIN_PLUS, (np.asfortranarray(paths[0, 0].distances),), paths.via[0, 0])
    same(again(strided, tmp_path, suffix), strided)


def test_the_witness_tag_is_kept(tmp_path: Path) -> None:
    paths = sr.closure(a_graph, sr.TROPICAL_ARGMIN)
    assert again(paths, tmp_path).semiring == sr.TROPICAL_ARGMIN
    assert again(paths, tmp_path, semiring=sr.MIN_PLUS).semiring.witness


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_semiring_of_ones_own_is_passed_and_checked(suffix: str, tmp_path: Path) -> None:
    paths = sr.closure(np.array([[1, 0.75, 0], [0, 1, 0.5], [0, 0, 1]]), TRUST, paths=True)
    path = tmp_path / f"p{suffix}"
    paths.save(path)
    with pytest.raises(sr.SemiringError, match=r"'trust'.*semiring="):
        sr.Paths.load(path)
    for wrong in (sr.MAX_TIMES, sr.Semiring("trust", max, lambda a, b: max(a + b - 1.5, 0), 0, 1), sr.DISTANCE_HOPS):
        with pytest.raises(sr.SemiringError, match="other elements"):
            sr.Paths.load(path, semiring=wrong)
    rewritten = sr.Semiring("trust", lambda a, b: a if a > b else b, lambda a, b: max(0, b + a - 1), 0, 1, domain=(0, 1))
    assert sr.Paths.load(path, semiring=rewritten).path(0, 2) == [0, 1, 2]


def test_a_semiring_that_has_a_name_of_the_catalogue_is_none_of_it(tmp_path: Path) -> None:
    other = sr.Semiring("min-plus", min, max, INF, -INF)
    sr.closure(a_graph, other, paths=True).save(tmp_path / "p.npz")
    with pytest.raises(sr.SemiringError, match="pass it"):
        sr.Paths.load(tmp_path / "p.npz")
    with pytest.raises(sr.SemiringError, match="other elements"):
        sr.Paths.load(tmp_path / "p.npz", semiring=sr.MIN_PLUS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_paths_that_rounding_has_bent_are_found_after_loading(suffix: str, tmp_path: Path) -> None:
    a = np.array([[0, 1.0, INF, INF], [INF, 0, -1.0, INF], [1.0, INF, 0, -1.0], [INF, INF, INF, 0]])
    via = sr.apsp(a, paths=True).via
    via[0, 2] = 2
    assert again(sr.Paths(sr.MIN_PLUS, (sr.apsp(a),), via, kept=lambda: (a,)), tmp_path, suffix).path(0, 2) == [0, 1, 2]


def test_the_input_is_kept_only_where_it_may_be_needed(tmp_path: Path) -> None:
    def arrays(paths: sr.Paths) -> set[str]:
        paths.save(tmp_path / "p.npz")
        return set(np.load(tmp_path / "p.npz").files) - {"paths.json"}

    assert arrays(sr.apsp(a_graph, paths=True)) == {"value0", "via"}
    negative = np.where(a_graph == 9, -1, a_graph)
    assert arrays(sr.apsp(negative, paths=True)) == {"value0", "via", "edge0"}
    integers = np.where(np.isinf(negative), 10**6, negative).astype(int)
    assert arrays(sr.apsp(integers, nonedge=10**6, paths=True)) == {"value0", "via"}


def test_numpy_reads_the_arrays(tmp_path: Path) -> None:
    paths = sr.apsp(a_graph, paths=True)
    paths.save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as archive:
        np.testing.assert_array_equal(archive["value0"], paths.distances)
    mapped = sr.Paths.load(tmp_path / "p.npz", mmap=True)
    assert isinstance(mapped.distances, np.memmap)
    assert isinstance(mapped.via, np.memmap)
    assert mapped.distances.flags.aligned
    assert mapped.distances.offset % 64 == 0
    assert not mapped.distances.flags.writeable


def test_a_closure_in_files_is_saved_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zarr")
    a = np.full((300, 300), INF, np.float32)
    a[np.arange(299), np.arange(1, 300)] = 1
    paths = sr.apsp(a, paths=True, checkpoint=tmp_path / "checkpoint")
    assert isinstance(paths.distances, np.memmap)
    monkeypatch.setattr(formats, "DISK", 300 * 4 * 7)
    sizes, rows_on_host = [], formats.rows_on_host

    def counted(array: Any, index: Any) -> Any:
        sizes.append(len(rows := rows_on_host(array, index)))
        return rows

    monkeypatch.setattr(formats, "rows_on_host", counted)
    for suffix in SUFFIXES:
        (folder := tmp_path / suffix[1:]).mkdir()
        loaded = again(paths, folder, suffix)
        assert loaded.path(3, 250) == list(range(3, 251))
        np.testing.assert_array_equal(loaded.distances, paths.distances)
    assert max(sizes) == 7


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_saving_replaces_what_was_there(suffix: str, tmp_path: Path) -> None:
    again(sr.apsp(a_graph, paths=True), tmp_path, suffix)
    other = sr.apsp(a_graph[:2, :2], paths=True)
    same(again(other, tmp_path, suffix), other)
    if suffix == ".npz":
        mapped = sr.Paths.load(tmp_path / "paths.npz", mmap=True)
        same(again(mapped, tmp_path), other)  # in the place of its own file


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_save_that_fails_leaves_the_old_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sr.apsp(a_graph, paths=True)
    again(paths, tmp_path, suffix)

    def fails(array: Any, index: Any) -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(formats, "rows_on_host", fails)
    with pytest.raises(OSError, match="no space"):
        sr.apsp(a_graph[:2, :2], paths=True).save(tmp_path / f"paths{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [f"paths{suffix}"]
    same(sr.Paths.load(tmp_path / f"paths{suffix}"), paths)


def test_folders_of_others_are_not_replaced(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    paths = sr.apsp(a_graph, paths=True)
    zarr.create_array(tmp_path / "theirs.zarr", shape=(2,), dtype="f4")
    (tmp_path / "notes.zarr").mkdir()
    (tmp_path / "notes.zarr" / "diary.txt").write_text("dear diary")
    (tmp_path / "file.zarr").write_text("no folder")
    for name in ("theirs.zarr", "notes.zarr", "file.zarr"):
        with pytest.raises(sr.GraphError, match="holds no saved paths"):
            paths.save(tmp_path / name)
    (tmp_path / "empty.zarr").mkdir()
    paths.save(tmp_path / "empty.zarr")
    for name in ("folder.npz", "folder.zarr.zip"):
        (tmp_path / name).mkdir()
        with pytest.raises(sr.GraphError, match="folder"):
            paths.save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        paths.save(tmp_path / "nowhere" / "p.npz")


@pytest.mark.parametrize("name", ["p.npy", "p", "p.zip", "p.pkl"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(sr.GraphError, match=r"\.npz, \.zarr or \.zarr\.zip"):
        sr.apsp(a_graph, paths=True).save(tmp_path / name)
    with pytest.raises(sr.GraphError, match=r"\.npz"):
        sr.Paths.load(tmp_path / name)


def test_no_file(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        with pytest.raises(FileNotFoundError, match="there is no"):
            sr.Paths.load(tmp_path / f"p{suffix}")


@pytest.mark.parametrize("mmap", [False, True])
def test_foreign_files_are_told(tmp_path: Path, mmap: bool) -> None:
    np.savez(tmp_path / "arrays.npz", via=np.zeros((2, 2), np.int32))
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "empty.npz").touch()
    (tmp_path / "folder.npz").mkdir()
    for path in tmp_path.iterdir():
        with pytest.raises(sr.GraphError, match=f"{path.name} is damaged, or was not"):
            sr.Paths.load(path, mmap=mmap)


def test_foreign_zarr_is_told(tmp_path: Path) -> None:
    import zarr

    zarr.create_array(tmp_path / "array.zarr", shape=(2,), dtype="f4")
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "text.zarr.zip").write_text("no archive")
    for path in tmp_path.iterdir():
        with pytest.raises(sr.GraphError, match=f"{path.name} is damaged, or was not"):
            sr.Paths.load(path)


GRAPH = np.where(np.eye(5, k=1) + np.eye(5, k=-3) > 0, 1.5, INF)
SAVED = sr.apsp(sr.edges([(f"v{i}", f"v{j}", GRAPH[i, j]) for i, j in np.argwhere(np.isfinite(GRAPH))]), paths=True)
NEGATIVE = sr.apsp(np.where(np.eye(5, k=1) > 0, -1.0, GRAPH + 9), paths=True)
"""Its input is kept in the file."""


def files(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def deflated(path: Path) -> None:
    """The same members, compressed."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def spoilt(path: Path, data: st.DataObject) -> None:
    """One byte of a file changed, its end cut off, or two of its parts exchanged."""
    file = data.draw(st.sampled_from(files(path)))
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "swap", "remove"])):
        case "flip":
            content[at] ^= data.draw(st.integers(1, 255))
        case "cut":
            del content[at:]
        case "swap":
            other = data.draw(st.integers(0, len(content) - 1))
            length = data.draw(st.integers(1, 64))
            first, second = content[at : at + length], content[other : other + length]
            content[at : at + length], content[other : other + length] = second, first
        case "remove":
            del content[at : at + data.draw(st.integers(1, 64))]
    file.write_bytes(content)


def is_told_or_the_same(path: Path, paths: sr.Paths, *, mmap: bool) -> None:
    """Loading gives the same answers or an error of this library's, and takes little memory for it."""
    tracemalloc.start()
    try:
        loaded = sr.Paths.load(path, mmap=mmap)
    except sr.SemiringError:
        pass
    else:
        same(loaded, paths)
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken < 20 << 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [".npz", ".npz, mmap", ".npz, deflated", ".zarr", ".zarr.zip"])
@settings(max_examples=32, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_told_or_the_same(how: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    suffix, *more = how.split(", ")
    path = tmp_path_factory.mktemp("damaged") / f"p{suffix}"
    paths = data.draw(st.sampled_from([SAVED, NEGATIVE]))
    paths.save(path)
    if more == ["deflated"]:
        deflated(path)
    spoilt(path, data)
    is_told_or_the_same(path, paths, mmap=more == ["mmap"])


def test_a_changed_name_in_zarr_is_damage(tmp_path: Path) -> None:
    """The text of a Zarr folder has a checksum, as its arrays have."""
    sr.apsp(sr.edges([("v0", "v1", 1.0), ("v1", "v2", 2.0)]), paths=True).save(tmp_path / "p.zarr")
    file = tmp_path / "p.zarr" / "zarr.json"
    file.write_text(file.read_text().replace("v2", "w2"))
    with pytest.raises(sr.GraphError, match=r"checksum of paths\.json is wrong"):
        sr.Paths.load(tmp_path / "p.zarr")


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None], compression: int = zipfile.ZIP_STORED) -> Path:
    """The members of an archive changed by somebody who makes their checksums right again."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return path


def changed_header(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    def changed(members: dict[str, bytes]) -> None:
        change(header := json.loads(members["paths.json"]))
        members["paths.json"] = json.dumps(header).encode()

    rewritten(path, changed)


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from([10**9, 10**30, 0.5, INF, "x", "float64", "O", "V99999", "min-plus"]),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from(["float", "tuple", "bytes", "name"]), part, max_size=2),
    max_leaves=6,
)


def places(written: Any) -> list[tuple[Any, Any]]:
    """Every container in what JSON gives, with each of its keys."""
    if not isinstance(written, dict | list):
        return []
    keys = list(written) if isinstance(written, dict) else list(range(len(written)))
    return [(written, key) for key in keys] + [place for key in keys for place in places(written[key])]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mmap", [False, True])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_whatever_the_header_says_is_told_or_harmless(mmap: bool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("header") / "p.npz"
    SAVED.save(path)

    def change(header: dict[str, Any]) -> None:
        table, key = data.draw(st.sampled_from(places(header)))
        if isinstance(table, dict) and data.draw(st.booleans()):
            del table[key]
        else:
            table[key] = data.draw(junk)

    changed_header(path, change)
    tracemalloc.start()
    try:
        loaded = sr.Paths.load(path, mmap=mmap)
        assert len(loaded.nodes) == 5
        loaded.paths_from(loaded.nodes[0])
    except sr.SemiringError:
        pass
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken < 20 << 20


@pytest.mark.parametrize("mmap", [False, True])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_other_members_are_told_or_harmless(mmap: bool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("members") / "p.npz"
    NEGATIVE.save(path)

    def change(members: dict[str, bytes]) -> None:
        one, other = (data.draw(st.sampled_from(sorted(members))) for _ in range(2))
        members[one], members[other] = members[other], members[one]
        content = bytearray(members[one])
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(0, 255))
        members[one] = bytes(content)

    rewritten(path, change)
    try:
        loaded = sr.Paths.load(path, mmap=mmap)
    except sr.SemiringError:
        return
    assert not np.isnan(loaded.distances).any()
    assert ((loaded.via >= -1) & (loaded.via < 5)).all()
    with contextlib.suppress(sr.GraphError):  # numbers that nobody has computed: no such path
        loaded.paths_from(0)


def in_fortrans_order(array: np.ndarray[Any, Any]) -> bytes:
    np.save(file := io.BytesIO(), np.asfortranarray(array))
    return file.getvalue()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("value0", in_fortrans_order(SAVED.distances), "value0.npy begins with the header .*'fortran_order': True"),
        ("value0", SAVED.distances.astype(">f8"), "value0.npy begins with the header"),
        ("value0", np.array([[None] * 5] * 5), r"value0.npy begins with the header .*'\|O'"),
        ("value0", b"no array", "value0.npy begins with the header"),
        ("value0", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535, r"value0.npy begins with the header '\(\(\("),
        ("value0", SAVED.distances[:4], "value0.npy begins with the header"),
        ("value0", np.where(np.eye(5, k=1), np.nan, SAVED.distances), r"value0\[0, 1\] is nan, which is outside the carrier of min-plus"),
        ("value0", SAVED.distances - INF, r"value0\[0, 0\] is -inf, which is outside"),
        ("via", np.full((5, 5), 5, np.int32), r"via\[0, 0\] is 5, which is no vertex from 0 to 4"),
        ("via", np.where(np.eye(5, k=2), np.int32(-2), np.int32(-1)).astype(np.int32), r"via\[0, 2\] is -2"),
    ],
    ids=["order", "bytes", "objects", "none", "brackets", "shape", "NaN", "−∞", "beyond", "below"],
)
def test_members_that_no_closure_has_are_named(member: str, content: Any, message: str, mmap: bool, tmp_path: Path) -> None:
    if not isinstance(content, bytes):
        np.save(file := io.BytesIO(), content, allow_pickle=True)
        content = file.getvalue()
    SAVED.save(tmp_path / "p.npz")
    rewritten(tmp_path / "p.npz", lambda members: members.update({f"{member}.npy": content}))
    with pytest.raises(sr.GraphError, match=message) as caught:
        sr.Paths.load(tmp_path / "p.npz", mmap=mmap)
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize("mmap", [False, True])
def test_bytes_that_are_no_truth_values_are_named(mmap: bool, tmp_path: Path) -> None:
    sr.closure(np.eye(3, k=1, dtype=bool), sr.BOOLEAN, paths=True).save(tmp_path / "p.npz")
    rewritten(tmp_path / "p.npz", lambda members: members.update({"value0.npy": members["value0.npy"][:-2] + b"\x02\x01"}))
    with pytest.raises(sr.GraphError, match=r"value0\[2, 1\] is 2, which is no truth value"):
        sr.Paths.load(tmp_path / "p.npz", mmap=mmap)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("name", ["value0", "via"])
def test_entries_of_zarr_that_no_closure_has_are_named(suffix: str, name: str, tmp_path: Path) -> None:
    wrong = {"value0": (np.full((5, 5), np.nan), SAVED.via), "via": (SAVED.distances, np.full((5, 5), 5, np.int32))}[name]
    file = formats.format_for(tmp_path / f"p{suffix}", "paths")
    SAVED.save(tmp_path / "p.npz")
    with zipfile.ZipFile(tmp_path / "p.npz") as archive:
        file.write(archive.read("paths.json").decode(), dict(zip(("value0", "via"), wrong, strict=True)))
    with pytest.raises(sr.GraphError, match=rf"{name}\[0, 0\] is (nan|5)"):
        sr.Paths.load(tmp_path / f"p{suffix}")


def test_what_is_no_element_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(sr.DomainError, match=r"values\[0, 1\] = nan"):
        sr.Paths(sr.MIN_PLUS, (np.where(np.eye(5, k=1), np.nan, SAVED.distances),), SAVED.via).save(tmp_path / "p.npz")
    assert not list(tmp_path.iterdir())


def takes_little(path: Path, message: str, *, mmap: bool = False) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(sr.SemiringError, match=message):
            sr.Paths.load(path, mmap=mmap)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 20 << 20


HUGE = bytes(30 << 20)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["value0.npy", "via.npy", "paths.json"])
def test_members_that_are_far_larger_unpacked_are_not_unpacked(name: str, method: int, tmp_path: Path) -> None:
    SAVED.save(tmp_path / "p.npz")
    rewritten(tmp_path / "p.npz", lambda members: members.update({name: members[name] + HUGE}), method)
    takes_little(tmp_path / "p.npz", "paths.json is compressed by another" if method != zipfile.ZIP_DEFLATED else f"{name} has 31,45")


def test_a_member_is_unpacked_no_further_than_it_announces(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    SAVED.save(path)
    rewritten(path, lambda members: members.update({"value0.npy": members["value0.npy"] + HUGE}), zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as archive:
        true, said = (struct.pack("<I", size) for size in (archive.getinfo("value0.npy").file_size, 128 + 200))
    content = path.read_bytes()
    assert content.count(true) == 2  # of the member itself, and in the table at the end
    path.write_bytes(content.replace(true, said))
    takes_little(path, "Bad CRC-32")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("name", ["value0/c/0/0", "value0/zarr.json", "zarr.json"])
def test_files_of_zarr_that_are_far_larger_unpacked_are_not_unpacked(name: str, suffix: str, tmp_path: Path) -> None:
    zstd = pytest.importorskip("numcodecs.zstd")
    path = tmp_path / f"p{suffix}"
    SAVED.save(tmp_path / "p.zarr")
    file = tmp_path / "p.zarr" / name
    file.write_bytes(zstd.compress(HUGE) if "/c/" in name else file.read_bytes() + b" " * len(HUGE))
    if suffix == ".zarr.zip":
        shutil.make_archive(str(tmp_path / "p.zarr"), "zip", tmp_path / "p.zarr")
    elif name == "zarr.json":
        return  # it is as large as it is
    takes_little(path, f"{name} (announces 31,457,280 bytes, and 200|has 31,45)")


def test_chunks_of_zarr_that_no_row_has_are_told(tmp_path: Path) -> None:
    SAVED.save(tmp_path / "p.zarr")
    file = tmp_path / "p.zarr" / "value0" / "zarr.json"
    layout = json.loads(file.read_text())
    for part, wrong, message in [
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [99999, 99999]}}, "which are not rows"),
        ("shape", [5, 6], r"value0 has shape \(5, 6\)"),
        ("data_type", "float32", "dtype float32"),
        ("codecs", [layout["codecs"][0], {"name": "gzip", "configuration": {"level": 1}}], "Zstandard"),
        ("node_type", "group", "value0"),
    ]:
        file.write_text(json.dumps({**layout, part: wrong}))
        takes_little(tmp_path / "p.zarr", message)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (("semiring", "elements"), [[0.5] * 6000], "'elements' than up to 10 numbers"),
        (("shape",), [30000, 30000], r"paths.json has 5 different names for 30,000 vertices"),
        (("shape",), [5, 6], r"paths.json has the shape \(5, 6\)"),
        (("shape",), [1, 5, 5], "value0.npy begins with the header"),
        (("shape",), [10**9, 0, 0], "5 different names"),
        (("nodes",), ["a", "b", "c", "d", "d"], "4 different names"),
        (("nodes",), ["a", "b", "c", "d", ["e"]], "a name that is none"),
        (("nodes",), ["a", "b", "c", "d", {"code": "e"}], "a name that is none"),
        (("dtypes",), ["object"], "the dtype 'object'"),
        (("dtypes",), ["float64"] * 2, "elements"),
        (("edges",), True, "edge0.npy is missing"),
        (("semiring", "name"), "none", "none of the built-in"),
        (("reflexive",), 1, "'reflexive'"),
    ],
    ids=str,
)
def test_headers_that_do_not_fit_are_told(part: tuple[str, ...], value: Any, message: str, tmp_path: Path) -> None:
    SAVED.save(tmp_path / "p.npz")

    def change(header: dict[str, Any]) -> None:
        for key in part[:-1]:
            header = header[key]
        header[part[-1]] = value

    changed_header(tmp_path / "p.npz", change)
    for mmap in (False, True):
        takes_little(tmp_path / "p.npz", message, mmap=mmap)


def test_matrices_that_do_not_fit_the_memory_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sr.apsp(GRAPH, paths=True)
    paths.save(tmp_path / "p.npz")
    monkeypatch.setattr(saving, "fits", lambda needed, device: needed < 5 * 5 * 12)
    with pytest.raises(sr.TooLargeError, match="mmap=True"):
        sr.Paths.load(tmp_path / "p.npz")
    same(sr.Paths.load(tmp_path / "p.npz", mmap=True), paths)


def test_a_batch_of_many_matrices_of_nothing(tmp_path: Path) -> None:
    sr.Paths(sr.MIN_PLUS, (np.empty((10**9, 0, 0)),), np.empty((10**9, 0, 0), np.int32)).save(tmp_path / "p.npz")
    assert len(sr.Paths.load(tmp_path / "p.npz")) == 10**9


def test_missing_chunks_are_told(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    paths = sr.apsp(a_graph, paths=True)
    paths.save(tmp_path / "p.zarr")
    (chunk,) = (tmp_path / "p.zarr" / "value0" / "c").rglob("0/0")
    chunk.unlink()
    with pytest.raises(sr.GraphError, match="checksum of value0"):
        sr.Paths.load(tmp_path / "p.zarr")


def test_parts_that_do_not_fit_are_told(tmp_path: Path) -> None:
    paths = sr.apsp(a_graph, paths=True)
    for via in (np.full((4, 4), 7, np.int32), np.full((4, 4), -2, np.int32)):
        sr.Paths(sr.MIN_PLUS, (paths.distances,), via).save(tmp_path / "p.npz")
        with pytest.raises(sr.GraphError, match="which is no vertex"):
            sr.Paths.load(tmp_path / "p.npz")


def test_a_later_version_is_told(tmp_path: Path) -> None:
    sr.apsp(a_graph, paths=True).save(tmp_path / "p.npz")
    with zipfile.ZipFile(tmp_path / "p.npz") as old, zipfile.ZipFile(tmp_path / "q.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"paths": 1', b'"paths": 2'))
    with pytest.raises(sr.GraphError, match="version 2"):
        sr.Paths.load(tmp_path / "q.npz")


def test_mapping_needs_numpys_own_form(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    sr.apsp(a_graph, paths=True).save(tmp_path / "p.zarr")
    with pytest.raises(sr.GraphError, match="mmap"):
        sr.Paths.load(tmp_path / "p.zarr", mmap=True)
    sr.apsp(a_graph, paths=True).save(tmp_path / "p.npz")
    with zipfile.ZipFile(tmp_path / "p.npz") as old, zipfile.ZipFile(tmp_path / "q.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    same(sr.Paths.load(tmp_path / "q.npz"), sr.apsp(a_graph, paths=True))
    with pytest.raises(sr.GraphError, match="compressed"):
        sr.Paths.load(tmp_path / "q.npz", mmap=True)


def test_a_missing_zarr_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sr.apsp(a_graph, paths=True)
    paths.save(tmp_path / "p.zarr.zip")
    shutil.copy(tmp_path / "p.zarr.zip", tmp_path / "q.zarr.zip")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(sr.SemiringError, match="pip install zarr"):
        paths.save(tmp_path / "r.zarr")
    with pytest.raises(sr.SemiringError, match="pip install zarr"):
        sr.Paths.load(tmp_path / "q.zarr.zip")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.zarr.zip", "q.zarr.zip"]


@pytest.mark.gpu
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_arrays_on_a_gpu_come_to_the_host(suffix: str, tmp_path: Path) -> None:
    import cupy

    loaded = again(sr.apsp(cupy.asarray(np.stack([a_graph, a_graph.T])), paths=True), tmp_path, suffix)
    assert type(loaded.values) is np.ndarray
    np.testing.assert_array_equal(loaded.values[0], sr.apsp(a_graph))
    assert loaded[0].path(0, 3) == [0, 1, 2, 3]


def test_a_semiring_is_saved_as_it_was_recorded(tmp_path: Path) -> None:
    """What its callables read may have changed before the paths are saved, and again before they are loaded."""
    toll = [0]
    tolled = sr.Semiring("tolled", min, lambda a, b: a + b + toll[0], np.inf, 0)
    found = sr.closure(np.array([[0.0, 3.0], [2.0, 0.0]]), tolled, paths=True)
    toll[0] = 5
    found.save(tmp_path / "before.npz")
    loaded = sr.Paths.load(tmp_path / "before.npz", semiring=tolled)
    assert loaded.semiring == tolled
    assert loaded.path(0, 1) == found.path(0, 1)
    with pytest.raises(sr.SemiringError, match="other elements"):
        sr.Paths.load(tmp_path / "before.npz", semiring=sr.Semiring("tolled", min, lambda a, b: a + b + toll[0], np.inf, 0))
