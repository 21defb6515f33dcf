"""The form of elements in device memory during products.

Tropical integers, whose ∞ is the dtype's largest (smallest) value for the user, are clamped to half the range: ∞ + ∞ then does not wrap,
and one instruction is a whole step. Truth values are bytes. All other elements stay as they are.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import REAL, Expr, nodes, var
from semiring.common.forks import cached_property
from semiring.kernels.cuda.steps import hoisted
from semiring.kernels.limits import absorbing, inner_infinity, tropical
from semiring.kernels.operations import on_bytes

__all__ = ["Representation", "represent"]


@dataclass(frozen=True)
class Representation:
    """The operations on numbers as kernels see them."""

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr
    dtypes: tuple[np.dtype[Any], ...]
    zero: tuple[Any, ...]
    one: tuple[Any, ...]
    infinities: tuple[int, ...] = ()  # integers that absorb sums
    clamped: bool = False  # tropical integers, clamped to half the range

    @property
    def registers(self) -> tuple[np.dtype[Any], ...]:
        """Types of components in registers: small integers take a register each."""
        return tuple(d if d.itemsize >= 4 else np.dtype(np.int32) for d in self.dtypes)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets of the components within an element in shared memory, as C++ lays them out."""
        offsets, end = [], 0
        for d in self.registers:
            offsets.append(-(-end // d.itemsize) * d.itemsize)
            end = offsets[-1] + d.itemsize
        return tuple(offsets)

    @property
    def same_registers(self) -> bool:
        """True if elements have the same form in registers as in memory."""
        return self.registers == self.dtypes

    @cached_property
    def size(self) -> int:
        """Bytes of an element in shared memory."""
        size = sum(d.itemsize for d in self.registers)
        return size if size & (size - 1) == 0 else max(16, 1 << (size - 1).bit_length())

    @cached_property
    def has_series(self) -> bool:
        """True if a step is a series of instructions, such as an exponential or a logarithm."""
        return bool(REAL & {e.op for e in nodes(*self.add, *self.mul)})

    @cached_property
    def hoisted(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """⊗ in the loop of a product without a witness, and the epilogue, which is applied to the sums; see `steps.hoisted`."""
        if len(self.dtypes) != 1:
            return self.mul, tuple(var(0, c) for c, _ in enumerate(self.mul))
        mul, whole = hoisted(self.add[0], self.mul[0], self.zero[0], self.dtypes[0])
        return (mul,), (whole,)

    def is_heavy(self, *, witness: bool) -> bool:
        """Return True if ⊕ and ⊗ take more than one operation each in a product."""
        mul = self.mul if witness else self.hoisted[0]
        return sum(e.op not in ("var", "const") for e in nodes(*self.add, *mul)) > 2 * len(self.dtypes)

    @cached_property
    def keeps_bits_ordered(self) -> bool:
        """True if elements are floats, and products of non-negative floats (or −∞) are non-negative: comparable as integers."""
        if self.dtypes != (np.dtype(np.float32),) or self.add[0].op not in ("min", "max"):
            return False
        used = {e.op for e in nodes(*self.add, *self.mul)}
        return used <= ({"var", "add", "min", "max"} if -math.inf in (*self.zero, *self.one) else {"var", "add", "mul", "min", "max"})


@functools.lru_cache(maxsize=256)
def represent(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> Representation:
    """Return the representation of `semiring` in `dtypes`."""
    program = semiring.program
    # −0.0 is avoided: as an integer, its bits sort below those of −∞.
    zero, one = (
        tuple(x + 0.0 if d.kind == "f" else x for x, d in zip(identity, dtypes, strict=True)) for identity in semiring.identities(dtypes)
    )
    if dtypes == (np.dtype(bool),):
        add, mul = (on_bytes(program.add[0]),), (on_bytes(program.mul[0]),)
        return Representation(add, mul, program.star, program.star_undefined, (np.dtype(np.uint8),), (int(zero[0]),), (int(one[0]),))
    clamped = tropical(semiring, dtypes)
    return Representation(
        program.add,
        program.mul,
        program.star,
        program.star_undefined,
        dtypes,
        (inner_infinity(zero[0]),) if clamped else zero,
        one,
        () if clamped else absorbing(semiring, dtypes),
        clamped,
    )
