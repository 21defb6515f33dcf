"""Nested lists of numbers or arrays as one array, without the losses of NumPy: masks, and integers that mean ∞.

Examples
--------
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

_LEAST_ROUNDED = 2.0**53
"""The float64 of the first integer that is rounded."""


def array_of(rows: Any, what: str) -> tuple[Array, Array | None]:
    """Copy nested lists of numbers or arrays to one array.

    Parameters
    ----------
    rows : list or tuple
    what : str
        The name in messages.

    Returns
    -------
    array : ndarray
    mask : bool ndarray or None
        The masks of masked arrays among the rows; None where nothing is masked.

    Raises
    ------
    ShapeError
        For elements of different shapes.
    DTypeError
        For the largest or smallest value of an integer dtype, which stands for ∞, among arrays of another dtype.
    """
    _shape(rows, what)
    try:
        array = np.array(rows)
    except ValueError as error:
        raise ShapeError(f"{what} is no array: {error}") from None
    masked = False
    for part in _arrays(rows):
        masked = masked or ("numpy.ma" in sys.modules and np.ma.is_masked(part))
        if part.dtype.kind in "iu" and part.dtype != array.dtype and part.size:
            limits = np.iinfo(part.dtype)
            if part.max() == limits.max or (limits.min < 0 and part.min() == limits.min):
                raise DTypeError(
                    f"{what} has arrays of several dtypes, {part.dtype} and others, and an extreme value of {part.dtype}, which stands "
                    "for ∞ in that dtype alone; convert all to one dtype, with ∞ as inf or as the extreme of that dtype"
                )
    return array, _mask(rows) if masked else None


def rounded_integer(array: Array, entries: Any) -> tuple[tuple[int, ...], int] | None:
    """Find the first integer that an array of floats has rounded.

    Examples
    --------
    >>> rows = [[0, 0.5], [2**53 + 1, 2**60]]
    >>> rounded_integer(np.array(rows), rows)
    ((1, 0), 9007199254740993)

    Parameters
    ----------
    array : ndarray
    entries : nested list, array or table
        What the array was made of.
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
        return (len(value),)  # numbers are not looked at one by one
    shapes = [_shape(element, what) for element in value]
    if other := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0):
        raise ShapeError(f"{what} is ragged: element 0 {_described(shapes[0])}, and element {other} {_described(shapes[other])}")
    return (len(value), *shapes[0])


def _holds_rows(value: Sequence[Any]) -> bool:
    """Tell by the first element if a list has lists or arrays, and no numbers."""
    return len(value) > 0 and (isinstance(value[0], list | tuple) or getattr(value[0], "ndim", 0) > 0)


def _described(shape: tuple[int, ...]) -> str:
    if not shape:
        return "is no list"
    return f"has {counted(shape[0], 'entry', 'entries')}" if len(shape) == 1 else f"has the shape {shape}"


def _arrays(value: Any) -> Iterator[Array]:
    """The arrays in nested lists."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple) and _holds_rows(value):
        for element in value:
            yield from _arrays(element)


def _mask(value: Any) -> Array:
    """The masks of nested lists, with False for each number that is not masked."""
    if isinstance(value, list | tuple) and _holds_rows(value):
        return np.array([_mask(element) for element in value])
    return np.asarray(np.ma.getmaskarray(np.ma.asanyarray(value)), dtype=bool)
