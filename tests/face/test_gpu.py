"""What lies on a GPU stays there: the same answers as on the CPU, in the caller's own kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import testing
from semiring.algorithms.schedules import schedule_for
from semiring.arrays.devices import gpus, on_device, on_gpu
from semiring.arrays.exchange import borrowed
from semiring.planning import closure_problem, plan, planner
from semiring.planning.options import Options

cupy = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")
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
    for part in (np.s_[:, 1:], np.s_[::-1, :2], np.s_[:1, ::2]):
        np.testing.assert_array_equal(sr.apsp(cupy.asarray(batch)[part]).get(), sr.apsp(batch[part]))


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


def in_torch(array: Any) -> Any:
    return pytest.importorskip("torch").from_numpy(array).cuda()


def in_jax(array: Any) -> Any:
    jax = pytest.importorskip("jax")
    if not any(d.platform == "gpu" for d in jax.devices()):
        pytest.skip("JAX has no GPU")
    return jax.device_put(array, next(d for d in jax.devices() if d.platform == "gpu"))


def in_numba(array: Any) -> Any:
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba has no GPU")
    return cuda.to_device(array)


def address(array: Any) -> int:
    if hasattr(array, "__cuda_array_interface__"):
        return int(array.__cuda_array_interface__["data"][0])
    return int(cupy.from_dlpack(array).data.ptr)


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of the GPU's memory


@pytest.mark.usefixtures("small_pools")
@pytest.mark.parametrize("given", [in_torch, in_jax, in_numba])
class TestOtherLibraries:
    def test_closures(self, given: Callable[[Any], Any]) -> None:
        a = graph(90)
        array = given(a)
        found = sr.apsp(array)
        assert type(found) is type(array)
        assert on_gpu(borrowed(found).array)
        np.testing.assert_array_equal(cupy.asarray(found).get(), sr.apsp(a))
        np.testing.assert_array_equal(cupy.asarray(array).get(), a)
        paths = sr.apsp(array, paths=True, overwrite=True)
        assert type(paths.distances) is type(paths.via) is type(array)
        reached = sr.transitive_closure(given(np.isfinite(a)))
        assert type(reached) is type(array)
        np.testing.assert_array_equal(cupy.from_dlpack(reached).get() if hasattr(reached, "__dlpack__") else cupy.asarray(reached).get(),
                                      sr.transitive_closure(np.isfinite(a)))  # fmt: skip

    def test_overwriting(self, given: Callable[[Any], Any]) -> None:
        a = graph(90)
        array = given(a)
        found = sr.apsp(array, overwrite=True)
        np.testing.assert_array_equal(cupy.asarray(found).get(), sr.apsp(a))
        if given is in_jax:
            np.testing.assert_array_equal(np.asarray(array), a)
        else:
            assert address(found) == address(array)

    def test_products(self, given: Callable[[Any], Any]) -> None:
        a, b = graph(65), graph(65, seed=1)
        x, y = given(a), given(b)
        values, witness = sr.matmul(x, y, sr.TROPICAL_ARGMIN)
        expected = sr.matmul(a, b, sr.TROPICAL_ARGMIN)
        for found, right in ((values, expected.values), (witness, expected.witness)):
            assert type(found) is type(x)
            np.testing.assert_array_equal(cupy.asarray(found).get(), right)
        mixed = sr.matmul(a, y, sr.MIN_PLUS)
        assert type(mixed) is type(x)
        scalar = sr.matmul(given(a[0]), given(b[0]), sr.MIN_PLUS)
        assert scalar.shape == ()
        added = sr.matmul(x, y, sr.MIN_PLUS, c=given(a))
        np.testing.assert_array_equal(cupy.asarray(added).get(), sr.matmul(a, b, sr.MIN_PLUS, c=a))

    def test_out(self, given: Callable[[Any], Any]) -> None:
        a, b = graph(65), graph(65, seed=1)
        out = given(np.zeros((65, 65), np.float32))
        if given is in_jax:
            with pytest.raises(sr.DTypeError, match="read-only"):
                sr.matmul(given(a), given(b), sr.MIN_PLUS, out=out)
            return
        assert sr.matmul(given(a), given(b), sr.MIN_PLUS, out=out) is out
        np.testing.assert_array_equal(cupy.asarray(out).get(), sr.matmul(a, b, sr.MIN_PLUS))


def test_streams_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    a = graph(200)
    expected = sr.apsp(a)
    given = in_torch(a)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(5):
            torch.cuda._sleep(10_000_000)
            later = given.clone()  # not there yet when the closure is called
            found = sr.apsp(later, overwrite=True).clone()
            product = torch.zeros_like(given)
            sr.matmul(later, later, sr.MIN_PLUS, out=product)
            assert torch.equal(found.cpu(), torch.from_numpy(expected))
            assert torch.equal(product.cpu(), torch.from_numpy(expected))


class TestReading:
    """A matrix on a GPU is read as one on the host is."""

    @pytest.mark.parametrize("none", [0, -1, np.nan, np.inf])
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_missing_edges(self, none: float, overwrite: bool) -> None:
        a = graph(70)
        given = cupy.asarray(np.where(np.isinf(a), np.float32(none), a))
        before = given.copy()
        expected = np.where((a == 0) & (none == 0), np.inf, a)
        np.testing.assert_array_equal(sr.apsp(given, nonedge=none, overwrite=overwrite).get(), sr.apsp(expected))
        assert overwrite or bool(((given == before) | cupy.isnan(before)).all())

    def test_a_number_that_no_entry_can_be(self) -> None:
        a = graph(20, np.uint16)
        np.testing.assert_array_equal(sr.apsp(cupy.asarray(a), nonedge=-1).get(), sr.apsp(a, nonedge=-1))
        with pytest.raises(sr.GraphError, match="nonedge is 'x'"):
            sr.apsp(cupy.asarray(a), nonedge="x")

    @pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint16, np.int64])
    def test_other_dtypes(self, dtype: Any) -> None:
        a = np.random.default_rng(0).integers(1, 100, (50, 50)).astype(dtype)
        for wanted in (None, np.float64, np.int32):
            found = sr.apsp(cupy.asarray(a), dtype=wanted, nonedge=7)
            expected = sr.apsp(a, dtype=wanted, nonedge=7)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.get(), expected)

    def test_conversions(self) -> None:
        numbers = np.array([[0, 1e-40, np.inf], [2**31, 0, 0.1], [3, 4, 1e300]])
        largest: dict[str, float] = {"int8": 2**7 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1, "uint64": 2**64 - 1}

        def outcome(matrix: Any, dtype: str) -> Any:
            try:
                found = sr.apsp(matrix, dtype=dtype, nonedge=np.inf)
            except sr.DTypeError as error:
                return str(error)
            except sr.SemiringError as error:
                return type(error)
            return cupy.asnumpy(found)

        for old in ("float16", "float32", "float64", *largest):
            with np.errstate(over="ignore"):
                a = np.array([[largest[old] if old in largest and x > 100 else x for x in row] for row in numbers.tolist()], object).astype(
                    old
                )
            for new in ("float32", "float64", "int16", "int32", "int64", "uint64"):
                np.testing.assert_array_equal(outcome(cupy.asarray(a), new), outcome(a, new), err_msg=f"{old} to {new}")

    def test_truth_values(self) -> None:
        a = (np.random.default_rng(0).random((60, 60)) < 0.03).astype(np.int32)
        np.testing.assert_array_equal(sr.transitive_closure(cupy.asarray(a)).get(), sr.transitive_closure(a))
        np.testing.assert_array_equal(sr.transitive_closure(cupy.asarray(5.0 * a), nonedge=0).get(), sr.transitive_closure(a))
        a[3, 4] = 2
        with pytest.raises(sr.DTypeError, match=r"graph\[3, 4\] is 2"):
            sr.transitive_closure(cupy.asarray(a))

    def test_the_carrier_of_structured_elements(self) -> None:
        n = 300  # several pieces
        distance, hops = graph(n, np.float64), np.ones((n, n))
        hops[np.isinf(distance)] = np.inf
        hops[n - 1, n - 2], distance[n - 1, n - 2] = -1, 3
        with pytest.raises(sr.DomainError, match=r"graph\[299, 298\]"):
            sr.closure((cupy.asarray(distance), cupy.asarray(hops)), sr.DISTANCE_HOPS)

    def test_views(self) -> None:
        a = graph(90)
        whole = cupy.asarray(np.kron(a, np.ones((1, 2), np.float32)))
        for given in (cupy.asarray(a.T.copy()).T, whole[:, ::2], cupy.asarray(a)[::-1, ::-1][::-1, ::-1]):
            for overwrite in (False, True):
                np.testing.assert_array_equal(sr.apsp(given.copy(), overwrite=overwrite).get(), sr.apsp(a))
                np.testing.assert_array_equal(sr.apsp(given, overwrite=False).get(), sr.apsp(a))


class TestFromTheHost:
    """NumPy's matrices go to the GPU as they are, and are read there."""

    def test_kinds(self) -> None:
        a = graph(130)
        frozen = a.copy()
        frozen.flags.writeable = False
        strided = np.kron(a, np.ones((1, 2), np.float32))[:, ::2]
        for given in (a, frozen, strided, np.asfortranarray(a), a.astype(">f4"), a.astype(np.float16), a.tolist()):
            found = sr.apsp(given, device="cuda")
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, sr.apsp(a, device="cpu"))
        kept = a.copy()
        sr.apsp(a, device="cuda", overwrite=True)
        np.testing.assert_array_equal(kept, graph(130))

    def test_pages_locked_meanwhile(self) -> None:
        n = 2100  # beyond what is copied as it is
        a = graph(n, edges=0.01)
        expected = sr.apsp(cupy.asarray(a)).get()
        np.testing.assert_array_equal(sr.apsp(a, device="cuda"), expected)
        locked = cupyx.empty_pinned((n, n), np.float32)
        locked[...] = a
        np.testing.assert_array_equal(sr.apsp(np.asarray(locked), device="cuda"), expected)
        with ThreadPoolExecutor(3) as pool:
            for found in pool.map(lambda _: sr.apsp(a, device="cuda"), range(6)):
                np.testing.assert_array_equal(found, expected)

    def test_structured_elements_and_batches(self) -> None:
        distance = graph(70, np.float64)
        pair = distance, np.where(np.isinf(distance), np.inf, 1.0)
        for found, expected in zip(sr.closure(pair, sr.DISTANCE_HOPS, device="cuda"), sr.closure(pair, sr.DISTANCE_HOPS), strict=True):
            np.testing.assert_array_equal(found, expected)
        batch = np.stack([graph(40, seed=seed) for seed in range(3)])
        np.testing.assert_array_equal(sr.apsp(batch, device="cuda"), sr.apsp(batch))

    def test_refusals_and_cycles(self) -> None:
        a = graph(50)
        with pytest.raises(sr.ShapeError, match="square"):
            sr.apsp(a[:7], device="cuda")
        a[4, 5], a[5, 4] = -3, 1
        with pytest.raises(sr.NegativeCycleError) as found:
            sr.apsp(a, device="cuda")
        assert found.value.cycle
        a[4, 5] = np.nan
        with pytest.raises(sr.DomainError, match=r"graph\[4, 5\]"):
            sr.apsp(a, device="cuda")

    def test_products(self) -> None:
        a, b = graph(64), graph(64, seed=1)
        out = np.empty((64, 64), np.float32)
        assert sr.matmul(a, b, sr.MIN_PLUS, device="cuda", c=a, out=out) is out
        np.testing.assert_array_equal(out, sr.matmul(a, b, sr.MIN_PLUS, c=a))
        found = sr.matmul(a, b, sr.TROPICAL_ARGMIN, device="cuda")
        for x, y in zip(found, sr.matmul(a, b, sr.TROPICAL_ARGMIN), strict=True):
            assert type(x) is np.ndarray
            np.testing.assert_array_equal(x, y)


