"""Elements on which the laws of a semiring are checked: all of a small carrier, otherwise numbers that a dtype holds exactly.

Sums and products of three sampled numbers are exact, so that a law of the numbers holds to the last bit, and small, so that no integer
overflows. Nothing is random: every check gives the same result.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np

from semiring.algebra.agreement import around
from semiring.algebra.carrier import Interval, Part
from semiring.algebra.elements import element
from semiring.algebra.expression import BITWISE
from semiring.algebra.structure import AlgebraicStructure
from semiring.common.errors import DTypeError, TraceError

__all__ = ["Sample", "arithmetic", "draw"]

Array = np.ndarray[Any, Any]

EXHAUSTIVE = 64
"""The most elements of a carrier for an exhaustive check of all pairs and triples."""

_SCALARS, _STRUCTURED = 16, 24  # the size of a sample of scalars or tuples; half as many objects, because objects run one by one
_WHOLE = (0, 1, 2, -1, 3, -2, 5, -3, 7, 10, -5, 4, 6, -7)
_REAL = (0, 1, 2, -1, 0.5, 3, -2, 0.25, 1.5, -0.5, 5, -3, 0.75, 7, 10, -1.5)
_EXACT = (0, 1, 2, -1, Fraction(1, 2), 3, -2, Fraction(1, 3), Fraction(-1, 2), 5, Fraction(7, 4), -3, 10)
_NEAR = 1 << 20  # the largest bound around which numbers are sampled; beyond it, sums are not exact


@dataclass(frozen=True)
class Sample:
    """Elements as arrays of shape (m,), one a component, in the dtypes of `arithmetic`: 0, 1, and others; all elements if `exhaustive`."""

    values: tuple[Array, ...]
    exhaustive: bool


def arithmetic(structure: AlgebraicStructure, kinds: Sequence[np.dtype[Any]]) -> tuple[np.dtype[Any], ...]:
    """Choose the dtypes in which the laws are computed.

    Integers are computed as float64, which holds the sampled ones exactly and has an absorbing ∞, as in the engines. A semiring that uses
    bits keeps integers.
    """
    if any(k.kind == "O" for k in kinds):
        return (np.dtype(object),) * len(kinds)
    bits = _uses_bits(structure)
    return tuple(np.dtype(np.float64) if k.kind in "iu" and not bits else k for k in kinds)


def _uses_bits(structure: AlgebraicStructure) -> bool:
    try:
        return bool(structure.program.operations & BITWISE)
    except TraceError:
        return False  # a semiring without recording runs on objects only


def draw(structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...]) -> Sample:
    """Sample a carrier in some dtypes, one for each component."""
    types, bits = arithmetic(structure, kinds), _uses_bits(structure)
    zero, one = _identities(structure, kinds, types)

    def columns(elements: Sequence[tuple[Any, ...]]) -> tuple[Array, ...]:
        return tuple(np.fromiter((e[c] for e in elements), t, len(elements)) for c, t in enumerate(types))

    constants = [_constants(structure, kind) for kind in kinds]

    def inside(more: bool) -> tuple[list[tuple[Any, ...]], bool]:
        pools = [
            _candidates(part, kind, (zero[c], one[c]), constants[c], bits=bits, more=more)
            for c, (part, kind) in enumerate(zip(structure.carrier.parts, kinds, strict=True))
        ]
        own = _distinct([zero, one])  # the identities belong to every sample, even if rounding moved one outside
        elements = _distinct([*own, *_combined([pool for pool, _ in pools])])
        try:
            held = structure.carrier.holds(columns(elements))
        except Exception:  # a predicate may raise for some numbers
            held = np.array([structure.carrier.contains(e if len(e) > 1 else e[0]) for e in elements])
        return [e for i, e in enumerate(elements) if held[i] or i < len(own)], all(complete for _, complete in pools)

    elements, finite = inside(more=False)
    if not finite and len(elements) <= _SCALARS // 2:  # a predicate left too few
        elements, finite = inside(more=True)
    exhaustive = finite and len(elements) <= EXHAUSTIVE
    if not exhaustive:
        most = (_SCALARS if len(kinds) == 1 else _STRUCTURED) // (2 if kinds[0].kind == "O" else 1)
        elements = _thinned(elements, most + max(map(len, constants)))
    return Sample(columns(elements if zero != one else [zero, *elements]), exhaustive)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Keep each value once, in order; unhashable values such as sets are compared as text."""
    found: dict[Any, Any] = {}
    for value in values:
        try:
            found.setdefault(value, value)
        except TypeError:
            found.setdefault(repr(value), value)
    return list(found.values())


