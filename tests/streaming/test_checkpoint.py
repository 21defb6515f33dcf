"""Closures by block rows that are cut short anywhere and begun again: the same bits in the end, and the input as it was."""

from __future__ import annotations

import errno
import functools
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.common.errors import CheckpointError, DivergentPivot
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.statistics import value_statistics
from semiring.streaming import checkpoint, storage
from semiring.streaming import folder as checkpoint_folder
from semiring.streaming.checkpoint import Checkpoint
from semiring.streaming.closure import run_workers
from semiring.streaming.folder import digests
from semiring.streaming.layout import block_rows
from semiring.streaming.pipeline import DevicePipeline, HostMemory
from semiring.streaming.storage import Matrix, rows_of

INF = np.inf


def matrices_of(semiring: sr.Semiring, n: int, dtype: Any = np.float32, seed: int = 0) -> tuple[Any, ...]:
    """Weights whose sums round, so that what is done twice by mistake shows."""
    rng = np.random.default_rng(seed)
    edge = rng.random((n, n)) < 0.3
    if semiring is sr.DISTANCE_HOPS:
        return np.where(edge, rng.integers(0, 9, (n, n)), INF).astype(dtype), np.where(edge, 1, INF).astype(dtype)
    if semiring is sr.BOOLEAN:
        return (edge & (rng.random((n, n)) < 0.3),)
    if np.dtype(dtype).kind == "i":
        return (np.where(edge, rng.integers(0, 50, (n, n)), np.iinfo(dtype).max).astype(dtype),)
    return (np.where(edge, rng.random((n, n)) ** 3, semiring.zero).astype(dtype),)


def on_disk(matrices, folder: Path):
    folder.mkdir(exist_ok=True)
    for c, matrix in enumerate(matrices):
        np.save(folder / f"input{c}.npy", matrix)
    return tuple(np.load(folder / f"input{c}.npy", mmap_mode="r+") for c in range(len(matrices)))


def resume(
    folder,
    matrices,
    semiring=sr.MIN_PLUS,
    *,
    side=4,
    paths=False,
    devices=1,
    overwrite=False,
    reflexive=True,
    progress=None,
    device="cpu",
    buffers=None,
    engine: Any = CpuEngine,
    memory: Any = HostMemory,
):
    """The closure, from wherever the folder says, with copies of what is in its files in the end."""
    dtypes = tuple(m.dtype for m in matrices)
    given = tuple(map(rows_of, matrices))
    with Checkpoint(folder, given, semiring, reflexive=reflexive, paths=paths, device=device, overwrite=overwrite) as state:
        if state.side is None:
            state.begin(side, ())
        engines = [engine(semiring, dtypes, 1) for _ in range(devices)]
        run(engines, memory(state.matrix), state.rows, reflexive, progress, state, buffers)
        return tuple(map(np.array, state.values)), None if state.via is None else np.array(state.via)


def run(engines, memory, rows, reflexive, progress, state=None, buffers=None):
    room = 5 + (len(engines) > 1) if buffers is None else buffers
    pipelines = [DevicePipeline(engine, memory, room, rows[0].stop) for engine in engines]
    try:
        run_workers(pipelines, rows, reflexive=reflexive, progress=progress, journal=state)
    finally:
        for pipeline in pipelines:
            pipeline.__exit__()


def undisturbed(matrices, semiring=sr.MIN_PLUS, *, side=4, paths=False, devices=1, reflexive=True):
    """The closure by the same block rows, in memory."""
    n = len(matrices[0])
    values = tuple(np.empty(m.shape, m.dtype) for m in matrices)
    via = np.full((n, n), -7, np.int32) if paths else None
    matrix = Matrix(tuple(map(rows_of, matrices)), tuple(map(rows_of, values)), None if via is None else rows_of(via))
    engines = [CpuEngine(semiring, tuple(m.dtype for m in matrices), 1) for _ in range(devices)]
    run(engines, HostMemory(matrix), block_rows(n, side), reflexive, None)
    return values, via


