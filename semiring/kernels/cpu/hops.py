"""Sets of sources for the vertices of a graph, a bit for each, as a constant of loops: a set is a vector of words.

``SourceSets(1)`` has sets of 64 sources and notes levels, and ``SourceSets(8)`` has sets of 512. In Python a set is an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from semiring.kernels.cpu.emitter import I64, Emitter, Scalar
from semiring.kernels.cpu.loops import Words

if TYPE_CHECKING:
    from semiring.kernels.cpu.lowering import Value

__all__ = ["SourceSets"]

Levels = NDArray[np.uint16]

_LEVEL = Scalar("u", 2)


@dataclass(frozen=True)
class _Bits:
    """A set in a register."""

    name: str


@dataclass(frozen=True)
class SourceSets:
    """Operations on sets of 64 · `width` sources; arrays have `width` words for each vertex."""

    width: int

    @property
    def identity(self) -> object:
        """The key of the machine code."""
        return "source sets", self.width

    def emit(self, name: str, em: Emitter, args: Sequence[Any]) -> Any:
        """Emit an operation into a loop."""
        from semiring.kernels.cpu.lowering import Value  # only on a cache miss

        found = getattr(_Emitted(em, self.width), name)(*args)
        return Value(found, {"any": None, "count": I64}[name]) if isinstance(found, str) else found

    def empty(self) -> int:
        """Return the empty set."""
        return 0

    def single(self, i: int) -> int:
        """Return the set of source i."""
        return 1 << i

    def get(self, sets: Words, v: int) -> int:
        """Read the set of a vertex."""
        return sum([int(sets[self.width * v + k]) << 64 * k for k in range(self.width)])

    def put(self, sets: Words, v: int, some: int) -> None:
        """Write the set of a vertex."""
        for k in range(self.width):
            sets[self.width * v + k] = some >> 64 * k & (1 << 64) - 1

    def union(self, x: int, y: int) -> int:
        """Return x ∪ y."""
        return x | y

    def minus(self, x: int, y: int) -> int:
        """Return x ∖ y."""
        return x & ~y

    def where(self, condition: bool, x: int) -> int:
        """Return x or the empty set."""
        return x if condition else 0

    def any(self, x: int) -> bool:
        """Return True unless a set is empty."""
        return x != 0

    def count(self, x: int) -> int:
        """Return the number of sources in a set."""
        return x.bit_count()

    def note(self, levels: Levels, v: int, some: int, level: int) -> None:
        """Write the level of a vertex for some sources."""
        for i in range(64 * self.width):
            if some >> i & 1:
                levels[64 * self.width * v + i] = level

    def forget(self, levels: Levels, v: int) -> None:
        """Write level 0 of a vertex for all sources."""
        self.note(levels, v, -1, 0)


class _Emitted:
    """The operations of `SourceSets` as LLVM IR."""

    def __init__(self, em: Emitter, width: int) -> None:
        self.em, self.width, self.ir = em, width, I64.vector(width)
        self.levels = _LEVEL.vector(64 * width)

    def empty(self) -> _Bits:
        return _Bits(I64.constant(0, self.width))

    def single(self, i: Value) -> _Bits:
        em = self.em
        bit = em.let(f"shl i64 1, {em.let(f'and i64 {i.name}, 63')}")
        if self.width == 1:
            return _Bits(bit)
        return self._bits(f"insertelement {self.ir} zeroinitializer, i64 {bit}, i64 {em.let(f'lshr i64 {i.name}, 6')}")

    def get(self, sets: Any, v: Value) -> _Bits:
        return _Bits(self.em.load(self.ir, self._place(self.ir, sets, v), 8))

    def put(self, sets: Any, v: Value, some: _Bits) -> None:
        self.em.store(self.ir, some.name, self._place(self.ir, sets, v), 8)

    def union(self, x: _Bits, y: _Bits) -> _Bits:
        return self._bits(f"or {self.ir} {x.name}, {y.name}")

    def minus(self, x: _Bits, y: _Bits) -> _Bits:
        return self._bits(f"and {self.ir} {x.name}, {self.em.let(f'xor {self.ir} {y.name}, {I64.constant(-1, self.width)}')}")

    def where(self, condition: Value, x: _Bits) -> _Bits:
        return self._bits(f"select i1 {condition.name}, {self.ir} {x.name}, {self.ir} {I64.constant(0, self.width)}")

    def any(self, x: _Bits) -> str:
        em, width = self.em, self.width
        if width == 1:
            return em.let(f"icmp ne i64 {x.name}, 0")
        words = em.let(f"icmp ne {self.ir} {x.name}, zeroinitializer")
        return em.let(f"icmp ne i{width} {em.let(f'bitcast <{width} x i1> {words} to i{width}')}, 0")

    def count(self, x: _Bits) -> str:
        suffix = I64.overload(self.width)
        each = self.em.call(f"ctpop.{suffix}", self.ir, (self.ir, x.name))
        return each if self.width == 1 else self.em.call(f"vector.reduce.add.{suffix}", "i64", (self.ir, each))

    def note(self, levels: Any, v: Value, some: _Bits, level: Value) -> None:
        em, lanes, place = self.em, 64 * self.width, self._place(self.levels, levels, v)
        new = em.splat(em.let(f"trunc i64 {level.name} to {_LEVEL.ir}"), _LEVEL, lanes)
        there = em.let(f"bitcast {self.ir} {some.name} to <{lanes} x i1>")
        old = em.load(self.levels, place, 2)
        em.store(self.levels, em.let(f"select <{lanes} x i1> {there}, {self.levels} {new}, {self.levels} {old}"), place, 2)

    def forget(self, levels: Any, v: Value) -> None:
        self.em.store(self.levels, "zeroinitializer", self._place(self.levels, levels, v), 2)

    def _place(self, ir: str, array: Any, v: Value) -> str:
        return self.em.at(ir, array.pointers[0], v.name)

    def _bits(self, text: str) -> _Bits:
        return _Bits(self.em.let(text))
