"""Chosen sources and targets of matrices on a GPU: found there, and the same as on the host."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.planning import planner

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")]

INF = np.inf


@pytest.fixture(params=[False, True], ids=["rows", "whole"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By products of a few rows, or out of the whole closure."""
    monkeypatch.setattr(planner, "_plans", {})
    monkeypatch.setattr(planner, "closure_seconds", lambda *_: 0.0 if request.param else math.inf)


def sparse(n: int, degree: float, dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    infinity = INF if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) < degree / n, rng.integers(0, 10, (n, n)), infinity).astype(dtype)


@pytest.mark.parametrize("chosen", [{"sources": [7, 3, 7]}, {"targets": [2]}, {"sources": [5, 1], "targets": [0, 9, 5]}], ids=str)
def test_frames_and_what_jupyter_shows(chosen: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    a = sparse(50, 3, np.float32)
    there, here = (sr.apsp(given, paths=True, **chosen) for given in (cupy.asarray(a), a))
    pd.testing.assert_frame_equal(there.to_frame(), here.to_frame())
    for row in there.to_frame(paths=True).itertuples():
        assert sum(float(a[u, v]) for u, v in itertools.pairwise(row.path)) == row.value
    assert "the memory of cuda:0" in there._repr_html_()
    assert here._repr_html_() == there._repr_html_().replace("the memory of cuda:0", "memory")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, np.uint32])
@pytest.mark.parametrize("n", [1, 33, 200, 700])
def test_distances_and_paths(n: int, dtype: Any) -> None:
    a = sparse(n, 3, dtype, n)
    sources, targets = [n - 1, 0, n // 2], [n // 3, n - 1]
    full = sr.apsp(a, device="cpu")
    for given, kind in ((cupy.asarray(a), cupy.ndarray), (a, np.ndarray)):
        found = sr.apsp(given, sources=sources, targets=targets, device="cuda")
        assert isinstance(found, kind)
        assert np.array_equal(cupy.asnumpy(found), full[np.ix_(sources, targets)])
        paths = sr.apsp(given, sources=sources, paths=True, device="cuda")
        assert isinstance(paths.values, kind)
        assert np.array_equal(cupy.asnumpy(paths.values), full[sources])
        before = cupy.asnumpy(paths.predecessors())
        for row, i in enumerate(sources):
            for j in range(0, n, 7):
                path = paths.path(i, j)
                assert (before[row, j] >= 0) == (len(path) > 1)
                weights = [a[u, v] for u, v in itertools.pairwise(path)]
                assert not path or sum(map(float, weights)) == float(full[i, j])
        after = sr.apsp(given, targets=targets, paths=True, device="cuda")
        assert np.array_equal(cupy.asnumpy(after.values), full[:, targets])
        assert after.next_hops().shape == (n, 2)
        assert (
            sum(float(a[u, v]) for u, v in itertools.pairwise(p)) == float(full[n - 1, targets[0]])
            if (p := after.path(n - 1, targets[0]))
            else True
        )


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_negative_edges(dtype: Any) -> None:
    n, rng = 300, np.random.default_rng(5)
    p = rng.integers(-20, 20, n)
    a = sparse(n, 3, np.float64) + p[:, None] - p
    infinity: Any = INF if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    a = np.where(a < INF, a, infinity).astype(dtype)
    full = sr.apsp(a, device="cpu")
    assert np.array_equal(sr.apsp(cupy.asarray(a), sources=[3, 8]).get(), full[[3, 8]])
    assert np.array_equal(sr.apsp(cupy.asarray(a), targets=[3, 8]).get(), full[:, [3, 8]])
    a[:, 7] = infinity
    a[7, 7] = -1
    assert sr.apsp(cupy.asarray(a), sources=[3]).shape == (1, n)
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(cupy.asarray(a), sources=[3, 7])
    assert caught.value.cycle == [7]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n", [6, 40, 300])
def test_negative_integers_do_not_pull_infinity_back(n: int, dtype: Any) -> None:
    infinity = np.iinfo(dtype).max
    a = np.full((n, n), infinity, dtype)
    a[np.arange(n - 1), np.arange(1, n)] = -3  # a path
    a[n // 2, n // 2 + 1] = infinity  # cut in two
    full, chosen = sr.apsp(a, device="cpu"), [0, n // 2 + 2]
    for given in (a, cupy.asarray(a)):
        assert np.array_equal(cupy.asnumpy(sr.apsp(given, sources=chosen, device="cuda")), full[chosen])
        assert np.array_equal(cupy.asnumpy(sr.apsp(given, targets=chosen, device="cuda")), full[:, chosen])
        rows = sr.apsp(given, sources=chosen, paths=True, device="cuda")
        columns = sr.apsp(given, targets=chosen, paths=True, device="cuda")
        assert np.array_equal(cupy.asnumpy(rows.values), full[chosen])
        assert np.array_equal(cupy.asnumpy(columns.values), full[:, chosen])
        assert rows.path(0, n // 2) == list(range(n // 2 + 1))
        assert rows.path(0, n - 1) == columns.path(0, n // 2 + 2) == []


def test_other_semirings() -> None:
    rng = np.random.default_rng(2)
    width = rng.random((150, 150)).astype(np.float32)
    truth = rng.random((150, 150)) < 0.01
    assert np.array_equal(sr.closure(cupy.asarray(width), sr.MAX_MIN, sources=[4]).get(), sr.closure(width, sr.MAX_MIN)[[4]])
    found = sr.transitive_closure(cupy.asarray(truth), sources=[4, 9, 4])
    assert found.dtype == np.bool_
    assert np.array_equal(found.get(), sr.transitive_closure(truth)[[4, 9, 4]])
    small = np.triu(width, 1)
    np.testing.assert_allclose(
        sr.closure(cupy.asarray(small), sr.PLUS_TIMES, sources=[140]).get(), sr.closure(small, sr.PLUS_TIMES)[[140]], rtol=1e-4
    )
    pair = (width, np.ones_like(width))
    for x, y in zip(
        sr.closure(tuple(map(cupy.asarray, pair)), sr.DISTANCE_HOPS, sources=[4]), sr.closure(pair, sr.DISTANCE_HOPS), strict=True
    ):
        np.testing.assert_allclose(x.get(), y[[4]], rtol=1e-5)


def test_batches_and_tiny_weights() -> None:
    a = cupy.full((3, 5, 5), INF, dtype=np.float32)
    a[:, 0, 1] = a[:, 1, 2] = a[:, 2, 3] = np.float32(1e-45)  # subnormal: CuPy takes it for zero
    found = sr.apsp(a, sources=[0])
    assert found.shape == (3, 1, 5)
    assert np.array_equal(found.get()[2, 0, :4], np.float32(1e-45) * np.arange(4, dtype=np.float32))
    assert sr.apsp(a, sources=[0], paths=True)[1].path(0, 3) == [0, 1, 2, 3]
