"""Where kernels tell of harmful pivots: for each matrix the least vertex that has one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["NONE", "earlier", "nothing"]

NONE = np.iinfo(np.int32).max
"""What is there where no pivot is harmful."""


def nothing(count: int) -> Any:
    """No harmful pivots in `count` matrices, as an int32 array on the GPU."""
    import cupy

    return cupy.full(count, NONE, dtype=np.int32)


def earlier(whole: Any, part: Any, row: int) -> None:
    """whole ← the lesser of `whole` and of `part`, which counts from vertex `row`."""
    _earlier()(whole, part, np.int32(row), whole)


@functools.cache
def _earlier() -> Any:
    import cupy

    lesser = f"least = part == {NONE} ? whole : min(whole, part + row)"
    return cupy.ElementwiseKernel("int32 whole, int32 part, int32 row", "int32 least", lesser, "semiring_earlier")
