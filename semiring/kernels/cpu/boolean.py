"""Bit-packed Boolean matrices on the CPU: kernels by the method of the Four Russians, and their engine.

Arlazarov, Dinic, Kronrod and Faradžev (1970): 8 rows of B are combined into a table of their 256 unions, and 8 bits of a row of A pick the
union for C. So one load and one OR replace 8 × 512 bit-steps. A strip has 512 columns, so a table takes 16 KiB.

A packed matrix has rows of 64-bit words, bit j of a row in word j // 64; zeros pad the columns to whole strips. The engine keeps matrices
packed while an algorithm runs.
"""

from __future__ import annotations

import functools
import itertools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.overlap import address, matched, overlap
from semiring.arrays.threads import Threaded, return_scratch, run, take_scratch
from semiring.kernels.cpu.arguments import Arguments, pack
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter
from semiring.kernels.engine import Block, Immediate, PackedBlock
from semiring.kernels.hardware import host

__all__ = ["GROUP", "STRIP", "BitsKernel", "BooleanEngine"]

STRIP = 512
"""The columns of a strip, and of a table row."""

_WORDS = STRIP // 64
_VECTOR = I64.vector(_WORDS)
GROUP = 64
"""Steps of k that share a pass over C; one table covers 8 of them."""

_TABLES = GROUP // 8
_TABLE_BYTES = 256 * STRIP // 8
TABLE_SPACE = _TABLES * _TABLE_BYTES
"""The bytes of a group's tables."""


_UNROLLED = 4
"""Rows per turn of the closure's innermost loop."""

BitWords = namedtuple("BitWords", "a a_groups b b_rows c c_rows m words k tables own", defaults=(0, 0))
"""The arguments of all functions: addresses, strides in words (of A, in groups of bits), and sizes.

In `bits_pack` and `bits_unpack`, A is the matrix of bytes, with k columns and rows `a_groups` bytes apart."""


