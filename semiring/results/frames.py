"""Frames of a closure: the areas that each phase of the algorithm read and wrote, and the matrix after it.

Only changes are stored; a matrix is rebuilt from them on request.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.recorder import Area, Change, Phase, PrimitiveCall
from semiring.common.errors import printable
from semiring.common.units import counted

__all__ = ["Frame", "Frames"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """One phase of an algorithm: the areas read and written, and the matrix after the phase.

    Attributes
    ----------
    number : int
        The place in the recording; 0 is the given matrix (with the identity, if the algorithm begins by adding it).
    equation : str
        The step in the notation of the papers: ``"A_KJ ← A_KJ ⊕ A_KK A_KJ"``.
    phase : int or None
        For the blocked algorithm 1, 2, 3 or 4, for the recursive one the number of the assignment, from 1 to 8.
    round : int or None
        For the iterative and the blocked algorithm the number of the pivot, from 0.
    within : Area
        The A of the equation: the matrix, or the square block whose quarters the recursive algorithm names.
    calls : tuple of PrimitiveCall
        The products and closures of blocks, each with ``operation``, ``reads``, ``writes``, and the number of ``steps``, each step a ⊗ and
        a ⊕.
    changed : bool array of shape (n, n)
        A mask of the changed elements.
    """

    number: int
    phase: int | None
    round: int | None
    equation: str
    within: Area
    calls: tuple[PrimitiveCall, ...]
    changed: Array = field(repr=False)
    _state: Callable[[int], tuple[Values, Array | None]] = field(repr=False)

    @property
    def reads(self) -> tuple[Area, ...]:
        """Areas that are read and not written: ``area.rows`` and ``area.columns`` are slices."""
        found = dict.fromkeys(area for call in self.calls for area in call.reads)
        return tuple(area for area in found if area not in self.writes)

    @property
    def writes(self) -> tuple[Area, ...]:
        """Areas that are written."""
        return tuple(dict.fromkeys(call.writes for call in self.calls))

    @property
    def pivots(self) -> tuple[Area, ...]:
        """Blocks that are closed by themselves."""
        return tuple(call.writes for call in self.calls if call.operation in ("close", "eliminate"))

    @property
    def steps(self) -> int:
        """The number of steps, each one ⊗ followed by one ⊕."""
        return sum(call.steps for call in self.calls)

    @property
    def values(self) -> Any:
        """The matrix after the phase: an array of shape (n, n), or a tuple of arrays for structured elements."""
        values, _ = self._state(self.number)
        return values[0] if len(values) == 1 else values

    @property
    def via(self) -> Array | None:
        """The construction matrix after the phase; None without paths."""
        return self._state(self.number)[1]

    @property
    def where(self) -> str:
        """The place in the algorithm: "round 1, phase 2"."""
        if self.number == 0:
            return "the beginning"
        parts = [] if self.round is None else [f"round {self.round}"]
        parts += [] if self.phase is None else [f"phase {self.phase}"]
        parts = [", ".join(parts)] if self.round is not None or self.phase is None else [f"{parts[0]} within {self.within}"]
        return parts[0] or "the end"

    def __str__(self) -> str:
        return f"{self.where}: {self.equation}"


class Frames(Sequence[Frame]):
    """The data of a `Recording`, without its pictures.

    `via` is the construction matrix before the closure, `phases` has the phase of each recorded call, and `nodes` are the names of the
    vertices, if any.
    """

    def __init__(
        self,
        semiring: Semiring,
        method: str,
        block: int | None,
        given: Values,
        via: Array | None,
        recorded: Sequence[tuple[PrimitiveCall, Change]],
        phases: Sequence[Phase],
        nodes: Sequence[Hashable] | None,
        result: Any,
    ) -> None:
        self.semiring, self.method, self.block, self.result = semiring, method, block, result
        self.nodes: tuple[Any, ...] = tuple(range(given[0].shape[-1]) if nodes is None else nodes)
        self.given, self._via = given, via
        self._changes: list[tuple[Change, ...]] = []
        self.frames = tuple(self._frames(recorded, phases))

    def _frames(self, recorded: Sequence[tuple[PrimitiveCall, Change]], phases: Sequence[Phase]) -> Iterator[Frame]:
        """Group consecutive calls of one phase into a frame, after a first frame before all products."""
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
        """The closure and the method, in words."""
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
