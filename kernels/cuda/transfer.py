"""Matrices between the memory of the host and the current GPU, at the full speed of the link, and within the GPU."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["download", "landing", "move", "upload"]

Array = np.ndarray[Any, Any]

_LARGE = 1 << 24
"""Bytes from which on locking pages takes less time than it saves."""

_locks = threading.Lock()
"""Pages that one thread copies must not be unlocked by another."""


def upload(array: Array) -> Any:
    """A C-contiguous copy on the GPU."""
    import cupy

    source, target = np.ascontiguousarray(array), cupy.empty(array.shape, array.dtype)
    with _locked(source) as address:
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_host_async(address, source.nbytes, stream)
        stream.synchronize()
    return target


def move(source: Any, target: Any) -> None:
    """target ← source on a GPU. CuPy's own ways take the host several times as long, and the GPU ten times for bytes."""
    if source.flags.c_contiguous and target.flags.c_contiguous:
        target.data.copy_from_device_async(source.data, source.nbytes)
    else:
        target[...] = source


def landing(array: Any) -> Future[Array]:
    """Memory of the host that a copy of `array` can be put into.

    New memory takes longer to come about than a copy takes through the link, so that another thread sees to it while the GPU computes.
    """
    executor = ThreadPoolExecutor(1)
    memory = executor.submit(np.full, array.shape, 0, array.dtype)
    executor.shutdown(wait=False)
    return memory


def download(array: Any, target: Array | None = None) -> Array:
    """A copy on the host, in the C-contiguous `target` if there is one."""
    import cupy

    source = cupy.ascontiguousarray(array)
    target = np.empty(array.shape, array.dtype) if target is None else target
    with _locked(target) as address:
        stream = cupy.cuda.get_current_stream()
        source.data.copy_to_host_async(address, source.nbytes, stream)
        stream.synchronize()
    return target


@contextmanager
def _locked(array: Array) -> Iterator[ctypes.c_void_p]:
    """The address of an array whose pages stay where they are meanwhile, so that the GPU copies them itself."""
    import cupy

    runtime, address = cupy.cuda.runtime, array.ctypes.data
    if array.nbytes < _LARGE:
        yield ctypes.c_void_p(address)
        return
    with _locks:
        try:
            runtime.hostRegister(address, array.nbytes, 0)
        except runtime.CUDARuntimeError:  # locked already, or more than the system lets a process lock: slower then, and no less right
            yield ctypes.c_void_p(address)
            return
        try:
            yield ctypes.c_void_p(address)
        finally:
            runtime.hostUnregister(address)
