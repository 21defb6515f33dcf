"""The stream that a product is computed in: that of the caller's library, and what a recording of it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from semiring.algebra.exchange import library_stream
from semiring.algebra.namespace import on_gpu

__all__ = ["in_stream_of", "scratch_memory"]

_NOTHING = nullcontext()


def in_stream_of(arrays: Iterable[Any]) -> AbstractContextManager[None]:
    """Makes the stream of PyTorch the current one, where some arrays are its tensors and lie on a GPU; nothing is to be done elsewhere.

    CuPy's arrays among them are waited for, and whoever uses them next waits.
    """
    found = library_stream(arrays)
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
    """While a CUDA graph is recorded in the current stream, lets it own the memory that is allocated and freed meanwhile."""
    import cupy

    owned: AbstractContextManager[None] = cupy.cuda.using_allocator(cupy.cuda.malloc_async)
    return owned if cupy.cuda.get_current_stream().is_capturing() else _NOTHING
