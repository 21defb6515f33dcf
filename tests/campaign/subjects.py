"""What a case is about: a semiring in some dtypes, its operations as formulas, and a way to draw its elements.

Elements are small dyadic numbers, so that whatever the formulas do with them is exact in the dtype and ties are frequent; formulas of
exponentials, logarithms, roots and quotients are the exception, and come with bounds of their rounding.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.formulas import Formula, lambda_text, of, operations, var

__all__ = [
    "FLOATS", "INF", "SIGNED", "UNSIGNED", "A", "Array", "B", "Draw", "Rng", "Subject", "Values", "among", "defined", "kernel_draws",
    "lexicographic", "stored", "subject_of", "whole",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
Rng = np.random.Generator
INF = math.inf
A, B = var(0), var(1)

FLOATS, SIGNED, UNSIGNED = ("float32", "float64"), ("int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Subject:
    """A semiring in some dtypes.

    Attributes
    ----------
    text : str
        Python that makes the semiring, where `sr` is this library.
    semiring : Semiring
    dtypes : tuple of numpy.dtype
        One a component.
    add, mul : tuple of Formula
        What the callables compute, one a component.
    zero, one : tuple
        The identities, ±∞ as floats.
    elements : callable
        (rng, shape, harmless) → the components of random elements, as numbers; `harmless`: only those with 1 ⊕ a = 1.
    selective : bool
        Whether ⊕ always gives one of its operands.
    closure : str
        How it has closures: "idempotent", "counting" (by the series, where it ends), "star", or "" for a ⊗ written at random, whose
        products alone mean something.
    """

    text: str
    semiring: Any
    dtypes: tuple[np.dtype[Any], ...]
    add: tuple[Formula, ...]
    mul: tuple[Formula, ...]
    zero: tuple[Any, ...]
    one: tuple[Any, ...]
    elements: Callable[[Rng, tuple[int, ...], bool], tuple[Any, ...]]
    selective: bool
    closure: str

    @property
    def name(self) -> str:
        return f"{self.semiring.name} in {', '.join(dict.fromkeys(map(str, self.dtypes)))}"

    @property
    def family(self) -> str:
        """What the summary counts it as."""
        name = str(self.semiring.name)
        return "modulo" if name.startswith("modulo-") else name

    @property
    def structured(self) -> bool:
        return len(self.dtypes) > 1

    @property
    def operations(self) -> frozenset[str]:
        return operations((*self.add, *self.mul))

    @property
    def kinds(self) -> set[str]:
        return {d.kind for d in self.dtypes}

    @property
    def zeros(self) -> tuple[Any, ...]:
        """The zero as the dtypes write it."""
        return tuple(map(stored, self.zero, self.dtypes))

    @property
    def ones(self) -> tuple[Any, ...]:
        return tuple(map(stored, self.one, self.dtypes))

    def infinities(self, component: int) -> tuple[Any, ...]:
        """What stands for ±∞ among the integers of a component."""
        dtype = self.dtypes[component]
        both = {v for v in (self.zero[component], self.one[component]) if isinstance(v, float) and math.isinf(v)}
        return tuple(stored(v, dtype) for v in both) if dtype.kind in "iu" else ()

    @property
    def keeps_infinity(self) -> bool:
        """Whether the zero may be an entry of an operand: no ∞ meets an operation that makes no sense of it."""
        infinities = {v for v in (*self.zero, *self.one) if isinstance(v, float) and math.isinf(v)}
        if not infinities or self.closure:
            return True
        everywhere = len(infinities) == 1 and {*self.zero} == infinities  # else ∞ may come into a component that has none
        return everywhere and operations(self.mul) <= {"var", "const", "add", "min", "max"}

    def draw(self, rng: Rng, shape: tuple[int, ...], *, zeros: float = 0.25, harmless: bool = False) -> Values:
        """Random elements in the dtypes, a share of them the zero."""
        empty = rng.random(shape) < (zeros if self.keeps_infinity else 0)
        found = self.elements(rng, shape, harmless)
        return tuple(
            np.where(empty, np.array(z, dtype=d), np.asarray(v).astype(d)) for v, z, d in zip(found, self.zeros, self.dtypes, strict=True)
        )

    def written_in(self, values: Values, dtypes: Sequence[Any]) -> Values:
        """Elements in other dtypes that hold them, ∞ as it is written there."""
        found = []
        for c, (v, dtype) in enumerate(zip(values, map(np.dtype, dtypes), strict=True)):
            array = v.astype(dtype)
            for number in (self.zero[c], self.one[c]):
                if dtype != v.dtype and isinstance(number, float) and math.isinf(number):
                    array[v == stored(number, v.dtype)] = stored(number, dtype)
            found.append(array)
        return tuple(found)

    def strangers(self, values: Values) -> bool:
        """Whether an entry is NaN, or known to lie outside the carrier."""
        for v in values:
            if v.dtype.kind == "f" and np.isnan(v).any():
                return True
        low, high = _INSIDE.get(self.semiring.name, lambda one: (-INF, INF))(self.one[0])
        first = values[0].astype(float) if values[0].dtype.kind == "f" else values[0]
        return not self.structured and bool(((first < low) | (first > high)).any())

    def stranger(self, rng: Rng) -> Any:
        """A number that is no element, as far as there is one of the dtype; else None."""
        (dtype, *others) = self.dtypes
        low, high = _INSIDE.get(self.semiring.name, lambda one: (-INF, INF))(self.one[0])
        options = [math.nan] if dtype.kind == "f" else []
        if not others:
            options += [high + 1 if abs(high) < 1e9 else INF] if high < INF and (dtype.kind == "f" or abs(high) < 1e9) else []
            options += (
                [low - 1 if abs(low) < 1e9 else -INF]
                if low > -INF and (dtype.kind == "f" or (dtype.kind == "i" and abs(low) < 1e9))
                else []
            )
        return options[rng.integers(len(options))] if options else None


_LARGEST = sys.float_info.max
_INSIDE: dict[str, Callable[[Any], tuple[float, float]]] = {
    "min-plus": lambda one: (-_LARGEST, INF), "max-plus": lambda one: (-INF, _LARGEST), "max-times": lambda one: (0, _LARGEST),
    "plus-times": lambda one: (-_LARGEST, _LARGEST), "log": lambda one: (-INF, _LARGEST), "lukasiewicz": lambda one: (0, one),
    "graded": lambda one: (0, one), "halves": lambda one: (0, 0.5),
}  # fmt: skip
"""The least and the greatest element, by the name of the semiring and its one."""


def stored(value: Any, dtype: np.dtype[Any]) -> Any:
    """An identity as a dtype writes it: ∞ is the largest integer, −∞ the smallest, and ~0 has all bits set."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if isinstance(value, float) and math.isinf(value):
            return int(info.max if value > 0 else info.min)
        return int(info.max) if dtype.kind == "u" and value == -1 else int(value)
    return {"b": bool, "f": float}.get(dtype.kind, lambda v: v)(value)