def assert_same(found, expected):
    for x, y in zip((*found[0], found[1]), (*expected[0], expected[1]), strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.tobytes() == y.tobytes()


class Killed(BaseException):
    """What takes the place of a process that ends."""


class Fuse:
    """Lets so many changes of files happen, the next one by half, and none after it."""

    def __init__(self, monkeypatch, changes: int) -> None:
        self.left, self.lock = changes, threading.Lock()
        self._patches = monkeypatch
        own = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})
        own.pwritev, own.truncate, own.replace = self._by_half, self._guarded(os.truncate), self._guarded(os.replace)
        for module in (storage, checkpoint_folder, checkpoint):
            monkeypatch.setattr(module, "os", own)
        monkeypatch.setattr(Path, "unlink", self._guarded(Path.unlink))
        monkeypatch.setattr(checkpoint.Stream, "write", self._guarded(checkpoint.Stream.write))

    @property
    def blown(self) -> bool:
        return self.left < 0

    def _burn(self) -> bool:
        """Whether a change still happens as a whole."""
        with self.lock:
            if self.left < 0:
                raise Killed
            self.left -= 1
            return self.left >= 0

    def _guarded(self, change):
        def guarded(*args, **named):
            if not self._burn():
                raise Killed
            return change(*args, **named)

        return guarded

    def _by_half(self, file, buffers, at):
        (data,) = buffers
        if self._burn():
            return os.pwritev(file, [data], at)
        os.pwritev(file, [data[: len(data) // 16 * 8]], at)
        raise Killed


def killed_after(changes, call) -> bool:
    """Whether the call was cut short."""
    with pytest.MonkeyPatch.context() as patches:
        fuse = Fuse(patches, changes)
        try:
            call()
        except Killed:
            assert fuse.blown
            return True
        assert not fuse.blown
        return False


CASES: list[tuple[Any, ...]] = [
    # semiring, dtype, n, paths, devices, overwrite, every so many-th change
    (sr.MIN_PLUS, np.float32, 11, True, 1, False, 1),
    (sr.MIN_PLUS, np.float32, 11, True, 1, True, 1),
    (sr.MIN_PLUS, np.float32, 30, False, 2, False, 11),
    (sr.MIN_PLUS, np.float64, 13, True, 2, True, 4),
    (sr.MIN_PLUS, np.int32, 11, True, 3, True, 3),
    (sr.MAX_MIN, np.float32, 12, True, 2, True, 3),
    (sr.MAX_TIMES, np.float64, 12, False, 1, False, 3),
    (sr.DISTANCE_HOPS, np.float64, 11, True, 1, False, 3),
    (sr.DISTANCE_HOPS, np.float64, 11, False, 2, True, 3),
    (sr.BOOLEAN, np.bool_, 9, True, 1, False, 4),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("semiring", "dtype", "n", "paths", "devices", "overwrite", "step"), CASES, ids=lambda x: getattr(x, "name", None))
def test_cut_short_at_any_change(tmp_path, semiring, dtype, n, paths, devices, overwrite, step):
    matrices = matrices_of(semiring, n, dtype)
    options = {"paths": paths, "devices": devices}
    expected = undisturbed(matrices, semiring, **options)
    for changes in itertools.count(0, step):
        folder = tmp_path / str(changes)
        given = on_disk(matrices, folder) if overwrite else matrices

        def call(folder=folder, given=given, buffers=None):
            return resume(folder / "state", given, semiring, overwrite=overwrite, buffers=buffers, **options)

        cut = killed_after(changes, call)
        killed_after(changes % 17, functools.partial(call, buffers=2 + (devices > 1)))  # with less memory
        assert_same(call(), expected)
        assert_same(call(), expected)  # it is finished
        if not overwrite:
            assert_same((given, None), (matrices_of(semiring, n, dtype), None))
        del given, call  # Windows deletes no mapped file
        shutil.rmtree(folder)
        if not cut:
            break


class OtherForm(CpuEngine):
    """Keeps ∞ as a number while it works, as GPUs do with integers."""

    large = 1e30

    def load(self, values, via=None, *, owned=True):
        for v in values:
            np.minimum(v, self.large, out=v)
        return super().load(values, via)

    def store(self, A, values):
        for v in A.values:
            v[v >= self.large] = INF
        super().store(A, values)

    def multiply_add(self, A, B, C):
        assert not any(np.isinf(v).any() for X in (A, B, C) for v in X.values)
        super().multiply_add(A, B, C)


class SlowEnd(HostMemory):
    """Lets computing run ahead of the last block row's way back."""

    def save(self, rows, buffer, columns, to):
        if rows.start > 0 and rows.stop - rows.start < 4:
            time.sleep(0.002)
        super().save(rows, buffer, columns, to)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [6, 11])
@pytest.mark.parametrize("overwrite", [False, True])
def test_an_inner_form_survives_too(tmp_path, n, overwrite):
    matrices = matrices_of(sr.MIN_PLUS, n, np.float64)
    expected = undisturbed(matrices, paths=True)
    for changes in itertools.count():
        folder = tmp_path / str(changes)
        given = on_disk(matrices, folder) if overwrite else matrices

        def call(folder=folder, given=given):
            return resume(folder / "state", given, paths=True, overwrite=overwrite, engine=OtherForm, memory=SlowEnd)

        cut = killed_after(changes, call)
        assert_same(call(), expected)
        if not cut:
            break


@pytest.mark.gpu
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_cut_short_on_a_gpu(tmp_path, dtype, overwrite):
    from semiring.kernels.cuda.engine import CudaEngine
    from semiring.streaming.gpus import CudaMemory

    matrices = matrices_of(sr.MIN_PLUS, 200, dtype)
    (statistics,) = value_statistics(matrices, () if dtype is np.float32 else (np.iinfo(np.int32).max,))

    def engine(semiring, dtypes, threads):
        found = CudaEngine(semiring, dtypes)
        found.statistics = statistics
        return found

    def call(folder, given, overwrite):
        options: dict[str, Any] = {"side": 64, "paths": True, "devices": 2, "device": "cuda:0", "overwrite": overwrite}
        return resume(folder, given, engine=engine, memory=lambda matrix: CudaMemory(matrix, 0), **options)

    expected = call(tmp_path / "undisturbed", matrices, False)
    if dtype is np.int32:
        np.testing.assert_array_equal(expected[0][0], sr.apsp(matrices[0]))
    for changes in itertools.count(0, 7):
        folder = tmp_path / str(changes)
        given = on_disk(matrices, folder) if overwrite else matrices
        cut = killed_after(changes, functools.partial(call, folder / "state", given, overwrite))
        assert_same(call(folder / "state", given, overwrite), expected)
        if not cut:
            break


SIDES = (1, 3, 7, 16, 40)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize(("n", "side"), [(n, side) for side in SIDES for n in {1, side - 1, side, side + 1, 2 * side + 1} if n > 0])
def test_block_edges(tmp_path, n, side, devices):
    matrices = matrices_of(sr.MIN_PLUS, n)
    options = {"paths": True, "side": side, "devices": devices}
    killed_after(7 * devices, lambda: resume(tmp_path / "state", matrices, **options))
    assert_same(resume(tmp_path / "state", matrices, **options), undisturbed(matrices, **options))


def test_another_block_is_another_closure(tmp_path):
    matrices = begun(tmp_path / "state", side=8)
    given = tuple(map(rows_of, matrices))
    with pytest.raises(CheckpointError, match=r"another closure \(block: 8 there, 16 here\)"):
        Checkpoint(tmp_path / "state", given, sr.MIN_PLUS, reflexive=True, paths=False, block=16)
    Checkpoint(tmp_path / "state", given, sr.MIN_PLUS, reflexive=True, paths=False, block=8).close()
    opened(tmp_path / "large", block=100).close()
    with opened(tmp_path / "large", block=100) as state:
        state.begin(5, ())
    opened(tmp_path / "large", block=100).close()


def test_another_memory_keeps_the_cut(tmp_path):
    matrices = matrices_of(sr.MIN_PLUS, 50)
    killed_after(40, lambda: resume(tmp_path / "state", matrices, side=8))
    assert_same(resume(tmp_path / "state", matrices, side=20, devices=2), undisturbed(matrices, side=8))


KILLS = 50
LARGE = {"side": 24, "paths": True}


def large_matrices():
    return matrices_of(sr.MIN_PLUS, 240)


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked from one that has everything imported")
def test_killed_at_any_moment(tmp_path):
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values, via = undisturbed(large_matrices(), **LARGE)
    folders = sorted(tmp_path.iterdir())
    assert folders
    for folder in folders:
        result = folder / "input0.npy" if (folder / "input0.npy").exists() else folder / "state" / "values.npy"
        assert_same(((np.load(result),), np.load(folder / "state" / "via.npy")), (values, via))


def kill_often(tmp_path: Path) -> None:
    """Processes that end by SIGKILL, each going on where the one before it was; every other matrix is overwritten."""
    rng = np.random.default_rng()
    resume(tmp_path / "compiled", matrices_of(sr.MIN_PLUS, 3), **LARGE)
    shutil.rmtree(tmp_path / "compiled")
    killed = 0
    for number in itertools.count():
        if killed >= KILLS:
            break
        folder, overwrite = tmp_path / str(number), number % 2 == 1
        folder.mkdir()
        given = on_disk(large_matrices(), folder) if overwrite else large_matrices()
        status = -1
        while status:
            child = os.fork()
            if not child:
                resume(folder / "state", given, overwrite=overwrite, **LARGE)
                os._exit(0)
            time.sleep(rng.exponential(0.06))
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            assert os.WIFSIGNALED(status) or status == 0
            killed += status != 0


def begun(folder, matrices=None, changes=60, **options):
    """A checkpoint of a closure that was cut short."""
    matrices = matrices_of(sr.MIN_PLUS, 30) if matrices is None else matrices
    assert killed_after(changes, lambda: resume(folder, matrices, **options))
    return matrices


def test_an_interruption_says_how_to_go_on(tmp_path):
    matrices, once, heard = matrices_of(sr.MIN_PLUS, 60), itertools.count(), threading.Event()

    def hear(*_):
        heard.set()
        raise KeyboardInterrupt

    def interrupt(done, total):
        if done >= 40 and next(once) == 0:
            os.kill(os.getpid(), signal.SIGINT)
            heard.wait(5)
            time.sleep(0.05)  # as long as the main thread takes to stop the others

    before = signal.signal(signal.SIGINT, hear)
    try:
        with pytest.raises(KeyboardInterrupt) as stop:
            resume(tmp_path / "state", matrices, side=8, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert re.search(r"of 8 rounds are done and kept in .*state: the same call goes on", "".join(stop.value.__notes__))
    told = []
    found = resume(tmp_path / "state", matrices, side=8, progress=lambda done, total: told.append(done))
    assert_same(found, undisturbed(matrices, side=8))
    assert 40 < told[0] < 64 == told[-1]


def test_a_full_disk_is_an_error_that_can_be_mended(tmp_path, monkeypatch):
    matrices = matrices_of(sr.MIN_PLUS, 40)
    written, write = itertools.count(), checkpoint.Stream.write

    def full(self, rows, array):
        if next(written) > 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, rows, array)

    monkeypatch.setattr(checkpoint.Stream, "write", full)
    with pytest.raises(OSError, match="No space left"):
        resume(tmp_path / "state", matrices, devices=2)
    monkeypatch.undo()
    assert_same(resume(tmp_path / "state", matrices, devices=2), undisturbed(matrices))


def test_a_negative_cycle_is_found_again(tmp_path):
    matrices = matrices_of(sr.MIN_PLUS, 30)
    matrices[0][20, 21], matrices[0][21, 20] = -5, 4
    for _ in range(2):
        with pytest.raises(DivergentPivot):
            resume(tmp_path / "state", matrices)


def changed(matrices, at):
    (values,) = matrices
    values = values.copy()
    values[at] = 0.125
    return (values,)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("what", "there", "here"),
    [
        ("n", {}, {"matrices": matrices_of(sr.MIN_PLUS, 31)}),
        ("dtypes", {}, {"matrices": matrices_of(sr.MIN_PLUS, 30, np.float64)}),
        ("semiring", {}, {"semiring": sr.MAX_MIN}),
        ("operations", {}, {"semiring": sr.Semiring("min-plus", min, lambda a, b: a + b + b, INF, 0)}),
        ("reflexive", {}, {"reflexive": False}),
        ("paths", {}, {"paths": True}),
        ("entries", {}, {"matrices": changed(matrices_of(sr.MIN_PLUS, 30), (0, 0))}),
        ("entries", {}, {"matrices": changed(matrices_of(sr.MIN_PLUS, 30), (29, 3))}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_another_closure_is_refused(tmp_path, what, there, here):
    folder = tmp_path / "state"
    matrices = begun(folder, **there)
    with pytest.raises(CheckpointError, match=f"another closure.*{what}.*another folder"):
        resume(folder, **({"matrices": matrices} | here))
    assert_same(resume(folder, matrices), undisturbed(matrices))


def opened(folder, dtype: Any = np.float32, device="cpu", block=None):
    given = tuple(map(rows_of, matrices_of(sr.MIN_PLUS, 5, dtype)))
    return Checkpoint(folder, given, sr.MIN_PLUS, reflexive=True, paths=False, device=device, block=block)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(("semiring", "dtype"), [(sr.MIN_PLUS, np.float64), (sr.DISTANCE_HOPS, np.float64), (sr.BOOLEAN, np.bool_)])
def test_every_bit_of_the_input_counts(tmp_path, semiring, dtype, finished):
    matrices = matrices_of(semiring, 20, dtype)
    if finished:
        resume(tmp_path / "state", matrices, semiring)
    else:
        begun(tmp_path / "state", matrices, changes=30, semiring=semiring)
    rng = np.random.default_rng(0)
    for _ in range(30):
        other = tuple(m.copy() for m in matrices)
        component, row, column = rng.integers(len(matrices)), rng.integers(20), rng.integers(20)
        entry = other[component][row, column : column + 1].view(np.uint8)
        entry[rng.integers(len(entry))] ^= 1
        with pytest.raises(CheckpointError, match=rf"another closure \(entries: rows {row // 4 * 4} to {row // 4 * 4 + 3} differ\)"):
            resume(tmp_path / "state", other, semiring)
    assert_same(resume(tmp_path / "state", matrices, semiring), undisturbed(matrices, semiring))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.DISTANCE_HOPS], ids=lambda s: s.name)
def test_every_bit_of_a_finished_result_counts(tmp_path, semiring, overwrite):
    given = on_disk(matrices_of(semiring, 20, np.float64), tmp_path / "input")
    folder = tmp_path / "state"

    def call():
        return resume(folder, given, semiring, paths=True, overwrite=overwrite)

    with Checkpoint(folder, tuple(map(rows_of, given)), semiring, reflexive=True, paths=True, overwrite=overwrite) as state:
        state.begin(4, ())
        run([CpuEngine(semiring, tuple(m.dtype for m in given), 1)], HostMemory(state.matrix), state.rows, True, None, state)
        state.seal()
    expected, rng = call(), np.random.default_rng(0)
    files = [folder / "via.npy", *(tmp_path / "input" if overwrite else folder).glob("*[s0-9].npy")]
    assert len(files) == 1 + len(given)
    for number in range(30):
        path = files[number % len(files)]
        as_it_was = path.read_bytes()
        spoil(path, -1 - int(rng.integers(len(as_it_was) - 128)))
        with pytest.raises(CheckpointError, match=r"rows \d+ to \d+ of its result have been changed.*delete the folder"):
            call()
        path.write_bytes(as_it_was)
    assert_same(call(), expected)


def test_an_input_that_is_overwritten_is_known_again_where_it_is_still_there(tmp_path):
    matrices = matrices_of(sr.MIN_PLUS, 30)
    for changes in (5, 12):
        (given,) = on_disk(matrices, tmp_path / str(changes))
        state = tmp_path / str(changes) / "state"
        assert killed_after(changes, lambda given=given, state=state: resume(state, (given,), overwrite=True))
        weight = given[29, 7].copy()
        given[29, 7] = 0.001
        with pytest.raises(CheckpointError, match=r"rows 28 to 29 (of its input have been changed.*bring that back first|differ)"):
            resume(state, (given,), overwrite=True)
        given[29, 7] = weight
        assert_same(resume(state, (given,), overwrite=True), undisturbed(matrices))


def refusal(call) -> str:
    """What is said instead of a result."""
    try:
        call()
    except CheckpointError as error:
        return str(error)
    return ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("devices", [1, 3])
def test_an_input_that_takes_the_place_of_half_done_work_is_refused(tmp_path, devices):
    matrices, refused = matrices_of(sr.MIN_PLUS, 30), 0
    for changes in range(20, 140, 6):
        (given,) = on_disk(matrices, tmp_path / str(changes))

        def call(given=given, changes=changes):
            return resume(tmp_path / str(changes) / "state", (given,), overwrite=True, devices=devices)

        assert killed_after(changes, call)
        half_done = given.copy()
        given[:] = matrices_of(sr.MIN_PLUS, 30, seed=1)[0]
        said = refusal(call)
        if said:
            refused += 1
            assert re.search("matrix that is worked on has been changed|its input have been changed", said)
            given[:] = half_done
            assert_same(call(), undisturbed(matrices))
    assert refused > 14  # but for those moments when nothing in the file is as it was recorded


def test_digests_of_parts_are_parts_of_the_digests():
    matrices = matrices_of(sr.DISTANCE_HOPS, 50, np.float64)
    given, rows = tuple(map(rows_of, matrices)), block_rows(50, 8)
    whole = digests(given, rows)
    assert len(set(whole)) == len(rows)
    assert whole == [digest for half in (rows[:3], rows[3:]) for digest in digests(given, half, threads=3)]
    assert whole == digests(tuple(rows_of(np.asfortranarray(m)) for m in matrices), rows)
    assert whole != digests(given[::-1], rows)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(checkpoint_folder, "_AT_ONCE", 1000)
        assert whole == digests(given, rows)


def test_another_device_may_keep_integers_in_another_form(tmp_path):
    opened(tmp_path / "floats", np.float32, "cuda:0").close()
    opened(tmp_path / "floats", np.float32).close()
    opened(tmp_path / "integers", np.int32, "cuda:0").close()
    opened(tmp_path / "integers", np.int32, "cuda:1").close()
    with pytest.raises(CheckpointError, match="form of elements"):
        opened(tmp_path / "integers", np.int32)


def test_the_cut_and_what_is_known_of_the_input_are_kept(tmp_path):
    for _ in range(2):
        with opened(tmp_path / "a") as state:
            assert state.side is None
    with opened(tmp_path / "a") as state:
        state.begin(2, (ValueStatistics((0.1, 2.5)),))
    with opened(tmp_path / "a") as state:
        assert (state.side, state.statistics, state.rows) == (2, (ValueStatistics((0.1, 2.5)),), block_rows(5, 2))


def spoil(path: Path, at: int = -20) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "state.json").write_text((f / "state.json").read_text()[:50]), "state.json is damaged"),
        (lambda f: (f / "state.json").write_text("[1, 2]"), "state.json is damaged"),
        (
            lambda f: (f / "state.json").write_text((f / "state.json").read_text().replace('"side": 4', '"side": -4')),
            "state.json is damaged",
        ),
        (lambda f: (f / "values.npy").unlink(), "values.npy is missing"),
        (lambda f: os.truncate(f / "values.npy", 2000), "values.npy is damaged"),
        (lambda f: os.truncate(f / "values.npy", 20), "values.npy is damaged"),
        (lambda f: (f / "values.npy").write_bytes(b"\x80\x04K\x01."), "values.npy is damaged(?!.*pickle)"),
        (lambda f: np.save(f / "values.npy", np.zeros((30, 30))), "values.npy is .*float64"),
        (lambda f: np.save(f / "via.npy", np.zeros((3, 30), np.int32)), r"via.npy is \(3, 30\)"),
        (lambda f: spoil(f / "row3-round3"), "row.* is damaged"),
        (lambda f: spoil(f / "row3-round3", -1), "row.* is damaged"),
        (lambda f: os.truncate(f / "row3-round3", 17), "row.* is damaged"),
        (lambda f: os.truncate(f / "row3-round3", 10**5), "row.* is damaged"),
        (lambda f: (f / "row3-round3").unlink(), "row3-round3 is missing"),
    ],
)
def test_a_damaged_checkpoint_is_refused(tmp_path, cut_short, damage, message):
    folder = tmp_path / "state"
    shutil.copytree(cut_short, folder)
    damage(folder)
    with pytest.raises(CheckpointError, match=f"{message}.*delete the folder"):
        resume(folder, matrices_of(sr.MIN_PLUS, 30), paths=True)


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory):
    """A checkpoint with records of block rows 1 and 3; it is whole."""
    folder = tmp_path_factory.mktemp("cut") / "short"
    records = [folder / "row3-round3", folder / "row1-round3"]
    for changes in itertools.count(150):
        begun(folder, changes=changes, paths=True)
        if all(record.exists() and record.stat().st_size for record in records):
            break
        shutil.rmtree(folder)
    yield folder
    matrices = matrices_of(sr.MIN_PLUS, 30)
    assert_same(resume(folder, matrices, paths=True), undisturbed(matrices, paths=True))


