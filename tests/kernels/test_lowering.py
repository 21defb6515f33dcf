"""One operation of generated code at a time, against Python's numbers and NumPy, on every instruction set and vector length."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from semiring.algebra import ops
from semiring.common.errors import DTypeError, TraceError
from semiring.kernels.hardware import host
from tests.kernels.elementwise import Array, elementwise
from tests.kernels.samples import ISAS

WHOLE = [np.dtype(d) for d in ("int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
REAL = [np.dtype(d) for d in ("float32", "float64")]

isas = pytest.mark.parametrize("isa", ISAS)
lengths = pytest.mark.parametrize(("isa", "lanes"), [*((isa, None) for isa in ISAS), (ISAS[0], 1)])


def numbers(dtype: np.dtype[Any]) -> list[int]:
    info = np.iinfo(dtype)
    return [
        x
        for x in (0, 1, 2, 3, 7, 8, 100, -1, -2, -3, -7, -100, info.max, info.max - 1, info.min, info.min + 1)
        if info.min <= x <= info.max
    ]


def every_pair(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    x, y = zip(*itertools.product(numbers(dtype), repeat=2), strict=True)
    return np.array(x, dtype), np.array(y, dtype)


def wrapped(values: list[int], dtype: np.dtype[Any]) -> Array:
    """Python's results as the dtype's bits hold them."""
    bits = 8 * dtype.itemsize
    return np.array([v & ((1 << bits) - 1) for v in values], dtype=f"u{dtype.itemsize}").view(dtype)


PAIRS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "min": min,
    "max": max,
    "//": lambda x, y: x // y if y else 0,
    "%": lambda x, y: x % y if y else 0,
    "==": lambda x, y: int(x == y),
    "!=": lambda x, y: int(x != y),
    "<": lambda x, y: int(x < y),
    "<=": lambda x, y: int(x <= y),
    ">": lambda x, y: int(x > y),
    ">=": lambda x, y: int(x >= y),
}
RECORDED: dict[str, Callable[[Any, Any], Any]] = {
    **PAIRS,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": lambda x, y: ops.where(x == y, 1, 0),
    "!=": lambda x, y: ops.where(x != y, 1, 0),
    "<": lambda x, y: ops.where(x < y, 1, 0),
    "<=": lambda x, y: ops.where(x <= y, 1, 0),
    ">": lambda x, y: ops.where(x > y, 1, 0),
    ">=": lambda x, y: ops.where(x >= y, 1, 0),
}


@pytest.mark.sampled(3)
@lengths
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_operations_on_two_integers(dtype: np.dtype[Any], isa: str, lanes: int | None) -> None:
    """Each operation is Python's, to the bits that the dtype has; a divisor of 0 gives 0, as in NumPy, and never a trap."""
    x, y = every_pair(dtype)
    for operation, python in PAIRS.items():
        expected = wrapped([python(int(p), int(q)) for p, q in zip(x, y, strict=True)], dtype)
        np.testing.assert_array_equal(elementwise(RECORDED[operation], x, y, isa=isa, lanes=lanes), expected, err_msg=operation)


@pytest.mark.sampled(3)
@isas
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_operations_on_one_integer(dtype: np.dtype[Any], isa: str) -> None:
    x = np.array(numbers(dtype), dtype)
    unary: list[Callable[[Any], Any]] = [operator.neg, operator.invert, abs, lambda a: a % 7, lambda a: a // 3, lambda a: a + True]
    for function in unary:
        expected = wrapped([int(function(int(p))) for p in x], dtype)
        np.testing.assert_array_equal(elementwise(function, x, isa=isa), expected)
    small = 63 if dtype.itemsize == 8 else 100
    for places in (0, 1, 5, 8 * dtype.itemsize - 1, 8 * dtype.itemsize, small):
        left, right = elementwise(lambda a: a << places, x, isa=isa), elementwise(lambda a: a >> places, x, isa=isa)  # noqa: B023 (called at once)
        np.testing.assert_array_equal(left, wrapped([int(p) << places for p in x], dtype))
        np.testing.assert_array_equal(right, np.array([int(p) >> places for p in x], dtype))


@pytest.mark.sampled(10)
@lengths
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_shifts_by_elements(dtype: np.dtype[Any], isa: str, lanes: int | None) -> None:
    x, y = every_pair(dtype)
    x, y = x[y >= 0], y[y >= 0]
    limit = [min(int(q), 100) for q in y]
    left, right = (elementwise(f, x, y, isa=isa, lanes=lanes) for f in (operator.lshift, operator.rshift))
    np.testing.assert_array_equal(left, wrapped([int(p) << q for p, q in zip(x, limit, strict=True)], dtype))
    np.testing.assert_array_equal(right, np.array([int(p) >> q for p, q in zip(x, limit, strict=True)], dtype))


@pytest.mark.sampled(10)
@lengths
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_infinities_absorb_sums(dtype: np.dtype[Any], isa: str, lanes: int | None) -> None:
    x, y = every_pair(dtype)
    for infinity in {int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)}:
        found = elementwise(operator.add, x, y, isa=isa, lanes=lanes, infinities=(infinity,))
        absorbed = (x == infinity) | (y == infinity)
        plain = wrapped([int(p) + int(q) for p, q in zip(x, y, strict=True)], dtype)
        np.testing.assert_array_equal(found, np.where(absorbed, dtype.type(infinity), plain))
    other = np.int64(2**62)  # the infinity of no dtype
    np.testing.assert_array_equal(
        elementwise(operator.add, x, y, isa=isa, infinities=(int(other),)), elementwise(operator.add, x, y, isa=isa)
    )


