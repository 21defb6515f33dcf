"""A recorder of the calls of primitives: the areas of the matrix that each call reads and writes, and the changed elements.

An unchanged algorithm closes the matrix with a `Recorder` as its engine.

Examples
--------
>>> from semiring import MIN_PLUS
>>> from semiring.algorithms.blocked import blocked
>>> inf = np.inf
>>> a = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
>>> recorder = Recorder(MIN_PLUS, (a.dtype,), (a,))
>>> blocked(recorder, recorder.load((a,)), 2)
>>> for call, change in recorder.calls[:3]:
...     print(call.operation, *call.reads, "→", call.writes, "changes", len(change.places))
close → [0:2, 0:2] changes 0
multiply_add [0:2, 0:2] [0:2, 2:4] → [0:2, 2:4] changes 2
multiply_add [2:4, 0:2] [0:2, 0:2] → [2:4, 0:2] changes 2
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.kernels.engine import Block, quarter
from semiring.kernels.reference import ReferenceEngine

__all__ = ["EQUATIONS", "Area", "Change", "Phase", "PrimitiveCall", "Recorder", "phases"]


class Area(NamedTuple):
    """Rows top … bottom − 1 and columns left … right − 1 of a matrix.

    Examples
    --------
    >>> area = Area(0, 2, 1, 3)
    >>> print(area, area.size)
    [0:2, 1:3] 4
    >>> np.eye(3)[area.rows, area.columns]
    array([[0., 0.],
           [1., 0.]])
    """

    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def of(cls, block: Block) -> Area:
        """Return the area of a block of the matrix."""
        rows, columns = block.shape
        return cls(block.row, block.row + rows, block.column, block.column + columns)

    @property
    def rows(self) -> slice:
        """The slice of rows."""
        return slice(self.top, self.bottom)

    @property
    def columns(self) -> slice:
        """The slice of columns."""
        return slice(self.left, self.right)

    @property
    def size(self) -> int:
        """The number of elements."""
        return (self.bottom - self.top) * (self.right - self.left)

    def __str__(self) -> str:
        return f"[{self.top}:{self.bottom}, {self.left}:{self.right}]"


class PrimitiveCall(NamedTuple):
    """One call of a primitive."""

    operation: str  # a primitive's name, "add_identity", or "repeat" if rounding made the closure repeat by potentials
    reads: tuple[Area, ...]  # operands of a product, in order; empty for other primitives
    writes: Area

    @property
    def depth(self) -> int:
        """The number of successive updates of one element."""
        if self.operation == "add_identity":
            return 0
        first = self.reads[0] if self.reads else self.writes
        return first.right - first.left

    @property
    def steps(self) -> int:
        """The number of steps, one ⊗ followed by one ⊕."""
        return self.writes.size * self.depth


class Change(NamedTuple):
    """The elements that a call changed."""

    places: Array  # row after row: i·n + j
    values: tuple[Array, ...]  # new values of the elements, an array for each component
    via: Array | None  # new entries of the construction matrix at these places


def _recorded(operation: str) -> Any:
    """Return the primitive of the reference engine, with a record of each call; the last operand is the block that the call writes."""

    def primitive(self: Recorder, *operands: Block) -> None:
        getattr(super(Recorder, self), operation)(*operands)
        self._record(operation, operands[:-1], operands[-1])

    return primitive


class Recorder(ReferenceEngine):
    """The reference engine, recording in `calls` every call and the elements changed by it.

    `values` and `via` are the matrix and the construction matrix before the closure.
    """

    pivot = 1 << 30  # no block is cut: one call for each block that a schedule closes

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], values: tuple[Array, ...], via: Array | None = None) -> None:
        super().__init__(semiring, dtypes)
        self.calls: list[tuple[PrimitiveCall, Change]] = []
        self._last = Block(tuple(v.copy() for v in values), None if via is None else via.copy())
        self._recording = True

    def _record(self, operation: str, operands: tuple[Block, ...], C: Block) -> None:
        """Record a call, and the elements that changed since the last call."""
        if not self._recording:
            return
        call = PrimitiveCall(operation, tuple(map(Area.of, operands)), Area.of(C))
        area = self._last[call.writes.rows, call.writes.columns]
        different = np.zeros(C.shape, dtype=bool)
        for new, old in zip(C.values, area.values, strict=True):
            different |= (new != old).astype(bool)
        i, j = np.nonzero(different)
        for new, old in zip(C.values, area.values, strict=True):
            old[different] = new[different]
        if C.via is not None:
            area.via[different] = C.via[different]
        places = (i + C.row) * self._last.shape[1] + j + C.column
        change = Change(places, tuple(v[different] for v in C.values), None if C.via is None else C.via[different])
        self.calls.append((call, change))

    multiply_add, multiply = _recorded("multiply_add"), _recorded("multiply")
    close, eliminate, add_identity = _recorded("close"), _recorded("eliminate"), _recorded("add_identity")

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Run ``schedule(A)``, recorded the first time only: after rounding, a second run closes the reweighed matrix."""
        try:
            schedule(A)
        finally:
            self._recording = False

    def finish(self, values: tuple[Array, ...], via: Array | None) -> None:
        """Record the elements that a repeated closure, by potentials, has changed; none without a repetition."""
        self._recording = True
        self._record("repeat", (), Block(values, via))
        if not len(self.calls[-1][1].places):
            self.calls.pop()


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
"""The equations of each algorithm's phases, in order, as in the comments of the algorithm."""

