"""Where kernels tell of harmful pivots: for each matrix the least vertex that has one."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.errors import SemiringError
from semiring.kernels.cuda.elements import for_each

__all__ = ["NONE", "earlier", "nothing", "told"]

NONE = 0x7F7F7F7F
"""What is there where no pivot is harmful: beyond all vertices, and of equal bytes, so that memory is set to it without a kernel."""


def nothing(count: int) -> Any:
    """No harmful pivots in `count` matrices, as an int32 array on the GPU."""
    import cupy

    found = cupy.empty(count, dtype=np.int32)
    if count:
        found.data.memset_async(NONE & 0xFF, found.nbytes)
    return found


def earlier(whole: Any, part: Any, row: int) -> None:
    """whole ← the lesser of `whole` and of `part`, which counts from vertex `row`."""
    for_each(f"if (part != {NONE} && part + row < whole) whole = part + row", {"whole": whole[None], "part": part[None]}, row=row)


def told(found: Any) -> np.ndarray[Any, Any]:
    """What is told, on the host, once the current stream has come to its end: by way of pinned memory, in half of the time.

    Raises
    ------
    SemiringError
        Where the stream is being recorded.
    """
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        raise SemiringError(
            "a closure waits for the GPU, to tell of harmful cycles, so that no CUDA graph of it is recorded; products can be"
        )
    memory = cupy.cuda.alloc_pinned_memory(found.nbytes)
    found.data.copy_to_host_async(memory.ptr, found.nbytes)
    stream.synchronize()
    return np.frombuffer(memory, np.int32, found.size)
