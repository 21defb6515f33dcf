"""Recursive closure in place: nearly all work becomes large products.

Buluç, Gilbert and Budak (2010), Fig. 3: two recursive calls and six products a level. The text accumulates, so ⊕ must be idempotent;
`recursive_elimination` is the order that any closed semiring needs.
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Engine, quarter

__all__ = ["recursive", "recursive_elimination"]


def recursive(engine: Engine, A: Block, base: int) -> None:
    """A ← A ⊕ A² ⊕ … in place, for an idempotent ⊕; with `via` where A has one. n³ steps; blocks of side ≤ base are closed directly."""
    if A.shape[0] <= base:
        return engine.close(A)
    A11, A12, A21, A22 = quarter(A, base)
    recursive(engine, A11, base)
    # A12 ← A12 ⊕ A11 A12
    engine.multiply_add(A11, A12, A12)
    # A21 ← A21 ⊕ A21 A11
    engine.multiply_add(A21, A11, A21)
    # A22 ← A22 ⊕ A21 A12
    engine.multiply_add(A21, A12, A22)
    recursive(engine, A22, base)
    # A21 ← A21 ⊕ A22 A21
    engine.multiply_add(A22, A21, A21)
    # A12 ← A12 ⊕ A12 A22
    engine.multiply_add(A12, A22, A12)
    # A11 ← A11 ⊕ A12 A21
    engine.multiply_add(A12, A21, A11)


def recursive_elimination(engine: Engine, A: Block, base: int) -> None:
    """A ← A* in place, for any closed semiring, with true products of S = A11* and T = A22*.

    (Fig. 3's own order would compute A21 S S A12, which only an idempotent ⊕ forgives.)
    """
    if A.shape[0] <= base:
        return engine.eliminate(A)
    A11, A12, A21, A22 = quarter(A, base)
    # A11 ← S
    recursive_elimination(engine, A11, base)
    # A12 ← S A12
    engine.multiply(A11, A12, A12)
    # A22 ← A22 ⊕ A21 S A12
    engine.multiply_add(A21, A12, A22)
    # A21 ← A21 S
    engine.multiply(A21, A11, A21)
    # A22 ← T
    recursive_elimination(engine, A22, base)
    # A11 ← S ⊕ (S A12) T (A21 S): the right factor before it is scaled, the left one after
    engine.multiply(A12, A22, A12)
    engine.multiply_add(A12, A21, A11)
    # A21 ← T A21 S
    engine.multiply(A22, A21, A21)
