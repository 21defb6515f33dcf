"""Work on a GPU in the caller's CUDA stream: operands where they lie, results beside them.

PyTorch has a current stream of its own, in which work on its tensors is ordered. Where CuPy works in the same one, neither library has to
wait for the other, and an address is enough to read a tensor.
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
    """Where an array lies on a GPU, which takes a tenth of the time of a view of CuPy's.

    Attributes
    ----------
    address : int
    shape : tuple of int
    strides : tuple of int
        In bytes.
    dtype : numpy.dtype
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


@contextmanager
def aside(event: Any) -> Iterator[None]:
    """What is launched here waits for an event alone, and runs beside what the current stream has been given since."""
    import cupy

    stream = _second_stream(cupy.cuda.runtime.getDevice())
    stream.wait_event(event)
    with stream:
        yield


@functools.cache
def _second_stream(number: int) -> Any:
    """A stream of a GPU beside the caller's."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def strided(value: Any) -> Strided | None:
    """Where an array of CuPy's lies on the current GPU, or a tensor that nothing keeps from being read; None for any other one.

    PyTorch and CuPy have to work in one stream there.
    """
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
    """A contiguous array of the library of one of which `strided` tells where it lies, on the same GPU, and its address."""
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
    """NumPy's dtypes by those of PyTorch."""
    names = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
    return {d: np.dtype(name) for name in names if (d := getattr(sys.modules["torch"], name, None)) is not None}


@functools.cache
def torch_dtypes() -> dict[np.dtype[Any], Any]:
    """PyTorch's dtypes by those of NumPy."""
    return {ours: theirs for theirs, ours in _numpy_dtypes().items()}


def _stream_of_torch(values: Iterable[Any]) -> tuple[int, int] | None:
    """The stream in which PyTorch works on the GPU of the first of its tensors, and the number of that; None where none lies on one."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for value in values:
            if type(value) is torch.Tensor and value.is_cuda:
                number = value.device.index
                return torch._C._cuda_getCurrentRawStream(number), number
    return None


_NOTHING = nullcontext()


def in_stream_of(arrays: Iterable[Any]) -> AbstractContextManager[None]:
    """Makes the stream of PyTorch the current one, where some arrays are its tensors and lie on a GPU; nothing is to be done elsewhere.

    CuPy's arrays among them are waited for, and whoever uses them next waits.
    """
    found = _stream_of_torch(arrays)
    if found is None:
        return _NOTHING
    import cupy

    stream, number = found
    if stream == cupy.cuda.get_current_stream(number).ptr:
        return _NOTHING
    return _joined(stream, number, both=any(map(on_gpu, arrays)))


class _Foreign:
    """A stream by its address, as CuPy asks for those of others."""

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
    """While a CUDA graph is captured in the current stream, lets it own the memory that is allocated and freed meanwhile."""
    import cupy

    owned: AbstractContextManager[None] = cupy.cuda.using_allocator(cupy.cuda.malloc_async)
    return owned if cupy.cuda.get_current_stream().is_capturing() else _NOTHING
