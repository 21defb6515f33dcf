"""Devices and the arrays on them: available GPUs, the device of an array, and functions for NumPy and CuPy alike; CUDA streams.

Arrays of the host need no import of CuPy. PyTorch has a current stream, in which its work is ordered. If CuPy uses the same stream, neither
library waits for the other, and an address suffices to read a tensor (`strided`).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.common.errors import TooLargeError, install_of
from semiring.common.forks import importing, in_children

__all__ = [
    "Strided", "aside", "device_of", "differ", "empty_beside", "entries", "equal", "gpu_name", "gpu_number", "gpus", "holds_symbols",
    "host", "in_stream_of", "is_gpu", "namespace", "numpy_dtypes", "on_device", "on_gpu", "scratch_memory", "strided", "to_float32",
    "to_float64", "to_gpu", "torch_dtypes", "why_no_gpu",
]  # fmt: skip


def on_gpu(array: Any) -> bool:
    """Return True for a CuPy array."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def namespace(array: Any) -> Any:
    """Return `cupy` for an array on a GPU, else `numpy`."""
    return sys.modules["cupy"] if on_gpu(array) else np


def equal(array: Any, value: Any) -> Any:
    """Compare entries with a number other than NaN, exactly for subnormals; CuPy's comparisons of float32 take subnormals for zeros."""
    if not on_gpu(array) or array.dtype != np.float32:
        return array == value
    bits, wanted = array.view(np.int32), np.float32(value)
    return bits == wanted.view(np.int32) if wanted else (bits == 0) | (bits == np.iinfo(np.int32).min)


def differ(x: Any, y: Any) -> Any:
    """Return the mask where two arrays of one dtype differ, exactly for subnormals; CuPy's comparisons of float32 take them for zeros."""
    if not on_gpu(x) or x.dtype != np.float32:
        return np.asarray(x != y, dtype=bool) if x.dtype.kind == "O" else x != y
    bits, others = x.view(np.int32), y.view(np.int32)
    return (bits != others) & (((bits | others) & np.int32(0x7FFFFFFF)) != 0)


def to_float64(array: Any) -> Any:
    """Convert floats to float64, exactly for subnormals; CuPy's conversion of float32 makes zeros of them."""
    wide = array.astype(np.float64)
    if array.dtype != np.float32:
        return wide
    bits = array.view(np.int32)
    xp = namespace(array)
    return xp.where((bits & _EXPONENT) == 0, xp.copysign((bits & _MANTISSA) * _SMALLEST, bits), wide)


def to_float32(array: Any) -> Any:
    """Round float64 to float32, also to subnormals; CuPy's conversion makes zeros of them."""
    xp, size = namespace(array), abs(array)
    short = array.astype(np.float32)
    small = size < _NORMAL
    bits = xp.rint(xp.where(small, size, 0.0) / _SMALLEST).astype(np.int32)  # the bits of a subnormal count multiples of the smallest
    bits = xp.where(xp.signbit(array), bits | np.iinfo(np.int32).min, bits)
    return xp.where(small, bits, short.view(np.int32)).view(np.float32)


_EXPONENT, _MANTISSA = 0x7F800000, 0x007FFFFF  # masks of the bits of a float32

_SMALLEST, _NORMAL = 2.0**-149, 2.0**-126  # the smallest subnormal and the smallest normal float32


def holds_symbols(arrays: tuple[Any, ...]) -> bool:
    """Return True if an entry is SymPy's, with a possibly unknown value."""
    return any(v.dtype.kind == "O" and any(type(e).__module__.startswith("sympy.") for e in v.flat) for v in arrays)


def host(array: Any) -> np.ndarray[Any, Any]:
    """Return the array in host memory; arrays on a GPU are copied."""
    return np.asarray(array.get() if on_gpu(array) else array)


def entries(array: Any, *indices: Any) -> np.ndarray[Any, Any]:
    """Return the entries at given indices (arrays of the host) in host memory, without a copy of the others."""
    if not on_gpu(array):
        return np.asarray(array[indices])
    with array.device:
        return host(array[tuple(map(to_gpu, indices))])


def to_gpu(array: Any) -> Any:
    """Return the array on the current GPU; arrays of the host are copied."""
    import cupy

    return cupy.asarray(array)


@functools.lru_cache(maxsize=256)
def is_gpu(device: str) -> bool:
    """Return True for the name of a GPU, present or not: "cuda:0" and so on, or "cuda" for any."""
    return re.fullmatch("cuda(:[0-9]+)?", device) is not None


def gpu_number(device: str) -> int:
    """Return the number in the name of a GPU; 0 for "cuda"."""
    return int(device[5:] or 0)


def gpu_name(number: int) -> str:
    """Return the name of the GPU with this number."""
    return f"cuda:{number}"


def device_of(array: Any) -> str:
    """Return the device of an array: "cpu", or "cuda:0" and so on."""
    return gpu_name(array.device.id) if on_gpu(array) else "cpu"


def on_device(device: str) -> AbstractContextManager[None]:
    """Make a GPU the current one, and turn its out-of-memory errors into `TooLargeError`; do nothing for another device."""
    return _Current(gpu_number(device)) if is_gpu(device) else _NOTHING


_NOTHING = nullcontext()


