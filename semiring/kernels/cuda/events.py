"""CUDA events that report progress to the host without waiting."""

from __future__ import annotations

from typing import Any

from semiring.common.progress import Meter
from semiring.kernels.cuda.compiler import rehearsing

__all__ = ["launched"]


def launched(meter: Meter | None, steps: int) -> None:
    """Tell the meter, if any, that `steps` are done once the GPU reaches this point of the current stream."""
    if meter is not None and not rehearsing():
        meter.later(steps, _event)


def _event() -> Any:
    """Record an event that threads can sleep on; None while the stream is captured."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.is_capturing():
        return None
    event = cupy.cuda.Event(block=True, disable_timing=True)
    event.record(stream)
    return event
