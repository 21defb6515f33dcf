"""Gradients of products on a GPU.

Where ⊕ selects, one kernel an operand adds up the gradients of values by their witness. Over log Σ exp, kernels write the exponentials and
the weights of two products of numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.expression import Expr, nodes
from semiring.arrays.devices import Strided
from semiring.kernels.cuda.arguments import GradientSums, GradientWeights, LineExponentials, StridedBatch, word_of
from semiring.kernels.cuda.blocks import BATCH, by_value
from semiring.kernels.cuda.compiler import kernel_for, semiring_kernel_for
from semiring.kernels.cuda.source import function
from semiring.kernels.hardware import device

__all__ = ["add_by_witness", "exponentials_source", "gradients_source", "weigh", "write_exponentials"]

_WARPS = 8  # a thread block has a warp for each of 8 lines, which lie in the same sectors if they are columns
_THREADS, _BLOCKS = 256, 8  # of blocks that write weights: threads, and blocks per multiprocessor
_SPAN = 4096  # most sums of a line in shared memory


def gradients_source(weight: Expr, dtype: np.dtype[Any], columns: bool) -> str:
    """Return the CUDA C++ of the kernel ``sum_by_witness``; `weight` is the derivative of ⊗ by the operand with these lines."""
    sides = ["other"], ["own"]
    lines, (found,) = function([weight], *(sides if columns else sides[::-1]), (dtype,))
    return f"""#include "arithmetic.cuh"
#include "gradients.cuh"

struct Weighted {{
  using Value = {dtype};
  static constexpr bool READS = {str(_reads(weight)).lower()};
  static __device__ __forceinline__ Value weight(Value own, Value other) {{ {" ".join(lines)} return {found}; }}
}};
extern "C" __global__ void __launch_bounds__({32 * _WARPS}) sum_by_witness(const __grid_constant__ GradientSums<{dtype}> given) {{
  sum_gradients<Weighted, {_WARPS}>(given);
}}
"""


def _reads(weight: Expr) -> bool:
    return any(e.op == "var" for e in nodes(weight))


def add_by_witness(
    weight: Expr, gradients: Strided, witness: Strided, operands: tuple[Strided, Strided], sums: Strided, number: int, *, columns: bool
) -> None:
    """Write the gradient of one operand to `sums`: of the right operand for `columns`, else of the left operand.

    Arrays are stacks of matrices on the current GPU, which has this number.
    """
    own, other = operands[::-1] if columns else operands
    dtype, (count, *_), depth = sums.dtype, sums.shape, sums.shape[1 if columns else 2]
    lines, entries = gradients.shape[1:][::-1] if columns else gradients.shape[1:]
    span = min(depth, _SPAN * 4 // dtype.itemsize)
    turned = [(gradients, columns), (witness, columns), (own, columns), (other, not columns), (sums, columns)]
    limit = device(number).block_shared_bytes
    kernel = semiring_kernel_for("sum_by_witness", number, gradients_source, weight, dtype, columns, shared_bytes=limit)
    for start in range(0, count, BATCH):
        given = GradientSums(*(_lines(x, start, turned=by_columns) for x, by_columns in turned), lines, entries, depth, span)
        grid = -(-lines // _WARPS), -(-depth // span), min(BATCH, count - start)
        kernel(grid, (32 * _WARPS, 1, 1), (by_value(given),), _WARPS * span * dtype.itemsize)


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


def write_exponentials(source: Strided, to: Strided, largest: int, scale: float, number: int, *, columns: bool) -> None:
    """Write e^{s x − largest} of each row, or each column, and the largest s x to an address; arrays are stacks of matrices on a GPU."""
    count, lines, entries = (source.shape[0], *(source.shape[1:][::-1] if columns else source.shape[1:]))
    kernel = kernel_for("exponentials", number, exponentials_source, to.dtype)
    for start in range(0, count, BATCH):
        x, y = (_lines(v, start, turned=columns) for v in (source, to))
        given = LineExponentials(x, y, largest + start * lines * to.dtype.itemsize, lines, entries, word_of(scale))
        kernel((-(-lines // _WARPS), 1, min(BATCH, count - start)), (32 * _WARPS, 1, 1), (by_value(given),))


def weigh(gradients: Strided, values: Strided, largest: tuple[int, int], weights: int, results: int, scale: float, number: int) -> None:
    """Write the weights of values to an address, and the bits of two results to another, which has zeros; see ``gradients.cuh``."""
    batch, m, n = gradients.shape
    kernel = kernel_for("weights", number, exponentials_source, gradients.dtype)
    seen = (_lines(v, 0, turned=False) for v in (gradients, values))
    given = GradientWeights(*seen, *largest, weights, results, batch, m, n, word_of(scale))
    kernel((min(batch * m, _BLOCKS * device(number).multiprocessors), 1, 1), (_THREADS, 1, 1), (by_value(given),))
