"""The argument array of a generated kernel: one address of an array of 64-bit words.

A named tuple names and orders the words. The caller fills one in (`pack`); the generator reads the words by name (`Arguments`).
"""

from __future__ import annotations

import functools
from array import array
from collections import namedtuple
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.emitter import I32, Emitter, Matrix, Scalar
from semiring.kernels.cpu.representation import Representation

__all__ = [
    "STATUS", "Arguments", "Array", "KernelArguments", "KernelWords", "MatrixWords", "ScanArrays", "ScanWords", "SequenceArrays",
    "SequenceWords", "kernel_name", "pack", "scratch_bytes",
]  # fmt: skip

Array = str | tuple[str, int]
"""A matrix argument: (name, component), or "via" for the witnesses."""


@functools.cache
def kernel_name(base: str, **options: bool) -> str:
    """Return the name of a function: a base, and the options that are true."""
    return "_".join([base, *(option for option, given in options.items() if given)])


class Arguments:
    """The words of a kernel's arguments, by name, from a named tuple `words`.

    The named tuple `each`, repeated for each component, follows; its words are named (name, component).
    """

    def __init__(self, words: Any, each: Any = None, components: int = 0, start: str = "%args") -> None:
        self._words, self._each, self._components = words, each, range(components)
        names: list[Array] = [*words._fields, *((name, c) for c in self._components for name in each._fields)]
        self.index, self.start = {name: i for i, name in enumerate(names)}, start

    def place(self, em: Emitter, name: Array) -> str:
        """Return the address of a word."""
        return em.at("i64", self.start, self.index[name])

    def load(self, em: Emitter, name: Array) -> str:
        """Load a word as i64."""
        return em.load("i64", self.place(em, name), 8)

    def pointer(self, em: Emitter, name: Array) -> str:
        """Load a word as an address."""
        return em.load("ptr", self.place(em, name), 8)

    def words(self, em: Emitter, numbers: str) -> dict[str, str]:
        """Load the words by name: those among `numbers` as i64, others as addresses."""
        plain = numbers.split()
        return {name: (self.load if name in plain else self.pointer)(em, name) for name in self._words._fields}

    def addresses(self, em: Emitter) -> dict[str, list[str]]:
        """Load the words of all components by name."""
        return {name: [self.pointer(em, (name, c)) for c in self._components] for name in self._each._fields}

    def threshold(self, em: Emitter, rep: Representation, width: int) -> str:
        """Return a vector of the threshold with which `Representation.decode` compares tropical integers; empty for others."""
        return em.splat_word(self.load(em, "threshold"), rep.inner[0], width) if rep.kind == "clamped" else ""


def pack(words: Sequence[int], each: Sequence[Sequence[int]] = ()) -> array[int]:
    """Pack a named tuple of words, and one for each component, into the argument array."""
    return array("q", [*words, *chain.from_iterable(each)])


class KernelWords(NamedTuple):
    """The words of a product or a pivot block that belong to no matrix (see `MatrixWords`); a kernel reads only some.

    For a stack, the words describe the first matrix. Matrices `start` … `stop` − 1 are computed, counted along the leading axes, and an
    operand may be shared by all. A product with a vector sets `beyond` if a number is out of bounds (see `vector`).
    """

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
    wide: int = 0
    status: int = -1
    packed_c: int = 0
    start: int = 0
    stop: int = 1
    axes: int = 0
    shared_a: int = 0
    shared_b: int = 0
    origin: int = 0
    least: int = 0
    most: int = -1
    beyond: int = 0


STATUS = KernelWords._fields.index("status")
"""The position of the word in which a kernel of a pivot block returns its divergent pivot; −1 if none."""

MatrixWords = namedtuple("MatrixWords", "A A_rows A_columns B B_rows B_columns C C_rows C_columns")
"""The words of one component: each matrix's address, and its strides in elements between rows and between columns."""


class KernelArguments(Arguments):
    """The arguments of a product or a pivot block: `KernelWords`, and `MatrixWords` for each component."""

    def __init__(self, components: int) -> None:
        super().__init__(KernelWords, MatrixWords, components)

    def matrices(self, em: Emitter, name: str, scalars: Sequence[Scalar], axis: str = "rows") -> list[Matrix]:
        """Return a matrix of each component, or with axis "columns" the transposed one."""
        return [(s, self.pointer(em, (name, c)), self.load(em, (f"{name}_{axis}", c))) for c, s in enumerate(scalars)]

    def via(self, em: Emitter) -> Matrix:
        """Return the matrix of witnesses."""
        return I32, self.pointer(em, "via"), self.load(em, "via_rows")

    def ones(self, em: Emitter, scalars: set[Scalar], width: int) -> dict[Scalar, str]:
        """Return vectors of 1.0 that are known only at run time, so that LLVM does not fold fma(x, 1, y) back to a sum."""
        found = {}
        for scalar in sorted(s for s in scalars if s.kind == "f"):
            one = em.load(scalar.ir, self.place(em, f"one_f{scalar.bytes}"), scalar.bytes)
            found[scalar] = em.splat(one, scalar, width)
        return found


# Scans.


ScanWords = namedtuple("ScanWords", "first last table states scratch threshold witness_step state_step")
"""The words of a scan that belong to no array."""

ScanArrays = namedtuple("ScanArrays", "matrix_step matrix_terms matrix_sums weight_step weight_stride initial_stride value_step added_step")
"""The words of one component, strides in elements: `matrix_terms` leads to the next term of a sum, `matrix_sums` to the next sum."""

SequenceWords = namedtuple("SequenceWords", "steps witness states")
"""The words of a row of the table: the number of steps, and the addresses of the witness and of the states at v₀."""

SequenceArrays = namedtuple("SequenceArrays", "matrix weight initial value added")
"""The addresses of one component: the first step's matrix and weights, the initial vector, v₀ in the result, and u₀."""


def scratch_bytes(rep: Representation, states: int, width: int) -> int:
    """Return the scratch bytes of a function on vectors of `states` elements, in registers of `width` lanes."""
    lanes = -(-states // width) * width
    inner, outer = sum(s.bytes for s in rep.inner), sum(s.bytes for s in rep.outer)
    arrays = 5 * len(rep.outer) + 1
    return lanes * (states * inner + inner + 3 * outer + I32.bytes) + arrays * CACHE_LINE
