"""The CUDA engine: kernels generated for the GPU at hand, on CuPy arrays, in the caller's stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.block import Block
from semiring.kernels.cuda.conversion import halved, has_ordered_bits, restore
from semiring.kernels.cuda.graphs import recording
from semiring.kernels.cuda.kernels import kernels_for, pivot_shape
from semiring.kernels.cuda.operands import access, copy, matrix, of_one_layout, parts, same, shares, stacked, via_arguments
from semiring.kernels.cuda.tile import Problem, Tile, choose, launch
from semiring.kernels.infinities import signed_threshold

__all__ = ["CudaEngine"]

_SCRATCH = 64 << 20
"""Bytes that a copy of an operand may have, unless a fiftieth of C is more."""

_SMALL = 64 << 20
"""Bytes of a matrix up to which its schedule is recorded, on a workspace of the same size."""

_BATCH = 65535
"""Matrices that one launch can number."""

_NONE = np.iinfo(np.int32).max


class CudaEngine:
    """`Engine` on CuPy arrays of one GPU, with kernels generated for it.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    granule = 1

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int = 0) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self.signed = False
        self._kernels = kernels_for(semiring, dtypes, number)
        self._representation = self._kernels.representation
        self.pivot, self._part = pivot_shape(self._representation)
        self._ordered_bits = self._representation.keeps_bits_ordered
        self._harmful: Any = None

    # The operations of `Engine`.

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block of the arrays themselves, or of copies if they have to change and are not owned."""
        r = self._representation
        arrays = of_one_layout(tuple(stacked(v.view(d)) for v, d in zip(values, r.dtypes, strict=True)))
        if r.halved:
            arrays = (halved(arrays[0], r.zero[0], owned=owned),)
        elif self._ordered_bits:
            self._ordered_bits = has_ordered_bits(arrays[0], mend=owned)
        return Block(arrays, None if via is None else stacked(via))

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of arrays that a product is written to."""
        arrays = of_one_layout(tuple(stacked(v.view(d)) for v, d in zip(values, self._representation.dtypes, strict=True)))
        return Block(arrays, None if via is None else stacked(via))

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Give elements back their own form, in `values`."""
        if self._representation.halved:
            half = int(self._representation.zero[0])
            infinity = self.semiring.identities(self.dtypes)[0][0]
            restore(A.values[0], A.via, signed_threshold(half) if self.signed else half, infinity)
        for source, target in zip(A.values, values, strict=True):
            if source.data.ptr != target.data.ptr:
                target[...] = source.view(target.dtype).reshape(target.shape)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._close("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._close("eliminate", A)

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        n = A.shape[0]
        if n and A.values[0].size:
            function = self._kernels.function("add_identity")
            for some in parts(len(A.values[0]), 0, 0, _BATCH):
                part = A.at(some)
                function((-(-n // 256), len(part.values[0]), 1), (256, 1, 1), (*matrix(part), n))

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``; where launches would take longer than the work, as a CUDA graph from its second use on."""
        if A.values[0].nbytes > _SMALL:
            schedule(A)
            return

        def launches(block: Block) -> Any:
            self._harmful = None
            schedule(block)
            return self._harmful

        key = (self.semiring, self.dtypes, self.number, A.values[0].shape, A.via is None, self._ordered_bits, name)
        recorded = recording(key, A, launches)
        if recorded is None:
            schedule(A)
        else:
            recorded.play(A)
            self._harmful = recorded.harmful

    def verify(self) -> None:
        """Raise what `close` and `eliminate` found since the last call; this waits for the GPU."""
        if self._harmful is None:
            return
        found = self._harmful.get()
        self._harmful = None
        if (found != _NONE).any():
            raise HarmfulPivot(int(found[found != _NONE].min()))

    # Pivot blocks.

    def _close(self, name: str, A: Block) -> None:
        import cupy

        n = A.shape[0]
        if n == 0 or A.values[0].size == 0:
            return
        batch = A.values[0].shape[0]
        if self._harmful is None or len(self._harmful) < batch:
            self._harmful = cupy.full(batch, _NONE, dtype=np.int32)
        function = self._kernels.function(name)
        threads = (self.pivot // self._part) ** 2
        function((batch, 1, 1), (threads, 1, 1), (*matrix(A), n, *via_arguments(A), A.row, self._harmful.data.ptr))

    # Products.

    def tile_for(self, problem: Problem) -> Tile:
        """The tile of a product."""
        return choose(problem, self._kernels.device)

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        """One launch, or one for each part of C for which copies of operands fit the scratch memory."""
        if 0 in C.shape or C.values[0].size == 0:
            return
        if len(C.values[0]) > _BATCH:
            for some in parts(len(C.values[0]), 0, 0, _BATCH):
                self._product(A.at(some), B.at(some), C.at(some), fresh=fresh)
            return
        limit = max(_SCRATCH, C.values[0].nbytes // 50)
        shared_a, shared_b = shares(A, C), shares(B, C)
        if shared_a and (shared_b or not same(A, C)):
            A, shared_a = copy(A), False
        if shared_b and not same(B, C):
            B, shared_b = copy(B), False
        if not shared_a:
            self._by_columns(A, B, C, shared_b, limit, fresh)
            return
        # A's rows are copied before the first of their elements changes.
        for rows in parts(C.shape[0], A.values[0].nbytes, limit):
            self._by_columns(copy(A[rows, :]), B, C[rows, :], shared_b, limit, fresh)

    def _by_columns(self, A: Block, B: Block, C: Block, shared_b: bool, limit: int, fresh: bool) -> None:
        witness = C.via is not None
        if not (shared_b or witness):
            self._launch(A, B, C, None, fresh)
            return
        for columns in parts(C.shape[1], B.values[0].nbytes * (shared_b + witness), limit):
            some = copy(B[:, columns]) if shared_b else B[:, columns]
            self._launch(A, some, C[:, columns], copy(some, transposed=True) if witness else None, fresh)

    def _launch(self, A: Block, B: Block, C: Block, transposed: Block | None, fresh: bool) -> None:
        (m, n), k = C.shape, A.shape[1]
        series = self._representation.has_series
        how = access(A, vectors=not series), access(B, vectors=not series)
        light = how == ("vectors", "vectors")
        problem = Problem(m, n, k, C.values[0].shape[0], self._representation.size, transposed is not None, light, series)
        tile = self.tile_for(problem)
        name = "product" if transposed is None else "product_witness"
        function = self._kernels.function(name, ordered_bits=self._ordered_bits, tile=tile, access=how)
        arguments = [*matrix(A), *matrix(B), *matrix(C), m, n, k, int(fresh)]
        if transposed is not None:
            arguments += [*matrix(transposed), *via_arguments(C), A.column]
        shape = launch(problem, tile)
        function((*shape.grid, 1), (shape.threads, 1, 1), tuple(arguments), shape.shared_bytes)