def whole(low: int, high: int) -> Callable[..., Array]:
    return lambda rng, shape, dtype: rng.integers(max(low, 0) if dtype.kind == "u" else low, high + 1, shape)


def among(*values: Any) -> Callable[..., Array]:
    return lambda rng, shape, dtype: rng.choice(np.array(values), shape)


Draw = Callable[..., Array]


def subject_of(
    text: str, semiring: Any, dtypes: Sequence[str], add: Any, mul: Any, zero: Any, one: Any, free: Any, harmless: Any = None, *,
    selective: bool = True, closure: str = "idempotent",
) -> Subject:  # fmt: skip
    """A `Subject`; of one component without the tuples. `free` and `harmless` draw the entries of one component each."""
    if isinstance(add, Formula):
        add, mul, zero, one, free, harmless = (add,), (mul,), (zero,), (one,), (free,), None if harmless is None else (harmless,)
    kinds = tuple(map(np.dtype, dtypes))

    def elements(rng: Rng, shape: tuple[int, ...], tame: bool) -> tuple[Any, ...]:
        return tuple(draw(rng, shape, d) for draw, d in zip(harmless if tame and harmless else free, kinds, strict=True))

    return Subject(text, semiring, kinds, tuple(add), tuple(mul), tuple(zero), tuple(one), elements, selective, closure)


def defined(name: str, dtypes: Sequence[str], add: Any, mul: Any, zero: Any, one: Any, *draws: Any, domain: str = "", add_text: str = "",
             selective: bool = True, closure: str = "idempotent") -> Subject:  # fmt: skip
    """A subject whose semiring is made from the text of its formulas."""
    adds, muls = (add,) if isinstance(add, Formula) else add, (mul,) if isinstance(mul, Formula) else mul
    ends = ", ".join(f"{what}={_number(value)}" for what, value in (("zero", zero), ("one", one)))
    text = f"sr.Semiring({name!r}, add={add_text or lambda_text(adds)}, mul={lambda_text(muls)}, {ends}{domain and f', domain={domain}'})"
    semiring = eval(text, {"sr": sr})
    return subject_of(text, semiring, dtypes, add, mul, zero, one, *draws, selective=selective, closure=closure)


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_number, value))})"
    return f"float('{value}')" if isinstance(value, float) and math.isinf(value) else repr(value)


def kernel_draws(rng: Rng, subject: Subject, device: str) -> Rng:
    """Return the numbers that decide which kernel a case takes: on a GPU they follow from the subject, so that a round has few kernels."""
    return (
        np.random.default_rng([zlib.crc32(subject.text.encode()), *map(ord, str(subject.dtypes[0]))]) if device.startswith("cuda") else rng
    )


def lexicographic(width: int) -> tuple[Formula, ...]:
    """Python's minimum of two tuples."""
    found = []
    for c in range(width):
        chosen = var(0, c)
        for i in reversed(range(width)):
            a, b = var(0, i), var(1, i)
            chosen = of("where", of("lt", b, a), var(1, c), of("where", of("lt", a, b), var(0, c), chosen))
        found.append(chosen)
    return tuple(found)
