"""Launches that are decided or recorded once: plans of products, calls of cuBLAS, and CUDA graphs.

A plan is made once per arrangement of operands: later launches differ only in addresses. cuBLAS adds products of floats, where CuPy finds
it, but not with TF32, which would keep ten bits of a float32.

Schedules of small matrices are recorded once per shape, each on its own workspace. A recursive closure of 1,000 vertices is a hundred
launches of a few microseconds, less than Python takes to make them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.arrays.overlap import address
from semiring.common import forks
from semiring.common.progress import Meter
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import ALWAYS, Bounds, DeviceMatrix, LaunchPredicate, Product, Witness, flat
from semiring.kernels.cuda.blocks import CopyPlan, by_value, copy_into, copy_plans, matrix_of, via_of
from semiring.kernels.cuda.compiler import Kernel, pointer_to, rehearsing
from semiring.kernels.cuda.elements import for_each
from semiring.kernels.engine import Block, Engine

__all__ = [
    "BlasPlan", "LaunchPlan", "Operands", "Parts", "RecordedGraph", "Sizes", "SplitKPlan", "TransposedPlan", "addresses", "arrangement",
    "blas_plan", "has_blas", "is_faster", "is_plus_times", "launched", "planned", "recording", "start_variants", "transposed_plan",
]  # fmt: skip

Operands = tuple[Block, Block, Block]
"""A, B and C of a product."""

Parts = Sequence[tuple[Block, Block, Block, int, bool]]
"""A, B and C of products, each with the steps of a part, and True where C is fresh."""

Sizes = tuple[int, int, int]
"""Sizes of a grid or a block."""


def arrangement(A: Block, B: Block, C: Block) -> Hashable | None:
    """Return everything about the operands' memory that a launch depends on, as a key; None if each product needs its own decision."""
    a, b, c = A.values[0], B.values[0], C.values[0]
    from_a, from_b, from_c = a.data.ptr, b.data.ptr, c.data.ptr
    (low_a, high_a), (low_b, high_b), (low, high) = _extent(A.values), _extent(B.values), _extent(C.values)
    apart_a, apart_b = high_a <= low or high <= low_a, high_b <= low or high <= low_b
    if len(A.values) > 1 and not (apart_a and apart_b):
        return None
    between = None if apart_a else from_a - from_c, None if apart_b else from_b - from_c
    first = 1 if len(a) == len(b) == len(c) == 1 else 0  # a single matrix has no stride to the next
    via = None if C.via is None else C.via.strides[first:]
    return (a.shape, a.strides[first:], from_a % 16, b.shape, b.strides[first:], from_b % 16, c.strides[first:], via, between)


def _extent(values: tuple[Any, ...]) -> tuple[int, int]:
    """Return the first byte of the arrays, and the one after the last."""
    first, last = [], []
    for v in values:
        low = high = v.data.ptr
        for length, step in zip(v.shape, v.strides, strict=True):
            reach = (length - 1) * step
            if reach < 0:
                low += reach
            else:
                high += reach
        first.append(low)
        last.append(high + v.itemsize)
    return min(first), max(last)


@dataclass(frozen=True, slots=True, eq=False)
class LaunchPlan:
    """A launch for operands of one arrangement."""

    kernel: Kernel
    grid: Sizes
    block: Sizes
    shared_bytes: int
    fields: np.ndarray[Any, Any]  # a word for the structure's address, and `Products`
    filled: list[int]  # positions of `addresses`, the predicate, and the bounds of `CheckedProducts`
    copies: list[tuple[memoryview, int]] = field(default_factory=list)  # idle copies of the fields, with `pointer_to` each

    def start(self, own: Sequence[int], predicate: LaunchPredicate | tuple[()] = ALWAYS, bounds: Bounds | tuple[()] = ()) -> None:
        """Launch with the `addresses` of each product."""
        try:
            mine = self.copies.pop()
        except IndexError:
            array = self.fields.copy()
            mine = array.data, pointer_to(array)
        fields, argument = mine
        for place, number in zip(self.filled, (*own, *predicate, *bounds), strict=True):
            fields[place] = number
        self.kernel.start(self.grid, self.block, argument, self.shared_bytes)
        self.copies.append(mine)


