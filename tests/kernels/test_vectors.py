"""Products of a matrix and a vector: against the definition, however the matrix lies; and what is refused while it is multiplied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import LOG, MAX_MIN, MAX_TIMES, MIN_PLUS, PLUS_TIMES
from semiring.common.errors import DomainError
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.statistics import bounds_in_words
from semiring.kernels.engine import Block
from semiring.kernels.limits import FINITE, HIGHEST, LOWEST, SafeRange
from semiring.kernels.overflow import products
from semiring.kernels.overflow.statistics import value_statistics
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from tests.kernels.samples import CASES, ISAS, Array, elements, examples

INF = math.inf
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.mark.exhaustive
@examples(200)
@given(case=st.sampled_from(CASES), isa=st.sampled_from(ISAS), seed=seeds, data=st.data())
def test_all_layouts(case: Any, isa: str, seed: np.random.Generator, data: st.DataObject) -> None:
    semiring, dtypes = case
    n = data.draw(st.sampled_from([1, 2, 15, 16, 17, 33, 64, 65, 131, 2048, 2065, 4100]), label="n")
    k = data.draw(st.sampled_from([1, 3, 64, 65, 100, 260, 513, 1030]), label="k")
    if semiring.name in ("distance-count", "plus-times") and dtypes[0].itemsize == 1:
        k = min(k, 129)  # a byte counts no further
    row, fortran, fresh = (data.draw(st.booleans(), label=label) for label in ("a row", "Fortran", "fresh"))
    shapes = ((1, k), (k, n), (1, n)) if row else ((n, k), (k, 1), (n, 1))
    a, b, c = (elements(semiring, dtypes, shape, seed) for shape in shapes)
    if fortran:
        a, b = (tuple(map(np.asfortranarray, x)) for x in (a, b))
    if data.draw(st.booleans(), label="a vector of every other element"):
        a, b = (tuple(np.repeat(np.repeat(v, 2, 0), 2, 1)[::2, ::2] if 1 in v.shape else v for v in x) for x in (a, b))
    found, expected = (tuple(v.copy() for v in c) for _ in range(2))
    engine = CpuEngine(semiring, dtypes, data.draw(st.sampled_from([1, 3]), label="threads"), isa)
    engine.signed = True
    for each, values in ((engine, found), (ReferenceEngine(semiring, dtypes), expected)):
        (each.multiply if fresh else each.multiply_add)(Block(a), Block(b), Block(values))
    for x, y in zip(found, expected, strict=True):
        if semiring.name == "log":
            np.testing.assert_allclose(x, y, rtol=1e-3 if dtypes[0].itemsize == 4 else 1e-9)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("semiring", [PLUS_TIMES, LOG], ids=str)
@pytest.mark.parametrize("fortran", [False, True])
def test_sums_do_not_depend_on_threads(semiring: Any, fortran: bool) -> None:
    rng = np.random.default_rng(0)
    a, v = rng.random((1500, 1100)), rng.random(1500)
    a = np.asfortranarray(a) if fortran else a
    for x, y in ((v, a), (a.T, v)):
        one, *others = (matmul(x, y, semiring, threads=threads) for threads in (1, 2, 3, 7))
        for other in others:
            np.testing.assert_array_equal(one, other)
    if semiring is PLUS_TIMES:
        np.testing.assert_allclose(matmul(v, a, semiring), v @ a, rtol=1e-13)


LARGE = 600
"""Side of a matrix that is checked while it is multiplied."""


def large(dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 100, (LARGE, LARGE + 1)).astype(dtype)


@pytest.mark.parametrize("place", [(0, 0), (LARGE - 1, LARGE), (LARGE - 1, 0), (300, 17)])
@pytest.mark.parametrize(("semiring", "bad", "error"), [
    (MIN_PLUS, math.nan, DomainError),
    (MIN_PLUS, -INF, DomainError),
    (MAX_MIN, math.nan, DomainError),
    (MAX_TIMES, -1, DomainError),
    (MAX_TIMES, math.nan, DomainError),
])  # fmt: skip
def test_what_is_refused_leaves_out_as_it_is(semiring: Any, bad: float, error: Any, place: tuple[int, int]) -> None:
    a = large()
    a[place] = bad
    v = np.ones(LARGE + 1, np.float32)
    for x, y in ((a, v), (v[1:], a), (np.asfortranarray(a), v)):
        out = np.full((x @ y).shape, 7, np.float32)
        with pytest.raises(error):
            matmul(x, y, semiring, out=out)
        assert (out == 7).all()
        with pytest.raises(error):
            matmul(x, y, semiring)


@pytest.mark.parametrize("semiring", [MIN_PLUS, MAX_MIN], ids=str)
@pytest.mark.parametrize("value", [INF, -INF, 0.0, -0.0, 5e-324, -1e300, 1.7e308])
def test_elements_pass(semiring: Any, value: float) -> None:
    a, v = large(np.float64), np.zeros(LARGE + 1)
    a[3, 4] = value
    if semiring is MIN_PLUS and (value == -INF or (value > 1e308 and value < INF)):
        return
    expected = (a + v).min(1) if semiring is MIN_PLUS else np.minimum(a, v).max(1)
    np.testing.assert_array_equal(matmul(a, v, semiring), expected)


def test_the_matrix_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(arrays: Any, *rest: Any, **named: Any) -> Any:
        read.append(len(arrays))
        return value_statistics(arrays, *rest, **named)

    monkeypatch.setattr(products, "value_statistics", counted)
    for dtype in (np.float32, np.float64, np.int32):
        a, v = large(dtype), np.arange(LARGE + 1).astype(dtype)
        out = np.empty(LARGE, dtype)
        assert matmul(a, v, MIN_PLUS, out=out) is out
        np.testing.assert_array_equal(out, (a + v).min(1))
        np.testing.assert_array_equal(matmul(v[:LARGE], a, MIN_PLUS), (a + v[:LARGE, None]).min(0))
    assert not read
    a = large(np.int32)
    a[5, 5] = -3  # which could pull an ∞ back
    np.testing.assert_array_equal(matmul(a, np.zeros(LARGE + 1, np.int32), MIN_PLUS), a.min(1))
    assert read


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "u8", "i8", "f4", "f8"])
def test_bounds_hold_what_they_say(dtype: str) -> None:
    """The kernel's words against comparisons, at all ends."""
    d = np.dtype(dtype)
    ends = (-INF, INF) if d.kind == "f" else (int(np.iinfo(d).min), int(np.iinfo(d).max))
    for kinds in (FINITE, FINITE | HIGHEST, FINITE | LOWEST):
        safe = SafeRange(0 if d.kind == "u" else -9, 100, kinds)
        words = bounds_in_words(safe, d)
        assert words is not None
        allowed = [safe.low, safe.high, 0, 1, *(e for e, kind in zip(ends, (LOWEST, HIGHEST), strict=True) if kinds & kind)]
        others = [101, *(e for e in ends if e not in allowed), *([math.nan, 1e30, -1e30] if d.kind == "f" else [])]
        others += [-10] if d.kind != "u" else []
        engine = CpuEngine(PLUS_TIMES if d.kind == "f" else MAX_MIN, (d,), 1)
        for value in (*allowed, *others):
            for place in ((0, 0), (2, 98), (63, 255), (63, 299)):
                a = np.full((64, 300), 3, d)
                a[place] = value
                for A, x in ((a, (300, 1)), (np.asfortranarray(a), (300, 1))):
                    C = Block((np.empty((64, 1), d),))
                    assert engine.multiply_within(Block((A,)), Block((np.full(x, 1, d),)), C, safe) == (value in allowed), (value, place)


def test_what_multiply_within_does_not_do() -> None:
    safe = SafeRange(-100.0, 100.0, FINITE)
    engine, a = CpuEngine(MIN_PLUS, (np.dtype(np.float32),)), np.ones((64, 64), np.float32)
    assert not engine.multiply_within(Block((a,)), Block((a,)), Block((a.copy(),)), safe)
    assert not engine.multiply_within(Block((a,)), Block((a[:, :1],)), Block((a[:, 1:2],)), safe)
    assert bounds_in_words(SafeRange(-1.0, 1.0, FINITE | LOWEST | HIGHEST), np.dtype(np.float64)) is None
