"""Recognition of ⊕ as log(e^{sa} + e^{sb}) / s with ⊗ as a + b, in any form of the callables.

The recording is evaluated on operands log(X) / s for rational X. Every value is then a rational number or a rational multiple of a
logarithm, so that sums, differences, exponentials, logarithms, extrema and comparisons are exact. The result must be log(X + Y) / s at a
few points with large numerators: two rational functions of low degree that agree there are the same. Any other operation, such as a root or
a comparison with a constant, ends the recognition.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from semiring.algebra.expression import COMPARISONS, Expr, const, fold, is_operation, node, nodes, var, where

__all__ = ["exponential_scale", "log_add"]

_A, _B = var(0), var(1)

_POINTS = (
    (Fraction(1299709, 15485863), Fraction(32452843, 179424673)),
    (Fraction(86028121, 7368787), Fraction(49979687, 13834103)),
    (Fraction(2750159, 122949823), Fraction(141650939, 3497861)),
    (Fraction(160481183, 5800079), Fraction(4256233, 198491317)),
)
"""Operands of the trials: quotients of primes, in both orders and on both sides of 1."""


@dataclass(frozen=True)
class _Log:
    """``factor`` · log(``of``), with a positive factor; ``of`` is not 1."""

    factor: Fraction
    of: Fraction


_Number = Fraction | _Log | float | bool | None  # a rational number, a logarithm, an infinity, a truth value, or None for an unknown value


def exponential_scale(add: Sequence[Expr], mul: Sequence[Expr]) -> Fraction | None:
    """Return the s for which ⊕ is log(e^{sa} + e^{sb}) / s, if ⊗ is a + b; None without such an s.

    >>> from semiring.algebra.catalogue import LOG
    >>> exponential_scale(LOG.program.add, LOG.program.mul)
    Fraction(1, 1)
    """
    if len(add) != 1 or not is_operation(mul[0], ("add",)):
        return None
    operations = {e.op for e in nodes(*add)}
    if not operations & {"exp", "expm1"} or not operations & {"log", "log1p"}:
        return None
    constants = {abs(Fraction(c)) for e in nodes(*add) if e.op == "const" for c in e.args if _is_finite(c) and c}
    candidates = sorted({Fraction(1), *constants, *(1 / c for c in constants)})

    def adds(scale: Fraction, x: Fraction, y: Fraction) -> bool:
        """Return True if ⊕ of log(x) / s and log(y) / s is log(x + y) / s."""
        found = fold(add, [_log(x, 1 / scale)], [_log(y, 1 / scale)], lambda c: Fraction(c) if _is_finite(c) else c, _operation)
        return found == [_log(x + y, 1 / scale)]

    return next((s for c in candidates for s in (c, -c) if all(adds(s, *point) for point in _POINTS)), None)


def log_add(scale: Fraction, x: Expr = _A, y: Expr = _B) -> Expr:
    """Build log(e^{sx} + e^{sy}) / s without overflow: the operand with the larger multiple by s, plus log1p of the other one's share.

    >>> log_add(Fraction(-1))
    min(a, b) if abs(min(a, b)) == inf else min(a, b) - log1p(exp(min(a, b) - max(a, b)))
    """
    low, high = (node(op, x, y) for op in ("min", "max"))
    near = high if scale > 0 else low
    behind = node("sub", low, high)
    if abs(scale) != 1:
        behind = node("mul", behind, const(float(abs(scale))))
    more = node("log1p", node("exp", behind))
    if abs(scale) != 1:
        more = node("mul", more, const(float(1 / abs(scale))))
    total = node("add" if scale > 0 else "sub", near, more)
    return where(node("eq", node("abs", near), const(math.inf)), near, total)  # the condition avoids −∞ − (−∞) = NaN


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))


def _log(of: Fraction, factor: Fraction = Fraction(1)) -> _Number:
    """Return factor · log(of)."""
    if of == 1 or factor == 0:
        return Fraction(0)
    return _Log(factor, of) if factor > 0 else _Log(-factor, 1 / of)


def _operation(op: str, args: list[_Number]) -> _Number:
    """Evaluate an operation exactly; None if that is impossible."""
    if op == "where":
        return args[1 if args[0] else 2] if isinstance(args[0], bool) else None
    if op in COMPARISONS:
        return _compared(op, *args)
    if op in ("min", "max"):
        first = _compared("le" if op == "min" else "ge", *args)
        return None if first is None else args[0 if first else 1]
    if all(isinstance(x, bool) for x in args) or op not in _FOLLOWED:
        return not args[0] if op == "not" and isinstance(args[0], bool) else None
    return None if any(x is None or isinstance(x, bool) for x in args) else _FOLLOWED[op](*args)


def _compared(op: str, x: _Number, y: _Number) -> bool | None:
    """Compare two numbers; None for a logarithm and a finite number other than 0."""
    if isinstance(x, float) or isinstance(y, float):  # any finite number compares with ±∞ alike
        x, y = (Fraction(0) if isinstance(v, _Log) else v for v in (x, y))
    elif isinstance(x, _Log) or isinstance(y, _Log):
        difference = _sum(x, _negative(y))
        x, y = difference.of - 1 if isinstance(difference, _Log) else difference, Fraction(0)  # log(of) has the sign of of − 1
    return None if x is None or y is None else bool(getattr(operator, op)(x, y))


def _sum(x: _Number, y: _Number) -> _Number:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    if isinstance(x, _Log) and isinstance(y, _Log):
        return _log(x.of * y.of, x.factor) if x.factor == y.factor else None
    return x if y == 0 else y if x == 0 else None


def _product(x: _Number, y: _Number) -> _Number:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if isinstance(x, Fraction):
        x, y = y, x
    return _log(x.of, x.factor * y) if isinstance(x, _Log) and isinstance(y, Fraction) else None


def _negative(x: _Number) -> _Number:
    return -x if isinstance(x, float) else _product(x, Fraction(-1))


def _exp(x: _Number) -> _Number:
    if isinstance(x, _Log) and x.factor.denominator == 1 and x.factor <= _POWERS:
        return Fraction(x.of.numerator ** int(x.factor), x.of.denominator ** int(x.factor))
    if x == 0:
        return Fraction(1)
    return Fraction(0) if x == -math.inf else None


def _logarithm(x: _Number) -> _Number:
    return _log(x) if isinstance(x, Fraction) and x > 0 else None


def _magnitude(x: _Number) -> _Number:
    if isinstance(x, _Log):
        return _Log(x.factor, max(x.of, 1 / x.of))
    return _negative(x) if x is not None and x < 0 else x


_POWERS = 8  # the largest power of an operand in an exponential that is evaluated

_FOLLOWED: dict[str, Callable[..., _Number]] = {
    "add": _sum, "sub": lambda x, y: _sum(x, _negative(y)), "mul": _product,
    "div": lambda x, y: _product(x, 1 / y) if isinstance(y, Fraction) and y else None, "neg": _negative, "abs": _magnitude, "exp": _exp,
    "expm1": lambda x: _sum(_exp(x), Fraction(-1)), "log": _logarithm, "log1p": lambda x: _logarithm(_sum(x, Fraction(1))),
}  # fmt: skip
