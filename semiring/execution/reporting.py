"""Progress of a call: the caller's function, a bar of tqdm, or a few lines of text."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from semiring.common.errors import install_of
from semiring.common.progress import Meter, Progress, Watcher
from semiring.common.units import counted, step_rate
from semiring.kernels import machine

if TYPE_CHECKING:
    from semiring.planning import Plan

__all__ = ["noting_the_bar", "reporting", "why_no_bar"]

_LONG = 2.0
"""Seconds until a bar is shown unasked."""

_PIECE = 0.25
"""Predicted seconds of the longest product that is not cut."""

_LINES = 20
"""Lines of text that replace a bar without tqdm."""

_UNWATCHED: AbstractContextManager[None] = nullcontext()


def reporting(progress: Watcher, plan: Plan, steps: int = 0) -> AbstractContextManager[Meter | None]:
    """Return a context of the meter that counts the steps of a call, and expects `steps`; of None without progress."""
    if progress is False or (progress is None and plan.brief):
        return _UNWATCHED
    if callable(progress):
        return _metered(progress, plan, steps)
    reason = why_no_bar(plan)
    if progress:
        if reason is None:
            return _metered(_Bar(plan, after=0.0, leave=True), plan, steps)
        print(f"semiring: no progress bar: {reason}", file=sys.stderr)
        return _metered(_lines(), plan, steps)
    # A caller who leaves results on the GPU goes on meanwhile, and must not wait for a bar that is never shown.
    if plan.problem.there and (plan.seconds or 0) < _LONG:
        return _UNWATCHED
    if reason is None and not _is_seen():
        reason = "stderr is no terminal; progress=True shows one"
    if reason is None:
        return _metered(_Bar(plan, after=_LONG, leave=False), plan, steps)
    if (plan.seconds or 0) >= _LONG:
        import logging  # only for a message: the import takes milliseconds

        logging.getLogger("semiring").info("no progress bar: %s", reason)
    return _UNWATCHED


def noting_the_bar(plan: Plan) -> Plan:
    """Add a note to the plan of a long call that has no bar."""
    reason = why_no_bar(plan) if (plan.seconds or 0) >= _LONG else None
    return plan if reason is None else replace(plan, notes=(*plan.notes, f"no progress bar: {reason}"))


def why_no_bar(plan: Plan) -> str | None:
    """Return the reason that a call cannot have a bar; None if it can."""
    if plan.strategy == "SciPy":
        return "SciPy's own searches report no progress"
    if importlib.util.find_spec("tqdm") is None:
        return f"tqdm is not installed ({install_of('progress')})"
    return None


def _is_seen() -> bool:
    return _in_notebook() or bool(getattr(sys.stderr, "isatty", bool)())


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


@contextmanager
def _metered(show: Any, plan: Plan, steps: int) -> Iterator[Meter]:
    """Count the steps of a call and show them, until the call ends."""
    start, lock = time.monotonic(), threading.Lock()
    begun: int | None = None

    def tell(done: int, total: int) -> None:
        nonlocal begun
        with lock:  # threads of block rows report by turns
            begun = done if begun is None else begun
            show(Progress(done, total, begun, time.monotonic() - start, plan))

    speed = plan.speed
    meter = Meter(tell, int(_PIECE * (machine.EXACT_STEPS if speed is None else speed.steps)))
    with closing(show) if isinstance(show, _Bar) else nullcontext():
        if steps:
            meter.expect(steps)
        yield meter
        meter.finish()


class _Bar:
    """A bar of tqdm, imported and shown after some seconds of a call."""

    def __init__(self, plan: Plan, *, after: float, leave: bool) -> None:
        self._plan, self._after, self._leave = plan, after, leave
        self._bar: Any = None

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, now: Progress) -> None:
        opens = self._bar is None
        if opens:
            if now.seconds < self._after or (self._after and now.done == now.total):
                return
            self._bar = self._opened(now)
        self._bar.set_postfix_str(step_rate(now.steps_per_second), refresh=False)
        self._bar.update(now.done / now.total - self._bar.n)
        if opens:  # with the steps before the call
            self._bar.refresh()

    def _opened(self, now: Progress) -> Any:
        """Open a bar of shares of the whole, as the total of steps may change."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets the bar is a line of text
            if _in_notebook():
                from tqdm.auto import tqdm
            else:
                from tqdm import tqdm
            bar = tqdm(
                desc=f"closure of {counted(self._plan.n, 'vertex', 'vertices')}",
                total=1.0,
                initial=now.begun / now.total,
                bar_format="{l_bar}{bar}| {elapsed}, {remaining} left{postfix}",
                leave=self._leave,
                dynamic_ncols=True,
                miniters=0,
                smoothing=0,
            )
        bar.start_t = time.time() - now.seconds
        return bar


def _lines() -> Callable[[Progress], None]:
    """Return a function that writes some lines to stderr in the course of a call."""
    after = 0.0

    def show(now: Progress) -> None:
        nonlocal after
        if now.done >= after * now.total:
            print(now, file=sys.stderr)
            after = (now.done * _LINES // now.total + 1) / _LINES

    return show
