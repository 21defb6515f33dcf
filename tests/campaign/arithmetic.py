"""What formulas are evaluated with: float64 that knows how far rounding may have moved it, and plain arrays of whole numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Near", "Table", "plain_table", "rounded_table", "unit_of"]

Array = np.ndarray[Any, Any]
Table = dict[str, Callable[..., Any]]

_FUNCTION_ROUNDINGS = 8
"""Units in the last place that exp, log1p and their like may be away: two for each of the few steps that engines compute them by."""


def unit_of(dtype: np.dtype[Any]) -> float:
    """Half of ε: the relative error of one rounding."""
    return float(np.finfo(dtype).eps) / 2


class Near:
    """Floats, and for each a bound on how far an engine may be from it that computes the same formula in its own precision.

    Where every step is exact in the engine's dtype the bound is 0, and the engine's result has to be equal.
    """

    def __init__(self, value: Any, error: Any = 0.0) -> None:
        self.value, self.error = np.asarray(value), error

    def __getitem__(self, index: Any) -> Near:
        return Near(self.value[index], self.error if isinstance(self.error, float) else self.error[index])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def errors(self) -> Array:
        return np.broadcast_to(np.asarray(self.error, dtype=float), self.value.shape)


def _bits(operation: Any) -> Callable[..., Any]:
    """A bit operation on whole numbers, also where floats hold them."""

    def apply(*args: Any) -> Any:
        if any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in args):
            return operation(*(np.asarray(a).astype(np.int64) for a in args)).astype(float)
        return operation(*args)

    return apply


def plain_table() -> Table:
    """Operations that are exact on what they are given: bits, small whole numbers in float64, Python's own numbers."""
    return {
        "const": lambda value: value, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
        "floordiv": np.floor_divide, "mod": np.remainder, "neg": np.negative, "abs": np.abs, "min": np.minimum, "max": np.maximum,
        "where": np.where, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
        "ne": np.not_equal, "both": np.logical_and, "either": np.logical_or, "and": _bits(np.bitwise_and), "or": _bits(np.bitwise_or),
        "xor": _bits(np.bitwise_xor), "shl": _bits(np.left_shift), "shr": _bits(np.right_shift), "invert": _bits(np.invert),
    }  # fmt: skip


