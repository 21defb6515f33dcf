"""Elementwise kernels on a GPU: any statement in one pass over device memory, construction matrices, and reports to the host.

The kernels are cached like all others, and exact for subnormals. CuPy's own elementwise kernels take half a second at the first use of
each, and flush subnormals to zero. Kernels report divergent pivots by the least vertex in each matrix, and anything else by flags.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.kernels.cuda.arguments import StridedBatch, parameters
from semiring.kernels.cuda.blocks import stacked
from semiring.kernels.cuda.compiler import Kernel, kernel_for, rehearsing

__all__ = [
    "NO_DIVERGENCE", "ElementsPlan", "Flags", "clear_paths", "earliest_divergence", "elements_plan", "elements_source", "for_each",
    "mend", "of_bytes", "read_back",
]  # fmt: skip

_THREADS = 256
_ACROSS, _DOWN = 1 << 16, 65535  # the most blocks along a row, and down a column or a batch; larger arrays have several elements a thread


class ElementsPlan(NamedTuple):
    """The launch of a statement for each element of arrays of certain layouts; see `for_each`."""

    kernel: Kernel
    grid: tuple[int, int, int]
    strides: tuple[tuple[int, int, int], ...]  # of each array, in elements: between rows, columns and matrices
    shape: tuple[int, int, int]  # matrices, rows and columns

    def start(self, addresses: Iterable[int], numbers: Iterable[int]) -> None:
        """Launch with the arrays' addresses and the numbers."""
        layouts = [x for address, strides in zip(addresses, self.strides, strict=True) for x in (address, *strides)]
        words = [(number + 2**63) % 2**64 - 2**63 for number in numbers]  # signed integers of the same bits
        self.kernel(self.grid, (_THREADS, 1, 1), (*layouts, *self.shape, *words))


def for_each(body: str, arrays: dict[str, Any], **numbers: int) -> None:
    """Run a C++ statement for each element of arrays of one shape (…, m, n).

    In `body` the arrays' names stand for their elements, and the names of `numbers` for 64-bit integers. The leading axes of an array must
    have one common stride.
    """
    if next(iter(arrays.values())).size:
        elements_plan(body, arrays, *numbers).start([v.data.ptr for v in arrays.values()], numbers.values())


def elements_plan(body: str, arrays: dict[str, Any], *numbers: str) -> ElementsPlan:
    """Return the launch of `for_each` for arrays of the same layouts, and numbers of these names."""
    import cupy

    views = list(arrays.values())
    if all(v.flags.c_contiguous for v in views):
        count, m, n, strides = 1, 1, views[0].size, [(0, 0, 1)] * len(views)
    else:
        views = [stacked(v) for v in views]
        count, m, n = views[0].shape
        strides = [tuple(s // v.itemsize for s in v.strides) for v in views]
        if abs(strides[0][1]) < abs(strides[0][2]):  # matrices stored by columns are read by columns
            m, n, strides = n, m, [(batch, column, row) for batch, row, column in strides]
    typed = tuple((name, v.dtype) for name, v in arrays.items())
    kernel = kernel_for("elements", cupy.cuda.runtime.getDevice(), elements_source, body, typed, numbers)
    grid = min(-(-n // _THREADS), _ACROSS), min(m, _DOWN), min(count, _DOWN)
    return ElementsPlan(kernel, grid, tuple((row, column, batch) for batch, row, column in strides), (count, m, n))


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
