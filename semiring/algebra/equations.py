"""The laws of a semiring as equations, each passed or refuted by a counterexample.

A law is checked on every element of a small carrier, and otherwise on a sample that the dtype holds exactly (`semiring.algebra.model`).
If exp, log or division round, the two sides may differ by 64 roundings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from semiring.algebra.elements import Array
from semiring.algebra.model import Model, Values, model_of
from semiring.algebra.structure import AlgebraicStructure
from semiring.common.errors import SemiringError

__all__ = ["LAWS", "PROPERTIES", "Counterexample", "LawResult", "law"]

Status = Literal["passed", "refuted", "untested"]


@dataclass(frozen=True)
class Counterexample:
    """Elements for which a law fails, with the values of the two sides.

    Attributes
    ----------
    elements : tuple of (name, value)
        The operands, e.g. ``(("a", 2), ("b", 0.5))``.
    left, right : value
        The values of the sides; `right` is None if the law does not demand one value.
    left_text, right_text : str
        The sides in the notation of the law.
    """

    elements: tuple[tuple[str, Any], ...]
    left: Any
    left_text: str
    right: Any
    right_text: str

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value!r}" for name, value in self.elements)
        if isinstance(self.left, Exception):
            return f"{given}: {self.left_text} raises {type(self.left).__name__}: {self.left}"
        if self.right is None or self.right_text == repr(self.right):
            return f"{given}: {self.left_text} = {self.left!r}, which is not {self.right_text}"
        return f"{given}: {self.left_text} = {self.left!r}, but {self.right_text} = {self.right!r}"


@dataclass(frozen=True)
class LawResult:
    """The result of the check of one law or property.

    Attributes
    ----------
    law, statement : str
        The name, e.g. "left distributive", and the equation.
    status : {"passed", "refuted", "untested"}
    counterexample : Counterexample or None
        For a refuted law.
    tolerance : float
        The relative difference of two sides that counts as rounding; 0 for exact arithmetic.
    exhaustive : bool
        A pass is a proof: every element was tried, or the form of the operation implies the law.
    required : bool
        True for a law of every semiring, False for a property that some algorithms need.
    note : str
        The reason for "untested".
    """

    law: str
    statement: str
    status: Status
    counterexample: Counterexample | None = None
    tolerance: float = 0.0
    exhaustive: bool = False
    required: bool = True
    note: str = ""

    def __bool__(self) -> bool:
        return self.status != "refuted"

    @property
    def verdict(self) -> str:
        """The status in words: "passed" for a law, "holds" for a property."""
        if self.required or self.status == "untested":
            return self.status
        return "holds" if self else "does not hold"

    @property
    def mark(self) -> str:
        """The status as a sign."""
        return "?" if self.status == "untested" else "✓" if self else "✗" if self.required else "–"

    @property
    def evidence(self) -> str:
        """The reason for the status."""
        if self.status == "untested":
            return self.note
        if self.counterexample is not None:
            return str(self.counterexample)
        return ("for every element" if self.exhaustive else "on a sample") + (f", up to {self.tolerance:.1g}" if self.tolerance else "")


STATEMENTS = {
    "associative ⊕": "(a ⊕ b) ⊕ c = a ⊕ (b ⊕ c)",
    "commutative ⊕": "a ⊕ b = b ⊕ a",
    "0 is the identity of ⊕": "0 ⊕ a = a, a ⊕ 0 = a",
    "associative ⊗": "(a ⊗ b) ⊗ c = a ⊗ (b ⊗ c)",
    "1 is the identity of ⊗": "1 ⊗ a = a, a ⊗ 1 = a",
    "0 annihilates": "0 ⊗ a = 0, a ⊗ 0 = 0",
    "left distributive": "a ⊗ (b ⊕ c) = a ⊗ b ⊕ a ⊗ c",
    "right distributive": "(a ⊕ b) ⊗ c = a ⊗ c ⊕ b ⊗ c",
    "idempotent": "a ⊕ a = a",
    "commutative ⊗": "a ⊗ b = b ⊗ a",
    "bounded": "1 ⊕ a = 1",
    "closed": "0, 1, a ⊕ b and a ⊗ b are elements",
    "star": "a* = 1 ⊕ a ⊗ a*",
    "selective": "a ⊕ b is a or b",
}
"""The statement of each law.

Unless `_TESTS` has a function, `_refute` evaluates the statement as written: ", " separates equations, " = " the sides of one. A side
has only the variables a, b, c (in this order), 0, 1, ⊕, ⊗ and parentheses.
"""

LAWS = (
    "0 is the identity of ⊕", "1 is the identity of ⊗", "0 annihilates", "closed", "associative ⊕", "commutative ⊕", "associative ⊗",
    "left distributive", "right distributive", "star",
)  # fmt: skip
"""The laws of every semiring. A wrong 0 or 1 breaks other laws too: the identities come first, so that the first refuted law tells what to
mend.
"""

PROPERTIES = ("idempotent", "selective", "commutative ⊗", "bounded")
"""The properties that some algorithms need; ``bounded`` means that no cycle improves on the empty path."""

_PYTHON = str.maketrans({"⊕": "+", "⊗": "*", "0": "zero", "1": "one"})


@dataclass(frozen=True)
class _Term:
    """The value of a term; Python's + and * stand for ⊕ and ⊗."""

    model: Model
    values: Values

    def __add__(self, other: _Term) -> _Term:
        return _Term(self.model, self.model.add(self.values, other.values))

    def __mul__(self, other: _Term) -> _Term:
        return _Term(self.model, self.model.mul(self.values, other.values))


