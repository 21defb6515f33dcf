"""The arguments of a generated kernel: one array of 64-bit words, named and ordered here once for the generator and the caller."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from semiring.kernels.cpu.emitter import Emitter, Scalar

__all__ = ["STATUS", "Arguments", "Matrices", "Shared", "pack"]


class Shared(NamedTuple):
    """The words that do not belong to a matrix; a kernel reads those that it needs."""

    m: int
    n: int
    k: int
    first: int
    hold_a: int = 0
    hold_b: int = 0
    fresh: int = 0
    threshold: int = 0
    one_f4: int = 0x3F800000  # 1.0 as the bits of a float32
    one_f8: int = 0x3FF0000000000000
    packed_a: int = 0
    packed_b: int = 0
    via: int = 0
    via_rows: int = 0
    transposed: int = 0
    transposed_rows: int = 0
    status: int = -1


STATUS = Shared._fields.index("status")
"""Where a kernel of a pivot block puts its answer: the pivot that stopped it, or −1 as before."""


class Matrices(NamedTuple):
    """The words of one component: the address of each matrix, and its strides in elements from row to row and column to column."""

    A: int
    A_rows: int
    A_columns: int
    B: int
    B_rows: int
    B_columns: int
    C: int
    C_rows: int
    C_columns: int


def pack(shared: Shared, matrices: Sequence[Matrices]) -> array[int]:
    """The argument array: the shared words, then those of the components."""
    return array("q", (*shared, *chain.from_iterable(matrices)))


class Arguments:
    """Where the words of an argument array lie: one of `Shared` under its name, one of `Matrices` under (name, component)."""

    def __init__(self, components: int) -> None:
        names: list[str | tuple[str, int]] = [*Shared._fields, *((name, c) for c in range(components) for name in Matrices._fields)]
        self.index = {name: i for i, name in enumerate(names)}

    def load(self, em: Emitter, name: str | tuple[str, int]) -> str:
        """The word as i64."""
        return em.load("i64", em.at("i64", "%args", self.index[name]), 8)

    def pointer(self, em: Emitter, name: str | tuple[str, int]) -> str:
        """The word as an address."""
        return em.load("ptr", em.at("i64", "%args", self.index[name]), 8)

    def threshold(self, em: Emitter, scalar: Scalar, width: int) -> str:
        """A vector of what `Representation.decode` compares tropical integers with."""
        word = self.load(em, "threshold")
        if scalar.bytes < 8:
            word = em.let(f"trunc i64 {word} to {scalar.ir}")
        return em.splat(word, scalar, width)

    def ones(self, em: Emitter, scalars: set[Scalar], width: int) -> dict[Scalar, str]:
        """Vectors of 1.0 that are known only at run time, so that LLVM does not fold fma(x, 1, y) back to a sum."""
        found = {}
        for scalar in sorted(s for s in scalars if s.kind == "f"):
            one = em.load(scalar.ir, em.at("i64", "%args", self.index[f"one_f{scalar.bytes}"]), scalar.bytes)
            found[scalar] = em.splat(one, scalar, width)
        return found
