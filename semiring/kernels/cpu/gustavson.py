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

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from semiring.kernels.cpu.emitter import I32, I64, Emitter
from semiring.kernels.cpu.lowering import Value
from semiring.kernels.cpu.sparse import Entries

__all__ = ["GustavsonKernel"]

_AHEAD = 8
"""The prefetch distance of rows of B, in entries."""

_LOOKUP = 16
"""The entries of a row that take as long to read as one bisection."""


class GustavsonKernel(Entries):
    """Generates ``sparse_symbolic`` and ``sparse_numeric`` with their options."""

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, x = self.open(), self.x
        self._tops = em.let(f"sdiv i64 {em.add(x['words'], 63)}, 64")
        self._bits = x["bitmap"]
        self._top = em.at("i64", self._bits, x["words"])
        self._begins = em.at("i64", self._top, self._tops)
        self._stop = em.sub(self.number(self.starts, x["last"]), 1)
        if self.masked:
            self._mask = em.at("i64", self._begins, em.let(f"sdiv i64 {em.add(x['words'], 1)}, 2"))
            self._sorted = em.let(f"icmp ne i64 {x['sorted']}, 0")
        if self.scale is not None:
            self.places.append((self.kinds[-1], x["sums"]))
        self._found = em.reserve("i64")
        self._threshold = em.splat_word(x["threshold"], self.rep.inner[0], 1) if self.rep.kind == "clamped" else ""
        with em.each(x["first"], x["last"]) as i:
            if self.kind == "symbolic":
                self._count(i)
            else:
                start, stop = (em.get(I64, x["out_starts"], row) for row in (i, em.add(i, 1)))
                with em.when(em.let(f"icmp slt i64 {start}, {stop}")):
                    self._fill(i, start, stop)
        return [em.done()]

    def _set(self, place: str, bit: str) -> None:
        self.em.put(I64, self.em.let(f"or i64 {self.em.get(I64, place, 0)}, {bit}"), place, 0)

    @contextmanager
    def _each_word(self, *, clear: bool) -> Iterator[tuple[str, str]]:
        """Emit the body for the number and the bits of each nonempty word of the bitmap; `clear` empties the bitmap on the way."""
        em = self.em
        with em.each(0, self._tops) as top:
            place = em.at("i64", self._top, top)
            with em.each_bit(em.get(I64, place, 0)) as number:
                word = str(em.add(em.mul(top, 64), number))
                bits = em.at("i64", self._bits, word)
                yield word, em.get(I64, bits, 0)
                if clear:
                    em.put(I64, "0", bits, 0)
            if clear:
                em.put(I64, "0", place, 0)

    def _of_mask(self, i: str, *, clear: bool) -> None:
        """Set the bits of a row of the mask, or clear their words."""
        if not self.masked:
            return
        with self.em.each(*self.ends(self.x["mask_starts"], i)) as e:
            word, bit = self.em.bit_of(self.number(self.x["mask_columns"], e))
            place = self.em.at("i64", self._mask, word)
            if clear:
                self.em.put(I64, "0", place, 0)
            else:
                self._set(place, bit)

    def _each_term(self, i: str, do: Callable[[str, str, str, list[Value]], None], *, values: bool) -> None:
        """Emit ``do`` for each term of row i: the entry of B, its column, k, and the entry of A if `values`."""
        em, x = self.em, self.x
        with em.each(*self.ends(self.starts, i)) as e:
            k = self.number(self.columns, e)
            later = self.number(x["right_starts"], self.number(self.columns, em.smin(em.add(e, _AHEAD), self._stop)))
            em.prefetch(em.at("i32" if self.narrow else "i64", x["right_columns"], later), write=False)
            for s, start in zip(self.rep.outer, self.right, strict=True) if values else ():
                em.prefetch(em.at(s.ir, start, later), write=False)
            a = self.element(self.values, [e] * len(self.components), 1) if values else []
            first, last = self.ends(x["right_starts"], k)

            def all_of_row() -> None:
                with em.each(first, last) as f:
                    do(f, self.number(x["right_columns"], f), k, a)

            if not self.masked:
                all_of_row()
                return
            begin, end = self.ends(x["mask_starts"], i)
            short = em.let(f"icmp slt i64 {em.mul(em.sub(end, begin), _LOOKUP)}, {em.sub(last, first)}")
            with em.when(em.let(f"and i1 {self._sorted}, {short}")), em.each(begin, end) as m:
                column = self.number(x["mask_columns"], m)
                lowest = [("i64", self._lookup(column, first, last))]
                with em.turns(lowest, functools.partial(self._has_column, last, column)) as ((f,), new):
                    do(f, column, k, a)
                    new.append(str(em.add(f, 1)))
            with em.otherwise():
                all_of_row()

    def _lookup(self, column: str, first: str, last: str) -> str:
        """Return the first entry from `first` to `last` whose column is at least `column`, by bisection."""
        em, ends = self.em, [("i64", first), ("i64", last)]
        with em.turns(ends, lambda values: em.let(f"icmp slt i64 {values[0]}, {values[1]}")) as ((low, high), new):
            middle = em.let(f"lshr i64 {em.add(low, high)}, 1")
            below = em.let(f"icmp slt i64 {self.number(self.x['right_columns'], middle)}, {column}")
            new += [em.select_i64(below, em.add(middle, 1), low), em.select_i64(below, high, middle)]
        return low

    def _has_column(self, last: str, column: str, values: Sequence[str]) -> str:
        em, (f,) = self.em, values
        inside = em.let(f"icmp slt i64 {f}, {last}")
        found = self.number(self.x["right_columns"], em.select_i64(inside, f, em.sub(last, 1)))
        return em.let(f"and i1 {inside}, {em.let(f'icmp eq i64 {found}, {column}')}")

    def _mark(self, i: str) -> None:
        em = self.em
        self._of_mask(i, clear=False)

        def mark(f: str, column: str, k: str, a: list[Value]) -> None:
            word, bit = em.bit_of(column)
            (top, its), place = em.bit_of(word), em.at("i64", self._bits, word)
            if self.masked:
                allowed = em.let(f"xor i64 {em.get(I64, self._mask, word)}, {self.x['flip']}")
                bit = em.let(f"and i64 {bit}, {allowed}")
                its = em.select_i64(em.let(f"icmp ne i64 {bit}, 0"), its, 0)
            self._set(place, bit)
            self._set(em.at("i64", self._top, top), its)

        self._each_term(i, mark, values=False)
        self._of_mask(i, clear=True)

    def _ones(self, bits: str) -> str:
        return self.em.call("ctpop.i64", "i64", ("i64", bits))

    def _count(self, i: str) -> None:
        """Count the entries of row i of the result; the length stays 0 if the mask has no entry."""
        em, some = self.em, "true"
        if self.masked:
            begin, end = self.ends(self.x["mask_starts"], i)
            some = self.low(1).any_of([em.let(f"icmp slt i64 {begin}, {end}"), em.let(f"icmp ne i64 {self.x['flip']}, 0")])
        with em.when(some):
            self._mark(i)
            em.put(I64, "0", self._found, 0)
            with self._each_word(clear=True) as (_, bits):
                em.put(I64, str(em.add(em.get(I64, self._found, 0), self._ones(bits))), self._found, 0)
            em.put(I64, em.get(I64, self._found, 0), self.x["out_starts"], em.add(i, 1))

    def _fill(self, i: str, start: str, stop: str) -> None:
        """Write the columns and the elements of row i of the result, at the entries from `start` to `stop`."""
        em, rep, index = self.em, self.rep, I32 if self.narrow else I64
        self._mark(i)
        em.put(I64, start, self._found, 0)
        with self._each_word(clear=False) as (word, bits):
            em.put(I32, em.let(f"trunc i64 {em.sub(em.get(I64, self._found, 0), start)} to i32"), self._begins, word)
            first = em.mul(word, 64)
            with em.each_bit(bits) as number:
                column, place = str(em.add(first, number)), em.get(I64, self._found, 0)
                if self.narrow:
                    column = em.let(f"trunc i64 {column} to i32")
                em.put(index, column, self.x["out_columns"], place)
                em.put(I64, str(em.add(place, 1)), self._found, 0)
        with em.each(start, stop) as e:
            self._store(e, [zero for _, zero in self.zeros(1)])

        def add(f: str, column: str, k: str, a: list[Value]) -> None:
            word, bit = em.bit_of(column)
            bits = em.get(I64, self._bits, word)
            with em.when(em.let(f"icmp ne i64 {em.let(f'and i64 {bits}, {bit}')}, 0") if self.masked else "true"):
                below = self._ones(em.let(f"and i64 {bits}, {em.let(f'add i64 {bit}, -1')}"))
                begin = em.let(f"sext i32 {em.get(I32, self._begins, word)} to i64")
                at = em.add(em.add(begin, below), start)
                b = self.element(self.right, [f] * len(self.components), 1)
                code = self.code(k, 1)
                self._store(at, self.take(1, self._load(at), a, b, code))

        self._each_term(i, add, values=True)
        with self._each_word(clear=True):
            pass
        if rep.kind == "clamped" or self.scale is not None:
            with em.each(start, stop) as e:
                self._store(e, self.decoded(1, self._load(e), self._threshold))

    def _load(self, at: str | int) -> list[str]:
        """Load an inner element of the result, and its witness."""
        return [self.em.get(s, array, at) for s, array in self.places]

    def _store(self, at: str | int, values: Sequence[str]) -> None:
        """Store an element and its witness; a decoded sum is only an element."""
        for (s, array), x in zip(self.places, values, strict=False):
            self.em.put(s, x, array, at)
