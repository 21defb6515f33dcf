"""What the processor can do per semiring step: loops whose operands all stay in registers.

The loop is emitted by the library's own generator, with the instructions that its micro-kernel uses for ⊕ and ⊗, but nothing is
loaded or stored inside it. No product can be faster than that with these instructions; `benchmarks.products` compares.

    python -m benchmarks.limits
"""

from __future__ import annotations

import argparse
from array import array
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, cores, machine, print_table
from semiring.arrays.threads import run
from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation, choose_tile, represent
from semiring.kernels.hardware import Target, host

__all__ = ["LUKASIEWICZ", "Limit"]

LUKASIEWICZ = sr.Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))
"""A semiring that a user might write; its step is four instructions."""

_SECONDS = 0.02
"""How long one run of a loop takes, about."""

_SUMS = (2, 4, 8, 12, 16, 24)
"""Numbers of independent sums to try: enough to hide the latency of an instruction, few enough to leave registers for the rest."""

_UNROLLED = 48
"""Steps a turn, so that what counts the turns costs nothing."""


@dataclass(frozen=True)
class Limit:
    """The loop of one semiring in one dtype on one target.

    Parameters
    ----------
    semiring : Semiring
    dtypes : str
        One for each component.
    isa : str, optional
        A narrower instruction set of this processor.
    fma_add : bool, optional
        Whether sums of floats are written as fma(x, 1, y); by default as the library does on this processor.
    bits : int
        Steps that an element stands for: 64 where it is a word of bits.
    """

    semiring: sr.Semiring
    dtypes: tuple[str, ...]
    isa: str | None = None
    fma_add: bool | None = None
    bits: int = 1

    def loop(self) -> Loop:
        """The fastest of the compiled loops, with as many turns as fill `_SECONDS`."""
        target = host(self.isa)
        if self.fma_add is not None:
            target = replace(target, fma_add=self.fma_add)
        rep = represent(self.semiring, tuple(map(np.dtype, self.dtypes)), order_keys=target.order_keys)
        loops = [Loop(rep, target, sums, self.bits) for sums in _SUMS if sums * len(rep.inner) < target.registers]
        trials = alternate({str(i): loop.run for i, loop in enumerate(loops)}, 5, patience=1).seconds
        steps, best = max((loop.steps() / min(trials[str(i)]), i) for i, loop in enumerate(loops))
        loops[best].turns = max(1, int(loops[best].turns * _SECONDS * steps / loops[best].steps()))
        return loops[best]


