"""Operations on vector registers of one element type, as LLVM instructions.

A minimum reaches the machine as one instruction, exact and without fast-math: on x86 a compare-and-select on ordered values is one
``vminps``, on ARM ``minnum`` is one ``fminnm``. A NaN candidate never wins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from semiring.algebra.errors import DTypeError, TraceError
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.vectormath import VectorMath
from semiring.kernels.infinities import own

__all__ = ["Instructions"]

_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}
_FLOAT = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


class Instructions:
    """Emits operations on vectors of `width` lanes into one function.

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

    @contextmanager
    def plain_sums(self) -> Iterator[None]:
        """Sums written as sums: ⊕ has its own pipes to itself."""
        ones, self.ones = self.ones, {}
        yield
        self.ones = ones

    def select(self, test: str, scalar: Scalar, yes: str, no: str) -> str:
        """``yes if test else no`` in every lane."""
        ir = scalar.vector(self.width)
        return self.em.let(f"select {self.mask} {test}, {ir} {yes}, {ir} {no}")

    def any_of(self, tests: Iterable[str]) -> str:
        """Where one of `tests` holds."""
        return functools.reduce(lambda x, y: self.em.let(f"or {self.mask} {x}, {y}"), tests)

    def all_of(self, tests: Iterable[str]) -> str:
        """Where all of `tests` hold."""
        return functools.reduce(lambda x, y: self.em.let(f"and {self.mask} {x}, {y}"), tests)

    def compare(self, op: str, scalar: Scalar, x: str, y: str) -> str:
        """A vector of truth values."""
        if scalar.kind == "f":
            return self.em.let(f"fcmp {_FLOAT[op]} {scalar.vector(self.width)} {x}, {y}")
        table = _SIGNED if scalar.kind == "i" else _UNSIGNED
        return self.em.let(f"icmp {table[op]} {scalar.vector(self.width)} {x}, {y}")

    def arithmetic(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """The result of an operation whose operands and result have one type."""
        return self._on_floats(op, scalar, x) if scalar.kind == "f" else self._on_integers(op, scalar, x)

    def _on_floats(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        ir, overload = scalar.vector(self.width), scalar.overload(self.width)
        match op:
            case "min" | "max" if self.target.isa == "neon":
                return self.em.call(f"{op}num.{overload}", ir, (ir, x[0]), (ir, x[1]))
            case "min" | "max":
                return self._extremum(op, scalar, x)
            case "add" | "sub" if scalar in self.ones:
                return self._fused_sum(op, scalar, x)
            case "add" | "sub" | "mul" | "div":
                return self.em.let(f"f{op} {ir} {x[0]}, {x[1]}")
            case "neg":
                return self.em.let(f"fneg {ir} {x[0]}")
            case "abs":
                return self.em.call(f"fabs.{overload}", ir, (ir, x[0]))
            case "sqrt":
                return self.em.call(f"sqrt.{overload}", ir, (ir, x[0]))
            case "exp" | "expm1" | "log" | "log1p":
                math = VectorMath(self.em, scalar, self.width, fma=self.target.isa != "sse2")
                function: Callable[[str], str] = getattr(math, op)
                return function(x[0])
            case "floordiv" | "mod":
                sign = "//" if op == "floordiv" else "%"
                raise TraceError(f"{sign} on floats has no vector instruction; use integers, / with comparisons, or device='reference'")
        raise DTypeError(f"{op!r} has no meaning for floats")

    def _on_integers(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        ir = scalar.vector(self.width)
        match op:
            case "min" | "max":
                return self._extremum(op, scalar, x)
            case "add" | "sub" | "mul" | "and" | "or" | "xor":
                return self.em.let(f"{op} {ir} {x[0]}, {x[1]}")
            case "shl" | "shr":
                return self._shift(op, scalar, x)
            case "invert":
                return self.em.let(f"xor {ir} {x[0]}, {scalar.constant(-1, self.width)}")
            case "neg":
                return self.em.let(f"sub {ir} {scalar.constant(0, self.width)}, {x[0]}")
            case "abs" if scalar.kind == "u":
                return x[0]
            case "abs":
                return self.em.call(f"abs.{scalar.overload(self.width)}", ir, (ir, x[0]), ("i1", "false"))
            case "floordiv" | "mod":
                return self._division(op, scalar, x)
        raise DTypeError(f"{op!r} has no meaning for integers")

    def _extremum(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        return self.select(self.compare("lt" if op == "min" else "gt", scalar, x[1], x[0]), scalar, x[1], x[0])

    def _fused_sum(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        ir = scalar.vector(self.width)
        y = x[1] if op == "add" else self.em.let(f"fneg {ir} {x[1]}")
        return self.em.call(f"fma.{scalar.overload(self.width)}", ir, (ir, x[0]), (ir, self.ones[scalar]), (ir, y))

    def absorbs(self, op: str, scalar: Scalar) -> bool:
        """Whether the operation has to be an `absorbing_sum`."""
        return op == "add" and bool(self.infinities) and scalar.kind != "f"

    def absorbing_sum(self, scalar: Scalar, x: Sequence[str], variables: Sequence[str]) -> str:
        """A sum that is infinite where one of `variables` is."""
        total = self.em.let(f"add {scalar.vector(self.width)} {x[0]}, {x[1]}")
        for infinity in own(self.infinities, scalar.dtype):
            infinite = scalar.constant(infinity, self.width)
            for name in variables:
                total = self.select(self.compare("eq", scalar, name, infinite), scalar, infinite, total)
        return total

    def _shift(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """As in Python where the count is as large as the element or larger: nothing is left, or only the sign."""
        ir, last = scalar.vector(self.width), scalar.constant(8 * scalar.bytes - 1, self.width)
        beyond = self.em.let(f"icmp ugt {ir} {x[1]}, {last}")
        count = self.select(beyond, scalar, last, x[1])
        if op == "shr" and scalar.kind == "i":
            return self.em.let(f"ashr {ir} {x[0]}, {count}")
        shifted = self.em.let(f"{'shl' if op == 'shl' else 'lshr'} {ir} {x[0]}, {count}")
        return self.select(beyond, scalar, scalar.constant(0, self.width), shifted)

    def _division(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """Python's // and % (rounded towards −∞); 0 where the divisor is 0, as NumPy gives, instead of a trap."""
        ir, zero = scalar.vector(self.width), scalar.constant(0, self.width)
        none = self.compare("eq", scalar, x[1], zero)
        one = scalar.constant(1, self.width)
        by = self.select(none, scalar, one, x[1])
        if scalar.kind == "u":
            result = self.em.let(f"{'udiv' if op == 'floordiv' else 'urem'} {ir} {x[0]}, {by}")
            return self.select(none, scalar, zero, result)
        # The lowest integer over −1 traps too; its negation wraps to itself.
        minus = self.compare("eq", scalar, by, scalar.constant(-1, self.width))
        by = self.select(minus, scalar, one, by)
        quotient, rest = self.em.let(f"sdiv {ir} {x[0]}, {by}"), self.em.let(f"srem {ir} {x[0]}, {by}")
        signs = self.compare("lt", scalar, self.em.let(f"xor {ir} {rest}, {by}"), zero)
        uneven = self.compare("ne", scalar, rest, zero)
        fix = self.em.let(f"and {self.mask} {signs}, {uneven}")
        if op == "floordiv":
            less = self.em.let(f"sub {ir} {quotient}, {one}")
            floored = self.select(fix, scalar, less, quotient)
            floored = self.select(minus, scalar, self.em.let(f"sub {ir} {zero}, {x[0]}"), floored)
            return self.select(none, scalar, zero, floored)
        shifted = self.select(fix, scalar, self.em.let(f"add {ir} {rest}, {by}"), rest)
        return self.select(none, scalar, zero, shifted)
