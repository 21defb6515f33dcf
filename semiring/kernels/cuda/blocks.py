"""Blocks on a GPU: layouts as kernels take them, overlaps, and copies on the GPU and between host and GPU.

A kernel copies any strides into contiguous rows, reading along the denser axis: several times as fast as CuPy's elementwise copy.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.overlap import Layout, share, span
from semiring.common import forks
from semiring.kernels.cuda.arguments import DeviceMatrix, Via, flat
from semiring.kernels.cuda.compiler import Kernel, kernel_for, rehearsing
from semiring.kernels.engine import Block

__all__ = [
    "BATCH", "CopyPlan", "access", "aligned_copy", "aligned_empty", "batches", "by_value", "contiguous", "copy_into", "copy_plans",
    "copy_rows", "download", "locked", "matrix_of", "of_one_layout", "row_slices", "same_block", "shares", "stacked", "upload", "via_of",
]  # fmt: skip

BATCH = 65535
"""The most matrices of one launch: the limit of a grid's second and third dimensions."""

_ROWS = 128  # a multiple of every tile's sides
_TILE = 32  # the side of the tiles of a copy

# Layouts.


def stacked(array: Any) -> Any:
    """Return the array with exactly one batch axis."""
    if array.ndim == 3:
        return array
    return array.reshape(math.prod(array.shape[:-2]), *array.shape[-2:])


