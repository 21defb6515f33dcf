"""Elements between the user's form and the kernels', in one pass over device memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["halved", "mend_zeros", "restore"]


def halved(values: Any, half: int, *, owned: bool) -> Any:
    """Integers of which nothing is beyond half of ∞: in their place if they are owned."""
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    beyond = cupy.minimum if half > 0 else cupy.maximum
    return beyond(values, values.dtype.type(half), out=out)


def restore(values: Any, via: Any, threshold: int, infinity: int) -> None:
    """Everything at or beyond the threshold is ∞ again, in its place, and no path."""
    limits = values.dtype.type(threshold), values.dtype.type(infinity), infinity > 0
    if via is None:
        _restore()(values, *limits, values)
    else:
        _restore_both()(values, via, *limits, values, via)


_BEYOND = "(up ? x >= threshold : x <= threshold)"


@functools.cache
def _restore() -> Any:
    import cupy

    return cupy.ElementwiseKernel("T x, T threshold, T infinity, bool up", "T y", f"y = {_BEYOND} ? infinity : x", "semiring_restore")


@functools.cache
def _restore_both() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T x, int32 v, T threshold, T infinity, bool up",
        "T y, int32 w",
        f"const bool beyond = {_BEYOND}; y = beyond ? infinity : x; w = beyond ? -1 : v",
        "semiring_restore_with_via",
    )


def mend_zeros(values: Any) -> None:
    """Makes 0.0 of each −0.0 of float32, in its place."""
    bits = values.view(np.int32)
    _mend()(bits, bits)


@functools.cache
def _mend() -> Any:
    import cupy

    # Bits are looked at as integers, because CuPy's own arithmetic takes subnormals for zeros.
    return cupy.ElementwiseKernel("int32 x", "int32 y", "y = x == (int)0x80000000 ? 0 : x", "semiring_mend_zeros")
