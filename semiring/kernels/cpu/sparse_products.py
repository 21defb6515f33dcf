"""Products of sparse matrices by generated code, rows over threads."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array, Values
from semiring.arrays.overlap import address
from semiring.arrays.threads import Threaded, run
from semiring.kernels import machine
from semiring.kernels.compressed import CompressedRows, Mask, Room, require_sound, strange_columns
from semiring.kernels.cpu.arguments import kernel_name, pack
from semiring.kernels.cpu.bounds import bounds_in_words
from semiring.kernels.cpu.compiler import Function
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.sparse import BEYOND, STRANGE, SparseArrays, SparseWords, bitmap_bytes
from semiring.kernels.limits import SafeRange

__all__ = ["CpuSparseProducts"]

_NOTHING = SparseWords._make([0] * len(SparseWords._fields))

_BITS = 64
"""The columns per entry of a sparse factor above which empty columns are renumbered away."""


class CpuSparseProducts(Threaded):
    """The `ReferenceSparseProducts` in dtypes for which a semiring can be compiled; for `isa` see `CpuEngine`."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        self.requested, self.dtypes = threads, dtypes
        self._kernels = kernels_for(semiring, dtypes, isa)

    def times_dense(
        self, A: CompressedRows, B: Values, C: Values, via: Array | None = None, *, swapped: bool = False, signed: bool = False
    ) -> None:
        """Compute C ← A⊗B."""
        self._times_dense(A, B, C, via, swapped=swapped, signed=signed)

    def times_vector_within(
        self,
        A: CompressedRows,
        B: Values,
        C: Values,
        via: Array | None,
        safe: SafeRange,
        is_safe: Callable[[], bool],
        *,
        swapped: bool = False,
    ) -> bool:
        """Compute C ← A⊗B with a single column, in one pass over A; return True if all numbers are in the safe range.

        On False, also if the kernel cannot check the range, C holds no product. `is_safe` checks B while other threads wake.
        """
        bounds = bounds_in_words(safe, self.dtypes[0])
        return bounds is not None and not self._times_dense(A, B, C, via, is_safe, swapped=swapped, bounds=bounds)

    def _times_dense(
        self,
        A: CompressedRows,
        B: Values,
        C: Values,
        via: Array | None,
        is_safe: Callable[[], bool] | None = None,
        *,
        swapped: bool,
        signed: bool = False,
        bounds: tuple[int, int, int] = (0, 0, 0),
    ) -> bool:
        """Compute C ← A⊗B; return True if B is not safe, or an entry of a product with a vector is out of bounds."""
        n, m = C[0].shape[1], A.shape[0]
        if 0 in C[0].shape:
            return False
        single = n == 1
        B = tuple(map(np.ascontiguousarray, B)) if single else B
        if A.starts[0] != 0 or A.starts[-1] != len(A.columns):  # the kernel checks the row pointers in between
            raise strange_columns()
        narrow = _is_narrow(A)
        A, kind = _of_width(A, narrow=narrow), "sparse_vector" if single else "sparse_dense"
        threads, taken = self._threads((len(A.columns) + m) * n), array("q", [0])
        grain = -(-m // (machine.ROW_PARTS * threads)) if threads > 1 else m
        threshold, witness = self._kernels.representation.threshold(signed=signed), 0 if via is None else address(via)
        known = _NOTHING._replace(starts=address(A.starts), columns=address(A.columns), entries=len(A.columns), depth=A.shape[1], n=n)
        known = known._replace(threshold=threshold, via=witness, taken=taken.buffer_info()[0], grain=grain)
        known = known._replace(origin=bounds[0], least=bounds[1], most=bounds[2])
        parts = zip(A.values, B, C, strict=True)
        arrays = [SparseArrays(address(v), address(b), b.strides[0] // b.itemsize, address(c)) for v, b, c in parts]
        function = self._kernels.function(kernel_name(kind, swapped=swapped, narrow=narrow, witness=via is not None))
        tasks = [(0, m)] * threads
        answers = _over_rows(function, known, arrays, tasks, threads, is_safe=is_safe, nanoseconds=len(A.columns) * n)
        if (A.shape[1] == 0 and len(A.columns) > 0) or STRANGE in answers:
            raise strange_columns()
        return BEYOND in answers

    def times_sparse(
        self,
        A: CompressedRows,
        B: CompressedRows,
        room: Room,
        mask: Mask | None = None,
        *,
        witness: bool = False,
        swapped: bool = False,
        signed: bool = False,
    ) -> tuple[CompressedRows, Array | None]:
        """Compute A⊗B."""
        require_sound(A, B, mask)
        if B.shape[1] > _BITS * len(B.columns):
            return self._renumbered(A, B, room, mask, witness=witness, swapped=swapped, signed=signed)
        narrow = all(map(_is_narrow, (A, B) if mask is None else (A, B, mask.pattern)))
        A, B = (_of_width(x, narrow=narrow) for x in (A, B))
        symbolic = kernel_name("sparse_symbolic", narrow=narrow, masked=mask is not None)
        numeric = kernel_name("sparse_numeric", swapped=swapped, narrow=narrow, witness=witness, masked=mask is not None)
        words, size = bitmap_bytes(B.shape[1])
        steps = len(A.columns) * len(B.columns) // max(1, B.shape[0])
        threads = self._threads(steps)
        tasks, bitmaps = _shares(A.starts, threads), [np.zeros(size, np.uint8) for _ in range(threads)]
        starts = np.zeros(A.shape[0] + 1, np.int64)
        threshold = self._kernels.representation.threshold(signed=signed)
        known = _NOTHING._replace(starts=address(A.starts), columns=address(A.columns), n=B.shape[1], threshold=threshold)
        known = known._replace(out_starts=address(starts), words=words)
        known = known._replace(right_starts=address(B.starts), right_columns=address(B.columns))
        if mask is not None:
            pattern = _of_width(mask.pattern, narrow=narrow)
            ordered = not mask.complement and _ascends(B) and _ascends(pattern, strictly=True)
            known = known._replace(mask_starts=address(pattern.starts), mask_columns=address(pattern.columns))
            known = known._replace(flip=-1 if mask.complement else 0, sorted=int(ordered))
        nothing = [SparseArrays(0, 0, 0, 0)] * len(self.dtypes)
        _over_rows(self._kernels.function(symbolic), known, nothing, tasks, threads, bitmaps, nanoseconds=steps)
        starts.cumsum(out=starts)
        count = int(starts[-1])
        room(count)
        columns, values = np.empty(count, B.columns.dtype), tuple(np.empty(count, d) for d in self.dtypes)
        via = np.empty(count, np.int32) if witness else None
        sums = np.empty(count if self._kernels.representation.kind == "exponential" else 0, self.dtypes[0])
        known = known._replace(out_columns=address(columns), via=0 if via is None else address(via), sums=address(sums))
        arrays = [SparseArrays(address(v), address(b), 0, address(c)) for v, b, c in zip(A.values, B.values, values, strict=True)]
        _over_rows(self._kernels.function(numeric), known, arrays, tasks, threads, bitmaps, nanoseconds=4 * steps)
        return CompressedRows((A.shape[0], B.shape[1]), starts, columns, values), via

    def _renumbered(
        self, A: CompressedRows, B: CompressedRows, room: Room, mask: Mask | None, **how: bool
    ) -> tuple[CompressedRows, Array | None]:
        """Multiply without the empty columns of B."""
        used, columns = np.unique(B.columns, return_inverse=True)
        if mask is not None:
            pattern = mask.pattern
            at = np.searchsorted(used, pattern.columns)
            there = used[np.minimum(at, len(used) - 1)] == pattern.columns if len(used) else np.zeros(len(at), bool)
            starts = np.append(0, there.cumsum())[pattern.starts]
            mask = mask._replace(pattern=CompressedRows((pattern.shape[0], len(used)), starts, at[there]))
        product, via = self.times_sparse(A, CompressedRows((B.shape[0], len(used)), B.starts, columns, B.values), room, mask, **how)
        return product._replace(shape=(A.shape[0], B.shape[1]), columns=used[product.columns]), via

    def _threads(self, steps: int) -> int:
        return self.threads if steps >= machine.VECTOR_SERIAL else 1


def _is_narrow(rows: CompressedRows) -> bool:
    """Return True if column numbers have 32 bits, and entry numbers fit in 32."""
    return rows.columns.dtype == np.int32 and len(rows.columns) < 2**31


def _of_width(rows: CompressedRows, *, narrow: bool) -> CompressedRows:
    """Return the matrix with column and entry numbers of 32 bits, or of 64."""
    index = np.int32 if narrow else np.int64
    return rows._replace(starts=rows.starts.astype(index, copy=False), columns=rows.columns.astype(index, copy=False))


def _ascends(rows: CompressedRows, *, strictly: bool = False) -> bool:
    """Return True if the columns of each row ascend."""
    columns = rows.columns
    descents = np.flatnonzero(columns[1:] <= columns[:-1] if strictly else columns[1:] < columns[:-1]) + 1
    return bool(np.isin(descents, rows.starts).all())


def _over_rows(
    function: Function,
    known: SparseWords,
    arrays: Sequence[SparseArrays],
    tasks: Sequence[tuple[int, int]],
    threads: int,
    bitmaps: Sequence[Array] = (),
    is_safe: Callable[[], bool] | None = None,
    *,
    nanoseconds: float,
) -> set[int]:
    """Call a function for ranges of rows, each worker with its bitmap; return the answers among `STRANGE` and `BEYOND`.

    `nanoseconds` estimates the time of all calls together.
    """
    answers = set[int]()

    def work(task: tuple[int, int] | None, worker: int) -> None:
        if task is None:
            if is_safe is not None and not is_safe():
                answers.add(BEYOND)
            return
        if BEYOND in answers:
            return
        first, last = task
        packed = pack(known._replace(first=first, last=last, bitmap=address(bitmaps[worker]) if bitmaps else 0), arrays)
        function(packed, nanoseconds / threads)
        answers.update([answer for answer in (STRANGE, BEYOND) if packed[answer]])

    run(work, tasks if is_safe is None else [None, *tasks], threads)
    return answers


def _shares(starts: Array, threads: int) -> list[tuple[int, int]]:
    """Cut the rows into ranges with about equal sums of rows and entries, several for each thread."""
    m = len(starts) - 1
    if threads == 1:
        return [(0, m)] if m else []
    count, rows = min(m, threads * machine.SPARSE_TASKS), range(m + 1)
    total = m + int(starts[-1])
    cuts = [bisect_left(rows, total * part // count, key=lambda i: i + int(starts[i])) for part in range(1, count)]
    return [(i, j) for i, j in pairwise([0, *cuts, m]) if i < j]
