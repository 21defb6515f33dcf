"""Fronts of a sparse elimination: ``fronts(args)`` assembles fronts, eliminates small ones, and keeps the panels.

The front of a supernode is a dense matrix of the supernode's w vertices and the r adjacent ones. It sums the edges between these w and all
w + r vertices, and the children's Schur complements, r × r each, at their rows and columns (Duff and Reid, 1983). After the first w
vertices are eliminated, the upper panel is D* [I U], the lower one is [I; L] D*, both with D*, and the rest is the Schur complement for the
parent. Supernodes come in postorder, so complements form a stack: the children's complements are on top, and the new one replaces the first
child's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from semiring.kernels.cpu.arguments import STATUS, Arguments, KernelArguments
from semiring.kernels.cpu.arguments import Array as Word
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value, load_elements, store_elements
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["FRONT_STATUS", "FrontArrays", "FrontKernel", "FrontWords"]


class FrontWords(NamedTuple):
    """The arguments, before `FrontArrays` for each component; the arrays up to `entry_columns` are the fields of `Supernodes`.

    The kernel processes supernodes first … last − 1; only the last one may have children before `first`. With `whole` = 0 a front is only
    assembled. `local` has room for n numbers, and `complements` for an address per component and supernode. `status` becomes the place of a
    divergent pivot.
    """

    first: int
    last: int
    whole: int
    reflexive: int
    columns: int
    row_starts: int
    rows: int
    panel_starts: int
    child_starts: int
    children: int
    entry_starts: int
    entry_rows: int
    entry_columns: int
    local: int
    complements: int
    threshold: int
    status: int = -1


class FrontArrays(NamedTuple):
    """The addresses of one component: the weights of the edges in order, the stack, and the panels."""

    weights: int
    stack: int
    upper: int
    lower: int


FRONT_STATUS = FrontWords._fields.index("status")  # the position of the answer

_POINTERS = FrontWords._fields[4:15]


class FrontKernel:
    """Generates ``fronts_close`` or ``fronts_eliminate``, which call the kernel of a pivot block."""

    def __init__(self, rep: Representation, target: Target, width: int, name: str) -> None:
        self.rep, self.width, self.pivot = rep, width, name.removeprefix("fronts_")
        self.components = range(len(rep.outer))
        self.em = em = Emitter(name, ENTRY)
        self.single, self.wide = (Lowering(em, target, w, infinities=rep.infinities) for w in (1, width))
        self.args = Arguments(FrontWords, FrontArrays, len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Return the function."""
        em, args = self.em, self.args
        self.x = {name: (args.pointer if name in _POINTERS else args.load)(em, name) for name in FrontWords._fields}
        self.weights, self.upper, self.lower = (
            [args.pointer(em, (name, c)) for c in self.components] for name in ("weights", "upper", "lower")
        )
        self.tops = [em.variable(0) for _ in self.components]  # addresses
        for c in self.components:
            em.store("i64", args.load(em, ("stack", c)), self.tops[c], 8)
        self.words = em.let(f"alloca [{len(KernelArguments(len(self.components)).index)} x i64], align 64")
        em.loop(self.x["first"], self.x["last"], 1, self._supernode)
        em.line("ret void")
        return [em]

    def _word(self, array: str, i: str | int) -> str:
        return self.em.load("i64", self.em.at("i64", self.x[array], i), 8)

    def _supernode(self, s: str, _: list[str]) -> None:
        em = self.em
        after = em.add(s, 1)
        begin, rows = self._word("columns", s), self._word("row_starts", s)
        w = em.sub(self._word("columns", after), begin)
        r = em.sub(self._word("row_starts", after), rows)
        m = str(em.add(w, r))
        front = [em.let(f"inttoptr i64 {em.load('i64', top, 8)} to ptr") for top in self.tops]
        self._assemble(s, (begin, str(w), rows, str(r), m), front)

        def eliminate() -> None:
            self._eliminate(begin, str(w), m, front)
            self._keep(self._word("panel_starts", s), str(w), m, front)
            self._leave(s, str(w), str(r), m, front)

        em.branch(em.let(f"icmp ne i64 {self.x['whole']}, 0"), eliminate)

    def _assemble(self, s: str, sizes: tuple[str, str, str, str, str], front: list[str]) -> None:
        """Emit the ⊕ of a supernode's edges and of its children's Schur complements."""
        em, rep, (begin, w, rows, r, m) = self.em, self.rep, sizes
        self._along(em.mul(m, m), lambda low, i: self._store(low, front, i, self._constant(low, rep.zero)))
        local = self.x["local"]

        def number(place: str | int, i: str | int) -> None:
            em.store("i64", str(i), em.at("i64", local, place), 8)

        em.loop(0, w, 1, lambda i, _: number(em.add(begin, i), i))
        em.loop(0, r, 1, lambda i, _: number(self._word("rows", em.add(rows, i)), em.add(w, i)))

        def add(place: str | int, element: list[Value]) -> None:
            old = self._load(self.single, front, place)
            self._store(self.single, front, place, self.single.evaluate(rep.add, old, element, rep.outer))

        def identity() -> None:
            one = self._constant(self.single, rep.one)
            em.loop(0, w, 1, lambda i, _: self._store(self.single, front, em.mul(i, em.add(m, 1)), one))

        em.branch(em.let(f"icmp ne i64 {self.x['reflexive']}, 0"), identity)

        def edge(e: str, _: list[str]) -> None:
            i, j = (self._word("local", self._word(name, e)) for name in ("entry_rows", "entry_columns"))
            add(em.add(em.mul(i, m), j), self._load(self.single, self.weights, e))

        em.loop(self._word("entry_starts", s), self._word("entry_starts", em.add(s, 1)), 1, edge)

        def child(number: str, _: list[str]) -> None:
            c = self._word("children", number)
            start = self._word("row_starts", c)
            size = str(em.sub(self._word("row_starts", em.add(c, 1)), start))
            complement = [em.let(f"inttoptr i64 {a} to ptr") for a in self._complement(c)]

            def row(i: str, _: list[str]) -> None:
                below = em.mul(self._word("local", self._word("rows", em.add(start, i))), m)
                across = em.mul(i, size)

                def entry(j: str, _: list[str]) -> None:
                    column = self._word("local", self._word("rows", em.add(start, j)))
                    add(em.add(below, column), self._load(self.single, complement, em.add(across, j)))

                em.loop(0, size, 1, entry)

            em.loop(0, size, 1, row)

        em.loop(self._word("child_starts", s), self._word("child_starts", em.add(s, 1)), 1, child)

    def _eliminate(self, begin: str, w: str, m: str, front: list[str]) -> None:
        """Emit the elimination of the supernode's own vertices; the function returns at a divergent pivot."""
        em, args = self.em, KernelArguments(len(self.components))

        def put(name: Word, value: str, ir: str = "i64") -> None:
            em.store(ir, value, em.at("i64", self.words, args.index[name]), 8)

        for name, value in {"n": m, "k": w, "first": begin, "threshold": self.x["threshold"], "status": "-1"}.items():
            put(name, value)
        for c in self.components:
            put(("C", c), front[c], "ptr")
            put(("C_rows", c), m)
        em.line(f"call void @{self.pivot}(ptr {self.words}, ptr %stop)")
        status = em.load("i64", em.at("i64", self.words, STATUS), 8)
        diverged = em.let(f"icmp sge i64 {status}, 0")
        em.branch(diverged, lambda: em.store("i64", str(em.add(begin, status)), self.args.place(em, "status"), 8))
        em.returning(diverged)

    def _keep(self, panel: str, w: str, m: str, front: list[str]) -> None:
        """Emit copies of the upper panel (the first rows) and of the lower panel (the first columns)."""
        em = self.em
        upper, lower = ([em.at(t.ir, a, panel) for t, a in zip(self.rep.outer, arrays, strict=True)] for arrays in (self.upper, self.lower))
        self._along(em.mul(w, m), lambda low, i: self._store(low, upper, i, self._load(low, front, i)))

        def row(i: str, _: list[str]) -> None:
            there, here = em.mul(i, w), em.mul(i, m)
            self._along(w, lambda low, j: self._store(low, lower, em.add(there, j), self._load(low, front, em.add(here, j))))

        em.loop(0, m, 1, row)

    def _leave(self, s: str, w: str, r: str, m: str, front: list[str]) -> None:
        """Emit the move of the Schur complement to the place of the first child's, further down, and of the stack's top behind it."""
        em = self.em
        start = self._word("child_starts", s)
        one = em.let(f"icmp slt i64 {start}, {self._word('child_starts', em.add(s, 1))}")
        child = self._word("children", em.select_i64(one, start, 0))
        here = em.let(f"icmp sge i64 {child}, {self.x['first']}")
        own = em.let(f"and i1 {one}, {here}")
        places = [em.select_i64(own, a, em.let(f"ptrtoint ptr {f} to i64")) for a, f in zip(self._complement(child), front, strict=True)]
        to = [em.let(f"inttoptr i64 {a} to ptr") for a in places]

        def row(i: str, _: list[str]) -> None:
            there, here = em.mul(i, r), em.add(em.mul(em.add(w, i), m), w)
            # Reads are at or behind writes, and a vector is read before it is written.
            self._along(r, lambda low, j: self._store(low, to, em.add(there, j), self._load(low, front, em.add(here, j))))

        em.loop(0, r, 1, row)
        for c, t in enumerate(self.rep.outer):
            em.store("i64", places[c], em.at("i64", self.x["complements"], em.add(em.mul(s, len(self.components)), c)), 8)
            em.store("i64", str(em.add(places[c], em.mul(em.mul(r, r), t.bytes))), self.tops[c], 8)

    def _complement(self, s: str) -> list[str]:
        em, count = self.em, len(self.components)
        return [self._word("complements", em.add(em.mul(s, count), c)) for c in self.components]

    def _along(self, count: str | int, body: Callable[[Lowering, str], None]) -> None:
        """Emit ``body`` for `count` elements: by vectors, then one by one."""
        self.em.by_vectors(count, self.width, lambda i, lanes: body(self.wide if lanes == self.width else self.single, i))

    def _load(self, low: Lowering, arrays: Sequence[str], i: str | int) -> list[Value]:
        return load_elements(low, self.rep.outer, arrays, i)

    def _store(self, low: Lowering, arrays: Sequence[str], i: str | int, values: Sequence[Value]) -> None:
        store_elements(low, self.rep.outer, arrays, i, values)

    def _constant(self, low: Lowering, element: Sequence[Any]) -> list[Value]:
        return [Value(t.constant(v, low.width), t) for t, v in zip(self.rep.outer, element, strict=True)]
