"""Exact counts of walks, against Python's integers and NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr


def by_definition(matrix: Any) -> list[list[int]]:
    """I + A·N in Python's integers, for upper triangular matrices, from the last row on."""
    n = len(matrix)
    found = [[int(i == j) for j in range(n)] for i in range(n)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            for j in range(k, n):
                found[i][j] += int(matrix[i][k]) * found[k][j]
    return found


@given(st.integers(0, 12), st.sampled_from([1, 3, 10**6, 2**40]), st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_acyclic_matrices(n: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.integers(0, most + 1, (n, n)) * (rng.random((n, n)) < 0.6), 1)
    expected = by_definition(matrix.tolist())
    found = sr.count_exactly(matrix)
    assert found.tolist() == expected
    assert found.dtype == object or found.dtype == np.int64
    shuffled = rng.permutation(n)
    moved = sr.count_exactly(matrix[np.ix_(shuffled, shuffled)])
    assert moved.tolist() == [[expected[i][j] for j in shuffled] for i in shuffled]
    assert sr.count_exactly(matrix > 0).tolist() == by_definition((matrix > 0).tolist())


def test_counts_beyond_int64() -> None:
    """A complete acyclic graph of n vertices has 2^(n − 2) walks from first to last."""
    for n in (62, 63, 64, 65, 200):
        found = sr.count_exactly(np.triu(np.ones((n, n), np.int8), 1))
        assert found[0, -1] == 2 ** (n - 2)
        assert found.dtype == (np.int64 if n <= 62 else object)


def test_graphs_of_libraries() -> None:
    graph: Any = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")])
    nodes = list(graph)
    found = sr.count_exactly(graph)
    expected = [[len(list(nx.all_simple_paths(graph, u, v))) if u != v else 1 for v in nodes] for u in nodes]
    assert found.tolist() == expected
    parallel = sr.edges([("a", "b"), ("a", "b"), ("b", "c")])
    assert sr.count_exactly(parallel)[0].tolist() == [1, 2, 2]
    weighted = sr.edges([("a", "b", 3), ("b", "c", 5)])
    assert sr.count_exactly(weighted, weight=1)[0].tolist() == [1, 1, 1]
    assert sr.count_exactly(weighted)[0].tolist() == [1, 3, 15]
    assert sr.count_exactly(np.zeros((0, 0))).shape == (0, 0)


def test_infinite_and_negative_counts_are_refused() -> None:
    with pytest.raises(sr.DivergenceError, match="a cycle through vertex 'a'"):
        sr.count_exactly(sr.edges([("a", "b"), ("b", "a"), ("b", "c")]))
    with pytest.raises(sr.DivergenceError, match="a cycle through vertex 1"):
        sr.count_exactly(np.array([[0, 1], [0, 1]]))
    with pytest.raises(sr.DomainError, match="whole numbers from 0; the least is -2"):
        sr.count_exactly(np.array([[0, -2], [0, 0]]))
    with pytest.raises(sr.SemiringError):
        sr.count_exactly(np.array([[0, 0.5], [0, 0]]))


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    n = 300
    found = sr.count_exactly(np.triu(np.ones((n, n), np.int8), 1), device="cuda")
    assert found[0, -1] == 2 ** (n - 2)
