"""What the CUDA engine launches, without a GPU: arrays at addresses that nobody reads, and kernels that are only noted."""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import DISTANCE_HOPS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algorithms.schedules import schedule_for
from semiring.arrays import threads as helpers
from semiring.arrays.devices import Strided
from semiring.common.errors import SemiringError
from semiring.kernels.cuda import compiler, elements, kernels, launches, statistics
from semiring.kernels.cuda.scan import CudaScans
from semiring.kernels.engine import Block, ScanOperands, ScanPlaces
from semiring.kernels.hardware import H200
from semiring.kernels.limits import FINITE, SafeRange, ValueStatistics
from tests.kernels.samples import DTypes

cupy = pytest.importorskip("cupy")

F4 = (np.dtype("float32"),)
SIGNLESS = ValueStatistics((0.0, 1.0))


class _Functions:
    """Stands for what CuPy loads; `launches` are the names, grids, arguments and shared memory."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.loaded: list[str] = []

    def load(self, kernel: compiler.Kernel) -> Any:
        name = kernel._name
        kernel.compile()
        self.loaded.append(name)

        def launch(grid: Any, block: Any, arguments: tuple[Any, ...], shared_bytes: int) -> None:
            told = tuple(x.tobytes() if isinstance(x, np.ndarray) else int(x) for x in arguments)
            self.launches.append((name, grid, block, told, shared_bytes))

        kernel._function = launch
        return launch


class _Memory:
    """Hands out addresses, one behind the other."""

    def __init__(self) -> None:
        self.next = 1 << 30

    def empty(self, shape: Any, dtype: Any = np.float64) -> Any:
        shape, dtype = (shape,) if isinstance(shape, int) else tuple(shape), np.dtype(dtype)
        array = array_at(self.next, shape, dtype)
        self.next += -(-max(1, array.nbytes) // 512) * 512
        return array


def array_at(address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> Any:
    memory = cupy.cuda.UnownedMemory(address, 1 << 40, None, 0)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Functions]:
    functions = _Functions()
    kept = (kernels.kernels_for, compiler.kernel_for)
    for cache in kept:
        cache.cache_clear()
    for module in (kernels, compiler):
        monkeypatch.setattr(module, "device", lambda number: H200)
    fields: dict[int, Any] = {}

    def pointer_to(array: Any) -> int:
        argument = compiler.pointer_to(array)
        fields[argument] = array
        return argument

    monkeypatch.setattr(launches, "pointer_to", pointer_to)
    monkeypatch.setattr(
        compiler, "_launch", lambda function, grid, block, argument, shared: function(grid, block, (fields[argument][1:],), shared)
    )
    monkeypatch.setattr(compiler, "compile_source", lambda source, arch: source.encode())
    monkeypatch.setattr(compiler, "kept_code", lambda source, arch: None)
    monkeypatch.setattr(compiler.Kernel, "load", lambda kernel: functions.load(kernel))  # a method, as a bound one is none
    monkeypatch.setattr(cupy, "empty", _Memory().empty)
    monkeypatch.setattr(
        "semiring.kernels.cuda.blocks.kernel_for",
        functools.cache(lambda name, number, source, size: compiler.Kernel(f"copy{size}", str, number)),
    )
    monkeypatch.setattr("semiring.kernels.cuda.engine.of_bytes", lambda count, byte: array_at(64 if byte else 1 << 20, (count,), np.int32))
    monkeypatch.setattr("semiring.kernels.cuda.engine._SMALL", 0)
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 0)
    yield functions
    for cache in kept:
        cache.cache_clear()


def engine(semiring: Semiring = MIN_PLUS, dtypes: DTypes = F4) -> Any:
    from semiring.kernels.cuda.engine import CudaEngine

    found = CudaEngine(semiring, dtypes)
    found.statistics = SIGNLESS
    return found


def block(address: int, m: int, n: int, dtypes: DTypes = F4, *, pitch: int | None = None, via: bool = False, column: int = 0) -> Block:
    pitch = n if pitch is None else pitch
    values = [
        array_at(address + c * (1 << 34), (1, m, n), d, (m * pitch * d.itemsize, pitch * d.itemsize, d.itemsize))
        for c, d in enumerate(dtypes)
    ]
    return Block(tuple(values), array_at(address + (1 << 36), (1, m, n), np.int32) if via else None, 0, column)


@pytest.mark.parametrize(("semiring", "dtypes"), [(MIN_PLUS, F4), (PLUS_TIMES, (np.dtype("f8"),)), (DISTANCE_HOPS, F4 * 2)], ids=str)
@pytest.mark.parametrize("witness", [False, True])
def test_a_plan_is_what_would_be_planned_anew(gpu: _Functions, semiring: Semiring, dtypes: DTypes, witness: bool) -> None:
    """Also where operands that lie alike lie elsewhere, begin at other vertices, or share their elements with the result."""
    if witness and semiring is PLUS_TIMES:
        pytest.skip("no witness")
    for (m, n, k), pitch in itertools.product(((5, 7, 3), (64, 64, 64), (130, 61, 40)), (None, 200)):
        for method, (offset, column) in itertools.product(("multiply", "multiply_add"), ((0, 0), (16 * 4096, 9), (4, 0), (48, 1))):
            shapes = ((m, k), (k, n), (m, n))
            A, B, C = (
                block((1 << 30) + offset + (i << 28), *shape, dtypes, pitch=pitch, via=witness and i == 2, column=column)
                for i, shape in enumerate(shapes)
            )
            launched = []
            for anew in (False, True, True):
                if anew:
                    kernels.kernels_for(semiring, dtypes, 0).plans.clear()
                gpu.launches.clear()
                getattr(engine(semiring, dtypes), method)(A, B, C)
                launched.append(list(gpu.launches))
            assert launched[0] == launched[2]


@pytest.mark.parametrize("method", ["multiply", "multiply_add"])
@pytest.mark.parametrize("unknown_signs", [False, True])
def test_winners_are_looked_up_in_one_transpose(gpu: _Functions, method: str, unknown_signs: bool) -> None:
    """Two kernel variants share it, also in the launches that are kept; a later product has its own."""
    A, C = block(1 << 30, 90, 200), block(1 << 34, 90, 130, via=True)
    for turn in range(3):
        B = block((1 << 32) + turn * (1 << 20), 200, 130)
        e = engine()
        if unknown_signs:
            e.statistics, e.asynchronous, e.signs = None, True, array_at(1 << 20, (1,), np.int32)
        gpu.launches.clear()
        getattr(e, method)(A, B, C)
        assert [name for name, *_ in gpu.launches] == ["copy4", *["product_witness"] * (1 + unknown_signs)]
        (_, _, _, copy, _), *products = gpu.launches
        source, target = copy[0], copy[4]
        assert source == B.values[0].data.ptr
        for _, _, _, (fields,), _ in products:
            words = np.frombuffer(fields, np.int64).tolist()
            assert words.count(target) == 1
            assert words.count(source) == 1


def test_operands_that_share_elements_otherwise_are_planned_otherwise(gpu: _Functions) -> None:
    whole = block(1 << 30, 256, 256)
    pivot, panel, rest = whole[:64, :64], whole[:64, 64:128], whole[64:128, 64:128]
    apart = block(1 << 32, 64, 64, pitch=256)
    for A, B, C, copies in (
        (pivot, panel, panel, 0), (pivot, panel, rest, 0), (pivot, apart, rest, 0), (apart, pivot, pivot, 0),
        (pivot, whole[:64, 65:129], panel, 1), (whole[:64, 1:65], whole[:64, 65:129], whole[:64, 64:128], 2),
    ):  # fmt: skip
        for _ in range(2):
            gpu.launches.clear()
            engine().multiply_add(A, B, C)
            assert [name for name, *_ in gpu.launches] == ["copy4"] * copies + ["product"]


@pytest.mark.parametrize("n", [50, 128, 200, 1024, 1500])
@pytest.mark.parametrize("witness", [False, True])
def test_a_rehearsal_has_every_kernel_compiled(gpu: _Functions, n: int, witness: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled by a launch, and nothing is launched by a rehearsal."""
    launched_at_load = []

    def load(kernel: compiler.Kernel) -> Any:
        launched_at_load.append(len(gpu.launches))
        return gpu.load(kernel)

    monkeypatch.setattr(compiler.Kernel, "load", load)
    e, A = engine(), block(1 << 30, n, n, via=witness)
    e.run("auto", lambda A: schedule_for("auto", None, eliminate=False)(e, A), A)
    assert launched_at_load
    assert set(launched_at_load) == {0}
    assert set(gpu.loaded) == {name for name, *_ in gpu.launches}
    assert n > 1024 or len(gpu.loaded) <= 4


