"""The processors that kernels are generated for, and the register tile and cache blocks chosen for them.

The processors that kernels are generated for: vector length, registers, and which instructions are worth choosing.

A new processor is a new row of data. `host()` picks the row; ``SEMIRING_ISA`` (avx512, avx2, sse2, neon) forces a narrower one.

The register tile and the cache blocks of the CPU product, chosen from the operations and the target.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass, replace
from typing import Any

from semiring.algebra.expression import nodes
from semiring.common import forks
from semiring.common.errors import SemiringError
from semiring.common.forks import importing
from semiring.common.html import Shown
from semiring.kernels.cpu.representation import Representation

__all__ = ["ISAS", "Target", "Tile", "choose", "host"]


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


_SERIES = {"exp", "expm1", "log", "log1p"}


@dataclass(frozen=True)
class Tile(Shown):
    """Sizes of one product kernel.

    Attributes
    ----------
    width : int
        Lanes of a vector.
    rows, vectors : int
        The micro-kernel keeps `rows` × `vectors` vectors of C in registers.
    depth : int
        Steps of k between two merges with C (KC).
    block : int
        Rows of A that are packed at a time (MC), a multiple of `rows`.
    slab : int
        Steps of k after which a witness product compares with C; it divides `depth`.
    """

    width: int
    rows: int
    vectors: int
    depth: int
    block: int
    slab: int

    @property
    def columns(self) -> int:
        """Columns of C in the micro-kernel (NR)."""
        return self.width * self.vectors

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"{self.rows} × {self.columns} elements of C in registers", [
            ("registers", f"{self.rows} × {self.vectors} vectors of {self.width} elements"),
            ("between two merges with C", f"{self.depth:,} steps"),
            ("rows of A packed at a time", f"{self.block:,}"),
            ("between two looks for a winner", f"{self.slab:,} steps, with a witness"),
        ]


def choose(representation: Representation, target: Target, *, witness: bool = False) -> Tile:
    """The largest register tile that leaves room for one step's operands, and cache blocks in proportion.

    A witness product keeps the best slab's values in registers too, and as it merges two matrices with C's, it merges less often.
    """
    scalars = representation.inner
    components, size = len(scalars), max(s.bytes for s in (*scalars, *representation.outer))
    width = max(2, target.vector_bytes // size)
    # Besides C's vectors and B's row: a temporary for each component, A's broadcast scalars, the 1.0 of fused sums, and the constants.
    expressions = set(nodes(*representation.add, *representation.mul))
    sums = target.fma_add and any(s.kind == "f" for s in scalars) and any(e.op in ("add", "sub") for e in nodes(*representation.mul))
    constants = sum(e.op == "const" for e in expressions)
    spare = components + (0 if target.embedded_broadcast else components) + sums + constants
    shapes = [(6, 4), (8, 3), (6, 3), (4, 4), (4, 3), (5, 2), (6, 2), (4, 2), (3, 2), (2, 2), (4, 1), (2, 1), (1, 1)]
    # A series is long: a small tile keeps its constants in registers and its code short.
    most = 4 if {e.op for e in expressions} & _SERIES else target.registers
    fitting = [(m, v) for m, v in shapes if components * ((1 + witness) * m * v + v) + spare <= target.registers and m * v <= most]
    rows, vectors = max(fitting or [(1, 1)], key=lambda shape: shape[0] * shape[1])
    depth = (512 if size * components <= 8 else 256) * (2 if witness else 1)
    height = 48 if witness else 96
    return Tile(width, rows, vectors, depth, rows * max(1, height // rows), max(32, width))
