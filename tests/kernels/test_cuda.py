"""The CUDA engine gives the reference's elements and witnesses: every semiring, dtype, shape and layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import DISTANCE_HOPS, MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_idempotent
from semiring.algorithms.blocked import blocked
from semiring.common.errors import DivergentPivot
from semiring.kernels import machine
from semiring.kernels.cuda.blocks import aligned_copy
from semiring.kernels.cuda.kernels import kernels_for
from semiring.kernels.cuda.tile import SplitK, split_k
from semiring.kernels.engine import Block
from semiring.kernels.limits import inner_infinity, largest_beside
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from tests.kernels.samples import CASES, SELECTIVE, DTypes, Values, assert_equal, elements, laid_out, name

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

SHAPES = [(3, 4, 0), (0, 4, 2), (3, 0, 2), (1, 1, 1), (5, 70, 3), (64, 128, 16), (65, 129, 17), (130, 61, 200), (33, 300, 1)]


def engine(semiring: Semiring, dtypes: DTypes) -> Any:
    from semiring.kernels.cuda.engine import CudaEngine

    found = CudaEngine(semiring, dtypes)
    found.signed = dtypes[0].kind == "i"
    return found


def device(values: Values) -> tuple[Any, ...]:
    return tuple(map(cupy.asarray, values))


def compare(semiring: Semiring, dtypes: DTypes, method: str, a: Values, b: Values, c: Values, *, witness: bool) -> None:
    reference, gpu = ReferenceEngine(semiring, dtypes), engine(semiring, dtypes)
    expected = Block(tuple(v.copy() for v in c), np.full(c[0].shape, -1, np.int32) if witness else None)
    getattr(reference, method)(Block(a), Block(b), expected)
    A, B = (gpu.load(device(x), owned=False) for x in (a, b))
    result = device(c)
    via = cupy.full(c[0].shape, -1, dtype=np.int32) if witness else None
    C = gpu.load(result, via)
    getattr(gpu, method)(A, B, C)
    gpu.store(C, result)
    assert_equal(tuple(v.get() for v in result), expected.values, close=semiring.name == "log")
    if via is not None:
        assert_equal(via.get(), expected.via)


@pytest.mark.parametrize("method", ["multiply", "multiply_add"])
@pytest.mark.parametrize(
    ("witness", "semiring", "dtypes"), [*((False, *case) for case in CASES), *((True, *case) for case in SELECTIVE)], ids=name
)
def test_products(witness: bool, semiring: Semiring, dtypes: DTypes, method: str) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in SHAPES:
        a, b, c = (elements(semiring, dtypes, shape, rng) for shape in ((m, k), (k, n), (m, n)))
        compare(semiring, dtypes, method, a, b, c, witness=witness)


@pytest.mark.parametrize(("semiring", "dtypes"), CASES, ids=name)
def test_pivot_blocks(semiring: Semiring, dtypes: DTypes) -> None:
    rng = np.random.default_rng(2)
    for n in (1, 2, 31, 64, 100, 128):
        gpu, reference = engine(semiring, dtypes), ReferenceEngine(semiring, dtypes)
        if n > gpu.pivot:
            continue
        a = elements(semiring, dtypes, (n, n), rng)
        if semiring.name in ("min-plus", "distance-hops"):
            a = tuple(np.abs(v) if v.dtype.kind in "if" else v for v in a)
        for witness in (False, True):
            if not is_idempotent(semiring, dtypes) or (witness and (semiring, dtypes) not in SELECTIVE):
                continue
            expected = Block(tuple(v.copy() for v in a), np.full((n, n), -1, np.int32) if witness else None)
            result, via = device(a), cupy.full((n, n), -1, dtype=np.int32) if witness else None
            A = gpu.load(result, via)
            gpu.close(A)
            gpu.store(A, result)
            try:
                reference.close(expected)
            except DivergentPivot:
                with pytest.raises(DivergentPivot):
                    gpu.verify()
                continue
            gpu.verify()
            assert_equal(tuple(v.get() for v in result), expected.values, close=semiring.name == "log")
            if via is not None:
                assert_equal(via.get(), expected.via)


def test_elimination_inverts() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 7, 64):
        a = rng.random((n, n)) / (2 * n)
        gpu = engine(PLUS_TIMES, (a.dtype,))
        result = device((a,))
        A = gpu.load(result)
        gpu.eliminate(A)
        gpu.verify()
        np.testing.assert_allclose(result[0].get(), np.linalg.inv(np.eye(n) - a), rtol=1e-10)


@pytest.mark.parametrize("layout", ["C", "Fortran", "stepped", "reversed", "inner block"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_pivot_blocks_of_any_layout(layout: str, dtype: str) -> None:
    """Rows that can be read by vectors and rows that cannot."""
    rng, d = np.random.default_rng(5), (np.dtype(dtype),)
    for n in (3, 60, 63, 64, 124, 128):
        gpu, reference = engine(MIN_PLUS, d), ReferenceEngine(MIN_PLUS, d)
        if n > gpu.pivot:
            continue
        a = tuple(map(np.abs, elements(MIN_PLUS, d, (n, n), rng)))
        for witness in (False, True):
            expected = Block(tuple(v.copy() for v in a), np.full((n, n), -1, np.int32) if witness else None)
            reference.close(expected)
            result, via = (_like(laid_out(a[0], layout)),), cupy.full((n, n), -1, dtype=np.int32) if witness else None
            A = gpu.load(result, via)
            gpu.close(A)
            gpu.store(A, result)
            gpu.verify()
            assert_equal((result[0].get(),), expected.values)
            if via is not None:
                assert_equal(via.get(), expected.via)


@pytest.mark.parametrize(("dtype", "n"), [("float32", 128), ("float32", 64), ("float64", 64)])
def test_the_first_of_divergent_pivots_is_told(dtype: str, n: int) -> None:
    for vertices in ((0, n - 1), (1, 2), (n // 2 + 1, n // 2 + 2), (n - 1,)):
        for loop in (True, False):
            a = np.full((n, n), np.inf, dtype=dtype)
            for v in vertices:
                if loop:
                    a[v, v] = -1
                else:  # of two edges; the later of its vertices has the pivot
                    a[v, 3], a[3, v] = 1, -2
            gpu = engine(MIN_PLUS, (a.dtype,))
            gpu.close(gpu.load(device((a,))))
            with pytest.raises(DivergentPivot) as found:
                gpu.verify()
            assert found.value.vertex == (vertices[0] if loop else max(vertices[0], 3))


def test_a_divergent_pivot_is_found() -> None:
    a = np.full((5, 5), np.inf)
    a[3, 3] = -1
    gpu = engine(MIN_PLUS, (a.dtype,))
    A = gpu.load(device((a,)))
    gpu.close(Block(A.values, None, 10, 10))
    with pytest.raises(DivergentPivot) as found:
        gpu.verify()
    assert found.value.vertex == 13
    gpu.verify()


@pytest.mark.parametrize("layout", ["C", "Fortran", "transposed", "stepped", "reversed", "inner block"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_layouts(layout: str, dtype: str) -> None:
    rng, d = np.random.default_rng(4), (np.dtype(dtype),)
    for m, n, k in ((65, 129, 17), (130, 64, 96)):
        a, b, c = (elements(MIN_PLUS, d, shape, rng) for shape in ((m, k), (k, n), (m, n)))
        for witness in (False, True):
            reference, gpu = ReferenceEngine(MIN_PLUS, d), engine(MIN_PLUS, d)
            expected = Block(tuple(v.copy() for v in c), np.full((m, n), -1, np.int32) if witness else None)
            reference.multiply_add(Block(a), Block(b), expected)
            A, B = (gpu.load((_like(laid_out(x[0], layout)),), owned=False) for x in (a, b))
            result, via = device(c), cupy.full((m, n), -1, dtype=np.int32) if witness else None
            C = gpu.load(result, via)
            gpu.multiply_add(A, B, C)
            gpu.store(C, result)
            assert_equal((result[0].get(),), expected.values)
            if via is not None:
                assert_equal(via.get(), expected.via)


def _like(array: np.ndarray[Any, Any]) -> Any:
    """A GPU array with the strides of `array`, as far as they can be had."""
    low, high = (sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if (s < 0) == below) for below in (True, False))
    base = cupy.empty((high - low) // array.itemsize + 1, dtype=array.dtype)
    view = cupy.ndarray(array.shape, array.dtype, base.data - low, strides=array.strides)
    view[...] = cupy.asarray(np.ascontiguousarray(array))
    return view


@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "batch"])
@pytest.mark.parametrize("witness", [False, True])
def test_operands_that_are_part_of_the_result(witness: bool, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.cuda.engine.GPU_SCRATCH", 20_000)
    kernels_for.cache_clear()  # and the launches that were planned with other limits
    rng, d = np.random.default_rng(5), (np.dtype(np.float32),)
    n = 300
    a = elements(MIN_PLUS, d, (*batch, n, n), rng)
    first, rest = slice(0, 100), slice(100, n)
    whole = slice(0, n)
    for left, right, out in (
        ((first, first), (first, rest), (first, rest)),
        ((rest, first), (first, first), (rest, first)),
        ((rest, first), (first, rest), (rest, rest)),
        ((whole, whole), (whole, whole), (whole, whole)),
    ):
        reference, gpu = ReferenceEngine(MIN_PLUS, d), engine(MIN_PLUS, d)
        expected = Block(tuple(v.copy() for v in a), np.full(a[0].shape, -1, np.int32) if witness else None)
        result, via = device(a), cupy.full(a[0].shape, -1, dtype=np.int32) if witness else None
        loaded = gpu.load(result, via)
        for one, X in ((reference, expected), (gpu, loaded)):
            one.multiply_add(X[left], X[right], X[out])
        assert_equal(tuple(v.get() for v in result), expected.values)
        if via is not None:
            assert_equal(via.get(), expected.via)


def test_batches() -> None:
    rng, d = np.random.default_rng(6), (np.dtype(np.float32),)
    a, b, c = (elements(MIN_PLUS, d, (7, *shape), rng) for shape in ((33, 20), (20, 65), (33, 65)))
    compare(MIN_PLUS, d, "multiply_add", a, b, c, witness=False)
    compare(MIN_PLUS, d, "multiply_add", a, b, c, witness=True)
    gpu = engine(MIN_PLUS, d)
    a = tuple(np.abs(v) for v in elements(MIN_PLUS, d, (9, 50, 50), rng))
    result = device(a)
    A = gpu.load(result)
    gpu.add_identity(A)
    gpu.close(A)
    gpu.verify()
    for i in range(9):
        expected = Block((a[0][i].copy(),))
        reference = ReferenceEngine(MIN_PLUS, d)
        reference.add_identity(expected)
        reference.close(expected)
        assert_equal((result[0][i].get(),), expected.values)


@pytest.mark.parametrize("witness", [False, True])
def test_a_result_that_is_an_operand_of_many_parts(witness: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.cuda.engine.GPU_SCRATCH", 20_000)
    kernels_for.cache_clear()  # and the launches that were planned with other limits
    rng, d = np.random.default_rng(7), (np.dtype(np.float32),)
    a, b = elements(MIN_PLUS, d, (300, 300), rng), elements(MIN_PLUS, d, (300, 300), rng)
    for left in (True, False):
        reference, gpu = ReferenceEngine(MIN_PLUS, d), engine(MIN_PLUS, d)
        expected = Block(tuple(v.copy() for v in a), np.full((300, 300), -1, np.int32) if witness else None)
        result, via = device(a), cupy.full((300, 300), -1, dtype=np.int32) if witness else None
        C, other = gpu.load(result, via), gpu.load(device(b), owned=False)
        for one, X, Y in ((reference, expected, Block(b)), (gpu, C, other)):
            one.multiply_add(X if left else Y, Y if left else X, X)
        assert_equal((result[0].get(),), expected.values)
        if via is not None:
            assert_equal(via.get(), expected.via)


def test_batches_that_are_shifted_against_each_other() -> None:
    rng, d = np.random.default_rng(8), (np.dtype(np.float32),)
    (a,) = elements(MIN_PLUS, d, (5, 40, 40), rng)
    (b,) = elements(MIN_PLUS, d, (4, 40, 40), rng)
    buffer = cupy.asarray(a)
    gpu = engine(MIN_PLUS, d)
    A, B, C = gpu.load((buffer[:-1],)), gpu.load((cupy.asarray(b),)), gpu.blank((buffer[1:],))
    gpu.multiply(A, B, C)
    expected = Block((np.empty((4, 40, 40), np.float32),))
    ReferenceEngine(MIN_PLUS, d).multiply(Block((a[:-1],)), Block((b,)), expected)
    assert_equal((buffer[1:].get(),), expected.values)


def test_components_that_lie_differently() -> None:
    rng = np.random.default_rng(9)
    d = (np.dtype(np.float64),) * 2
    a, b = (elements(DISTANCE_HOPS, d, (33, 33), rng) for _ in range(2))
    expected = Block(tuple(np.empty((33, 33)) for _ in d))
    ReferenceEngine(DISTANCE_HOPS, d).multiply(Block(a), Block(b), expected)
    gpu = engine(DISTANCE_HOPS, d)
    result = cupy.empty((33, 33)), cupy.empty((33, 33), order="F")
    A = gpu.load((cupy.asarray(a[0]), cupy.asfortranarray(cupy.asarray(a[1]))), owned=False)
    C = gpu.blank(result)
    gpu.multiply(A, gpu.load(device(b), owned=False), C)
    gpu.store(C, result)
    assert_equal(tuple(v.get() for v in result), expected.values)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32"])
@pytest.mark.parametrize("semiring", [MIN_PLUS, MAX_PLUS], ids=str)
def test_integers_up_to_the_bounds(semiring: Semiring, dtype: str) -> None:
    """The largest sums that are allowed, ∞ + ∞, and every remainder of k by the steps that a register and a slice take."""
    d = np.dtype(dtype)
    if d not in semiring.supported_dtypes:
        pytest.skip("no such elements")
    rng, ((zero,), _) = np.random.default_rng(10), semiring.identities((d,))
    sign, best = (1, np.minimum) if semiring is MIN_PLUS else (-1, np.maximum)
    most = (abs(int(zero)) // 2 - 1) // 2
    for m, n, k in ((65, 136, 32), (64, 128, 31), (3, 8, 1), (70, 129, 2), (129, 257, 97), (64, 136, 64)):
        a, b = (np.where(rng.random(shape) < 0.3, zero, sign * rng.integers(most - 9, most + 1, shape)) for shape in ((m, k), (k, n)))
        infinite = (a == zero)[:, :, None] | (b == zero)
        sums = np.where(infinite, zero, a[:, :, None].astype(np.int64) + b)
        expected = best.reduce(sums, axis=1)
        result = matmul(cupy.asarray(a.astype(d)), cupy.asarray(b.astype(d)), semiring)
        np.testing.assert_array_equal(result.get(), expected)
        old = rng.integers(0, most, (m, n)) * sign
        result = matmul(cupy.asarray(a.astype(d)), cupy.asarray(b.astype(d)), semiring, c=cupy.asarray(old.astype(d)))
        np.testing.assert_array_equal(result.get(), best(old, expected))


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_negative_integers_up_to_the_bounds(dtype: str) -> None:
    rng, d = np.random.default_rng(11), np.dtype(dtype)
    zero = np.iinfo(d).max
    most = largest_beside(inner_infinity(int(zero)), signed=True)
    a, b = (np.where(rng.random(shape) < 0.3, zero, rng.choice([-most, most, 0, 1], shape)) for shape in ((70, 45), (45, 136)))
    sums = np.where((a == zero)[:, :, None] | (b == zero), zero, a[:, :, None].astype(np.int64) + b)
    result = matmul(cupy.asarray(a.astype(d)), cupy.asarray(b.astype(d)), MIN_PLUS)
    np.testing.assert_array_equal(result.get(), sums.min(1))


@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32"])
def test_large_products_of_unaligned_operands(dtype: str, witness: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands are copied in aligned rows, slab by slab, whatever the layout."""
    for limit in ("ALIGNED_STEPS", "ALIGNED_SIDE", "ALIGNED_DEPTH"):
        monkeypatch.setattr(machine, limit, 1)
    monkeypatch.setattr("semiring.kernels.cuda.engine.GPU_SCRATCH", 100_000)
    kernels_for.cache_clear()  # and the launches that were planned with other limits
    rng, d = np.random.default_rng(12), (np.dtype(dtype),)
    a, b, c = (elements(MIN_PLUS, d, shape, rng) for shape in ((131, 521), (521, 203), (131, 203)))
    for layout in ("C", "Fortran", "inner block"):
        for method in ("multiply", "multiply_add"):
            reference, gpu = ReferenceEngine(MIN_PLUS, d), engine(MIN_PLUS, d)
            expected = Block(tuple(v.copy() for v in c), np.full(c[0].shape, -1, np.int32) if witness else None)
            getattr(reference, method)(Block(a, None, 7, 11), Block(b, None, 11, 0), expected)
            A, B = (gpu.load((_like(laid_out(x[0], layout)),), owned=False) for x in (a, b))
            result, via = device(c), cupy.full(c[0].shape, -1, dtype=np.int32) if witness else None
            C = gpu.load(result, via)
            getattr(gpu, method)(Block(A.values, None, 7, 11), Block(B.values, None, 11, 0), C)
            gpu.store(C, result)
            assert_equal((result[0].get(),), expected.values)
            if via is not None:
                assert_equal(via.get(), expected.via)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_vectors_that_reach_beyond_a_row(dtype: str) -> None:
    """Aligned rows whose length is no multiple of a vector; what lies behind them takes no part."""
    rng, d = np.random.default_rng(13), (np.dtype(dtype),)
    a, b = elements(MIN_PLUS, d, (67, 83), rng), elements(MIN_PLUS, d, (83, 141), rng)
    wide = [cupy.full((len(x[0]), 160), -100, dtype=d[0]) for x in (a, b)]
    views = [w[:, : x[0].shape[1]] for w, x in zip(wide, (a, b), strict=True)]
    for view, x in zip(views, (a, b), strict=True):
        view[...] = cupy.asarray(x[0])
    expected = Block((np.empty((67, 141), d[0]),), np.full((67, 141), -1, np.int32))
    ReferenceEngine(MIN_PLUS, d).multiply(Block(a), Block(b), expected)
    for witness in (False, True):
        gpu = engine(MIN_PLUS, d)
        result, via = cupy.empty((67, 141), d[0]), cupy.full((67, 141), -1, dtype=np.int32) if witness else None
        C = gpu.blank((result,), via)
        gpu.multiply(*(gpu.load((v,), owned=False) for v in views), C)
        gpu.store(C, (result,))
        assert_equal((result.get(),), expected.values)
        if via is not None:
            assert_equal(via.get(), expected.via)


