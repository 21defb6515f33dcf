"""Elements between the user's form and the kernels', in one pass over device memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["halved", "has_ordered_bits", "restore"]


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


def has_ordered_bits(values: Any, *, mend: bool) -> bool:
    """Whether no float32 is negative but −∞, so that they sort like the integers of their bits; `mend` makes 0.0 of −0.0 on the way."""
    import cupy

    negative = cupy.zeros(1, dtype=np.int32)
    bits = values.view(np.int32)
    if mend:
        _mend_and_look()(bits, bits, negative)
    else:
        _look()(bits, negative)
    return not int(negative[0])


# Bits are looked at as integers, because CuPy's own arithmetic takes subnormals for zeros.
_MENDED = "y = x == (int)0x80000000 ? 0 : x"
_NEGATIVE = "if (y < 0 && y != (int)0xff800000) negative[0] = 1"


@functools.cache
def _mend_and_look() -> Any:
    import cupy

    return cupy.ElementwiseKernel("int32 x", "int32 y, raw int32 negative", f"{_MENDED}; {_NEGATIVE}", "semiring_mend_and_look")


@functools.cache
def _look() -> Any:
    import cupy

    return cupy.ElementwiseKernel("int32 x", "raw int32 negative", f"const int y = x; {_NEGATIVE}", "semiring_look")
