"""Where to cut a square matrix."""

from __future__ import annotations

from collections.abc import Iterator

from semiring.kernels.block import Block

__all__ = ["blocks", "quarter"]


def blocks(A: Block, b: int, granule: int) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """For each pivot block of side b (rounded up to whole granules): its range K, and the non-empty ranges before and after it."""
    n = A.shape[0]
    b = -(-b // granule) * granule
    for start in range(0, n, b):
        stop = min(n, start + b)
        yield slice(start, stop), tuple(s for s in (slice(0, start), slice(stop, n)) if s.start < s.stop)


def quarter(A: Block, pivot: int) -> tuple[Block, Block, Block, Block]:
    """A11, A12, A21, A22 of a square block, cut near the middle at a multiple of `pivot`."""
    n = A.shape[0]
    half = max(1, round(n / 2 / pivot)) * pivot
    first, second = slice(0, half), slice(half, n)
    return A[first, first], A[first, second], A[second, first], A[second, second]
