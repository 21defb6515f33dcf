"""Derivatives of recorded operations, against SymPy and against differences of the recorded expressions."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sympy as sp

import semiring as sr
from semiring.algebra import ops
from semiring.algebra.derivatives import DERIVATIVES, ONE, ZERO, derivatives
from semiring.algebra.expression import COMPARISONS, Expr, const, evaluate, node, var, where

A, B = var(0), var(1)
SMOOTH = {
    "add": node("add", A, B), "sub": node("sub", A, B), "mul": node("mul", A, B), "div": node("div", A, B), "neg": node("neg", A),
    "exp": node("exp", node("mul", A, B)), "expm1": node("expm1", node("mul", A, B)), "log": node("log", node("add", A, B)),
    "log1p": node("log1p", node("mul", A, B)), "sqrt": node("sqrt", node("mul", A, A)),
}  # fmt: skip
PIECEWISE = {
    "abs": node("abs", node("sub", A, B)), "min": node("min", node("mul", A, A), B), "max": node("max", node("mul", A, const(3)), B),
    "where": where(node("lt", A, B), node("mul", A, B), node("sub", B, A)), "mod": node("mod", A, B), "floordiv": node("floordiv", A, B),
    "not": where(node("not", node("eq", A, const(7))), node("mul", B, B), A),
    **{name: where(node(name, A, B), node("mul", A, const(5)), node("mul", B, A)) for name in sorted(COMPARISONS)},
}  # fmt: skip


def test_each_operation_is_tried() -> None:
    assert {*SMOOTH, *PIECEWISE} == {*DERIVATIVES}
    assert {*ops.TABLE} - {*DERIVATIVES} == {"and", "or", "xor", "shl", "shr", "invert"}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_operations_against_sympy(name: str) -> None:
    a, b = sp.symbols("a b", positive=True)
    (row,) = derivatives([SMOOTH[name]], [A, B])
    (value,) = evaluate([SMOOTH[name]], [a], [b], ops.TABLE)
    for found, symbol in zip(evaluate(row, [a], [b], ops.TABLE), (a, b), strict=True):
        assert sp.simplify(found - sp.diff(value, symbol)) == 0


@pytest.mark.parametrize("name", PIECEWISE)
def test_operations_with_kinks_against_differences(name: str) -> None:
    # Between kinks these are quadratic at most, so that central differences of fractions are exact.
    rng, h = random.Random(name), Fraction(1, 10**9)

    def value(a: Fraction, b: Fraction) -> Fraction:
        return evaluate([PIECEWISE[name]], [a], [b], ops.TABLE)[0]  # type: ignore[no-any-return]

    (row,) = derivatives([PIECEWISE[name]], [A, B])
    for _ in range(20):
        a, b = Fraction(rng.randint(-99, 99), 7) + 999 * h, Fraction(rng.randint(1, 99), 11)
        by_a, by_b = evaluate(row, [a], [b], ops.TABLE)
        assert by_a == (value(a + h, b) - value(a - h, b)) / (2 * h)
        assert by_b == (value(a, b + h) - value(a, b - h)) / (2 * h)


@pytest.mark.parametrize(("expr", "at", "expected"), [
    (node("min", A, B), (2, 2), (1, 0)),
    (node("max", A, B), (2, 2), (1, 0)),
    (node("abs", A), (0, 0), (1, 0)),
])  # fmt: skip
def test_a_kink_has_the_derivative_of_the_returned_argument(expr: Expr, at: tuple[int, int], expected: tuple[int, int]) -> None:
    (row,) = derivatives([expr], [A, B])
    assert evaluate(row, [at[0]], [at[1]], ops.TABLE) == expected


def test_simplified() -> None:
    assert derivatives(sr.MIN_PLUS.program.mul, [A, B]) == ((ONE, ONE),)
    assert derivatives(sr.MAX_TIMES.program.mul, [A, B]) == ((B, A),)
    x = [var(side, c) for side in (0, 1) for c in (0, 1)]
    assert derivatives(sr.DISTANCE_COUNT.program.mul, x) == ((ONE, ZERO, ONE, ZERO), (ZERO, x[3], ZERO, x[1]))
    assert derivatives([A], []) == ((),)
    assert derivatives([where(node("lt", node("and", const(3), const(1)), A), A, B)], [B])[0][0].op == "where"


def test_bits_have_no_derivative() -> None:
    with pytest.raises(sr.SemiringError, match="'and' has no derivative"):
        derivatives(sr.BITSET.program.mul, [A, B])