@pytest.fixture
def little_memory() -> Iterator[None]:
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (100 << 20))
    yield
    pool.set_limit(size=0)


@pytest.mark.usefixtures("little_memory")
class TestLittleMemory:
    def test_what_would_fit_is_told(self) -> None:
        a = graph(4500, edges=0.001)  # 77 MiB
        with pytest.raises(sr.TooLargeError, match=r"available on cuda:0; what would work: .*device='cpu'"):
            sr.closure(np.zeros_like(a), sr.PLUS_TIMES, device="cuda")
        with pytest.raises(sr.TooLargeError, match=r"free; .*device='cpu'"):
            sr.matmul(a[:2], a, sr.MIN_PLUS, device="cuda")

    def test_by_block_rows_it_needs_less(self) -> None:
        a = graph(4500, edges=0.001)
        np.testing.assert_array_equal(sr.apsp(a, device="cuda", nonedge=np.inf), sr.apsp(a, nonedge=np.inf))

    def test_auto_goes_to_the_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_plans", {})
        monkeypatch.setattr(planner, "closure_seconds", lambda problem, device: 1.0 if device == "cpu" else 0.0)
        for n, device in ((6000, "cpu"), (2000, "cuda:0")):
            problem = closure_problem(sr.PLUS_TIMES, (np.dtype(np.float32),), (n, n), Options())
            assert plan(problem).device == device

    def test_running_out_on_the_way(self) -> None:
        with pytest.raises(sr.TooLargeError, match="cuda:0 is out of memory"), on_device("cuda:0"):
            cupy.empty(1 << 30, np.int8)


