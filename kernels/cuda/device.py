"""The limits of the GPUs at hand."""

from __future__ import annotations

import functools

from semiring.kernels.cuda.tile import Device

__all__ = ["device"]


@functools.cache
def device(number: int) -> Device:
    """GPU `number` as the choice of tiles sees it."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(number)
    return Device(
        arch=10 * int(properties["major"]) + int(properties["minor"]),
        multiprocessors=int(properties["multiProcessorCount"]),
        shared_bytes=int(properties["sharedMemPerMultiprocessor"]),
        block_shared_bytes=int(properties["sharedMemPerBlockOptin"]),
        registers=int(properties["regsPerMultiprocessor"]),
        threads=int(properties["maxThreadsPerMultiProcessor"]),
    )
