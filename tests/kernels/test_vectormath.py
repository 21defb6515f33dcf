"""The generated exp, expm1, log and log1p: accurate over the whole range, and right at its ends, on every instruction set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from semiring.algebra import ops
from tests.kernels.elementwise import Array, elementwise
from tests.kernels.samples import ISAS

INF, NAN = math.inf, math.nan
FUNCTIONS = ("exp", "expm1", "log", "log1p")
ULPS = 2 if np.finfo(np.longdouble).nmant > 52 else 3
"""One more where the exact values are doubles too."""


def errors(found: Array, exact: Array) -> Array:
    """The distance from the exact values in units of their last place; 0 where both are one infinity, or both NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(found.dtype)
        distance = abs(found.astype(exact.dtype) - exact) / np.spacing(abs(rounded)).astype(exact.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isfinite(distance), distance, INF))


def arguments(function: str, dtype: Any) -> Array:
    """Every order of magnitude, where it is interesting densely."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    low, high = math.log(float(info.smallest_subnormal)), math.log(float(info.max))
    every = 2.0 ** rng.uniform(math.log2(float(info.smallest_subnormal)) + 1, math.log2(float(info.max)) - 1, 20_000)
    if function in ("exp", "expm1"):
        middle = rng.uniform(low - 2, high + 2, 40_000)
        middle = middle[abs(middle - high) > 1e-4]  # where the last finite result lies is tested below
        small = 2.0 ** rng.uniform(math.log2(float(info.smallest_subnormal)), 0, 10_000)
        return np.concatenate([middle, small, -small, rng.normal(size=10_000)]).astype(dtype)
    near = 1 + rng.normal(scale=0.01, size=10_000)
    if function == "log1p":
        every, near = np.concatenate([every, -(2.0 ** rng.uniform(math.log2(float(info.smallest_subnormal)), 0, 20_000))]), near - 1
    return np.concatenate([every, near, rng.uniform(0, 3, 10_000), np.arange(1, 100) * float(info.smallest_subnormal)]).astype(dtype)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_accuracy(function: str, dtype: Any, isa: str) -> None:
    x = arguments(function, dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, function)(x.astype(np.longdouble))
    error = errors(elementwise(getattr(ops, function), x, isa=isa), exact)
    worst = int(error.argmax())
    assert error[worst] <= ULPS, f"{function}({x[worst]!r}) is {error[worst]:.1f} units off"


ENDS: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e4, INF), (-1e4, 0)],
    "expm1": [(0.0, 0), (-0.0, 0), (INF, INF), (-INF, -1), (NAN, NAN), (1e4, INF), (-1e4, -1), (1e-30, 1e-30), (-1e-30, -1e-30)],
    "log": [(1.0, 0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN), (-1e-40, NAN)],
    "log1p": [(0.0, 0), (-0.0, 0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (NAN, NAN), (1e-30, 1e-30), (-1e-30, -1e-30)],
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_ends(function: str, dtype: Any, isa: str) -> None:
    x, expected = np.array(ENDS[function], dtype=dtype).T
    np.testing.assert_array_equal(elementwise(getattr(ops, function), x, isa=isa), expected)
    np.testing.assert_array_equal(elementwise(getattr(ops, function), x, isa=isa, lanes=1), expected)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_overflow_and_underflow_begin_where_they_must(dtype: Any, isa: str) -> None:
    info = np.finfo(dtype)
    top = np.log(info.max)
    x = np.array([np.nextafter(top, dtype(0)), np.nextafter(top, dtype(INF)), np.nextafter(np.nextafter(top, dtype(INF)), dtype(INF))])
    found = elementwise(ops.exp, x, isa=isa)
    assert np.isfinite(found[0])
    assert found[2] == INF
    least = elementwise(ops.exp, np.array([np.log(info.smallest_subnormal)], dtype=dtype), isa=isa)
    assert least[0] == info.smallest_subnormal


@pytest.mark.parametrize("isa", ISAS)
def test_functions_rise(isa: str) -> None:
    """Where an argument is in the next piece of a reduction, the result must not step back by more than its error."""
    x = np.linspace(0.5, 8, 200_001, dtype=np.float32)
    for function in FUNCTIONS:
        steps = np.diff(elementwise(getattr(ops, function), x, isa=isa).astype(float))
        assert (steps >= -2 * np.spacing(np.float32(math.exp(8)))).all()
