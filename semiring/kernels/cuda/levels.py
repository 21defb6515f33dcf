"""Hop counts between all vertices of a sparse graph with equally long edges: breadth-first search from all vertices at once, in bits.

A level of all searches is a union of bit rows per edge, and takes as long as reading the rows. A distance is the number of levels at which
the vertex was not reached yet, so all levels are kept until the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.arrays.devices import gpu_name
from semiring.arrays.memory import free_on
from semiring.kernels import machine
from semiring.kernels.cuda.compiler import kernel_for, rehearsing
from semiring.kernels.cuda.elements import read_back, zeros

__all__ = ["close_by_levels", "levels_source"]

_WARPS, _THREADS = 8, 256  # of a thread block; each warp has a row
_ACROSS = 64  # blocks across the words of a row when levels are counted

_DTYPES = ("float32", "float64", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def levels_source(dtype: np.dtype[Any]) -> str:
    """Return the CUDA C++ of the kernels for matrices of a dtype."""
    return f'#include "arithmetic.cuh"\n\nusing Number = {dtype};\n#include "levels.cuh"\n'


def close_by_levels(matrix: Any, nothing: Any, length: Any) -> bool:
    """Replace a matrix of equally long edges by distances, with 0 on the diagonal; return False, with the matrix unchanged, if unsuitable.

    Unsuitable are edges of different lengths, graphs whose edges or path lengths make products faster, and graphs whose levels exceed the
    memory. `nothing` and `length` are the entries of no edge, and of each edge; all multiples of `length` below n must be exact. The
    diagonal is not read.
    """
    import cupy

    n, dtype = len(matrix), matrix.dtype
    if dtype.name not in _DTYPES or rehearsing():
        return False
    number = cupy.cuda.runtime.getDevice()
    row, column = (step // matrix.itemsize for step in matrix.strides)
    list_edges, first_level, next_level, count_levels = (
        kernel_for(name, number, levels_source, dtype) for name in ("list_edges", "first_level", "next_level", "count_levels")
    )
    blocks, block = -(-n // _WARPS), (_THREADS, 1, 1)
    told = zeros(n + 1)  # the degrees of all vertices, and a flag for other edges
    given = matrix.data.ptr, row, column, n, dtype.type(nothing), dtype.type(length)
    list_edges((blocks, 1, 1), block, (*given, told.data.ptr, 0, 0, told.data.ptr + 4 * n))
    *degrees, others = read_back(told)
    starts = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    width = -(-n // 128)
    nbytes, edges = 16 * n * width, int(starts[-1])
    most = min(machine.LEVELS, machine.most_levels(n, edges), (free_on(gpu_name(number)) or 0) // (2 * nbytes))
    if others or most < 2:
        return False
    where, heads = cupy.asarray(starts), cupy.empty(max(1, edges), np.int32)
    list_edges((blocks, 1, 1), block, (*given, 0, where.data.ptr, heads.data.ptr, 0))
    levels = [cupy.empty(nbytes, np.uint8)]
    levels[0].data.memset_async(0, nbytes)
    first_level((-(-n // _THREADS), 1, 1), block, (levels[0].data.ptr, n, 4 * width))
    changed = zeros(most)
    for level in range(most):
        levels.append(cupy.empty(nbytes, np.uint8))
        taken = levels[level].data.ptr, levels[level + 1].data.ptr, n, width, where.data.ptr, heads.data.ptr, changed.data.ptr + 4 * level
        next_level((blocks, -(-width // 32), 1), block, taken)
        if not read_back(changed[level : level + 1])[0]:
            break
    else:
        return False
    table = cupy.asarray(np.array([v.data.ptr for v in levels[:-1]], np.uint64))
    there = matrix.data.ptr, row, column, dtype.type(nothing), dtype.type(length)
    count_levels((blocks, min(_ACROSS, -(-n // 32)), 1), block, (table.data.ptr, len(levels) - 1, n, 4 * width, *there))
    return True
