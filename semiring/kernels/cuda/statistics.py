"""Value statistics of arrays on a GPU: one launch per dtype, and one wait for all.

The kernel writes results to pinned host memory, and the host polls for the launch's number. That takes half as long as a copy, and does not
wait for work queued behind the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from semiring.arrays.devices import Strided
from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.kernels.cuda.arguments import Given, Numbers
from semiring.kernels.cuda.blocks import stacked
from semiring.kernels.cuda.compiler import Kernel, kernel_for, pointer_to, rehearsing
from semiring.kernels.cuda.elements import of_bytes
from semiring.kernels.hardware import device
from semiring.kernels.limits import RawStatistics

__all__ = ["begin", "flag_signs", "is_compiled", "statistics_source"]

_THREADS = 256
_BLOCKS, _NUMBERS = 8, 8  # the most blocks per multiprocessor, and the fewest numbers per thread
_COUNT = 8  # the most arrays of a launch
_WORDS = 5  # of `Partial` and of `Result` in statistics.cuh

_PARTIALS, _NUMBER, _SIGNS = (Given._fields.index(field) - len(Given._fields) for field in ("partials", "number", "signs"))
"""Positions of fields, from the end."""

_FINISHED = _COUNT * _WORDS  # the word after the results of all arrays
_PARTIAL_WORDS = 2 * (_COUNT * _WORDS + 1)  # 32 bits each, 0 at first, where blocks combine partial results and count themselves

_RESULT = {"f": Struct("=ddQQQ"), "i": Struct("=qqQQQ"), "u": Struct("=QQQQQ")}
"""`Result` in statistics.cuh, by kinds of dtypes."""

_SPINS = 2000  # reads of host memory, some 30 ns each, before the thread sleeps until the stream ends


class _Arguments:
    """The arguments of one launch at a time, and the pinned memory of the results.

    `fields` is a word for the structure's address, and `Given`; `results` has the words that the kernel writes; `number` counts launches.
    """

    __slots__ = ("_partials", "fields", "number", "results")

    def __init__(self) -> None:
        import cupy

        self._partials = of_bytes(_PARTIAL_WORDS, 0)
        memory = cupy.cuda.alloc_pinned_memory(8 * (_FINISHED + 1))
        self.results = np.frombuffer(memory, np.uint64, _FINISHED + 1).data
        self.results[_FINISHED] = self.number = 0
        self.fields = _fields(self._partials, memory.ptr)


_idle: dict[int, list[_Arguments]] = {}
_all: list[_Arguments] = []
"""Arguments by GPU without a pending wait; and all arguments, because kernels may still write to those of an abandoned wait."""


forks.in_children(_idle.clear)
forks.in_children(_all.clear)


def _fields(partials: Any, results: int) -> Any:
    """Return a word for the address, and `Given` without the arrays; `results` is the host's address for results, or 0."""
    fields, own = np.zeros(1 + _COUNT * len(Numbers._fields) - _PARTIALS, np.int64), partials.data.ptr
    fields[_PARTIALS:_NUMBER] = own, own + 8 * _COUNT * _WORDS, results, results and results + 8 * _FINISHED
    return fields


def begin(arrays: Sequence[Any], signs: Any = None) -> Callable[[], list[RawStatistics]]:
    """Launch the statistics of integer or float arrays (or `Strided` memory); return a function that waits for the GPU and returns them.

    Only batches of matrices that one stride cannot number are copied. `signs`, an int32 array of one number, becomes 1 if a number is
    negative (−∞ and NaN aside) or −0.0, for at most eight arrays of one dtype. Raises SemiringError while the current stream is
    captured.
    """
    import cupy

    readable = list(map(_readable, arrays))  # keeps copies alive until they are read
    given = list(map(_described, readable))
    number, stream = cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream()
    if stream.is_capturing() and not rehearsing():
        raise SemiringError("numbers cannot be checked while a CUDA graph is captured; products can skip the check with check=False")
    dtype = given[0].dtype
    if len(given) <= _COUNT and {v.dtype for v in given} == {dtype}:
        return _launch(given, dtype, number, stream, signs)
    assert signs is None, "signs take one launch"
    places: dict[np.dtype[Any], list[int]] = {}
    for i, v in enumerate(given):
        places.setdefault(v.dtype, []).append(i)
    parts = [(of, some[start : start + _COUNT]) for of, some in places.items() for start in range(0, len(some), _COUNT)]
    waits = [_launch([given[i] for i in some], of, number, stream) for of, some in parts]

    def wait() -> list[RawStatistics]:
        found = {i: raw for (_, some), part in zip(parts, waits, strict=True) for i, raw in zip(some, part(), strict=True)}
        return [found[i] for i in range(len(given))]

    return wait


