"""Recorded expressions on tensors of PyTorch: the table of operations, whose results PyTorch differentiates again."""

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

    def constant(value: Any) -> Any:
        return value if isinstance(value, bool) else like.new_full((), float(value))

    return evaluate(roots, left, right, _table(), constant)


@functools.cache
def _table() -> dict[str, Callable[..., Any]]:
    torch: Any = sys.modules["torch"]
    same = "add", "sub", "mul", "neg", "abs"
    named = "exp", "expm1", "log", "log1p", "sqrt", "where"
    return {
        **{name: getattr(operator, name) for name in (*same, *COMPARISONS)},
        **{name: getattr(torch, name) for name in named},
        "div": torch.true_divide,
        "floordiv": torch.floor_divide,
        "mod": torch.remainder,
        "not": torch.logical_not,
        "min": lambda x, y: torch.where(y < x, y, x),
        "max": lambda x, y: torch.where(y > x, y, x),
    }
