"""Choice of the algorithm of a closure, after a check of the semiring's laws.

A closure *accumulates*, A ← A ⊕ A² ⊕ …, if ⊕ is idempotent, and else *eliminates* with star(pivot). `settled` resolves a method to an
algorithm, for the planner's prediction and for `schedule_for`:

==========  ================  =======================  =============================
method      accumulating      by elimination           side
==========  ================  =======================  =============================
iterative   `iterative`       `blocked_elimination`    1, or the engine's alignment
blocked     `blocked`         `blocked_elimination`    of pivot blocks
recursive   `recursive`       `recursive_elimination`  of the base case
==========  ================  =======================  =============================

The algorithms close pivot blocks of any side; `Pivots` closes large blocks by smaller ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.equations import LAWS
from semiring.algebra.expression import ARITHMETIC, REAL, nodes
from semiring.algebra.laws import is_idempotent, require
from semiring.algorithms.blocked import blocked, blocked_elimination, iterative
from semiring.algorithms.recursive import recursive, recursive_elimination
from semiring.common.errors import DTypeError, SemiringError
from semiring.kernels.description import BlockSides
from semiring.kernels.engine import Block, Engine

__all__ = ["METHODS", "Pivots", "Schedule", "eliminates", "require_closure_laws", "require_method", "schedule_for", "settled"]

_LAWS = tuple(name for name in LAWS if name not in ("closed", "star"))
"""Laws of every closure. Results are checked for elements outside the carrier or the dtype."""


def require_closure_laws(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, paths: bool) -> None:
    """Raise if the semiring has no closure (`paths`: with paths).

    A broken law raises `LawError`, with a counterexample and a remedy; integers raise `DTypeError` if star divides or may be ∞.
    """
    _require_closure_laws(semiring, dtypes, paths, semiring.running(dtypes))


@functools.lru_cache(maxsize=256)
def _require_closure_laws(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], paths: bool, running: tuple[Any, ...]) -> None:
    # cached for the current callables of the semiring, which are `running`
    require(semiring, dtypes, *_LAWS, for_what="a closure", instead="multiply with matmul, which needs no laws, or mend the definition")
    if paths:
        require(semiring, dtypes, "selective", for_what="paths=True", instead="without paths the closure is defined: use paths=False")
    elif semiring.star is not None:
        _require_star_in(semiring, dtypes)
        require(semiring, dtypes, "star", for_what="a closure by elimination", instead="mend star, or leave it out")


def _require_star_in(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
    """Raise if integers cannot hold the star: a division, or an ∞ that sums lose."""
    if any(d.kind == "O" for d in dtypes) or all(d.kind not in "iu" for d in dtypes):
        return
    used = sorted(REAL & {e.op for e in nodes(*(semiring.program.star or ()))})
    zero = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    for c, (star, low) in enumerate(zip(semiring.program.star or (), zero, strict=False)):
        infinite = {e.args[0] for e in nodes(star) if e.op == "const"} & semiring.carrier.infinite(c) - {low}
        if infinite and semiring.program.operations & ARITHMETIC:
            kinds = ", ".join(map(str, dtypes))
            raise DTypeError(f"the star of {semiring.name} may be {infinite.pop()}, which sums of {kinds} do not keep; use float64")
    if used:
        raise DTypeError(
            f"the star of {semiring.name} uses {used[0]!r}, which {', '.join(map(str, dtypes))} lacks; use float64, or an object array of "
            f"Fractions for exact results"
        )


def eliminates(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, paths: bool) -> bool:
    """Return True if a closure eliminates with star(pivot), False if it accumulates."""
    return not paths and (semiring.star is not None or not is_idempotent(semiring, dtypes))


METHODS = ("auto", "iterative", "blocked", "recursive")

Schedule = Callable[[Engine, Block], None]
"""A ← A ⊕ A² ⊕ …, or A ← A* by elimination, in place."""


def require_method(method: str, block: int | None) -> None:
    """Raise `SemiringError` for an unknown method or a bad block, with the valid choices."""
    if method not in METHODS:
        raise SemiringError(f"unknown method {method!r}; use one of {', '.join(map(repr, METHODS))}")
    if block is not None and (isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1):
        raise SemiringError(f"block is {block!r}; it must be a whole number from 1, or None for the default")


def settled(method: str, block: int | None, n: int, sides: Engine | BlockSides, *, eliminate: bool) -> tuple[str, int]:
    """Return the algorithm of a method for n vertices, and the side of its pivot blocks or base case.

    Sides are rounded up to a multiple of the engine's alignment, as blocks begin there. With packed elements the iterative algorithm takes
    a whole alignment of vertices at a time.
    """
    if method == "iterative":
        return method, sides.alignment
    if method == "auto" and block is None and not eliminate:
        return "recursive", max(sides.pivot, sides.sweep)
    name = "blocked" if method == "blocked" else "recursive"
    if block is not None:
        side = int(block)
    elif method == "blocked":
        side = max(sides.pivot, min(256, n // 8))  # large enough for fast products, small compared to n
    else:
        side = sides.pivot
    return name, -(-side // sides.alignment) * sides.alignment


def schedule_for(method: str, block: int | None, *, eliminate: bool) -> Schedule:
    """Return the closure algorithm of a method; raise `SemiringError` as `require_method` does.

    The method "auto" is recursive, because nearly all of the work is large products, and closes blocks of up to the engine's `sweep`
    vertices by sweeps over the whole block. `block` is the side of the pivot blocks of the blocked algorithm, or of the base case of the
    recursive one; the default suits the engine and n. With `eliminate`, pivots are eliminated by their star.
    """
    require_method(method, block)

    def run(engine: Engine, A: Block) -> None:
        n = A.shape[0]
        name, side = settled(method, block, n, engine, eliminate=eliminate)
        if name == "recursive" and n <= side and n <= engine.pivot:
            (engine.eliminate if eliminate else engine.close)(A)
        elif name == "recursive":
            (recursive_elimination if eliminate else recursive)(Pivots(engine), A, side)
        elif name == "iterative" and side == 1 and not eliminate:
            iterative(engine, A)
        else:  # elimination vertex by vertex is blocked elimination with the smallest blocks
            (blocked_elimination if eliminate else blocked)(Pivots(engine), A, side)

    return run


class Pivots:
    """The primitives of an engine for pivot blocks of any side; blocks larger than the engine's are closed by smaller ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.multiply_add, self.multiply_add_each, self.multiply = engine.multiply_add, engine.multiply_add_each, engine.multiply

    def close(self, A: Block) -> None:
        """Compute A ← A ⊕ A² ⊕ …: in sweeps up to the engine's `sweep` vertices, else recursively."""
        engine, n = self._engine, A.shape[0]
        if n <= engine.pivot:
            engine.close(A)
        elif n <= engine.sweep:
            engine.run(("sweep", engine.block), lambda block: blocked(self, block, engine.block), A)
        else:
            recursive(self, A, max(engine.pivot, engine.sweep))

    def eliminate(self, A: Block) -> None:
        """Compute A ← A*, recursively."""
        engine = self._engine
        if A.shape[0] <= engine.pivot:
            engine.eliminate(A)
        else:
            recursive_elimination(self, A, engine.pivot)
