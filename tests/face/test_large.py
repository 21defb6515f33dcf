"""Matrices larger than the memory that may be used, through the public functions."""

from __future__ import annotations

import functools
import itertools
import logging
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import semiring as sr
from semiring.arrays import devices as kernel_devices
from semiring.arrays import memory
from semiring.arrays.devices import host
from semiring.common.progress import Progress
from semiring.kernels import machine
from semiring.kernels.machine import Speed
from semiring.planning import Plan, block_rows, closure_problem, plan, planner, size_of
from semiring.planning.options import Options

SIDE = {"cpu": 1250, "cuda": 2500}
"""Vertices, whose float32 are 6.25 or 25 MB."""

LIMIT = {"cpu": "6MB", "cuda": "80MiB"}  # a GPU's own memory is 64 MiB
N = SIDE["cpu"]
GPU = pytest.param("cuda", marks=pytest.mark.gpu)
devices = pytest.mark.parametrize("device", ["cpu", GPU])


@pytest.fixture(autouse=True)
def _less_scratch(monkeypatch):
    monkeypatch.setattr(block_rows, "CPU_SCRATCH", 1 << 22)  # as these matrices are smaller than those that do not fit


@pytest.fixture
def device():
    return "cpu"


@functools.cache
def drawn(n):
    rng = np.random.default_rng(0)
    w = np.full((n, n), np.inf, np.float32)
    w[rng.integers(0, n, 10 * n), rng.integers(0, n, 10 * n)] = rng.integers(1, 100, 10 * n)
    w.flags.writeable = False
    return w


@functools.cache
def closed(n):
    return sr.apsp(drawn(n), device="cpu")


@pytest.fixture
def weights(device):
    return drawn(SIDE[device])


@pytest.fixture
def distances(device):
    return closed(SIDE[device])


def on_disk(folder, array, name="w.npy"):
    file = np.lib.format.open_memmap(folder / name, "w+", array.dtype, array.shape)
    file[...] = array
    file.flush()
    return file


@devices
def test_a_file_in_its_own_place(weights, distances, tmp_path, device):
    told: list[Progress] = []
    file = on_disk(tmp_path, weights)
    found = sr.apsp(file, overwrite=True, memory_limit=LIMIT[device], block=100, device=device, progress=told.append)
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, distances)
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), distances)
    assert all(isinstance(t, Progress) for t in told)
    assert told[-1].done == told[-1].total
    assert told[-1].plan.block == 100


@devices
def test_new_arrays(weights, distances, device):
    found = sr.apsp(weights, memory_limit=LIMIT[device], block=100, device=device)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, distances)


@devices
def test_paths(weights, distances, device):
    paths = sr.apsp(weights, paths=True, memory_limit=LIMIT[device], block=64, device=device)
    np.testing.assert_array_equal(paths.distances, distances)
    for i, j in [(0, len(weights) - 1), (17, 1000), (len(weights) - 1, 0)]:
        path = paths.path(i, j)
        assert sum(float(weights[u, v]) for u, v in itertools.pairwise(path)) == distances[i, j]


@devices
def test_integers_and_nonedges(weights, distances, device):
    w = np.where(np.isinf(weights), 0, weights).astype(np.int16)
    found = sr.apsp(w, nonedge=0, dtype=np.int32, memory_limit=LIMIT[device], block=100, device=device)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(np.where(found == np.iinfo(np.int32).max, np.inf, found), distances)


@devices
def test_other_semirings(weights, device):
    width = np.where(np.isinf(weights), -np.inf, weights)
    np.testing.assert_array_equal(
        sr.closure(width, sr.MAX_MIN, memory_limit=LIMIT[device], block=100, device=device, reflexive=False),
        sr.closure(width, sr.MAX_MIN, reflexive=False),
    )


def test_zarr(weights, distances, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "w.zarr", shape=(N, N), chunks=(125, N), dtype="f4")
    array[...] = weights
    found = sr.apsp(array, overwrite=True, memory_limit="6MB", block=125, device="cpu")
    assert found is array
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "w.zarr")[...], distances)


