"""The task of a closure, for a matrix or a stack: an engine, a schedule, and checks of the numbers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.pivoting import pivot_where_needed
from semiring.algorithms.schedules import Schedule, eliminates, require_closure_laws, schedule_for
from semiring.algorithms.sums import diverged, is_inverse, nonnegative_sums
from semiring.common.errors import DivergenceError, DivergentPivot
from semiring.kernels.engine import Block, Engine
from semiring.kernels.limits import ValueStatistics, tropical
from semiring.kernels.overflow.closures import leaves_carrier, statistics_of

__all__ = ["Task", "steps_for"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class Task(NamedTuple):
    """An engine, and what it is to do with each matrix.

    Attributes
    ----------
    engine : Engine
    check : bool
        Whether what could leave the dtype is refused.
    shortcuts : bool
        Whether another algorithm than the schedule may find the same.
    schedule : callable
        A ← A ⊕ A² ⊕ …, or A ← A* where it is to `eliminate`.
    eliminate, reflexive : bool
    name : tuple
        What tells the schedule from others of the engine.
    """

    engine: Engine
    check: bool
    shortcuts: bool
    schedule: Schedule
    eliminate: bool
    reflexive: bool
    name: tuple[str, int | None]

    def accumulate(self, values: Values, via: Array | None) -> None:
        """values ← A⁺ or I ⊕ A⁺ for an idempotent ⊕. Where a pivot diverges, all elements are still sums over some paths."""
        engine = self.engine
        A = engine.load(values, via)

        def steps(block: Block) -> None:
            if self.reflexive:
                # A ← I ⊕ A
                engine.add_identity(block)
            # A ← A ⊕ A² ⊕ …
            self.schedule(engine, block)

        try:
            engine.run((*self.name, self.reflexive), steps, A)
        finally:
            engine.store(A, values)

    def run_elimination(self, values: Values) -> None:
        """values ← A* or A⁺, for any closed semiring.

        Raises
        ------
        DivergentPivot
            Also for a sum of non-negative numbers that came out negative, as it diverges.
        """
        engine = self.engine
        sums = nonnegative_sums(engine.semiring, values)
        inverse = bool(sums) and sums[0] is not True and is_inverse(engine.semiring) and values[0].dtype.kind == "f"
        given = tuple([v.copy() for v in values]) if inverse or not self.reflexive else values
        A = engine.load(values)
        # A ← A*
        self.schedule(engine, A)
        if sums:
            engine.verify()
            engine.store(A, values)
            if (row := diverged(values, sums)) is not None:
                raise DivergentPivot(row)
            if inverse:
                pivot_where_needed(*given, *values)
            A = engine.load(values)
        if not self.reflexive:
            # A⁺ = A ⊗ A*
            engine.multiply(engine.load(given), A, A)
        engine.store(A, values)

    def statistics(self, values: Values) -> Sequence[ValueStatistics]:
        """Return the value statistics of a matrix, if they decide the closure or its refusal: integers may pull an ∞ back."""
        engine = self.engine
        return statistics_of(engine.semiring, values) if self.check or tropical(engine.semiring, engine.dtypes) else ()

    def require_elements(self, values: Values) -> None:
        """Refuse the result of an elimination that is outside the carrier, because it overflowed."""
        semiring, dtypes = self.engine.semiring, self.engine.dtypes
        if all(d.kind != "O" for d in dtypes) and leaves_carrier(semiring, values):
            raise DivergenceError(f"the closure over {semiring.name} left the range of {', '.join(map(str, dtypes))}")


@functools.lru_cache(maxsize=1024)
def steps_for(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    method: str,
    block: int | None,
    reflexive: bool,
    paths: bool,
    running: tuple[Any, ...],
) -> tuple[Schedule, bool, bool, tuple[str, int | None]]:
    """Return the fields of a `Task` after its engine, and check the laws; `running` holds the current callables of the semiring."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)
