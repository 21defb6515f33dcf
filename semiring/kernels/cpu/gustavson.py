"""Products of two sparse matrices, row by row: C_i = ⊕ over the entries a_ik of row i of a_ik ⊗ B_k (Gustavson 1978).

Each row of C takes two passes over its terms. The first pass marks the columns in a bitmap, and the nonzero words in a second bitmap. The
bitmap is then read and cleared in the order of columns, in time proportional to the row's entries. For each word, the row position of the
first column is kept; a column's position adds the number of lower bits in the word. The second pass accumulates each term at its position.
Rows are sorted, and random access touches only the bitmap and one row of the result. Both fit the first-level cache for up to a hundred
thousand columns.

``symbolic`` only marks and counts. A mask has another bitmap, and rows without an entry in the mask are left out. If the columns of B
ascend, the columns of a short row of the mask are looked up in a long row of B by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from semiring.kernels.cpu.emitter import I32, I64, Emitter
from semiring.kernels.cpu.lowering import Value
from semiring.kernels.cpu.sparse import Entries

__all__ = ["GustavsonKernel"]

_AHEAD = 8
"""The prefetch distance of rows of B, in entries."""

_LOOKUP = 16
"""The entries of a row that take as long to read as one bisection."""


class GustavsonKernel(Entries):
    """Generates ``symbolic`` and ``numeric``, named by `SparseForm`."""

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, args = self.open(), self.args
        self._right_starts, self._right_columns = (args.pointer(em, x) for x in ("right_starts", "right_columns"))
        self._out_starts = args.pointer(em, "out_starts")
        words = args.load(em, "words")
        self._tops = em.let(f"sdiv i64 {em.add(words, 63)}, 64")
        self._bits = args.pointer(em, "bitmap")
        self._top = em.at("i64", self._bits, words)
        self._begins = em.at("i64", self._top, self._tops)
        self._stop = em.sub(self.number(self.starts, self.last), 1)
        if self.form.masked:
            self._mask = em.at("i64", self._begins, em.let(f"sdiv i64 {em.add(words, 1)}, 2"))
            self._mask_starts, self._mask_columns = (args.pointer(em, x) for x in ("mask_starts", "mask_columns"))
            self._flip, self._sorted = args.load(em, "flip"), em.let(f"icmp ne i64 {args.load(em, 'sorted')}, 0")
        if self.form.kind == "numeric":
            self._out_columns = args.pointer(em, "out_columns")
            self._right, self._places = [args.pointer(em, ("right", c)) for c in self.components], self.places()
            if self.scale is not None:
                self._places.append((self.kinds[-1], args.pointer(em, "sums")))
            self._threshold = em.splat_word(args.load(em, "threshold"), self.rep.inner[0], 1) if self.rep.kind == "clamped" else ""
        em.loop(args.load(em, "first"), self.last, 1, self._count if self.form.kind == "symbolic" else self._fill)
        return [em.done()]

    def _word(self, column: str) -> tuple[str, str, str]:
        """Return the address of a column's word in the bitmap, the number of the word, and the column's bit."""
        word = self.em.let(f"lshr i64 {column}, 6")
        return self.em.at("i64", self._bits, word), word, self._bit(column)

    def _bit(self, number: str) -> str:
        em = self.em
        return em.let(f"shl i64 1, {em.let(f'and i64 {number}, 63')}")

    def _set(self, place: str, bit: str) -> None:
        em = self.em
        em.store("i64", em.let(f"or i64 {em.load('i64', place, 8)}, {bit}"), place, 8)

    def _each_bit(self, word: str, do: Callable[[str, list[str]], list[str]], carried: list[tuple[str, str]]) -> list[str]:
        """Emit ``do`` for each set bit of a word, lowest first, with carried values."""
        em = self.em

        def turn(values: list[str]) -> list[str]:
            rest, *others = values
            number = em.call("cttz.i64", "i64", ("i64", rest), ("i1", "true"))
            new = do(number, others)
            return [em.let(f"and i64 {rest}, {em.let(f'add i64 {rest}, -1')}"), *new]

        return em.repeat([("i64", word), *carried], lambda v: em.let(f"icmp ne i64 {v[0]}, 0"), turn)[1:]

    def _each_word(self, do: Callable[[str, str, list[str]], list[str]], carried: list[tuple[str, str]], *, clear: bool) -> list[str]:
        """Emit ``do`` for each nonempty word of the bitmap, with carried values; `clear` empties the bitmap on the way."""
        em = self.em

        def top(t: str, values: list[str]) -> list[str]:
            place = em.at("i64", self._top, t)
            some = em.load("i64", place, 8)

            def word(number: str, values: list[str]) -> list[str]:
                at = em.add(em.mul(t, 64), number)
                bits = em.at("i64", self._bits, at)
                new = do(str(at), em.load("i64", bits, 8), values)
                if clear:
                    em.store("i64", "0", bits, 8)
                return new

            new = self._each_bit(some, word, [(ir, v) for (ir, _), v in zip(carried, values, strict=True)])
            if clear:
                em.store("i64", "0", place, 8)
            return new

        return em.loop(0, self._tops, 1, top, carried)

    def _of_mask(self, i: str, *, clear: bool) -> None:
        """Set the bits of a row of the mask, or clear their words."""
        if not self.form.masked:
            return
        em = self.em

        def one(e: str, _: list[str]) -> None:
            column = self.number(self._mask_columns, e)
            place = em.at("i64", self._mask, em.let(f"lshr i64 {column}, 6"))
            if clear:
                em.store("i64", "0", place, 8)
            else:
                self._set(place, self._bit(column))

        em.loop(*self.ends(self._mask_starts, i), 1, one)

    def _each_term(self, i: str, do: Callable[[str, str, str, list[Value]], None], *, values: bool) -> None:
        """Emit ``do`` for each term of row i: the entry of B, its column, k, and the entry of A if `values`."""
        em = self.em

        def entry(e: str, _: list[str]) -> None:
            k = self.number(self.columns, e)
            later = self.number(self._right_starts, self.number(self.columns, em.smin(em.add(e, _AHEAD), self._stop)))
            em.prefetch(em.at("i32" if self.form.narrow else "i64", self._right_columns, later), write=False)
            for s, start in zip(self.rep.outer, self._right, strict=True) if values else ():
                em.prefetch(em.at(s.ir, start, later), write=False)
            a = self.element(self.values, [e] * len(self.components), 1) if values else []
            first, last = self.ends(self._right_starts, k)

            def all_of_row() -> None:
                em.loop(first, last, 1, lambda f, _: do(f, self.number(self._right_columns, f), k, a))

            if not self.form.masked:
                all_of_row()
                return
            begin, end = self.ends(self._mask_starts, i)
            short = em.let(f"icmp slt i64 {em.mul(em.sub(end, begin), _LOOKUP)}, {em.sub(last, first)}")

            def look_up(m: str, _: list[str]) -> None:
                column = self.number(self._mask_columns, m)

                def equal(values: list[str]) -> list[str]:
                    do(values[0], column, k, a)
                    return [str(em.add(values[0], 1))]

                lowest = self._lookup(column, first, last)
                em.repeat([("i64", lowest)], lambda values: self._has_column(values[0], last, column), equal)

            def mask_of_row() -> None:
                em.loop(begin, end, 1, look_up)

            em.branch(em.let(f"and i1 {self._sorted}, {short}"), mask_of_row, all_of_row)

        em.loop(*self.ends(self.starts, i), 1, entry)

    def _lookup(self, column: str, first: str, last: str) -> str:
        """Return the first entry from `first` to `last` whose column is at least `column`, by bisection."""
        em = self.em

        def halve(values: list[str]) -> list[str]:
            low, high = values
            middle = em.let(f"lshr i64 {em.add(low, high)}, 1")
            below = em.let(f"icmp slt i64 {self.number(self._right_columns, middle)}, {column}")
            return [em.select_i64(below, em.add(middle, 1), low), em.select_i64(below, high, middle)]

        return em.repeat([("i64", first), ("i64", last)], lambda v: em.let(f"icmp slt i64 {v[0]}, {v[1]}"), halve)[0]

    def _has_column(self, f: str, last: str, column: str) -> str:
        em = self.em
        inside = em.let(f"icmp slt i64 {f}, {last}")
        found = self.number(self._right_columns, em.select_i64(inside, f, em.sub(last, 1)))
        return em.let(f"and i1 {inside}, {em.let(f'icmp eq i64 {found}, {column}')}")

    def _mark(self, i: str) -> None:
        em = self.em
        self._of_mask(i, clear=False)

        def mark(f: str, column: str, k: str, a: list[Value]) -> None:
            place, word, bit = self._word(column)
            top, its = em.at("i64", self._top, em.let(f"lshr i64 {word}, 6")), self._bit(word)
            if self.form.masked:
                allowed = em.let(f"xor i64 {em.load('i64', em.at('i64', self._mask, word), 8)}, {self._flip}")
                bit = em.let(f"and i64 {bit}, {allowed}")
                its = em.select_i64(em.let(f"icmp ne i64 {bit}, 0"), its, 0)
            self._set(place, bit)
            self._set(top, its)

        self._each_term(i, mark, values=False)
        self._of_mask(i, clear=True)

    def _ones(self, bits: str) -> str:
        return self.em.call("ctpop.i64", "i64", ("i64", bits))

    def _count(self, i: str, _: list[str]) -> None:
        """Count the entries of row i of the result; the length stays 0 if the mask has no entry."""
        em = self.em
        if self.form.masked:
            begin, end = self.ends(self._mask_starts, i)
            some = self.low(1).any_of([em.let(f"icmp slt i64 {begin}, {end}"), em.let(f"icmp ne i64 {self._flip}, 0")])
            em.branch(some, lambda: self._count_some(i))
        else:
            self._count_some(i)

    def _count_some(self, i: str) -> None:
        em = self.em
        self._mark(i)
        (count,) = self._each_word(lambda at, bits, n: [str(em.add(n[0], self._ones(bits)))], [("i64", "0")], clear=True)
        em.put(I64, count, self._out_starts, em.add(i, 1))

    def _fill(self, i: str, _: list[str]) -> None:
        em = self.em
        start, stop = (em.get(I64, self._out_starts, row) for row in (i, em.add(i, 1)))
        em.branch(em.let(f"icmp slt i64 {start}, {stop}"), lambda: self._fill_some(i, start, stop))

    def _fill_some(self, i: str, start: str, stop: str) -> None:
        em, rep = self.em, self.rep
        self._mark(i)

        def columns(at: str, bits: str, count: list[str]) -> list[str]:
            em.put(I32, em.let(f"trunc i64 {em.sub(count[0], start)} to i32"), self._begins, at)
            first = em.mul(at, 64)

            def column(number: str, count: list[str]) -> list[str]:
                value, ir = str(em.add(first, number)), "i32" if self.form.narrow else "i64"
                em.store(ir, em.let(f"trunc i64 {value} to i32") if self.form.narrow else value, em.at(ir, self._out_columns, count[0]), 4)
                return [str(em.add(count[0], 1))]

            return self._each_bit(bits, column, [("i64", count[0])])

        self._each_word(columns, [("i64", start)], clear=False)

        em.loop(start, stop, 1, lambda e, _: self._store(e, [zero for _, zero in self.zeros(1)]))

        def add(f: str, column: str, k: str, a: list[Value]) -> None:
            place, word, bit = self._word(column)
            bits = em.load("i64", place, 8)

            def add_term() -> None:
                below = self._ones(em.let(f"and i64 {bits}, {em.let(f'add i64 {bit}, -1')}"))
                begin = em.let(f"sext i32 {em.load('i32', em.at('i32', self._begins, word), 4)} to i64")
                at = em.add(em.add(begin, below), start)
                b = self.element(self._right, [f] * len(self.components), 1)
                code = self.code(k, 1) if self.form.witness else ""
                self._store(at, self.take(1, self._load(at), a, b, code))

            if self.form.masked:
                em.branch(em.let(f"icmp ne i64 {em.let(f'and i64 {bits}, {bit}')}, 0"), add_term)
            else:
                add_term()

        self._each_term(i, add, values=True)
        self._each_word(lambda at, bits, none: none, [], clear=True)
        if rep.kind == "clamped" or self.scale is not None:
            em.loop(start, stop, 1, lambda e, _: self._store(e, self.decoded(1, self._load(e), self._threshold)))

    def _load(self, at: str | int) -> list[str]:
        """Load an inner element of the result, and its witness."""
        return [self.em.get(s, array, at) for s, array in self._places]

    def _store(self, at: str | int, values: Sequence[str]) -> None:
        """Store an element and its witness; a decoded sum is only an element."""
        for (s, array), x in zip(self._places, values, strict=False):
            self.em.put(s, x, array, at)
