"""What `matmul` makes of its operands before an engine sees them: dtypes, and floats that could overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import (
    BOOLEAN,
    DISTANCE_COUNT,
    DISTANCE_HOPS,
    GF2,
    LOG,
    MAX_MIN,
    MAX_PLUS,
    MAX_TIMES,
    MIN_PLUS,
    PLUS_TIMES,
    TROPICAL_ARGMIN,
)
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError, DTypeError, OverflowRiskError, SemiringError
from semiring.kernels.overflow.statistics import value_statistics
from semiring.product import matmul

INF = math.inf
LARGEST = {d: float(np.finfo(d).max) for d in ("f4", "f8")}
LUKASIEWICZ = Semiring("lukasiewicz", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))
MINE = Semiring("mine", lambda a, b: a if a < b else b, lambda a, b: a + 2 * b, INF, 0)
ROOTED = Semiring("rooted", max, lambda a, b: ops.sqrt(abs(a * b) / 3.5), 0, 1)
DAMPED = Semiring("damped", max, lambda a, b: max(ops.exp(-abs(a)), a / 2) * b, 0, 1)
SHARED = Semiring("shared", max, lambda a, b: (a / (abs(b) + 1)) * b, 0, 1)
PACKED = Semiring("exp", max, lambda a, b: ops.exp(a) * b, 0, 1)


def single(value: Any, dtype: str = "f8") -> np.ndarray[Any, Any]:
    return np.array([[value]], dtype=dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("semiring", "a", "b"),
    [
        (MIN_PLUS, -0.6, -0.6),
        (MIN_PLUS, 0.6, 0.6),
        (TROPICAL_ARGMIN, 0.6, 0.6),
        (MAX_PLUS, 0.6, 0.6),
        (MAX_PLUS, -0.6, -0.6),
        (MAX_TIMES, 0.1, 11),
        (MINE, 0.1, 0.6),
        (ROOTED, 0.1, 11),
        (DAMPED, 0.5, 11),
        (SHARED, 0.5, 11),
    ],
    ids=str,
)
def test_floats_that_could_overflow_are_refused(semiring: Semiring, a: float, b: float, dtype: str) -> None:
    """An overflow to ∞ would pass for "no path", and −∞ is no element."""
    left, right = (np.full((3, 3), semiring.zero, dtype) for _ in "ab")
    left[1, 2], right[2, 0] = a * LARGEST[dtype], b * (1 if abs(b) > 1 else LARGEST[dtype])
    advice = "use float64" if dtype == "f4" else "scale the entries, or use object arrays"
    with pytest.raises(OverflowRiskError, match=rf"{semiring.name} in float.*finite entries reach .*could overflow; {advice}"):
        matmul(left, right, semiring)
    if dtype == "f4":
        exact = matmul(left.astype("f8"), right.astype("f8"), semiring)
        assert np.isfinite((exact.values if semiring.witness else exact)[1, 0])


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8"])
def test_integers_of_c_are_refused_as_those_of_a_are(dtype: str) -> None:
    """Inside, half of ∞ stands for it."""
    largest = np.iinfo(dtype).max
    a = np.full((3, 3), largest, dtype)
    assert (matmul(a, a, MIN_PLUS, c=np.full((3, 3), largest // 2 - 1, dtype)) == largest // 2 - 1).all()
    with pytest.raises(OverflowRiskError, match="finite entries reach"):
        matmul(a, a, MIN_PLUS, c=np.full((3, 3), largest // 2, dtype))


def test_structured_floats_are_refused_too() -> None:
    far, near = (single(1e308), single(1.0)), (single(1.0), single(1.0))
    with pytest.raises(OverflowRiskError, match=r"distance-hops.*'add'"):
        matmul(far, far, DISTANCE_HOPS)
    assert matmul(far, near, DISTANCE_HOPS) == (1e308, 2.0)
    mixed = (single(1e308), single(2, "i4"))
    with pytest.raises(OverflowRiskError):
        matmul(mixed, mixed, DISTANCE_HOPS)
    assert matmul((single(1.0), single(2, "i4")), mixed, DISTANCE_HOPS) == (1e308, 4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_that_stay_finite_are_not_refused(dtype: str) -> None:
    top = LARGEST[dtype]
    assert matmul(single(top, dtype), single(0, dtype), MIN_PLUS) == np.finfo(dtype).max
    assert matmul(single(top / 2, dtype), single(top / 2, dtype), MIN_PLUS) == np.finfo(dtype).max
    assert matmul(single(-INF, dtype), single(top, dtype), MAX_PLUS) == -INF
    assert matmul(single(INF, dtype), single(INF, dtype), MIN_PLUS) == INF
    assert matmul(single(top, dtype), single(1, dtype), MAX_TIMES) == np.finfo(dtype).max
    assert matmul(single(top, dtype), single(top, dtype), MAX_MIN) == np.finfo(dtype).max
    assert matmul(single(1, dtype), single(1, dtype), LUKASIEWICZ) == 1
    assert matmul(np.zeros((2, 0), dtype), np.zeros((0, 2), dtype), MIN_PLUS).tolist() == [[INF, INF]] * 2
    assert matmul(np.zeros((0, 2), dtype), single(top, dtype)[[0, 0]], MIN_PLUS).shape == (0, 1)


def test_where_sums_accumulate_an_overflow_is_ordinary_arithmetic() -> None:
    big = np.full((1, 2), 1e308)
    assert matmul(big, big.T, PLUS_TIMES) == INF
    assert matmul(big, big.T, LOG) == INF
    assert matmul((single(1.0), single(1e200)), (single(1.0), single(1e200)), DISTANCE_COUNT) == (2.0, INF)
    assert matmul(single(800.0), single(1.0), PACKED) == INF


def largest_finite(array: np.ndarray[Any, Any]) -> float:
    return value_statistics((array,))[0].largest


@given(
    st.lists(st.floats(width=32, allow_nan=False), max_size=12),
    st.sampled_from(["f4", "f8"]),
    st.sampled_from([slice(None), slice(None, None, -1), slice(1, None, 2)]),
)
def test_the_largest_finite_magnitude(values: list[float], dtype: str, view: slice) -> None:
    array = np.array([values, values[::-1]], dtype).T[view]
    assert largest_finite(array) == max((abs(v) for v in array.ravel().tolist() if abs(v) < INF), default=0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_largest_finite_magnitude_of_many_pieces(dtype: str) -> None:
    array = np.ones((300, 700), dtype)
    for at, value in (((0, 1), -2), ((250, 3), 3), ((299, 699), -4), ((200, 0), INF), ((100, 1), 5), ((299, 0), -6)):
        array[at] = value
        finite = array[np.isfinite(array)]
        assert largest_finite(array) == largest_finite(array.T) == np.abs(finite).max()
    assert largest_finite(np.full((300, 700), INF, dtype)) == 0


def test_small_dtypes_are_widened() -> None:
    """As closures do: 100 + 100 fits the int16 that computes int8, and what stands for ∞ in int8 is ∞ there."""
    product = matmul(np.array([[100, 127]], np.int8), np.array([[100, 127], [1, 127]], np.int8), MIN_PLUS)
    assert product.dtype == np.int16
    assert product.tolist() == [[200, 32767]]
    half = matmul(np.array([[1, INF]], np.float16), np.array([[0.5], [1]], np.float16), MIN_PLUS)
    assert half.dtype == np.float32
    assert half.item() == 1.5
    assert matmul(single(1, "i1"), single(2, "f2"), MIN_PLUS).dtype == np.float32


def test_integers_are_truth_values_where_they_are_0_and_1() -> None:
    a, b = np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]], np.uint8)
    for semiring in (BOOLEAN, GF2):
        product = matmul(a, b, semiring, c=[[0, 1], [0, 0]])
        assert product.dtype == bool
        assert product.tolist() == [[True, True], [False, False]]
    assert matmul(a, b > 0, BOOLEAN).tolist() == [[True, False], [False, False]]
    with pytest.raises(DTypeError, match=r"b\[1, 0\] is 2, neither 0 nor 1"):
        matmul(a, 2 * b, BOOLEAN)
    with pytest.raises(DTypeError, match=r"c\[1, 1\] is 3, neither 0 nor 1"):
        matmul(a, b, BOOLEAN, c=[[0, 0], [0, 3]])


def test_the_place_of_an_entry_beyond_the_first_piece() -> None:
    a = np.zeros((300, 300), int)
    a[299, 7] = 2
    with pytest.raises(DTypeError, match=r"a\[299, 7\] is 2"):
        matmul(a, a > 0, BOOLEAN)


@pytest.mark.parametrize(
    ("operands", "semiring", "note"),
    [
        (
            (np.ones((2, 3)), np.ones((2, 3), "f4")),
            MIN_PLUS,
            "in the product of 2 × 3 elements (float64) and 2 × 3 elements (float32) over min-plus",
        ),
        (([[math.nan]], single(1)), MIN_PLUS, "in the product of a value of type list and 1 × 1 elements (float64) over min-plus"),
        (
            ((single(1), single(1, "i4")), (single(1), single(-1, "i4"))),
            DISTANCE_HOPS,
            "in the product of 1 × 1 elements (float64, int32) and 1 × 1 elements (float64, int32) over distance-hops",
        ),
    ],
)
def test_errors_say_what_was_multiplied(operands: tuple[Any, Any], semiring: Semiring, note: str) -> None:
    with pytest.raises(SemiringError) as caught:
        matmul(*operands, semiring)
    assert caught.value.__notes__ == [note]


def test_advice_about_nan_names_no_argument_that_there_is_not() -> None:
    with pytest.raises(DomainError, match=r"NaN is not an element.*use inf \(the semiring's zero\) for a missing edge\n"):
        matmul(single(math.nan), single(1), MIN_PLUS)


def test_a_product_of_vectors_has_no_axes_and_its_c_may_be_infinite() -> None:
    vector = np.array([1, 2], np.float16)
    found = matmul(vector, vector, MIN_PLUS, c=np.array(np.inf, np.float16))
    np.testing.assert_array_equal(found, np.float32(2), strict=True)