def is_compiled(arrays: Sequence[Any]) -> bool:
    """Return True if `begin` need not wait for NVRTC on the current GPU."""
    import cupy

    number = cupy.cuda.runtime.getDevice()
    return all(_kernel(_described(v).dtype, number).is_compiled() for v in arrays)


def flag_signs(arrays: Sequence[Any], signs: Any) -> None:
    """Set `signs` as `begin` does, without a wait: also while a CUDA graph is captured."""
    import cupy

    readable, partials = list(map(_readable, arrays)), of_bytes(_PARTIAL_WORDS, 0)
    given = list(map(_described, readable))
    _start(given, given[0].dtype, cupy.cuda.runtime.getDevice(), _fields(partials, 0), signs)


def _launch(
    given: Sequence[Strided], dtype: np.dtype[Any], number: int, stream: Any, signs: Any = None
) -> Callable[[], list[RawStatistics]]:
    """Launch the statistics of at most `_COUNT` arrays of one dtype; return the wait."""
    idle = _idle.setdefault(number, [])
    try:
        arguments = idle.pop()
    except IndexError:
        arguments = _Arguments()
        _all.append(arguments)
    arguments.number += 1
    arguments.fields[_NUMBER] = arguments.number
    _start(given, dtype, number, arguments.fields, signs)
    if rehearsing():
        idle.append(arguments)
    found: list[RawStatistics] = []

    def wait() -> list[RawStatistics]:
        if found:
            return found
        for _ in range(_SPINS):
            if arguments.results[_FINISHED] == arguments.number:
                break
        else:
            stream.synchronize()
        unpack = _RESULT[dtype.kind].unpack_from
        found.extend([unpack(arguments.results, 8 * _WORDS * i) for i in range(len(given))])
        idle.append(arguments)
        return found

    return wait


def _start(given: Sequence[Strided], dtype: np.dtype[Any], number: int, fields: Any, signs: Any) -> None:
    own: list[int] = []
    most = 0
    for v in given:
        count, some = _numbers(v)
        most = max(most, count)
        own += some
    fields[1 : 1 + len(own)] = own
    fields[_SIGNS] = 0 if signs is None else signs.data.ptr
    blocks = min(-(-most // (_THREADS * _NUMBERS)), _BLOCKS * device(number).multiprocessors)
    _kernel(dtype, number).start((max(1, blocks), len(given), 1), (_THREADS, 1, 1), pointer_to(fields))


def _kernel(dtype: np.dtype[Any], number: int) -> Kernel:
    return kernel_for("value_statistics", number, statistics_source, dtype)


def _readable(values: Any) -> Any:
    """Return the array, or a batch of matrices if it is not contiguous."""
    if type(values) is Strided or values.flags.c_contiguous or values.flags.f_contiguous:
        return values
    return stacked(values if values.ndim > 1 else values[None])


def _described(values: Any) -> Strided:
    """Return an array's address, shape, strides and dtype, with truth values as integers."""
    dtype = np.dtype(np.uint8) if values.dtype.kind == "b" else values.dtype
    if type(values) is Strided:
        return values if dtype is values.dtype else values._replace(dtype=dtype)
    if values.flags.c_contiguous or values.flags.f_contiguous:
        return Strided(values.data.ptr, (values.size,), (values.itemsize,), dtype)
    return Strided(values.data.ptr, values.shape, values.strides, dtype)


def _numbers(v: Strided) -> tuple[int, Numbers]:
    """Return the count of numbers, and their layout for the kernel."""
    size, count, reach = v.dtype.itemsize, math.prod(v.shape), v.dtype.itemsize
    for step, length in sorted(zip(v.strides, v.shape, strict=True)):
        if length > 1 and step != reach:
            break
        reach *= length
    else:  # contiguous in some order of axes
        return count, Numbers(v.address, count)
    *apart, row, column = (0, 0, *v.strides)[-3:]
    *_, m, n = (1, *v.shape)[-3:]
    return count, Numbers(v.address, count, m, n, apart[0] // size, row // size, column // size)


def statistics_source(dtype: np.dtype[Any]) -> str:
    """Return the CUDA C++ of the kernel for one dtype."""
    return (
        '#include "statistics.cuh"\n\n'
        f'extern "C" __global__ void value_statistics(const __grid_constant__ Given<{dtype}, {_COUNT}> given) {{\n'
        "  statistics(given);\n}\n"
    )
