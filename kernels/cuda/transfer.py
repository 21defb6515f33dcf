"""Matrices between the memory of the host and the current GPU, at the full speed of the link."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["download", "upload"]

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


def download(array: Any) -> Array:
    """A C-contiguous copy on the host."""
    import cupy

    source, target = cupy.ascontiguousarray(array), np.empty(array.shape, array.dtype)
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
