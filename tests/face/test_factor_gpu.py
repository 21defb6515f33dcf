"""Factors whose rows and columns are found on a GPU, beside those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import semiring as sr
from tests.face.test_factor import CLOSED, roads

pytestmark = pytest.mark.gpu

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
    rng = np.random.default_rng(4)
    graph = roads(60, rng, directed=True)
    if semiring in ("plus-times", "max-times", "log"):
        graph.data = graph.data / 1000 if semiring != "log" else -3 - graph.data
    elif semiring == "max-plus":
        graph.data = -graph.data
    there, here = (sr.factor(graph, semiring, device=device) for device in ("cuda", "cpu"))
    for f in (lambda f: f.closure(), lambda f: f.columns([3, 5]), lambda f: f[[1, 2], [7, 59]]):
        same(f(there), f(here), close=semiring in ("plus-times", "max-times", "log"))


def test_a_fan_whose_hub_is_wide() -> None:
    """Supernodes with more vertices than a thread has sums of."""
    n = 90
    matrix = np.random.default_rng(2).integers(1, 99, (n, n)).astype(float)
    there, here = (sr.factor(matrix, device=device) for device in ("cuda", "cpu"))
    same(there.closure(), here.closure())
    same(there.columns([3, 80]), here.columns([3, 80]))
    same(there.rows(range(40)), here.rows(range(40)))


def test_other_weights() -> None:
    rng = np.random.default_rng(5)
    graph = roads(500, rng, directed=True)
    there, here = (sr.factor(graph, device=device) for device in ("cuda", "cpu"))
    pair = graph.tocoo()
    for some in (slice(3, 4), slice(100, 130), slice(0, None)):
        weights = rng.integers(1, 99, len(pair.data)).astype(float)[some]
        for f in (there, here):
            f.update((pair.row[some], pair.col[some], weights))
        same(there.closure(), here.closure())


def test_negative_edges_and_cycles_that_only_rounding_makes_negative() -> None:
    rng = np.random.default_rng(6)
    graph = roads(200, rng, directed=True)
    p = rng.normal(size=200).astype("float32") * 100
    pair = graph.tocoo()
    graph = graph.astype("float32").tocsr()
    tails = np.repeat(np.arange(200), np.diff(graph.indptr))
    graph.data = (p[tails] - p[graph.indices]).astype("float32")
    there, here = (sr.factor(graph, device=device) for device in ("cuda", "cpu"))
    same(there.closure(), here.closure())
    assert pair.shape == (200, 200)
    cycle = sr.edges([(0, 1, 1.0), (1, 0, -2.0)])
    with pytest.raises(sr.NegativeCycleError):
        sr.factor(cycle, device="cuda")


def test_integers_near_their_infinity() -> None:
    graph = sr.edges([(0, 1, 16000), (2, 3, -16000), (3, 4, 5)])
    there, here = (sr.factor(graph, dtype="int16", device=device) for device in ("cuda", "cpu"))
    same(there.closure(), here.closure())
