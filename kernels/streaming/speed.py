"""How fast a device multiplies, and block rows come to it: tried with the first rows of the matrix at hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from semiring.kernels.engine import Engine
from semiring.kernels.streaming.lane import Carrier
from semiring.kernels.streaming.plan import Speed

__all__ = ["measured"]

_COLUMNS = 8192
"""Of the product that is tried, at most."""

_IN_A_ROW, _TRIALS, _ENOUGH = 4, 10, 0.1
"""Products without a pause, and how often, unless it takes more than so many seconds: a GPU that was idle is slow at first."""


def measured(engine: Engine, carrier: Carrier, n: int, most: int) -> Speed:
    """The speed of a device, in well under a second beside the compilation of kernels that will be needed anyway.

    Parameters
    ----------
    engine : Engine
    carrier : Carrier
    n : int
        Vertices, at least one.
    most : int
        Rows to try it with, at most; two times as many have to fit.
    """
    rows, columns = slice(0, min(n, most)), slice(0, min(n, _COLUMNS))
    with carrier.active():
        operands, result = carrier.buffer(rows.stop), carrier.buffer(rows.stop)
        for buffer in (operands, result):
            carrier.bring(rows, buffer, first=True)
        carrying = _seconds(lambda: carrier.bring(rows, result, first=True))  # to memory that is there already
        values, _ = carrier.arrays(operands, rows)
        A, C = engine.blank(values), engine.blank(*carrier.arrays(result, rows))
        A = replace(A, via=None)

        def multiply() -> None:
            for _ in range(_IN_A_ROW):
                engine.multiply_add(A[:, rows], A[:, columns], C[:, columns])
            carrier.mark()()

        multiply()  # compiles kernels
        trials = [_seconds(multiply)]
        while len(trials) < _TRIALS and sum(trials) < _ENOUGH:
            trials.append(_seconds(multiply))
    size = sum(v.nbytes for v in values)
    return Speed(_IN_A_ROW * rows.stop**2 * columns.stop / min(trials), size / carrying)


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return max(time.perf_counter() - start, 1e-9)
