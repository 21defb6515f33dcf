"""Products over log Σ exp, which multiply exponentials: against mpmath for any spread, and with the same bits however they are cut."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import LOG
from semiring.algebra.definition import Semiring
from semiring.common.progress import Meter
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.engine import Block
from semiring.product import matmul
from tests.kernels.samples import ISAS, LAYOUTS, examples, laid_out

INF = math.inf
Array = np.ndarray[Any, Any]
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
isas = pytest.mark.parametrize("isa", ISAS)


def product(a: Array, b: Array, c: Array | None = None, *, semiring: Semiring = LOG, isa: str | None = None, threads: int = 1) -> Array:
    """c ⊕ a⊗b on the generated engine."""
    engine = CpuEngine(semiring, (a.dtype,), threads, isa)
    result = np.empty((a.shape[0], b.shape[1]), a.dtype) if c is None else c.copy()
    (engine.multiply if c is None else engine.multiply_add)(Block((a,)), Block((b,)), Block((result,)))
    return result


def exact(a: Array, b: Array, c: Array | None, i: int, j: int, scale: float = 1) -> Any:
    """An element of c ⊕ a⊗b."""
    terms = [mpmath.mpf(x) + mpmath.mpf(y) for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True) if x + y != -INF * scale]
    terms += [] if c is None or c[i, j] == -INF * scale else [mpmath.mpf(c[i, j].item())]
    if not terms:
        return mpmath.mpf(-INF * scale)
    top = max(terms) if scale > 0 else min(terms)
    return top + mpmath.log(mpmath.fsum(mpmath.exp(scale * (t - top)) for t in terms)) / scale


def assert_within(found: Array, a: Array, b: Array, bound: float, c: Array | None = None, *, most: int = 20, scale: float = 1) -> None:
    """Some elements are right up to bound · ε · max(1, |r|)."""
    eps, places = float(np.finfo(found.dtype).eps), list(np.ndindex(found.shape))
    with mpmath.workprec(120):
        for i, j in places if len(places) <= most else np.random.default_rng(0).choice(places, most, replace=False).tolist():
            r = exact(a, b, c, i, j, scale)
            if mpmath.isinf(r):
                assert found[i, j] == float(r), (i, j)
                continue
            error = abs(mpmath.mpf(found[i, j].item()) - r) / (eps * max(1, abs(r)))
            assert error <= bound, f"({i}, {j}): {found[i, j]} for {mpmath.nstr(r, 20)}, {float(error)} ε"


def proven(k: int) -> float:
    """The bound that the documentation states."""
    return min(k, 128) / 2 + 16 * math.ceil(k / 512) + 16


def normal(rng: np.random.Generator, shape: tuple[int, int], dtype: str, spread: float, zeros: float = 0.0) -> Array:
    values = (rng.normal(size=shape) * spread).astype(dtype)
    values[rng.random(shape) < zeros] = -INF
    return values


SHAPES = [(1, 1, 1), (2, 3, 4), (7, 13, 17), (5, 2, 70), (65, 33, 66), (97, 513, 3), (3, 1100, 3), (40, 4, 1), (1, 600, 1)]


@pytest.mark.sampled(8)
@dtypes
@isas
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_spread(shape: tuple[int, int, int], isa: str, dtype: str) -> None:
    """Within a float32's exponents, beyond them, and beyond those of float64; with zeros, and an old matrix."""
    (m, k, n), rng = shape, np.random.default_rng(sum(shape))
    for spread in (1e-3, 1, 40, 1000, 1e5):
        for zeros in (0, 0.4):
            a, b, c = (normal(rng, s, dtype, spread, zeros) for s in ((m, k), (k, n), (m, n)))
            assert_within(product(a, b, isa=isa), a, b, 4 + math.sqrt(k), most=2)
            assert_within(product(a, b, c, isa=isa), a, b, 4 + math.sqrt(k), c, most=2)


@pytest.mark.sampled(3)
@dtypes
@isas
def test_rows_and_columns_far_apart(dtype: str, isa: str) -> None:
    """Large numbers cancel where rows of A and columns of B do."""
    rng = np.random.default_rng(1)
    far = np.array([0, 3000, -3000, 11000, -12000, 3e5, -3e5, 1e7, -INF, 0.5], dtype)
    a, b = normal(rng, (10, 50), dtype, 1), normal(rng, (50, 10), dtype, 1)
    with np.errstate(invalid="ignore"):
        left, right = a + far[:, None], b - np.where(np.isinf(far), 0, far)
    assert_within(product(left, right, isa=isa), left, right, proven(50), most=100)
    assert_within(product(left, b, isa=isa), left, b, proven(50), most=100)
    assert_within(product(a, right, isa=isa), a, right, proven(50), most=100)


