"""Arrays of NumPy and of CuPy by one text: whose functions take an array, and where it lies. CuPy is not imported for the host's."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["differ", "entries", "equal", "holds_symbols", "host", "namespace", "on_gpu", "to_float32", "to_float64", "to_gpu"]


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def namespace(array: Any) -> Any:
    """The module whose functions take the array: `cupy` for what lies on a GPU, else `numpy`."""
    return sys.modules["cupy"] if on_gpu(array) else np


def equal(array: Any, value: Any) -> Any:
    """Which entries equal a number that is not NaN, subnormals too, which CuPy's own comparisons of float32 take for zeros."""
    if not on_gpu(array) or array.dtype != np.float32:
        return array == value
    bits, wanted = array.view(np.int32), np.float32(value)
    return bits == wanted.view(np.int32) if wanted else (bits == 0) | (bits == np.iinfo(np.int32).min)


def differ(x: Any, y: Any) -> Any:
    """Where two arrays of one dtype differ, also by a subnormal, which CuPy's own comparisons of float32 take for zeros."""
    if not on_gpu(x) or x.dtype != np.float32:
        return np.asarray(x != y, dtype=bool) if x.dtype.kind == "O" else x != y
    bits, others = x.view(np.int32), y.view(np.int32)
    return (bits != others) & (((bits | others) & np.int32(0x7FFFFFFF)) != 0)


def to_float64(array: Any) -> Any:
    """Floats as float64, subnormals too, which CuPy's own conversion of float32 takes for zeros."""
    wide = array.astype(np.float64)
    if array.dtype != np.float32:
        return wide
    bits = array.view(np.int32)
    xp = namespace(array)
    return xp.where((bits & _EXPONENT) == 0, xp.copysign((bits & _MANTISSA) * _SMALLEST, bits), wide)


def to_float32(array: Any) -> Any:
    """Float64 rounded to float32, to subnormals too, of which CuPy's own conversion makes zeros."""
    xp, size = namespace(array), abs(array)
    short = array.astype(np.float32)
    small = size < _NORMAL
    bits = xp.rint(xp.where(small, size, 0.0) / _SMALLEST).astype(np.int32)  # of a subnormal, they count its multiples of the smallest one
    bits = xp.where(xp.signbit(array), bits | np.iinfo(np.int32).min, bits)
    return xp.where(small, bits, short.view(np.int32)).view(np.float32)


_EXPONENT, _MANTISSA = 0x7F800000, 0x007FFFFF
"""Bits of a float32."""

_SMALLEST, _NORMAL = 2.0**-149, 2.0**-126
"""The smallest subnormal float32, and the smallest that is none."""


def holds_symbols(arrays: tuple[Any, ...]) -> bool:
    """Whether an entry is SymPy's, of which it may be unknown what it is."""
    return any(v.dtype.kind == "O" and any(type(e).__module__.startswith("sympy.") for e in v.flat) for v in arrays)


def host(array: Any) -> np.ndarray[Any, Any]:
    """The array in the memory of the host: a copy of what lies on a GPU."""
    return np.asarray(array.get() if on_gpu(array) else array)


def entries(array: Any, *indices: Any) -> np.ndarray[Any, Any]:
    """The entries at the places that index arrays of the host tell, in the memory of the host; nothing else is copied."""
    if not on_gpu(array):
        return np.asarray(array[indices])
    with array.device:
        return host(array[tuple(map(to_gpu, indices))])


def to_gpu(array: Any) -> Any:
    """The array on the current GPU: a copy of what lies in the memory of the host."""
    import cupy

    return cupy.asarray(array)
