"""Products without checks: the same results for what is not refused, and on a GPU nothing but launches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from semiring import apsp, matmul
from semiring.algebra.catalogue import BOOLEAN, DISTANCE_HOPS, LOG, MAX_MIN, MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError, OverflowRiskError, SemiringError

RNG = np.random.default_rng(7)

CASES: list[tuple[Semiring, str, int, int]] = [
    (MIN_PLUS, "float32", -5, 5), (MIN_PLUS, "float32", 0, 5), (MIN_PLUS, "float64", -5, 5), (MIN_PLUS, "int32", 0, 1 << 29),
    (MIN_PLUS, "int32", -(1 << 28), 1 << 28), (MIN_PLUS, "int16", -90, 90), (MIN_PLUS, "int16", 0, 8000), (MIN_PLUS, "uint16", 0, 9000),
    (MIN_PLUS, "int64", -9, 9), (MAX_PLUS, "float32", -5, 5), (MAX_PLUS, "int32", -(1 << 29), 0), (MAX_PLUS, "int32", -90, 90),
    (BOOLEAN, "bool", 0, 1), (MAX_MIN, "float32", -5, 5), (PLUS_TIMES, "float64", -5, 5), (LOG, "float32", -5, 5),
]  # fmt: skip


def numbers(semiring: Semiring, dtype: str, low: float, high: float, shape: tuple[int, ...], rng: np.random.Generator = RNG) -> Any:
    """With some zeros of the semiring, where these are no numbers between both."""
    if dtype == "bool":
        return rng.random(shape) < 0.2
    found = (rng.random(shape) * (high - low) + low).astype(dtype)
    found[rng.random(shape) < 0.3] = semiring.identities((np.dtype(dtype),))[0][0]
    return found


def same(x: Any, y: Any) -> None:
    for one, other in zip(x if isinstance(x, tuple) else (x,), y if isinstance(y, tuple) else (y,), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("semiring", "dtype", "low", "high"), CASES, ids=str)
@pytest.mark.parametrize("witness", [False, True])
def test_same_results(semiring: Semiring, dtype: str, low: float, high: float, witness: bool) -> None:
    if witness and not semiring.selects:
        pytest.skip("no witness")
    for shape in ((16, 16), (700, 700), (3, 9, 9)):
        a, b = numbers(semiring, dtype, low, high, shape), numbers(semiring, dtype, low, high, shape)
        for c in (None, numbers(semiring, dtype, low, high, shape)):
            same(matmul(a, b, semiring, c=c, witness=witness, check=False), matmul(a, b, semiring, c=c, witness=witness))


def test_refusals_are_left_out() -> None:
    nan, large = np.array([[np.nan]]), np.array([[2**30]], np.int32)
    for x, error in ((nan, DomainError), (large, OverflowRiskError)):
        with pytest.raises(error):
            matmul(x, x, MIN_PLUS)
        matmul(x, x, MIN_PLUS, check=False)
    with pytest.raises(SemiringError, match="check"):
        matmul(large, large, MIN_PLUS, check=large)  # type: ignore[arg-type]


gpu = pytest.mark.gpu


def on_gpu(library: str, x: Any) -> Any:
    if library == "cupy":
        return pytest.importorskip("cupy").asarray(x)
    return pytest.importorskip("torch").from_numpy(x).cuda()


def host(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(host, x))
    return x.get() if hasattr(x, "get") else x.cpu().numpy()


@gpu
@pytest.mark.parametrize(("semiring", "dtype", "low", "high"), CASES, ids=str)
@pytest.mark.parametrize("witness", [False, True])
def test_same_results_on_a_gpu(semiring: Semiring, dtype: str, low: float, high: float, witness: bool) -> None:
    if witness and not semiring.selects:
        pytest.skip("no witness")
    for shape in ((16, 16), (200, 200), (3, 9, 9)):
        a, b, old = (on_gpu("cupy", numbers(semiring, dtype, low, high, shape)) for _ in range(3))
        for left in (a, a.swapaxes(-1, -2)):
            for c in (None, old):
                found = matmul(left, b, semiring, c=c, witness=witness, check=False)
                same(host(found), host(matmul(left, b, semiring, c=c, witness=witness)))


@gpu
def test_structured_elements_on_a_gpu() -> None:
    a = tuple(on_gpu("cupy", RNG.integers(0, 9, (40, 40)).astype(np.float32)) for _ in range(2))
    same(host(matmul(a, a, DISTANCE_HOPS, check=False)), host(matmul(a, a, DISTANCE_HOPS)))


@gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize(("semiring", "dtype", "low", "high"), [
    (MIN_PLUS, "float32", -5, 5), (MIN_PLUS, "float64", 0, 5), (MIN_PLUS, "int32", -9, 9), (MIN_PLUS, "int16", 0, 90),
    (MAX_PLUS, "int32", -9, 9), (MAX_PLUS, "float32", -5, 5), (BOOLEAN, "bool", 0, 1),
], ids=str)  # fmt: skip
def test_recorded_in_a_graph(library: str, out: bool, witness: bool, semiring: Semiring, dtype: str, low: float, high: float) -> None:
    """Recorded once and played with other numbers, among them such of other signs."""
    shape = (130, 130) if dtype != "float32" or witness else (1030, 1030)  # of which the signs decide
    given = [numbers(semiring, dtype, low, high, shape) for _ in range(2)]
    a, b = (on_gpu(library, x) for x in given)
    place = on_gpu(library, np.zeros(shape, dtype)) if out else None

    def call() -> Any:
        return matmul(a, b, semiring, out=place, witness=witness, check=False)

    play, found = record(library, call)
    for others in (given, [numbers(semiring, dtype, low, high, shape) for _ in range(2)], [np.zeros(shape, dtype)] * 2):
        for x, y in zip((a, b), others, strict=True):
            x[...] = on_gpu(library, y)
        sizes = [shape] * 8 + [(1,)] * 32
        disturbed = [on_gpu(library, RNG.integers(1, 2, size).astype(dtype)) for size in sizes]  # in memory that was freed meanwhile
        kept = [host(x) for x in disturbed]
        play()
        same(host(found), matmul(others[0], others[1], semiring, witness=witness, device="cpu"))
        for x, y in zip(disturbed, kept, strict=True):
            np.testing.assert_array_equal(host(x), y)


def record(library: str, call: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """Plays the graph of a call, which waits for it; and what the call has returned."""
    import cupy

    if library == "torch":
        torch = pytest.importorskip("torch")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = call()
        return lambda: (graph.replay(), torch.cuda.synchronize())[0], found
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        call()
        stream.synchronize()
        stream.begin_capture()
        found = call()
        recorded = stream.end_capture()
    return lambda: (cupy.cuda.runtime.deviceSynchronize(), recorded.launch(stream), stream.synchronize())[0], found


@gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("semiring", [MIN_PLUS, MAX_PLUS], ids=str)
def test_signs_decide_large_products(library: str, witness: bool, semiring: Semiring) -> None:
    """The GPU picks the kernel: one negative number, or −0.0, wherever it is, and the bits of floats do not sort as they do."""
    for m, n, k in ((1024, 1024, 1030), (513, 2100, 1000), (1100, 700, 2000)):
        plain = [numbers(semiring, "float32", 0, 9, shape) for shape in ((m, k), (k, n), (m, n))]
        for which, value in ((None, 0), (0, -3.5), (1, -0.0), (1, -1e-42), (2, -7)):
            a, b, c = (x.copy() for x in plain)
            if which is not None:
                (a, b, c)[which][-1, -1] = value
            x, y, z = (on_gpu(library, v) for v in (a, b, c))
            for old in (None, c):
                expected = matmul(a, b, semiring, c=old, witness=witness, device="cpu")
                for check in (True, False):
                    for _ in range(2):  # the second time by the launches of the first
                        found = host(matmul(x, y, semiring, c=None if old is None else z, witness=witness, check=check))
                        same(found, expected)


@gpu
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_a_kernel_that_is_missing_midway(witness: bool, signed: bool, added: bool) -> None:
    """A smaller product has loaded one of two kernels: to compile the other one leaves what the first has written as it is."""
    from semiring.kernels.cuda.kernels import kernels_for

    kernels_for.cache_clear()
    semiring = Semiring("a min-plus of its own", add=min, mul=lambda a, b: a + b, zero=np.inf, one=0)
    a, c = (numbers(semiring, "float32", -5 if signed else 0, 9, (1030, 1030)) for _ in range(2))
    small, there = on_gpu("cupy", a[:1000, :1000]), on_gpu("cupy", a)
    matmul(small, small, semiring, c=small if added else None, witness=witness)
    found = matmul(there, there, semiring, c=on_gpu("cupy", c) if added else None, witness=witness)
    same(host(found), matmul(a, a, semiring, c=c if added else None, witness=witness, device="cpu"))


@gpu
def test_recorded_with_checks_that_need_no_look() -> None:
    shape = (2200, 2200)
    a, b = (on_gpu("cupy", RNG.integers(0, 99, shape, dtype=np.int32)) for _ in range(2))
    play, found = record("cupy", lambda: matmul(a, b, MAX_MIN))
    a[...] = on_gpu("cupy", RNG.integers(0, 99, shape, dtype=np.int32))
    disturbed = [on_gpu("cupy", np.ones(size, np.int32)) for size in [(300, 2200)] * 40 + [(1,)] * 32]
    play()
    same(host(found), matmul(host(a), host(b), MAX_MIN, device="cpu"))
    assert all(bool((x == 1).all()) for x in disturbed)


@gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("n", [20, 1100])
def test_refusals_come_after_the_launch(library: str, n: int) -> None:
    """A product in memory of its own is launched before its operands are known, but not one in the caller's."""
    good, bad = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    bad[-1, 0] = np.nan
    out = np.full((n, n), 5, np.float32)
    a, b, c = (on_gpu(library, x) for x in (good, bad, out))
    large = on_gpu(library, np.full((n, n), 2**29 - 1, np.int32))
    for _ in range(3):
        same(host(matmul(a, a, MIN_PLUS)), np.full((n, n), 2))
        for operands in ((a, b), (b, a)):
            with pytest.raises(DomainError, match="NaN"):
                matmul(*operands, MIN_PLUS)
            with pytest.raises(DomainError, match="NaN"):
                matmul(*operands, MIN_PLUS, out=c)
        same(host(c), out)
        same(host(matmul(large, large, MIN_PLUS)), np.full((n, n), 2**30 - 2))
        with pytest.raises(OverflowRiskError):
            matmul(large + 1, large, MIN_PLUS)


