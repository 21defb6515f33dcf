"""The reference engine: NumPy for every dtype, and object arrays (Fraction, int, set, SymPy), exactly as the algebra says.

A product is k rank-1 updates in order. The other engines are tested against its values and witnesses. O(m·n·k) steps in NumPy, with
one temporary of C's size for each component.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import AssumptionWarning, DivergentPivot, callers_level
from semiring.kernels.engine import ArrayEngine, Block
from semiring.kernels.operations import Operations, differ

__all__ = ["ReferenceEngine"]


class ReferenceEngine(ArrayEngine):
    """An `Engine` on NumPy arrays of any dtype of the semiring, object included."""

    pivot = 64

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.semiring, self.dtypes = semiring, dtypes
        self._operations = Operations(semiring, dtypes)

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B as rank-1 updates, k after k."""
        A, B = _own(A, C), _own(B, C)
        for k in range(A.shape[1]):
            column = tuple(v[..., :, k, None] for v in A.values)
            row = tuple(v[..., k, None, :] for v in B.values)
            self._update(C, self._operations.mul(column, row), A.column + k)
            self._count(C.values[0].size)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        A, B = _own(A, C), _own(B, C)
        for values, zero in zip(C.values, self._operations.zero, strict=True):
            values[...] = zero
        self.multiply_add(A, B, C)

    def _update(self, C: Block, candidate: tuple[Any, ...], k: int) -> None:
        """C ← C ⊕ candidate, with `via` = k wherever that changes C."""
        better = self._operations.add(C.values, candidate)
        if C.via is not None:
            C.via[differ(better, C.values)] = k
        for new, old in zip(better, C.values, strict=True):
            old[...] = new

    def _count(self, steps: int) -> None:
        if self.meter is not None:
            self.meter.add(steps)

    def _say_what_it_rests_on(self) -> None:
        """Warn of the assumptions about SymPy's symbols since the last warning."""
        undecided = self._operations.undecided
        if undecided:
            warnings.warn(
                f"the closure over {self.semiring.name} rests on what SymPy cannot decide: {', '.join(sorted(undecided))}; declare "
                f"what the symbols are, as in sympy.symbols('x', positive=True)",
                AssumptionWarning,
                stacklevel=callers_level(),
            )
            undecided.clear()

    def close(self, A: Block) -> None:
        """Compute A ← A ⊕ A² ⊕ …, by Warshall's algorithm."""
        for k in range(A.shape[0]):
            if not self._operations.harmless(tuple(v[..., k, k] for v in A.values)):
                raise DivergentPivot(A.row + k)
            column = tuple(v[..., :, k, None].copy() for v in A.values)
            row = tuple(v[..., k, None, :].copy() for v in A.values)
            self._update(A, self._operations.mul(column, row), A.row + k)
            self._count(A.values[0].size)
        self._say_what_it_rests_on()

    def eliminate(self, A: Block) -> None:
        """Compute A ← A* by Gauss–Jordan elimination: a_ij ← a_ij ⊕ a_ik p* a_kj for i, j ≠ k; row and column k ⊗ p*."""
        n = A.shape[0]
        for k in range(n):
            pivot = tuple(v[..., k, k] for v in A.values)
            star = self._operations.star(pivot)
            if star is None:
                raise DivergentPivot(A.row + k)
            # a_ik p*, p* a_kj and a_ij ⊕ a_ik p* a_kj for i, j ≠ k
            others = np.delete(np.arange(n), k)
            column = tuple(v[..., :, k : k + 1][..., others, :] for v in A.values)
            row = tuple(v[..., k : k + 1, :][..., others] for v in A.values)
            inner = tuple(v[..., others[:, None], others] for v in A.values)
            scale = tuple(np.asarray(s)[..., None, None] for s in star)
            left = self._operations.mul(column, scale)
            right = self._operations.mul(scale, row)
            updated = self._operations.add(inner, self._operations.mul(left, row))
            for c, v in enumerate(A.values):
                v[..., others[:, None], others] = updated[c]
                v[..., others, k] = left[c][..., 0]
                v[..., k, others] = right[c][..., 0, :]
                v[..., k, k] = star[c]
            self._count(A.values[0].size)
        self._say_what_it_rests_on()


def _own(operand: Block, C: Block) -> Block:
    """Return `operand`, copied if it shares memory with C."""
    shared = any(np.may_share_memory(a, c) for a in operand.values for c in C.values)
    values = tuple(v.copy() for v in operand.values) if shared else operand.values
    return Block(values, None, operand.row, operand.column)
