"""`pairwise` against SciPy's cdist and pdist, and against brute force for formulas of one's own, on the CPU and on a GPU."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance

import semiring as sr
from semiring.algorithms import selection
from semiring.algorithms.metrics import ALIASES, METRICS
from semiring.algorithms.selection import BestEntries
from semiring.kernels.cpu.loops import interpreted

cdist: Any = distance.cdist  # its types know no names of metrics that are variables
pdist: Any = distance.pdist

Array = Any
Make = Callable[[Array], Array]


def _cupy(array: Array) -> Array:
    import cupy

    return cupy.asarray(array)


def host(array: Array) -> Array:
    return array.get() if hasattr(array, "get") else np.asarray(array)


PLACES = [pytest.param(np.asarray, id="cpu"), pytest.param(_cupy, id="cuda", marks=pytest.mark.gpu)]
on_each = pytest.mark.parametrize("put", PLACES)

TRUTH = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
REAL = ["braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "hamming", "sqeuclidean"]
SCIPYS = [*REAL, *TRUTH, "seuclidean", "jensenshannon"]
WEIGHTED = [*REAL, *TRUTH]

random = np.random.default_rng(5)


def rows(name: str, m: int, d: int, seed: int = 0) -> Array:
    """Draw rows for a metric, with equal entries and zeros among them."""
    drawn = np.random.default_rng([seed, m, d]).normal(size=(m, d))
    if name in TRUTH:
        return drawn > 0.3
    if name == "jensenshannon":
        return np.where(drawn < -1, 0.0, abs(drawn)) + (np.arange(d) == 0)
    return np.round(drawn) if name == "hamming" else np.where(drawn < -1, 0.0, drawn)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@on_each
@pytest.mark.parametrize("name", SCIPYS)
def test_metrics_have_scipys_values(name: str, put: Make) -> None:
    for m, n, d in ((1, 1, 1), (7, 131, 5), (129, 67, 13)):
        x, y = rows(name, m, d, 1), rows(name, n, d, 2)
        with np.errstate(all="ignore"):
            expected = cdist(x, y, name)
        found = sr.pairwise(put(x), put(y), name)
        assert found.dtype == np.float64
        np.testing.assert_allclose(host(found), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@on_each
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_scipys(name: str, put: Make) -> None:
    x, y, w = rows(name, 9, 6, 1), rows(name, 11, 6, 2), np.array([0.5, 0.0, 2.0, 1.0, 0.25, 3.0])
    with np.errstate(all="ignore"):
        expected = cdist(x, y, name, w=w)
    np.testing.assert_allclose(host(sr.pairwise(put(x), put(y), name, weights=put(w))), expected, rtol=1e-12, atol=1e-14)


@on_each
@pytest.mark.parametrize("name", ["cityblock", "euclidean", "cosine", "jaccard", "seuclidean", "canberra"])
def test_condensed_is_pdist(name: str, put: Make) -> None:
    for m in (0, 1, 2, 131, 1500 if name == "euclidean" else 5):
        x = rows(name, m, 3)
        expected = pdist(x, name) if m > 1 else np.empty(0)
        found = sr.pairwise(put(x), metric=name, condensed=True)
        np.testing.assert_allclose(host(found), expected, rtol=1e-12, atol=1e-14)


@on_each
@pytest.mark.parametrize("p", [1, 2, 3, 7, 0.5, 2.5, math.inf])
def test_minkowski(p: float, put: Make) -> None:
    x, y, w = rows("", 9, 6, 1), rows("", 11, 6, 2), np.arange(6.0)
    x[0] = y[0]
    np.testing.assert_allclose(host(sr.pairwise(put(x), put(y), "minkowski", p=p)), cdist(x, y, "minkowski", p=p), rtol=1e-12)
    found = sr.pairwise(put(x), put(y), "minkowski", p=p, weights=put(w))
    np.testing.assert_allclose(host(found), cdist(x, y, "minkowski", p=p, w=w), rtol=1e-12)


@on_each
def test_variances(put: Make) -> None:
    x, y, v = rows("", 9, 4, 1), rows("", 5, 4, 2), np.array([1.0, 2.0, 0.5, 4.0])
    np.testing.assert_allclose(host(sr.pairwise(put(x), put(y), "seuclidean", V=put(v))), cdist(x, y, "seuclidean", V=v), rtol=1e-12)


@on_each
@pytest.mark.parametrize("name", ["cosine", "correlation", "hamming", "canberra", "braycurtis", *TRUTH])
def test_zero_denominators_are_scipys(name: str, put: Make) -> None:
    x = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 2.0]]).astype(bool if name in TRUTH else float)
    with np.errstate(all="ignore"):
        expected = cdist(x, x, name)
    np.testing.assert_allclose(host(sr.pairwise(put(x), metric=name)), expected, atol=1e-15)


@on_each
@pytest.mark.parametrize("name", sorted(METRICS))
def test_rows_with_nan_give_nan(name: str, put: Make) -> None:
    x = np.array([[1.0, 0.0, 2.0], [1.0, np.nan, 0.5], [0.25, 0.5, 0.0]])
    y = np.array([[1.0, 2.0, 2.0], [0.5, 0.25, np.nan], [1.0, 0.0, 0.0], [3.0, 1.0, 1.0]])
    options: dict[str, Any] = {"V": np.ones(3)} if name == "seuclidean" else {}
    found = host(sr.pairwise(put(x), put(y), name, **options))
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    assert not np.isnan(found[np.ix_([0, 2], [0, 2, 3])]).any()
    best = sr.pairwise(put(x), put(y), name, k=4, **options)
    assert host(best.indices)[0, 3] == 1
    assert host(best.indices)[1].tolist() == [0, 1, 2, 3]


@on_each
def test_infinities_follow_arithmetic(put: Make) -> None:
    x = np.array([[np.inf, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(host(sr.pairwise(put(x), metric="l1")), cdist(x, x, "cityblock"))


@on_each
@pytest.mark.parametrize("name", sorted({*METRICS} - {"seuclidean"}))
def test_float32_stays_float32(name: str, put: Make) -> None:
    x, y = (rows("jensenshannon", count, 5, count).astype(np.float32) for count in (6, 9))
    found = sr.pairwise(put(x), put(y), name)
    assert found.dtype == np.float32
    wide = host(sr.pairwise(put(x.astype(float)), put(y.astype(float)), name))
    np.testing.assert_allclose(host(found), wide, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "b1", "f2", "O"])
def test_other_numbers_become_floats(dtype: str) -> None:
    x, y = (random.integers(0, 2, (m, 4)).astype(dtype) for m in (3, 5))
    for name in ("cityblock", "euclidean", "cosine", "intersection", "dice"):
        with np.errstate(all="ignore"):
            found = sr.pairwise(x, y, name)
        assert found.dtype == (np.float32 if dtype == "f2" else np.float64)
    np.testing.assert_allclose(sr.pairwise(x, y, "sqeuclidean"), cdist(x.astype(float), y.astype(float), "sqeuclidean"))
    assert sr.pairwise(x.astype("f4"), y.astype("i8"), "l1").dtype == np.float64
    with pytest.raises(sr.DTypeError, match="complex"):
        sr.pairwise(x.astype(complex), y.astype(complex), "l1")


@on_each
@pytest.mark.parametrize("name", ["l1", "euclidean", "braycurtis", "cosine"])
def test_layouts(name: str, put: Make) -> None:
    x, y = rows("", 40, 12, 1), rows("", 60, 12, 2)
    expected = sr.pairwise(x[::3, ::2], y[::-1, 1::2], name)
    a, b = put(x), put(y)
    np.testing.assert_array_equal(
        host(sr.pairwise(a[::3, ::2], b[::-1, 1::2], name)), host(sr.pairwise(put(x[::3, ::2].copy()), put(y[::-1, 1::2].copy()), name))
    )
    np.testing.assert_allclose(host(sr.pairwise(a[::3, ::2], b[::-1, 1::2], name)), expected, rtol=1e-12, atol=1e-15)
    if put is np.asarray:
        fortran = np.asfortranarray(x[::3, ::2])
        fortran.flags.writeable = False
        np.testing.assert_array_equal(sr.pairwise(fortran, y[::-1, 1::2], name), expected)
        np.testing.assert_array_equal(sr.pairwise(fortran.tolist(), y[::-1, 1::2], name), expected)


@pytest.mark.parametrize(
    "name", ["cityblock", "euclidean", "canberra", "chebyshev", "sqeuclidean", "intersection", "braycurtis", "cosine", "yule"]
)
def test_shapes_without_entries(name: str) -> None:
    for m, n, d in ((0, 3, 2), (3, 0, 2), (0, 0, 0), (2, 3, 0)):
        x, y = np.zeros((m, d)), np.zeros((n, d))
        expected = np.zeros((m, n)) if name == "intersection" else cdist(x, y, name) if d or name != "yule" else np.zeros((m, n))
        np.testing.assert_array_equal(sr.pairwise(x, y, name), expected)
        if n:
            assert sr.pairwise(x, y, name, k=1).indices.shape == (m, 1)
            assert sr.pairwise(x > 0, y > 0, sr.BOOLEAN, k=1).indices.shape == (m, 1)


def test_every_name_and_alias_is_known() -> None:
    x = rows("jensenshannon", 3, 4)
    for alias, name in ALIASES.items():
        np.testing.assert_array_equal(sr.pairwise(x, metric=alias.upper()), sr.pairwise(x, metric=name))
    np.testing.assert_array_equal(sr.pairwise(x), sr.pairwise(x, metric="euclidean"))
    np.testing.assert_array_equal(sr.pairwise(x, metric="min"), np.minimum(x[:, None], x).sum(2))


# Formulas of one's own.


@on_each
@pytest.mark.parametrize(
    ("mul", "add", "reduce"),
    [
        (lambda x, y: abs(x - y), None, np.add),
        (lambda x, y: abs(x - y), max, np.maximum),
        (min, max, np.maximum),
        (max, min, np.minimum),
        (lambda x, y: x + 2 * y, min, np.minimum),
        (lambda x, y: 1 + x * y, operator.mul, np.multiply),
    ],
    ids=["sum", "max", "max-min", "min-max", "min", "product"],
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_formulas(dtype: str, mul: Any, add: Any, reduce: Any, put: Make) -> None:
    x, y = (np.random.default_rng(m).integers(-3, 4, (m, 5)).astype(dtype) for m in (7, 140))
    term = np.frompyfunc(mul, 2, 1)(x[:, None], y).astype(dtype)
    found = sr.pairwise(put(x), put(y), mul=mul, add=add)
    assert found.dtype == dtype
    np.testing.assert_allclose(host(found), reduce.reduce(term, axis=2), rtol=1e-6)


@on_each
def test_several_sums_and_weights(put: Make) -> None:
    x, y, w = rows("", 5, 4, 1), rows("", 6, 4, 2), np.array([1.0, 0.5, 0.0, 2.0])
    formula: dict[str, Any] = {"mul": lambda a, b: (abs(a - b), abs(a + b)), "finish": lambda s: s[0] / s[1]}
    np.testing.assert_allclose(host(sr.pairwise(put(x), put(y), **formula)), cdist(x, y, "braycurtis"), rtol=1e-12)
    found = sr.pairwise(put(x), put(y), weights=put(w), **formula)
    np.testing.assert_allclose(host(found), cdist(x, y, "braycurtis", w=w), rtol=1e-12)
    branch = sr.pairwise(put(x), put(y), mul=operator.mul, finish=lambda s: 0 if s < 0 else sr.ops.sqrt(s))
    np.testing.assert_allclose(host(branch), np.sqrt(np.maximum(x @ y.T, 0)), atol=1e-7)
    constant = sr.pairwise(put(x), put(y), mul=operator.mul, finish=lambda s: 1.5)
    assert (host(constant) == np.full((5, 6), 1.5)).all()


@on_each
def test_a_semiring_is_its_product_with_the_transpose(put: Make) -> None:
    x, y = rows("", 5, 4, 1), rows("", 6, 4, 2)
    for semiring in (sr.MIN_PLUS, sr.MAX_MIN, sr.LOG, sr.MIN_PLUS.with_witness()):
        expected = sr.matmul(put(x), put(y).T, semiring.marked(False))
        np.testing.assert_allclose(host(sr.pairwise(put(x), put(y), semiring)), host(expected), rtol=1e-12)
    np.testing.assert_allclose(
        host(sr.pairwise(put(x), put(y), sr.MIN_PLUS, finish=lambda s: 2 * s)), 2 * host(sr.matmul(put(x), put(y).T, sr.MIN_PLUS))
    )


@on_each
def test_integers_with_infinity_are_those_of_matmul(put: Make) -> None:
    most = np.iinfo(np.int32).max
    x = np.array([[1, most, -4], [most, 2, 3]], np.int32)
    found = sr.pairwise(put(x), mul=operator.add, add=min)
    np.testing.assert_array_equal(host(found), sr.matmul(x, x.T, sr.MIN_PLUS))


def test_objects_are_exact() -> None:
    x = np.array([[Fraction(1, 3), Fraction(2)], [Fraction(0), Fraction(5, 7)]], dtype=object)
    found = sr.pairwise(x, mul=lambda a, b: abs(a - b))
    assert found.tolist() == [[0, Fraction(34, 21)], [Fraction(34, 21), 0]]
    best = sr.pairwise(x, mul=lambda a, b: abs(a - b), finish=lambda s: s / 2, k=1, largest=True)
    assert best.values.tolist() == [[Fraction(17, 21)]] * 2
    assert best.indices.tolist() == [[1], [0]]


def test_numbers_of_formulas_are_checked() -> None:
    x = np.array([[np.nan, 1.0]])
    with pytest.raises(sr.DomainError):
        sr.pairwise(x, mul=operator.mul)
    assert np.isnan(sr.pairwise(x, mul=operator.mul, check=False)).all()
    with pytest.raises(sr.OverflowRiskError):
        sr.pairwise(np.full((2, 3), 1 << 40), mul=operator.mul)


# The k best.


@on_each
@pytest.mark.parametrize(
    ("name", "largest"), [("l1", None), ("l1", True), ("intersection", None), ("intersection", False), ("cosine", None)]
)
def test_the_k_best(name: str, largest: bool | None, put: Make) -> None:
    for m, n, k in ((3, 1, 1), (5, 200, 7), (140, 2500, 3), (4, 60, 60)):
        x, y = (np.random.default_rng([i, n]).integers(0, 4, (i, 3)).astype(float) + 1 for i in (m, n))
        whole = host(sr.pairwise(put(x), put(y), name))
        sign = -1 if largest or (largest is None and name == "intersection") else 1
        order = np.argsort(sign * whole, axis=1, kind="stable")[:, :k]
        found = sr.pairwise(put(x), put(y), name, k=k, largest=largest)
        if name == "cosine":  # sums of products are rounded in another order
            for places in (order, host(found.indices)):
                np.testing.assert_allclose(host(found.values), np.take_along_axis(whole, places, axis=1), atol=1e-14)
            continue
        np.testing.assert_array_equal(host(found.indices), order)
        np.testing.assert_array_equal(host(found.values), np.take_along_axis(whole, order, axis=1))
        assert host(found.indices).dtype == np.int64


@on_each
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("m", "n", "d", "k"), [(1, 1, 1, 1), (65, 129, 33, 17), (3, 20_000, 7, 130), (130, 1000, 64, 100)])
def test_the_k_best_of_every_size(m: int, n: int, d: int, k: int, dtype: str, put: Make) -> None:
    """Ties go to the lowest column, NaN is last, and steps beyond the last count nothing."""
    drawn = np.random.default_rng([m, n])
    x, y = (drawn.integers(0, 3, (size, d)).astype(dtype) for size in (m, n))
    if dtype != "int32":
        x[0, 0] = y[n // 2, -1] = np.nan
    whole: Array = abs(x[:, None] - y).sum(axis=-1) if m * n * d < 10**7 else cdist(x, y, "cityblock").astype(dtype)
    for largest in (False, True):
        order = np.argsort(-whole if largest else whole, axis=1, kind="stable")[:, :k]
        options: dict[str, Any] = {"metric": "l1"} if dtype != "int32" else {"mul": lambda a, b: abs(a - b)}
        found = sr.pairwise(put(x), put(y), k=k, largest=largest, **options)
        np.testing.assert_array_equal(host(found.indices), order)
        np.testing.assert_array_equal(host(found.values), np.take_along_axis(whole, order, axis=1))


@on_each
@pytest.mark.parametrize("d", [1, 5, 31, 33, 100])
def test_steps_beyond_the_last_add_nothing(d: int, put: Make) -> None:
    """A formula in which two zeros count 1; kernels of a GPU fill operands with zeros."""
    x, y = (np.random.default_rng([d, seed]).integers(0, 2, (size, d)).astype("float32") for seed, size in ((0, 600), (1, 3000)))
    expected = d - cdist(x, y, "cityblock")
    alike: dict[str, Any] = {"mul": lambda a, b: sr.ops.where(a == b, 1.0, 0.0)}
    np.testing.assert_array_equal(host(sr.pairwise(put(x), put(y), **alike)), expected)
    found = sr.pairwise(put(x), put(y), **alike, finish=lambda s: 2 * s, weights=put(np.full(d, 0.5)))
    np.testing.assert_array_equal(host(found), expected)
    np.testing.assert_array_equal(host(sr.pairwise(put(x), put(y), **alike, k=3).values), np.sort(expected, axis=1)[:, :3])


@on_each
@pytest.mark.parametrize("dtype", ["bool", "int16", "int32", "int64"])
def test_integers_and_truth_values_beyond_the_last_step(dtype: str, put: Make) -> None:
    x, y = (np.random.default_rng(seed).integers(0, 2, (70, 13)).astype(dtype) for seed in (0, 1))
    if dtype == "bool":
        parity = sr.Semiring("equal, an odd number", lambda a, b: a ^ b, lambda a, b: (a ^ b) ^ True, False, True)
        assert (host(sr.pairwise(put(x), put(y), parity)) == ((x[:, None] == y).sum(axis=-1) % 2 == 1)).all()
        return
    found = sr.pairwise(put(x), put(y), mul=lambda a, b: sr.ops.where(a == b, 1, 0))
    np.testing.assert_array_equal(host(found), (x[:, None] == y).sum(axis=-1))


@on_each
@pytest.mark.parametrize("name", ["min-plus", "max-plus", "max-min", "plus-times", "log"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int16"])
def test_the_k_best_of_a_product(name: str, dtype: str, put: Make) -> None:
    if name == "log" and dtype[0] == "i":
        return
    drawn, best = np.random.default_rng(3), {"min-plus": 1}.get(name, -1)
    a, b = drawn.integers(0, 9, (70, 12)).astype(dtype), drawn.integers(0, 9, (12, 150)).astype(dtype)
    if name == "min-plus":
        a[drawn.random(a.shape) < 0.3] = np.inf if dtype[0] == "f" else np.iinfo(dtype).max
    whole = host(sr.matmul(put(a), put(b), name))
    order = np.argsort(best * whole.astype(float), axis=1, kind="stable")[:, :5]
    found = sr.matmul(put(a), put(b), name, k=5)
    if name == "log":
        np.testing.assert_allclose(host(found.values), np.take_along_axis(whole, order, axis=1), rtol=1e-5)
        return
    np.testing.assert_array_equal(host(found.indices), order)
    np.testing.assert_array_equal(host(found.values), np.take_along_axis(whole, order, axis=1))


def test_what_the_k_best_of_a_product_refuses() -> None:
    a = np.ones((3, 4))
    with pytest.raises(sr.ShapeError, match="b has 3 columns"):
        sr.matmul(a, a.T, sr.MIN_PLUS, k=4)
    with pytest.raises(sr.ShapeError, match=r"shape \(k, n\); got \(3, 4\) and \(3, 4\)"):
        sr.matmul(a, a, sr.MIN_PLUS, k=1)
    refused: list[dict[str, Any]] = [
        {"k": 0},
        {"k": True},
        *({"k": 1, **more} for more in ({"witness": True}, {"c": a}, {"dtype": "int8"})),
    ]
    for options in refused:
        with pytest.raises(sr.SemiringError, match=r"k is|k= is"):
            sr.matmul(a, a.T, sr.MIN_PLUS, **options)
    with pytest.raises(sr.DomainError, match=r"b\[1, 0\]"):
        sr.matmul(a, np.where(np.arange(12).reshape(4, 3) == 3, np.nan, 1.0), sr.MIN_PLUS, k=1)


def test_the_k_best_of_few_rows_use_all_threads() -> None:
    x, y = rows("", 1, 3, 1), rows("", 4000, 3, 2)
    found = sr.pairwise(x, y, "l1", k=4, threads=3)
    assert found.indices.tolist() == np.argsort(cdist(x, y, "cityblock"), axis=1)[:, :4].tolist()


@st.composite
def offers(draw: st.DrawFn) -> tuple[Array, int, int, bool]:
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "u1", "i8"]))
    m, n = draw(st.integers(0, 4)), draw(st.integers(1, 25))
    low, high = (0, 255) if dtype == "u1" else (-3, 3)
    numbers = st.sampled_from([low, high, 0, 1, 2]) if dtype[0] != "f" else st.sampled_from([0.0, 1.0, 2.0, np.nan, np.inf, -np.inf])
    values = np.array(draw(st.lists(numbers, min_size=m * n, max_size=m * n)), dtype).reshape(m, n)
    return values, draw(st.integers(1, n)), draw(st.integers(1, 9)), draw(st.booleans())


@given(offers())
def test_a_selection_keeps_the_order_of_a_stable_sort(case: tuple[Array, int, int, bool]) -> None:
    values, k, width, largest = case
    key = -values.astype(float) if largest else values.astype(float)
    order = np.argsort(key, axis=1, kind="stable")[:, :k]

    def selected() -> tuple[Array, Array]:
        best = BestEntries(values, len(values), k, largest=largest)
        for first in range(0, values.shape[1], width):
            best.offer(slice(0, len(values)), first, values[:, first : first + width])
        return best.result()

    with interpreted():
        plain = selected()
    for found in (plain, selected()):
        np.testing.assert_array_equal(found[1], order)
        np.testing.assert_array_equal(found[0], np.take_along_axis(values, order, axis=1))


def test_a_selection_of_arrays_without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of CuPy's arrays, on the host."""
    monkeypatch.setattr(selection, "on_gpu", lambda array: False)
    values = np.array([[3, 1, 2, 1], [0, 0, 5, 0]], dtype=object)
    best = BestEntries(values, 2, 2, largest=False)
    for rows_of in (slice(1, 2), slice(0, 1)):
        for first in (0, 2):
            best.offer(rows_of, first, values[rows_of, first : first + 2])
    assert [v.tolist() for v in best.result()] == [[[1, 1], [0, 0]], [[1, 3], [0, 1]]]


