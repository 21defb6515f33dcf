"""Tracing: run a callable on symbols, whose operators build an expression, once for each outcome of its branches.

A comparison (or a symbol) used as a bool forks the recording: the callable runs once for each outcome, and the two results become one
``where``. So ``if``/``else``, ``and``/``or``/``not``, chained comparisons and the built-in ``min`` and ``max`` (on tuples too) just work. A
repeated question, or one with a known answer, does not fork.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from semiring.algebra.expression import COMPARISONS, Expr, combined, const, is_condition, node, var, where
from semiring.common.errors import DivergenceError, TraceError, with_article

__all__ = ["Symbol", "Trace", "lift", "record", "refuse"]


class _Running(threading.local):
    path: _Path | None = None  # the innermost run of a callable in this thread


_current = _Running()


class Symbol:
    """An operand, or a value computed from operands, during the recording of a callable."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __bool__(self) -> bool:
        path = _current.path
        if path is None:
            raise TraceError("a symbol was used as a bool outside the recording of a semiring's callable")
        expr = self.expr
        return path.decide(expr if is_condition(expr) else node("ne", expr, const(0)))

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
    path = _current.path
    if path is not None and path.refusal is None:
        path.refusal = error
    raise error


def lift(value: Any) -> Expr:
    """Return the expression of a symbol or of a number."""
    if isinstance(value, Symbol):
        return value.expr
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Fraction):
        value = value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, float) and value != value:
        refuse("a NaN", "a number or ±math.inf; NaN is not an element of any semiring")
    if isinstance(value, bool | int | float):
        return const(value)
    refuse(f"{with_article(type(value).__name__)} beside an element", "bool, int or float constants")


def _apply(name: str, *operands: Any) -> Symbol:
    args = tuple(map(lift, operands))
    path = _current.path
    if name in ("div", "floordiv", "mod") and path is not None:
        path.divides_by(args[1])
    if name in ("and", "or", "xor") and all(map(is_condition, args)):
        return Symbol(combined(name, *args))
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


MAX_PATHS = 256
"""The most outcomes of the branches of a callable; a loop that depends on values has infinitely many."""


@dataclass(frozen=True)
class Trace:
    """A recorded callable: one expression for each component of the result, and the condition under which the result is undefined."""

    results: tuple[Expr, ...]
    undefined: Expr


_RELATIONS = {
    "lt": frozenset("<"), "le": frozenset("<="), "gt": frozenset(">"), "ge": frozenset(">="), "eq": frozenset("="),
    "ne": frozenset("<>?"),
}  # fmt: skip
"""The relations x < y, x = y, x > y, ? (one is NaN) for which a comparison is true."""


class _Path:
    """One run of the callable: given outcomes for the first questions, True for every later question.

    `refusal` is the first error about an operation that cannot be recorded, because a callable may catch the error.
    """

    refusal: TraceError | None = None
    _outer: _Path | None = None

    def __init__(self, prefix: Sequence[bool], *, partial: bool) -> None:
        self.prefix, self.partial = prefix, partial
        self.questions: list[Expr] = []
        self._truth: dict[Expr, bool] = {}
        self._relations: dict[tuple[Expr, Expr], frozenset[str]] = {}

    def __enter__(self) -> None:
        self._outer, _current.path = _current.path, self

    def __exit__(self, *_: object) -> None:
        _current.path = self._outer

    def decide(self, question: Expr) -> bool:
        """Return the outcome of a condition on this path."""
        if question.op == "not":
            return not self.decide(question.args[0])
        known = self.known(question)
        if known is not None:
            return known
        i = len(self.questions)
        if i >= MAX_PATHS:
            refuse(f"a loop or recursion that depends on values (over {MAX_PATHS} branches)", "a fixed number of steps")
        outcome = self.prefix[i] if i < len(self.prefix) else True
        self.questions.append(question)
        self._learn(question, outcome)
        return outcome

    def _learn(self, question: Expr, outcome: bool) -> None:
        """Store the outcome of a condition, and of its parts if these follow: a true x & y, a false x | y."""
        if question.op in COMPARISONS:
            pair, holds, possible = self._relation(question)
            self._relations[pair] = possible & holds if outcome else possible - holds
            return
        if question in self._truth:
            return
        self._truth[question] = outcome
        if question.op == "not":
            self._learn(question.args[0], not outcome)
        elif question.op == "where":
            first, yes, no = question.args
            if no is const(not outcome):
                self._learn(first, True)
                self._learn(yes, outcome)
            elif yes is const(not outcome):
                self._learn(first, False)
                self._learn(no, outcome)

    def divides_by(self, divisor: Expr) -> None:
        """Raise ZeroDivisionError if the divisor is 0, or may be 0 in a partial callable."""
        is_zero = node("eq", divisor, const(0))
        if divisor.op == "const":
            zero = divisor.args[0] == 0
        else:
            zero = self.decide(is_zero) if self.partial else bool(self.known(is_zero))
        if zero:
            raise ZeroDivisionError

    def known(self, question: Expr) -> bool | None:
        """Return the outcome of a condition if earlier outcomes imply one."""
        if question.op == "const":
            return bool(question.args[0])
        if question.op == "not":
            inner = self.known(question.args[0])
            return None if inner is None else not inner
        if question.op == "where" and (first := self.known(question.args[0])) is not None:
            return self.known(question.args[1 if first else 2])
        if question.op not in COMPARISONS:
            return self._truth.get(question)
        _, holds, possible = self._relation(question)
        if possible <= holds:
            return True
        return None if possible & holds else False

    def settled(self, result: Expr) -> Expr:
        """Replace a condition with a known outcome by a truth value (``x and y`` returns a false x)."""
        known = self.known(result) if is_condition(result) else None
        return result if known is None else const(known)

    def _relation(self, comparison: Expr) -> tuple[tuple[Expr, Expr], frozenset[str], frozenset[str]]:
        """Return the compared pair in one order, the relations for which the comparison holds, and the possible relations."""
        x, y = comparison.args
        holds = _RELATIONS[comparison.op]
        if id(x) > id(y):
            x, y = y, x
            holds = frozenset({"<": ">", ">": "<"}.get(r, r) for r in holds)
        possible = self._relations.get((x, y))
        if possible is None:
            possible = frozenset("=?" if x is y else "<=>?")
            if {x.op, y.op} <= {"var", "const"}:  # neither is NaN, because no carrier has NaN; sums may be ∞ − ∞
                possible -= {"?"}
        return (x, y), holds, possible


