"""Closures of small integers in windows of distances: a GPU's tensor cores multiply integers of a short range, many times as fast.

Non-negative integer weights under (min, +), and non-positive ones under (max, +), which are the mirror image:

1. A ← A ⊕ A² ⊕ … with products that take entries above a cut L for ∞; no weight exceeds L. The cut commutes with minima and with sums of
   non-negative numbers. Therefore every distance up to E = L is exact afterwards. Any other entry is the weight of a path, or ∞.
2. Let w be the largest weight. A ← A ⊕ X⊗Y, where X has the entries of A from E − w + 1 to E, and Y those up to M. A shortest path longer
   than E has a last vertex within E, at such a distance. Distances up to E + M − w + 1 are exact afterwards, and E moves there.
3. Let d be the largest finite entry. If d + w ≤ E, every entry is exact. For a shortest path longer than E has a last vertex within E,
   whose distance is exact, and one edge more reaches beyond E: then d + w > E.

Rows of a few vertices tell in advance how many windows there are, and so if they pay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semiring.arrays.conversion import Values
from semiring.arrays.devices import namespace, on_gpu
from semiring.kernels import machine
from semiring.kernels.cuda.blocks import copy_into
from semiring.kernels.cuda.small_integers import CUT, REACH
from semiring.kernels.overflow.closures import statistics_of

__all__ = ["close_in_windows"]

_SOURCES, _HOPS = 8, 32
"""Vertices whose rows are looked at, and the most hops."""


def close_in_windows(engine: Any, accumulate: Callable[[], None], values: Values, largest: int) -> bool:
    """Compute A ← A ⊕ A² ⊕ … by ``accumulate()`` with products on tensor cores; return False if they do not pay or do not suffice.

    Finite entries are weights of paths in any case. `largest` is the largest magnitude of a weight.
    """
    if not 0 < largest <= max(CUT.values()) or not engine.multiplies_small_integers(engine.blank(values)):
        return False
    longest = _longest(engine, values)
    if longest is None:
        return False
    exact = machine.speed_of("cuda", engine.semiring, engine.dtypes).steps
    seconds = {g: (1 + _windows(g, largest, longest)) / rate for g, rate in machine.POWERS.items()}
    g = min(seconds, key=lambda g: seconds[g])
    if seconds[g] > machine.POWERS_SHARE / exact:
        return False
    cut, most, reach = CUT[g], _right(g, largest), CUT[g]

    def expect_again() -> None:
        if engine.meter is not None:
            engine.meter.expect(len(values[0]) ** 3)

    try:
        engine.take_small_integers(g, (0, cut), (0, cut))
        accumulate()
        for more in reversed(range(3 + 2 * int(_windows(g, largest, longest)))):
            if statistics_of(engine.semiring, values)[0].largest + largest <= reach:
                return True
            if most < largest or not more:
                break
            engine.take_small_integers(g, (reach - largest + 1, largest - 1), (0, most))
            expect_again()
            A = engine.load(values)
            engine.multiply_add(A, A, A)
            engine.store(A, values)
            reach += most - largest + 1
    finally:
        engine.scales = None
    expect_again()
    return False


def _right(g: int, largest: int) -> int:
    """Return M: the largest entry of the right operand, beside one that spans w − 1."""
    return min(CUT[g], REACH[g] - largest + 1)


def _windows(g: int, largest: int, longest: float) -> float:
    """Return the number of windows up to the longest distance."""
    beyond, step = longest + largest - CUT[g], _right(g, largest) - largest + 1
    return 0 if beyond <= 0 else -(-beyond // step) if step > 0 else float("inf")


def _longest(engine: Any, values: Values) -> float | None:
    """Return an estimate of the longest distance, from a few vertices; None if it takes many hops."""
    (matrix,) = values
    sources = matrix[:: max(1, len(matrix) // _SOURCES)][:_SOURCES]
    rows = namespace(matrix).empty(sources.shape, matrix.dtype)
    if on_gpu(matrix):
        copy_into(sources, rows)
    else:
        rows[...] = sources
    A, before = engine.load(values), None
    try:
        for _ in range(_HOPS):
            found = statistics_of(engine.semiring, (rows,))[0]._replace(zeros=0)
            if found == before:
                return found.largest
            before, R = found, engine.load((rows,))
            engine.multiply_add(R, A, R)
            engine.store(R, (rows,))
    finally:
        engine.store(A, values)
    return None
