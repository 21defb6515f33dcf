"""Fronts of a sparse elimination: ``fronts(args)`` assembles them, eliminates small ones, and keeps their panels.

The front of a supernode is a dense matrix of its own w vertices and the r that it is joined with. It is the ⊕ of the edges between a vertex
of its own and any of them, and of what its children left: each adds its Schur complement, r × r, where its rows are (Duff and Reid, 1983).
Once its first w vertices are eliminated, the upper panel is D* [I U] and the lower one [I; L] D*, with D* in both, and the rest is the
Schur complement for its parent. Supernodes come in postorder, so that complements lie on a stack: those of its children on top, of which
the first one's place is that of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.kernels.cpu.arguments import STATUS, Arguments, KernelArguments
from semiring.kernels.cpu.arguments import Array as Word
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value, load_elements, store_elements
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["FRONT_STATUS", "FrontArrays", "FrontKernel", "FrontWords", "Supernodes"]

Array = np.ndarray[Any, Any]


class Supernodes(NamedTuple):
    """The supernodes of an elimination in postorder, in int64 arrays. Places are positions in the order of elimination.

    Attributes
    ----------
    columns : array of shape (s + 1,)
        The place at which each of s supernodes begins.
    row_starts, rows : arrays
        The places beyond each supernode with which it is joined, in ascending order.
    panel_starts : array of shape (s + 1,)
        Where the entries of each supernode begin in either panel: its vertices times the side of its front.
    child_starts, children : arrays
        The supernodes that are directly below each one, in ascending order.
    entry_starts, entry_rows, entry_columns : arrays
        The edges with one end in each supernode and none in an earlier one: the places where they begin and end.
    """

    columns: Array
    row_starts: Array
    rows: Array
    panel_starts: Array
    child_starts: Array
    children: Array
    entry_starts: Array
    entry_rows: Array
    entry_columns: Array


class FrontWords(NamedTuple):
    """The arguments, before `FrontArrays` for each component; the arrays up to `entry_columns` are those of `Supernodes`.

    Supernodes from `first` to `last` are done, of which only the last one may have children before `first`. With `whole` 0 a front is only
    assembled. `local` has room for n numbers, `complements` an address for each component of each supernode. `status` becomes the place
    of a pivot that diverged.
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
    """The addresses of one component: the weights of the edges in their order, the stack, and the panels."""

    weights: int
    stack: int
    upper: int
    lower: int


FRONT_STATUS = FrontWords._fields.index("status")
"""Where the answer is."""

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
        """The function."""
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
        """A number of one of the arrays."""
        return self.em.load("i64", self.em.at("i64", self.x[array], i), 8)

    def _supernode(self, s: str, _: list[str]) -> None:
        """One supernode."""
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
        """The ⊕ of its edges and of its children's Schur complements."""
        em, rep, (begin, w, rows, r, m) = self.em, self.rep, sizes
        self._along(em.mul(m, m), lambda low, i: self._store(low, front, i, self._constant(low, rep.zero)))
        local = self.x["local"]

        def number(place: str | int, i: str | int) -> None:
            em.store("i64", str(i), em.at("i64", local, place), 8)

        em.loop(0, w, 1, lambda i, _: number(em.add(begin, i), i))
        em.loop(0, r, 1, lambda i, _: number(self._word("rows", em.add(rows, i)), em.add(w, i)))

        def add(place: str | int, element: list[Value]) -> None:
            """Front ← front ⊕ element, at a place."""
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
        """Eliminate the vertices of its own; where a pivot diverges the function ends."""
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
        """Copy the upper panel, which is the first rows, and the lower one, which is the first columns."""
        em = self.em
        upper, lower = ([em.at(t.ir, a, panel) for t, a in zip(self.rep.outer, arrays, strict=True)] for arrays in (self.upper, self.lower))
        self._along(em.mul(w, m), lambda low, i: self._store(low, upper, i, self._load(low, front, i)))

        def row(i: str, _: list[str]) -> None:
            there, here = em.mul(i, w), em.mul(i, m)
            self._along(w, lambda low, j: self._store(low, lower, em.add(there, j), self._load(low, front, em.add(here, j))))

        em.loop(0, m, 1, row)

    def _leave(self, s: str, w: str, r: str, m: str, front: list[str]) -> None:
        """Move its Schur complement to where the first of its children's was, which is below it, and the top of the stack behind it."""
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
            # What is read lies at or behind what is written, and a vector is read before it is written.
            self._along(r, lambda low, j: self._store(low, to, em.add(there, j), self._load(low, front, em.add(here, j))))

        em.loop(0, r, 1, row)
        for c, t in enumerate(self.rep.outer):
            em.store("i64", places[c], em.at("i64", self.x["complements"], em.add(em.mul(s, len(self.components)), c)), 8)
            em.store("i64", str(em.add(places[c], em.mul(em.mul(r, r), t.bytes))), self.tops[c], 8)

    def _complement(self, s: str) -> list[str]:
        """The addresses of a supernode's Schur complement."""
        em, count = self.em, len(self.components)
        return [self._word("complements", em.add(em.mul(s, count), c)) for c in self.components]

    def _along(self, count: str | int, body: Callable[[Lowering, str], None]) -> None:
        """``body`` for so many elements: by vectors, then one by one."""
        self.em.by_vectors(count, self.width, lambda i, lanes: body(self.wide if lanes == self.width else self.single, i))

    def _load(self, low: Lowering, arrays: Sequence[str], i: str | int) -> list[Value]:
        """Elements from a place on."""
        return load_elements(low, self.rep.outer, arrays, i)

    def _store(self, low: Lowering, arrays: Sequence[str], i: str | int, values: Sequence[Value]) -> None:
        """Write them."""
        store_elements(low, self.rep.outer, arrays, i, values)

    def _constant(self, low: Lowering, element: Sequence[Any]) -> list[Value]:
        """An element in all lanes."""
        return [Value(t.constant(v, low.width), t) for t, v in zip(self.rep.outer, element, strict=True)]
