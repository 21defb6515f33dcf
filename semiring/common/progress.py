"""The progress of a computation: a `Meter` counts steps in the working code, and a `Progress` reports speed and time left."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from semiring.common.html import Shown
from semiring.common.units import counted, duration, step_rate

__all__ = ["Mark", "Meter", "Progress", "Watcher"]


@dataclass(frozen=True)
class Progress(Shown):
    """The progress of a call.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> told = []
    >>> distances = sr.apsp(np.ones((300, 300)), progress=told.append)
    >>> told[0].done, told[-1].done == told[-1].total
    (0, True)

    Attributes
    ----------
    done, total : int
        Steps: in a product one ⊕ and one ⊗, so that a closure of n vertices has n³; in a search a vertex or an edge of the graph. The total
        may change, for example if the graph has several components. For an unknown number of products, it is the number certain so far.
    begun : int
        The steps before the call, if a checkpoint is continued.
    seconds : float
        The time of the call.
    plan : Plan
        The plan of the computation; ``print`` it.
    """

    done: int
    total: int
    begun: int
    seconds: float
    plan: Any = field(repr=False)

    @property
    def steps_per_second(self) -> float:
        """The average steps a second of the call."""
        return (self.done - self.begun) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """The time left at the speed so far, before the first step at the planned speed; ∞ without a plan of seconds."""
        left = self.total - self.done
        if self.done > self.begun:
            return self.seconds * left / (self.done - self.begun)
        planned = math.inf if self.plan.seconds is None else float(self.plan.seconds)
        return planned * left / self.total if left else 0.0

    def __str__(self) -> str:
        return f"{self.done / max(1, self.total):4.0%}, {step_rate(self.steps_per_second)}, {self._time}"

    @property
    def _time(self) -> str:
        left = f", {duration(self.seconds_left)} left" if self.seconds_left < math.inf else ""
        return f"{duration(self.seconds)}{left}"

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the table for Jupyter."""
        return f"{self.done / max(1, self.total):.0%} of a closure of {counted(self.plan.n, 'vertex', 'vertices')}", [
            ("steps", f"{self.done:,} of {self.total:,}"),
            ("speed", step_rate(self.steps_per_second)),
            ("time", self._time),
        ]


Watcher = Callable[[Progress], object] | bool | None
"""The observer: a function, a bar (True), nobody (False), or by default a bar in a terminal or notebook after some seconds (None)."""

Mark = Any
"""A point in the work of an asynchronous device, like CuPy's events: `done` is True, and `synchronize()` returns, once it has passed."""

_SHARE = 1 << 10  # reports are at least total / _SHARE steps apart
_PARTS = 400  # the number of pieces into which products are cut at most, for reports in between


class Meter:
    """Counts the steps of a call, and reports in the thread of the call.

    Parameters
    ----------
    tell : callable
        Called with the steps done and the total, at first and after progress.
    piece : int
        Steps of a product that are never cut.
    """

    def __init__(self, tell: Callable[[int, int], object], piece: int = 0) -> None:
        self.total = 0
        self._tell, self._piece = tell, piece
        self._done = self._told = 0
        self._added: deque[int] = deque()  # appending is atomic
        self._launched = 0
        self._marks: deque[tuple[Mark, int]] = deque()

    @property
    def piece(self) -> int:
        """The steps of a product that needs no cut for timely reports."""
        return max(self._piece, self.total // _PARTS)

    def expect(self, steps: int) -> None:
        """Add steps to the known total, or subtract with a negative number."""
        self.total += steps
        self._report()

    def add(self, steps: int, *, tell: bool = True) -> None:
        """Count finished steps; only the thread of the call may `tell`."""
        self._added.append(steps)
        if tell:
            self._count()

    def later(self, steps: int, mark: Callable[[], Mark | None]) -> None:
        """Count steps as finished once a device passes a `mark` made now; None without a mark, because the work starts later."""
        self._launched += steps
        if self._launched * _SHARE >= self.total:
            made, steps, self._launched = mark(), self._launched, 0
            if made is not None:
                self._marks.append((made, steps))
        while self._marks and self._marks[0][0].done:
            self.add(self._marks.popleft()[1])

    def wait(self) -> None:
        """Wait for the device, and report meanwhile."""
        while self._marks:
            self._marks[0][0].synchronize()
            self.add(self._marks.popleft()[1])

    def reach(self, done: int, total: int) -> None:
        """Set the finished steps and the total, with earlier steps of other processes."""
        self._done, self.total = done, total
        self._report()

    def finish(self) -> None:
        """Count all steps as finished."""
        if self._told < self.total:
            self._done = self.total
            self._report()

    def _count(self) -> None:
        while self._added:
            self._done += self._added.popleft()
        if (self._done - self._told) * _SHARE >= self.total:
            self._report()

    def _report(self) -> None:
        if self.total:
            self._told = min(self._done, self.total)
            self._tell(self._told, self.total)
