"""Scans on a GPU: one thread block per sequence, in one launch for all steps.

Steps depend on each other, so a sequence takes as long as all its steps in turn. The sums of 64 states are shared by 256 threads, which
hold a matrix that is the same in all steps in registers. The order of additions depends only on the number of states. Where ⊕ is log(e^{sa}
+ e^{sb}) / s, a sum takes its maximum out, and one logarithm.

Sequences are not cut in time. Products of the matrices in parallel would take S times as many operations: no less time over log Σ exp, and
less time over max-plus only for one long sequence. Besides, a vector after a cut would be rounded in another order than a step from the
vector before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.kernels.cuda.arguments import Scan
from semiring.kernels.cuda.blocks import by_value, of_one_layout
from semiring.kernels.cuda.compiler import semiring_kernel_for
from semiring.kernels.cuda.kernels import step_for
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.source import sum_of, summing_source
from semiring.kernels.engine import ScanOperands, ScanPlaces, sequence_offsets
from semiring.kernels.hardware import device
from semiring.kernels.limits import threshold

__all__ = ["CudaScans", "ScanForm", "ScanTile", "fits", "scan_source", "scan_tile"]

_THREADS = 1024  # the most threads of a block, and so states
_HELD_BYTES, _STREAMED_BYTES = 64, 32  # of a matrix: held in a thread's registers for all steps; or else read ahead
_SHARED_BYTES = 48 << 10  # the vectors of a block: the shared memory that needs no special request
_ROWS, _ROW_BYTES = 64, 16 << 10  # steps traced back at a time, and bytes of their winners


@dataclass(frozen=True)
class ScanTile:
    """The division of a step among the threads of a block."""

    size: int  # bytes of an element
    states: int
    parts: int  # lanes that share a sum
    terms: int  # terms that a lane adds at a time
    held: bool  # these are all terms, and the matrix stays in registers

    @property
    def length(self) -> int:
        """Terms of a part, including padding."""
        return -(-self.states // (self.parts * self.terms)) * self.terms

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return -(-self.states * self.parts // 32) * 32

    @property
    def bound(self) -> int:
        """The most threads per block that the kernel is compiled for."""
        return -(-(self.parts**2) * self.terms // 32) * 32 if self.held else _THREADS

    @property
    def vector_bytes(self) -> int:
        """Bytes of the two buffers of the vector in shared memory."""
        width = max(1, 16 // self.size)
        return 2 * self.parts * (self.length // width | 1) * width * self.size


def scan_tile(size: int, states: int, *, constant: bool) -> ScanTile:
    """Return the tile for elements of `size` bytes; a `constant` matrix is the same in all steps."""
    width, parts = max(1, 16 // size), 1
    # Lanes share a sum if a lane's part would be long, or lanes of a warp idle.
    while 2 * parts * states <= _THREADS and (states * size > _HELD_BYTES * parts or (2 * parts * states <= 32 and states > 4 * parts)):
        parts *= 2
    length = -(-states // (parts * width)) * width
    held = constant and length * size <= _HELD_BYTES
    # Prefetched terms need registers too.
    whole = held or (length * size <= _HELD_BYTES and 2 * states * parts <= _THREADS)
    return ScanTile(size, states, parts, length if whole else min(length, max(width, _STREAMED_BYTES // size)), held)


def fits(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], states: int) -> bool:
    """Return True if a thread block has room for so many states."""
    if states == 0:
        return True
    size = represent(semiring, dtypes).size
    return states <= _THREADS and scan_tile(size, states, constant=False).vector_bytes <= _SHARED_BYTES


@dataclass(frozen=True)
class ScanForm:
    """The template arguments of a generated kernel; see `ScanTile` for `parts`, `terms` and `held`."""

    parts: int
    terms: int
    held: bool
    bound: int  # threads
    backward: bool
    weighted: bool
    witness: bool
    added: bool = False


def scan_source(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], form: ScanForm, arch: int) -> str:
    """Return the CUDA C++ of the kernel ``scan``."""
    r = represent(semiring, dtypes)
    total = sum_of(semiring, dtypes, witness=form.witness)
    step = step_for(r, arch, ordered_bits=False) if total == "Fold" else None
    flags = (str(x).lower() for x in (form.held, form.backward, form.weighted, form.witness, form.added))
    call = f"scan_sequence<Summed, {total}<Summed>, {form.parts}, {form.terms}, {', '.join(flags)}>"
    return summing_source(semiring, dtypes, "scan", {"scan": (call, form.bound)}, step=step)


class CudaScans:
    """The `Scans` of one GPU."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._representation = represent(semiring, dtypes)

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """Fill the places with the answer, except beyond the lengths of sequences."""
        import cupy

        r, states, lengths = self._representation, operands.states, operands.lengths.ravel()
        if states == 0 and places.states is not None:
            places.states[...] = -1
        if states == 0 or lengths.size == 0:
            return
        batch = operands.batch
        axis, last = len(batch), places.values[0].ndim == len(batch) + 1

        def spread(values: tuple[Any, ...], *shape: int) -> list[Any]:
            """Return components of one layout, broadcast to a part per sequence."""
            alike = of_one_layout(tuple([v.view(d) for v, d in zip(values, r.dtypes, strict=True)]))
            return [cupy.broadcast_to(v, (*batch, *shape)) for v in alike]

        matrices = spread(operands.matrices, operands.steps, states, states)
        initials = spread(operands.initial, states)
        weights = [] if operands.weights is None else spread(operands.weights, operands.steps, states)
        added = [] if operands.added is None else spread(operands.added, operands.steps + 1, states)
        values = [cupy.broadcast_to(v[..., None, :], (*batch, operands.steps + 1, states)) if last else v for v in places.values]

        def column(v: Any, first: Array | None = None) -> Array:
            """Return each sequence's address in an array; backward, the address of the last step."""
            start: int = v.data.ptr
            return sequence_offsets(v, axis) + start + (first * v.strides[axis] if backward and first is not None else 0)

        def stride(arrays: list[Any], number: int) -> int:
            """Return the stride in elements along an axis after the batch."""
            return arrays[0].strides[axis + number] // arrays[0].itemsize if arrays else 0

        direction, nothing, final = -1 if backward else 1, np.zeros_like(lengths), np.maximum(lengths - 1, 0)
        columns = [column(v, final) for v in matrices]
        columns += [column(v, final) for v in weights] or [nothing] * len(matrices)
        columns += [column(v) for v in initials] + [column(v, lengths) for v in values]
        columns += [column(v, lengths) for v in added] or [nothing] * len(matrices)
        columns += [nothing if v is None else column(v, lengths) for v in (places.witness, places.states)]
        table = cupy.asarray(np.ascontiguousarray(np.stack([*columns, lengths], axis=1), np.int64))
        tile, witness = scan_tile(r.size, states, constant=stride(matrices, 0) == 0), places.witness is not None
        form = ScanForm(tile.parts, tile.terms, tile.held, tile.bound, backward, bool(weights), witness, bool(added))
        rows = max(1, min(_ROWS, _ROW_BYTES // (4 * states))) if witness else 0  # steps traced back at a time
        down, across = stride(matrices, 1), stride(matrices, 2)
        scan = Scan(
            table.data.ptr,
            states,
            tile.length,
            direction * stride(matrices, 0),
            *((across, down) if backward else (down, across)),
            direction * stride(weights, 0),
            stride(weights, 1),
            stride(initials, 0),
            direction * stride(values, 0),
            direction * stride(added, 0),
            stride(added, 1),
            threshold(int(r.zero[0]), signed=signed) if r.clamped else 0,
            rows,
        )
        arch = device(self.number).arch
        kernel = semiring_kernel_for("scan", self.number, scan_source, self.semiring, self.dtypes, form, arch)
        kernel((len(lengths), 1, 1), (tile.threads, 1, 1), (by_value(scan),), max(tile.vector_bytes, 4 * rows * states))