@pytest.mark.skipif(gpus() < 2, reason="one GPU")
def test_another_gpu_than_the_current_one() -> None:
    a = graph(130)
    with cupy.cuda.Device(1):
        given = cupy.asarray(a)
        pair = cupy.asarray(a.astype(np.float64)), cupy.asarray(np.where(np.isinf(a), np.inf, 1.0))
    assert cupy.cuda.Device().id == 0
    for found in (
        sr.apsp(given), sr.apsp(given, nonedge=5), sr.apsp(given, paths=True).distances, sr.matmul(given, given, sr.MIN_PLUS),
        sr.apsp(given, dtype=np.float64),
        sr.power(given, 0, sr.MIN_PLUS), sr.power(given, 3, sr.MIN_PLUS), sr.closure(pair, sr.DISTANCE_HOPS)[0],
    ):  # fmt: skip
        assert found.device.id == 1
        assert cupy.cuda.Device().id == 0
    np.testing.assert_array_equal(sr.apsp(given).get(), sr.apsp(a))
    np.testing.assert_array_equal(sr.apsp(a, device="cuda:1"), sr.apsp(a))
    with pytest.raises(sr.GraphError, match="bring them to one device"):
        sr.closure((cupy.asarray(a), given), sr.DISTANCE_HOPS)


