"""A list of graphs of any sizes: each answer is that of its graph alone, or of SciPy; what could be one matrix stays one."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr

INF = np.inf

Array = np.ndarray[Any, Any]


def graph(n: int, seed: int, density: float = 0.3) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(np.where(rng.random((n, n)) < density, rng.integers(1, 20, (n, n)).astype(float), INF))


def sparse(a: Array) -> Any:
    rows, columns = np.nonzero(a != INF)
    return sp.csr_array((a[rows, columns], (rows, columns)), shape=a.shape)


@given(sizes=st.lists(st.integers(0, 12), min_size=2, max_size=12), seed=st.integers(0, 1000))
def test_matrices_are_those_of_scipy(sizes: list[int], seed: int) -> None:
    graphs = [graph(n, seed + i) for i, n in enumerate(sizes)]
    kept = [a.copy() for a in graphs]
    found = sr.apsp(graphs)
    assert isinstance(found, np.ndarray if len(set(sizes)) == 1 else list)
    for a, b, distances in zip(graphs, kept, found, strict=True):
        assert np.array_equal(distances, floyd_warshall(b) if len(b) else b)
        assert distances.flags.c_contiguous
        assert np.array_equal(a, b)


def test_every_kind_of_graph_in_one_list() -> None:
    labelled = nx.Graph()
    labelled.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 3.0)])
    frame = pd.DataFrame([[0, 4.0], [INF, 0]], index=list("xy"), columns=list("xy"))
    integers = np.array([[0, 5], [np.iinfo(np.int32).max, 0]], np.int32)
    large = graph(200, 4, 0.02)
    given = [
        labelled, sparse(graph(5, 1)), sr.edges([(0, 1, 7.0)]), graph(6, 2), frame, integers, [[0, 1], [INF, 0]], sparse(large),
        np.ma.masked_equal([[0.0, 9.0], [1.0, 0.0]], 9.0), np.asfortranarray(graph(6, 3)),
    ]  # fmt: skip
    found = sr.apsp(given)
    for one, answer in zip(given, found, strict=True):
        alone = sr.apsp(one)
        assert type(answer) is type(alone)
        assert np.array_equal(answer, alone)
        assert isinstance(answer, pd.DataFrame) or answer.dtype == alone.dtype
    for one, answer in zip(given, sr.apsp(given, paths=True), strict=True):
        assert np.array_equal(answer.values, sr.apsp(one))
        assert answer.nodes == sr.apsp(one, paths=True).nodes
    assert sr.apsp(given, paths=True)[0].path("c", "a") == ["c", "b", "a"]


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_MIN, sr.DISTANCE_COUNT, sr.PLUS_TIMES], ids=lambda s: s.name)
@pytest.mark.parametrize("kind", ["edges", "arrays"])
def test_closures_over_semirings(semiring: sr.Semiring, kind: str) -> None:
    graphs: list[Any] = []
    for n in (3, 5, 3, 8):
        pairs = [(i, j, 0.125 * (i + j)) for i in range(n) for j in range(i + 1, n)]
        listed = sr.edges(pairs)
        values = sr.closure(listed, semiring, reflexive=False)
        graphs.append(listed if kind == "edges" else values)
    for reflexive in (True, False):
        found = sr.closure(graphs, semiring, reflexive=reflexive)
        for one, answer in zip(graphs, found, strict=True):
            alone = sr.closure(one, semiring, reflexive=reflexive)
            for part, expected in zip(*(v if isinstance(v, tuple) else (v,) for v in (answer, alone)), strict=True):
                assert np.array_equal(part, expected)


def test_transitive_closures_and_chosen_vertices() -> None:
    graphs = [nx.path_graph(4, create_using=nx.DiGraph), nx.cycle_graph(3, create_using=nx.DiGraph)]
    for one, answer in zip(graphs, sr.transitive_closure(graphs), strict=True):
        assert np.array_equal(answer, nx.to_numpy_array(nx.transitive_closure(one, reflexive=False), weight=None) > 0)  # pyright: ignore[reportArgumentType]  # NetworkX takes None
    arrays = [graph(n, n) for n in (4, 6, 4)]
    for a, row in zip(arrays, sr.apsp(arrays, sources=1), strict=True):
        assert np.array_equal(row, floyd_warshall(a)[1])
    for a, row in zip(graphs, sr.apsp(graphs, targets=[0, 2]), strict=True):
        assert np.array_equal(row, sr.apsp(a, targets=[0, 2]))


def test_what_could_be_one_matrix_is_one() -> None:
    assert sr.apsp([[0, 1], [5, 0]], nonedge=INF).shape == (2, 2)
    assert sr.apsp([np.array([0, 1]), np.array([5, 0])], nonedge=INF).shape == (2, 2)
    assert sr.apsp(([0, 1], [5, 0]), nonedge=INF).shape == (2, 2)
    assert sr.apsp([]).shape == (0, 0)
    same = [[[0, 1], [5, 0]], [[0, 2], [7, 0]]]
    for stack in (same, list(np.array(same)), tuple(map(tuple, same)), np.array(same)):
        assert sr.apsp(stack, nonedge=INF).shape == (2, 2, 2)
    assert [v.shape for v in sr.apsp([*same, [[0]]], nonedge=INF)] == [(2, 2), (2, 2), (1, 1)]
    components = [np.array([[INF, 1.0], [INF, INF]]), np.array([[0.0, 1.0], [0.0, 0.0]])]
    assert isinstance(sr.closure(components, sr.DISTANCE_COUNT), tuple)
    assert [len(v) for v in sr.closure([tuple(components)] * 3, sr.DISTANCE_COUNT)] == [2, 2, 2]


def test_one_graph_in_a_list() -> None:
    (answer,) = sr.apsp([sr.edges([("a", "b", 2)])])
    assert np.array_equal(answer, [[0.0, 2.0], [INF, 0.0]])
    frames = [pd.DataFrame([[0, w], [w, 0]], index=list("ab"), columns=list("ab")) for w in (2, 3)]
    assert all(isinstance(v, pd.DataFrame) for v in sr.apsp(frames, nonedge=INF))


@pytest.mark.parametrize("other", [3, None, "x", [1, 2], np.zeros((2, 2, 2)), []], ids=repr)
def test_a_list_of_graphs_and_something_else_is_refused(other: Any) -> None:
    with pytest.raises(sr.GraphError, match=r"element 0 of the list is a graph, .* and element 1 is none"):
        sr.apsp([np.zeros((2, 2)), other], nonedge=INF)


def test_a_fault_names_its_graph() -> None:
    graphs = [np.zeros((2, 2)), np.zeros((3, 3)), np.array([[0.0, -2.0], [1.0, 0.0]]), np.zeros((1, 1))]
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(graphs, nonedge=INF)
    assert str(caught.value).endswith("(in the graph at index 2 of the list)")
    assert caught.value.index == (2,)
    assert set(caught.value.cycle or ()) == {0, 1}
    with pytest.raises(sr.GraphError) as lost:
        sr.apsp([nx.path_graph(2), nx.path_graph(3)], sources=2)
    assert "in the graph at index 0 of the list" in str(lost.value)
    assert lost.value.index == (0,)
    with pytest.raises(sr.ShapeError) as shape:
        sr.apsp([np.zeros((2, 3)), np.zeros((2, 2))])
    assert "in the graph at index 0 of the list" in str(shape.value)
    with pytest.raises(sr.ShapeError, match=r"sr\.edges reads a list of edges"):
        sr.apsp([[(0, 1, 5), (1, 2, 3)], [(0, 1, 2)]])


def test_masks_of_one_shape_are_kept() -> None:
    masked = np.ma.array([[0, 1.0], [1, 0]], mask=[[False, True], [False, False]])
    assert sr.apsp([masked, np.ones((2, 2))])[:, 0, 1].tolist() == [INF, 1.0]
    assert sr.transitive_closure([masked, masked], nonedge=INF)[0].tolist() == [[True, False], [True, True]]
    assert sr.apsp([masked[0], masked[1]])[0, 1] == INF  # the rows of one matrix
    with pytest.raises(sr.GraphError, match="masked"):
        sr.matmul([masked, masked], np.ones((2, 2)), "min-plus")


def test_integers_that_mean_infinity_are_not_converted_by_numpy() -> None:
    whole = np.array([[0, 2**31 - 1], [1, 0]], np.int32)
    assert sr.apsp([whole, whole])[0, 0, 1] == 2**31 - 1
    for other in (np.ones((2, 2)), np.ones((2, 2), np.int64), [[0, 1.5], [1, 0]]):
        for product in (sr.apsp, lambda x: sr.matmul(x, x, "min-plus")):
            with pytest.raises(sr.DTypeError, match="extreme value of int32, which stands for ∞"):
                product([other, whole])
    assert sr.apsp([np.ones((2, 2)), whole // 2], nonedge=INF).dtype == np.float64


def test_arrays_and_nested_lists_of_one_shape_are_a_stack() -> None:
    assert sr.apsp([np.ones((2, 2)), [[1.0, 2.0], [1.0, 2.0]]]).shape == (2, 2, 2)


RAGGED: dict[str, Any] = {
    "rows": ([[0, 1], [1]], "element 0 has 2 entries, and element 1 has 1 entry"),
    "a number": ([[0, 1], 1], "element 1 is no list"),
    "matrices": ([np.ones((3, 3)), np.ones((2, 2))], r"element 0 has the shape \(3, 3\), and element 1 has the shape \(2, 2\)"),
}


@pytest.mark.parametrize(("given", "said"), RAGGED.values(), ids=RAGGED)
@pytest.mark.parametrize("call", ["statistics", "diameter", "factor", "power", "matmul", "scan"])
def test_ragged_lists_are_told(given: Any, said: str, call: str) -> None:
    calls: dict[str, Any] = {
        "power": lambda: sr.power(given, 2, "min-plus"), "matmul": lambda: sr.matmul(given, given, "min-plus"),
        "factor": lambda: sr.factor(given, "min-plus"), "scan": lambda: sr.scan(given, "min-plus", [1.0, 2.0]),
    }  # fmt: skip
    with pytest.raises(sr.SemiringError, match=f"is ragged: .*{said}"):
        calls.get(call, lambda: getattr(sr, call)(given))()


@pytest.mark.parametrize("option", [{"memory_limit": "1GB"}, {"checkpoint": "there"}], ids=str)
def test_options_of_one_graph_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(sr.SemiringError, match=f"{next(iter(option))}= is for one graph, and this is a list of 2"):
        sr.apsp([np.zeros((2, 2)), np.zeros((3, 3))], **option)
