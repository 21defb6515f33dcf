"""One random graph in every kind that is accepted reads the same."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.graphs import edges, read_graph

INF = math.inf
WEIGHTS = st.one_of(st.just(INF), st.integers(-1000, 1000).map(float))
MATRICES = st.integers(0, 6).flatmap(lambda n: arrays.arrays(np.float64, (n, n), elements=WEIGHTS))


def matrix(graph: Any, **options: Any) -> np.ndarray[Any, Any]:
    options.setdefault("nonedge", INF)
    return read_graph(graph, MIN_PLUS, **options).values[0]


def listed(weights: np.ndarray[Any, Any]) -> list[tuple[int, int, float]]:
    return [(int(u), int(v), float(weights[u, v])) for u, v in np.argwhere(weights != INF)]


@given(MATRICES)
def test_dense_kinds(weights: np.ndarray[Any, Any]) -> None:
    for kind in (
        weights,
        weights.tolist() or weights,
        np.asfortranarray(weights),
        np.ma.masked_equal(weights, INF),
        weights.astype(object),
    ):
        np.testing.assert_array_equal(matrix(kind, dtype=np.float64), weights)
    nan = np.where(weights == INF, math.nan, weights)
    np.testing.assert_array_equal(matrix(nan, nonedge=math.nan), weights)


@given(MATRICES)
def test_sparse_kinds(weights: np.ndarray[Any, Any]) -> None:
    sparse, nx = pytest.importorskip("scipy.sparse"), pytest.importorskip("networkx")
    n, triples = len(weights), listed(weights)
    np.testing.assert_array_equal(matrix(edges(triples, nodes=range(n))), weights)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(triples)
    np.testing.assert_array_equal(matrix(graph), weights)
    if n:
        rows, columns = np.nonzero(weights != INF)
        coo = sparse.coo_array((weights[rows, columns], (rows, columns)), shape=(n, n))
        np.testing.assert_array_equal(matrix(coo), weights)
        np.testing.assert_array_equal(matrix(coo.tocsc()), weights)


@given(MATRICES)
def test_reachability(weights: np.ndarray[Any, Any]) -> None:
    expected = weights != INF
    listing = edges(listed(weights), nodes=range(len(weights)))
    kinds: tuple[tuple[Any, dict[str, Any]], ...] = (
        (weights, {"nonedge": INF}),
        (expected, {}),
        (expected.astype(np.uint8), {}),
        (listing, {"presence": True}),
    )
    for kind, options in kinds:
        np.testing.assert_array_equal(read_graph(kind, BOOLEAN, **options).values[0], expected)


@given(
    MATRICES, st.sampled_from(["int16", "int32", "int64", "float32", "float64", "object"]), st.sampled_from(["int16", "int64", "float32"])
)
def test_a_detour_through_other_dtypes_changes_nothing(weights: np.ndarray[Any, Any], first: str, second: str) -> None:
    there = matrix(matrix(weights, dtype=first), dtype=second)
    np.testing.assert_array_equal(matrix(there, dtype=np.float64), weights)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.fractions()), max_size=30))
def test_parallel_edges_take_the_shortest(triples: list[tuple[int, int, Fraction]]) -> None:
    read = matrix(edges(triples, nodes=range(4)), dtype=object)
    for u in range(4):
        for v in range(4):
            assert read[u, v] == min((w for a, b, w in triples if (a, b) == (u, v)), default=INF)
