"""Products against code that nobody here wrote: NumPy's and SciPy's, exact fractions, and SymPy."""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from scipy.special import logsumexp

from semiring.algebra.catalogue import (
    BITSET,
    BOOLEAN,
    DISTANCE_HOPS,
    GF2,
    LOG,
    MAX_MIN,
    MAX_PLUS,
    MAX_TIMES,
    MIN_MAX,
    MIN_PLUS,
    PLUS_TIMES,
)
from semiring.algebra.definition import Semiring
from semiring.product import matmul
from tests.kernels.samples import examples

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
SHAPES = [(1, 1, 1), (3, 700, 2), (65, 33, 130), (200, 257, 190)]


def weights(dtype: Any, *shapes: tuple[int, int]) -> list[Array]:
    return [RNG.integers(0, 50, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint16", "uint64"])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_plus_times_is_numpys_product(dtype: str, m: int, k: int, n: int) -> None:
    a, b = RNG.integers(0, 9, (m, k)).astype(dtype), RNG.integers(0, 9, (k, n)).astype(dtype)
    np.testing.assert_array_equal(matmul(a, b, PLUS_TIMES), a @ b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plus_times_rounds_no_worse_than_numpy(dtype: Any) -> None:
    a, b = RNG.normal(size=(100, 300)).astype(dtype), RNG.normal(size=(300, 90)).astype(dtype)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = 300 * np.finfo(dtype).eps * (abs(a) @ abs(b))
    assert (abs(matmul(a, b, PLUS_TIMES) - exact) <= bound).all()


TROPICAL: list[tuple[Semiring, Any, Any]] = [
    (MIN_PLUS, np.min, np.add),
    (MAX_PLUS, np.max, np.add),
    (MAX_MIN, np.max, np.minimum),
    (MIN_MAX, np.min, np.maximum),
    (MAX_TIMES, np.max, np.multiply),
]


@pytest.mark.parametrize(("semiring", "reduce", "combine"), TROPICAL, ids=[s.name for s, *_ in TROPICAL])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES[:3])
def test_extrema_by_broadcasting(semiring: Semiring, reduce: Any, combine: Any, dtype: str, m: int, k: int, n: int) -> None:
    a, b = weights(dtype, (m, k), (k, n))
    np.testing.assert_array_equal(matmul(a, b, semiring), reduce(combine(a[:, :, None], b[None, :, :]), axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES[:3])
def test_log_is_scipys_logsumexp(dtype: str, m: int, k: int, n: int) -> None:
    a, b = (RNG.normal(scale=20, size=shape).astype(dtype) for shape in ((m, k), (k, n)))
    a[RNG.random((m, k)) < 0.2] = -np.inf
    expected: Any = logsumexp(a.astype(float)[:, :, None] + b.astype(float)[None, :, :], axis=1)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(matmul(a, b, LOG), expected, rtol=20 * eps, atol=(k + 20) * eps)


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_boolean_and_gf2_count_in_floats(m: int, k: int, n: int) -> None:
    a, b = RNG.random((m, k)) < 0.05, RNG.random((k, n)) < 0.05
    count = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(matmul(a, b, BOOLEAN), count > 0)
    np.testing.assert_array_equal(matmul(a, b, GF2), count % 2 == 1)


def test_bitset_is_a_boolean_product_for_each_bit() -> None:
    a, b = RNG.integers(0, 256, (30, 40)).astype(np.uint8), RNG.integers(0, 256, (40, 20)).astype(np.uint8)
    found = matmul(a, b, BITSET)
    for bit in range(8):
        x, y = (a >> bit & 1).astype(float), (b >> bit & 1).astype(float)
        np.testing.assert_array_equal(found >> bit & 1, x @ y > 0)


def test_distance_and_hops_are_one_number_of_two_digits() -> None:
    (d, e), (g, h) = weights(np.int64, (30, 60), (60, 20)), (RNG.integers(0, 9, (30, 60)), RNG.integers(0, 9, (60, 20)))
    distance, hops = matmul((d, g), (e, h), DISTANCE_HOPS)
    combined = matmul(d * 1000 + g, e * 1000 + h, MIN_PLUS)
    np.testing.assert_array_equal(distance * 1000 + hops, combined)


@examples(100)
@given(shapes=mutually_broadcastable_shapes(signature=np.matmul.signature, max_side=6), seed=st.integers(0, 99), c=st.booleans())
def test_batches_and_single_axes_are_numpys(shapes: Any, seed: int, c: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-5, 6, shape).astype(np.float32) for shape in shapes.input_shapes)
    expected = np.matmul(a, b)
    old = rng.integers(-5, 6, expected.shape).astype(np.float32) if c else None
    found = matmul(a, b, PLUS_TIMES, c=old)
    assert np.shape(found) == expected.shape
    assert found.dtype == np.float32
    assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(found, expected if old is None else expected + old)


def test_a_batch_of_witnesses() -> None:
    a, b = RNG.integers(0, 9, (3, 1, 20, 30)).astype(float), RNG.integers(0, 9, (2, 30, 10)).astype(float)
    values, witness = matmul(a, b, MIN_PLUS, witness=True)
    sums = a[..., :, :, None] + b[..., None, :, :]
    np.testing.assert_array_equal(values, sums.min(axis=-2))
    np.testing.assert_array_equal(witness, sums.argmin(axis=-2))


def test_many_small_matrices_and_few_large_ones() -> None:
    for count, n in ((300, 5), (2, 520)):
        a, b = RNG.integers(0, 5, (2, count, n, n)).astype(np.float32)
        for threads in (1, 2, 5):
            np.testing.assert_array_equal(matmul(a, b, PLUS_TIMES, threads=threads), a @ b)


def test_fractions_are_exact() -> None:
    a, b = (np.array([[Fraction(int(p), int(q)) for p, q in RNG.integers(1, 50, (4, 2))] for _ in range(4)], dtype=object) for _ in "ab")
    np.testing.assert_array_equal(matmul(a, b, PLUS_TIMES), a.dot(b))
    sums = matmul(a, b, MIN_PLUS)
    assert sums[1, 2] == min(x + y for x, y in zip(a[1], b[:, 2], strict=True))
    assert isinstance(sums[1, 2], Fraction)
    empty = matmul(a[:, :0], b[:0], MIN_PLUS)
    assert (empty == math.inf).all()


def test_large_python_integers_do_not_wrap() -> None:
    a = np.array([[10**30, 1]], dtype=object)
    assert matmul(a, a.T, PLUS_TIMES)[0, 0] == 10**60 + 1
    values, witness = matmul(a, a.T, MIN_PLUS, witness=True)
    assert values[0, 0] == 2
    assert witness[0, 0] == 1


def test_sets_as_elements() -> None:
    everything = frozenset("abc")
    labels = Semiring("labels", operator.or_, operator.and_, frozenset(), everything)
    a = np.empty((2, 2), dtype=object)
    a[...] = [[frozenset("a"), frozenset("bc")], [frozenset(), everything]]
    found = matmul(a, a, labels)
    assert found[0, 1] == frozenset("bc")
    assert found[1, 0] == frozenset()


def test_symbols() -> None:
    x, y, z = sympy.symbols("x y z")
    a, b = np.array([[x, y]], dtype=object), np.array([[z], [2]], dtype=object)
    assert sympy.expand(matmul(a, b, PLUS_TIMES)[0, 0] - (x * z + 2 * y)) == 0
    assert matmul(a, b, MIN_PLUS)[0, 0] == sympy.Min(x + z, y + 2)
    lukasiewicz = Semiring("lukasiewicz", max, lambda p, q: max(p + q - 1, 0), 0, 1)
    value = matmul(a, b, lukasiewicz)[0, 0].subs({x: sympy.Rational(3, 4), y: 0, z: sympy.Rational(1, 2)})
    assert value == 1  # max(3/4 + 1/2 − 1, 0 + 2 − 1, 0)


@examples(40)
@given(st.data())
def test_generated_kernels_are_exact_fractions_rounded_once(data: st.DataObject) -> None:
    """Dyadic numbers: float64 holds every product and sum of theirs."""
    m, k, n = (data.draw(st.integers(1, 6)) for _ in range(3))
    numbers = st.integers(-64, 64).map(lambda p: Fraction(p, 16))
    a, b = (np.array(data.draw(st.lists(numbers, min_size=p * q, max_size=p * q)), dtype=object).reshape(p, q) for p, q in ((m, k), (k, n)))
    for semiring in (PLUS_TIMES, MIN_PLUS, MAX_PLUS, MAX_MIN):
        exact = matmul(a, b, semiring)
        np.testing.assert_array_equal(matmul(a.astype(float), b.astype(float), semiring), exact.astype(float))
    by_hand = functools.reduce(operator.add, (a[0, p] * b[p, 0] for p in range(k)))
    assert matmul(a, b, PLUS_TIMES)[0, 0] == by_hand
