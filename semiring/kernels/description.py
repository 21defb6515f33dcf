"""Describe the kernel that an engine would run, without running it: its tile, its instructions for a step, its block sides."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, nodes
from semiring.arrays.devices import gpu_number
from semiring.common.forks import importing
from semiring.common.html import Shown
from semiring.kernels import hardware
from semiring.kernels.hardware import H200, Device
from semiring.kernels.limits import DTypes

__all__ = ["BlockSides", "KernelDescription", "describe", "inner_loop", "sides_of"]


class BlockSides(NamedTuple):
    """The block sides of an engine; see `Engine`."""

    pivot: int
    sweep: int = 0
    block: int = 0
    alignment: int = 1


@dataclass(frozen=True)
class KernelDescription:
    """The kernel of a product."""

    engine: str
    tile: Shown | None = None  # the tile of a large product
    instructions: str = "NumPy's, an array at a time"  # instructions for a step


def sides_of(semiring: Semiring, dtypes: DTypes, device: str, *, packed: bool) -> BlockSides:
    """Return the block sides of the engine that `engine_for` gives. `packed` matrices are bits; see `is_packed`."""
    with importing:
        if device == "reference" or any(d.kind == "O" for d in dtypes):
            from semiring.kernels.reference import ReferenceEngine

            return BlockSides(ReferenceEngine.pivot)
        if device == "cpu" and packed:
            from semiring.kernels.cpu.boolean import BooleanEngine

            return BlockSides(BooleanEngine.pivot, alignment=BooleanEngine.alignment)
        if device == "cpu":
            from semiring.kernels.cpu.kernels import pivot_side

            return BlockSides(pivot_side(semiring, dtypes))
        if packed:
            from semiring.kernels.cuda.boolean import CudaBooleanEngine

            return BlockSides(CudaBooleanEngine.pivot, alignment=CudaBooleanEngine.alignment)
        from semiring.kernels.cuda.engine import CudaEngine
        from semiring.kernels.cuda.kernels import pivot_sides
        from semiring.kernels.cuda.representation import represent

        sides = pivot_sides(represent(semiring, dtypes))
        return BlockSides(max(sides), CudaEngine.sweep, min(sides))


def describe(semiring: Semiring, dtypes: DTypes, device: str, n: int, *, witness: bool, packed: bool) -> KernelDescription:
    """Describe the engine that `engine_for` gives, with the tile of a product of side n / 2.

    Device "cuda", without a number, is an H200 that need not exist.
    """
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return KernelDescription("reference")
    if device == "cpu":
        return _packed_cpu() if packed else _cpu(semiring, dtypes, witness)
    return _packed_cuda(device, n) if packed else _cuda(semiring, dtypes, device, n, witness)


def _cpu(semiring: Semiring, dtypes: DTypes, witness: bool) -> KernelDescription:
    from semiring.kernels.cpu.compiler import assembly
    from semiring.kernels.cpu.kernels import kernels_for
    from semiring.kernels.cpu.micro import unrolled_steps

    kernels = kernels_for(semiring, dtypes)
    name, tile = ("product_witness", kernels.witness_tile) if witness else ("product", kernels.tile)
    text = assembly(kernels.ir(name), kernels.target)
    loop = "sums" if kernels.representation.kind == "exponential" else "micro"
    vectors = tile.rows * tile.vectors * unrolled_steps(kernels.representation, kernels.target, witness=witness)
    instructions = _counted(inner_loop(text, f"{name}_{loop}"), vectors, tile.width)
    return KernelDescription(f"cpu, {kernels.target.isa} for {kernels.target.cpu}", tile, instructions=instructions)


_LABEL = re.compile(r"(\S+):")
_VECTOR = re.compile(r"%[xyz]mm|\b[qvz]\d+\b")  # a vector register of x86-64 or 64-bit ARM
_MOVES = ("vmov", "mov", "vbroadcast", "ld", "st", "dup", "vp2", "prefetch")


def inner_loop(text: str, function: str) -> Counter[str]:
    """Count the vector instructions of a function's busiest loop in LLVM's assembly text; llvmlite has no other reader of it."""
    label, names, loops = "", list[str](), [Counter[str]()]
    _, _, rest = re.sub(r"^_", "", text, flags=re.MULTILINE).partition(f"\n{function}:")  # macOS puts a _ before names
    for line in rest.partition("\t.globl")[0].splitlines():
        words = line.split()
        if found := _LABEL.match(line):
            label, names = found[1], []
        elif words and words[-1] == label:  # a jump to the start of its block
            loops.append(Counter(names))
        elif _VECTOR.search(line):
            names.append(words[0].partition(".")[0])  # macOS writes fadd.4s
    return max(loops, key=Counter.total)


def _counted(loop: Counter[str], vectors: int, width: int) -> str:
    """Describe a loop that computes `vectors` steps a turn, `width` at a time."""
    arithmetic = Counter({name: count for name, count in loop.items() if not name.startswith(_MOVES)})
    if arithmetic.total() < vectors:
        return "several loops, which are not counted"
    names = ", ".join(name for name, _ in arithmetic.most_common(4))
    moves = loop.total() - arithmetic.total()
    return (
        f"{arithmetic.total() / vectors:.3g} for {width} steps ({names}{', …' if len(arithmetic) > 4 else ''}), and {moves / vectors:.2g} "
        f"that load or copy"
    )


def _packed_cpu() -> KernelDescription:
    from semiring.kernels.cpu.boolean import STRIP

    text = f"a look-up in a table and an ∪ of {STRIP} bits for {8 * STRIP:,} steps (the Four Russians' method)"
    return KernelDescription("cpu, on bits", instructions=text)


def _limits(device: str) -> Device:
    return H200 if device == "cuda" else hardware.device(gpu_number(device))


def _packed_cuda(device: str, n: int) -> KernelDescription:
    from semiring.kernels.cuda.boolean import choose_bit_tile

    limits, half = _limits(device), max(1, n // 2)
    tile = choose_bit_tile(half, half, half, 1, limits)
    steps = "4,194,304" if tile.blocked else "32,768"
    text = f"an MMA of bits for {steps} steps, which it ANDs and counts" if tile.tensor else "a LOP3 for 32 steps"
    return KernelDescription(f"cuda, on bits, for sm_{limits.arch}", tile, text)


def _cuda(semiring: Semiring, dtypes: DTypes, device: str, n: int, witness: bool) -> KernelDescription:
    from semiring.kernels.cuda.kernels import problem_for, reads_vectors, step_for
    from semiring.kernels.cuda.launches import is_plus_times
    from semiring.kernels.cuda.representation import represent
    from semiring.kernels.cuda.tile import choose_tile

    limits, half, r = _limits(device), max(1, n // 2), represent(semiring, dtypes)
    step = step_for(r, limits.arch, ordered_bits=r.keeps_bits_ordered, pairs=not witness)
    sides = (half, half, half, 1)
    problem = problem_for(r, step, sides, witness=witness, light=reads_vectors(r, step), splittable=semiring.selects and not witness)
    add, mul = _operations(r.add), _operations(r.mul if witness else r.hoisted[0])
    if step is None:
        text = f"{add + mul} operations for a step"
    else:
        together = step.count * (2 if step.pairs else 1)
        text = f"{step.name} for {'a step' if together == 1 else f'{together} steps'}"
        if "candidate" in step.code:
            text += f", and {mul} operation{'s' * (mul != 1)} ⊗ for each" if mul else ""
    if not witness and len(r.dtypes) == 1 and r.dtypes[0].kind == "f":
        if semiring.program.exponential is not None:
            text += "; large products by cuBLAS, of exponentials in float64"
        elif is_plus_times(semiring, dtypes):
            text += "; large products by cuBLAS"
    return KernelDescription(f"cuda, for sm_{limits.arch}", choose_tile(problem, limits), text)


def _operations(roots: tuple[Expr, ...]) -> int:
    return sum(e.op not in ("var", "const") for e in nodes(*roots))
