"""Machine code for 64-bit ARM, which any processor can generate and read: what the inner loop of a product takes for a step.

``tests/on_arm.py`` is for running it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from semiring.algebra.catalogue import BOOLEAN, DISTANCE_HOPS, LOG, MAX_MIN, MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algorithms.hops import search
from semiring.kernels.cpu import compiler
from semiring.kernels.cpu.compiler import assembly
from semiring.kernels.cpu.hops import SourceSets
from semiring.kernels.cpu.kernels import Kernels
from semiring.kernels.description import inner_loop
from semiring.kernels.hardware import ISAS

STEPS = [
    (MIN_PLUS, "f4", "fadd fminnm"),
    (MIN_PLUS, "f8", "fadd fminnm"),
    (MIN_PLUS, "i4", "add smin"),
    (MIN_PLUS, "i2", "add smin"),
    (MIN_PLUS, "i8", "add cmgt bit"),  # of 64 bits NEON only compares
    (MAX_PLUS, "f4", "fadd fmaxnm"),
    (MAX_MIN, "f4", "fminnm fmaxnm"),
    (MAX_MIN, "i4", "smin smax"),
    (BOOLEAN, "?", "and orr"),
    (PLUS_TIMES, "f4", "fmla"),
    (PLUS_TIMES, "f8", "fmla"),
    (PLUS_TIMES, "i4", "mla"),
    (LOG, "f4", "fmla"),
]
"""The instructions for one step of each semiring, a vector at a time."""


def machine_code(kernels: Kernels, name: str) -> str:
    """A function's machine code as text."""
    try:
        return assembly(kernels.ir(name), kernels.target)
    except RuntimeError:
        pytest.skip("this LLVM knows no ARM")


def made(semiring: Semiring, dtype: str, cpu: str) -> Kernels:
    """The kernels for a processor."""
    neon = ISAS["neon"]
    return Kernels(semiring, (np.dtype(dtype),), replace(neon, cpu=cpu, features="", tune=neon.tune if cpu == neon.cpu else ""))


@pytest.mark.sampled(len(STEPS))
@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1", "apple-m1"])
@pytest.mark.parametrize(("semiring", "dtype", "expected"), STEPS, ids=lambda x: x.name if isinstance(x, Semiring) else None)
def test_a_step_is_one_instruction_for_each_operation(semiring: Semiring, dtype: str, expected: str, cpu: str) -> None:
    kernels = made(semiring, dtype, cpu)
    tile, loop = kernels.tile, inner_loop(machine_code(kernels, "product"), "product_sums" if semiring is LOG else "product_micro")
    vectors = tile.rows * tile.vectors
    assert vectors == 24
    # Of all three that choose bits, each turns on where its result is.
    arithmetic = Counter({"bit": 0}, **dict.fromkeys(expected.split(), 0))
    for name, count in loop.items():
        if name in ("bit", "bif", "bsl"):
            arithmetic["bit"] += count
        elif not name.startswith(("ld", "mov")):
            arithmetic[name] += count
    assert +arithmetic == dict.fromkeys(expected.split(), vectors)
    # Each vector of B and each scalar of A is loaded once, and nothing leaves its register: no st, and no ld of what st had written.
    assert sum(count for name, count in loop.items() if name.startswith("ld")) <= tile.rows + tile.vectors
    assert sum(count for name, count in loop.items() if name.startswith("mov")) <= 3


def test_a_step_that_compares_stays_in_registers() -> None:
    kernels = Kernels(DISTANCE_HOPS, (np.dtype("f4"),) * 2, ISAS["neon"])
    loop = inner_loop(machine_code(kernels, "product"), "product_micro")
    assert not any(name.startswith("st") for name in loop)
    assert loop["fadd"] == loop["fminnm"] == 2 * loop["fcmgt"] == 2 * kernels.tile.rows * kernels.tile.vectors


def test_64_bits_are_compared_by_sve_where_there_is_one() -> None:
    kernels = made(MIN_PLUS, "i8", "neoverse-v1")
    assert inner_loop(machine_code(kernels, "product"), "product_micro")["smin"] == kernels.tile.rows * kernels.tile.vectors


def test_the_loop_is_found_as_macos_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    kernels = made(MIN_PLUS, "f4", "apple-m1")
    expected = inner_loop(machine_code(kernels, "product"), "product_micro")
    triple = binding.Target.from_triple("arm64-apple-macosx")
    monkeypatch.setattr(compiler, "_machine", lambda target: triple.create_target_machine(cpu=target.cpu, opt=3))
    assert inner_loop(machine_code(kernels, "product"), "product_micro") == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", ["product_witness", "close", "eliminate", "product_lanes", "product_vector", "tight_trees"])
def test_every_kind_of_kernel_is_generated(function: str) -> None:
    assert "fminnm" in machine_code(made(MIN_PLUS, "f4", "generic"), function)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("isa", ["neon", "avx2", "sse2"])
def test_hop_counts_are_generated_for_all_vectors(width: int, isa: str) -> None:
    ir = search.ir((*[None] * 8, [None] * 6, [None] * 4), {"sets": SourceSets(width), "rows": width == 1})
    try:
        code = assembly(ir, ISAS[isa])
    except RuntimeError:
        pytest.skip("this LLVM knows no ARM")
    assert "search:" in code
    assert ("cnt" in code) == (isa == "neon" and width == 8)
