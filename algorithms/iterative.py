"""Iterative closure: Warshall's and Floyd's algorithm, one rank-1 update a vertex.

Harish and Narayanan (2007) run this form on a GPU; every other algorithm here does the same n³ steps in an order that reuses
what a fast memory holds.
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Engine

__all__ = ["iterative"]


def iterative(engine: Engine, A: Block) -> None:
    """A ← A ⊕ A² ⊕ … in place, for an idempotent ⊕; with `via` where A has one.

    n³ steps in n sweeps over the matrix; each sweep copies one row and one column. An engine that cannot cut a matrix between any two
    vertices, because it packs their bits, takes as many at a time as it has to.
    """
    everything = slice(None)
    for k in range(0, A.shape[0], engine.granule):
        K = slice(k, k + engine.granule)
        engine.close(A[K, K])
        if engine.granule > 1:
            # A_K: ← A_K: ⊕ A_KK A_K: (the loop of a single vertex adds nothing to its row)
            engine.multiply_add(A[K, K], A[K, everything], A[K, everything])
        # A ← A ⊕ A_:K A_K:
        engine.multiply_add(A[everything, K], A[K, everything], A)
