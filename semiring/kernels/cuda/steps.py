"""The instruction table: how one step, or two at once, reaches the GPU's instructions where that is better than ⊕ of ⊗ as written."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.elements import element
from semiring.algebra.expression import Expr, evaluate, node, var

__all__ = ["STEPS", "Operations", "Step", "best_step", "candidate", "hoisted"]

_A, _B = var(0), var(1)
_SUM = (node("add", _A, _B), node("add", _B, _A))
_FLOAT, _DOUBLE, _INT, _UNSIGNED, _SHORT, _UNSIGNED_SHORT = (np.dtype(c) for c in ("f4", "f8", "i4", "u4", "i2", "u2"))


@dataclass(frozen=True)
class Operations:
    """What the table looks at.

    Attributes
    ----------
    add, mul : Expr
        ⊕ and ⊗ of single numbers.
    dtype : numpy.dtype
        Of the numbers as the kernel has them.
    ordered_bits : bool
        Whether no negative number takes part but −∞, so that floats sort like the integers of their bits.
    bounded_below : bool
        Whether 0 is at least the number 0, so that a sum that is a maximum never sinks below it.
    arch : int
        Compute capability, as in sm_90.
    """

    add: Expr
    mul: Expr
    dtype: np.dtype[Any]
    ordered_bits: bool
    bounded_below: bool
    arch: int

    @property
    def extremum(self) -> str | None:
        """Which of min and max ⊕ is, if it is that and nothing else."""
        return self.add.op if self.add.op in ("min", "max") and set(self.add.args) == {_A, _B} else None


@dataclass(frozen=True)
class Step:
    """A row of the table.

    Attributes
    ----------
    name : str
        The instructions for a step, as the disassembler shows them.
    count : int
        How many steps it takes at once.
    code : str
        The statement that adds the products of the arrays `a` and `b` to `c`; ``{extremum}`` stands for min or max.
    fits : callable
        Whether it computes the same.
    pairs : bool
        Whether a register has two numbers, of consecutive steps (see ``Pairs`` in ``arithmetic.cuh``).
    """

    name: str
    count: int
    code: str
    fits: Callable[[Operations], bool]
    pairs: bool = False


def _three_way(x: Operations) -> bool:
    """Whether there are instructions for a minimum or maximum with a third operand."""
    return x.extremum is not None and x.arch >= 90


def _fused(x: Operations) -> bool:
    """Whether a step is a fused multiply-add."""
    return x.add in _SUM and x.mul.op == "mul" and set(x.mul.args) == {_A, _B}


_BITS = "__float_as_int"
_M0, _M1 = "candidate(a[0], b[0]).c0", "candidate(a[1], b[1]).c0"

STEPS = (
    Step(
        "VIADDMNMX",
        1,
        "c.c0 = __viadd{extremum}_s32(a[0].c0, b[0].c0, c.c0);",
        lambda x: _three_way(x) and x.mul in _SUM and x.dtype == _INT,
    ),
    Step(
        "VIADDMNMX.U32",
        1,
        "c.c0 = __viadd{extremum}_u32(a[0].c0, b[0].c0, c.c0);",
        lambda x: _three_way(x) and x.mul in _SUM and x.dtype == _UNSIGNED,
    ),
    Step(
        "VIADDMNMX.S16x2",
        1,
        "c.c0 = __viadd{extremum}_s16x2(a[0].c0, b[0].c0, c.c0);",
        lambda x: _three_way(x) and x.mul in _SUM and x.dtype == _SHORT,
        pairs=True,
    ),
    Step(
        "VIADDMNMX.U16x2",
        1,
        "c.c0 = __viadd{extremum}_u16x2(a[0].c0, b[0].c0, c.c0);",
        lambda x: _three_way(x) and x.mul in _SUM and x.dtype == _UNSIGNED_SHORT,
        pairs=True,
    ),
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
"""Better first."""


def candidate(add: Expr, mul: Expr, zero: float) -> Expr:
    """⊗ without what ⊕ makes superfluous: max(x, 0) is as good as x where the largest is sought and sums begin at 0."""
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
    """⊗ in the loop, and the epilogue: what is hoisted out of the loop, as a function of the sum; `candidate` where nothing can be.

    An increasing f, rounded or not, has max(f(x), f(y)) = f(max(x, y)): where ⊕ is an extremum of floats and ⊗ is f of a simpler
    operation, only the sum needs f. It begins with 0, so that f(0) must not be better than 0. Both are told from what the constants of
    f are in `dtype`, where a positive one may be 0.

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


def best_step(operations: Operations) -> Step | None:
    """The first row that computes the same, with its code filled in; None where ⊕ of ⊗ as written is best."""
    return next((row for row in STEPS if row.fits(operations)), None)
