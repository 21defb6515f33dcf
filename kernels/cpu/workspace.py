"""The scratch memory of one worker, kept from product to product."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Workspace"]

_LINE = 64
"""Bytes of a cache line."""


class Workspace:
    """Buffers by name, which grow as needed and begin on a cache line."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray[Any, Any]] = {}

    def address(self, name: str, size: int) -> int:
        """The address of at least `size` bytes."""
        return int(self._buffer(name, size).ctypes.data)

    def keep(self, name: str, values: np.ndarray[Any, Any]) -> int:
        """The address of a contiguous copy of `values`."""
        buffer = self._buffer(name, values.nbytes)
        np.copyto(buffer[: values.nbytes].view(values.dtype).reshape(values.shape), values)
        return int(buffer.ctypes.data)

    def _buffer(self, name: str, size: int) -> np.ndarray[Any, Any]:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < size:
            whole = np.empty(size + _LINE, dtype=np.uint8)
            buffer = self._buffers[name] = whole[-whole.ctypes.data % _LINE :]
        return buffer
