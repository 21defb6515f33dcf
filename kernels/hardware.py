"""The hardware that kernels are generated for: processors by their vector instructions, GPUs by their limits.

A processor is a row of data, and so is a GPU. `host` and `device` say which are at hand; ``SEMIRING_ISA`` (avx512, avx2, sse2, neon)
forces narrower vectors.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass, replace
from typing import Any

from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.common.forks import importing

__all__ = ["H200", "ISAS", "Device", "Target", "device", "host"]


@dataclass(frozen=True)
class Target:
    """One instruction set on one processor.

    Attributes
    ----------
    isa : str
    cpu, features : str
        As LLVM names them.
    vector_bytes, registers : int
        Length and number of the vector registers.
    fma_add : bool
        Write x + y as fma(x, 1, y): the same result bit for bit, on a pipe that minima do not need (AMD Zen 2 to 5).
    order_keys : bool
        Compare floats as integers that sort alike, because integer minima have more pipes (AMD Zen 2 to 5; on Intel they have fewer).
    embedded_broadcast : bool
        Take scalars by AVX-512's ``{1to16}`` memory operand: free on AMD, where a broadcasting load takes a vector slot; elsewhere a
        load takes none, and one a row is less than one an instruction.
    """

    isa: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    fma_add: bool = False
    order_keys: bool = False
    embedded_broadcast: bool = False


ISAS = {
    "avx512": Target("avx512", "x86-64-v4", "", 64, 32),
    "avx2": Target("avx2", "x86-64-v3", "", 32, 16),
    "sse2": Target("sse2", "x86-64", "", 16, 16),
    "neon": Target("neon", "generic", "+neon", 16, 32),
}
"""The rows, widest first for each architecture."""

_NEEDS = {
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    "avx2": ("avx2", "fma", "bmi2"),
    "sse2": ("sse2",),
    "neon": ("neon",),
}


def _lock_of_llvm() -> Any:
    """The lock that llvmlite has around every call of LLVM, if it is imported; None also for a llvmlite that has it elsewhere."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(getattr(library, "_lock", None), "_lock", None)


forks.hold(_lock_of_llvm)


@functools.cache
def host(isa: str | None = None) -> Target:
    """The row for this processor, or the one named by `isa` or ``SEMIRING_ISA`` if the processor has it."""
    with importing:
        from llvmlite import binding as llvm

    wanted = isa or os.environ.get("SEMIRING_ISA")
    has = llvm.get_host_cpu_features()
    cpu = llvm.get_host_cpu_name()
    # LLVM does not tell the features of every system's 64-bit ARM, but all of these have NEON.
    arm = llvm.get_process_triple().startswith(("aarch64", "arm64"))
    usable = [name for name, needs in _NEEDS.items() if all(has.get(f, arm and f == "neon") for f in needs)]
    if wanted is not None and wanted not in usable:
        raise SemiringError(f"this processor ({cpu}) cannot run {wanted!r}; SEMIRING_ISA may be one of {', '.join(usable)}")
    if not usable:
        raise SemiringError(f"no kernels for this processor ({cpu}); device='reference' computes with NumPy")
    target = ISAS[wanted or usable[0]]
    # AMD's minima and additions of floats share two pipes; fused multiply-adds have two of their own, and integers have four.
    zen = cpu.startswith("znver") and target.isa in ("avx512", "avx2")
    if wanted is None or wanted == usable[0]:
        target = replace(target, cpu=cpu, features=has.flatten())
    return replace(target, fma_add=zen, order_keys=zen, embedded_broadcast=zen and target.isa == "avx512")


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
