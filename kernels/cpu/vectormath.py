"""exp, expm1, log and log1p on vectors of floats, from +, ×, ÷ and bit operations alone.

No call to a mathematical library, so that every instruction set gives the same code and whole vectors stay in registers. The
series are the plain ones (eˣ = Σ xᵏ/k!, log m = 2 artanh((m−1)/(m+1))) on ranges reduced until the first omitted term is
below half a unit in the last place; results are within 2 units of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from semiring.kernels.cpu.emitter import Emitter, Scalar

__all__ = ["VectorMath"]


@dataclass(frozen=True)
class _Format:
    """What the reductions need to know of an IEEE format."""

    mantissa: int
    bias: int
    exp_terms: int
    log_terms: int
    lowest: float
    highest: float
    ln2_high: float
    """ln 2 with so few bits that a multiple n·ln2_high is exact."""
    ln2_low: float
    """ln 2 − ln2_high."""


_FORMATS = {
    4: _Format(23, 127, 7, 5, -104.0, 89.0, 0.693359375, math.log(2) - 0.693359375),
    8: _Format(52, 1023, 13, 11, -746.0, 710.0, 0.693147180369123816490, 1.90821492927058770002e-10),
}


class VectorMath:
    """Emits the functions for vectors of `width` lanes of one float type."""

    def __init__(self, em: Emitter, scalar: Scalar, width: int, *, fma: bool) -> None:
        self.em, self.scalar, self.width, self.fma = em, scalar, width, fma
        self.ir = scalar.vector(width)
        self.integer = Scalar("i", scalar.bytes)
        self.bits = self.integer.vector(width)
        self.format = _FORMATS[scalar.bytes]

    def _c(self, value: float) -> str:
        return self.scalar.constant(value, self.width)

    def _i(self, value: int) -> str:
        return self.integer.constant(value, self.width)

    def _f(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"f{op} {self.ir} {x}, {y}")

    def _int(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"{op} {self.bits} {x}, {y}")

    def _test(self, op: str, x: str, y: str) -> str:
        return self.em.let(f"fcmp {op} {self.ir} {x}, {y}")

    def _select(self, condition: str, yes: str, no: str) -> str:
        mask = "i1" if self.width == 1 else f"<{self.width} x i1>"
        return self.em.let(f"select {mask} {condition}, {self.ir} {yes}, {self.ir} {no}")

    def _as_bits(self, x: str) -> str:
        return self.em.let(f"bitcast {self.ir} {x} to {self.bits}")

    def _as_float(self, x: str) -> str:
        return self.em.let(f"bitcast {self.bits} {x} to {self.ir}")

    def _multiply_add(self, x: str, y: str, z: str) -> str:
        if self.fma:
            overload = self.scalar.overload(self.width)
            return self.em.call(f"fma.{overload}", self.ir, (self.ir, x), (self.ir, y), (self.ir, z))
        return self._f("add", self._f("mul", x, y), z)

    def _polynomial(self, x: str, coefficients: list[float]) -> str:
        """Horner's scheme, the constant term first in the list."""
        total = self._c(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self._multiply_add(total, x, self._c(c))
        return total

    def _power_of_two(self, n: str) -> str:
        """2ⁿ of an integer vector in the range of normal exponents."""
        biased = self._int("add", n, self._i(self.format.bias))
        return self._as_float(self._int("shl", biased, self._i(self.format.mantissa)))

    def _reduced(self, x: str) -> tuple[str, str]:
        """n (as integers) and expm1(x − n ln 2), for x as far as the results differ from their limits."""
        f = self.format
        x = self._select(self._test("olt", x, self._c(f.lowest)), self._c(f.lowest), x)
        x = self._select(self._test("ogt", x, self._c(f.highest)), self._c(f.highest), x)
        magic = 1.5 * 2.0**f.mantissa  # adding it rounds to the nearest integer, which is then in the low bits
        shifted = self._multiply_add(x, self._c(1 / math.log(2)), self._c(magic))
        n = self._int("sub", self._as_bits(shifted), self._as_bits_of(magic))
        whole = self._f("sub", shifted, self._c(magic))
        r = self._multiply_add(whole, self._c(-f.ln2_high), x)
        r = self._multiply_add(whole, self._c(-f.ln2_low), r)
        tail = self._polynomial(r, [1 / math.factorial(k) for k in range(2, f.exp_terms + 1)])
        return n, self._multiply_add(self._f("mul", r, r), tail, r)

    def _as_bits_of(self, value: float) -> str:
        return self._as_bits(self._c(value))

    def exp(self, x: str) -> str:
        """eˣ = (p + 1) 2ⁿ; subnormal results and overflow to +∞ included."""
        n, p = self._reduced(x)
        half = self._int("ashr", n, self._i(1))
        # 2ⁿ in two factors: n may leave the range of normal exponents
        y = self._f("mul", self._f("add", p, self._c(1.0)), self._power_of_two(half))
        return self._f("mul", y, self._power_of_two(self._int("sub", n, half)))

    def expm1(self, x: str) -> str:
        """eˣ − 1 = p 2ⁿ + (2ⁿ − 1), so that no digit of p is lost."""
        n, p = self._reduced(x)
        half = self._int("ashr", n, self._i(1))
        scale = self._power_of_two(self._int("sub", n, half))
        rest = self._f("sub", scale, self._power_of_two(self._int("sub", self._i(0), half)))
        return self._f("mul", self._multiply_add(p, scale, rest), self._power_of_two(half))

    def log(self, x: str) -> str:
        """The natural logarithm: −∞ at ±0, NaN below."""
        return self._log(x, None)

    def log1p(self, x: str) -> str:
        """log(1 + x): log(u) + (x − (u − 1))/u for the rounded sum u."""
        u = self._f("add", x, self._c(1.0))
        lost = self._f("sub", x, self._f("sub", u, self._c(1.0)))
        return self._log(u, self._f("div", lost, u))

    def _log(self, x: str, correction: str | None) -> str:
        f, inf = self.format, math.inf
        tiny = self._test("olt", x, self._c(2.0 ** (1 - f.bias)))
        scaled = self._select(tiny, self._f("mul", x, self._c(2.0 ** (f.mantissa + 2))), x)
        lift = self._select(tiny, self._c(-float(f.mantissa + 2)), self._c(0.0))
        bits = self._as_bits(scaled)
        exponent = self._int("sub", self._int("ashr", bits, self._i(f.mantissa)), self._i(f.bias))
        e = self._f("add", self.em.let(f"sitofp {self.bits} {exponent} to {self.ir}"), lift)
        fraction = self._int("and", bits, self._i((1 << f.mantissa) - 1))
        m = self._as_float(self._int("or", fraction, self._as_bits_of(1.0)))
        large = self._test("ogt", m, self._c(math.sqrt(2)))
        m = self._select(large, self._f("mul", m, self._c(0.5)), m)
        e = self._select(large, self._f("add", e, self._c(1.0)), e)
        # log m = 2 artanh(s) = 2 s (1 + s²/3 + s⁴/5 + …), |s| ≤ 3 − 2√2
        s = self._f("div", self._f("sub", m, self._c(1.0)), self._f("add", m, self._c(1.0)))
        z = self._f("mul", s, s)
        tail = self._polynomial(z, [2 / (2 * k + 1) for k in range(1, f.log_terms + 1)])
        low = self._f("mul", self._f("mul", s, z), tail)
        low = self._multiply_add(e, self._c(f.ln2_low), low)
        if correction is not None:
            ordinary = self._test("ogt", x, self._c(0.0))
            low = self._f("add", low, self._select(ordinary, correction, self._c(0.0)))
        low = self._f("add", low, self._f("add", s, s))
        y = self._multiply_add(e, self._c(f.ln2_high), low)
        y = self._select(self._test("oeq", x, self._c(0.0)), self._c(-inf), y)
        y = self._select(self._test("oeq", x, self._c(inf)), self._c(inf), y)
        return self._select(self._test("ult", x, self._c(0.0)), self._c(math.nan), y)
