"""Products of a sparse matrix and a dense one, by compressed rows: C_i = ⊕ over the entries a_ik of row i of a_ik ⊗ B_k.

Several vectors of columns of C stay in registers during the loop over the entries of a row. Each entry is loaded once, and its row of B, at
a random address, is prefetched some entries ahead. The remaining columns follow in pieces of half the size, down to one column. For one
column, if the target has masks, the lanes of a vector hold entries of the row and gather their factors.

A product with a single column takes about as long as reading the matrix, so the kernel also checks the entries on the way (see `bounds`).
The kernel checks the row pointers too, and clamps and reports a row that ends before its begin or beyond the last entry.

Threads take some rows at a time by an atomic counter, so that a late thread does less.

If B has the left factors of ⊗, the kernel computes Cᵀ = Bᵀ ⊗ Aᵀ.
"""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from collections.abc import Sequence
from fractions import Fraction

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.bounds import BoundsCheck
from semiring.kernels.cpu.emitter import ENTRY, I32, I64, Carried, Emitter
from semiring.kernels.cpu.exponential import ScaledMath, range_of
from semiring.kernels.cpu.lowering import Lowering, Value, empty_sums, encoded, spread, take_in
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["BEYOND", "STRANGE", "Entries", "SparseArrays", "SparseKernel", "SparseWords", "bitmap_bytes"]

_VECTORS = 8
"""The vectors of a row of the result that stay in registers."""

_AHEAD = 16
"""The prefetch distance of rows of B, in entries."""


SparseWords = namedtuple(
    "SparseWords",
    "first last starts columns n threshold depth strange via right_starts right_columns mask_starts mask_columns flip out_starts "
    "out_columns bitmap words origin least most beyond taken grain entries sums sorted",
)
"""The words of a call that belong to no component; a function reads only some.

Rows `first` … `last` − 1 of A are multiplied; a product with a dense B takes `grain` rows at a time from the counter `taken`, which all
threads share. `starts` and `columns` are A's compressed rows, `right_starts` and `right_columns` B's, `mask_starts` and `mask_columns`
a mask's. The mask's bits are exclusive-ored with `flip`; `sorted` is 1 if the columns of the mask may be looked up in B. B has `n`
columns.

Rows of a sparse result begin at `out_starts`; ``symbolic`` writes the length of each row one place further on. `sums` has a number for
each entry if ⊕ is log Σ exp. `bitmap` is zeroed memory for `words` words, see `bitmap_bytes`.

A product with a dense B of `depth` rows clamps column numbers and row pointers to `depth` and `entries`, and sets `strange` if any
changed. A product with a vector also sets `beyond` if an entry is out of the bounds `origin`, `least` and `most`, see `BoundsCheck`."""

STRANGE, BEYOND = map(SparseWords._fields.index, ("strange", "beyond"))
"""The positions of the answers: column numbers or rows that do not exist, and entries out of bounds."""

SparseArrays = namedtuple("SparseArrays", "values right right_rows out")
"""The words of one component: the entries of A, the entries of B (or the dense B and its row stride in elements), and the result."""


