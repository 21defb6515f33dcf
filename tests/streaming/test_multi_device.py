"""Several devices that share a matrix out among their memories: the same closure, whichever of them is late."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr
from semiring import testing
from semiring.arrays.devices import gpus
from semiring.common.errors import DivergentPivot
from semiring.kernels.engine import Block, Engine
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.select import engine_for
from semiring.results.paths import Paths
from semiring.streaming.closure import run_workers
from semiring.streaming.layout import block_rows, default_side, resident_bytes
from semiring.streaming.pipeline import Buffer, DevicePipeline, HostMemory, resident_pipelines
from semiring.streaming.storage import Matrix, rows_of

Array = np.ndarray[Any, Any]


class Memory(HostMemory):
    """A device's memory on the host, whose copies take what time they like."""

    def __init__(self, matrix: Matrix, *, late: float = 0, in_place: bool = False) -> None:
        super().__init__(matrix)
        self._late, self._in_place = late, in_place

    def view(self, rows: slice) -> Buffer | None:
        if not self._in_place:
            return None
        via: Any = self._matrix.via
        return tuple(m.array[rows] for m in self._matrix.values), None if via is None else via.array[rows]  # type: ignore[attr-defined] # they are arrays

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        _wait(self._late)
        for there, here in zip(self.arrays(source, rows)[0], self.arrays(target, rows)[0], strict=True):
            here[...] = there

    def load(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        _wait(self._late)
        super().load(rows, buffer, first=first)

    def event(self) -> Callable[[], None]:
        return lambda: _wait(self._late)


def _wait(longest: float) -> None:
    if longest:
        time.sleep(random.random() * longest)


def graph(n: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Six edges from each vertex or so, of weights from 1 to 99."""
    rng = np.random.default_rng(seed)
    none = np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) * n < 6, rng.integers(1, 100, (n, n)).astype(dtype), np.array(none, dtype))


def cut(n: int, b: int) -> tuple[slice, ...]:
    return tuple(slice(i, min(n, i + b)) for i in range(0, n, b))


def close(pipelines: list[DevicePipeline], rows: Sequence[slice], *, reflexive: bool = True) -> None:
    with ExitStack() as stack:
        for pipeline in pipelines:
            stack.enter_context(pipeline)
        run_workers(pipelines, tuple(rows), reflexive=reflexive)


def engine(dtype: Any, device: str = "cpu", *, witness: bool = False) -> Engine:
    made = engine_for(sr.MIN_PLUS, (np.dtype(dtype),), device, threads=1, witness=witness)
    made.statistics = ValueStatistics((1, 99), positive_infinity=True)
    return made


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "b"), [(1, 1), (2, 1), (5, 2), (13, 13), (64, 16), (67, 16), (97, 8), (130, 32)])
def test_equal_to_scipy(n: int, b: int, count: int) -> None:
    a = graph(n)
    out, rows = np.empty_like(a), cut(n, b)
    matrix = Matrix((rows_of(a),), (rows_of(out),))
    kept = a.copy()
    close(resident_pipelines([engine(a.dtype) for _ in range(count)], [Memory(matrix) for _ in range(count)], rows), rows)
    np.testing.assert_array_equal(out, floyd_warshall(a))
    np.testing.assert_array_equal(a, kept)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("in_place", [False, True])
def test_whoever_is_late(seed: int, in_place: bool) -> None:
    random.seed(seed)
    a = graph(72, np.int32, seed)
    expected = sr.apsp(a, device="reference")
    rows, count = cut(72, 6 + seed), 2 + seed % 3
    out, via = a.copy(), np.empty(a.shape, np.int32)
    matrix = Matrix((rows_of(out if in_place else a),), (rows_of(out),), rows_of(via))
    # One device has the whole matrix, and another one is slow.
    late = [0.004 if number == seed % count else 0.0005 for number in range(count)]
    memories = [Memory(matrix, late=late[number], in_place=in_place and number == 0) for number in range(count)]
    close(resident_pipelines([engine(a.dtype, witness=True) for _ in range(count)], memories, rows), rows)
    np.testing.assert_array_equal(out, expected)
    testing.assert_paths_valid(Paths(sr.MIN_PLUS, (out,), via), a)


def test_irreflexive_and_files(tmp_path: Path) -> None:
    a = graph(50, np.float64)
    np.fill_diagonal(a, np.inf)
    np.save(tmp_path / "a.npy", a)
    given: Any = np.load(tmp_path / "a.npy", mmap_mode="r")
    out: Any = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", a.dtype, a.shape)
    matrix, rows = Matrix((rows_of(given),), (rows_of(out),)), cut(50, 7)
    close(resident_pipelines([engine(a.dtype) for _ in range(2)], [Memory(matrix) for _ in range(2)], rows), rows, reflexive=False)
    np.testing.assert_array_equal(out, sr.closure(a, sr.MIN_PLUS, reflexive=False, device="reference"))


class Failing(Memory):
    """A device that fails when a block row comes, goes or is passed on."""

    def __init__(self, matrix: Matrix, where: str) -> None:
        super().__init__(matrix)
        self._where = where

    def copy(self, source: Buffer, target: Buffer, rows: slice) -> None:
        self._fail("copy", rows)
        super().copy(source, target, rows)

    def load(self, rows: slice, buffer: Buffer, *, first: bool) -> None:
        self._fail("load", rows)
        super().load(rows, buffer, first=first)

    def write_back(self, rows: slice, buffer: Buffer, *, last: bool) -> None:
        self._fail("write_back", rows)
        super().write_back(rows, buffer, last=last)

    def _fail(self, where: str, rows: slice) -> None:
        if where == self._where and rows.start >= 20:
            raise OSError(f"no {where}")


@pytest.mark.parametrize("where", ["load", "copy", "write_back"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_device_that_fails_stops_the_others(where: str, count: int) -> None:
    a = graph(60)
    matrix, rows = Matrix((rows_of(a),), (rows_of(a.copy()),)), cut(60, 5)
    memories = [Failing(matrix, where), *(Memory(matrix) for _ in range(count - 1))]
    made = resident_pipelines([engine(a.dtype) for _ in range(count)], memories, rows)
    with ThreadPoolExecutor(1) as executor, pytest.raises(OSError, match=f"no {where}"):
        executor.submit(close, made, rows).result(timeout=60)


def test_a_negative_cycle_is_told() -> None:
    a = graph(60)
    a[7, 41], a[41, 7] = -3, 2
    matrix, rows = Matrix((rows_of(a),), (rows_of(a.copy()),)), cut(60, 8)
    engines = [engine(a.dtype) for _ in range(3)]
    for made in engines:
        made.statistics = ValueStatistics((-3, 99), positive_infinity=True)
    with pytest.raises(DivergentPivot):
        close(resident_pipelines(engines, [Memory(matrix) for _ in range(3)], rows), rows)


class Doubled:
    """An engine that works on twice the numbers, so that what it loads and stores is not what it works on."""

    def __init__(self, made: Engine) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def load(self, values: tuple[Array, ...], via: Any = None) -> Block:
        for v in values:
            v *= 2
        return self._made.load(values, via)

    def store(self, A: Block, values: tuple[Array, ...]) -> None:
        self._made.store(A, values)
        for v in values:
            v /= 2


@pytest.mark.parametrize("count", [2, 3, 4])
def test_no_panel_changes_while_it_is_read(count: int) -> None:
    """Another order of the sums would show in their last bits, and a row that has its own form again by far."""
    a, rows = np.random.default_rng(count).random((60, 60)), cut(60, 5)

    def closed(late: Sequence[float]) -> Array:
        out = np.empty_like(a)
        matrix = Matrix((rows_of(a),), (rows_of(out),))
        engines: list[Any] = [Doubled(engine(a.dtype)) for _ in late]
        close(resident_pipelines(engines, [Memory(matrix, late=some) for some in late], rows), rows)
        return out

    expected = closed([0])
    np.testing.assert_allclose(expected, floyd_warshall(a))
    for slow in range(count):
        np.testing.assert_array_equal(closed([0.03 * (number == slow) for number in range(count)]), expected)


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 4097, 65536, 65537])
def test_rows_are_shared_out_evenly(n: int, devices: int) -> None:
    rows = block_rows(n, default_side(n, 4 * n))
    side = rows[0].stop
    shares = [sum(r.stop - r.start for r in rows[number::devices]) for number in range(devices)]
    assert max(shares) - min(shares) <= side + (side if n == 65537 else 0)
    needed = resident_bytes(rows, devices, 4 * n)
    assert needed == [4 * n * (share + 2 * side) for share in shares]


class Recorded:
    """An engine that tells what it multiplies."""

    def __init__(self, made: Engine, told: list[int]) -> None:
        self._made, self._told = made, told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        self._told.append(A.shape[0] * A.shape[1] * B.shape[1])
        self._made.multiply_add(A, B, C)


def test_every_device_does_its_share() -> None:
    a, told = graph(256), [list[int]() for _ in range(4)]
    matrix, rows = Matrix((rows_of(a),), (rows_of(np.empty_like(a)),)), cut(256, 16)
    engines: list[Any] = [Recorded(engine(a.dtype), steps) for steps in told]
    close(resident_pipelines(engines, [Memory(matrix) for _ in range(4)], rows), rows)
    assert max(map(sum, told)) <= 1.1 * 256**3 / 4


def gpu_pipelines(numbers: list[int], dtype: Any, matrix: Matrix, rows: Sequence[slice]) -> list[DevicePipeline]:
    from semiring.streaming.gpus import cuda_pipelines

    engines = [engine(dtype, f"cuda:{number}", witness=matrix.via is not None) for number in numbers]
    return cuda_pipelines(numbers, engines, matrix, rows)


def devices(count: int) -> list[int]:
    """So many GPUs; where there are fewer, the same ones again."""
    return [number % gpus() for number in range(count)]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64, np.uint16])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("paths", [False, True])
def test_gpus(dtype: Any, count: int, paths: bool) -> None:
    for n, b in ((1, 64), (129, 64), (515, 128), (1000, 96)):
        a, rows = graph(n, dtype, n), cut(n, b)
        out, via = np.empty_like(a), np.empty(a.shape, np.int32) if paths else None
        matrix = Matrix((rows_of(a),), (rows_of(out),), None if via is None else rows_of(via))
        close(gpu_pipelines(devices(count), dtype, matrix, rows), rows)
        np.testing.assert_array_equal(out, sr.apsp(a, device="cpu"))
        if via is not None:
            pairs = np.random.default_rng(0).integers(n, size=(500, 2))
            testing.assert_paths_valid(Paths(sr.MIN_PLUS, (out,), via), a, pairs.tolist())


@pytest.mark.gpu
def test_gpus_and_negative_weights() -> None:
    n, rows = 500, cut(500, 96)
    potential = np.random.default_rng(1).integers(0, 50, n).astype(np.float32)
    a = graph(n) + potential[:, None] - potential
    for cycle in (False, True):
        if cycle:
            a[300, 400], a[400, 300] = -60, 50
        out = np.empty_like(a)
        pipelines = gpu_pipelines(devices(3), a.dtype, Matrix((rows_of(a),), (rows_of(out),)), rows)
        for pipeline in pipelines:
            pipeline.engine.statistics = ValueStatistics((-99, 200), positive_infinity=True)
        if cycle:
            with pytest.raises(DivergentPivot):
                close(pipelines, rows)
        else:
            close(pipelines, rows)
            np.testing.assert_array_equal(out, sr.apsp(a, device="cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("n", [515, 1024])
def test_a_matrix_on_one_gpu_is_shared_out_and_comes_back(n: int, count: int) -> None:
    cupy = pytest.importorskip("cupy")
    a, rows = graph(n), cut(n, 100)
    given = cupy.asarray(a)
    whole, via = given.copy(), cupy.empty(a.shape, np.int32)
    close(gpu_pipelines(devices(count), a.dtype, Matrix((rows_of(whole),), (rows_of(whole),)), rows), rows)
    np.testing.assert_array_equal(whole.get(), sr.apsp(a, device="cpu"))
    apart = cupy.empty_like(given)
    close(gpu_pipelines(devices(count), a.dtype, Matrix((rows_of(given),), (rows_of(apart),), rows_of(via)), rows), rows)
    np.testing.assert_array_equal(apart.get(), whole.get())
    np.testing.assert_array_equal(given.get(), a)
    pairs = np.random.default_rng(0).integers(n, size=(500, 2))
    testing.assert_paths_valid(Paths(sr.MIN_PLUS, (apart.get(),), via.get()), a, pairs.tolist())


@pytest.mark.gpu
def test_rows_that_a_gpu_cannot_copy_itself() -> None:
    from semiring.streaming.gpus import CudaMemory

    a, rows = graph(300), cut(300, 64)
    for given in (a[::-1][::-1], np.asfortranarray(a), np.lib.stride_tricks.as_strided(a, strides=a.strides, writeable=False)):
        for count in (1, 2):
            out = np.empty_like(a, order="F")
            matrix = Matrix((rows_of(given),), (rows_of(out),))
            engines = [engine(a.dtype, f"cuda:{number}") for number in devices(count)]
            close([DevicePipeline(e, CudaMemory(matrix, number), 6, 64) for e, number in zip(engines, devices(count), strict=True)], rows)
            np.testing.assert_array_equal(out, sr.apsp(a, device="cpu"))
            close(gpu_pipelines(devices(count), a.dtype, matrix, rows), rows)
            np.testing.assert_array_equal(out, sr.apsp(a, device="cpu"))
