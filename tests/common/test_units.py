"""Numbers in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.common.units import duration, format_bytes, step_rate

GIB = 1 << 30


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (3.5e-8, "0.035 µs"), (3.5e-5, "35 µs"), (0.00031, "0.31 ms"), (0.0081, "8.1 ms"), (0.0999, "99.9 ms"),
        (0.31, "0.31 s"), (2.4, "2.4 s"), (59.9, "59.9 s"), (59.97, "1 min"), (60, "1 min"), (75, "1 min 15 s"),
        (119.6, "2 min"), (599, "9 min 59 s"),
        (599.7, "10 min"), (1520, "25 min"), (3580, "1 h"), (3570, "1 h"), (3560, "59 min"), (12_000, "3 h 20 min"), (35_990, "10 h"),
        (84_000, "23 h"), (86_000, "1 day"), (86_400, "1 day"), (90_000, "1 day 1 h"), (266_400, "3 days 2 h"), (40 * 86_400, "40 days"),
        (1e9, "11,574 days"), (float("inf"), "inf s"),
    ],
)  # fmt: skip
def test_times_are_written_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(1e-9, 1e10))
def test_times_are_right_to_a_twentieth(seconds: float) -> None:
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}
    words = duration(seconds).replace(",", "").split()
    assert sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True)) == pytest.approx(
        seconds, rel=0.05
    )


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (0, "0 steps/s"), (50, "50 steps/s"), (3e6, "3 M steps/s"), (3.9e10, "39 G steps/s"), (1.95e11, "0.195 T steps/s"),
        (1.64e13, "16.4 T steps/s"), (2.7e15, "2.7 P steps/s"),
    ],
)  # fmt: skip
def test_speeds_have_a_prefix(steps: float, text: str) -> None:
    assert step_rate(steps) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"), (1, "1 byte"), (99, "99 bytes"), (1024, "1.0 KiB"), (52_200, "51.0 KiB"), (102_399, "100.0 KiB"),
        (102_400, "0.1 MiB"), (1 << 20, "1.0 MiB"), (100 << 20, "0.1 GiB"), (4 * GIB, "4.0 GiB"), (5000 * GIB, "5,000.0 GiB"),
    ],
)  # fmt: skip
def test_sizes_are_written_in_a_unit_that_shows_them(size: int, text: str) -> None:
    assert format_bytes(size) == text
