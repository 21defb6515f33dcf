"""Chains of products: the order against NumPy's and against all orders there are, the product against one from left to right."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.chain import bracketed, multiply_chain
from tests.kernels.samples import CASES, DTypes, elements, examples, name, squeeze

INF = float("inf")


def steps_of(sides: list[int]) -> int:
    """The steps of the order that is chosen."""
    total = 0

    def multiply(x: tuple[int, int], y: tuple[int, int], _: Any) -> tuple[int, int]:
        nonlocal total
        assert x[1] == y[0]
        total += x[0] * x[1] * y[1]
        return x[0], y[1]

    assert multiply_chain([*itertools.pairwise(sides)], sides, multiply) == (sides[0], sides[-1])
    return total


@functools.cache
def fewest(sides: tuple[int, ...]) -> int:
    """The fewest steps of all orders, by the definition."""
    if len(sides) <= 2:
        return 0
    return min(fewest(sides[: s + 1]) + fewest(sides[s:]) + sides[0] * sides[s] * sides[-1] for s in range(1, len(sides) - 1))


@examples(60)
@given(st.lists(st.integers(0, 50), min_size=3, max_size=8))
def test_the_order_takes_the_fewest_steps(sides: list[int]) -> None:
    assert steps_of(sides) == fewest(tuple(sides))


def test_ties_are_multiplied_from_left_to_right() -> None:
    assert bracketed([3] * 5) == "(((0 1) 2) 3)"
    assert bracketed([10, 30, 5, 60]) == "((0 1) 2)"
    assert bracketed([30, 35, 15, 5, 10, 20, 25]) == "((0 (1 2)) ((3 4) 5))"  # Cormen et al.


def test_a_long_chain() -> None:
    assert steps_of([2] * 301) == 299 * 8


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("semiring", "dtypes"), CASES, ids=name)
def test_all_semirings_and_dtypes(semiring: sr.Semiring, dtypes: DTypes) -> None:
    rng = np.random.default_rng(0)
    shapes = [(3, 7), (7, 2), (2, 5), (5, 1)]
    factors = [elements(semiring, dtypes, shape, rng) for shape in shapes]
    try:
        expected = functools.reduce(lambda x, y: sr.matmul(x, y, semiring), map(squeeze, factors))
        found = sr.multi_dot([squeeze(x) for x in factors], semiring)
    except sr.OverflowRiskError:
        assert dtypes[0].kind in "iu"
        return
    expected, found = (x if isinstance(x, tuple) else (x,) for x in (expected, found))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6) if x.dtype.kind == "f" else np.testing.assert_array_equal(x, y)


def test_against_numpy_with_vectors_stacks_and_out() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(4, 9)), rng.normal(size=(9, 3)), rng.normal(size=(3, 6))
    for chain in ([a, b, c], [a[0], b, c], [a, b, c[:, 0]], [a[0], b, c[:, 0]], [a[0], b[:, 0]]):
        np.testing.assert_allclose(sr.multi_dot(chain, "plus-times"), np.linalg.multi_dot(chain), rtol=1e-12)
    out = np.empty((4, 6))
    assert sr.multi_dot([a, b, c], "plus-times", out=out) is out
    np.testing.assert_allclose(out, a @ b @ c, rtol=1e-12)
    stack = rng.normal(size=(5, 3, 6))
    np.testing.assert_allclose(sr.multi_dot([a, b, stack], "plus-times"), a @ b @ stack, rtol=1e-12)


def test_dtypes_are_promoted_before_anything_is_multiplied() -> None:
    """∞ stays ∞, and integers that would overflow among themselves do not beside floats."""
    top = np.iinfo("i2").max
    a = np.array([[20_000, top], [0, 1]], "i2")
    found = sr.multi_dot([a, a, np.array([[0.5, INF], [INF, 0.25]])], sr.MIN_PLUS)
    assert found.tolist() == [[40000.5, INF], [1.5, 2.25]]
    with pytest.raises(sr.OverflowRiskError, match="int16"):
        sr.multi_dot([a, a], sr.MIN_PLUS)
    exact = [[Fraction(1, 3)]], [[2]], [[3]]
    assert sr.multi_dot([np.array(x, object) for x in exact], "plus-times").tolist() == [[2]]


@pytest.mark.parametrize(
    ("error", "match", "arrays"),
    [
        (sr.ShapeError, "at least two", [np.eye(2)]),
        (sr.ShapeError, "do not fit", [np.eye(2), np.eye(3), np.eye(3)]),
        (sr.ShapeError, r"arrays\[1\] of shape \(2,\) is no matrix", [np.eye(2), np.ones(2), np.eye(2)]),
        (sr.DomainError, "nan", [np.eye(2), np.full((2, 2), np.nan), np.eye(2)]),
    ],
)
def test_what_does_not_fit_is_refused(error: type[Exception], match: str, arrays: list[Any]) -> None:
    with pytest.raises(error, match=match):
        sr.multi_dot(arrays, "plus-times")


def test_no_k_wins_in_a_chain_or_a_power() -> None:
    a, b = np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[3.0], [0.5]])
    assert sr.multi_dot([a, a, b], sr.TROPICAL_ARGMIN).tolist() == sr.multi_dot([a, a, b], sr.TROPICAL).tolist()
    assert sr.multi_dot([a, b], sr.TROPICAL_ARGMIN).tolist() == sr.matmul(a, b, sr.TROPICAL).tolist()
    assert sr.power(a, 3, sr.TROPICAL_ARGMIN).tolist() == sr.power(a, 3, sr.TROPICAL).tolist()
