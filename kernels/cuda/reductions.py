"""What one pass over an array on a GPU tells, without a temporary of its size."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

__all__ = ["finite_range", "largest_and_sign"]


def finite_range(values: Any, infinities: tuple[int, ...]) -> tuple[int, int] | None:
    """The least and the greatest entry of integers, leaving out `infinities`; None where nothing is left."""
    low, high = (int(_extreme(which, values.dtype, infinities)(values)) for which in ("min", "max"))
    return (low, high) if low <= high else None


def largest_and_sign(values: Any, *, positive_infinity: bool = True, negative_infinity: bool = True) -> tuple[float, bool]:
    """The largest magnitude of the finite entries of floats, 0 if there is none; and whether one of them is negative.

    NaN where an entry is NaN, or an infinity that there should not be.
    """
    found = float(_largest(positive_infinity, negative_infinity)(values))
    return abs(found), math.copysign(1, found) < 0


# The numbers that entries are compared with stand in the source, because CuPy reduces by many blocks only what has no other argument.


@functools.cache
def _extreme(which: str, dtype: np.dtype[Any], skipped: tuple[int, ...]) -> Any:
    import cupy

    info = np.iinfo(dtype)
    neutral = _literal(info.max if which == "min" else info.min)
    skip = " || ".join(f"x == (T){_literal(s)}" for s in skipped) or "false"
    name = f"semiring_{which}_{dtype}_{len(skipped)}_{any(s > 0 for s in skipped)}"
    return cupy.ReductionKernel("T x", "T y", f"{skip} ? (T){neutral} : x", f"{which}(a, b)", "y = a", f"(T){neutral}", name)


def _literal(value: int) -> str:
    return f"({value + 1}LL - 1)" if value < 0 else f"{value}{'ULL' if value >= 2**63 else 'LL'}"


@functools.cache
def _largest(positive_infinity: bool, negative_infinity: bool) -> Any:
    """The largest magnitude, with a minus sign if any of the numbers has one: one number, so that one transfer brings both.

    Signs are told from bits, because CuPy's kernels take subnormals for zeros.
    """
    import cupy

    wrong = " || ".join(
        ["x != x"]
        + [f"(isinf(x) && {test})" for test, allowed in (("x > 0", positive_infinity), ("x < 0", negative_infinity)) if not allowed]
    )
    return cupy.ReductionKernel(
        "T x",
        "T y",
        f"{wrong} ? (T)(0.0 / 0.0) : isinf(x) ? (T)0 : below_zero(x) ? x : fabs(x)",
        "(a != a ? a : b != b ? b : copysign(max(fabs(a), fabs(b)), signbit(a) || signbit(b) ? (T)-1 : (T)1))",
        "y = a",
        "0",
        f"semiring_largest_and_sign_{positive_infinity:d}{negative_infinity:d}",
        preamble=_BELOW_ZERO,
    )


_BELOW_ZERO = """
__device__ bool below_zero(float x) { return __float_as_int(x) < 0 && __float_as_int(x) != (int)0x80000000; }
__device__ bool below_zero(double x) { return __double_as_longlong(x) < 0 && __double_as_longlong(x) != (long long)0x8000000000000000; }
"""