@dataclass(frozen=True, slots=True, eq=False)
class SplitKPlan:
    """Launches of a product with split-K: the last rows of C are sums of parts."""

    tiles: LaunchPlan  # of the whole rows, if any, and of the parts
    whole: bool  # there are whole rows
    below_a: tuple[int, ...]  # bytes, per component of A, from the first row to the first that is a sum of parts
    below_c: tuple[int, ...]
    parts: tuple[int, int, int]  # parts, rows, columns
    dtypes: tuple[np.dtype[Any], ...]  # of the components of the parts
    add: Kernel
    grid: Sizes
    block: Sizes
    strides: tuple[int, ...]  # of C, see `matrix_of`
    fresh: bool

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS, bounds: Bounds | tuple[()] = ()) -> None:
        """Launch with the `addresses` of the product."""
        import cupy

        width, (count, m, n) = len(self.dtypes), self.parts
        sums = [cupy.empty(self.parts, d) for d in self.dtypes]
        a, b, c, column = own[:width], own[width : 2 * width], own[2 * width : 3 * width], own[-1]
        to = [v.data.ptr for v in sums]
        rest = *map(operator.add, a, self.below_a), *b, *to, *b, 0, column
        self.tiles.start((*own, *rest) if self.whole else rest, predicate, bounds)
        below, parts = DeviceMatrix(tuple(map(operator.add, c, self.below_c)), *self.strides), DeviceMatrix(tuple(to), n, 1, m * n)
        self.add(self.grid, self.block, (by_value(below), by_value(parts), m, n, count, int(self.fresh), by_value(predicate)))


@dataclass(frozen=True, slots=True, eq=False)
class TransposedPlan:
    """Launches of a product whose winners are looked up in global memory: copies of B's transpose, and the tiles."""

    tiles: LaunchPlan
    copies: tuple[list[CopyPlan], ...]  # of each component of B
    shape: tuple[int, ...]  # of the transpose, in aligned rows
    dtypes: tuple[np.dtype[Any], ...]

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS, bounds: Bounds | tuple[()] = ()) -> None:
        """Launch with the `addresses` of the product."""
        self.start_variants(own, [(self.tiles, predicate)], bounds)

    def start_variants(
        self, own: Sequence[int], variants: Sequence[tuple[LaunchPlan, LaunchPredicate]], bounds: Bounds | tuple[()] = ()
    ) -> None:
        """Launch the tiles of several kernel variants, with one copy of B's transpose."""
        import cupy

        width = len(self.dtypes)
        columns = [cupy.empty(self.shape, d) for d in self.dtypes]
        places = [v.data.ptr for v in columns]
        for plans, source, target in zip(self.copies, own[width : 2 * width], places, strict=True):
            for plan in plans:
                plan.start(source, target)
        for tiles, predicate in variants:
            tiles.start((*own[: 3 * width], *places, *own[4 * width :]), predicate, bounds)


def start_variants(variants: Sequence[tuple[Any, LaunchPredicate]], own: Sequence[int]) -> None:
    """Launch the kernel variants of one product; predicates on the GPU choose one variant."""
    first, _ = variants[0]
    if isinstance(first, TransposedPlan):
        first.start_variants(own, [(plan.tiles, predicate) for plan, predicate in variants])
    else:
        for plan, predicate in variants:
            plan.start(own, predicate)


