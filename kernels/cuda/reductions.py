"""What one pass over an array on a GPU tells, without a temporary of its size."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["finite_range", "largest_finite"]


def finite_range(values: Any, infinities: tuple[int, ...]) -> tuple[int, int] | None:
    """The least and the greatest entry of integers, leaving out `infinities`; None where nothing is left."""
    info = np.iinfo(values.dtype)
    marks = (list(infinities) or [info.max, info.max])[:2]
    first, second = (values.dtype.type(m) for m in (marks[0], marks[-1]))
    skip = bool(infinities)
    low = int(_extreme("min", "greatest")(values, first, second, skip, values.dtype.type(info.max)))
    high = int(_extreme("max", "least")(values, first, second, skip, values.dtype.type(info.min)))
    return (low, high) if low <= high else None


def largest_finite(values: Any) -> float:
    """The largest magnitude of the finite entries of floats; 0 if there is none."""
    return float(_largest()(values))


@functools.cache
def _extreme(which: str, name: str) -> Any:
    import cupy

    return cupy.ReductionKernel(
        "T x, T first, T second, bool skip, T neutral",
        "T y",
        "skip && (x == first || x == second) ? neutral : x",
        f"{which}(a, b)",
        "y = a",
        {
            "min": "(T)~(T)0 < (T)0 ? (T)(((unsigned long long)1 << (8 * sizeof(T) - 1)) - 1) : (T)~(T)0",
            "max": "(T)~(T)0 < (T)0 ? (T)((unsigned long long)1 << (8 * sizeof(T) - 1)) : (T)0",
        }[which],
        f"semiring_{name}",
    )


@functools.cache
def _largest() -> Any:
    import cupy

    return cupy.ReductionKernel("T x", "T y", "isfinite(x) ? fabs(x) : (T)0", "max(a, b)", "y = a", "0", "semiring_largest_finite")
