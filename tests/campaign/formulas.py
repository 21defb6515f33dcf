"""⊕ and ⊗ as data: one tree that is printed as Python for the library, and evaluated and bounded by itself for the oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ARITHMETIC", "BITS", "REAL", "Formula", "Range", "const", "evaluate", "lambda_text", "of", "operations", "ranges", "var"]

ARITHMETIC = frozenset({"add", "sub", "mul", "floordiv", "mod", "neg", "abs", "shl", "shr", "invert"})
"""What can leave a dtype of integers, or depends on more than their order."""
BITS = frozenset({"and", "or", "xor", "shl", "shr", "invert"})
REAL = frozenset({"div", "exp", "log1p", "sqrt", "logaddexp"})


class Formula(NamedTuple):
    """An operation and its arguments; the leaves are ("var", operand, component) and ("const", value)."""

    op: str
    args: tuple[Any, ...]

    def text(self, *, structured: bool = False) -> str:
        """As Python writes it, of the operands a and b."""
        if self.op == "var":
            operand, component = self.args
            return "ab"[operand] + (f"[{component}]" if structured else "")
        if self.op == "const":
            value = self.args[0]
            return f"float('{value}')" if isinstance(value, float) and math.isinf(value) else f"({value!r})" if value < 0 else repr(value)
        x = [a.text(structured=structured) for a in self.args]
        match self.op:
            case "where":
                return f"({x[1]} if {x[0]} else {x[2]})"
            case "neg" | "invert":
                return f"({'-' if self.op == 'neg' else '~'}{x[0]})"
            case op if op in _INFIX:
                return f"({x[0]} {_INFIX[op]} {x[1]})"
            case "min" | "max" | "abs":
                return f"{self.op}({', '.join(x)})"
            case _:
                return f"sr.ops.{self.op}({', '.join(x)})"


_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "both": "&", "either": "|",
}  # fmt: skip
_CONDITIONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "both", "either"})
"""Comparisons, and two conditions joined."""


def var(operand: int, component: int = 0) -> Formula:
    return Formula("var", (operand, component))


def const(value: Any) -> Formula:
    return Formula("const", (value,))


def of(op: str, *args: Any) -> Formula:
    """An operation on formulas and numbers."""
    return Formula(op, tuple(a if isinstance(a, Formula) else const(a) for a in args))


def lambda_text(roots: Sequence[Formula]) -> str:
    """The callable of two elements that computes the roots, one a component."""
    texts = [root.text(structured=len(roots) > 1) for root in roots]
    return f"lambda a, b: {texts[0]}" if len(texts) == 1 else f"lambda a, b: ({', '.join(texts)})"


def _walk(root: Formula) -> Iterator[Formula]:
    yield root
    if root.op not in ("var", "const"):
        for a in root.args:
            yield from _walk(a)


def operations(roots: Sequence[Formula]) -> frozenset[str]:
    return frozenset(f.op for root in roots for f in _walk(root))


Table = Mapping[str, Callable[..., Any]]


def evaluate(roots: Sequence[Formula], left: Sequence[Any], right: Sequence[Any], table: Table) -> tuple[Any, ...]:
    """The roots for operands given one value a component, with the operations of `table`; its "const" makes a value of a number."""
    known: dict[int, Any] = {}

    def value(f: Formula) -> Any:
        if id(f) not in known:
            if f.op == "var":
                known[id(f)] = (left, right)[f.args[0]][f.args[1]]
            elif f.op == "const":
                known[id(f)] = table["const"](f.args[0])
            else:
                known[id(f)] = table[f.op](*map(value, f.args))
        return known[id(f)]

    return tuple(map(value, roots))


# How far a formula may reach.


class Range(NamedTuple):
    """What a formula may be: finite numbers from `low` to `high` (both None for none), and whether ±∞."""

    low: Any
    high: Any
    infinite: bool = False

    @property
    def magnitude(self) -> Any:
        return 0 if self.low is None else max(abs(self.low), abs(self.high))

    def __or__(self, other: Range) -> Range:
        found = [r for r in (self, other) if r.low is not None]
        infinite = self.infinite or other.infinite
        return Range(min(r.low for r in found), max(r.high for r in found), infinite) if found else Range(None, None, infinite)


def ranges(
    roots: Sequence[Formula], left: Sequence[Range], right: Sequence[Range], *, tight: bool = False
) -> tuple[list[Range], Range, bool]:
    """What the roots may be for operands in some ranges, by interval arithmetic.

    An extremum may be either operand, as for who takes it for a branch and looks at the branches one by one; with `tight` it is one.

    Returns
    -------
    results : list of Range
    inside : Range
        Everything on the way, the operands, constants and results included, but for conditions.
    muddled : bool
        Whether ∞ may meet an operation that makes no sense of it among integers: anything but sums, extrema, comparisons and choices.
    """
    seen: list[Range] = [*left, *right]
    muddled = False

    def apply(op: str, args: list[Range]) -> Range:
        nonlocal muddled
        infinite = any(a.infinite for a in args)
        muddled |= infinite and op not in ("add", "min", "max")
        finite = [(a.low, a.high) for a in args if a.low is not None]
        if len(finite) < len(args):
            if op in ("min", "max", "where") and finite:
                return Range(finite[0][0], finite[0][1], infinite)
            return Range(None, None, infinite)
        if op in ("min", "max") and not tight:
            return args[0] | args[1]
        return Range(*_interval(op, finite), infinite)

    def value(f: Formula) -> Range:
        if f.op == "var":
            operand: Range = (left, right)[f.args[0]][f.args[1]]
            return operand
        if f.op == "const":
            number = f.args[0]
            found = Range(None, None, True) if isinstance(number, float) and math.isinf(number) else Range(number, number)
        elif f.op == "where":
            value(f.args[0])
            found = value(f.args[1]) | value(f.args[2])
        elif f.op in _CONDITIONS:
            for a in f.args:
                value(a)
            return Range(0, 1)
        else:
            found = apply(f.op, [value(a) for a in f.args])
        seen.append(found)
        return found

    results = [value(root) for root in roots]
    inside = seen[0]
    for r in seen[1:]:
        inside |= r
    return results, inside, muddled


def _interval(op: str, args: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    (a, b), (c, d) = args[0], args[-1]
    match op:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = [x * y for x in (a, b) for y in (c, d)]
            return min(products), max(products)
        case "neg":
            return -b, -a
        case "abs":
            return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
        case "invert":
            return ~b, ~a
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "mod":
            return min(0, c + 1), max(0, d - 1)
        case "floordiv" | "div" | "shr":
            size = max(abs(a), abs(b))
            return -size - 1, size  # divisors and shifts are drawn from 1 and 0
        case "shl":
            return min(a, a << d), max(b, b << d)
        case "and" | "or" | "xor":
            bits = 1 << max(int(x).bit_length() for x in (a, b, c, d))
            return (0 if min(a, c) >= 0 else -bits), bits - 1
        case "exp":
            return 0.0, math.exp(min(b, 700))
        case "log1p" | "sqrt":
            return 0.0, max(abs(a), abs(b))
        case "logaddexp":
            return min(a, c), max(b, d) + 1
    raise AssertionError(op)


def range_of(values: np.ndarray[Any, Any], infinities: Sequence[Any] = ()) -> Range:
    """The range of an array; ±∞, and integers that stand for it, apart."""
    if values.dtype == bool:
        values = values.astype(int)
    infinite = np.isin(values, list(infinities)) if values.dtype.kind in "iu" and infinities else np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        infinite = np.isinf(values)
    finite = values[~infinite]
    return Range(finite.min().item(), finite.max().item(), bool(infinite.any())) if finite.size else Range(None, None, bool(infinite.any()))
