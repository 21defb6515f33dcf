"""Products of a sparse matrix and a dense one, by compressed rows: C_i = ⊕ over the entries a_ik of row i of a_ik ⊗ B_k.

Columns of C stay in registers, several vectors of them, while the entries of a row are gone through: each is loaded once, and its row of B,
which lies anywhere, is asked for some entries ahead. What is left of the columns goes in pieces of half the size, down to one column,
as a vector has.

Where B has the left factors of ⊗, the product is of transposed matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

from semiring.kernels.cpu.emitter import I32, Arguments, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, improve
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.sparse_words import SparseArrays, SparseForm, SparseWords
from semiring.kernels.hardware import Target

__all__ = ["Entries", "SparseKernel"]

_VECTORS = 8
"""Vectors of a row of the result that are kept in registers."""

_AHEAD = 16
"""Entries before its turn, a row of B is asked for."""

_LINE = 64
"""Bytes of a cache line."""


class Entries:
    """What functions on compressed rows have in common: numbers of columns, entries as inner elements, and sums with one term more."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.target, self.form, self.name = rep.unpacked, target, SparseForm.named(name), name
        self.args = Arguments(SparseWords, SparseArrays, len(rep.outer))
        self.components = range(len(rep.outer))

    def open(self) -> Emitter:
        """The function."""
        self.em = em = Emitter(self.name, "ptr %args")
        self._low: dict[int, Lowering] = {}
        self.first, self.last = (self.args.load(em, x) for x in ("first", "last"))
        self.starts, self.columns = (self.args.pointer(em, x) for x in ("starts", "columns"))
        self.values = [self.args.pointer(em, ("values", c)) for c in self.components]
        return em

    def places(self) -> list[tuple[Scalar, str]]:
        """Where the result goes, and the witness."""
        out = [(s, self.args.pointer(self.em, ("out", c))) for c, s in enumerate(self.rep.outer)]
        return out + [(I32, self.args.pointer(self.em, "via"))] * self.form.witness

    def low(self, width: int) -> Lowering:
        """Operations on inner elements."""
        if width not in self._low:
            self._low[width] = Lowering(self.em, self.target, width, infinities=self.rep.inner_infinities)
        return self._low[width]

    def number(self, array: str, e: str | int) -> str:
        """An entry's column."""
        em = self.em
        if not self.form.narrow:
            return em.load("i64", em.at("i64", array, e), 8)
        return em.let(f"sext i32 {em.load('i32', em.at('i32', array, e), 4)} to i64")

    def ends(self, starts: str, i: str | int) -> tuple[str, str]:
        """Where the entries of a row begin and end."""
        em = self.em
        return em.load("i64", em.at("i64", starts, i), 8), em.load("i64", em.at("i64", starts, em.add(i, 1)), 8)

    def element(self, arrays: Sequence[str], at: Sequence[str | int], width: int) -> list[Value]:
        """Elements in memory, one place a component, as inner ones."""
        em, rep, found = self.em, self.rep, []
        for c, (s, inner, array, i) in enumerate(zip(rep.outer, rep.inner, arrays, at, strict=True)):
            raw = em.load(s.vector(width), em.at(s.ir, array, i), s.bytes)
            found.append(Value(rep.encode(self.low(width), c, raw), inner))
        return found

    def splat(self, element: Sequence[Value], width: int) -> list[Value]:
        """One element in all lanes."""
        return [Value(self.em.splat(x.name, s, width), s) for x, s in zip(element, self.rep.inner, strict=True)]

    def zeros(self, width: int) -> list[tuple[str, str]]:
        """Sums without terms, and the witness of none behind them."""
        codes = [(I32.vector(width), I32.constant(-1, width))] * self.form.witness
        return [*((s.vector(width), s.constant(z, width)) for s, z in zip(self.rep.inner, self.rep.inner_zero, strict=True)), *codes]

    def take(self, width: int, sums: Sequence[str], entry: Sequence[Value], other: Sequence[Value], code: str) -> list[str]:
        """sums ⊕ entry ⊗ other, or other ⊗ entry; where there is a witness, it is the last of the sums, and `code` that of this term."""
        rep, low = self.rep, self.low(width)
        a, b = (other, entry) if self.form.swapped else (entry, other)
        old = [Value(x, s) for x, s in zip(sums, rep.inner, strict=False)]
        if not self.form.witness and len(old) == 1:
            fused = low.multiply_accumulate(rep.add[0], rep.mul[0], old[0], a[0], b[0])
            if fused is not None:
                return [fused]
        term = low.evaluate(rep.mul, a, b, rep.inner)
        new, is_better = improve(low, rep.add, rep.inner, rep.extremum, old, term)
        return [*(v.name for v in new), *([low.select(is_better(), I32, code, sums[-1])] if self.form.witness else [])]

    def code(self, k: str, width: int) -> str:
        """The witness of a term."""
        return self.em.splat(self.em.let(f"trunc i64 {k} to i32"), I32, width)

    def decoded(self, width: int, sums: Sequence[str], threshold: str) -> list[str]:
        """Sums as outer elements, with their witness: of a finite element added to half of ∞ there is none."""
        rep, low = self.rep, self.low(width)
        found = [rep.decode(low, c, x, threshold) for c, x in zip(self.components, sums, strict=False)]
        if not self.form.witness:
            return found
        if rep.kind != "clamped":
            return [*found, sums[-1]]
        (s,) = rep.outer
        zero = low.compare("eq", s, found[0], s.constant(rep.zero[0], width))
        return [*found, low.select(zero, I32, I32.constant(-1, width), sums[-1])]


