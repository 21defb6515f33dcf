"""Value statistics of arrays on a GPU: one launch for all of one dtype, and one wait for all.

The kernel writes what it finds to memory of the host, which waits for the number of the launch to appear there. That takes half as long as
a copy, and does not wait for what is queued behind it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from semiring.algebra import forks
from semiring.algebra.errors import SemiringError
from semiring.kernels.cuda.device import device
from semiring.kernels.cuda.loading import Kernel, rehearsing
from semiring.kernels.cuda.operands import stacked
from semiring.kernels.statistics import Found

__all__ = ["begin", "statistics_source"]

_THREADS = 256
_BLOCKS, _NUMBERS = 8, 8
"""Blocks of a multiprocessor at most, and numbers of a thread at least."""

_COUNT = 8
"""Arrays of a launch at most."""

_WORDS, _FIELDS = 5, 7
"""Words of `Found`, of `Told` and of `Numbers` in statistics.cuh."""

_FINISHED = _COUNT * _WORDS
"""The word behind those of all arrays."""

_TOLD = {"f": Struct("=ddQQQ"), "i": Struct("=qqQQQ"), "u": Struct("=QQQQQ")}
"""`Told` in statistics.cuh, by kinds of dtypes."""

_SPINS = 2000
"""Looks at the memory of the host, some 30 ns each, before the thread sleeps until the stream has come to its end."""


class _Look:
    """The arguments of a launch, and the memory that it tells the host in; of one launch at a time.

    Attributes
    ----------
    fields : array
        A word for their address, and `Given` in statistics.cuh.
    told : memoryview
        What the kernel tells, in words.
    number : int
        That of its last launch.
    """

    __slots__ = ("_gathered", "fields", "number", "told")

    def __init__(self) -> None:
        import cupy

        self._gathered = cupy.empty(_COUNT * _WORDS + 1, np.uint64)
        self._gathered.data.memset_async(0, self._gathered.nbytes)
        memory = cupy.cuda.alloc_pinned_memory(8 * (_FINISHED + 1))
        self.told = np.frombuffer(memory, np.uint64, _FINISHED + 1).data
        self.told[_FINISHED] = self.number = 0
        self.fields = np.zeros(1 + _COUNT * _FIELDS + 5, np.int64)
        own, told = self._gathered.data.ptr, memory.ptr
        self.fields[-5:] = own, own + 8 * _COUNT * _WORDS, told, told + 8 * _FINISHED, 0


_idle: dict[int, list[_Look]] = {}
"""By GPU."""


forks.in_children(_idle.clear)


def begin(arrays: Sequence[Any]) -> Callable[[], list[Found]]:
    """Begins to look at arrays of integers or floats, with any strides; what it returns waits for the GPU and tells what is found.

    Only of matrices of which a batch cannot be numbered by one stride it makes a copy.

    Raises
    ------
    SemiringError
        Where the current stream is being recorded, so that nothing can be waited for.
    """
    import cupy

    if max([v.size for v in arrays]) == 0:
        return lambda: [(0, 0, 0, 0, 0)] * len(arrays)
    number, stream = cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream()
    if stream.is_capturing() and not rehearsing():
        raise SemiringError("numbers cannot be looked at while a CUDA graph is recorded; pass check=False, which leaves that out")
    dtype = arrays[0].dtype
    if len(arrays) <= _COUNT and {v.dtype for v in arrays} == {dtype}:
        return _launch(arrays, dtype, number, stream)
    places: dict[np.dtype[Any], list[int]] = {}
    for i, v in enumerate(arrays):
        places.setdefault(v.dtype, []).append(i)
    parts = [(of, some[start : start + _COUNT]) for of, some in places.items() for start in range(0, len(some), _COUNT)]
    waits = [_launch([arrays[i] for i in some], of, number, stream) for of, some in parts]

    def wait() -> list[Found]:
        found = {i: told for (_, some), tell in zip(parts, waits, strict=True) for i, told in zip(some, tell(), strict=True)}
        return [found[i] for i in range(len(arrays))]

    return wait


def _launch(arrays: Sequence[Any], dtype: np.dtype[Any], number: int, stream: Any) -> Callable[[], list[Found]]:
    """As `begin`, for as many arrays of one dtype as one launch takes."""
    given = [_contiguous_or_stacked(v) for v in arrays]
    idle = _idle.setdefault(number, [])
    try:
        look = idle.pop()
    except IndexError:
        look = _Look()
    fields: list[int] = []
    for v in given:
        fields += _numbers(v)
    look.number += 1
    look.fields[1 : 1 + len(fields)] = fields
    look.fields[-1] = look.number
    blocks = min(-(-max([v.size for v in given]) // (_THREADS * _NUMBERS)), _BLOCKS * device(number).multiprocessors)
    _kernel(dtype, number).start((max(1, blocks), len(given), 1), (_THREADS, 1, 1), look.fields)

    def wait() -> list[Found]:
        for _ in range(_SPINS):
            if look.told[_FINISHED] == look.number:
                break
        else:
            stream.synchronize()
        tell = _TOLD[dtype.kind].unpack_from
        found: list[Found] = [tell(look.told, 8 * _WORDS * i) for i in range(len(given))]
        idle.append(look)
        return found

    return wait


def _contiguous_or_stacked(values: Any) -> Any:
    """The array itself, or of one that is not contiguous the matrices of a batch."""
    if values.flags.c_contiguous or values.flags.f_contiguous:
        return values
    return stacked(values if values.ndim > 1 else values[None])


def _numbers(values: Any) -> tuple[int, ...]:
    """`Numbers` in statistics.cuh."""
    if values.flags.c_contiguous or values.flags.f_contiguous:
        return values.data.ptr, values.size, 0, 0, 0, 0, 0
    return values.data.ptr, values.size, *values.shape[1:], *(s // values.itemsize for s in values.strides)


def statistics_source(dtype: np.dtype[Any]) -> str:
    """The CUDA C++ of the kernel for one dtype."""
    return (
        '#include "statistics.cuh"\n\n'
        f'extern "C" __global__ void tell(const __grid_constant__ Given<{dtype}, {_COUNT}> given) {{\n  statistics(given);\n}}\n'
    )


@functools.cache
def _kernel(dtype: np.dtype[Any], number: int) -> Kernel:
    """The kernel for one dtype on a GPU."""
    return Kernel("tell", lambda: statistics_source(dtype), number)
