"""Frames of a closure: what each phase of the algorithm read and wrote, and the matrix after it.

Only changes are kept, and a matrix is put together of them when it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.recorder import Area, Call, Change, Phase
from semiring.common.errors import printable
from semiring.common.units import counted

__all__ = ["Frame", "Frames"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """One phase of an algorithm: what it read and wrote, and the matrix after it.

    Attributes
    ----------
    number : int
        Its place in the recording; 0 is the matrix as it was given (with the identity, where the algorithm begins by adding that).
    equation : str
        What was done, as the papers write it: ``"A_KJ ← A_KJ ⊕ A_KK A_KJ"``.
    phase : int or None
        Of the blocked algorithm 1, 2, 3 or 4, of the recursive one the number of the assignment, from 1 to 8.
    round : int or None
        Of the iterative and of the blocked algorithm, from 0: one for each pivot.
    within : Area
        What the equation calls A: the matrix, or the square block of which the recursive algorithm names the quarters.
    calls : tuple of Call
        The products and closures of blocks that the phase consists of, each with its ``operation``, what it ``reads`` and ``writes``, and
        how many ``steps`` it takes (one is one ⊗ followed by one ⊕).
    changed : bool array of shape (n, n)
        The elements that are not what they were.
    """

    number: int
    phase: int | None
    round: int | None
    equation: str
    within: Area
    calls: tuple[Call, ...]
    changed: Array = field(repr=False)
    _state: Callable[[int], tuple[Values, Array | None]] = field(repr=False)

    @property
    def reads(self) -> tuple[Area, ...]:
        """The areas that it reads, beside those that it also writes: ``area.rows`` and ``area.columns`` are slices."""
        found = dict.fromkeys(area for call in self.calls for area in call.reads)
        return tuple(area for area in found if area not in self.writes)

    @property
    def writes(self) -> tuple[Area, ...]:
        """The areas that it writes."""
        return tuple(dict.fromkeys(call.writes for call in self.calls))

    @property
    def pivots(self) -> tuple[Area, ...]:
        """The blocks that it closes, out of what they are alone."""
        return tuple(call.writes for call in self.calls if call.operation in ("close", "eliminate"))

    @property
    def steps(self) -> int:
        """How many times it does one ⊗ followed by one ⊕."""
        return sum(call.steps for call in self.calls)

    @property
    def values(self) -> Any:
        """The matrix after it: an array of shape (n, n), or a tuple of such where elements are structured."""
        values, _ = self._state(self.number)
        return values[0] if len(values) == 1 else values

    @property
    def via(self) -> Array | None:
        """The construction matrix after it; None without paths."""
        return self._state(self.number)[1]

    @property
    def where(self) -> str:
        """Where it stands in the algorithm: "round 1, phase 2"."""
        if self.number == 0:
            return "the beginning"
        parts = [] if self.round is None else [f"round {self.round}"]
        parts += [] if self.phase is None else [f"phase {self.phase}"]
        parts = [", ".join(parts)] if self.round is not None or self.phase is None else [f"{parts[0]} within {self.within}"]
        return parts[0] or "the end"

    def __str__(self) -> str:
        return f"{self.where}: {self.equation}"


class Frames(Sequence[Frame]):
    """What a `Recording` is, beside what is shown of it.

    Parameters
    ----------
    semiring, method, block, given, result
        See `Recording`.
    via : array of shape (n, n) or None
        The construction matrix before the closure.
    recorded : sequence of (Call, Change)
    phases : sequence of Phase
        What each call is.
    nodes : sequence or None
        The names of the vertices, if they have some.
    """

    def __init__(
        self,
        semiring: Semiring,
        method: str,
        block: int | None,
        given: Values,
        via: Array | None,
        recorded: Sequence[tuple[Call, Change]],
        phases: Sequence[Phase],
        nodes: Sequence[Hashable] | None,
        result: Any,
    ) -> None:
        self.semiring, self.method, self.block, self.result = semiring, method, block, result
        self.nodes: tuple[Any, ...] = tuple(range(given[0].shape[-1]) if nodes is None else nodes)
        self.given, self._via = given, via
        self._changes: list[tuple[Change, ...]] = []
        self.frames = tuple(self._frames(recorded, phases))

    def _frames(self, recorded: Sequence[tuple[Call, Change]], phases: Sequence[Phase]) -> Iterator[Frame]:
        """The calls that follow each other and are of one phase are a frame. The first one is before all products."""
        n = self.n
        groups = [(phase, [r for r, _ in group]) for phase, group in itertools.groupby(zip(recorded, phases, strict=True), lambda r: r[1])]
        if not groups or groups[0][1][0][0].operation != "add_identity":
            groups.insert(0, (Phase("A", within=Area(0, n, 0, n)), []))
        for number, (phase, group) in enumerate(groups):
            changed = np.zeros((n, n), dtype=bool)
            for _, change in group:
                changed.flat[change.places] = True
            self._changes.append(tuple(change for _, change in group))
            calls = tuple(call for call, _ in group)
            assert phase.within is not None
            yield Frame(number, phase.number, phase.round, phase.equation, phase.within, calls, changed, self._state)

    def _state(self, number: int) -> tuple[Values, Array | None]:
        """The matrix and its construction matrix after a frame."""
        values, via = tuple(v.copy() for v in self.given), None if self._via is None else self._via.copy()
        for changes in self._changes[: number + 1]:
            for change in changes:
                for array, new in zip(values, change.values, strict=True):
                    array.flat[change.places] = new
                if via is not None:
                    via.flat[change.places] = change.via
        return values, via

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.nodes)

    @property
    def title(self) -> str:
        """What was computed, and how."""
        how = self.method if self.block is None else f"{self.method} with block={self.block}"
        return f"the closure of {counted(self.n, 'vertex', 'vertices')} over {printable(self.semiring.name)}, {how}"

    def __len__(self) -> int:
        return len(self.frames)

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Frame, ...]: ...
    def __getitem__(self, index: int | slice) -> Frame | tuple[Frame, ...]:
        return self.frames[index]
