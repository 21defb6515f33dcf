"""The Boolean engine on a GPU: matrices of bits, packed into words of device memory for as long as an algorithm runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.block import Block
from semiring.kernels.cuda import loading
from semiring.kernels.cuda.bits import GRANULE, PIVOT, PIVOT_WORDS, SPAN, WARPS, choose_bits, kernels_for_bits
from semiring.kernels.cuda.graphs import recording
from semiring.kernels.cuda.operands import shares, stacked
from semiring.kernels.cuda.rows import copy_rows, move
from semiring.kernels.engine import Immediate
from semiring.kernels.packed import PackedBlock

__all__ = ["CudaBooleanEngine"]

_SMALL = 128 << 20
"""Bytes of a packed matrix up to which its schedule is recorded, on a workspace of the same size."""


class CudaBooleanEngine(Immediate):
    """`Engine` for (∨, ∧) on bits in the memory of one GPU, without witnesses.

    A tensor core takes rows of both operands, so that each product begins with B's transpose: n² bits of work before n³. That copy, and
    one of an A that is part of C, let a product read the old values. (Where the other operand is transitively closed, as in every
    closure, new bits would do no harm: they are in the result anyhow. Elsewhere the result would depend on who comes first.)

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    granule = GRANULE
    pivot = PIVOT
    signs = None

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._kernels = kernels_for_bits(number)

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> PackedBlock:
        """The block that holds `values` as bits."""
        assert via is None
        block, truths = self.blank(values), stacked(values[0])
        self._convert("pack", truths, block)
        return block

    def blank(self, values: tuple[Any, ...], via: Any = None) -> PackedBlock:
        """The block that stands for what a product will be."""
        import cupy

        *batch, m, n = values[0].shape
        words = cupy.zeros((int(np.prod(batch)), m, _words(n)), dtype=np.uint32)
        return PackedBlock((words,), None, 0, 0, n, GRANULE)

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write the block's elements into `values`."""
        import cupy

        truths = stacked(values[0])
        self._convert("unpack", truths, A)
        if not cupy.may_share_memory(truths, values[0]):
            move(truths.reshape(values[0].shape), values[0])

    def _convert(self, name: str, truths: Any, A: Block) -> None:
        batch, m, n = truths.shape
        if truths.size:
            grid = -(-m // WARPS) * -(-n // SPAN) * batch
            apart, row, column = truths.strides
            aligned = column == 1 and not any(x % 16 for x in (truths.data.ptr, row, apart if batch > 1 else 0))
            self._launch(name, grid, (truths.data.ptr, row, column, apart, *_matrix(A), m, n, int(aligned)))

    def _launch(self, name: str, grid: int, arguments: tuple[int, ...]) -> None:
        self._kernels.function(name)((grid, 1, 1), (32 * WARPS, 1, 1), arguments)

    def expect_signs(self, m: int, n: int, k: int) -> None:
        """Nothing: truth values have none."""

    def launches(self, a: Any, b: Any, *, witness: bool) -> None:
        """Nothing, because bits are packed for each product."""
        return

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ∪ A·B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A·B."""
        self._product(A, B, C, fresh=True)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        (m, n), k, batch = C.shape, A.shape[1], len(C.values[0])
        if 0 in (m, n, batch):
            return
        if shares(A, C):
            A = replace(A, values=(_copied(A.values[0]),))
        transposed = self._transposed(B)
        tile = choose_bits(m, n, batch, self._kernels.device)
        grid = -(-m // tile.rows) * -(-n // tile.columns) * batch
        arguments = (*_matrix(A), *_matrix(transposed), *_matrix(C), m, n, k, int(fresh))
        self._kernels.function("product", tile)((grid, 1, 1), (tile.threads, 1, 1), arguments, tile.shared_bytes)

    def _transposed(self, B: Block) -> PackedBlock:
        import cupy

        (k, n), batch = B.shape, len(B.values[0])
        transposed = PackedBlock((cupy.empty((batch, n, _words(k)), dtype=np.uint32),), None, 0, 0, k, GRANULE)
        if k:
            grid = -(-k // GRANULE) * -(-n // (32 * WARPS)) * batch
            self._launch("transpose", grid, (*_matrix(B), *_matrix(transposed), k, n))
        return transposed

    def close(self, A: Block) -> None:
        """A ← A ∪ A² ∪ …; every pivot is harmless."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            words = next(w for w in PIVOT_WORDS if n <= 32 * w)
            self._kernels.function("close", words=words)((batch, 1, 1), (32 * words, 1, 1), (*_matrix(A), n))

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self.close(A)
        self.add_identity(A)

    def add_identity(self, A: Block) -> None:
        """A ← I ∪ A."""
        n, batch = A.shape[0], len(A.values[0])
        if n and batch:
            self._launch("add_identity", -(-n // (32 * WARPS)) * batch, (*_matrix(A), n))

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``; where launches would take longer than the work, as a CUDA graph from its second use on."""
        recorded = None
        if A.shape[0] > self.pivot and A.values[0].nbytes <= _SMALL and not loading.rehearsing():
            recorded = recording(("bits", self.number, A.values[0].shape, A.shape, name), A, schedule)
        if recorded is None:
            loading.run(lambda: schedule(A), lambda: schedule(A))
        else:
            recorded.play(A)


def _copied(words: Any) -> Any:
    import cupy

    copied = cupy.empty(words.shape, words.dtype)
    copy_rows(words, copied)
    return copied


def _words(n: int) -> int:
    """Words of a row of n bits with its padding."""
    return -(-n // GRANULE) * (GRANULE // 32)


def _matrix(A: Block) -> tuple[int, int, int]:
    """The arguments that tell where a block lies: its address, and strides in words."""
    words = A.values[0]
    return words.data.ptr, words.strides[1] // 4, words.strides[0] // 4
