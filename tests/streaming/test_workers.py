"""Closures by block rows, on the CPU, by one device or several: the same as of the matrix as a whole."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

import semiring as sr
from semiring.common.errors import DivergentPivot
from semiring.kernels.select import engine_for
from semiring.results.paths import Paths
from semiring.streaming.closure import run_workers, visit
from semiring.streaming.layout import block_rows
from semiring.streaming.pipeline import DevicePipeline, HostMemory
from semiring.streaming.storage import Matrix, rows_of

SIDES = (1, 3, 64, 100, 300)
NUMBERS = (1, 2, 7, 64, 65, 130, 257)


def weights(n, dtype: np.typing.DTypeLike = np.float32, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 100, (n, n)).astype(dtype)
    w[rng.random((n, n)) < 0.7] = np.inf if w.dtype.kind == "f" else np.iinfo(dtype).max
    return w


def close(
    matrices: tuple[np.ndarray, ...],
    side: int,
    semiring: sr.Semiring = sr.MIN_PLUS,
    *,
    paths: bool = False,
    devices: int = 1,
    buffers: int | None = None,
    threads: int | None = None,
    reflexive: bool = True,
    progress: Callable[[int, int], None] | None = None,
):
    n = len(matrices[0])
    dtypes = tuple(m.dtype for m in matrices)
    values = tuple(np.empty_like(m, order="C") for m in matrices)
    via = np.empty((n, n), np.int32) if paths else None
    matrix = Matrix(tuple(map(rows_of, matrices)), tuple(map(rows_of, values)), None if via is None else rows_of(via))
    rows = block_rows(n, side)
    room = 5 + (devices > 1) if buffers is None else buffers
    engines = [engine_for(semiring, dtypes, "cpu", threads, witness=True) for _ in range(devices)]
    pipelines = [DevicePipeline(engine, HostMemory(matrix), room, side) for engine in engines]
    try:
        run_workers(pipelines, rows, reflexive=reflexive, progress=progress)
    finally:
        for pipeline in pipelines:
            pipeline.__exit__()
    return values, via


@pytest.mark.sampled(30)
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize(("n", "side"), [c for c in itertools.product(NUMBERS, SIDES) if c[0] <= 40 * c[1]])
def test_distances(n, side, devices):
    w = weights(n)
    (found,), _ = close((w,), side, devices=devices)
    np.testing.assert_array_equal(found, sr.apsp(w))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize(("n", "side"), [(1, 1), (65, 64), (130, 64), (257, 100)])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_paths(n, side, devices, dtype):
    w = weights(n, dtype)
    values, via = close((w,), side, paths=True, devices=devices)
    assert via is not None
    paths = Paths(sr.MIN_PLUS, values, via)
    np.testing.assert_array_equal(paths.distances, sr.apsp(w))
    for i, j in itertools.product(range(0, n, 13), repeat=2):
        path = paths.path(i, j)
        total = sum((w[u, v].item() for u, v in itertools.pairwise(path)), 0) if path else np.inf
        assert total == (values[0][i, j] if path else np.inf)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n", "side"), [(1, 1), (65, 64), (130, 13), (200, 64)])
def test_what_is_there_in_the_moment_changes_no_bit(n, side):
    """Devices, threads and memory; with sums that round, and paths that tie."""
    rng = np.random.default_rng(n)
    w = np.where(rng.random((n, n)) < 0.1, rng.choice([0.1, 0.2, 0.3, 0.7], (n, n)), np.inf)
    (expected,), via = close((w,), side, paths=True)
    for devices, threads in [(1, 1), (1, 3), (2, 2), (3, 1)]:
        for buffers in range(2 + (devices > 1), 6):
            (found,), other = close((w,), side, paths=True, devices=devices, buffers=buffers, threads=threads)
            assert found.tobytes() == expected.tobytes()
            np.testing.assert_array_equal(other, via)
    whole = sr.apsp(w, method="blocked", block=side, paths=True, device="cpu")
    if not np.isinf(expected).any():  # else the closure of the whole is that of its components
        assert whole.distances.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(whole.via, via)


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("semiring", [sr.MAX_MIN, sr.MAX_TIMES, sr.BOOLEAN, sr.DISTANCE_HOPS], ids=lambda s: s.name)
def test_semirings(semiring, reflexive):
    rng = np.random.default_rng(1)
    a = rng.random((90, 90))
    matrices: tuple[np.ndarray, ...]
    if semiring is sr.BOOLEAN:
        matrices = (a < 0.02,)
    elif semiring.components > 1:
        matrices = (np.where(a < 0.1, np.ceil(100 * a), np.inf), np.where(a < 0.1, 1.0, np.inf))
    else:
        matrices = (np.where(a < 0.1, 5 * a, semiring.zero),)
    values, _ = close(matrices, 32, semiring, reflexive=reflexive, devices=2)
    expected = sr.closure(matrices if len(matrices) > 1 else matrices[0], semiring, reflexive=reflexive)
    for x, y in zip(values, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(x, y)


def test_a_negative_cycle_stops_every_device():
    w = weights(130)
    close((w.copy(),), 32, devices=3)  # the threads that stay, to serve all products, are there now
    before = threading.active_count()
    w[100, 101], w[101, 100] = -5, 4
    with pytest.raises(DivergentPivot) as stop:
        close((w,), 32, devices=3)
    assert stop.value.vertex in (100, 101)
    assert threading.active_count() <= before


def test_a_pipeline_ends_with_rows_that_nobody_took():
    (w,) = (weights(64),)
    matrix = Matrix((rows_of(w),), (rows_of(w),))
    for _ in range(200):
        with DevicePipeline(engine_for(sr.MIN_PLUS, (w.dtype,), "cpu", witness=True), HostMemory(matrix), 1, 1) as pipeline:
            for row in block_rows(64, 1):
                pipeline.prefetch(row, first=True)


@pytest.mark.exhaustive
def test_an_interruption_while_threads_begin(monkeypatch):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            super().submit(*args, **kwargs)
            raise KeyboardInterrupt

    monkeypatch.setattr("semiring.streaming.closure.ThreadPoolExecutor", Interrupted)
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            close((weights(300),), 3)


def test_a_look_that_fails_ends_the_others():
    w = weights(400)
    matrix, looked = Matrix((rows_of(w),), (rows_of(w),)), 0

    def look(first, values):
        nonlocal looked
        if first == 0:
            raise KeyError
        looked += 1
        time.sleep(0.005)

    with ExitStack() as stack:
        engine = engine_for(sr.MIN_PLUS, (w.dtype,), "cpu", witness=True)
        pipelines = [stack.enter_context(DevicePipeline(engine, HostMemory(matrix), 2, 1)) for _ in range(2)]
        with pytest.raises(KeyError):
            visit(pipelines, [block_rows(400, 1)[device::2] for device in range(2)], look)
    assert looked < 200


def test_progress_ends_with_all():
    told = []
    close((weights(100),), 30, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (16, 16)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_an_error_of_the_caller_stops_it():
    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        close((weights(100),), 30, progress=stop)


def test_a_device_is_left_while_rows_wait_for_room():
    w = weights(200)
    matrix = Matrix((rows_of(w),), (rows_of(w),))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads take turns at every step
    try:
        for _ in range(100):

            def leave() -> None:
                with DevicePipeline(engine_for(sr.MIN_PLUS, (w.dtype,), "cpu"), HostMemory(matrix), 1, 1) as pipeline:
                    for i in range(50):
                        pipeline.prefetch(slice(i, i + 1), first=True)
                    pipeline.load()

            thread = threading.Thread(target=leave, daemon=True)
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