@gpu
def test_numbers_are_not_looked_at_in_a_recording() -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.ones((4, 4), np.float32)
    matmul(a, a, MIN_PLUS)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            with pytest.raises(SemiringError, match="check=False"):
                matmul(a, a, MIN_PLUS)
        finally:
            stream.end_capture()
    same(host(matmul(a, a, MIN_PLUS)), np.full((4, 4), 2))


@gpu
def test_closures_are_not_recorded() -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.asarray(np.array([[0, 1], [-0.5, 0]], np.float32))
    expected = host(apsp(a))
    stream = cupy.cuda.Stream(non_blocking=True)
    for check in (True, False):
        with stream:
            apsp(a, check=check)
            stream.begin_capture()
            try:
                with pytest.raises(SemiringError, match="product"):
                    apsp(a, check=check)
            finally:
                stream.end_capture()
        same(host(apsp(a)), expected)


@gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize(
    ("semiring", "dtype", "witness"), [(MIN_PLUS, "float32", False), (MIN_PLUS, "int32", True), (BOOLEAN, "bool", False)]
)
def test_nothing_waits(library: str, semiring: Semiring, dtype: str, witness: bool) -> None:
    """Behind half a second of other work a call returns at once, also one on operands that this work has yet to write."""
    cupy = pytest.importorskip("cupy")
    a, b = (on_gpu(library, numbers(semiring, dtype, 0, 5, (65, 65))) for _ in range(2))
    spin = cupy.RawKernel('extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n); }', "spin")
    for _ in range(2):
        matmul(a, b, semiring, witness=witness, check=False)
    spin((1,), (1,), (1,))
    cupy.cuda.runtime.deviceSynchronize()
    begun = time.perf_counter()
    spin((1,), (1,), (700_000_000,))
    found = matmul(a, b, semiring, witness=witness, check=False)
    launched = time.perf_counter() - begun
    cupy.cuda.runtime.deviceSynchronize()
    assert launched < 0.1 < time.perf_counter() - begun
    same(host(found), host(matmul(a, b, semiring, witness=witness)))


