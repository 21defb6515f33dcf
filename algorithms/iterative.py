"""Iterative closure: Warshall's and Floyd's algorithm, one rank-1 update a vertex.

Harish and Narayanan (2007) run this form on a GPU; every other algorithm here does the same n³ steps in an order that reuses
what a fast memory holds.
"""

from __future__ import annotations

from semiring.kernels.block import Block
from semiring.kernels.engine import Engine

__all__ = ["iterative"]


def iterative(engine: Engine, A: Block) -> None:
    """A ← A ⊕ A² ⊕ … in place, for an idempotent ⊕; with `via` where A has one.

    n³ steps in n sweeps over the matrix; each sweep copies one row and one column.
    """
    everything = slice(None)
    for k in range(0, A.shape[0], engine.granule):
        K = slice(k, k + engine.granule)
        engine.close(A[K, K])
        # A ← A ⊕ A_:k A_k:
        engine.multiply_add(A[everything, K], A[K, everything], A)
