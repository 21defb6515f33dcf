"""Semirings that satisfy the laws: those of the catalogue, by their definitions written once more, and some with random parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.formulas import Formula, of, var
from tests.campaign.subjects import (
    FLOATS,
    INF,
    SIGNED,
    UNSIGNED,
    A,
    Array,
    B,
    Rng,
    Subject,
    among,
    defined,
    lexicographic,
    subject_of,
    whole,
)  # fmt: skip

__all__ = ["catalogue", "draw_catalogue", "draw_lawful", "draw_modulus", "modulo"]

_CATALOGUE = ("MIN_PLUS", "MAX_PLUS", "BOOLEAN", "MAX_MIN", "MIN_MAX", "MAX_TIMES", "PLUS_TIMES", "LOG", "GF2", "BITSET",
              "DISTANCE_COUNT", "DISTANCE_HOPS")  # fmt: skip
_OFTEN = ("MIN_PLUS", "MIN_PLUS", "MIN_PLUS", "MAX_PLUS", "BOOLEAN", "PLUS_TIMES", "MAX_MIN", *_CATALOGUE)


def catalogue(name: str, dtype: str) -> Subject:
    """A semiring of the catalogue, by its own definition, written once more."""
    semiring = getattr(sr, name)
    ends = (semiring.zero, semiring.one)
    kind = np.dtype(dtype).kind

    def made(add: Any, mul: Any, free: Any, harmless: Any = None, **more: Any) -> Subject:
        width = 1 if isinstance(add, Formula) else len(add)
        return subject_of(f"sr.{name}", semiring, (dtype,) * width, add, mul, *ends, free, harmless, **more)

    match name:
        case "MIN_PLUS":
            return made(of("min", A, B), of("add", A, B), whole(-5, 9), whole(0, 9))
        case "MAX_PLUS":
            return made(of("max", A, B), of("add", A, B), whole(-9, 5), whole(-9, 0) if kind != "u" else whole(0, 0))
        case "BOOLEAN":
            return made(of("or", A, B), of("and", A, B), among(False, True))
        case "MAX_MIN":
            return made(of("max", A, B), of("min", A, B), whole(-9, 9))
        case "MIN_MAX":
            return made(of("min", A, B), of("max", A, B), whole(-9, 9))
        case "MAX_TIMES":
            free, tame = (among(0.25, 0.5, 1, 2, 3), among(0.5, 1)) if kind == "f" else (whole(0, 9), whole(0, 1))
            return made(of("max", A, B), of("mul", A, B), free, tame)
        case "PLUS_TIMES":
            return made(of("add", A, B), of("mul", A, B), whole(-3, 3), selective=False, closure="star")
        case "LOG":

            def logarithms(rng: Rng, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                return rng.normal(0, rng.choice([1e-3, 1, 20]), shape)

            return made(of("logaddexp", A, B), of("add", A, B), logarithms, selective=False, closure="star")
        case "GF2":
            return made(of("xor", A, B), of("and", A, B), among(False, True), selective=False, closure="star")
        case "BITSET":
            return made(of("or", A, B), of("and", A, B), whole(0, 255) if dtype == "uint8" else whole(-300, 300), selective=False)
        case "DISTANCE_COUNT":
            d, e, c, m = var(0, 0), var(1, 0), var(0, 1), var(1, 1)
            counts = of("where", of("eq", d, e), of("add", c, m), of("where", of("lt", d, e), c, m))
            return made((of("min", d, e), counts), (of("add", d, e), of("mul", c, m)), (whole(-3, 5), whole(1, 2)),
                        (whole(1, 5), whole(1, 2)), selective=False, closure="counting")  # fmt: skip
        case "DISTANCE_HOPS":
            return made(lexicographic(2), (of("add", var(0, 0), var(1, 0)), of("add", var(0, 1), var(1, 1))),
                        (whole(-3, 5), whole(0, 4)), (whole(0, 5), whole(0, 4)))  # fmt: skip
    raise AssertionError(name)


def draw_catalogue(rng: Rng) -> Subject:
    name = str(rng.choice(_OFTEN))
    dtypes = [str(d) for d in getattr(sr, name).supported_dtypes]
    usual = [d for d in dtypes if d in ("float32", "float64", "int32", "bool")]
    return catalogue(name, str(rng.choice(dtypes if rng.random() < 0.5 or not usual else usual)))


def draw_lawful(rng: Rng) -> Subject:
    """A semiring that satisfies the laws whatever its parameters are."""
    choice = rng.integers(9)
    number = str(rng.choice([*FLOATS, *SIGNED]))
    floats = number in FLOATS
    match choice:
        case 0:
            top = float(rng.choice([1.0, 2.0, 0.75])) if floats else int(rng.integers(20, 120))
            step = top / 16 if floats else 1
            mul = of("max", of("sub", of("add", A, B), top), 0)

            def graded(rng: Rng, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                return rng.integers(0, round(top / step) + 1, shape) * step

            return defined("lukasiewicz", [number], of("max", A, B), mul, 0, top, graded, domain=f"(0, {top!r})", add_text="max")
        case 1:
            number = str(rng.choice([*FLOATS, *SIGNED, *UNSIGNED]))
            cap = int(rng.integers(3, 60))
            mul = of("min", of("add", A, B), cap)
            return defined("capped", [number], of("min", A, B), mul, cap, 0, whole(0, cap), domain=f"(0, {cap})", add_text="min")
        case 2:
            p = int(rng.integers(-4, 5))
            free, tame = whole(-p - 2, 9), whole(-p, 9)
            return defined("shifted", [number], of("min", A, B), of("add", of("add", A, B), p), INF, -p, free, tame, add_text="min")
        case 3:
            number = str(rng.choice([*FLOATS, *SIGNED, *UNSIGNED]))
            top = int(rng.integers(1, 100))
            return defined("graded", [number], of("max", A, B), of("min", A, B), 0, top, whole(0, top), domain=f"(0, {top})")
        case 4:
            number = str(rng.choice(FLOATS))
            mul = of("mul", of("mul", A, B), 2.0)
            return defined("halves", [number], of("max", A, B), mul, 0, 0.5, among(0.125, 0.25, 0.5), domain="(0, 0.5)")
        case 5:
            a, b, v, w = var(0, 0), var(1, 0), var(0, 1), var(1, 1)
            chosen = [of("where", of("eq", a, b), of("where", of("ge", v, w), var(0, c), var(1, c)),
                         of("where", of("lt", a, b), var(0, c), var(1, c))) for c in (0, 1)]  # fmt: skip
            fits = "lambda a: (a[0] >= 0) & (a[1] >= 0) & ((a[0] < float('inf')) == (a[1] > 0))"
            return defined("short-wide", [number if floats else "float64"] * 2, tuple(chosen), (of("add", a, b), of("min", v, w)),
                            (INF, 0), (0, INF), (whole(0, 5), whole(1, 5)), domain=fits)  # fmt: skip
        case 6:
            p = draw_modulus(rng)
            return modulo(p, str(rng.choice([d for d in (*SIGNED, *UNSIGNED) if np.iinfo(d).max >= p])))
        case 7:
            a, b, v, w = var(0, 0), var(1, 0), var(0, 1), var(1, 1)
            return defined("near-and-wide", [str(rng.choice(FLOATS))] * 2, (of("min", a, b), of("max", v, w)),
                            (of("add", a, b), of("min", v, w)), (INF, 0), (0, INF), (whole(-1, 5), whole(1, 5)),
                            (whole(0, 5), whole(1, 5)), domain="((-1e9, float('inf')), (0, float('inf')))", selective=False)  # fmt: skip
        case _:
            a, b, v, w = var(0, 0), var(1, 0), var(0, 1), var(1, 1)
            bits = str(rng.choice(["uint8", "int32", "uint32", "int64"]))
            return defined("labelled", [bits, str(rng.choice(FLOATS))], (of("or", a, b), of("min", v, w)),
                            (of("and", a, b), of("add", v, w)), (0, INF), (-1, 0), (whole(0, 100), whole(0, 9)),
                            selective=False)  # fmt: skip


_PRIMES = (2, 3, 5, 7, 127, 251, 4099, 65521, 1048573, 94906249, 1073741789, 2**31 - 19, 2**31 - 1)
"""Primes, some of them just below the largest number of a dtype, or with blocks of few steps."""


def draw_modulus(rng: Rng) -> int:
    """Draw a prime, or a whole number from 2 to 2³¹ − 1 of any size."""
    return int(rng.choice(_PRIMES)) if rng.random() < 0.6 else min(2**31 - 1, 2 + int(2 ** rng.uniform(0, 31)))


def modulo(p: int, dtype: str) -> Subject:
    """Return the integers modulo p, whose closures have an entry by themselves."""

    def residues(rng: Rng, shape: tuple[int, ...], _: np.dtype[Any]) -> Array:
        return np.where(rng.random(shape) < rng.choice([0.1, 0.9]), p - 1 - rng.integers(0, 2, shape), rng.integers(0, p, shape))

    add, mul = of("mod", of("add", A, B), p), of("mod", of("mul", A, B), p)
    return subject_of(f"sr.modular({p})", sr.modular(p), [dtype], add, mul, 0, 1, residues, selective=False, closure="")
