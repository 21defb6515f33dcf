"""Recording a plain Python callable by running it on symbols.

A comparison or a symbol used as a bool forks the recording: the callable runs once for each outcome, and the two results
become one ``where``. So ``if``/``else``, ``and``/``or``/``not``, chained comparisons and the built-in ``min`` and ``max`` (on tuples
too) need no help from whoever writes the callable. What is asked again, or follows from earlier answers, does not fork.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from semiring.algebra.errors import DivergenceError, TraceError
from semiring.algebra.expression import COMPARISONS, Expr, const, node, var, where
from semiring.algebra.symbols import Questions, Symbol, lift, refuse, symbolic

__all__ = ["Recording", "Symbol", "lift", "record", "symbolic"]

MAX_PATHS = 256
"""How many outcomes of its branches a callable may have; a loop that depends on values has no end of them."""


@dataclass(frozen=True)
class Recording:
    """What a callable computes: one expression for each component of its result, and the condition under which it is undefined.

    Where it is undefined, the results mean nothing.
    """

    results: tuple[Expr, ...]
    undefined: Expr


_EVERY = frozenset("<=>?")
_RELATIONS = {
    "lt": frozenset("<"), "le": frozenset("<="), "gt": frozenset(">"), "ge": frozenset(">="), "eq": frozenset("="),
    "ne": frozenset("<>?"),
}  # fmt: skip
"""Which of x < y, x = y, x > y, unordered (one is NaN) make a comparison true."""


class _Path(Questions):
    """One run of the callable: the outcomes it is told for its first questions, True for every later one."""

    def __init__(self, prefix: Sequence[bool], *, partial: bool) -> None:
        self.prefix, self.partial = prefix, partial
        self.questions: list[Expr] = []
        self._truth: dict[Expr, bool] = {}
        self._relations: dict[tuple[Expr, Expr], frozenset[str]] = {}

    def decide(self, question: Expr) -> bool:
        """The outcome of a condition on this path."""
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
        if question.op in COMPARISONS:
            pair, holds, possible = self._relation(question)
            self._relations[pair] = possible & holds if outcome else possible - holds
        else:
            self._truth[question] = outcome
        return outcome

    def divides_by(self, divisor: Expr) -> None:
        """Raise where the divisor is 0, or may be and the callable is partial."""
        is_zero = node("eq", divisor, const(0))
        if divisor.op == "const":
            zero = divisor.args[0] == 0
        else:
            zero = self.decide(is_zero) if self.partial else bool(self.known(is_zero))
        if zero:
            raise ZeroDivisionError

    def known(self, question: Expr) -> bool | None:
        """The outcome of a condition if it follows from the outcomes so far."""
        if question.op not in COMPARISONS:
            return self._truth.get(question)
        _, holds, possible = self._relation(question)
        if possible <= holds:
            return True
        return None if possible & holds else False

    def settled(self, result: Expr) -> Expr:
        """A result; a condition that is known on this path as the truth value that it is (``x and y`` returns a false x)."""
        known = self.known(result) if result.op in COMPARISONS else None
        return result if known is None else const(known)

    def _relation(self, comparison: Expr) -> tuple[tuple[Expr, Expr], frozenset[str], frozenset[str]]:
        """The compared pair in one order, the relations for which the comparison holds, and those still possible."""
        x, y = comparison.args
        holds = _RELATIONS[comparison.op]
        if id(x) > id(y):
            x, y = y, x
            holds = frozenset({"<": ">", ">": "<"}.get(r, r) for r in holds)
        possible = self._relations.get((x, y))
        if possible is None:
            possible = frozenset("=?") if x is y else _EVERY
            if _is_ordered(x) and _is_ordered(y):
                possible -= {"?"}
        return (x, y), holds, possible


def _is_ordered(expr: Expr) -> bool:
    """Whether it cannot be NaN: an operand, as NaN is outside every carrier, or a constant. What is computed may be ∞ − ∞."""
    return expr.op in ("var", "const")


def record(
    function: Callable[..., Any],
    operands: int,
    components: int,
    *,
    what: str = "callable",
    results: int | None = None,
    partial: bool = False,
) -> Recording:
    """Record a callable of `operands` scalars (or tuples of `components` scalars).

    Parameters
    ----------
    function : callable
    operands : int
        How many elements it takes: 1 or 2.
    components : int
        How many scalars an element has.
    what : str
        Its name in error messages.
    results : int, optional
        How many scalars it returns; an element by default.
    partial : bool
        Whether it may raise ZeroDivisionError or `DivergenceError`, where it is then undefined.

    Raises
    ------
    TraceError
        Naming the operation that cannot be recorded, and what to write instead.

    Examples
    --------
    >>> record(lambda a, b: max(a + b - 1, 0), 2, 1).results
    (max(a + b - 1, 0),)
    """
    arguments = [Symbol(var(i)) if components == 1 else tuple(Symbol(var(i, c)) for c in range(components)) for i in range(operands)]
    width = components if results is None else results
    # The questions on the way to the present run, each with the recording of its True side once that is complete.
    open_questions: list[tuple[Expr, Recording | None]] = []
    try:
        for _ in range(MAX_PATHS):
            path = _Path([yes is None for _, yes in open_questions], partial=partial)
            recording = _run(function, arguments, path, width, partial)
            if path.questions[: len(open_questions)] != [question for question, _ in open_questions]:
                refuse("a callable that does not do the same every time (randomness, a global that changes)", "a function of its operands")
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


def _run(function: Callable[..., Any], arguments: Sequence[Any], path: _Path, width: int, partial: bool) -> Recording:
    """Run the callable along one path."""
    with path:
        try:
            results = tuple(path.settled(e) for e in _components(function(*arguments), width))
        except Exception as error:  # whatever the caller's function raises is to be reported as its own
            if path.refusal is not None:
                raise path.refusal from None
            if isinstance(error, TraceError):
                raise
            if partial and isinstance(error, ZeroDivisionError | DivergenceError):
                return Recording((const(0),) * width, const(True))
            domain = isinstance(error, ArithmeticError | ValueError)
            hint = "state the carrier with domain= instead of raising" if domain else "it must take elements and return one"
            raise TraceError(f"it raised {type(error).__name__}: {error} while it was recorded; {hint}") from error
    if path.refusal is not None:
        raise path.refusal
    return Recording(results, const(False))


def _fold(question: Expr, yes: Recording, no: Recording) -> Recording:
    undefined = where(question, yes.undefined, no.undefined)
    for side, other in ((yes, no), (no, yes)):
        if side.undefined is const(True):  # its results mean nothing, so those of the other side will do everywhere
            return Recording(other.results, undefined)
    return Recording(tuple(where(question, y, n) for y, n in zip(yes.results, no.results, strict=True)), undefined)


def _components(result: Any, width: int) -> tuple[Expr, ...]:
    """The expressions of what a callable returned."""
    parts = result if isinstance(result, tuple) else (result,)
    if result is None or any(p is None for p in parts):
        raise TraceError("it returned None; every branch must return an element")
    if len(parts) != width or isinstance(result, tuple) != (width > 1):
        wanted = "a scalar" if width == 1 else f"a tuple of {width} scalars"
        raise TraceError(f"it returned {result!r}; its zero and one say that an element is {wanted}")
    return tuple(map(lift, parts))
