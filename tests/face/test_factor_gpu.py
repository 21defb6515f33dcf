"""Factors on a GPU, which eliminates and finds rows and columns, beside those of the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from tests.face.test_factor import CLOSED, roads

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are asked for and steps it takes, the GPU finds and eliminates them."""
    monkeypatch.setattr("semiring.kernels.machine.GPU_SWEEP", 1)
    monkeypatch.setattr("semiring.kernels.machine.GPU_ELIMINATION", 0)


Array = np.ndarray[Any, Any]


def parts(values: Any) -> tuple[Array, ...]:
    """The components of elements, on the host."""
    return tuple(v.get() if hasattr(v, "get") else np.asarray(v) for v in (values if isinstance(values, tuple) else (values,)))


def same(found: Any, expected: Any, *, close: bool = False) -> None:
    for x, y in zip(parts(found), parts(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if close:
            np.testing.assert_allclose(x, y, rtol=1e-5)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 33, 97, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16"])
@pytest.mark.parametrize("directed", [False, True])
def test_rows_and_columns_are_those_of_the_cpu(n: int, dtype: str, directed: bool) -> None:
    rng = np.random.default_rng(n)
    graph = roads(n, rng, directed=directed)
    there, here = (sr.factor(graph, dtype=dtype, device=device) for device in ("cuda", "cpu"))
    assert type(there.closure()).__module__.startswith("cupy")
    same(there.closure(), here.closure())
    some, others = (rng.permutation(n)[: n // 2] for _ in range(2))
    for f in (lambda f: f.rows(some), lambda f: f.columns(others), lambda f: f[some, others], lambda f: f[others[:1], some]):
        same(f(there), f(here))
    if n:
        for f in (lambda f: f.rows(n - 1), lambda f: f.columns([0]), lambda f: f[0, n - 1], lambda f: f[[0, 0, n - 1], n - 1]):
            same(f(there), f(here))
        assert there.paths(0).distances.shape == (n,)
    for (names, rows), (expected, wanted) in zip(there.blocks(7), here.blocks(7), strict=True):
        assert names == expected
        same(rows, wanted)


@pytest.mark.parametrize("semiring", [*CLOSED, "plus-times"])
def test_every_semiring(semiring: str) -> None:
    rng = np.random.default_rng(5)
    matrix = sr.testing.random_matrix(semiring, 41, density=0.06, rng=rng)
    if semiring == "log":
        matrix -= 6.0
    elif semiring == "plus-times":
        matrix = matrix / 100
    there, here = (sr.factor(matrix, semiring, device=device) for device in ("cuda", "cpu"))
    for f in (lambda f: f.closure(), lambda f: f.columns([3, 5]), lambda f: f[[1, 2], [7, 40]]):
        same(f(there), f(here), close=semiring in ("plus-times", "max-times", "log"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [90, 128, 201])
def test_a_front_of_several_pivot_blocks(n: int, dtype: str) -> None:
    """With more vertices than a thread of a sweep has sums of; a complete graph is one front."""
    matrix = np.random.default_rng(2).integers(1, 99, (n, n)).astype(dtype)
    there, here = (sr.factor(matrix, device=device) for device in ("cuda", "cpu"))
    same(there.closure(), here.closure())
    same(there.columns([3, 80]), here.columns([3, 80]))
    same(there.rows(range(40)), here.rows(range(40)))


@pytest.mark.parametrize("steps", [0, 1 << 62])
def test_other_weights(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eliminated on the GPU, or on the host for it."""
    monkeypatch.setattr("semiring.kernels.machine.GPU_ELIMINATION", steps)
    rng = np.random.default_rng(5)
    graph = roads(500, rng, directed=True)
    there, here = (sr.factor(graph, device=device) for device in ("cuda", "cpu"))
    pair = graph.tocoo()
    for some in (slice(3, 4), slice(100, 130), slice(0, None), slice(7, 8)):
        weights = rng.integers(1, 99, len(pair.data)).astype(float)[some]
        for f in (there, here):
            f.update((pair.row[some], pair.col[some], weights))
        same(there.closure(), here.closure())
        same(there.solve(np.arange(500.0)), here.solve(np.arange(500.0)))  # by the panels of the host
    with pytest.raises(sr.NegativeCycleError):
        there.update((pair.row[5:7], pair.col[5:7], [-1e6, -1e6]))
    same(there.closure(), here.closure())


def test_a_factor_that_is_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = roads(100, rng, directed=True)
    here, path = sr.factor(graph), tmp_path / "f.npz"
    sr.factor(graph, device="cuda").save(path)
    there = sr.Factor.load(path, device="cuda")
    assert type(there.closure()).__module__.startswith("cupy")
    same(there.closure(), here.closure())
    for f in (there, here):
        f.update(([0], [graph.indices[0]], [0.5]))
    same(there.closure(), here.closure())


def test_the_host_eliminates_what_has_no_room_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.select.fits", lambda needed, device: False)
    graph = roads(100, np.random.default_rng(5))
    f = sr.factor(graph, device="cuda")
    assert f._matrix.elimination.fronts is None
    same(f.closure(), sr.factor(graph).closure())


def test_negative_edges() -> None:
    """With potentials, where rounding makes cycles of them, which the host takes out again."""
    rng = np.random.default_rng(8)
    graph, p = roads(200, rng), rng.standard_normal(200) * 10
    pair = graph.tocoo()
    for weights in (pair.data + 20 * (p[pair.row] - p[pair.col]) / 10, np.nextafter(p[pair.row] - p[pair.col], np.inf)):
        given = sp.csr_array((weights, (pair.row, pair.col)), shape=graph.shape)
        there, here = (sr.factor(given, device=device) for device in ("cuda", "cpu"))
        same(there.closure(), here.closure(), close=True)  # sums of floats are rounded in another order
        same(there.columns([7]), here.columns([7]), close=True)
    with pytest.raises(sr.NegativeCycleError):
        sr.factor(sr.edges([(0, 1, 1.0), (1, 0, -2.0)]), device="cuda")


def test_integers_near_their_infinity() -> None:
    graph = sr.edges([(0, 1, 1300), (2, 3, -1300), (3, 4, 5)])
    there, here = (sr.factor(graph, dtype="int16", device=device) for device in ("cuda", "cpu"))
    same(there.closure(), here.closure())


def test_few_rows_are_found_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.machine.GPU_SWEEP", 1000)
    f = sr.factor(roads(100, np.random.default_rng(1)), device="cuda")
    monkeypatch.setattr(f._matrix.elimination.sweeps, "run", None)
    same(f.rows([1, 2]), sr.factor(roads(100, np.random.default_rng(1))).rows([1, 2]))
