"""The operations of a semiring on arrays of sampled elements, for the check of its laws.

The sample has all elements of a small carrier, otherwise numbers that a dtype holds exactly. Sums and products of three sampled numbers are
exact, so that a law of the numbers holds to the last bit, and small, so that no integer overflows. Nothing is random: every check gives the
same result.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Number
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.agreement import ROUNDINGS, around
from semiring.algebra.carrier import Interval, Part
from semiring.algebra.elements import Array, element
from semiring.algebra.expression import BITWISE, REAL, Expr, evaluate, nodes
from semiring.algebra.program import Program
from semiring.algebra.structure import AlgebraicStructure
from semiring.common.errors import DivergenceError, DTypeError, TraceError

__all__ = ["Model", "model_of"]

Values = Sequence[Array]

_OBJECT, _FLOAT, _LONG = np.dtype(object), np.dtype(np.float64), np.dtype(np.int64)

_EXHAUSTIVE = 64  # the most elements of a carrier for an exhaustive check of all pairs and triples
_SCALARS, _STRUCTURED = 16, 24  # the size of a sample of scalars or tuples; half as many objects, because objects run one by one
_WHOLE = (0, 1, 2, -1, 3, -2, 5, -3, 7, 10, -5, 4, 6, -7)
_REAL = (0, 1, 2, -1, 0.5, 3, -2, 0.25, 1.5, -0.5, 5, -3, 0.75, 7, 10, -1.5)
_EXACT = (0, 1, 2, -1, Fraction(1, 2), 3, -2, Fraction(1, 3), Fraction(-1, 2), 5, Fraction(7, 4), -3, 10)
_NEAR = 1 << 20  # the largest bound around which numbers are sampled; beyond it, sums are not exact


class Model:
    """The operations of a semiring on tuples of arrays, one a component.

    Object arrays run the callables; every other dtype runs the recording, as the engines do. Laws are checked for the dtypes `kinds` and
    computed in `types`. `elements` is the sample, arrays of shape (m,) with 0, 1 and others; `exhaustive` means all elements. A relative
    difference of two results up to `tolerance`, or `star_tolerance` with a star, counts as rounding.
    """

    def __init__(self, structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...]) -> None:
        self.structure, self.kinds = structure, kinds
        self._objects = any(k.kind == "O" for k in kinds)
        self._program: Program | None = None
        with contextlib.suppress(TraceError):  # objects run without a recording
            self._program = structure.program
        bits = self._program is not None and bool(self._program.operations & BITWISE)
        modular = self._program is not None and self._program.modulus is not None
        # Floats hold the sampled integers exactly, and have an absorbing ∞, as in the engines; bits and large remainders need integers.
        self.types: tuple[np.dtype[Any], ...] = tuple(
            _OBJECT if self._objects else _LONG if modular else _FLOAT if k.kind in "iu" and not bits else k for k in kinds
        )
        self.elements, self.exhaustive = self._sample(bits=bits)
        numbers = [v for part in self.elements for v in part.tolist() if isinstance(v, int | float | Fraction)]
        self._scale = max((abs(float(v)) for v in numbers if math.isfinite(v)), default=1.0)
        self.tolerance, self.star_tolerance = self._tolerance()
        self.zero, self.one = (tuple(v[i : i + 1] for v in self.elements) for i in range(2))  # arrays of one entry

    def _sample(self, *, bits: bool) -> tuple[tuple[Array, ...], bool]:
        """Return elements as one array a component: 0, 1 and others; True if the carrier has no more."""
        carrier, kinds, constants = self.structure.carrier, self.kinds, list(map(self._constants, self.kinds))
        zero, one = self._identities()

        def columns(elements: Sequence[tuple[Any, ...]]) -> tuple[Array, ...]:
            return tuple(np.fromiter((e[c] for e in elements), t, len(elements)) for c, t in enumerate(self.types))

        def inside(*, more: bool) -> tuple[list[tuple[Any, ...]], bool]:
            pools = [
                _candidates(part, kind, (zero[c], one[c]), constants[c], bits=bits, more=more)
                for c, (part, kind) in enumerate(zip(carrier.parts, kinds, strict=True))
            ]
            own = _distinct([zero, one])  # the identities belong to every sample, even if rounding moved one outside
            elements = _distinct([*own, *_combined([pool for pool, _ in pools])])
            try:
                held = carrier.holds(columns(elements))
            except Exception:  # a predicate may raise for some numbers
                held = np.array([carrier.contains(e if len(e) > 1 else e[0]) for e in elements])
            return [e for i, e in enumerate(elements) if held[i] or i < len(own)], all(complete for _, complete in pools)

        elements, finite = inside(more=False)
        if not finite and len(elements) <= _SCALARS // 2:  # a predicate left too few
            elements, finite = inside(more=True)
        exhaustive = finite and len(elements) <= _EXHAUSTIVE
        if not exhaustive:
            most = (_SCALARS if len(kinds) == 1 else _STRUCTURED) // (2 if kinds[0].kind == "O" else 1)
            elements = _thinned(elements, most + max(map(len, constants)))
        return columns(elements if zero != one else [zero, *elements]), exhaustive

    def _identities(self) -> list[tuple[Any, ...]]:
        """Return 0 and 1 in the dtypes `types`."""
        found = []
        for raw, derived in zip((self.structure.zero, self.structure.one), self.structure.identities(self.kinds), strict=True):
            parts = raw if isinstance(raw, tuple) else (raw,)
            found.append(tuple(
                r if k != t and isinstance(r, float) and math.isinf(r) and not (r < 0 and k.kind == "u") else d
                for r, d, k, t in zip(parts, derived, self.kinds, self.types, strict=True)
            ))  # fmt: skip
        return found

    def _constants(self, kind: np.dtype[Any]) -> list[Any]:
        """List recorded constants and their neighbours whose sums or products of three are exact, and of two fit the dtype."""
        if self._program is None:
            return []
        largest = int(np.iinfo(kind).max) if kind.kind in "iu" else 1 << 64
        multiplies = "mul" in self._program.operations
        near = around(self._program.every_constant, min(1 << 17, math.isqrt(largest)) if multiplies else min(1 << 50, largest // 4))
        return [v for v in near if v not in (_REAL if kind.kind == "f" else _WHOLE)]

    def _tolerance(self) -> tuple[float, float]:
        """Return the tolerance of ⊕ and ⊗, 0 for exact arithmetic, and the tolerance of the star."""
        program = self._program
        if program is None:
            return 0.0, 0.0  # objects have their own arithmetic
        floats = [np.finfo(t) for t in self.types if t.kind == "f"]
        rounding = ROUNDINGS * max((float(f.eps) for f in floats), default=float(np.finfo(float).eps))
        exact = not program.operations & REAL
        if exact and floats:
            values = [v for part in self.elements if part.dtype.kind == "f" for v in part.tolist()]
            products = sum(e.op == "mul" for e in nodes(*program.add, *program.mul))
            bits = _bits([*values, *program.constants])
            # Three factors and two carries; more than one product an operation counts as inexact.
            exact = products <= len(self.kinds) and (3 * bits if products else bits) + 3 <= min(f.nmant for f in floats)
        star_exact = exact and not any(e.op in REAL for e in nodes(*(program.star or ())))
        return 0.0 if exact else rounding, 0.0 if star_exact else rounding

    def add(self, x: Values, y: Values) -> tuple[Array, ...]:
        """Return x ⊕ y."""
        return self._apply("add", x, y)

    def mul(self, x: Values, y: Values) -> tuple[Array, ...]:
        """Return x ⊗ y."""
        return self._apply("mul", x, y)

    def star(self, x: Values) -> tuple[tuple[Array, ...], Array]:
        """Return x* and the mask of where it exists."""
        if self._objects:
            assert self.structure.star is not None
            exists = np.ones(x[0].shape, dtype=bool)
            results = tuple(np.array(v) for v in x)
            for i in np.ndindex(x[0].shape):
                try:
                    found = self.call(self.structure.star, tuple(v[i] for v in x))
                except (ZeroDivisionError, DivergenceError):
                    exists[i] = False
                    continue
                exists[i] = self.structure.carrier.admits(found)
                for result, part in zip(results, found, strict=True):
                    result[i] = part
            return results, exists
        program = self.structure.program
        assert program.star is not None
        undefined = evaluate([program.star_undefined], x, (), ops.TABLE)[0]
        return self._evaluated(program.star, x, ()), ~np.broadcast_to(np.asarray(undefined, dtype=bool), x[0].shape)

    def call(self, function: Callable[..., Any], *elements: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call a callable of the semiring on elements given as tuples, and return a tuple."""
        with np.errstate(all="ignore"):
            result = function(*elements) if len(self.types) > 1 else function(*(e[0] for e in elements))
        return result if isinstance(result, tuple) else (result,)

    def _apply(self, operation: str, x: Values, y: Values) -> tuple[Array, ...]:
        if not self._objects:
            return self._evaluated(getattr(self.structure.program, operation), x, y)
        width, function = len(self.types), getattr(self.structure, operation)
        each = np.frompyfunc(lambda *parts: self.call(function, parts[:width], parts[width:]), 2 * width, 1)
        tuples = np.asarray(each(*x, *y), dtype=object)
        return tuple(np.asarray(np.frompyfunc(lambda t, c=c: t[c], 1, 1)(tuples), dtype=object) for c in range(width))

    def _evaluated(self, expressions: tuple[Expr, ...], x: Values, y: Values) -> tuple[Array, ...]:
        shape = np.broadcast_shapes(*(v.shape for v in (*x, *y)))
        results = evaluate(expressions, x, y, ops.TABLE)
        return tuple(np.broadcast_to(np.asarray(r, dtype=t), shape) for r, t in zip(results, self.types, strict=True))

    def equal(self, x: Values, y: Values, tolerance: float) -> Array:
        """Return the mask of elements that are equal up to rounding."""
        return np.asarray(np.logical_and.reduce([self._close(a, b, tolerance) for a, b in zip(x, y, strict=True)]))

    def _close(self, a: Array, b: Array, tolerance: float) -> Array:
        if a.dtype.kind == "O" or b.dtype.kind == "O":
            return np.asarray(np.frompyfunc(lambda u, v: self._same(u, v, tolerance), 2, 1)(a, b), dtype=bool)
        same = np.asarray(a == b)
        if tolerance and a.dtype.kind == "f":
            with np.errstate(invalid="ignore", over="ignore"):
                scale = np.maximum(np.maximum(abs(a), abs(b)), a.dtype.type(self._scale))
                same = same | np.isfinite(scale) & (abs(a - b) <= a.dtype.type(tolerance) * scale)
        return same

    def _same(self, a: Any, b: Any, tolerance: float) -> bool:
        if a == b:
            return True
        if not tolerance or not all(isinstance(v, int | float | Fraction) and math.isfinite(v) for v in (a, b)):
            return False
        return bool(abs(a - b) <= tolerance * max(abs(a), abs(b), self._scale))

    def inside(self, x: Values) -> Array:
        """Return the mask of elements in the carrier and in the range of their dtype."""
        inside = self.structure.carrier.holds(x)
        for array, kind, to in zip(x, self.kinds, self.types, strict=True):
            if kind.kind in "iu" and to != kind:
                info = np.iinfo(kind)
                whole = (array >= info.min) & (array <= info.max) & (array == np.floor(array))
                inside = inside & (whole | np.isinf(array))
        return inside

    def shown(self, parts: Sequence[Any]) -> Any:
        """Convert one element to Python numbers for a reader, integers to int."""
        numbers = []
        for value, kind in zip(parts, self.kinds, strict=True):
            number = value.item() if isinstance(value, np.generic) else value
            numbers.append(int(number) if kind.kind in "iu" and isinstance(number, float) and number.is_integer() else number)
        return tuple(numbers) if len(numbers) > 1 else numbers[0]


