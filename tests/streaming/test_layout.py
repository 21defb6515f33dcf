"""How a matrix is cut into block rows."""

from __future__ import annotations

import inspect

import pytest

from semiring.common.errors import TooLargeError
from semiring.kernels.machine import Speed
from semiring.streaming.layout import ALIGNMENT, BlockRows, block_rows, default_side, even_side, streamed_rows

SPEED = Speed(1.6e13, 5.4e10)
MIB, GIB = 1 << 20, 1 << 30
SIZES = [1, 63, 64, 65, 1000, 2500, 16384, 65536, 65537, 131072, 500_000]


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("n", SIZES)
def test_a_plan_covers_the_matrix_within_the_room(n: int, devices: int) -> None:
    side = default_side(n, 4 * n)
    for room in (13 * GIB, 21 * GIB, 80 * GIB):
        plan = streamed_rows(n, 4 * n, room, SPEED, side, devices=devices)
        assert plan.rows == block_rows(n, side)  # whatever room there is
        assert plan.memory <= room
        assert plan.seconds >= max(plan.computing, plan.moving) > 0
    assert plan.overlaps


def test_the_side_follows_from_the_problem_alone() -> None:
    assert list(inspect.signature(default_side).parameters) == ["n", "row_bytes", "limit"]
    fast, slow = (streamed_rows(65536, 4 * 65536, 7 * GIB, speed, 2048) for speed in (SPEED, Speed(1e9, 1e9)))
    assert fast.rows == slow.rows


@pytest.mark.parametrize("entry", [1, 4, 8, 20])
@pytest.mark.parametrize("n", SIZES)
def test_sides_are_aligned_and_a_block_row_is_of_some_gigabytes_at_most(n: int, entry: int) -> None:
    side = default_side(n, entry * n)
    assert side % ALIGNMENT == 0 or side == n
    assert side <= ALIGNMENT or side * entry * n <= 5 * GIB


@pytest.mark.parametrize("limit", [1, MIB, 100 * MIB, GIB, 8 * GIB, 1 << 50])
@pytest.mark.parametrize("n", SIZES)
def test_a_limit_that_the_caller_names_makes_block_rows_smaller(n: int, limit: int) -> None:
    side, free = default_side(n, 4 * n, limit), default_side(n, 4 * n)
    assert min(n, ALIGNMENT) <= side <= free
    assert side % ALIGNMENT == 0 or side == n
    assert side <= ALIGNMENT or 6 * side * 4 * n <= limit
    assert side == free or (limit < 6 * free * 4 * n)


@pytest.mark.parametrize(("n", "entry"), [(65536, 4), (65536, 8), (131072, 4)])
def test_copies_hide_behind_products(n: int, entry: int) -> None:
    plan = streamed_rows(n, entry * n, 80 * GIB, SPEED, default_side(n, entry * n))
    assert plan.moving < plan.computing


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("n", [16384, 32768, 65536, 131072])
def test_devices_have_shares_as_large_as_can_be(n: int, devices: int) -> None:
    plan = streamed_rows(n, 4 * n, 80 * GIB, SPEED, default_side(n, 4 * n), devices=devices)
    assert plan.share <= 1.03 * n / devices


def test_the_largest_share_takes_the_time() -> None:
    even, uneven = (BlockRows(640, block_rows(640, side), 2, 6, 2560, 0, 1, Speed(1.0, 1.0)) for side in (160, 128))
    assert even.share == 320
    assert uneven.share == 384
    assert uneven.moving == 384 * 2560


def test_sides_are_even() -> None:
    assert even_side(1000, 999) == 512  # and not 999 and 1
    assert even_side(1000, 1000) == 1000
    assert even_side(130, 64) % ALIGNMENT == 0


@pytest.mark.parametrize(("devices", "slots", "least", "most"), [(1, 0, 2, 5), (3, 0, 3, 6), (3, 2, 5, 6)])
def test_where_room_is_short_fewer_block_rows_are_held(devices: int, slots: int, least: int, most: int) -> None:
    size = 512 * 4000
    for held in range(least, most + 2):
        plan = streamed_rows(1000, 4000, held * size, SPEED, 512, devices=devices, slots=slots)
        assert plan.buffers == min(held, most) - slots
        assert plan.memory == min(held, most) * size
        assert plan.overlaps == (held >= most)
    few, many = (streamed_rows(1000, 4000, buffers * size, SPEED, 512, devices=devices) for buffers in (least, most))
    assert few.seconds > many.seconds


def test_too_little_room_says_what_would_do() -> None:
    with pytest.raises(TooLargeError, match=r"raise memory_limit") as stop:
        streamed_rows(65536, 4 * 65536, MIB, SPEED, 2048)
    assert "2 block rows of 2,048 × 65,536 entries take 1.0 GiB on each device, and 1.0 MiB are left" in str(stop.value)
    assert "block=2 at most" in str(stop.value)
    with pytest.raises(TooLargeError, match="block=128 at most"):
        streamed_rows(1000, 4000, MIB, SPEED, 512)
    with pytest.raises(TooLargeError) as stop:
        streamed_rows(100, 400, -1000, SPEED, 64)
    assert "take 50.0 KiB on each device, and 0 bytes are left; free memory or raise memory_limit by 51.0 KiB" in str(stop.value)
    assert "block=" not in str(stop.value)