def test_the_complement_of_truth_values() -> None:
    odd = sr.Semiring(
        "least and parity",
        add=lambda x, y: x if x[0] < y[0] else y if y[0] < x[0] else (x[0], x[1] | y[1]),
        mul=lambda x, y: (x[0] + y[0], ~(~x[1] | ~y[1])),
        zero=(np.inf, False),
        one=(0.0, True),
    )
    rng = np.random.default_rng(0)
    a, b = ((rng.integers(0, 9, (40, 40)).astype(float), rng.random((40, 40)) < 0.5) for _ in range(2))
    found = sr.matmul(tuple(map(cupy.asarray, a)), tuple(map(cupy.asarray, b)), odd)
    for x, y in zip(found, sr.matmul(a, b, odd, device="reference"), strict=True):
        np.testing.assert_array_equal(x.get(), y)


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
    with pytest.raises(sr.ShapeError, match="out must be on"):
        sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, out=np.empty((40, 40), np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_so_small_that_they_are_subnormal(dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    a = np.array([[0, 5 * tiny, np.inf], [np.inf, 0, -2 * tiny], [2 * tiny, np.inf, -0.0]], dtype)
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(abs(a))).get(), sr.apsp(abs(a), device="cpu"))
    b = np.where(np.isfinite(a), abs(a), 0)
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(b), nonedge=0).get(), sr.apsp(b, nonedge=0, device="cpu"))
    found, expected = (sr.closure(x, sr.MAX_TIMES, paths=True) for x in (cupy.asarray(b), b))
    assert repr(found) == repr(expected)
    assert found.path(0, 1) == [0, 1]
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(a)).get(), sr.apsp(a, device="cpu"))
    a[2, 0] = -4 * tiny
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(cupy.asarray(a))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129, 130, 200, 500, 1023, 1024, 1025])
def test_distances_of_every_schedule(n: int) -> None:
    for a in (graph(n), graph(n) - np.where(np.arange(n)[:, None] > np.arange(n), 0, np.float32(3))):
        for paths in (False, True):
            try:
                expected = sr.apsp(a, device="cpu", nonedge=np.inf)
            except sr.NegativeCycleError:
                with pytest.raises(sr.NegativeCycleError):
                    sr.apsp(cupy.asarray(a), nonedge=np.inf, paths=paths)
                continue
            for _ in range(3):  # the second time a schedule is recorded, the third time it is played
                found = sr.apsp(cupy.asarray(a), nonedge=np.inf, paths=paths)
                np.testing.assert_array_equal((found.distances if paths else found).get(), expected)


