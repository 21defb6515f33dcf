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
    """An engine, and the closure to compute of each matrix."""

    engine: Engine
    check: bool  # refuse weights whose sums could leave the dtype
    shortcuts: bool  # allow faster algorithms than the schedule, with the same result
    schedule: Schedule  # A ← A ⊕ A² ⊕ …, or A ← A* to `eliminate`
    eliminate: bool
    reflexive: bool
    name: tuple[str, int | None]  # key of the schedule for the engine

    def accumulate(self, values: Values, via: Array | None) -> None:
        """values ← A⁺ or I ⊕ A⁺ for an idempotent ⊕. After a divergent pivot all elements are still sums over some paths."""
        engine = self.engine
        A = engine.load(values, via)

        def steps(block: Block) -> None:
            if self.reflexive:
                engine.add_identity(block)  # A ← I ⊕ A
            self.schedule(engine, block)  # A ← A ⊕ A² ⊕ …

        try:
            engine.run((*self.name, self.reflexive), steps, A)
        finally:
            engine.store(A, values)

    def run_elimination(self, values: Values) -> None:
        """values ← A* or A⁺, for any closed semiring.

        Raises
        ------
        DivergentPivot
            Also if a sum of non-negative numbers comes out negative: the sum diverges.
        """
        engine = self.engine
        sums = nonnegative_sums(engine.semiring, values)
        inverse = bool(sums) and sums[0] is not True and is_inverse(engine.semiring) and values[0].dtype.kind == "f"
        given = tuple([v.copy() for v in values]) if inverse or not self.reflexive else values
        A = engine.load(values)
        self.schedule(engine, A)  # A ← A*
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
        """Return the value statistics of a matrix if overflow is checked or if sums may bring a clamped ∞ back into range; else ()."""
        engine = self.engine
        return statistics_of(engine.semiring, values) if self.check or tropical(engine.semiring, engine.dtypes) else ()

    def require_elements(self, values: Values) -> None:
        """Raise `DivergenceError` if overflow left results of an elimination outside the carrier."""
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
    """Check the laws, and return the last four fields of a `Task`; `running` holds the current callables of the semiring."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)