class _Current:
    """Makes a GPU the current one; a class takes a quarter of the time of a generator."""

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
        if error is not None and isinstance(error, sys.modules["cupy"].cuda.memory.OutOfMemoryError):
            raise TooLargeError(
                f"{gpu_name(self._number)} is out of memory: {error}; free some memory, pass overwrite=True or a narrower dtype, "
                f"or compute on the host (device='cpu', with arrays of the host)"
            ) from error


def gpus() -> int:
    """Return the number of GPUs that CuPy finds; 0 without CuPy."""
    return _found()[0]


def why_no_gpu() -> str:
    """Return the reason why CuPy finds no GPU, or the installation command."""
    return _found()[1] or install_of("cuda13")


_begun_by: set[int] = set()  # processes that have used CUDA: this process and its ancestors by fork


@functools.cache
def _found() -> tuple[int, str]:
    """Return the number of GPUs, and the known reason for none."""
    if importlib.util.find_spec("cupy") is None:
        return 0, ""
    try:
        with importing:  # no fork may separate the use of CUDA from its record
            if _begun_by - {os.getpid()}:
                return 0, "this process was forked from one that had used CUDA; multiprocessing's 'spawn' starts one that can"
            import cupy

            _begun_by.add(os.getpid())
            return int(cupy.cuda.runtime.getDeviceCount()), ""
    except Exception as error:  # an installation that does not fit the driver fails in many ways
        return 0, str(error).strip().partition("\n")[0]


in_children(_found.cache_clear)


class Strided(NamedTuple):
    """The address, shape, strides (in bytes) and dtype of an array on a GPU, at a tenth of the time of a CuPy view."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


@contextmanager
def aside(event: Any) -> Iterator[None]:
    """Launch work that waits for an event alone, concurrent with later work of the current stream."""
    import cupy

    stream = _second_stream(cupy.cuda.runtime.getDevice())
    stream.wait_event(event)
    with stream:
        yield


@functools.cache
def _second_stream(number: int) -> Any:
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def strided(value: Any) -> Strided | None:
    """Describe a CuPy array on the current GPU, or a readable PyTorch tensor in CuPy's current stream; None for any other value."""
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return None
    if type(value) is cupy.ndarray:
        memory = value.data
        if memory.device_id != cupy.cuda.runtime.getDevice():
            return None
        return Strided(memory.ptr, value.shape, value.strides, value.dtype)
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor or not value.is_cuda or value.requires_grad or value.is_neg():
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(value):  # stands for several tensors
        return None
    dtype, number = numpy_dtypes().get(value.dtype), value.get_device()
    if dtype is None or value.layout is not torch.strided or not (address := value.data_ptr()):
        return None
    if number != cupy.cuda.runtime.getDevice() or torch._C._cuda_getCurrentRawStream(number) != cupy.cuda.get_current_stream().ptr:
        return None
    size = dtype.itemsize
    return Strided(address, value.shape, tuple([step * size for step in value.stride()]), dtype)


def empty_beside(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, int]:
    """Allocate a contiguous array of the library and on the GPU of a `strided` value, and return its address too."""
    kind = type(value)
    if kind is sys.modules["cupy"].ndarray:
        array = kind(shape, dtype)
        return array, array.data.ptr
    theirs = torch_dtypes()[dtype]
    alike = value.shape == shape and value.dtype is theirs and value.is_contiguous()
    tensor = sys.modules["torch"].empty_like(value) if alike else value.new_empty(shape, dtype=theirs)
    return tensor, tensor.data_ptr()


@functools.cache
def numpy_dtypes() -> dict[Any, np.dtype[Any]]:
    """Map PyTorch's dtypes to NumPy's."""
    names = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
    return {d: np.dtype(name) for name in names if (d := getattr(sys.modules["torch"], name, None)) is not None}


@functools.cache
def torch_dtypes() -> dict[np.dtype[Any], Any]:
    """Map NumPy's dtypes to PyTorch's."""
    return {ours: theirs for theirs, ours in numpy_dtypes().items()}


def in_stream_of(arrays: Iterable[Any]) -> AbstractContextManager[None]:
    """Make PyTorch's stream the current one if some arrays are its tensors on a GPU; otherwise do nothing.

    The stream waits for CuPy's arrays among them, and later work with these waits for the stream.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return _NOTHING
    tensor = next((x for x in arrays if type(x) is torch.Tensor and x.is_cuda), None)
    if tensor is None:
        return _NOTHING
    import cupy

    number = tensor.device.index
    stream = torch._C._cuda_getCurrentRawStream(number)
    if stream == cupy.cuda.get_current_stream(number).ptr:
        return _NOTHING
    return _joined(stream, number, both=any(map(on_gpu, arrays)))


class _Foreign:
    """A stream by its address, in CuPy's protocol for external streams."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


@contextmanager
def _joined(address: int, number: int, *, both: bool) -> Iterator[None]:
    import cupy

    outer = cupy.cuda.get_current_stream(number)
    with cupy.cuda.Device(number), cupy.cuda.Stream.from_external(_Foreign(address)) as stream:
        if both:
            stream.wait_event(outer.record())
        yield
        if both:
            outer.wait_event(stream.record())


def scratch_memory() -> AbstractContextManager[None]:
    """Let a CUDA graph that is being captured in the current stream own the memory allocated meanwhile."""
    import cupy

    owned: AbstractContextManager[None] = cupy.cuda.using_allocator(cupy.cuda.malloc_async)
    return owned if cupy.cuda.get_current_stream().is_capturing() else _NOTHING