def test_a_folder_of_other_files_is_left_alone(tmp_path):
    (tmp_path / "values.npy").write_text("mine")
    with pytest.raises(CheckpointError, match=r"has .values\.npy. in it"):
        resume(tmp_path, matrices_of(sr.MIN_PLUS, 5))
    assert (tmp_path / "values.npy").read_text() == "mine"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(CheckpointError, match=r"is a file.*name another"):
            resume(folder, matrices_of(sr.MIN_PLUS, 5))
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("folder", ["", b"work", 5, True, "a\0b"])
def test_what_is_no_path_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint is .*pass the path of a folder"):
        sr.apsp(np.ones((3, 3)), checkpoint=folder, nonedge=np.inf)
    assert not list(tmp_path.iterdir())


def test_two_processes_do_not_work_on_one_checkpoint(tmp_path):
    with opened(tmp_path / "a"), pytest.raises(CheckpointError, match="another process"):
        opened(tmp_path / "a")
    opened(tmp_path / "a").close()


def test_only_whole_elements_are_overwritten(tmp_path):
    """In a file where elements begin anywhere, one could be half written when a page ends."""
    (values,) = matrices_of(sr.MIN_PLUS, 9)
    (tmp_path / "odd").write_bytes(b"x" + values.tobytes())
    odd = np.memmap(tmp_path / "odd", np.float32, "r+", 1, (9, 9))
    assert_same(resume(tmp_path / "state", (odd,), overwrite=True), undisturbed((values,)))
    assert (tmp_path / "odd").read_bytes() == b"x" + values.tobytes()