@pytest.mark.sampled(3)
@lengths
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_operations_on_floats(dtype: np.dtype[Any], isa: str, lanes: int | None) -> None:
    """IEEE arithmetic, subnormals and infinities included, is NumPy's to the last digit."""
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 0.1, 3, -7.5, 1e30, -1e-30, info.max, info.smallest_normal, info.smallest_subnormal, np.inf, -np.inf]
    x, y = np.array(list(itertools.product(values, repeat=2)), dtype).T.copy()
    functions: list[Callable[[Any, Any], Any]] = [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        min,
        max,
        lambda a, b: abs(a - b),
        lambda a, b: -a * b,
        lambda a, b: ops.where(a < b, 1, 0) + 2 * ops.where(a == b, 1, 0),
        lambda a, b: ops.sqrt(abs(a)) + b * 0.1,
        lambda a, b: a if a != b else 5,
    ]
    for function in functions:
        with np.errstate(all="ignore"):
            expected = np.array([function(p, q) for p, q in zip(x, y, strict=True)], dtype)
        np.testing.assert_array_equal(elementwise(function, x, y, isa=isa, lanes=lanes), expected)


@isas
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_a_constant_has_the_type_of_the_elements(dtype: np.dtype[Any], isa: str) -> None:
    x = np.linspace(-3, 3, 101, dtype=dtype)
    np.testing.assert_array_equal(elementwise(lambda a: a * 0.1 + 0.3, x, isa=isa), x * dtype.type(0.1) + dtype.type(0.3))


def test_nan_is_never_preferred() -> None:
    x, y = np.array([np.nan, 1.0]), np.array([1.0, np.nan])
    for isa in ISAS:
        kept = 1 if host(isa).minnum else np.nan  # y where y < x, else x
        np.testing.assert_array_equal(elementwise(min, x, y, isa=isa), [kept, 1])
        np.testing.assert_array_equal(elementwise(max, x, y, isa=isa), [kept, 1])
        np.testing.assert_array_equal(elementwise(lambda a: ops.where(a - 1 == a - 1, a, 7.0), x, isa=isa), [7, 1])


def test_numbers_as_conditions_and_conditions_as_numbers() -> None:
    x, y = every_pair(np.dtype(np.int16))
    for isa in ISAS:
        np.testing.assert_array_equal(elementwise(lambda a, b: ops.where(a, b, 5), x, y, isa=isa), np.where(x != 0, y, 5))
        np.testing.assert_array_equal(elementwise(lambda a, b: a or b, x, y, isa=isa), np.where(x != 0, x, y))
        np.testing.assert_array_equal(elementwise(lambda a, b: (a > b) + (a > 0) * 2, x, y, isa=isa), (x > y) + (x > 0) * 2)
        np.testing.assert_array_equal(elementwise(lambda a, b: ops.where((a > b) == (b > 0), 1, 0), x, y, isa=isa), (x > y) == (y > 0))
        floats = elementwise(lambda a, b: (a > b) * 0.5 + ops.sqrt(ops.where(a > 0, 4, 9)), x.astype("f4"), y.astype("f4"), isa=isa)
        np.testing.assert_array_equal(floats, (x > y) * 0.5 + np.where(x > 0, 2, 3))


def test_conditions_are_combined() -> None:
    x, y = every_pair(np.dtype(np.int32))
    for isa in ISAS:
        found = elementwise(lambda a, b: 1 if (0 < a < b or a == 7) and b != 100 else 0, x, y, isa=isa)
        np.testing.assert_array_equal(found, (((x > 0) & (x < y)) | (x == 7)) & (y != 100))
        nested = elementwise(lambda a, b: ops.where(ops.where(a > b, a > 0, ops.logical_not(b > 0)), a, b), x, y, isa=isa)
        np.testing.assert_array_equal(nested, np.where(np.where(x > y, x > 0, ~(y > 0)), x, y))


@pytest.mark.parametrize(
    ("function", "dtype", "error", "message"),
    [
        (lambda a: a // 2, "float32", TraceError, "//"),
        (lambda a: a % 2, "float64", TraceError, "%"),
        (lambda a: a & 1, "float64", DTypeError, "'and'"),
        (lambda a: a >> 1, "float32", DTypeError, "'shr'"),
        (lambda a: a / 2, "int32", DTypeError, "'div'"),
        (lambda a: ops.exp(a), "int64", DTypeError, "'exp'"),
        (lambda a: a + 0.5, "int32", DTypeError, "0.5"),
        (lambda a: a + 70000, "int16", DTypeError, "70000"),
        (lambda a: a + 300, "uint8", DTypeError, "300"),
    ],
)
def test_what_no_instruction_computes_is_refused(function: Any, dtype: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        elementwise(function, np.ones(4, dtype))
