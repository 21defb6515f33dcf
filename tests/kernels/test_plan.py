"""How a matrix is cut into block rows."""

from __future__ import annotations

import pytest

from semiring.algebra.errors import TooLargeError
from semiring.kernels.streaming.plan import GRANULE, Plan, Speed, block_rows, choose_plan, even_side

SPEED = Speed(1.6e13, 5.4e10)
GIB = 1 << 30


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 65536, 65537, 131072])
def test_a_plan_covers_the_matrix_within_the_limit(n: int, devices: int) -> None:
    plan = choose_plan(n, 4 * n, 7 * GIB, SPEED, devices=devices)
    assert plan.rows[0].start == 0
    assert plan.rows[-1].stop == n
    assert all(a.stop == b.start for a, b in zip(plan.rows, plan.rows[1:], strict=False))
    assert plan.memory <= 7 * GIB
    assert plan.seconds >= max(plan.computing, plan.moving) > 0


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
def test_devices_have_shares_as_large_as_can_be(devices: int) -> None:
    plan = choose_plan(65536, 4 * 65536, 7 * GIB, SPEED, devices=devices)
    assert plan.share <= 1.03 * 65536 / devices


def test_the_largest_share_takes_the_time() -> None:
    even, uneven = (Plan(640, block_rows(640, side), 2, 6, 2560, 0, 1, Speed(1.0, 1.0)) for side in (160, 128))
    assert even.share == 320
    assert uneven.share == 384
    assert uneven.moving == 384 * 2560


def test_sides_are_even() -> None:
    assert even_side(1000, 999) == 512  # and not 999 and 1
    assert even_side(1000, 1000) == 1000
    assert even_side(130, 64) % GRANULE == 0


def test_too_little_room_says_how_much_is_needed() -> None:
    with pytest.raises(TooLargeError, match="raise memory_limit"):
        choose_plan(65536, 4 * 65536, 1 << 20, SPEED)
    with pytest.raises(TooLargeError, match="or block="):
        choose_plan(1000, 4000, 1 << 20, SPEED, side=512)
