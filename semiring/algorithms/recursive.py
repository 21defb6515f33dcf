"""Recursive closure in place (R-Kleene): two closures of half the side and six products, which are nearly all of the work.

Buluç, Gilbert and Budak (2010), Fig. 3, whose eight assignments are numbered below, accumulates: ⊕ must be idempotent.
`recursive_elimination` has the order for any closed semiring.

Examples
--------
The eight assignments for four vertices, cut in the middle: 1 is {0, 1}, and 2 is {2, 3}.

>>> import numpy as np
>>> from semiring import MIN_PLUS
>>> from semiring.kernels import engine_for
>>> inf = np.inf
>>> roads = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
>>> a = roads.copy()
>>> engine = engine_for(MIN_PLUS, (a.dtype,), "reference")
>>> A11, A12, A21, A22 = quarter(engine.load((a,)), 2)
>>> engine.close(A11)  # (1)
>>> engine.multiply_add(A11, A12, A12)  # (2): 0 → 1 → 2 and 1 → 0 → 3
>>> engine.multiply_add(A21, A11, A21)  # (3): 2 → 0 → 1 and 3 → 0 → 1
>>> engine.multiply_add(A21, A12, A22)  # (4): 3 → 0 → 1 → 2
>>> a
array([[ 0.,  3.,  5.,  7.],
       [ 8.,  0.,  2., 15.],
       [ 5.,  8.,  0.,  1.],
       [ 2.,  5.,  7.,  0.]])
>>> engine.close(A22)  # (5): all best paths among 2 and 3
>>> engine.multiply_add(A22, A21, A21)  # (6): 2 → 3 → 0 and 2 → 3 → 0 → 1
>>> engine.multiply_add(A12, A22, A12)  # (7): 0 → 1 → 2 → 3 and 1 → 2 → 3
>>> engine.multiply_add(A12, A21, A11)  # (8): 1 → 2 → 3 → 0
>>> a
array([[0., 3., 5., 6.],
       [5., 0., 2., 3.],
       [3., 6., 0., 1.],
       [2., 5., 7., 0.]])

The same by recursion down to single vertices:

>>> a = roads.copy()
>>> recursive(engine, engine.load((a,)), 1)
>>> a[1]
array([5., 0., 2., 3.])
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Primitives, quarter

__all__ = ["close_first", "eliminate_first", "recursive", "recursive_elimination"]


def recursive(engine: Primitives, A: Block, base: int) -> None:
    """Compute A ← A ⊕ A² ⊕ … in place, for an idempotent ⊕; with `via` where A has one. n³ steps; blocks of side ≤ base at once."""
    if A.shape[0] <= base:
        return engine.close(A)
    A11, A12, A21, A22 = quarter(A, base)
    # (1) to (4): all paths with inner vertices in the first half
    close_first(engine, A11, A12, A21, A22, base)
    # (5) A22 ← A22 ⊕ A22² ⊕ …
    recursive(engine, A22, base)
    # (6) A21 ← A21 ⊕ A22 A21
    engine.multiply_add(A22, A21, A21)
    # (7) A12 ← A12 ⊕ A12 A22
    engine.multiply_add(A12, A22, A12)
    # (8) A11 ← A11 ⊕ A12 A21
    engine.multiply_add(A12, A21, A11)


def close_first(engine: Primitives, A11: Block, A12: Block, A21: Block, A22: Block, base: int) -> None:
    """Run the first four assignments, A ← A ⊕ the paths with all inner vertices in the first part, which need not be a half."""
    # (1) A11 ← A11 ⊕ A11² ⊕ …
    recursive(engine, A11, base)
    if 0 in A22.shape:
        return
    # (2) A12 ← A12 ⊕ A11 A12
    engine.multiply_add(A11, A12, A12)
    # (3) A21 ← A21 ⊕ A21 A11
    engine.multiply_add(A21, A11, A21)
    # (4) A22 ← A22 ⊕ A21 A12
    engine.multiply_add(A21, A12, A22)


def recursive_elimination(engine: Primitives, A: Block, base: int) -> None:
    """Compute A ← A* in place, for any closed semiring, with true products of S = A11* and T = A22*.

    (The order of Fig. 3 would compute A21 S S A12, which is A21 S A12 for an idempotent ⊕ only.)

    Examples
    --------
    >>> import numpy as np
    >>> from semiring import PLUS_TIMES
    >>> from semiring.kernels import engine_for
    >>> given = np.array([[0.5, 1, 0, 0], [0, 0.5, 0, 0], [1, 0, 0.5, 1], [0, 0, 0, 0.5]])
    >>> a = given.copy()
    >>> engine = engine_for(PLUS_TIMES, (a.dtype,), "reference")
    >>> recursive_elimination(engine, engine.load((a,)), 2)
    >>> a
    array([[2., 4., 0., 0.],
           [0., 2., 0., 0.],
           [4., 8., 2., 4.],
           [0., 0., 0., 2.]])
    >>> bool((a @ (np.eye(4) - given) == np.eye(4)).all())  # A* = (I − A)⁻¹
    True
    """
    if A.shape[0] <= base:
        return engine.eliminate(A)
    A11, A12, A21, A22 = quarter(A, base)
    eliminate_first(engine, A11, A12, A21, A22, base)
    # A22 ← T
    recursive_elimination(engine, A22, base)
    # A12 ← S A12 T
    engine.multiply(A12, A22, A12)
    # A11 ← S ⊕ (S A12 T) (A21 S): only the left factor has T yet
    engine.multiply_add(A12, A21, A11)
    # A21 ← T A21 S
    engine.multiply(A22, A21, A21)


def eliminate_first(engine: Primitives, A11: Block, A12: Block, A21: Block, A22: Block, base: int) -> None:
    """Eliminate the first part, which need not be a half; A22 becomes its Schur complement."""
    # A11 ← S
    recursive_elimination(engine, A11, base)
    if 0 in A22.shape:
        return
    # A12 ← S A12
    engine.multiply(A11, A12, A12)
    # A22 ← A22 ⊕ A21 S A12
    engine.multiply_add(A21, A12, A22)
    # A21 ← A21 S
    engine.multiply(A21, A11, A21)
