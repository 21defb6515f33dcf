"""The names of what an algorithm does: of each call of a primitive its round, its phase, and its equation as the algorithms' texts have it.

The areas that a call reads and writes tell all of it. `blocked` and `recursive` are closures that accumulate, and the others eliminate; see
`semiring.algorithms.schedules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from semiring.algorithms.recorder import Area, Call
from semiring.kernels.engine import Block, quarter

__all__ = ["EQUATIONS", "Phase", "phases"]

EQUATIONS = {
    "iterative": ("a_ij ← a_ij ⊕ a_ik a_kj",),
    "blocked": (
        "A_KK ← A_KK ⊕ A_KK² ⊕ …",
        "A_KJ ← A_KJ ⊕ A_KK A_KJ",
        "A_IK ← A_IK ⊕ A_IK A_KK",
        "A_IJ ← A_IJ ⊕ A_IK A_KJ",
    ),
    "blocked_elimination": (
        "A_KK ← A_KK*",
        "A_KJ ← A_KK* A_KJ",
        "A_IK ← A_IK A_KK*",
        "A_IJ ← A_IJ ⊕ (A_IK A_KK*) A_KJ",
    ),
    "recursive": (
        "A11 ← A11 ⊕ A11² ⊕ …",
        "A12 ← A12 ⊕ A11 A12",
        "A21 ← A21 ⊕ A21 A11",
        "A22 ← A22 ⊕ A21 A12",
        "A22 ← A22 ⊕ A22² ⊕ …",
        "A21 ← A21 ⊕ A22 A21",
        "A12 ← A12 ⊕ A12 A22",
        "A11 ← A11 ⊕ A12 A21",
    ),
    "recursive_elimination": (
        "A11 ← S",
        "A12 ← S A12",
        "A22 ← A22 ⊕ A21 S A12",
        "A21 ← A21 S",
        "A22 ← T",
        "A12 ← S A12 T",
        "A11 ← S ⊕ (S A12 T) (A21 S)",
        "A21 ← T A21 S",
    ),
}
"""What the phases of each algorithm do, from phase 1, as it stands in the algorithm's text."""

_PRODUCTS = {
    "recursive": ("11 12 12", "21 11 21", "21 12 22", "22 21 21", "12 22 12", "12 21 11"),
    "recursive_elimination": ("11 12 12", "21 12 22", "21 11 21", "12 22 12", "12 21 11", "22 21 21"),
}
"""The quarters A, B and C of the products of a recursion, in order; they are its phases 2, 3, 4, 6, 7 and 8."""


class Phase(NamedTuple):
    """What a call is to its algorithm.

    Attributes
    ----------
    equation : str
    number : int or None
        Of the phase, from 1; None where the algorithm has none.
    round : int or None
        Of the iterative and of the blocked algorithm: from 0, one for each pivot.
    within : Area or None
        What the equation calls A: for the recursive algorithm a square block on the diagonal, of which it names the quarters.
    """

    equation: str
    number: int | None = None
    round: int | None = None
    within: Area | None = None


def phases(calls: Iterable[Call], algorithm: str, n: int, base: int) -> Iterator[Phase]:
    """What each call is.

    Parameters
    ----------
    calls : iterable of Call
        All calls of one closure, in order.
    algorithm : str
        One of `EQUATIONS`.
    n, base : int
        Sides of the matrix, and of what the recursion does not cut.
    """
    whole, pivots = Area(0, n, 0, n), 0
    halves = dict(_halves(Block((np.empty((n, n), dtype=bool),)), base)) if algorithm.startswith("recursive") else {}
    for call in calls:
        if call.operation == "add_identity":
            yield Phase("A ← I ⊕ A", within=whole)
        elif call.operation == "repeat":
            yield Phase("A ← P⁻¹ (P A P⁻¹)* P", within=whole)  # Johnson's potentials
        elif call.operation == "multiply" and call.writes == whole:
            yield Phase("A ← A A*", within=whole)
        elif algorithm.startswith("recursive"):
            yield _of_recursion(call, algorithm, halves)
        else:
            pivots += not call.reads
            yield _of_round(call, algorithm, pivots - 1, whole)


def _of_round(call: Call, algorithm: str, pivot: int, whole: Area) -> Phase:
    """A call of the iterative or of a blocked algorithm."""
    equations = EQUATIONS[algorithm]
    if algorithm == "iterative":
        return Phase(equations[0], None, pivot, whole)
    if not call.reads:
        number = 1
    else:
        first, second = call.reads
        number = 2 if second == call.writes else 3 if first == call.writes else 4
    return Phase(equations[number - 1], number, pivot, whole)


def _halves(A: Block, base: int) -> Iterator[tuple[Area, Area]]:
    """The blocks on the diagonal that a recursion comes to, each with the one of which it is a half."""
    if A.shape[0] > base:
        first, _, _, second = quarter(A, base)
        for half in (first, second):
            yield Area.of(half), Area.of(A)
            yield from _halves(half, base)


def _of_recursion(call: Call, algorithm: str, halves: dict[Area, Area]) -> Phase:
    """A call of a recursive algorithm."""
    equations = EQUATIONS[algorithm]
    if not call.reads:
        within = halves.get(call.writes)
        if within is None:  # the whole is no larger than the base
            return Phase("A ← A ⊕ A² ⊕ …" if call.operation == "close" else "A ← A*", within=call.writes)
        number = 1 if call.writes.top == within.top else 5
        return Phase(equations[number - 1], number, within=within)
    areas = (*call.reads, call.writes)
    start, stop = min(min(area.top, area.left) for area in areas), max(max(area.bottom, area.right) for area in areas)
    names = " ".join(f"{1 + (area.top > start)}{1 + (area.left > start)}" for area in areas)
    number = (2, 3, 4, 6, 7, 8)[_PRODUCTS[algorithm].index(names)]
    return Phase(equations[number - 1], number, within=Area(start, stop, start, stop))
