"""The form of elements in device memory during products, and the instruction table.

Tropical integers, whose ∞ is the dtype's largest (smallest) value for the user, are clamped to half the range: ∞ + ∞ then does not wrap,
and one instruction can be a whole step. Truth values are bytes. All other elements stay as they are. The table has
GPU instructions for one or two steps at once, where they beat ⊕ of ⊗ as written.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.elements import element
from semiring.algebra.expression import REAL, Expr, evaluate, node, nodes, var
from semiring.common.forks import cached_property
from semiring.kernels.limits import absorbing, inner_infinity, tropical
from semiring.kernels.operations import on_bytes

__all__ = ["STEPS", "Representation", "Step", "StepOperations", "candidate", "hoisted", "represent"]


@dataclass(frozen=True)
class Representation:
    """The operations on numbers as kernels see them."""

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr
    dtypes: tuple[np.dtype[Any], ...]
    zero: tuple[Any, ...]
    one: tuple[Any, ...]
    infinities: tuple[int, ...] = ()  # integers that absorb sums
    clamped: bool = False  # tropical integers, clamped to half the range

    @property
    def registers(self) -> tuple[np.dtype[Any], ...]:
        """Types of components in registers: small integers take a register each."""
        return tuple(d if d.itemsize >= 4 else np.dtype(np.int32) for d in self.dtypes)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets of the components within an element in shared memory, as C++ lays them out."""
        offsets, end = [], 0
        for d in self.registers:
            offsets.append(-(-end // d.itemsize) * d.itemsize)
            end = offsets[-1] + d.itemsize
        return tuple(offsets)

    @property
    def same_registers(self) -> bool:
        """True if elements have the same form in registers as in memory."""
        return self.registers == self.dtypes

    @cached_property
    def size(self) -> int:
        """Bytes of an element in shared memory."""
        size = sum(d.itemsize for d in self.registers)
        return size if size & (size - 1) == 0 else max(16, 1 << (size - 1).bit_length())

    @cached_property
    def has_series(self) -> bool:
        """True if a step is a series of instructions, such as an exponential or a logarithm."""
        return bool(REAL & {e.op for e in nodes(*self.add, *self.mul)})

    @cached_property
    def hoisted(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """⊗ in the loop of a product without a witness, and the epilogue, which is applied to the sums; see the function `hoisted`."""
        if len(self.dtypes) != 1:
            return self.mul, tuple(var(0, c) for c, _ in enumerate(self.mul))
        mul, whole = hoisted(self.add[0], self.mul[0], self.zero[0], self.dtypes[0])
        return (mul,), (whole,)

    def is_heavy(self, *, witness: bool) -> bool:
        """Return True if ⊕ and ⊗ take more than one operation each in a product."""
        mul = self.mul if witness else self.hoisted[0]
        return sum(e.op not in ("var", "const") for e in nodes(*self.add, *mul)) > 2 * len(self.dtypes)

    @cached_property
    def keeps_bits_ordered(self) -> bool:
        """True if elements are floats, and products of non-negative floats (or −∞) are non-negative: comparable as integers."""
        if self.dtypes != (np.dtype(np.float32),) or self.add[0].op not in ("min", "max"):
            return False
        used = {e.op for e in nodes(*self.add, *self.mul)}
        return used <= ({"var", "add", "min", "max"} if -math.inf in (*self.zero, *self.one) else {"var", "add", "mul", "min", "max"})


@functools.lru_cache(maxsize=256)
def represent(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> Representation:
    """Return the representation of `semiring` in `dtypes`."""
    program = semiring.program
    # −0.0 is avoided: as an integer, its bits sort below those of −∞.
    zero, one = (
        tuple(x + 0.0 if d.kind == "f" else x for x, d in zip(identity, dtypes, strict=True)) for identity in semiring.identities(dtypes)
    )
    if dtypes == (np.dtype(bool),):
        add, mul = (on_bytes(program.add[0]),), (on_bytes(program.mul[0]),)
        return Representation(add, mul, program.star, program.star_undefined, (np.dtype(np.uint8),), (int(zero[0]),), (int(one[0]),))
    clamped = tropical(semiring, dtypes)
    return Representation(
        program.add,
        program.mul,
        program.star,
        program.star_undefined,
        dtypes,
        (inner_infinity(zero[0]),) if clamped else zero,
        one,
        () if clamped else absorbing(semiring, dtypes),
        clamped,
    )


# The instruction table.

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
    code: str  # adds the products of the arrays `a` and `b` to `c`, the thread's element `place`; ``{extremum}`` stands for min or max
    fits: Callable[[StepOperations], bool]  # True if the code computes the same
    pairs: bool = False  # a register has two numbers, of consecutive steps (see ``Pairs`` in ``arithmetic.cuh``)


def _three_way(x: StepOperations) -> bool:
    """Return True if there are instructions for ⊕ as a minimum or maximum of three operands."""
    return x.extremum is not None and x.arch >= 90


def _fused(x: StepOperations) -> bool:
    return x.add in _SUM and x.mul.op == "mul" and set(x.mul.args) == {_A, _B}


_BITS = "__float_as_int"
_M0, _M1 = "candidate(a[0], b[0]).c0", "candidate(a[1], b[1]).c0"


def _pairs(suffix: str, kind: str, dtype: np.dtype[Any]) -> Step:
    code = f"c.c0 = __viadd{{extremum}}_{kind}(a[0].c0, b[0].c0, c.c0);"
    return Step(f"VIADDMNMX{suffix}", 1, code, lambda x: _three_way(x) and x.mul in _SUM and x.dtype == dtype, pairs=True)


def _mixed(suffix: str, kind: str, dtype: np.dtype[Any]) -> Step:
    """Return two steps at once: two thirds of the elements add by IMAD, in a pipe that extrema leave idle, others by VIADDMNMX."""
    # The factor is 1, which the compiler must not know.
    sums = ", ".join(f"a[{p}].c0 * decltype(c.c0)(blockDim.z) + b[{p}].c0" for p in range(2))
    added = f"__viadd{{extremum}}_{kind}(a[0].c0, b[0].c0, c.c0)"
    code = f"c.c0 = place % 3 ? __vi{{extremum}}3_{kind}(c.c0, {sums}) : __viadd{{extremum}}_{kind}(a[1].c0, b[1].c0, {added});"
    return Step(f"VIADDMNMX{suffix} and IMAD", 2, code, lambda x: _three_way(x) and x.mul in _SUM and x.dtype == dtype)


STEPS = (
    _mixed("", "s32", _INT),
    _mixed(".U32", "u32", _UNSIGNED),
    _pairs(".S16x2", "s16x2", _SHORT),
    _pairs(".U16x2", "u16x2", _UNSIGNED_SHORT),
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
