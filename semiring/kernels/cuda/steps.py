"""The instruction table: GPU instructions for one or two steps at once, where they beat ⊕ of ⊗ as written."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.elements import element
from semiring.algebra.expression import Expr, evaluate, node, var

__all__ = ["STEPS", "Step", "StepOperations", "best_step", "candidate", "hoisted"]

_A, _B = var(0), var(1)
_SUM = (node("add", _A, _B), node("add", _B, _A))
_FLOAT, _DOUBLE, _INT, _UNSIGNED, _SHORT, _UNSIGNED_SHORT = (np.dtype(c) for c in ("f4", "f8", "i4", "u4", "i2", "u2"))


@dataclass(frozen=True)
class StepOperations:
    """The conditions that choose a row of the table."""

    add: Expr  # ⊕ and ⊗ of single numbers
    mul: Expr
    dtype: np.dtype[Any]  # of the numbers in the kernel
    ordered_bits: bool  # no number is negative except −∞, so floats sort like the integers of their bits
    bounded_below: bool  # the semiring's zero is at least 0, so a maximum never sinks below 0
    arch: int  # compute capability, as in sm_90

    @property
    def extremum(self) -> str | None:
        """Return "min" or "max" if ⊕ is exactly that, else None."""
        return self.add.op if self.add.op in ("min", "max") and set(self.add.args) == {_A, _B} else None


@dataclass(frozen=True)
class Step:
    """A row of the table."""

    name: str  # the instructions of a step, as the disassembler shows them
    count: int  # steps at once
    code: str  # the statement that adds the products of the arrays `a` and `b` to `c`; ``{extremum}`` stands for min or max
    fits: Callable[[StepOperations], bool]  # True if the code computes the same
    pairs: bool = False  # a register has two numbers, of consecutive steps (see ``Pairs`` in ``arithmetic.cuh``)


def _three_way(x: StepOperations) -> bool:
    """Return True if there are instructions for ⊕ as a minimum or maximum of three operands."""
    return x.extremum is not None and x.arch >= 90


def _fused(x: StepOperations) -> bool:
    return x.add in _SUM and x.mul.op == "mul" and set(x.mul.args) == {_A, _B}


_BITS = "__float_as_int"
_M0, _M1 = "candidate(a[0], b[0]).c0", "candidate(a[1], b[1]).c0"


def _added_and_compared(suffix: str, kind: str, dtype: np.dtype[Any]) -> Step:
    code = f"c.c0 = __viadd{{extremum}}_{kind}(a[0].c0, b[0].c0, c.c0);"
    pairs = dtype.itemsize == 2
    return Step(f"VIADDMNMX{suffix}", 1, code, lambda x: _three_way(x) and x.mul in _SUM and x.dtype == dtype, pairs=pairs)


STEPS = (
    _added_and_compared("", "s32", _INT),
    _added_and_compared(".U32", "u32", _UNSIGNED),
    _added_and_compared(".S16x2", "s16x2", _SHORT),
    _added_and_compared(".U16x2", "u16x2", _UNSIGNED_SHORT),
    Step("VIMNMX3", 2, f"c.c0 = __vi{{extremum}}3_s32(c.c0, {_M0}, {_M1});", lambda x: _three_way(x) and x.dtype == _INT),
    Step("VIMNMX3.U32", 2, f"c.c0 = __vi{{extremum}}3_u32(c.c0, {_M0}, {_M1});", lambda x: _three_way(x) and x.dtype == _UNSIGNED),
    Step(
        "VIMNMX3 of bits",
        2,
        f"c.c0 = __int_as_float(__vi{{extremum}}3_s32({_BITS}(c.c0), {_BITS}({_M0}), {_BITS}({_M1})));",
        lambda x: _three_way(x) and x.dtype == _FLOAT and (x.ordered_bits or (x.extremum == "max" and x.bounded_below)),
    ),
    Step("FFMA", 1, "c.c0 = fmaf(a[0].c0, b[0].c0, c.c0);", lambda x: _fused(x) and x.dtype == _FLOAT),
    Step("DFMA", 1, "c.c0 = fma(a[0].c0, b[0].c0, c.c0);", lambda x: _fused(x) and x.dtype == _DOUBLE),
    Step(
        "DSETP of pairs",
        2,
        "c = add(c, add(candidate(a[0], b[0]), candidate(a[1], b[1])));",
        lambda x: x.dtype == _DOUBLE and x.extremum is not None,
    ),
)
"""The rows, best first."""


def candidate(add: Expr, mul: Expr, zero: float) -> Expr:
    """Return ⊗ without what ⊕ makes superfluous: if ⊕ is max and sums begin at 0, max(x, 0) becomes x."""
    if add.op in ("min", "max") and mul.op == add.op and set(add.args) == {_A, _B}:
        for x, bound in (mul.args, mul.args[::-1]):
            if bound.op == "const" and (bound.args[0] <= zero if add.op == "max" else bound.args[0] >= zero):
                chosen: Expr = x
                return chosen
    return mul


_INCREASING: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "min": min, "max": max,
}  # fmt: skip


def hoisted(add: Expr, mul: Expr, zero: float, dtype: np.dtype[Any]) -> tuple[Expr, Expr]:
    """Return ⊗ in the loop, and the epilogue: the part hoisted out of the loop, as a function of the sum.

    An increasing f, rounded or not, has max(f(x), f(y)) = f(max(x, y)). So if ⊕ is an extremum of floats and ⊗ is f of a simpler operation,
    only the sum needs f. Sums begin with 0, so f(0) must not be better than 0. Both conditions use the constants of f in `dtype`, where a
    positive constant may round to 0. If nothing can be hoisted, the result is `candidate` and the identity.

    Examples
    --------
    >>> from semiring.algebra.expression import const
    >>> a, b = var(0), var(1)
    >>> hoisted(node("max", a, b), node("sub", node("add", a, b), const(1)), 0, np.dtype("float32"))
    (a + b, a - 1)
    """
    as_it_is = candidate(add, mul, zero), _A
    if dtype.kind != "f" or add.op not in ("min", "max") or set(add.args) != {_A, _B}:
        return as_it_is
    inner, applied = mul, list[tuple[str, int, Expr]]()
    while inner.op in _INCREASING:
        numbers = {i: number for i, x in enumerate(inner.args) if x.op == "const" and math.isfinite(number := element(x.args[0], dtype))}
        if len(numbers) != 1:
            break
        ((place, number),) = numbers.items()
        if (inner.op in ("mul", "div") and number <= 0) or (inner.op in ("sub", "div") and place != 1):
            break
        applied.append((inner.op, place, inner.args[place]))
        inner = inner.args[1 - place]
    whole = _A
    for op, place, constant in reversed(applied):
        whole = node(op, *((constant, whole) if place == 0 else (whole, constant)))
    with np.errstate(all="ignore"):
        (of_zero,) = evaluate([whole], [dtype.type(zero)], [], _INCREASING, dtype.type)
    waits = applied and (of_zero <= zero if add.op == "max" else of_zero >= zero)
    return (inner, whole) if waits else as_it_is


def best_step(operations: StepOperations) -> Step | None:
    """Return the first row that computes the same; None where ⊕ of ⊗ as written is best."""
    return next((row for row in STEPS if row.fits(operations)), None)
