"""Graphs with ordinary weights over semirings whose elements are tuples, beside NetworkX's own counts of shortest paths."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

INF = math.inf


def matrix_of(graph: Any) -> Any:
    """A dense matrix of lengths: ∞ for no edge, 0 on the diagonal."""
    matrix = nx.to_numpy_array(graph, nonedge=INF)
    np.fill_diagonal(matrix, 0)
    return matrix


KINDS: dict[str, Callable[[Any], Any]] = {
    "NetworkX": lambda g: g,
    "edges": lambda g: sr.edges(list(g.edges(data="weight")), directed=g.is_directed(), nodes=list(g)),
    "edges as tuples": lambda g: sr.edges([(u, v, (w, 1)) for u, v, w in g.edges(data="weight")], directed=g.is_directed(), nodes=list(g)),
    "sparse": nx.to_scipy_sparse_array,
    "dense": matrix_of,
    "nested list": lambda g: matrix_of(g).tolist(),
    "None": lambda g: [[None if w == INF else w for w in row] for row in matrix_of(g).tolist()],
    "masked": lambda g: np.ma.masked_invalid(matrix_of(g)),
    "pandas": lambda g: pd.DataFrame(matrix_of(g), list(g), list(g)),
    "int32": lambda g: np.where(np.isinf(matrix_of(g)), np.iinfo("i4").max, matrix_of(g)).astype("i4"),
    "strided": lambda g: matrix_of(g)[::-1, ::-1].copy()[::-1, ::-1],
    "components": lambda g: ((m := np.where(np.eye(len(g), dtype=bool), INF, matrix_of(g))), np.where(m < INF, 1.0, 0.0)),
}  # fmt: skip


def random_graph(seed: int, *, directed: bool = True, n: int = 12) -> Any:
    graph = nx.gnp_random_graph(n, 0.25, seed=seed, directed=directed)
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 + (5 * u + 3 * v) % 3
    return graph


@pytest.mark.parametrize("kind", [kind for name, kind in KINDS.items() if name != "int32"])
@pytest.mark.parametrize("directed", [True, False])
def test_counts_of_shortest_paths_are_those_of_networkx(kind: Callable[[Any], Any], directed: bool) -> None:
    graph = random_graph(3, directed=directed)
    passed = kind(graph)
    before = pickle.dumps(passed) if passed is not graph else b""
    found = [np.asarray(part, dtype=float) for part in sr.closure(passed, sr.DISTANCE_COUNT)]
    for u, v in itertools.permutations(graph, 2):
        try:
            paths = list(nx.all_shortest_paths(graph, u, v, weight="weight"))
            expected = nx.path_weight(graph, paths[0], "weight"), len(paths)
        except nx.NetworkXNoPath:
            expected = found[0].max() if np.isfinite(found[0]).all() else INF, 0
        assert (found[0][u, v], found[1][u, v]) == expected
    assert (found[0].diagonal() == 0).all()
    assert (found[1].diagonal() == 1).all()
    assert not before or pickle.dumps(passed) == before


@pytest.mark.parametrize("kind", [k for name, k in KINDS.items() if name not in ("components", "edges as tuples")])
def test_fewest_edges_among_the_shortest_paths(kind: Callable[[Any], Any]) -> None:
    graph = random_graph(5)
    paths = sr.closure(kind(graph), "distance-hops", paths=True)
    for u, v in itertools.permutations(graph, 2):
        if nx.has_path(graph, u, v):
            best = list(nx.all_shortest_paths(graph, u, v, weight="weight"))
            assert paths.distance(u, v) == (nx.path_weight(graph, best[0], "weight"), min(map(len, best)) - 1)
            assert paths.path(u, v) in best
    some = sr.closure(kind(graph), "distance-hops", sources=[3], targets=[1, 2])
    assert all((np.asarray(a) == np.asarray(b)[3:4, 1:3]).all() for a, b in zip(some, paths.values, strict=True))


def test_edges_without_weights_count_one() -> None:
    for graph in (nx.DiGraph([("a", "b"), ("b", "c")]), sr.edges([("a", "b"), ("b", "c")])):
        assert [float(part) for part in sr.closure(graph, sr.DISTANCE_HOPS, sources="a", targets="c")] == [2, 2]


@pytest.mark.parametrize("nonedge", [0, 0.0, np.float64(0), (0, 1), math.nan, -1])
def test_nonedge_is_an_ordinary_weight_too(nonedge: Any) -> None:
    stands_for = nonedge[0] if isinstance(nonedge, tuple) else nonedge
    matrix = np.array([[stands_for, 2.0, stands_for], [stands_for, stands_for, 3.0], [stands_for, stands_for, stands_for]])
    distances, hops = sr.closure(matrix, sr.DISTANCE_HOPS, nonedge=nonedge)
    assert distances.tolist() == [[0, 2, 5], [INF, 0, 3], [INF, INF, 0]]
    assert hops.tolist() == [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]]
    stored = sparse.csr_array(([2.0, 3.0, stands_for], ([0, 1, 2], [1, 2, 0])))
    for listed in (sr.edges([(0, 1, 2.0), (1, 2, 3.0), (2, 0, stands_for)]), stored):
        assert sr.closure(listed, sr.DISTANCE_HOPS, nonedge=nonedge)[1].tolist() == hops.tolist()


def test_an_infinite_weight_is_no_edge() -> None:
    for graph in (sr.edges([(0, 1, 1.0), (1, 0, INF)]), sparse.csr_array(([1.0, INF], ([0, 1], [1, 0])))):
        assert [part.tolist() for part in sr.closure(graph, sr.DISTANCE_COUNT)] == [[[0, 1], [INF, 0]], [[1, 1], [0, 1]]]


def test_batches_powers_fractions_and_nothing() -> None:
    matrix = matrix_of(random_graph(1))
    several = sr.closure(np.stack([matrix, matrix + 1]), sr.DISTANCE_COUNT)
    assert all((a[0] == b).all() for a, b in zip(several, sr.closure(matrix, sr.DISTANCE_COUNT), strict=True))
    steps = sr.power(matrix, 3, sr.DISTANCE_HOPS)
    assert {3.0, INF} >= {*steps[1].ravel().tolist()}
    exact = sr.closure([[None, Fraction(1, 3), None], [None, None, Fraction(1, 3)], [None] * 3], sr.DISTANCE_HOPS)
    assert [part[0, 2] for part in exact] == [Fraction(2, 3), 2]
    assert [part.shape for part in sr.closure(np.zeros((0, 0)), sr.DISTANCE_COUNT)] == [(0, 0)] * 2
    assert [part.tolist() for part in sr.closure(sr.edges([]), sr.DISTANCE_COUNT)] == [[], []]
    assert [part.tolist() for part in sr.closure([[5.0]], sr.DISTANCE_COUNT)] == [[[0]], [[1]]]


def test_rows_of_numbers_are_a_matrix_and_a_pair_of_matrices_its_components() -> None:
    rows = [[0.0, 2.0], [INF, 0.0]]
    assert [p.tolist() for p in sr.closure(rows, sr.DISTANCE_HOPS)] == [[[0, 2], [INF, 0]], [[0, 1], [INF, 0]]]
    pair = [[[INF, 2.0], [INF, INF]], [[INF, 1.0], [INF, INF]]]
    for components in (pair, tuple(pair), [np.array(p) for p in pair], tuple(map(np.array, pair))):
        assert [p.tolist() for p in sr.closure(components, sr.DISTANCE_HOPS)] == [[[0, 2], [INF, 0]], [[0, 1], [INF, 0]]]


def test_zeros_that_are_probably_no_edges_are_warned_of() -> None:
    with pytest.warns(sr.NonEdgeWarning, match="2 are 0 and none is ∞") as caught:
        sr.closure(np.array([[0, 0, 1], [1, 0, 1], [0, 1, 0.0]]), sr.DISTANCE_HOPS)
    assert caught[0].filename == __file__
    sr.closure(np.array([[0, 0], [1, 0.0]]), sr.DISTANCE_HOPS, nonedge=INF)


def surprises(**more: Any) -> sr.Semiring:
    hops = sr.DISTANCE_HOPS
    return sr.Semiring("surprise", hops.add, hops.mul, hops.zero, hops.one, domain=hops.domain, **more)


def test_a_semiring_of_ones_own_says_what_a_weight_means() -> None:
    surprise = surprises(from_weight=lambda p: (-sr.ops.log(p), 1))
    dense = np.array([[1, 0.5, 0.125], [0, 1, 0.5], [0, 0, 1]])
    listed = sr.edges([(0, 1, 0.5), (0, 2, 0.125), (1, 2, 0.5), (2, 0, 0.0)])
    for graph in (dense, listed, sparse.csr_array(np.triu(dense, 1))):
        bits, hops = sr.closure(graph, surprise)
        np.testing.assert_allclose(bits / math.log(2), np.array([[0, 1, 2], [INF, 0, 1], [INF, INF, 0]]))
        assert hops.tolist() == [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]]
    doubled = surprises(from_weight=lambda w: (2 * w, 1))
    assert sr.closure(np.array([[0, 2**40], [7, 0]]), doubled)[0].tolist() == [[0, 2.0**41], [14, 0]]
    with pytest.raises(sr.DTypeError, match="beyond 2⁵³"):
        sr.closure(np.array([[0, 2**60], [7, 0]]), doubled)
    assert "2 * a" in doubled._repr_html_()
    assert doubled != surprises()
    assert doubled == surprises(from_weight=lambda w: (2 * w, 1))
    assert doubled.narrowed(None).from_weight is doubled.from_weight


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (np.eye(2), "a matrix over surprise is a tuple of 2 equally shaped arrays"),
        ([[0, 1], [1, 0]], "a matrix over surprise is a tuple of 2 equally shaped arrays"),
        (nx.DiGraph([("a", "b")]), "edge 0 from 'a' to 'b' needs a weight of 2 components for surprise, not None"),
        (sparse.csr_array(np.eye(2)), "a sparse array holds single numbers, not the 2 components of surprise, as a tuple of 2 does"),
    ],
)
def test_without_that_the_message_says_what_to_write(graph: Any, problem: str) -> None:
    with pytest.raises(sr.GraphError, match=f"{problem}; for ordinary weights, where surprise is defined say what one means: "):
        sr.closure(graph, surprises())


def test_what_is_no_such_function_is_refused() -> None:
    for wrong, problem in (
        (lambda w: w, "it returned"), (lambda w: (w, 1, 2), "a tuple of 2 scalars"), (lambda w: (0, 1), "the same element for every"),
        (5, "from_weight must be a callable"), (lambda a, b: (a, b), "raised TypeError"),
    ):  # fmt: skip
        with pytest.raises(sr.SemiringError, match=problem):
            surprises(from_weight=wrong)
    with pytest.raises(sr.SemiringError, match="must be a callable that makes a tuple"):
        sr.Semiring("x", min, max, 0, 1, from_weight=lambda w: w)
    with pytest.raises(sr.GraphError, match=r"edge 1 from 'b' to 'c' needs a weight of 2 components .*; all edges"):
        sr.closure(sr.edges([("a", "b", (1, 1)), ("b", "c", 3.0)]), sr.DISTANCE_HOPS)
    with pytest.raises(sr.DomainError, match="nan"):
        sr.closure([[0, math.nan], [1, 0]], sr.DISTANCE_HOPS)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([1.0, 2.0, 3.0, INF])), max_size=15))
def test_every_form_of_a_graph_says_the_same(edges: list[tuple[int, int, float]]) -> None:
    edges = list({(u, v): (u, v, w) for u, v, w in edges if u != v}.values())
    listed = sr.edges(edges, nodes=range(7))
    dense = np.full((7, 7), INF)
    for u, v, w in edges:
        dense[u, v] = w
    for semiring in (sr.DISTANCE_COUNT, sr.DISTANCE_HOPS):
        expected = sr.closure((dense, np.where(dense < INF, 1.0, semiring.zero[1])), semiring)
        for graph in (dense, listed):
            assert all((a == b).all() for a, b in zip(sr.closure(graph, semiring), expected, strict=True))
