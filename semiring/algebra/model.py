"""The operations of a semiring on arrays of sampled elements, for the check of its laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.expression import REAL, Expr, evaluate, nodes
from semiring.algebra.sampling import arithmetic, draw
from semiring.algebra.structure import AlgebraicStructure
from semiring.common.errors import DivergenceError, TraceError

__all__ = ["Model", "model_of"]

Array = np.ndarray[Any, Any]
Values = Sequence[Array]

_ROUNDINGS = 64  # roundings by which a law's two sides may differ in inexact arithmetic


class Model:
    """The operations of a semiring on tuples of arrays, one a component.

    Object arrays run the callables; every other dtype runs the recording, as the engines do. Laws are checked for the dtypes `kinds` and
    computed in `types`. `elements` is the sample, arrays of shape (m,) with 0, 1 and others; `exhaustive` means all elements. A relative
    difference of two results up to `tolerance`, or `star_tolerance` with a star, counts as rounding.
    """

    def __init__(self, structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...]) -> None:
        self.structure, self.kinds = structure, kinds
        self.types = arithmetic(structure, kinds)
        sample = draw(structure, kinds)
        self.elements, self.exhaustive = sample.values, sample.exhaustive
        self._objects = any(t.kind == "O" for t in self.types)
        numbers = [v for part in self.elements for v in part.tolist() if isinstance(v, int | float | Fraction)]
        self._scale = max((abs(float(v)) for v in numbers if math.isfinite(v)), default=1.0)
        self.tolerance, self.star_tolerance = self._tolerance()
        self.zero, self.one = (tuple(v[i : i + 1] for v in self.elements) for i in range(2))  # arrays of one entry

    def _tolerance(self) -> tuple[float, float]:
        """Return the tolerance of ⊕ and ⊗, 0 for exact arithmetic, and the tolerance of the star."""
        try:
            program = self.structure.program
        except TraceError:
            return 0.0, 0.0  # without a recording only objects run, in their own arithmetic
        floats = [np.finfo(t) for t in self.types if t.kind == "f"]
        rounding = _ROUNDINGS * max((float(f.eps) for f in floats), default=float(np.finfo(float).eps))
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
        return self._apply(self.structure.add, lambda: self.structure.program.add, x, y)

    def mul(self, x: Values, y: Values) -> tuple[Array, ...]:
        """Return x ⊗ y."""
        return self._apply(self.structure.mul, lambda: self.structure.program.mul, x, y)

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

    def _apply(self, function: Callable[..., Any], recorded: Callable[[], tuple[Expr, ...]], x: Values, y: Values) -> tuple[Array, ...]:
        if not self._objects:
            return self._evaluated(recorded(), x, y)
        width = len(self.types)
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


def model_of(structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...]) -> Model:
    """Return the (cached) model of a semiring in some dtypes, one for each component."""
    return _model_of(structure, kinds, structure.running(kinds))


@lru_cache(maxsize=256)
def _model_of(structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...], running: tuple[Any, ...]) -> Model:
    return Model(structure, kinds)
