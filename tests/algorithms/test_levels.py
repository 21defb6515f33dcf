"""Which matrices on a GPU are closed by counting hops; tests/kernels/test_cuda_levels.py has the counting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms import closure
from semiring.kernels.cuda import boolean
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.select import engine_for


@pytest.mark.parametrize(("found", "length"), [
    (ValueStatistics((3, 3), positive_infinity=True), 3),
    (ValueStatistics((0, 3), zeros=2048), 3),
    (ValueStatistics((0, 3), zeros=2049), None),
    (ValueStatistics((1, 3)), None),
    (ValueStatistics((0, 0.5), zeros=1), None),
    (ValueStatistics((-5, 3), zeros=2047), None),
    (ValueStatistics((-3, -3)), None),
    (ValueStatistics((3, 3), nan=True), None),
    (ValueStatistics((3, 3), negative_infinity=True), None),
    (ValueStatistics((2**45, 2**45)), 2**45),
    (ValueStatistics((2**48, 2**48)), None),
    (ValueStatistics(), None),
])  # fmt: skip
def test_edges_that_may_be_equally_long(found: ValueStatistics, length: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing negative, as on the diagonal that would not be seen; and all multiples exact."""
    asked = list[tuple[Any, ...]]()

    def search(*given: Any) -> bool:
        asked.append(given[1:])
        return True

    monkeypatch.setattr(boolean, "close_by_levels", search)
    matrix, engine = np.zeros((2048, 2048)), engine_for(MIN_PLUS, (np.dtype(float),))
    assert closure._close_by_levels(engine, matrix, found) == (length is not None)
    assert asked == ([] if length is None else [(math.inf, length)])
