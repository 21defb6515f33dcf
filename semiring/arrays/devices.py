"""Devices and the arrays on them: which GPUs there are, where an array lies, and one text for NumPy and CuPy.

CuPy is not imported for arrays of the host.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from semiring.common.errors import TooLargeError, install_of
from semiring.common.forks import importing, in_children

__all__ = [
    "device_of", "differ", "entries", "equal", "gpu_name", "gpu_number", "gpus", "holds_symbols", "host", "is_gpu", "namespace",
    "on_device", "on_gpu", "to_float32", "to_float64", "to_gpu", "why_no_gpu",
]  # fmt: skip


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


@functools.lru_cache(maxsize=256)
def is_gpu(device: str) -> bool:
    """Whether it names a GPU: "cuda:0" and so on, or "cuda" for any, or for one that is not there."""
    return re.fullmatch("cuda(:[0-9]+)?", device) is not None


def gpu_number(device: str) -> int:
    """The number in the name of a GPU; 0 for "cuda"."""
    return int(device[5:] or 0)


def gpu_name(number: int) -> str:
    """The name of the GPU with this number."""
    return f"cuda:{number}"


def device_of(array: Any) -> str:
    """Where an array lies: "cpu", or "cuda:0" and so on."""
    return gpu_name(array.device.id) if on_gpu(array) else "cpu"


def on_device(device: str) -> AbstractContextManager[None]:
    """Makes a GPU the current one, for what runs on it; nothing is to be done for another device.

    Raises
    ------
    TooLargeError
        Where its memory is used up meanwhile.
    """
    return _Current(gpu_number(device)) if is_gpu(device) else _NOTHING


_NOTHING = nullcontext()


class _Current:
    """Makes a GPU the current one where it is not; written out, which takes a quarter of the time of a generator."""

    __slots__ = ("_number", "_switched")

    def __init__(self, number: int) -> None:
        self._number = number
        self._switched: Any = None

    def __enter__(self) -> None:
        import cupy

        if cupy.cuda.runtime.getDevice() != self._number:
            self._switched = cupy.cuda.Device(self._number)
            self._switched.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._switched is not None:
            self._switched.__exit__(kind, error, trace)
        if error is not None:
            self._refuse(error)

    def _refuse(self, error: BaseException) -> None:
        import cupy

        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            raise TooLargeError(
                f"{gpu_name(self._number)} has not the memory for this: {error}; free some there, pass overwrite=True or a narrower dtype, "
                f"or compute on the host (device='cpu', and arrays that lie there)"
            ) from error


def gpus() -> int:
    """How many GPUs CuPy finds; 0 where there is no CuPy, or none that works."""
    return _found()[0]


def why_no_gpu() -> str:
    """Why CuPy finds none, or what to install."""
    return _found()[1] or install_of("cuda13")


_begun_by: set[int] = set()
"""The processes that have asked CUDA: this one, and those it was forked from."""


@functools.cache
def _found() -> tuple[int, str]:
    """How many GPUs there are, and why there is none if the reason is known."""
    if importlib.util.find_spec("cupy") is None:
        return 0, ""
    try:
        with importing:  # no fork comes between, after which the child would not know that CUDA had been asked
            if _begun_by - {os.getpid()}:
                return 0, "this process was forked from one that had used CUDA; multiprocessing's 'spawn' starts one that can"
            import cupy

            _begun_by.add(os.getpid())
            return int(cupy.cuda.runtime.getDeviceCount()), ""
    except Exception as error:  # an installation that does not fit the driver fails in many ways, and nobody asked for a GPU yet
        return 0, str(error).strip().partition("\n")[0]


in_children(_found.cache_clear)
