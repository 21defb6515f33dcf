"""Relaxations of min-plus and max-plus, against NumPy's sums of exponentials, and the laws of semirings."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import semiring as sr


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.3, 1, 3, Fraction(1, 2), 100.0])
@pytest.mark.parametrize(("semiring", "sign"), [(sr.MIN_PLUS, -1), (sr.MAX_PLUS, 1)], ids=str)
def test_products(semiring: sr.Semiring, sign: int, temperature: Any) -> None:
    rng, scale = np.random.default_rng(0), sign / float(temperature)
    a, b = 5 * rng.random((9, 20)), 5 * rng.random((20, 7))
    a[1, 2:] = b[:, 3] = semiring.zero
    expected = np.logaddexp.reduce(scale * (a[:, :, None] + b[None]), axis=1) / scale
    np.testing.assert_allclose(sr.matmul(a, b, semiring.smooth(temperature)), expected, rtol=1e-10)


@pytest.mark.parametrize("temperature", [0.25, 1, 2])
def test_closures_sum_all_walks(temperature: float) -> None:
    lengths = np.random.default_rng(0).random((9, 9)) * 5 + 6
    expected = -temperature * np.log(np.linalg.inv(np.eye(9) - np.exp(-lengths / temperature)))
    np.testing.assert_allclose(sr.closure(lengths, sr.MIN_PLUS.smooth(temperature)), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sr.closure(-lengths, sr.MAX_PLUS.smooth(temperature)), -expected, rtol=1e-9, atol=1e-9)


def test_a_low_temperature_gives_shortest_paths() -> None:
    lengths = np.random.default_rng(0).random((9, 9)) + 0.1
    np.testing.assert_allclose(sr.closure(lengths, sr.MIN_PLUS.smooth(1e-3)), sr.apsp(lengths), atol=5e-3)


@pytest.mark.parametrize("temperature", [0.5, 2])
def test_laws(temperature: float) -> None:
    for semiring in (sr.MIN_PLUS, sr.MAX_PLUS):
        smooth = semiring.smooth(temperature)
        assert smooth.components == 1
        assert smooth.program.exponential == Fraction(1 if semiring is sr.MAX_PLUS else -1) / Fraction(temperature)
        assert smooth == semiring.smooth(temperature)
        assert smooth != semiring


def test_divergence_names_the_temperature() -> None:
    lengths = np.array([[np.inf, 1.0], [1.0, 1.0]])
    assert np.isfinite(sr.apsp(lengths)).all()
    with pytest.raises(sr.DivergenceError, match="at temperature 5"):
        sr.closure(lengths, sr.MIN_PLUS.smooth(5))
    with pytest.raises(sr.DivergenceError, match="at temperature 5"):
        sr.closure(np.array([[1e-9]]), sr.MAX_PLUS.smooth(5))


def test_refused() -> None:
    assert sr.MAX_PLUS.smooth(0) is sr.MAX_PLUS
    for semiring in (sr.LOG, sr.MAX_MIN, sr.PLUS_TIMES, sr.BOOLEAN, sr.DISTANCE_HOPS, sr.TROPICAL_ARGMIN):
        with pytest.raises(sr.SemiringError, match="has no relaxation; min-plus and max-plus have one"):
            semiring.smooth(1)
    for temperature in (-1, 1e-31, 5e-324, 1e31, math.nan, math.inf, "1", None, 1j):
        with pytest.raises(sr.SemiringError, match=r"temperature is .*; it must be 0, or a number from 1e-30 to 1e30"):
            sr.MIN_PLUS.smooth(temperature)  # type: ignore[arg-type]


def test_pickles() -> None:
    smooth = sr.MIN_PLUS.smooth(0.5)
    assert pickle.loads(pickle.dumps(smooth)) == smooth
