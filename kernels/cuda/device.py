"""The limits of the GPUs at hand."""

from __future__ import annotations

import functools
from dataclasses import dataclass

__all__ = ["H200", "Device", "device"]


@dataclass(frozen=True)
class Device:
    """Limits of a GPU.

    Attributes
    ----------
    arch : int
        The compute capability, as in sm_90.
    multiprocessors : int
    shared_bytes : int
        Shared memory of a multiprocessor that blocks can have.
    block_shared_bytes : int
        The most that one block can have.
    registers, threads : int
        Of a multiprocessor.
    """

    arch: int
    multiprocessors: int
    shared_bytes: int
    block_shared_bytes: int
    registers: int = 65536
    threads: int = 2048


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