@dtypes
def test_what_is_masked_by_large_numbers(dtype: str) -> None:
    """−1e9 in the place of −∞ does not make everything slow or wrong, and neither does a whole row of it."""
    rng = np.random.default_rng(2)
    a, b = normal(rng, (30, 80), dtype, 3), normal(rng, (80, 30), dtype, 3)
    a[rng.random(a.shape) < 0.5], a[4], b[:, 7] = -1e9, -1e9, -1e9
    assert_within(product(a, b), a, b, 4 + math.sqrt(80), most=200)


@pytest.mark.sampled(21)
@dtypes
@pytest.mark.parametrize("k", [1, 2, 511, 512, 513, 1537])
@pytest.mark.parametrize("value", [0.0, -0.1, 1 / 3, 77.7, -1234.5])
def test_the_bound_where_every_rounding_is_alike(dtype: str, k: int, value: float) -> None:
    a = np.full((2, k), value, dtype)
    a[1] = np.linspace(value, value - 3, k)
    b = np.full((k, 3), -value / 7, dtype)
    assert_within(product(a, b), a, b, proven(k))


@dtypes
def test_far_below_the_maxima(dtype: str) -> None:
    """Every row and column has a large element, which no sum but few has: each is small beside what its row and column could give."""
    rng, n = np.random.default_rng(3), 70
    for depth in (30, 60, 90, 110, 150, 500, 900, 1100, 3000):
        a, b = (normal(rng, (n, n), dtype, 1) - np.dtype(dtype).type(depth) for _ in range(2))
        a[:, 0], b[1, :] = 0, 0
        a[:, 1], b[0, :] = a[:, 1] - depth, b[0, :] - depth
        assert_within(product(a, b), a, b, 4 + math.sqrt(n), most=40)


@dtypes
def test_one_step_is_one_rounding(dtype: str) -> None:
    rng = np.random.default_rng(4)
    a, b = normal(rng, (50, 1), dtype, 1e-6, 0.2), normal(rng, (1, 70), dtype, 100, 0.2)
    np.testing.assert_array_equal(product(a, b), a + b)


SPECIAL = [
    0.0,
    -0.0,
    -INF,
    1e-30,
    -1e-30,
    1.0,
    -1.0,
    87.0,
    -87.5,
    103.0,
    -104.0,
    709.0,
    -745.0,
    11356.0,
    -11357.0,
    3.6e5,
    -1e9,
    1e9,
    1e30,
    -1e30,
]


@pytest.mark.sampled(3)
@dtypes
@isas
@examples(60)
@given(data=st.data())
def test_any_numbers(isa: str, dtype: str, data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(1, 20)) for _ in range(3))
    numbers = st.sampled_from(SPECIAL) | st.floats(-200, 200, width=32) | st.floats(-1e5, 1e5, width=32)

    def matrix(rows: int, columns: int) -> Array:
        drawn = data.draw(st.lists(numbers, min_size=1, max_size=12))
        picked = np.random.default_rng(data.draw(st.integers(0, 99))).choice(np.array(drawn, dtype), (rows, columns))
        return np.asarray(picked)

    a, b, c = matrix(m, k), matrix(k, n), matrix(m, n)
    assert_within(product(a, b, c, isa=isa), a, b, proven(k), c, most=30)


def recorded(add: Callable[[Any, Any], Any], zero: float) -> Semiring:
    return Semiring("spelled", add, lambda a, b: a + b, zero, 0)


