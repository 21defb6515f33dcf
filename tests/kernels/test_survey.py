"""What one pass over numbers on a GPU tells, against what NumPy finds one question at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from semiring.kernels.survey import Survey

FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def expected(values: np.ndarray[Any, Any], infinities: tuple[int, ...] = ()) -> Survey:
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        zeros = bool((np.signbit(values) & (values == 0)).any())
        return Survey(ends(finite), np.inf in values, -np.inf in values, bool(np.isnan(values).any()), zeros)
    info = np.iinfo(values.dtype)
    finite = values[~np.isin(values, np.array(infinities, values.dtype))]
    return Survey(ends(finite), info.max in infinities and info.max in values, info.min in infinities and info.min in values)


def ends(finite: np.ndarray[Any, Any]) -> tuple[Any, Any] | None:
    return (finite.min().item(), finite.max().item()) if finite.size else None


@pytest.mark.parametrize(
    ("seen", "low", "high", "inside"),
    [
        (Survey(), 0, 1, True), (Survey((0, 1)), 0, 1, True), (Survey((0, 2)), 0, 1, False), (Survey((-1, 1)), 0, 1, False),
        (Survey((0, 1), nan=True), -math.inf, math.inf, False), (Survey((0, 1), True), 0, math.inf, True),
        (Survey(None, True), 0, 5, False), (Survey(None, False, True), -math.inf, 5, True), (Survey(None, False, True), -5, 5, False),
        (Survey((-0.0, 1.0)), 0, 1, True),
    ],
)  # fmt: skip
def test_within_bounds(seen: Survey, low: float, high: float, inside: bool) -> None:
    assert seen.lies_within(low, high) == inside


def test_magnitude_and_sign() -> None:
    assert (Survey().largest, Survey().negative) == (0, False)
    assert (Survey((-3, 2)).largest, Survey((-3, 2)).negative) == (3, True)
    assert (Survey((-0.0, 2.5)).largest, Survey((-0.0, 2.5)).negative) == (2.5, False)
    assert (Survey((-5e-324, 0.0)).largest, Survey((-5e-324, 0.0)).negative) == (5e-324, True)


def layouts(values: Any) -> list[Any]:
    """The same numbers in other places."""
    return [values, values.T, values[::-1], values[:, ::2], values[1:, 1:], values[:, 1:].T, np.broadcast_to(values[0], values.shape)]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (257, 131), (1024, 1031)])
def test_floats(dtype: str, shape: tuple[int, int]) -> None:
    cupy = pytest.importorskip("cupy")
    from semiring.kernels.cuda.reductions import survey

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
                assert survey(on_gpu(cupy, part))() == expected(part), (special, low, part.strides)
    for value in (np.inf, -np.inf, np.nan, -0.0, tiny):
        values = np.full(shape, value, dtype)
        assert survey(cupy.asarray(values))() == expected(values)


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
    from semiring.kernels.cuda.reductions import survey

    rng, info = np.random.default_rng(1), np.iinfo(dtype)
    for shape in ((1, 1), (7, 3), (1000, 1003), (3, 40, 41)):
        for infinities in ((), (info.max,), (info.min,), (info.min, info.max)):
            for low, high in ((info.min, info.max), (1, 100)):
                values = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
                for special in ((), (info.max,), (info.min,)):
                    values.ravel()[: len(special)] = special
                    for part in layouts(values) if values.ndim == 2 else [values, values[:, ::-1, ::2], values[1:, 1:]]:
                        assert survey(on_gpu(cupy, part), infinities)() == expected(part, infinities)
            values = np.full(shape, info.max, dtype)
            assert survey(cupy.asarray(values), infinities)() == expected(values, infinities)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_batches_of_batches(dtype: str) -> None:
    """Among them those whose matrices do not follow each other at one stride."""
    cupy = pytest.importorskip("cupy")
    from semiring.kernels.cuda.reductions import survey

    numbers = np.arange(4 * 5 * 6 * 7).reshape(4, 5, 6, 7).astype(dtype) - 100
    for values in (numbers, -numbers):
        for part in (values[:, 1:4], values[::-1, :2, ::2], values.transpose(1, 0, 3, 2)[2:], values[1:, ::-2, :, :1]):
            assert survey(on_gpu(cupy, part))() == expected(part), part.strides


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 0)])
def test_nothing(shape: tuple[int, ...]) -> None:
    cupy = pytest.importorskip("cupy")
    from semiring.kernels.cuda.reductions import survey

    assert survey(cupy.empty(shape, np.float32))() == Survey()