def rehearsed(gpu: _Functions) -> list[bool]:
    """Whether a schedule that is run twice is rehearsed each time that it begins; both runs launch the same."""
    e, A, begun = engine(), block(1 << 30, 300, 300), []

    def schedule(A: Block) -> None:
        begun.append(compiler.rehearsing())
        schedule_for("auto", None, eliminate=False)(e, A)

    for _ in range(2):
        e.run("auto", schedule, A)
    assert gpu.launches[: len(gpu.launches) // 2] == gpu.launches[len(gpu.launches) // 2 :]
    return begun


@pytest.mark.parametrize(
    ("count", "m", "k", "n", "name", "grid", "threads"),
    [
        (40, 32, 32, 32, "product_stack", 8, 160),
        (40, 64, 64, 64, "product_shallow", 40, 64),
        (40, 33, 40, 64, "product_shallow", 40, 64),
        (40, 64, 32, 64, "product", None, None),
        (1, 1 << 18, 32, 32, "product_shallow", 1 << 12, 32),
        (1, 1 << 21, 32, 32, "product_shallow", 10_923, 32),
        (1, 4096, 16, 4090, "product_shallow", 64 * 64, 64),
        (1, 4096, 36, 4096, "product", None, None),
        (1, 1024, 16, 1024, "product", None, None),
        (1, 4096, 4096, 1, "multiply_column", 128, 256),
    ],
)
def test_shapes_with_kernels_of_their_own(
    gpu: _Functions, count: int, m: int, k: int, n: int, name: str, grid: int | None, threads: int | None
) -> None:
    A, B, C = (Block((array_at((1 + i) << 32, (count, *shape), np.float32),)) for i, shape in enumerate(((m, k), (k, n), (m, n))))
    for _ in range(2):
        engine().multiply(A, B, C)
    assert gpu.launches[0] == gpu.launches[1]
    launched, blocks, of, *_ = gpu.launches[0]
    assert launched == name
    assert grid is None or (blocks, of) == ((grid, 1, 1), (threads, 1, 1))


def test_a_chance_that_no_number_has_a_sign(gpu: _Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken until numbers that are right have signs; what is refused tells nothing of them."""
    answers = list[int]()
    flags = SimpleNamespace(addresses=[1 << 20], read=lambda: [answers.pop(0), False])
    monkeypatch.setattr("semiring.kernels.cuda.kernels.Flags", SimpleNamespace(taken=lambda: flags))
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: SimpleNamespace(is_capturing=lambda: False))
    A, B, C = (Block((array_at((1 + i) << 32, (40, 64, 64), np.float32),)) for i in range(3))
    safe = SafeRange(-8.0, 8.0, FINITE)
    for told, found, least in (
        ([0], True, [0]), ([1, 1], False, [0, -8]), ([0], True, [0]), ([1, 0], True, [0, -8]), ([0], True, [-8]), ([1], False, [-8]),
    ):  # fmt: skip
        answers[:] = told
        gpu.launches.clear()
        e = engine()
        e.statistics, e.asynchronous = None, True
        assert e.multiply_within(A, B, C, safe, None) is found
        assert not answers
        assert [np.frombuffer(fields)[-5] for *_, (fields,), _ in gpu.launches] == least


def test_small_matrices_of_a_stack_are_closed_by_a_warp_each(gpu: _Functions) -> None:
    for count, n, threads in ((40, 32, 32), (40, 33, 128), (4, 32, 128), (40, 65, 256)):
        e = engine()
        e.close(Block((array_at(1 << 30, (count, n, n), np.float32),)))
        assert gpu.launches[-1][1:3] == ((count, 1, 1), (threads, 1, 1))


@pytest.mark.parametrize("backward", [False, True])
def test_a_scan_is_one_launch(gpu: _Functions, backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sequences that begin at addresses of their own, in a table on the GPU; strides are in elements, and go backward with time."""
    tables = list[Any]()

    def asarray(table: Any) -> Any:
        tables.append(table)
        return array_at(1 << 20, table.shape, table.dtype)

    monkeypatch.setattr(cupy, "asarray", asarray)
    monkeypatch.setattr("semiring.kernels.cuda.scan.device", lambda number: H200)
    steps, states = 5, 64
    a, w, v, values = (
        array_at((1 + i) << 32, shape, np.float32)
        for i, shape in enumerate(((states, states), (3, steps, states), (states,), (3, steps + 1, states)))
    )
    operands = ScanOperands((a.T,), (w,), (v,), np.array([5, 0, 2]), steps, states)
    CudaScans(MIN_PLUS, F4, 0).run(operands, ScanPlaces((values,)), backward=backward, signed=False)
    ((name, grid, block_of, (scan,), shared),) = gpu.launches
    assert (name, grid, block_of, shared) == ("scan", (3, 1, 1), (256, 1, 1), 2 * 4 * 5 * 16)
    direction, row = (-1, 4 * states) if backward else (1, 4 * states)
    begin = [max(n - 1, 0) * row if backward else 0 for n in (5, 0, 2)]
    zeroth = [n * row if backward else 0 for n in (5, 0, 2)]
    assert tables[0].tolist() == [
        [1 << 32, (2 << 32) + i * steps * row + begin[i], 3 << 32, (4 << 32) + i * (steps + 1) * row + zeroth[i], 0, 0, 0, n]
        for i, n in enumerate((5, 0, 2))
    ]
    down, across = (64, 1) if backward else (1, 64)
    assert np.frombuffer(scan, np.int64).tolist() == [
        1 << 20, states, 16, 0, down, across, direction * states, 1, 1, direction * states, 0, 0, 0, 0,
    ]  # fmt: skip


def test_what_is_loaded_is_not_rehearsed(gpu: _Functions) -> None:
    assert rehearsed(gpu) == [False, True, False]


@pytest.mark.parametrize(("kept", "rehearsals"), [(100, 0), (1, 1), (2, 1), (0, 1)])
def test_only_what_was_never_compiled_is_rehearsed(gpu: _Functions, kept: int, rehearsals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also midway, behind launches of what was kept, which are no others for that."""
    codes = iter([b"code"] * kept)
    monkeypatch.setattr(compiler, "kept_code", lambda source, arch: next(codes, None))
    assert rehearsed(gpu) == [False, *[True] * rehearsals, False]


def test_kernels_of_a_rehearsal_compile_side_by_side(gpu: _Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", "3")
    # Other tests may still have helpers at work: this one has its own.
    monkeypatch.setattr(helpers, "_helpers", 0)
    monkeypatch.setattr(helpers, "_idle", type(helpers._idle)())
    together = threading.Barrier(3, timeout=60)
    monkeypatch.setattr(compiler, "compile_source", lambda source, arch: bytes(together.wait()))
    monkeypatch.setattr(compiler.Kernel, "load", lambda kernel: None)
    made = [compiler.Kernel(str(i), str, 0) for i in range(3)]

    def work() -> None:
        for kernel in made * 2:
            kernel((1, 1, 1), (1, 1, 1), ())

    compiler.rehearse(work)
    assert not compiler.rehearsing()


def test_what_the_compiler_refuses_in_a_rehearsal_is_told(gpu: _Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, arch: int) -> bytes:
        raise SemiringError("NVRTC refuses")

    monkeypatch.setattr(compiler, "compile_source", refuse)
    with pytest.raises(SemiringError, match="NVRTC refuses"):
        compiler.rehearse(lambda: compiler.Kernel("f", str, 0)((1, 1, 1), (1, 1, 1), ()))
    assert not compiler.rehearsing()


def test_an_asynchronous_engine_only_launches(gpu: _Functions) -> None:
    """What is not known of the operands it does not look for, because that would wait for the GPU: they may have any sign."""
    e, (a, b, c) = engine(), (array_at((1 << 30) + i * (1 << 20), (64, 64), np.float32) for i in range(3))
    e.statistics, e.asynchronous = None, True
    e.multiply(e.load((a,), owned=False), e.load((b,), owned=False), e.blank((c,)))
    assert [name for name, *_ in gpu.launches] == ["product"]
    assert [key[1] for key in kernels.kernels_for(MIN_PLUS, F4, 0)._functions] == [False]


@pytest.mark.parametrize("n", [300, 1024, 8192])
def test_where_signs_decide_both_kernels_are_launched(gpu: _Functions, n: int) -> None:
    """Each with its turn, in all of its launches; of two in one thread the fields of neither are those of the other."""
    e = engine()
    e.statistics, e.asynchronous = None, True
    e.expect_signs(n, n, n)
    assert (e.signs is not None) == (n >= 1024)
    e.signs = array_at(1 << 20, (1,), np.int32)
    given = [array_at((1 << 30) + i * (1 << 30), (n, n), np.float32) for i in range(3)]
    for again in (False, True):
        gpu.launches.clear()
        a, b, c = given[::-1] if again else given
        e.multiply(e.load((a,), owned=False), e.load((b,), owned=False), e.blank((c,)))
        names = [name for name, *_ in gpu.launches]
        half = names[: len(names) // 2]
        assert names == half * 2
        assert half in (["product"], ["product", "add_parts"])
        turns = [np.frombuffer(told[-1], np.int64)[-2:].tolist() for *_, told, _ in gpu.launches]
        assert turns == [[1 << 20, 1]] * len(half) + [[1 << 20, 0]] * len(half)
        first = [np.frombuffer(told[0], np.int64)[0] for name, _, _, told, _ in gpu.launches if name == "product"]
        assert first == [a.data.ptr] * 2
    assert {key[:2] for key in kernels.kernels_for(MIN_PLUS, F4, 0)._functions} >= {("product", True), ("product", False)}


def test_launches_that_are_known(gpu: _Functions) -> None:
    """Of blocks that lie as those of a product before, they are what the engine launches."""
    a, b, c = blocks = [block((1 << 30) + (i << 30), *shape) for i, shape in enumerate(((70, 50), (50, 90), (70, 90)))]
    e = engine()
    e.statistics, e.asynchronous = None, True
    assert e.launches(*blocks, fresh=True) is None
    e.multiply(*blocks)
    launched = list(gpu.launches)
    found = e.launches(*blocks, fresh=True)
    assert found is not None
    ((launch, signed),) = found
    assert signed is None
    launch.start(launches.addresses([(a, b, c)]))
    assert gpu.launches == launched * 2
    assert e.launches(block(1 << 30, 70, 50, pitch=60), b, c, fresh=True) is None
    assert e.launches(a, b, Block(c.values, array_at(1 << 33, (1, 70, 90), np.int32)), fresh=True) is None
    assert e.launches(*blocks, fresh=False) is None
    e.multiply_add(*blocks)
    assert e.launches(*blocks, fresh=False) is not None


@pytest.mark.parametrize(("shapes", "declines"), [
    (((70, 32), (32, 90), (70, 90)), True),
    (((1 << 18, 32), (32, 32), (1 << 18, 32)), False),
    (((100, 16, 16),) * 3, False),
    (((100, 64, 64),) * 3, False),
])  # fmt: skip
def test_launches_that_check_their_operands(gpu: _Functions, shapes: Any, declines: bool) -> None:
    e, safe = engine(), SafeRange(-1.0, 1.0, 0)
    A, B, C = (Block((array_at((1 << 31) + (i << 31), s if len(s) > 2 else (1, *s), np.float32),)) for i, s in enumerate(shapes))
    found = [sought for _, sought in e.launches_within(A, B, C, safe)]
    assert found[-1:] == ([] if declines else [safe])
    if len(found) > 1:
        assert found[0].low == 0
        e._have_signs(A, B, C)
        assert [sought for _, sought in e.launches_within(A, B, C, safe)] == [safe]


@pytest.mark.parametrize(("seen", "owned", "launched", "ordered"), [
    (ValueStatistics((0.0, 1.0)), True, 0, True),
    (ValueStatistics((-1.0, 1.0)), True, 0, False),
    (ValueStatistics((-1.0, 1.0), negative_zero=True), True, 0, False),
    (ValueStatistics((0.0, 1.0), negative_zero=True), True, 1, True),
    (ValueStatistics((0.0, 1.0), negative_zero=True), False, 0, False),
])  # fmt: skip
def test_what_is_seen_of_signs_is_not_looked_for(gpu: _Functions, seen: ValueStatistics, owned: bool, launched: int, ordered: bool) -> None:
    e = engine()
    e.statistics = seen
    e.load((array_at(1 << 30, (64, 64), np.float32),), owned=owned)
    assert len(gpu.launches) == launched
    assert e._ordered_bits == ordered


@pytest.mark.parametrize("view", [
    np.s_[:], np.s_[::2], np.s_[:, ::3], np.s_[..., ::-1], np.s_[0], np.s_[0, 0], np.s_[0, 0, ::2], np.s_[1, ::2, 0], np.s_[:, :, :1],
])  # fmt: skip
@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
def test_statistics_read_the_numbers_of_an_array(view: Any, axes: tuple[int, ...]) -> None:
    """Each of them once, in whatever order: side by side where they are."""
    whole = np.arange(120, dtype=np.float32).reshape(4, 5, 6).transpose(axes)
    array = whole[view]
    count, numbers = statistics._numbers(Strided(array.ctypes.data, array.shape, array.strides, array.dtype))
    i, m, n = np.arange(count), numbers.m or 1, numbers.n or count
    places = i // n // m * numbers.apart + i // n % m * numbers.row + i % n * (numbers.column or 1)
    first = (array.ctypes.data - whole.ctypes.data) // 4
    assert sorted(first + places) == sorted(array.ravel())
    assert numbers.n == 0 or not array.flags.forc


def test_elements_wherever_they_lie(gpu: _Functions) -> None:
    """Contiguous arrays are one long row; others are read along what is contiguous."""
    contiguous, tall = array_at(1 << 30, (3, 70, 50), np.int32), array_at(1 << 32, (3, 70, 50), np.int32, (14000, 4, 280))
    elements.for_each("x = y", {"x": contiguous, "y": contiguous})
    elements.for_each("x = y", {"x": tall, "y": contiguous}, top=2**64 - 1)
    (_, grid, _, first, _), (_, turned, _, second, _) = gpu.launches
    assert grid == (-(-3 * 70 * 50 // 256), 1, 1)
    assert first == (1 << 30, 0, 1, 0, 1 << 30, 0, 1, 0, 1, 1, 10500)
    assert turned == (1, 50, 3)
    assert second == (1 << 32, 70, 1, 3500, 1 << 30, 1, 50, 3500, 3, 50, 70, -1)


def test_a_small_product_takes_few_functions(gpu: _Functions) -> None:
    a, b, c = (array_at((1 << 30) + i * (1 << 20), (64, 64), np.float32) for i in range(3))

    def product() -> None:
        e = engine()
        A, B, C = e.load((a,), owned=False), e.load((b,), owned=False), e.blank((c,))
        e.multiply(A, B, C)
        e.store(C, (c,))

    product()
    assert _functions_called(product) <= 40


def test_a_small_closure_takes_few_functions(gpu: _Functions) -> None:
    a = array_at(1 << 30, (64, 64), np.float32)

    def closure() -> None:
        e = engine()
        A = e.load((a,))
        e.run("auto", e.close, A)
        e.store(A, (a,))

    closure()
    assert _functions_called(closure) <= 40
    assert [name for name, *_ in gpu.launches[-1:]] == ["close"]


def _functions_called(work: Any) -> int:
    count = 0

    def called(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and "tests" not in frame.f_code.co_filename

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


class _Blas:
    """Stands for cuBLAS; `calls` are what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def getMathMode(self, handle: int) -> int:  # the names of CuPy's functions
        return 0

    def sgemm(self, handle: int, *arguments: Any) -> None:
        transposed_b, transposed_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc = arguments
        factors = [ctypes.cast(p, ctypes.POINTER(ctypes.c_float))[0] for p in (alpha, beta)]
        self.calls.append(((m, n, k), (a, lda, transposed_a), (b, ldb, transposed_b), (c, ldc), factors))

    def sgemmStridedBatched(self, handle: int, *arguments: Any) -> None:
        self.calls.append((*arguments[2:5], arguments[-1]))


@pytest.fixture
def cublas(gpu: _Functions, monkeypatch: pytest.MonkeyPatch) -> _Blas:
    found = _Blas()
    monkeypatch.setattr(launches, "_cublas", lambda: found)
    monkeypatch.setattr(launches, "has_blas", lambda: True)
    monkeypatch.setattr(cupy.cuda.device, "get_cublas_handle", lambda: 1)
    return found


def test_large_products_of_floats_are_left_to_cublas(gpu: _Functions, cublas: _Blas) -> None:
    """As it takes matrices by columns, they are Cᵀ ← Bᵀ Aᵀ; also from a plan that is kept, and of operands that lie by columns or apart."""
    plain = engine(PLUS_TIMES)
    m, k, n = 1000, 800, 900
    for _ in range(2):
        plain.multiply(block(1 << 20, m, k), block(1 << 28, k, n), block(1 << 32, m, n))
    a, b, c = (1 << 20, k, 0), (1 << 28, n, 0), (1 << 32, n)
    assert cublas.calls == [((m, n, k), a, b, c, [1, 0])] * 2
    found = plain.launches(block(4096, m, k), block(8192, k, n), block(1 << 30, m, n), fresh=True)
    assert found is not None
    (launch, signs), *others = found
    launch.start((4096, 8192, 1 << 30, 8192, 0, 0), (0, 0))
    assert (others, signs, cublas.calls[-1][1][0]) == ([], None, 4096)
    by_columns = Block((array_at(1 << 20, (1, m, k), np.float32, (4 * m * k, 4, 4 * m)),))
    plain.multiply_add(by_columns, block(1 << 28, k, n, pitch=n + 3), block(1 << 32, m, n))
    assert cublas.calls[-1] == ((m, n, k), (1 << 20, m, 1), (1 << 28, n + 3, 0), c, [1, 1])
    stack = [Block((array_at(x << 30, (16, 300, 300), np.float32),)) for x in (1, 2, 3)]
    plain.multiply(*stack)
    assert cublas.calls[-1] == (300, 300, 300, 16)
    assert not gpu.launches


def test_small_products_of_floats_and_those_in_their_own_place_are_not(gpu: _Functions, cublas: _Blas) -> None:
    plain = engine(PLUS_TIMES)
    plain.multiply(block(1 << 20, 64, 64), block(1 << 28, 64, 64), block(1 << 32, 64, 64))
    own = block(1 << 20, 1000, 1000)
    plain.multiply(own, block(1 << 28, 1000, 1000), own)
    reversed_rows = Block((own.values[0][:, :, ::-1],))
    plain.multiply(reversed_rows, block(1 << 28, 1000, 1000), block(1 << 32, 1000, 1000))
    assert not cublas.calls
    assert gpu.launches