_PRODUCTS = {
    "recursive": ("11 12 12", "21 11 21", "21 12 22", "22 21 21", "12 22 12", "12 21 11"),
    "recursive_elimination": ("11 12 12", "21 12 22", "21 11 21", "12 22 12", "12 21 11", "22 21 21"),
}
"""The quarters A, B and C of a recursion's products C ← C ⊕ A⊗B, which are phases 2, 3, 4, 6, 7 and 8."""


class Phase(NamedTuple):
    """The phase of an algorithm that a call belongs to."""

    equation: str
    number: int | None = None  # from 1; None for algorithms without phases
    round: int | None = None  # of the iterative or a blocked algorithm, from 0, one for each pivot
    within: Area | None = None  # block A of the equation: in a recursive algorithm the diagonal block whose quarters the equation names


def phases(calls: Iterable[PrimitiveCall], algorithm: str, n: int, base: int) -> Iterator[Phase]:
    """Yield the phase of each call of one closure, in order.

    `algorithm` is a key of `EQUATIONS`; n and `base` are the sides of the matrix and of the base case.
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
            number = 1 if not call.reads else 2 if call.reads[1] == call.writes else 3 if call.reads[0] == call.writes else 4
            if algorithm == "iterative":
                yield Phase(EQUATIONS["iterative"][0], None, pivots - 1, whole)
            else:
                yield Phase(EQUATIONS[algorithm][number - 1], number, pivots - 1, whole)


def _halves(A: Block, base: int) -> Iterator[tuple[Area, Area]]:
    """Yield the diagonal blocks of a recursion, each with its parent block."""
    if A.shape[0] > base:
        first, _, _, second = quarter(A, base)
        for half in (first, second):
            yield Area.of(half), Area.of(A)
            yield from _halves(half, base)


def _of_recursion(call: PrimitiveCall, algorithm: str, halves: dict[Area, Area]) -> Phase:
    equations = EQUATIONS[algorithm]
    if not call.reads:
        within = halves.get(call.writes)
        if within is None:  # the whole matrix is a base case
            return Phase("A ← A ⊕ A² ⊕ …" if call.operation == "close" else "A ← A*", within=call.writes)
        number = 1 if call.writes.top == within.top else 5
        return Phase(equations[number - 1], number, within=within)
    areas = (*call.reads, call.writes)
    start, stop = min(min(area.top, area.left) for area in areas), max(max(area.bottom, area.right) for area in areas)
    names = " ".join(f"{1 + (area.top > start)}{1 + (area.left > start)}" for area in areas)
    number = (2, 3, 4, 6, 7, 8)[_PRODUCTS[algorithm].index(names)]
    return Phase(equations[number - 1], number, within=Area(start, stop, start, stop))