def rounded_table(dtype: np.dtype[Any]) -> Table:
    """Operations on `Near`, which bound what an engine may round when it computes in `dtype`."""
    unit, single, least = unit_of(dtype), dtype == np.float32, float(np.finfo(dtype).smallest_normal)

    def exact(value: Array, *operands: Array, grid: float) -> Any:
        """Where a result needs no rounding: its operands are multiples of 1/grid, and it is not too large, as are sums in another order."""
        if single:
            return (value == value.astype(np.float32)) & ((np.abs(value) <= 2.0**24) | np.isinf(value))
        whole = functools.reduce(np.logical_and, (np.isinf(x) | (x * grid == np.rint(x * grid)) for x in operands))
        return whole & ((np.abs(value) <= 2.0**28) | np.isinf(value))

    def near(value: Array, error: Any, is_exact: Any = False, roundings: float = 1) -> Near:
        local = np.where(is_exact, 0.0, roundings * unit * np.maximum(np.abs(value), least))  # what is less underflows
        total = local + error
        return Near(value, total if np.any(total) else 0.0)

    def inverse(f: Callable[..., Near]) -> Callable[..., Near]:
        def quiet(*args: Any) -> Near:
            with np.errstate(all="ignore"):
                return f(*args)

        return quiet

    def add(x: Near, y: Near) -> Near:
        value = x.value + y.value
        return near(value, x.error + y.error, exact(value, x.value, y.value, grid=2.0**24))

    def neg(x: Near) -> Near:
        return Near(-x.value, x.error)

    def mul(x: Near, y: Near) -> Near:
        value = x.value * y.value
        error: Any = 0.0
        if np.any(x.error) or np.any(y.error):
            error = np.abs(x.value) * y.error + np.abs(y.value) * x.error + x.error * y.error
        shifted = (np.frexp(x.value)[0] % 0.5 == 0) | (np.frexp(y.value)[0] % 0.5 == 0)  # by a power of two, or zero
        return near(value, error, exact(value, x.value, y.value, grid=2.0**12) | (shifted & (np.abs(value) > 1e-300)))

    def quotient(error: Any, size: Any) -> Any:
        """An error over what is no less than a size; there is none where that is not positive."""
        return np.where(np.asarray(error) == 0, 0.0, np.where(size > 0, error / size, np.inf))

    def div(x: Near, y: Near) -> Near:
        value = x.value / y.value
        return near(value, quotient(x.error + np.abs(value) * y.error, np.abs(y.value) - y.error))

    def exp(x: Near) -> Near:
        value = np.exp(x.value)
        return near(value, np.exp(x.value + x.error) - value, roundings=_FUNCTION_ROUNDINGS)

    def log1p(x: Near) -> Near:
        return near(np.log1p(x.value), quotient(x.error, 1 + x.value - x.error), roundings=_FUNCTION_ROUNDINGS)

    def sqrt(x: Near) -> Near:
        root = np.sqrt(x.value)
        return near(root, np.where(x.value > 2 * x.error, x.error / np.maximum(root, 1e-300), np.sqrt(2 * np.asarray(x.error))))

    def logaddexp(x: Near, y: Near) -> Near:
        value = np.logaddexp(x.value, y.value)
        local = np.where(np.isinf(value), 0.0, _FUNCTION_ROUNDINGS * unit * np.maximum(1, np.abs(value)))
        return Near(value, local + np.maximum(x.error, y.error))

    def extremum(choose: Any) -> Callable[[Near, Near], Near]:
        def apply(x: Near, y: Near) -> Near:
            exactly = isinstance(x.error, float) and isinstance(y.error, float)
            return Near(choose(x.value, y.value), 0.0 if exactly else np.maximum(x.error, y.error))

        return apply

    def compare(ask: Any) -> Callable[[Near, Near], Near]:
        def apply(x: Near, y: Near) -> Near:
            """What rounding may decide otherwise is infinitely uncertain."""
            margin = x.error + y.error
            if not np.any(margin):
                return Near(ask(x.value, y.value))
            return Near(ask(x.value, y.value), np.where((margin > 0) & (np.abs(x.value - y.value) <= margin), np.inf, 0.0))

        return apply

    def joined(join: Any) -> Callable[[Near, Near], Near]:
        return lambda x, y: Near(join(x.value, y.value), x.error + y.error)

    def where(c: Near, x: Near, y: Near) -> Near:
        value = np.where(c.value, x.value, y.value)
        if all(isinstance(e, float) for e in (c.error, x.error, y.error)):
            return Near(value)
        return Near(value, np.where(c.value, x.error, y.error) + c.error)

    def wholly(operation: Any) -> Callable[..., Near]:
        """An operation on whole numbers, which float64 holds."""
        return lambda *args: Near(operation(*(a.value for a in args)))

    plain = plain_table()
    table: Table = {
        "const": lambda value: Near(float(dtype.type(value))), "add": add, "sub": lambda x, y: add(x, neg(y)), "mul": mul, "div": div,
        "neg": neg, "abs": lambda x: Near(np.abs(x.value), x.error), "min": extremum(np.minimum), "max": extremum(np.maximum),
        "where": where, "exp": exp, "log1p": log1p, "sqrt": sqrt, "logaddexp": logaddexp,
    }  # fmt: skip
    table |= {name: compare(plain[name]) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
    table |= {name: joined(plain[name]) for name in ("both", "either")}
    table |= {name: wholly(plain[name]) for name in ("and", "or", "xor", "shl", "shr", "invert", "floordiv", "mod")}
    return {name: inverse(f) for name, f in table.items()}