# Results, and refusals.


@on_each
def test_out(put: Make) -> None:
    x, y = put(rows("", 150, 4, 1)), put(rows("", 40, 4, 2))
    for name in ("l1", "euclidean", "braycurtis"):
        out = put(np.full((150, 40), 7.0))
        assert sr.pairwise(x, y, name, out=out) is out
        np.testing.assert_array_equal(host(out), host(sr.pairwise(x, y, name)))
    turned = put(np.full((40, 150), 7.0)).T
    sr.pairwise(x, y, "l1", out=turned)
    np.testing.assert_array_equal(host(turned), host(sr.pairwise(x, y, "l1")))
    square = put(rows("", 12, 12))
    expected = host(sr.pairwise(square, metric="l1"))
    sr.pairwise(square, metric="l1", out=square)
    np.testing.assert_array_equal(host(square), expected)
    with pytest.raises(sr.ShapeError, match="out has shape"):
        sr.pairwise(x, y, out=put(np.empty((3, 3))))
    with pytest.raises(sr.DTypeError, match="float64"):
        sr.pairwise(x, y, out=put(np.empty((150, 40), np.float32)))


@pytest.mark.gpu
def test_numpys_arrays_go_to_the_gpu_and_back() -> None:
    x, y = rows("", 150, 4, 1), rows("", 40, 4, 2)
    for name in ("l1", "euclidean", "cosine"):
        found = sr.pairwise(x, y, name, device="cuda")
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, sr.pairwise(x, y, name, device="cpu"), rtol=1e-12, atol=1e-14)
    out = np.empty((150, 40))
    assert sr.pairwise(x, y, "l1", device="cuda", out=out) is out
    best = sr.pairwise(x, y, "l1", device="cuda", k=3)
    np.testing.assert_array_equal(best.indices, sr.pairwise(x, y, "l1", device="cpu", k=3).indices)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tensors_give_tensors(device: str) -> None:
    torch = pytest.importorskip("torch")
    x, y = rows("", 5, 4, 1), rows("", 6, 4, 2)
    a = torch.from_numpy(x).to(device)
    found = sr.pairwise(a, torch.from_numpy(y).to(device), "l1", k=2)
    assert all(isinstance(v, torch.Tensor) and v.device.type == device for v in found)
    np.testing.assert_allclose(found.values.cpu().numpy(), np.sort(cdist(x, y, "cityblock"), axis=1)[:, :2])
    mixed = sr.pairwise(a, y, "euclidean")
    assert isinstance(mixed, torch.Tensor)
    np.testing.assert_allclose(mixed.cpu().numpy(), cdist(x, y))


