"""How far a computation is: a `Meter` counts steps where they are done, and a `Progress` says what follows from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from semiring.common.html import Shown
from semiring.common.units import counted, duration, step_rate

__all__ = ["Mark", "Meter", "Progress", "Watcher"]


@dataclass(frozen=True)
class Progress(Shown):
    """How far a call is.

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
        Steps: in a product one ⊕ and one ⊗, so that a closure of n vertices has n³; in a search a vertex or an edge of the graph. What is
        to be done may turn out to be less than it seemed, as where a graph falls into components, or more; of products of some rows with a
        matrix, whose number nobody knows before, it is what is certain so far.
    begun : int
        How many of them were done before, where a checkpoint goes on.
    seconds : float
        Since the others began.
    plan : Plan
        How it is computed; ``print`` it.
    """

    done: int
    total: int
    begun: int
    seconds: float
    plan: Any = field(repr=False)

    @property
    def steps_per_second(self) -> float:
        """Steps a second, so far."""
        return (self.done - self.begun) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """How long it will still take at that speed, or at the planned one before anything is done; ∞ where there is none."""
        left = self.total - self.done
        if self.done > self.begun:
            return self.seconds * left / (self.done - self.begun)
        planned = math.inf if self.plan.seconds is None else float(self.plan.seconds)
        return planned * left / self.total if left else 0.0

    def __str__(self) -> str:
        left = f", {duration(self.seconds_left)} left" if self.seconds_left < math.inf else ""
        return f"{self.done / max(1, self.total):4.0%}, {step_rate(self.steps_per_second)}, {duration(self.seconds)}{left}"

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        left = f", {duration(self.seconds_left)} left" if self.seconds_left < math.inf else ""
        return f"{self.done / max(1, self.total):.0%} of a closure of {counted(self.plan.n, 'vertex', 'vertices')}", [
            ("steps", f"{self.done:,} of {self.total:,}"),
            ("speed", step_rate(self.steps_per_second)),
            ("time", f"{duration(self.seconds)}{left}"),
        ]


Watcher = Callable[[Progress], object] | bool | None
"""Who is told: a function, a bar (True), nobody (False), or whoever looks on once it has taken long (None)."""


class Mark(Protocol):
    """A place in the work of a device that computes by itself, as CuPy's events are."""

    @property
    def done(self) -> bool:
        """Whether the device has come so far."""
        ...

    def synchronize(self) -> None:
        """Wait until it has."""


_SHARE = 1 << 10
"""What part of all steps is worth to be told of."""

_PARTS = 400
"""Into how many pieces the work is cut at most, so that it can be told how far it is."""


class Meter:
    """Counts the steps of a call, and tells of them in the thread that made it.

    Parameters
    ----------
    tell : callable
        Called with the steps that are done and those there are in all, at first and whenever there is something new to tell.
    piece : int
        Steps of a product that are never cut.

    Attributes
    ----------
    total : int
        All steps, as far as is known.
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
        """Steps of a product up to which it need not be cut, so that it is known soon enough that they are done."""
        return max(self._piece, self.total // _PARTS)

    def expect(self, steps: int) -> None:
        """There are so many steps more to be done than was known; less than 0 if they are fewer."""
        self.total += steps
        self._report()

    def add(self, steps: int, *, tell: bool = True) -> None:
        """So many steps are done. Other threads than that of the call do not `tell`."""
        self._added.append(steps)
        if tell:
            self._count()

    def later(self, steps: int, mark: Callable[[], Mark | None]) -> None:
        """So many steps are done when a device has come to here. `mark` makes a mark there, or None where what is asked runs later."""
        self._launched += steps
        if self._launched * _SHARE >= self.total:
            made, steps, self._launched = mark(), self._launched, 0
            if made is not None:
                self._marks.append((made, steps))
        while self._marks and self._marks[0][0].done:
            self.add(self._marks.popleft()[1])

    def wait(self) -> None:
        """Wait for the device, and tell how far it comes meanwhile."""
        while self._marks:
            self._marks[0][0].synchronize()
            self.add(self._marks.popleft()[1])

    def reach(self, done: int, total: int) -> None:
        """So many steps of all are done, also those of other processes before."""
        self._done, self.total = done, total
        self._report()

    def finish(self) -> None:
        """All is done."""
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