def test_schedules_of_parts_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.cuda.engine._SMALL", 4 * 300**2)
    monkeypatch.setattr("semiring.kernels.cuda.engine.CudaEngine.sweep", 256)
    n = 1100
    a = graph(n)
    np.testing.assert_array_equal(sr.apsp(cupy.asarray(a), nonedge=np.inf).get(), sr.apsp(a, nonedge=np.inf, device="cpu"))
    for vertex in (5, 700, 1099):  # divergent in one part of the matrix
        b = a.copy()
        b[vertex, vertex - 1], b[vertex - 1, vertex] = -50, 1
        with pytest.raises(sr.NegativeCycleError):
            sr.apsp(cupy.asarray(b), nonedge=np.inf)
        np.testing.assert_array_equal(sr.apsp(cupy.asarray(a), nonedge=np.inf).get(), sr.apsp(a, nonedge=np.inf, device="cpu"))


def test_more_graphs_than_a_launch_can_number() -> None:
    a = cupy.random.default_rng(0).integers(0, 9, (70_000, 3, 3)).astype(np.float32)
    found = sr.apsp(a, nonedge=np.inf).get()
    some = [0, 1, 65_534, 65_535, 65_536, 69_999]
    np.testing.assert_array_equal(found[some], sr.apsp(a[some].get(), nonedge=np.inf))


def test_in_a_stream_that_is_being_recorded() -> None:
    from semiring.kernels.cuda.engine import CudaEngine

    a = graph(300)
    engine = CudaEngine(sr.MIN_PLUS, (np.dtype(np.float32),))
    values = cupy.asarray(a)
    A = engine.load((values,))
    schedule = schedule_for("auto", None, eliminate=False)

    def close(block: Any) -> None:
        engine.run("twice", lambda part: schedule(engine, part), block)

    for _ in range(2):  # compiles, and would be recorded
        close(A)
    pool, stream = cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.using_allocator(pool.malloc), stream:
        stream.begin_capture()
        close(A)
        recorded = stream.end_capture()
    values[...] = cupy.asarray(a)
    cupy.cuda.Device().synchronize()
    recorded.launch()
    cupy.cuda.Device().synchronize()
    np.fill_diagonal(a, 0)
    expected = sr.apsp(a, nonedge=np.inf, device="cpu")
    found = values.get()
    np.fill_diagonal(found, 0)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 3, 3)])
