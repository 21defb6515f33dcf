"""The Boolean engine: matrices of bits, packed into words for as long as an algorithm runs."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.block import Block
from semiring.kernels.cpu.bits import STRIP, TABLE_SPACE, BitsKernel, Words
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.scratch import give_back, take
from semiring.kernels.cpu.target import host
from semiring.kernels.cpu.threads import Threaded, run
from semiring.kernels.engine import Immediate
from semiring.kernels.overlap import address, matched, overlap
from semiring.kernels.packed import PackedBlock

__all__ = ["BooleanEngine"]

Array = np.ndarray[Any, Any]

_ROWS = 2048
"""Rows of C in a task: enough to pay for the tables."""

_CONVERTED = 1 << 20
"""Elements that a thread packs or unpacks at a time."""


class BooleanEngine(Immediate, Threaded):
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
        self.semiring, self.dtypes, self.requested = semiring, dtypes, threads

    def load(self, values: tuple[Array, ...], via: Array | None = None, *, owned: bool = True) -> PackedBlock:
        """The block that holds `values` as bits."""
        (a,), A = values, self.blank(values, via)
        self._convert("bits_pack", a if a.strides[-1] == 1 else np.ascontiguousarray(a), A.values[0])
        return A

    def blank(self, values: tuple[Array, ...], via: Array | None = None) -> PackedBlock:
        """The block that stands for what a product will be."""
        assert via is None
        *rows, n = values[0].shape
        return PackedBlock((np.zeros((*rows, -(-n // STRIP) * (STRIP // 64)), dtype=np.uint64),), None, 0, 0, n, STRIP)

    def store(self, A: Block, values: tuple[Array, ...]) -> None:
        """Write the block's elements into `values`."""
        (words,), (to,) = A.values, values
        if to.strides[-1] == 1:
            self._convert("bits_unpack", to, words)
        else:
            rows = np.empty(to.shape, dtype=bool)
            self._convert("bits_unpack", rows, words)
            to[...] = rows

    def _convert(self, name: str, octets: Array, words: Array) -> None:
        """Between bytes, whose rows are contiguous, and bits."""
        if words.ndim > 2:
            for index in np.ndindex(words.shape[:-2]):
                self._convert(name, octets[index], words[index])
            return
        m, n = octets.shape
        rows = max(1, _CONVERTED // max(1, n))
        places, down, across, convert = (address(octets), address(words)), octets.strides[0], words.strides[0], _functions()[name]

        def work(i: int, _: int) -> None:
            a, c = places[0] + i * down, places[1] + i * across
            _call(convert, Words(a, down, 0, 0, c, across // 8, min(rows, m - i), 0, n))

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

        def work(task: tuple[int, int], _: int) -> None:
            i, j = task
            rows = min(_ROWS, m - i)
            scratch = take(TABLE_SPACE + rows * STRIP // 8)
            _call(
                product,
                Words(
                    *(places[0] + 8 * i, m),
                    *(places[1] + 8 * j, b_rows // 8),
                    *(places[2] + i * c_rows + 8 * j, c_rows // 8),
                    *(rows, min(wide, words - j), k, scratch.address, scratch.address + TABLE_SPACE),
                ),
            )
            give_back(scratch)

        run(work, [(i, j) for j in range(0, words, wide) for i in range(0, m, _ROWS)], threads)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        A, B = (PackedBlock((_apart(X.values[0], C.values[0]),), None, 0, 0, X.shape[1], STRIP) for X in (A, B))
        C.values[0][...] = 0
        self.multiply_add(A, B, C)

    def close(self, A: Block) -> None:
        """A ← A ∪ A² ∪ …; every pivot is harmless."""
        self._square("bits_close", A.values[0])

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """A ← I ∪ A."""
        self._square("bits_identity", A.values[0])

    def _square(self, name: str, a: Array) -> None:
        """What is done to a square matrix, or to those of a batch."""
        if a.ndim > 2:
            for index in np.ndindex(a.shape[:-2]):
                self._square(name, a[index])
            return
        m, words = a.shape
        _call(_functions()[name], Words(0, 0, 0, 0, address(a), a.strides[0] // 8, m, words, m))


@functools.cache
def _functions() -> dict[str, Callable[[int], None]]:
    """The machine code, which is one for all semirings of truth values."""
    names = ("bits_product", "bits_close", "bits_identity", "bits_pack", "bits_unpack")
    library = compile_library(("bits",), host(), lambda: link(BitsKernel().functions()))
    return {name: library.function(name) for name in names}


def _call(kernel: Callable[[int], None], words: Words) -> None:
    arguments = array("q", words)
    kernel(arguments.buffer_info()[0])


def _apart(operand: Array, c: Array) -> Array:
    """`operand`, copied if it is part of the result."""
    return operand.copy() if overlap(operand, c) else operand
