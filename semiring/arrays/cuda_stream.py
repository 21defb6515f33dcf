"""GPU work in the caller's CUDA stream: operands in place, results on the same GPU.

PyTorch has a current stream, in which its work is ordered. If CuPy uses the same stream, neither library waits for the other, and an
address suffices to read a tensor.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.devices import on_gpu

__all__ = ["Strided", "aside", "empty_beside", "in_stream_of", "scratch_memory", "strided", "torch_dtypes"]


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
    dtype, number = _numpy_dtypes().get(value.dtype), value.get_device()
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
def _numpy_dtypes() -> dict[Any, np.dtype[Any]]:
    names = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
    return {d: np.dtype(name) for name in names if (d := getattr(sys.modules["torch"], name, None)) is not None}


@functools.cache
def torch_dtypes() -> dict[np.dtype[Any], Any]:
    """Map NumPy's dtypes to PyTorch's."""
    return {ours: theirs for theirs, ours in _numpy_dtypes().items()}


_NOTHING = nullcontext()


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
