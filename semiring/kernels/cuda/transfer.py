"""Copies of matrices between host memory and the current GPU, at the full speed of the link."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from semiring.common import forks
from semiring.kernels.cuda.blocks import contiguous

__all__ = ["download", "locked", "upload"]

Array = np.ndarray[Any, Any]

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
    with _locked(source) as address:
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_host_async(address, source.nbytes, stream)
        stream.synchronize()
    return target


def download(array: Any, target: Array | None = None) -> Array:
    """Copy an array to the host, into the C-contiguous `target` if given."""
    import cupy

    source = contiguous(array)
    target = np.empty(array.shape, array.dtype) if target is None else target
    with _locked(target) as address:
        stream = cupy.cuda.get_current_stream()
        source.data.copy_to_host_async(address, source.nbytes, stream)
        stream.synchronize()
    return target


@contextmanager
def _locked(array: Array) -> Iterator[ctypes.c_void_p]:
    """Yield the address of an array with locked pages, which the GPU copies itself."""
    with locked([array]):
        yield ctypes.c_void_p(array.ctypes.data)


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
