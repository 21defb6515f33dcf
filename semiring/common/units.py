"""Numbers with units in words: times, speeds and sizes; and the size of a cache line."""

from __future__ import annotations

__all__ = ["CACHE_LINE", "counted", "duration", "format_bytes", "step_rate"]

CACHE_LINE = 64
"""Bytes of a cache line, the alignment of scratch arrays."""


def duration(seconds: float) -> str:
    """Write a time in a unit that fits; above a minute in one unit, or in two if the larger count is below ten.

    >>> [duration(seconds) for seconds in (3.5e-5, 0.00031, 2.4, 75, 1520, 12_000, 266_400)]
    ['35 µs', '0.31 ms', '2.4 s', '1 min 15 s', '25 min', '3 h 20 min', '3 days 2 h']
    """
    if not 59.95 <= seconds < float("inf"):
        if not seconds:
            return "0 s"
        unit, name = next(((unit, name) for unit, name in ((1.0, "s"), (1e-3, "ms")) if seconds >= 0.1 * unit), (1e-6, "µs"))
        return f"{seconds / unit:.3g} {name}"
    for part, small, many, most, name in ((1, "s", 60, 60, "min"), (60, "min", 60, 24, "h")):
        count, left = divmod(round(seconds / part), many)
        if round(seconds / (part * many)) < most:
            return _together(count, left, seconds / (part * many), name, small)
    count, left = divmod(round(seconds / 3600), 24)
    return _together(count, left, seconds / 86_400, "day" if count == 1 else "days", "h")


def _together(count: int, left: int, exactly: float, name: str, small: str) -> str:
    """Join the count of the larger unit and the rest in the smaller one, without the rest from ten on."""
    if count >= 10:
        return f"{round(exactly):,} {name}"
    return f"{count} {name} {left} {small}" if left else f"{count} {name}"


def step_rate(steps: float) -> str:
    """Write steps a second.

    >>> step_rate(1.95e11), step_rate(3.9e10), step_rate(3e6)
    ('0.195 T steps/s', '39 G steps/s', '3 M steps/s')
    """
    for unit, name in ((1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if steps >= 0.1 * unit:
            return f"{steps / unit:.3g}{name} steps/s"
    return f"{steps:.3g} steps/s"


def counted(count: int, one: str, many: str = "") -> str:
    """Write a number with a noun; the plural `many` is by default the noun with an s.

    >>> counted(1, "vertex", "vertices"), counted(0, "vertex", "vertices"), counted(1200, "edge")
    ('1 vertex', '0 vertices', '1,200 edges')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_bytes(size: int) -> str:
    """Write a number of bytes in a unit that fits."""
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 100 << unit - 10:
            return f"{size / (1 << unit):,.1f} {name}"
    return f"{size} byte{'s' * (size != 1)}"
