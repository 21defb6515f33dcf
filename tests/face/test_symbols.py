"""Matrices of SymPy's expressions: what their assumptions decide is decided, and what they do not is said."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import sympy

import semiring as sr

METHODS = ("iterative", "blocked", "recursive")
x, y = sympy.symbols("x y", positive=True)
z = sympy.Symbol("z", real=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("rows", "cycle"),
    [
        ([[-x]], [0]),
        ([[0, x], [-2 * x, 0]], [0, 1]),
        ([[sympy.oo, x, sympy.oo], [sympy.oo, sympy.oo, y], [-x - 2 * y, sympy.oo, sympy.oo]], [0, 1, 2]),
        ([[0, z**2], [-(z**2) - 1, 0]], [0, 1]),
    ],
)
def test_a_cycle_that_sympy_knows_to_be_negative(method, rows, cycle):
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(sympy.Matrix(rows), method=method, block=1)
    assert sorted(caught.value.cycle or ()) == cycle


@pytest.mark.parametrize("method", METHODS)
def test_cycles_that_sympy_knows_to_be_harmless(method):
    roads = sympy.Matrix([[0, x, x + y], [-x, 0, y], [y, 2 * x, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sr.apsp(roads, method=method, block=1)
    numbers = {x: Fraction(3, 2), y: Fraction(5)}
    expected = sr.apsp(
        np.array(roads.subs({k: sympy.Rational(v.numerator, v.denominator) for k, v in numbers.items()}).tolist(), dtype=float)
    )
    assert np.allclose(np.array(found.subs(numbers).tolist(), dtype=float), expected)


@pytest.mark.parametrize("method", METHODS)
def test_what_sympy_cannot_decide_is_said(method):
    with pytest.warns(sr.AssumptionWarning, match=r"the closure over min-plus rests on what SymPy cannot decide: Min\(0, z\) = 0; declare"):
        found = sr.apsp(sympy.Matrix([[z]]), method=method)
    assert found.subs(z, 3) == sympy.Matrix([[0]])
    with pytest.warns(sr.AssumptionWarning, match=r"not \(z >= 0\)"):
        assert sr.closure(sympy.Matrix([[z]]), sr.LOG, method=method)


def test_a_star_that_sympy_knows_not_to_exist():
    for entry in (x, sympy.Integer(0), x + y):
        with pytest.raises(sr.DivergenceError, match="does not exist"):
            sr.closure(sympy.Matrix([[entry]]), sr.LOG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sr.closure(sympy.Matrix([[z]]), sr.PLUS_TIMES) == sympy.Matrix([[1 / (1 - z)]])  # its pole stands in the answer
        found = sr.closure(sympy.Matrix([[-x]]), sr.LOG)[0]
    assert float(found.subs(x, 0.25)) == pytest.approx(float(sr.closure([[-0.25]], sr.LOG)[0, 0]), rel=1e-12)


def test_an_entry_that_sympy_knows_to_be_outside():
    with pytest.raises(sr.DomainError, match=r"\[0, 0\] = -x is outside the carrier of max-times"):
        sr.closure(sympy.Matrix([[-x]]), sr.MAX_TIMES)
    assert sr.matmul(np.array([[x, z]], object), np.array([[y], [x]], object), sr.MAX_TIMES).item() == sympy.Max(x * y, x * z)


def test_products_and_powers_of_objects_run_the_callables():
    words = sr.Semiring(
        "words", lambda a, b: a.union(b), lambda a, b: frozenset(map("".join, itertools.product(a, b))), frozenset(), frozenset({""})
    )
    a = np.empty((2, 2), object)
    a[:] = [[frozenset("a"), frozenset("b")], [frozenset(), frozenset("c")]]
    assert sr.matmul(a, a, words)[0, 1] == {"ab", "bc"}
    assert sr.power(a, 3, words)[0, 1] == {"aab", "abc", "bcc"}
    expanded = sr.Semiring(
        "expanded", lambda a, b: sympy.expand(a + b), lambda a, b: sympy.expand(a * b), sympy.Integer(0), sympy.Integer(1)
    )
    b = np.array([[x, x + 1], [1 + x, 2]], object)
    exact = sympy.Matrix(b.tolist())
    assert sympy.Matrix(sr.matmul(b, b, expanded).tolist()) == (exact * exact).expand()
    assert sympy.Matrix(sr.power(b, 5, expanded).tolist()) == (exact**5).expand()
    half = sr.Semiring("half", min, lambda a, b: sympy.expand(a * b), sympy.oo, sympy.Integer(1))  # ⊕ is recorded, ⊗ is not
    assert sr.matmul(b, b, half)[1, 1] == sympy.Min(4, x**2 + 2 * x + 1)


def test_poles_that_are_certain_are_no_stars():
    u = sympy.Symbol("u")
    for pivot in (sympy.sin(u) ** 2 + sympy.cos(u) ** 2, (u + 1) ** 2 - u**2 - 2 * u):
        with pytest.raises(sr.DivergenceError):
            sr.closure(sympy.Matrix([[pivot]]), sr.PLUS_TIMES)
    a, b, c, d, e, f = sympy.symbols("a b c d e f")
    with pytest.raises(sr.DivergenceError):  # a stochastic matrix
        sr.closure(sympy.Matrix([[a, b, 1 - a - b], [c, d, 1 - c - d], [e, f, 1 - e - f]]), sr.PLUS_TIMES)


def test_equal_numbers_that_are_written_otherwise():
    root = sympy.sqrt(2) + sympy.sqrt(3)
    found = sr.apsp(sympy.Matrix([[0, root], [-sympy.sqrt(5 + 2 * sympy.sqrt(6)), 0]]))
    assert np.allclose(np.array(found.tolist(), dtype=float), [[0, 3.14626437], [-3.14626437, 0]])


def test_what_cannot_be_combined_is_told():
    with pytest.raises(sr.SemiringError, match=r"cannot be combined by boolean|outside the carrier"):
        sr.matmul(np.array([[x]], object), np.array([[0]], object), sr.BOOLEAN)


def test_each_call_says_what_it_rests_on():
    for _ in range(2):
        with pytest.warns(sr.AssumptionWarning) as caught:
            sr.apsp(sympy.Matrix([[z]]))
        assert caught[0].filename == __file__
