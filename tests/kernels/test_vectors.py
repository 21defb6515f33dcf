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
from semiring.kernels.cpu.bounds import bounds_in_words
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.limits import FINITE, HIGHEST, LOWEST, SafeRange
from semiring.kernels.overflow import products
from semiring.kernels.overflow.products import ProductChecks
from semiring.kernels.overflow.statistics import value_statistics
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from tests.kernels.samples import CASES, ISAS, SELECTIVE, Array, elements, examples

INF = math.inf
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.mark.exhaustive
@examples(40)
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
    witness = case in SELECTIVE and data.draw(st.booleans(), label="witness")
    vias = [np.full(shapes[2], -1, np.int32) if witness else None for _ in range(2)]
    for each, values, via in ((engine, found, vias[0]), (ReferenceEngine(semiring, dtypes), expected, vias[1])):
        (each.multiply if fresh else each.multiply_add)(Block(a, row=5, column=5), Block(b), Block(values, via))
    if witness:
        np.testing.assert_array_equal(vias[0], vias[1])
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


@pytest.mark.sampled(7)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 7, 150])
@pytest.mark.parametrize("order", ["C", "F"])
def test_witnesses_of_stacks_are_the_first_that_win(count: int, order: Any) -> None:
    """Against NumPy, with many ties; one vector for all, and one for each."""
    rng = np.random.default_rng(0)
    a, v = rng.integers(0, 5, (count, 70, 300)).astype(np.float32), rng.integers(0, 5, (count, 300, 1)).astype(np.float32)
    a = np.asarray(a, order=order)
    for vectors in (v, v[:1]):
        candidates = a + vectors.transpose(0, 2, 1)
        values, witness = matmul(a, vectors, MIN_PLUS, witness=True)
        np.testing.assert_array_equal(values[..., 0], candidates.min(2))
        np.testing.assert_array_equal(witness[..., 0], candidates.argmin(2))
        values, witness = matmul(vectors.transpose(0, 2, 1), a.transpose(0, 2, 1), MIN_PLUS, witness=True)
        np.testing.assert_array_equal(witness[:, 0], candidates.argmin(2))


def test_the_matrix_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(arrays: Any, *rest: Any, **named: Any) -> Any:
        read.append(len(arrays))
        return value_statistics(arrays, *rest, **named)

    monkeypatch.setattr(products, "value_statistics", counted)
    for dtype in (np.float32, np.float64, np.int32):
        a, v = large(dtype), np.arange(LARGE + 1).astype(dtype)
        np.testing.assert_array_equal(matmul(a, v, MIN_PLUS, witness=True).witness, (a + v).argmin(1))
        out = np.empty(LARGE, dtype)
        assert matmul(a, v, MIN_PLUS, out=out) is out
        np.testing.assert_array_equal(out, (a + v).min(1))
        np.testing.assert_array_equal(matmul(v[:LARGE], a, MIN_PLUS), (a + v[:LARGE, None]).min(0))
    assert not read
    a = large(np.int32)
    a[5, 5] = -3  # which could pull an ∞ back
    np.testing.assert_array_equal(matmul(a, np.zeros(LARGE + 1, np.int32), MIN_PLUS), a.min(1))
    assert read


@pytest.mark.parametrize("place", [(0, 0), (-1, -1), (4000, 2), (4079, 0)])
@pytest.mark.parametrize("bad", [math.nan, -INF])
def test_stacks_and_thin_products_are_checked_while_they_are_multiplied(bad: float, place: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((4085, 4)), rng.random((4, 12))
    stack = rng.random((4085, 4, 4))
    np.testing.assert_array_equal(matmul(a, b, MIN_PLUS), (a[:, :, None] + b).min(1))
    np.testing.assert_array_equal(matmul(stack, b, MIN_PLUS), (stack[..., None] + b).min(2))
    a[place] = stack[(place[0], 1, place[1])] = bad
    for x in (a, stack):
        out = np.full((*x.shape[:-1], 12), 7.0)
        for into in (None, out):
            with pytest.raises(DomainError):
                matmul(x, b, MIN_PLUS, out=into)
        assert (out == 7).all()
    b[2, 5], b[3, 11] = bad, INF
    with pytest.raises(DomainError):
        matmul(np.zeros((4085, 4)), b, MIN_PLUS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(4085, 4, 12), (513, 1, 1), (1027, 30, 16), (300, 200, 5)])
@pytest.mark.parametrize("witness", [False, True])
def test_thin_products_are_those_of_tiles(shape: tuple[int, int, int], witness: bool) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(sides).astype(np.float32) for sides in ((m, k), (k, n), (m, n)))
    for layout in (a, np.asfortranarray(a), np.repeat(a, 2, 0)[::2], a[::-1]):
        for old in (None, c):
            found = matmul(layout, b, MIN_PLUS, c=old, witness=witness)
            parts = [
                matmul(layout[i : i + 7], b, MIN_PLUS, c=None if old is None else c[i : i + 7], witness=witness) for i in range(0, m, 7)
            ]
            for i in range(1 + witness):
                whole = np.concatenate([part[i] if witness else part for part in parts])
                np.testing.assert_array_equal(found[i] if witness else found, whole)
    sums = [matmul(a[i : i + 7], b, PLUS_TIMES) for i in range(0, m, 7)]
    if n > 1:
        np.testing.assert_array_equal(matmul(a, b, PLUS_TIMES), np.concatenate(sums))


@pytest.mark.sampled(3)
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
        semiring = PLUS_TIMES if d.kind == "f" else MAX_MIN
        engine, checks = CpuEngine(semiring, (d,), 1), ProductChecks(semiring, (d,), 1)
        for value in (*allowed, *others):
            for place in ((0, 0), (2, 98), (63, 255), (63, 299)):
                a = np.full((64, 300), 3, d)
                a[place] = value
                for A, x in ((a, (300, 1)), (np.asfortranarray(a), (300, 1))):
                    C = Block((np.empty((64, 1), d),))
                    assert engine.multiply_within(Block((A,)), Block((np.full(x, 1, d),)), C, safe, checks.are_safe) == (
                        value in allowed
                    ), (value, place)


def test_what_multiply_within_does_not_do() -> None:
    checks = ProductChecks(MIN_PLUS, (np.dtype(np.float32),), 64)
    safe = SafeRange(-100.0, 100.0, FINITE)
    engine, a = CpuEngine(MIN_PLUS, (np.dtype(np.float32),)), np.ones((32, 32), np.float32)
    assert not engine.multiply_within(Block((a,)), Block((a,)), Block((a.copy(),)), safe, checks.are_safe)
    assert not engine.multiply_within(Block((a,)), Block((a[:, :1],)), Block((a[:, 1:2],)), safe, checks.are_safe)
    assert bounds_in_words(SafeRange(-1.0, 1.0, FINITE | LOWEST | HIGHEST), np.dtype(np.float64)) is None
