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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.arrays.pieces import slices
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate, StridedBatch, parameters
from semiring.kernels.cuda.blocks import aligned_copy, row_slices, shares
from semiring.kernels.cuda.compiler import kernel_for
from semiring.kernels.cuda.elements import of_bytes
from semiring.kernels.cuda.launches import BlasPlan, Sizes, blas_plan, is_faster
from semiring.kernels.engine import Block

__all__ = ["KERNELS", "ExponentialPlan", "exponential_plan", "exponential_source", "multiply_exponentials", "pays"]

Launcher = Callable[..., None]
"""Launches a kernel with an address, and further arguments."""

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
            into = part.values[0].data.ptr
            _launcher("find_lost", part, scale)(into, *given)
            _launcher("logarithms", part, scale)(into, *given, int(fresh))
            otherwise(A.at(batch)[down, everything], B.at(batch)[everything, across], part, LaunchPredicate(lost.data.ptr, 1))


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialPlan:
    """Launches of a product by exponentials, all in memory at once, and by steps if float64 exponents do not reach far enough."""

    extrema: tuple[Launcher, Launcher]  # of A's rows and of B's columns
    exponentials: tuple[Launcher, Launcher]
    product: BlasPlan
    ends: tuple[Launcher, Launcher]  # a search for lost sums, and the logarithms
    parts: tuple[int, int]  # elements of a row and of a column that a thread block reads for extrema
    lines: tuple[int, int]  # rows of A and columns of B, of all matrices
    apart: tuple[int, int]  # those of a matrix
    sizes: tuple[int, int, int]  # of the exponentials of A, those of B, and the sums
    fresh: bool
    steps: Any  # the plan by steps

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS) -> None:
        """Launch with the `addresses` of the product."""
        import cupy

        assert not predicate[0], "exponentials have no predicates"
        a, b, c = own[:3]
        count, size, room = sum(self.lines), 8 * sum(self.lines), 8 * sum(self.sizes)
        memory = cupy.empty(2 * count + sum(self.sizes) + 1, np.int64).data
        for offset, byte, length in ((0, 0x80, size), (size, 0x7F, size), (2 * size + room, 0, 8)):  # beyond every finite number
            (memory + offset).memset_async(byte, length)
        behind, left = 8 * self.lines[0], memory.ptr + 2 * size
        rows, columns = (memory.ptr, memory.ptr + size), (memory.ptr + behind, memory.ptr + size + behind)
        right, sums, lost = left + 8 * self.sizes[0], left + room - 8 * self.sizes[2], left + room
        self.extrema[0](a, *rows, self.parts[0])
        self.extrema[1](b, *columns, self.parts[1])
        self.exponentials[0](a, left, *rows, self.apart[0])
        self.exponentials[1](b, right, *columns, self.apart[1])
        self.product.start((left, right, sums))
        given = sums, *rows, self.apart[0], *columns, self.apart[1], lost
        self.ends[0](c, *given)
        self.ends[1](c, *given, int(self.fresh))
        self.steps.start(own, LaunchPredicate(lost, 1))


def exponential_plan(A: Block, B: Block, C: Block, scale: Fraction, steps: Any, *, fresh: bool) -> ExponentialPlan | None:
    """Plan C ← C ⊕ A⊗B, or A⊗B where C is `fresh`, for operands apart from C; None if the exponentials take too much memory.

    `steps` is the plan of the same product by steps.
    """
    import cupy

    (m, n), k, count = C.shape, A.shape[1], len(C.values[0])
    sizes = count * m * k, count * k * n, count * m * n
    if 8 * max(sizes) > _BYTES // 3:
        return None
    left, right, sums = (cupy.empty((count, *shape), np.float64) for shape in ((m, k), (k, n), (m, n)))
    product = blas_plan(left, right, sums, fresh=True)
    assert product is not None, "cuBLAS takes contiguous arrays"
    (grid_a, part_a), (grid_b, part_b) = _grid_of_extrema(A, "rows"), _grid_of_extrema(B, "columns")
    block = 32, 8, 1
    extrema = _launcher("extrema_of_rows", A, scale, grid_a, block), _launcher("extrema_of_columns", B, scale, grid_b, block)
    exponentials = _launcher("exponentials_of_rows", A, scale), _launcher("exponentials_of_columns", B, scale)
    ends = _launcher("find_lost", C, scale), _launcher("logarithms", C, scale)
    parts, lines = (part_a, part_b), (count * m, count * n)
    return ExponentialPlan(extrema, exponentials, product, ends, parts, lines, (m, n), sizes, fresh, steps)


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
        grid, part = _grid_of_extrema(X, lines)
        _launcher(f"extrema_of_{lines}", X, scale, grid, (32, 8, 1))(X.values[0].data.ptr, self.high.data.ptr, self.low.data.ptr, part)

    def exponentials(self, batch: slice, some: slice) -> Any:
        """Return the exponentials of some lines of some matrices, in float64."""
        import cupy

        everything = slice(None)
        X = self.block.at(batch)[(some, everything) if self.lines == "rows" else (everything, some)]
        found = cupy.empty(X.values[0].shape, np.float64)
        launch = _launcher(f"exponentials_of_{self.lines}", X, self.scale)
        launch(X.values[0].data.ptr, found.data.ptr, *_shown(self, batch, some))
        return found


def _shown(lines: _OperandExtrema, batch: slice, some: slice) -> tuple[int, int, int]:
    """Return kernel arguments for the extrema of some lines: two addresses, and the number of lines in a matrix."""
    start = (batch.start * lines.length + some.start) * 8
    return lines.high.data.ptr + start, lines.low.data.ptr + start, lines.length


def _grid_of_extrema(X: Block, lines: str) -> tuple[Sizes, int]:
    """Return the grid that finds the extrema of lines, and how many elements of a line a thread block reads."""
    (m, n), count = X.shape, min(len(X.values[0]), _DOWN)
    if lines == "rows":
        part = 2048
        return (-(-n // part), min(-(-m // 8), _DOWN), count), part
    part = max(256, -(-m // _DOWN))
    return (-(-n // 32), -(-m // part), count), part


def _launcher(name: str, X: Block, scale: Fraction, grid: Sizes | None = None, block: Sizes = (256, 1, 1)) -> Launcher:
    """Return a function that launches a kernel for matrices of a block's layout: with their address, and further arguments."""
    import cupy

    values = X.values[0]
    (m, n), count, size = X.shape, len(values), values.itemsize
    batch, row, column = (s // size for s in values.strides)
    kernel = kernel_for(name, cupy.cuda.runtime.getDevice(), exponential_source, name, values.dtype)
    each = grid or (min(-(-n // block[0]), 1 << 16), min(m, _DOWN), min(count, _DOWN))
    layout = row, column, batch, count, m, n, float(scale), float(1 / scale)

    def launch(address: int, *more: int) -> None:
        kernel(each, block, (address, *layout, *more))

    return launch


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
