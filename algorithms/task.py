"""What a closure does with each of its matrices, in place: it runs a schedule on an engine, waiting for it or not.

A schedule accumulates or eliminates. Matrices in the memory of a GPU are closed all at once, while the host goes on; divergent pivots are
read back at the end, and where there is one, the closure is repeated on the host, which finds the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.divergence import may_improve
from semiring.algorithms.schedules import Schedule, eliminates, require_closure_laws, schedule_for
from semiring.common.errors import DivergenceError, DivergentPivot
from semiring.kernels.engine import Block, Engine
from semiring.kernels.limits import ValueStatistics, tropical
from semiring.kernels.overflow.closures import guard_for, leaves_carrier, statistics_of

__all__ = ["Task", "close_asynchronously", "steps_for"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class Task(NamedTuple):
    """An engine, and what it is to do with each matrix.

    Attributes
    ----------
    engine : Engine
    check : bool
        Whether what could leave the dtype is refused.
    schedule : callable
        A ← A ⊕ A² ⊕ …, or A ← A* where it is to `eliminate`.
    eliminate, reflexive : bool
    name : tuple
        What tells the schedule from others of the engine.
    """

    engine: Engine
    check: bool
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
        """values ← A* or A⁺, for any closed semiring."""
        engine = self.engine
        result = values if self.reflexive else tuple(v.copy() for v in values)
        A = engine.load(result)
        # A ← A*
        self.schedule(engine, A)
        if not self.reflexive:
            # A⁺ = A ⊗ A*
            star, A = A, engine.load(values)
            engine.multiply(A, star, A)
        engine.store(A, values)

    def statistics(self, values: Values) -> Sequence[ValueStatistics]:
        """What the numbers of a matrix are, where that is refused or decides how it is closed: integers may pull an ∞ back."""
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
    """What a `Task` has beside its engine, once the semiring has the laws that this needs; `running` are its callables at the moment."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)


def close_asynchronously(
    task: Task,
    values: tuple[Any, ...],
    via: Any,
    verify: Callable[[], Sequence[ValueStatistics]] | None,
    repeat: Callable[[int], None],
) -> None:
    """values ← A* or A⁺, in place.

    Parameters
    ----------
    task : Task
    values : tuple of CuPy arrays of shape (…, n, n)
    via : int32 CuPy array of shape (…, n, n) or None
    verify : callable or None
        See `closure`.
    repeat : callable
        Closes the matrices once more elsewhere, or raises, given a vertex whose pivot diverged.
    """
    engine, n = task.engine, values[0].shape[-1]
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)

    def verified() -> Sequence[ValueStatistics]:
        """What the numbers are, once they are verified and found to stay in range."""
        statistics = task.statistics(values) if verify is None else verify()
        if statistics:
            guard.before(statistics)
        return statistics

    # One block is closed before its numbers are known: a kernel for any numbers takes less than the GPU would wait.
    alone = values[0].ndim == 2 and n <= engine.pivot
    soon = alone and verify is not None and not (task.eliminate or tropical(engine.semiring, engine.dtypes))
    statistics = () if soon else verified()
    engine.signed, engine.statistics, engine.asynchronous = guard.signed, statistics[0] if statistics else None, not statistics
    try:
        if task.eliminate:
            task.run_elimination(values)
        else:
            task.accumulate(values, via)
        if soon:
            statistics = verified()
        if not statistics or may_improve(engine.semiring, statistics):  # else no pivot diverges, and nothing has to be waited for
            engine.verify()
    except DivergentPivot as stop:
        repeat(stop.vertex)
    guard.after(values, via)
    if task.eliminate and task.check:
        task.require_elements(values)
