"""The hardware that kernels are generated for: processors with their vector instructions, GPUs with their limits.

`host` and `device` describe this machine's processor and GPUs; ``SEMIRING_ISA`` (avx512, avx2, sse2, neon) forces narrower vectors.
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

__all__ = ["H200", "ISAS", "Device", "Target", "architecture", "device", "host"]


@dataclass(frozen=True)
class Target:
    """One instruction set on one processor."""

    isa: str
    architecture: str  # LLVM's names of architecture, processor and features
    cpu: str
    features: str
    needs: tuple[str, ...]  # features that a processor of this architecture must have
    vector_bytes: int  # bytes of a vector register
    registers: int  # vector registers
    fma: bool = True  # fused multiply-adds are instructions
    # Write minima of floats as IEEE 754's minNum, one instruction on 64-bit ARM; x86 has one instruction for compare-and-select.
    minnum: bool = False
    memory_operands: bool = True  # arithmetic takes a vector from memory as well as from a register
    masks: bool = False  # masked loads and stores of vectors are instructions
    tune: str = ""  # the processor for which LLVM schedules instructions, if LLVM does not know the actual one
    fma_add: bool = False  # write x + y as fma(x, 1, y): the same bits, on a pipe that minima do not need (AMD Zen 2 to 5)
    # Bytes of the largest floats to compare as integers of the same order: there integer minima have more pipes (AMD Zen 2 to 5; on Intel,
    # fewer). Only AVX-512 has minima of 8 bytes.
    order_keys: int = 0
    # Take scalars by AVX-512's ``{1to16}`` memory operand. This is free on AMD, where a broadcasting load takes a vector slot. Elsewhere
    # the load takes no slot, and one load a row beats one load an instruction.
    embedded_broadcast: bool = False


ISAS = {
    "avx512": Target("avx512", "x86_64", "x86-64-v4", "", ("avx512f", "avx512bw", "avx512dq", "avx512vl"), 64, 32, masks=True),
    "avx2": Target("avx2", "x86_64", "x86-64-v3", "", ("avx2", "fma", "bmi2"), 32, 16),
    "sse2": Target("sse2", "x86_64", "x86-64", "", ("sse2",), 16, 16, fma=False),
    # All of 64-bit ARM has NEON; LLVM does not know the features of every system's processor. Without `tune`, LLVM would schedule for
    # small in-order cores, which keeps too many values in flight for the tile to stay in registers.
    "neon": Target("neon", "aarch64", "generic", "+neon", (), 16, 32, minnum=True, memory_operands=False, tune="neoverse-n1"),
}
"""Instruction sets by name, widest first for each architecture."""


def _lock_of_llvm() -> Any:
    """Return llvmlite's lock around LLVM, or None if llvmlite is not imported or keeps the lock elsewhere."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(getattr(library, "_lock", None), "_lock", None)


forks.hold(_lock_of_llvm)


def architecture() -> str:
    """Return the name of this processor's architecture, as LLVM calls it on Linux."""
    from llvmlite import binding as llvm

    name = str(llvm.get_process_triple()).partition("-")[0]
    return {"arm64": "aarch64"}.get(name, name)


@functools.cache
def host(isa: str | None = None) -> Target:
    """Return the target for this processor, or the narrower one that `isa` or ``SEMIRING_ISA`` names."""
    with importing:
        from llvmlite import binding as llvm

    wanted = isa or os.environ.get("SEMIRING_ISA")
    has = llvm.get_host_cpu_features()
    cpu = llvm.get_host_cpu_name()
    usable = [row.isa for row in ISAS.values() if row.architecture == architecture() and all(has.get(f) for f in row.needs)]
    if wanted is not None and wanted not in usable:
        raise SemiringError(f"this processor ({cpu}) cannot run {wanted!r}; SEMIRING_ISA may be one of {', '.join(usable)}")
    if not usable:
        raise SemiringError(f"no kernels for this processor ({cpu}); device='reference' computes with NumPy")
    target = ISAS[wanted or usable[0]]
    # On AMD, minima and additions of floats share two pipes; fused multiply-adds have two others, and integers have four.
    zen = cpu.startswith("znver") and target.isa in ("avx512", "avx2")
    if wanted is None or wanted == usable[0]:
        target = replace(target, cpu=cpu, features=has.flatten(), tune=target.tune if cpu == "generic" else "")
    return replace(target, fma_add=zen, order_keys=zen * target.vector_bytes // 8, embedded_broadcast=zen and target.isa == "avx512")


@dataclass(frozen=True)
class Device:
    """Limits of a GPU."""

    arch: int  # the compute capability, as in sm_90
    multiprocessors: int
    shared_bytes: int  # shared memory of a multiprocessor
    block_shared_bytes: int  # shared memory of one thread block at most
    registers: int = 65536  # registers and threads of a multiprocessor
    threads: int = 2048


H200 = Device(arch=90, multiprocessors=132, shared_bytes=233472, block_shared_bytes=232448)
"""An NVIDIA H100 or H200, for plans on machines without a GPU."""


@functools.cache
def device(number: int) -> Device:
    """Return the limits of GPU `number`."""
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
