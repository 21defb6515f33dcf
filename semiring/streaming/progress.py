"""Progress of a closure by block rows: on tqdm's bar, or reported to a function of the caller's."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from semiring.common.html import Shown
from semiring.streaming.layout import BlockRows

__all__ = ["Progress", "reporting"]

_WORTH_A_BAR = 10.0
"""Predicted seconds from which on a bar is shown unasked."""


@dataclass(frozen=True)
class Progress(Shown):
    """How far a closure by block rows is: what a function that is passed as ``progress=`` is told.

    Examples
    --------
    >>> def report(now):
    ...     print(f"{now.done} of {now.total}, {now.seconds_left:.0f} s left")
    >>> sr.apsp(matrix, memory_limit="8 GiB", progress=report)  # doctest: +SKIP

    Attributes
    ----------
    done, total : int
        Updates of one block row by one row panel.
    begun : int
        How many of them were done before, where a checkpoint goes on.
    seconds : float
        Since the others began.
    plan : BlockRows
        What was planned; ``print`` it.
    """

    done: int
    total: int
    begun: int
    seconds: float
    plan: BlockRows

    @property
    def steps_per_second(self) -> float:
        """Steps of a product a second, so far."""
        return self.plan.n**3 * ((self.done - self.begun) / self.total) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """How long it will still take at that speed, or at the planned one before anything is done."""
        left = self.total - self.done
        return self.plan.seconds * left / self.total if self.done == self.begun else self.seconds * left / (self.done - self.begun)

    @property
    def rounds(self) -> float:
        """How many rounds that makes, of one row panel each."""
        return len(self.plan.rows) * self.done / self.total

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"{self.done / max(1, self.total):.0%} of a closure of {self.plan.n:,} vertices", [
            ("updates", f"{self.done:,} of {self.total:,}"),
            ("rounds", f"{self.rounds:.1f} of {len(self.plan.rows)}"),
            ("speed", f"{self.steps_per_second:.3g} steps/s"),
            ("time", f"{self.seconds:.0f} s, {self.seconds_left:.0f} s left"),
        ]


Report = Callable[[int, int], None]


@contextmanager
def reporting(progress: Callable[[Progress], None] | bool | None, plan: BlockRows) -> Iterator[Report | None]:
    """Yields what is to be called with the numbers of updates done and in all.

    Parameters
    ----------
    progress : callable, bool or None
        A function that gets a `Progress`; True for a bar, False for none, None for a bar where tqdm is installed and it takes long.
    plan : BlockRows
    """
    if callable(progress):
        yield _reporter(progress, plan)
        return
    tqdm = _tqdm() if progress or (progress is None and plan.seconds > _WORTH_A_BAR) else None
    if tqdm is None:
        yield _reporter(_print, plan) if progress else None
        return
    with tqdm(
        total=len(plan.rows), unit="round", bar_format="{l_bar}{bar}| {n:.1f}/{total} rounds [{elapsed}<{remaining}{postfix}]"
    ) as bar:

        def move(now: Progress) -> None:
            bar.initial = len(plan.rows) * now.begun / now.total
            bar.set_postfix_str(f"{now.steps_per_second:.3g} steps/s", refresh=False)
            bar.update(now.rounds - bar.n)

        yield _reporter(move, plan)


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _reporter(tell: Callable[[Progress], None], plan: BlockRows) -> Report:
    start, lock = time.monotonic(), threading.Lock()
    begun: int | None = None

    def report(done: int, total: int) -> None:
        nonlocal begun
        with lock:
            begun = done if begun is None else begun
            tell(Progress(done, total, begun, time.monotonic() - start, plan))

    return report


def _print(now: Progress) -> None:
    if now.done % max(1, now.total // 20) == 0 or now.done == now.total:
        print(f"{now.done / now.total:4.0%}, {now.steps_per_second:.3g} steps/s, {now.seconds_left:.0f} s left", file=sys.stderr)
