"""The program of a semiring: ⊕, ⊗ and star as recorded, their meaning in a dtype, and the comparison with the callables."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra.agreement import FAR, around, difference
from semiring.algebra.carrier import Carrier
from semiring.algebra.elements import Array, element
from semiring.algebra.exponential import exponential_scale
from semiring.algebra.expression import ARITHMETIC, BITWISE, REAL, Expr, chooses_operand, const, fold, node, nodes, var, where
from semiring.algebra.modular import modulus
from semiring.algebra.tracing import Trace
from semiring.common.errors import DTypeError
from semiring.common.forks import cached_property

__all__ = ["Program", "compose", "disagreements"]


@dataclass(frozen=True)
class Program:
    """The recorded operations of a semiring: one expression a component for a ⊕ b, a ⊗ b and perhaps a*.

    Operand 0 is a, operand 1 is b. `star` is meaningless under the condition `star_undefined`: the callable raises ZeroDivisionError or
    DivergenceError, divides by 0, or gives NaN or an infinity outside the carrier; or the operand is such an infinity, because a pivot
    overflowed.
    """

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr

    @cached_property
    def operations(self) -> frozenset[str]:
        """The operations in ⊕ and ⊗."""
        return frozenset(e.op for e in nodes(*self.add, *self.mul))

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The constants in ⊕ and ⊗."""
        return tuple(e.args[0] for e in nodes(*self.add, *self.mul) if e.op == "const")

    @cached_property
    def every_constant(self) -> tuple[Any, ...]:
        """The constants in ⊕, ⊗ and star."""
        return self.constants + tuple(e.args[0] for e in nodes(*(self.star or ()), self.star_undefined) if e.op == "const")

    @cached_property
    def selects(self) -> bool:
        """Return True if the form of ⊕ always gives one of its operands, like ``min``."""
        return len(self.add) == 1 and chooses_operand(self.add[0])

    @cached_property
    def exponential(self) -> Fraction | None:
        """The s for which ⊕ is log(e^{sa} + e^{sb}) / s, if ⊗ is a + b."""
        return exponential_scale(self.add, self.mul)

    @cached_property
    def modulus(self) -> int | None:
        """The p for which ⊕ is ``(a + b) % p`` and ⊗ is ``a * b % p``."""
        return modulus(self.add, self.mul)

    def identities(
        self, zero: tuple[Any, ...], one: tuple[Any, ...], kinds: tuple[np.dtype[Any], ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return 0 and 1 in dtypes, one for each component; DTypeError if an identity, a constant or an operation has no meaning there."""
        ordered = not self.operations & ARITHMETIC
        low = tuple(element(v, d, ordered=ordered) for v, d in zip(zero, kinds, strict=True))
        high = tuple(element(v, d, ordered=ordered) for v, d in zip(one, kinds, strict=True))
        if all(kind.kind in "iu" for kind in kinds):
            for value in self.constants:
                element(value, kinds[0], ordered=True)
        for value, kind in zip(zero + one, kinds + kinds, strict=True):
            if isinstance(value, bool) and kind.kind not in "bO":
                raise DTypeError("it works on truth values; use dtype bool")
        if self.modulus is not None and any(kind.kind == "f" for kind in kinds):
            raise DTypeError("numbers modulo p are integers; use an integer dtype, such as int64")
        for only, refused, instead in (
            (REAL, "biu", "float32 or float64"),
            (BITWISE, "f", "bool or an integer dtype"),
            (ARITHMETIC, "b", "a dtype of numbers, or write the semiring with or and and (| and &)"),
        ):
            used = sorted(self.operations & only)
            # Structured elements may use an operation on one component only; then each engine decides.
            if used and all(kind.kind in refused for kind in kinds):
                lacking = "truth values lack" if kinds[0].kind == "b" else f"{kinds[0]} lacks"
                raise DTypeError(f"it uses {used[0]!r}, which {lacking}; use {instead}")
        return low, high


def compose(traces: Mapping[str, Trace], carrier: Carrier, *, truth_values: bool) -> Program:
    """Compose the traces of ``add``, ``mul`` and perhaps ``star``.

    a* is undefined where its callable is, where a* is NaN, and where a or a* is an infinity outside the carrier.
    """
    add, mul, star = traces["add"], traces["mul"], traces.get("star")
    if star is None:
        return Program(add.results, mul.results, None, const(False))
    undefined = star.undefined
    if not truth_values:
        undefined = _beyond([var(0, c) for c in range(len(star.results))], undefined, carrier)
        undefined = _beyond(star.results, undefined, carrier)
    return Program(add.results, mul.results, star.results, undefined)


def _beyond(element: Sequence[Expr], undefined: Expr, carrier: Carrier) -> Expr:
    """Build the condition `undefined` or: a component of an element is NaN, or an infinity outside the carrier."""
    joint = carrier.joint
    inside = None
    if joint is not None and joint.recorded is not None:  # the condition on this element
        (inside,) = fold([joint.recorded], element, (), const, lambda op, args: where(*args) if op == "where" else node(op, *args))
    for c, result in enumerate(element):
        undefined = where(node("ne", result, result), const(True), undefined)
        for infinity, beyond in ((math.inf, "gt"), (-math.inf, "lt")):
            # The sign is compared too, because 0 stands for −∞ in unsigned dtypes.
            infinite = where(node(beyond, result, const(0)), node("eq", result, const(infinity)), const(False))
            if inside is not None:
                undefined = where(where(infinite, inside, const(True)), undefined, const(True))
            elif infinity not in carrier.infinite(c):
                undefined = where(infinite, const(True), undefined)
    return undefined


_BASIC = (0, 1, 2, -1, 0.5, 3, -2, 7, -0.5, 5, -3, 0.25, 10, 4, 6)  # simple numbers, for the pairs of eight elements

_FURTHER = (12.3, 57, -87.1, 1234.567, 0.001, 1 / 3, 40000, 65537, -123456, 0.9, 2.75, 1e-6)
"""Larger and less simple numbers, for a few pairs."""

_MARKED = 24  # the number of tried elements near constants
_PAIRS = 48  # the number of tried pairs of further numbers
_PYTHONS = min, max, operator.and_, operator.or_, operator.xor  # Python's operations that elements of every dtype have
_INTEGERS = 1 << 31  # the bound on tried integers: products of two fit int64


def disagreements(
    program: Program, callables: Mapping[str, Callable[..., Any]], zero: tuple[Any, ...], one: tuple[Any, ...], carrier: Carrier
) -> dict[str, str]:
    """Find the first difference between each recorded ``add``, ``mul`` or ``star`` and its callable.

    The trials are all pairs of eight elements, pairs with each recorded constant and its neighbours, and some pairs of further numbers.
    They run as bool, int and float of Python and of NumPy, if the program has a meaning in the dtype. Python's own operations need no
    trial.
    """
    found: dict[str, str] = {}
    for name in ("bool", "int64", "float64"):
        dtype = np.dtype(name)
        try:
            program.identities(zero, one, (dtype,) * len(zero))
        except DTypeError:
            continue
        exact = _PYTHONS if name == "bool" else (*_PYTHONS, operator.add, operator.mul)  # True + True is 2 in Python
        tried = [operation for operation, call in callables.items() if operation not in found and not any(call is own for own in exact)]
        if not tried:
            continue
        left, right = _pairs(program, zero, one, carrier, dtype)
        one_by_one = tuple(map(np.concatenate, zip(left, right, strict=True)))
        recorded = {
            "add": ("a ⊕ b", program.add, (left, right), None),
            "mul": ("a ⊗ b", program.mul, (left, right), None),
            "star": ("a*", program.star or (), (one_by_one,), program.star_undefined),
        }
        for operation in tried:
            text, results, operands, undefined = recorded[operation]
            differs = difference(callables[operation], results, operands, text=text, undefined=undefined, exists=carrier.admits)
            if differs is not None:
                found[operation] = differs
    return found


def _pairs(
    program: Program, zero: tuple[Any, ...], one: tuple[Any, ...], carrier: Carrier, dtype: np.dtype[Any]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Choose pairs of elements in a dtype: for both operands one array a component."""
    shifts = "shl" in program.operations
    constants = around(program.every_constant, 1 << 10 if shifts else FAR)
    pools = [_pool(part, constants, dtype) for part in carrier.parts]
    mixed = random.Random(0)

    def inside(element: tuple[Any, ...]) -> bool:
        try:
            return _fits(element, dtype) and carrier.contains(element if len(zero) > 1 else next(iter(element)))
        except Exception:  # a predicate may raise for some numbers
            return False

    def elements(values: list[list[Any]], most: int) -> list[tuple[Any, ...]]:
        """Choose elements from the product of some values."""
        every = [tuple(map(mixed.choice, values)) for _ in range(4 * most)] if len(values) > 1 else [(v,) for v in values[0]]
        return list(itertools.islice(filter(inside, dict.fromkeys(every)), most))

    own = [e for e in dict.fromkeys([zero, one]) if _fits(e, dtype)]
    basic = list(dict.fromkeys([*own, *elements([basic for basic, _, _ in pools], 12)]))[:8]
    marked = elements([near or basic for basic, near, _ in pools], _MARKED) if constants else []
    further = elements([[*basic, *more] for basic, _, more in pools], 24) if not shifts else []
    pairs = list(itertools.product(basic, basic))
    pairs += [pair for m in marked for e in (*basic[:4], m) for pair in ((m, e), (e, m))]
    pairs += [(mixed.choice(further), mixed.choice(further)) for _ in range(_PAIRS if further else 0)]

    def columns(side: int) -> tuple[Array, ...]:
        return tuple(np.array([pair[side][c] for pair in pairs], dtype=dtype) for c in range(len(zero)))

    return columns(0), columns(1)


def _pool(part: Any, constants: list[Any], dtype: np.dtype[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """List values to try for one component: simple values, values near constants, and others."""
    if dtype.kind == "b":
        return [False, True], [], []
    if isinstance(part, frozenset):
        members = list(itertools.islice((v for v in part if isinstance(v, int | float)), 32))
        return members[:8], [c for c in constants if c in part], members[8:]
    ends = [v for bound in (getattr(part, "low", None), getattr(part, "high", None)) if bound is not None for v in (bound, bound / 2)]
    return [*(v for v in ends if abs(v) <= FAR), *_BASIC], constants, list(_FURTHER)


def _fits(element: tuple[Any, ...], dtype: np.dtype[Any]) -> bool:
    """Return True if a dtype has the components; integers must be small."""
    if dtype.kind == "b":
        return all(isinstance(v, bool) for v in element)
    if dtype.kind == "i":
        return all(abs(v) < _INTEGERS and v == int(v) for v in element)
    return all(abs(v) <= FAR or math.isinf(v) for v in element)
