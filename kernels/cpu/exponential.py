"""Products over a ⊕ that is log Σ exp: a product of exponentials, and a logarithm at the end, instead of exponentials at each step.

With L = ln 2 / s, a number is x = n L + r with a whole n and |s r| ≤ ln 2 / 2, so that e^{sx} = e^{sr} 2ⁿ. Let N be the largest n of a row of
A (of a column of B) among the steps that are packed together. Elements are packed as e^{sr} 2^{n − N + headroom}, the micro-kernel adds up
products of those, and from a sum S = 2ᵉ m in the place (i, j) the result is (N_i + N_j − 2 headroom + e) L + log(m) / s. Exponents are
whole numbers, whose sum is exact however large they are, so that nothing cancels but what cancels in the result.

An element whose exponential is too small to be a normal number counts as 0. That is below a rounding of every sum from `Range.least` on;
where a sum is less, or an exponent is beyond `Range.exponent`, the element is computed from what was packed without any exponential:
M + log(Σ exp(s (a + b − M))) / s, with M the largest a + b. So each panel holds both forms of its elements, and the exponents N behind them.

The error of a result r for k steps between two merges with C, u being half the distance from 1 to the next float: the sum has a relative
error of at most (k + 12) u, and the rest at most 4 u max(1, |r|).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from semiring.kernels.cpu.emitter import Emitter, KernelArguments, Scalar
from semiring.kernels.cpu.instructions import VectorMath
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.hardware import Target

__all__ = ["ExponentialKernel"]

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


def _range(scalar: Scalar, steps: int) -> Range:
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

    def larger(self, x: str, y: str, *, of: Fraction = Fraction(1)) -> str:
        """The one of x and y whose multiple by `of` is larger; x where y is NaN."""
        return self._select(self._test("ogt" if of > 0 else "olt", y, x), y, x)

    def exponent(self, x: str) -> str:
        """s x / ln 2, which is n up to rounding."""
        return self._f("mul", x, self._c(float(self.scale / _LN2)))

    def largest(self, exponent: str) -> tuple[str, str]:
        """N as a float, −∞ for rows of zeros and NaN beyond the range; and what to add to n for the exponent bits of an element."""
        within = self._test("ole", self.em.call(f"fabs.{self.scalar.overload(self.width)}", self.ir, (self.ir, exponent)), self._limit())
        whole, n = self._nearest(self._select(within, exponent, self._c(0.0)))
        nothing = self._test("oeq", exponent, self._c(-math.inf))
        shown = self._select(within, whole, self._select(nothing, self._c(-math.inf), self._c(math.nan)))
        return shown, self._int("sub", self._i(self.format.bias + self.limits.headroom), n)

    def encode(self, x: str, offset: str) -> str:
        """e^{sx} 2^{headroom − N}, 0 where that is no normal number; `offset` is what `largest` gave beside N."""
        t = self.exponent(x)
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
        zero = self._c(-math.inf if self.scale > 0 else math.inf)
        nothing = self._test("oeq", exponents, self._c(-math.inf))
        enough = self._and(self._test("oge", total, self._c(self.limits.least)), self._test("olt", total, self._c(math.inf)))
        known = self._and(enough, self._test("ord", exponents, exponents))
        return self._select(nothing, zero, y), self._or(nothing, known)

    def exp(self, x: str) -> str:
        """e^{sx} for s x ≤ 0; where that is no normal number, or x is NaN, it is next to 0."""
        f = self.format
        x = self._scaled(x)
        x = self._select(self._test("oge", x, self._c(float(f.bias - 1) * -0.69)), x, self._c(float(f.bias - 1) * -0.69))
        n, p = self._reduced(x)
        return self._f("mul", self._f("add", p, self._c(1.0)), self._power_of_two(n))

    def log(self, x: str) -> str:
        """log(x) / s for finite x ≥ 1."""
        whole, s, tail = self._log_parts(x)
        low = self._multiply_add(whole, self._c(self.format.ln2_low), tail)
        return self._unscaled(self._multiply_add(whole, self._c(self.format.ln2_high), self._f("add", low, self._f("add", s, s))))

    def _limit(self) -> str:
        return self._c(float(self.limits.exponent))

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


class ExponentialKernel:
    """Generates, under the prefix of a product, what packing and the micro-kernel call: ``scale_a``, ``scale_b``, ``exact`` and ``merge``."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str) -> None:
        self.rep, self.target, self.tile, self.prefix = rep, target, tile, prefix
        self.args = KernelArguments(1)
        (self.scalar,) = rep.inner
        self.limits = _range(self.scalar, tile.depth)

    def functions(self) -> list[Emitter]:
        """All of them."""
        return [self._scale("scale_a", self.tile.rows), self._scale("scale_b", self.tile.columns), self._exact(), self._merge()]

    def _math(self, em: Emitter, width: int) -> ScaledMath:
        return ScaledMath(em, self.scalar, width, fma=self.target.isa != "sse2", scale=self.rep.scale, limits=self.limits)

    def _scale(self, name: str, lanes: int) -> Emitter:
        """``scale(panel, k)``: fill in the exponentials and exponents of a panel of [k][lanes] elements, which lie behind the former."""
        em = Emitter(f"{self.prefix}_{name}", "ptr %panel, i64 %k", attributes="#1")
        scalar, width = self.scalar, self.tile.width
        math_, ir = self._math(em, width), scalar.vector(width)
        # Elements of a vector belong to the same lanes again after so many vectors.
        turn = math.lcm(lanes, width)
        vectors = range(turn // width)
        buffer = em.let(f"alloca [{turn} x {scalar.ir}], align 64")
        count = em.mul("%k", lanes)
        raw = em.at(scalar.ir, "%panel", count)

        def largest(t: str, found: list[str]) -> list[str]:
            at = em.at(scalar.ir, raw, t)
            loaded = [em.load(ir, em.at(scalar.ir, at, q * width), scalar.bytes) for q in vectors]
            return [math_.larger(old, math_.exponent(x)) for old, x in zip(found, loaded, strict=True)]

        found = em.loop(0, count, turn, largest, [(ir, scalar.constant(-math.inf, width))] * len(vectors))
        if turn > lanes:
            self._put(em, buffer, found)
            self._fold(em, buffer, lanes, turn)
            found = [em.load(ir, em.at(scalar.ir, buffer, q * width), scalar.bytes) for q in vectors]
        shown, offsets = zip(*(math_.largest(x) for x in found), strict=True)
        exponents = em.at(scalar.ir, raw, count)
        if turn > lanes:
            self._put(em, buffer, list(shown))
            em.loop(0, lanes, 1, lambda r, _: self._copy(em, em.at(scalar.ir, buffer, r), em.at(scalar.ir, exponents, r)))
        else:
            self._put(em, exponents, list(shown))

        def encode(t: str, _: list[str]) -> None:
            at, to = em.at(scalar.ir, raw, t), em.at(scalar.ir, "%panel", t)
            for q in vectors:
                x = em.load(ir, em.at(scalar.ir, at, q * width), scalar.bytes)
                em.store(ir, math_.encode(x, offsets[q]), em.at(scalar.ir, to, q * width), scalar.bytes)

        em.loop(0, count, turn, encode)
        em.line("ret void")
        return em

    def _put(self, em: Emitter, place: str, vectors: list[str]) -> None:
        """Vectors, one after the other."""
        for q, x in enumerate(vectors):
            em.store(self.scalar.vector(self.tile.width), x, em.at(self.scalar.ir, place, q * self.tile.width), self.scalar.bytes)

    def _copy(self, em: Emitter, source: str, to: str) -> None:
        """One element."""
        em.store(self.scalar.ir, em.load(self.scalar.ir, source, self.scalar.bytes), to, self.scalar.bytes)

    def _fold(self, em: Emitter, buffer: str, lanes: int, turn: int) -> None:
        """Each element of the buffer ← the largest of those whose places differ by multiples of `lanes`."""
        scalar, single = self.scalar, self._math(em, 1)

        def lane(r: str, _: list[str]) -> None:
            def larger(t: str, found: list[str]) -> list[str]:
                return [single.larger(found[0], em.load(scalar.ir, em.at(scalar.ir, buffer, t), scalar.bytes))]

            (top,) = em.loop(r, turn, lanes, larger, [(scalar.ir, scalar.literal(-math.inf))])
            em.loop(r, turn, lanes, lambda t, _: em.store(scalar.ir, top, em.at(scalar.ir, buffer, t), scalar.bytes))

        em.loop(0, lanes, 1, lane)

    def _exact(self) -> Emitter:
        """``exact(A, B, out, k)``: ⊕ a ⊗ b over k steps of one row and one vector of columns, as they were before exponentials."""
        em = Emitter(f"{self.prefix}_exact", "ptr %A, ptr %B, ptr %out, i64 %k", attributes="#1")
        scalar, width = self.scalar, self.tile.width
        math_, low, ir = self._math(em, width), Lowering(em, self.target, width), scalar.vector(width)

        def candidate(k: str) -> str:
            a = em.splat(em.load(scalar.ir, em.at(scalar.ir, "%A", em.mul(k, self.tile.rows)), scalar.bytes), scalar, width)
            b = em.load(ir, em.at(scalar.ir, "%B", em.mul(k, self.tile.columns)), scalar.bytes)
            return low.arithmetic("add", scalar, [a, b])

        zero = scalar.constant(self.rep.zero[0], width)
        (top,) = em.loop(0, "%k", 1, lambda k, v: [math_.larger(v[0], candidate(k), of=self.rep.scale)], [(ir, zero)])
        finite = low.compare("lt", scalar, low.arithmetic("abs", scalar, [top]), scalar.constant(math.inf, width))

        def add(k: str, totals: list[str]) -> list[str]:
            below = low.arithmetic("sub", scalar, [candidate(k), top])
            return [low.arithmetic("add", scalar, [totals[0], math_.exp(below)])]

        def add_up() -> None:
            (total,) = em.loop(0, "%k", 1, add, [(ir, scalar.constant(0.0, width))])
            found = low.arithmetic("add", scalar, [top, math_.log(total)])
            em.store(ir, low.select(finite, scalar, found, top), "%out", scalar.bytes)

        em.branch(low.somewhere(finite), add_up, lambda: em.store(ir, top, "%out", scalar.bytes))
        em.line("ret void")
        return em

    def _merge(self) -> Emitter:
        """``merge(args, sums, A, B, C, k, rows, columns)``: C ← C ⊕ what the sums of a register tile stand for."""
        em = Emitter(
            f"{self.prefix}_merge", "ptr %args, ptr %sums, ptr %A, ptr %B, ptr %C, i64 %k, i64 %rows, i64 %columns", attributes="#1"
        )
        scalar, width, tile = self.scalar, self.tile.width, self.tile
        math_, low, ir = self._math(em, width), Lowering(em, self.target, width), scalar.vector(width)
        down = self.args.load(em, ("C_rows", 0))
        out, edge = (em.let(f"alloca {ir}, align 64") for _ in range(2))
        packed = em.round_up("%k", tile.turn)
        raw = [em.at(scalar.ir, panel, em.mul(packed, lanes)) for panel, lanes in (("%A", tile.rows), ("%B", tile.columns))]
        exponents = [em.at(scalar.ir, panel, em.mul(packed, lanes)) for panel, lanes in zip(raw, (tile.rows, tile.columns), strict=True)]

        def row(i: str, _: list[str]) -> None:
            N = em.splat(em.load(scalar.ir, em.at(scalar.ir, exponents[0], i), scalar.bytes), scalar, width)
            to, sums = em.at(scalar.ir, "%C", em.mul(i, down)), em.at(scalar.ir, "%sums", em.mul(i, tile.columns))

            def vector(j: str, _: list[str]) -> None:
                total = em.load(ir, em.at(scalar.ir, sums, j), scalar.bytes)
                both = low.arithmetic("add", scalar, [N, em.load(ir, em.at(scalar.ir, exponents[1], j), scalar.bytes)])
                found, right = math_.decode(total, both)
                em.store(ir, found, out, scalar.bytes)

                def correct() -> None:
                    em.line(
                        f"call void @{self.prefix}_exact(ptr {em.at(scalar.ir, raw[0], i)}, ptr {em.at(scalar.ir, raw[1], j)}, "
                        f"ptr {out}, i64 %k)"
                    )
                    em.store(ir, low.select(right, scalar, found, em.load(ir, out, scalar.bytes)), out, scalar.bytes)

                em.branch(low.somewhere(low.negated(right)), correct)
                self._into(low, out, edge, em.at(scalar.ir, to, j), em.sub("%columns", j))

            em.loop(0, "%columns", width, vector)

        em.loop(0, "%rows", 1, row)
        em.line("ret void")
        return em

    def _into(self, low: Lowering, out: str, edge: str, place: str, left: str | int) -> None:
        """C ← C ⊕ the vector at `out`, of which `left` elements belong to C; at its edge by way of the vector at `edge`."""
        em, scalar, width = low.em, self.scalar, self.tile.width
        ir = scalar.vector(width)

        def merge(at: str) -> None:
            old, new = em.load(ir, at, scalar.bytes), em.load(ir, out, scalar.bytes)
            changed = low.somewhere(low.compare("ne", scalar, old, scalar.constant(self.rep.zero[0], width)))

            def combine() -> None:
                operands = ([Value(v, scalar)] for v in (old, new))
                (found,) = low.evaluate(self.rep.add, *operands, self.rep.outer)
                em.store(ir, found.name, at, scalar.bytes)

            # 0 ⊕ x is x.
            em.branch(changed, combine, lambda: em.store(ir, new, at, scalar.bytes))

        def some(source: str, to: str) -> Callable[[str, list[str]], None]:
            return lambda j, _: self._copy(em, em.at(scalar.ir, source, j), em.at(scalar.ir, to, j))

        def partly() -> None:
            em.store(ir, scalar.constant(self.rep.zero[0], width), edge, scalar.bytes)
            em.loop(0, left, 1, some(place, edge))
            merge(edge)
            em.loop(0, left, 1, some(edge, place))

        em.branch(em.let(f"icmp sge i64 {left}, {width}"), lambda: merge(place), partly)
