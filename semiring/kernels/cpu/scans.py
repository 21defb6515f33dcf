"""Scans by generated code: sequences are rows of a table, shared out among threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, return_scratch, run, take_scratch
from semiring.kernels.cpu.arguments import ScanArrays, ScanWords, kernel_name, pack, scratch_bytes
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.engine import ScanOperands, ScanPlaces, sequence_offsets
from semiring.kernels.machine import SERIAL

__all__ = ["CpuScans"]

_SHARES = 8
"""Calls per thread, so that sequences of unequal lengths keep all threads busy."""

_FIRST, _LAST, _SCRATCH = map(ScanWords._fields.index, ("first", "last", "scratch"))


class CpuScans(Threaded):
    """Scans over a semiring in compiled dtypes; `isa` names a narrower instruction set of this processor."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        self.requested = threads
        self._kernels = kernels_for(semiring, dtypes, isa)

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """See `Scans.run`."""
        rep, (steps, states, batch) = self._kernels.representation, (operands.steps, operands.states, operands.batch)
        lengths = operands.lengths.ravel()
        matrices = [_spread(v, (*batch, steps, states, states)) for v in operands.matrices]
        weights = None if operands.weights is None else [_spread(v, (*batch, steps, states)) for v in operands.weights]
        initials = [_spread(v, (*batch, states)) for v in operands.initial]
        added = None if operands.added is None else [_spread(_with_rows(v), (*batch, steps + 1, states)) for v in operands.added]
        name = kernel_name(
            "scan", backward=backward, weighted=weights is not None, witness=places.witness is not None, added=operands.added is not None
        )
        last = places.values[0].ndim == len(batch) + 1
        values = [np.broadcast_to(v[..., None, :], (*batch, steps + 1, states)) if last else v for v in places.values]
        axis, direction = len(batch), -1 if backward else 1

        def begin(v: Array) -> Array:
            """Return the address of each sequence's part of an array."""
            return sequence_offsets(v, axis) + address(v)

        def at(v: Array, step: int) -> Array:
            """Return the address of each sequence's first step, or of v₀; backward, at the end of the sequence."""
            first = np.maximum(lengths - 1, 0) if step else lengths
            return begin(v) + (first * v.strides[axis] if backward else 0)

        def pace(v: Array | None) -> int:
            """Return the stride from step to step, in elements."""
            return 0 if v is None else direction * v.strides[axis] // v.itemsize

        columns = [lengths, *(np.zeros_like(lengths) if v is None else at(v, 0) for v in (places.witness, places.states))]
        each = []
        for c, (matrix, initial, value) in enumerate(zip(matrices, initials, values, strict=True)):
            weight, more = (None if v is None else v[c] for v in (weights, added))
            columns += [at(matrix, 1), np.zeros_like(lengths) if weight is None else at(weight, 1), begin(initial), at(value, 0)]
            columns.append(np.zeros_like(lengths) if more is None else at(more, 0))
            down, across = (step // matrix.itemsize for step in matrix.strides[-2:])
            terms, sums = (across, down) if backward else (down, across)
            stride = 0 if weight is None else weight.strides[-1] // weight.itemsize
            start = initial.strides[-1] // initial.itemsize
            each.append(ScanArrays(pace(matrix), terms, sums, pace(weight), stride, start, pace(value), pace(more)))
        table = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)
        threshold = rep.threshold(signed=signed)
        template = pack(ScanWords(0, 0, address(table), states, 0, threshold, pace(places.witness), pace(places.states)), each)
        function, size = self._kernels.function(name), scratch_bytes(rep, states, self._kernels.tile.width)
        count, work = len(lengths), int(lengths.sum()) * states**2
        threads = self.threads if work >= SERIAL else 1
        step = max(1, -(-count // (_SHARES * threads)) if threads > 1 else count)

        def some(first: int, _: int) -> None:
            words, scratch = template[:], take_scratch(size)
            words[_FIRST], words[_LAST], words[_SCRATCH] = first, min(first + step, count), scratch.address
            function(words, work * rep.step_nanoseconds * step / count)
            return_scratch(scratch)

        run(some, range(0, count, step), threads)


def _with_rows(v: Array) -> Array:
    """Return an array with contiguous rows, a copy where necessary."""
    return v if v.strides[-1] == v.itemsize or v.shape[-1] < 2 else np.ascontiguousarray(v)


def _spread(v: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to the whole shape; copy it first if elements are unaligned."""
    if address(v) % v.itemsize or any(step % v.itemsize for step in v.strides):
        v = v.copy()
    return v if v.shape == shape else np.broadcast_to(v, shape)
