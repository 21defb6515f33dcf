"""GPUs in the device pipeline: buffers in GPU memory, and copies to and from the host, files and other GPUs.

A copy over the link is asynchronous, and runs at full speed, only with page-locked ("pinned") host memory. The caller's arrays are locked
in place, new result arrays are `PinnedMemory`, and all other copies go through two pinned buffers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager
from itertools import permutations
from typing import Any, Self

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import on_gpu
from semiring.arrays.pieces import slices
from semiring.arrays.threads import run, thread_count
from semiring.kernels.cuda.blocks import locked
from semiring.kernels.engine import Engine
from semiring.streaming.pipeline import Buffer, DeviceMemory, DevicePipeline, resident_pipelines
from semiring.streaming.storage import ArrayRows, Matrix, RowAccess, memory_of

__all__ = ["CudaMemory", "PinnedMemory", "PinnedRows", "cuda_pipelines", "free_pools"]

_STAGE = 1 << 25
"""Bytes of each of two pinned buffers, for rows that the GPU cannot copy itself."""

_ALIGNMENT = 16
"""Rows of a buffer begin at multiples of this many bytes."""


class CudaMemory(DeviceMemory):
    """Buffers on GPU `number`.

    Rows of arrays in memory, of the host or a GPU, are copied directly, at full speed if pinned; all others through two pinned buffers.
    """

    def __init__(self, matrix: Matrix, number: int) -> None:
        super().__init__(matrix)
        self._number, self._thread = number, threading.local()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the GPU the current device, with a stream for each thread."""
        import cupy

        with cupy.cuda.Device(self._number):
            if not hasattr(self._thread, "stream"):
                self._thread.stream = cupy.cuda.Stream(non_blocking=True)
            with self._thread.stream:
                yield

    def view(self, rows: slice) -> Buffer | None:
        """Return the rows themselves, if this GPU holds the matrix; else None."""
        matrices = self._matrix.all
        arrays: list[Any] = [memory_of(m, rows) for m in matrices]
        if not all(_copyable(a, m.dtype) and on_gpu(a) and a.device.id == self._number for a, m in zip(arrays, matrices, strict=True)):
            return None
        return self._grouped(arrays)

    def event(self) -> Callable[[], None]:
        """Return a function that waits for the calling thread's work on the GPU so far."""
        import cupy

        event = cupy.cuda.Event(block=True, disable_timing=True)
        event.record()
        synchronize: Callable[[], None] = event.synchronize
        return synchronize

    def _new(self, rows: int, n: int, dtype: np.dtype[Any]) -> Any:
        import cupy

        whole = -(-n * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        return cupy.empty((rows, whole // dtype.itemsize), dtype)[:, :n]

    def _wait(self) -> None:
        self._thread.stream.synchronize()

    def _copy(self, matrix: RowAccess, rows: slice, array: Any, *, back: bool) -> None:
        there = memory_of(matrix, rows, writable=back)
        if _copyable(there, array.dtype):
            source, target = (array, there) if back else (there, array)
            _copy_async(source, target, self._thread.stream)
            return
        for turn, piece in enumerate(slices(rows.stop - rows.start, array.shape[1] * array.itemsize, _STAGE)):
            some, part = slice(rows.start + piece.start, rows.start + piece.stop), array[piece]
            stage, free = self._stage(turn % 2, part.shape, part.dtype)
            free.synchronize()
            if back:
                _copy_async(part, stage, self._thread.stream)
                self._thread.stream.synchronize()
                matrix.write(some, stage)
            else:
                matrix.read(some, stage)
                _copy_async(stage, part, self._thread.stream)
                free.record(self._thread.stream)

    def _stage(self, turn: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """Return one of the thread's two pinned buffers, and the event after which the buffer is free."""
        import cupy

        size = shape[0] * shape[1] * dtype.itemsize
        stages = self._thread.__dict__.setdefault("stages", {})
        if turn not in stages or stages[turn][0].mem.size < size:
            stages[turn] = cupy.cuda.alloc_pinned_memory(max(size, _STAGE)), cupy.cuda.Event(block=True, disable_timing=True)
        memory, free = stages[turn]
        return np.frombuffer(memory, dtype, shape[0] * shape[1]).reshape(shape), free


def free_pools(numbers: Iterable[int]) -> None:
    """Free unused memory of GPUs: pipelines use streams, so no other stream could reuse their pooled blocks."""
    import cupy

    for number in numbers:
        with cupy.cuda.Device(number):
            cupy.get_default_memory_pool().free_all_blocks()


def _copyable(memory: Any, dtype: np.dtype[Any]) -> bool:
    """Return True for an array of this dtype, on host or GPU, whose rows are contiguous and do not overlap."""
    array = isinstance(memory, np.ndarray) or on_gpu(memory)
    return array and memory.dtype == dtype and memory.strides[1] == dtype.itemsize and memory.strides[0] >= memory.shape[1] * dtype.itemsize


def _copy_async(source: Any, target: Any, stream: Any) -> None:
    """Begin a copy of a matrix with contiguous rows between host and GPUs, in any direction."""
    import cupy

    here, there = (a.data.ptr if on_gpu(a) else a.ctypes.data for a in (source, target))
    if here != there:
        runtime, width = cupy.cuda.runtime, source.shape[1] * source.itemsize
        runtime.memcpy2DAsync(there, target.strides[0], here, source.strides[0], width, len(source), runtime.memcpyDefault, stream.ptr)


def cuda_pipelines(numbers: Sequence[int], engines: Sequence[Engine], matrix: Matrix, rows: Sequence[slice]) -> list[DevicePipeline]:
    """Return the pipelines of GPUs over whose memories a matrix is distributed.

    A GPU may occur several times in `numbers`, with an engine each. The matrix is in arrays of the host, pinned for speed, or in arrays of
    one of these GPUs, whose own block rows then stay in place. For the memory see `resident_bytes`.
    """
    import cupy

    runtime = cupy.cuda.runtime
    for number, other in permutations(set(numbers), 2):
        # Without peer access, copies go through the host.
        if runtime.deviceCanAccessPeer(number, other):
            with cupy.cuda.Device(number):
                try:
                    runtime.deviceEnablePeerAccess(other)
                except runtime.CUDARuntimeError as error:
                    if error.status != 704:  # cudaErrorPeerAccessAlreadyEnabled
                        raise
    for number in set(numbers):
        # Wait for the caller's streams, which may still write the matrix.
        cupy.cuda.Device(number).synchronize()
    return resident_pipelines(engines, [CudaMemory(matrix, number) for number in numbers], rows)


class PinnedMemory:
    """A context manager that pins arrays of the host for all GPUs, in a background thread, since pinning takes longer than a copy.

    The arrays are overwritten with zeros. Wait until they are `ready`; their storage backends, `rows`, wait by themselves.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        import cupy

        self.arrays = tuple(arrays)
        self._locks = ExitStack()
        thread = ThreadPoolExecutor(1)
        self.ready = thread.submit(self._prepare, cupy.cuda.Device())
        thread.shutdown(wait=False)
        self.rows = tuple(PinnedRows(array, self.ready) for array in self.arrays)

    def _prepare(self, device: Any) -> None:
        with device:  # a new thread would use the first GPU
            threads = thread_count()
            for array in self.arrays:
                # Several threads write to every page of 4 KiB: the system allots pages faster.
                pages = array.reshape(-1).view(np.uint8)[::4096]
                run(lambda part, _: part.fill(0), np.array_split(pages, threads), threads)
                self._locks.enter_context(locked([array]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        wait_for([self.ready])
        self._locks.close()


class PinnedRows(ArrayRows):
    """The rows of a pinned output buffer that may not be ready yet."""

    def __init__(self, array: Array, ready: Future[None]) -> None:
        super().__init__(array)
        self._ready = ready

    @property
    def writable(self) -> Any:
        """Return the array, once it is ready."""
        self._ready.result()
        return self.array