def test_nothing(shape: tuple[int, ...]) -> None:
    for paths in (False, True):
        found = sr.apsp(cupy.empty(shape, np.float32), paths=paths)
        assert (found.distances if paths else found).shape == shape
    for semiring in (sr.MAX_TIMES, sr.PLUS_TIMES, sr.LOG):
        assert sr.closure(cupy.empty(shape), semiring).shape == shape


def test_one_is_negative_zero() -> None:
    semiring = sr.Semiring("max-plus", max, lambda a, b: a + b, zero=-np.inf, one=-0.0)
    a = np.where(np.triu(np.ones((40, 40), bool), 1), np.float32(2), np.float32(-np.inf))
    np.testing.assert_array_equal(sr.closure(cupy.asarray(a), semiring).get(), sr.closure(a, semiring, device="cpu"))


@pytest.mark.parametrize("n", [5, 128, 300, 1100])
def test_negative_zeros(n: int) -> None:
    a = np.round(np.random.default_rng(n).random((n, n)) * 3).astype(np.float32)  # half of the edges have weight 0 or 1
    a[a == 0] = np.where(np.arange(np.count_nonzero(a == 0)) % 2, -0.0, 0.0)
    a[a == 3] = np.inf
    expected = sr.apsp(a, device="cpu")
    for overwrite in (False, True, True, False):
        np.testing.assert_array_equal(sr.apsp(cupy.asarray(a), overwrite=overwrite).get(), expected)


def test_negative_subnormals_are_negative() -> None:
    a = np.full((3, 3), -np.finfo(np.float32).smallest_subnormal)
    with pytest.raises(sr.DomainError, match=r"graph\[0, 0\]"):
        sr.closure(cupy.asarray(a), sr.MAX_TIMES)
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(cupy.asarray(a))


@pytest.mark.parametrize("n", [128, 300, 1100])
def test_a_recording_begins_anew(n: int) -> None:
    good, bad = graph(n), graph(n)
    bad[n - 1, n - 1] = -1
    expected = sr.apsp(good, nonedge=np.inf, device="cpu")
    for _ in range(3):
        np.testing.assert_array_equal(sr.apsp(cupy.asarray(good), nonedge=np.inf).get(), expected)
        with pytest.raises(sr.NegativeCycleError) as found:
            sr.apsp(cupy.asarray(bad), nonedge=np.inf)
        assert n - 1 in (found.value.cycle or [])


def test_what_reading_refuses_stays_as_it_was() -> None:
    for value in (np.nan, -np.nan):
        a = graph(200)
        a[150, 3] = value
        on_device = cupy.asarray(a)
        for overwrite in (False, True):
            with pytest.raises(sr.DomainError, match=r"graph\[150, 3\]"):
                sr.apsp(on_device, overwrite=overwrite)
            np.testing.assert_array_equal(on_device.get(), a)
    with pytest.warns(sr.NonEdgeWarning):
        sr.apsp(cupy.zeros((50, 50), np.float32))


def test_recordings_of_many_threads() -> None:
    matrices = [cupy.asarray(graph(n)) for n in range(130, 160)]
    expected = [sr.apsp(a.get(), nonedge=np.inf, device="cpu") for a in matrices]

    def work(_: int) -> None:
        for a, e in zip(matrices, expected, strict=True):
            np.testing.assert_array_equal(sr.apsp(a, nonedge=np.inf).get(), e)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


def test_products_of_what_lies_apart() -> None:
    a = np.ones((3, 3), np.float32)
    with pytest.raises(sr.ShapeError, match="c is on a GPU"):
        sr.matmul(a, a, sr.MIN_PLUS, c=cupy.asarray(a))
