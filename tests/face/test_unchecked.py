"""``check=False`` leaves out the refusals, and nothing else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr

INF = np.inf


def drawn(n: int, dtype: Any, *, negative: bool, seed: int) -> Any:
    """A graph without negative cycles, some of whose edges are negative on request."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    infinity = INF if dtype.kind == "f" else np.iinfo(dtype).max
    weights = rng.integers(0, 20, (n, n))
    if negative:
        p = rng.integers(0, 30, n)
        weights = weights + p[:, None] - p
    return np.where(rng.random((n, n)) < 0.3, weights, infinity).astype(dtype)


@settings(max_examples=24)
@given(st.integers(1, 40), st.sampled_from(["f4", "f8", "i2", "i4", "i8"]), st.booleans(), st.booleans(), st.integers(0, 1000))
def test_the_result_is_the_same(n: int, dtype: str, negative: bool, paths: bool, seed: int) -> None:
    a = drawn(n, dtype, negative=negative, seed=seed)
    checked, unchecked = (sr.apsp(a, paths=paths, nonedge=a.max(), check=check) for check in (True, False))
    if paths:
        np.testing.assert_array_equal(checked.via, unchecked.via)
        checked, unchecked = checked.distances, unchecked.distances
    np.testing.assert_array_equal(checked, unchecked)
    assert checked.dtype == unchecked.dtype


@pytest.mark.sampled(4)
@pytest.mark.parametrize("semiring", [sr.MAX_MIN, sr.MAX_PLUS, sr.PLUS_TIMES, sr.LOG, sr.DISTANCE_COUNT], ids=repr)
@pytest.mark.parametrize("shape", [(9, 9), (3, 5, 5)])
def test_every_kind_of_semiring(semiring: sr.Semiring, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    part = -5 - rng.random(shape) if semiring in (sr.MAX_PLUS, sr.LOG) else rng.random(shape) / 20
    a: Any = (part, np.ones(shape)) if semiring.components > 1 else part
    checked, unchecked = (sr.closure(a, semiring, nonedge=None, check=check) for check in (True, False))
    assert np.asarray(checked).tobytes() == np.asarray(unchecked).tobytes()


def test_what_is_left_out() -> None:
    a = np.array([[0.0, np.nan], [1.0, 0.0]])
    with pytest.raises(sr.DomainError):
        sr.apsp(a)
    assert sr.apsp(a, check=False).shape == (2, 2)
    large = np.array([[0, 20000], [20000, 0]], dtype=np.int16)
    with pytest.raises(sr.OverflowRiskError):
        sr.apsp(large, nonedge=32767)
    sr.apsp(large, nonedge=32767, check=False)
    assert sr.apsp(large, nonedge=32767, check=False, sources=[0]).tolist() == [[0, 20000]]
    zeros = np.zeros((3, 3))
    with pytest.warns(sr.NonEdgeWarning):
        sr.apsp(zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sr.apsp(zeros, check=False)


def test_negative_cycles_are_told() -> None:
    with pytest.raises(sr.NegativeCycleError) as error:
        sr.apsp(np.array([[0.0, -2.0], [1.0, 0.0]]), check=False)
    assert error.value.cycle is not None


def test_cycles_that_only_rounding_makes_negative_are_mended() -> None:
    """As in a graph of potentials, whose cycles weigh 0."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        p = rng.random(30)
        a = p[:, None] - p
        checked, unchecked = (sr.apsp(a, nonedge=INF, check=check) for check in (True, False))
        assert checked.tobytes() == unchecked.tobytes()


def test_truth_values_and_edges() -> None:
    bits = np.random.default_rng(0).random((40, 40)) < 0.05
    np.testing.assert_array_equal(sr.transitive_closure(bits, check=False), sr.transitive_closure(bits))
    roads = sr.edges([("a", "b", 1.0), ("b", "c", 2.0)])
    np.testing.assert_array_equal(sr.apsp(roads, check=False), sr.apsp(roads))
