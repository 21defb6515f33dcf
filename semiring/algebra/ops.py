"""Functions for the callables of a semiring (public as `semiring.ops`), and the table of all recordable operations."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra import expression
from semiring.algebra.exponential import log_add
from semiring.algebra.expression import COMPARISONS, Expr, node
from semiring.algebra.tracing import Symbol, lift

__all__ = ["TABLE", "absolute", "exp", "expm1", "log", "log1p", "logaddexp", "logical_not", "maximum", "minimum", "sqrt", "where"]


def _kind(*values: Any) -> str:
    """Return the world of the values: a recording, SymPy, NumPy arrays (of objects, or not) or plain Python."""
    if any(isinstance(v, Symbol) for v in values):
        return "symbol"
    if any(isinstance(v, np.ndarray | np.generic) for v in values):
        return "objects" if any(isinstance(v, np.ndarray) and v.dtype.kind == "O" for v in values) else "numpy"
    sympy = getattr(sys.modules.get("sympy"), "Basic", None)  # without an import of SymPy, no value is SymPy's
    return "sympy" if sympy is not None and any(isinstance(v, sympy) for v in values) else "python"


def _sympy() -> Any:
    import sympy

    return sympy


def each(function: Callable[..., Any], *arrays: Any) -> Any:
    """Call a function on the objects of arrays."""
    with np.errstate(all="ignore"):  # NumPy would report the flag that math.sqrt(-1) leaves
        return np.frompyfunc(function, len(arrays), 1)(*arrays)


def _guarded(function: Callable[[Any], float]) -> Callable[[Any], float]:
    """Wrap an increasing function: its limit where operand or result is beyond floats, and NaN where the function is undefined."""

    def guarded(x: Any) -> float:
        try:
            return function(x)
        except OverflowError:
            return function(math.inf if x > 0 else -math.inf)
        except ValueError:
            return math.nan

    return guarded


_EXACT: Any = (int, Fraction)  # numbers that floats may not hold, nor their difference from 1


def _log(x: Any) -> float:
    if x == 0:
        return -math.inf
    if isinstance(x, _EXACT) and abs(x - 1) < 0.5:
        return math.log1p(x - 1)
    if isinstance(x, _EXACT) and not sys.float_info.min <= x <= sys.float_info.max:
        return math.log(x.numerator) - math.log(x.denominator)
    return math.log(x)


def _log1p(x: Any) -> float:
    if x == -1:
        return -math.inf
    return _log(1 + x) if isinstance(x, _EXACT) and abs(x) >= 0.5 else math.log1p(x)


def _sqrt(x: Any) -> float:
    if not isinstance(x, _EXACT):
        return math.sqrt(x)
    half = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(Fraction(x) / Fraction(4) ** half), half)


def _sympy_log(x: Any) -> Any:
    sympy = _sympy()
    return -sympy.oo if x == 0 else sympy.log(x)


def _sympy_expm1(x: Any) -> Any:
    sympy = _sympy()
    return 2 * sympy.exp(x / 2) * sympy.sinh(x / 2) if x.is_Float else sympy.exp(x) - 1


def _sympy_log1p(x: Any) -> Any:
    return 2 * _sympy().atanh(x / (x + 2)) if x.is_Float and abs(x) < 0.5 else _sympy_log(1 + x)


Function = Callable[..., Any]


def _operation(symbol: Callable[..., Expr], sympy: Function, numpy: Function, python: Function) -> Function:
    """Make an operation of four functions, each for a kind of values; the objects of an array are taken singly."""

    def operation(*values: Any) -> Any:
        match _kind(*values):
            case "symbol":
                return Symbol(symbol(*map(lift, values)))
            case "sympy":
                return sympy(*values)
            case "objects":
                return each(operation, *values)
            case "numpy":
                return numpy(*values)
            case _:
                return python(*values)

    return operation


def _quiet(function: Function) -> Function:
    def quiet(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return quiet


def _unary(name: str, python: Function, sympy: Function, doc: str) -> Callable[[Any], Any]:
    operation = _operation(partial(node, name), sympy, _quiet(getattr(np, name)), _guarded(python))

    def function(x: Any) -> Any:
        return operation(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _unary("exp", math.exp, lambda x: _sympy().exp(x), "e to the power `x`; +∞ where that is too large for a float.")
expm1 = _unary("expm1", math.expm1, _sympy_expm1, "``exp(x) - 1`` without cancellation near 0.")
log = _unary("log", _log, _sympy_log, "The natural logarithm of `x`; −∞ at 0.")
log1p = _unary("log1p", _log1p, _sympy_log1p, "``log(1 + x)`` without cancellation near 0; −∞ at −1.")
sqrt = _unary("sqrt", _sqrt, lambda x: _sympy().sqrt(x), "The square root of `x`.")


def absolute(x: Any) -> Any:
    """Return the magnitude of `x`; the built-in ``abs`` is the same."""
    return abs(x)


def _sympy_extremum(name: str, x: Any, y: Any) -> Any:
    try:
        return getattr(_sympy(), name)(x, y)
    except ValueError:  # SymPy cannot compare equal numbers in different forms
        if (x - y).equals(0):
            return x
        raise


_minimum = _operation(partial(node, "min"), partial(_sympy_extremum, "Min"), np.fmin, lambda x, y: y if y < x else x)
_maximum = _operation(partial(node, "max"), partial(_sympy_extremum, "Max"), np.fmax, lambda x, y: y if y > x else x)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of `x` and `y`, or `x` if they are equal. A NaN as `y` never wins; a NaN as `x` may."""
    return _minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of `x` and `y`, or `x` if they are equal. A NaN as `y` never wins; a NaN as `x` may."""
    return _maximum(x, y)


def _sympy_where(condition: Any, yes: Any, no: Any) -> Any:
    return _sympy().Piecewise((yes, condition), (no, True)) if _kind(condition) == "sympy" else yes if condition else no


def _numpy_where(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(condition, yes, no)[()]  # a scalar for scalars


_where = _operation(expression.where, _sympy_where, _numpy_where, lambda condition, yes, no: yes if condition else no)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where `condition` holds, else `no`; both are computed, so neither may raise."""
    return _where(condition, yes, no)


