"""Operations on vector registers of one element type, as LLVM instructions; exp and log from +, ×, ÷ and bit operations.

A minimum is one machine instruction, exact and without fast-math: a compare-and-select on ordered values is ``vminps`` on x86,
and ``minnum`` is ``fminnm`` on ARM. A NaN candidate never wins; on ARM, an old NaN is also replaced, and −0.0 is below 0.0.

exp, expm1, log and log1p call no mathematical library, so results are the same on every instruction set and vectors stay in
registers. The series are eˣ = Σ xᵏ/k! and log m = 2 artanh((m−1)/(m+1)), on ranges reduced until the first omitted term is
below half a unit in the last place. Results are within 2 units.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from semiring.common.errors import DTypeError, TraceError
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.hardware import Target
from semiring.kernels.limits import own_infinities

__all__ = ["Instructions"]


@dataclass(frozen=True)
class _Format:
    """Constants of an IEEE format for the range reductions."""

    mantissa: int
    bias: int
    exp_terms: int
    log_terms: int
    lowest: float
    highest: float
    ln2_high: float
    """ln 2 rounded so that n·ln2_high is exact."""
    ln2_low: float
    """ln 2 − ln2_high."""


_FORMATS = {
    4: _Format(23, 127, 7, 5, -104.0, 89.0, 0.693359375, math.log(2) - 0.693359375),
    8: _Format(52, 1023, 13, 11, -746.0, 710.0, 0.693147180369123816490, 1.90821492927058770002e-10),
}


class VectorMath:
    """Emits mathematical functions of vectors of `width` lanes of one float type."""

    def __init__(self, em: Emitter, scalar: Scalar, width: int, *, fma: bool) -> None:
        self.em, self.scalar, self.width, self.fma = em, scalar, width, fma
        self.ir = scalar.vector(width)
        self.integer = Scalar("i", scalar.bytes)
        self.bits = self.integer.vector(width)
        self.mask = "i1" if width == 1 else f"<{width} x i1>"
        self.format = _FORMATS[scalar.bytes]
        self.magic = 1.5 * 2.0**self.format.mantissa  # adding it rounds to the nearest integer, which is then in the low bits

    def _c(self, value: float) -> str:
        """Return a constant vector of floats."""
        return self.scalar.constant(value, self.width)

    def _i(self, value: int) -> str:
        """Return a constant vector of integers."""
        return self.integer.constant(value, self.width)

    def _f(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"f{op} {self.ir} {x}, {y}")

    def _int(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"{op} {self.bits} {x}, {y}")

    def _test(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"fcmp {op} {self.ir} {x}, {y}")

    def _select(self, condition: str, yes: str, no: str) -> str:
        return self.em.let(f"select {self.mask} {condition}, {self.ir} {yes}, {self.ir} {no}")

    def _as_bits(self, x: str) -> str:
        return self.em.let(f"bitcast {self.ir} {x} to {self.bits}")

    def _as_float(self, x: str) -> str:
        return self.em.let(f"bitcast {self.bits} {x} to {self.ir}")

    def _multiply_add(self, x: str, y: str, z: str) -> str:
        """x·y + z, rounded once if the target has fused multiply-adds."""
        if self.fma:
            overload = self.scalar.overload(self.width)
            return self.em.call(f"fma.{overload}", self.ir, (self.ir, x), (self.ir, y), (self.ir, z))
        return self._f("add", self._f("mul", x, y), z)

    def _polynomial(self, x: str, coefficients: list[float]) -> str:
        """Evaluate by Horner's scheme, constant term first."""
        total = self._c(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self._multiply_add(total, x, self._c(c))
        return total

    def _power_of_two(self, n: str) -> str:
        """Raise 2 to an integer vector, for normal results."""
        biased = self._int("add", n, self._i(self.format.bias))
        return self._as_float(self._int("shl", biased, self._i(self.format.mantissa)))

    def _reduced(self, x: str) -> tuple[str, str]:
        """Return n (as integers) and expm1(x − n ln 2), with x clamped to the range where results are neither 0 nor ∞."""
        f = self.format
        x = self._select(self._test("olt", x, self._c(f.lowest)), self._c(f.lowest), x)
        x = self._select(self._test("ogt", x, self._c(f.highest)), self._c(f.highest), x)
        whole, n = self._rounded(self._multiply_add(x, self._c(1 / math.log(2)), self._c(self.magic)))
        r = self._multiply_add(whole, self._c(-f.ln2_high), x)
        r = self._multiply_add(whole, self._c(-f.ln2_low), r)
        return n, self._expm1_near_0(r)

    def _rounded(self, shifted: str) -> tuple[str, str]:
        """Return the integer in a sum with `magic`, as a float and as an integer."""
        return self._f("sub", shifted, self._c(self.magic)), self._int("sub", self._as_bits(shifted), self._as_bits(self._c(self.magic)))

    def _expm1_near_0(self, r: str) -> str:
        """eʳ − 1 for |r| ≤ ln 2 / 2."""
        tail = self._polynomial(r, [1 / math.factorial(k) for k in range(2, self.format.exp_terms + 1)])
        return self._multiply_add(self._f("mul", r, r), tail, r)

    def exp(self, x: str) -> str:
        """eˣ = (p + 1) 2ⁿ, including subnormal results and overflow to +∞."""
        n, p = self._reduced(x)
        half = self._int("ashr", n, self._i(1))
        # 2ⁿ in two factors: n may leave the range of normal exponents
        y = self._f("mul", self._f("add", p, self._c(1.0)), self._power_of_two(half))
        return self._f("mul", y, self._power_of_two(self._int("sub", n, half)))

    def expm1(self, x: str) -> str:
        """eˣ − 1 = p 2ⁿ + (2ⁿ − 1), without cancellation in p."""
        n, p = self._reduced(x)
        half = self._int("ashr", n, self._i(1))
        scale = self._power_of_two(self._int("sub", n, half))
        rest = self._f("sub", scale, self._power_of_two(self._int("sub", self._i(0), half)))
        return self._f("mul", self._multiply_add(p, scale, rest), self._power_of_two(half))

    def log1p(self, x: str) -> str:
        """log(1 + x): log(u) + (x − (u − 1))/u for the rounded sum u."""
        u = self._f("add", x, self._c(1.0))
        lost = self._f("sub", x, self._f("sub", u, self._c(1.0)))
        return self._log(u, self._f("div", lost, u))

    def log(self, x: str) -> str:
        """Emit the natural logarithm: −∞ at ±0, NaN below."""
        return self._log(x, None)

    def _log(self, x: str, correction: str | None) -> str:
        """log x + correction."""
        f, inf = self.format, math.inf
        tiny = self._test("olt", x, self._c(2.0 ** (1 - f.bias)))
        scaled = self._select(tiny, self._f("mul", x, self._c(2.0 ** (f.mantissa + 2))), x)
        lift = self._select(tiny, self._c(-float(f.mantissa + 2)), self._c(0.0))
        e, s, tail = self._log_parts(scaled)
        e = self._f("add", e, lift)
        low = self._multiply_add(e, self._c(f.ln2_low), tail)
        if correction is not None:
            ordinary = self._test("ogt", x, self._c(0.0))
            low = self._f("add", low, self._select(ordinary, correction, self._c(0.0)))
        low = self._f("add", low, self._f("add", s, s))
        y = self._multiply_add(e, self._c(f.ln2_high), low)
        y = self._select(self._test("oeq", x, self._c(0.0)), self._c(-inf), y)
        y = self._select(self._test("oeq", x, self._c(inf)), self._c(inf), y)
        return self._select(self._test("ult", x, self._c(0.0)), self._c(math.nan), y)

    def _log_parts(self, x: str) -> tuple[str, str, str]:
        """Return e, s and t with log x = e ln 2 + 2 s + t for normal x > 0, where |2 s + t| ≤ ln 2 / 2 and |t| ≪ |s|."""
        f = self.format
        bits = self._as_bits(x)
        exponent = self._int("sub", self._int("ashr", bits, self._i(f.mantissa)), self._i(f.bias))
        e = self.em.let(f"sitofp {self.bits} {exponent} to {self.ir}")
        fraction = self._int("and", bits, self._i((1 << f.mantissa) - 1))
        m = self._as_float(self._int("or", fraction, self._as_bits(self._c(1.0))))
        large = self._test("ogt", m, self._c(math.sqrt(2)))
        m = self._select(large, self._f("mul", m, self._c(0.5)), m)
        e = self._select(large, self._f("add", e, self._c(1.0)), e)
        # log m = 2 artanh(s) = 2 s (1 + s²/3 + s⁴/5 + …), |s| ≤ 3 − 2√2
        s = self._f("div", self._f("sub", m, self._c(1.0)), self._f("add", m, self._c(1.0)))
        z = self._f("mul", s, s)
        tail = self._polynomial(z, [2 / (2 * k + 1) for k in range(1, f.log_terms + 1)])
        return e, s, self._f("mul", self._f("mul", s, z), tail)


class Instructions:
    """Emits operations on vectors of `width` lanes into one function.

    With `ones`, vectors of 1.0 that LLVM cannot fold, float sums become fma(x, 1, y). `infinities` are integers that absorb every sum.
    """

    def __init__(
        self, em: Emitter, target: Target, width: int, *, ones: dict[Scalar, str] | None = None, infinities: Sequence[int] = ()
    ) -> None:
        self.em, self.target, self.width = em, target, width
        self.ones = ones or {}
        self.infinities = infinities
        self.mask = "i1" if width == 1 else f"<{width} x i1>"

    @contextmanager
    def plain_sums(self) -> Iterator[None]:
        """Emit sums as sums within the block, not as fma(x, 1, y): ⊕ has execution units to itself."""
        ones, self.ones = self.ones, {}
        yield
        self.ones = ones

    def select(self, test: str, scalar: Scalar, yes: str, no: str) -> str:
        """Emit ``yes if test else no`` in every lane."""
        ir = scalar.vector(self.width)
        return self.em.let(f"select {self.mask} {test}, {ir} {yes}, {ir} {no}")

    def any_of(self, tests: Iterable[str]) -> str:
        """Return a mask of the lanes where some test holds."""
        return functools.reduce(lambda x, y: self.em.let(f"or {self.mask} {x}, {y}"), tests)

    def all_of(self, tests: Iterable[str]) -> str:
        """Return a mask of the lanes where all tests hold."""
        return functools.reduce(lambda x, y: self.em.let(f"and {self.mask} {x}, {y}"), tests)

    def negated(self, test: str) -> str:
        """Return the negation of a mask."""
        return self.em.let(f"xor {self.mask} {test}, {'true' if self.width == 1 else 'splat (i1 true)'}")

    def somewhere(self, test: str) -> str:
        """Return an i1: true if `test` holds in some lane."""
        return test if self.width == 1 else self.em.call(f"vector.reduce.or.v{self.width}i1", "i1", (self.mask, test))

    def compare(self, op: str, scalar: Scalar, x: str, y: str) -> str:
        """Return a vector of truth values."""
        if scalar.kind == "f":
            code = "fcmp une" if op == "ne" else f"fcmp o{op}"  # comparisons with NaN are false, except for ≠
        else:
            code = f"icmp {op}" if op in ("eq", "ne") else f"icmp {'s' if scalar.kind == 'i' else 'u'}{op}"
        return self.em.let(f"{code} {scalar.vector(self.width)} {x}, {y}")

    def arithmetic(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """Emit an operation whose operands and result share one type."""
        if op in ("min", "max") and not (scalar.kind == "f" and self.target.minnum):
            return self.select(self.compare("lt" if op == "min" else "gt", scalar, x[1], x[0]), scalar, x[1], x[0])
        return self._on_floats(op, scalar, x) if scalar.kind == "f" else self._on_integers(op, scalar, x)

    def _on_floats(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        ir, overload = scalar.vector(self.width), scalar.overload(self.width)
        match op:
            case "min" | "max":
                return self.em.call(f"{op}num.{overload}", ir, (ir, x[0]), (ir, x[1]))
            case "add" | "sub" if scalar in self.ones:
                y = x[1] if op == "add" else self.em.let(f"fneg {ir} {x[1]}")
                return self.em.call(f"fma.{overload}", ir, (ir, x[0]), (ir, self.ones[scalar]), (ir, y))
            case "add" | "sub" | "mul" | "div":
                return self.em.let(f"f{op} {ir} {x[0]}, {x[1]}")
            case "neg":
                return self.em.let(f"fneg {ir} {x[0]}")
            case "abs" | "sqrt":
                return self.em.call(f"{'fabs' if op == 'abs' else op}.{overload}", ir, (ir, x[0]))
            case "exp" | "expm1" | "log" | "log1p":
                function: Callable[[str], str] = getattr(VectorMath(self.em, scalar, self.width, fma=self.target.fma), op)
                return function(x[0])
            case "floordiv" | "mod":
                sign = "//" if op == "floordiv" else "%"
                raise TraceError(f"{sign} on floats has no vector instruction; use integers, / with comparisons, or device='reference'")
        raise DTypeError(f"{op!r} has no meaning for floats")

    def _on_integers(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        ir = scalar.vector(self.width)
        match op:
            case "add" | "sub" | "mul" | "and" | "or" | "xor":
                return self.em.let(f"{op} {ir} {x[0]}, {x[1]}")
            case "shl" | "shr":
                return self._shift(op, scalar, x)
            case "invert":
                return self.em.let(f"xor {ir} {x[0]}, {scalar.constant(-1, self.width)}")
            case "neg":
                return self.em.let(f"sub {ir} {scalar.constant(0, self.width)}, {x[0]}")
            case "abs":
                return x[0] if scalar.kind == "u" else self.em.call(f"abs.{scalar.overload(self.width)}", ir, (ir, x[0]), ("i1", "false"))
            case "floordiv" | "mod":
                return self._division(op, scalar, x)
        raise DTypeError(f"{op!r} has no meaning for integers")

    def absorbs(self, op: str, scalar: Scalar) -> bool:
        """Return True if the operation needs `absorbing_sum`."""
        return op == "add" and bool(self.infinities) and scalar.kind != "f"

    def absorbing_sum(self, scalar: Scalar, x: Sequence[str], variables: Sequence[str]) -> str:
        """Return a sum that is infinite where one of `variables` is infinite."""
        total = self.em.let(f"add {scalar.vector(self.width)} {x[0]}, {x[1]}")
        for infinity in own_infinities(self.infinities, scalar.dtype):
            infinite = scalar.constant(infinity, self.width)
            for name in variables:
                total = self.select(self.compare("eq", scalar, name, infinite), scalar, infinite, total)
        return total

    def _shift(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """Shift as in Python for counts of the element's size or more: to 0, or to the sign."""
        ir, last = scalar.vector(self.width), scalar.constant(8 * scalar.bytes - 1, self.width)
        beyond = self.em.let(f"icmp ugt {ir} {x[1]}, {last}")
        count = self.select(beyond, scalar, last, x[1])
        if op == "shr" and scalar.kind == "i":
            return self.em.let(f"ashr {ir} {x[0]}, {count}")
        shifted = self.em.let(f"{'shl' if op == 'shl' else 'lshr'} {ir} {x[0]}, {count}")
        return self.select(beyond, scalar, scalar.constant(0, self.width), shifted)

    def _division(self, op: str, scalar: Scalar, x: Sequence[str]) -> str:
        """Python's // and % (rounded towards −∞); division by 0 gives 0, as in NumPy, instead of a trap."""
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
