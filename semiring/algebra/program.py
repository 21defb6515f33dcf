"""The recorded operations of a semiring, and what they mean in a dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.elements import element
from semiring.algebra.errors import DTypeError
from semiring.algebra.expression import Expr, chooses_operand, nodes
from semiring.algebra.forks import cached_property

__all__ = ["ARITHMETIC", "BITWISE", "REAL", "Program"]

ARITHMETIC = {"add", "sub", "mul", "div", "floordiv", "mod", "neg", "abs"}
REAL = {"div", "exp", "expm1", "log", "log1p", "sqrt"}
BITWISE = {"and", "or", "xor", "invert", "shl", "shr"}


@dataclass(frozen=True)
class Program:
    """The recorded operations of a semiring: for each, one expression a component of its result.

    Attributes
    ----------
    add, mul : tuple of Expr
        a ⊕ b and a ⊗ b; operand 0 is a, operand 1 is b.
    star : tuple of Expr or None
        a*, of operand 0; where it does not exist its value means nothing.
    star_undefined : Expr
        Whether a* does not exist: where the callable raises ZeroDivisionError or DivergenceError, divides by 0, or gives NaN or an
        infinity that is no element.
    """

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr

    @cached_property
    def operations(self) -> frozenset[str]:
        """The operations that ⊕ and ⊗ use."""
        return frozenset(e.op for e in nodes(*self.add, *self.mul))

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The constants that ⊕ and ⊗ use."""
        return tuple(e.args[0] for e in nodes(*self.add, *self.mul) if e.op == "const")

    @cached_property
    def every_constant(self) -> tuple[Any, ...]:
        """The constants that ⊕, ⊗ and star use."""
        return self.constants + tuple(e.args[0] for e in nodes(*(self.star or ()), self.star_undefined) if e.op == "const")

    @cached_property
    def selects(self) -> bool:
        """Whether ⊕ is written so that it always gives one of its operands, like ``min``."""
        return len(self.add) == 1 and chooses_operand(self.add[0])

    def identities(
        self, zero: tuple[Any, ...], one: tuple[Any, ...], kinds: tuple[np.dtype[Any], ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """0 and 1 in dtypes, one for each component.

        Raises
        ------
        DTypeError
            Where they, a constant or an operation have no meaning there.
        """
        ordered = not self.operations & ARITHMETIC
        low = tuple(element(v, d, ordered=ordered) for v, d in zip(zero, kinds, strict=True))
        high = tuple(element(v, d, ordered=ordered) for v, d in zip(one, kinds, strict=True))
        if all(kind.kind in "iu" for kind in kinds):
            for value in self.constants:
                element(value, kinds[0], ordered=True)
        for value, kind in zip(zero + one, kinds + kinds, strict=True):
            if isinstance(value, bool) and kind.kind not in "bO":
                raise DTypeError("it works on truth values; use dtype bool")
        for only, refused, instead in (
            (REAL, "biu", "float32 or float64"),
            (BITWISE, "f", "bool or an integer dtype"),
            (ARITHMETIC, "b", "a dtype of numbers, or write the semiring with or and and (| and &)"),
        ):
            used = sorted(self.operations & only)
            # Structured elements may well use an operation on one component only; then each engine tells for itself.
            if used and all(kind.kind in refused for kind in kinds):
                lacking = "truth values lack" if kinds[0].kind == "b" else f"{kinds[0]} lacks"
                raise DTypeError(f"it uses {used[0]!r}, which {lacking}; use {instead}")
        return low, high