def transposed_plan(tiles: LaunchPlan, B: Block, transposed: Block) -> TransposedPlan:
    """Plan copies of B's components into `transposed`, of the layout that `tiles` were planned for."""
    pairs = zip(B.values, transposed.values, strict=True)
    count, rows, _ = transposed.values[0].shape
    pitch = max(v.strides[1] // v.itemsize for v in transposed.values)
    copies = tuple([copy_plans(old.transpose(0, 2, 1), new) for old, new in pairs])
    return TransposedPlan(tiles, copies, (count, rows, pitch), tuple([v.dtype for v in B.values]))


def addresses(products: Sequence[Operands], transposed: Block | None = None) -> list[int]:
    """Return what changes between launches: addresses of A, B, C, B's transpose and the witness, and the first vertex of A's columns."""
    own: list[int] = []
    for A, B, C in products:
        for X in (A, B, C, transposed or B):
            for v in X.values:
                own.append(v.data.ptr)
        own += (0 if C.via is None else C.via.data.ptr, A.column)
    return own


def planned(
    kernel: Kernel,
    grid: Sizes,
    threads: int,
    shared_bytes: int,
    count: int,
    products: Sequence[tuple[Block, Block, Block, int, int, bool]],
    transposed: Block | None,
    *,
    checked: bool = False,
) -> LaunchPlan:
    """Plan one launch.

    `count` is the number of products that the kernel has room for. `products` lists (A, B, C, tiles, depth, fresh), see `Product`.
    `transposed` is B with contiguous columns, where winners are looked up in global memory. `checked` is for kernels that take
    `CheckedProducts`.
    """
    rows = []
    for A, B, C, tiles, depth, fresh in products:
        a, b, c, witness = matrix_of(A), matrix_of(B), matrix_of(C), Witness(matrix_of(transposed or B), *via_of(C, A.column))
        rows.append(flat(Product(a, b, c, *C.shape, A.shape[1], tiles, fresh, depth, witness)))
    own, width = _own_places(len(products[0][0].values)), len(rows[0])
    behind = 1 + count * width
    fields = np.zeros(behind + len(ALWAYS) + (len(Bounds._fields) if checked else 0), dtype=np.int64)
    fields[1 : 1 + len(rows) * width] = np.ravel(rows)
    filled = [*(1 + np.add.outer(width * np.arange(len(rows)), own).ravel()).tolist(), *range(behind, len(fields))]
    return LaunchPlan(kernel, grid, (threads, 1, 1), shared_bytes, fields, filled)


@functools.cache
def _own_places(components: int) -> np.ndarray[Any, Any]:
    """Return the positions within a `Product` of the values of `addresses`, in the same order: a 1 marks each of them."""
    own = DeviceMatrix((1,) * components, 0, 0, 0)
    return np.flatnonzero(flat(Product(own, own, own, 0, 0, 0, 0, 0, 0, Witness(own, 1, 0, 0, 1))))


def launched(meter: Meter | None, steps: int) -> None:
    """Tell the meter, if any, that `steps` are done once the GPU reaches this point of the current stream."""
    if meter is not None and not rehearsing():
        meter.later(steps, _event)


def _event() -> Any:
    """Record an event that threads can sleep on; None while the stream is captured."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        return None
    event = cupy.cuda.Event(block=True, disable_timing=True)
    event.record(stream)
    return event


# Sums of products of floats by cuBLAS.

_PRECISIONS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_MOST = (1 << 31) - 1  # cuBLAS's rows, columns and strides have 32 bits
_INEXACT = (1, 3)  # CUBLAS_TENSOR_OP_MATH and CUBLAS_TF32_TENSOR_OP_MATH, in case other code left the handle in these modes
_MODE = 15  # the bits of a math mode without its flags


@functools.cache
def has_blas() -> bool:
    """Return True if CuPy finds cuBLAS."""
    try:
        _cublas()
    except ImportError:
        return False
    return True


def _cublas() -> Any:
    return importlib.import_module("cupy_backends.cuda.libs.cublas")


def is_faster(least: Mapping[int, int], size: int, count: int, m: int, n: int, k: int) -> bool:
    """Return True if cuBLAS is faster for `count` products of elements of `size` bytes; `least` maps sizes to the fewest steps."""
    return count * m * n * k >= least[size] and min(m, n, k) >= machine.BLAS_SIDE and has_blas()


def is_plus_times(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Return True if ⊕ is + and ⊗ is ×, on floats that cuBLAS supports."""
    program = semiring.program
    return (
        len(dtypes) == 1 and dtypes[0] in _PRECISIONS and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))
    )


@dataclass(frozen=True, slots=True, eq=False)
class BlasPlan:
    """A product C ← C + AB, or C ← AB if `fresh`, of matrices in layouts that cuBLAS takes."""

    dtype: np.dtype[Any]
    layout: tuple[int, int, int, int, int]  # 1 for B and for A if by columns; columns and rows of C; steps
    leading: tuple[int, int, int]  # distances between the rows (columns) of A, B and C, in numbers
    apart: tuple[int, int, int]  # distances between the matrices of a batch
    count: int  # matrices
    fresh: bool

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS) -> None:
        """Call cuBLAS in the current stream, with the addresses of A, B and C."""
        import cupy

        assert not predicate[0], "cuBLAS has no predicates"
        if rehearsing():
            return
        cublas, handle, kind = _cublas(), cupy.cuda.device.get_cublas_handle(), _PRECISIONS[self.dtype]
        scalars = np.array([1, not self.fresh], self.dtype)  # α and β
        alpha = address(scalars)
        (a, b, c), (lda, ldb, ldc), beta = own[:3], self.leading, alpha + self.dtype.itemsize
        mode = cublas.getMathMode(handle)
        exact = mode & _MODE not in _INEXACT
        if not exact:
            cublas.setMathMode(handle, 0)
        # cuBLAS stores matrices by columns, and a matrix by rows is its transpose by columns: Cᵀ = Bᵀ Aᵀ.
        try:
            if self.count == 1:
                multiply = getattr(cublas, f"{kind}gemm")
                multiply(handle, *self.layout, alpha, b, ldb, a, lda, beta, c, ldc)
            else:
                multiply, (next_a, next_b, next_c) = getattr(cublas, f"{kind}gemmStridedBatched"), self.apart
                multiply(handle, *self.layout, alpha, b, ldb, next_b, a, lda, next_a, beta, c, ldc, next_c, self.count)
        finally:
            if not exact:
                cublas.setMathMode(handle, mode)


