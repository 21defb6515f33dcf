"""Derivatives of recorded operations, the Jacobian of expressions by the chain rule, and the form of the derivative of a product.

>>> from semiring.algebra.expression import node, var
>>> a, b = var(0), var(1)
>>> derivatives([node("mul", a, node("exp", b))], [a, b])
((exp(b), a * exp(b)),)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import COMPARISONS, Expr, const, is_operation, node, nodes, var, where
from semiring.algebra.laws import is_selective
from semiring.common.errors import SemiringError

__all__ = ["DERIVATIVES", "ONE", "ZERO", "Jacobian", "ProductDerivative", "derivative_of_product", "derivatives", "uses_operands"]

Jacobian = tuple[tuple[Expr, ...], ...]

ZERO, ONE = const(0), const(1)


def _plus(x: Expr, y: Expr) -> Expr:
    return y if x is ZERO else x if y is ZERO else node("add", x, y)


def _minus(x: Expr) -> Expr:
    return const(-x.args[0]) if x.op == "const" and x is not ZERO else x if x is ZERO else node("neg", x)


def _times(x: Expr, y: Expr) -> Expr:
    if x is ZERO or y is ZERO:
        return ZERO
    return y if x is ONE else x if y is ONE else node("mul", x, y)


def _over(x: Expr, y: Expr) -> Expr:
    return ZERO if x is ZERO else node("div", x, y)


def _none(*_: Expr) -> Expr:
    return ZERO


DERIVATIVES: dict[str, Callable[..., Expr]] = {
    "add": lambda x, y, dx, dy: _plus(dx, dy),
    "sub": lambda x, y, dx, dy: _plus(dx, _minus(dy)),
    "mul": lambda x, y, dx, dy: _plus(_times(dx, y), _times(x, dy)),
    "div": lambda x, y, dx, dy: _plus(_over(dx, y), _minus(_over(_times(node("div", x, y), dy), y))),
    "mod": lambda x, y, dx, dy: _plus(dx, _minus(_times(node("floordiv", x, y), dy))),
    "floordiv": _none,
    "neg": lambda x, dx: _minus(dx),
    "abs": lambda x, dx: where(node("lt", x, ZERO), _minus(dx), dx),
    "min": lambda x, y, dx, dy: where(node("lt", y, x), dy, dx),
    "max": lambda x, y, dx, dy: where(node("gt", y, x), dy, dx),
    "where": lambda condition, x, y, _, dx, dy: where(condition, dx, dy),
    "exp": lambda x, dx: _times(node("exp", x), dx),
    "expm1": lambda x, dx: _times(node("exp", x), dx),
    "log": lambda x, dx: _over(dx, x),
    "log1p": lambda x, dx: _over(dx, node("add", ONE, x)),
    "sqrt": lambda x, dx: _over(dx, node("mul", const(2), node("sqrt", x))),
    "not": _none,
    **dict.fromkeys(COMPARISONS, _none),
}
"""The derivative of each operation, of its arguments and then of their derivatives.

At a kink the derivative belongs to the argument that the operation returns: the first one where both are equal, and x for ``abs(x)`` at 0.
Arguments are chosen and never multiplied by 0, because 0 · ∞ is NaN. Operations on bits have no derivative.
"""


def derivatives(roots: Sequence[Expr], by: Sequence[Expr]) -> tuple[tuple[Expr, ...], ...]:
    """Return the Jacobian of expressions: for each root its derivatives by the variables `by`.

    SemiringError is raised for an operation on bits whose arguments depend on a variable.
    """
    columns = [_column(tuple(roots), variable) for variable in by]
    return tuple(zip(*columns, strict=True)) if columns else ((),) * len(roots)


@functools.lru_cache(maxsize=256)
def _column(roots: tuple[Expr, ...], variable: Expr) -> tuple[Expr, ...]:
    """Return the derivative of each root by one variable."""
    found: dict[Expr, Expr] = {}
    for expr in nodes(*roots):
        below = [] if expr.op in ("var", "const") else [found[a] for a in expr.args]
        if all(d is ZERO for d in below):
            found[expr] = ONE if expr is variable else ZERO
        elif expr.op in DERIVATIVES:
            found[expr] = DERIVATIVES[expr.op](*expr.args, *below)
        else:
            raise SemiringError(f"the operation {expr.op!r} has no derivative")
    return tuple(found[root] for root in roots)


@functools.lru_cache(maxsize=256)
def uses_operands(jacobian: Jacobian) -> bool:
    """Return True if a derivative depends on the operands, as those of sums do not."""
    return any(e.op == "var" for row in jacobian for e in nodes(*row))


class ProductDerivative(NamedTuple):
    """The form of the derivative of a product over a semiring.

    ⊕ selects; or is log Σ exp of `scale` times the terms, with + as ⊗; or is a sum, of products of numbers or of other ⊗; or is any other
    recorded operation. `jacobian` has the derivatives of ⊗ by the components of both operands.
    """

    kind: Literal["selected", "exponentials", "numbers", "sums", "recorded"]
    jacobian: Jacobian = ()
    scale: float = 1.0


@functools.lru_cache(maxsize=256)
def derivative_of_product(semiring: Semiring) -> ProductDerivative:
    """Return the form of the derivative of products over a semiring; SemiringError is raised for an operation without a derivative."""
    program, width = semiring.program, semiring.components
    if program.exponential is not None:
        return ProductDerivative("exponentials", scale=float(program.exponential))
    jacobian = derivatives(program.mul, [var(side, c) for side in (0, 1) for c in range(width)])
    if width == 1 and is_operation(program.add[0], ("add",)):
        return ProductDerivative("numbers" if is_operation(program.mul[0], ("mul",)) else "sums", jacobian)
    if is_selective(semiring):
        return ProductDerivative("selected", jacobian)
    derivatives(program.add, [var(side, c) for side in (0, 1) for c in range(width)])
    return ProductDerivative("recorded", jacobian)
