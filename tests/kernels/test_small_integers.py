"""Products and closures of small integers on tensor cores: the exponents, the chains, and whole calls on a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algebra.definition import Semiring
from semiring.execution import relaunch
from semiring.kernels import machine
from semiring.kernels.cuda import small_integers
from semiring.kernels.cuda.compiler import rehearsing
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.small_integers import REACH, fitting, scales_for, side_of
from semiring.kernels.hardware import H200, device
from semiring.kernels.limits import FINITE, HIGHEST, LOWEST

DTYPES = ["int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


@given(st.sampled_from(sorted(REACH)), st.integers(0, 250), st.integers(0, 250), st.sampled_from([1, -1]))
def test_parts_cover_all_numbers_by_normal_powers(g: int, x: int, y: int, side: int) -> None:
    def reaches(parts: tuple[int, int]) -> bool:
        return sum(-(-(span + 1) // count) - 1 for span, count in zip((x, y), parts, strict=True)) <= REACH[g]

    parts = next(filter(reaches, small_integers._PARTS), None)
    if parts is None:
        return
    _, *both, _ = scales_for(g, (5, x), (-7, y), side=side, parts=parts)
    for scales, origin, span, count in zip(both, (5, -7), (x, y), parts, strict=True):
        assert len(scales) <= count
        covered = sorted(side * (scale.origin + side * n - origin) for scale in scales for n in range(scale.most + 1))
        assert covered == list(range(span + 1))
        for scale in scales:
            assert 1 <= scale.top - g * scale.most <= scale.top <= 254
    for left in both[0]:
        for right in both[1]:
            product = left.top + right.top - 127  # the biased exponent of the largest product
            assert product == 248
            assert g <= product - g * (left.most + right.most)


@pytest.mark.parametrize(("g", "cut"), [(8, 23), (4, 46)])
def test_both_operands_may_span_the_cut(g: int, cut: int) -> None:
    _, (left,), (right,), _ = scales_for(g, (0, cut), (0, cut))
    assert min(left.top, right.top) - g * cut >= 1


@given(st.sampled_from(sorted(REACH)), st.lists(st.integers(0, 70), min_size=1, max_size=300))
def test_chains_leave_the_largest_power(g: int, sums: list[int]) -> None:
    """Chains of 64 terms (14 for G = 4) and the largest power so far, of sums within reach and beyond."""
    found, shift, chain = 0.0, {8: 26, 4: 25}[g], {8: 64, 4: 14}[g]
    for start in range(0, len(sums), chain):
        terms = np.array([2.0 ** (248 - 127 - g * x) for x in sums[start : start + chain]])
        terms[terms < 2.0**-126] = 0  # lost
        total = np.float32(found + terms.sum())  # exact: fewer than 2^G powers
        assert np.isfinite(total)
        found = float((total.view(np.uint32) >> shift << shift).view(np.float32))
    exponent = int(np.float32(found).view(np.uint32) >> shift)
    least = min(sums)
    assert (248 // g - exponent if exponent else None) == (least if least <= REACH[g] else None)


def test_semirings_and_gpus_with_such_products() -> None:
    def side(semiring: Semiring, dtype: str, arch: int = 90) -> int:
        limits = H200 if arch == 90 else type(H200)(arch, 100, 166912, 166912)
        return side_of(represent(semiring, (np.dtype(dtype),)), limits)

    for dtype in DTYPES:
        assert side(sr.MIN_PLUS, dtype) == 1
        assert side(sr.MIN_PLUS, dtype, 80) == 0
    assert [side(sr.MAX_PLUS, dtype) for dtype in ("int32", "float32")] == [-1, -1]
    assert [side(semiring, "float32") for semiring in (sr.MAX_MIN, sr.PLUS_TIMES, sr.MIN_MAX, sr.MAX_TIMES)] == [0] * 4
    own = sr.Semiring("own", add=lambda a, b: a if a < b else b, mul=lambda a, b: b + a, zero=float("inf"), one=0)
    assert side(own, "int64") == 1


def test_statistics_that_fit() -> None:
    def fits(left: tuple[float, float], right: tuple[float, float], dtype: str = "float32", side: int = 1) -> Any:
        raw = [(*ends, FINITE, 0, 0) for ends in (left, right)]
        return fitting(raw, np.dtype(dtype), side, ())

    def ways(found: Any) -> tuple[int, int, int]:
        return found.g, len(found.left), len(found.right)

    assert ways(fits((0.0, 15.0), (3.0, 18.0))) == (8, 1, 1)
    assert sorted(ways(fits((0.0, 15.0), (3.0, 19.0)))) == [1, 2, 8]
    assert ways(fits((0.0, 45.0), (3.0, 19.0))) == (4, 1, 1)
    assert ways(fits((0.0, 30.0), (3.0, 34.0))) == (4, 1, 1)
    assert ways(fits((0.0, 30.0), (3.0, 35.0)))[0] == 4
    assert math.prod(ways(fits((0.0, 30.0), (3.0, 35.0)))[1:]) == 2
    assert ways(fits((0.0, 62.0), (0.0, 61.0))) == (4, 2, 2)
    assert fits((0.0, 62.0), (0.0, 61.0), "int16") is None
    assert fits((0.0, 300.0), (0.0, 300.0)) is None
    assert fits((0.0, 1.5), (0.0, 1.0)) is None
    assert fits((-0.5, 1.0), (0.0, 1.0)) is None
    assert fits((2.0**24 - 3, 2.0**24), (0.0, 1.0)).g == 8
    assert fits((2.0**24, 2.0**24 + 70), (0.0, 4.0)) is None  # origins of parts would be rounded
    assert fits((2.0**24, 2.0**24 + 70), (0.0, 4.0), "float64").g in REACH
    assert fits((2.0**29 + 1, 2.0**29 + 2), (0.0, 1.0), "float64") is None
    assert fits((5 * 10**9, 5 * 10**9), (0, 1), "int64") is None
    assert fits((-20.0, -10.0), (5.0, 6.0)).left[0][:2] == (-20, 10)
    assert fits((-20.0, -10.0), (5.0, 6.0), side=-1).left[0][:2] == (-10, 10)
    assert not fits((0.0, 1.0), (0.0, 1.0)).certain
    assert fits((0, 1), (0, 1), "int32").certain
    # Ends of the dtype that stand for no infinity count: 0 of unsigned integers, and the lowest of signed ones.
    ends = [(7, 9, FINITE | LOWEST, 3, 0), (7, 9, FINITE | HIGHEST, 0, 0)]
    unsigned = fitting(ends, np.dtype("uint16"), 1, (2**16 - 1,))
    assert unsigned is not None
    assert unsigned.left[0][:2] == (0, 9)
    assert fitting(ends, np.dtype("int16"), 1, (2**15 - 1,)) is None


# On a GPU.


def by_numpy(a: Any, b: Any, side: int, zero: Any) -> Any:
    out, best = np.full((*a.shape[:-1], b.shape[-1]), zero, a.dtype), np.minimum if side > 0 else np.maximum
    for k in range(a.shape[-1]):
        x, y = a[..., :, k, None], b[..., None, k, :]
        with np.errstate(all="ignore"):
            out = best(out, np.where((x != zero) & (y != zero), x + y, zero).astype(a.dtype))
    return out


def zero_of(dtype: np.dtype[Any], side: int) -> Any:
    return side * np.inf if dtype.kind == "f" else np.iinfo(dtype).max if side > 0 else np.iinfo(dtype).min


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """G of each launch, with tensor cores for every size."""
    if side_of(represent(sr.MIN_PLUS, (np.dtype("f4"),)), device(0)) == 0:
        pytest.skip("no tensor cores for small integers")
    found: list[int] = []
    start = small_integers.ScaledPlan.start

    def noted(self: Any, own: Any) -> bool | None:
        done = start(self, own)
        if done and not rehearsing():
            found.append(self.scales.g)
        return done

    monkeypatch.setattr(small_integers.ScaledPlan, "start", noted)
    for name in ("POWERS_STEPS", "POWERS_SIDE", "POWERS_CLOSURE"):
        monkeypatch.setattr(machine, name, 1)
    relaunch._known.clear()
    yield found
    relaunch._known.clear()


SHAPES = [(1, 1, 1), (64, 63, 1), (129, 65, 257), (128, 56, 256), (300, 517, 130), (127, 1000, 300)]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(
    ("spans", "g"),
    [((0, 0), 8), ((15, 15), 8), ((0, 30), 8), ((16, 15), 8), ((61, 0), 8), ((30, 31), 4), ((30, 40), 4), ((150, 150), 0)],
)
def test_products(dtype: str, side: int, spans: tuple[int, int], g: int, used: list[int]) -> None:
    cupy = pytest.importorskip("cupy")
    kind = np.dtype(dtype)
    if kind.kind == "u" and side < 0:
        pytest.skip("unsigned integers have no −∞")
    semiring, zero, rng = sr.MIN_PLUS if side > 0 else sr.MAX_PLUS, zero_of(kind, side), np.random.default_rng(3)
    low = 0 if kind.kind == "u" else -9
    for m, k, n in SHAPES:
        a, b = (rng.integers(low, low + span + 1, shape).astype(kind) for span, shape in zip(spans, ((m, k), (k, n)), strict=True))
        a.flat[0], a.flat[-1] = low, low + spans[0]
        b.flat[0], b.flat[-1] = low, low + spans[1]
        if m > 64:
            a[rng.random(a.shape) < 0.9], b[rng.random(b.shape) < 0.5] = zero, zero
            a[0, 0], a[-1, -1], b[0, 0], b[-1, -1] = low, low + spans[0], low, low + spans[1]
        c = rng.integers(0, 290, (m, n)).astype(kind)
        expected = by_numpy(a, b, side, zero)
        best = np.minimum if side > 0 else np.maximum
        for x, y in (
            (cupy.asarray(a), cupy.asarray(b)),
            (cupy.asarray(np.asfortranarray(a)), cupy.asarray(np.ascontiguousarray(b.T)).T),
            (cupy.asarray(np.repeat(a, 2, 1))[:, ::2], cupy.asarray(np.repeat(b, 2, 0))[::2]),
        ):
            for _ in range(3):
                used.clear()
                np.testing.assert_array_equal(sr.matmul(x, y, semiring).get(), expected)
                if k > 1:
                    assert used == ([g] if g else [])
                np.testing.assert_array_equal(sr.matmul(x, y, semiring, c=cupy.asarray(c)).get(), best(expected, c))
    left, right = (rng.integers(low, low + 8, shape).astype(kind) for shape in ((3, 70, 90), (3, 90, 130)))
    found = sr.matmul(cupy.asarray(left), cupy.asarray(right), semiring)
    np.testing.assert_array_equal(found.get(), by_numpy(left, right, side, zero))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("spans", [(61, 61), (35, 60), (90, 20)])
def test_parts_of_numbers_far_from_zero(dtype: str, spans: tuple[int, int], used: list[int]) -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(5)
    for base in (0, -(2**23), 2**24 - 150, 2**24, 2**25, 2**26):
        a, b = (rng.integers(0, span + 1, shape) for span, shape in zip(spans, ((70, 200), (200, 90)), strict=True))
        a, b = (base + a).astype(dtype), b.astype(dtype)
        c = (base + rng.integers(0, 200, (70, 90))).astype(dtype)
        expected, zero = by_numpy(a, b, 1, zero_of(np.dtype(dtype), 1)), zero_of(np.dtype(dtype), 1)
        assert (expected != zero).all()
        found = sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS)
        np.testing.assert_array_equal(found.get(), expected)
        found = sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, c=cupy.asarray(c))
        np.testing.assert_array_equal(found.get(), np.minimum(expected, c))
    assert used


@pytest.mark.gpu
def test_a_million_steps(used: list[int]) -> None:
    cupy = pytest.importorskip("cupy")
    rng, k = np.random.default_rng(5), (1 << 20) + 1
    for span, g in ((9, 8), (25, 4)):
        a, b = (rng.integers(1, 1 + span, shape).astype(np.int16) for shape in ((3, k), (k, 5)))
        a[:, ::2] += span // 2
        found = sr.matmul(cupy.asarray(a, np.float32), cupy.asarray(b, np.float32), sr.MIN_PLUS)
        np.testing.assert_array_equal(found.get(), [[(row + column).min() for column in b.T] for row in a])
        assert g in used


@pytest.mark.gpu
def test_fractions_and_large_numbers_among_small_integers(used: list[int]) -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(0)
    whole = [rng.integers(0, 9, (200, 200)).astype(np.float32) for _ in range(2)]
    for place, value in (((3, 4), 0.5), ((199, 199), 2.5), ((0, 0), 1e9), ((7, 7), -(2.0**40))):
        for which in range(2):
            for _ in range(3):
                left, right = some = [x.copy() for x in whole]
                some[which][place] = value
                used.clear()
                found = sr.matmul(cupy.asarray(left), cupy.asarray(right), sr.MIN_PLUS)
                np.testing.assert_array_equal(found.get(), by_numpy(left, right, 1, np.inf))
                assert not used


@pytest.mark.gpu
def test_nothing_is_computed_for_operands_that_are_refused(used: list[int]) -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.zeros((300, 300), np.float32)
    out = cupy.full((300, 300), 7, np.float32)
    for wrong in (np.nan, -np.inf):
        b = a.copy()
        b[5, 6] = wrong
        with pytest.raises(sr.DomainError):
            sr.matmul(a, b, sr.MIN_PLUS, out=out)
        assert float(out.min()) == 7
    assert not used


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int16", "int32", "float64"])
@pytest.mark.parametrize("side", [1, -1])
def test_closures(dtype: str, side: int, used: list[int]) -> None:
    """Dense graphs, sparse ones, a path, zeros beside a large weight, and a fraction among integers."""
    cupy = pytest.importorskip("cupy")
    kind, rng, n = np.dtype(dtype), np.random.default_rng(1), 420
    semiring, zero = sr.MIN_PLUS if side > 0 else sr.MAX_PLUS, zero_of(np.dtype(dtype), side)
    graphs = []
    for top, degree in ((1, n), (10, n), (10, 30), (5, 4), (40, 20)):
        a = rng.integers(1, top + 1, (n, n)).astype(float)
        a[rng.random((n, n)) > degree / n] = np.inf
        graphs.append(a)
    path = np.full((n, n), np.inf)
    path[np.arange(n - 1), np.arange(1, n)] = rng.integers(0, 3, n - 1)
    wide = rng.integers(0, 2, (n, n)).astype(float)
    wide[0, 1:] = 1000.0
    fraction = graphs[1].copy()  # between integers at both ends of the range
    fraction[5, 6] = 1.5 if kind.kind == "f" else 2
    for a in (*graphs, path, wide, fraction):
        expected = a.copy()
        np.fill_diagonal(expected, 0)
        for k in range(n):
            np.minimum(expected, expected[:, k, None] + expected[k], out=expected)
        given, wanted = (np.where(np.isinf(x), zero, side * np.where(np.isinf(x), 0, x)).astype(kind) for x in (a, expected))
        found = sr.closure(cupy.asarray(given), semiring, nonedge=zero)
        np.testing.assert_array_equal(found.get(), wanted)
    assert used
