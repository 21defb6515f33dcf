"""How an array lies in memory: of the host, or of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LAYOUTS", "WRITABLE", "host", "laid_out", "laid_out_on_gpu"]

Array = np.ndarray[Any, Any]

WRITABLE = ("C", "Fortran", "transposed", "stepped", "reversed", "inner block", "unaligned", "field", "loose rows")
"""Layouts that can also receive a result."""

LAYOUTS = (*WRITABLE, "swapped bytes", "swapped and unaligned", "broadcast", "read-only")


def laid_out(array: Array, layout: str) -> Array:
    """An array with the same entries that lies in memory as `layout` says.

    "broadcast" only shares the memory of rows that are equal anyway, and "transposed" is of the last two axes.
    """
    shape, dtype, size = array.shape, array.dtype, array.itemsize
    last = shape[-1] if shape else 1
    if array.ndim == 0 or dtype.kind == "O":
        return array.copy()
    view: Array
    match layout:
        case "Fortran":
            return np.array(array, order="F")
        case "transposed":
            return array.swapaxes(-1, -2).copy().swapaxes(-1, -2) if array.ndim > 1 else array.copy()
        case "stepped":
            view = np.empty((*shape[:-1], 2 * last), dtype)[..., 1::2]
        case "reversed":
            view = np.empty(shape, dtype)[(slice(None, None, -1),) * array.ndim]
        case "inner block":
            view = np.empty(tuple(s + 5 for s in shape), dtype)[tuple(slice(2, 2 + s) for s in shape)]
        case "unaligned" | "swapped and unaligned":
            dtype = dtype.newbyteorder() if layout[0] == "s" else dtype
            view = np.ndarray(shape, dtype, np.empty(array.size * size + 1, np.uint8)[1:])
        case "field":
            view = np.empty(shape, np.dtype({"names": ["x"], "formats": [dtype], "offsets": [1], "itemsize": size + 3}))["x"]
        case "loose rows":  # a row ends in the middle of an element
            if array.ndim != 2:
                return array.copy()
            view = np.ndarray(shape, dtype, np.empty(shape[0] * (last * size + 1), np.uint8), strides=(last * size + 1, size))
        case "swapped bytes":
            return array.astype(dtype.newbyteorder())
        case "broadcast":
            equal = array.ndim > 1 and array.size > 0 and bool((array == array[..., :1, :]).all())
            return np.broadcast_to(array[..., :1, :].copy(), shape) if equal else np.array(array, order="F")
        case "read-only":
            view = array.copy()
            view.flags.writeable = False
            return view
        case _:
            return array.copy()
    view[...] = array
    return view


def laid_out_on_gpu(array: Array, layout: str) -> Any:
    """The same in the memory of a GPU, as a CuPy array, for those layouts that there are."""
    import cupy

    there = cupy.asarray(np.array(array, order="C"))
    if array.ndim == 0:
        return there
    match layout:
        case "Fortran":
            return cupy.asfortranarray(there)
        case "transposed" if array.ndim > 1:
            return there.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        case "stepped":
            view = cupy.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., 1::2]
        case "reversed":
            view = cupy.empty(array.shape, array.dtype)[(slice(None, None, -1),) * array.ndim]
        case "inner block" | "loose rows":
            view = cupy.empty(tuple(s + 5 for s in array.shape), array.dtype)[tuple(slice(2, 2 + s) for s in array.shape)]
        case "broadcast" if array.ndim > 1 and array.size and bool((array == array[..., :1, :]).all()):
            return cupy.broadcast_to(there[..., :1, :], array.shape)
        case _:
            return there
    view[...] = there
    return view


def host(array: Any) -> Array:
    """An array of the host or of a GPU, on the host."""
    return np.asarray(array.get() if type(array).__module__.partition(".")[0] == "cupy" else array)