class Loop:
    """A compiled limit loop.

    Attributes
    ----------
    turns : int
        How often it goes round in a run.
    """

    def __init__(self, rep: Representation, target: Target, sums: int, bits: int) -> None:
        self._rep, self._target, self._sums, self._bits = rep, target, sums, bits
        self._width, self._repeats = choose_tile(rep, target).width, max(1, _UNROLLED // sums)
        self._arguments = KernelArguments(len(rep.outer))
        library = compile_library(("limit", rep, self._width, sums, self._repeats), target, lambda: link([self._emit()]))
        self._function = library.function("limit")
        self.turns = 2000

    def run(self, threads: int = 1) -> None:
        """Go round `turns` times on each thread."""
        run(lambda _, slot: self._once(), range(threads), threads)

    def steps(self, threads: int = 1) -> int:
        """Semiring steps of a run."""
        return self.turns * self._repeats * self._sums * self._width * self._bits * threads

    def _once(self) -> None:
        words = array("q", [0] * len(self._arguments.index))
        place = self._arguments.index
        words[place["k"]], words[place["one_f4"]], words[place["one_f8"]] = self.turns, 0x3F800000, 0x3FF0000000000000
        operands = [np.full((2, 64), 0.75 if s.kind == "f" else 5, dtype=f"{s.kind}{s.bytes}") for s in self._rep.inner]
        results = [np.empty(self._sums * self._width, dtype=x.dtype) for x in operands]
        for c, (x, result) in enumerate(zip(operands, results, strict=True)):
            for name, address in (("A", x[0].ctypes.data), ("B", x[1].ctypes.data), ("C", result.ctypes.data)):
                words[place[name, c]] = address
        self._function(words)

    def _emit(self) -> Emitter:
        """``limit(args)``: k times, every sum ← sum ⊕ a ⊗ b."""
        em, inner, width = Emitter("limit", ENTRY), self._rep.inner, self._width
        ones = self._arguments.ones(em, set(inner), width) if self._target.fma_add else None
        low = Lowering(em, self._target, width, ones=ones, infinities=self._rep.inner_infinities)
        a, b = ([em.load(s.vector(width), self._arguments.pointer(em, (name, c)), s.bytes) for c, s in enumerate(inner)] for name in "AB")
        zero = [s.constant(z, width) for s, z in zip(inner, self._rep.inner_zero, strict=True)]
        parts = len(inner)

        def turn(_: str, values: list[str]) -> list[str]:
            operand, sums = values[:parts], values[parts:]
            for q in [*range(0, self._sums * parts, parts)] * self._repeats:
                # The operand passes through an empty instruction, so that no product can be taken out of the loop or shared.
                operand = [self._opaque(em, s, x) for s, x in zip(inner, operand, strict=True)]
                sums[q : q + parts] = self._step(low, sums[q : q + parts], operand, b)
            return [*operand, *sums]

        carried = [(s.vector(width), x) for s, x in zip(inner, a, strict=True)]
        carried += [(s.vector(width), z) for _ in range(self._sums) for s, z in zip(inner, zero, strict=True)]
        last = em.loop(0, self._arguments.load(em, "k"), 1, turn, carried)[parts:]
        results = [self._arguments.pointer(em, ("C", c)) for c in range(parts)]
        for q, value in enumerate(last):
            scalar = inner[q % parts]
            em.store(scalar.vector(width), value, em.at(scalar.ir, results[q % parts], q // parts * width), scalar.bytes)
        em.line("ret void")
        return em

    def _step(self, low: Lowering, total: list[str], a: list[str], b: list[str]) -> list[str]:
        """total ⊕ a ⊗ b, as the micro-kernel computes it."""
        rep = self._rep
        x, y, z = ([Value(v, s) for v, s in zip(names, rep.inner, strict=True)] for names in (total, a, b))
        if len(x) == 1:
            fused = low.multiply_accumulate(rep.inner_add[0], rep.inner_mul[0], x[0], y[0], z[0])
            if fused is not None:
                return [fused]
        product = low.evaluate(rep.inner_mul, y, z, rep.inner)
        with low.plain_sums():
            return [v.name for v in low.evaluate(rep.inner_add, x, product, rep.inner)]

    def _opaque(self, em: Emitter, scalar: Scalar, value: str) -> str:
        """`value`, which the optimiser has to take for another one; no instruction."""
        register = {"avx512": "v", "neon": "w"}.get(self._target.isa, "x")
        ir = scalar.vector(self._width)
        return em.let(f'call {ir} asm "", "={register},0"({ir} {value})')


LIMITS = {
    "f32 min-plus, add as FMA": Limit(sr.MIN_PLUS, ("f4",)),
    "f32 min-plus, add as add": Limit(sr.MIN_PLUS, ("f4",), fma_add=False),
    "f64 min-plus": Limit(sr.MIN_PLUS, ("f8",)),
    "i32 min-plus": Limit(sr.MIN_PLUS, ("i4",)),
    "i16 min-plus": Limit(sr.MIN_PLUS, ("i2",)),
    "i64 min-plus": Limit(sr.MIN_PLUS, ("i8",)),
    "f32 max-min (int32 keys)": Limit(sr.MAX_MIN, ("f4",)),
    "f32 max-times": Limit(sr.MAX_TIMES, ("f4",)),
    "f32 plus-times": Limit(sr.PLUS_TIMES, ("f4",)),
    "f32 max(a+b-1, 0)": Limit(LUKASIEWICZ, ("f4",)),
    "f32 log": Limit(sr.LOG, ("f4",)),
    "f64 distance-count": Limit(sr.DISTANCE_COUNT, ("f8", "f8")),
    "boolean, 64 bits a word": Limit(sr.BITSET, ("u8",), bits=64),
    "AVX2: f32 min-plus, add as FMA": Limit(sr.MIN_PLUS, ("f4",), isa="avx2"),
    "AVX2: f32 min-plus, add as add": Limit(sr.MIN_PLUS, ("f4",), isa="avx2", fma_add=False),
    "AVX2: f64 min-plus": Limit(sr.MIN_PLUS, ("f8",), isa="avx2"),
    "AVX2: i32 min-plus": Limit(sr.MIN_PLUS, ("i4",), isa="avx2"),
    "AVX2: i16 min-plus": Limit(sr.MIN_PLUS, ("i2",), isa="avx2"),
    "AVX2: f32 max(a+b-1, 0)": Limit(LUKASIEWICZ, ("f4",), isa="avx2"),
}
"""The loops by name; those that this processor cannot run are left out when they are asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Register-resident limits, in 10⁹ steps/s")
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print(machine())
    rows, others = [], 0.0
    for name, limit in LIMITS.items():
        if options.only.lower() not in name.lower():
            continue
        try:
            loop = limit.loop()
        except sr.SemiringError as error:
            rows.append((name, str(error), "", ""))
            continue
        timings = alternate({str(threads): partial(loop.run, threads) for threads in (1, cores())}, options.repeats)
        one, all_ = (timings.rate(str(threads), loop.steps(threads)) for threads in (1, cores()))
        rows.append((name, f"{one:.1f}", f"{all_:.1f}", f"{all_ / one:.2f}"))
        others = max(others, timings.others)
    print_table(("G steps/s", "1 thread", f"{cores()} threads", "ratio"), rows, others)


if __name__ == "__main__":
    main()
