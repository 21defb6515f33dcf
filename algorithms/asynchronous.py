"""The closure of matrices in the memory of a GPU, which runs while the host goes on and tells of divergent pivots at the end.

All matrices of a batch are closed at once. Where one diverged, the closure is repeated on the host, which finds the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from semiring.algorithms.divergence import may_improve
from semiring.algorithms.task import Task
from semiring.common.errors import DivergentPivot
from semiring.kernels.limits import ValueStatistics, tropical
from semiring.kernels.overflow.closures import guard_for

__all__ = ["close_asynchronously"]


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
