"""Stacks of small matrices are closed all at once, where nothing is wrong with any of them.

What can be wrong with a matrix (numbers that may leave the dtype, a pivot that diverges, be it only by rounding) is asked of the whole
stack. Then nothing is wrong with any one; else the stack is as it was before, and whoever closes it does so matrix by matrix, which tells
what it is and of which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algorithms.divergence import divergent_loop, may_improve
from semiring.algorithms.task import Task
from semiring.common.errors import DivergentPivot, SemiringError
from semiring.kernels.overflow.closures import guard_for

__all__ = ["close_together"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def close_together(task: Task, values: Values, via: Array | None) -> bool:
    """Close the matrices of a stack at once, each a single pivot block; False leaves them as they were, because one needs a closer look.

    The statistics of the whole stack bound those of each matrix, so that what they allow would be allowed to each, with the same result.
    """
    engine, n = task.engine, values[0].shape[-1]
    if n > engine.pivot or any(d.kind == "O" for d in engine.dtypes):
        return False
    kept = tuple(v.copy() for v in values)
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)
    meter, engine.meter = engine.meter, None
    try:
        statistics = task.statistics(values)
        if statistics:
            guard.before(statistics)
        engine.signed = guard.signed
        if task.eliminate:
            task.run_elimination(values)
            if task.check:
                task.require_elements(values)
        else:
            task.accumulate(values, via)
            if not statistics or may_improve(engine.semiring, statistics):
                stopped = divergent_loop(engine.semiring, [v.diagonal(0, -2, -1).ravel() for v in values])
                if stopped is not None:
                    raise DivergentPivot(stopped % n)
        guard.after(values, via)
    except SemiringError:
        for v, before in zip(values, kept, strict=True):
            v[...] = before
        if via is not None:
            via.fill(-1)
        return False
    finally:
        engine.meter = meter
    if meter is not None:
        meter.add(values[0].size * n * (2 if task.eliminate and not task.reflexive else 1))
    return True