@gpu
def test_streams_of_pytorch() -> None:
    """What a stream of PyTorch's has yet to write is waited for, also by CuPy's operands, and nothing else."""
    cupy, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    host_a = RNG.random((300, 300)).astype(np.float32)
    expected = matmul(host_a, host_a, MIN_PLUS)
    for check in (True, False):
        for theirs in (False, True):
            a, side = torch.full((300, 300), torch.inf, device="cuda"), torch.cuda.Stream()
            b = cupy.asarray(host_a) if theirs else torch.from_numpy(host_a).cuda()
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                torch.cuda._sleep(100_000_000)
                a.copy_(torch.from_numpy(host_a))
                found = matmul(a, b, MIN_PLUS, check=check)
                assert isinstance(found, torch.Tensor)
                np.testing.assert_array_equal(found.cpu().numpy(), expected)


@gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_few_functions_are_called(library: str) -> None:
    a, more = on_gpu(library, RNG.random((64, 64)).astype(np.float32)), 3 if library == "torch" else 0  # is PyTorch compiling?
    for check, most in ((True, 46 + more), (False, 31 + more)):
        for _ in range(3):
            matmul(a, a, MIN_PLUS, check=check)
        calls = functions_called(partial(matmul, a, a, MIN_PLUS, check=check))
        assert len(calls) <= most, calls


def functions_called(work: Callable[[], Any]) -> list[str]:
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls
