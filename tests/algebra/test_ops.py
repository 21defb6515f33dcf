"""The functions of semiring.ops on every kind of operand: numbers, Fractions, arrays, arrays of objects, SymPy, symbols."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring.ops as public
from semiring.algebra import ops
from semiring.algebra.expression import evaluate
from semiring.algebra.tracing import record

UNARY = ("exp", "expm1", "log", "log1p", "sqrt")
_NUMBERS = st.floats(-50, 50) | st.sampled_from([-math.inf, math.inf, 0.0, -0.0, -1.0])


def same(x, y):
    return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-14)


def test_the_public_module_has_the_same_functions():
    assert all(getattr(public, name) is getattr(ops, name) for name in ops.__all__)


@pytest.mark.parametrize("name", UNARY)
@given(x=_NUMBERS)
def test_functions_agree_on_numbers_arrays_and_recordings(name, x):
    function = getattr(ops, name)
    number = function(x)
    assert isinstance(number, float)
    assert same(number, float(function(np.float64(x))))
    assert same(number, float(function(np.array([x]))[0]))
    objects = function(np.array([x], dtype=object))
    assert objects.dtype == object
    assert same(number, objects[0])
    recorded = record(function, 1, 1).results
    assert same(number, evaluate(recorded, [x], [], ops.TABLE)[0])


def test_functions_at_their_limits():
    assert ops.log(0) == -math.inf
    assert ops.log1p(-1) == -math.inf
    assert ops.exp(1e4) == ops.expm1(1e4) == math.inf
    assert math.isnan(ops.log(-1))
    assert math.isnan(ops.log1p(-2))
    assert math.isnan(ops.sqrt(-1))
    assert ops.log(10**400) == pytest.approx(400 * math.log(10))


@given(_NUMBERS, _NUMBERS)
def test_logaddexp(x, y):
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(x, y)
    assert same(ops.logaddexp(x, y), expected)
    array = ops.logaddexp(np.array([x, x]), np.array([y, y]))
    assert same(array[1], expected)
    assert same(evaluate(record(ops.logaddexp, 2, 1).results, [x], [y], ops.TABLE)[0], expected)
    assert same(ops.logaddexp(np.array([x], dtype=object), y)[0], expected)


BEYOND = 10**400
"""A number that no float holds."""

EXACT: list[Any] = [
    0, 1, -1, 2, 100, -100, 10**15 + 1, BEYOND, -BEYOND, Fraction(1, BEYOND), Fraction(-1, BEYOND), Fraction(1, 3), Fraction(-1, 3),
    Fraction(3, 2), Fraction(2, 3), Fraction(10**30 + 1, 10**30), Fraction(1 - 10**30, 10**30), Fraction(BEYOND, 3), Fraction(1, 10**310),
    Fraction(-700), True,
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_exact_numbers(name):
    """Also of those that floats do not hold, or cannot tell from 1."""
    start = {"log": 0, "log1p": -1, "sqrt": 0}.get(name, -math.inf)
    for x in EXACT:
        with mpmath.workprec(3000):
            value = mpmath.mpf(x.numerator) / x.denominator
            if "exp" in name:
                value = min(max(value, -1e5), 1e5)  # as good as ±∞, and mpmath can write it down
            if x == start and name != "sqrt":
                expected = -math.inf
            else:
                expected = float(getattr(mpmath, name)(value)) if x >= start else math.nan
        for found in (getattr(ops, name)(x), getattr(ops, name)(np.array([x], dtype=object))[0]):
            assert isinstance(found, float)
            assert found == pytest.approx(expected, rel=4e-16, abs=5e-324, nan_ok=True), x


def test_logaddexp_of_exact_numbers():
    assert ops.logaddexp(0, -BEYOND) == ops.logaddexp(Fraction(-BEYOND, 3), Fraction(0)) == 0
    assert ops.logaddexp(Fraction(1, 3), Fraction(1, 3)) == pytest.approx(1 / 3 + math.log(2), rel=4e-16)
    with pytest.raises(OverflowError):  # no float is near
        ops.logaddexp(BEYOND, 0)


def test_logaddexp_of_numpys_numbers():
    """Integers too, whose differences could wrap; scalars of scalars, and NaN of NaN."""
    for dtype in ("uint8", "int8", "uint64", "int64", "float32", "float64"):
        x, y = np.array([1, 100, 0], dtype), np.array([3, 100, 120], dtype)
        np.testing.assert_array_equal(ops.logaddexp(x, y), np.logaddexp(x, y))
    with np.errstate(all="raise"):
        assert ops.logaddexp(np.float32(-3e38), np.float32(3e38)) == np.float32(3e38)
        assert type(ops.logaddexp(np.float32(1), 0.5)) is np.float32
    assert all(math.isnan(ops.logaddexp(*pair)) for pair in ((math.nan, 1.0), (1.0, math.nan), (np.float64(1), math.nan)))
    assert isinstance(ops.where(np.float64(1) > 0, np.float64(1), 2.0), np.float64)


@pytest.mark.parametrize("digits", [15, 60])
@pytest.mark.parametrize("text", ["1e-20", "-1e-20", "1e-200", "-0.4", "0.3", "0.7", "-0.9", "30", "-30", "1e30", "-1e30"])
def test_floats_of_sympy_keep_their_digits(text, digits):
    x: Any = sp.Float(text, digits)
    for name in ("expm1", "log1p"):
        if (name == "expm1" and x > 100) or (name == "log1p" and x < -1):
            continue
        found = getattr(ops, name)(x)
        with mpmath.workdps(2 * digits + 200):
            exact = getattr(mpmath, name)(x.num)
            assert abs(found.num - exact) <= mpmath.mpf(10) ** (1 - digits) * abs(exact)


@given(st.fractions(), st.fractions())
def test_fractions_stay_exact(x, y):
    assert ops.minimum(x, y) == min(x, y)
    assert ops.maximum(x, y) == max(x, y)
    assert ops.absolute(-abs(x)) == abs(x)
    assert ops.where(x < y, x, y) == min(x, y)
    pair = np.array([x, y], dtype=object)
    low = ops.minimum(pair, pair[::-1])
    assert low.dtype == object
    assert list(low) == [min(x, y)] * 2
    recorded = record(lambda a, b: a + b if a < b else max(a, b) * 2 - b, 2, 1).results
    found = evaluate(recorded, [pair], [pair[::-1]], ops.TABLE)[0]
    assert list(found) == [a + b if a < b else a * 2 - b for a, b in ((x, y), (y, x))]
    assert all(isinstance(v, Fraction) for v in found)


def test_sympy_expressions():
    x, y = sp.symbols("x y")
    assert ops.minimum(x, y) == sp.Min(x, y)
    assert ops.maximum(x, 2) == sp.Max(x, 2)
    assert ops.exp(x) == sp.exp(x)
    assert ops.expm1(x) == sp.exp(x) - 1
    assert ops.log(x) == sp.log(x)
    assert ops.log(sp.Integer(0)) == -sp.oo
    assert ops.log1p(sp.Integer(-1)) == -sp.oo
    assert ops.sqrt(x) == sp.sqrt(x)
    assert ops.absolute(x) == sp.Abs(x)
    assert ops.where(x < y, x, y) == sp.Piecewise((x, x < y), (y, True))
    assert ops.where(True, x, y) is x
    assert ops.logical_not(x < y) == (x >= y)
    assert ops.logaddexp(x, y) == sp.log(sp.exp(x) + sp.exp(y))
    assert ops.logaddexp(-sp.oo, -sp.oo) == -sp.oo


def test_recordings_on_sympy():
    x, y = sp.symbols("x y", real=True)
    f = sp.Function("f")(x)
    (low,) = evaluate(record(min, 2, 1).results, [x], [f], ops.TABLE)
    assert low == sp.Min(x, f)
    (chosen,) = evaluate(record(lambda a, b: a + 1 if a == b else b, 2, 1).results, [x], [y], ops.TABLE)
    assert chosen.subs({x: 3, y: 3}) == 4
    assert chosen.subs({x: 3, y: 5}) == 5
    objects = np.array([x, y, sp.Integer(2)], dtype=object)
    (array,) = evaluate(record(lambda a, b: a if a < b else b, 2, 1).results, [objects], [sp.Integer(1)], ops.TABLE)
    assert list(array) == [sp.Min(1, x), sp.Min(1, y), 1]


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint8", "float32", "float64"])
def test_selections_keep_the_dtype(dtype):
    x, y = np.array([1, 0], dtype=dtype), np.array([0, 1], dtype=dtype)
    for result in (ops.minimum(x, y), ops.maximum(x, y), ops.where(x > y, x, y), ops.TABLE["where"](x < y, x, y)):
        assert result.dtype == dtype
    assert ops.logical_not(x > y).tolist() == [False, True]
    assert ops.logical_not(True) is False
    assert ops.where(1 > 2, "yes", "no") == "no"


def test_tables_warn_of_nothing():
    inf = np.array([np.inf])
    with np.errstate(all="raise"):
        assert np.isnan(ops.TABLE["sub"](inf, inf)).all()
        assert np.isinf(ops.TABLE["div"](inf, np.array([0.0]))).all()
        assert ops.TABLE["log"](np.array([0.0]))[0] == -np.inf
