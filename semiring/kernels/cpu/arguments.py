"""The arguments that a generated kernel is called with: one address, of an array of 64-bit words.

The fields of a `NamedTuple` name and order them, once for the caller, who fills one in (`pack`), and for the generator, which reads them
(`Arguments`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from semiring.kernels.cpu.emitter import Emitter, Scalar

__all__ = ["STATUS", "Arguments", "Array", "KernelArguments", "KernelWords", "MatrixWords", "pack"]

Array = str | tuple[str, int]
"""A matrix, by its name and its component, or the witnesses, "via"."""


class Arguments:
    """The words of a kernel's arguments: those of a `NamedTuple` by their names, and those of each component by (name, component).

    Parameters
    ----------
    words : type
        A `NamedTuple`.
    each : type, optional
        Another one, of which there is one for each component behind it.
    components : int
    """

    def __init__(self, words: Any, each: Any = None, components: int = 0) -> None:
        names: list[Array] = [*words._fields, *((name, c) for c in range(components) for name in each._fields)]
        self.index = {name: i for i, name in enumerate(names)}

    def place(self, em: Emitter, name: Array) -> str:
        """The address of a word."""
        return em.at("i64", "%args", self.index[name])

    def load(self, em: Emitter, name: Array) -> str:
        """The word as i64."""
        return em.load("i64", self.place(em, name), 8)

    def pointer(self, em: Emitter, name: Array) -> str:
        """The word as an address."""
        return em.load("ptr", self.place(em, name), 8)


def pack(words: Sequence[int], each: Sequence[Sequence[int]] = ()) -> array[int]:
    """The argument array: a `NamedTuple` of words, and one for each component."""
    return array("q", [*words, *chain.from_iterable(each)])


class KernelWords(NamedTuple):
    """The words of a product and of a pivot block that do not belong to a matrix; a kernel reads those that it needs.

    Of a stack these are the words of its first matrix, and the matrices from `start` to `stop` are wanted, counted along leading axes;
    an operand may be `shared` by all. A product with a vector answers whether numbers are `beyond` bounds, see `vector`.
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
    stop: int = 0
    axes: int = 0
    shared_a: int = 0
    shared_b: int = 0
    origin: int = 0
    least: int = 0
    most: int = -1
    beyond: int = 0


STATUS = KernelWords._fields.index("status")
"""Where a kernel of a pivot block puts its answer: the pivot that stopped it, or −1 as before."""


class MatrixWords(NamedTuple):
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


class KernelArguments(Arguments):
    """Those of a product and of a pivot block, which are `KernelWords`, and `MatrixWords` for each component."""

    def __init__(self, components: int) -> None:
        super().__init__(KernelWords, MatrixWords, components)

    def threshold(self, em: Emitter, scalar: Scalar, width: int) -> str:
        """A vector of what `Representation.decode` compares tropical integers with."""
        return em.splat_word(self.load(em, "threshold"), scalar, width)

    def ones(self, em: Emitter, scalars: set[Scalar], width: int) -> dict[Scalar, str]:
        """Vectors of 1.0 that are known only at run time, so that LLVM does not fold fma(x, 1, y) back to a sum."""
        found = {}
        for scalar in sorted(s for s in scalars if s.kind == "f"):
            one = em.load(scalar.ir, self.place(em, f"one_f{scalar.bytes}"), scalar.bytes)
            found[scalar] = em.splat(one, scalar, width)
        return found
