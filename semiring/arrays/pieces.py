"""Slices of large arrays, for work in pieces with small temporaries.

The budgets depend on the memory that a piece should fit:

| budget | bound |
|---|---|
| `CACHE` | entries with a dozen temporaries in a core's own cache: tests of elements, relaxation, pointer chasing |
| `HOST` | entries that hide the cost of a NumPy call, with temporaries of a few MiB: components, searches, statistics |
| `GPU` | entries that hide the launch of a GPU kernel, which takes as long as a million entries |
| `DISK` | bytes read, written or unpacked at once |
| `CPU_SCRATCH`, `GPU_SCRATCH` | bytes of packed panels and copies in a product |
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from semiring.arrays.devices import on_gpu

__all__ = ["CACHE", "CPU_SCRATCH", "DISK", "GPU", "GPU_SCRATCH", "HOST", "pieces", "row_slices", "slices"]

CACHE, HOST, GPU = 1 << 17, 1 << 20, 1 << 22
DISK = 1 << 24
CPU_SCRATCH, GPU_SCRATCH = 1 << 24, 1 << 26


def slices(count: int, size: int, budget: int) -> Iterator[slice]:
    """Yield slices that cover `count` rows of `size` entries, each with as many rows as the budget holds, or one."""
    step = max(1, budget // max(1, size))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))


def row_slices(array: Any) -> Iterator[slice]:
    """Yield slices that cover the first axis, for work on the device of the array."""
    return slices(len(array), math.prod(array.shape[1:]), GPU if on_gpu(array) else CACHE)


def pieces(shape: tuple[int, ...], budget: int = CACHE) -> Iterator[tuple[slice, ...]]:
    """Yield indices that cut an array into pieces of at most `budget` entries, in C order."""
    inner = math.prod(shape[1:])
    if not shape or shape[0] * inner <= budget:
        yield (slice(None),) * len(shape)
    elif inner <= budget:
        for rows in slices(shape[0], inner, budget):
            yield rows, *(slice(None),) * (len(shape) - 1)
    else:
        for i in range(shape[0]):
            for rest in pieces(shape[1:], budget):
                yield slice(i, i + 1), *rest