def bitmap_bytes(n: int) -> tuple[int, int]:
    """Return the number of 64-column words in n columns, and the bytes of one row's bitmap.

    The bitmap has a bit for each column, a bit for each nonempty word, the row position of each word's first column (int32), and a mask's
    bits.
    """
    words = -(-n // 64)
    return words, 8 * (2 * words + -(-words // 64) + -(-words // 2))


_NUMBERS = "first last n threshold depth flip words grain entries sorted"


class Entries:
    """The common part of functions on compressed rows: column numbers, entries as inner elements, and sums.

    A function's name begins with what it computes, and options follow.

    - ``sparse_dense``, ``sparse_vector``: a product with a dense matrix, or with a column
    - ``sparse_symbolic``, ``sparse_numeric``: the lengths of the rows of a product of sparse matrices, then these rows
    - ``swapped``: the sparse matrix is the right factor of ⊗, and the product is computed transposed
    - ``narrow``: column numbers and row pointers have 32 bits, else 64; the row pointers of a sparse result always have 64
    - ``witness``: the winning k is stored too
    - ``masked``: compute only entries inside, or only entries outside, a mask
    """

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.target, self.name = rep.unpacked, target, name
        _, self.kind, *options = name.split("_")
        self.swapped, self.narrow, self.witness, self.masked = (o in options for o in ("swapped", "narrow", "witness", "masked"))
        self.scale = rep.scale if rep.kind == "exponential" else None
        self.kinds = [*self.rep.inner, *self.rep.outer * (self.scale is not None)]
        self.args = Arguments(SparseWords, SparseArrays, len(rep.outer))
        self.components = range(len(rep.outer))

    def open(self) -> Emitter:
        """Begin the function."""
        self.em = em = Emitter(self.name, ENTRY)
        self.low = functools.cache(lambda width: Lowering(em, self.target, width, infinities=self.rep.inner_infinities))
        self._scaled_math = functools.cache(self._new_scaled_math)
        self.x, arrays = self.args.words(em, _NUMBERS), self.args.addresses(em)
        self.starts, self.columns, self.values, self.right = self.x["starts"], self.x["columns"], arrays["values"], arrays["right"]
        self.places = [*zip(self.rep.outer, arrays["out"], strict=True), *[(I32, self.x["via"])] * self.witness]
        return em

    def number(self, array: str, e: str | int) -> str:
        """Load a column number, or the start of a row."""
        em = self.em
        if not self.narrow:
            return em.get(I64, array, e)
        return em.let(f"sext i32 {em.load('i32', em.at('i32', array, e), 4)} to i64")

    def ends(self, starts: str, i: str | int) -> tuple[str, str]:
        """Load the range of a row's entries."""
        return self.number(starts, i), self.number(starts, self.em.add(i, 1))

    def element(self, arrays: Sequence[str], at: Sequence[str | int], width: int, check: BoundsCheck | None = None) -> list[Value]:
        """Load an element, from one place per component, as an inner element."""
        raw = [self.em.get(s, array, i, width) for s, array, i in zip(self.rep.outer, arrays, at, strict=True)]
        if check is not None:
            check.take(raw, width)
        return encoded(self.low(width), self.rep, raw)

    @property
    def parts(self) -> int:
        """The numbers that make up a sum: its components, the sum of exponentials if ⊕ is log Σ exp, and the witness."""
        return len(self.kinds) + self.witness

    def zeros(self, width: int) -> list[Carried]:
        """Return empty sums, with the witness −1."""
        zero = (*self.rep.inner_zero, 0.0)[: len(self.kinds)]
        return empty_sums(self.kinds, zero, width, witness=self.witness)

    def take(self, width: int, sums: Sequence[str], entry: list[Value], other: list[Value], code: str) -> list[str]:
        """Return sums ⊕ entry ⊗ other (or ⊕ other ⊗ entry); a witness is the last of the sums, and `code` is the term's."""
        rep, low = self.rep, self.low(width)
        a, b = (other, entry) if self.swapped else (entry, other)
        if self.scale is None:
            return take_in(low, rep, sums, a, b, code)
        (term,) = low.evaluate(rep.mul, a, b, rep.inner)
        return self._add_exponentials(width, sums, [term.name, rep.inner[0].constant(1.0, width)])

    def joined(self, width: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Add two sums without a witness."""
        if self.scale is not None:
            return self._add_exponentials(width, one, other)
        return self.low(width).combine(self.rep.add, self.rep.inner, one, other)

    def _new_scaled_math(self, width: int) -> ScaledMath:
        (s,), scale = self.rep.inner, self.scale or Fraction(1)
        return ScaledMath(self.em, s, width, fma=self.target.fma, scale=scale, limits=range_of(s, 1))

    def _add_exponentials(self, width: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Add sums m + log(t) / s, where m is the term whose multiple by s is largest, and t = Σ exp(s (x − m)).

        If no term is infinitely less, t ← t exp(s (m − m')) + t' if m' is larger than m, and t ← t + t' exp(s (m' − m)) if not.
        """
        low, scaled, (s,) = self.low(width), self._scaled_math(width), self.rep.inner
        (m, t), (x, r) = one, other
        most = scaled.larger(m, x)
        grows = low.compare("ne", s, most, m)
        apart = low.arithmetic("sub", s, [low.select(grows, s, m, x), most])
        less = low.select(scaled.counts(apart), s, scaled.exp(apart), s.constant(0.0, width))
        smaller, larger = low.select(grows, s, t, r), low.select(grows, s, r, t)
        return [most, low.arithmetic("add", s, [low.arithmetic("mul", s, [smaller, less]), larger])]

    def code(self, k: str, width: int) -> str:
        """Return the witness of a term, if wanted."""
        return self.em.splat_word(k, I32, width) if self.witness else ""

    def decoded(self, width: int, sums: Sequence[str], threshold: str) -> list[str]:
        """Return sums as outer elements with their witness, −1 for a sum that half of ∞ makes infinite."""
        rep, low = self.rep, self.low(width)
        if self.scale is not None:
            (m, t), (s,) = sums, rep.inner
            infinite = low.compare("eq", s, low.arithmetic("abs", s, [m]), s.constant(math.inf, width))
            return [low.select(infinite, s, m, low.arithmetic("add", s, [m, self._scaled_math(width).log(t)]))]
        found = [rep.decode(low, c, x, threshold) for c, x in zip(self.components, sums, strict=False)]
        if not self.witness:
            return found
        if rep.kind != "clamped":
            return [*found, sums[-1]]
        (s,) = rep.outer
        zero = low.compare("eq", s, found[0], s.constant(rep.zero[0], width))
        return [*found, low.select(zero, I32, I32.constant(-1, width), sums[-1])]


class SparseKernel(Entries):
    """Generates ``sparse_dense`` and ``sparse_vector`` with their options."""

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, args, rep = self.open(), self.args, self.rep
        self.width = max(1, self.target.vector_bytes // max(s.bytes for s in rep.inner))
        self._single = self.kind == "vector"
        # For a single column lanes hold entries of a row; gather instructions need elements of at least 4 bytes.
        self._gathers = self.target.masks and not self.witness and min(s.bytes for s in rep.outer) >= I32.bytes
        self._down = [args.load(em, ("right_rows", c)) for c in self.components]
        widths = [self.width >> i for i in range(self.width.bit_length())]  # of a vector, and its halves down to one element
        clamped = rep.kind == "clamped"
        self._thresholds = {w: em.splat_word(self.x["threshold"], rep.inner[0], w) if clamped else "" for w in widths}
        self._n: str | int = 1 if self._single else self.x["n"]
        self._entries = self.x["entries"]
        self._stop = em.sub(self._entries, 1)
        self._strange = em.reserve("i64")
        em.store("i64", "0", self._strange, 8)
        lanes = [self.width, 1] if self._gathers and self.width > 1 else [1]
        self._check = BoundsCheck(em, args, rep.outer, lanes) if self._single else None
        self._index = I32 if self.narrow else I64
        limit = em.sub(self.x["depth"], 1)
        self._limit = em.let(f"trunc i64 {em.smin(limit, (1 << 31) - 1)} to i32") if self.narrow else str(limit)
        self._greatest = {w: em.let(f"alloca {self._index.vector(w)}, align 64") for w in lanes}
        for w, place in self._greatest.items():
            em.store(self._index.vector(w), self._index.constant(0, w), place, 64)
        grain = self.x["grain"]

        def take() -> str:
            return em.let(f"atomicrmw add ptr {self.x['taken']}, i64 {grain} monotonic, align 8")

        with em.turns([("i64", take())], lambda begin: em.let(f"icmp slt i64 {begin[0]}, {self.x['last']}")) as ((begin,), new):
            with em.each(begin, em.smin(em.add(begin, grain), self.x["last"])) as i:
                self._row(i)
            new.append(take())
        self._report()
        return [em.done()]

    def _report(self) -> None:
        """Report invalid row pointers or column numbers, and entries out of bounds."""
        em, ir = self.em, self._index.ir
        strange = em.let(f"icmp ne i64 {em.load('i64', self._strange, 8)}, 0")
        for width, place in self._greatest.items():
            k = em.load(self._index.vector(width), place, 64)
            if width > 1:
                k = em.call(f"vector.reduce.umax.{self._index.overload(width)}", ir, (self._index.vector(width), k))
            strange = em.let(f"or i1 {strange}, {em.let(f'icmp ugt {ir} {k}, {self._limit}')}")
        em.store("i64", em.let(f"zext i1 {strange} to i64"), self.args.place(em, "strange"), 8)
        if self._check is not None:
            self._check.tell()

    def _inside(self, k: str, width: int) -> str:
        """Return column numbers, clamped to the last column; remember the greatest."""
        em, ir, overload, place = self.em, self._index.vector(width), self._index.overload(width), self._greatest[width]
        em.store(ir, em.call(f"umax.{overload}", ir, (ir, em.load(ir, place, 64)), (ir, k)), place, 64)
        return em.call(f"umin.{overload}", ir, (ir, k), (ir, em.splat(self._limit, self._index, width)))

    def _sound(self, begin: str, end: str) -> tuple[str, str]:
        """Return the range of a row's entries, clamped to all entries; remember a change."""
        em = self.em
        last = em.call("umin.i64", "i64", ("i64", end), ("i64", self._entries))
        first = em.call("umin.i64", "i64", ("i64", begin), ("i64", last))
        moved = em.let(f"or i64 {em.let(f'xor i64 {begin}, {first}')}, {em.let(f'xor i64 {end}, {last}')}")
        em.store("i64", em.let(f"or i64 {em.load('i64', self._strange, 8)}, {moved}"), self._strange, 8)
        return first, last

    def _long(self, k: str, width: int) -> str:
        return self.em.let(f"zext {I32.vector(width)} {k} to {I64.vector(width)}") if self.narrow else k

    def _row(self, i: str) -> None:
        """Emit a row of the result: blocks of columns, then the remaining columns in halves."""
        em, parts = self.em, self.parts
        begin, end = self._sound(*self.ends(self.starts, i))
        vectors = _VECTORS
        while vectors > 1 and vectors * parts > self.target.registers // 2:
            vectors //= 2
        block = vectors * self.width
        place = em.mul(i, self._n)

        def segment(j: str | int, vectors: int, width: int) -> None:
            self._segment((begin, end), j, place, vectors, width)

        if self._single:
            segment(0, 1, 1)
            return
        with em.each(0, em.round_down(self._n, block), block) as j:
            segment(j, vectors, self.width)
        while block > 1:
            half = block // 2
            there = em.let(f"icmp ne i64 {em.let(f'and i64 {self._n}, {half}')}, 0")
            width = min(half, self.width)
            with em.when(there):
                segment(em.round_down(self._n, block), half // width, width)
            block = half

    def _segment(self, ends: tuple[str, str], j: str | int, place: str | int, vectors: int, width: int) -> None:
        """Emit some columns of a row from j on."""
        em, parts = self.em, self.parts

        def term(e: str, sums: list[str]) -> list[str]:
            k = self._long(self._inside(em.get(self._index, self.columns, e), 1), 1)
            if width == self.width and not self._single:
                self._prefetch_row(em.smin(em.add(e, _AHEAD), self._stop), j, vectors * width)
            entry = spread(self.low(width), self.rep.inner, self.element(self.values, [e] * len(self.components), 1, self._check))
            code = self.code(k, width)
            rows = [em.add(em.mul(k, down), j) for down in self._down]
            new: list[str] = []
            for v in range(vectors):
                other = self.element(self.right, [em.add(row, v * width) for row in rows], width)
                new += self.take(width, sums[v * parts : (v + 1) * parts], entry, other, code)
            return new

        if vectors * width == 1 and self._gathers:
            sums = self._gathered(ends, j)
        else:
            sums = em.loop(*ends, 1, term, self.zeros(width) * vectors)
        for v in range(vectors):
            at = em.add(em.add(place, j), v * width)
            mine = self.decoded(width, sums[v * parts : (v + 1) * parts], self._thresholds[width])
            for (s, array), x in zip(self.places, mine, strict=True):
                em.put(s, x, array, at, width)

    def _gathered(self, ends: tuple[str, str], j: str | int) -> list[str]:
        """Return the sum of a row for one column; each lane sums a part of the entries."""
        em, width, rep, index, (begin, end) = self.em, self.width, self.rep, self._index, ends

        def terms(e: str, sums: list[str]) -> list[str]:
            mask = em.first_lanes(em.let(f"sub i64 {end}, {e}"), width)
            k = self._inside(em.masked_load(index, width, em.at(index.ir, self.columns, e), mask), width)
            entry = [em.masked_load(s, width, at, mask) for s, at in zip(rep.outer, em.places(rep.outer, self.values, e), strict=True)]
            if self._check is not None:
                self._check.take(entry, width, mask)
            other = []
            for s, right, down in zip(rep.outer, self.right, self._down, strict=True):
                if self._single:
                    other.append(em.gather(s, width, right, index, k, mask))
                else:
                    rows = em.let(f"mul {I64.vector(width)} {self._long(k, width)}, {em.splat(down, I64, width)}")
                    other.append(em.gather(s, width, em.at(s.ir, right, j), I64, rows, mask))
            low = self.low(width)
            new = self.take(width, sums, encoded(low, rep, entry), encoded(low, rep, other), "")
            return [self.low(width).select(mask, s, x, old) for s, x, old in zip(self.kinds, new, sums, strict=True)]

        sums = em.loop(begin, end, width, terms, self.zeros(width))
        while width > 1:
            one, other = ([em.half(x, s, width, upper) for s, x in zip(self.kinds, sums, strict=True)] for upper in (0, 1))
            width //= 2
            sums = self.joined(width, one, other)
        return sums

    def _prefetch_row(self, e: str, j: str | int, columns: int) -> None:
        """Prefetch a part of the row of B that belongs to a later entry."""
        em, k = self.em, self.number(self.columns, e)
        for s, start, down in zip(self.rep.outer, self.right, self._down, strict=True):
            row = em.add(em.mul(k, down), j)
            for b in range(0, columns, CACHE_LINE // s.bytes):
                em.prefetch(em.at(s.ir, start, em.add(row, b)), write=False)
