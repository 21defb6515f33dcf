"""Products modulo p by products of floats: exact integers, reduced only when the next sum could leave the float.

A sum of k products of residues is exact in float32 up to 2²⁴, and in float64 up to 2⁵³. Longer sums are cut into blocks of steps, whose
results are added as int64. For a large p, where blocks would be short, A is split into two halves of its bits: A = 2ʰ·A₁ + A₀ with
|A₀| ≤ 2ʰ⁻¹, and B is centred, |B| ≤ p/2. Then A·B = 2ʰ·(A₁·B mod p) + A₀·B takes two products, in blocks of at least 256 steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import namespace
from semiring.arrays.threads import run
from semiring.kernels.engine import Block
from semiring.kernels.operations import modulus_of

__all__ = ["Blocks", "Residues", "blocks_for", "fits_steps", "multiply_modulo"]

_NARROW: np.dtype[Any] = np.dtype(np.float32)
_WIDE: np.dtype[Any] = np.dtype(np.float64)
_EXACT = 1 << 24, 1 << 53
"""Bounds up to which every integer is a float32, and a float64."""

_SHORT = 512
"""Steps of a block below which two products of halves are faster than the sum of blocks."""

_SUMMED = 512
"""Blocks whose results, each at most 2⁵³, are added before a reduction: their sum stays in int64."""

Product = Callable[[Any, Any], Any]
"""Multiplies two arrays of floats, or stacks of such."""


class Blocks(NamedTuple):
    """The steps of a block, the dtype of its product, and the bits of the lower half of A (0: A is not split)."""

    steps: int
    dtype: np.dtype[Any]
    bits: int = 0


class Residues(NamedTuple):
    """The modulus of an engine, and the fewest steps of its products by floats."""

    p: int
    least: int

    @classmethod
    def of(cls, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], least: int) -> Residues:
        """Return the residues of a semiring modulo p; all products are by floats where a step could leave the dtype."""
        p = modulus_of(semiring, dtypes)
        assert p is not None
        return cls(p, least if fits_steps(p, dtypes[0]) else 1)

    def by_floats(self, A: Block, C: Block) -> bool:
        """Return True if floats multiply A and B into C."""
        return int(C.values[0].size) * A.shape[1] >= self.least


@functools.lru_cache(maxsize=1024)
def blocks_for(p: int, k: int) -> Blocks:
    """Return the blocks of a sum of k products modulo p.

    >>> blocks_for(7, 1000).dtype, blocks_for(65521, 1000).steps, blocks_for(1073741789, 1000).steps
    (dtype('float32'), 2098176, 512)
    """
    single, double = (bound // (p - 1) ** 2 for bound in _EXACT)
    if k <= single or single >= _SHORT:
        return Blocks(single, _NARROW)
    if k <= double or double >= _SHORT:
        return Blocks(double, _WIDE)
    bits = ((p - 1).bit_length() + 1) // 2
    # |A₀| ≤ 2ʰ⁻¹, 0 ≤ A₁ ≤ (p − 1 + 2ʰ⁻¹) / 2ʰ, |B| ≤ p / 2
    largest = max(1 << (bits - 1), (p - 1 + (1 << (bits - 1))) >> bits) * (p // 2)
    return Blocks(_EXACT[1] // largest, _WIDE, bits)


def fits_steps(p: int, dtype: np.dtype[Any]) -> bool:
    """Return True if a step, a sum with a product before its reduction, stays in an integer dtype."""
    return (p - 1) ** 2 <= np.iinfo(dtype).max >= 2 * (p - 1)


def multiply_modulo(
    p: int, operands: tuple[Any, Any, Any], product: Product, rows: Sequence[slice], threads: int = 1, *, fresh: bool
) -> None:
    """C ← A·B mod p if `fresh`, else C ← (C + A·B) mod p, for arrays (or stacks) A, B, C of residues in any integer dtype.

    The `rows` of C are computed one part after the other, or by several threads; ``product`` multiplies their floats.
    """
    a, b, c = operands
    xp, how = namespace(a), blocks_for(p, a.shape[-1])
    right = _floats(b, how, p)[0]
    if len(rows) > 1 and xp.may_share_memory(a, c):
        a = a.copy()

    def work(some: slice, _: int) -> None:
        into = c[..., some, :]
        total, *low = (_sum_of_blocks(left, right, how.steps, product, p) for left in _floats(a[..., some, :], how))
        if low:
            total %= p
            total <<= how.bits
            total += low[0]
        if not fresh:
            total += into.astype(np.int64)
        total %= p
        into[...] = total

    run(work, rows, threads)


def _floats(v: Any, how: Blocks, p: int = 0) -> list[Any]:
    """Convert residues to floats: whole, or the halves of A; for B, with its `p`, centred. Matrices that a stack repeats stay shared."""
    once = v[tuple([slice(0, 1) if step == 0 else slice(None) for step in v.strides[:-2]])]
    xp = namespace(v)
    if not how.bits:
        parts = [once.astype(how.dtype)]
    elif p:
        parts = [once.astype(how.dtype)]
        parts[0] -= (once > p // 2) * how.dtype.type(p)
    else:
        whole, half = once.astype(np.int64), 1 << (how.bits - 1)
        high = (whole + half) >> how.bits
        parts = [high.astype(how.dtype), (whole - (high << how.bits)).astype(how.dtype)]
    return [xp.broadcast_to(part, v.shape) for part in parts]


def _sum_of_blocks(left: Any, right: Any, steps: int, product: Product, p: int) -> Any:
    """Return a number congruent to the product for each element, as int64."""
    total = None
    for i, start in enumerate(range(0, left.shape[-1], steps)):
        block = slice(start, start + steps)
        found = product(left[..., block], right[..., block, :]).astype(np.int64)
        if total is None:
            total = found
        else:
            total += found
            if i % _SUMMED == 0:
                total %= p
    return total
