"""Each law and property: its statement, and the search for elements that refute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.model import Array, Model, Values
from semiring.algebra.report import Counterexample

__all__ = ["LAWS", "PROPERTIES", "STATEMENTS", "Untested", "refute"]


class Untested(Exception):
    """Why a law cannot be checked in a dtype."""


@dataclass(frozen=True)
class _Side:
    """One side of an equation: how it is written, and its value."""

    text: str
    value: Callable[..., Sequence[Array]]


_Equation = tuple[_Side, _Side]

_a = _Side("a", lambda m, a, *_: a)
_zero = _Side("0", lambda m, *_: m.zero)
_one = _Side("1", lambda m, *_: m.one)


def _equations() -> dict[str, tuple[int, tuple[_Equation, ...]]]:
    """The laws that are equations, each with its number of variables."""
    return {
        "associative ⊕": (3, ((
            _Side("(a ⊕ b) ⊕ c", lambda m, a, b, c: m.add(m.add(a, b), c)),
            _Side("a ⊕ (b ⊕ c)", lambda m, a, b, c: m.add(a, m.add(b, c))),
        ),)),
        "commutative ⊕": (2, ((
            _Side("a ⊕ b", lambda m, a, b: m.add(a, b)), _Side("b ⊕ a", lambda m, a, b: m.add(b, a)),
        ),)),
        "0 is the identity of ⊕": (1, (
            (_Side("0 ⊕ a", lambda m, a: m.add(m.zero, a)), _a), (_Side("a ⊕ 0", lambda m, a: m.add(a, m.zero)), _a),
        )),
        "associative ⊗": (3, ((
            _Side("(a ⊗ b) ⊗ c", lambda m, a, b, c: m.mul(m.mul(a, b), c)),
            _Side("a ⊗ (b ⊗ c)", lambda m, a, b, c: m.mul(a, m.mul(b, c))),
        ),)),
        "1 is the identity of ⊗": (1, (
            (_Side("1 ⊗ a", lambda m, a: m.mul(m.one, a)), _a), (_Side("a ⊗ 1", lambda m, a: m.mul(a, m.one)), _a),
        )),
        "0 annihilates": (1, (
            (_Side("0 ⊗ a", lambda m, a: m.mul(m.zero, a)), _zero), (_Side("a ⊗ 0", lambda m, a: m.mul(a, m.zero)), _zero),
        )),
        "left distributive": (3, ((
            _Side("a ⊗ (b ⊕ c)", lambda m, a, b, c: m.mul(a, m.add(b, c))),
            _Side("a ⊗ b ⊕ a ⊗ c", lambda m, a, b, c: m.add(m.mul(a, b), m.mul(a, c))),
        ),)),
        "right distributive": (3, ((
            _Side("(a ⊕ b) ⊗ c", lambda m, a, b, c: m.mul(m.add(a, b), c)),
            _Side("a ⊗ c ⊕ b ⊗ c", lambda m, a, b, c: m.add(m.mul(a, c), m.mul(b, c))),
        ),)),
        "idempotent": (1, ((_Side("a ⊕ a", lambda m, a: m.add(a, a)), _a),)),
        "commutative ⊗": (2, ((
            _Side("a ⊗ b", lambda m, a, b: m.mul(a, b)), _Side("b ⊗ a", lambda m, a, b: m.mul(b, a)),
        ),)),
        "bounded": (1, ((_Side("1 ⊕ a", lambda m, a: m.add(m.one, a)), _one),)),
    }  # fmt: skip


_EQUATIONS = _equations()

LAWS = (
    "closed", "associative ⊕", "commutative ⊕", "0 is the identity of ⊕", "associative ⊗", "1 is the identity of ⊗", "0 annihilates",
    "left distributive", "right distributive", "star",
)  # fmt: skip
"""What every semiring satisfies."""

PROPERTIES = ("idempotent", "selective", "commutative ⊗", "bounded")
"""What some semirings satisfy and some algorithms need; ``bounded`` says that no cycle improves on the empty path."""

STATEMENTS = {
    "closed": "0, 1, a ⊕ b and a ⊗ b are elements",
    "star": "a* = 1 ⊕ a ⊗ a*",
    "selective": "a ⊕ b is a or b",
    **{name: ", ".join(f"{left.text} = {right.text}" for left, right in both) for name, (_, both) in _EQUATIONS.items()},
}


def _axes(model: Model, variables: int) -> list[tuple[Array, ...]]:
    """The sample along one axis for each variable, so that operations on them run over every combination."""
    return [tuple(v.reshape((1,) * i + (-1,) + (1,) * (variables - 1 - i)) for v in model.elements) for i in range(variables)]


def refute(model: Model, name: str) -> Counterexample | None:
    """The first combination of elements for which a law fails.

    Raises
    ------
    Untested
        Where the law has no meaning in the model's dtypes.
    """
    return _TESTS[name](model) if name in _TESTS else _refute(model, name)


def _refute(model: Model, name: str) -> Counterexample | None:
    variables, both = _EQUATIONS[name]
    operands = _axes(model, variables)
    for left, right in both:
        x, y = left.value(model, *operands), right.value(model, *operands)
        equal = model.equal(x, y, model.tolerance)
        if not equal.all():
            return _counterexample(model, variables, ~equal, (left.text, x), (right.text, y))
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
    element = f"an element of {model.semiring.carrier}"
    for i in np.flatnonzero(~inside[:2]):
        value = model.shown([v[i] for v in model.elements])
        return Counterexample((("a", value),), value, "a", None, element)
    a, b = _axes(model, 2)
    for text, operation, function in (("a ⊕ b", model.add, model.semiring.add), ("a ⊗ b", model.mul, model.semiring.mul)):
        raised = _first_error(model, text, function)
        if raised is not None:
            return raised
        result = operation(a, b)
        outside = ~model.inside(result)
        if outside.any():
            return _counterexample(model, 2, outside, (text, result), (element, None))
    return None


def _first_error(model: Model, text: str, function: Callable[..., Any]) -> Counterexample | None:
    """The first pair for which a callable raises; a recording never does."""
    m = len(model.elements[0])
    for i, j in np.ndindex(m, m) if any(t.kind == "O" for t in model.types) else ():
        x, y = (tuple(v[at] for v in model.elements) for at in (i, j))
        try:
            model.call(function, x, y)
        except Exception as error:  # whatever it is, it is what the reader has to see
            return Counterexample((("a", model.shown(x)), ("b", model.shown(y))), error, text, None, "")
    return None


def _selective(model: Model) -> Counterexample | None:
    a, b = _axes(model, 2)
    result = model.add(a, b)
    neither = ~(model.equal(result, a, 0.0) | model.equal(result, b, 0.0))
    return _counterexample(model, 2, neither, ("a ⊕ b", result), ("a or b", None)) if neither.any() else None


def _star(model: Model) -> Counterexample | None:
    integers = [str(k) for k in model.kinds if k.kind in "iu"]
    if integers and model.star_tolerance > model.tolerance:
        raise Untested(f"the star divides, which {integers[0]} lacks")
    (a,) = _axes(model, 1)
    star, exists = model.star(a)
    right = model.add(model.one, model.mul(a, star))
    fails = exists & ~model.equal(star, right, model.star_tolerance)
    return _counterexample(model, 1, fails, ("a*", star), ("1 ⊕ a ⊗ a*", right)) if fails.any() else None


_TESTS: dict[str, Callable[[Model], Counterexample | None]] = {
    "closed": _closed, "selective": _selective, "star": _star,
}  # fmt: skip
