"""Whether an integer product can leave its dtype: interval arithmetic over the recorded operations.

A product is refused before it is computed if any sum or product inside it could wrap, so nothing wrapped is ever returned. What
stands for ±∞ absorbs sums and takes no part in the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import OverflowRiskError
from semiring.algebra.expression import COMPARISONS, Expr, nodes
from semiring.kernels.infinities import absorbing, crosses_infinity, tropical

__all__ = ["Interval", "certify_product", "finite_range", "wider"]

Interval = tuple[float, float]
"""Lowest and highest value; Python integers, or ±inf for what is not bounded."""

_ARITHMETIC = {"add", "sub", "mul", "neg", "abs", "shl", "floordiv"}
_PIECE = 1 << 20


def finite_range(values: np.ndarray[Any, Any], infinities: Sequence[int]) -> Interval | None:
    """The least and the greatest entry, leaving out those that stand for ±∞; None where nothing is left."""
    if values.size == 0:
        return None
    low, high = int(values.min()), int(values.max())
    if low not in infinities and high not in infinities:
        return low, high
    found: list[Interval] = []
    flat = values.reshape(-1) if values.flags.c_contiguous else values.ravel()
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        finite = piece[~np.isin(piece, np.asarray(infinities, dtype=values.dtype))]
        if finite.size:
            found.append((int(finite.min()), int(finite.max())))
    return (min(f[0] for f in found), max(f[1] for f in found)) if found else None


def wider(dtype: np.dtype[Any]) -> str:
    """The next wider dtype, as advice."""
    following = {"u1": "uint16", "u2": "uint32", "u4": "uint64", "i2": "int32", "i4": "int64"}
    return following.get(f"{dtype.kind}{dtype.itemsize}", "float64")


def certify_product(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], a: Sequence[Any], b: Sequence[Any], c: Sequence[Any] | None, k: int
) -> bool:
    """Refuse a product of integers that could overflow.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    a, b : sequences of arrays, one a component
    c : sequence of arrays, or None
        What the product is added to.
    k : int
        Length of the sums.

    Returns
    -------
    bool
        Whether a finite element could pull a sum with ∞ back from it (see `Engine.signed`).

    Raises
    ------
    OverflowRiskError
        Naming the operation, its range and the next wider dtype.
    """
    program = semiring.program
    if all(d.kind not in "iu" for d in dtypes) or k == 0:
        return False
    if not {e.op for e in nodes(*program.add, *program.mul)} & _ARITHMETIC:
        return False
    infinities = absorbing(semiring, dtypes)
    ranges = [[_range(v, d, infinities) for v, d in zip(part, dtypes, strict=True)] for part in (a, b)]
    if any(r is None for part in ranges for r in part):
        return False  # an operand is all ∞, and so is the product
    left, right = ([r for r in part if r is not None] for part in ranges)
    if tropical(semiring, dtypes):
        return _certify_tropical(semiring, dtypes[0], infinities[0], left[0], right[0])
    limits = _Limits(semiring, dtypes, infinities)
    total = limits.evaluate(program.mul, left, right)
    if {e.op for e in nodes(*program.add)} & _ARITHMETIC:
        # A sum of k terms, in whatever order, lies within what ⌈log₂ k⌉ doublings reach.
        for _ in range(max(1, math.ceil(math.log2(k)))):
            total = limits.evaluate(program.add, total, total)
    if c is not None:
        old = [_range(v, d, infinities) for v, d in zip(c, dtypes, strict=True)]
        limits.evaluate(program.add, [o or t for o, t in zip(old, total, strict=True)], total)
    return False


def _range(values: Any, dtype: np.dtype[Any], infinities: Sequence[int]) -> Interval | None:
    if dtype.kind == "f":
        return -math.inf, math.inf
    if dtype.kind == "b":
        return 0, 1
    return finite_range(values, infinities)


def _certify_tropical(semiring: Semiring, dtype: np.dtype[Any], infinity: int, a: Interval, b: Interval) -> bool:
    """Tropical integers: inside, half of ∞ stands for it, and every finite sum must stay on this side."""
    half = abs(infinity // 2)
    signed = crosses_infinity(infinity, a) or crosses_infinity(infinity, b)
    size = max(map(abs, (*a, *b)))
    limit = half // 3 if signed else half - 1
    total = max(map(abs, a)) + max(map(abs, b))
    if size > limit or (not signed and total > limit):
        raise OverflowRiskError(
            f"{semiring.name} in {dtype}: finite entries reach {size:.0f} and sums {total:.0f}, and beside ∞ = {infinity} "
            f"the library can tell {'them apart from ∞ up to ' if signed else 'sums up to '}{limit:.0f}; use {wider(dtype)}"
        )
    return signed


class _Limits:
    """Evaluates intervals and refuses those that leave the integers."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], infinities: Sequence[int]) -> None:
        self.semiring, self.infinities = semiring, infinities
        # Operands of several dtypes are computed in the widest of them; the narrowest limit is the safe one.
        self.dtype = min((d for d in dtypes if d.kind in "iu"), key=lambda d: d.itemsize)
        info = np.iinfo(self.dtype)
        self.low = info.min + (info.min in infinities)
        self.high = info.max - (info.max in infinities)

    def evaluate(self, roots: Sequence[Expr], left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
        operands, value = (left, right), dict[Expr, Interval]()
        for expr in nodes(*roots):
            if expr.op == "var":
                operand, component = expr.args
                value[expr] = operands[operand][component]
            elif expr.op == "const":
                value[expr] = (expr.args[0], expr.args[0])
            else:
                value[expr] = self._apply(expr.op, [value[a] for a in expr.args])
        return [value[root] for root in roots]

    def _apply(self, op: str, args: list[Interval]) -> Interval:
        if op in COMPARISONS or op == "not":
            return 0, 1
        low, high = _interval(op, args)
        bounded = all(math.isfinite(x) for arg in args for x in arg)
        if op in _ARITHMETIC and bounded and not (self.low <= low and high <= self.high):
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: {op!r} inside the product may reach {low:.0f} … {high:.0f}, beyond "
                f"{self.low} … {self.high}; use {wider(self.dtype)}"
            )
        return low, high


def _interval(op: str, args: list[Interval]) -> Interval:
    """The range of an operation on ranges."""
    (a, b), (c, d) = args[0], args[1] if len(args) > 1 else (0, 0)
    match op:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = [_times(x, y) for x in (a, b) for y in (c, d)]
            return min(products), max(products)
        case "neg":
            return -b, -a
        case "abs":
            return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "where":
            return min(args[1][0], args[2][0]), max(args[1][1], args[2][1])
        case "mod" if c > 0:
            return 0, d - 1
        case "shl":
            return min(_times(a, 2**c), _times(a, 2**d)), max(_times(b, 2**c), _times(b, 2**d))
        case "invert":
            return ~int(b), ~int(a)
        case "and" | "or" | "xor" if all(map(math.isfinite, (a, b, c, d))):
            bits = max(int(x).bit_length() for x in (a, b, c, d))
            return (0 if min(a, c) >= 0 else -(1 << bits)), (1 << bits) - 1
        case _:
            # Quotients, remainders and shifts to the right are no larger than what they are taken of.
            return min(a, -abs(b), c, 0), max(b, abs(a), d, 0)


def _times(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y
