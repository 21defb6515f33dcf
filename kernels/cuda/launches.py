"""Launches of products that are decided once: where operands lie alike, only their addresses differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.kernels.block import Block
from semiring.kernels.cuda.loading import Kernel
from semiring.kernels.cuda.operands import matrix, via_arguments

__all__ = ["LaunchPlan", "Operands", "arrangement", "planned"]

Operands = tuple[Block, Block, Block]
"""A, B and C of a product."""


def arrangement(A: Block, B: Block, C: Block) -> Hashable | None:
    """Everything that the launch of a product depends on of where its operands lie; None where each has to be looked at by itself."""
    (a, *others), b, c = A.values, B.values[0], C.values[0]
    from_a, from_b, from_c = a.data.ptr, b.data.ptr, c.data.ptr
    apart_a, apart_b = _apart(A, C), _apart(B, C)
    if others and not (apart_a and apart_b):
        return None
    via = None if C.via is None else C.via.strides
    between = None if apart_a else from_a - from_c, None if apart_b else from_b - from_c
    return (a.shape, a.strides, from_a % 16, b.shape, b.strides, from_b % 16, c.strides, via, between)


def _apart(X: Block, C: Block) -> bool:
    """Whether all of X lies before or behind all of C."""
    low, high = _extent(X.values)
    least, most = _extent(C.values)
    return high <= least or most <= low


def _extent(values: tuple[Any, ...]) -> tuple[int, int]:
    """The first byte of arrays and the one after the last."""
    first, last = [], []
    for v in values:
        (count, m, n), (batch, row, column) = v.shape, v.strides
        low = high = v.data.ptr
        for reach in ((count - 1) * batch, (m - 1) * row, (n - 1) * column):
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
        `Products` in products.cuh, a row a product.
    places : array
        Which of them are filled in.
    kind : numpy.dtype
        All fields together as one number, which a kernel takes by its value.
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    fields: np.ndarray[Any, Any]
    places: np.ndarray[Any, Any]
    kind: np.dtype[Any]

    def __call__(self, products: Sequence[Operands], transposed: Block | None = None) -> None:
        """Launch it."""
        own: list[int] = []
        for A, B, C in products:
            for X in (A, B, C, transposed or B):
                for v in X.values:
                    own.append(v.data.ptr)
            own += (0 if C.via is None else C.via.data.ptr, A.column)
        arguments = self.fields.copy()
        arguments.put(self.places, own)
        self.kernel(self.grid, self.block, (arguments.view(self.kind),), self.shared_bytes)


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
    fields = np.zeros((count, len(rows[0])), dtype=np.int64)
    fields[: len(rows)] = rows
    components = len(products[0][0].values)
    size = components + 3  # numbers of a matrix
    addresses = [start + c for start in (0, size, 2 * size, 3 * size + 6) for c in range(components)]
    own = np.array([*addresses, fields.shape[1] - 4, fields.shape[1] - 1])
    places = np.add.outer(fields.shape[1] * np.arange(len(rows)), own).ravel()
    kind = np.dtype((np.void, fields.nbytes))
    return LaunchPlan(kernel, grid, (threads, 1, 1), shared_bytes, fields.reshape(-1), places, kind)
