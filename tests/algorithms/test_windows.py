"""Closures in windows of distances, on an engine that cuts operands as tensor cores do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr
from semiring.algorithms import windows
from semiring.algorithms.recursive import recursive
from semiring.kernels.cuda.small_integers import REACH
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine


class Cutting(ReferenceEngine):
    """Products of entries outside of the spans count as ∞, as do sums beyond the reach of the exponents."""

    def __init__(self, side: int, dtype: Any) -> None:
        super().__init__(sr.MIN_PLUS if side > 0 else sr.MAX_PLUS, (np.dtype(dtype),))
        self.side, self.windows = side, 0
        self.scales: tuple[int, tuple[int, int], tuple[int, int]] | None = None

    def multiplies_small_integers(self, A: Block) -> bool:
        finite = A.values[0][np.isfinite(A.values[0])]
        return bool((finite % 1 == 0).all())

    def take_small_integers(self, g: int, left: tuple[int, int], right: tuple[int, int]) -> None:
        assert left[1] + right[1] <= REACH[g] or left == right
        self.scales = g, left, right
        self.windows += 1

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        if self.scales is None:
            super().multiply_add(A, B, C)
            return
        g, *spans = self.scales
        a, b = (self._cut(X.values[0], *span) for X, span in zip((A, B), spans, strict=True))
        beyond = a[:, :, None] + b[None] if g else a
        distance = self.side * beyond - spans[0][0] - spans[1][0]
        found = np.where(distance <= REACH[g], beyond, self.side * np.inf)
        whole = found.min(1) if self.side > 0 else found.max(1)
        C.values[0][...] = (np.minimum if self.side > 0 else np.maximum)(C.values[0], whole)

    def _cut(self, x: Any, origin: int, span: int) -> Any:
        distance = self.side * x - origin
        return np.where((distance >= 0) & (distance <= span), x, self.side * np.inf)


def graph(n: int, degree: float, top: int, seed: int, *, zeros: bool) -> Any:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0 if zeros else 1, top + 1, (n, n)).astype(float)
    weights[rng.random((n, n)) > degree / n] = np.inf
    return weights


def close(a: Any, side: int) -> tuple[bool, Any, Cutting]:
    """Close a graph with weights `a`, of either sign; and the distances of SciPy."""
    engine, values = Cutting(side, float), (side * a,)

    def accumulate() -> None:
        A = engine.load(values)
        engine.add_identity(A)
        recursive(engine, A, 1)

    done = windows.close_in_windows(engine, accumulate, values, int(a[np.isfinite(a)].max(initial=0)))
    assert engine.scales is None
    if not done:
        accumulate()
    return done, side * values[0], engine


def distances(a: Any) -> Any:
    """Distances by SciPy, which takes 0 for no edge."""
    tiny = 1 / 1024
    return np.round(floyd_warshall(np.where(a == 0, tiny, np.where(np.isinf(a), 0, a))))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.sampled_from([1.5, 3, 10, 40]),
    st.integers(1, 50),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([1, -1]),
)
def test_random_graphs(n: int, degree: float, top: int, seed: int, zeros: bool, side: int) -> None:
    a = graph(n, degree, top, seed, zeros=zeros)
    np.testing.assert_array_equal(close(a, side)[1], distances(a))


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("n", "weight"), [(12, 1), (24, 1), (25, 1), (40, 1), (30, 2), (20, 5), (12, 8), (30, 3)])
def test_paths_take_several_windows(n: int, weight: int, side: int) -> None:
    a = np.full((n, n), np.inf)
    a[np.arange(n - 1), np.arange(1, n)] = weight
    done, found, engine = close(a, side)
    assert done == (n <= 32)
    assert engine.windows > 1 or not done or weight * n <= 46
    np.testing.assert_array_equal(found, distances(a))


def test_distances_at_the_cut_are_proved_or_done_again() -> None:
    """The longest distance, and one edge more, at the cut of either speed, one below and one above."""
    for cut in (23, 46):
        for longest in range(cut - 3, cut + 4):
            a = np.full((9, 9), np.inf)
            a[0, 1:8] = np.linspace(longest, longest - 6, 7)
            a[8, 0] = 1
            _, found, _ = close(a, 1)
            np.testing.assert_array_equal(found, distances(a))


def test_large_weights_beside_zeros_are_left_to_other_products() -> None:
    a = graph(30, 30, 1, 0, zeros=True)
    a[3, 4] = 10**6
    done, found, engine = close(a, 1)
    assert not done
    assert engine.windows == 0
    np.testing.assert_array_equal(found, distances(a))


def test_fractions_are_left_to_other_products() -> None:
    a = graph(20, 20, 5, 0, zeros=False)
    a[2, 3] = 1.5
    assert not close(a, 1)[0]
