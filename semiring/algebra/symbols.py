"""The symbols on which a callable is run to be recorded: scalars whose operators build expressions."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from semiring.algebra.errors import TraceError
from semiring.algebra.expression import COMPARISONS, Expr, const, node

__all__ = ["Questions", "Symbol", "lift", "refuse", "symbolic"]

_current = threading.local()


class Questions(ABC):
    """Whoever answers the conditions of the recording in progress (one for each thread; the innermost one counts).

    Attributes
    ----------
    refusal : TraceError or None
        What was refused first: a callable may catch the error, but what it does then is not what it does with numbers.
    """

    _outer: Questions | None = None
    refusal: TraceError | None = None

    def __enter__(self) -> None:
        self._outer = asked()
        _current.questions = self

    def __exit__(self, *_: object) -> None:
        _current.questions = self._outer

    @abstractmethod
    def decide(self, question: Expr) -> bool:
        """The outcome of a condition."""

    @abstractmethod
    def divides_by(self, divisor: Expr) -> None:
        """Raise ZeroDivisionError where a division is none."""


def asked() -> Questions | None:
    """Who answers in this thread, if a recording is in progress."""
    found: Questions | None = getattr(_current, "questions", None)
    return found


class Symbol:
    """An operand, or something computed from operands, while a callable is recorded."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __bool__(self) -> bool:
        questions = asked()
        if questions is None:
            raise TraceError("a symbol was used as a bool outside the recording of a semiring's callable")
        expr = self.expr
        return questions.decide(expr if expr.op in COMPARISONS or expr.op == "not" else node("ne", expr, const(0)))

    def __pow__(self, exponent: Any) -> Symbol:
        if isinstance(exponent, int) and 0 <= exponent <= 64:
            result, square, rest = None, self, exponent
            while rest:
                if rest & 1:
                    result = square if result is None else _apply("mul", result, square)
                square, rest = _apply("mul", square, square), rest >> 1
            return Symbol(const(1)) if result is None else result
        if exponent == 0.5:
            return Symbol(node("sqrt", self.expr))
        refuse(f"** {exponent!r}", "a whole exponent from 0 to 64, 0.5, or semiring.ops.exp(y * semiring.ops.log(x))")

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return _apply("floordiv", self, other), _apply("mod", self, other)

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return _apply("floordiv", other, self), _apply("mod", other, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Symbol:
        name = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or kwargs or name is None:
            refuse(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), "operators or the functions of semiring.ops")
        return _apply(name, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        refuse(f"numpy.{function.__name__}", "operators or the functions of semiring.ops (where, minimum, …)")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"the attribute .{name}", "operators and the functions of semiring.ops on scalars")

    def __pos__(self) -> Symbol:
        return self

    def __repr__(self) -> str:
        return f"<symbol {self.expr!r}>"


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the `TraceError` for an operation that cannot be recorded."""
    error = TraceError(f"{what} cannot be recorded in a semiring's callable; write {instead}")
    questions = asked()
    if questions is not None and questions.refusal is None:
        questions.refusal = error
    raise error


def symbolic(value: Any) -> bool:
    """Whether `value` is a symbol of a recording."""
    return isinstance(value, Symbol)


def lift(value: Any) -> Expr:
    """The expression of a symbol or of a number."""
    if isinstance(value, Symbol):
        return value.expr
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Fraction):
        value = value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, float) and value != value:
        refuse("a NaN", "a number or ±math.inf; NaN is no element of any semiring")
    if isinstance(value, bool | int | float):
        return const(value)
    refuse(f"a {type(value).__name__} beside an element", "bool, int or float constants")


def _apply(name: str, *operands: Any) -> Symbol:
    args = tuple(map(lift, operands))
    questions = asked()
    if name in ("div", "floordiv", "mod") and questions is not None:
        questions.divides_by(args[1])
    return Symbol(node(name, *args))


_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "floor_divide": "floordiv",
    "remainder": "mod", "minimum": "min", "fmin": "min", "maximum": "max", "fmax": "max", "negative": "neg", "absolute": "abs",
    "fabs": "abs", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "sqrt": "sqrt", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor", "invert": "invert", "left_shift": "shl", "right_shift": "shr", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
}  # fmt: skip

_DOWN = "which rounds down; on floats only with device='reference'"
_STRUCTURED = "a structured semiring, whose zero and one are tuples"
_REFUSED = {
    "float": ("float() or a function of math", "the function of semiring.ops, or a comparison such as x == math.inf"),
    "int": ("int()", f"x // 1 ({_DOWN}), or a comparison"),
    "index": ("an element as an index or in range()", "a condition"),
    "complex": ("complex()", "real arithmetic"),
    "round": ("round()", f"(x + 0.5) // 1 ({_DOWN})"),
    "trunc": ("math.trunc()", f"x // 1 ({_DOWN})"),
    "floor": ("math.floor()", f"x // 1 ({_DOWN})"),
    "ceil": ("math.ceil()", f"-(-x // 1) ({_DOWN})"),
    "iter": ("unpacking or iterating over a scalar element", _STRUCTURED),
    "len": ("len() of a scalar element", _STRUCTURED),
    "getitem": ("indexing a scalar element", _STRUCTURED),
    "contains": ("`in`", "comparisons joined with or"),
    "hash": ("an element in a set or dict, or as the argument of a cached function", "comparisons"),
    "call": ("calling an element", "operators and the functions of semiring.ops"),
    "rpow": ("constant ** element", "semiring.ops.exp(x * math.log(constant))"),
    "matmul": ("@", "*"),
    "rmatmul": ("@", "*"),
    "format": ("formatting an element", "a callable without text"),
    "str": ("str() of an element", "a callable without text"),
    "array": ("an array made of an element", "operators and the functions of semiring.ops on scalars"),
}


def _install() -> None:
    """Give `Symbol` the operators, and a refusal for each of the others."""
    binary = {
        "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod",
        "and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr",
    }  # fmt: skip
    for python, name in binary.items():
        setattr(Symbol, f"__{python}__", lambda x, y, name=name: _apply(name, x, y))
        setattr(Symbol, f"__r{python}__", lambda x, y, name=name: _apply(name, y, x))
    for name in COMPARISONS:
        setattr(Symbol, f"__{name}__", lambda x, y, name=name: _apply(name, x, y))
    for name in ("neg", "abs", "invert"):
        setattr(Symbol, f"__{name}__", lambda x, name=name: _apply(name, x))
    for python, (what, instead) in _REFUSED.items():
        setattr(Symbol, f"__{python}__", lambda *_, what=what, instead=instead, **__: refuse(what, instead))


_install()
