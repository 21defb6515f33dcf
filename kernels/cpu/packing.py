"""Packing: A in panels of `rows` rows, [k][rows], and B in panels of `columns` columns, [k][columns], as inner elements.

All strides end here: the micro-kernel reads both operands contiguously. Where a panel hangs over the edge its last row or column is
repeated; what is computed from that is never stored.
"""

from __future__ import annotations

from collections.abc import Callable

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.cpu.lowering import Lowering
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.tile import Tile

__all__ = ["Packing"]


class Packing:
    """Generates ``pack_a`` and ``pack_b`` under the prefix of a product."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str) -> None:
        self.rep, self.target, self.tile, self.prefix = rep, target, tile, prefix
        self.args = Arguments(len(rep.outer))

    def _function(self, name: str, parameters: str, pack: Callable[[Emitter, int], None]) -> Emitter:
        """The function that packs one component after the other."""
        components = range(len(self.rep.outer))
        outs = "".join(f", ptr %out{c}" for c in components)
        em = Emitter(f"{self.prefix}_{name}", f"ptr %args, {parameters}{outs}", attributes="#1")
        for c in components:
            pack(em, c)
        em.line("ret void")
        return em

    def pack_a(self) -> Emitter:
        """``pack_a(args, row, step, m, k, out…)``: rows [row, row + m) and steps [step, step + k) of A."""
        return self._function("pack_a", "i64 %row, i64 %step, i64 %m, i64 %k", self._pack_a)

    def _pack_a(self, em: Emitter, c: int) -> None:
        rows, inner, outer = self.tile.rows, self.rep.inner[c], self.rep.outer[c]
        low = Lowering(em, self.target, 1)
        down, across = self.args.load(em, ("A_rows", c)), self.args.load(em, ("A_columns", c))
        corner = em.add(em.mul("%row", down), em.mul("%step", across))
        source = em.at(outer.ir, self.args.pointer(em, ("A", c)), corner)

        def panel(i: str, _: list[str]) -> None:
            to = em.at(inner.ir, f"%out{c}", em.mul(i, "%k"))
            last = em.sub(em.sub("%m", i), 1)
            starts = [em.at(outer.ir, source, em.mul(em.add(i, em.smin(r, last)), down)) for r in range(rows)]

            def step(k: str, _: list[str]) -> None:
                offset, place = em.mul(k, across), em.at(inner.ir, to, em.mul(k, rows))
                for r in range(rows):
                    value = em.load(outer.ir, em.at(outer.ir, starts[r], offset), outer.bytes)
                    em.store(inner.ir, self.rep.encode(low, c, value), em.at(inner.ir, place, r), inner.bytes)

            em.loop(0, "%k", 1, step)

        em.loop(0, "%m", rows, panel)

    def pack_b(self) -> Emitter:
        """``pack_b(args, step, k, out…)``: steps [step, step + k) of all columns of B."""
        return self._function("pack_b", "i64 %step, i64 %k", self._pack_b)

    def _pack_b(self, em: Emitter, c: int) -> None:
        columns, inner, outer = self.tile.columns, self.rep.inner[c], self.rep.outer[c]
        n, down, across = (self.args.load(em, x) for x in ("n", ("B_rows", c), ("B_columns", c)))
        source = em.at(outer.ir, self.args.pointer(em, ("B", c)), em.mul("%step", down))
        contiguous = em.let(f"icmp eq i64 {across}, 1")

        def panel(j: str, _: list[str]) -> None:
            to = em.at(inner.ir, f"%out{c}", em.mul(j, "%k"))
            left = em.sub(n, j)
            start = em.at(outer.ir, source, em.mul(j, across))

            def rows(width: int) -> None:
                low, last = Lowering(em, self.target, width), em.sub(left, 1)

                def step(k: str, _: list[str]) -> None:
                    row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))

                    def copy(q: str | int, offset: str | int) -> None:
                        value = em.load(outer.vector(width), em.at(outer.ir, row, offset), outer.bytes)
                        value = self.rep.encode(low, c, value)
                        em.store(inner.vector(width), value, em.at(inner.ir, place, q), inner.bytes)

                    if width > 1:
                        for q in range(0, columns, width):
                            copy(q, q)
                    else:
                        em.loop(0, columns, 1, lambda q, _: copy(q, em.mul(em.smin(q, last), across)))

                em.loop(0, "%k", 1, step)

            full = em.let(f"icmp sge i64 {left}, {columns}")
            em.branch(em.let(f"and i1 {full}, {contiguous}"), lambda: rows(self.tile.width), lambda: rows(1))

        em.loop(0, n, columns, panel)
