"""Numbers as powers of two: m and n with e^{sx} = m 2ⁿ for vectors of floats, and x of them; which n there may be.

With L = ln 2 / s, a number is x = n L + r with a whole n and |s r| ≤ ln 2 / 2, so that e^{sx} = e^{sr} 2ⁿ. L is three floats, of which the
first two have so few bits that their products with n are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.instructions import VectorMath

__all__ = ["Range", "ScaledMath", "range_of"]

_LN2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF40F34326, 1 << 160)
"""ln 2, to 160 bits."""


@dataclass(frozen=True)
class Range:
    """What the exponents of packed elements may be, in one type of floats.

    Attributes
    ----------
    headroom : int
        The exponent of the largest element of a row: products of two, and sums of them, stay below the largest number.
    least : float
        From here on a sum is right.
    exponent : int
        Rows and columns beyond it in magnitude are computed without exponentials; elements below twice of it count as 0.
    bits : int
        How many leading bits of L, times such exponents, are exact.
    """

    headroom: int
    least: float
    exponent: int
    bits: int


def range_of(scalar: Scalar, steps: int) -> Range:
    """For sums of so many steps."""
    bias, mantissa, exponent = (127, 23, 14) if scalar.bytes == 4 else (1023, 52, 19)
    carry = steps.bit_length() + 1  # a step is at most 2, because mantissas are at most √2
    headroom = (bias - 1 - carry) // 2
    # An element that counts as 0 is below 2^(1 − bias), and its partner at most √2 2^headroom; all of them stay below a quarter of u.
    return Range(headroom, 2.0 ** (1 - bias + headroom + carry + mantissa + 3), 1 << exponent, mantissa - exponent)


class ScaledMath(VectorMath):
    """Emits m and n with e^{sx} = m 2ⁿ, and back."""

    def __init__(self, em: Emitter, scalar: Scalar, width: int, *, fma: bool, scale: Fraction, limits: Range) -> None:
        super().__init__(em, scalar, width, fma=fma)
        self.scale, self.limits = scale, limits
        self.mask = "i1" if width == 1 else f"<{width} x i1>"
        self.magic = 1.5 * 2.0**self.format.mantissa  # adding it rounds to the nearest integer, which is then in the low bits
        self.parts = _parts(_LN2 / scale, limits.bits, self.format.mantissa + 1)

    def larger(self, x: str, y: str) -> str:
        """The one of x and y whose multiple by s is larger; x where y is NaN."""
        return self._select(self._test("ogt" if self.scale > 0 else "olt", y, x), y, x)

    @property
    def zero(self) -> float:
        """The number whose exponential is 0."""
        return -math.inf if self.scale > 0 else math.inf

    def exponents(self, x: str) -> tuple[str, str]:
        """N for the largest element x of a row, and what to add to n for the exponent bits of an element.

        N is a float, −∞ for rows of zeros and NaN beyond the range.
        """
        t = self._exponent(x)
        magnitude = self.em.call(f"fabs.{self.scalar.overload(self.width)}", self.ir, (self.ir, t))
        within = self._test("ole", magnitude, self._c(float(self.limits.exponent)))
        whole, n = self._nearest(self._select(within, t, self._c(0.0)))
        nothing = self._test("oeq", x, self._c(self.zero))
        shown = self._select(within, whole, self._select(nothing, self._c(-math.inf), self._c(math.nan)))
        return shown, self._int("sub", self._i(self.format.bias + self.limits.headroom), n)

    def encode(self, x: str, offset: str) -> str:
        """e^{sx} 2^{headroom − N}, 0 where that is no normal number; `offset` is what `exponents` gave beside N."""
        t = self._exponent(x)
        whole, n = self._nearest(t)
        r = x
        for part in self.parts:
            r = self._multiply_add(whole, self._c(-part), r)
        m = self._f("add", self._expm1_near_0(self._scaled(r)), self._c(1.0))
        biased = self._int("add", n, offset)
        zero = self._i(0)
        biased = self.em.let(f"select {self.mask} {self._positive(biased)}, {self.bits} {biased}, {self.bits} {zero}")
        y = self._f("mul", m, self._as_float(self._int("shl", biased, self._i(self.format.mantissa))))
        return self._select(self._test("olt", t, self._c(-2.0 * self.limits.exponent)), self._c(0.0), y)

    def decode(self, total: str, exponents: str) -> tuple[str, str]:
        """The result of a sum, and where it is right; `exponents` is N_i + N_j."""
        whole, s, tail = self._log_parts(total)
        whole = self._f("add", self._f("add", exponents, self._c(-2.0 * self.limits.headroom)), whole)
        y = self._unscaled(self._f("add", tail, self._f("add", s, s)))
        for part in reversed(self.parts):
            y = self._multiply_add(whole, self._c(part), y)
        nothing = self._test("oeq", exponents, self._c(-math.inf))
        enough = self._and(self._test("oge", total, self._c(self.limits.least)), self._test("olt", total, self._c(math.inf)))
        known = self._and(enough, self._test("ord", exponents, exponents))
        return self._select(nothing, self._c(self.zero), y), self._or(nothing, known)

    def counts(self, x: str) -> str:
        """Where e^{sx} is anything beside 1: all others of a few hundred steps are less than a quarter of u together."""
        return self._test("oge", self._scaled(x), self._c(-float(self.format.mantissa + 14) * math.log(2)))

    def exp(self, x: str) -> str:
        """e^{sx} for s x ≤ 0, where it `counts`."""
        n, p = self._reduced(self._scaled(x))
        return self._f("mul", self._f("add", p, self._c(1.0)), self._power_of_two(n))

    def log(self, x: str) -> str:
        """log(x) / s for finite x ≥ 1."""
        whole, s, tail = self._log_parts(x)
        low = self._multiply_add(whole, self._c(self.format.ln2_low), tail)
        return self._unscaled(self._multiply_add(whole, self._c(self.format.ln2_high), self._f("add", low, self._f("add", s, s))))

    def _exponent(self, x: str) -> str:
        """s x / ln 2, which is n up to rounding."""
        return self._f("mul", x, self._c(float(self.scale / _LN2)))

    def _nearest(self, t: str) -> tuple[str, str]:
        """The nearest whole number, as a float and as an integer."""
        shifted = self._f("add", t, self._c(self.magic))
        return self._f("sub", shifted, self._c(self.magic)), self._int("sub", self._as_bits(shifted), self._as_bits_of(self.magic))

    def _scaled(self, x: str) -> str:
        """s x."""
        return x if self.scale == 1 else self._f("mul", x, self._c(float(self.scale)))

    def _unscaled(self, x: str) -> str:
        """x / s."""
        return x if self.scale == 1 else self._f("mul", x, self._c(float(1 / self.scale)))

    def _positive(self, x: str) -> str:
        return self.em.let(f"icmp sgt {self.bits} {x}, {self._i(0)}")

    def _and(self, x: str, y: str) -> str:
        return self.em.let(f"and {self.mask} {x}, {y}")

    def _or(self, x: str, y: str) -> str:
        return self.em.let(f"or {self.mask} {x}, {y}")


def _parts(value: Fraction, bits: int, last: int) -> list[float]:
    """A number as a sum of three floats, of which the first two have so many bits, and the last one `last`."""
    parts = []
    for size in (bits, bits, last):
        magnitude = abs(value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() if value else 0
        unit = Fraction(2) ** (exponent - size + 1)
        parts.append(float(round(value / unit) * unit))
        value -= Fraction(parts[-1])
    return parts
