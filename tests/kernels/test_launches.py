"""What engines keep between calls: launches by how matrices lie, scratch, code. Calls that differ in anything else do not mix them up."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import BOOLEAN, MAX_MIN, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algorithms.search import searches_for
from semiring.arrays import threads
from semiring.arrays.overlap import address
from semiring.arrays.threads import return_scratch, take_scratch
from semiring.kernels.cpu import boolean
from semiring.kernels.cpu.boolean import BooleanEngine
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine
from semiring.kernels.select import engine_for
from semiring.product import matmul
from tests.kernels.samples import Array

F4, F8 = (np.dtype(np.float32),), (np.dtype(np.float64),)
BOOL = (np.dtype(bool),)


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 9, shape).astype(np.float64)


# Launches.

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": np.copy,
    "Fortran": lambda x: x.copy(order="F"),
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "within rows": lambda x: np.hstack([x, x])[:, : x.shape[1]],
    "unaligned": lambda x: unaligned(x),
}


def unaligned(x: Array) -> Array:
    """A field of packed records, whose rows begin at odd addresses."""
    records = np.zeros(x.shape, dtype=np.dtype([("byte", "u1"), ("value", x.dtype)]))
    records["value"] = x
    field: Array = records["value"]
    return field


def test_different_strides_of_one_shape() -> None:
    """All of them in turn, twice, with one engine."""
    a, b = numbers((9, 9)), numbers((9, 9), 1)
    engine = CpuEngine(MIN_PLUS, F8)
    expected, winners = matmul(a, b, MIN_PLUS, device="reference", witness=True)
    for names in [*itertools.product(LAYOUTS, repeat=3)] * 2:
        x, y, out = (LAYOUTS[name](v) for name, v in zip(names, (a, b, np.zeros((9, 9))), strict=True))
        engine.multiply(Block((x,)), Block((y,)), Block((out,)))
        np.testing.assert_array_equal(out, expected)
        via = LAYOUTS[names[0]](np.full((9, 9), -1, np.int32))
        engine.multiply(Block((x,)), Block((y,)), Block((out,), via))
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(via, winners)


def test_different_strides_of_one_pivot_block() -> None:
    a = numbers((9, 9))
    engine = CpuEngine(MIN_PLUS, F8)
    closed = a.copy()
    via = np.full((9, 9), -1, np.int32)
    ReferenceEngine(MIN_PLUS, F8).close(Block((closed,), via, 5, 5))
    for name in [*LAYOUTS] * 2:
        x, y, winners = LAYOUTS[name](a), LAYOUTS[name](a), LAYOUTS[name](np.full((9, 9), -1, np.int32))
        engine.close(Block((x,)))
        engine.close(Block((y,), winners, 5, 5))
        for found, expected in ((x, closed), (y, closed), (winners, via)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("fresh", [False, True])
def test_operands_that_meet_the_result_in_one_call_and_not_in_the_next(witness: bool, fresh: bool) -> None:
    """Blocks of one matrix, all of the same shape and strides: apart, the same, and shifted by rows, columns or both."""
    corners = [(0, 0), (0, 8), (8, 0), (4, 0), (0, 4), (4, 4), (3, 5)]
    whole = numbers((16, 16))
    engine, reference = CpuEngine(MIN_PLUS, F8), ReferenceEngine(MIN_PLUS, F8)
    for _ in range(2):
        for places in itertools.product(corners, repeat=3):
            results = []
            for each in (engine, reference):
                matrix, via = whole.copy(), np.full((8, 8), -1, np.int32) if witness else None
                a, b, c = (matrix[i : i + 8, j : j + 8] for i, j in places)
                (each.multiply if fresh else each.multiply_add)(Block((a,), None, 0, 3), Block((b,)), Block((c,), via))
                results.append((matrix, via))
            np.testing.assert_array_equal(results[0][0], results[1][0])
            if witness:
                np.testing.assert_array_equal(results[0][1], results[1][1])


def test_components_that_meet_crosswise() -> None:
    """Structured elements: the first component of an operand is the second one of the result, and the other way round."""
    pairs = Semiring(
        "pairs", lambda a, b: (min(a[0], b[0]), max(a[1], b[1])), lambda a, b: (a[0] + b[0], min(a[1], b[1])), (np.inf, 0), (0, np.inf)
    )
    engine, reference = CpuEngine(pairs, F8 * 2), ReferenceEngine(pairs, F8 * 2)
    for order in [(0, 1), (1, 0), (0, 0), (2, 3), (2, 1)] * 2:
        results = []
        for each in (engine, reference):
            arrays = [numbers((7, 7), seed) for seed in range(4)]
            C = Block((arrays[0], arrays[1]))
            each.multiply_add(Block((arrays[order[0]], arrays[order[1]])), Block((arrays[2], arrays[3])), C)
            results.append(C.values)
        for found, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_signed_is_no_part_of_another_engines_launches() -> None:
    """∞ plus a negative integer counts as ∞ only where that has been said; a fresh engine has not heard of it."""
    dtypes = (np.dtype(np.int16),)
    top = np.iinfo(np.int16).max
    a, b = np.array([[top, 3]], np.int16), np.array([[-2], [top]], np.int16)

    def product(*, signed: bool) -> int:
        engine = engine_for(MIN_PLUS, dtypes, "cpu")
        assert not engine.signed
        engine.signed = signed
        C = Block((np.empty((1, 1), np.int16),))
        engine.multiply(Block((a,)), Block((b,)), C)
        return int(C.values[0].item())

    assert [product(signed=signed) for signed in (True, False, True)] == [top, product(signed=False), top]
    assert product(signed=False) != top


def test_one_shape_in_several_threads() -> None:
    """Each has scratch of its own, whatever the others compute in theirs."""
    cases = [(semiring, dtype, n) for semiring in (MIN_PLUS, MAX_MIN, PLUS_TIMES) for dtype in (np.float32, np.float64) for n in (16, 90)]
    operands = {n: [numbers((n, n), seed) for seed in range(4)] for n in (16, 90)}
    expected = {
        (semiring, i, n): matmul(operands[n][i], operands[n][3 - i], semiring, device="reference")
        for semiring, _, n in cases
        for i in range(4)
    }
    begin = threading.Barrier(4)

    def work(i: int) -> None:
        begin.wait()
        for _ in range(30):
            for semiring, dtype, n in cases:
                a, b = (operands[n][j].astype(dtype) for j in (i, 3 - i))
                np.testing.assert_array_equal(matmul(a, b, semiring, threads=1), expected[semiring, i, n])

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, i) for i in range(4)]:
            done.result()


@pytest.mark.parametrize("witness", [False, True])
def test_nobodys_arrays_are_kept(witness: bool) -> None:
    engine = CpuEngine(MIN_PLUS, F8)
    kept = []
    for same in (False, True):
        arrays = [numbers((6, 6)), numbers((6, 6), 1), np.full((6, 6), -1, np.int32)]
        C = Block((numbers((6, 6), 2),), arrays[2] if witness else None)
        engine.multiply_add(C if same else Block((arrays[0],)), Block((arrays[1],)), C)
        engine.close(C)
        kept += [weakref.ref(v) for v in (*arrays, *C.values)]
        del arrays, C
    packed_engine = BooleanEngine(BOOLEAN, BOOL)
    bits = numbers((6, 6)) > 4
    A = packed_engine.load((bits,))
    packed_engine.close(A)
    packed_engine.store(A, (bits,))
    kept += [weakref.ref(bits), weakref.ref(A.values[0])]
    del bits, A
    gc.collect()
    assert [r for r in kept if r() is not None] == []


def test_few_launches_are_kept() -> None:
    kernels = kernels_for(MIN_PLUS, F8)
    engine = CpuEngine(MIN_PLUS, F8)
    for n in range(1, 200):
        engine.close(Block((np.zeros((n % 9 + 1, n % 9 + 1 + n))[:, : n % 9 + 1],)))
        engine.multiply(Block((np.zeros((2, n)),)), Block((np.zeros((n, 2)),)), Block((np.zeros((2, 2)),)))
    for launches in (kernels.product_launch, kernels.pivot_launch):
        info = launches.cache_info()
        assert info.maxsize is not None
        assert 1 < info.currsize <= info.maxsize <= 128


# Scratch.


@pytest.fixture
def none_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_free", type(threads._free)(maxlen=threads._MOST))


@pytest.mark.usefixtures("none_free")
def test_scratch_has_one_owner_and_is_used_again() -> None:
    first, second = take_scratch(1000), take_scratch(1000)
    assert first.address % 64 == second.address % 64 == 0
    assert abs(first.address - second.address) >= 1000
    for piece in (first, second):
        begin = address(piece.owner)
        assert begin <= piece.address
        assert piece.address + piece.size <= begin + piece.owner.nbytes
    return_scratch(first)
    assert take_scratch(900) is first
    assert take_scratch(900) is not first
    return_scratch(first)
    assert take_scratch(1001).size == 1001


@pytest.mark.usefixtures("none_free")
def test_not_all_scratch_is_kept() -> None:
    return_scratch(take_scratch(threads._LARGEST + 1))
    assert not threads._free
    pieces = [take_scratch(8) for _ in range(threads._MOST + 9)]
    for piece in pieces:
        return_scratch(piece)
    assert list(threads._free) == pieces[9:]
    take_scratch(threads._LARGEST + 1)
    assert len(threads._free) == threads._MOST


# Addresses.


def test_addresses_are_those_that_numpy_tells() -> None:
    class Own(np.ndarray[Any, Any]):
        """What a caller derives from an array."""

    whole = np.zeros((6, 7))
    frozen = whole.copy()
    frozen.flags.writeable = False
    arrays = [
        *(whole, whole[1:, 2:], whole[::-1, ::-1], whole.T, frozen, whole.view(Own), unaligned(whole), np.zeros((0, 3)), np.array(5)),
        *(np.broadcast_to(np.float32(1), (3, 3)), np.zeros((2, 2), dtype=object), np.frombuffer(b"12345678", np.int16)),
    ]
    assert [address(v) for v in arrays] == [v.ctypes.data for v in arrays]


# Engines.


def test_engines_are_fresh_and_what_is_heavy_is_shared() -> None:
    engines = [engine_for(MIN_PLUS, F8, "cpu") for _ in range(2)]
    assert engines[0] is not engines[1]
    assert engines[0]._kernels is engines[1]._kernels  # type: ignore[attr-defined]  # of the CPU engine
    engines[0].signed = True
    assert not engines[1].signed
    assert searches_for(MIN_PLUS, F8, "cpu") is not searches_for(MIN_PLUS, F8, "cpu")


def test_the_bits_machine_code_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = numbers((5, 5)) > 4
    matmul(bits, bits, BOOLEAN)
    monkeypatch.setattr(boolean, "compile_library", None)
    matmul(bits, bits, BOOLEAN)
    engine_for(BOOLEAN, BOOL, "cpu").add_identity(engine_for(BOOLEAN, BOOL, "cpu").load((bits,)))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 72, 511, 512, 513, 1100])
def test_bits_are_packed_and_unpacked_at_every_width(n: int) -> None:
    """Bytes other than 0 are 1, rows may begin anywhere, and nothing beside the matrix is touched."""
    rng = np.random.default_rng(n)
    octets = (rng.integers(0, 256, (5, n + 3)) * rng.integers(0, 2, (5, n + 3))).astype(np.uint8)
    engine = BooleanEngine(BOOLEAN, BOOL)
    A = engine.load((octets.view(bool)[:, 1 : n + 1],))
    (words,) = A.values
    assert np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, n:].sum() == 0
    out = np.full((5, n + 3), 77, np.uint8)
    engine.store(A, (out.view(bool)[::-1, 1 : n + 1],))
    np.testing.assert_array_equal(out[::-1, 1 : n + 1], octets[:, 1 : n + 1] != 0)
    assert (out[:, [0, n + 1, n + 2]] == 77).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_many_rows_are_packed_by_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boolean, "_CONVERTED", 1000)
    bits = np.random.default_rng(0).random((2, 95, 130)) < 0.5
    engine = BooleanEngine(BOOLEAN, BOOL, threads)
    A, out = engine.load((bits,)), np.empty_like(bits)
    engine.store(A, (out,))
    np.testing.assert_array_equal(out, bits)


def test_the_environment_is_read_for_each_engine_and_cores_are_counted_late(monkeypatch: pytest.MonkeyPatch) -> None:
    from semiring.arrays import threads

    monkeypatch.delenv("SEMIRING_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cores", lambda: 1 / 0)
    engine = engine_for(MIN_PLUS, F8, "cpu")
    engine.multiply(Block((numbers((6, 6)),)), Block((numbers((6, 6)),)), Block((numbers((6, 6)),)))
    monkeypatch.setattr(threads, "_cores", lambda: 7)
    assert engine.threads == 7  # type: ignore[attr-defined]  # of the CPU engine
    monkeypatch.setenv("SEMIRING_NUM_THREADS", "3")
    assert [e.threads for e in (CpuEngine(MIN_PLUS, F8), BooleanEngine(BOOLEAN, BOOL), CpuEngine(MIN_PLUS, F8, 2))] == [3, 3, 2]


# What a call costs, in what can be counted.


def calls(work: Callable[[], object]) -> int:
    """How many Python functions are called, when everything has been seen before."""
    import sys

    work()
    found = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found - 1


def test_small_operations_take_few_calls() -> None:
    engine = engine_for(MIN_PLUS, F4, "cpu")
    A, B, C = (Block((numbers((16, 16), i).astype(np.float32),)) for i in range(3))
    assert calls(lambda: engine_for(MIN_PLUS, F4, "cpu")) <= 12
    assert calls(lambda: engine.multiply(A, B, C)) <= 15
    assert calls(lambda: engine.multiply_add(A, C, C)) <= 22
    assert calls(lambda: engine.close(A)) <= 10