def _bits(values: Sequence[Any]) -> int:
    """Count the bits of a fixed-point format that holds each of the values."""
    whole, fraction = 1, 0
    for value in values:
        if math.isfinite(value):
            exact = Fraction(value)
            whole = max(whole, math.floor(abs(exact)).bit_length())
            fraction = max(fraction, exact.denominator.bit_length() - 1)
    return whole + fraction


@lru_cache(maxsize=256)
def model_of(structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...], running: tuple[Any, ...]) -> Model:
    """Return the (cached) model of a semiring in some dtypes, one for each component; for `running` see `AlgebraicStructure`."""
    return Model(structure, kinds)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Keep each value once, in order; unhashable values such as sets are compared as text."""
    found: dict[Any, Any] = {}
    for value in values:
        try:
            found.setdefault(value, value)
        except TypeError:
            found.setdefault(repr(value), value)
    return list(found.values())


def _candidates(
    part: Part, kind: np.dtype[Any], identities: tuple[Any, Any], constants: list[Any], *, bits: bool, more: bool
) -> tuple[list[Any], bool]:
    """List values to try for one component, the simplest first; True if the list is complete."""
    if kind.kind == "b":
        return [False, True], True
    if isinstance(part, frozenset):
        small_first = sorted(part, key=lambda v: (0, abs(v), -v, "") if isinstance(v, int | float | Fraction) else (1, 0, 0, repr(v)))
        return [v for v in small_first if _has(kind, v)], True
    if kind.kind == "O" and not all(isinstance(v, Number) for v in identities):
        return list(identities), False
    if isinstance(part, Interval) and kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = max(part.low, info.min), min(part.high, info.max)
        if high - low < _EXHAUSTIVE:
            return list(range(math.ceil(low), math.floor(high) + 1)), True
    if isinstance(part, Interval) and part.whole:
        return [v for v in _distinct(map(int, [*_WHOLE, part.high, *constants, *_near(part)])) if part.contains(v) and _has(kind, v)], False
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