_logical_not = _operation(partial(node, "not"), lambda condition: _sympy().Not(condition), np.logical_not, operator.not_)


def logical_not(condition: Any) -> Any:
    """Negate a condition; the keyword ``not`` would fork the recording."""
    return _logical_not(condition)


_logaddexp = _operation(
    partial(log_add, Fraction(1)),
    lambda x, y: log(exp(x) + exp(y)),
    _quiet(np.logaddexp),
    lambda x, y: x + math.log(2) if x == y else maximum(x, y) + log1p(exp(-abs(x - y))),
)


def logaddexp(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))`` without overflow: max + log1p(exp(min − max)), and −∞ for two −∞."""
    return _logaddexp(x, y)


def _divided(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap a division so that Python's numbers divide by 0 as NumPy's do, because `where` computes both sides."""

    def divided(x: Any, y: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function(x, y)
        except ZeroDivisionError:
            if function is not operator.truediv and isinstance(x, int) and isinstance(y, int):
                return 0
            sign = math.copysign(1.0, x) * math.copysign(1.0, y)
            return sign * math.inf if function is operator.truediv and x and x == x else math.nan

    return divided


def _shifted(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap a shift so that Python's integers accept negative places as NumPy's do, because `where` computes both sides."""

    def shifted(x: Any, y: Any) -> Any:
        try:
            return function(x, y)
        except ValueError:
            return -1 if function is operator.rshift and x < 0 else 0

    return shifted


def _comparison(name: str) -> Function:
    """Make a comparison for the table: symbolic for SymPy, whose ``==`` compares the forms of two expressions."""
    compare = getattr(operator, name)
    return _operation(partial(node, name), lambda x, y: getattr(_sympy(), name.capitalize())(x, y), compare, compare)


TABLE: dict[str, Callable[..., Any]] = {
    "add": _quiet(operator.add), "sub": _quiet(operator.sub), "mul": _quiet(operator.mul), "div": _divided(operator.truediv),
    "floordiv": _divided(operator.floordiv), "mod": _divided(operator.mod), "neg": operator.neg, "abs": abs,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": _shifted(operator.lshift), "shr": _shifted(operator.rshift),
    "invert": operator.invert, "min": _minimum, "max": _maximum, "where": _where, "not": _logical_not, "exp": exp, "expm1": expm1,
    "log": log, "log1p": log1p, "sqrt": sqrt, **{name: _comparison(name) for name in COMPARISONS},
}  # fmt: skip
"""Every recordable operation by its name in an expression, for the scalar, NumPy and SymPy targets."""
