"""The operations of a semiring as CUDA C++: recorded expressions become device functions of a struct that the templates take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.elements import element, widest
from semiring.algebra.errors import DTypeError, TraceError
from semiring.algebra.expression import COMPARISONS, Expr, fold
from semiring.algebra.program import REAL
from semiring.kernels.infinities import own

__all__ = ["function", "literal"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
_FUNCTION = {
    "min": "minimum", "max": "maximum", "abs": "magnitude", "floordiv": "floor_quotient", "mod": "floor_remainder",
    "shl": "shift_left", "shr": "shift_right",
}  # fmt: skip
_PREFIX = {"neg": "-", "invert": "~"}
_INTEGERS_ONLY = {"floordiv", "mod", "shl", "shr", "and", "or", "xor", "invert"}


@dataclass(frozen=True)
class _Value:
    """A subexpression: its text and its type, which is None for a constant and `_CONDITION` for a condition."""

    text: str
    dtype: np.dtype[Any] | None
    constant: Any = None


_CONDITION = np.dtype(bool, metadata={"condition": True})
"""An object of its own, by which conditions are told from components that are truth values."""


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number in the element's own type: one literal of type double would make a float kernel compute in double precision."""
    if dtype.kind == "f":
        number = element(value, dtype)
        if math.isinf(number):
            bits = {4: "__int_as_float(0x{:08x})", 8: "__longlong_as_double(0x{:016x}ll)"}[dtype.itemsize]
            return bits.format(int(np.array(number, dtype).view(f"u{dtype.itemsize}")))
        return f"{dtype}({number.hex()})"
    number = int(bool(value)) if dtype.kind == "b" else element(value, dtype, ordered=True)
    suffix = "ull" if dtype.kind == "u" else "ll"
    # The lowest integer has no literal of its own.
    text = f"(-{-(number + 1)}{suffix} - 1)" if number < -(2**62) else f"{number}{suffix}"
    return f"{dtype}({text})"


def function(
    roots: Sequence[Expr],
    left: Sequence[str],
    right: Sequence[str],
    dtypes: Sequence[np.dtype[Any]],
    infinities: Sequence[int] = (),
    *,
    condition: bool = False,
) -> tuple[list[str], list[str]]:
    """The statements that compute `roots`, and the expressions of their results.

    Parameters
    ----------
    roots : sequence of Expr
        One for each component.
    left, right : sequence of str
        The operands' components as C++ expressions.
    dtypes : sequence of numpy.dtype
        Of the components of operands and results.
    infinities : sequence of int
        Integers that absorb every sum they take part in.
    condition : bool
        The roots are truth values.
    """
    writer = _Writer(widest(dtypes), infinities)
    operands = [[_Value(text, dtype) for text, dtype in zip(side, dtypes, strict=False)] for side in (left, right)]
    values = fold(roots, operands[0], operands[1], lambda c: _Value("", None, c), writer.operation)
    if condition:
        return writer.lines, [writer.condition(v) for v in values]
    return writer.lines, [writer.convert(v, d) for v, d in zip(values, dtypes, strict=True)]


class _Writer:
    """Writes each operation as a named constant, typed as NumPy would, so that nothing is computed twice."""

    def __init__(self, default: np.dtype[Any], infinities: Sequence[int]) -> None:
        self.default, self.infinities = default, tuple(infinities)
        self.lines: list[str] = []

    def operation(self, op: str, args: list[_Value]) -> _Value:
        if op == "not":
            return self._let("bool", f"!{self.condition(args[0])}", _CONDITION)
        if op == "where":
            dtype = self._common(args[1:])
            test, yes, no = self.condition(args[0]), self.convert(args[1], dtype), self.convert(args[2], dtype)
            return self._let(dtype.name, f"{test} ? {yes} : {no}", dtype)
        dtype = self._common(args)
        x = [self.convert(a, dtype) for a in args]
        if op in COMPARISONS:
            return self._let("bool", f"{x[0]} {_INFIX[op]} {x[1]}", _CONDITION)
        kind = dtype.name
        return self._let(kind, self._arithmetic(op, kind, dtype, x), dtype)

    def _arithmetic(self, op: str, kind: str, dtype: np.dtype[Any], x: list[str]) -> str:
        if dtype.kind == "f" and op in ("floordiv", "mod"):
            sign = "//" if op == "floordiv" else "%"
            raise TraceError(f"{sign} on floats has no instruction; use integers, / with comparisons, or arrays on the host")
        if (op in _INTEGERS_ONLY and dtype.kind == "f") or ((op in REAL or op == "div") and dtype.kind != "f"):
            raise DTypeError(f"{op!r} has no meaning for {dtype}")
        if op == "add" and dtype.kind != "f":
            for infinity in own(self.infinities, dtype):
                return f"absorbing_sum<{kind}>({x[0]}, {x[1]}, {literal(infinity, dtype)})"
        if op in _INFIX:
            return f"{kind}({x[0]} {_INFIX[op]} {x[1]})"
        if op == "invert" and dtype.kind == "b":
            return f"!{x[0]}"  # ~true is −2, which is true again
        if op in _PREFIX:
            return f"{kind}({_PREFIX[op]}{x[0]})"
        if op == "div":
            return f"{x[0]} / {x[1]}"
        if op in REAL:
            return f"{op}{'f' if dtype.itemsize == 4 else ''}({x[0]})"
        return f"{_FUNCTION[op]}<{kind}>({', '.join(x)})"

    def convert(self, value: _Value, dtype: np.dtype[Any]) -> str:
        """`value` as a number of type `dtype`."""
        if value.dtype is None:
            return literal(value.constant, dtype)
        return value.text if value.dtype == dtype else f"{dtype}({value.text})"

    def condition(self, value: _Value) -> str:
        if value.dtype is None:
            return "true" if value.constant else "false"
        return value.text if value.dtype is _CONDITION else f"({value.text} != {value.dtype}(0))"

    def _common(self, args: Sequence[_Value]) -> np.dtype[Any]:
        """The type in which an operation is computed; conditions and constants alone have the elements'."""
        return widest([a.dtype for a in args if a.dtype is not None and a.dtype is not _CONDITION] or [self.default])

    def _let(self, kind: str, text: str, dtype: np.dtype[Any]) -> _Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {text};")
        return _Value(name, dtype)
