"""Integers near overflow: a product is exact or refused, ∞ absorbs, and nothing wrapped is ever returned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import BITSET, DISTANCE_COUNT, DISTANCE_HOPS, MAX_MIN, MAX_PLUS, MAX_TIMES, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import DTypeError, OverflowRiskError
from semiring.kernels.limits import absorbing, inner_infinity, largest_beside, own_infinities, remedy, threshold, tropical
from semiring.kernels.overflow.products import certify
from semiring.kernels.overflow.statistics import value_statistics
from semiring.product import matmul
from tests.kernels.samples import DTypes, Values, examples, scalars, squeeze

INF = math.inf
SIGNED = [np.dtype(d) for d in ("int16", "int32", "int64")]
UNSIGNED = [np.dtype(d) for d in ("uint8", "uint16", "uint32", "uint64")]
DEVICES = ("cpu", "reference")


def fits(semiring: Semiring, dtypes: DTypes, a: Values, b: Values, c: Values | None = None) -> bool:
    operands = [value_statistics(part, absorbing(semiring, dtypes)) for part in (a, b, c) if part is not None]
    try:
        certify(semiring, dtypes, *operands, k=a[0].shape[-1])
    except OverflowRiskError:
        return False
    return True


def single(dtype: np.dtype[Any], *entries: Any) -> np.ndarray[Any, Any]:
    return np.array([entries], dtype)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_non_negative_sums_are_exact_up_to_half_of_infinity(dtype: np.dtype[Any], device: str) -> None:
    infinity = int(np.iinfo(dtype).max)
    most = infinity // 2 - 1
    a, b = single(dtype, most - 5, infinity), single(dtype, 5, infinity)
    np.testing.assert_array_equal(matmul(a.T, b, MIN_PLUS, device=device), [[most, infinity], [infinity, infinity]])
    for beyond in (most - 4, most, most + 1, infinity - 1):
        with pytest.raises(OverflowRiskError, match=f"{dtype}.*{remedy([dtype])}"):
            matmul(single(dtype, beyond), single(dtype, 5), MIN_PLUS, device=device)
        with pytest.raises(OverflowRiskError):
            matmul(single(dtype, 5), single(dtype, beyond), MIN_PLUS, device=device)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", SIGNED, ids=str)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("semiring", "sign"), [(MIN_PLUS, 1), (MAX_PLUS, -1)], ids=["min-plus", "max-plus"])
def test_weights_that_pull_infinity_back(dtype: np.dtype[Any], device: str, semiring: Semiring, sign: int) -> None:
    """Everything within the limit is told from ∞, which stays ∞ whatever is added to it."""
    infinity = int(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)
    limit = largest_beside(inner_infinity(infinity), signed=True)
    column = np.array([[limit], [-limit], [0], [infinity]], dtype)
    row = single(dtype, limit, -limit, 0, infinity)
    found = matmul(column, row, semiring, device=device)
    exact = [[infinity if infinity in (x, y) else x + y for y in row[0].tolist()] for x in column[:, 0].tolist()]
    assert found.tolist() == exact
    assert matmul(column, row, semiring, witness=True, device=device).witness.tolist() == [
        [-1 if infinity in (x, y) else 0 for y in row[0]] for x in column[:, 0]
    ]
    for beyond in (limit + 1, -limit - 1):
        with pytest.raises(OverflowRiskError, match="use"):
            matmul(single(dtype, beyond, -1).T, single(dtype, 1, -1), semiring, device=device)


@pytest.mark.parametrize("inner", [inner_infinity(int(end)) for d in SIGNED for end in (np.iinfo(d).max, np.iinfo(d).min)])
def test_a_threshold_lies_between_sums_and_infinity(inner: int) -> None:
    limit, least = largest_beside(inner, signed=True), abs(threshold(inner, signed=True))
    assert 2 * limit < least <= abs(inner) - limit
    assert 3 * (limit + 1) >= abs(inner)


@pytest.mark.parametrize("device", DEVICES)
def test_an_operand_of_infinities_alone(device: str) -> None:
    for dtype in SIGNED:
        top = np.iinfo(dtype).max
        assert matmul(single(dtype, top), single(dtype, -5), MIN_PLUS, device=device).item() == top
        assert matmul(single(dtype, np.iinfo(dtype).min), single(dtype, 5), MAX_PLUS, device=device).item() == np.iinfo(dtype).min


@examples(60)
@given(st.data())
def test_tropical_products_are_exact_or_refused(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*SIGNED, *UNSIGNED]))
    semiring = data.draw(st.sampled_from([MIN_PLUS] if dtype.kind == "u" else [MIN_PLUS, MAX_PLUS]))
    info = np.iinfo(dtype)
    scale = data.draw(st.sampled_from([10, info.max // 6, info.max // 3, info.max // 2, info.max]))
    entries = st.one_of(st.integers(max(info.min, -scale), scale), st.just(int(semiring.identities(dtype)[0][0])))
    m, k, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    a, b = (np.array(data.draw(st.lists(entries, min_size=p * q, max_size=p * q)), dtype).reshape(p, q) for p, q in ((m, k), (k, n)))
    results = []
    for device in DEVICES:
        try:
            results.append(scalars(semiring, (matmul(a, b, semiring, device=device),)))
        except OverflowRiskError:
            results.append([])
    assert results[0] == results[1]
    if results[0]:
        left, right = scalars(semiring, (a,)), scalars(semiring, (b,))
        best = min if semiring is MIN_PLUS else max
        assert results[0] == [[best(left[i][p] + right[p][j] for p in range(k)) for j in range(n)] for i in range(m)]
    elif dtype.itemsize < 8:
        largest = max(abs(int(v)) for x in (a, b) for v in x.flat if v != semiring.identities(dtype)[0][0])
        assert 6 * (largest + 1) >= info.max // 2  # it was close: nothing far from the limit is refused


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED], ids=str)
def test_sums_of_products_at_the_limit(dtype: np.dtype[Any]) -> None:
    """As many terms as fit, and one more."""
    top = int(np.iinfo(dtype).max)
    k = 13
    entry = math.isqrt(top // k)
    a = np.full((1, k), entry, dtype)
    for device in DEVICES:
        assert matmul(a, a.T, PLUS_TIMES, device=device).item() == k * entry**2
        old = np.full((1, 1), top - k * entry**2, dtype)
        assert matmul(a, a.T, PLUS_TIMES, c=old, device=device).item() == top
        if old.item():
            with pytest.raises(OverflowRiskError, match="'add'"):
                matmul(a, a.T, PLUS_TIMES, c=np.full((1, 1), top - k * entry**2 + 1, dtype), device=device)
        while k * entry**2 <= top:
            entry += 1
        with pytest.raises(OverflowRiskError, match="plus-times"):
            matmul(np.full((1, k), entry, dtype), np.full((k, 1), entry, dtype), PLUS_TIMES, device=device)
        entry = math.isqrt(top // k)


@pytest.mark.exhaustive
@examples(60)
@given(st.data())
def test_any_integer_product_is_exact_or_refused(data: st.DataObject) -> None:
    """Against Python's integers, for semirings of different shapes; what certainly fits is not refused."""
    dtype = data.draw(st.sampled_from([*SIGNED, *UNSIGNED]))
    semiring = data.draw(st.sampled_from(SEVERAL))
    info = np.iinfo(dtype)
    scale = data.draw(st.sampled_from([3, math.isqrt(info.max) // 2, info.max // 2, info.max]))
    entries = st.integers(max(info.min, -scale), scale)
    m, k, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    a, b, c = (
        np.array(data.draw(st.lists(entries, min_size=p * q, max_size=p * q)), dtype).reshape(p, q) for p, q in ((m, k), (k, n), (m, n))
    )
    if semiring.add is max:
        c = np.maximum(c, 0)  # 0 is the zero of no larger carrier
    old = c if data.draw(st.booleans()) else None
    results = []
    for device in DEVICES:
        try:
            results.append(matmul(a, b, semiring, c=old, device=device).tolist())
        except (OverflowRiskError, DTypeError):
            results.append(None)
    assert results[0] == results[1]
    if results[0] is not None:
        start: Any = np.full((m, n), semiring.zero) if old is None else old
        for i in range(m):
            for j in range(n):
                value = int(start[i, j])
                for p in range(k):
                    value = semiring.add(value, semiring.mul(int(a[i, p]), int(b[p, j])))
                assert results[0][i][j] == value
    elif scale == 3 and not (dtype.kind == "u" and semiring.name == "gaps"):
        raise AssertionError("numbers up to 3 were refused")


SEVERAL = [
    PLUS_TIMES,
    Semiring("modular", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, domain=lambda a: a == a),
    Semiring("gaps", max, lambda a, b: abs(a - b), 0, 0),
    Semiring("parts", max, lambda a, b: a // (b + 7) if b > 0 else a % 5, 0, 0),
    Semiring("shifts", max, lambda a, b: ops.where(b > 0, a & 3, 1) << 2, 0, 0),
]


def test_refusals_name_the_operation_and_what_to_use() -> None:
    cases: list[tuple[Semiring, str, int, str]] = [
        (PLUS_TIMES, "int16", 200, "'mul' inside the product may reach 40000 … 40000, beyond -32768 … 32767; use int32"),
        (PLUS_TIMES, "int64", 2**33, "use float64"),
        (MAX_TIMES, "uint8", 20, "'mul'.*use uint16"),
        (Semiring("gaps", max, lambda a, b: a - b - 1, 0, 0), "uint16", 5, "'sub'.*beyond 0 … 65535; use uint32"),
        (Semiring("left", max, lambda a, b: a << b, 0, 0, domain=(0, INF)), "int32", 40, "'shl'"),
        (Semiring("left", max, lambda a, b: a << b, 0, 0, domain=(0, INF)), "int32", 10**9, "'shl'"),
        (Semiring("minus", max, lambda a, b: -a, 0, 0), "uint8", 3, "'neg'"),
    ]
    for semiring, dtype, entry, message in cases:
        with pytest.raises(OverflowRiskError, match=message):
            matmul(np.full((1, 1), entry, dtype), np.full((1, 1), entry, dtype), semiring)
    with pytest.raises(OverflowRiskError, match="'neg'"):
        matmul(single(np.dtype("int16"), -(2**15)), single(np.dtype("int16"), 1), Semiring("minus", max, lambda a, b: -a, 0, 0))


def test_only_sums_keep_infinity() -> None:
    """What would make a number of ∞ is refused where there is one, and fine where there is none."""
    discounted = Semiring("discounted", min, lambda a, b: a + 2 * b, INF, 0)
    shortened = Semiring("shortened", min, lambda a, b: a + b - 1, INF, 1)
    top = 2**31 - 1
    for semiring, operation, expected in ((discounted, "'mul'", 11), (shortened, "'sub'", 7)):
        for device in DEVICES:
            a, b = single(np.dtype("int32"), 3, 5), single(np.dtype("int32"), 4, 9)
            assert matmul(a, b.T, semiring, device=device).item() == min(expected, 3 + 2 * 4 if semiring is discounted else 6)
            b[0, 1] = top
            with pytest.raises(OverflowRiskError, match=f"{operation} of ∞"):
                matmul(a, b.T, semiring, device=device)
    bounded = Semiring("bounded", min, lambda a, b: ops.minimum(a, 10) * 2 + b, INF, 0)  # a minimum with a number is a number
    assert matmul(single(np.dtype("int32"), top), single(np.dtype("int32"), 4), bounded).item() == 24


def test_sums_with_infinity_in_an_untropical_semiring() -> None:
    late = Semiring("late", min, lambda a, b: (a + b) + 1, INF, 0)
    top = 2**15 - 1
    a, b = np.array([[3, top]], np.int16), np.array([[top, 4, top], [top, top, top]], np.int16)
    for device in DEVICES:
        assert matmul(a, b, late, device=device).tolist() == [[top, 8, top]]
        assert matmul(np.array([[-5]], np.int16), np.array([[top]], np.int16), late, device=device).item() == top
        with pytest.raises(OverflowRiskError):
            matmul(np.array([[top - 2]], np.int16), np.array([[1]], np.int16), late, device=device)


def test_structured_integers() -> None:
    top = 2**15 - 1
    distance, count = np.array([[1]], np.int16), np.array([[200]], np.int16)
    ones, many = np.ones((1, 2), np.int16), np.full((1, 2), 130, np.int16)
    for device in DEVICES:
        found = matmul((distance, count), (distance, np.array([[100]], np.int16)), DISTANCE_COUNT, device=device)
        assert [v.item() for v in found] == [2, 20000]
        with pytest.raises(OverflowRiskError, match="distance-count in int16: 'mul'"):
            matmul((distance, count), (distance, count), DISTANCE_COUNT, device=device)
        with pytest.raises(OverflowRiskError, match="'add'"):  # two equally short paths
            matmul((ones, many), (ones.T, many.T), DISTANCE_COUNT, device=device)
    hops = (np.array([[2**31 - 1]], np.int32), np.array([[top]], np.int16))
    found = matmul(hops, (np.array([[7]], np.int32), np.array([[3]], np.int16)), DISTANCE_HOPS)
    assert [v.item() for v in found] == [2**31 - 1, top]


def test_a_result_that_its_component_cannot_hold() -> None:
    swapped = Semiring("swapped", min, lambda a, b: (a[0] + b[0], a[0] * b[0]), (INF, 0), (0, 0), domain=lambda a: a[0] >= 0)
    wide, narrow = np.array([[300]], np.int32), np.array([[1]], np.int16)
    for device in DEVICES:
        with pytest.raises(OverflowRiskError, match="in int16: the result"):
            matmul((wide, narrow), (wide, narrow), swapped, device=device)
        found = matmul((wide // 100, narrow), (wide // 100, narrow), swapped, device=device)
        assert [v.item() for v in found] == [6, 9]


def test_integers_made_of_floats_are_refused() -> None:
    rounded = Semiring("rounded", min, lambda a, b: (a[0] + b[0], a[0] * b[0]), (INF, 0), (0, 0), domain=lambda a: a[0] >= 0)
    with pytest.raises(OverflowRiskError, match="in int32: the result"):
        matmul((np.ones((1, 1)), np.ones((1, 1), np.int32)), (np.ones((1, 1)), np.ones((1, 1), np.int32)), rounded)


def test_what_only_compares_is_never_refused() -> None:
    for dtype in (*SIGNED, *UNSIGNED):
        info = np.iinfo(dtype)
        a = np.array([[info.max, info.min], [3, info.max]], dtype)
        for semiring in (MAX_MIN, BITSET):
            np.testing.assert_array_equal(*(matmul(a, a, semiring, device=device) for device in DEVICES))


@pytest.mark.parametrize("device", DEVICES)
def test_promoted_integers_keep_their_infinities(device: str) -> None:
    top = 2**31 - 1
    a = np.array([[1, top]], np.int32)
    assert matmul(a, np.array([[4], [5]]), MIN_PLUS, device=device).item() == 5
    assert matmul(a[:, 1:], np.array([[5]]), MIN_PLUS, device=device).item() == 2**63 - 1
    assert matmul(a[:, 1:], np.array([[5.0]]), MIN_PLUS, device=device).item() == INF
    assert matmul(a[:, 1:], np.array([[5]], dtype=object), MIN_PLUS, device=device).item() == INF
    assert matmul(np.array([[5.0]]), np.array([[5.0]]), MIN_PLUS, c=a[:, 1:], device=device).item() == 10
    widths = matmul(np.array([[0, 255]], np.uint8), np.array([[7], [5]], np.int16), MAX_MIN, device=device)
    assert widths.item() == 5
    assert matmul(np.array([[127]], np.int8), np.array([[1]], np.int16), MIN_PLUS, device=device).item() == 2**15 - 1


def finite_range(values: np.ndarray[Any, Any], infinities: tuple[int, ...]) -> tuple[float, float] | None:
    return value_statistics((values,), infinities)[0].finite


def test_finite_ranges() -> None:
    top = 2**31 - 1
    values = np.array([[top, 3], [-7, top]], np.int32)
    assert finite_range(values, (top,)) == (-7, 3)
    assert finite_range(values.T, (top,)) == (-7, 3)
    assert finite_range(values, (2**15 - 1, top, 2**63 - 1)) == (-7, 3)
    assert finite_range(values, (2**15 - 1,)) == (-7, top)
    assert finite_range(values[:0], (top,)) is None
    assert finite_range(values[:1, :1], (top,)) is None
    large = np.full((3, 1 << 19), top, np.int32)
    large[2, -1] = 5
    assert finite_range(large, (top,)) == (5, 5)


def test_which_integers_are_infinite() -> None:
    kinds = (np.dtype("int16"), np.dtype("int32"))
    assert absorbing(DISTANCE_HOPS, kinds) == (2**15 - 1, 2**31 - 1)
    assert own_infinities((2**15 - 1, 2**31 - 1), kinds[1]) == (2**31 - 1,)
    assert own_infinities((2**15 - 1,), np.dtype("float32")) == ()
    assert absorbing(PLUS_TIMES, kinds[:1]) == ()
    assert tropical(MIN_PLUS, kinds[:1])
    assert tropical(MAX_PLUS, kinds[:1])
    assert not tropical(MAX_MIN, kinds[:1])
    assert not tropical(MIN_PLUS, (np.dtype("float64"),))
    assert remedy(kinds[:1]) == "use int32"
    assert remedy([np.dtype("uint64")]) == "use float64, or dtype=object for exact integers of any size"


def test_empty_products_are_never_refused() -> None:
    huge = np.full((3, 1), 2**62)
    assert fits(PLUS_TIMES, (np.dtype("int64"),), (huge[:, :0],), (huge.T[:0],))
    assert fits(PLUS_TIMES, (np.dtype("int64"),), (huge[:0],), (huge.T,))
    assert not fits(PLUS_TIMES, (np.dtype("int64"),), (huge,), (huge.T,))
    assert squeeze((matmul(huge[:0], huge.T, PLUS_TIMES),)).shape == (0, 3)
