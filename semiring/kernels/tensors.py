"""Recorded expressions on tensors of PyTorch and arrays of JAX: one table of operations, whose results the library differentiates again."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from semiring.algebra.expression import COMPARISONS, Expr, evaluate

__all__ = ["on_tensors"]


def on_tensors(roots: Sequence[Expr], left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
    """Compute `roots` from tensors, one a component; constants have the dtype and the device of the first."""
    like = left[0]
    library = "torch" if hasattr(like, "new_full") else "jax.numpy"

    def constant(value: Any) -> Any:
        if isinstance(value, bool):
            return value
        return like.new_full((), float(value)) if library == "torch" else sys.modules[library].asarray(float(value), like.dtype)

    return evaluate(roots, left, right, _table(library), constant)


@functools.cache
def _table(library: str) -> dict[str, Callable[..., Any]]:
    xp: Any = sys.modules[library]
    same = "add", "sub", "mul", "neg", "abs"
    named = "exp", "expm1", "log", "log1p", "sqrt", "where"
    return {
        **{name: getattr(operator, name) for name in (*same, *COMPARISONS)},
        **{name: getattr(xp, name) for name in named},
        "div": xp.true_divide,
        "floordiv": xp.floor_divide,
        "mod": xp.remainder,
        "not": xp.logical_not,
        "min": lambda x, y: xp.where(y < x, y, x),
        "max": lambda x, y: xp.where(y > x, y, x),
    }
