"""Whether ⊕ is log Σ exp: told from what was recorded, however a callable writes it, and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from semiring.algebra import ops
from semiring.algebra.catalogue import LOG, semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.exponential import log_add
from semiring.algebra.expression import evaluate

INF = math.inf


def by_branches(a: Any, b: Any) -> Any:
    if a == -INF:
        return b
    if b == -INF:
        return a
    return a + ops.log1p(ops.exp(b - a)) if a > b else b + ops.log1p(ops.exp(a - b))


def by_two_exponentials(a: Any, b: Any) -> Any:
    high = max(a, b)
    return high if high == -INF else high + ops.log(ops.exp(a - high) + ops.exp(b - high))


SPELLINGS: list[tuple[str, Callable[[Any, Any], Any], Fraction]] = [
    ("ops", ops.logaddexp, Fraction(1)),
    ("by branches", by_branches, Fraction(1)),
    ("by two exponentials", by_two_exponentials, Fraction(1)),
    ("as it is defined", lambda a, b: ops.log(ops.exp(a) + ops.exp(b)), Fraction(1)),
    ("by expm1", lambda a, b: ops.log1p(ops.expm1(a) + ops.exp(b)), Fraction(1)),
    ("by abs", lambda a, b: a + math.log(2) if a == b else max(a, b) + ops.log1p(ops.exp(-abs(a - b))), Fraction(1)),
    ("the other operand first", lambda a, b: ops.logaddexp(b, a), Fraction(1)),
    ("soft minimum", lambda a, b: -ops.logaddexp(-a, -b), Fraction(-1)),
    ("by min", lambda a, b: min(a, b) - ops.log1p(ops.exp(min(a, b) - max(a, b))), Fraction(-1)),
    ("temperature", lambda a, b: 0.1 * ops.logaddexp(a / 0.1, b / 0.1), 1 / Fraction(0.1)),
    ("negative temperature", lambda a, b: -3 * ops.logaddexp(-a / 3, -b / 3), Fraction(-1, 3)),
    ("base 2", lambda a, b: ops.logaddexp(a * math.log(2), b * math.log(2)) / math.log(2), Fraction(math.log(2))),
]

OTHERS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("another weight", lambda a, b: ops.log(ops.exp(a) + 2 * ops.exp(b))),
    ("a floor", lambda a, b: max(ops.logaddexp(a, b), -100.0)),
    ("a product", lambda a, b: ops.log(ops.exp(a) * ops.exp(b))),
    ("half of it", lambda a, b: ops.logaddexp(a, b) if a > b else max(a, b)),
    ("squares", lambda a, b: ops.log(ops.sqrt(ops.exp(2 * a) + ops.exp(2 * b)))),
    ("no power of it", lambda a, b: ops.log(ops.exp(a) + ops.exp(b) + ops.exp(a) * ops.exp(b))),
]


def plus(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize(("add", "scale"), [s[1:] for s in SPELLINGS], ids=[s[0] for s in SPELLINGS])
def test_every_spelling_is_recognized(add: Callable[[Any, Any], Any], scale: Fraction) -> None:
    made = Semiring("spelled", add, plus, -INF if scale > 0 else INF, 0)
    assert made.program.exponential == scale


@pytest.mark.parametrize("add", [o[1] for o in OTHERS], ids=[o[0] for o in OTHERS])
def test_nothing_else_is(add: Callable[[Any, Any], Any]) -> None:
    assert Semiring("other", add, plus, -INF, 0).program.exponential is None


def test_with_another_product_it_is_none() -> None:
    assert Semiring("other", ops.logaddexp, lambda a, b: a * b, -INF, 1).program.exponential is None
    assert Semiring("other", ops.logaddexp, lambda a, b: a + 2 * b, -INF, 0).program.exponential is None


def test_of_the_catalogue_only_log() -> None:
    assert [s.name for s in semirings().values() if s.program.exponential is not None] == ["log"]


def test_the_sum_is_the_librarys_own() -> None:
    assert log_add(Fraction(1)) is LOG.program.add[0]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(-1), Fraction(3, 2), Fraction(-1, 4)])
def test_the_sum_of_two(scale: Fraction) -> None:
    x = np.array([-INF, -1e3, -30.0, -1.0, 0.0, 1e-3, 2.0, 40.0, 1e3, INF])
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        (found,) = evaluate([log_add(scale)], [a], [b], ops.TABLE)
        expected = np.logaddexp(float(scale) * a, float(scale) * b) / float(scale)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
