"""Tropical integers on a GPU: ∞ is the dtype's end for the caller, and half of it during a computation, so that ∞ + ∞ does not wrap.

Operands are clamped to this inner ∞ (`inner_infinity`). Afterwards, what lies at or beyond a threshold becomes the caller's ∞ again. If a
finite element could pull a sum with ∞ back, the threshold is lower; the GPU finds out while it clamps, in `signs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate
from semiring.kernels.cuda.elements import ElementsPlan, elements_plan, of_bytes
from semiring.kernels.cuda.launches import LaunchPlan, SplitKPlan, TransposedPlan
from semiring.kernels.engine import Block
from semiring.kernels.limits import threshold

__all__ = ["ClampedPlan", "clamp_infinity", "clamped_plan", "restore_infinity"]


def clamp_infinity(values: Any, inner: int, *, owned: bool, signs: Any = None) -> Any:
    """Clamp tropical integers to the inner ∞ (see `inner_infinity`), in place if `owned`.

    `signs` becomes 1 if a finite element could pull a sum with ∞ back below it.
    """
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    if out.size:
        plan, flag = _clamping(values, out, inner, flagged=signs is not None), () if signs is None else (signs.data.ptr,)
        plan.start((values.data.ptr, out.data.ptr), (inner, *flag))
    return out


def restore_infinity(values: Any, via: Any, inner: int, infinity: int, *, signed: bool, signs: Any = None) -> None:
    """Undo `clamp_infinity` in place: entries at or beyond the threshold become `infinity`, without a path.

    Finite elements may have pulled sums back if `signed`, or where `clamp_infinity` has set `signs` to 1.
    """
    if values.size:
        plan, flag = _restoring(values, via, infinity, flagged=signs is not None), 0 if signs is None else signs.data.ptr
        own = (values.data.ptr,) if via is None else (values.data.ptr, via.data.ptr)
        plan.start(own, _limits(inner, infinity, flag, signed=signed))


def _clamping(values: Any, out: Any, inner: int, *, flagged: bool) -> ElementsPlan:
    beyond, against = ("x > inner", "x < 0") if inner > 0 else ("x < inner", "x > 0")
    test = f"if ({against}) *reinterpret_cast<int32*>(signs) = 1; " if flagged else ""
    return elements_plan(f"{test}y = {beyond} ? inner : x", {"x": values, "y": out}, "inner", *(("signs",) if flagged else ()))


def _restoring(values: Any, via: Any, infinity: int, *, flagged: bool) -> ElementsPlan:
    names, least = ["threshold", "infinity"], "threshold"
    if flagged:
        names += ["signed_threshold", "signs"]
        least = "(*reinterpret_cast<const int32*>(signs) ? signed_threshold : threshold)"
    beyond = f"x >= {least}" if infinity > 0 else f"x <= {least}"
    pathless, paths = ("", {}) if via is None else (", via = -1", {"via": via})
    return elements_plan(f"if ({beyond}) x = infinity{pathless}", {"x": values, **paths}, *names)


def _limits(inner: int, infinity: int, signs: int, *, signed: bool = False) -> tuple[int, ...]:
    """Return the numbers of `_restoring`; `signs` is an address, or 0."""
    least = threshold(inner, signed=signed), infinity
    return (*least, threshold(inner, signed=True), signs) if signs else least


@dataclass(frozen=True, slots=True, eq=False)
class ClampedPlan:
    """Launches of a product of the caller's tropical integers: clamp both operands (and C), multiply, and restore ∞."""

    tiles: LaunchPlan | SplitKPlan | TransposedPlan  # of clamped operands
    shapes: tuple[tuple[int, ...], tuple[int, ...]]  # of the operands
    dtype: np.dtype[Any]
    clamp: tuple[ElementsPlan, ElementsPlan]
    clamp_old: ElementsPlan | None  # of C, unless it is to be replaced
    restore: ElementsPlan
    inner: int
    infinity: int
    witness: bool

    def start(self, own: Sequence[int], predicate: LaunchPredicate = ALWAYS) -> None:
        """Launch with the `addresses` of the product."""
        import cupy

        _, _, to, _, via, first = own
        signs, inner = of_bytes(1, 0), self.inner
        a, b = (cupy.empty(shape, self.dtype) for shape in self.shapes)
        for plan, source, target in zip(self.clamp, own[:2], (a.data.ptr, b.data.ptr), strict=True):
            plan.start((source, target), (inner, signs.data.ptr))
        if self.clamp_old is not None:
            self.clamp_old.start((to, to), (inner,))
        self.tiles.start((a.data.ptr, b.data.ptr, to, b.data.ptr, via, first), predicate)
        self.restore.start((to, via) if self.witness else (to,), _limits(inner, self.infinity, signs.data.ptr))


def clamped_plan(tiles: Any, A: Block, B: Block, C: Block, left: Any, right: Any, inner: int, infinity: int, *, fresh: bool) -> ClampedPlan:
    """Plan C ← A⊗B if `fresh`, else C ← C ⊕ A⊗B; `tiles` were planned for `left` and `right`, which are clamped copies of A and B."""
    clamp = _clamping(A.values[0], left, inner, flagged=True), _clamping(B.values[0], right, inner, flagged=True)
    old = None if fresh else _clamping(C.values[0], C.values[0], inner, flagged=False)
    restore, shapes = _restoring(C.values[0], C.via, infinity, flagged=True), (left.shape, right.shape)
    return ClampedPlan(tiles, shapes, left.dtype, clamp, old, restore, inner, infinity, C.via is not None)
