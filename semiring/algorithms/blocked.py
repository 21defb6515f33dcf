"""Floyd–Warshall by single vertices, and by blocks in four phases, for distances alone or united with the construction matrix.

Floyd–Warshall by single vertices is the form with blocks of one: Warshall (1962) for reachability, Floyd (1962) for distances. Harish and
Narayanan (2007) run `iterative` on a GPU, all elements of a round at once. Larger blocks do the same n³ steps in an order that reuses data
in fast memory.

Venkataraman, Sahni and Mukhopadhyaya (2003); Katz and Kider (2008). The phases are numbered as by Matsumoto, Nakasato and Sedukhin (2012).
Katz and Kider count three: the independent block (1), blocks with one dependency (2 and 3), and blocks with two (4).

On a block with `via` the same text is Matsumoto's *united* algorithm (Algorithms 3–6): every update that improves a value strictly also
records the intermediate vertex in the construction matrix. `via` holds global 0-based vertices, the block's first vertex plus k.
(Algorithms 4 and 6 print this first vertex one block too far, and Algorithm 5 omits the addition.)

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

Round 0 for the same vertices and blocks of two, phase by phase: K is {0, 1}, and J, or I, is {2, 3}.

>>> a, via = roads.copy(), np.full((4, 4), -1, dtype=np.int32)
>>> A, K, J = engine.load((a,), via), slice(0, 2), slice(2, 4)
>>> engine.close(A[K, K])  # phase 1: nothing, as 3 and 8 are best
>>> engine.multiply_add(A[K, K], A[K, J], A[K, J])  # phase 2: 0 → 1 → 2 and 1 → 0 → 3
>>> a
array([[ 0.,  3.,  5.,  7.],
       [ 8.,  0.,  2., 15.],
       [ 5., inf,  0.,  1.],
       [ 2., inf, inf,  0.]])
>>> engine.multiply_add(A[J, K], A[K, K], A[J, K])  # phase 3: 2 → 0 → 1 and 3 → 0 → 1
>>> engine.multiply_add(A[J, K], A[K, J], A[J, J])  # phase 4: 3 → 0 → 1 → 2, as 2 + 5
>>> a
array([[ 0.,  3.,  5.,  7.],
       [ 8.,  0.,  2., 15.],
       [ 5.,  8.,  0.,  1.],
       [ 2.,  5.,  7.,  0.]])

Both rounds, with the construction matrix. The best path from 1 to 0 goes through 2, the one from 2 to 0 through 3, and −1 marks edges:
1 → 2 → 3 → 0.

>>> a, via = roads.copy(), np.full((4, 4), -1, dtype=np.int32)
>>> blocked(engine, engine.load((a,), via), 2)
>>> a
array([[0., 3., 5., 6.],
       [5., 0., 2., 3.],
       [3., 6., 0., 1.],
       [2., 5., 7., 0.]])
>>> via
array([[-1, -1,  1,  2],
       [ 2, -1, -1,  2],
       [ 3,  3, -1, -1],
       [-1,  0,  0, -1]], dtype=int32)
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Primitives, blocks

__all__ = ["blocked", "blocked_elimination", "iterative"]


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


def blocked(engine: Primitives, A: Block, b: int) -> None:
    """Compute A ← A ⊕ A² ⊕ … in place with blocks of side b, for an idempotent ⊕; with `via` where A has one.

    n³ steps; each of the n/b rounds sweeps over the matrix once. The last block may be smaller. On matrices packed into bits,
    `semiring.algorithms.schedules` rounds b up to a multiple of the engine's alignment.
    """
    for K, others in blocks(A, b):
        # Invariant: a_ij is the ⊕ of all paths from i to j whose inner vertices are below those of K.
        # Phase 1: A_KK ← A_KK ⊕ A_KK² ⊕ …
        engine.close(A[K, K])
        # Phases 2 and 3: A_KJ ← A_KJ ⊕ A_KK A_KJ and A_IK ← A_IK ⊕ A_IK A_KK
        row = ((A[K, K], A[K, J], A[K, J]) for J in others)
        column = ((A[I, K], A[K, K], A[I, K]) for I in others)
        engine.multiply_add_each(*row, *column)
        # Phase 4: A_IJ ← A_IJ ⊕ A_IK A_KJ
        engine.multiply_add_each(*((A[I, K], A[K, J], A[I, J]) for I in others for J in others))


def blocked_elimination(engine: Primitives, A: Block, b: int) -> None:
    """Compute A ← A* in place with blocks of side b, for any closed semiring: block Gauss–Jordan elimination.

    The phases run in the order 1, 3, 4, 2, and the panels are products without ⊕ C, because a path counted twice would change the sum.

    Examples
    --------
    How many paths lead from 0 to 3 in 0 → 1 → 3, 0 → 2 → 3 and 0 → 3? Over ordinary arithmetic A* = (I − A)⁻¹ counts them:

    >>> import numpy as np
    >>> from semiring import PLUS_TIMES
    >>> from semiring.kernels import engine_for
    >>> a = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    >>> engine = engine_for(PLUS_TIMES, (a.dtype,), "reference")
    >>> blocked_elimination(engine, engine.load((a,)), 2)
    >>> a
    array([[1., 1., 1., 3.],
           [0., 1., 0., 1.],
           [0., 0., 1., 1.],
           [0., 0., 0., 1.]])
    """
    for K, others in blocks(A, b):
        # Invariant, for the vertices k below those of K, the rest r, and the input A on the right:
        # A_kk = A_kk*, A_kr = A_kk* A_kr, A_rk = A_rk A_kk*, A_rr = A_rr ⊕ A_rk A_kk* A_kr.
        # Phase 1: A_KK ← A_KK*
        engine.eliminate(A[K, K])
        for I in others:
            # Phase 3: A_IK ← A_IK A_KK*
            engine.multiply(A[I, K], A[K, K], A[I, K])
        for I in others:
            for J in others:
                # Phase 4: A_IJ ← A_IJ ⊕ (A_IK A_KK*) A_KJ
                engine.multiply_add(A[I, K], A[K, J], A[I, J])
        for J in others:
            # Phase 2: A_KJ ← A_KK* A_KJ
            engine.multiply(A[K, K], A[K, J], A[K, J])
