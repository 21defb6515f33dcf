"""Fronts of a sparse elimination: ``fronts(args)`` assembles fronts, eliminates small ones, and keeps the panels.

The front of a supernode is a dense matrix of the supernode's w vertices and the r adjacent ones. It sums the edges between these w and all
w + r vertices, and the children's Schur complements, r × r each, at their rows and columns (Duff and Reid, 1983). After the first w
vertices are eliminated, the upper panel is D* [I U], the lower one is [I; L] D*, both with D*, and the rest is the Schur complement for the
parent. Supernodes come in postorder, so complements form a stack: the children's complements are on top, and the new one replaces the first
child's.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

from semiring.kernels.cpu.arguments import STATUS, Arguments, KernelArguments
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, constants, load_elements, store_elements
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["FRONT_STATUS", "FrontArrays", "FrontKernel", "FrontWords"]


FrontWords = namedtuple(
    "FrontWords",
    "first last whole reflexive columns row_starts rows panel_starts child_starts children entry_starts entry_rows entry_columns local "
    "complements threshold status",
    defaults=(-1,),
)
"""The arguments, before `FrontArrays` for each component; the arrays up to `entry_columns` are the fields of `Supernodes`.

The kernel processes supernodes first … last − 1; only the last one may have children before `first`. With `whole` = 0 a front is only
assembled. `local` has room for n numbers, and `complements` for an address per component and supernode. `status` becomes the place of a
divergent pivot."""

FrontArrays = namedtuple("FrontArrays", "weights stack upper lower")
"""The addresses of one component: the weights of the edges in order, the stack, and the panels."""

FRONT_STATUS = FrontWords._fields.index("status")  # the position of the answer


class FrontKernel:
    """Generates ``fronts_close`` or ``fronts_eliminate``, which call the kernel of a pivot block."""

    def __init__(self, rep: Representation, target: Target, width: int, name: str) -> None:
        self.rep, self.width, self.pivot = rep, width, name.removeprefix("fronts_")
        self.components = range(len(rep.outer))
        self.em = em = Emitter(name, ENTRY)
        self.low = {w: Lowering(em, target, w, infinities=rep.infinities) for w in (1, width)}
        self.args = Arguments(FrontWords, FrontArrays, len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Return the function."""
        em, args = self.em, self.args
        self.x, arrays = args.words(em, "first last whole reflexive threshold"), args.addresses(em)
        self.weights, stack, self.upper, self.lower = arrays.values()
        self.tops = [em.reserve("ptr") for _ in self.components]
        for start, top in zip(stack, self.tops, strict=True):
            em.store("ptr", start, top, 8)
        self.words = em.let(f"alloca [{len(KernelArguments(len(self.components)).index)} x i64], align 64")
        with em.each(self.x["first"], self.x["last"]) as s:
            self._supernode(s)
        return [em.done()]

    def _word(self, array: str, i: str | int) -> str:
        return self.em.get(I64, self.x[array], i)

    def _between(self, array: str, s: str) -> tuple[str, str]:
        return self._word(array, s), self._word(array, self.em.add(s, 1))

    def _supernode(self, s: str) -> None:
        em = self.em
        (begin, end), (rows, rows_end) = self._between("columns", s), self._between("row_starts", s)
        w, r = str(em.sub(end, begin)), str(em.sub(rows_end, rows))
        m = str(em.add(w, r))
        front = [em.load("ptr", top, 8) for top in self.tops]
        self._assemble(s, (begin, w, rows, r, m), front)
        with em.when(em.let(f"icmp ne i64 {self.x['whole']}, 0")):
            self._eliminate(begin, w, m, front)
            self._keep(self._word("panel_starts", s), w, m, front)
            self._leave(s, w, r, m, front)

    def _assemble(self, s: str, sizes: tuple[str, str, str, str, str], front: list[str]) -> None:
        """Emit the ⊕ of a supernode's edges and of its children's Schur complements."""
        em, rep, (begin, w, rows, r, m) = self.em, self.rep, sizes
        single, local = self.low[1], self.x["local"]

        def add(place: str | int, arrays: Sequence[str], i: str | int) -> None:
            element, old = (load_elements(single, rep.outer, *there) for there in ((arrays, i), (front, place)))
            store_elements(single, rep.outer, front, place, single.evaluate(rep.add, old, element, rep.outer))

        for i, lanes in em.by_vectors(em.mul(m, m), self.width):
            store_elements(self.low[lanes], rep.outer, front, i, constants(self.low[lanes], rep.outer, rep.zero))
        with em.each(0, w) as i:
            em.put(I64, i, local, em.add(begin, i))
        with em.each(0, r) as i:
            em.put(I64, str(em.add(w, i)), local, self._word("rows", em.add(rows, i)))
        with em.when(em.let(f"icmp ne i64 {self.x['reflexive']}, 0")), em.each(0, w) as i:
            store_elements(single, rep.outer, front, em.mul(i, em.add(m, 1)), constants(single, rep.outer, rep.one))
        with em.each(*self._between("entry_starts", s)) as e:
            row, column = (self._word("local", self._word(name, e)) for name in ("entry_rows", "entry_columns"))
            add(em.add(em.mul(row, m), column), self.weights, e)
        with em.each(*self._between("child_starts", s)) as number:
            child = self._word("children", number)
            start, stop = self._between("row_starts", child)
            size = str(em.sub(stop, start))
            complement = self._complement(child)
            with em.each(0, size) as i:
                below = em.mul(self._word("local", self._word("rows", em.add(start, i))), m)
                across = em.mul(i, size)
                with em.each(0, size) as j:
                    column = self._word("local", self._word("rows", em.add(start, j)))
                    add(em.add(below, column), complement, em.add(across, j))

    def _eliminate(self, begin: str, w: str, m: str, front: list[str]) -> None:
        """Emit the elimination of the supernode's own vertices; the function returns at a divergent pivot."""
        em, index = self.em, KernelArguments(len(self.components)).index
        for name, value in {"n": m, "k": w, "first": begin, "threshold": self.x["threshold"], "status": "-1"}.items():
            em.put(I64, value, self.words, index[name])
        for c in self.components:
            em.store("ptr", front[c], em.at("i64", self.words, index["C", c]), 8)
            em.put(I64, m, self.words, index["C_rows", c])
        em.line(f"call void @{self.pivot}(ptr {self.words}, ptr %stop)")
        status = em.get(I64, self.words, STATUS)
        with em.when(em.let(f"icmp sge i64 {status}, 0")):
            em.store("i64", str(em.add(begin, status)), self.args.place(em, "status"), 8)
            em.jump("")

    def _keep(self, panel: str, w: str, m: str, front: list[str]) -> None:
        """Emit copies of the upper panel (the first rows) and of the lower panel (the first columns)."""
        em = self.em
        upper, lower = ([em.at(t.ir, a, panel) for t, a in zip(self.rep.outer, arrays, strict=True)] for arrays in (self.upper, self.lower))
        self._copy(em.mul(w, m), upper, 0, front, 0)
        with em.each(0, m) as i:
            self._copy(w, lower, em.mul(i, w), front, em.mul(i, m))

    def _leave(self, s: str, w: str, r: str, m: str, front: list[str]) -> None:
        """Emit the move of the Schur complement to the place of the first child's, further down, and of the stack's top behind it."""
        em = self.em
        start, stop = self._between("child_starts", s)
        one = em.let(f"icmp slt i64 {start}, {stop}")
        child = self._word("children", em.select_i64(one, start, 0))
        here = em.let(f"icmp sge i64 {child}, {self.x['first']}")
        own = em.let(f"and i1 {one}, {here}")
        to = [em.let(f"select i1 {own}, ptr {a}, ptr {f}") for a, f in zip(self._complement(child), front, strict=True)]
        with em.each(0, r) as i:
            # Reads are at or behind writes, and a vector is read before it is written.
            self._copy(r, to, em.mul(i, r), front, em.add(em.mul(em.add(w, i), m), w))
        for c, t in enumerate(self.rep.outer):
            em.store("ptr", to[c], em.at("ptr", self.x["complements"], em.add(em.mul(s, len(self.components)), c)), 8)
            em.store("ptr", em.at(t.ir, to[c], em.mul(r, r)), self.tops[c], 8)

    def _complement(self, s: str) -> list[str]:
        em, first = self.em, self.em.mul(s, len(self.components))
        return [em.load("ptr", em.at("ptr", self.x["complements"], em.add(first, c)), 8) for c in self.components]

    def _copy(self, count: str | int, to: Sequence[str], there: str | int, source: Sequence[str], here: str | int) -> None:
        """Emit a copy of `count` elements, from place `here` on, to place `there`."""
        for i, lanes in self.em.by_vectors(count, self.width):
            low, outer = self.low[lanes], self.rep.outer
            store_elements(low, outer, to, self.em.add(there, i), load_elements(low, outer, source, self.em.add(here, i)))
