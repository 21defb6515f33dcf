"""Rows of the closure of a dense matrix by products, beside brute force and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring import testing
from semiring.algorithms import rows_of_matrix as module
from semiring.algorithms.rows_of_matrix import rows_of_matrix
from semiring.kernels.select import engine_for
from tests.kernels.samples import examples

INF = np.inf

CASES = [
    (sr.MIN_PLUS, "float64"),
    (sr.MIN_PLUS, "int32"),
    (sr.MAX_MIN, "float32"),
    (sr.BOOLEAN, "bool"),
    (sr.BITSET, "uint16"),
    (sr.DISTANCE_HOPS, "float64"),
    (sr.MIN_PLUS, object),
]


def rows(semiring: Any, values: Any, sources: Any, **how: Any) -> Any:
    dtypes = tuple(v.dtype for v in values)
    return rows_of_matrix(engine_for(semiring, dtypes, witness=True), values, np.asarray(sources, dtype=np.intp), **how)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("semiring", "dtype"), CASES, ids=lambda v: getattr(v, "name", str(v)))
@examples(15)
@given(data=st.data())
def test_it_is_part_of_the_sum_of_all_paths(semiring: Any, dtype: Any, data: st.DataObject) -> None:
    a = data.draw(testing.matrices(semiring, dtype, max_n=5))
    values = a if isinstance(a, tuple) else (a,)
    n = len(values[0])
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else []
    reflexive, backward = data.draw(st.booleans()), data.draw(st.booleans())
    kept = tuple(v.copy() for v in values)
    expected = testing.brute_force(semiring, a, reflexive=reflexive)
    found = rows(semiring, values, sources, reflexive=reflexive, backward=backward)
    for x, e, before, now in zip(found, expected if isinstance(a, tuple) else (expected,), kept, values, strict=True):
        assert x.tolist() == (e[:, sources] if backward else e[sources]).tolist()
        assert np.array_equal(before, now)


@pytest.mark.parametrize("few", [1 << 22, 150])
def test_trees_beside_scipys(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Also where rows are gathered a few at a time."""
    monkeypatch.setattr(module, "GPU", few)
    rng = np.random.default_rng(0)
    n = 60
    a = np.where(rng.random((n, n)) < 0.07, rng.random((n, n)), INF)
    a.flags.writeable = False
    tree = np.full((3, n), -1, dtype=np.int32)
    (found,) = rows(sr.MIN_PLUS, (a,), [7, 0, 59], tree=tree)
    expected, before = csgraph.dijkstra(csgraph.csgraph_from_dense(a, null_value=INF), indices=[7, 0, 59], return_predecessors=True)
    np.testing.assert_allclose(found, expected)
    assert np.array_equal(np.where(tree < 0, -9999, tree), before)
    tree = np.full((n, 3), -1, dtype=np.int32)
    (back,) = rows(sr.MIN_PLUS, (a.T,), [7, 0, 59], tree=tree, backward=True)
    np.testing.assert_allclose(back.T, expected)
    assert np.array_equal(np.where(tree.T < 0, -9999, tree.T), before)


def test_it_gives_up() -> None:
    """After so many steps; and where a cycle goes on improving."""
    n = 50
    chain = np.full((n, n), INF)
    chain[np.arange(n - 1), np.arange(1, n)] = 1
    assert rows(sr.MIN_PLUS, (chain,), [0])[0][0].tolist() == list(range(n))
    assert rows(sr.MIN_PLUS, (chain,), [0], steps=10 * n) is None
    chain[n - 1, 0] = -n
    assert rows(sr.MIN_PLUS, (chain,), [0]) is None
    chain[0, 1] = INF
    assert rows(sr.MIN_PLUS, (chain,), [0])[0][0].tolist() == [0] + [INF] * (n - 1)


def test_no_vertices_and_no_sources() -> None:
    assert rows(sr.MIN_PLUS, (np.zeros((0, 0)),), [])[0].shape == (0, 0)
    assert rows(sr.MIN_PLUS, (np.zeros((3, 3)),), [])[0].shape == (0, 3)
    assert rows(sr.MIN_PLUS, (np.array([[4.0]]),), [0], reflexive=False)[0].tolist() == [[4]]
