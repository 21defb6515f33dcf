"""Parts of functions emitted as LLVM IR: arguments by name, mutable integers, and bits of words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, Emitter

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
    """A function of one `NamedTuple` of `words`: addresses, except for the `numbers`."""

    def __init__(self, name: str, words: Any, numbers: str) -> None:
        self.em = Emitter(name, ENTRY)
        self._words = Arguments(words).words(self.em, numbers)

    def __getitem__(self, word: str) -> str:
        return self._words[word]

    def done(self) -> Emitter:
        """Finish the function and return it."""
        return self.em.done()
