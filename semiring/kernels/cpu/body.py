"""Loops over arrays and graphs as LLVM IR: arguments, array elements and record fields by name.

Graph algorithms read and write single numbers, one vertex after another. Integers are i64 in registers, of any width in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar, scalar_type

__all__ = ["Body", "Variable", "bit_of", "each_bit"]


class Variable:
    """A mutable i64; created outside of loops, it becomes a register."""

    def __init__(self, em: Emitter, value: int = 0) -> None:
        self._em, self._place = em, em.variable(value)

    def get(self) -> str:
        """Read the value."""
        return self._em.load("i64", self._place, 8)

    def set(self, value: str | int) -> None:
        """Replace the value."""
        self._em.store("i64", str(value), self._place, 8)

    def add(self, value: str | int) -> None:
        """Add to the value."""
        self.set(self._em.add(self.get(), value))


def bit_of(em: Emitter, number: str) -> tuple[str, str]:
    """Return the number of the 64-bit word that holds a bit, and the word with only this bit."""
    return em.let(f"lshr i64 {number}, 6"), em.let(f"shl i64 1, {em.let(f'and i64 {number}, 63')}")


@contextmanager
def each_bit(em: Emitter, word: str) -> Iterator[str]:
    """Emit the body for the number of each set bit of a word, lowest first."""
    with em.turns([("i64", word)], lambda values: em.let(f"icmp ne i64 {values[0]}, 0")) as ((rest,), new):
        yield em.call("cttz.i64", "i64", ("i64", rest), ("i1", "true"))
        new.append(em.let(f"and i64 {rest}, {em.let(f'add i64 {rest}, -1')}"))


class Body:
    """A function of one `NamedTuple` of `words`: addresses of arrays, except for the `numbers`; `arrays` maps names to element types."""

    def __init__(self, name: str, words: Any, numbers: str, **arrays: Any) -> None:
        self.em, self.arguments = Emitter(name, ENTRY), Arguments(words)
        self._words = self.arguments.words(self.em, numbers)
        self._dtypes = {array: np.dtype(dtype) for array, dtype in arrays.items()}

    def __getitem__(self, word: str) -> str:
        return self._words[word]

    def get(self, array: str, i: str | int, field: str | None = None) -> str:
        """Read an element of an array, or one of its fields."""
        scalar, place = self._place(array, i, field)
        value = self.em.load(scalar.ir, place, scalar.bytes)
        return self.em.let(f"sext {scalar.ir} {value} to i64") if scalar.kind == "i" and scalar != I64 else value

    def put(self, array: str, i: str | int, value: str | int, field: str | None = None) -> None:
        """Write an element of an array, or one of its fields."""
        scalar, place = self._place(array, i, field)
        if scalar.kind == "i" and scalar != I64 and isinstance(value, str):
            value = self.em.let(f"trunc i64 {value} to {scalar.ir}")
        self.em.store(scalar.ir, str(value), place, scalar.bytes)

    def _place(self, array: str, i: str | int, field: str | None) -> tuple[Scalar, str]:
        """Return the type and the address of an element or a field."""
        dtype, pointer = self._dtypes[array], self._words[array]
        if field is None:
            scalar = scalar_type(dtype)
            return scalar, self.em.at(scalar.ir, pointer, i)
        fields: Any = dtype.fields
        part, offset = fields[field][:2]
        return scalar_type(part), self.em.at("i8", self.em.at(f"[{dtype.itemsize} x i8]", pointer, i), offset)

    def row(self, u: str) -> tuple[str, str]:
        """Read the ends of a row of the graph."""
        return self.get("starts", u), self.get("starts", self.em.add(u, 1))

    def is_given(self, array: str) -> str:
        """Test if an array has an address."""
        return self.em.let(f"icmp ne ptr {self._words[array]}, null")

    def answer(self, word: str, value: str) -> None:
        """Write a word of the arguments."""
        self.em.store("i64", value, self.arguments.place(self.em, word), 8)

    def done(self) -> Emitter:
        """Finish the function and return it."""
        return self.em.done()

    # Comparisons.

    def is_(self, relation: str, x: str | int, y: str | int) -> str:
        """Emit an integer comparison: eq, ne, slt, …."""
        return self.em.let(f"icmp {relation} i64 {x}, {y}")

    def both(self, x: str, y: str) -> str:
        """Emit x and y of two conditions."""
        return self.em.let(f"and i1 {x}, {y}")
