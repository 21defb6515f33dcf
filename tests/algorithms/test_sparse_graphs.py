"""What is told of sparse graphs before they are searched: how searches go, how far they reach, and whether they fall into components."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.algebra.definition import Semiring
from semiring.algorithms.components import share
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import reach, search_order
from semiring.graphs import edges_of


def _edges(weights: list[float], semiring: Semiring = sr.MIN_PLUS, dtype: str = "float64") -> CSR:
    n = len(weights)
    graph = sp.csr_array((np.array(weights, dtype), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    listed = edges_of(graph, semiring, dtype=dtype)
    assert listed is not None
    return listed[0]


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS, sr.MAX_MIN, sr.MIN_MAX, sr.MAX_TIMES, sr.PLUS_TIMES], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("weights", [[1, 2, 3], [2, 2, 2], [1, 1], [0, 0.0, -0.0], [0, 1], [-1, 2], [-2, -2], [-3, -1, 0], [0.5, 0.25]])
def test_statistics_tell_the_order_that_the_operations_tell(semiring: Semiring, dtype: str, weights: list[float]) -> None:
    if dtype == "int32" and any(w != int(w) for w in weights):
        return
    try:
        edges = _edges(weights, semiring, dtype)
    except sr.SemiringError:
        return  # what is no element
    assert search_order(semiring, edges) == search_order(semiring, replace(edges, statistics=()))


def test_statistics_are_those_of_the_weights_that_are_kept() -> None:
    parallel = sp.coo_array(([5.0, -7.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    for graph in (parallel, parallel.tocsr(), sr.edges([(0, 1, 5.0), (0, 1, -7.0), (1, 0, 3.0)])):
        listed = edges_of(graph, sr.MIN_PLUS)
        assert listed is not None
        edges = listed[0]
        if edges.statistics:
            assert edges.statistics[0].finite == (edges.weights[0].min(), edges.weights[0].max())


@pytest.mark.parametrize("column", [-1, 3, 1 << 30])
def test_edges_that_lead_nowhere_are_refused_before_anything_is_searched(column: int) -> None:
    graph = sp.csr_array(np.array([[0, 1.0, 0], [0, 0, 2.0], [0, 0, 0]]))
    assert graph.has_canonical_format
    graph.indices[1] = column
    with pytest.raises((sr.SemiringError, ValueError, IndexError)):
        sr.apsp(graph, sources=[0])


def test_edges_are_the_same_whether_or_not_nothing_about_them_has_to_change() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32", "int32"):
        graph: Any = sp.random_array((30, 30), density=0.2, rng=rng, format="csr").astype(dtype) * 100
        graph.sum_duplicates()
        fast, slow = (edges_of(g, sr.MIN_PLUS, dtype=dtype) for g in (graph.astype(dtype), graph.astype(dtype).tocoo()))
        assert fast is not None and slow is not None  # noqa: PT018  # for the types
        assert fast[0].statistics == slow[0].statistics
        for name in ("starts", "heads", "zero", "n"):
            assert np.array_equal(getattr(fast[0], name), getattr(slow[0], name)), name
        assert np.array_equal(fast[0].weights[0], slow[0].weights[0])
        assert fast[0].weights[0].dtype == slow[0].weights[0].dtype == dtype


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_searches_reach_what_they_find(device: str) -> None:
    ring = _edges([1.0] * 200)
    assert reach(sr.MIN_PLUS, ring, 200, "best", device) == (1, 1 if device == "cpu" else None)
    halves = sp.block_diag([sp.csr_array(np.roll(np.eye(100), 1, axis=1))] * 2, format="csr")
    listed = edges_of(halves, sr.MIN_PLUS)
    assert listed is not None
    assert reach(sr.MIN_PLUS, listed[0], 200, "levels", device) == (0.5, 0.5 if device == "cpu" else None)
    assert reach(sr.MIN_PLUS, listed[0], 64, "levels", device) == (1, None)  # which is not worth a search
    assert share(200, listed[0].tails, listed[0].heads) == 2 / 8
    assert share(200, ring.tails, ring.heads) == 1
