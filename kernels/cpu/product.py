"""The product kernel C ← C ⊕ A⊗B for one tile of C: packing, the register-tiled micro-kernel, and the loops around it.

The loops are those of Goto and BLIS: panels of B and blocks of A are packed contiguously (there the strides end), the micro-kernel
keeps rows × vectors of C in registers over `depth` steps of k starting from ⊕'s zero, and merges once with C. An operand that is
part of C is packed whole before C changes ("held").

A witness product compares with C every `slab` steps and, where C improves strictly, stores which slab won as −2 − slab in
`via`; `witness.py` then finds the k inside the slab. Ties keep the old value, and among new candidates the lowest k, because
only strict improvements count and slabs come in order.
"""

from __future__ import annotations

from collections.abc import Callable

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.cpu.lowering import Broadcast, Lowering, Value
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.cpu.update import update

__all__ = ["ProductKernel"]

Index = str | int


class ProductKernel:
    """Generates ``product(args)``, with or without a witness."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, *, witness: bool) -> None:
        self.rep, self.target, self.tile, self.witness = rep, target, tile, witness
        self.components = range(len(rep.outer))
        self.args = Arguments(len(rep.outer))
        self.name = "product_witness" if witness else "product"
        self.declarations: set[str] = set()

    def ir(self) -> str:
        """All functions of the kernel."""
        emitters = [self._pack_a(), self._pack_b(), self._merge_edge(), self._micro(), self._macro()]
        for em in emitters:
            self.declarations |= em.declarations
        return "\n".join(em.text() for em in emitters)

    def _lowering(self, em: Emitter, width: int, *, inner: bool, fused: bool = False) -> Lowering:
        scalars = set(self.rep.inner)
        ones = self.args.ones(em, scalars, width) if fused and self.target.fma_add else None
        infinities = self.rep.inner_infinities if inner else self.rep.infinities
        return Lowering(em, self.target, width, ones=ones, infinities=infinities)

    # Packing: A in panels of `rows` rows, [k][rows]; B in panels of `columns` columns, [k][columns].

    def _pack_a(self) -> Emitter:
        """``pack_a(args, row, step, m, k, out…)``: rows [row, row + m) and steps [step, step + k) of A."""
        rows = self.tile.rows
        outs = "".join(f", ptr %out{c}" for c in self.components)
        em = Emitter(f"{self.name}_pack_a", f"ptr %args, i64 %row, i64 %step, i64 %m, i64 %k{outs}", attributes="#1")
        low = Lowering(em, self.target, 1)
        for c in self.components:
            inner, outer = self.rep.inner[c], self.rep.outer[c]
            down, across = self.args.load(em, (f"A.rows", c)), self.args.load(em, (f"A.columns", c))
            corner = em.add(em.mul("%row", down), em.mul("%step", across))
            source = em.at(outer.ir, self.args.pointer(em, ("A", c)), corner)

            def panel(i: str, _: list[str]) -> None:
                to = em.at(inner.ir, f"%out{c}", em.mul(i, "%k"))
                last = em.sub(em.sub("%m", i), 1)
                # Rows beyond the edge repeat the last one: they are computed and never stored.
                starts = [em.at(outer.ir, source, em.mul(em.add(i, em.smin(r, last)), down)) for r in range(rows)]

                def step(k: str, _: list[str]) -> None:
                    offset, place = em.mul(k, across), em.at(inner.ir, to, em.mul(k, rows))
                    for r in range(rows):
                        value = em.load(outer.ir, em.at(outer.ir, starts[r], offset), outer.bytes)
                        em.store(inner.ir, self.rep.encode(low, c, value), em.at(inner.ir, place, r), inner.bytes)

                em.loop(0, "%k", 1, step)

            em.loop(0, "%m", rows, panel)
        em.line("ret void")
        return em

    def _pack_b(self) -> Emitter:
        """``pack_b(args, step, k, out…)``: steps [step, step + k) of all columns of B."""
        width, columns = self.tile.width, self.tile.columns
        outs = "".join(f", ptr %out{c}" for c in self.components)
        em = Emitter(f"{self.name}_pack_b", f"ptr %args, i64 %step, i64 %k{outs}", attributes="#1")
        wide, single = Lowering(em, self.target, width), Lowering(em, self.target, 1)
        n = self.args.load(em, "n")
        for c in self.components:
            inner, outer = self.rep.inner[c], self.rep.outer[c]
            down, across = self.args.load(em, (f"B.rows", c)), self.args.load(em, (f"B.columns", c))
            source = em.at(outer.ir, self.args.pointer(em, ("B", c)), em.mul("%step", down))

            def panel(j: str, _: list[str]) -> None:
                to = em.at(inner.ir, f"%out{c}", em.mul(j, "%k"))
                left = em.sub(n, j)
                start = em.at(outer.ir, source, em.mul(j, across))

                def vectors() -> None:
                    def step(k: str, _: list[str]) -> None:
                        row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))
                        for v in range(self.tile.vectors):
                            value = em.load(outer.vector(width), em.at(outer.ir, row, v * width), outer.bytes)
                            value = self.rep.encode(wide, c, value)
                            em.store(inner.vector(width), value, em.at(inner.ir, place, v * width), inner.bytes)

                    em.loop(0, "%k", 1, step)

                def elements() -> None:
                    last = em.sub(left, 1)

                    def step(k: str, _: list[str]) -> None:
                        row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))

                        def one(q: str, _: list[str]) -> None:
                            offset = em.mul(em.smin(q, last), across)
                            value = em.load(outer.ir, em.at(outer.ir, row, offset), outer.bytes)
                            em.store(inner.ir, self.rep.encode(single, c, value), em.at(inner.ir, place, q), inner.bytes)

                        em.loop(0, columns, 1, one)

                    em.loop(0, "%k", 1, step)

                full = em.let(f"icmp sge i64 {left}, {columns}")
                dense = em.let(f"icmp eq i64 {across}, 1")
                em.branch(em.let(f"and i1 {full}, {dense}"), vectors, elements)

            em.loop(0, n, columns, panel)
        em.line("ret void")
        return em

    # Merging a register tile with C.

    def _merge(self, em: Emitter, low: Lowering, found: list[str], places: list[str], via: str, code: str) -> None:
        """C ← C ⊕ found at `places`, one a component; where that improves C strictly, `via` ← code."""
        threshold = self._threshold(em, low.width) if self.rep.kind == "infinity" else ""
        candidate = [
            Value(self.rep.decode(low, c, found[c], threshold), s) for c, s in enumerate(self.rep.outer)
        ]
        update(low, self.rep, candidate, places, (via, code) if self.witness else None)

    def _threshold(self, em: Emitter, width: int) -> str:
        scalar = self.rep.inner[0]
        word = self.args.load(em, "threshold")
        if scalar.bytes < 8:
            word = em.let(f"trunc i64 {word} to {scalar.ir}")
        return em.splat(word, scalar, width)

    def _merge_edge(self) -> Emitter:
        """``merge_edge(args, tile…, C…, via, rows, columns, code)``: a tile that hangs over C's edge, from memory."""
        tiles = "".join(f", ptr %tile{c}" for c in self.components)
        places = "".join(f", ptr %C{c}" for c in self.components)
        em = Emitter(
            f"{self.name}_merge_edge", f"ptr %args{tiles}{places}, ptr %via, i64 %rows, i64 %columns, i32 %code", attributes="#1"
        )
        width, columns = self.tile.width, self.tile.columns
        wide, single = (self._lowering(em, w, inner=False) for w in (width, 1))
        down = [self.args.load(em, ("C.rows", c)) for c in self.components]
        via_down = self.args.load(em, "via_rows")
        vectors_end = em.mul(em.let(f"sdiv i64 %columns, {width}"), width)

        def row(i: str, _: list[str]) -> None:
            def merge(low: Lowering) -> Callable[[str, list[str]], None]:
                def at(j: str, _: list[str]) -> None:
                    found, to = [], []
                    for c in self.components:
                        inner = self.rep.inner[c]
                        place = em.at(inner.ir, f"%tile{c}", em.add(em.mul(i, columns), j))
                        found.append(em.load(inner.vector(low.width), place, inner.bytes))
                        to.append(em.at(self.rep.outer[c].ir, f"%C{c}", em.add(em.mul(i, down[c]), j)))
                    via = em.at("i32", "%via", em.add(em.mul(i, via_down), j)) if self.witness else ""
                    self._merge(em, low, found, to, via, "%code")

                return at

            em.loop(0, vectors_end, width, merge(wide))
            em.loop(vectors_end, "%columns", 1, merge(single))

        em.loop(0, "%rows", 1, row)
        em.line("ret void")
        return em

    # The micro-kernel.

    def _micro(self) -> Emitter:
        """``micro(args, A…, B…, C…, via, k, rows, columns, step)``: one register tile of C over k packed steps."""
        tile, width, rows, vectors = self.tile, self.tile.width, self.tile.rows, self.tile.vectors
        pointers = "".join(f", ptr noalias readonly %A{c}, ptr noalias readonly %B{c}, ptr %C{c}" for c in self.components)
        em = Emitter(
            f"{self.name}_micro", f"ptr %args{pointers}, ptr %via, i64 %k, i64 %rows, i64 %columns, i64 %step", attributes="#1"
        )
        spill = [
            em.let(f"alloca [{rows * tile.columns} x {s.ir}], align 64") for s in self.rep.inner
        ]
        low = self._lowering(em, width, inner=True, fused=True)
        outer = self._lowering(em, width, inner=False)
        down = [self.args.load(em, ("C.rows", c)) for c in self.components]
        via_down = self.args.load(em, "via_rows") if self.witness else 0
        cells = [(i, j) for i in range(rows) for j in range(vectors)]
        full = em.let(
            f"and i1 {em.let(f'icmp eq i64 %rows, {rows}')}, {em.let(f'icmp eq i64 %columns, {tile.columns}')}"
        )

        def place(c: int, i: int, j: int) -> str:
            return em.at(self.rep.outer[c].ir, f"%C{c}", em.add(em.mul(down[c], i), j * width))

        def prefetch() -> None:
            for c in self.components:
                lanes = max(1, 64 // (width * self.rep.outer[c].bytes))
                for i in range(rows):
                    for j in range(0, vectors, lanes):
                        em.prefetch(place(c, i, j), write=True)

        em.branch(full, prefetch)
        zeros = [
            self.rep.inner[c].constant(self.rep.inner_zero[c], width) for _ in cells for c in self.components
        ]
        carried = [(self.rep.inner[c].vector(width), z) for z, c in zip(zeros, [c for _ in cells for c in self.components], strict=True)]

        def step(k: str, accumulators: list[str]) -> list[str]:
            a_row, b_row = em.mul(k, rows), em.mul(k, tile.columns)
            b = []
            for j in range(vectors):
                parts = []
                for c, s in enumerate(self.rep.inner):
                    at = em.at(s.ir, em.at(s.ir, f"%B{c}", b_row), j * width)
                    parts.append(Value(em.load(s.vector(width), at, s.bytes), s))
                b.append(parts)
            out: list[str] = []
            for i in range(rows):
                a = self._operand(em, low, [em.at(s.ir, em.at(s.ir, f"%A{c}", a_row), i) for c, s in enumerate(self.rep.inner)])
                for j in range(vectors):
                    at = (i * vectors + j) * len(self.rep.inner)
                    acc = [Value(v, s) for v, s in zip(accumulators[at:], self.rep.inner, strict=False)]
                    out += self._update(low, acc, a, b[j])
            return out

        def merge(found: list[str], code: str) -> None:
            width_of = len(self.rep.inner)

            def inside() -> None:
                for q, (i, j) in enumerate(cells):
                    values = found[q * width_of : (q + 1) * width_of]
                    via = em.at("i32", "%via", em.add(em.mul(via_down, i), j * width)) if self.witness else ""
                    self._merge(em, outer, values, [place(c, i, j) for c in self.components], via, code)

            def edge() -> None:
                for q, (i, j) in enumerate(cells):
                    for c, s in enumerate(self.rep.inner):
                        to = em.at(s.ir, spill[c], i * tile.columns + j * width)
                        em.store(s.vector(width), found[q * width_of + c], to, s.bytes)
                tiles = "".join(f", ptr {p}" for p in spill)
                to_c = "".join(f", ptr %C{c}" for c in self.components)
                em.line(f"call void @{self.name}_merge_edge(ptr %args{tiles}{to_c}, ptr %via, i64 %rows, i64 %columns, i32 {code})")

            em.branch(full, inside, edge)

        if self.witness:

            def slab(start: str, _: list[str]) -> None:
                stop = em.smin(em.add(start, tile.slab), "%k")
                number = em.let(f"sdiv i64 {em.add('%step', start)}, {tile.slab}")
                code = em.let(f"trunc i64 {em.sub(-2, number)} to i32")
                merge(em.loop(start, stop, 1, step, carried), code)

            em.loop(0, "%k", tile.slab, slab)
        else:
            merge(em.loop(0, "%k", 1, step, carried), "0")
        em.line("ret void")
        return em

    def _operand(self, em: Emitter, low: Lowering, pointers: list[str]) -> list[Broadcast | Value]:
        """A's scalars: left in memory where each use can broadcast them for free, else loaded once for the row."""
        lazy = [Broadcast(p, s) for p, s in zip(pointers, self.rep.inner, strict=True)]
        return [x if low.embeds(self.rep.mul, c, self.rep.inner) else low.convert(x, x.scalar) for c, x in enumerate(lazy)]

    def _update(self, low: Lowering, acc: list[Value], a: list[Broadcast | Value], b: list[Value]) -> list[str]:
        """acc ⊕ a⊗b."""
        if len(acc) == 1:
            fused = low.multiply_accumulate(self.rep.add[0], self.rep.mul[0], acc[0], a[0], b[0])
            if fused is not None:
                return [fused]
        product = low.evaluate(self.rep.mul, a, b, self.rep.inner)
        ones, low.ones = low.ones, {}
        total = low.evaluate(self.rep.add, acc, product, self.rep.inner)
        low.ones = ones
        return [v.name for v in total]

    # The loops around it.

    def _macro(self) -> Emitter:
        """``product(args)``."""
        tile, rows, columns, depth, block = self.tile, self.tile.rows, self.tile.columns, self.tile.depth, self.tile.block
        em = Emitter(self.name, "ptr %args")
        m, n, k = (self.args.load(em, x) for x in ("m", "n", "k"))
        hold_a, hold_b, fresh = (
            em.let(f"icmp ne i64 {self.args.load(em, x)}, 0") for x in ("hold_a", "hold_b", "fresh")
        )
        m_padded, n_padded = em.round_up(m, rows), em.round_up(n, columns)
        packed_a, packed_b = self.args.pointer(em, "packed_a"), self.args.pointer(em, "packed_b")
        depths = em.select_i64(hold_a, k, em.smin(k, depth)), em.select_i64(hold_b, k, em.smin(k, depth))
        heights = em.select_i64(hold_a, m_padded, block)
        base_a, base_b = [packed_a], [packed_b]
        for c in list(self.components)[:-1]:
            size = self.rep.inner[c].bytes
            base_a.append(em.at("i8", base_a[-1], em.align64(em.mul(em.mul(depths[0], heights), size))))
            base_b.append(em.at("i8", base_b[-1], em.align64(em.mul(em.mul(depths[1], n_padded), size))))

        def pack_a(i: Index, p: Index, mc: Index, kc: Index, offset: Index) -> None:
            outs = "".join(f", ptr {em.at(self.rep.inner[c].ir, base_a[c], offset)}" for c in self.components)
            em.line(f"call void @{self.name}_pack_a(ptr %args, i64 {i}, i64 {p}, i64 {mc}, i64 {kc}{outs})")

        def pack_b(p: Index, kc: Index, offset: Index) -> None:
            outs = "".join(f", ptr {em.at(self.rep.inner[c].ir, base_b[c], offset)}" for c in self.components)
            em.line(f"call void @{self.name}_pack_b(ptr %args, i64 {p}, i64 {kc}{outs})")

        def everything_of_a() -> None:
            em.loop(0, k, depth, lambda p, _: pack_a(0, p, m, em.smin(em.sub(k, p), depth), em.mul(p, m_padded)))

        def everything_of_b() -> None:
            em.loop(0, k, depth, lambda p, _: pack_b(p, em.smin(em.sub(k, p), depth), em.mul(p, n_padded)))

        em.branch(hold_a, everything_of_a)
        em.branch(hold_b, everything_of_b)
        em.branch(fresh, lambda: self._clear(em, m, n))
        down = [self.args.load(em, ("C.rows", c)) for c in self.components]
        c_pointers = [self.args.pointer(em, ("C", c)) for c in self.components]
        via, via_down = (self.args.pointer(em, "via"), self.args.load(em, "via_rows")) if self.witness else ("null", 0)

        def depth_slab(p: str, _: list[str]) -> None:
            kc = em.smin(em.sub(k, p), depth)
            b_offset = em.select_i64(hold_b, em.mul(p, n_padded), 0)
            em.branch(hold_b, lambda: None, lambda: pack_b(p, kc, 0))

            def row_block(i: str, _: list[str]) -> None:
                mc = em.smin(em.sub(m, i), block)
                a_offset = em.select_i64(hold_a, em.add(em.mul(p, m_padded), em.mul(i, kc)), 0)
                em.branch(hold_a, lambda: None, lambda: pack_a(i, p, mc, kc, 0))

                def column_panel(j: str, _: list[str]) -> None:
                    nr = em.smin(em.sub(n, j), columns)
                    b_panel = em.add(b_offset, em.mul(j, kc))

                    def row_panel(r: str, _: list[str]) -> None:
                        mr = em.smin(em.sub(mc, r), rows)
                        row = em.add(i, r)
                        parts = ""
                        for c, (s, o) in enumerate(zip(self.rep.inner, self.rep.outer, strict=True)):
                            a = em.at(s.ir, base_a[c], em.add(a_offset, em.mul(r, kc)))
                            b = em.at(s.ir, base_b[c], b_panel)
                            to = em.at(o.ir, c_pointers[c], em.add(em.mul(row, down[c]), j))
                            parts += f", ptr {a}, ptr {b}, ptr {to}"
                        v = em.at("i32", via, em.add(em.mul(row, via_down), j)) if self.witness else "null"
                        em.line(
                            f"call void @{self.name}_micro(ptr %args{parts}, ptr {v}, i64 {kc}, i64 {mr}, i64 {nr}, i64 {p})"
                        )

                    em.loop(0, mc, rows, row_panel)

                em.loop(0, n, columns, column_panel)

            em.loop(0, m, block, row_block)

        em.loop(0, k, depth, depth_slab)
        em.line("ret void")
        return em

    def _clear(self, em: Emitter, m: str, n: str) -> None:
        """C ← 0."""
        for c, scalar in enumerate(self.rep.outer):
            start, down = self.args.pointer(em, ("C", c)), self.args.load(em, ("C.rows", c))

            def row(i: str, _: list[str]) -> None:
                at = em.at(scalar.ir, start, em.mul(i, down))
                em.loop(0, n, 1, lambda j, _: em.store(scalar.ir, scalar.literal(self.rep.zero[c]), em.at(scalar.ir, at, j), scalar.bytes))

            em.loop(0, m, 1, row)
