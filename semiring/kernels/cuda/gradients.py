"""Gradients of products on a GPU.

Where ⊕ selects, one kernel an operand adds up the gradients of values by their witness. Over log Σ exp, kernels write the exponentials and
the weights of two products of numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.derivatives import ZERO, uses_operands
from semiring.algebra.expression import Expr
from semiring.arrays.devices import Strided, in_stream_of, strided
from semiring.arrays.followed import is_transformed
from semiring.kernels.cuda.arguments import GradientSums, GradientWeights, LineExponentials, StridedBatch, flat, word_of
from semiring.kernels.cuda.blocks import BATCH
from semiring.kernels.cuda.compiler import Kernel, kernel_for, pointer_to, semiring_kernel_for
from semiring.kernels.cuda.launches import LaunchPlan
from semiring.kernels.cuda.source import function
from semiring.kernels.hardware import device

__all__ = ["exponentials_on_gpu", "exponentials_source", "gradients_source", "selected_on_gpu"]

_WARPS = 8  # a thread block has a warp for each of 8 lines, which lie in the same sectors if they are columns
_THREADS, _BLOCKS = 256, 8  # of blocks that write weights: threads, and blocks per multiprocessor
_SPAN = 4096  # most sums of a line in shared memory


def gradients_source(weight: Expr, dtype: np.dtype[Any], columns: bool) -> str:
    """Return the CUDA C++ of the kernel ``sum_by_witness``; `weight` is the derivative of ⊗ by the operand with these lines."""
    left, right = ("other", "own") if columns else ("own", "other")
    lines, (found,) = function([weight], [left], [right], (dtype,))
    return f"""#include "arithmetic.cuh"
#include "gradients.cuh"

struct Weighted {{
  using Value = {dtype};
  static constexpr bool READS = {str(uses_operands(((weight,),))).lower()};
  static __device__ __forceinline__ Value weight(Value own, Value other) {{ {" ".join(lines)} return {found}; }}
}};
extern "C" __global__ void __launch_bounds__({32 * _WARPS}) sum_by_witness(const __grid_constant__ GradientSums<{dtype}> given) {{
  sum_gradients<Weighted, {_WARPS}>(given);
}}
"""


def selected_on_gpu(weights: Sequence[Expr], tensors: Sequence[Any], wanted: tuple[bool, bool]) -> tuple[Any, Any] | None:
    """Return the gradients of both operands of a product whose ⊕ selects; None unless all tensors are readable on one GPU.

    `weights` are the derivatives of ⊗ by both operands. `tensors` are stacks of matrices: the gradients of values, the witness, and the
    operands.
    """
    with in_stream_of(tensors):
        if (kept := _stacks(tensors)) is None:
            return None
        gradients, witness, *operands = kept[1]
        found: list[Any] = [None, None]
        for side, (operand, weight) in enumerate(zip(tensors[2:], weights, strict=True)):
            if wanted[side]:
                found[side] = operand.new_zeros(operand.shape) if weight is ZERO else operand.new_empty(operand.shape)
                if weight is not ZERO:
                    sums = _contiguous(found[side].data_ptr(), operands[side])
                    arrays = gradients, witness, operands[side], operands[1 - side], sums
                    layouts = tuple([x[1:] for x in arrays])
                    for plan, first in _sums_by_witness(weight, layouts, operand.get_device(), columns=side == 1):
                        plan.start([x.address + first * x.strides[0] for x in arrays], ())
    return found[0], found[1]


def _stacks(tensors: Sequence[Any]) -> tuple[list[Any], list[Strided]] | None:
    """Return tensors with at most one batch axis, copies if need be, and their layouts as stacks; None if a layout cannot be read."""
    if not tensors[0].is_cuda or any(map(is_transformed, tensors)):
        return None
    kept = [x.detach() if x.ndim <= 3 else x.detach().flatten(0, -3) for x in tensors]
    seen = [found for x in kept if (found := strided(x)) is not None]
    if len(seen) < len(kept):
        return None
    return kept, [x if len(x.shape) == 3 else Strided(x.address, (1, *x.shape), (0, *x.strides), x.dtype) for x in seen]


def _contiguous(address: int, like: Strided) -> Strided:
    """Describe a contiguous stack of the shape and the dtype of another one."""
    (_, rows, columns), size = like.shape, like.dtype.itemsize
    return Strided(address, like.shape, (rows * columns * size, columns * size, size), like.dtype)


@functools.lru_cache(maxsize=1024)
def _sums_by_witness(weight: Expr, layouts: tuple[Any, ...], number: int, *, columns: bool) -> list[tuple[LaunchPlan, int]]:
    """Return launches that write the gradient of the left operand, or of the right (`columns`), each with the number of its first matrix.

    Layouts stand for the gradients of values, the witness, the operand of the gradient, the other operand and the result.
    """
    gradients, *_, sums = arrays = [Strided(0, *layout) for layout in layouts]
    dtype, (count, *_), depth = sums.dtype, sums.shape, sums.shape[1 if columns else 2]
    lines, entries = gradients.shape[1:][::-1] if columns else gradients.shape[1:]
    span = min(depth, _SPAN * 4 // dtype.itemsize)
    turned = columns, columns, columns, not columns, columns  # the other operand has a row for each entry
    limit = device(number).block_shared_bytes
    kernel = semiring_kernel_for("sum_by_witness", number, gradients_source, weight, dtype, columns, shared_bytes=limit)
    parts = [_lines(x, 0, turned=by_columns) for x, by_columns in zip(arrays, turned, strict=True)]
    fields = np.array([0, *flat(GradientSums(*parts, lines, entries, depth, span))], np.int64)  # type: ignore[call-arg, arg-type]  # five matrices
    places = [1 + i * len(StridedBatch._fields) for i in range(len(parts))]
    grids = [(start, (-(-lines // _WARPS), -(-depth // span), min(BATCH, count - start))) for start in range(0, count, BATCH)]
    shared = _WARPS * span * dtype.itemsize
    return [(LaunchPlan(kernel, grid, (32 * _WARPS, 1, 1), shared, fields, places), start) for start, grid in grids]


def _lines(x: Strided, start: int, *, turned: bool) -> StridedBatch:
    """Return a stack of matrices, or of their transposes, from one matrix on."""
    batch, row, column = (step // x.dtype.itemsize for step in x.strides)
    address = x.address + start * x.strides[0]
    return StridedBatch(address, column, row, batch) if turned else StridedBatch(address, row, column, batch)


def exponentials_source(dtype: np.dtype[Any]) -> str:
    """Return the CUDA C++ of the kernels ``exponentials`` and ``weights``."""
    bits = "unsigned" if dtype.itemsize == 4 else "unsigned long long"
    return f"""#include "arithmetic.cuh"