def test_arrays_of_the_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    x = rows("", 5, 4)
    found = sr.pairwise(strict.asarray(x), metric="cosine")
    assert type(found).__module__.startswith("array_api_strict")
    np.testing.assert_allclose(np.from_dlpack(found), cdist(x, x, "cosine"), atol=1e-14)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 40), st.sampled_from(sorted(METRICS)), st.integers(1, 4))
def test_blocks_and_threads_do_not_change_values(m: int, n: int, d: int, name: str, threads: int) -> None:
    x, y = rows("jensenshannon", m, d, 1), rows("jensenshannon", n, d, 2)
    options: dict[str, Any] = {"V": np.ones(d)} if name == "seuclidean" else {}
    whole = sr.pairwise(x, y, name, threads=threads, **options)
    np.testing.assert_allclose(
        sr.pairwise(x[: m // 2 + 1], y[n // 2 :], name, **options), whole[: m // 2 + 1, n // 2 :], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(sr.pairwise(x, y, name, device="reference", **options), whole, rtol=1e-9, atol=1e-7)


_X: Any = np.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sr.pairwise(_X, metric="cosin"), r"metric is 'cosin'; did you mean 'cosine'\? The metrics are braycurtis, "),
        (lambda: sr.pairwise(_X, metric=_X[0]), "metric is .*; pass a name, a Semiring, or mul= and add="),
        (lambda: sr.pairwise(_X, metric="l1", mul=min), "pass either metric= or mul= and add="),
        (lambda: sr.pairwise(_X, metric=sr.MIN_PLUS, mul=min), "min-plus has its own mul and add"),
        (lambda: sr.pairwise(_X, metric=sr.DISTANCE_COUNT), "structured elements; pass mul= with a tuple of terms"),
        (lambda: sr.pairwise(_X, metric="l1", finish=abs), "finish= belongs to mul="),
        (lambda: sr.pairwise(_X, add=max), "needs mul="),
        (lambda: sr.pairwise(_X, mul=min, add=lambda a, b: a - b), "add has no identity among"),
        (lambda: sr.pairwise(_X, mul=lambda a, b: (a, b)), "mul gives 2 terms, so finish= must make one number"),
        (lambda: sr.pairwise(_X, mul=lambda a, b: math.sin(a)), "recorded|math"),
        (lambda: sr.pairwise(_X, _X.T), r"x of shape \(3, 2\) and y of shape \(2, 3\) do not fit: x has 2 columns and y 3"),
        (lambda: sr.pairwise(_X[0]), "x and y are matrices"),
        (lambda: sr.pairwise(_X, k=4), "k is 4, but x has 3 rows"),
        (lambda: sr.pairwise(_X, _X[:2], k=3), "k is 3, but y has 2 rows"),
        (lambda: sr.pairwise(_X, k=0), "k is 0; it must be a whole number from 1"),
        (lambda: sr.pairwise(_X, k=1, condensed=True), "leave out condensed="),
        (lambda: sr.pairwise(_X, k=1, out=_X), "leave out out="),
        (lambda: sr.pairwise(_X, _X, condensed=True), "leave out y="),
        (lambda: sr.pairwise(_X, weights=[1.0]), r"weights has shape \(1,\); x has 2 columns, so it must be \(2,\)"),
        (lambda: sr.pairwise(_X, weights=[1.0, -1.0]), "weights must have numbers from 0"),
        (lambda: sr.pairwise(_X, weights=[1.0, np.nan]), "weights must have numbers from 0"),
        (lambda: sr.pairwise(_X, metric="seuclidean", weights=[1.0, 1.0]), "seuclidean takes no weights"),
        (lambda: sr.pairwise(_X, metric="jensenshannon", weights=[1.0, 1.0]), "jensenshannon takes no weights"),
        (lambda: sr.pairwise(_X, mul=min, add=max, weights=[1.0, 1.0]), "takes no weights"),
        (lambda: sr.pairwise(_X, V=[1.0, 1.0]), "V= has the variances of 'seuclidean'"),
        (lambda: sr.pairwise(_X, metric="minkowski", p=0), "p is 0; the exponent of minkowski is a number above 0"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(sr.SemiringError, match=message):
        call()


def test_sparse_arrays_are_refused() -> None:
    import scipy.sparse as sp

    with pytest.raises(sr.GraphError, match="toarray"):
        sr.pairwise(sp.csr_array(_X))