def test_long_sums_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.cuda.engine._SLAB", 128)
    kernels_for.cache_clear()  # and the launches that were planned with other limits
    for semiring, dtype in ((MIN_PLUS, "float32"), (MIN_PLUS, "int16"), (PLUS_TIMES, "float64")):
        rng, d = np.random.default_rng(14), (np.dtype(dtype),)
        a, b, c = (elements(semiring, d, shape, rng) for shape in ((33, 700), (700, 65), (33, 65)))
        for method in ("multiply", "multiply_add"):
            compare(semiring, d, method, a, b, c, witness=False)
            if semiring is MIN_PLUS:
                compare(semiring, d, method, a, b, c, witness=True)


@pytest.mark.parametrize(("semiring", "dtypes"), [*SELECTIVE, (PLUS_TIMES, (np.dtype(np.float64),))], ids=name)
def test_split_k(semiring: Semiring, dtypes: DTypes, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU of few multiprocessors the last rows of C, or all of them, are split along k."""
    from semiring.kernels.cuda import engine as module

    splits: list[SplitK | None] = []
    monkeypatch.setattr("semiring.kernels.cuda.tile._DEPTH", 64)
    for cost in ("SPLIT_K_ELEMENT", "SPLIT_K_LAUNCH"):
        monkeypatch.setattr(machine, cost, 0)

    def spy(*problem: Any) -> SplitK | None:
        splits.append(split_k(*problem))
        return splits[-1]

    monkeypatch.setattr(module, "split_k", spy)
    rng = np.random.default_rng(16)
    for multiprocessors in (1, 5, 100):
        kernels_for.cache_clear()  # and the launches that were planned with other limits
        few = replace(engine(semiring, dtypes)._kernels.device, multiprocessors=multiprocessors)
        monkeypatch.setattr(kernels_for(semiring, dtypes, 0), "device", few)
        for m, n, k in ((203, 131, 200), (771, 203, 130), (1, 700, 300)):
            a, b, c = (elements(semiring, dtypes, shape, rng) for shape in ((m, k), (k, n), (m, n)))
            for method in ("multiply", "multiply_add"):
                compare(semiring, dtypes, method, a, b, c, witness=False)
    found = [s for s in splits if s]
    assert bool(found) == semiring.selects
    assert not found or {s.rows > 0 for s in found} == {False, True}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "semiring",
    [
        Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1)),
        Semiring("discounted", add=min, mul=lambda a, b: (a + b + 0.1) * 0.3, zero=np.inf, one=0),
        Semiring("capped", add=max, mul=lambda a, b: min(a * b / 3, 0.1), zero=0, one=1, domain=(0, 1)),
    ],
    ids=str,
)
def test_what_waits_for_the_end_of_a_sum(semiring: Semiring, dtype: str) -> None:
    """The bits are those of a sum of which every term is computed and rounded in whole."""
    rng, d = np.random.default_rng(17), (np.dtype(dtype),)
    for m, n, k in ((5, 70, 3), (65, 129, 67), (33, 300, 1)):
        a, b, c = ((rng.random(shape).astype(dtype),) for shape in ((m, k), (k, n), (m, n)))
        for method in ("multiply", "multiply_add"):
            compare(semiring, d, method, a, b, c, witness=False)
            compare(semiring, d, method, a, b, c, witness=True)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_copies_in_aligned_rows(dtype: str) -> None:
    rng = np.random.default_rng(15)
    whole = cupy.asarray(rng.integers(0, 100, (3, 70, 90)).astype(dtype))
    for v in (
        whole,
        whole[:, ::-1, 5:50],
        whole[:, 1:, ::3],
        whole.transpose(0, 2, 1),
        whole[::2],
        cupy.broadcast_to(whole[:, :1], (3, 40, 90)),
    ):
        for transposed in (False, True):
            (found,) = aligned_copy(Block((v,)), transposed=transposed).values
            assert found.strides[1] % 16 == 0
            np.testing.assert_array_equal(found.get(), (v.transpose(0, 2, 1) if transposed else v).get())


def test_the_end_of_a_sum_needs_no_annihilator() -> None:
    """Steps beyond k are not taken, not even of zeros."""
    longest = Semiring("longest", add=max, mul=lambda a, b: a + b + 1, zero=0, one=-1)
    rng = np.random.default_rng(16)
    for dtype in ("int32", "float32", "int64"):
        for k in (1, 5, 16, 33):
            a, b = (-rng.integers(1, 9, shape).astype(dtype) for shape in ((20, k), (k, 30)))
            a, b = (x if dtype != "float32" else x / 2 for x in (a, b))
            result = matmul(cupy.asarray(a), cupy.asarray(b), longest)
            np.testing.assert_array_equal(result.get(), np.maximum((a[:, :, None] + b + 1).max(1), 0))


@pytest.mark.parametrize(("semiring", "dtypes"), SELECTIVE, ids=name)
def test_witnesses_of_shallow_products(semiring: Semiring, dtypes: DTypes) -> None:
    """Slices that stay in shared memory: every end of a slab and of a slice, edges of tiles, ties, and results that are hardly improved."""
    rng = np.random.default_rng(17)
    for m, n, k in ((65, 130, 64), (64, 64, 63), (1, 200, 33), (70, 3, 32), (67, 66, 9), (5, 5, 1), (40, 40, 65)):
        a, b, c = (elements(semiring, dtypes, shape, rng) for shape in ((m, k), (k, n), (m, n)))
        for method in ("multiply", "multiply_add"):
            compare(semiring, dtypes, method, a, b, c, witness=True)
        nearly = tuple(np.zeros((m, n), d) for d in dtypes)
        ReferenceEngine(semiring, dtypes).multiply(Block(a), Block(b), Block(nearly))
        nearly = tuple(np.where(rng.random((m, n)) < 0.02, v, w) for v, w in zip(c, nearly, strict=True))
        compare(semiring, dtypes, "multiply_add", a, b, nearly, witness=True)


@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "batch"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32"])
def test_independent_products_with_witnesses(dtype: str, batch: tuple[int, ...]) -> None:
    """Panels are operands of themselves; the rest is of four products."""
    rng, d = np.random.default_rng(18), (np.dtype(dtype),)
    n = 300
    for first in (0, 128, 236):
        K, others = slice(first, first + 64), [slice(0, first), slice(first + 64, n)]
        a = elements(MIN_PLUS, d, (*batch, n, n), rng)
        expected, result = Block(tuple(v.copy() for v in a), np.full(a[0].shape, -1, np.int32)), device(a)
        via, gpu = cupy.full(a[0].shape, -1, dtype=np.int32), engine(MIN_PLUS, d)
        loaded = gpu.load(result, via)
        for one, X in ((ReferenceEngine(MIN_PLUS, d), expected), (gpu, loaded)):
            row, column = ((X[K, K], X[K, J], X[K, J]) for J in others), ((X[I, K], X[K, K], X[I, K]) for I in others)
            one.multiply_add_each(*row, *column)
            one.multiply_add_each(*((X[I, K], X[K, J], X[I, J]) for I in others for J in others))
        gpu.store(loaded, result)
        assert_equal((result[0].get(),), expected.values)
        assert_equal(via.get(), expected.via)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_recorded_sweeps_with_witnesses(dtype: str) -> None:
    """What is recorded counts its vertices from 0, wherever it is played; what it does not improve stays."""
    rng, d = np.random.default_rng(19), (np.dtype(dtype),)
    n, first, last = 420, 70, 400
    for _ in range(3):
        a = tuple(np.abs(v) for v in elements(MIN_PLUS, d, (n, n), rng))
        ((zero,), _) = MIN_PLUS.identities(d)
        given = np.where(a[0] == zero, -1, rng.integers(-1, n, (n, n))).astype(np.int32)
        expected, result, via = Block(tuple(v.copy() for v in a), given.copy()), device(a), cupy.asarray(given)
        gpu, reference = engine(MIN_PLUS, d), ReferenceEngine(MIN_PLUS, d)
        loaded, part = gpu.load(result, via), slice(first, last)
        gpu.run("test", lambda block, gpu=gpu: blocked(gpu, block, 64), loaded[part, part])
        gpu.verify()
        blocked(reference, expected[part, part], 64)
        gpu.store(loaded, result)
        assert_equal((result[0].get(),), expected.values)
        assert_equal(via.get(), expected.via)