class SparseKernel(Entries):
    """Generates the products with dense matrices, which `SparseForm` names."""

    def functions(self) -> list[Emitter]:
        """The function."""
        em, args, rep = self.open(), self.args, self.rep
        size = max(s.bytes for s in rep.inner)
        self.width = max(1, self.target.vector_bytes // size)
        self._right, self._places = [args.pointer(em, ("right", c)) for c in self.components], self.places()
        self._down = [args.load(em, ("right_rows", c)) for c in self.components]
        self._thresholds = {
            w: em.splat_word(args.load(em, "threshold"), rep.inner[0], w) if rep.kind == "clamped" else "" for w in self._widths()
        }
        self._n = args.load(em, "n")
        self._stop = em.sub(em.load("i64", em.at("i64", self.starts, self.last), 8), 1)
        em.loop(self.first, self.last, 1, self._row)
        em.line("ret void")
        return [em]

    def _widths(self) -> list[int]:
        """A whole vector, and its halves down to one element."""
        return [self.width >> i for i in range(self.width.bit_length())]

    def _row(self, i: str, _: list[str]) -> None:
        """A row of the result: blocks of columns, and what is left of them in halves."""
        em, parts = self.em, len(self.rep.inner) + self.form.witness
        begin, end = self.ends(self.starts, i)
        vectors = _VECTORS
        while vectors > 1 and vectors * parts > self.target.registers // 2:
            vectors //= 2
        block = vectors * self.width
        place = em.mul(i, self._n)

        def segment(j: str | int, vectors: int, width: int) -> None:
            self._segment((begin, end), j, place, vectors, width)

        em.loop(0, em.round_down(self._n, block), block, lambda j, _: segment(j, vectors, self.width))
        while block > 1:
            half = block // 2
            there = em.let(f"icmp ne i64 {em.let(f'and i64 {self._n}, {half}')}, 0")
            width = min(half, self.width)
            em.branch(there, lambda: segment(em.round_down(self._n, block), half // width, width))
            block = half

    def _segment(self, ends: tuple[str, str], j: str | int, place: str | int, vectors: int, width: int) -> None:
        """Some columns of a row from j on."""
        em, parts = self.em, len(self.rep.inner) + self.form.witness

        def term(e: str, sums: list[str]) -> list[str]:
            k = self.number(self.columns, e)
            if width == self.width:
                self._ask(em.smin(em.add(e, _AHEAD), self._stop), j, vectors * width)
            entry = self.splat(self.element(self.values, [e] * len(self.components), 1), width)
            code = self.code(k, width) if self.form.witness else ""
            rows = [em.add(em.mul(k, down), j) for down in self._down]
            new: list[str] = []
            for v in range(vectors):
                other = self.element(self._right, [em.add(row, v * width) for row in rows], width)
                new += self.take(width, sums[v * parts : (v + 1) * parts], entry, other, code)
            return new

        sums = em.loop(*ends, 1, term, self.zeros(width) * vectors)
        for v in range(vectors):
            at = em.add(em.add(place, j), v * width)
            mine = self.decoded(width, sums[v * parts : (v + 1) * parts], self._thresholds[width])
            for (s, array), x in zip(self._places, mine, strict=True):
                em.store(s.vector(width), x, em.at(s.ir, array, at), s.bytes)

    def _ask(self, e: str, j: str | int, columns: int) -> None:
        """Ask for a part of the row of B of a later entry."""
        em, k = self.em, self.number(self.columns, e)
        for s, start, down in zip(self.rep.outer, self._right, self._down, strict=True):
            row = em.add(em.mul(k, down), j)
            for b in range(0, columns, _LINE // s.bytes):
                em.prefetch(em.at(s.ir, start, em.add(row, b)), write=False)
