"""The Paths object: labels, batches, bad questions, and how it shows itself."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import sympy

import semiring as sr

INF = np.inf


@pytest.fixture
def flights() -> sr.Paths:
    paths: sr.Paths = sr.apsp(
        sr.edges([("Bern", "Rom", 700), ("Rom", "Oslo", 2000), ("Bern", "Oslo", 3000), ("Kiel", "Kiel", 5)]), paths=True
    )
    return paths


def test_labels(flights: sr.Paths) -> None:
    assert flights.nodes == ("Bern", "Rom", "Oslo", "Kiel")
    assert flights.path("Bern", "Oslo") == ["Bern", "Rom", "Oslo"]
    assert flights.path("Oslo", "Bern") == []
    assert flights.path("Kiel", "Kiel") == ["Kiel"]
    assert flights.distance("Bern", "Oslo") == 2700
    assert flights.paths([("Bern", "Rom"), ("Rom", "Bern")]) == [["Bern", "Rom"], []]
    assert flights.paths([]) == []
    assert flights.paths_from("Bern") == [["Bern"], ["Bern", "Rom"], ["Bern", "Rom", "Oslo"], []]


@pytest.mark.parametrize("node", ["Paris", 0, None, ["Bern"], 3.5])
def test_unknown_labels(flights: sr.Paths, node: Any) -> None:
    with pytest.raises(sr.GraphError, match="no vertex"):
        flights.path(node, "Bern")
    with pytest.raises(sr.GraphError, match="no vertex"):
        flights.distance("Bern", node)


@pytest.mark.parametrize("node", [-1, 2, 1.0, "0", True, None])
def test_unknown_numbers(node: Any) -> None:
    paths = sr.apsp(np.array([[0.0, 1.0], [INF, 0.0]]), paths=True)
    with pytest.raises(sr.GraphError, match="from 0 to 1"):
        paths.path(0, node)
    assert paths.path(np.int64(0), np.int8(1)) == [0, 1]


def test_a_cycle_is_the_path_from_a_vertex_to_itself_unless_the_empty_one_counts() -> None:
    a = np.array([[INF, 0.0, INF], [0.0, INF, INF], [INF, INF, 0.0]])
    plus = sr.closure(a, sr.MIN_PLUS, reflexive=False, paths=True)
    assert plus.path(0, 0) == [0, 1, 0]
    assert plus.path(2, 2) == [2, 2]
    assert sr.apsp(a, paths=True).path(0, 0) == [0]
    reach = sr.transitive_closure(a < INF, paths=True)
    assert reach.path(0, 0) == [0, 1, 0]
    assert reach.path(2, 2) == [2, 2]
    assert sr.transitive_closure(np.zeros((2, 2), dtype=bool), paths=True).path(0, 0) == []


def test_batches_are_indexed() -> None:
    a = np.full((2, 3, 4, 4), INF)
    a[..., 0, 1] = a[..., 1, 2] = 1
    a[1, 2, 0, 2] = 0.5
    paths = sr.apsp(a, paths=True)
    assert len(paths) == 2
    assert len(paths[0]) == 3
    assert paths[1][2].path(0, 2) == paths[1, 2].path(0, 2) == [0, 2]
    assert paths[1, -2].path(0, 2) == [0, 1, 2]
    assert [p[0].path(0, 2) for p in paths] == [[0, 1, 2]] * 2
    assert paths[:, 1].via.shape == (2, 4, 4)
    assert paths.predecessors().shape == a.shape
    assert np.array_equal(paths.next_hops()[1, 2], paths[1, 2].next_hops())
    with pytest.raises(sr.GraphError, match="batch"):
        paths.path(0, 1)
    assert paths[1, 2][0, 2] == 0.5
    with pytest.raises(IndexError, match=r"paths\[0, 0\] are those of one matrix"):
        paths[0, 0, 0]
    with pytest.raises(IndexError):
        paths[5]
    with pytest.raises(TypeError):
        len(paths[0, 0])


def test_values_come_in_the_callers_kind() -> None:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

    frame = pd.DataFrame([[0.0, 2.0], [INF, 0.0]], index=["a", "b"], columns=["a", "b"])
    paths = sr.apsp(frame, paths=True)
    assert isinstance(paths.distances, pd.DataFrame)
    assert paths.path("a", "b") == ["a", "b"]


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_vertices_come_as_arrays_of_the_callers_library(library: str) -> None:
    arrays = pytest.importorskip(library)
    weights = np.array([[0, 1, 9], [np.inf, 0, 2], [np.inf, np.inf, 0]], dtype=np.float32)
    paths = sr.apsp(arrays.asarray(weights), paths=True)
    for found, expected in (
        (paths.distances, [[0, 1, 3], [INF, 0, 2], [INF, INF, 0]]),
        (paths.via, [[-1, -1, 1], [-1, -1, -1], [-1, -1, -1]]),
        (paths.predecessors(), [[-9999, 0, 1], [-9999, -9999, 1], [-9999] * 3]),
        (paths.next_hops(), [[-9999, 1, 1], [-9999, -9999, 2], [-9999] * 3]),
    ):
        assert type(found) is type(arrays.asarray(weights))
        assert found.tolist() == expected
    assert type(sr.apsp(arrays.asarray(weights[None]), paths=True)[0].via) is type(paths.via)


def test_distances_are_for_min_plus() -> None:
    paths = sr.closure(np.array([[1.0]]), sr.MAX_MIN, paths=True)
    with pytest.raises(AttributeError, match="values"):
        paths.distances  # noqa: B018 (the access is what is tested)
    hops = sr.closure((np.array([[INF]]), np.array([[INF]])), sr.DISTANCE_HOPS, paths=True)
    assert isinstance(hops.values, tuple)
    assert hops.distance(0, 0) == (0, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_pairs_that_are_connected_one_way_only_are_counted(n: int, seed: int) -> None:
    a = np.where(np.random.default_rng(seed).random((n, n)) < 0.2, 1.0, INF)
    reached = sr.transitive_closure(a, nonedge=INF, reflexive=True)
    paths = sr.apsp(a, paths=True)
    expected = int((reached & ~reached.T).sum())
    assert paths._store.one_way() == expected
    assert repr(paths).endswith(f", {expected} of them one way only>" if expected else f" {reached.sum() - n} pairs connected>")


def test_an_undirected_edge_of_negative_weight_is_said_to_be_a_cycle() -> None:
    edges = [("a", "b", 2.0), ("b", "c", -1.0)]
    listed, theirs = sr.edges(edges, directed=False), nx.Graph()
    theirs.add_weighted_edges_from(edges)
    note = "the graph is undirected, so that each edge is a cycle, there and back"
    for graph in (listed, theirs):
        for sources in (None, "a"):
            with pytest.raises(sr.NegativeCycleError) as caught:
                sr.apsp(graph, sources=sources)
            assert caught.value.__notes__.count(note) == 1
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(sr.edges([*edges, ("c", "b", 0.5)]))
    assert note not in caught.value.__notes__


def test_text_and_html(flights: sr.Paths) -> None:
    assert repr(flights) == "<paths over min-plus: 4 vertices, 3 pairs connected, 3 of them one way only>"
    assert "min-plus" in flights._repr_html_()
    assert "batch of 2" in repr(sr.apsp(np.zeros((2, 3, 3)), paths=True, nonedge=5))
    assert "0 vertices" in repr(sr.apsp(np.zeros((0, 0)), paths=True))


def test_trees_of_labelled_graphs_hold_row_numbers(flights: sr.Paths) -> None:
    assert flights.predecessors().tolist() == [[-9999, 0, 1, -9999], [-9999, -9999, 1, -9999], [-9999] * 4, [-9999] * 4]
    assert flights.next_hops().tolist() == [[-9999, 1, 1, -9999], [-9999, -9999, 2, -9999], [-9999] * 4, [-9999] * 4]


def test_paths_outlive_changes_of_the_input() -> None:
    a = np.array([[0.0, 1.0, 9.0], [INF, 0.0, 1.0], [INF, INF, 0.0]])
    paths = sr.apsp(a, paths=True)
    a[...] = 0
    assert paths.path(0, 2) == [0, 1, 2]
    assert paths.distance(0, 2) == 2


COPIES: list[Callable[[Any], Any]] = [lambda paths: pickle.loads(pickle.dumps(paths)), copy.deepcopy, copy.copy]


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "deepcopy", "copy"])
def test_copies_know_the_paths(flights: sr.Paths, again: Callable[[Any], Any]) -> None:
    paths = again(again(flights))
    np.testing.assert_array_equal(paths.distances, flights.distances)
    assert paths.path("Bern", "Oslo") == ["Bern", "Rom", "Oslo"]
    batch = again(sr.apsp(np.array([[[0, 1], [INF, 0]], [[0, INF], [2, 0]]]), paths=True))
    assert batch[1].path(1, 0) == [1, 0]
    symbolic = again(sr.apsp(sympy.Matrix([[0, 3], [sympy.oo, 0]]), paths=True))
    assert symbolic.distances == sympy.Matrix([[0, 3], [sympy.oo, 0]])


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "deepcopy", "copy"])
def test_copies_keep_the_matrix_to_find_spoilt_paths_again(again: Callable[[Any], Any]) -> None:
    a = np.array([[0, 1.0, INF], [INF, 0, 1.0], [1.0, INF, 0]])
    via = sr.apsp(a, paths=True).via
    via[0, 2] = 2  # a path that never ends, as rounding could make it
    paths = again(sr.Paths(sr.MIN_PLUS, (sr.apsp(a),), via, kept=lambda: (a,)))
    assert paths.path(0, 2) == [0, 1, 2]
