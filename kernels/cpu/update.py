"""C ← C ⊕ candidate for one vector of elements in memory, with the witness where C improves strictly."""

from __future__ import annotations

from collections.abc import Sequence

from semiring.algebra.expression import Expr
from semiring.kernels.cpu.emitter import I32, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value

__all__ = ["Via", "update"]

Via = tuple[str, str]
"""Where the witness is kept (an address), and the vector of i32 to put there."""


def update(
    low: Lowering,
    add: Sequence[Expr],
    scalars: Sequence[Scalar],
    extremum: str | None,
    candidate: Sequence[Value],
    places: Sequence[str],
    via: Via | None,
) -> None:
    """Emit C ← C ⊕ candidate at `places`, one address a component; `extremum` says that ⊕ is min or max alone."""
    em, width = low.em, low.width
    old = [Value(em.load(s.vector(width), p, s.bytes), s) for s, p in zip(scalars, places, strict=True)]
    new = low.evaluate(add, old, candidate, scalars)
    for value, scalar, place in zip(new, scalars, places, strict=True):
        em.store(scalar.vector(width), value.name, place, scalar.bytes)
    if via is None:
        return
    order = {"min": "lt", "max": "gt", None: "ne"}[extremum]
    improved = ""
    for value, before, scalar in zip(new, old, scalars, strict=True):
        changed = low.compare(order, scalar, value.name, before.name)
        improved = em.let(f"or {low.mask} {improved}, {changed}") if improved else changed
    place, code = via
    ir = I32.vector(width)
    if low.target.isa == "avx512" and width > 1:
        em.call(f"masked.store.{I32.overload(width)}.p0", "void", (ir, code), ("ptr", place), (low.mask, improved))
    else:
        em.store(ir, em.let(f"select {low.mask} {improved}, {ir} {code}, {ir} {em.load(ir, place, 4)}"), place, 4)