#include "gradients.cuh"

extern "C" __global__ void __launch_bounds__({32 * _WARPS}) exponentials(const __grid_constant__ LineExponentials<{dtype}> given) {{
  write_exponentials<{dtype}, {_WARPS}>(given);
}}
extern "C" __global__ void __launch_bounds__({_THREADS}) weights(const __grid_constant__ GradientWeights<{dtype}> given) {{
  write_weights<{dtype}, {bits}>(given);
}}
"""


def exponentials_on_gpu(
    scale: float, tensors: Sequence[Any], wanted: tuple[bool, bool], limits: tuple[float, float]
) -> tuple[Any, Any] | None:
    """Return the gradients of both operands of a product over log Σ exp, by two products of numbers.

    None is returned unless all tensors are readable on one GPU, and the largest exponent and weight are within the limits. `tensors` are
    stacks of matrices: the gradients of values, the values, and the operands.
    """
    with in_stream_of(tensors):
        if (kept := _stacks(tensors)) is None:
            return None
        (gradients, values, *operands), g, (count, m, n) = kept[1], tensors[0], kept[1][0].shape
        p, q = (g.new_empty(x.shape) for x in operands)
        weights, results, largest = g.new_empty((count, m, n)), g.new_zeros(2), g.new_empty(count * (m + n))
        of_rows, number, word = largest.data_ptr(), g.get_device(), word_of(scale)
        of_columns = of_rows + count * m * g.element_size()
        for operand, to, address, columns in zip(operands, (p, q), (of_rows, of_columns), (False, True), strict=True):
            _write_exponentials(operand, to.data_ptr(), address, word, number, columns=columns)
        seen = _lines(gradients, 0, turned=False), _lines(values, 0, turned=False)
        given = GradientWeights(*seen, of_rows, of_columns, weights.data_ptr(), results.data_ptr(), count, m, n, word)
        kernel = kernel_for("weights", number, exponentials_source, gradients.dtype)
        _start(kernel, (min(count * m, _BLOCKS * device(number).multiprocessors), 1, 1), _THREADS, given)
    exponent, size = results.tolist()
    if not (exponent <= limits[0] and size <= limits[1]):
        return None
    left = (weights @ q.mT).mul_(p).view(tensors[2].shape) if wanted[0] else None
    right = (p.mT @ weights).mul_(q).view(tensors[3].shape) if wanted[1] else None
    return left, right


def _write_exponentials(source: Strided, to: int, largest: int, scale: int, number: int, *, columns: bool) -> None:
    """Write e^{s x − largest} of each row, or each column, to a contiguous stack, and the largest s x to an address."""
    count, rows, width = source.shape
    lines, entries = (width, rows) if columns else (rows, width)
    target = _contiguous(to, source)
    kernel = kernel_for("exponentials", number, exponentials_source, source.dtype)
    for start in range(0, count, BATCH):
        x, y = (_lines(v, start, turned=columns) for v in (source, target))
        given = LineExponentials(x, y, largest + start * lines * source.dtype.itemsize, lines, entries, scale)
        _start(kernel, (-(-lines // _WARPS), 1, min(BATCH, count - start)), 32 * _WARPS, given)


def _start(kernel: Kernel, grid: tuple[int, int, int], threads: int, given: tuple[Any, ...]) -> None:
    fields = np.array([0, *flat(given)], np.int64)
    kernel.start(grid, (threads, 1, 1), pointer_to(fields))
