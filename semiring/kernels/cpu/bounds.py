"""Bounds: a kernel that reads a matrix only once checks on the way that all numbers are in the safe range.

The safe numbers run from a least to a greatest one; an infinity may be safe too. On the circle of the dtype's words, ordered by the size of
the numbers (see `statistics`) and rotated so that the infinity is 0, the safe words are 0 and L … H. So

    z = key − infinity  is at most H, and
    z − 1               is at least L − 1 (for the infinity itself, z − 1 is the largest word);

the maximum of z and the minimum of z − 1, found without a branch, show whether any number is out of bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.kernels.cpu.arguments import Arguments, KernelWords
from semiring.kernels.cpu.emitter import Emitter, Scalar
from semiring.kernels.cpu.representation import key_of, order_keys, signed
from semiring.kernels.limits import HIGHEST, LOWEST, SafeRange, finite_range

__all__ = ["BEYOND", "BOUNDS", "BoundsCheck", "bounds_in_words"]

BOUNDS = tuple(map(KernelWords._fields.index, ("origin", "least", "most")))
"""The positions of the words of `bounds_in_words` among the arguments."""

BEYOND = KernelWords._fields.index("beyond")
"""The position of the word in which a kernel answers that some number is out of bounds."""


@functools.lru_cache(maxsize=1024)
def bounds_in_words(safe: SafeRange, dtype: np.dtype[Any]) -> tuple[int, int, int] | None:
    """Return the infinity, L − 1 and H; None if the safe numbers are not a single range and at most one infinity."""
    bits = 8 * dtype.itemsize

    def key(x: float) -> int:
        return key_of(x, dtype.itemsize) if dtype.kind == "f" else int(x)

    ends = finite_range(dtype, ()) if dtype.kind in "iu" else (-math.inf, math.inf)
    low, high = key(safe.low), key(safe.high)
    bottom, top = (key(end) if safe.kinds & kind else None for end, kind in zip(ends, (LOWEST, HIGHEST), strict=True))
    low, high = low - (bottom == low - 1), high + (top == high + 1)
    beside = [end for end in (bottom, top) if end is not None and not low <= end <= high]
    if len(beside) > 1:
        return None
    origin, first = (beside[0], low) if beside else (low, low + 1)  # without one, the least number has its place
    least, most = ((x - origin) % (1 << bits) for x in (first, high))
    return signed(origin, bits), signed(least - 1, bits), signed(most, bits)


class BoundsCheck:
    """Generates the check into a kernel, for vectors of the given widths: the start, the step for each vector, and the answer."""

    def __init__(self, em: Emitter, args: Arguments, scalars: Sequence[Scalar], widths: Sequence[int]) -> None:
        self._em, self._args, self._scalars = em, args, scalars
        self._ends = {(c, w): self._begin(s, w) for c, s in enumerate(scalars) for w in widths}

    def _begin(self, s: Scalar, width: int) -> tuple[str, str, str]:
        """Emit the infinity, and the registers of the greatest z and the least z − 1."""
        em, word = self._em, Scalar("i", s.bytes)
        ir = word.vector(width)
        most, least = (em.let(f"alloca {ir}, align 64") for _ in range(2))
        em.store(ir, word.constant(0, width), most, 64)
        em.store(ir, word.constant(-1, width), least, 64)
        return em.splat(em.load(word.ir, self._args.place(em, "origin"), s.bytes), word, width), most, least

    def take(self, element: Sequence[str], width: int, mask: str = "") -> None:
        """Check a vector of each component, or only the lanes of a mask."""
        em = self._em
        for c, (x, s) in enumerate(zip(element, self._scalars, strict=True)):
            origin, most, least = self._ends[c, width]
            word = Scalar("i", s.bytes)
            ir, overload = word.vector(width), word.overload(width)
            key = order_keys(em, word, width, em.let(f"bitcast {s.vector(width)} {x} to {ir}")) if s.kind == "f" else x
            z = em.let(f"sub {ir} {key}, {origin}")
            for op, place, value in (("umax", most, z), ("umin", least, em.let(f"sub {ir} {z}, {word.constant(1, width)}"))):
                old = em.load(ir, place, s.bytes)
                new = em.call(f"{op}.{overload}", ir, (ir, old), (ir, value))
                em.store(ir, em.let(f"select <{width} x i1> {mask}, {ir} {new}, {ir} {old}") if mask else new, place, s.bytes)

    def tell(self) -> None:
        """Store the answer: 1 if any number was out of bounds."""
        em, beyond = self._em, "false"
        for (c, width), (_, most, least) in self._ends.items():
            word = Scalar("i", self._scalars[c].bytes)
            ir = word.vector(width)
            for op, place, test, bound in (("umax", most, "ugt", "most"), ("umin", least, "ult", "least")):
                end = em.load(ir, place, word.bytes)
                if width > 1:
                    end = em.call(f"vector.reduce.{op}.{word.overload(width)}", word.ir, (ir, end))
                limit = em.load(word.ir, self._args.place(em, bound), word.bytes)
                beyond = em.let(f"or i1 {beyond}, {em.let(f'icmp {test} {word.ir} {end}, {limit}')}")
        em.store("i64", em.let(f"zext i1 {beyond} to i64"), self._args.place(em, "beyond"), 8)
