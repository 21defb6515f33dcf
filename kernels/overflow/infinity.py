"""Which integers stand for an infinite zero."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import var

__all__ = [
    "FINITE", "HIGHEST", "LOWEST", "NAN", "Found", "absorbing", "crosses_infinity", "own", "signed_limit", "signed_threshold", "threshold",
    "tropical",
]  # fmt: skip

FINITE, HIGHEST, LOWEST, NAN = (1 << bit for bit in range(4))
"""The kinds: numbers between the ends, the end +∞ (or the dtype's highest integer), the end −∞ (or its lowest), NaN."""

Found = tuple[float, float, int, int, int]
"""What kernels tell of an array, before anyone says which integers stand for ±∞: the least and the greatest number between the ends, kinds
of numbers, and how many are 0 and −0.0."""


@functools.lru_cache(maxsize=256)
def absorbing(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> tuple[int, ...]:
    """The integers that stand for an infinite zero: a sum with one of them is it again, never a wrapped number."""
    raw = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    zero, _ = semiring.identities(dtypes)
    values = {z for r, z, d in zip(raw, zero, dtypes, strict=True) if d.kind in "iu" and isinstance(r, float) and math.isinf(r)}
    return tuple(sorted(values))


@functools.lru_cache(maxsize=256)
def own(infinities: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Those of `infinities` that are a dtype's own: the largest or smallest value of another dtype is an ordinary number here."""
    if dtype.kind not in "iu":
        return ()
    info = np.iinfo(dtype)
    return tuple(i for i in infinities if i in (info.min, info.max))


@functools.lru_cache(maxsize=256)
def tropical(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether elements are single integers with an infinite zero, ⊕ is their minimum or maximum and ⊗ their sum, and nothing else."""
    program = semiring.program
    operands = {var(0), var(1)}
    return (
        len(dtypes) == 1
        and bool(absorbing(semiring, dtypes))
        and program.add[0].op in ("min", "max")
        and program.mul[0].op == "add"
        and set(program.add[0].args) == set(program.mul[0].args) == operands
    )


def crosses_infinity(infinity: int, interval: tuple[float, float]) -> bool:
    """Whether the interval has a value that pulls ∞ back when it is added: a negative one for +∞, a positive one for −∞."""
    return interval[0] < 0 if infinity > 0 else interval[1] > 0


def signed_limit(half: int) -> int:
    """The largest magnitude of integers beside `half`, the inner ∞, when they may pull it back: two of them stay short of ∞ and one."""
    return (abs(half) - 1) // 3


def signed_threshold(half: int) -> int:
    """The least magnitude that is ∞ then."""
    third = abs(half) // 3
    return half - third if half > 0 else half + third


def threshold(half: int, *, signed: bool) -> int:
    """The inner integer from which on elements are ∞; `signed` where finite ones may have pulled ∞ back."""
    return signed_threshold(half) if signed else half
