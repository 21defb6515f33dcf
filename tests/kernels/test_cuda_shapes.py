"""Products on a GPU that have kernels for their shape: stacks of small matrices, vectors, and what cuBLAS multiplies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import LOG, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError
from semiring.kernels import machine
from semiring.kernels.cuda import compiler
from semiring.kernels.engine import Block
from semiring.kernels.overflow.products import ProductChecks
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from semiring.solve import closure
from tests.kernels.samples import CASES, SELECTIVE, DTypes, Values, assert_equal, elements, name
from tests.kernels.test_cuda import compare, device, engine
from tests.kernels.test_exponential import assert_within

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu


_STACKS = (
    (33, 1, 1, 1), (40, 8, 8, 8), (70, 9, 12, 3), (65, 16, 16, 16), (35, 17, 31, 5), (33, 32, 32, 32), (32, 4, 5, 0), (33, 64, 64, 64),
    (34, 60, 40, 36), (34, 47, 51, 33),
)  # fmt: skip
_THIN = (1, 5000, 2, 2), (1, 3, 4099, 16), (5, 1200, 1, 1), (3, 8, 2000, 7), (2100, 2, 2, 2), (70, 100, 5, 3), (1, 4096, 8, 0)
"""Numbers of matrices, rows, columns and steps."""


@pytest.mark.parametrize("sizes", [_STACKS, _THIN], ids=["stacks", "thin results"])
@pytest.mark.parametrize("method", ["multiply", "multiply_add"])
@pytest.mark.parametrize(
    ("witness", "semiring", "dtypes"), [*((False, *case) for case in CASES), *((True, *case) for case in SELECTIVE)], ids=name
)
def test_stacks_and_thin_results(
    witness: bool, semiring: Semiring, dtypes: DTypes, method: str, sizes: tuple[tuple[int, ...], ...]
) -> None:
    rng = np.random.default_rng(0)
    for count, m, n, k in sizes:
        shapes = (count, m, k), (count, k, n), (count, m, n)
        compare(semiring, dtypes, method, *(elements(semiring, dtypes, shape, rng) for shape in shapes), witness=witness)


@pytest.mark.parametrize("witness", [False, True])
def test_thin_results_of_any_strides_and_of_refused_numbers(witness: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((3, 4100, 5), dtype=np.float32), rng.random((3, 5, 7), dtype=np.float32)
    for x, y in ((a, b), (b.transpose(0, 2, 1), a.transpose(0, 2, 1)), (a[::-1, ::2], b[:, :, ::-1]), (a, b[0]), (a[0], b)):
        expected = matmul(x, y, "min_plus", witness=witness, device="cpu")
        for again in range(2):  # planned, and launched again
            found = matmul(cupy.asarray(x), cupy.asarray(y), "min_plus", witness=witness)
            for v, w in zip(listed(found), listed(expected), strict=True):
                np.testing.assert_array_equal(v.get(), w, err_msg=f"{again}")
    a[1, 7, 2] = np.nan
    with pytest.raises(DomainError):
        matmul(cupy.asarray(a), cupy.asarray(b), "min_plus", witness=witness)


@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize(("count", "side"), [(70_000, 4), (40, 44)])
def test_stacks_in_their_own_place_and_of_any_strides(count: int, side: int, witness: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.random((count, side, side), dtype=np.float32) for _ in range(2))

    def same(found: Any, expected: Any) -> None:
        assert_equal(tuple(v.get() for v in listed(found)), listed(expected))

    expected = matmul(a, b, "min_plus", witness=witness, device="cpu")
    for order in (np.asarray, np.asfortranarray):
        same(matmul(cupy.asarray(order(a)), cupy.asarray(order(b)), "min_plus", witness=witness), expected)
    backwards = [matmul(x[::-1, :, ::-1], y[::-1, ::-1], "min_plus", witness=witness) for x, y in ((a, b), map(cupy.asarray, (a, b)))]
    same(backwards[1], backwards[0])
    for place in (0, 1):
        left, right = map(cupy.asarray, (a, b))
        same(matmul(left, right, "min_plus", out=(left, right)[place], witness=witness), expected)
    shifted = cupy.asarray(a)
    same(matmul(shifted[1:], shifted[1:], "min_plus", out=shifted[:-1]), matmul(a[1:], a[1:], "min_plus", device="cpu"))


@pytest.mark.parametrize(
    ("semiring", "dtype"), [("min_plus", "float32"), ("plus_times", "float32"), ("min_plus", "int32"), ("max_min", "uint32")]
)
def test_products_of_few_steps(semiring: str, dtype: str) -> None:
    """Of many rows, or of rows and columns, in whole tiles and in parts, by vectors and one by one."""
    rng = np.random.default_rng(0)
    for m, k, n in ((67_584, 32, 32), (67_601, 7, 5), (70_000, 8, 12), (2816, 16, 1536), (3001, 20, 1501), (2900, 1, 1600)):
        a, b, c = (rng.integers(0, 50, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        for order in (np.ascontiguousarray, np.asfortranarray):
            left, right, old = (cupy.asarray(order(v)) for v in (a, b, c))
            np.testing.assert_array_equal(matmul(left, right, semiring).get(), matmul(a, b, semiring))
            np.testing.assert_array_equal(matmul(left, right, semiring, c=old).get(), matmul(a, b, semiring, c=c))


@pytest.mark.parametrize("n", [1, 20, 32, 33])
def test_closures_of_a_stack(n: int) -> None:
    """By a warp or two for each matrix, or by more."""
    rng = np.random.default_rng(n)
    for dtype in ("float32", "float64", "int32", "int16"):
        none = np.inf if dtype[0] == "f" else np.iinfo(dtype).max
        a = np.where(rng.random((40, n, n)) < 0.6, none, rng.integers(1, 50, (40, n, n))).astype(dtype)
        np.testing.assert_array_equal(closure(cupy.asarray(a), "min_plus").get(), closure(a, "min_plus"))
        found, expected = (closure(x, "min_plus", paths=True) for x in (cupy.asarray(a), a))
        np.testing.assert_array_equal(found.values.get(), expected.values)
        np.testing.assert_array_equal(found.via.get(), expected.via)
    matrices = rng.random((40, n, n)) / (2 * n)
    np.testing.assert_allclose(closure(cupy.asarray(matrices), PLUS_TIMES).get(), np.linalg.inv(np.eye(n) - matrices), rtol=1e-10)


def listed(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("semiring", "dtypes"), CASES, ids=name)
def test_vectors(semiring: Semiring, dtypes: DTypes) -> None:
    rng = np.random.default_rng(2)
    for rows, steps in ((2048, 1024), (2051, 1101)):
        matrix, row = elements(semiring, dtypes, (rows, steps), rng), elements(semiring, dtypes, (1, rows), rng)
        column, old = elements(semiring, dtypes, (steps, 1), rng), elements(semiring, dtypes, (rows, 1), rng)
        on_gpu(semiring, dtypes, matrix, column, old)
        on_gpu(semiring, dtypes, row, matrix, tuple(v.T for v in column))
        some, inner = slice(1, None), tuple(v[1:, 1:] for v in matrix)
        on_gpu(semiring, dtypes, inner, tuple(v[some] for v in column), tuple(v[some] for v in old))
        on_gpu(semiring, dtypes, tuple(v[:, some] for v in row), inner, tuple(v[some].T for v in column))
        on_gpu(semiring, dtypes, tuple(v.T for v in column), tuple(v.T for v in matrix), row)


def on_gpu(semiring: Semiring, dtypes: DTypes, a: Values, b: Values, c: Values) -> None:
    """C ⊕ A⊗B of views on the GPU, as the reference has it up to the rounding of sums."""
    expected = Block(tuple(v.copy() for v in c))
    ReferenceEngine(semiring, dtypes).multiply_add(Block(a), Block(b), expected)
    gpu, result = engine(semiring, dtypes), device(c)
    A, B, C = (gpu.load(x, owned=False) for x in (device(a), device(b), result))
    gpu.multiply_add(A, B, C)
    gpu.store(C, result)
    for x, y in zip(result, expected.values, strict=True):
        if y.dtype.kind == "f":
            np.testing.assert_allclose(x.get(), y, rtol=64 * np.finfo(y.dtype).eps)
        else:
            np.testing.assert_array_equal(x.get(), y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(700, 800, 900), (8, 300, 400, 500), (2000, 40, 3000)], ids=str)
def test_floats(dtype: str, shape: tuple[int, ...]) -> None:
    """Large products of floats, which cuBLAS computes where their rows or columns lie side by side."""
    *batch, m, k, n = shape
    rng = np.random.default_rng(3)
    a, b, c = (rng.normal(size=s).astype(dtype) for s in ((*batch, m, k), (*batch, k, n), (*batch, m, n)))
    on, other, old = map(cupy.asarray, (a, b, c))
    exact = a.astype(np.float64) @ b
    eps = float(np.finfo(dtype).eps)

    def same(found: Any, expected: Any) -> None:
        assert found.dtype == dtype
        np.testing.assert_allclose(found.get(), expected, rtol=0, atol=20 * k * eps)

    for _ in range(3):  # the second time from a plan that is kept
        same(matmul(on, other, PLUS_TIMES), exact)
    same(matmul(on, other, PLUS_TIMES, c=old), exact + c)
    same(matmul(on.swapaxes(-1, -2).copy().swapaxes(-1, -2), other, PLUS_TIMES), exact)
    same(matmul(on[..., 3:, 5:], other[..., 5:, 2:], PLUS_TIMES), a[..., 3:, 5:].astype(np.float64) @ b[..., 5:, 2:])
    same(matmul(on[..., ::-1], other[..., ::-1, :], PLUS_TIMES), exact)
    if m == n == k or not batch:
        square = rng.normal(size=(600, 600)).astype(dtype)
        own = cupy.asarray(square)
        np.testing.assert_allclose(
            matmul(own, own, PLUS_TIMES, out=own).get(), square.astype(np.float64) @ square, rtol=0, atol=20 * 600 * eps
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any spread, also beyond what exponents reach; with rows and columns far apart, zeros, and views."""
    monkeypatch.setattr(machine, "EXPONENTIAL_STEPS", {4: 1, 8: 1})
    rng, (m, k, n) = np.random.default_rng(4), (130, 70, 150)
    bound = 4 + math.sqrt(k)

    def right(a: Any, b: Any, c: Any = None) -> None:
        found = matmul(cupy.asarray(a), cupy.asarray(b), LOG, c=None if c is None else cupy.asarray(c))
        assert_within(found.get(), a, b, bound, c, most=25)

    for spread in (1e-3, 1, 40, 400, 4000):
        a, b, c = ((rng.normal(size=s) * spread).astype(dtype) for s in ((m, k), (k, n), (m, n)))
        right(a, b)
        right(a, b, c)
    a, b = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n)))
    a[rng.random(a.shape) < 0.95], b[rng.random(b.shape) < 0.95] = -math.inf, -math.inf
    a[3], b[:, 5] = -math.inf, -math.inf
    right(a, b)
    far = (a + rng.integers(-4000, 4000, (m, 1))).astype(dtype)
    right(far, b)
    right(np.asfortranarray(far), np.asfortranarray(b))
    right(far[::-1, ::-1], b[::-1, ::-1])
    right(far[:, ::2], b[::2])


