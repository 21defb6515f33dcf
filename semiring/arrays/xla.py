"""Handler of XLA's foreign function interface in Python: XLA, the compiler behind JAX, calls it while a compiled function runs on the CPU.

No compiler is needed: `ctypes` makes the function pointer. Structures are declared as in ``xla/ffi/api/c_api.h`` of
``jax.ffi.include_dir()``. XLA calls from any thread, without Python's global lock, which `ctypes` takes for each call. Arguments and
results are arrays of NumPy in XLA's memory.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import re
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from semiring.common.errors import GraphError, SemiringError

__all__ = ["Arrays", "register"]

Arrays = list[np.ndarray[Any, Any]]

_INTERNAL, _INVALID, _CANCELLED, _METADATA = 13, 3, 1, 1
_READ, _WRITE = 0x100, 0x200  # flags of Python's memory views

DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64", 10: "float16",
    11: "float32", 12: "float64", 15: "complex64", 18: "complex128",
}  # fmt: skip
"""Dtypes by their numbers in XLA's interface."""


def _structure(name: str, *fields: tuple[str, Any]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_HEAD = ("size", c_size_t), ("extension", c_void_p)
_Version = _structure("_Version", *_HEAD, ("major", c_int), ("minor", c_int))
_Metadata = _structure("_Metadata", ("size", c_size_t), ("version", _Version), ("traits", c_uint32), ("state", c_int64))
_Extension = _structure("_Extension", ("size", c_size_t), ("kind", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata)))
_Buffer = _structure("_Buffer", *_HEAD, ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("shape", POINTER(c_int64)))
_Buffers = _structure("_Buffers", *_HEAD, ("count", c_int64), ("kinds", c_void_p), ("items", POINTER(POINTER(_Buffer))))
_Scalar = _structure("_Scalar", ("dtype", c_int), ("value", POINTER(c_int64)))
_Attributes = _structure(
    "_Attributes", *_HEAD, ("count", c_int64), ("kinds", c_void_p), ("names", c_void_p), ("items", POINTER(POINTER(_Scalar)))
)
_Failure = _structure("_Failure", *_HEAD, ("message", c_char_p), ("code", c_int))
_Interface = _structure("_Interface", *_HEAD, ("version", _Version), ("internal", c_void_p), ("create_error", c_void_p))
_Frame = _structure(
    "_Frame", *_HEAD, ("interface", POINTER(_Interface)), ("context", c_void_p), ("stage", c_int), ("arguments", _Buffers),
    ("results", _Buffers), ("attributes", _Attributes),
)  # fmt: skip

_create_error = ctypes.CFUNCTYPE(c_void_p, c_void_p)
_view: Any = ctypes.pythonapi.PyMemoryView_FromMemory
_view.argtypes, _view.restype = (c_void_p, ctypes.c_ssize_t, c_int), ctypes.py_object


def register(target: str, function: Callable[[int, Arrays, Arrays], None]) -> None:
    """Register a function as a target of the CPU: ``function(number, arguments, results)`` writes the results.

    `number` is the only attribute of the call. The text of an error becomes the text of JAX's error.
    """
    ffi = importlib.import_module("jax.ffi")
    version = _version(Path(ffi.include_dir()) / "xla/ffi/api/c_api.h")
    handler = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))(functools.partial(_handle, function, version))
    ffi.register_ffi_target(target, ffi.pycapsule(ctypes.cast(handler, c_void_p)), platform="cpu")
    _kept.append(handler)


_kept: list[Any] = []
"""Registered handlers: XLA calls them as long as the process lives."""


def _version(header: Path) -> tuple[int, int]:
    """Read the version of the interface from the header of the installed JAX."""
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header.read_text(encoding="utf-8")))
    version = int(found.get("MAJOR", -1)), int(found.get("MINOR", -1))
    if version[0] != 0:
        raise GraphError("the installed JAX has a foreign function interface of an unknown version; call this library outside of jax.jit")
    return version


def _handle(function: Callable[[int, Arrays, Arrays], None], version: tuple[int, int], pointer: Any) -> int | None:
    """Answer a call of XLA, or its question for the version; return the address of an error, or None."""
    call = pointer.contents
    if call.extension:
        extension = ctypes.cast(call.extension, POINTER(_Extension)).contents
        if extension.kind == _METADATA:
            metadata = extension.metadata.contents
            metadata.version = _Version(ctypes.sizeof(_Version), None, *version)
            metadata.traits = metadata.state = 0
            return None
    try:
        number = call.attributes.items[0].contents.value[0]
        function(number, _arrays(call.arguments, _READ), _arrays(call.results, _WRITE))
    except BaseException as error:  # no exception crosses the border to XLA
        text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
        code = _INVALID if isinstance(error, SemiringError) else _INTERNAL if isinstance(error, Exception) else _CANCELLED
        failure = _Failure(ctypes.sizeof(_Failure), None, text.encode(), code)
        made: int = _create_error(call.interface.contents.create_error)(ctypes.addressof(failure))
        return made
    return None


def _arrays(buffers: Any, flag: int) -> Arrays:
    return [_array(buffers.items[i].contents, flag) for i in range(buffers.count)]


def _array(buffer: Any, flag: int) -> np.ndarray[Any, Any]:
    """Return the memory of a buffer as an array, read-only or not."""
    shape, dtype = tuple(buffer.shape[: buffer.rank]), np.dtype(DTYPES[buffer.dtype])
    size = math.prod(shape) * dtype.itemsize
    return np.frombuffer(_view(buffer.data, size, flag), dtype).reshape(shape) if size else np.empty(shape, dtype)
