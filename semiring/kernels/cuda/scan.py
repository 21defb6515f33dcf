"""Scans on a GPU: a thread block for each sequence, with one launch for all of its steps.

A step waits for the one before, so that a sequence takes as long as its steps one after the other: the sums of 64 states are shared by 256
threads, which hold a matrix that is the same in all steps in their registers. What a step computes, and in which order terms are added,
depends on the number of states alone. Where ⊕ is log(e^{sa} + e^{sb}) / s, a sum has its maximum taken out and one logarithm.

A sequence is not cut in time. Products of matrices, which could be multiplied side by side, take S times as many operations: over log Σ exp
no less time, over max-plus less for one long sequence alone; but a vector behind a cut would not be one step from the vector before it, as
its sums would be rounded in another order.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels import cache
from semiring.kernels.cuda.arguments import Scan
from semiring.kernels.cuda.blocks import by_value, of_one_layout
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.kernels import step_for
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.sums import sum_of, summing_source
from semiring.kernels.hardware import device
from semiring.kernels.limits import threshold
from semiring.kernels.scans import ScanOperands, ScanPlaces, sequence_offsets

__all__ = ["CudaScans", "ScanForm", "ScanTile", "fits", "scan_source", "scan_tile"]

Array = np.ndarray[Any, Any]

_THREADS = 1024
"""Of a block at most, and so states."""

_HELD_BYTES, _STREAMED_BYTES = 64, 32
"""Bytes of a matrix that a thread holds in registers for all steps; and those that it reads ahead of any other matrix."""

_SHARED_BYTES = 48 << 10
"""Of the vectors of a block: what it has without asking for more."""

_ROWS, _ROW_BYTES = 64, 16 << 10
"""Steps that are followed back at a time, and bytes of their winners."""


@dataclass(frozen=True)
class ScanTile:
    """How a thread block shares out a step.

    Attributes
    ----------
    size : int
        Bytes of an element.
    states : int
    parts : int
        Lanes that share a sum.
    terms : int
        Terms that a lane adds at a time.
    held : bool
        Whether these are all, and a matrix stays in registers.
    """

    size: int
    states: int
    parts: int
    terms: int
    held: bool

    @property
    def length(self) -> int:
        """Terms of a part, with what pads them."""
        return -(-self.states // (self.parts * self.terms)) * self.terms

    @property
    def threads(self) -> int:
        """Of the block."""
        return -(-self.states * self.parts // 32) * 32

    @property
    def bound(self) -> int:
        """The most threads of a block for which the kernel is compiled."""
        return -(-(self.parts**2) * self.terms // 32) * 32 if self.held else _THREADS

    @property
    def vector_bytes(self) -> int:
        """Of the two places of the vector in shared memory."""
        width = max(1, 16 // self.size)
        return 2 * self.parts * (self.length // width | 1) * width * self.size


def scan_tile(size: int, states: int, *, constant: bool) -> ScanTile:
    """For elements of so many bytes and so many states, and a matrix that is the same in all steps, or a `constant` one."""
    width, parts = max(1, 16 // size), 1
    # A sum is shared where a lane's part would be long, and where the lanes of a warp would be idle.
    while 2 * parts * states <= _THREADS and (states * size > _HELD_BYTES * parts or (2 * parts * states <= 32 and states > 4 * parts)):
        parts *= 2
    length = -(-states // (parts * width)) * width
    held = constant and length * size <= _HELD_BYTES
    # What is on its way has registers too.
    whole = held or (length * size <= _HELD_BYTES and 2 * states * parts <= _THREADS)
    return ScanTile(size, states, parts, length if whole else min(length, max(width, _STREAMED_BYTES // size)), held)


def fits(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], states: int) -> bool:
    """Whether a thread block has room for so many states."""
    if states == 0:
        return True
    size = represent(semiring, dtypes).size
    return states <= _THREADS and scan_tile(size, states, constant=False).vector_bytes <= _SHARED_BYTES


@dataclass(frozen=True)
class ScanForm:
    """Which kernel is generated.

    Attributes
    ----------
    parts, terms, held
        See `ScanTile`.
    bound : int
        Threads.
    backward, weighted, witness : bool
    """

    parts: int
    terms: int
    held: bool
    bound: int
    backward: bool
    weighted: bool
    witness: bool


def scan_source(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], form: ScanForm, arch: int) -> str:
    """The CUDA C++ of the kernel ``scan``."""
    r = represent(semiring, dtypes)
    total = sum_of(semiring, dtypes, witness=form.witness)
    step = step_for(r, arch, ordered_bits=False) if total == "Fold" else None
    flags = (str(x).lower() for x in (form.held, form.backward, form.weighted, form.witness))
    call = f"scan_sequence<Summed, {total}<Summed>, {form.parts}, {form.terms}, {', '.join(flags)}>"
    return summing_source(semiring, dtypes, "scan.cuh", "scan", call, form.bound, step=step)


class CudaScans:
    """The `Scans` of one GPU.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._representation = represent(semiring, dtypes)

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """Fill the places with the answer, but for what is beyond the lengths of sequences."""
        import cupy

        r, states, lengths = self._representation, operands.states, operands.lengths.ravel()
        if states == 0 and places.states is not None:
            places.states[...] = -1
        if states == 0 or lengths.size == 0:
            return
        batch = operands.batch
        axis, last = len(batch), places.values[0].ndim == len(batch) + 1

        def spread(values: tuple[Any, ...], *shape: int) -> list[Any]:
            """Components of one layout, in the shape that has a part for each sequence."""
            alike = of_one_layout(tuple([v.view(d) for v, d in zip(values, r.dtypes, strict=True)]))
            return [cupy.broadcast_to(v, (*batch, *shape)) for v in alike]

        matrices = spread(operands.matrices, operands.steps, states, states)
        initials = spread(operands.initial, states)
        weights = [] if operands.weights is None else spread(operands.weights, operands.steps, states)
        values = [cupy.broadcast_to(v[..., None, :], (*batch, operands.steps + 1, states)) if last else v for v in places.values]

        def column(v: Any, first: Array | None = None) -> Array:
            """The address of what each sequence has of an array, backward of that of the last step."""
            start: int = v.data.ptr
            return sequence_offsets(v, axis) + start + (first * v.strides[axis] if backward and first is not None else 0)

        def stride(arrays: list[Any], number: int) -> int:
            """Along an axis after those of the batch, in elements."""
            return arrays[0].strides[axis + number] // arrays[0].itemsize if arrays else 0

        direction, nothing, final = -1 if backward else 1, np.zeros_like(lengths), np.maximum(lengths - 1, 0)
        columns = [column(v, final) for v in matrices]
        columns += [column(v, final) for v in weights] or [nothing] * len(matrices)
        columns += [column(v) for v in initials] + [column(v, lengths) for v in values]
        columns += [nothing if v is None else column(v, lengths) for v in (places.witness, places.states)]
        table = cupy.asarray(np.ascontiguousarray(np.stack([*columns, lengths], axis=1), np.int64))
        form, tile, rows = self._form(operands, places, stride(matrices, 0) == 0, backward)
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
            threshold(int(r.zero[0]), signed=signed) if r.clamped else 0,
            rows,
        )
        kernel = _kernel(self.semiring, self.dtypes, form, self.number)
        kernel((len(lengths), 1, 1), (tile.threads, 1, 1), (by_value(scan),), max(tile.vector_bytes, 4 * rows * states))

    def _form(self, operands: ScanOperands, places: ScanPlaces, constant: bool, backward: bool) -> tuple[ScanForm, ScanTile, int]:
        """Which kernel computes a scan, how a block shares out a step, and how many steps are followed back at a time."""
        tile = scan_tile(self._representation.size, operands.states, constant=constant)
        witness = places.witness is not None
        form = ScanForm(tile.parts, tile.terms, tile.held, tile.bound, backward, operands.weights is not None, witness)
        return form, tile, max(1, min(_ROWS, _ROW_BYTES // (4 * operands.states))) if witness else 0


@functools.lru_cache(maxsize=cache.LOADED)
def _kernel(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], form: ScanForm, number: int) -> Kernel:
    """The kernel of a form for a GPU."""
    return Kernel("scan", lambda: scan_source(semiring, dtypes, form, device(number).arch), number)
