"""Forms and arguments of generated scans: names, words, and scratch memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.emitter import I32
from semiring.kernels.cpu.representation import Representation

__all__ = ["ScanArrays", "ScanForm", "ScanWords", "SequenceArrays", "SequenceWords", "scratch_bytes"]


@dataclass(frozen=True)
class ScanForm:
    """The options of a generated function."""

    backward: bool
    weighted: bool
    witness: bool

    @property
    def name(self) -> str:
        """The function's name."""
        words = ["scan", *("backward",) * self.backward, *("weighted",) * self.weighted, *("witness",) * self.witness]
        return "_".join(words)

    @classmethod
    def named(cls, name: str) -> ScanForm:
        """Return the form of the function called `name`."""
        return cls(*(word in name.split("_") for word in ("backward", "weighted", "witness")))


class ScanWords(NamedTuple):
    """Words of a scan that belong to no array."""

    first: int
    last: int
    table: int
    states: int
    scratch: int
    threshold: int
    witness_step: int
    state_step: int


class ScanArrays(NamedTuple):
    """Words of one component, strides in elements: `matrix_terms` leads to the next term of a sum, `matrix_sums` to the next sum."""

    matrix_step: int
    matrix_terms: int
    matrix_sums: int
    weight_step: int
    weight_stride: int
    initial_stride: int
    value_step: int


class SequenceWords(NamedTuple):
    """Words of a row of the table: the number of steps, and the addresses of the witness and of the states at v₀."""

    steps: int
    witness: int
    states: int


class SequenceArrays(NamedTuple):
    """Words of one component: addresses of the first step's matrix and weights, of the initial vector, and of v₀ in the result."""

    matrix: int
    weight: int
    initial: int
    value: int


def scratch_bytes(rep: Representation, states: int, width: int) -> int:
    """Return the scratch bytes of a function on vectors of `states` elements, in registers of `width` lanes."""
    lanes = -(-states // width) * width
    inner, outer = sum(s.bytes for s in rep.inner), sum(s.bytes for s in rep.outer)
    arrays = 4 * len(rep.outer) + 1
    return lanes * (states * inner + inner + 2 * outer + I32.bytes) + arrays * CACHE_LINE
