"""Hop counts on a GPU by breadth-first search in bits, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import semiring as sr
from semiring.kernels import machine
from semiring.kernels.cuda import boolean

pytestmark = pytest.mark.gpu


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each search was done."""
    found = list[bool]()
    search = boolean.close_by_levels

    def told(*given: Any) -> bool:
        found.append(search(*given))
        return found[-1]

    monkeypatch.setattr(boolean, "close_by_levels", told)
    monkeypatch.setattr(machine, "LEVELS_SIDE", 1)
    monkeypatch.setattr(machine, "most_levels", lambda n, edges: machine.LEVELS)
    return found


def edges(n: int, degree: float, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    count = int(n * degree)
    graph = sp.coo_array((np.ones(count), (rng.integers(0, n, count), rng.integers(0, n, count))), shape=(n, n)).tocsr()
    graph.data[:] = 1
    return graph


@pytest.mark.parametrize("n", [1, 2, 31, 33, 127, 129, 500])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "uint16", "int64"])
@pytest.mark.parametrize("length", [1, 3])
def test_hop_counts(n: int, dtype: str, length: int, counted: list[bool]) -> None:
    import cupy

    graph = edges(n, 2.5, n)
    infinity = np.inf if dtype.startswith("f") else np.iinfo(dtype).max
    expected = csgraph.dijkstra(graph, unweighted=True) * length
    reached = np.isfinite(expected)
    expected = np.where(reached, np.where(reached, expected, 0).astype(dtype), np.array(infinity, dtype))
    for diagonal in (0, infinity):
        dense = np.where(graph.toarray() > 0, length, infinity).astype(dtype)
        np.fill_diagonal(dense, diagonal)
        for given in (dense, np.asfortranarray(dense), np.repeat(dense, 2, axis=1)[:, ::2]):
            np.testing.assert_array_equal(sr.apsp(cupy.asarray(given), nonedge=infinity).get(), expected)
    assert (n < 3) or (counted and all(counted))


def test_other_edges_and_long_paths_are_left_to_products(counted: list[bool]) -> None:
    import cupy

    path = sp.diags_array(np.ones(299), offsets=1, shape=(300, 300)).tocsr()
    zero, third = edges(300, 3).tolil(), edges(300, 3).tolil()
    zero[5, 7], third[5, 7] = 1e-9, 0.5
    for graph in (path, zero.tocsr(), third.tocsr()):
        dense = np.where(graph.toarray() > 0, graph.toarray(), np.inf)
        if graph is not path:
            dense[dense == 1e-9] = 0
        np.testing.assert_allclose(sr.apsp(cupy.asarray(dense), nonedge=np.inf).get(), sr.apsp(dense, nonedge=np.inf), rtol=1e-12)
    assert not any(counted)


def test_what_is_expected_to_take_longer_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.most_levels(32_768, 16 * 32_768) > 64
    assert machine.most_levels(4096, 4096 * 2048) < 2
