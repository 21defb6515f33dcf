"""C ← C ⊕ candidate for one vector of elements in memory, with the witness where C improves strictly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from semiring.algebra.expression import Expr
from semiring.kernels.cpu.emitter import I32, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value

__all__ = ["Via", "improve", "store_where", "update"]

Via = tuple[str, str]
"""Where the witness is kept (an address), and the vector of i32 to put there."""


def improve(
    low: Lowering, add: Sequence[Expr], scalars: Sequence[Scalar], extremum: str | None, old: Sequence[Value], candidate: Sequence[Value]
) -> tuple[list[Value], Callable[[], str]]:
    """old ⊕ candidate, and what emits where that is strictly better; `extremum` says that ⊕ is min or max alone."""
    new = low.evaluate(add, old, candidate, scalars)
    order = {"min": "lt", "max": "gt", None: "ne"}[extremum]

    def improved() -> str:
        return low.any_of([low.compare(order, s, v.name, o.name) for s, v, o in zip(scalars, new, old, strict=True)])

    return new, improved


def update(
    low: Lowering,
    add: Sequence[Expr],
    scalars: Sequence[Scalar],
    extremum: str | None,
    candidate: Sequence[Value],
    places: Sequence[str],
    via: Via | None,
) -> None:
    """Emit C ← C ⊕ candidate at `places`, one address a component."""
    em, width = low.em, low.width
    old = [Value(em.load(s.vector(width), p, s.bytes), s) for s, p in zip(scalars, places, strict=True)]
    new, improved = improve(low, add, scalars, extremum, old, candidate)
    for value, scalar, place in zip(new, scalars, places, strict=True):
        em.store(scalar.vector(width), value.name, place, scalar.bytes)
    if via is not None:
        store_where(low, improved(), via)


def store_where(low: Lowering, condition: str, via: Via) -> None:
    """Emit the store of witnesses where the condition holds."""
    em, ir, (place, code) = low.em, I32.vector(low.width), via
    if low.target.isa == "avx512" and low.width > 1:
        # LLVM 22 has the alignment as an attribute, and reads it in the place where older ones need it.
        em.call(f"masked.store.{I32.overload(low.width)}.p0", "void", (ir, code), ("ptr", place), ("i32", 4), (low.mask, condition))
    else:
        em.store(ir, low.select(condition, I32, code, em.load(ir, place, 4)), place, 4)
