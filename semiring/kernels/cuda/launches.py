"""Launch plans of products, decided once per arrangement of operands: later launches differ only in addresses."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiring.common.progress import Meter
from semiring.kernels.cuda.arguments import ALWAYS, Bounds, DeviceMatrix, LaunchPredicate, Product, Witness, flat, places
from semiring.kernels.cuda.blocks import by_value, matrix_of, via_of
from semiring.kernels.cuda.compiler import Kernel, pointer_to, rehearsing
from semiring.kernels.engine import Block

__all__ = ["LaunchPlan", "Operands", "SplitKPlan", "addresses", "arrangement", "launched", "planned"]

Operands = tuple[Block, Block, Block]
"""A, B and C of a product."""


def arrangement(A: Block, B: Block, C: Block) -> Hashable | None:
    """Return everything about the operands' memory that a launch depends on, as a key; None if each product needs its own decision."""
    a, b, c = A.values[0], B.values[0], C.values[0]
    from_a, from_b, from_c = a.data.ptr, b.data.ptr, c.data.ptr
    (low_a, high_a), (low_b, high_b), (low, high) = _extent(A.values), _extent(B.values), _extent(C.values)
    apart_a, apart_b = high_a <= low or high <= low_a, high_b <= low or high <= low_b
    if len(A.values) > 1 and not (apart_a and apart_b):
        return None
    between = None if apart_a else from_a - from_c, None if apart_b else from_b - from_c
    first = 1 if len(a) == len(b) == len(c) == 1 else 0  # a single matrix has no stride to the next
    via = None if C.via is None else C.via.strides[first:]
    return (a.shape, a.strides[first:], from_a % 16, b.shape, b.strides[first:], from_b % 16, c.strides[first:], via, between)


def _extent(values: tuple[Any, ...]) -> tuple[int, int]:
    """Return the first byte of the arrays, and the one after the last."""
    first, last = [], []
    for v in values:
        low = high = v.data.ptr
        for length, step in zip(v.shape, v.strides, strict=True):
            reach = (length - 1) * step
            if reach < 0:
                low += reach
            else:
                high += reach
        first.append(low)
        last.append(high + v.itemsize)
    return min(first), max(last)


@dataclass(frozen=True, slots=True, eq=False)
class LaunchPlan:
    """A launch for operands of one arrangement."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    fields: np.ndarray[Any, Any]  # a word for the structure's address, and `Products`
    filled: list[int]  # positions of `addresses`, the predicate, and the bounds of `CheckedProducts`
    copies: list[tuple[memoryview, int]] = field(default_factory=list)  # idle copies of the fields, with `pointer_to` each

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS, bounds: Bounds | tuple[()] = ()) -> None:
        """Launch with the `addresses` of each product."""
        try:
            mine = self.copies.pop()
        except IndexError:
            array = self.fields.copy()
            mine = array.data, pointer_to(array)
        fields, argument = mine
        for place, number in zip(self.filled, (*own, *predicate, *bounds), strict=True):
            fields[place] = number
        self.kernel.start(self.grid, self.block, argument, self.shared_bytes)
        self.copies.append(mine)


@dataclass(frozen=True, slots=True, eq=False)
class SplitKPlan:
    """Launches of a product with split-K: the last rows of C are sums of parts."""

    tiles: LaunchPlan  # of the whole rows, if any, and of the parts
    whole: bool  # there are whole rows
    below_a: tuple[int, ...]  # bytes, per component of A, from the first row to the first that is a sum of parts
    below_c: tuple[int, ...]
    parts: tuple[int, int, int]  # parts, rows, columns
    dtypes: tuple[np.dtype[Any], ...]  # of the components of the parts
    add: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    strides: tuple[int, ...]  # of C, see `matrix_of`
    fresh: bool

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS, bounds: Bounds | tuple[()] = ()) -> None:
        """Launch with the `addresses` of the product."""
        import cupy

        width, (count, m, n) = len(self.dtypes), self.parts
        sums = [cupy.empty(self.parts, d) for d in self.dtypes]
        a, b, c, column = own[:width], own[width : 2 * width], own[2 * width : 3 * width], own[-1]
        to = [v.data.ptr for v in sums]
        rest = *map(operator.add, a, self.below_a), *b, *to, *b, 0, column
        self.tiles.start((*own, *rest) if self.whole else rest, predicate, bounds)
        below, parts = DeviceMatrix(tuple(map(operator.add, c, self.below_c)), *self.strides), DeviceMatrix(tuple(to), n, 1, m * n)
        self.add(self.grid, self.block, (by_value(below), by_value(parts), m, n, count, int(self.fresh), by_value(predicate)))


def addresses(products: Sequence[Operands], transposed: Block | None = None) -> list[int]:
    """Return what changes between launches: addresses of A, B, C, B's transpose and the witness, and the first vertex of A's columns."""
    own: list[int] = []
    for A, B, C in products:
        for X in (A, B, C, transposed or B):
            for v in X.values:
                own.append(v.data.ptr)
        own += (0 if C.via is None else C.via.data.ptr, A.column)
    return own


def planned(
    kernel: Kernel,
    grid: tuple[int, int, int],
    threads: int,
    shared_bytes: int,
    count: int,
    products: Sequence[tuple[Block, Block, Block, int, int, bool]],
    transposed: Block | None,
    *,
    checked: bool = False,
) -> LaunchPlan:
    """Plan one launch.

    `count` is the number of products that the kernel has room for. `products` lists (A, B, C, tiles, depth, fresh), see `Product`.
    `transposed` is B with contiguous columns, where winners are looked up in global memory. `checked` is for kernels that take
    `CheckedProducts`.
    """
    rows = []
    for A, B, C, tiles, depth, fresh in products:
        a, b, c, witness = matrix_of(A), matrix_of(B), matrix_of(C), Witness(matrix_of(transposed or B), *via_of(C, A.column))
        rows.append(flat(Product(a, b, c, *C.shape, A.shape[1], tiles, fresh, depth, witness)))
    own, width = _own_places(len(products[0][0].values)), len(rows[0])
    behind = 1 + count * width
    fields = np.zeros(behind + len(ALWAYS) + (len(Bounds._fields) if checked else 0), dtype=np.int64)
    fields[1 : 1 + len(rows) * width] = np.ravel(rows)
    filled = [*(1 + np.add.outer(width * np.arange(len(rows)), own).ravel()).tolist(), *range(behind, len(fields))]
    return LaunchPlan(kernel, grid, (threads, 1, 1), shared_bytes, fields, filled)


@functools.cache
def _own_places(components: int) -> np.ndarray[Any, Any]:
    """Return the positions within a `Product` of the values of `addresses`."""
    place = places(Product, components)
    pointers = [place[f"{X}.pointers.{c}"] for X in ("A", "B", "C", "witness.transposed") for c in range(components)]
    return np.array([*pointers, place["witness.via"], place["witness.first"]])


def launched(meter: Meter | None, steps: int) -> None:
    """Tell the meter, if any, that `steps` are done once the GPU reaches this point of the current stream."""
    if meter is not None and not rehearsing():
        meter.later(steps, _event)


def _event() -> Any:
    """Record an event that threads can sleep on; None while the stream is captured."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        return None
    event = cupy.cuda.Event(block=True, disable_timing=True)
    event.record(stream)
    return event
