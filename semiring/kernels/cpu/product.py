"""The product C ← C ⊕ A⊗B of one tile of C: packing, and the macro-kernel.

The loops follow Goto and BLIS. `Packing` copies blocks of A to panels of `rows` rows, [k][rows], and B to panels of `columns` columns,
[k][columns], as inner elements. The micro-kernel reads both contiguously, and keeps rows × vectors of C in registers over `depth` steps
of k. A panel beyond the edge repeats its last row or column, and the results there are never stored. An operand that is part of C is
packed whole before C changes ("held").
"""

from __future__ import annotations

from collections.abc import Callable

from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.cpu.exponential import ExponentialKernel
from semiring.kernels.cpu.lowering import Lowering
from semiring.kernels.cpu.micro import MicroKernel
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.hardware import Target

__all__ = ["ProductKernel"]

Index = str | int


class Packing:
    """Generates ``pack_a`` and ``pack_b`` under the prefix of a product."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str) -> None:
        self.rep, self.target, self.tile, self.prefix = rep, target, tile, prefix
        self.args = KernelArguments(len(rep.outer))

    def _function(self, name: str, parameters: str, pack: Callable[[Emitter, int], None]) -> Emitter:
        """Return the function that packs one component after the other."""
        components = range(len(self.rep.outer))
        outs = "".join(f", ptr %out{c}" for c in components)
        em = Emitter(f"{self.prefix}_{name}", f"ptr %args, {parameters}{outs}", attributes="#1")
        for c in components:
            pack(em, c)
        return em.done()

    def steps(self, em: Emitter, k: str) -> tuple[Index, Index]:
        """Return the length of a packed panel of k steps, in steps, and the step from which it holds raw elements."""
        if self.rep.kind != "exponential":
            return k, 0
        whole = em.round_up(k, self.tile.turn)
        return em.add(em.mul(whole, 2), 1), em.add(whole, 1)

    def _scale(self, em: Emitter, name: str, panel: str, to: str, lanes: int) -> None:
        """For exponentials: fill up the last vector of a panel with zeros, and encode the panel."""
        if self.rep.kind == "exponential":
            (scalar,), whole = self.rep.outer, em.round_up("%k", self.tile.turn)
            zero = scalar.literal(self.rep.zero[0])
            start, stop = em.mul("%k", lanes), em.mul(whole, lanes)
            em.loop(start, stop, 1, lambda t, _: em.put(scalar, zero, to, t))
            em.line(f"call void @{self.prefix}_{name}(ptr {to}, ptr {panel}, i64 {whole})")

    def pack_a(self) -> Emitter:
        """``pack_a(args, row, step, m, k, out…)``: rows [row, row + m) and steps [step, step + k) of A."""
        return self._function("pack_a", "i64 %row, i64 %step, i64 %m, i64 %k", self._pack_a)

    def _pack_a(self, em: Emitter, c: int) -> None:
        rows, inner, outer = self.tile.rows, self.rep.inner[c], self.rep.outer[c]
        steps, raw = self.steps(em, "%k")
        low = Lowering(em, self.target, 1)
        down, across = self.args.load(em, ("A_rows", c)), self.args.load(em, ("A_columns", c))
        corner = em.add(em.mul("%row", down), em.mul("%step", across))
        source = em.at(outer.ir, self.args.pointer(em, ("A", c)), corner)

        def panel(i: str, _: list[str]) -> None:
            begin = em.at(inner.ir, f"%out{c}", em.mul(i, steps))
            to = em.at(inner.ir, begin, em.mul(raw, rows))
            last = em.sub(em.sub("%m", i), 1)
            starts = [em.at(outer.ir, source, em.mul(em.add(i, em.smin(r, last)), down)) for r in range(rows)]

            def step(k: str, _: list[str]) -> None:
                offset, place = em.mul(k, across), em.at(inner.ir, to, em.mul(k, rows))
                for r in range(rows):
                    value = em.get(outer, starts[r], offset)
                    em.put(inner, self.rep.encode(low, c, value), place, r)

            em.loop(0, "%k", 1, step)
            self._scale(em, "scale_a", begin, to, rows)

        em.loop(0, "%m", rows, panel)

    def pack_b(self) -> Emitter:
        """``pack_b(args, step, k, out…)``: steps [step, step + k) of all columns of B."""
        return self._function("pack_b", "i64 %step, i64 %k", self._pack_b)

    def _pack_b(self, em: Emitter, c: int) -> None:
        columns, inner, outer = self.tile.columns, self.rep.inner[c], self.rep.outer[c]
        steps, raw = self.steps(em, "%k")
        n, down, across = (self.args.load(em, x) for x in ("n", ("B_rows", c), ("B_columns", c)))
        source = em.at(outer.ir, self.args.pointer(em, ("B", c)), em.mul("%step", down))
        contiguous = em.let(f"icmp eq i64 {across}, 1")

        def panel(j: str, _: list[str]) -> None:
            begin = em.at(inner.ir, f"%out{c}", em.mul(j, steps))
            to = em.at(inner.ir, begin, em.mul(raw, columns))
            left = em.sub(n, j)
            start = em.at(outer.ir, source, em.mul(j, across))

            def rows(width: int) -> None:
                low, last = Lowering(em, self.target, width), em.sub(left, 1)

                def step(k: str, _: list[str]) -> None:
                    row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))

                    def copy(q: str | int, offset: str | int) -> None:
                        value = em.get(outer, row, offset, width)
                        value = self.rep.encode(low, c, value)
                        em.put(inner, value, place, q, width)

                    if width > 1:
                        for q in range(0, columns, width):
                            copy(q, q)
                    else:
                        em.loop(0, columns, 1, lambda q, _: copy(q, em.mul(em.smin(q, last), across)))

                em.loop(0, "%k", 1, step)

            full = em.let(f"icmp sge i64 {left}, {columns}")
            em.branch(em.let(f"and i1 {full}, {contiguous}"), lambda: rows(self.tile.width), lambda: rows(1))
            self._scale(em, "scale_b", begin, to, columns)

        em.loop(0, n, columns, panel)


class ProductKernel:
    """Generates ``product(args)``, or ``product_witness(args)``, which calls the functions of `WitnessKernel`."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, *, witness: bool) -> None:
        self.rep, self.tile, self.witness = rep, tile, witness
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))
        self.name = "product_witness" if witness else "product"
        self._packing = Packing(rep, target, tile, self.name)
        self._kernel = MicroKernel(rep, target, tile, self.name, witness=witness)
        self._exponentials = ExponentialKernel(rep, target, tile, self.name) if rep.kind == "exponential" else None

    def functions(self) -> list[Emitter]:
        """Return all functions of the kernel."""
        functions = [self._packing.pack_a(), self._packing.pack_b(), *self._kernel.functions(), self._macro()]
        return functions + ([] if self._exponentials is None else self._exponentials.functions())

    def _macro(self) -> Emitter:
        """``product(args)``."""
        rows, columns, depth, block = self.tile.rows, self.tile.columns, self.tile.depth, self.tile.block
        em = Emitter(self.name, ENTRY)
        m, n, k = (self.args.load(em, x) for x in ("m", "n", "k"))
        hold_a, hold_b, fresh = (em.let(f"icmp ne i64 {self.args.load(em, x)}, 0") for x in ("hold_a", "hold_b", "fresh"))
        if self.witness:
            em.branch(hold_a, lambda: self._copy_a(em, m, k))
            hold_a = "false"
        m_padded, n_padded = em.round_up(m, rows), em.round_up(n, columns)
        depths = em.select_i64(hold_a, k, em.smin(k, depth)), em.select_i64(hold_b, k, em.smin(k, depth))
        heights = em.select_i64(hold_a, m_padded, block)
        base_a = em.side_by_side(self.args.pointer(em, "packed_a"), self.rep.inner, em.mul(depths[0], heights))
        base_b = em.side_by_side(self.args.pointer(em, "packed_b"), self.rep.inner, em.mul(depths[1], n_padded))

        def before(p: str) -> Index:
            """Return the steps of packed panels before step p."""
            if self.rep.kind != "exponential":
                return p
            return em.mul(em.let(f"sdiv i64 {p}, {depth}"), self.tile.panel_steps(depth))

        def pack_a(i: Index, p: Index, mc: Index, kc: Index, offset: Index) -> None:
            outs = "".join(f", ptr {em.at(self.rep.inner[c].ir, base_a[c], offset)}" for c in self.components)
            em.line(f"call void @{self.name}_pack_a(ptr %args, i64 {i}, i64 {p}, i64 {mc}, i64 {kc}{outs})")

        def pack_b(p: Index, kc: Index, offset: Index) -> None:
            outs = "".join(f", ptr {em.at(self.rep.inner[c].ir, base_b[c], offset)}" for c in self.components)
            em.line(f"call void @{self.name}_pack_b(ptr %args, i64 {p}, i64 {kc}{outs})")

        def everything_of_a() -> None:
            em.loop(0, k, depth, lambda p, _: pack_a(0, p, m, em.smin(em.sub(k, p), depth), em.mul(before(p), m_padded)))

        def everything_of_b() -> None:
            em.loop(0, k, depth, lambda p, _: pack_b(p, em.smin(em.sub(k, p), depth), em.mul(before(p), n_padded)))

        em.branch(hold_a, everything_of_a)
        em.branch(hold_b, everything_of_b)
        em.branch(fresh, lambda: self._clear(em, m, n))
        down = [self.args.load(em, ("C_rows", c)) for c in self.components]
        c_pointers = [self.args.pointer(em, ("C", c)) for c in self.components]
        via, via_down = (self.args.pointer(em, "via"), self.args.load(em, "via_rows")) if self.witness else ("null", 0)

        def depth_slab(p: str, _: list[str]) -> None:
            kc = em.smin(em.sub(k, p), depth)
            steps = self._packing.steps(em, kc)[0]
            b_offset = em.select_i64(hold_b, em.mul(before(p), n_padded), 0)
            em.branch(hold_b, lambda: None, lambda: pack_b(p, kc, 0))

            def row_block(i: str, _: list[str]) -> None:
                mc = em.smin(em.sub(m, i), block)
                a_offset = em.select_i64(hold_a, em.add(em.mul(before(p), m_padded), em.mul(i, steps)), 0)
                em.branch(hold_a, lambda: None, lambda: pack_a(i, p, mc, kc, 0))

                def column_panel(j: str, _: list[str]) -> None:
                    nr = em.smin(em.sub(n, j), columns)
                    b_panel = em.add(b_offset, em.mul(j, steps))

                    def row_panel(r: str, _: list[str]) -> None:
                        mr = em.smin(em.sub(mc, r), rows)
                        row = em.add(i, r)
                        parts = ""
                        for c, (s, o) in enumerate(zip(self.rep.inner, self.rep.outer, strict=True)):
                            a = em.at(s.ir, base_a[c], em.add(a_offset, em.mul(r, steps)))
                            b = em.at(s.ir, base_b[c], b_panel)
                            to = em.at(o.ir, c_pointers[c], em.add(em.mul(row, down[c]), j))
                            parts += f", ptr {a}, ptr {b}, ptr {to}"
                        v = em.at("i32", via, em.add(em.mul(row, via_down), j)) if self.witness else "null"
                        em.line(f"call void @{self.name}_micro(ptr %args{parts}, ptr {v}, i64 {kc}, i64 {mr}, i64 {nr}, i64 {p})")

                    if self._exponentials is not None:
                        self._exponentials.begin_columns(em)
                    em.loop(0, mc, rows, row_panel)

                em.loop(0, n, columns, column_panel)

            em.loop(0, m, block, row_block)
            if self.witness:
                panels = "".join(f", ptr {em.at(s.ir, b, b_offset)}" for b, s in zip(base_b, self.rep.inner, strict=True))
                em.line(f"call void @resolve(ptr %args, i64 {p}, i64 {kc}{panels})")

        em.loop(0, k, depth, depth_slab)
        return em.done()

    def _copy_a(self, em: Emitter, m: str, k: str) -> None:
        """Replace A, which is C, by a copy: winners are looked up in A's rows after C has changed."""
        copies = em.side_by_side(self.args.pointer(em, "packed_c"), self.rep.outer, em.mul(m, k))
        for c, (s, copy) in enumerate(zip(self.rep.outer, copies, strict=True)):
            start, down = self.args.pointer(em, ("A", c)), self.args.load(em, ("A_rows", c))

            def row(i: str, _: list[str]) -> None:
                source, to = em.at(s.ir, start, em.mul(i, down)), em.at(s.ir, copy, em.mul(i, k))

                def move(p: str, lanes: int) -> None:
                    em.put(s, em.get(s, source, p, lanes), to, p, lanes)

                em.by_vectors(k, self.tile.width, move)

            em.loop(0, m, 1, row)
            em.store("ptr", copy, self.args.place(em, ("A", c)), 8)
            em.store("i64", k, self.args.place(em, ("A_rows", c)), 8)

    def _clear(self, em: Emitter, m: str, n: str) -> None:
        """C ← 0."""
        for c, (s, zero) in enumerate(zip(self.rep.outer, self.rep.zero, strict=True)):
            start, down = self.args.pointer(em, ("C", c)), self.args.load(em, ("C_rows", c))

            def row(i: str, _: list[str]) -> None:
                at = em.at(s.ir, start, em.mul(i, down))
                em.loop(0, n, 1, lambda j, _: em.put(s, s.literal(zero), at, j))

            em.loop(0, m, 1, row)