@pytest.mark.sampled(3)
@dtypes
@pytest.mark.parametrize(
    ("semiring", "scale"),
    [
        (recorded(lambda a, b: -ops.logaddexp(-a, -b), INF), -1.0),
        (recorded(lambda a, b: ops.log(ops.exp(a) + ops.exp(b)), -INF), 1.0),
        (recorded(lambda a, b: 0.5 * ops.logaddexp(a / 0.5, b / 0.5), -INF), 2.0),
        (recorded(lambda a, b: -3 * ops.logaddexp(-a / 3, -b / 3), INF), float(Fraction(-1, 3))),
    ],
    ids=["soft minimum", "as it is defined", "temperature", "negative temperature"],
)
def test_what_users_write(semiring: Semiring, scale: float, dtype: str) -> None:
    assert kernels_for(semiring, (np.dtype(dtype),)).representation.kind == "exponential"
    rng = np.random.default_rng(5)
    for spread in (1, 60, 1000):
        a, b, c = (normal(rng, s, dtype, spread) for s in ((20, 70), (70, 30), (20, 30)))
        for x in (a, b, c):
            x[rng.random(x.shape) < 0.2] = -INF * scale
        assert_within(product(a, b, c, semiring=semiring), a, b, (4 + math.sqrt(70)) * max(1, 1 / abs(scale)), c, scale=scale)


@dtypes
@pytest.mark.parametrize("spread", [1, 40, 400])
def test_the_same_bits_on_any_number_of_threads(dtype: str, spread: float) -> None:
    """Some elements are found by each of the ways there are."""
    rng = np.random.default_rng(6)
    a, b, c = (normal(rng, s, dtype, spread, 0.1) for s in ((211, 530), (530, 301), (211, 301)))
    expected = product(a, b, c)
    for threads in (2, 3, 5, 16):
        np.testing.assert_array_equal(product(a, b, c, threads=threads), expected)


@dtypes
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_bits_however_matrices_lie(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    a, b, c = (normal(rng, s, dtype, 50, 0.1) for s in ((33, 70), (70, 41), (33, 41)))
    expected = product(a, b, c)
    np.testing.assert_array_equal(product(laid_out(a, layout), laid_out(b, layout), c), expected)
    if layout != "read-only":
        out, engine = laid_out(c, layout), CpuEngine(LOG, (a.dtype,), 1)
        engine.multiply_add(Block((a,)), Block((b,)), Block((out,)))
        np.testing.assert_array_equal(out, expected)


@pytest.mark.sampled(5)
@dtypes
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [20, 190, 530])
def test_operands_that_are_the_result(n: int, threads: int, dtype: str) -> None:
    rng = np.random.default_rng(8)
    a, b = normal(rng, (n, n), dtype, 40, 0.1), normal(rng, (n, n), dtype, 40, 0.1)
    engine = CpuEngine(LOG, (a.dtype,), threads)
    for left, right in ((0, 1), (1, 0), (0, 0)):
        c = a.copy()
        operands = [c, b]
        expected = product((a, b)[left], (a, b)[right], a)
        engine.multiply_add(Block((operands[left],)), Block((operands[right],)), Block((c,)))
        np.testing.assert_array_equal(c, expected)


@dtypes
def test_the_same_bits_in_slabs(dtype: str) -> None:
    rng = np.random.default_rng(9)
    a, b = normal(rng, (60, 2100), dtype, 60), normal(rng, (2100, 70), dtype, 60)
    engine, result = CpuEngine(LOG, (a.dtype,), 1), np.empty((60, 70), dtype)
    engine.meter = Meter(lambda done, total: None, piece=60 * 70 * 512)
    engine.multiply(Block((a,)), Block((b,)), Block((result,)))
    np.testing.assert_array_equal(result, product(a, b))


@dtypes
def test_stacks_and_broadcasting(dtype: str) -> None:
    rng = np.random.default_rng(10)
    a, b = rng.normal(size=(4, 9, 30)).astype(dtype) * 50, rng.normal(size=(30, 11)).astype(dtype) * 50
    found = matmul(a, b, LOG)
    for i in range(4):
        np.testing.assert_array_equal(found[i], product(a[i], b))
    assert_within(matmul(np.broadcast_to(a[0, :1], (9, 30)), b, LOG), np.repeat(a[0, :1], 9, axis=0), b, 4 + math.sqrt(30))
    assert matmul(a[:, :, :0], b[:0], LOG).tolist() == np.full((4, 9, 11), -INF).tolist()
    assert matmul(a[:0], b, LOG).shape == (0, 9, 11)


@dtypes
def test_infinity_absorbs_where_nobody_checks(dtype: str) -> None:
    a, b = np.zeros((20, 30), dtype), np.zeros((30, 20), dtype)
    a[3, 5] = INF
    found = product(a, b)
    assert (found[3] == INF).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()
