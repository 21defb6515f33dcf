"""Elementwise kernels on a GPU: conversion of ∞ in one pass over device memory, construction matrices, and reports to the host.

The kernels are cached like all others, and exact for subnormals. CuPy's own elementwise kernels take half a second at the first use of
each, and flush subnormals to zero. Kernels report divergent pivots by the least vertex in each matrix, and anything else by flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.kernels.cuda.arguments import StridedBatch, parameters
from semiring.kernels.cuda.blocks import stacked
from semiring.kernels.cuda.compiler import kernel_for, rehearsing

__all__ = [
    "NO_DIVERGENCE", "Flags", "clamp_infinity", "clear_paths", "earliest_divergence", "elements_source", "for_each",
    "mend", "of_bytes", "read_back", "restore_infinity",
]  # fmt: skip

_THREADS = 256
_ACROSS, _DOWN = 1 << 16, 65535  # the most blocks along a row, and down a column or a batch; larger arrays have several elements a thread


def for_each(body: str, arrays: dict[str, Any], **numbers: int) -> None:
    """Run a C++ statement for each element of arrays of one shape (…, m, n).

    In `body` the arrays' names stand for their elements, and the names of `numbers` for 64-bit integers. The leading axes of an array must
    have one common stride.
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
        if abs(strides[0][1]) < abs(strides[0][2]):  # matrices stored by columns are read by columns
            m, n, strides = n, m, [(batch, column, row) for batch, row, column in strides]
    typed = tuple((name, v.dtype) for name, v in arrays.items())
    kernel = kernel_for("elements", cupy.cuda.runtime.getDevice(), elements_source, body, typed, tuple(numbers))
    layouts = [x for v, (batch, row, column) in zip(views, strides, strict=True) for x in (v.data.ptr, row, column, batch)]
    grid = min(-(-n // _THREADS), _ACROSS), min(m, _DOWN), min(count, _DOWN)
    words = [(number + 2**63) % 2**64 - 2**63 for number in numbers.values()]  # signed integers of the same bits
    kernel(grid, (_THREADS, 1, 1), (*layouts, count, m, n, *words))


def elements_source(body: str, arrays: tuple[tuple[str, np.dtype[Any]], ...], numbers: tuple[str, ...]) -> str:
    """Return the CUDA C++ of a kernel for arrays of these names and dtypes."""
    taken = {name: parameters(StridedBatch, name, template=dtype.name) for name, dtype in arrays}
    matrices = (f"  const auto {name}_all = {matrix};\n" for name, (_, matrix) in taken.items())
    elements = (f"    {dtype}& {name} = {name}_all.at(b, i, j);\n" for name, dtype in arrays)
    return (
        '#include "elements.cuh"\n\n'
        f'extern "C" __global__ void __launch_bounds__({_THREADS}) elements('
        f"{', '.join([*(own for own, _ in taken.values()), 'int64 count, int64 m, int64 n', *(f'int64 {name}' for name in numbers)])}) {{\n"
        f"{''.join(matrices)}  each_element(count, m, n, [&](int64 b, int64 i, int64 j) {{\n{''.join(elements)}    {body};\n  }});\n}}\n"
    )


def clamp_infinity(values: Any, inner: int, *, owned: bool, signs: Any = None) -> Any:
    """Clamp tropical integers to the inner ∞ (see `inner_infinity`), in place if `owned`.

    `signs` becomes 1 if a finite element could pull a sum with ∞ back below it.
    """
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    beyond, against = ("x > inner", "x < 0") if inner > 0 else ("x < inner", "x > 0")
    flag = {} if signs is None else {"signs": signs.data.ptr}
    test = f"if ({against}) *reinterpret_cast<int32*>(signs) = 1; " if flag else ""
    for_each(f"{test}y = {beyond} ? inner : x", {"x": values, "y": out}, inner=int(inner), **flag)
    return out


def restore_infinity(values: Any, via: Any, least: int, signed: int, infinity: int, signs: Any = None) -> None:
    """Undo `clamp_infinity` in place: entries at or beyond a threshold become `infinity`, without a path.

    The threshold is `least`, or `signed` where `clamp_infinity` has set `signs` to 1.
    """
    limits = {"threshold": int(least), "infinity": int(infinity)}
    threshold = "threshold"
    if signs is not None:
        limits |= {"signed_threshold": int(signed), "signs": signs.data.ptr}
        threshold = "(*reinterpret_cast<const int32*>(signs) ? signed_threshold : threshold)"
    beyond = f"x >= {threshold}" if infinity > 0 else f"x <= {threshold}"
    pathless, paths = ("", {}) if via is None else (", via = -1", {"via": via})
    for_each(f"if ({beyond}) x = infinity{pathless}", {"x": values, **paths}, **limits)


def of_bytes(shape: int | tuple[int, ...], byte: int) -> Any:
    """Return an int32 array of equal bytes, without a kernel: 0xFF makes all numbers −1."""
    import cupy

    found = cupy.ndarray(shape, np.int32)
    if found.size:
        found.data.memset_async(byte, found.nbytes)
    return found


def clear_paths(address: int, count: int) -> None:
    """Set `count` int32 numbers to −1, without a kernel."""
    import cupy

    if not rehearsing():
        cupy.cuda.runtime.memsetAsync(address, 0xFF, 4 * count, cupy.cuda.get_current_stream().ptr)


def mend(values: Any) -> None:
    """Replace −0.0 by 0.0: as an integer, the bits of −0.0 sort below those of −∞."""
    for_each("if (x == int32(0x80000000)) x = 0", {"x": values.view(np.int32)})


NO_DIVERGENCE = 0x7F7F7F7F
"""The report of no divergent pivot: larger than every vertex, and of equal bytes, for `of_bytes`."""


def earliest_divergence(whole: Any, part: Any, row: int) -> None:
    """Merge `part`, which counts from vertex `row`, into `whole`: the lesser vertex wins."""
    for_each(f"if (part != {NO_DIVERGENCE} && part + row < whole) whole = part + row", {"whole": whole[None], "part": part[None]}, row=row)


class Flags:
    """Two flags in pinned host memory, set to 1 by kernels: nothing is cleared on the GPU, and nothing is copied.

    `addresses` lists the flags' addresses for kernels.
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
        """Return cleared flags, reserved for the caller until `read`."""
        try:
            return _idle.pop()
        except IndexError:
            _all.append(flags := Flags())
            return flags

    def read(self) -> list[bool]:
        """Wait for the current stream, and return the two flags. Raises SemiringError if the stream is being captured."""
        _waited_for().synchronize()
        found: list[bool] = self._numbers.astype(bool).tolist()
        if any(found):
            self._numbers[:] = 0
        _idle.append(self)
        return found


_idle: list[Flags] = []
_all: list[Flags] = []
"""Flags that no kernel uses; and all flags, because kernels may still write to flags of an abandoned wait."""


forks.in_children(_idle.clear)
forks.in_children(_all.clear)


def read_back(found: Any) -> np.ndarray[Any, Any]:
    """Wait for the current stream, and copy an int32 array to the host, by pinned memory in half the time.

    Raises SemiringError if the stream is being captured.
    """
    import cupy

    stream = _waited_for()
    memory = cupy.cuda.alloc_pinned_memory(found.nbytes)
    found.data.copy_to_host_async(memory.ptr, found.nbytes)
    stream.synchronize()
    return np.frombuffer(memory, np.int32, found.size)


def _waited_for() -> Any:
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        raise SemiringError(
            "a closure waits for the GPU to report divergent cycles, so a CUDA graph can't capture one; it can capture products"
        )
    return stream