def test_two_matrices_of_one_file_are_two_closures(tmp_path):
    both = np.concatenate([*matrices_of(sr.MIN_PLUS, 9), *matrices_of(sr.MIN_PLUS, 9, seed=1)])
    both.tofile(tmp_path / "both")
    first, second = (np.memmap(tmp_path / "both", np.float32, "r+", offset, (9, 9)) for offset in (0, 9 * 9 * 4))
    resume(tmp_path / "state", (first,), overwrite=True)
    with pytest.raises(CheckpointError, match="another closure"):
        resume(tmp_path / "state", (second,), overwrite=True)


def test_files_are_read_and_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_AT_ONCE", 100)
    matrices = matrices_of(sr.MIN_PLUS, 9)
    (mapped,) = on_disk(matrices, tmp_path)
    rows, out = rows_of(mapped), np.empty((9, 9), np.float32)
    rows.write(slice(2, 9), matrices[0][1:8])
    rows.read(slice(0, 9), out)
    np.testing.assert_array_equal(out, np.concatenate([matrices[0][:2], matrices[0][1:8]]))


def test_a_deleted_file_is_read_where_it_is_mapped(tmp_path):
    matrices = matrices_of(sr.MIN_PLUS, 9)
    (mapped,) = on_disk(matrices, tmp_path)
    os.unlink(mapped.filename)
    out = np.empty((2, 9), np.float32)
    rows_of(mapped).read(slice(3, 5), out)
    np.testing.assert_array_equal(out, matrices[0][3:5])


def test_a_part_of_a_file_is_read_where_it_is(tmp_path):
    both = np.concatenate([*matrices_of(sr.MIN_PLUS, 9), *matrices_of(sr.MIN_PLUS, 9, seed=1)])
    (mapped,) = on_disk((both,), tmp_path)
    out = np.empty((2, 9), np.float32)
    rows_of(mapped[9:]).read(slice(3, 5), out)
    np.testing.assert_array_equal(out, both[12:14])


if __name__ == "__main__":
    kill_often(Path(sys.argv[1]))
