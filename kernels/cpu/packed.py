"""The Boolean engine: matrices of bits, packed into words for as long as an algorithm runs."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.block import Block
from semiring.kernels.cpu.bits import GROUP, STRIP, TABLE_SPACE, BitsKernel, Words
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.target import host
from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.engine import Immediate
from semiring.kernels.overlap import matched, overlap
from semiring.kernels.packed import PackedBlock

__all__ = ["BooleanEngine"]

Array = np.ndarray[Any, Any]

_ROWS = 2048
"""Rows of C in a task: enough to pay for the tables."""


class BooleanEngine(Immediate):
    """`Engine` for (∨, ∧) on bits, without witnesses.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional
    """

    granule = STRIP
    pivot = STRIP

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.semiring, self.dtypes, self.threads = semiring, dtypes, thread_count(threads)
        target = host()
        library = compile_library(("bits",), target, lambda: link(BitsKernel().functions()))
        self._product, self._close = library.function("bits_product"), library.function("bits_close")
        self._scratch = [np.empty(TABLE_SPACE + _ROWS * STRIP // 8 + 64, dtype=np.uint8) for _ in range(self.threads)]

    def load(self, values: tuple[Array, ...], via: Array | None = None, *, owned: bool = True) -> PackedBlock:
        """The block that holds `values` as bits."""
        assert via is None
        (a,) = values
        n = a.shape[-1]
        words = np.zeros((*a.shape[:-1], -(-n // STRIP) * (STRIP // 64)), dtype=np.uint64)
        self._by_rows(a.shape[-2], lambda rows: _pack(a[..., rows, :], words[..., rows, :]))
        return PackedBlock((words,), None, 0, 0, n, STRIP)

    def blank(self, values: tuple[Array, ...], via: Array | None = None) -> PackedBlock:
        """The block that stands for what a product will be."""
        return self.load(values, via)

    def store(self, A: Block, values: tuple[Array, ...]) -> None:
        """Write the block's elements into `values`."""
        (words,), (to,) = A.values, values
        self._by_rows(to.shape[-2], lambda rows: _unpack(words[..., rows, :], to[..., rows, :]))

    def _by_rows(self, m: int, work: Any) -> None:
        pieces = [slice(i, min(m, i + 512)) for i in range(0, m, 512)]
        run(lambda rows, _: work(rows), pieces, self.threads)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ∪ A·B."""
        (c,) = C.values
        a, b = (v if matched(v, c) else v.copy() for v in (A.values[0], B.values[0]))
        for index in np.ndindex(C.batch):
            self._multiply_add(_apart(a[index], c[index]), _apart(b[index], c[index]), c[index], A.shape[1])

    def _multiply_add(self, a: Array, b: Array, c: Array, k: int) -> None:
        m, words = c.shape
        if 0 in (m, words, k):
            return
        strips = words * 64 // STRIP
        parts = min(strips, 2 * self.threads)
        wide = -(-strips // parts) * (STRIP // 64)
        tasks = [(i, j) for j in range(0, words, wide) for i in range(0, m, _ROWS)]
        groups = np.ascontiguousarray(a).view(f"<u{GROUP // 8}").T.copy()

        def work(task: tuple[int, int], slot: int) -> None:
            i, j = task
            rows = slice(i, min(m, i + _ROWS))
            self._call(self._product, groups[:, rows], b[:, j : j + wide], c[rows, j : j + wide], k, slot)

        run(work, tasks, self.threads if m * words * k > 1 << 16 else 1)

    def _call(self, kernel: Any, a: Array, b: Array, c: Array, k: int, slot: int) -> None:
        scratch = self._scratch[slot].ctypes.data
        scratch += -scratch % 64
        words = Words(
            a=a.ctypes.data,
            a_groups=a.strides[0] // a.itemsize,
            b=b.ctypes.data,
            b_rows=b.strides[0] // b.itemsize,
            c=c.ctypes.data,
            c_rows=c.strides[0] // c.itemsize,
            m=c.shape[0],
            words=c.shape[1],
            k=k,
            tables=scratch,
            own=scratch + TABLE_SPACE,
        )
        arguments = array("q", words)
        kernel(arguments.buffer_info()[0])

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        A, B = (PackedBlock((_apart(X.values[0], C.values[0]),), None, 0, 0, X.shape[1], STRIP) for X in (A, B))
        C.values[0][...] = 0
        self.multiply_add(A, B, C)

    def close(self, A: Block) -> None:
        """A ← A ∪ A² ∪ …; every pivot is harmless."""
        (a,) = A.values
        for index in np.ndindex(A.batch):
            if a[index].size:
                self._call(self._close, a[index], a[index], a[index], A.shape[0], 0)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """A ← I ∪ A."""
        i = np.arange(A.shape[0])
        A.values[0][..., i, i // 64] |= np.uint64(1) << (i % 64).astype(np.uint64)


def _pack(bits: Array, words: Array) -> None:
    packed = np.packbits(bits, axis=-1, bitorder="little")
    words.view(np.uint8)[..., : packed.shape[-1]] = packed


def _unpack(words: Array, bits: Array) -> None:
    octets = np.ascontiguousarray(words).view(np.uint8)
    bits[...] = np.unpackbits(octets, axis=-1, count=bits.shape[-1], bitorder="little").view(bool)


def _apart(operand: Array, c: Array) -> Array:
    """`operand`, copied if it is part of the result."""
    return operand.copy() if overlap(operand, c) else operand
