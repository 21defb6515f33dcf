"""Several GPUs of one host, which copy from each other's memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from semiring.kernels.cuda.streaming import CudaCarrier
from semiring.kernels.engine import Engine
from semiring.kernels.streaming.lane import Lane
from semiring.kernels.streaming.resident import resident_lanes
from semiring.kernels.streaming.storage import Matrix

__all__ = ["lanes_for"]

_ENABLED_ALREADY = 704
"""cudaErrorPeerAccessAlreadyEnabled."""


def lanes_for(numbers: Sequence[int], engines: Sequence[Engine], matrix: Matrix, rows: Sequence[slice]) -> list[Lane]:
    """Lanes of GPUs that share a matrix out among their memories.

    Parameters
    ----------
    numbers : sequence of int
        The GPUs; one may be there several times.
    engines : sequence of Engine
        One for each.
    matrix : Matrix
        Arrays of the host, whose pages are locked for all GPUs if that is to be fast, or of one of these GPUs. Where a GPU has
        `matrix.values` (and `matrix.via`), the rows that are its own stay in their place.
    rows : sequence of slice
        The block rows, as `block_rows` gives them. For the memory see `resident_bytes`.

    Raises
    ------
    cupy.cuda.memory.OutOfMemoryError
    """
    import cupy

    runtime = cupy.cuda.runtime
    for number, other in permutations(set(numbers), 2):
        # Without that, copies go by way of the host.
        if runtime.deviceCanAccessPeer(number, other):
            with cupy.cuda.Device(number):
                try:
                    runtime.deviceEnablePeerAccess(other)
                except runtime.CUDARuntimeError as error:
                    if error.status != _ENABLED_ALREADY:
                        raise
    for number in set(numbers):
        # The matrix is what the caller's streams have made of it.
        cupy.cuda.Device(number).synchronize()
    return resident_lanes(engines, [CudaCarrier(matrix, number) for number in numbers], rows)