def blas_plan(A: Any, B: Any, C: Any, *, fresh: bool) -> BlasPlan | None:
    """Plan C ← AB or C ← C + AB for batches of shapes (count, m, k), (count, k, n) and (count, m, n).

    Returns None if cuBLAS does not take the layout. C must not overlap A or B.
    """
    count, m, n = C.shape
    places = [_leading(v) for v in (A, B, C)]
    apart = [divmod(v.strides[0], v.itemsize) for v in (A, B, C)]
    if any(rest or step < 0 for step, rest in apart) and count > 1:
        return None
    if None in places or C.strides[2] != C.itemsize or max(m, n, A.shape[2], count) > _MOST or min(m, n, count, A.shape[2]) == 0:
        return None
    (by_columns_a, lda), (by_columns_b, ldb), (_, ldc) = (place for place in places if place is not None)
    if max(lda, ldb, ldc) > _MOST:
        return None
    layout = by_columns_b, by_columns_a, n, m, A.shape[2]
    return BlasPlan(C.dtype, layout, (lda, ldb, ldc), (apart[0][0], apart[1][0], apart[2][0]), count, fresh)


def _leading(v: Any) -> tuple[int, int] | None:
    """Return 1 if the matrices are stored by columns, else 0, and the leading dimension; None if neither axis is contiguous."""
    (_, m, n), (_, row, column), size = v.shape, v.strides, v.itemsize
    for by_columns, length, step, apart, count in ((0, n, column, row, m), (1, m, row, column, n)):
        if step == size or length == 1:
            if count == 1:
                return by_columns, length
            if apart >= length * size and apart % size == 0:
                return by_columns, apart // size
    return None


# CUDA graphs.

_KEPT, _BYTES = 16, 256 << 20  # the most recordings kept, and the most memory of more than one

_lock = forks.lock()
_recordings: OrderedDict[Hashable, RecordedGraph | None] = OrderedDict()


@dataclass(frozen=True)
class RecordedGraph:
    """A recorded schedule and the memory it works on."""

    graph: Any  # cupy.cuda.Graph
    workspace: Block  # the block that the graph works on
    divergent: Any  # the array where the graph reports divergent pivots
    pool: Any  # cupy.cuda.MemoryPool, the owner of the temporaries' memory

    def play(self, A: Block) -> None:
        """Copy A to the workspace, launch the graph in the current stream, and copy back; update `via` where the graph found a witness."""
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(array, work)
        self.graph.launch()
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(work, array)
        if A.via is not None:
            # The workspace counts vertices from 0, and held −1 everywhere before.
            for_each("if (found >= 0) via = found + row", {"found": self.workspace.via, "via": A.via}, row=A.row)


def recording(engine: Engine, key: Hashable, A: Block, schedule: Callable[[Block], Any]) -> RecordedGraph | None:
    """Return the recording for `key`, made at the second call; None at the first, whose kernels may still have to be compiled.

    Returns None also in a rehearsal, and while the current stream is being captured. `key` is everything that the launches depend on
    except the elements. The workspace has A's shape, and counts its vertices from 0. `schedule` launches everything on the block it is
    given, and returns the array where it reports divergent pivots.
    """
    import cupy

    if rehearsing() or cupy.cuda.get_current_stream().is_capturing():
        return None  # the caller's own capture records the launches
    # Neither two streams nor two threads may share a workspace.
    key = (key, threading.get_ident(), cupy.cuda.get_current_stream().ptr)
    with _lock:
        if key not in _recordings:
            _remember(key, None)
            return None
        found = _recordings[key]
        _recordings.move_to_end(key)
    if found is None:
        meter, engine.meter = engine.meter, None  # capturing computes nothing; playing the graph does
        try:
            found = _record(A, schedule)
        except cupy.cuda.memory.OutOfMemoryError:  # a workspace takes more memory than the schedule alone
            return None
        finally:
            engine.meter = meter
        with _lock:
            _remember(key, found)
    return found


def _record(A: Block, schedule: Callable[[Block], Any]) -> RecordedGraph:
    import cupy

    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.using_allocator(pool.malloc), stream:
        values = tuple(cupy.empty(v.shape, v.dtype) for v in A.values)
        via = None if A.via is None else cupy.empty(A.via.shape, A.via.dtype)
        workspace = replace(A, values=values, via=via, row=0, column=0)
        stream.begin_capture()
        try:
            if via is not None:
                via.data.memset_async(0xFF, via.nbytes)  # −1 everywhere
            divergent = schedule(workspace)
        except BaseException:
            with contextlib.suppress(Exception):  # else it would hide the error that ended the recording
                stream.end_capture()
            raise
        graph = stream.end_capture()
    return RecordedGraph(graph, workspace, divergent, pool)


def _remember(key: Hashable, found: RecordedGraph | None) -> None:
    _recordings[key] = found
    while len(_recordings) > _KEPT or (len(_recordings) > 1 and sum(r.pool.total_bytes() for r in _recordings.values() if r) > _BYTES):
        _recordings.popitem(last=False)
