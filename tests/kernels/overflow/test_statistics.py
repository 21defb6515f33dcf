"""Value statistics against what NumPy finds one question at a time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from semiring.algebra.catalogue import MAX_TIMES, MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.kernels.cpu.statistics import statistics_kernel
from semiring.kernels.limits import ValueStatistics, interpreted, statistics_by_numpy
from semiring.kernels.overflow import statistics
from semiring.kernels.overflow.statistics import surely_elements, value_statistics
from semiring.product import matmul
from tests.kernels.samples import ISAS

INF = math.inf
FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def expected(values: np.ndarray[Any, Any], infinities: tuple[int, ...] = ()) -> ValueStatistics:
    zeros = int((values == 0).sum())
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        negative = bool((np.signbit(values) & (values == 0)).any())
        return ValueStatistics(ends(finite), INF in values, -INF in values, bool(np.isnan(values).any()), negative, zeros)
    values = values.view(np.uint8) if values.dtype == bool else values
    info = np.iinfo(values.dtype)
    finite = values[~np.isin(values, np.array([i for i in infinities if info.min <= i <= info.max], values.dtype))]
    above, below = (bool(end in infinities and (values == end).any()) for end in (info.max, info.min))
    return ValueStatistics(ends(finite), above, below, zeros=zeros)


def ends(finite: np.ndarray[Any, Any]) -> tuple[Any, Any] | None:
    return (finite.min().item(), finite.max().item()) if finite.size else None


@pytest.mark.parametrize(
    ("found", "low", "high", "inside"),
    [
        (ValueStatistics(), 0, 1, True),
        (ValueStatistics((0, 1)), 0, 1, True),
        (ValueStatistics((0, 2)), 0, 1, False),
        (ValueStatistics((-1, 1)), 0, 1, False),
        (ValueStatistics((0, 1), nan=True), -INF, INF, False),
        (ValueStatistics((0, 1), True), 0, INF, True),
        (ValueStatistics(None, True), 0, 5, False),
        (ValueStatistics(None, False, True), -INF, 5, True),
        (ValueStatistics(None, False, True), -5, 5, False),
        (ValueStatistics((-0.0, 1.0)), 0, 1, True),
    ],
)
def test_within_bounds(found: ValueStatistics, low: float, high: float, inside: bool) -> None:
    assert found.lies_within(low, high) == inside


def test_magnitude_and_sign() -> None:
    assert (ValueStatistics().largest, ValueStatistics().negative) == (0, False)
    assert (ValueStatistics((-3, 2)).largest, ValueStatistics((-3, 2)).negative) == (3, True)
    assert (ValueStatistics((-0.0, 2.5)).largest, ValueStatistics((-0.0, 2.5)).negative) == (2.5, False)
    assert (ValueStatistics((-5e-324, 0.0)).largest, ValueStatistics((-5e-324, 0.0)).negative) == (5e-324, True)


def test_what_pulls_infinity_back() -> None:
    for found, minimum, maximum in (
        (ValueStatistics(), False, False),
        (ValueStatistics((0, 0)), False, False),
        (ValueStatistics((-1, 0)), True, False),
        (ValueStatistics((0, 1)), False, True),
        (ValueStatistics(None, True), False, True),
        (ValueStatistics((0, 0), False, True), True, False),
    ):
        assert (found.pulls_back(minimum=True), found.pulls_back(minimum=False)) == (minimum, maximum)


def layouts(values: Any) -> list[Any]:
    """The same numbers in other places."""
    return [values, values.T, values[::-1], values[:, ::2], values[1:, 1:], values[:, 1:].T, np.broadcast_to(values[0], values.shape)]


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Numbers among which the remarkable ones are as frequent as all others."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "f":
        info = np.finfo(dtype)
        tiny, largest = float(info.smallest_subnormal), float(info.max)
        special = [INF, -INF, math.nan, -0.0, 0.0, tiny, -tiny, float(info.smallest_normal), largest, -largest]
        return st.sampled_from(special) | st.floats(width=32 if dtype.itemsize == 4 else 64)
    limits = np.iinfo(dtype)
    special = [limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max]
    return st.sampled_from(special) | st.integers(limits.min, limits.max)


dtypes = st.sampled_from(["bool", *FLOATS, *INTEGERS]).map(np.dtype)
slices = st.sampled_from([slice(None), slice(None, None, -1), slice(1, None, 2), slice(None, None, -3), slice(1, None), slice(0, 1)])


@st.composite
def arrays(draw: st.DrawFn, dtype: np.dtype[Any], sides: st.SearchStrategy[int]) -> np.ndarray[Any, Any]:
    """Arrays of up to four dimensions, of any strides and alignment."""
    shape = tuple(draw(st.lists(sides, max_size=4)))
    if math.prod(shape) > 4000:
        shape = shape[:2]
    few = draw(hnp.arrays(dtype, draw(st.integers(1, 12)), elements=elements(dtype)))
    values = few[np.random.default_rng(draw(st.integers(0, 99))).integers(0, len(few), shape)]
    values = values.transpose(draw(st.permutations(range(len(shape)))))[tuple(draw(slices) for _ in shape)]
    if draw(st.booleans()):
        record = np.zeros(values.shape, np.dtype({"names": ["x"], "formats": [dtype], "offsets": [1], "itemsize": dtype.itemsize + 3}))
        record["x"] = values
        return np.asarray(record["x"])
    return np.asarray(values)


@given(st.data(), dtypes)
def test_any_array(data: st.DataObject, dtype: np.dtype[Any]) -> None:
    sides = st.sampled_from([0, 1, 2, 3, 5, 17, 31, 67, 131])
    given = data.draw(st.lists(arrays(dtype, sides), min_size=1, max_size=3))
    infinities: tuple[int, ...] = ()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        infinities = data.draw(st.sampled_from([(), (info.max,), (info.min,), (info.min, info.max), (2**15 - 1, 2**31 - 1)]))
    assert value_statistics(given, infinities) == tuple(expected(v, infinities) for v in given)


@given(st.data(), dtypes)
def test_numpy_tells_the_same(data: st.DataObject, dtype: np.dtype[Any]) -> None:
    """As where no code can be generated."""
    values = data.draw(arrays(dtype, st.sampled_from([0, 1, 3, 19])))
    found = interpreted(statistics_by_numpy(values), dtype, ())
    assert found == value_statistics((values,))[0]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["bool", *FLOATS, *INTEGERS])
def test_every_instruction_set(dtype: str, isa: str) -> None:
    rng, read = np.random.default_rng(0), statistics_kernel(np.dtype(dtype), isa)
    for shape in ((1, 1), (1, 300), (37, 131), (131, 1)):
        values = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
        if dtype in FLOATS:
            values -= 20
            values[rng.random(shape) < 0.2] = -0.0
        parts = layouts(values)[:6]
        assert [interpreted(raw, values.dtype, ()) for raw in read(parts)] == [expected(p) for p in parts]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_many_pieces_on_several_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_PIECE", 1 << 10)
    monkeypatch.setattr(statistics, "SMALL", 1 << 9)
    rng = np.random.default_rng(3)
    values = rng.integers(-50, 1000, (3, 47, 101)).astype(dtype)
    values[2, 46, 100], values[0, 0, 0], values[1, 5, 7] = -100, 2000, 0
    for threads in (1, 3, None):
        for part in (values, values.T, values[0], values[:, ::3, ::-2], values[..., 1], np.asfortranarray(values), values.ravel()[::7]):
            other = rng.random(5)
            assert value_statistics((part, other), threads=threads) == (expected(part), expected(other))


def test_numbers_by_the_million() -> None:
    values = np.full(3_000_000, 7.0, np.float32)
    values[[0, 1_234_567, 2_999_999]] = -0.0, INF, -1e-45
    assert value_statistics((values,)) == (expected(values),)
    assert value_statistics((values[::2].reshape(1000, 1500),)) == (expected(values[::2]),)


@given(st.data(), st.sampled_from(["float32", "int32"]).map(np.dtype), st.integers(0, 7), st.integers(0, 7))
def test_zeros_off_the_diagonal(data: st.DataObject, dtype: np.dtype[Any], first: int, rows: int) -> None:
    n = 9
    batch = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 2, (*batch, n, n)).astype(dtype)
    part = values[..., first : first + rows, :]
    off = ~np.eye(n, dtype=bool)[first : first + rows]
    (found,) = value_statistics((part,), off_diagonal_from=first)
    assert found == expected(part)._replace(zeros=int((part[..., off] == 0).sum()))


def test_operands_of_several_dtypes() -> None:
    given = np.arange(5.0), np.arange(3, dtype=np.int16) - 1, np.array(["text", None]), np.zeros(3, np.float32), np.array([True])
    found = value_statistics([np.asarray(v, object) if v.dtype.kind == "O" else v for v in given])
    assert found == (expected(given[0]), expected(given[1]), ValueStatistics(), expected(given[3]), expected(given[4]))


@given(st.data(), dtypes)
def test_together(data: st.DataObject, dtype: np.dtype[Any]) -> None:
    parts = data.draw(st.lists(hnp.arrays(dtype, st.integers(0, 4), elements=elements(dtype)), max_size=4))
    assert reduce(or_, (expected(p) for p in parts), ValueStatistics()) == expected(np.concatenate([np.zeros(0, dtype), *parts]))


@given(st.data(), st.sampled_from(["float32", "float64", "int16", "uint8"]).map(np.dtype))
def test_what_is_surely_an_element_is_one(data: st.DataObject, dtype: np.dtype[Any]) -> None:
    tenth = Semiring("tenth", max, lambda a, b: min(a, b), 0, 1, domain=(0, 1))
    for semiring in (MIN_PLUS, MAX_TIMES, tenth):
        values = data.draw(hnp.arrays(dtype, st.integers(0, 4), elements=elements(dtype)))
        assert surely_elements(semiring, (values,)) == bool(semiring.carrier.holds((values,)).all())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (257, 131), (1024, 1031)])
def test_floats(dtype: str, shape: tuple[int, int]) -> None:
    cupy = pytest.importorskip("cupy")
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    tiny = float(info.smallest_subnormal)
    single: list[float] = [np.inf, -np.inf, np.nan, -np.nan, -0.0, 0.0, tiny, -tiny, float(info.max), -float(info.max)]
    several: list[list[float]] = [[], *([v] for v in single), [np.inf, -np.inf, np.nan, -0.0]]
    for special in several:
        for low in (0, -1):
            values = (rng.random(shape) * (1 - low) + low).astype(dtype)
            places = rng.choice(values.size, min(len(special), values.size), replace=False)
            values.ravel()[places] = special[: len(places)]
            for part in layouts(values):
                assert value_statistics((on_gpu(cupy, part),)) == (expected(part),), (special, low, part.strides)
    for value in (np.inf, -np.inf, np.nan, -0.0, tiny):
        values = np.full(shape, value, dtype)
        assert value_statistics((cupy.asarray(values),)) == (expected(values),)


def on_gpu(cupy: Any, part: np.ndarray[Any, Any]) -> Any:
    """A copy with the same strides."""
    if part.size == 0:
        return cupy.empty(part.shape, part.dtype)
    memory = cupy.empty(sum(abs(s) * (n - 1) for s, n in zip(part.strides, part.shape, strict=True)) + part.itemsize, np.uint8)
    start = sum(-s * (n - 1) for s, n in zip(part.strides, part.shape, strict=True) if s < 0)
    array = cupy.ndarray(part.shape, part.dtype, memory.data + start, strides=part.strides)
    array[...] = cupy.asarray(np.ascontiguousarray(part))
    return array


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    rng, info = np.random.default_rng(1), np.iinfo(dtype)
    for shape in ((1, 1), (7, 3), (1000, 1003), (3, 40, 41)):
        for infinities in ((), (info.max,), (info.min,), (info.min, info.max)):
            for low, high in ((info.min, info.max), (1, 100)):
                values = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
                for special in ((), (info.max,), (info.min,)):
                    values.ravel()[: len(special)] = special
                    for part in layouts(values) if values.ndim == 2 else [values, values[:, ::-1, ::2], values[1:, 1:]]:
                        assert value_statistics((on_gpu(cupy, part),), infinities) == (expected(part, infinities),)
            values = np.full(shape, info.max, dtype)
            assert value_statistics((cupy.asarray(values),), infinities) == (expected(values, infinities),)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_batches_of_batches(dtype: str) -> None:
    """Among them those whose matrices do not follow each other at one stride."""
    cupy = pytest.importorskip("cupy")
    numbers = np.arange(4 * 5 * 6 * 7).reshape(4, 5, 6, 7).astype(dtype) - 100
    for values in (numbers, -numbers):
        for part in (values[:, 1:4], values[::-1, :2, ::2], values.transpose(1, 0, 3, 2)[2:], values[1:, ::-2, :, :1]):
            assert value_statistics((on_gpu(cupy, part),)) == (expected(part),), part.strides


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 0)])
def test_nothing(shape: tuple[int, ...]) -> None:
    cupy = pytest.importorskip("cupy")
    assert value_statistics((cupy.empty(shape, np.float32),)) == (ValueStatistics(),)
    assert value_statistics((cupy.empty(shape, np.float32), cupy.asarray([2.0, 0.0]))) == (
        ValueStatistics(),
        ValueStatistics((0, 2), zeros=1),
    )


@pytest.mark.gpu
def test_arrays_of_several_dtypes_and_layouts() -> None:
    """More of one dtype than a launch takes, among others."""
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(4)
    given = [rng.integers(-3, 9, (i + 1, 2 * i + 1)).astype(("float32", "int64", "float32", "bool")[i % 4]) for i in range(40)]
    given += [given[30].T, given[32][::2, ::-3], np.zeros((1000, 1001), np.float32), np.full((70, 3), -0.0, np.float32)]
    assert value_statistics([on_gpu(cupy, v) for v in given]) == tuple(map(expected, given))


@pytest.mark.gpu
@pytest.mark.parametrize("first", [0, 3, 8])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_zeros_off_the_diagonal_on_a_gpu(dtype: str, first: int) -> None:
    cupy = pytest.importorskip("cupy")
    numbers = np.random.default_rng(first).integers(0, 2, (3, 9, 9)).astype(dtype)
    numbers[0] *= -1
    for values in (numbers, numbers[0], numbers[1].T, numbers[::-1]):
        part = values[..., first : first + 4, :]
        assert value_statistics((on_gpu(cupy, part),), off_diagonal_from=first) == value_statistics((part,), off_diagonal_from=first)


@pytest.mark.gpu
def test_the_statistics_of_a_product_take_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    from semiring.kernels.cuda import statistics as on_device

    launched: list[int] = []

    def begin(arrays: Any, signs: Any) -> Any:
        launched.append(len(arrays))
        return original(arrays, signs)

    original = on_device.begin
    monkeypatch.setattr(on_device, "begin", begin)
    a = np.arange(20, dtype=np.float32).reshape(4, 5) - 7
    for dtype, c in ((np.float32, None), (np.float32, np.zeros((4, 4))), (np.int32, None), (np.int32, np.zeros((4, 4)))):
        x, old = a.astype(dtype), None if c is None else c.astype(dtype)
        there, added = (cupy.asarray(x), cupy.asarray(x.T)), None if old is None else cupy.asarray(old)
        matmul(*there, MIN_PLUS, c=added)  # the first of a kind is rehearsed
        launched.clear()
        found = matmul(*there, MIN_PLUS, c=added)
        np.testing.assert_array_equal(found.get(), matmul(x, x.T, MIN_PLUS, c=old))
        assert launched == [2 if c is None else 3]


@pytest.mark.gpu
def test_nothing_is_compiled_by_cupy_for_checks(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    script = """
import cupy, numpy as np
from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.kernels.overflow.closures import leaves_carrier
from semiring.kernels.overflow.statistics import surely_elements, value_statistics
for dtype in (np.float32, np.float64, np.int32, bool):
    values = cupy.asarray(np.arange(99).reshape(9, 11).astype(dtype))
    for part in (values, values.T, values[::2, 1:]):
        value_statistics((part, part), off_diagonal_from=0)
        assert surely_elements(BOOLEAN if dtype is bool else MIN_PLUS, (part,))
        assert not leaves_carrier(MIN_PLUS, (part,))
"""
    environment = {**os.environ, "CUPY_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert not list(tmp_path.rglob("*.cubin"))
