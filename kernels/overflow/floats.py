"""Whether a product of floats can overflow where ⊕ only compares, so that what overflowed to ∞ would pass for an element: no path.

Where ⊕ adds, as in ordinary arithmetic, an ∞ from an overflow is what IEEE 754 says it is, and is left alone.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, fold, nodes
from semiring.kernels.limits import ValueStatistics, overflow_risk

__all__ = ["certify_floats", "magnitudes", "product_of_magnitudes"]

_GROWING = {"add", "sub", "mul"}
_BOUNDED = CHOOSING | _GROWING | {"neg", "abs", "sqrt"}


def certify_floats(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[ValueStatistics], right: Sequence[ValueStatistics]
) -> None:
    """Refuse a product of floats in which a ⊗ b of finite elements could overflow, if ⊕ only compares; the operands' statistics tell.

    Raises
    ------
    OverflowRiskError
        Naming the magnitudes, and what would work.
    """
    safe = _safe_magnitude(semiring, dtypes)
    if safe == math.inf:
        return
    sizes = magnitudes(left, dtypes), magnitudes(right, dtypes)
    if max(*sizes[0], *sizes[1]) > safe:
        product_of_magnitudes(semiring, dtypes, *sizes)


def magnitudes(statistics: Sequence[ValueStatistics], dtypes: tuple[np.dtype[Any], ...]) -> list[float]:
    """The largest magnitude of each component's numbers; integers are certified elsewhere and here only meet floats."""
    return [some.largest if d.kind == "f" else 2.0 ** (8 * d.itemsize) for some, d in zip(statistics, dtypes, strict=True)]


def product_of_magnitudes(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[float], right: Sequence[float]
) -> Sequence[float]:
    """The largest magnitude of each component of a ⊗ b, for operands of such magnitudes; NaN where none is known.

    Raises
    ------
    OverflowRiskError
        Where it could overflow, and ⊕ only compares.
    """
    if _safe_magnitude(semiring, dtypes) == math.inf:
        return left
    sizes, op = _product(semiring, dtypes, left, right)
    if op is not None:
        reached = " and ".join(f"{max(part):.3g}" for part in (left, right))
        raise overflow_risk(semiring, dtypes, f"finite entries reach {reached}, so that {op!r} could overflow")
    return sizes


@functools.lru_cache(maxsize=256)
def _safe_magnitude(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> float:
    """A magnitude of elements up to which no product of theirs overflows; ∞ where none ever does, or where that is no harm."""
    floats = [d for d in dtypes if d.kind == "f"]
    if not floats or any(d.kind == "O" for d in dtypes):
        return math.inf
    add, mul = ({e.op for e in nodes(*roots)} for roots in (semiring.program.add, semiring.program.mul))
    if not add <= CHOOSING or not mul & _GROWING:
        return math.inf
    usual = 2.0 ** (min(np.finfo(d).maxexp for d in floats) // 4)
    sizes = [usual] * len(dtypes)
    return usual if _product(semiring, dtypes, sizes, sizes)[1] is None else 0.0


def _product(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], left: Sequence[float], right: Sequence[float]
) -> tuple[list[float], str | None]:
    """The magnitudes of ⊗ for operands of such magnitudes, and an operation of it that could overflow."""
    limit = min(float(np.finfo(d).max) for d in dtypes if d.kind == "f")
    found: list[str] = []

    def checked(op: str, args: list[float]) -> float:
        size = _magnitude_of(op, args)
        if size > limit:
            found.append(op)
        return size

    roots = [root for root, d in zip(semiring.program.mul, dtypes, strict=True) if d.kind == "f"]
    sizes = iter(fold(roots, left, right, _constant, checked))
    return [next(sizes) if d.kind == "f" else size for d, size in zip(dtypes, left, strict=True)], found[0] if found else None


def _constant(value: Any) -> float:
    """The magnitude of a constant."""
    return 0.0 if value in (math.inf, -math.inf) else float(min(abs(value), sys.float_info.max))


def _magnitude_of(op: str, args: list[float]) -> float:
    """The largest magnitude of an operation on magnitudes; NaN where none is known, as of a quotient, and of what is computed from that."""
    if op not in _BOUNDED or any(map(math.isnan, args)):
        return math.nan
    match op:
        case "add" | "sub":
            return args[0] + args[1]
        case "mul":
            return args[0] * args[1]
        case "where":
            return max(args[1:])
        case "sqrt":
            return math.sqrt(args[0])
    return max(args)