def _axes(model: Model, variables: int) -> list[tuple[Array, ...]]:
    """Lay the sample along one axis for each variable, so that broadcasting runs over every combination."""
    return [tuple(v.reshape((1,) * i + (-1,) + (1,) * (variables - 1 - i)) for v in model.elements) for i in range(variables)]


def _refute(model: Model, name: str) -> Counterexample | None:
    """Find the first combination of elements for which a law fails."""
    if name in _TESTS:
        return _TESTS[name](model)
    variables = sum(letter in STATEMENTS[name] for letter in "abc")
    known = {"zero": model.zero, "one": model.one, **dict(zip("abc", _axes(model, variables), strict=False))}
    terms = {letter: _Term(model, values) for letter, values in known.items()}
    for equation in STATEMENTS[name].split(", "):
        left, right = equation.split(" = ")
        x, y = (eval(side.translate(_PYTHON), {}, terms).values for side in (left, right))
        equal = model.equal(x, y, model.tolerance)
        if not equal.all():
            return _counterexample(model, variables, ~equal, (left, x), (right, y))
    return None


def _counterexample(
    model: Model, variables: int, fails: Array, left: tuple[str, Values], right: tuple[str, Values | None]
) -> Counterexample:
    shape = (len(model.elements[0]),) * variables
    index = np.unravel_index(int(np.argmax(np.broadcast_to(fails, shape))), shape)
    elements = tuple((name, model.shown([v[i] for v in model.elements])) for name, i in zip("abc", index, strict=False))

    def at(values: Values | None) -> Any:
        return None if values is None else model.shown([np.broadcast_to(v, shape)[index] for v in values])

    return Counterexample(elements, at(left[1]), left[0], at(right[1]), right[0])


def _closed(model: Model) -> Counterexample | None:
    inside = model.inside(model.elements)
    element = f"an element of {model.structure.carrier}"
    for i in np.flatnonzero(~inside[:2]):
        value = model.shown([v[i] for v in model.elements])
        return Counterexample((("a", value),), value, "a", None, element)
    a, b = _axes(model, 2)
    for text, operation, function in (("a ⊕ b", model.add, model.structure.add), ("a ⊗ b", model.mul, model.structure.mul)):
        raised = _first_error(model, text, function)
        if raised is not None:
            return raised
        result = operation(a, b)
        outside = ~model.inside(result)
        if outside.any():
            return _counterexample(model, 2, outside, (text, result), (element, None))
    return None


def _first_error(model: Model, text: str, function: Callable[..., Any]) -> Counterexample | None:
    """Find the first pair for which a callable raises; a recording never does."""
    m = len(model.elements[0])
    for i, j in np.ndindex(m, m) if any(t.kind == "O" for t in model.types) else ():
        x, y = (tuple(v[at] for v in model.elements) for at in (i, j))
        try:
            model.call(function, x, y)
        except Exception as error:  # the counterexample shows any error
            return Counterexample((("a", model.shown(x)), ("b", model.shown(y))), error, text, None, "")
    return None


def _selective(model: Model) -> Counterexample | None:
    a, b = _axes(model, 2)
    result = model.add(a, b)
    neither = ~(model.equal(result, a, 0.0) | model.equal(result, b, 0.0))
    return _counterexample(model, 2, neither, ("a ⊕ b", result), ("a or b", None)) if neither.any() else None


def _star(model: Model) -> Counterexample | None:
    (a,) = _axes(model, 1)
    star, exists = model.star(a)
    right = model.add(model.one, model.mul(a, star))
    fails = exists & ~model.equal(star, right, model.star_tolerance)
    return _counterexample(model, 1, fails, ("a*", star), ("1 ⊕ a ⊗ a*", right)) if fails.any() else None


_TESTS: dict[str, Callable[[Model], Counterexample | None]] = {"closed": _closed, "selective": _selective, "star": _star}


def law(structure: AlgebraicStructure, dtypes: Any, name: str) -> LawResult:
    """Return the result for one of `LAWS` or `PROPERTIES` (cached).

    `dtypes` is a dtype for each component, one for all, or None for the usual ones.
    """
    kinds = structure.dtypes(structure.usual_dtypes if dtypes is None else dtypes)
    return _law(structure, kinds, name, structure.running(kinds))


@lru_cache(maxsize=4096)
def _law(structure: AlgebraicStructure, kinds: tuple[np.dtype[Any], ...], name: str, running: tuple[Any, ...]) -> LawResult:
    if name not in STATEMENTS:
        raise SemiringError(f"unknown law {name!r}; use one of {', '.join(map(repr, (*LAWS, *PROPERTIES)))}")
    required = name in LAWS
    if name in ("idempotent", "selective") and structure.selects:
        return LawResult(name, STATEMENTS[name], "passed", exhaustive=True, required=required)
    model = model_of(structure, kinds, running)
    tolerance = model.star_tolerance if name == "star" else 0.0 if name in ("closed", "selective") else model.tolerance
    found: Counterexample | None = None
    note, integers = "", [str(k) for k in kinds if k.kind in "iu"]
    try:
        if name == "star" and integers and model.star_tolerance > model.tolerance:
            note = f"the star divides, which {integers[0]} lacks"
        else:
            found = _refute(model, name)
    except Exception as error:  # a callable of objects may raise anything; "closed" shows the elements
        if name == "closed" or not any(k.kind == "O" for k in kinds):
            raise
        note = f"a callable raises {type(error).__name__}: {error}"
    status: Status = "untested" if note else "passed" if found is None else "refuted"
    return LawResult(name, STATEMENTS[name], status, found, tolerance, model.exhaustive and not note, required, note)
