"""`matmul` of integers as NumPy multiplies them: with wrapping sums, and in a requested dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
Array = np.ndarray[Any, Any]


def integers(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Random numbers of the whole range, many of them at its ends."""
    random, info = np.random.default_rng(seed), np.iinfo(dtype)
    values = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    ends = random.choice(np.array([info.min, info.max], dtype), shape)
    return np.where(random.random(shape) < 0.3, ends, values)


def wrapped(a: Any, b: Any, **options: Any) -> Any:
    return sr.matmul(a, b, sr.PLUS_TIMES, overflow="wrap", **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 3, 5), (31, 37, 29), (1, 700, 90), (130, 530, 67)])
def test_wrapping_sums_have_numpys_bits(dtype: str, m: int, k: int, n: int) -> None:
    a, b, c = integers(dtype, m, k), integers(dtype, k, n, seed=1), integers(dtype, m, n, seed=2)
    found = wrapped(a, b)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, a @ b)
    np.testing.assert_array_equal(wrapped(a, b, c=c), a @ b + c)
    np.testing.assert_array_equal(wrapped(a, b, threads=1, dtype=dtype), a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_edge_of_a_dtype(dtype: str) -> None:
    """Sums that reach the last number pass the check, and the next ones only wrap."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    result = "int16" if dtype == "int8" else dtype
    top = np.iinfo(result).max
    half = (np.array([[top // 2, top // 2]], result), np.ones((2, 1), result))
    assert sr.matmul(*half, sr.PLUS_TIMES).item() == top // 2 * 2
    with pytest.raises(sr.OverflowRiskError):
        sr.matmul(half[0] + 1, half[1], sr.PLUS_TIMES)
    row, column = np.array([[high, 1]], dtype), np.ones((2, 1), dtype)
    assert wrapped(row, column).item() == low == (row @ column).item()
    if low:
        row = np.array([[low, -1]], dtype)
        assert wrapped(row, column).item() == high == (row @ column).item()


@given(st.data())
def test_layouts_wrap_alike(data: st.DataObject) -> None:
    left, right = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    m, k, n, seed = (data.draw(st.integers(1, 30)) for _ in range(4))

    def laid_out(dtype: str, rows: int, columns: int, seed: int) -> Array:
        whole = integers(dtype, 2 * rows, 2 * columns, seed=seed)
        v = data.draw(st.sampled_from([whole[::2, :columns], whole[:rows, ::2], whole[rows - 1 :: -1, :columns]]))
        v = np.asfortranarray(v) if data.draw(st.booleans()) else v
        v.flags.writeable = False
        return v

    a, b = laid_out(left, m, k, seed), laid_out(right, k, n, seed + 1)
    if np.result_type(a, b).kind == "f":
        with pytest.raises(sr.DTypeError, match="float64"):
            wrapped(a, b)
    else:
        found = wrapped(a, b)
        assert found.dtype == (a @ b).dtype
        np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize(("kinds", "dtype"), [
    (("int8", "int8"), "int16"), (("int8", "int8"), "int32"), (("int8", "int16"), "int32"), (("int8", "uint8"), "int32"),
    (("uint8", "uint8"), "uint16"), (("uint8", "uint8"), "int64"), (("int32", "int32"), "int64"), (("uint16", "uint16"), "uint64"),
])  # fmt: skip
@pytest.mark.parametrize("n", [3, 60, 300])
def test_a_requested_dtype_holds_the_sums(kinds: tuple[str, str], dtype: str, n: int) -> None:
    a, b = integers(kinds[0], 20, n), integers(kinds[1], n, 30, seed=1)
    expected = np.matmul(a, b, dtype=dtype)
    found = wrapped(a, b, dtype=dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    small = a // 16, b // 16
    exact = np.matmul(small[0].astype(object), small[1].astype(object))
    if np.iinfo(dtype).bits >= 32:
        np.testing.assert_array_equal(sr.matmul(*small, sr.PLUS_TIMES, dtype=dtype), exact)
    into = np.empty((20, 30), dtype)
    assert wrapped(a, b, dtype=dtype, out=into) is into
    np.testing.assert_array_equal(into, expected)


def test_other_semirings_take_a_dtype() -> None:
    a = np.array([[0, 127], [3, 4]], "int8")
    found = sr.matmul(a, a, sr.MIN_PLUS, dtype="float32")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[0, np.inf], [3, 8]])  # 127 stands for ∞ in int8
    assert sr.matmul([[2**40]], [[2**40]], sr.PLUS_TIMES, dtype=object).item() == 2**80
    pair = sr.matmul((a * 0, a * 0), (a * 0, a * 0), sr.DISTANCE_COUNT, dtype="float32")
    assert [v.dtype.name for v in pair] == ["float32", "float32"]


def test_stacks_vectors_places_and_large_refusals() -> None:
    a, b = integers("uint8", 3, 1, 20, 30), integers("uint8", 4, 30, 25, seed=1)
    np.testing.assert_array_equal(wrapped(a, b), a @ b)
    v = integers("int8", 30)
    assert wrapped(v, v) == v @ v
    square = integers("int8", 90, 90)
    for place in range(2):
        mine = [square.copy(), square.copy()]
        assert wrapped(*mine, out=mine[place]) is mine[place]
        np.testing.assert_array_equal(mine[place], square @ square)
    column = np.empty((90, 90), "int8", order="F")
    np.testing.assert_array_equal(wrapped(square, square, out=column), square @ square)


def test_refusals() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    a = np.full((2, 2), 100, "uint8")
    with pytest.raises(sr.OverflowRiskError):
        sr.matmul(a, a, sr.PLUS_TIMES)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"overflow": "mod"}, "must be 'check' or 'wrap'"), ({"overflow": None}, "must be"), ({"overflow": a}, "must be"),
        ({"dtype": "foo"}, "must be a dtype"), ({"dtype": "int8"}, "int8"), ({"dtype": "complex64"}, "complex64"),
        ({"overflow": "wrap", "dtype": "float64"}, "for integers"), ({"overflow": "wrap", "witness": True}, "not selective"),
    ]  # fmt: skip
    for options, match in cases:
        with pytest.raises(sr.SemiringError, match=match):
            sr.matmul(a, a, sr.PLUS_TIMES, **options)
    with pytest.raises(sr.SemiringError, match="is for PLUS_TIMES"):
        sr.matmul(a, a, sr.MIN_PLUS, overflow="wrap")
    with pytest.raises(sr.SemiringError, match="is for PLUS_TIMES"):
        sr.matmul((a, a), (a, a), sr.DISTANCE_COUNT, overflow="wrap")
    with pytest.raises(sr.DTypeError, match="for integers"):
        wrapped(a * 0.5, a)
    with pytest.raises(sr.DTypeError, match="cannot hold every number of b"):
        sr.matmul(a, a.astype("int64"), sr.PLUS_TIMES, dtype="int32")
    with pytest.raises(sr.DTypeError, match="int8 arrays"):
        wrapped([[1]], [[2]], dtype="int8")
    with pytest.raises(sr.GraphError, match="dense"):
        wrapped(scipy.csr_array(a), a)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 5), (31, 37, 29), (500, 700, 300)])
def test_wrapping_sums_on_a_gpu(dtype: str, m: int, k: int, n: int) -> None:
    cupy = pytest.importorskip("cupy")
    a, b, c = integers(dtype, m, k), integers(dtype, k, n, seed=1), integers(dtype, m, n, seed=2)
    x, y, z = map(cupy.asarray, (a, b, c))
    for _ in range(3):  # launched again
        found = wrapped(x, y)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.get(), a @ b)
    np.testing.assert_array_equal(wrapped(x, y, c=z).get(), a @ b + c)
    if dtype != "int8":
        np.testing.assert_array_equal(wrapped(a, b, device="cuda"), a @ b)
        with pytest.raises(sr.OverflowRiskError):
            sr.matmul(x, y, sr.PLUS_TIMES)
    if dtype in ("int8", "uint8", "int16"):
        np.testing.assert_array_equal(sr.matmul(x, y, sr.PLUS_TIMES, dtype="int64").get(), np.matmul(a, b, dtype="int64"))
