"""Scans on a GPU against the CPU's, and sums of logarithms against mpmath."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import semiring as sr
from semiring.algebra.laws import is_selective
from semiring.kernels.cpu.scans import CpuScans
from semiring.kernels.cuda.scan import CudaScans
from semiring.kernels.engine import ScanOperands, ScanPlaces, Scans
from tests.kernels.samples import CASES, DTypes, Values, elements, name

pytestmark = pytest.mark.gpu

SHAPES = [(1, 3), (5, 70), (17, 3), (40, 4), (64, 3), (128, 2), (129, 2), (300, 2)]
"""States and steps: sums of one lane and of several, warps and blocks, a matrix in registers and one that is read, winners of more steps
than are followed back at a time."""


def computed(
    scans: Scans, xp: Any, semiring: sr.Semiring, dtypes: DTypes, operands: ScanOperands, *, backward: bool, last: bool, witness: bool
) -> ScanPlaces:
    """The answer, with zeros and −1 beyond the ends."""
    zero, _ = semiring.identities(dtypes)
    rows = (*operands.batch, operands.steps + 1)
    shape = (*(operands.batch if last else rows), operands.states)
    values = tuple(xp.full(shape, z, d) for z, d in zip(zero, dtypes, strict=True))
    winners = (xp.full((*rows, operands.states), -1, np.int32), xp.full(rows, -1, np.int32)) if witness else (None, None)
    places = ScanPlaces(values, *winners)
    scans.run(operands, places, backward=backward, signed=True)
    return places


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(("semiring", "dtypes"), CASES, ids=name)
def test_all_semirings_and_dtypes(semiring: sr.Semiring, dtypes: DTypes, backward: bool) -> None:
    import cupy

    rng = np.random.default_rng(5)
    selective = is_selective(semiring, dtypes)
    for index, (states, steps) in enumerate(SHAPES):
        steps = min(steps, 3) if semiring.name in ("plus-times", "distance-count", "max-times") else steps  # which more steps leave
        steps = 1 if semiring.name == "distance-count" and dtypes[1].itemsize == 1 and states > 64 else steps
        batch = [(), (2, 3)][index % 2]
        for changes in (False, True):
            matrices = elements(semiring, dtypes, (*batch[1:], steps, states, states) if changes else (states, states), rng)
            matrices = tuple(v.swapaxes(-1, -2) for v in matrices) if index % 3 == 1 else matrices
            weights = elements(semiring, dtypes, (*batch, steps, states), rng) if changes or states == 64 else None
            initial = elements(semiring, dtypes, (*batch, states), rng)
            witness = selective and (changes or states == 5)
            added = None if witness or index % 2 else elements(semiring, dtypes, (*batch, steps + 1, states), rng)
            operands = ScanOperands(matrices, weights, initial, rng.integers(0, steps + 1, batch), steps, states, added)
            fields = "matrices", "weights", "initial", "added"
            there = operands._replace(**{field: _on_gpu(getattr(operands, field)) for field in fields})
            how: Any = {"backward": backward, "last": states == 17, "witness": witness}
            with np.errstate(all="ignore"):
                expected = computed(CpuScans(semiring, dtypes), np, semiring, dtypes, operands, **how)
            found = computed(CudaScans(semiring, dtypes, 0), cupy, semiring, dtypes, there, **how)
            for x, y in zip(
                (*found.values, found.witness, found.states), (*expected.values, expected.witness, expected.states), strict=True
            ):
                if y is not None and (y.dtype.kind != "f" or selective):
                    np.testing.assert_array_equal(x.get(), y)
                elif y is not None:
                    np.testing.assert_allclose(x.get(), y, rtol=1e-5, atol=1e-5)


def _on_gpu(values: Values | None) -> Any:
    """The same arrays, with their axes in the same order in memory."""
    import cupy

    return None if values is None else tuple(cupy.asarray(v, order="K") for v in values)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("spread", [1, 40, 3000])
@pytest.mark.parametrize("states", [23, 150])
def test_log_is_as_exact_as_on_the_cpu(dtype: str, spread: float, states: int) -> None:
    """Each step to (4 + √k)·ε·max(1, |r|), whatever the spread, −∞ included."""
    import cupy

    rng = np.random.default_rng(3)
    a = (spread * rng.normal(size=(states, states))).astype(dtype)
    a[rng.random(a.shape) < 0.2] = -math.inf
    a[:, 5] = -math.inf
    v = (spread * rng.normal(size=states)).astype(dtype)
    found = sr.scan(cupy.asarray(a), sr.LOG, cupy.asarray(v), lengths=2).get()
    bound = (4 + math.sqrt(states)) * float(np.finfo(dtype).eps)
    with mpmath.workprec(200):
        for t in range(2):
            for j in range(0, states, 1 + states // 23):
                both = zip(found[t], a[:, j], strict=True)
                terms = [mpmath.exp(mpmath.mpf(float(x)) + mpmath.mpf(float(y))) for x, y in both if x > -math.inf < y]
                exact = float(mpmath.log(mpmath.fsum(terms))) if terms else -math.inf
                assert found[t + 1, j] == exact or abs(found[t + 1, j] - exact) <= bound * max(1, abs(exact))


def test_bits_do_not_depend_on_the_batch() -> None:
    import cupy

    rng = np.random.default_rng(4)
    for states in (16, 48, 140):
        a, w = cupy.asarray(rng.normal(size=(states, states))), cupy.asarray(rng.normal(size=(20, 9, states)))
        together = sr.scan(a, sr.LOG, weights=w)
        for one in (0, 13):
            assert together[one].tobytes() == sr.scan(a, sr.LOG, weights=w[one]).tobytes()


def test_more_states_than_a_thread_block_has_room_for() -> None:
    import cupy

    a = np.random.default_rng(0).integers(-9, 9, (1030, 1030)).astype(np.float32)
    for states in (1024, 1030):
        some = np.ascontiguousarray(a[:states, :states])
        found, expected = (sr.scan(x, sr.MAX_PLUS, lengths=2, witness=True) for x in (cupy.asarray(some), some))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x.get(), y)


def test_an_infinite_logarithm_stays_one_where_nothing_is_looked_for() -> None:
    import cupy

    found = sr.scan(cupy.zeros((3, 3)), sr.LOG, cupy.array([0.0, 0.0, np.inf]), weights=cupy.zeros((1, 3)), check=False)
    np.testing.assert_array_equal(found[1].get(), np.inf)


def test_no_states() -> None:
    import cupy

    found = sr.scan(cupy.zeros((2, 0, 0), np.int32), sr.MIN_PLUS, cupy.zeros(0, np.int32), witness=True)
    assert found.values.shape == (3, 0)
    assert found.states.get().tolist() == [-1, -1, -1]
