"""Writing a loop over arrays as LLVM IR: arguments, elements of arrays and fields of records by their names.

What walks through graphs vertex by vertex has little to do with vectors and tiles: it reads and writes single numbers. Integers are i64 in
registers, however narrow they are in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar, scalar_type

__all__ = ["F64", "Body", "Variable"]

F64 = Scalar("f", 8)


class Variable:
    """An i64 that changes; made outside of loops, it becomes a register."""

    def __init__(self, em: Emitter, value: int = 0) -> None:
        self._em, self._place = em, em.variable(value)

    def get(self) -> str:
        """What it is."""
        return self._em.load("i64", self._place, 8)

    def set(self, value: str | int) -> None:
        """Make it something else."""
        self._em.store("i64", str(value), self._place, 8)

    def add(self, value: str | int) -> None:
        """Add to it."""
        self.set(self._em.add(self.get(), value))


class Body:
    """A function of one `NamedTuple` of words, most of which are addresses of arrays.

    Parameters
    ----------
    name : str
    words : type
    numbers : str
        The words that are no addresses.
    arrays : dtype
        By the names of arrays what their elements are; records have fields.
    """

    def __init__(self, name: str, words: Any, numbers: str, **arrays: Any) -> None:
        self.em, self.arguments = Emitter(name, ENTRY), Arguments(words)
        plain = numbers.split()
        self._words = {f: (self.arguments.load if f in plain else self.arguments.pointer)(self.em, f) for f in words._fields}
        self._dtypes = {array: np.dtype(dtype) for array, dtype in arrays.items()}

    def __getitem__(self, word: str) -> str:
        """A word."""
        return self._words[word]

    def get(self, array: str, i: str | int, field: str | None = None) -> str:
        """An element of an array, or a field of it."""
        scalar, place = self._place(array, i, field)
        value = self.em.load(scalar.ir, place, scalar.bytes)
        return self.em.let(f"sext {scalar.ir} {value} to i64") if scalar.kind == "i" and scalar != I64 else value

    def put(self, array: str, i: str | int, value: str | int, field: str | None = None) -> None:
        """Write it."""
        scalar, place = self._place(array, i, field)
        if scalar.kind == "i" and scalar != I64 and isinstance(value, str):
            value = self.em.let(f"trunc i64 {value} to {scalar.ir}")
        self.em.store(scalar.ir, str(value), place, scalar.bytes)

    def prefetch(self, array: str, i: str) -> None:
        """Ask for an element that will be read and written."""
        self.em.prefetch(self.em.at(f"[{self._dtypes[array].itemsize} x i8]", self._words[array], i), write=True)

    def _place(self, array: str, i: str | int, field: str | None) -> tuple[Scalar, str]:
        """The type and the address of an element or a field."""
        dtype, pointer = self._dtypes[array], self._words[array]
        if field is None:
            scalar = scalar_type(dtype)
            return scalar, self.em.at(scalar.ir, pointer, i)
        fields: Any = dtype.fields
        part, offset = fields[field][:2]
        return scalar_type(part), self.em.at("i8", self.em.at(f"[{dtype.itemsize} x i8]", pointer, i), offset)

    def done(self) -> Emitter:
        """The function."""
        self.em.line("ret void")
        return self.em

    # Arithmetic and comparisons.

    def f(self, operation: str, x: str, y: str) -> str:
        """Of two float64: fadd, fsub, fmul or fdiv."""
        return self.em.let(f"{operation} double {x}, {y}")

    def less(self, x: str, y: str) -> str:
        """Whether a float64 is less than another."""
        return self.em.let(f"fcmp olt double {x}, {y}")

    def is_(self, relation: str, x: str | int, y: str | int) -> str:
        """Whether integers stand in a relation: eq, ne, slt, …."""
        return self.em.let(f"icmp {relation} i64 {x}, {y}")

    def both(self, x: str, y: str) -> str:
        """Whether two conditions hold."""
        return self.em.let(f"and i1 {x}, {y}")

    def either(self, x: str, y: str) -> str:
        """Whether one of two conditions holds."""
        return self.em.let(f"or i1 {x}, {y}")

    def select(self, condition: str, x: str, y: str) -> str:
        """One of two float64."""
        return self.em.let(f"select i1 {condition}, double {x}, double {y}")

    def as_float(self, x: str) -> str:
        """An integer as float64."""
        return self.em.let(f"sitofp i64 {x} to double")
