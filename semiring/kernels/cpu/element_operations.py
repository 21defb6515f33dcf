"""The operations of a semiring on single elements: inlined into compiled loops, or run by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.common.forks import cached_property
from semiring.kernels.cpu.kernels import identity, kernels_for
from semiring.kernels.cpu.lowering import Lowering, Value, improve
from semiring.kernels.operations import Operations, operations_for

__all__ = ["ElementOperations"]

Element = tuple[Any, ...]


class ElementOperations:
    """Operations on elements, tuples of numbers in the given dtypes.

    Attributes
    ----------
    zero, one : tuple
    loops : dict
        The compiled loops with these operations, released with the other kernels of the semiring.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.semiring, self.dtypes, self.selective = semiring, dtypes, is_selective(semiring, dtypes)
        kernels = kernels_for(semiring, dtypes)
        self.representation, self.target, self.loops = kernels.representation, kernels.target, kernels.loops
        self.zero, self.one = (
            tuple([d.type(x) for d, x in zip(dtypes, unit, strict=True)]) for unit in (self.representation.zero, self.representation.one)
        )

    @cached_property
    def zeros(self) -> tuple[Any, ...]:
        """The zero in arrays of one entry."""
        return tuple([np.array([x]) for x in self.zero])

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """The representation of elements and the operations, in full, for the key of machine code."""
        return identity(self.representation)

    @cached_property
    def _operations(self) -> Operations:
        return operations_for(self.semiring, self.dtypes)

    def add(self, x: Element, y: Element) -> Element:
        """Return x ⊕ y."""
        return self._computed(self._operations.add, x, y)

    def mul(self, x: Element, y: Element) -> Element:
        """Return x ⊗ y."""
        return self._computed(self._operations.mul, x, y)

    def _computed(self, operation: Callable[[Element, Element], Element], x: Element, y: Element) -> Element:
        with np.errstate(all="ignore"):
            return tuple([d.type(v) for d, v in zip(self.dtypes, operation(x, y), strict=True)])

    def better(self, new: Element, old: Element) -> bool:
        """Return True if old ⊕ new is not old."""
        with np.errstate(all="ignore"):
            both = list(zip(self._operations.add(old, new), old, strict=True))
        match self.representation.extremum:
            case "min":
                return bool(both[0][0] < both[0][1])
            case "max":
                return bool(both[0][0] > both[0][1])
        return any(bool(x != y) for x, y in both)

    def improves(self, offer: Element, old: Element) -> bool:
        """Return True if an offer is better, and finite: tropical integers are ∞ from half the range on, so that no sum of two wraps."""
        if self.representation.kind != "clamped" or not self.better(offer, old):
            return self.better(offer, old)
        half = self.representation.inner_zero[0]
        return bool(offer[0] < half if self.representation.extremum == "min" else offer[0] > half)

    def emit(self, name: str, em: Any, args: Sequence[Sequence[Value]]) -> Any:
        """Emit an operation into a loop."""
        rep = self.representation
        low = Lowering(em, self.target, 1, infinities=rep.inner_infinities)
        x, y = args
        if name in ("add", "mul"):
            return tuple(low.evaluate(rep.add if name == "add" else rep.mul, x, y, rep.outer))
        better = improve(low, rep.add, rep.outer, rep.extremum, y, x)[1]()
        if name == "improves" and rep.kind == "clamped":
            half = rep.outer[0].literal(rep.inner_zero[0])
            better = low.all_of([better, low.compare("lt" if rep.extremum == "min" else "gt", rep.outer[0], x[0].name, half)])
        return Value(better, None)
