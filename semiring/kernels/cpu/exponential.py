"""Products over a ⊕ that is log Σ exp: a product of exponentials, and a logarithm at the end, instead of exponentials at each step.

With L = ln 2 / s, a number is x = n L + r with an integer n and |s r| ≤ ln 2 / 2, so that e^{sx} = e^{sr} 2ⁿ. L is a sum of three floats.
The first two have few bits, so that their products with n are exact.

Let N be the largest n of a row of A (of a column of B) among the steps that are packed together. Elements are packed as
e^{sr} 2^{n − N + headroom}, and the micro-kernel adds up their products. A sum 2ᵉ m at (i, j) gives the result

    (N_i + N_j − 2 headroom + e) L + log(m) / s.

Exponents are integers, and sums of them are exact at any size, so nothing cancels that does not cancel in the result.

An exponential below the normal numbers counts as 0. From `ExponentRange.least` on, the loss is below a rounding of the sum. Smaller sums,
and exponents beyond `ExponentRange.exponent`, are computed again:

1. in float64 (`Wide`), if elements are float32 and a tile has many such sums;
2. otherwise, or if float64 fails too, from the raw elements: M + log(Σ exp(s (a + b − M))) / s, with M the largest a + b.

Each panel therefore has the exponentials, the exponents N, and the raw elements. The choice depends on the numbers and on the place of the
register tile, not on threads.

Error bounds, with u half the distance from 1 to the next float, and r the result:

- An exponential is within 3 u of its value.
- A sum of k ≤ 512 products, in partial sums of 128, is within (min(k, 128) + 12) u.
- Its logarithm is within (min(k, 128) + 12) u + 5 u max(1, |r|).
- Without products, the result is within min(k, 128) u + 24 u max(1, |r|), because each a + b is rounded too.
- A merge with C adds 6 u max(1, |r|), and weighs the errors of its operands by their shares of the result.

In total: min(k, 128) u + (32 ⌈k/512⌉ + 32) u max(1, |r|); for |s| < 1 times 1 / |s|, because r is a logarithm divided by s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.instructions import VectorMath
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.micro import SUMMED, MicroKernel
from semiring.kernels.cpu.representation import Representation, Tile
from semiring.kernels.hardware import Target

__all__ = ["ExponentRange", "ExponentialKernel", "ScaledMath", "range_of"]


_LN2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF40F34326, 1 << 160)
"""ln 2, to 160 bits."""


@dataclass(frozen=True)
class ExponentRange:
    """Exponents of packed elements in one float type."""

    headroom: int  # exponent of the largest element of a row, such that no sum of products overflows
    least: float  # smallest sum that is accurate
    exponent: int  # largest |N| that is computed by exponentials; elements below −2 · exponent count as 0
    bits: int  # leading bits of L such that products with these exponents are exact


def range_of(scalar: Scalar, steps: int) -> ExponentRange:
    """Return the exponent range for sums of `steps` terms."""
    bias, mantissa, exponent = (127, 23, 14) if scalar.bytes == 4 else (1023, 52, 19)
    carry = steps.bit_length() + 1  # a step is at most 2, because mantissas are at most √2
    headroom = (bias - 1 - carry) // 2
    # Elements that count as 0 are below 2^(1 − bias), and their factors at most √2 2^headroom: together less than u / 4.
    return ExponentRange(headroom, 2.0 ** (1 - bias + headroom + carry + mantissa + 3), 1 << exponent, mantissa - exponent)


class ScaledMath(VectorMath):
    """Emits m and n with e^{sx} = m 2ⁿ, and the inverse."""

    def __init__(self, em: Emitter, scalar: Scalar, width: int, *, fma: bool, scale: Fraction, limits: ExponentRange) -> None:
        super().__init__(em, scalar, width, fma=fma)
        self.scale, self.limits = scale, limits
        self.parts = _parts(_LN2 / scale, limits.bits, self.format.mantissa + 1)

    def larger(self, x: str, y: str) -> str:
        """Return x or y, whichever is larger times s; x where y is NaN."""
        return self._select(self._test("ogt" if self.scale > 0 else "olt", y, x), y, x)

    @property
    def zero(self) -> float:
        """The number whose exponential is 0."""
        return -math.inf if self.scale > 0 else math.inf

    def exponents(self, x: str) -> tuple[str, str]:
        """Return N for the largest element x of a row, and the offset from n to an element's biased exponent.

        N is a float: −∞ for rows of zeros, and NaN beyond the range.
        """
        t = self._exponent(x)
        magnitude = self.em.call(f"fabs.{self.scalar.overload(self.width)}", self.ir, (self.ir, t))
        within = self._test("ole", magnitude, self._c(float(self.limits.exponent)))
        whole, n = self._nearest(self._select(within, t, self._c(0.0)))
        nothing = self._test("oeq", x, self._c(self.zero))
        shown = self._select(within, whole, self._select(nothing, self._c(-math.inf), self._c(math.nan)))
        return shown, self._int("sub", self._i(self.format.bias + self.limits.headroom), n)

    def encode(self, x: str, offset: str) -> str:
        """Return e^{sx} 2^{headroom − N}, or 0 below the normal numbers; `offset` comes from `exponents`."""
        t = self._exponent(x)
        whole, n = self._nearest(t)
        r = x
        for part in self.parts:
            r = self._multiply_add(whole, self._c(-part), r)
        m = self._f("add", self._expm1_near_0(self._times(self.scale, r)), self._c(1.0))
        biased = self._int("add", n, offset)
        zero = self._i(0)
        positive = self.em.let(f"icmp sgt {self.bits} {biased}, {zero}")
        biased = self.em.let(f"select {self.mask} {positive}, {self.bits} {biased}, {self.bits} {zero}")
        y = self._f("mul", m, self._as_float(self._int("shl", biased, self._i(self.format.mantissa))))
        return self._select(self._test("olt", t, self._c(-2.0 * self.limits.exponent)), self._c(0.0), y)

    def decode(self, total: str, exponents: str) -> tuple[str, str]:
        """Return the result of a sum, and a mask of accurate results; `exponents` is N_i + N_j."""
        whole, s, tail = self._log_parts(total)
        whole = self._f("add", self._f("add", exponents, self._c(-2.0 * self.limits.headroom)), whole)
        y = self._times(1 / self.scale, self._f("add", tail, self._f("add", s, s)))
        for part in reversed(self.parts):
            y = self._multiply_add(whole, self._c(part), y)
        nothing = self._test("oeq", exponents, self._c(-math.inf))
        enough = self._and(self._test("oge", total, self._c(self.limits.least)), self._test("olt", total, self._c(math.inf)))
        known = self._and(enough, self._test("ord", exponents, exponents))
        return self._select(nothing, self._c(self.zero), y), self.em.let(f"or {self.mask} {nothing}, {known}")

    def counts(self, x: str) -> str:
        """Return a mask where e^{sx} is not negligible beside 1: a few hundred negligible terms add up to less than u / 4."""
        return self._test("oge", self._times(self.scale, x), self._c(-float(self.format.mantissa + 14) * math.log(2)))

    def exp(self, x: str) -> str:
        """e^{sx} for s x ≤ 0, where `counts` holds."""
        n, p = self._reduced(self._times(self.scale, x))
        return self._f("mul", self._f("add", p, self._c(1.0)), self._power_of_two(n))

    def log(self, x: str) -> str:
        """log(x) / s for finite x ≥ 1."""
        whole, s, tail = self._log_parts(x)
        low = self._multiply_add(whole, self._c(self.format.ln2_low), tail)
        y = self._multiply_add(whole, self._c(self.format.ln2_high), self._f("add", low, self._f("add", s, s)))
        return self._times(1 / self.scale, y)

    def _exponent(self, x: str) -> str:
        """s x / ln 2, which is n before rounding."""
        return self._f("mul", x, self._c(float(self.scale / _LN2)))

    def _nearest(self, t: str) -> tuple[str, str]:
        """Round to the nearest integer, as a float and as an integer."""
        return self._rounded(self._f("add", t, self._c(self.magic)))

    def _times(self, factor: Fraction, x: str) -> str:
        return x if factor == 1 else self._f("mul", x, self._c(float(factor)))

    def _and(self, x: str, y: str) -> str:
        return self.em.let(f"and {self.mask} {x}, {y}")


class ExponentialKernel:
    """Generates ``scale_a`` and ``scale_b`` for packing, and ``micro`` with its helpers, under the prefix of a product."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str) -> None:
        self.rep, self.target, self.tile, self.prefix = rep, target, tile, prefix
        self.args = KernelArguments(1)
        (self.scalar,) = rep.outer
        self.wide = Wide(self) if self.scalar.bytes == 4 else None

    def functions(self) -> list[Emitter]:
        """Return all functions."""
        scales = [self.scale("scale_a", self.tile.rows), self.scale("scale_b", self.tile.columns)]
        return [*scales, self._exact(), self._micro(), *(self.wide.functions() if self.wide else ())]

    def math(self, em: Emitter, width: int, inner: Scalar | None = None) -> ScaledMath:
        """Return exponentials and logarithms of vectors of `width` lanes."""
        inner = inner or self.scalar
        limits = range_of(inner, self.tile.depth)
        return ScaledMath(em, inner, width, fma=self.target.fma, scale=self.rep.scale, limits=limits)

    def scale(self, name: str, lanes: int, stride: int | None = None, inner: Scalar | None = None) -> Emitter:
        """``scale(elements, panel, k)``: encode [k][lanes] elements to a panel, followed by the exponents N of the lanes.

        `stride` is the number of elements per step of k, by default `lanes`; with another stride, `lanes` are whole vectors. `inner` is the
        panel's float type.
        """
        em = Emitter(f"{self.prefix}_{name}", "ptr %elements, ptr %panel, i64 %k", attributes="#1")
        outer, inner, stride = self.scalar, inner or self.scalar, stride or lanes
        width = self.tile.width * outer.bytes // inner.bytes
        math_, ir = self.math(em, width, inner), inner.vector(width)
        # The period, in elements, after which vectors start at the same lane.
        turn = math.lcm(lanes, width)
        vectors, turns = range(turn // width), em.let(f"sdiv i64 {em.mul('%k', lanes)}, {turn}")
        buffer = em.let(f"alloca [{turn} x {inner.ir}], align 64")

        def loaded(t: str) -> list[str]:
            at = em.at(outer.ir, "%elements", em.mul(t, turn // lanes * stride))
            values = [em.get(outer, at, q * width, width) for q in vectors]
            return values if outer == inner else [em.let(f"fpext {outer.vector(width)} {v} to {ir}") for v in values]

        zeros = [(ir, inner.constant(math_.zero, width))] * len(vectors)
        found = em.loop(0, turns, 1, lambda t, found: list(map(math_.larger, found, loaded(t))), zeros)
        exponents = em.at(inner.ir, "%panel", em.mul("%k", lanes))
        if turn > lanes:
            _put(em, inner, buffer, found, width)
            _fold(em, self.math(em, 1, inner), buffer, lanes, turn)
            found = [em.get(inner, buffer, q * width, width) for q in vectors]
        shown, offsets = zip(*(math_.exponents(x) for x in found), strict=True)
        if turn > lanes:
            _put(em, inner, buffer, shown, width)
            with em.each(0, lanes) as r:
                em.put(inner, em.get(inner, buffer, r), exponents, r)
        else:
            _put(em, inner, exponents, shown, width)
        with em.each(0, turns) as t:
            encoded = [math_.encode(x, o) for x, o in zip(loaded(t), offsets, strict=True)]
            _put(em, inner, em.at(inner.ir, "%panel", em.mul(t, turn)), encoded, width)
        return em.done()

    def _exact(self) -> Emitter:
        """``exact(A, B, out, k)``: ⊕ a ⊗ b over k steps of one row and one vector of columns, from the raw elements."""
        em = Emitter(f"{self.prefix}_exact", "ptr %A, ptr %B, ptr %out, i64 %k", attributes="#1")
        scalar, width = self.scalar, self.tile.width
        math_, low, ir = self.math(em, width), Lowering(em, self.target, width), scalar.vector(width)

        def candidate(k: str) -> str:
            a = em.splat(em.get(scalar, "%A", em.mul(k, self.tile.rows)), scalar, width)
            b = em.get(scalar, "%B", em.mul(k, self.tile.columns), width)
            return low.arithmetic("add", scalar, [a, b])

        some, sums = (em.let(f"alloca {ir}, align 64") for _ in range(2))
        zero, nothing = scalar.constant(self.rep.zero[0], width), scalar.constant(0.0, width)
        (top,) = em.loop(0, "%k", 1, lambda k, v: [math_.larger(v[0], candidate(k))], [(ir, zero)])
        finite = low.compare("lt", scalar, low.arithmetic("abs", scalar, [top]), scalar.constant(math.inf, width))

        def add(to: str, x: str) -> None:
            em.store(ir, low.arithmetic("add", scalar, [em.load(ir, to, scalar.bytes), x]), to, scalar.bytes)

        with em.when(low.somewhere(finite)):
            em.store(ir, nothing, sums, scalar.bytes)
            with em.each(0, "%k", SUMMED) as start:
                em.store(ir, nothing, some, scalar.bytes)
                with em.each(start, em.smin("%k", em.add(start, SUMMED))) as k:
                    below = low.arithmetic("sub", scalar, [candidate(k), top])
                    counts = math_.counts(below)
                    with em.when(low.somewhere(counts)):  # widely spread numbers have few terms that count
                        add(some, low.select(counts, scalar, math_.exp(below), nothing))
                add(sums, em.load(ir, some, scalar.bytes))
            total = em.load(ir, sums, scalar.bytes)
            found = low.arithmetic("add", scalar, [top, math_.log(total)])
            em.store(ir, low.select(finite, scalar, found, top), "%out", scalar.bytes)
        with em.otherwise():
            em.store(ir, top, "%out", scalar.bytes)
        return em.done()

    def _micro(self) -> Emitter:
        """``micro(args, A, B, C, via, k, rows, columns, step)``: C ← C ⊕ A⊗B for one register tile over k packed steps."""
        signature = "ptr %args, ptr %A, ptr %B, ptr %C, ptr %via, i64 %k, i64 %rows, i64 %columns, i64 %step"
        em = Emitter(f"{self.prefix}_micro", signature, attributes="#1")
        scalar, width, tile = self.scalar, self.tile.width, self.tile
        math_, low, ir = self.math(em, width), Lowering(em, self.target, width), scalar.vector(width)
        down = self.args.load(em, ("C_rows", 0))
        results = em.let(f"alloca [{tile.rows * tile.columns} x {scalar.ir}], align 64")
        out, edge = (em.let(f"alloca {ir}, align 64") for _ in range(2))
        packed = em.round_up("%k", tile.turn)
        lanes = {"%A": tile.rows, "%B": tile.columns}
        exponents = {panel: em.at(scalar.ir, panel, em.mul(packed, n)) for panel, n in lanes.items()}
        elements = {panel: em.at(scalar.ir, exponents[panel], n) for panel, n in lanes.items()}
        unknown = scalar.constant(math.nan, width)

        @contextmanager
        def each() -> Iterator[tuple[str, str, str]]:
            """Emit the body for row i, column j and the place in `results` of each vector of the tile."""
            with em.each(0, "%rows") as i:
                start = em.at(scalar.ir, results, em.mul(i, tile.columns))
                with em.each(0, "%columns", width) as j:
                    yield i, j, em.at(scalar.ir, start, j)

        with em.when(em.let("icmp eq i64 %k, 1")), each() as (i, j, place):  # a ⊗ b, without an exponential
            a = em.splat(em.get(scalar, elements["%A"], i), scalar, width)
            em.store(ir, low.arithmetic("add", scalar, [a, em.get(scalar, elements["%B"], j, width)]), place, scalar.bytes)
        with em.otherwise():
            em.line(f"call void @{self.prefix}_sums(ptr %args, ptr %A, ptr %B, ptr {results}, i64 %k)")
            count = em.reserve("i64")
            em.store("i64", "0", count, 8)
            with each() as (i, j, place):  # convert a sum to the result; NaN where the sum is too small
                N = em.splat(em.get(scalar, exponents["%A"], i), scalar, width)
                both = low.arithmetic("add", scalar, [N, em.get(scalar, exponents["%B"], j, width)])
                found, right = math_.decode(em.load(ir, place, scalar.bytes), both)
                em.store(ir, low.select(right, scalar, found, unknown), place, scalar.bytes)
                missing = em.let(f"zext i1 {low.somewhere(low.negated(right))} to i64")
                em.store("i64", str(em.add(em.load("i64", count, 8), missing)), count, 8)
            if self.wide is not None:
                with em.when(em.let(f"icmp sge i64 {em.load('i64', count, 8)}, {self.wide.worth}")):
                    pointers = f"ptr {elements['%A']}, ptr {elements['%B']}, ptr {results}"
                    em.line(f"call void @{self.prefix}_wide(ptr %args, {pointers}, i64 {packed}, i64 %k)")
        with each() as (i, j, place):
            found = em.load(ir, place, scalar.bytes)
            right = low.compare("eq", scalar, found, found)
            with em.when(low.somewhere(low.negated(right))):
                a, b = em.at(scalar.ir, elements["%A"], i), em.at(scalar.ir, elements["%B"], j)
                em.line(f"call void @{self.prefix}_exact(ptr {a}, ptr {b}, ptr {out}, i64 %k)")
                em.store(ir, low.select(right, scalar, found, em.load(ir, out, scalar.bytes)), place, scalar.bytes)
            self._into(low, place, edge, em.at(scalar.ir, "%C", em.add(em.mul(i, down), j)), em.sub("%columns", j))
        return em.done()

    def _into(self, low: Lowering, out: str, edge: str, place: str, left: str | int) -> None:
        """C ← C ⊕ the vector at `out`; `left` is the number of columns up to C's edge, where the vector at `edge` is a buffer."""
        em, scalar, width = low.em, self.scalar, self.tile.width
        ir, zero = scalar.vector(width), scalar.constant(self.rep.zero[0], width)

        def merge(at: str) -> None:
            old, new = em.load(ir, at, scalar.bytes), em.load(ir, out, scalar.bytes)
            with em.when(low.somewhere(low.compare("ne", scalar, old, zero))):
                (total,) = low.evaluate(self.rep.add, [Value(old, scalar)], [Value(new, scalar)], self.rep.outer)
                em.store(ir, total.name, at, scalar.bytes)
            with em.otherwise():  # 0 ⊕ x = x
                em.store(ir, new, at, scalar.bytes)

        with em.when(em.let(f"icmp sge i64 {left}, {width}")):
            merge(place)
        with em.otherwise():
            em.store(ir, zero, edge, scalar.bytes)
            with em.each(0, left) as j:
                em.put(scalar, em.get(scalar, place, j), edge, j)
            merge(edge)
            with em.each(0, left) as j:
                em.put(scalar, em.get(scalar, edge, j), place, j)


class Wide:
    """Generates ``wide``: sums of float32 exponentials that are too small, computed again in float64.

    B's panel is converted at its first use and kept until other columns of B are multiplied; A's panel is converted each time.
    """

    inner = Scalar("f", 8)

    def __init__(self, kernel: ExponentialKernel) -> None:
        self.kernel = kernel
        tile, rep = kernel.tile, kernel.rep
        # Vectors have half the width, so the columns are computed in two halves.
        self.tile = replace(tile, width=tile.width // 2)
        self.prefix = f"{kernel.prefix}_wide"
        self._sums = MicroKernel(replace(rep, inner=(self.inner,)), kernel.target, self.tile, self.prefix, witness=False)
        # The number of vectors from which float64 is faster than sums without products.
        self.worth = tile.rows * tile.vectors // 4

    def functions(self) -> list[Emitter]:
        """Return all functions."""
        tile, scale = self.kernel.tile, self.kernel.scale
        scales = [scale("wide_a", tile.rows, inner=self.inner), scale("wide_b", self.tile.columns, tile.columns, self.inner)]
        return [*scales, self._sums.sums(), self._wide()]

    def _wide(self) -> Emitter:
        """``wide(args, A, B, results, packed, k)``: replace NaN in `results` by sums in float64; A and B are raw elements."""
        em = Emitter(self.prefix, "ptr %args, ptr %A, ptr %B, ptr %results, i64 %packed, i64 %k", attributes="#1")
        kernel, inner, outer, tile = self.kernel, self.inner, self.kernel.scalar, self.tile
        width = tile.width
        math_, low = kernel.math(em, width, inner), Lowering(em, kernel.target, width)
        ir, results = inner.vector(width), outer.vector(width)
        scratch = kernel.args.pointer(em, "wide")
        steps = em.add("%packed", 1)
        panel_a = em.at("i8", scratch, 64)
        panels_b = [em.at(inner.ir, panel_a, em.mul(steps, tile.rows))]
        panels_b.append(em.at(inner.ir, panels_b[0], em.mul(steps, tile.columns)))
        halves = list(zip(panels_b, (0, tile.columns), strict=True))
        sums = em.let(f"alloca [{tile.rows * tile.columns} x {inner.ir}], align 64")

        with em.when(em.let(f"icmp eq i64 {em.load('i64', scratch, 8)}, 0")):
            for panel, first in halves:
                em.line(f"call void @{kernel.prefix}_wide_b(ptr {em.at(outer.ir, '%B', first)}, ptr {panel}, i64 %packed)")
            em.store("i64", "1", scratch, 8)
        em.line(f"call void @{kernel.prefix}_wide_a(ptr %A, ptr {panel_a}, i64 %packed)")
        for panel, first in halves:
            em.line(f"call void @{self.prefix}_sums(ptr %args, ptr {panel_a}, ptr {panel}, ptr {sums}, i64 %k)")
            exponents = [em.at(inner.ir, p, em.mul("%packed", n)) for p, n in ((panel_a, tile.rows), (panel, tile.columns))]
            with em.each(0, tile.rows) as i:
                N = em.splat(em.get(inner, exponents[0], i), inner, width)
                with em.each(0, tile.columns, width) as j:
                    total = em.get(inner, sums, em.add(em.mul(i, tile.columns), j), width)
                    both = low.arithmetic("add", inner, [N, em.get(inner, exponents[1], j, width)])
                    found, right = math_.decode(total, both)
                    place = em.at(outer.ir, "%results", em.add(em.mul(i, kernel.tile.columns), em.add(j, first)))
                    old = em.load(results, place, outer.bytes)
                    missing = low.all_of([low.negated(low.compare("eq", outer, old, old)), right])
                    new = em.let(f"fptrunc {ir} {found} to {results}")
                    em.store(results, low.select(missing, outer, new, old), place, outer.bytes)
        return em.done()


def _put(em: Emitter, scalar: Scalar, place: str, vectors: Sequence[str], width: int) -> None:
    for q, x in enumerate(vectors):
        em.put(scalar, x, place, q * width, width)


def _fold(em: Emitter, single: ScaledMath, buffer: str, lanes: int, turn: int) -> None:
    """Replace each element of the buffer by the largest at the same place modulo `lanes`."""
    scalar = single.scalar
    with em.each(0, lanes) as r:
        zero = (scalar.ir, scalar.literal(single.zero))
        (top,) = em.loop(r, turn, lanes, lambda t, found: [single.larger(found[0], em.get(scalar, buffer, t))], [zero])
        with em.each(r, turn, lanes) as t:
            em.put(scalar, top, buffer, t)


def _parts(value: Fraction, bits: int, last: int) -> list[float]:
    """Split a number into three floats; the first two have `bits` bits each, and the third has `last` bits."""
    parts = []
    for size in (bits, bits, last):
        magnitude = abs(value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() if value else 0
        unit = Fraction(2) ** (exponent - size + 1)
        parts.append(float(round(value / unit) * unit))
        value -= Fraction(parts[-1])
    return parts
