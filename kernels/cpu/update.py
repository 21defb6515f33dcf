"""C ← C ⊕ candidate for one vector of elements in memory, with the witness where C improves strictly."""

from __future__ import annotations

from collections.abc import Sequence

from semiring.kernels.cpu.emitter import I32
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.representation import Representation

__all__ = ["Via", "update"]

Via = tuple[str, str]
"""Where the witness is kept (an address) and the i32 to put there."""


def update(low: Lowering, rep: Representation, candidate: Sequence[Value], places: Sequence[str], via: Via | None) -> None:
    """Emit C ← C ⊕ candidate at `places`, one address a component."""
    em, width = low.em, low.width
    old = [Value(em.load(s.vector(width), p, s.bytes), s) for s, p in zip(rep.outer, places, strict=True)]
    new = low.evaluate(rep.add, old, candidate, rep.outer)
    for value, scalar, place in zip(new, rep.outer, places, strict=True):
        em.store(scalar.vector(width), value.name, place, scalar.bytes)
    if via is None:
        return
    order = {"min": "lt", "max": "gt", None: "ne"}[rep.extremum]
    improved = ""
    for value, before, scalar in zip(new, old, rep.outer, strict=True):
        changed = low.compare(order, scalar, value.name, before.name)
        improved = em.let(f"or {low.mask} {improved}, {changed}") if improved else changed
    place, code = via
    ir = I32.vector(width)
    previous = em.load(ir, place, 4)
    em.store(ir, em.let(f"select {low.mask} {improved}, {ir} {em.splat(code, I32, width)}, {ir} {previous}"), place, 4)
