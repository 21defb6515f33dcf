"""Spanning forests: as light as SciPy's, in a line whose worst edges are the bottlenecks; compiled loops are the same as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from semiring.algebra.catalogue import MAX_MIN, MIN_MAX
from semiring.algebra.definition import Semiring
from semiring.algorithms import spanning_tree
from semiring.algorithms.csr import CSR
from semiring.algorithms.spanning_tree import Lines, SpanningForest, kruskal
from semiring.kernels.cpu.loops import interpreted

Array = np.ndarray[Any, Any]


def weights(n: int, density: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < density, rng.integers(1, 50, (n, n)).astype(float), np.inf)
    return np.asarray(np.minimum(a, a.T))


def both(make: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
    """What the compiled loops make, which is what Python makes."""
    found = make()
    with interpreted():
        expected = make()
    assert [v.tobytes() for v in found] == [v.tobytes() for v in expected]
    return found


def parts(forest: SpanningForest) -> tuple[Array, ...]:
    return forest.order, forest.position, forest.gaps, forest.parents


def require_forest(a: Array, order: Array, position: Array, gaps: Array, parents: Array) -> None:
    """The edges to parents are a forest as light as SciPy's, and so are the gaps in the line."""
    np.fill_diagonal(a, np.inf)
    tree = minimum_spanning_tree(np.where(np.isinf(a), 0, a))
    below = np.flatnonzero(parents >= 0)
    assert len(below) == tree.nnz
    assert a[below, parents[below]].sum() == gaps[np.isfinite(gaps)].sum() == tree.sum()
    assert sorted(order.tolist()) == list(range(len(a)))
    assert order[position].tolist() == list(range(len(a)))


@given(n=st.integers(0, 30), density=st.sampled_from([0.02, 0.1, 0.5, 1]), seed=st.integers(0, 10**6))
def test_prim(n: int, density: float, seed: int) -> None:
    a = weights(n, density, seed)
    require_forest(a, *both(lambda: parts(SpanningForest.of_matrix(a, np.inf, -np.inf, smallest=True))))


@given(n=st.integers(0, 30), density=st.sampled_from([0.02, 0.1, 0.5, 1]), seed=st.integers(0, 10**6))
def test_edges_have_the_same_forest(n: int, density: float, seed: int) -> None:
    a = weights(n, density, seed)
    tails, heads = np.nonzero(np.isfinite(a))
    edges = CSR.of(tails, heads, (a[tails, heads],), n, (np.inf,))
    require_forest(a, *both(lambda: parts(SpanningForest.of_edges(MIN_MAX, edges))))


@given(n=st.integers(1, 12), m=st.integers(0, 40), seed=st.integers(0, 10**6))
def test_kruskal(n: int, m: int, seed: int) -> None:
    """Loops and parallel edges too, in both directions or in one."""
    tails, heads = np.random.default_rng(seed).integers(0, n, (2, m))

    def joined() -> tuple[Array, ...]:
        parents, (order, entries) = np.full(n, -1, np.int32), np.empty((2, n), np.int64)
        kruskal(n, m, tails, heads, np.arange(m), Lines.apart(n), parents, order, entries)
        return order, entries, parents

    order, entries, parents = both(joined)
    a = np.full((n, n), np.inf)
    for e in reversed(range(m)):
        a[tails[e], heads[e]] = a[heads[e], tails[e]] = e + 1
    require_forest(a, order, np.argsort(order), np.where(entries < 0, np.inf, entries + 1), parents)


@pytest.mark.parametrize("n", [0, 1, 2, 17])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16, np.uint8])
@pytest.mark.parametrize("semiring", [MIN_MAX, MAX_MIN])
def test_elements_of_all_types(n: int, dtype: Any, semiring: Semiring) -> None:
    ((zero,), (one,)), smallest = semiring.identities((np.dtype(dtype),)), semiring is MIN_MAX
    a = np.random.default_rng(n).integers(1, 9, (n, n)).astype(dtype)
    a = np.where(a == 8, zero, np.minimum(a, a.T))
    a = np.minimum(a, a.T) if smallest else np.maximum(a, a.T)
    tails, heads = np.nonzero(a != zero)
    edges = CSR.of(tails, heads, (a[tails, heads],), n, (zero,))
    dense = SpanningForest.of_matrix(a, zero, one, smallest=smallest)
    both(lambda: parts(SpanningForest.of_matrix(a, zero, one, smallest=smallest)))
    sparse = SpanningForest.of_edges(semiring, edges)

    def rows(forest: SpanningForest, *, paths: bool) -> tuple[Array, ...]:
        wide, trees = np.full((n, n + 3), zero, dtype), np.empty((n, n), np.int32)
        forest.fill(np.arange(n), wide[:, :n], trees if paths else None, 1)
        return (wide, trees) if paths else (wide,)

    (found,) = both(lambda: rows(dense, paths=False))
    assert np.array_equal(found, both(lambda: rows(dense, paths=True))[0])
    assert np.array_equal(found, both(lambda: rows(sparse, paths=True))[0])


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_on_several_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanning_tree, "_TASK", 60)
    a = weights(40, 0.2, 1)
    forest = SpanningForest.of_matrix(a, np.inf, -np.inf, smallest=True)
    rows, trees, sources = np.empty((40, 40)), np.empty((40, 40), np.int32), np.arange(40)
    forest.fill(sources, rows, trees, threads)
    assert (trees[sources, sources] == -1).all()
    for s, v in zip(*np.nonzero(np.isfinite(rows)), strict=True):
        before = trees[s, v]
        assert rows[s, v] == max(rows[s, before], a[before, v])
