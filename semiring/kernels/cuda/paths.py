"""Paths from a construction matrix on a GPU: predecessor trees, and the paths of many pairs.

Three kernels grow trees of predecessors or of next hops, the third only where elements tie. One thread expands each path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.pieces import GPU_SCRATCH, slices
from semiring.kernels.cuda.arguments import DeviceMatrix, StridedBatch, flat, parameters
from semiring.kernels.cuda.blocks import matrix_of, of_one_layout, stacked
from semiring.kernels.cuda.compiler import kernel_for, semiring_kernel_for
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.source import semiring_struct
from semiring.kernels.engine import Block
from semiring.kernels.hardware import device

__all__ = ["expand_paths", "predecessor_trees", "trees_source", "walks_source"]

_THREADS = 1024


def trees_source(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], backward: bool, shared: bool) -> str:
    """Return the CUDA C++ of the kernels ``last_vertices``, ``check_trees`` and ``attach_by_ties``.

    `backward` is for transposed matrices, where ⊗ takes its operands in the other order. `shared` keeps rows of pointers, of 16 bits each,
    in shared memory.
    """
    r = represent(semiring, dtypes)
    index = "unsigned short" if shared else "int"
    taken_values, values = parameters(DeviceMatrix, "values", components=tuple([d.name for d in r.dtypes]), template="Semiring")
    (taken_via, via), (taken_tree, tree) = (parameters(StridedBatch, x, template="int") for x in ("via", "tree"))
    closure = f"Closure<Semiring, {str(backward).lower()}>{{{values}, {via}}}"
    matrices = f"{taken_values}, {taken_via}, {taken_tree}, long long n"
    kinds = f"Semiring, {str(backward).lower()}, {index}"
    kernels = [
        ("last_vertices", "long long columns", f"last_vertices<{index}>({via}, {tree}, int(n), columns, memory)"),
        ("check_trees", "long long rows, long long* bad", f"check_trees<{kinds}>({closure}, {tree}, int(n), rows, bad, memory)"),
        (
            "attach_by_ties",
            "long long* bad, long long* remaining, long long circles",
            f"attach_by_ties<{kinds}>({closure}, {tree}, int(n), bad, remaining, int(circles), memory)",
        ),
    ]
    memory = "char* const memory = shared;" if shared else "char* const memory = scratch + blockIdx.x * room;"
    parts = ['#include "paths.cuh"', "", semiring_struct(r, None)]
    parts += [
        f'extern "C" __global__ void __launch_bounds__({_THREADS}) {name}({matrices}, {extra}, char* scratch, long long room) {{\n'
        f"  extern __shared__ __align__(16) char shared[];\n  {memory}\n  {call};\n}}\n"
        for name, extra, call in kernels
    ]
    return "\n".join(parts)


def predecessor_trees(semiring: Semiring, values: tuple[Any, ...], via: Any, *, backward: bool, circles: int) -> tuple[Any, Array]:
    """Grow the tree of each row, or with `backward` of each column; see `semiring.algorithms.predecessors`.

    `values` (the closure), `via` and the trees are CuPy arrays of shape (…, n, n), the last two in int32. After `circles` rounds that mend
    only circles, all lost vertices are attached again. The second result lists rows (columns), numbered through all matrices, whose
    trees are incomplete because rounding hides ties.
    """
    import cupy

    with via.device:
        n = via.shape[-1]
        trees = cupy.empty(via.shape, dtype=np.int32)
        if trees.size == 0:
            return trees, np.empty(0, dtype=np.int64)
        dtypes = tuple(v.dtype for v in values)
        arrays = of_one_layout(tuple(stacked(v.view(d)) for v, d in zip(values, represent(semiring, dtypes).dtypes, strict=True)))
        arguments = [*_arguments(arrays, backward), *_arguments((stacked(via),), backward), *_arguments((stacked(trees),), backward), n]
        words, limits = -(-n // 32), device(via.device.id)
        sets = 2 * 4 + 4 * 4 * words
        threads, most, room, address, shared_bytes = min(_THREADS, 32 * words), 2**31 - 1, 0, 0, sets + 2 * 2 * n
        shared = shared_bytes <= limits.block_shared_bytes
        if not shared:  # each block has scratch memory instead
            most, room, shared_bytes = 2 * limits.multiprocessors, sets + 2 * 4 * n, 0
            scratch = cupy.empty(most * room, dtype=np.uint8)
            address = scratch.data.ptr
        how = via.device.id, trees_source, semiring, dtypes, backward, shared

        def launch(name: str, rows: int, *arguments: int) -> None:
            kernel = semiring_kernel_for(name, *how, shared_bytes=limits.block_shared_bytes)
            kernel((min(rows, most), 1, 1), (threads, 1, 1), (*arguments, address, room), shared_bytes)

        rows = trees.size // n
        launch("last_vertices", rows, *arguments, rows)
        bad = cupy.zeros(1 + rows, dtype=np.int64)
        launch("check_trees", rows, *arguments, rows, bad.data.ptr)
        found = int(bad[0])
        remaining = cupy.zeros(1 + found, dtype=np.int64)
        if found:
            launch("attach_by_ties", found, *arguments, bad.data.ptr, remaining.data.ptr, circles)
        left = remaining.get()
        return trees, np.sort(left[1 : 1 + left[0]])


def _arguments(arrays: tuple[Any, ...], backward: bool) -> list[int]:
    """Return the words of a matrix over a semiring or of vertices, transposed if the walks go `backward`."""
    X = matrix_of(Block(arrays))
    return flat(X._replace(row=X.column, column=X.row) if backward else X)


def walks_source() -> str:
    """Return the CUDA C++ of the kernel ``walks``."""
    return """#include "paths.cuh"

