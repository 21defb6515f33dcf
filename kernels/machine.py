"""What there is to compute with, and what it costs: every constant that a plan reckons with, and where it was measured.

Steps a second follow from what a step is (how many operations on how many bytes) and from the machine: cores and the width of their
vectors, multiprocessors and their clock. They are rough: a choice is only wrong where both ways take nearly as long.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import TraceError
from semiring.algebra.expression import Expr, nodes
from semiring.kernels.cpu.threads import thread_count
from semiring.kernels.devices import gpu_number, gpus, is_gpu
from semiring.kernels.truth import is_packed

__all__ = ["Speed", "begun", "call_seconds", "speed_of"]

DTypes = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Speed:
    """What a device does.

    Attributes
    ----------
    steps : float
        Steps of a product a second.
    link : float
        Bytes a second between the memory of the host and the device, in each direction.
    """

    steps: float
    link: float


CPU_BYTES = 2.0e11
"""Bytes of elements that a core with vectors of 64 bytes combines a second by two operations (2 cores of AMD Zen 5, float32, float64)."""

GPU_BYTES = 6.3e13
"""The same of a GPU with 132 multiprocessors (one NVIDIA H200: 15.7e12 steps of float32)."""

MULTIPROCESSORS = 132
"""Those of that GPU."""

CPU_BITS, GPU_BITS = 1.0e12, 2.7e15
"""Steps on truth values, packed into bits: of a core, and of that GPU."""

SERIES = 25
"""How many operations an exponential or a logarithm is worth (LOG, float32, on both)."""

EXACT_STEPS = 3.0e6
"""Steps a second of Python's own numbers (Fractions)."""

CPU_LINK, GPU_LINK = math.inf, 1.5e10
"""Pageable memory to an H200 and back, pages of new results included; pinned memory is three times as fast."""

CPU_CALL, GPU_CALL = 2.0e-5, 2.0e-4
"""Seconds that any warm call takes."""

GPU_START = 2.0
"""Seconds that CuPy's import, the context and the first kernels take, where a process has not computed on a GPU yet."""

WITNESS = 1.75
"""How much longer products take that remember which k won."""

begun: set[str] = set()
"""The GPUs that this process has computed on."""


def call_seconds(device: str) -> float:
    """What a call takes beside its steps."""
    if not is_gpu(device):
        return CPU_CALL
    return GPU_CALL if begun else GPU_START


def speed_of(
    device: str, semiring: Semiring, dtypes: DTypes, *, witness: bool = False, packed: bool = True, threads: int | None = None
) -> Speed:
    """What a device does in a second with products over a semiring.

    Parameters
    ----------
    device : str
        "reference", "cpu", "cuda:0" and so on, or "cuda" for an NVIDIA H200 where there is no GPU.
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    witness : bool
        Whether products remember which k won.
    packed : bool
        Whether truth values are packed into bits.
    threads : int, optional
    """
    gpu = is_gpu(device)
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return Speed(EXACT_STEPS, CPU_LINK)
    workers = _relative_size(device) if gpu else thread_count(threads)
    if packed and is_packed(semiring, dtypes, witness=witness):
        return Speed((GPU_BITS if gpu else CPU_BITS) * workers, GPU_LINK if gpu else CPU_LINK)
    rate = (GPU_BYTES if gpu else CPU_BYTES * _relative_width()) * workers / (_cost(semiring, dtypes) * (WITNESS if witness else 1))
    return Speed(rate, GPU_LINK if gpu else CPU_LINK)


@functools.lru_cache(maxsize=256)
def _cost(semiring: Semiring, dtypes: DTypes) -> float:
    """Bytes of an element, times what its operations are worth beside two simple ones."""
    size = sum(max(d.itemsize, 2) for d in dtypes)
    try:
        program = semiring.program
    except TraceError:
        return float(size)
    return size * sum(map(_worth, nodes(*program.add, *program.mul))) / (2 * len(dtypes))


def _worth(operation: Expr) -> float:
    if operation.op in ("var", "const"):
        return 0
    return SERIES if operation.op in ("exp", "expm1", "log", "log1p") else 1


def _relative_size(device: str) -> float:
    """The multiprocessors of a GPU, beside those of an H200."""
    if device == "cuda" and not gpus():
        return 1
    from semiring.kernels.cuda.device import device as limits

    return limits(gpu_number(device)).multiprocessors / MULTIPROCESSORS


@functools.cache
def _relative_width() -> float:
    """The vectors of this processor, beside those of 64 bytes."""
    from semiring.kernels.cpu.target import host

    return host().vector_bytes / 64