def record(
    function: Callable[..., Any],
    operands: int,
    components: int,
    *,
    what: str = "callable",
    results: int | None = None,
    partial: bool = False,
) -> Trace:
    """Record a callable of one or two `operands`, scalars or tuples of `components` scalars.

    `results` is the number of returned scalars, by default those of an element. A `partial` callable is undefined where it raises
    ZeroDivisionError or `DivergenceError`. The `TraceError` for an operation that cannot be recorded begins with `what`, the name of the
    callable, and says what to write instead.

    >>> record(lambda a, b: max(a + b - 1, 0), 2, 1).results
    (max(a + b - 1, 0),)
    """
    arguments = [Symbol(var(i)) if components == 1 else tuple(Symbol(var(i, c)) for c in range(components)) for i in range(operands)]
    width = components if results is None else results
    # The questions on the path of the present run, each with the trace of its True side if complete.
    open_questions: list[tuple[Expr, Trace | None]] = []
    try:
        for _ in range(MAX_PATHS):
            path = _Path([yes is None for _, yes in open_questions], partial=partial)
            recording = _run(function, arguments, path, width)
            if path.questions[: len(open_questions)] != [question for question, _ in open_questions]:
                refuse("a callable that gives another result each time (randomness, a global that changes)", "a function of its operands")
            open_questions += [(question, None) for question in path.questions[len(open_questions) :]]
            while open_questions and open_questions[-1][1] is not None:
                question, yes = open_questions.pop()
                assert yes is not None
                recording = _fold(question, yes, recording)
            if not open_questions:
                return recording
            open_questions[-1] = open_questions[-1][0], recording
        refuse(f"a loop or recursion that depends on values (over {MAX_PATHS} branches)", "a fixed number of steps")
    except TraceError as error:
        raise TraceError(f"{what}: {error}") from error.__cause__


def _run(function: Callable[..., Any], arguments: Sequence[Any], path: _Path, width: int) -> Trace:
    with path:
        try:
            results = tuple(path.settled(e) for e in _components(function(*arguments), width))
        except Exception as error:  # of the caller's function
            if path.refusal is not None:
                raise path.refusal from None
            if isinstance(error, TraceError):
                raise
            if path.partial and isinstance(error, ZeroDivisionError | DivergenceError):
                return Trace((const(0),) * width, const(True))
            domain = isinstance(error, ArithmeticError | ValueError)
            hint = "state the carrier with domain= instead of raising" if domain else "it must take elements and return one"
            raise TraceError(f"it raised {type(error).__name__}: {error} while it was recorded; {hint}") from error
    if path.refusal is not None:
        raise path.refusal
    return Trace(results, const(False))


def _fold(question: Expr, yes: Trace, no: Trace) -> Trace:
    undefined = where(question, yes.undefined, no.undefined)
    for side, other in ((yes, no), (no, yes)):
        if side.undefined is const(True):  # any results will do on this side
            return Trace(other.results, undefined)
    return Trace(tuple(where(question, y, n) for y, n in zip(yes.results, no.results, strict=True)), undefined)


def _components(result: Any, width: int) -> tuple[Expr, ...]:
    """Return the expressions of the components that a callable returned."""
    parts = result if isinstance(result, tuple) else (result,)
    if result is None or any(p is None for p in parts):
        raise TraceError("it returned None; every branch must return an element")
    if len(parts) != width or isinstance(result, tuple) != (width > 1):
        wanted = "a scalar" if width == 1 else f"a tuple of {width} scalars"
        raise TraceError(f"it returned {result!r}; by zero and one, an element is {wanted}")
    return tuple(map(lift, parts))
