"""Blocked closure in four phases, for distances alone or united with the construction matrix.

Venkataraman, Sahni and Mukhopadhyaya (2003); Katz and Kider (2008). On a block that carries `via` the same text is the *united*
algorithm of Matsumoto, Nakasato and Sedukhin (2012), Algorithms 3–6: every update that improves a value strictly also records the
intermediate vertex. `via` holds global 0-based vertices, the block's first vertex plus k (their Algorithms 4 and 6 print that
offset one block too far, and Algorithm 5 omits it).
"""

from __future__ import annotations

from semiring.kernels.engine import Block, Engine, blocks

__all__ = ["blocked", "blocked_elimination"]


def blocked(engine: Engine, A: Block, b: int) -> None:
    """A ← A ⊕ A² ⊕ … in place with blocks of side b, for an idempotent ⊕; with `via` where A has one.

    n³ steps; each of the n/b rounds sweeps over the matrix once. Any b up to `engine.pivot` works
    (`Pivots` lifts that limit); the last block is what is left.
    """
    for K, others in blocks(A, b, engine.granule):
        # Phase 1: A_KK ← A_KK ⊕ A_KK² ⊕ …
        engine.close(A[K, K])
        # Phases 2 and 3: A_KJ ← A_KJ ⊕ A_KK A_KJ and A_IK ← A_IK ⊕ A_IK A_KK
        row = ((A[K, K], A[K, J], A[K, J]) for J in others)
        column = ((A[I, K], A[K, K], A[I, K]) for I in others)
        engine.multiply_add_each(*row, *column)
        # Phase 4: A_IJ ← A_IJ ⊕ A_IK A_KJ
        engine.multiply_add_each(*((A[I, K], A[K, J], A[I, J]) for I in others for J in others))


def blocked_elimination(engine: Engine, A: Block, b: int) -> None:
    """A ← A* in place with blocks of side b, for any closed semiring: block Gauss–Jordan elimination.

    The phases run in the order 1, 3, 4, 2, and the panels are true products, because ⊕ does not forgive a path counted twice.
    """
    for K, others in blocks(A, b, engine.granule):
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
