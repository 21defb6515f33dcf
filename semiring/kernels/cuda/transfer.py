"""Matrices between the memory of the host and the current GPU, at the full speed of the link."""

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

_LARGE = 1 << 24
"""Bytes from which on locking pages takes less time than it saves."""

_PORTABLE = 1
"""cudaHostRegisterPortable: for all GPUs."""

_lock = forks.lock()
_holders: Counter[tuple[int, int]] = Counter()
"""How many copy from or to pages that are locked, by address and size."""


def upload(array: Array, dtype: Any = None) -> Any:
    """A C-contiguous copy on the GPU, in another dtype if that is named."""
    import cupy

    source = np.ascontiguousarray(array, dtype=dtype)
    target = cupy.empty(source.shape, source.dtype)
    with _locked(source) as address:
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_host_async(address, source.nbytes, stream)
        stream.synchronize()
    return target


def download(array: Any, target: Array | None = None) -> Array:
    """A copy on the host, in the C-contiguous `target` if there is one."""
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
    """The address of an array whose pages stay where they are meanwhile, so that the GPU copies them itself."""
    with locked([array]):
        yield ctypes.c_void_p(array.ctypes.data)


@contextmanager
def locked(arrays: Iterable[Array]) -> Iterator[None]:
    """Keeps the pages of large arrays where they are meanwhile, so that every GPU copies them itself."""
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
    """Lock pages; False where that is not possible."""
    import cupy

    runtime = cupy.cuda.runtime
    try:
        runtime.hostRegister(address, size, _PORTABLE)
    except runtime.CUDARuntimeError:  # locked by others, or more than the system lets a process lock: slower then, and no less right
        return False
    return True


def _release(pages: tuple[int, int]) -> None:
    """Unlock pages when nobody in this process copies them any more."""
    import cupy

    with _lock:
        _holders[pages] -= 1
        if _holders[pages] == 0:
            del _holders[pages]
            cupy.cuda.runtime.hostUnregister(pages[0])
