"""The meter: what is told of steps that are done at once, later on a GPU, and by other threads."""

from __future__ import annotations

import math
from types import SimpleNamespace

from semiring.common.progress import Meter, Progress


class Mark:
    """A place in the work of a device."""

    def __init__(self) -> None:
        self.done = False

    def synchronize(self) -> None:
        self.done = True


def meter(*, piece: int = 0) -> tuple[Meter, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    return Meter(lambda done, total: told.append((done, total)), piece), told


def test_what_is_told() -> None:
    counted, told = meter()
    counted.expect(100)
    counted.add(30)
    counted.add(20, tell=False)
    assert told == [(0, 100), (30, 100)]
    counted.add(10)
    counted.finish()
    assert told[2:] == [(60, 100), (100, 100)]
    counted.finish()
    assert len(told) == 4


def test_a_list_of_what_was_told_is_short() -> None:
    assert repr(Progress(1, 2, 0, 0.5, plan=None)) == "Progress(done=1, total=2, begun=0, seconds=0.5)"


def test_what_turns_out_otherwise() -> None:
    counted, told = meter()
    counted.expect(100)
    counted.expect(-60)
    counted.add(45)
    assert told == [(0, 100), (0, 40), (40, 40)]
    counted.expect(40)
    assert told[-1] == (45, 80)


def test_a_little_is_not_told() -> None:
    counted, told = meter()
    counted.expect(1_000_000)
    for _ in range(1_000_000 // 50):
        counted.add(50)
    assert 900 < len(told) < 1026
    assert told[-1] == (1_000_000, 1_000_000)


def test_nothing_to_do() -> None:
    counted, told = meter()
    counted.expect(0)
    counted.finish()
    assert told == []


def test_steps_of_a_gpu_are_told_when_it_has_done_them() -> None:
    counted, told = meter()
    counted.expect(100_000)
    marks: list[Mark] = []

    def mark() -> Mark:
        marks.append(Mark())
        return marks[-1]

    for _ in range(4):
        counted.later(20_000, mark)
        counted.later(10, mark)  # so little needs no mark of its own
    assert len(marks) == 4
    assert told == [(0, 100_000)]
    marks[0].done = marks[2].done = True
    counted.later(1, mark)
    assert told[1:] == [(20_000, 100_000)]  # what comes later in the stream is not done sooner
    counted.wait()
    assert told[-1] == (80_030, 100_000)
    assert all(m.done for m in marks)


def test_what_is_recorded_is_not_done() -> None:
    counted, told = meter()
    counted.expect(100)
    counted.later(50, lambda: None)
    counted.wait()
    assert told == [(0, 100)]
    counted.finish()
    assert told[-1] == (100, 100)


def test_pieces_are_a_part_of_all() -> None:
    counted, _ = meter(piece=1000)
    assert counted.piece == 1000
    counted.expect(10_000_000)
    assert counted.piece == 25_000


def test_progress() -> None:
    plan = SimpleNamespace(seconds=8.0, n=100)
    now = Progress(300, 1000, 100, 4.0, plan)
    assert (now.steps_per_second, now.seconds_left) == (50, 14)
    assert str(now) == " 30%, 50 steps/s, 4 s, 14 s left"
    assert Progress(100, 1000, 100, 0.0, plan).seconds_left == 7.2
    assert Progress(100, 100, 100, 0.0, plan).seconds_left == 0
    unknown = Progress(0, 1000, 0, 0.0, SimpleNamespace(seconds=None, n=100))
    assert unknown.seconds_left == math.inf
    assert str(unknown) == "  0%, 0 steps/s, 0 s"
    assert "inf" not in str(unknown.facts())