def test_exponentials_in_closures_and_in_their_own_place() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(-8, 1, (700, 700))
    own = cupy.asarray(a)
    np.testing.assert_allclose(matmul(own, own, LOG, out=own).get(), matmul(a, a, LOG, device="cpu"), rtol=1e-13)
    found = [closure(cupy.asarray(a), LOG).get() for _ in range(3)]
    np.testing.assert_allclose(np.exp(found[0]), np.linalg.inv(np.eye(700) - np.exp(a)), rtol=1e-10)
    for again in found[1:]:  # from a CUDA graph
        np.testing.assert_array_equal(again, found[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operands_are_checked_while_they_are_read(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks and products with vectors take no pass over their operands before; what needs a closer look is found wherever it lies."""
    rng = np.random.default_rng(0)
    passes = list[int]()
    begin = ProductChecks.begin

    def counted(*given: Any) -> Any:
        if not compiler.rehearsing():
            passes.append(1)
        return begin(*given)

    monkeypatch.setattr(ProductChecks, "begin", counted)

    def same(a: Any, b: Any) -> None:
        found = matmul(cupy.asarray(a), cupy.asarray(b), "min_plus")
        np.testing.assert_allclose(found.get(), matmul(a, b, "min_plus", device="cpu"), rtol=1e-6)

    stack, small = (rng.normal(size=(2000, 7, n)).astype(dtype) for n in (7, 5))
    blocks, inner = rng.normal(size=(40, 64, 64)).astype("float32"), rng.normal(size=(40, 64, 41)).astype("float32")
    matrix, row, column = (rng.normal(size=n).astype(dtype) for n in ((2051, 1101), 2051, 1101))
    tall, thin = rng.normal(size=(68_001, 8)).astype("float32"), rng.normal(size=(8, 20)).astype("float32")
    products = ((stack, small), (blocks, blocks[::-1].copy()), (blocks, inner), (matrix, column), (row, matrix), (tall, thin))
    for a, b in products:
        a[(0,) * a.ndim] = np.inf
        same(a, b)
        assert not passes
        for operand in (a, b):
            last = (-1,) * operand.ndim
            old = operand[last]
            for wrong in (np.nan, -np.inf):
                operand[last] = wrong
                with pytest.raises(DomainError):
                    matmul(cupy.asarray(a), cupy.asarray(b), "min_plus")
            operand[last] = np.finfo(operand.dtype).max / 4
            same(a, b)
            operand[last] = old
        assert len(passes) == 6
        passes.clear()


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_arrays_that_lie_alike_are_launched_again(dtype: str) -> None:
    """Stacks, broadcast ones among them, and vectors, wherever their numbers lie; what is wrong with one is found there."""
    rng = np.random.default_rng(3)
    stack, matrix, vector = (rng.integers(0, 90, shape).astype(dtype) for shape in ((40, 36, 40), (40, 44), 80))
    turned = stack.swapaxes(1, 2)
    views: list[tuple[Any, Any]] = [
        (stack, matrix), (stack[::2], matrix), (stack[:, ::3], matrix[:, ::-1]), (turned, stack), (stack[:, :2], turned),
        (matrix.T, vector[::2]), (vector[::-2], matrix), (vector[:40], turned), (stack, vector[1:41]), (vector[::2], vector[1::2]),
    ]  # fmt: skip
    for a, b in views:
        for witness in (False, True):
            expected = matmul(a, b, "min_plus", witness=witness, device="cpu")
            x, y = (_laid_out_alike(v) for v in (a, b))
            for _ in range(4):
                found = matmul(x, y, "min_plus", witness=witness)
                assert_equal(tuple(v.get() for v in listed(found)), listed(expected))
            if dtype == "float32":
                for bad in (x, y):
                    last = (-1,) * bad.ndim
                    bad[last] = np.nan
                    with pytest.raises(DomainError):
                        matmul(x, y, "min_plus", witness=witness)
                    bad[last] = 0


def _laid_out_alike(view: Any) -> Any:
    """A view on a GPU with the strides of one on the host."""
    owner = view
    while owner.base is not None:
        owner = owner.base
    there = cupy.asarray(owner)
    first = view.ctypes.data - owner.ctypes.data
    memory = cupy.cuda.MemoryPointer(there.data.mem, there.data.ptr - there.data.mem.ptr + first)
    return cupy.ndarray(view.shape, view.dtype, memory, view.strides)
