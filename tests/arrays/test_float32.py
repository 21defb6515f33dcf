"""Conversions of floats to float32 and back, which CuPy's own would round to zero; their text is the same for NumPy, which is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.arrays.devices import to_float32, to_float64

TINY = float(np.finfo(np.float32).smallest_subnormal)
SMALL = st.integers(-(2**26), 2**26).map(lambda k: k * TINY / 4)  # around the subnormals of float32, halfway between two of them too


def same_bits(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found, expected)


@given(st.lists(st.one_of(st.floats(width=32), SMALL), max_size=20))
def test_longer_floats(numbers: list[float]) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            array = np.array(numbers).astype(dtype)
        same_bits(to_float64(array), array.astype(np.float64))


@given(st.lists(st.one_of(st.floats(), SMALL), max_size=20))
def test_shorter_floats(numbers: list[float]) -> None:
    array = np.array(numbers, dtype=np.float64)
    with np.errstate(over="ignore"):
        same_bits(to_float32(array), array.astype(np.float32))


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(0)
    wide = np.concatenate(
        [rng.integers(-(2**26), 2**26, 10_000) * TINY / 4, rng.standard_normal(10_000), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    short = wide.astype(np.float32)
    same_bits(to_float64(cupy.asarray(short)).get(), short.astype(np.float64))
    same_bits(to_float32(cupy.asarray(wide)).get(), short)
