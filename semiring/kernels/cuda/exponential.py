"""Products over semirings that add exponentials, on a GPU: ⊕ is log(e^{sa} + e^{sb}) / s and ⊗ is a + b.

With α_i the largest s a_ik of a row and β_j the largest s b_kj of a column,

    s c_ij = α_i + β_j + log Σ_k e^{s a_ik − α_i} e^{s b_kj − β_j}

is a product of matrices of exponentials: n³ exponentials become n³ multiply-adds. cuBLAS multiplies in float64 for every dtype. On GPUs
with float64 tensor cores this is the fastest way, and the exponents reach 650 below the maxima. Parts
with smaller sums are computed by the kernel with one exponential per step; a predicate on the GPU decides, and the host does not wait.

Differences from the maxima, and sums of them with logarithms, carry the rounding errors along. The error of an element r is that of a sum
of k positive terms, at most (k/2 + 8) ε₆₄ max(1, |r|) / min(1, |s|), plus the rounding to the dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.arrays.pieces import slices
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import LaunchPredicate, StridedBatch, parameters
from semiring.kernels.cuda.blocks import aligned_copy, row_slices, shares
from semiring.kernels.cuda.compiler import kernel_for
from semiring.kernels.cuda.elements import of_bytes
from semiring.kernels.cuda.launches import Sizes, blas_plan, is_faster
from semiring.kernels.engine import Block

__all__ = ["KERNELS", "exponential_source", "multiply_exponentials", "pays"]

_BYTES = 1 << 29  # memory of the exponentials and sums at a time
_LINES = 128  # the fewest rows of A or columns of B at a time, as `row_slices` gives
_DOWN = 65535  # the most blocks in the second and third dimension of a grid

KERNELS = ("extrema_of_rows", "extrema_of_columns", "exponentials_of_rows", "exponentials_of_columns", "find_lost", "logarithms")


def pays(dtype: np.dtype[Any], count: int, m: int, n: int, k: int) -> bool:
    """Return True if exponentials and cuBLAS take less time than an exponential per step, and little memory."""
    return k <= _BYTES // 24 // _LINES and is_faster(machine.EXPONENTIAL_STEPS, dtype.itemsize, count, m, n, k)


def multiply_exponentials(
    A: Block, B: Block, C: Block, scale: Fraction, otherwise: Callable[[Block, Block, Block, LaunchPredicate], None], *, fresh: bool
) -> None:
    """C ← C ⊕ A⊗B, or A⊗B where C is `fresh`, for batches of float matrices; `scale` is s.

    ``otherwise(A, B, C, predicate)`` computes the same step by step, where the predicate holds.
    """
    import cupy

    A, B = (aligned_copy(X) if shares(X, C) else X for X in (A, B))
    rows, columns = _OperandExtrema(A, scale, "rows"), _OperandExtrema(B, scale, "columns")
    (m, n), k, everything = C.shape, A.shape[1], slice(None)
    # Ranges for which the exponentials of B, those of A, and the sums take a third of the memory each.
    most = _BYTES // 24
    batches = slices(len(C.values[0]), max(k * n, m * max(k, n), -(-most // _DOWN)), most)
    for batch, across in itertools.product(batches, row_slices(n, 8 * k * n, _BYTES // 3)):
        right = columns.exponentials(batch, across)
        widest = max(k, across.stop - across.start)
        for down in row_slices(m, 8 * (batch.stop - batch.start) * m * widest, _BYTES // 3):
            left = rows.exponentials(batch, down)
            sums = cupy.empty((len(left), left.shape[1], right.shape[2]), np.float64)
            product = blas_plan(left, right, sums, fresh=True)
            assert product is not None, "cuBLAS takes contiguous arrays"
            product.start((left.data.ptr, right.data.ptr, sums.data.ptr))
            part = C.at(batch)[down, across]
            lost = of_bytes(1, 0)
            given = sums.data.ptr, *_shown(rows, batch, down), *_shown(columns, batch, across), lost.data.ptr
            _start("find_lost", part, scale, given)
            _start("logarithms", part, scale, (*given, int(fresh)))
            otherwise(A.at(batch)[down, everything], B.at(batch)[everything, across], part, LaunchPredicate(lost.data.ptr, 1))


class _OperandExtrema:
    """An operand, with the largest and the least element of each line: of each row of A, or column of B."""

    def __init__(self, X: Block, scale: Fraction, lines: str) -> None:
        import cupy

        self.block, self.scale, self.lines = X, scale, lines
        (m, n), count = X.shape, len(X.values[0])
        self.length = m if lines == "rows" else n
        self.high, self.low = (cupy.empty((count, self.length), np.int64) for _ in range(2))
        for keys, byte in ((self.high, 0x80), (self.low, 0x7F)):  # beyond every finite number
            keys.data.memset_async(byte, keys.nbytes)
        if lines == "rows":
            part = 2048
            grid = -(-n // part), min(-(-m // 8), _DOWN)
        else:
            part = max(256, -(-m // _DOWN))
            grid = -(-n // 32), -(-m // part)
        extent = self.high.data.ptr, self.low.data.ptr, part
        _start(f"extrema_of_{lines}", X, scale, extent, (*grid, min(count, _DOWN)), (32, 8, 1))

    def exponentials(self, batch: slice, some: slice) -> Any:
        """Return the exponentials of some lines of some matrices, in float64."""
        import cupy

        everything = slice(None)
        X = self.block.at(batch)[(some, everything) if self.lines == "rows" else (everything, some)]
        found = cupy.empty(X.values[0].shape, np.float64)
        _start(f"exponentials_of_{self.lines}", X, self.scale, (found.data.ptr, *_shown(self, batch, some)))
        return found


def _shown(lines: _OperandExtrema, batch: slice, some: slice) -> tuple[int, int, int]:
    """Return kernel arguments for the extrema of some lines: two addresses, and the number of lines in a matrix."""
    start = (batch.start * lines.length + some.start) * 8
    return lines.high.data.ptr + start, lines.low.data.ptr + start, lines.length


def _start(name: str, X: Block, scale: Fraction, more: tuple[int, ...], grid: Sizes | None = None, block: Sizes = (256, 1, 1)) -> None:
    import cupy

    values = X.values[0]
    (m, n), count, size = X.shape, len(values), values.itemsize
    batch, row, column = (s // size for s in values.strides)
    kernel = kernel_for(name, cupy.cuda.runtime.getDevice(), exponential_source, name, values.dtype)
    grid = grid or (min(-(-n // block[0]), 1 << 16), min(m, _DOWN), min(count, _DOWN))
    kernel(grid, block, (values.data.ptr, row, column, batch, count, m, n, float(scale), float(1 / scale), *more))


def exponential_source(name: str, dtype: np.dtype[Any]) -> str:
    """Return the CUDA C++ of one of the `KERNELS`."""
    taken, matrix = parameters(StridedBatch, "x", template=dtype.name)
    first = f"{taken}, int64 count, int64 m, int64 n, double s, double inverse"
    lines = "int64* {0}_high, int64* {0}_low, int64 {0}_apart"
    rows, columns = lines.format("row"), lines.format("column")
    if name.startswith("extrema"):
        own = "int64* high, int64* low, int64 part"
        body = f"{name}({matrix}, count, m, n, s, Lines{{high, low}}, part);"
    elif name.startswith("exponentials"):
        line = "i" if name.endswith("rows") else "j"
        own = f"double* found, {lines.format('line')}"
        body = (
            f"const auto X = {matrix};\n  const Lines lines{{line_high, line_low}};\n"
            "  each_element(count, m, n, [&](int64 b, int64 i, int64 j) {\n"
            f"    found[(b * m + i) * n + j] = exponential(X.at(b, i, j), s, lines.largest(b * line_apart + {line}));\n  }});"
        )
    else:
        own = f"const double* sums, {rows}, {columns}, int* lost_some{', int64 fresh' if name == 'logarithms' else ''}"
        opening = "const Lines rows{row_high, row_low}, columns{column_high, column_low};\n"
        each = "  each_element(count, m, n, [&](int64 b, int64 i, int64 j) {\n    const double sum = sums[(b * m + i) * n + j];\n"
        each += "    const int64 row = b * row_apart + i, column = b * column_apart + j;\n"
        if name == "find_lost":
            body = f"{opening}{each}    if (lost(sum, rows.spread(row) + columns.spread(column))) *lost_some = 1;\n  }});"
        else:
            body = (
                f"if (*lost_some) return;\n  const auto C = {matrix};\n  {opening}{each}"
                "    double found = logarithm(rows.largest(row), columns.largest(column), sum);\n"
                "    if (!fresh) {\n"
                "      const double old = s * C.at(b, i, j), above = fmax(old, found), below = fmin(old, found);\n"
                "      found = above == -infinity() ? above : above + log1p(exp(below - above));\n    }\n"
                f"    C.at(b, i, j) = {dtype.name}(found * inverse);\n  }});"
            )
    return f'#include "elements.cuh"\n\nextern "C" __global__ void __launch_bounds__(256) {name}({first}, {own}) {{\n  {body}\n}}\n'
