"""From a recorded expression to LLVM vector instructions: one table from operation to code.

Every constant is emitted in the element's type. A minimum reaches the machine as one instruction, exact and without fast-math: on
x86 a compare-and-select on ordered values is one ``vminps``, on ARM ``minnum`` is one ``fminnm``. A NaN candidate never wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.errors import DTypeError, TraceError
from semiring.algebra.expression import COMPARISONS, Expr, fold, nodes
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.vectormath import VectorMath
from semiring.kernels.infinities import own

__all__ = ["Broadcast", "Lowering", "Value"]


@dataclass(frozen=True)
class Value:
    """A vector in a register: its name and element type; a condition has none."""

    name: str
    scalar: Scalar | None


@dataclass(frozen=True)
class Broadcast:
    """A scalar in memory, wanted in every lane: loaded when an instruction cannot take it from memory itself."""

    pointer: str
    scalar: Scalar


@dataclass(frozen=True)
class _Constant:
    value: Any


Operand = Value | Broadcast

_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}
_FLOAT = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_EMBEDDED = {
    "add": {"f4": "vaddps", "f8": "vaddpd", "i4": "vpaddd", "i8": "vpaddq", "u4": "vpaddd", "u8": "vpaddq"},
    "mul": {"f4": "vmulps", "f8": "vmulpd", "i4": "vpmulld", "i8": "vpmullq", "u4": "vpmulld", "u8": "vpmullq"},
    "min": {"f4": "vminps", "f8": "vminpd", "i4": "vpminsd", "i8": "vpminsq", "u4": "vpminud", "u8": "vpminuq"},
    "max": {"f4": "vmaxps", "f8": "vmaxpd", "i4": "vpmaxsd", "i8": "vpmaxsq", "u4": "vpmaxud", "u8": "vpmaxuq"},
    "and": {"i4": "vpandd", "i8": "vpandq", "u4": "vpandd", "u8": "vpandq"},
    "or": {"i4": "vpord", "i8": "vporq", "u4": "vpord", "u8": "vporq"},
    "xor": {"i4": "vpxord", "i8": "vpxorq", "u4": "vpxord", "u8": "vpxorq"},
}
"""AVX-512 instructions that broadcast a scalar memory operand for free, by operation and type (all commute)."""


class Lowering:
    """Emits expressions over vectors of `width` lanes into one function.

    Parameters
    ----------
    em : Emitter
    target : Target
    width : int
    ones : mapping from Scalar to the name of a vector of 1.0 that LLVM cannot see through, or None
        With it, sums of floats become fma(x, 1, y).
    infinities : sequence of int
        Integers that absorb every sum they take part in.
    """

    def __init__(
        self,
        em: Emitter,
        target: Target,
        width: int,
        *,
        ones: dict[Scalar, str] | None = None,
        infinities: Sequence[int] = (),
    ) -> None:
        self.em, self.target, self.width = em, target, width
        self.ones = ones or {}
        self.infinities = infinities
        self.mask = "i1" if width == 1 else f"<{width} x i1>"
        self.flag = Scalar("u", 1)
        self._default: Scalar | None = None

    def evaluate(self, roots: Sequence[Expr], left: Sequence[Operand], right: Sequence[Operand], results: Sequence[Scalar]) -> list[Value]:
        """The values of `roots` for the components of two operands, each in its result's type."""
        self._default = _widest([*(x.scalar for x in (*left, *right)), *results])
        values: list[Operand | _Constant] = fold(roots, left, right, _Constant, self._operation)
        return [self.convert(value, scalar) for value, scalar in zip(values, results, strict=True)]

    @contextmanager
    def plain_sums(self) -> Iterator[None]:
        """Sums written as sums: ⊕ has its own pipes to itself."""
        ones, self.ones = self.ones, {}
        yield
        self.ones = ones

    # Operands.

    def convert(self, x: Operand | _Constant, scalar: Scalar) -> Value:
        """`x` in a register, as elements of type `scalar`."""
        if isinstance(x, _Constant):
            return Value(scalar.constant(_fitting(x.value, scalar), self.width), scalar)
        if isinstance(x, Broadcast):
            loaded = self.em.load(x.scalar.ir, x.pointer, x.scalar.bytes)
            x = Value(self.em.splat(loaded, x.scalar, self.width), x.scalar)
        if x.scalar == scalar:
            return x
        to = scalar.vector(self.width)
        if x.scalar is None:
            op = "uitofp" if scalar.kind == "f" else "zext"
            return Value(self.em.let(f"{op} {self.mask} {x.name} to {to}"), scalar)
        old, new = x.scalar, scalar
        if old.kind == "f" and new.kind == "f":
            op = "fpext" if new.bytes > old.bytes else "fptrunc"
        elif old.kind == "f":
            op = "fptosi" if new.kind == "i" else "fptoui"
        elif new.kind == "f":
            op = "sitofp" if old.kind == "i" else "uitofp"
        elif old.bytes == new.bytes:
            return Value(x.name, scalar)
        else:
            op = "trunc" if new.bytes < old.bytes else "sext" if old.kind == "i" else "zext"
        return Value(self.em.let(f"{op} {old.vector(self.width)} {x.name} to {to}"), scalar)

    def condition(self, x: Operand | _Constant) -> str:
        """`x` as a vector of truth values."""
        if isinstance(x, _Constant):
            return ("true" if x.value else "false") if self.width == 1 else f"splat (i1 {'true' if x.value else 'false'})"
        if isinstance(x, Value) and x.scalar is None:
            return x.name
        found = self._compare("ne", [x, _Constant(0)])
        return found.name

    def _common(self, args: Sequence[Operand | _Constant]) -> Scalar:
        """The type in which an operation is computed; conditions and constants alone have the elements'."""
        return _widest([a.scalar for a in args if not isinstance(a, _Constant)]) or self._default or Scalar("i", 4)

    # Operations.

    def _operation(self, op: str, args: list[Operand | _Constant]) -> Operand | _Constant:
        if op in COMPARISONS:
            return self._compare(op, args)
        if op == "not":
            return Value(self.em.let(f"xor {self.mask} {self.condition(args[0])}, {self._true()}"), None)
        if op == "where":
            return self._where(args)
        scalar = self._common(args)
        embedded = self._embed(op, args, scalar)
        if embedded is not None:
            return embedded
        x = [self.convert(a, scalar).name for a in args]
        return Value(self._arithmetic(op, scalar, x, args), scalar)

    def _true(self) -> str:
        return "true" if self.width == 1 else "splat (i1 true)"

    def _where(self, args: list[Operand | _Constant]) -> Value:
        test = self.condition(args[0])
        if all(not isinstance(a, _Constant) and a.scalar is None for a in args[1:]):
            yes, no = self.condition(args[1]), self.condition(args[2])
            return Value(self.em.let(f"select {self.mask} {test}, {self.mask} {yes}, {self.mask} {no}"), None)
        scalar = self._common(args[1:])
        yes, no = (self.convert(a, scalar).name for a in args[1:])
        return Value(self._select(test, scalar, yes, no), scalar)

    def _select(self, test: str, scalar: Scalar, yes: str, no: str) -> str:
        ir = scalar.vector(self.width)
        return self.em.let(f"select {self.mask} {test}, {ir} {yes}, {ir} {no}")

    def _compare(self, op: str, args: list[Operand | _Constant]) -> Value:
        if all(not isinstance(a, _Constant) and a.scalar is None for a in args):
            args = [self.convert(a, Scalar("u", 1)) for a in args]
        scalar = self._common(args)
        x, y = (self.convert(a, scalar).name for a in args)
        return Value(self.compare(op, scalar, x, y), None)

    def compare(self, op: str, scalar: Scalar, x: str, y: str) -> str:
        """A vector of truth values."""
        if scalar.kind == "f":
            return self.em.let(f"fcmp {_FLOAT[op]} {scalar.vector(self.width)} {x}, {y}")
        table = _SIGNED if scalar.kind == "i" else _UNSIGNED
        return self.em.let(f"icmp {table[op]} {scalar.vector(self.width)} {x}, {y}")

    def _embed(self, op: str, args: list[Operand | _Constant], scalar: Scalar) -> Value | None:
        """The operation with its scalar operand taken from memory by the instruction itself, where there is one."""
        vector_bytes = self.width * scalar.bytes
        if not self.target.embedded_broadcast or vector_bytes != self.target.vector_bytes or len(args) != 2:
            return None
        scalars = [a for a in args if isinstance(a, Broadcast) and a.scalar == scalar]
        others = [a for a in args if isinstance(a, Value)]
        name = _EMBEDDED.get(op, {}).get(f"{scalar.kind}{scalar.bytes}")
        if name is None or len(scalars) != 1 or len(others) != 1 or (op == "add" and self.infinities and scalar.kind != "f"):
            return None
        memory, other = scalars[0], self.convert(others[0], scalar).name
        ir, many = scalar.vector(self.width), f"{{1to{self.width}}}"
        place = f"ptr elementtype({scalar.ir}) {memory.pointer}"
        if op == "add" and scalar in self.ones:
            code, one = "vfmadd231" + name[-2:], self.ones[scalar]
            return Value(self.em.let(f'call {ir} asm "{code} $1{many}, $2, $0", "=v,*m,v,0"({place}, {ir} {one}, {ir} {other})'), scalar)
        return Value(self.em.let(f'call {ir} asm "{name} $1{many}, $2, $0", "=v,*m,v"({place}, {ir} {other})'), scalar)

    def embeds(self, roots: Sequence[Expr], component: int, scalars: Sequence[Scalar]) -> bool:
        """Whether every use of the left operand's `component` in `roots` can take it from memory."""
        uses = [e for e in nodes(*roots) if any(isinstance(a, Expr) and a.op == "var" and a.args == (0, component) for a in e.args)]
        scalar = scalars[component]
        return (
            self.target.embedded_broadcast
            and self.width * scalar.bytes == self.target.vector_bytes
            and bool(uses)
            and all(
                f"{scalar.kind}{scalar.bytes}" in _EMBEDDED.get(e.op, {})
                and {a.op for a in e.args} == {"var"}
                and {a.args[0] for a in e.args} == {0, 1}
                and all(scalars[a.args[1]] == scalar for a in e.args)
                and not (e.op == "add" and self.infinities and scalar.kind != "f")
                for e in uses
            )
        )

    def multiply_accumulate(self, add: Expr, mul: Expr, acc: Value, a: Operand, b: Value) -> str | None:
        """acc + a·b in one instruction, where ⊕ and ⊗ are + and × of floats and the target has it (one rounding less)."""
        scalar = acc.scalar
        if scalar is None or scalar.kind != "f" or self.target.isa == "sse2":
            return None
        if (add.op, mul.op) != ("add", "mul") or any({x.op for x in e.args} != {"var"} or len(set(e.args)) < 2 for e in (add, mul)):
            return None
        ir = scalar.vector(self.width)
        if isinstance(a, Broadcast):
            code, many = "vfmadd231" + {4: "ps", 8: "pd"}[scalar.bytes], f"{{1to{self.width}}}"
            place = f"ptr elementtype({scalar.ir}) {a.pointer}"
            return self.em.let(f'call {ir} asm "{code} $1{many}, $2, $0", "=v,*m,v,0"({place}, {ir} {b.name}, {ir} {acc.name})')
        return self.em.call(f"fma.{scalar.overload(self.width)}", ir, (ir, a.name), (ir, b.name), (ir, acc.name))

    def _arithmetic(self, op: str, scalar: Scalar, x: list[str], args: Sequence[Operand | _Constant]) -> str:
        ir, real = scalar.vector(self.width), scalar.kind == "f"
        if op in ("min", "max"):
            if real and self.target.isa == "neon":
                return self.em.call(f"{op}num.{scalar.overload(self.width)}", ir, (ir, x[0]), (ir, x[1]))
            return self._select(self.compare("lt" if op == "min" else "gt", scalar, x[1], x[0]), scalar, x[1], x[0])
        if op in ("add", "sub") and real and scalar in self.ones:
            return self._fused_sum(op, scalar, x)
        if op == "add" and self.infinities and not real:
            return self._absorbing_sum(scalar, x, args)
        if op in ("shl", "shr") and not real:
            return self._shift(op, scalar, x)
        if op in _PLAIN and not (real and op in ("and", "or", "xor")):
            return self.em.let(f"{'f' if real else ''}{_PLAIN[op]} {ir} {x[0]}, {x[1]}")
        if op == "invert" and not real:
            return self.em.let(f"xor {ir} {x[0]}, {scalar.constant(-1, self.width)}")
        if op == "neg":
            return self.em.let(f"fneg {ir} {x[0]}" if real else f"sub {ir} {scalar.constant(0, self.width)}, {x[0]}")
        if op == "abs":
            return self._absolute(scalar, x[0])
        if op == "div" and real:
            return self.em.let(f"fdiv {ir} {x[0]}, {x[1]}")
        if op in ("floordiv", "mod"):
            return self._real_division(op, scalar, x) if real else self._whole_division(op, scalar, x)
        if op == "sqrt" and real:
            return self.em.call(f"sqrt.{scalar.overload(self.width)}", ir, (ir, x[0]))
        if op in ("exp", "expm1", "log", "log1p") and real:
            math = VectorMath(self.em, scalar, self.width, fma=self.target.isa != "sse2")
            function: Callable[[str], str] = getattr(math, op)
            return function(x[0])
        raise DTypeError(f"{op!r} has no meaning for {'floats' if real else 'integers'}")

    def _fused_sum(self, op: str, scalar: Scalar, x: list[str]) -> str:
        ir = scalar.vector(self.width)
        y = x[1] if op == "add" else self.em.let(f"fneg {ir} {x[1]}")
        return self.em.call(f"fma.{scalar.overload(self.width)}", ir, (ir, x[0]), (ir, self.ones[scalar]), (ir, y))

    def _absorbing_sum(self, scalar: Scalar, x: list[str], args: Sequence[Operand | _Constant]) -> str:
        total = self.em.let(f"add {scalar.vector(self.width)} {x[0]}, {x[1]}")
        for infinity in own(self.infinities, np.dtype(f"{scalar.kind}{scalar.bytes}")):
            for name, arg in zip(x, args, strict=True):
                if not isinstance(arg, _Constant):
                    infinite = scalar.constant(infinity, self.width)
                    total = self._select(self.compare("eq", scalar, name, infinite), scalar, infinite, total)
        return total

    def _shift(self, op: str, scalar: Scalar, x: list[str]) -> str:
        """As in Python where the count is as large as the element or larger: nothing is left, or only the sign."""
        ir, last = scalar.vector(self.width), scalar.constant(8 * scalar.bytes - 1, self.width)
        beyond = self.em.let(f"icmp ugt {ir} {x[1]}, {last}")
        count = self._select(beyond, scalar, last, x[1])
        if op == "shr" and scalar.kind == "i":
            return self.em.let(f"ashr {ir} {x[0]}, {count}")
        shifted = self.em.let(f"{'shl' if op == 'shl' else 'lshr'} {ir} {x[0]}, {count}")
        return self._select(beyond, scalar, scalar.constant(0, self.width), shifted)

    def _absolute(self, scalar: Scalar, x: str) -> str:
        ir, overload = scalar.vector(self.width), scalar.overload(self.width)
        if scalar.kind == "f":
            return self.em.call(f"fabs.{overload}", ir, (ir, x))
        return x if scalar.kind == "u" else self.em.call(f"abs.{overload}", ir, (ir, x), ("i1", "false"))

    def _whole_division(self, op: str, scalar: Scalar, x: list[str]) -> str:
        """Python's // and % (rounded towards −∞); 0 where the divisor is 0, as NumPy gives, instead of a trap."""
        ir, zero = scalar.vector(self.width), scalar.constant(0, self.width)
        none = self.compare("eq", scalar, x[1], zero)
        one = scalar.constant(1, self.width)
        by = self._select(none, scalar, one, x[1])
        if scalar.kind == "u":
            result = self.em.let(f"{'udiv' if op == 'floordiv' else 'urem'} {ir} {x[0]}, {by}")
            return self._select(none, scalar, zero, result)
        # The lowest integer over −1 traps too; its negation wraps to itself.
        minus = self.compare("eq", scalar, by, scalar.constant(-1, self.width))
        by = self._select(minus, scalar, one, by)
        quotient, rest = self.em.let(f"sdiv {ir} {x[0]}, {by}"), self.em.let(f"srem {ir} {x[0]}, {by}")
        signs = self.compare("lt", scalar, self.em.let(f"xor {ir} {rest}, {by}"), zero)
        uneven = self.compare("ne", scalar, rest, zero)
        fix = self.em.let(f"and {self.mask} {signs}, {uneven}")
        if op == "floordiv":
            less = self.em.let(f"sub {ir} {quotient}, {one}")
            floored = self._select(fix, scalar, less, quotient)
            floored = self._select(minus, scalar, self.em.let(f"sub {ir} {zero}, {x[0]}"), floored)
            return self._select(none, scalar, zero, floored)
        shifted = self._select(fix, scalar, self.em.let(f"add {ir} {rest}, {by}"), rest)
        return self._select(none, scalar, zero, shifted)

    def _real_division(self, op: str, scalar: Scalar, x: list[str]) -> str:
        raise TraceError(f"{'//' if op == 'floordiv' else '%'} on floats has no vector instruction; use integers, or / with comparisons")


def _widest(scalars: Sequence[Scalar | None]) -> Scalar | None:
    """The type that holds the values of all (None is a condition): a float, else the longest, else a signed one."""
    return max((s for s in scalars if s is not None), key=lambda s: (s.kind == "f", s.bytes, s.kind == "i"), default=None)


def _fitting(value: Any, scalar: Scalar) -> Any:
    """A constant of the callable in the element's type."""
    if scalar.kind == "f":
        return float(value)
    dtype = np.dtype(f"{scalar.kind}{scalar.bytes}")
    if isinstance(value, float) and np.isinf(value):
        return np.iinfo(dtype).max if value > 0 else np.iinfo(dtype).min
    if value != int(value):
        raise DTypeError(f"the constant {value!r} is not an integer; use float32 or float64 instead of {dtype}")
    info = np.iinfo(dtype)
    if not info.min <= int(value) <= info.max and not (scalar.kind == "u" and -int(info.max) - 1 <= int(value) < 0):
        raise DTypeError(f"the constant {value!r} does not fit {dtype}")
    return int(value)