def test_zarr_and_infinities_that_weights_pull_back(tmp_path):
    zarr = pytest.importorskip("zarr")
    rng = np.random.default_rng(1)
    w = np.full((N, N), np.iinfo(np.int32).max, np.int32)
    w[rng.integers(0, N // 2, N), rng.integers(0, N // 2, N)] = rng.integers(1, 100, N)
    w = np.triu(w, 1) + np.tril(np.full_like(w, np.iinfo(np.int32).max))
    w[3, 1000], w[1000, 1200] = -5, -7
    array = zarr.create_array(tmp_path / "w.zarr", shape=(N, N), chunks=(125, N), dtype="i4", compressors=None)
    array[...] = w
    found = sr.apsp(array, overwrite=True, memory_limit="6MB", block=125, device="cpu")
    assert found is array
    np.testing.assert_array_equal(array[...], sr.apsp(w))


def test_zarr_of_floats_that_could_overflow(weights, tmp_path):
    zarr = pytest.importorskip("zarr")
    p = np.where(np.isinf(weights), 0, weights / 100)
    array = zarr.create_array(tmp_path / "p.zarr", shape=(N, N), chunks=(125, N), dtype="f4", compressors=None)
    array[...] = p
    sr.closure(array, sr.MAX_TIMES, overwrite=True, memory_limit="6MB", block=125, device="cpu")
    np.testing.assert_allclose(array[...], sr.closure(p, sr.MAX_TIMES), rtol=1e-5)


@pytest.mark.parametrize("overwrite", [False, True])
def test_paths_do_not_look_at_another_input(weights, tmp_path, overwrite):
    """One that is overwritten, or whose missing edges are something else."""
    zarr = pytest.importorskip("zarr")
    n = 900
    weights = weights[:n, :n]
    array = zarr.create_array(tmp_path / "w.zarr", shape=(n, n), chunks=(64, n), dtype="f4", compressors=None)
    array[...] = weights
    paths = sr.apsp(array, paths=True, overwrite=overwrite, memory_limit="6MB", block=125, device="cpu")
    assert (paths._store.kept() is None) == overwrite
    other = np.where(np.isinf(weights), 0, weights)
    paths = sr.apsp(other, paths=True, overwrite=overwrite, nonedge=0, memory_limit="6MB", block=125, device="cpu")
    assert paths._store.kept() is None


@pytest.mark.parametrize("shared", ["array", "file"])
def test_components_in_one_place_are_not_overwritten(weights, tmp_path, shared):
    one = on_disk(tmp_path, weights)
    other = one if shared == "array" else np.load(tmp_path / "w.npy", mmap_mode="r+")
    wanted = sr.closure((weights, weights.copy()), sr.DISTANCE_HOPS)
    found = sr.closure((one, other), sr.DISTANCE_HOPS, overwrite=True, memory_limit="12MB", device="cpu")
    for v, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(v, w)
    np.testing.assert_array_equal(one, weights)


def test_a_file_that_was_computed_does_not_pass_for_a_new_input(weights, distances, tmp_path):
    file = on_disk(tmp_path, weights)

    def work() -> Any:
        return sr.apsp(file, overwrite=True, checkpoint=tmp_path / "work", memory_limit="6MB", block=64, device="cpu")

    np.testing.assert_array_equal(work(), distances)
    np.testing.assert_array_equal(work(), distances)
    file[...] = weights
    with pytest.raises(sr.CheckpointError, match=r"have been changed.*delete the folder"):
        work()


def as_edges(matrix):
    return sr.edges([(i, j, matrix[i, j].item()) for i, j in zip(*np.nonzero(np.isfinite(matrix)), strict=True)], nodes=range(len(matrix)))


def as_sparse(matrix):
    return scipy.sparse.csr_array(np.where(np.isinf(matrix), 0, matrix))


def as_zarr(matrix, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(folder / "w.zarr", shape=matrix.shape, chunks=(7, len(matrix)), dtype=matrix.dtype, overwrite=True)
    array[...] = matrix
    return array


@pytest.mark.parametrize("kind", ["array", "columns first", "file", "zarr", "edges", "sparse", "converted", "truth"])
def test_one_row_of_other_data_is_another_input(tmp_path, kind):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((150, 150)) < 0.2, rng.random((150, 150)), np.inf)
    made: dict[str, Any] = {
        "array": np.copy,
        "columns first": np.asfortranarray,
        "file": lambda m: on_disk(tmp_path, m),
        "zarr": lambda m: as_zarr(m, tmp_path),
        "edges": as_edges,
        "sparse": as_sparse,
        "converted": lambda m: np.where(np.isinf(m), -1, m),
        "truth": np.isfinite,
    }

    def call(m, **how):
        if kind == "truth":
            return sr.transitive_closure(made[kind](m), checkpoint=tmp_path / "work", **how)
        return sr.apsp(made[kind](m), checkpoint=tmp_path / "work", nonedge=-1 if kind == "converted" else None, **how)

    found = np.array(call(matrix))
    other = matrix.copy()
    other[97] = np.where(rng.random(150) < 0.5, 0.25, np.inf)
    with pytest.raises(sr.CheckpointError, match=r"another closure \(entries: rows 64 to 127 differ\)"):
        call(other)
    np.testing.assert_array_equal(call(matrix), found)
    with pytest.raises(sr.CheckpointError, match=r"another closure \(block: 64 there, 32 here\)"):
        call(matrix, block=32)
    np.testing.assert_array_equal(call(matrix, block=64), found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
@devices
def test_a_checkpoint(weights, distances, tmp_path, device, paths, overwrite):
    file = on_disk(tmp_path, weights)
    done = 0.0

    def interrupt(now: Progress) -> None:
        nonlocal done
        done = now.done / now.total
        if done >= 150 / 1600:
            raise KeyboardInterrupt

    def work(progress) -> Any:
        return sr.apsp(
            file, paths=paths, overwrite=overwrite, checkpoint=tmp_path / "work", memory_limit=LIMIT[device], block=64, device=device,
            progress=progress,
        )  # fmt: skip

    with pytest.raises(KeyboardInterrupt) as error:
        work(interrupt)
    assert any("the same call goes on" in note for note in error.value.__notes__)
    assert 150 / 1600 <= done < 200 / 1600
    if not overwrite:
        np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), weights)
    told: list[Progress] = []
    found = work(told.append)
    assert told[0].done == told[0].begun > told[0].total // 16
    assert told[0].seconds_left > 0
    steps = told[-1].steps_per_second * told[-1].seconds
    left = 1 - told[0].begun / told[0].total  # the steps of the first process took no time of this one
    assert steps == pytest.approx(len(weights) ** 3 * left)
    values = found.distances if paths else found
    assert isinstance(values, np.memmap)
    np.testing.assert_array_equal(values, distances)
    if paths:
        assert sum(float(weights[u, v]) for u, v in itertools.pairwise(found.path(17, 1000))) == distances[17, 1000]
    told.clear()
    again = work(told.append)
    assert [(t.done, t.seconds_left) for t in told] == [(told[0].total, 0)]
    np.testing.assert_array_equal(again.distances if paths else again, distances)
    with pytest.raises(sr.CheckpointError, match="another closure"):
        sr.closure(weights, sr.MAX_PLUS, checkpoint=tmp_path / "work", device=device)


@pytest.mark.gpu
def test_several_gpus_need_not_be_several(weights, distances):
    np.testing.assert_array_equal(sr.apsp(weights, device="cuda:all"), distances)
    np.testing.assert_array_equal(sr.apsp(weights, device=["cuda:0"], paths=True).distances, distances)


@pytest.mark.gpu
def test_several_gpus(weights, distances):
    if _gpus() < 2:
        pytest.skip("one GPU")
    import cupy

    for given in (weights, cupy.asarray(weights), cupy.asarray(weights.T.copy()).T):
        found = sr.apsp(given, device="cuda:all", block=256)
        assert type(found) is type(given)
        np.testing.assert_array_equal(host(found), distances)
        paths = sr.apsp(given, device=[0, 1], block=256, paths=True)
        np.testing.assert_array_equal(host(paths.distances), distances)
        assert sum(float(weights[u, v]) for u, v in itertools.pairwise(paths.path(17, 1000))) == distances[17, 1000]
    streamed = sr.apsp(weights, device="cuda:all", block=256, memory_limit="90MiB")
    np.testing.assert_array_equal(streamed, distances)
    own = cupy.asarray(weights)
    assert sr.apsp(own, device="cuda:all", block=256, overwrite=True).data.ptr == own.data.ptr
    np.testing.assert_array_equal(own.get(), distances)


class TestLittleMemoryOfTheHost:
    @pytest.fixture(autouse=True)
    def _little(self, monkeypatch):
        monkeypatch.setattr(memory, "free_on_host", lambda: 6_200_000)
        for module in (planner, memory, memory):
            monkeypatch.setattr(module, "ALWAYS_FITS", 0)

    def test_a_file_in_its_own_place_goes_by_block_rows(self, weights, distances, tmp_path):
        told: list[Progress] = []
        found = sr.apsp(on_disk(tmp_path, weights), overwrite=True, block=64, device="cpu", progress=told.append)
        np.testing.assert_array_equal(found, distances)
        assert told

    def test_what_would_work_is_told(self, weights, distances, tmp_path):
        file = on_disk(tmp_path, weights)
        with pytest.raises(sr.TooLargeError, match="checkpoint=folder"):
            sr.apsp(file, block=64, device="cpu")
        np.testing.assert_array_equal(sr.apsp(file, block=64, device="cpu", checkpoint=tmp_path / "work"), distances)


class Foreign:
    """An array of another library, which is read as a whole."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class TestErrors:
    def test_the_limit(self):
        assert [size_of(s) for s in (5, "5", "1 KiB", "2.5 GB", "8gib", "1m")] == [5, 5, 1024, 2500000000, 8 << 30, 1000000]
        wrong: Any
        for wrong in (0, -1, True, "8 GiBB", "much", None, 1.5):
            with pytest.raises(sr.SemiringError, match="memory_limit is"):
                size_of(wrong)

    def test_too_small_a_limit_names_one_that_fits(self, weights):
        with pytest.raises(sr.TooLargeError, match="memory_limit"):
            sr.apsp(weights, memory_limit="4.25MB", device="cpu")

    @pytest.mark.gpu
    def test_a_limit_that_no_gpu_can_work_with_is_for_the_cpu(self, weights, distances):
        np.testing.assert_array_equal(sr.apsp(weights, memory_limit="6MB"), distances)

    @pytest.mark.parametrize("where", [(0, 1), (1200, 7)])
    def test_nan_is_named_where_it_is(self, weights, where):
        w = weights.copy()
        w[where] = np.nan
        with pytest.raises(sr.DomainError, match=rf"graph\[{where[0]}, {where[1]}\] = nan"):
            sr.apsp(w, memory_limit="6MB", block=64, device="cpu")

    @devices
    def test_a_subnormal_is_no_zero(self, device):
        a = np.zeros((SIDE[device], SIDE[device]), np.float32)
        a[1200, 7] = -1e-45
        with pytest.raises(sr.DomainError, match=r"graph\[1200, 7\]"):
            sr.closure(a, sr.MAX_TIMES, memory_limit=LIMIT[device], block=100, device=device)

    def test_a_negative_cycle(self, weights):
        w = weights.copy()
        w[1000, 1001], w[1001, 1000] = 3, -4
        before = w.copy()
        with pytest.raises(sr.NegativeCycleError) as error:
            sr.apsp(w, memory_limit="6MB", block=64, device="cpu")
        assert error.value.cycle is not None
        assert sorted(error.value.cycle) == [1000, 1001]
        np.testing.assert_array_equal(w, before)

    @pytest.mark.parametrize("fits", [True, False])
    def test_a_negative_cycle_in_a_matrix_that_is_converted(self, weights, monkeypatch, fits):
        w = np.where(np.isinf(weights), 0, weights)
        w[1000, 1001], w[1001, 1000] = 3, -4
        if not fits:
            monkeypatch.setattr("semiring.graphs.by_rows.fits", lambda needed, device: False)
        with pytest.raises(sr.NegativeCycleError) as error:
            sr.apsp(w, memory_limit="6MB", block=64, device="cpu", nonedge=0)
        assert (error.value.cycle is not None) == fits
        assert not fits or sorted(error.value.cycle or ()) == [1000, 1001]

    def test_overflow(self, weights):
        w = np.where(np.isinf(weights), np.iinfo(np.int16).max, weights * 160).astype(np.int16)
        with pytest.raises(sr.OverflowRiskError, match=r"use a wider dtype|use int32"):
            sr.apsp(w, memory_limit="6MB", device="cpu")

    def test_infinities_that_may_mean_no_edge(self):
        w = np.ones((N, N), np.float32)
        np.fill_diagonal(w, np.inf)
        w[5, 7] = w[N - 1, 0] = np.inf
        how: dict[str, Any] = {"memory_limit": "6MB", "block": 64, "device": "cpu"}
        with pytest.warns(sr.NonEdgeWarning, match="2 are ∞ and none is −∞") as caught:
            sr.closure(w, sr.MAX_MIN, **how)
        assert caught[0].filename == __file__
        w[5, 7] = -np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sr.closure(w, sr.MAX_MIN, **how)

    def test_zeros_that_may_mean_no_edge(self):
        w = np.ones((N, N), np.float32)
        w[5, 7] = 0
        with pytest.warns(sr.NonEdgeWarning, match="1 are 0") as caught:
            sr.apsp(w, memory_limit="6MB", block=64, device="cpu")
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sr.apsp(w, memory_limit="6MB", block=64, device="cpu", nonedge=np.inf)
        with warnings.catch_warnings(record=True) as all_of_them:
            warnings.simplefilter("always")
            sr.apsp(Foreign(w), memory_limit="6MB", block=64, device="cpu")
        assert len(all_of_them) == 1

    def test_what_takes_the_matrix_as_a_whole(self, weights):
        with pytest.raises(sr.SemiringError, match="not idempotent"):
            sr.closure(np.where(np.isinf(weights), 0, 1e-6).astype(np.float32), sr.PLUS_TIMES, memory_limit="6MB")
        with pytest.raises(sr.SemiringError, match="'blocked'"):
            sr.apsp(weights, method="recursive", memory_limit="6MB")

    def test_the_reference_engine_takes_the_matrix_as_a_whole(self, weights):
        with pytest.raises(sr.SemiringError, match="reference engine"):
            sr.apsp(weights, device="reference", memory_limit="6MB")

    def test_a_limit_beyond_the_memory_that_there_is(self, weights, distances, monkeypatch, tmp_path):
        monkeypatch.setattr("semiring.arrays.memory.free_on_host", lambda: 6 << 20)
        told: list[Progress] = []
        found = sr.apsp(on_disk(tmp_path, weights), overwrite=True, memory_limit="1TB", block=64, device="cpu", progress=told.append)
        np.testing.assert_array_equal(found, distances)
        assert told

    def test_devices(self, weights):
        for wrong in (["cpu"], [], ["cuda:0", "cuda:0"], "cuda:all" if not _gpus() else ["cuda:99"]):
            with pytest.raises(sr.SemiringError, match="GPU"):
                sr.apsp(weights, device=wrong)


def way(n: int, semiring: sr.Semiring = sr.MIN_PLUS, **how: Any) -> Plan | None:
    """How a matrix of the host is closed by block rows; None where it is closed as a whole."""
    found = plan(closure_problem(semiring, (np.dtype(np.float32),), (n, n), Options(**how)))
    return found if found.strategy == "block rows" else None


class TestTheSideOfBlockRows:
    @pytest.fixture(autouse=True)
    def _gpus(self, monkeypatch):
        self.count, self.free = 1, 200 << 30
        monkeypatch.setattr(kernel_devices, "_found", lambda: (self.count, ""))
        monkeypatch.setattr(memory, "free_on_gpu", lambda number: self.free)
        monkeypatch.setattr(memory, "free_on_host", lambda: self.free)
        monkeypatch.setattr(machine, "_relative_size", lambda device: 1.0)

    @pytest.mark.parametrize("how", [{}, {"block": 1000}])
    @pytest.mark.parametrize("n", [16384, 65536])
    def test_neither_the_number_of_gpus_nor_their_memory_nor_their_speed_changes_it(self, n, how, monkeypatch):
        cuts = set()
        for self.count, self.free, speed in itertools.product([1, 2, 3, 8], [200 << 30, 5 << 30], [Speed(1e13, 1e10), Speed(1e12, 1e11)]):
            monkeypatch.setattr("semiring.planning.plans.speed_of", lambda *_, speed=speed, **__: speed)
            large = way(n, device="cuda:all", **how)
            assert large is not None
            assert large.rows is not None
            assert large.speed == speed
            cuts.add(tuple(r.stop for r in large.rows.rows))
        assert len(cuts) == 1
        assert cuts.pop()[0] == how.get("block", n // 8 if n == 16384 else n // 16)

    def test_free_memory_decides_whether_there_are_block_rows_but_not_which(self):
        assert way(65536, device="cuda:0") is None
        sides = set()
        for self.free in (6 << 30, 16 << 30):
            large = way(65536, device="cuda:0")
            assert large is not None
            sides.add(large.block)
        self.free = 200 << 30
        large = way(65536, device="cuda:all")
        assert large is not None
        assert sides == {large.block}

    def test_a_limit_of_the_caller_is_part_of_the_problem(self):
        sides = set()
        for self.free in (7 << 30, 200 << 30):
            large = way(65536, device="cuda:0", memory_limit="2GiB")
            assert large is not None
            sides.add(large.block)
        assert len(sides) == 1
        assert sides.pop() < 4096

    def test_one_gpu_of_a_list_still_takes_what_several_refuse(self):
        assert way(65536, sr.PLUS_TIMES, device=["cuda:0"]) is None
        assert way(65536, device=["cuda:0"], method="recursive") is None
        assert way(4096, device=["cuda:0"]) is None


def test_the_same_call_gives_the_same_bits_at_any_speed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    w = np.where(rng.random((400, 400)) < 0.05, rng.choice([0.1, 0.2, 0.3], (400, 400)), np.inf)
    found, sides = [], set()
    for number, speed in enumerate([Speed(1e12, 1e8), Speed(1e9, 1e12)]):
        monkeypatch.setattr("semiring.planning.plans.speed_of", lambda *_, speed=speed, **__: speed)
        for threads in (1, 3):
            told: list[Progress] = []
            how: dict[str, Any] = {"checkpoint": tmp_path / f"{number}{threads}", "threads": threads, "device": "cpu"}
            found.append(sr.apsp(w, paths=True, progress=told.append, **how))
            sides.add(told[-1].plan.block)
    assert len(sides) == 1
    for paths in found:
        assert paths.distances.tobytes() == found[0].distances.tobytes()
        np.testing.assert_array_equal(paths.via, found[0].via)


def _gpus():
    from semiring.arrays.devices import gpus

    return gpus()


def test_the_plan_is_logged(weights, caplog):
    with caplog.at_level(logging.INFO, "semiring"):
        sr.apsp(weights, memory_limit="6MB", block=64, device="cpu")
    assert "block rows of 64" in caplog.text
    assert "instead of" in caplog.text
