"""How elements are held in device memory while they are multiplied.

Tropical integers, whose ∞ is the dtype's largest (smallest) value for the user, are clamped to half the range there, so that ∞ + ∞ does
not wrap and one instruction is a whole step. Truth values are bytes. All others are as the user has them.
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
from semiring.kernels.boolean import on_bytes
from semiring.kernels.cuda.steps import hoisted
from semiring.kernels.limits import absorbing, inner_infinity, tropical

__all__ = ["Representation", "represent"]


@dataclass(frozen=True)
class Representation:
    """The operations on the numbers that the kernels see.

    Attributes
    ----------
    add, mul : tuple of Expr
    star : tuple of Expr or None
    star_undefined : Expr
    dtypes : tuple of numpy.dtype
    zero, one : tuple
    infinities : tuple of int
        Integers that absorb sums.
    clamped : bool
        Whether these are tropical integers that are clamped to half the range.
    """

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr
    dtypes: tuple[np.dtype[Any], ...]
    zero: tuple[Any, ...]
    one: tuple[Any, ...]
    infinities: tuple[int, ...] = ()
    clamped: bool = False

    @property
    def registers(self) -> tuple[np.dtype[Any], ...]:
        """The types of components outside device memory, where small integers have a register each all the same."""
        return tuple(d if d.itemsize >= 4 else np.dtype(np.int32) for d in self.dtypes)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the components lie in an element of shared memory, as C++ lays them out."""
        offsets, end = [], 0
        for d in self.registers:
            offsets.append(-(-end // d.itemsize) * d.itemsize)
            end = offsets[-1] + d.itemsize
        return tuple(offsets)

    @property
    def same_registers(self) -> bool:
        """Whether elements are held in registers as they are in memory."""
        return self.registers == self.dtypes

    @cached_property
    def size(self) -> int:
        """Bytes of an element in shared memory."""
        size = sum(d.itemsize for d in self.registers)
        return size if size & (size - 1) == 0 else max(16, 1 << (size - 1).bit_length())

    @cached_property
    def has_series(self) -> bool:
        """Whether a step is many instructions, as exponentials and logarithms are."""
        return bool(REAL & {e.op for e in nodes(*self.add, *self.mul)})

    @cached_property
    def hoisted(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """⊗ as a product without a witness computes it in the loop, and its epilogue, which it applies to the sums; see `steps.hoisted`."""
        if len(self.dtypes) != 1:
            return self.mul, tuple(var(0, c) for c, _ in enumerate(self.mul))
        mul, whole = hoisted(self.add[0], self.mul[0], self.zero[0], self.dtypes[0])
        return (mul,), (whole,)

    def is_heavy(self, *, witness: bool) -> bool:
        """Whether ⊕ and ⊗ are more than an operation each in a product."""
        mul = self.mul if witness else self.hoisted[0]
        return sum(e.op not in ("var", "const") for e in nodes(*self.add, *mul)) > 2 * len(self.dtypes)

    @cached_property
    def keeps_bits_ordered(self) -> bool:
        """Whether these are floats of which products without a sign (or −∞) have none again, so that they can be compared as integers."""
        if self.dtypes != (np.dtype(np.float32),) or self.add[0].op not in ("min", "max"):
            return False
        used = {e.op for e in nodes(*self.add, *self.mul)}
        return used <= ({"var", "add", "min", "max"} if -math.inf in (*self.zero, *self.one) else {"var", "add", "mul", "min", "max"})


@functools.lru_cache(maxsize=256)
def represent(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> Representation:
    """The representation of `semiring` in `dtypes`."""
    program = semiring.program
    # −0.0 sorts below −∞ among the integers of their bits.
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
