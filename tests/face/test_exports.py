"""Paths as SciPy, NetworkX and pandas have them, beside these libraries' own answers."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import sympy
from scipy.sparse.csgraph import construct_dist_matrix, shortest_path

import semiring as sr
from semiring import testing

INF = np.inf


def random_graph(n: int, seed: int = 0, density: float = 0.2) -> Any:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < density, rng.integers(1, 50, (n, n)).astype(float), INF)
    np.fill_diagonal(a, 0)
    return a


@pytest.mark.parametrize("n", [0, 1, 2, 30])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u2"])
def test_scipy_reads_distances_and_predecessors(n: int, dtype: str) -> None:
    a = random_graph(n)
    top = np.iinfo(dtype).max if dtype[0] in "iu" else INF
    distances, predecessors = sr.apsp(np.where(np.isinf(a), top, a).astype(dtype), paths=True).to_scipy()
    assert distances.dtype == np.float64
    assert predecessors.dtype == np.int32
    if n:
        np.testing.assert_array_equal(distances, shortest_path(np.where(np.isinf(a), 0, a), method="FW"))
        np.testing.assert_array_equal(construct_dist_matrix(np.where(np.isinf(a), 0, a), predecessors), distances)


def test_scipy_gets_floats_of_fractions_and_no_symbols() -> None:
    paths = sr.apsp(np.array([[0, Fraction(1, 4)], [INF, 0]], dtype=object), paths=True)
    assert paths.to_scipy()[0].tolist() == [[0, 0.25], [INF, 0]]
    with pytest.raises(sr.DTypeError, match=r"\.values"):
        sr.apsp(sympy.Matrix([[0, sympy.Symbol("x", positive=True)], [sympy.oo, 0]]), paths=True).to_scipy()


def test_scipy_gets_batches_and_leaves_the_values_alone() -> None:
    a = np.stack([random_graph(6), random_graph(6, 1)])
    paths = sr.apsp(a, paths=True)
    distances, predecessors = paths.to_scipy()
    assert distances.shape == predecessors.shape == (2, 6, 6)
    distances[...] = 0
    assert paths.distances.any()


def test_scipy_has_distances_only() -> None:
    with pytest.raises(sr.SemiringError, match="max-min"):
        sr.closure(random_graph(4), sr.MAX_MIN, paths=True, nonedge=INF).to_scipy()


def test_the_metric_closure_is_that_of_networkx() -> None:
    graph = nx.gnp_random_graph(25, 0.15, seed=3, directed=True)
    for u, v in graph.edges:
        graph[u][v]["weight"] = (u * 7 + v * 3) % 11 + 1
    closed = sr.apsp(graph, paths=True).to_networkx()
    expected = {(u, v): d for u, row in nx.all_pairs_dijkstra_path_length(graph) for v, d in row.items() if u != v}
    assert {(u, v): d for u, v, d in closed.edges(data="weight")} == expected
    assert list(closed) == list(graph)
    assert {type(d) for _, _, d in closed.edges(data="weight")} == {float}
    for u, v, via in closed.edges(data="via"):
        if via is None:
            assert graph[u][v]["weight"] == expected[u, v]
        else:
            assert expected[u, via] + expected[via, v] == expected[u, v]
    # What paths are made of has the same distances.
    direct = closed.edge_subgraph((u, v) for u, v, via in closed.edges(data="via") if via is None)
    assert nx.dijkstra_path_length(direct, *max(expected, key=lambda pair: expected[pair])) == max(expected.values())


def test_cycles_are_loops() -> None:
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2), (3, 3)])
    expected = nx.transitive_closure(graph, reflexive=False)
    closed = sr.transitive_closure(graph, paths=True).to_networkx()
    assert set(closed.edges) == set(expected.edges)
    without = {(u, v) for u, v in expected.edges if u != v}
    assert set(sr.transitive_closure(graph, reflexive=True, paths=True).to_networkx().edges) == without


def test_structured_elements_are_tuples_and_columns() -> None:
    a = np.array([[INF, 2.0, INF], [INF, INF, 3.0], [INF, INF, INF]])
    paths = sr.closure((a, np.where(np.isinf(a), INF, 1)), sr.DISTANCE_HOPS, paths=True)
    assert paths.to_networkx()[0][2]["weight"] == (5.0, 2.0)
    frame = paths.to_frame()
    assert list(frame.columns) == ["source", "target", "value0", "value1"]
    assert frame.to_numpy().tolist() == [[0, 1, 2, 1], [0, 2, 5, 2], [1, 2, 3, 1]]


@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_frames_have_a_row_for_each_connected_pair(dtype: str) -> None:
    a = random_graph(20)
    top = np.iinfo(dtype).max if dtype[0] in "iu" else INF
    paths = sr.apsp(np.where(np.isinf(a), top, a).astype(dtype), paths=True)
    frame = paths.to_frame(paths=True)
    assert frame["value"].dtype == dtype
    distances = paths.to_scipy()[0]
    assert len(frame) == np.isfinite(distances).sum() - 20
    square = frame.pivot(index="source", columns="target", values="value").to_numpy(float)
    np.testing.assert_array_equal(np.nan_to_num(square, nan=INF)[~np.eye(20, dtype=bool)], distances[~np.eye(20, dtype=bool)])
    for row in frame.itertuples():
        assert row.path == paths.path(row.source, row.target)


@pytest.mark.parametrize(
    "nodes",
    [("a", "b", "c"), ((0, 0), (0, 1), (1, 0)), (1.5, "x", None), (3, 1, 2), (2**60 + 1, 0.5, None)],
    ids=["texts", "tuples", "mixed", "numbers", "mixed numbers"],
)
def test_frames_have_the_names_of_the_vertices(nodes: tuple[Any, ...]) -> None:
    u, v, w = nodes
    frame = sr.apsp(sr.edges([(u, v, 1), (v, w, 2)], nodes=nodes), paths=True).to_frame(paths=True)
    assert list(frame["path"]) == [[u, v], [u, v, w], [v, w]]
    assert list(zip(frame["source"], frame["target"], frame["value"], strict=True)) == [(u, v, 1), (u, w, 3), (v, w, 2)]


@pytest.mark.parametrize("n", [0, 1])
def test_empty_frames_and_graphs(n: int) -> None:
    paths = sr.apsp(np.zeros((n, n)), paths=True)
    frame = paths.to_frame(paths=True)
    assert list(frame.columns) == ["source", "target", "value", "path"]
    assert len(frame) == 0
    assert len(paths.to_networkx()) == n


def test_frames_of_frames() -> None:
    given = pd.DataFrame([[0.0, 2.0], [INF, 0.0]], index=["a", "b"], columns=["a", "b"])
    paths = sr.apsp(given, paths=True)
    assert paths.to_frame().to_dict("records") == [{"source": "a", "target": "b", "value": 2.0}]
    assert isinstance(paths.to_scipy()[0], np.ndarray)


def test_one_of_a_batch_is_chosen_first() -> None:
    paths = sr.apsp(np.stack([random_graph(3)] * 2), paths=True)
    for export in (paths.to_frame, paths.to_networkx):
        with pytest.raises(sr.GraphError, match="choose one"):
            export()
    assert len(paths[1].to_frame()) == paths[1].to_networkx().number_of_edges()


@pytest.mark.parametrize(("library", "export"), [("pandas", "to_frame"), ("networkx", "to_networkx")])
def test_a_missing_library_is_named(library: str, export: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sr.apsp(random_graph(3), paths=True)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(sr.SemiringError, match=f"pip install {library}"):
        getattr(paths, export)()


@pytest.mark.gpu
def test_exports_of_arrays_on_a_gpu_come_to_the_host() -> None:
    import cupy

    a = random_graph(40)
    there, here = sr.apsp(cupy.asarray(a), paths=True), sr.apsp(a, paths=True)
    distances, predecessors = there.to_scipy()
    assert type(distances) is type(predecessors) is np.ndarray
    np.testing.assert_array_equal(distances, here.distances)
    np.testing.assert_array_equal(construct_dist_matrix(np.where(np.isinf(a), 0, a), predecessors), distances)
    pd.testing.assert_frame_equal(there.to_frame(), here.to_frame())
    assert dict(there.to_networkx()[0]).keys() == dict(here.to_networkx()[0]).keys()
    testing.assert_paths_valid(there, a)
