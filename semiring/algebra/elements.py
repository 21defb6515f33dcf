"""Elements in a dtype: the numbers for ±∞ and the identities, and the supported dtypes.

An integer dtype has no infinity: its largest value stands for +∞ and its smallest for −∞. Both identities need a value in the dtype, unlike
−∞ in an unsigned one or 0.5 in an integer; otherwise the semiring has no meaning there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from semiring.common.errors import DTypeError, brief

__all__ = ["COMPUTED_IN", "DTYPES", "LARGEST", "Array", "Values", "element", "infinity", "widest"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
"""Elements, an array for each component."""

LARGEST = sys.float_info.max
"""The largest finite float; an interval that ends here excludes that infinity."""

COMPUTED_IN: dict[np.dtype[Any], np.dtype[Any]] = {np.dtype(np.float16): np.dtype(np.float32), np.dtype(np.int8): np.dtype(np.int16)}
"""Wider dtypes for two dtypes without kernels."""

DTYPES = tuple(np.dtype(name) for name in ("bool", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"))
"""The dtypes of matrices on the engines; the reference engine also computes with object arrays."""


def infinity(dtype: np.dtype[Any], sign: int = 1) -> Any:
    """Return the Python number that stands for +∞ (or −∞) in `dtype`, or raise `DTypeError` if none does.

    >>> infinity(np.dtype("int16")), infinity(np.dtype("float32"), -1)
    (32767, -inf)
    """
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if sign < 0 and dtype.kind == "u":
            raise DTypeError(f"−∞ has no value in {dtype}; use a signed integer or a float dtype")
        return int(info.max if sign > 0 else info.min)
    if dtype.kind in "fO":
        return math.inf * sign
    raise DTypeError(f"∞ has no value in {dtype}; use an integer or a float dtype")


def element(value: Any, dtype: np.dtype[Any], *, ordered: bool = False) -> Any:
    """Return `value` as a Python number that `dtype` holds, or raise `DTypeError`; only floats are rounded.

    With `ordered`, the semiring only compares elements, so that 0 may stand for −∞ in an unsigned dtype.

    >>> element(math.inf, np.dtype("int32"))
    2147483647
    >>> element(~0, np.dtype("uint8"))  # all bits set
    255
    """
    if dtype.kind == "O":
        return value
    if dtype.kind == "b":
        if not isinstance(value, bool | np.bool_):
            raise DTypeError(f"{value!r} is a number, not a truth value; use an integer or float dtype")
        return bool(value)
    try:
        if isinstance(value, np.complexfloating):  # NumPy would drop the imaginary part
            raise TypeError
        number = float(value)
    except OverflowError:  # an integer or Fraction beyond every float
        number = math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise DTypeError(f"{value!r} is not a number; use dtype object") from None
    if math.isinf(number) and value == number:  # not a finite Decimal beyond every float
        return 0 if ordered and number < 0 and dtype.kind == "u" else infinity(dtype, 1 if number > 0 else -1)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            rounded = float(dtype.type(number))
        if math.isinf(rounded):
            raise DTypeError(f"{brief(value)} does not fit {dtype}")
        return rounded
    if math.isnan(number) or value != int(value):
        raise DTypeError(f"{value!r} is not an integer; use float32 or float64 instead of {dtype}")
    value, info = int(value), np.iinfo(dtype)
    if value == ~0 and dtype.kind == "u":
        return int(info.max)
    if not info.min <= value <= info.max:
        raise DTypeError(f"{brief(value)} does not fit {dtype} ({info.min} … {info.max})")
    return value


def widest(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype of an operation on several: a float, else the longest, else a signed one, on all engines.

    >>> widest([np.dtype("int64"), np.dtype("float32")])
    dtype('float32')
    """
    return max(dtypes, key=lambda d: (d.kind == "f", d.itemsize, d.kind == "i"))