def of_one_layout(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the components of a matrix, copied to contiguous arrays unless all have one layout."""
    if len(arrays) == 1 or len({tuple(s // v.itemsize for s in v.strides) for v in arrays}) == 1:
        return arrays
    return tuple(map(contiguous, arrays))


def matrix_of(block: Block) -> DeviceMatrix:
    """Return a block's address and strides, for kernels."""
    first = block.values[0]
    size, (batch, row, column) = first.itemsize, first.strides
    return DeviceMatrix(tuple([v.data.ptr for v in block.values]), row // size, column // size, batch // size)


def via_of(block: Block, first: int) -> Via:
    """Return the address and strides of a block's construction matrix (or null), with the first vertex's number."""
    if block.via is None:
        return Via(0, 0, 0, first)
    size, (batch, row, _) = block.via.itemsize, block.via.strides
    return Via(block.via.data.ptr, row // size, batch // size, first)


def by_value(structure: tuple[Any, ...]) -> Any:
    """Return a structure as the argument of a kernel that takes it whole."""
    words = np.array(flat(structure), dtype=np.int64)
    return words.view(np.dtype((np.void, words.nbytes)))


def access(block: Block, *, vectors: bool = True) -> str:
    """Return how a kernel should read a block: "vectors" if rows are contiguous and aligned, else "rows" or "columns", the denser axis.

    A row's last vector may reach past the row, but stays within an aligned 16 bytes that the row touches.
    """
    v = block.values[0]
    batch, row, column = v.strides
    apart = [row, *([batch] if len(v) > 1 else []), v.data.ptr]
    if vectors and len(block.values) == 1 and column == v.itemsize and not any(x % 16 for x in apart):
        return "vectors"
    return "columns" if abs(column) > abs(row) else "rows"


def row_slices(length: int, size: int, limit: int, most: int | None = None) -> Iterator[slice]:
    """Yield slices of `length` rows of `size` bytes together: at most `limit` bytes and `most` rows each, whole tiles except at the end."""
    step = length if size <= limit else max(_ROWS, length * limit // size // _ROWS * _ROWS)
    step = min(step, most or step)
    for start in range(0, length, step):
        yield slice(start, min(length, start + step))


def batches(A: Block) -> Iterator[tuple[int, Block]]:
    """Yield parts of a batch of at most `BATCH` matrices, each with the number of the first matrix; nothing if matrices are empty."""
    count = len(A.values[0]) if A.values[0].size else 0
    if 0 < count <= BATCH:
        return iter([(0, A)])
    return ((start, A.at(slice(start, start + BATCH))) for start in range(0, count, BATCH))


# Overlaps.


def shares(x: Block, y: Block) -> bool:
    """Return True if two blocks have elements in common."""
    return any(_overlap(v, w) for v in x.values for w in y.values)


def _overlap(v: Any, w: Any) -> bool:
    import cupy

    x, y = _layout(v), _layout(w)
    if len(v) == len(w) == 1:
        return share(x, y)
    if v.strides[0] == w.strides[0] and span(x, y) <= abs(v.strides[0]):
        return share(x, y)  # each matrix can only overlap the one of the same number
    return bool(cupy.may_share_memory(v, w))


def _layout(v: Any) -> Layout:
    return Layout(v.data.ptr, v.strides[1], v.strides[2], v.shape[1], v.shape[2], v.itemsize)


def same_block(x: Block, y: Block) -> bool:
    """Return True if two blocks are the same elements in the same places."""
    return all(v.data.ptr == w.data.ptr and v.strides == w.strides and v.shape == w.shape for v, w in zip(x.values, y.values, strict=True))


# Copies.


def copy_into(source: Any, target: Any) -> None:
    """Copy source to target, of one shape on one GPU, without CuPy's kernels if the target's rows are contiguous."""
    if source.size == 0:
        return
    if source.flags.c_contiguous and target.flags.c_contiguous and source.dtype == target.dtype:
        if not rehearsing():
            target.data.copy_from_device_async(source.data, source.nbytes)
    elif source.ndim in (2, 3) and target.strides[-1] == target.itemsize <= 8 and source.dtype == target.dtype:
        old, new = ((v if v.ndim == 3 else v[None]) for v in (source, target))
        copy_rows(old, new)
    elif not rehearsing():
        target[...] = source


def contiguous(array: Any) -> Any:
    """Return the array, or a C-contiguous copy."""
    import cupy

    if array.flags.c_contiguous:
        return array
    copy = cupy.empty(array.shape, array.dtype)
    copy_into(array, copy)
    return copy


def aligned_copy(block: Block, *, transposed: bool = False) -> Block:
    """Copy a block's values, or their transposes, into rows that begin at multiples of 16 bytes."""
    copy = aligned_empty(block, transposed=transposed)
    for new, old in zip(copy.values, block.values, strict=True):
        copy_rows(old.transpose(0, 2, 1) if transposed else old, new)
    return copy


def aligned_empty(block: Block, *, transposed: bool = False) -> Block:
    """Allocate the block of `aligned_copy`."""
    import cupy

    count, rows, columns = block.values[0].shape
    if transposed:
        rows, columns = columns, rows
    vector = 16 // min(v.itemsize for v in block.values)
    values = tuple(cupy.empty((count, rows, -(-columns // vector) * vector), v.dtype)[..., :columns] for v in block.values)
    return Block(values, None, block.row, block.column)


class CopyPlan(NamedTuple):
    """A launch that copies rows between arrays of given layouts, wherever they begin."""

    kernel: Kernel
    grid: tuple[int, int, int]
    source: tuple[int, int, int, int]  # bytes before the first row, and strides
    target: tuple[int, int, int]
    sizes: tuple[int, int]

    def start(self, source: int, target: int) -> None:
        """Launch with the addresses of the arrays."""
        (before, *strides), (behind, *pitches) = self.source, self.target
        self.kernel(self.grid, (_TILE, 8, 1), (source + before, *strides, target + behind, *pitches, *self.sizes))


def copy_plans(source: Any, target: Any) -> list[CopyPlan]:
    """Plan the copy of an array of shape (batch, m, n) to one of the same shape and dtype with contiguous rows."""
    import cupy

    if source.size == 0:
        return []
    kernel = kernel_for("copy_rows", cupy.cuda.runtime.getDevice(), _copy_source, source.itemsize)
    size, (count, m, n), plans = source.itemsize, source.shape, []
    (apart, row, column), (new_apart, pitch, _) = ([s // size for s in v.strides] for v in (source, target))
    for first in range(0, count, BATCH):
        for top in range(0, m, _TILE * BATCH):
            rows, some = min(m - top, _TILE * BATCH), min(count - first, BATCH)
            before, behind = (first * v.strides[0] + top * v.strides[1] for v in (source, target))
            grid = -(-n // _TILE), -(-rows // _TILE), some
            plans.append(CopyPlan(kernel, grid, (before, row, column, apart), (behind, pitch, new_apart), (rows, n)))
    return plans


def copy_rows(source: Any, target: Any) -> None:
    """Copy an array of shape (batch, m, n) to one of the same shape and dtype with contiguous rows."""
    for plan in copy_plans(source, target):
        plan.start(source.data.ptr, target.data.ptr)


def _copy_source(size: int) -> str:
    kind = f"uint{8 * size}"
    return (
        '#include "elements.cuh"\n\n'
        f'extern "C" __global__ void copy_rows(const {kind}* source, long long row, long long column, long long apart, {kind}* target, '
        "long long pitch, long long target_apart, long long m, long long n) {\n"
        "  copy_tiles(source, row, column, apart, target, pitch, target_apart, int(m), int(n));\n}\n"
    )


# Copies between the host and the current GPU, at the full speed of the link.

_LARGE = 1 << 24  # bytes from which on locking pages takes less time than it saves
_PORTABLE = 1  # cudaHostRegisterPortable: for all GPUs

_lock = forks.lock()
_holders: Counter[tuple[int, int]] = Counter()
"""The number of running copies from or to locked pages, by address and size."""


def upload(array: Array, dtype: Any = None) -> Any:
    """Copy an array to the GPU, C-contiguous, in another dtype if given."""
    import cupy

    source = np.ascontiguousarray(array, dtype=dtype)
    target = cupy.empty(source.shape, source.dtype)
    with locked([source]):
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_host_async(ctypes.c_void_p(source.ctypes.data), source.nbytes, stream)
        stream.synchronize()
    return target


def download(array: Any, target: Array | None = None) -> Array:
    """Copy an array to the host, into the C-contiguous `target` if given."""
    import cupy

    source = contiguous(array)
    target = np.empty(array.shape, array.dtype) if target is None else target
    with locked([target]):
        stream = cupy.cuda.get_current_stream()
        source.data.copy_to_host_async(ctypes.c_void_p(target.ctypes.data), source.nbytes, stream)
        stream.synchronize()
    return target


@contextmanager
def locked(arrays: Iterable[Array]) -> Iterator[None]:
    """Lock the pages of large arrays meanwhile, so that every GPU copies them itself."""
    held = [(a.ctypes.data, a.nbytes) for a in arrays if a.nbytes >= _LARGE]
    with ExitStack() as stack:
        for pages in held:
            with _lock:
                if _holders[pages] == 0 and not _register(*pages):
                    continue
                _holders[pages] += 1
            stack.callback(_release, pages)
        yield


def _register(address: int, size: int) -> bool:
    """Lock pages; return False if that is impossible."""
    import cupy

    runtime = cupy.cuda.runtime
    try:
        runtime.hostRegister(address, size, _PORTABLE)
    except runtime.CUDARuntimeError:  # locked elsewhere, or beyond the system's limit: copies are slower, but correct
        return False
    return True


def _release(pages: tuple[int, int]) -> None:
    """Unlock pages after the last copy in this process."""
    import cupy

    with _lock:
        _holders[pages] -= 1
        if _holders[pages] == 0:
            del _holders[pages]
            cupy.cuda.runtime.hostUnregister(pages[0])