def _identities(structure: AlgebraicStructure, kinds: Sequence[np.dtype[Any]], types: Sequence[np.dtype[Any]]) -> list[tuple[Any, ...]]:
    """Return 0 and 1 in the dtypes of `arithmetic`."""
    found = []
    for raw, derived in zip((structure.zero, structure.one), structure.identities(kinds), strict=True):
        parts = raw if isinstance(raw, tuple) else (raw,)
        found.append(tuple(
            r if k != t and isinstance(r, float) and math.isinf(r) and not (r < 0 and k.kind == "u") else d
            for r, d, k, t in zip(parts, derived, kinds, types, strict=True)
        ))  # fmt: skip
    return found


def _constants(structure: AlgebraicStructure, kind: np.dtype[Any]) -> list[Any]:
    """List recorded constants and their neighbours whose sums or products of three are exact, and of two fit the dtype."""
    try:
        multiplies = "mul" in structure.program.operations
    except TraceError:
        return []  # a semiring without recording runs on objects only
    largest = int(np.iinfo(kind).max) if kind.kind in "iu" else 1 << 64
    near = around(structure.program.every_constant, min(1 << 17, math.isqrt(largest)) if multiplies else min(1 << 50, largest // 4))
    return [v for v in near if v not in (_REAL if kind.kind == "f" else _WHOLE)]


def _candidates(
    part: Part, kind: np.dtype[Any], identities: tuple[Any, Any], constants: list[Any], *, bits: bool, more: bool
) -> tuple[list[Any], bool]:
    """List values to try for one component, the simplest first; True if the list is complete."""
    if kind.kind == "b":
        return [False, True], True
    if isinstance(part, frozenset):
        return [v for v in _sorted(part) if _has(kind, v)], True
    if kind.kind == "O" and not all(isinstance(v, Number) for v in identities):
        return list(identities), False
    if isinstance(part, Interval) and kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = max(part.low, info.min), min(part.high, info.max)
        if high - low < EXHAUSTIVE:
            return list(range(math.ceil(low), math.floor(high) + 1)), True
    pool = [math.inf, -math.inf, *constants, *_near(part), *(_WHOLE if kind.kind in "iu" else _REAL if kind.kind == "f" else _EXACT)]
    if kind.kind in "iu" and bits:
        pool = [*_bit_patterns(kind), *constants, *_WHOLE]
    if more:
        pool += [*range(-64, 65), *(k / 8 for k in range(-64, 65))]
    if kind.kind == "O":  # exact numbers stay exact only among themselves
        pool = [Fraction(v) if isinstance(v, float) and math.isfinite(v) else v for v in pool]
        pool = [v for v in pool if not bits or isinstance(v, int)]
    return [v for v in pool if _has(kind, v)], False


def _has(kind: np.dtype[Any], value: Any) -> bool:
    """Return True if a dtype has a value, or a number that stands for it."""
    try:
        element(value, kind)
    except DTypeError:
        return False
    return kind.kind != "u" or value >= 0


def _near(part: Part) -> list[Any]:
    """List numbers within an interval: evenly spread, or from its only finite bound on."""
    if not isinstance(part, Interval):
        return []
    low, high = (v if abs(v) <= _NEAR else None for v in (part.low, part.high))
    if low is not None and high is not None:
        step = Fraction(high) - Fraction(low)
        spread = [Fraction(low) + step * k / 16 for k in (*range(0, 17, 2), *range(1, 16, 2))]
        return [int(v) if v.denominator == 1 else float(v) for v in spread]
    upward = [v for v in _REAL if v >= 0]
    return [low + v for v in upward] if low is not None else [high - v for v in upward] if high is not None else []


def _bit_patterns(kind: np.dtype[Any]) -> list[int]:
    info, bits = np.iinfo(kind), 8 * kind.itemsize
    mixed = random.Random(bits)
    patterns = [0, -1, 1, 2, 3, 1 << (bits - 1), (1 << bits) // 3, 5, *(mixed.getrandbits(bits) for _ in range(_SCALARS))]
    return [int(np.array(p & ((1 << bits) - 1), dtype=f"u{kind.itemsize}").view(info.dtype)) for p in patterns]


def _combined(pools: Sequence[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    pools = [_distinct(pool) for pool in pools]
    if math.prod(map(len, pools)) <= 1 << 12:
        return itertools.product(*pools)
    mixed = random.Random(0)
    return [tuple(mixed.choice(pool[:10]) for pool in pools) for _ in range(1 << 11)]


def _thinned(elements: list[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """Keep some elements in order: the first scalars, or a random choice of tuples."""
    if len(elements) <= most or len(elements[0]) == 1:
        return elements[:most]
    kept = random.Random(0).sample(range(2, len(elements)), most - 2)
    return [*elements[:2], *(elements[i] for i in sorted(kept))]


def _sorted(part: frozenset[Any]) -> list[Any]:
    """Sort a finite carrier, small numbers first."""
    return sorted(part, key=lambda v: (0, abs(v), -v, "") if isinstance(v, int | float | Fraction) else (1, 0, 0, repr(v)))
