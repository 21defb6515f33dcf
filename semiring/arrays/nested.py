"""Nested lists of numbers or arrays as one array, with masks and ∞ of integer dtypes, which NumPy would lose.

>>> array_of([[0, 1.5], [2, 0]], "the list")[0]
array([[0. , 1.5],
       [2. , 0. ]])
>>> array_of([[0, 1], [2]], "the list")
Traceback (most recent call last):
    ...
semiring.common.errors.ShapeError: the list is ragged: element 0 has 2 entries, and element 1 has 1 entry
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from semiring.common.errors import DTypeError, ShapeError
from semiring.common.units import counted

__all__ = ["array_of", "rounded_integer"]

Array = np.ndarray[Any, Any]

_LEAST_ROUNDED = 2.0**53  # the float64 of the first integer that float64 rounds


def array_of(rows: Any, what: str) -> tuple[Array, Array | None]:
    """Copy nested lists of numbers or arrays to one array, and return its mask too, or None if nothing is masked.

    ShapeError is raised for elements of different shapes. DTypeError refuses the largest or smallest value of an integer dtype, which
    stands for ∞, among arrays of another dtype. `what` is the name in messages.
    """
    _shape(rows, what)
    try:
        array = np.array(rows)
    except ValueError as error:
        raise ShapeError(f"{what} is not an array: {error}") from None
    masked = False
    for part in _arrays(rows):
        masked = masked or ("numpy.ma" in sys.modules and np.ma.is_masked(part))
        if part.dtype.kind in "iu" and part.dtype != array.dtype and part.size:
            limits = np.iinfo(part.dtype)
            if part.max() == limits.max or (limits.min < 0 and part.min() == limits.min):
                raise DTypeError(
                    f"{what} has arrays of several dtypes, and an extreme value of {part.dtype}, which stands for ∞ only in this dtype; "
                    "convert all to one dtype, with ∞ as inf or as the extreme value of this dtype"
                )
    return array, _mask(rows) if masked else None


def rounded_integer(array: Array, entries: Any) -> tuple[tuple[int, ...], int] | None:
    """Find the first integer of `entries` (a nested list, array or table) that the array of floats made of them has rounded.

    >>> rows = [[0, 0.5], [2**53 + 1, 2**60]]
    >>> rounded_integer(np.array(rows), rows)
    ((1, 0), 9007199254740993)
    """
    if array.dtype.kind != "f":
        return None
    with np.errstate(invalid="ignore"):
        large = np.isfinite(array) & (np.abs(array) >= _LEAST_ROUNDED)
    for index in map(tuple, np.argwhere(large).tolist()):
        value = functools.reduce(operator.getitem, index, entries) if isinstance(entries, list | tuple) else entries[index]
        if isinstance(value, int | np.integer) and int(value) != int(array[index]):
            return index, int(value)
    return None


def _shape(value: Any, what: str) -> tuple[int, ...]:
    """Find the shape of nested lists, and refuse elements of different shapes."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, list | tuple):
        return ()
    if not _holds_rows(value):
        return (len(value),)  # without a look at each number
    shapes = [_shape(element, what) for element in value]
    if other := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0):
        raise ShapeError(f"{what} is ragged: element 0 {_described(shapes[0])}, and element {other} {_described(shapes[other])}")
    return (len(value), *shapes[0])


def _holds_rows(value: Sequence[Any]) -> bool:
    """Return True for a list whose first element is a list or an array."""
    return len(value) > 0 and (isinstance(value[0], list | tuple) or getattr(value[0], "ndim", 0) > 0)


def _described(shape: tuple[int, ...]) -> str:
    if not shape:
        return "is no list"
    return f"has {counted(shape[0], 'entry', 'entries')}" if len(shape) == 1 else f"has the shape {shape}"


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple) and _holds_rows(value):
        for element in value:
            yield from _arrays(element)


def _mask(value: Any) -> Array:
    """Build the mask of nested lists, False for numbers."""
    if isinstance(value, list | tuple) and _holds_rows(value):
        return np.array([_mask(element) for element in value])
    return np.asarray(np.ma.getmaskarray(np.ma.asanyarray(value)), dtype=bool)