class BitsKernel:
    """Generates ``bits_product``, ``bits_close``, ``bits_identity``, ``bits_pack`` and ``bits_unpack``; each takes `BitWords`."""

    def functions(self) -> list[Emitter]:
        """Emit all functions."""
        parts = {"product": self._product, "close": self._close, "identity": self._identity, "pack": self._pack, "unpack": self._unpack}
        return [self._function(f"bits_{name}", emit) for name, emit in parts.items()]

    def _function(self, name: str, emit: Callable[[Emitter], None]) -> Emitter:
        em = Emitter(name, ENTRY)
        self.x = Arguments(BitWords).words(em, "a_groups b_rows c_rows m words k")
        emit(em)
        return em.done()

    def _product(self, em: Emitter) -> None:
        """Emit C ← C ∪ A·B for m rows, `words` words (whole strips) of columns and k steps.

        A is stored by groups of `GROUP` columns: the bits of one group are contiguous over all rows. A strip of C is copied to `own` and
        back, because rows of a matrix are often a power of two apart and would evict each other from the cache.
        """
        x, bits = self.x, f"i{GROUP}"
        with em.each(0, x["words"], _WORDS) as w:
            c = em.at("i64", x["c"], w)
            with em.each(0, x["m"]) as i:
                there, here = em.at("i64", c, em.mul(i, x["c_rows"])), em.at(_VECTOR, x["own"], i)
                em.store(_VECTOR, em.load(_VECTOR, there, 8), here, 8)
            with em.each(0, em.let(f"sdiv i64 {em.add(x['k'], GROUP - 1)}, {GROUP}")) as g:
                for table in range(_TABLES):
                    self._build(em, w, em.add(em.mul(g, GROUP), 8 * table), em.at("i8", x["tables"], table * _TABLE_BYTES))
                numbers = em.at(bits, x["a"], em.mul(g, x["a_groups"]))
                with em.each(0, x["m"]) as i:
                    number = em.load(bits, em.at(bits, numbers, i), GROUP // 8)
                    place = em.at(_VECTOR, x["own"], i)
                    total = em.load(_VECTOR, place, 64)
                    for table in range(_TABLES):
                        shifted = em.let(f"lshr {bits} {number}, {8 * table}") if table else number
                        index = em.let(f"zext i8 {em.let(f'trunc {bits} {shifted} to i8')} to i64")
                        entry = em.at(_VECTOR, em.at("i8", x["tables"], table * _TABLE_BYTES), index)
                        total = em.let(f"or {_VECTOR} {total}, {em.load(_VECTOR, entry, 64)}")
                    em.store(_VECTOR, total, place, 64)
            with em.each(0, x["m"]) as i:
                there, here = em.at("i64", c, em.mul(i, x["c_rows"])), em.at(_VECTOR, x["own"], i)
                em.store(_VECTOR, em.load(_VECTOR, here, 8), there, 8)

    def _build(self, em: Emitter, w: str, k: str | int, table: str) -> None:
        """Fill a table with the 256 unions of 8 rows of B from row k on. Rows beyond the last are never picked: A's bits there are 0."""
        em.store(_VECTOR, "zeroinitializer", table, 64)
        last = em.sub(self.x["k"], 1)
        for bit in range(8):
            row = em.mul(em.smin(em.add(k, bit), last), self.x["b_rows"])
            added = em.load(_VECTOR, em.at("i64", self.x["b"], em.add(row, w)), 8)
            with em.each(0, 1 << bit) as r:
                old = em.load(_VECTOR, em.at(_VECTOR, table, r), 64)
                new = em.at(_VECTOR, table, em.add(r, 1 << bit))
                em.store(_VECTOR, em.let(f"or {_VECTOR} {old}, {added}"), new, 64)

    def _close(self, em: Emitter) -> None:
        """Emit Warshall's algorithm on the m × m block C: for each k, row i takes in row k if it has bit k."""
        x = self.x
        with em.each(0, x["m"]) as k:
            row_k = em.at("i64", x["c"], em.mul(k, x["c_rows"]))
            word, bit = em.let(f"lshr i64 {k}, 6"), em.let(f"and i64 {k}, 63")
            with em.each(0, x["words"], _WORDS) as w:
                taken = em.load(_VECTOR, em.at("i64", row_k, w), 8)
                for i, count in em.by_vectors(x["m"], _UNROLLED):
                    for r in range(count):
                        row_i = em.at("i64", x["c"], em.mul(em.add(i, r), x["c_rows"]))
                        there = em.let(f"lshr i64 {em.load('i64', em.at('i64', row_i, word), 8)}, {bit}")
                        mask = em.splat(em.let(f"sub i64 0, {em.let(f'and i64 {there}, 1')}"), I64, _WORDS)
                        place = em.at("i64", row_i, w)
                        new = em.let(f"or {_VECTOR} {em.let(f'and {_VECTOR} {mask}, {taken}')}, {em.load(_VECTOR, place, 8)}")
                        em.store(_VECTOR, new, place, 8)

    def _identity(self, em: Emitter) -> None:
        with em.each(0, self.x["m"]) as i:
            word, bit = em.bit_of(i)
            place = em.at("i64", self.x["c"], em.add(em.mul(i, self.x["c_rows"]), word))
            em.store("i64", em.let(f"or i64 {em.load('i64', place, 8)}, {bit}"), place, 8)

    def _pack(self, em: Emitter) -> None:
        """Emit C ← the bits of bytes, for m rows of k columns of a C that is 0."""
        for source, target, shift, count in self._rows(em):
            values = em.load(f"<{count} x i8>", source, 1)
            packed = em.let(f"bitcast <{count} x i1> {em.let(f'icmp ne <{count} x i8> {values}, zeroinitializer')} to i{count}")
            if count == 1:
                bit = em.let(f"shl i8 {em.let(f'zext i1 {packed} to i8')}, {shift}")
                em.store("i8", em.let(f"or i8 {em.load('i8', target, 1)}, {bit}"), target, 1)
            else:
                em.store(f"i{count}", packed, target, 1)

    def _unpack(self, em: Emitter) -> None:
        """Emit bytes 0 and 1 ← the bits of C, for m rows of k columns."""
        for target, source, shift, count in self._rows(em):
            if count == 1:
                octet = em.load("i8", source, 1)
                em.store("i8", em.let(f"and i8 {em.let(f'lshr i8 {octet}, {shift}')}, 1"), target, 1)
            else:
                flags = em.let(f"bitcast i{count} {em.load(f'i{count}', source, 1)} to <{count} x i1>")
                em.store(f"<{count} x i8>", em.let(f"zext <{count} x i1> {flags} to <{count} x i8>"), target, 1)

    def _rows(self, em: Emitter) -> Iterator[tuple[str, str, str, int]]:
        """Emit the body for (bytes, bits, shift, count) along each row: 64 columns at a time, then 8, then single ones."""
        x = self.x
        ends = [0, em.round_down(x["k"], 64), em.round_down(x["k"], 8), x["k"]]
        with em.each(0, x["m"]) as i:
            octets, bits = em.at("i8", x["a"], em.mul(i, x["a_groups"])), em.at("i64", x["c"], em.mul(i, x["c_rows"]))
            for start, stop, count in zip(ends, ends[1:], (64, 8, 1), strict=False):
                with em.each(start, stop, count) as j:
                    shift = em.let(f"trunc i64 {em.let(f'and i64 {j}, 7')} to i8") if count == 1 else ""
                    yield em.at("i8", octets, j), em.at("i8", bits, em.let(f"lshr i64 {j}, 3")), shift, count


_ROWS = 2048
"""The rows of C per task: enough to pay for building the tables."""

_CONVERTED = 1 << 20
"""The elements packed or unpacked by a thread at a time."""


class BooleanEngine(Immediate, Threaded):
    """An `Engine` for (∨, ∧) on bits, without witnesses."""

    alignment = STRIP
    pivot = STRIP

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.semiring, self.dtypes, self.requested = semiring, dtypes, threads

    def load(self, values: tuple[Array, ...], via: Array | None = None, *, owned: bool = True) -> PackedBlock:
        """Pack `values` into a block of bits."""
        (a,), A = values, self.blank(values, via)
        self._convert("bits_pack", a if _has_rows(a) else np.ascontiguousarray(a), A.values[0])
        return A

    def blank(self, values: tuple[Array, ...], via: Array | None = None) -> PackedBlock:
        """Return a block of zeros for a product in the shape of `values`."""
        assert via is None
        *rows, n = values[0].shape
        return PackedBlock((np.zeros((*rows, -(-n // STRIP) * (STRIP // 64)), dtype=np.uint64),), None, 0, 0, n, STRIP)

    def store(self, A: Block, values: tuple[Array, ...]) -> None:
        """Unpack the block into `values`."""
        (words,), (to,) = A.values, values
        rows = to if _has_rows(to) else np.empty(to.shape, dtype=bool)
        self._convert("bits_unpack", rows, words)
        if rows is not to:
            to[...] = rows

    def _convert(self, name: str, octets: Array, words: Array) -> None:
        """Convert between bytes, in contiguous rows, and bits; a stack counts as one matrix of all rows."""
        if octets.size == 0:
            return
        octets, words = (v.reshape(-1, v.shape[-1]) for v in (octets, words))
        m, n = octets.shape
        rows = max(1, _CONVERTED // max(1, n))
        places, down, across, convert = (address(octets), address(words)), octets.strides[0], words.strides[0], _functions()[name]

        def work(i: int, _: int) -> None:
            a, c = places[0] + i * down, places[1] + i * across
            _call(convert, BitWords(a, down, 0, 0, c, across // 8, min(rows, m - i), 0, n))

        run(work, range(0, m, rows), self.threads if m > rows else 1)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ∪ A·B."""
        (a,), (b,), (c,), k = A.values, B.values, C.values, A.shape[1]
        if c.ndim == 2:
            self._multiply_add(_apart(a, c), _apart(b, c), c, k)
            return
        a, b = (v if matched(v, c) else v.copy() for v in (a, b))
        for index in np.ndindex(C.batch):
            self._multiply_add(_apart(a[index], c[index]), _apart(b[index], c[index]), c[index], k)

    def _multiply_add(self, a: Array, b: Array, c: Array, k: int) -> None:
        m, words = c.shape
        if 0 in (m, words, k):
            return
        threads = self.threads if m * words * k > 1 << 16 else 1
        strips = words * 64 // STRIP
        wide = -(-strips // min(strips, 2 * threads)) * (STRIP // 64)
        groups = a.T.copy()  # a word is a group
        product, places = _functions()["bits_product"], (address(groups), address(b), address(c))
        b_rows, c_rows = b.strides[0], c.strides[0]

        def work(task: tuple[int, int], worker: int) -> None:
            i, j = task
            rows, across = min(_ROWS, m - i), min(wide, words - j)
            scratch = take_scratch(TABLE_SPACE + rows * STRIP // 8)
            parts = places[0] + 8 * i, m, places[1] + 8 * j, b_rows // 8, places[2] + i * c_rows + 8 * j, c_rows // 8
            _call(product, BitWords(*parts, rows, across, k, scratch.address, scratch.address + TABLE_SPACE))
            return_scratch(scratch)
            if self.meter is not None:
                self.meter.add(rows * across * 64 * k, tell=worker == 0)

        run(work, [(i, j) for j in range(0, words, wide) for i in range(0, m, _ROWS)], threads)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        A, B = (PackedBlock((_apart(X.values[0], C.values[0]),), None, 0, 0, X.shape[1], STRIP) for X in (A, B))
        C.values[0][...] = 0
        self.multiply_add(A, B, C)

    def close(self, A: Block) -> None:
        """Compute A ← A ∪ A² ∪ …; no pivot can diverge."""
        self._square("bits_close", A.values[0])
        if self.meter is not None:
            self.meter.add(A.values[0].size * A.shape[0] * 64)

    def eliminate(self, A: Block) -> None:
        """Compute A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """Compute A ← I ∪ A."""
        self._square("bits_identity", A.values[0])

    def _square(self, name: str, a: Array) -> None:
        """Apply a function to a square matrix, or to each matrix of a stack."""
        *batch, m, words = a.shape
        for index in itertools.product(*map(range, batch)):
            _call(_functions()[name], BitWords(0, 0, 0, 0, address(a[index]), a.strides[-2] // 8, m, words, m))


@functools.cache
def _functions() -> dict[str, Function]:
    names = ("bits_product", "bits_close", "bits_identity", "bits_pack", "bits_unpack")
    library = compile_library(("bits",), host(), lambda: link(BitsKernel().functions()))
    return {name: library.function(name) for name in names}


def _call(kernel: Function, words: BitWords) -> None:
    kernel(pack(words), words.m * words.words * words.k / 20)


def _has_rows(v: Array) -> bool:
    return v.flags.c_contiguous or (v.ndim == 2 and v.strides[-1] == 1)


def _apart(operand: Array, c: Array) -> Array:
    """Return `operand`, copied if it overlaps the result."""
    return operand.copy() if overlap(operand, c) else operand
