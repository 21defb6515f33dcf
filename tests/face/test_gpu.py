"""What lies on a GPU stays there: the same answers as on the CPU, in the caller's own kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import testing

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu


def graph(n: int, dtype: Any = np.float32, seed: int = 0, edges: float = 0.3) -> Any:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 100, (n, n)).astype(dtype)
    none = np.inf if weights.dtype.kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) < edges, weights, np.array(none, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, np.int64, np.uint16])
@pytest.mark.parametrize("n", [0, 1, 2, 129, 300])
@pytest.mark.parametrize("method", ["auto", "iterative", "blocked"])
def test_distances(n: int, dtype: Any, method: str) -> None:
    a = graph(n, dtype)
    given = cupy.asarray(a)
    found = sr.apsp(given, method=method, nonedge=np.inf)
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), sr.apsp(a, nonedge=np.inf, device="cpu"))
    np.testing.assert_array_equal(given.get(), a)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_paths(dtype: Any) -> None:
    a = graph(300, dtype)
    paths = sr.apsp(cupy.asarray(a), paths=True)
    assert isinstance(paths.distances, cupy.ndarray)
    assert isinstance(paths.via, cupy.ndarray)
    testing.assert_paths_valid(paths, a)
    np.testing.assert_array_equal(paths.distances.get(), sr.apsp(a))


def test_negative_edges_and_cycles() -> None:
    a = graph(200, np.float32)
    potential = np.random.default_rng(1).integers(0, 50, 200).astype(np.float32)
    shifted = a + potential[:, None] - potential
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(shifted)).get(), sr.apsp(shifted))
    shifted[3, 4], shifted[4, 3] = -5, 4
    with pytest.raises(sr.NegativeCycleError) as found:
        sr.apsp(cupy.asarray(shifted))
    cycle = found.value.cycle
    assert cycle is not None
    assert sum(shifted[u, v] for u, v in zip(cycle, cycle[1:] + cycle[:1], strict=True) if u != v) < 0


@pytest.mark.parametrize("name", ["max-plus", "max-min", "min-max", "max-times", "boolean", "gf2", "bitset"])
def test_closures(name: str) -> None:
    semiring = sr.semirings()[name]
    rng = np.random.default_rng(2)
    n = 150
    a: Any
    match name:
        case "boolean":
            a = rng.random((n, n)) < 0.01
        case "gf2":
            a = np.triu(rng.random((n, n)) < 0.3, 1)
        case "bitset":
            a = rng.integers(0, 1 << 20, (n, n))
        case "max-plus":
            a = np.where(rng.random((n, n)) < 0.1, -rng.integers(1, 9, (n, n)), -np.inf)
        case "max-times":
            a = np.where(rng.random((n, n)) < 0.1, rng.choice([0.25, 0.5], (n, n)), 0.0)
        case _:
            a = rng.integers(-50, 50, (n, n)).astype(np.float32)
    for reflexive in (True, False):
        none = None if a.dtype == bool else semiring.zero
        found = sr.closure(cupy.asarray(a), semiring, reflexive=reflexive, nonedge=none)
        np.testing.assert_array_equal(found.get(), sr.closure(a, semiring, reflexive=reflexive, nonedge=none))


def test_inverse() -> None:
    a = np.random.default_rng(3).random((200, 200)) / 500
    np.testing.assert_allclose(sr.closure(cupy.asarray(a), sr.PLUS_TIMES).get(), np.linalg.inv(np.eye(200) - a), rtol=1e-10)


def test_structured_elements() -> None:
    a = graph(150, np.float64)
    a[np.diag_indices(150)] = np.inf
    count = np.where(np.isfinite(a), 1.0, 0.0)
    a = np.where(np.isfinite(a), a + 1, a)
    found = sr.closure((cupy.asarray(a), cupy.asarray(count)), sr.DISTANCE_COUNT)
    expected = sr.closure((a, count), sr.DISTANCE_COUNT)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x.get(), y)


def test_batches() -> None:
    batch = np.stack([graph(70, np.float32, seed) for seed in range(6)]).reshape(2, 3, 70, 70)
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(batch)).get(), sr.apsp(batch))


def test_products() -> None:
    a, b = graph(65), graph(65, seed=1)
    c = sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.TROPICAL_ARGMIN)
    expected = sr.matmul(a, b, sr.TROPICAL_ARGMIN)
    np.testing.assert_array_equal(c.values.get(), expected.values)
    np.testing.assert_array_equal(c.witness.get(), expected.witness)
    out = cupy.empty((65, 65), np.float32)
    assert sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, c=cupy.asarray(a), out=out) is out
    np.testing.assert_array_equal(out.get(), sr.matmul(a, b, sr.MIN_PLUS, c=a))
    np.testing.assert_array_equal(sr.matmul(cupy.asarray(a[0]), cupy.asarray(b), sr.MIN_PLUS).get(), sr.matmul(a[0], b, sr.MIN_PLUS))
    stack = np.stack([a, b])
    np.testing.assert_array_equal(sr.matmul(cupy.asarray(stack), cupy.asarray(b), sr.MIN_PLUS).get(), sr.matmul(stack, b, sr.MIN_PLUS))


def test_from_the_host_and_back() -> None:
    a = graph(130)
    found = sr.apsp(a, device="cuda")
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, sr.apsp(a, device="cpu"))
    paths = sr.apsp(a, device="cuda", paths=True)
    testing.assert_paths_valid(paths, a)
    np.testing.assert_array_equal(sr.matmul(a, a, sr.MIN_PLUS, device="cuda:0"), sr.matmul(a, a, sr.MIN_PLUS))


def test_arrays_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    a = graph(90)
    found = sr.apsp(torch.from_numpy(a).cuda())
    assert isinstance(found, torch.Tensor)
    assert found.is_cuda
    np.testing.assert_array_equal(found.cpu().numpy(), sr.apsp(a))


def test_overwriting_uses_the_callers_memory() -> None:
    a = graph(200)
    given = cupy.asarray(a)
    found = sr.apsp(given, overwrite=True)
    assert found.data.ptr == given.data.ptr
    np.testing.assert_array_equal(found.get(), sr.apsp(a))


def test_what_is_refused() -> None:
    a = cupy.asarray(graph(10))
    with pytest.raises(sr.SemiringError, match="lies on a GPU"):
        sr.apsp(a, device="cpu")
    with pytest.raises(sr.ShapeError, match="square"):
        sr.apsp(a[:5])
    a[0, 0] = np.nan
    with pytest.raises(sr.DomainError, match="NaN"):
        sr.apsp(a)
    with pytest.raises(sr.SemiringError, match="no device"):
        sr.apsp(graph(5), device="cuda:77")


def test_streams() -> None:
    a = graph(257)
    expected = sr.apsp(a)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    given = [cupy.asarray(a) for _ in streams]
    cupy.cuda.Device().synchronize()
    found = []
    for stream, one in zip(streams, given, strict=True):
        with stream:
            found.append(sr.apsp(one))
    for stream in streams:
        stream.synchronize()
    for one in found:
        np.testing.assert_array_equal(one.get(), expected)


def test_zeros_that_look_like_missing_edges() -> None:
    with pytest.warns(sr.NonEdgeWarning):
        sr.apsp(cupy.asarray([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]))


def test_another_dtype_is_never_forced() -> None:
    with pytest.raises(sr.SemiringError):
        sr.apsp(cupy.asarray([[0, 2**32 + 1], [3, 0]]), dtype=np.int32, nonedge=-1)
    found = sr.apsp(cupy.asarray([[0, 5], [3, 0]]), dtype=np.float32, nonedge=-1)
    assert found.dtype == np.float32


def test_many_threads() -> None:
    graphs = [graph(100, seed=seed) for seed in range(8)]
    expected = [sr.apsp(g) for g in graphs]
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda g: sr.apsp(cupy.asarray(g)).get(), graphs))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_operands_in_different_places() -> None:
    a, b = graph(40), graph(40, seed=1)
    found = sr.matmul(a, cupy.asarray(b), sr.MIN_PLUS)
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), sr.matmul(a, b, sr.MIN_PLUS))
    with pytest.raises(sr.ShapeError, match="out must lie"):
        sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, out=np.empty((40, 40), np.float32))
