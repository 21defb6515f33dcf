"""Iterative Floyd–Warshall: one rank-1 update of the whole matrix for each vertex.

Warshall (1962) for reachability, Floyd (1962) for distances; Harish and Narayanan (2007) run this form on a GPU, all elements of a
round at once. Every other algorithm here does the same n³ steps in an order that reuses data in fast memory.

Examples
--------
Four vertices. After round k, paths may go through the vertices up to k:

>>> import numpy as np
>>> from semiring import MIN_PLUS
>>> from semiring.kernels import engine_for
>>> inf = np.inf
>>> roads = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
>>> a = roads.copy()
>>> engine = engine_for(MIN_PLUS, (a.dtype,), "reference")
>>> A, everything = engine.load((a,)), slice(None)
>>> engine.multiply_add(A[everything, 0:1], A[0:1, everything], A)  # 1 → 0 → 3, 2 → 0 → 1 and 3 → 0 → 1
>>> a
array([[ 0.,  3., inf,  7.],
       [ 8.,  0.,  2., 15.],
       [ 5.,  8.,  0.,  1.],
       [ 2.,  5., inf,  0.]])
>>> engine.multiply_add(A[everything, 1:2], A[1:2, everything], A)  # 0 → 1 → 2 and 3 → 0 → 1 → 2
>>> a
array([[ 0.,  3.,  5.,  7.],
       [ 8.,  0.,  2., 15.],
       [ 5.,  8.,  0.,  1.],
       [ 2.,  5.,  7.,  0.]])

The rounds of the vertices 2 and 3 complete it:

>>> a = roads.copy()
>>> iterative(engine, engine.load((a,)))
>>> a
array([[0., 3., 5., 6.],
       [5., 0., 2., 3.],
       [3., 6., 0., 1.],
       [2., 5., 7., 0.]])
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Primitives

__all__ = ["iterative"]


def iterative(engine: Primitives, A: Block) -> None:
    """Compute A ← A ⊕ A² ⊕ … in place, for an idempotent ⊕; with `via` where A has one. n³ steps in n sweeps over the matrix."""
    everything = slice(None)
    for k in range(A.shape[0]):
        # Invariant: a_ij is the ⊕ of all paths from i to j whose inner vertices are below k.
        K = slice(k, k + 1)
        # a_kk ← a_kk ⊕ a_kk² ⊕ …, which is a_kk or raises, on a divergent pivot
        engine.close(A[K, K])
        # a_ij ← a_ij ⊕ a_ik a_kj for all i and j
        engine.multiply_add(A[everything, K], A[K, everything], A)
