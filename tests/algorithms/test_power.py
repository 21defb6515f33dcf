"""Powers by repeated squaring: the errors of a step name the step."""

from __future__ import annotations

import numpy as np
import pytest

import semiring as sr


def test_every_power_up_to_40() -> None:
    a = np.array([[1, 1], [1, 0]])
    for k in range(41):
        assert np.array_equal(sr.power(a, k, sr.PLUS_TIMES), np.linalg.matrix_power(a, k))


CASES = [(1e200, 4, "power 2"), (1e100, 5, "power 4"), (1e60, 11, "power 8"), (-1e200, 3, "power 2")]


@pytest.mark.parametrize(("entry", "k", "step"), CASES)
def test_a_power_that_overflows_is_named(entry: float, k: int, step: str) -> None:
    a = np.array([[0.5, 0.0], [0.0, entry]])
    with np.errstate(over="ignore"), pytest.raises(sr.DomainError, match=rf"^{step} of the matrix has the element inf at \[1, 1\]"):
        sr.power(a, k, sr.PLUS_TIMES)


def test_a_power_of_integers_that_could_overflow_is_named() -> None:
    a = np.array([[2**20]], dtype=np.int64)
    assert sr.power(a, 3, sr.PLUS_TIMES)[0, 0] == 2**60
    with pytest.raises(sr.OverflowRiskError) as caught:
        sr.power(a, 5, sr.PLUS_TIMES)
    assert "in power 4 of the matrix, the product of the powers 2 and 2" in caught.value.__notes__


def test_what_the_caller_passed_is_blamed_as_such() -> None:
    with pytest.raises(sr.DomainError, match="nan"):
        sr.power(np.array([[np.nan]]), 3, sr.PLUS_TIMES)
    shift = sr.Semiring("shift", lambda a, b: a + b, lambda a, b: a * b, 0, 1, domain=(0, 5))
    with pytest.raises(sr.DomainError, match=r"power 2 .* 9.0 at .* outside the carrier"):
        sr.power(np.array([[3.0]]), 4, shift)
