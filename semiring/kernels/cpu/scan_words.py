"""What is told to the functions of scans: their names, the words of their arguments, and the scratch memory that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.emitter import I32
from semiring.kernels.cpu.representation import Representation

__all__ = ["ScanArrays", "ScanForm", "ScanWords", "SequenceArrays", "SequenceWords", "scratch_bytes"]


@dataclass(frozen=True)
class ScanForm:
    """Which function is generated.

    Attributes
    ----------
    backward, weighted, witness : bool
    """

    backward: bool
    weighted: bool
    witness: bool

    @property
    def name(self) -> str:
        """Of the function."""
        words = ["scan", *("backward",) * self.backward, *("weighted",) * self.weighted, *("witness",) * self.witness]
        return "_".join(words)

    @classmethod
    def named(cls, name: str) -> ScanForm:
        """The form of the function of a name."""
        return cls(*(word in name.split("_") for word in ("backward", "weighted", "witness")))


class ScanWords(NamedTuple):
    """The words of a scan that belong to no array."""

    first: int
    last: int
    table: int
    states: int
    scratch: int
    threshold: int
    witness_step: int
    state_step: int


class ScanArrays(NamedTuple):
    """The words of one component: strides in elements, of a matrix from step to step, from term to term of a sum and from sum to sum."""

    matrix_step: int
    matrix_terms: int
    matrix_sums: int
    weight_step: int
    weight_stride: int
    initial_stride: int
    value_step: int


class SequenceWords(NamedTuple):
    """The words of a row of the table that belong to no component: steps, and where the witness and the states of v₀ are."""

    steps: int
    witness: int
    states: int


class SequenceArrays(NamedTuple):
    """Those of one component: where the matrix and the weights of the first step, the initial vector, and v₀ of the result are."""

    matrix: int
    weight: int
    initial: int
    value: int


def scratch_bytes(rep: Representation, states: int, width: int) -> int:
    """Bytes of scratch of a function on vectors of so many states, in registers of `width` lanes."""
    lanes = -(-states // width) * width
    inner, outer = sum(s.bytes for s in rep.inner), sum(s.bytes for s in rep.outer)
    arrays = 4 * len(rep.outer) + 1
    return lanes * (states * inner + inner + 2 * outer + I32.bytes) + arrays * CACHE_LINE
