"""Launches of products that are decided once: where operands lie alike, only their addresses differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.kernels.block import Block
from semiring.kernels.cuda.loading import Kernel
from semiring.kernels.cuda.operands import matrix, via_arguments

__all__ = ["LaunchPlan", "Operands", "arrangement", "arrangement_of_matrices", "planned"]

Operands = tuple[Block, Block, Block]
"""A, B and C of a product."""


def arrangement(A: Block, B: Block, C: Block) -> Hashable | None:
    """Everything that the launch of a product depends on of where its operands lie; None where each has to be looked at by itself."""
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


def arrangement_of_matrices(a: Any, b: Any, c: Any, via: Any) -> Hashable:
    """The `arrangement` of blocks of single matrices, given as arrays of two axes, of which c shares nothing with the others."""
    (m, k), n, along = a.shape, b.shape[1], None if via is None else via.strides
    return ((1, m, k), a.strides, a.data.ptr % 16, (1, k, n), b.strides, b.data.ptr % 16, c.strides, along, (None, None))


def _extent(values: tuple[Any, ...]) -> tuple[int, int]:
    """The first byte of arrays and the one after the last."""
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
    """A launch for operands of one arrangement.

    Attributes
    ----------
    kernel : Kernel
    grid, block : tuple of int
    shared_bytes : int
    fields : array
        A word for their address, and `Products` in products.cuh.
    places : array
        Which of them are filled in.
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    fields: np.ndarray[Any, Any]
    places: np.ndarray[Any, Any]

    def __call__(self, products: Sequence[Operands], transposed: Block | None = None) -> None:
        """Launch it."""
        own: list[int] = []
        for A, B, C in products:
            for X in (A, B, C, transposed or B):
                for v in X.values:
                    own.append(v.data.ptr)
            own += (0 if C.via is None else C.via.data.ptr, A.column)
        self.start(own)

    def start(self, own: list[int]) -> None:
        """Launch it with numbers in its own places."""
        fields = self.fields.copy()
        fields.put(self.places, own)
        self.kernel.start(self.grid, self.block, fields, self.shared_bytes)


def planned(
    kernel: Kernel,
    grid: tuple[int, int, int],
    threads: int,
    shared_bytes: int,
    count: int,
    products: Sequence[tuple[Block, Block, Block, int, int, bool]],
    transposed: Block | None,
) -> LaunchPlan:
    """The plan of one launch.

    Parameters
    ----------
    kernel, grid, threads, shared_bytes
    count : int
        Products for which the kernel has room.
    products : sequence of (A, B, C, tiles, depth, fresh)
        See `Product` in products.cuh.
    transposed : Block or None
        B with its columns contiguous, where winners are looked for in device memory.
    """
    rows = [
        [
            *(number for X in (A, B, C) for number in matrix(X)),
            *(*C.shape, A.shape[1], tiles, fresh, depth),
            *(*matrix(transposed or B), *via_arguments(C), A.column),
        ]
        for A, B, C, tiles, depth, fresh in products
    ]
    width = len(rows[0])
    fields = np.zeros(1 + count * width, dtype=np.int64)
    fields[1 : 1 + len(rows) * width] = np.ravel(rows)
    components = len(products[0][0].values)
    size = components + 3  # numbers of a matrix
    addresses = [start + c for start in (0, size, 2 * size, 3 * size + 6) for c in range(components)]
    own = np.array([*addresses, width - 4, width - 1])
    places = 1 + np.add.outer(width * np.arange(len(rows)), own).ravel()
    return LaunchPlan(kernel, grid, (threads, 1, 1), shared_bytes, fields, places)