extern "C" __global__ void walks(const int* via, long long row, long long column, const int* sources, const int* targets, long long pairs,
                                 long long room, int* vertices, int* lengths) {
  expand(via, row, column, sources, targets, pairs, int(room), vertices, lengths);
}
"""


_FIRST_ROOM, _GROWTH = 64, 16  # the most vertices of a walk at first, and the factor if that was too few

_WALK_THREADS = 64


def expand_paths(via: Any, sources: Array, targets: Array) -> list[list[int] | None]:
    """Return the vertices from each source to its target, inclusive; None for more than n + 1 vertices, which circle a loop.

    `via` is an int32 CuPy array of shape (n, n). The element of each pair must not be the semiring's zero.
    """
    found: list[list[int] | None] = [None] * len(sources)
    left = np.arange(len(sources))
    most = len(via) + 1
    room = min(_FIRST_ROOM, most)
    with via.device:
        while len(left):
            for rows in slices(len(left), 4 * room, GPU_SCRATCH):
                some = left[rows]
                for pair, walk in zip(some.tolist(), _expand(via, sources[some], targets[some], room), strict=True):
                    found[pair] = walk or None
            if room == most:
                break
            left = np.array([pair for pair in left.tolist() if found[pair] is None], dtype=np.intp)
            room = min(room * _GROWTH, most)
    return found


def _expand(via: Any, sources: Array, targets: Array, room: int) -> list[list[int]]:
    """Return walks of at most `room` vertices; an empty list for a longer walk."""
    import cupy

    pairs = len(sources)
    ends = [cupy.asarray(v, dtype=np.int32) for v in (sources, targets)]
    vertices = cupy.empty((pairs, room), dtype=np.int32)
    lengths = cupy.empty(pairs, dtype=np.int32)
    row, column = (s // via.itemsize for s in via.strides)
    arguments = (via.data.ptr, row, column, *(v.data.ptr for v in ends), pairs, room, vertices.data.ptr, lengths.data.ptr)
    kernel_for("walks", via.device.id, walks_source)((-(-pairs // _WALK_THREADS), 1, 1), (_WALK_THREADS, 1, 1), arguments)
    sizes = lengths.get()
    longest = int(sizes.max())
    flat = vertices[:, :longest].get()[np.arange(longest) < sizes[:, None]].tolist()
    stops = np.cumsum(sizes).tolist()
    return [flat[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
