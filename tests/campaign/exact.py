"""Exact entries: fractions in object arrays, and SymPy's symbols, whose answers are compared where numbers stand for the symbols."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign import closures, products
from tests.campaign.answers import answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, judged
from tests.campaign.lawful import catalogue
from tests.campaign.oracles import Algebra, product
from tests.campaign.subjects import Array, Subject

__all__ = ["ENTRIES", "draw_fractions"]

Rng = np.random.Generator


def _fractions(low: int, high: int) -> Any:
    def draw(rng: Rng, shape: tuple[int, ...], dtype: Any) -> Array:
        return _objects(
            shape,
            [Fraction(int(p), int(q)) for p, q in zip(*rng.integers([[low], [1]], [[high + 1], [7]], (2, math.prod(shape))), strict=True)],
        )

    return draw


def _objects(shape: tuple[int, ...], entries: list[Any]) -> Array:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array.reshape(shape)


_RANGES = {"MIN_PLUS": ((-3, 9), (0, 9)), "MAX_PLUS": ((-9, 3), (-9, 0)), "MAX_MIN": ((-9, 9), (-9, 9)), "PLUS_TIMES": ((-4, 4), (-4, 4)),
           "MIN_MAX": ((-9, 9), (-9, 9)), "MAX_TIMES": ((0, 9), (0, 1))}  # fmt: skip


def draw_fractions(rng: Rng) -> Subject:
    """Draw a semiring of the catalogue over fractions, in arrays of objects."""
    name = str(rng.choice([*_RANGES]))
    free, tame = _RANGES[name]

    def elements(rng: Rng, shape: tuple[int, ...], harmless: bool) -> tuple[Array]:
        return (_fractions(*(tame if harmless else free))(rng, shape, None),)

    return replace(catalogue(name, "float64"), dtypes=(np.dtype(object),), elements=elements)


def _draw_product(rng: Rng, _: Subject, device: str) -> Case:
    subject = draw_fractions(rng)
    m, k, n = (int(rng.integers(0, 7)) for _ in range(3))
    arrays = {"a": subject.draw(rng, (m, k)), "b": subject.draw(rng, (k, n))}
    axes: dict[str, tuple[str, ...]] = {"a": ("m", "k"), "b": ("k", "n")}
    if rng.random() < 0.3:
        arrays["c"], axes["c"] = subject.draw(rng, (m, n)), ("m", "n")
    options: dict[str, Any] = {"witness": True} if subject.selective and rng.random() < 0.5 else {}
    return Case("matmul of fractions", subject, arrays, axes, {}, options, "auto")


def _draw_closure(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = draw_fractions(rng), int(rng.integers(0, 7))
    a = subject.draw(rng, (n, n), zeros=[0.3, 0.7][rng.integers(2)], harmless=rng.random() < 0.8)
    options: dict[str, Any] = {"method": ("iterative", "blocked", "recursive")[rng.integers(3)]} if rng.random() < 0.5 else {}
    options |= {"block": int(rng.integers(1, 5))} if rng.random() < 0.4 else {}
    options |= {"reflexive": False} if rng.random() < 0.3 else {}
    options |= {"paths": True} if subject.selective and rng.random() < 0.4 else {}
    if n and rng.random() < 0.2:
        options["sources"] = rng.integers(0, n, 2).tolist()
    return Case("closure of fractions", subject, {"a": a}, {"a": ("n", "n")}, {}, options, "auto")


def _check_closure(case: Case) -> Complaint | None:
    return closures.ENTRIES["closure"].check(replace(case, entry="closure"))


# Symbols.


def _draw_symbols(rng: Rng, _: Subject, device: str) -> Case:
    """Entries p·x + q·y of two positive symbols, as Fractions p and q; and what x and y are where answers are compared."""
    what = ("apsp", "closure", "matmul")[rng.integers(3)]
    subject = replace(catalogue("MIN_PLUS" if what == "apsp" or (what == "matmul" and rng.random() < 0.5) else "PLUS_TIMES", "float64"),
                      dtypes=(np.dtype(object),))  # fmt: skip
    n = int(rng.integers(1, 4))
    empty = rng.random((n, n)) < 0.4
    parts = [_fractions(0, 3)(rng, (n, n), None) for _ in range(2)]
    for part in parts:
        part[empty] = Fraction(0)
    options = {"what": what, "x": Fraction(int(rng.integers(1, 9)), 7), "y": Fraction(int(rng.integers(1, 9)), 5)}
    return Case("symbols", subject, {"p": (parts[0],), "q": (parts[1],)}, {"p": ("n", "n"), "q": ("n", "n")}, {}, options, "auto")


def _check_symbols(case: Case) -> Complaint | None:
    import sympy

    what, subject = case.options.get("what", "matmul"), case.subject
    x, y = sympy.symbols("x y", positive=True)
    point = {x: case.options.get("x", Fraction(1)), y: case.options.get("y", Fraction(1))}
    (p,), (q,) = case.arrays["p"], case.arrays["q"]
    n = len(p)
    none = np.array([[u == 0 and v == 0 for u, v in zip(r, s, strict=True)] for r, s in zip(p, q, strict=True)], dtype=bool).reshape(n, n)
    (zero,) = subject.zeros
    missing = sympy.oo if zero == math.inf else sympy.Integer(0)
    formulas, numbers = np.empty((n, n), dtype=object), np.empty((n, n), dtype=object)
    for i, j in np.ndindex(n, n):
        parts = [sympy.Rational(str(matrix[i, j])) for matrix in (p, q)]
        formulas[i, j] = missing if none[i, j] else parts[0] * x + parts[1] * y
        numbers[i, j] = zero if none[i, j] else p[i, j] * point[x] + q[i, j] * point[y]
    if what == "matmul":
        found = attempt(sr.matmul, formulas, formulas, subject.semiring)
        want = product(Algebra(subject), (numbers,), (numbers,))[0][0]
    else:
        answer = answer_for(subject, (numbers,), reflexive=True)
        if answer.divergent.any():
            return None  # where these numbers stand for the symbols; elsewhere there is a closure
        want = answer.star[0]
        found = attempt(sr.apsp, sympy.Matrix(formulas)) if what == "apsp" else attempt(sr.closure, formulas, subject.semiring)
    if found.error is not None:
        return judged(found, {})
    result = np.asarray(found.result, dtype=object)
    exact = {s: sympy.Rational(v.numerator, v.denominator) for s, v in point.items()}
    for i, j in np.ndindex(n, n):
        value = sympy.sympify(result[i, j]).subs(exact)
        expected = sympy.oo if want[i, j] == math.inf else sympy.Rational(Fraction(want[i, j]).numerator, Fraction(want[i, j]).denominator)
        if sympy.simplify(value - expected) != 0 and value != expected:
            return Complaint("values", f"element [{i}, {j}] is {result[i, j]}, which is {value} there, not {expected}")
    return None


ENTRIES = {
    "matmul of fractions": Entry(0.3, _draw_product, products.ENTRIES["matmul"].check),
    "closure of fractions": Entry(0.3, _draw_closure, _check_closure),
    "symbols": Entry(0.05, _draw_symbols, _check_symbols),
}
