"""Events in the work of a GPU, by which the host learns how far it has come, without waiting for it."""

from __future__ import annotations

from typing import Any

from semiring.common.progress import Meter
from semiring.kernels.cuda.compiler import rehearsing

__all__ = ["launched"]


def launched(meter: Meter | None, steps: int) -> None:
    """Tell a meter, if there is one, of steps that are done when the GPU has come to here in the current stream."""
    if meter is not None and not rehearsing():
        meter.later(steps, _event)


def _event() -> Any:
    """An event at this place of the current stream, for which a thread may sleep; None while the stream is recorded."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        return None
    event = cupy.cuda.Event(block=True, disable_timing=True)
    event.record(stream)
    return event
