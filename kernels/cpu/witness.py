"""The witness lookup, second pass of a witness product: from the slab that won to the k that won.

Where ``via`` says −2 − slab, the k is the first in that slab whose a⊗b equals C. A row of A and a row of the transposed B are
read a vector at a time, so an entry costs a few cache lines, whatever the depth.
"""

from __future__ import annotations

from collections.abc import Callable

from semiring.kernels.cpu.emitter import I32, Emitter, KernelArguments
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.hardware import Target

__all__ = ["WitnessKernel"]

_CACHED = 1 << 20
"""Bytes of Bᵀ that a second-level cache may hold: then prefetching only costs."""


class WitnessKernel:
    """Generates ``transpose(args)`` and ``resolve(args, row, rows)``, which the product calls."""

    def __init__(self, rep: Representation, target: Target, tile: Tile) -> None:
        self.rep, self.target, self.tile = rep, target, tile
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Both functions."""
        return [self._transpose(), self._resolve()]

    def _bases(self, em: Emitter) -> list[str]:
        """Where each component of the transposed B begins."""
        size = em.mul(self.args.load(em, "n"), self.args.load(em, "transposed_rows"))
        return em.side_by_side(self.args.pointer(em, "transposed"), self.rep.inner, size)

    def _transpose(self) -> Emitter:
        """Inner elements of Bᵀ, [n][transposed_rows]."""
        em = Emitter("transpose", "ptr %args", attributes="#1")
        low = Lowering(em, self.target, 1)
        n, k, long = (self.args.load(em, x) for x in ("n", "k", "transposed_rows"))
        for c, base in enumerate(self._bases(em)):
            self._transpose_component(em, low, c, base, n, k, long)
        em.line("ret void")
        return em

    def _transpose_component(self, em: Emitter, low: Lowering, c: int, base: str, n: str, k: str, long: str) -> None:
        """Component c of Bᵀ, by squares of vectors where rows of B are contiguous."""
        inner, outer = self.rep.inner[c], self.rep.outer[c]
        start = self.args.pointer(em, ("B", c))
        down, across = self.args.load(em, ("B_rows", c)), self.args.load(em, ("B_columns", c))
        side = min(16, self.tile.width)
        wide = Lowering(em, self.target, side)
        contiguous = em.let(f"icmp eq i64 {across}, 1")
        whole = em.round_down(k, side)

        def strip(j: str, _: list[str]) -> None:
            count = em.smin(em.sub(n, j), side)
            source = em.at(outer.ir, start, em.mul(j, across))
            target = em.at(inner.ir, base, em.mul(j, long))

            def square(p: str, _: list[str]) -> None:
                rows = []
                for r in range(side):
                    row = em.load(outer.vector(side), em.at(outer.ir, source, em.mul(em.add(p, r), down)), outer.bytes)
                    rows.append(self.rep.encode(wide, c, row))
                for q, column in enumerate(em.transposed(rows, inner)):
                    em.store(inner.vector(side), column, em.at(inner.ir, target, em.add(em.mul(long, q), p)), inner.bytes)

            def row(p: str, _: list[str]) -> None:
                def one(q: str, _: list[str]) -> None:
                    value = em.load(outer.ir, em.at(outer.ir, source, em.add(em.mul(p, down), em.mul(q, across))), outer.bytes)
                    to = em.at(inner.ir, target, em.add(em.mul(q, long), p))
                    em.store(inner.ir, self.rep.encode(low, c, value), to, inner.bytes)

                em.loop(0, count, 1, one)

            full = em.let(f"and i1 {contiguous}, {em.let(f'icmp eq i64 {count}, {side}')}")
            squares = em.select_i64(full, whole, 0)
            em.loop(0, squares, side, square)
            em.loop(squares, k, 1, row)

        em.loop(0, n, side, strip)

    def _resolve(self) -> Emitter:
        """``resolve(args, row, rows)``: every −2 − slab in rows [row, row + rows) of ``via`` becomes first + k.

        The elements of a row of A lie side by side.
        """
        em = Emitter("resolve", "ptr %args, i64 %row, i64 %rows", attributes="#1")
        n, self._k = self.args.load(em, "n"), self.args.load(em, "k")
        self._first, self._long = self.args.load(em, "first"), self.args.load(em, "transposed_rows")
        via, via_down = self.args.pointer(em, "via"), self.args.load(em, "via_rows")
        self._b = self._bases(em)
        self._a = [(self.args.pointer(em, ("A", c)), self.args.load(em, ("A_rows", c))) for c in self.components]
        self._c = [(self.args.pointer(em, ("C", c)), self.args.load(em, ("C_rows", c))) for c in self.components]
        size = sum(s.bytes for s in self.rep.inner)
        self._prefetches = em.let(f"icmp sgt i64 {em.mul(n, em.mul(self._long, size))}, {_CACHED}")
        width = max(2, self.target.vector_bytes // 4)
        whole = em.round_down(n, width)

        def row(i: str, _: list[str]) -> None:
            codes = em.at("i32", via, em.mul(i, via_down))
            em.loop(0, whole, width, lambda j, _: self._entries(em, i, j, codes, width))
            em.loop(whole, n, 1, lambda j, _: self._entries(em, i, j, codes, 1))

        em.loop("%row", em.add("%row", "%rows"), 1, row)
        em.line("ret void")
        return em

    def _entries(self, em: Emitter, i: str, j: str, codes: str, lanes: int) -> None:
        """Resolve those of `lanes` entries from (i, j) on that hold a slab."""
        ir = I32.vector(lanes)
        waiting = em.let(f"icmp slt {ir} {em.load(ir, em.at('i32', codes, j), 4)}, {I32.constant(-1, lanes)}")
        if lanes == 1:
            em.branch(waiting, lambda: self._entry(em, i, j, codes))
            return
        mask = em.let(f"zext i{lanes} {em.let(f'bitcast <{lanes} x i1> {waiting} to i{lanes}')} to i64")
        count = em.call("ctpop.i64", "i64", ("i64", mask))

        def each(visit: Callable[[str], None]) -> None:
            def following(_: str, left: list[str]) -> list[str]:
                visit(str(em.add(j, em.call("cttz.i64", "i64", ("i64", left[0]), ("i1", "true")))))
                return [em.let(f"and i64 {left[0]}, {em.sub(left[0], 1)}")]

            em.loop(0, count, 1, following, [("i64", mask)])

        # The reads are scattered: ask for all of a vector's lines before waiting for the first.
        em.branch(self._prefetches, lambda: each(lambda column: self._prefetch(em, i, column, codes)))
        each(lambda column: self._entry(em, i, column, codes))

    def _slab(self, em: Emitter, j: str, codes: str) -> str:
        """The first k of the slab that entry j of a row holds."""
        code = em.let(f"sext i32 {em.load('i32', em.at('i32', codes, j), 4)} to i64")
        return str(em.mul(em.sub(em.let(f"sub i64 0, {code}"), 2), self.tile.slab))

    def _operands(self, em: Emitter, i: str, j: str) -> tuple[list[str], list[str]]:
        """Row i of A and row j of Bᵀ, one address a component."""
        outer, inner = self.rep.outer, self.rep.inner
        a = [em.at(outer[c].ir, p, em.mul(i, down)) for c, (p, down) in enumerate(self._a)]
        return a, [em.at(inner[c].ir, p, em.mul(j, self._long)) for c, p in enumerate(self._b)]

    def _prefetch(self, em: Emitter, i: str, j: str, codes: str) -> None:
        """Ask for the operands of entry (i, j)."""
        start = self._slab(em, j, codes)
        for rows, scalars in zip(self._operands(em, i, j), (self.rep.outer, self.rep.inner), strict=True):
            for row, s in zip(rows, scalars, strict=True):
                for offset in range(0, self.tile.slab, 64 // s.bytes):
                    em.prefetch(em.at(s.ir, row, em.add(start, offset)), write=False)

    def _entry(self, em: Emitter, i: str, j: str, codes: str) -> None:
        """``via[i, j]`` ← first + the lowest k of its slab with a_ik ⊗ b_kj = c_ij."""
        start = self._slab(em, j, codes)
        stop = em.smin(em.add(start, self.tile.slab), self._k)
        a, b = self._operands(em, i, j)
        c_place = [em.at(s.ir, p, em.add(em.mul(i, down), j)) for s, (p, down) in zip(self.rep.outer, self._c, strict=True)]

        def write(k: str | int) -> None:
            em.store("i32", em.let(f"trunc i64 {em.add(self._first, k)} to i32"), em.at("i32", codes, j), 4)

        def whole() -> None:
            low = Lowering(em, self.target, self.tile.width, infinities=self.rep.inner_infinities)
            bits = self._hits(low, a, b, self._wanted(low, c_place), start, self.tile.slab)
            write(em.add(start, em.call("cttz.i64", "i64", ("i64", bits), ("i1", "true"))))

        def part() -> None:
            best, begin = stop, start
            for width in (self.tile.width, 1):
                low = Lowering(em, self.target, width, infinities=self.rep.inner_infinities)
                wanted = self._wanted(low, c_place)
                end = em.add(begin, em.round_down(em.sub(stop, begin), width))

                def search(p: str, found: list[str], low: Lowering = low, wanted: list[str] = wanted) -> list[str]:
                    bits = self._hits(low, a, b, wanted, p, low.width)
                    hit = em.let(f"icmp ne i64 {bits}, 0")
                    none = em.let(f"icmp eq i64 {found[0]}, {stop}")
                    at = em.add(p, em.call("cttz.i64", "i64", ("i64", bits), ("i1", "false")))
                    return [em.select_i64(em.let(f"and i1 {hit}, {none}"), at, found[0])]

                best = em.loop(begin, end, width, search, [("i64", best)])[0]
                begin = str(end)
            write(best)

        em.branch(em.let(f"icmp sle i64 {em.add(start, self.tile.slab)}, {self._k}"), whole, part)

    def _hits(self, low: Lowering, a: list[str], b: list[str], wanted: list[str], p: str, steps: int) -> str:
        """One bit for each of `steps` values of k from p on: whether a⊗b is the wanted element."""
        em = low.em
        parts = [self._equal(low, a, b, wanted, em.add(p, offset)) for offset in range(0, steps, low.width)]
        if low.width == 1:
            return em.let(f"zext i1 {parts[0]} to i64")
        lanes = low.width
        while len(parts) > 1:
            every = ", ".join(f"i32 {i}" for i in range(2 * lanes))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [em.let(f"shufflevector <{lanes} x i1> {x}, <{lanes} x i1> {y}, <{2 * lanes} x i32> <{every}>") for x, y in pairs]
            lanes *= 2
        bits = em.let(f"bitcast <{lanes} x i1> {parts[0]} to i{lanes}")
        return bits if lanes == 64 else em.let(f"zext i{lanes} {bits} to i64")

    def _wanted(self, low: Lowering, places: list[str]) -> list[str]:
        """C's element in every lane, as inner components."""
        return [
            self.rep.encode(low, c, low.em.splat(low.em.load(s.ir, places[c], s.bytes), s, low.width)) for c, s in enumerate(self.rep.outer)
        ]

    def _equal(self, low: Lowering, a_row: list[str], b_row: list[str], wanted: list[str], p: str | int) -> str:
        """Whether a⊗b is the wanted element, for a vector of values of k from p on."""
        em, width = low.em, low.width
        a, b = [], []
        for c, (inner, outer) in enumerate(zip(self.rep.inner, self.rep.outer, strict=True)):
            value = em.load(outer.vector(width), em.at(outer.ir, a_row[c], p), outer.bytes)
            a.append(Value(self.rep.encode(low, c, value), inner))
            b.append(Value(em.load(inner.vector(width), em.at(inner.ir, b_row[c], p), inner.bytes), inner))
        product = low.evaluate(self.rep.mul, a, b, self.rep.inner)
        return low.all_of([low.compare("eq", s, v.name, w) for s, v, w in zip(self.rep.inner, product, wanted, strict=True)])
