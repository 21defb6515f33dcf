"""Products over a ⊕ that is log Σ exp: a product of exponentials, and a logarithm at the end, instead of exponentials at each step.

With L = ln 2 / s, a number is x = n L + r with a whole n and |s r| ≤ ln 2 / 2, so that e^{sx} = e^{sr} 2ⁿ. Let N be the largest n of a row
of A (of a column of B) among the steps that are packed together. Elements are packed as e^{sr} 2^{n − N + headroom}, the micro-kernel adds
up products of those, and from a sum 2ᵉ m in the place (i, j) the result is (N_i + N_j − 2 headroom + e) L + log(m) / s. Exponents are whole
numbers, whose sum is exact however large they are, so that nothing cancels but what cancels in the result.

An element whose exponential is too small to be a normal number counts as 0. That is below a rounding of every sum from `Range.least` on.
Where a sum is less, or an exponent is beyond `Range.exponent`, exponentials of float32 are multiplied once more in float64 (`Wide`), if a
tile has many such elements, and else, or if that does not suffice either, the element is found from what was packed without any product:
M + log(Σ exp(s (a + b − M))) / s, with M the largest a + b. So each panel has the exponentials, the exponents N, and the elements.

Which of these ways an element is found by follows from the numbers and from the place of its register tile, not from threads.

The error, with u half the distance from 1 to the next float: an exponential is within 3 u of itself, so that a sum of k ≤ 512 products,
added up in sums of 128, is within (min(k, 128) + 12) u, and what it stands for within (min(k, 128) + 12) u + 5 u max(1, |r|) of the result
r. Without products it is within min(k, 128) u + 24 u max(1, |r|), as each a + b is rounded too. A merge with C adds 6 u max(1, |r|), and
weighs the errors of what it merges by their shares of the result. So all of it is within min(k, 128) u + (32 ⌈k/512⌉ + 32) u max(1, |r|);
for |s| < 1 times 1 / |s|, as r is the logarithm of a sum by s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.exponents import ScaledMath, range_of
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.micro import SUMMED, MicroKernel
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.hardware import Target

__all__ = ["ExponentialKernel"]


class ExponentialKernel:
    """Generates, under the prefix of a product, what packing calls, ``scale_a`` and ``scale_b``, and ``micro`` with what it calls."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str) -> None:
        self.rep, self.target, self.tile, self.prefix = rep, target, tile, prefix
        self.args = KernelArguments(1)
        (self.scalar,) = rep.outer
        self.wide = Wide(self) if self.scalar.bytes == 4 else None

    def functions(self) -> list[Emitter]:
        """All of them."""
        scales = [self.scale("scale_a", self.tile.rows), self.scale("scale_b", self.tile.columns)]
        return [*scales, self._exact(), self._micro(), *(self.wide.functions() if self.wide else ())]

    def begin_columns(self, em: Emitter) -> None:
        """In the macro-kernel, before other columns of B are multiplied."""
        if self.wide is not None:
            em.store("i64", "0", self.args.pointer(em, "wide"), 8)

    def math(self, em: Emitter, width: int, inner: Scalar | None = None) -> ScaledMath:
        """Exponentials and logarithms of so many numbers."""
        inner = inner or self.scalar
        limits = range_of(inner, self.tile.depth)
        return ScaledMath(em, inner, width, fma=self.target.fma, scale=self.rep.scale, limits=limits)

    def scale(self, name: str, lanes: int, stride: int | None = None, inner: Scalar | None = None) -> Emitter:
        """``scale(elements, panel, k)``: a panel of the exponentials of [k][lanes] elements, and behind them the exponents of the lanes.

        From step to step of k there are `stride` elements, all of them lanes unless these are whole vectors; `inner` is the type of
        exponentials, if it is another one.
        """
        em = Emitter(f"{self.prefix}_{name}", "ptr %elements, ptr %panel, i64 %k", attributes="#1")
        outer, inner, stride = self.scalar, inner or self.scalar, stride or lanes
        width = self.tile.width * outer.bytes // inner.bytes
        math_, ir = self.math(em, width, inner), inner.vector(width)
        # Elements of a vector belong to the same lanes again after so many vectors.
        turn = math.lcm(lanes, width)
        vectors, turns = range(turn // width), em.let(f"sdiv i64 {em.mul('%k', lanes)}, {turn}")
        buffer = em.let(f"alloca [{turn} x {inner.ir}], align 64")

        def loaded(t: str) -> list[str]:
            at = em.at(outer.ir, "%elements", em.mul(t, turn // lanes * stride))
            values = [em.load(outer.vector(width), em.at(outer.ir, at, q * width), outer.bytes) for q in vectors]
            return values if outer == inner else [em.let(f"fpext {outer.vector(width)} {v} to {ir}") for v in values]

        def largest(t: str, found: list[str]) -> list[str]:
            return [math_.larger(old, x) for old, x in zip(found, loaded(t), strict=True)]

        found = em.loop(0, turns, 1, largest, [(ir, inner.constant(math_.zero, width))] * len(vectors))
        exponents = em.at(inner.ir, "%panel", em.mul("%k", lanes))
        if turn > lanes:
            _put(em, inner, buffer, found, width)
            _fold(em, self.math(em, 1, inner), buffer, lanes, turn)
            found = [em.load(ir, em.at(inner.ir, buffer, q * width), inner.bytes) for q in vectors]
        shown, offsets = zip(*(math_.exponents(x) for x in found), strict=True)
        if turn > lanes:
            _put(em, inner, buffer, shown, width)
            em.loop(0, lanes, 1, lambda r, _: _copy(em, inner, em.at(inner.ir, buffer, r), em.at(inner.ir, exponents, r)))
        else:
            _put(em, inner, exponents, shown, width)

        def encode(t: str, _: list[str]) -> None:
            encoded = [math_.encode(x, o) for x, o in zip(loaded(t), offsets, strict=True)]
            _put(em, inner, em.at(inner.ir, "%panel", em.mul(t, turn)), encoded, width)

        em.loop(0, turns, 1, encode)
        em.line("ret void")
        return em

    def _exact(self) -> Emitter:
        """``exact(A, B, out, k)``: ⊕ a ⊗ b over k steps of one row and one vector of columns, as they were before exponentials."""
        em = Emitter(f"{self.prefix}_exact", "ptr %A, ptr %B, ptr %out, i64 %k", attributes="#1")
        scalar, width = self.scalar, self.tile.width
        math_, low, ir = self.math(em, width), Lowering(em, self.target, width), scalar.vector(width)

        def candidate(k: str) -> str:
            a = em.splat(em.load(scalar.ir, em.at(scalar.ir, "%A", em.mul(k, self.tile.rows)), scalar.bytes), scalar, width)
            b = em.load(ir, em.at(scalar.ir, "%B", em.mul(k, self.tile.columns)), scalar.bytes)
            return low.arithmetic("add", scalar, [a, b])

        some, sums = (em.let(f"alloca {ir}, align 64") for _ in range(2))
        zero, nothing = scalar.constant(self.rep.zero[0], width), scalar.constant(0.0, width)
        (top,) = em.loop(0, "%k", 1, lambda k, v: [math_.larger(v[0], candidate(k))], [(ir, zero)])
        finite = low.compare("lt", scalar, low.arithmetic("abs", scalar, [top]), scalar.constant(math.inf, width))

        def add(to: str, x: str) -> None:
            em.store(ir, low.arithmetic("add", scalar, [em.load(ir, to, scalar.bytes), x]), to, scalar.bytes)

        def add_step(k: str, _: list[str]) -> None:
            below = low.arithmetic("sub", scalar, [candidate(k), top])
            counts = math_.counts(below)
            # The further numbers spread, the fewer of them do.
            em.branch(low.somewhere(counts), lambda: add(some, low.select(counts, scalar, math_.exp(below), nothing)))

        def add_steps(start: str, _: list[str]) -> None:
            em.store(ir, nothing, some, scalar.bytes)
            em.loop(start, em.smin("%k", em.add(start, SUMMED)), 1, add_step)
            add(sums, em.load(ir, some, scalar.bytes))

        def add_up() -> None:
            em.store(ir, nothing, sums, scalar.bytes)
            em.loop(0, "%k", SUMMED, add_steps)
            total = em.load(ir, sums, scalar.bytes)
            found = low.arithmetic("add", scalar, [top, math_.log(total)])
            em.store(ir, low.select(finite, scalar, found, top), "%out", scalar.bytes)

        em.branch(low.somewhere(finite), add_up, lambda: em.store(ir, top, "%out", scalar.bytes))
        em.line("ret void")
        return em

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

        def each(body: Callable[[str, str, str, list[str]], list[str]], carried: list[tuple[str, str]]) -> list[str]:
            """``body(i, j, place in the tile, carried)`` for all vectors of the tile."""

            def row(i: str, values: list[str]) -> list[str]:
                start = em.at(scalar.ir, results, em.mul(i, tile.columns))
                now = [(ir, value) for (ir, _), value in zip(carried, values, strict=True)]
                return em.loop(0, "%columns", width, lambda j, v: body(i, j, em.at(scalar.ir, start, j), v), now)

            return em.loop(0, "%rows", 1, row, carried)

        def decode(i: str, j: str, place: str, count: list[str]) -> list[str]:
            """What a sum stands for; NaN where it is too small to tell."""
            N = em.splat(em.load(scalar.ir, em.at(scalar.ir, exponents["%A"], i), scalar.bytes), scalar, width)
            both = low.arithmetic("add", scalar, [N, em.load(ir, em.at(scalar.ir, exponents["%B"], j), scalar.bytes)])
            found, right = math_.decode(em.load(ir, place, scalar.bytes), both)
            em.store(ir, low.select(right, scalar, found, unknown), place, scalar.bytes)
            missing = em.let(f"zext i1 {low.somewhere(low.negated(right))} to i64")
            return [str(em.add(count[0], missing))]

        def add_up() -> None:
            em.line(f"call void @{self.prefix}_sums(ptr %args, ptr %A, ptr %B, ptr {results}, i64 %k)")
            (count,) = each(decode, [("i64", "0")])
            if self.wide is not None:
                many = em.let(f"icmp sge i64 {count}, {self.wide.worth}")
                pointers = f"ptr {elements['%A']}, ptr {elements['%B']}, ptr {results}"
                em.branch(many, lambda: em.line(f"call void @{self.prefix}_wide(ptr %args, {pointers}, i64 {packed}, i64 %k)"))

        def single(i: str, j: str, place: str, _: list[str]) -> list[str]:
            """The only a ⊗ b, which needs no exponential."""
            a = em.splat(em.load(scalar.ir, em.at(scalar.ir, elements["%A"], i), scalar.bytes), scalar, width)
            b = em.load(ir, em.at(scalar.ir, elements["%B"], j), scalar.bytes)
            em.store(ir, low.arithmetic("add", scalar, [a, b]), place, scalar.bytes)
            return []

        def alone() -> None:
            each(single, [])

        em.branch(em.let("icmp eq i64 %k, 1"), alone, add_up)

        def merge(i: str, j: str, place: str, _: list[str]) -> list[str]:
            found = em.load(ir, place, scalar.bytes)
            right = low.compare("eq", scalar, found, found)

            def correct() -> None:
                a, b = em.at(scalar.ir, elements["%A"], i), em.at(scalar.ir, elements["%B"], j)
                em.line(f"call void @{self.prefix}_exact(ptr {a}, ptr {b}, ptr {out}, i64 %k)")
                em.store(ir, low.select(right, scalar, found, em.load(ir, out, scalar.bytes)), place, scalar.bytes)

            em.branch(low.somewhere(low.negated(right)), correct)
            self._into(low, place, edge, em.at(scalar.ir, "%C", em.add(em.mul(i, down), j)), em.sub("%columns", j))
            return []

        each(merge, [])
        em.line("ret void")
        return em

    def _into(self, low: Lowering, out: str, edge: str, place: str, left: str | int) -> None:
        """C ← C ⊕ the vector at `out`, of which `left` elements belong to C; at its edge by way of the vector at `edge`."""
        em, scalar, width = low.em, self.scalar, self.tile.width
        ir, zero = scalar.vector(width), scalar.constant(self.rep.zero[0], width)

        def merge(at: str) -> None:
            old, new = em.load(ir, at, scalar.bytes), em.load(ir, out, scalar.bytes)

            def combine() -> None:
                (total,) = low.evaluate(self.rep.add, [Value(old, scalar)], [Value(new, scalar)], self.rep.outer)
                em.store(ir, total.name, at, scalar.bytes)

            # 0 ⊕ x is x.
            em.branch(low.somewhere(low.compare("ne", scalar, old, zero)), combine, lambda: em.store(ir, new, at, scalar.bytes))

        def partly() -> None:
            em.store(ir, zero, edge, scalar.bytes)
            em.loop(0, left, 1, lambda j, _: _copy(em, scalar, em.at(scalar.ir, place, j), em.at(scalar.ir, edge, j)))
            merge(edge)
            em.loop(0, left, 1, lambda j, _: _copy(em, scalar, em.at(scalar.ir, edge, j), em.at(scalar.ir, place, j)))

        em.branch(em.let(f"icmp sge i64 {left}, {width}"), lambda: merge(place), partly)


class Wide:
    """Generates ``wide``: sums of float32's exponentials that are too small, once more in float64.

    The panel of B is converted where it is wanted first, and kept until other columns are multiplied; that of A each time.
    """

    inner = Scalar("f", 8)

    def __init__(self, kernel: ExponentialKernel) -> None:
        self.kernel = kernel
        tile, rep = kernel.tile, kernel.rep
        # Vectors of half as many numbers: one half of the columns after the other.
        self.tile = replace(tile, width=tile.width // 2)
        self.prefix = f"{kernel.prefix}_wide"
        self._sums = MicroKernel(replace(rep, inner=(self.inner,)), kernel.target, self.tile, self.prefix, witness=False)
        # From so many vectors on it takes less time than to find them without products.
        self.worth = tile.rows * tile.vectors // 4

    def functions(self) -> list[Emitter]:
        """All of them."""
        tile, scale = self.kernel.tile, self.kernel.scale
        scales = [scale("wide_a", tile.rows, inner=self.inner), scale("wide_b", self.tile.columns, tile.columns, self.inner)]
        return [*scales, self._sums.sums(), self._wide()]

    def _wide(self) -> Emitter:
        """``wide(args, A, B, results, packed, k)``: put in the place of NaN what sums in float64 tell; A and B are elements."""
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

        def convert() -> None:
            for panel, first in halves:
                em.line(f"call void @{kernel.prefix}_wide_b(ptr {em.at(outer.ir, '%B', first)}, ptr {panel}, i64 %packed)")
            em.store("i64", "1", scratch, 8)

        em.branch(em.let(f"icmp eq i64 {em.load('i64', scratch, 8)}, 0"), convert)
        em.line(f"call void @{kernel.prefix}_wide_a(ptr %A, ptr {panel_a}, i64 %packed)")
        for panel, first in halves:
            em.line(f"call void @{self.prefix}_sums(ptr %args, ptr {panel_a}, ptr {panel}, ptr {sums}, i64 %k)")
            exponents = [em.at(inner.ir, p, em.mul("%packed", n)) for p, n in ((panel_a, tile.rows), (panel, tile.columns))]

            def row(i: str, _: list[str], exponents: list[str] = exponents, first: int = first) -> None:
                N = em.splat(em.load(inner.ir, em.at(inner.ir, exponents[0], i), inner.bytes), inner, width)

                def vector(j: str, _: list[str]) -> None:
                    total = em.load(ir, em.at(inner.ir, sums, em.add(em.mul(i, tile.columns), j)), inner.bytes)
                    both = low.arithmetic("add", inner, [N, em.load(ir, em.at(inner.ir, exponents[1], j), inner.bytes)])
                    found, right = math_.decode(total, both)
                    place = em.at(outer.ir, "%results", em.add(em.mul(i, kernel.tile.columns), em.add(j, first)))
                    old = em.load(results, place, outer.bytes)
                    missing = low.all_of([low.negated(low.compare("eq", outer, old, old)), right])
                    new = em.let(f"fptrunc {ir} {found} to {results}")
                    em.store(results, low.select(missing, outer, new, old), place, outer.bytes)

                em.loop(0, tile.columns, width, vector)

            em.loop(0, tile.rows, 1, row)
        em.line("ret void")
        return em


def _put(em: Emitter, scalar: Scalar, place: str, vectors: Sequence[str], width: int) -> None:
    """Vectors, one after the other."""
    for q, x in enumerate(vectors):
        em.store(scalar.vector(width), x, em.at(scalar.ir, place, q * width), scalar.bytes)


def _copy(em: Emitter, scalar: Scalar, source: str, to: str) -> None:
    """One element."""
    em.store(scalar.ir, em.load(scalar.ir, source, scalar.bytes), to, scalar.bytes)


def _fold(em: Emitter, single: ScaledMath, buffer: str, lanes: int, turn: int) -> None:
    """Each element of the buffer ← the largest of those whose places differ by multiples of `lanes`."""
    scalar = single.scalar

    def lane(r: str, _: list[str]) -> None:
        def larger(t: str, found: list[str]) -> list[str]:
            return [single.larger(found[0], em.load(scalar.ir, em.at(scalar.ir, buffer, t), scalar.bytes))]

        (top,) = em.loop(r, turn, lanes, larger, [(scalar.ir, scalar.literal(single.zero))])
        em.loop(r, turn, lanes, lambda t, _: em.store(scalar.ir, top, em.at(scalar.ir, buffer, t), scalar.bytes))

    em.loop(0, lanes, 1, lane)
