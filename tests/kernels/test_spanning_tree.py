"""Spanning forests as compiled loops: as light as SciPy's, in a line whose worst edges are the bottlenecks, in any number of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from semiring.kernels.cpu import spanning_tree
from semiring.kernels.cpu.spanning_tree import kruskal, prim, rows_of_line

Array = np.ndarray[Any, Any]


def weights(n: int, density: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < density, rng.integers(1, 50, (n, n)).astype(float), np.inf)
    return np.asarray(np.minimum(a, a.T))


def require_forest(a: Array, order: Array, gaps: Array, parents: Array) -> None:
    """The edges to parents are a forest as light as SciPy's, and so are the gaps in the line."""
    np.fill_diagonal(a, np.inf)
    tree = minimum_spanning_tree(np.where(np.isinf(a), 0, a))
    below = np.flatnonzero(parents >= 0)
    assert len(below) == tree.nnz
    assert a[below, parents[below]].sum() == gaps[np.isfinite(gaps)].sum() == tree.sum()
    assert sorted(order.tolist()) == list(range(len(a)))


@given(n=st.integers(0, 30), density=st.sampled_from([0.02, 0.1, 0.5, 1]), seed=st.integers(0, 10**6))
def test_prim(n: int, density: float, seed: int) -> None:
    a = weights(n, density, seed)
    require_forest(a, *prim(a, np.inf, smallest=True))


@given(n=st.integers(1, 30), density=st.sampled_from([0.02, 0.1, 0.5, 1]), seed=st.integers(0, 10**6))
def test_kruskal(n: int, density: float, seed: int) -> None:
    a = weights(n, density, seed)
    tails, heads = np.nonzero(np.isfinite(a))
    order, entries, parents = kruskal(n, tails, heads, np.argsort(a[tails, heads], kind="stable"))
    gaps = np.array([np.inf if e < 0 else a[tails[e], heads[e]] for e in entries.tolist()])
    require_forest(a.copy(), order, gaps, parents)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_on_several_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanning_tree, "_TASK", 60)
    a = weights(40, 0.2, 1)
    order, gaps, parents = prim(a, np.inf, smallest=True)
    position = np.argsort(order)
    rows, trees, sources = np.empty((40, 40)), np.empty((40, 40), np.int32), np.arange(40)
    rows_of_line(sources, (order, position, gaps, parents), -np.inf, rows, trees, threads, smallest=True)
    assert (trees[sources, sources] == -1).all()
    for s, v in zip(*np.nonzero(np.isfinite(rows)), strict=True):
        before = trees[s, v]
        assert rows[s, v] == max(rows[s, before], a[before, v])
