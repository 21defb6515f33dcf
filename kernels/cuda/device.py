"""The limits of the GPUs at hand."""

from __future__ import annotations

import functools

from semiring.kernels.cuda.tile import Device

__all__ = ["H200", "device"]

H200 = Device(arch=90, multiprocessors=132, shared_bytes=233472, block_shared_bytes=232448)
"""An NVIDIA H100 or H200: what is planned for where there is no GPU."""


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
