"""Elementwise kernels on a GPU: conversion of ∞ in one pass over device memory, construction matrices, and what kernels tell the host.

They are compiled and kept as all others are, and exact for subnormals. CuPy's own take half a second at the first use of each, and take
subnormals for zeros. Kernels tell of divergent pivots by the least vertex of each matrix that has one, and of all else by flags.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.kernels.cuda.arguments import Strided, parameters
from semiring.kernels.cuda.blocks import stacked
from semiring.kernels.cuda.compiler import Kernel, rehearsing

__all__ = [
    "NO_DIVERGENCE", "Flags", "clamp_infinity", "clear_paths", "earliest_divergence", "elements_source", "for_each", "mend",
    "no_divergence", "read_back", "restore_infinity", "without_paths", "zeros",
]  # fmt: skip

_THREADS = 256
_ACROSS, _DOWN = 1 << 16, 65535
"""Blocks along a row at most, and down a column or along a batch; beyond that, a thread has several elements."""


def for_each(body: str, arrays: dict[str, Any], **numbers: int) -> None:
    """Run a statement for each element of arrays of one shape.

    Parameters
    ----------
    body : str
        A statement in C++, in which the arrays' names stand for their elements and the numbers' for integers of 64 bits.
    arrays : dict of arrays of shape (…, m, n)
        By name, with any strides that need one number for all leading axes.
    """
    import cupy

    views = list(arrays.values())
    if views[0].size == 0:
        return
    if all(v.flags.c_contiguous for v in views):
        count, m, n, strides = 1, 1, views[0].size, [(0, 0, 1)] * len(views)
    else:
        views = [stacked(v) for v in views]
        count, m, n = views[0].shape
        strides = [tuple(s // v.itemsize for s in v.strides) for v in views]
        if abs(strides[0][1]) < abs(strides[0][2]):  # what is contiguous in columns is read down those
            m, n, strides = n, m, [(batch, column, row) for batch, row, column in strides]
    kernel = _kernel(body, tuple((name, v.dtype) for name, v in arrays.items()), tuple(numbers), cupy.cuda.runtime.getDevice())
    layouts = [x for v, (batch, row, column) in zip(views, strides, strict=True) for x in (v.data.ptr, row, column, batch)]
    grid = min(-(-n // _THREADS), _ACROSS), min(m, _DOWN), min(count, _DOWN)
    kernel(grid, (_THREADS, 1, 1), (*layouts, count, m, n, *map(_signed, numbers.values())))


def _signed(number: int) -> int:
    """The integer of 64 bits with a sign that has the same bits."""
    return (number + 2**63) % 2**64 - 2**63


def elements_source(body: str, arrays: tuple[tuple[str, np.dtype[Any]], ...], numbers: tuple[str, ...]) -> str:
    """The CUDA C++ of a kernel for arrays of some names and dtypes."""
    taken = {name: parameters(Strided, name, template=dtype.name) for name, dtype in arrays}
    matrices = (f"  const auto {name}_all = {matrix};\n" for name, (_, matrix) in taken.items())
    elements = (f"    {dtype}& {name} = {name}_all.at(b, i, j);\n" for name, dtype in arrays)
    return (
        '#include "elements.cuh"\n\n'
        f'extern "C" __global__ void __launch_bounds__({_THREADS}) elements('
        f"{', '.join([*(own for own, _ in taken.values()), 'int64 count, int64 m, int64 n', *(f'int64 {name}' for name in numbers)])}) {{\n"
        f"{''.join(matrices)}  each_element(count, m, n, [&](int64 b, int64 i, int64 j) {{\n{''.join(elements)}    {body};\n  }});\n}}\n"
    )


@functools.cache
def _kernel(body: str, arrays: tuple[tuple[str, np.dtype[Any]], ...], numbers: tuple[str, ...], number: int) -> Kernel:
    return Kernel("elements", lambda: elements_source(body, arrays, numbers), number)


def clamp_infinity(values: Any, inner: int, *, owned: bool, signs: Any = None) -> Any:
    """Tropical integers clamped to the inner ∞: in their place if they are owned.

    Parameters
    ----------
    values : array
    inner : int
        See `inner_infinity`.
    owned : bool
    signs : int32 array of one number, optional
        Becomes 1 if a finite element could pull a sum with ∞ back from it.
    """
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    beyond, against = ("x > inner", "x < 0") if inner > 0 else ("x < inner", "x > 0")
    flag = {} if signs is None else {"signs": signs.data.ptr}
    test = f"if ({against}) *reinterpret_cast<int32*>(signs) = 1; " if flag else ""
    for_each(f"{test}y = {beyond} ? inner : x", {"x": values, "y": out}, inner=int(inner), **flag)
    return out


def restore_infinity(values: Any, via: Any, least: int, signed: int, infinity: int, signs: Any = None) -> None:
    """The inverse of `clamp_infinity`, in place: everything at or beyond a threshold is ∞ again, and no path.

    Parameters
    ----------
    values : array
    via : int32 array or None
    least, signed : int
        The threshold, and the one that counts where `signs`, as `clamp_infinity` has set them, are 1.
    infinity : int
    signs : int32 array of one number, optional
    """
    limits = {"threshold": int(least), "infinity": int(infinity)}
    threshold = "threshold"
    if signs is not None:
        limits |= {"signed_threshold": int(signed), "signs": signs.data.ptr}
        threshold = "(*reinterpret_cast<const int32*>(signs) ? signed_threshold : threshold)"
    beyond = f"x >= {threshold}" if infinity > 0 else f"x <= {threshold}"
    if via is None:
        for_each(f"if ({beyond}) x = infinity", {"x": values}, **limits)
    else:
        for_each(f"if ({beyond}) x = infinity, via = -1", {"x": values, "via": via}, **limits)


def without_paths(shape: tuple[int, ...]) -> Any:
    """A construction matrix of −1 everywhere, which needs no kernel."""
    import cupy

    via = cupy.empty(shape, np.int32)
    if via.size:
        clear_paths(via.data.ptr, via.size)
    return via


def clear_paths(address: int, count: int) -> None:
    """−1 in so many int32 numbers, which needs no kernel."""
    import cupy

    if not rehearsing():
        cupy.cuda.runtime.memsetAsync(address, 0xFF, 4 * count, cupy.cuda.get_current_stream().ptr)


def zeros(count: int) -> Any:
    """So many int32 numbers 0."""
    import cupy

    found = cupy.ndarray(count, np.int32)
    found.data.memset_async(0, found.nbytes)
    return found


def mend(values: Any) -> None:
    """0.0 in the place of −0.0, which sorts below −∞ among the integers of their bits."""
    for_each("if (x == int32(0x80000000)) x = 0", {"x": values.view(np.int32)})


NO_DIVERGENCE = 0x7F7F7F7F
"""What is there where no pivot diverges: beyond all vertices, and of equal bytes, so that memory is set to it without a kernel."""


def no_divergence(count: int) -> Any:
    """No divergent pivots in `count` matrices, as an int32 array on the GPU."""
    import cupy

    found = cupy.empty(count, dtype=np.int32)
    if count:
        found.data.memset_async(NO_DIVERGENCE & 0xFF, found.nbytes)
    return found


def earliest_divergence(whole: Any, part: Any, row: int) -> None:
    """whole ← the lesser of `whole` and of `part`, which counts from vertex `row`."""
    for_each(f"if (part != {NO_DIVERGENCE} && part + row < whole) whole = part + row", {"whole": whole[None], "part": part[None]}, row=row)


class Flags:
    """Two flags in pinned memory of the host, which kernels set to 1: nothing is cleared on the GPU for them, and nothing is copied.

    Attributes
    ----------
    addresses : list of int
        Where kernels find them.
    """

    __slots__ = ("_numbers", "addresses")

    def __init__(self) -> None:
        import cupy

        memory = cupy.cuda.alloc_pinned_memory(8)
        self._numbers = np.frombuffer(memory, np.int32, 2)
        self._numbers[:] = 0
        self.addresses = [memory.ptr, memory.ptr + 4]

    @staticmethod
    def taken() -> Flags:
        """Flags that are not set, which are the caller's until they are read."""
        try:
            return _idle.pop()
        except IndexError:
            _all.append(flags := Flags())
            return flags

    def read(self) -> list[bool]:
        """Which are set, once the current stream has come to its end.

        Raises
        ------
        SemiringError
            Where the stream is being recorded.
        """
        _waited_for().synchronize()
        found: list[bool] = self._numbers.astype(bool).tolist()
        if any(found):
            self._numbers[:] = 0
        _idle.append(self)
        return found


_idle: list[Flags] = []
_all: list[Flags] = []
"""Flags that no kernel has; and all, as a kernel may still write to those that nobody waits for any more."""


forks.in_children(_idle.clear)
forks.in_children(_all.clear)


def read_back(found: Any) -> np.ndarray[Any, Any]:
    """What is told, on the host, once the current stream has come to its end: by way of pinned memory, in half of the time.

    Raises
    ------
    SemiringError
        Where the stream is being recorded.
    """
    import cupy

    stream = _waited_for()
    memory = cupy.cuda.alloc_pinned_memory(found.nbytes)
    found.data.copy_to_host_async(memory.ptr, found.nbytes)
    stream.synchronize()
    return np.frombuffer(memory, np.int32, found.size)


def _waited_for() -> Any:
    """The current stream, which may be waited for as it is not being recorded."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        raise SemiringError(
            "a closure waits for the GPU, to tell of divergent cycles, so that no CUDA graph of it is recorded; products can be"
        )
    return stream
