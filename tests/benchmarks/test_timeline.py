"""What is hidden behind what in a timeline, and that a closure on a GPU gives one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.timeline import BACK, PRODUCTS, TO, Interval, common, describe, draw, measure, union

INTERVALS = [
    Interval(0, TO, 0.0, 1.0),  # the look before the rounds
    Interval(0, PRODUCTS, 1.0, 3.0),
    Interval(0, PRODUCTS, 2.0, 4.0),
    Interval(0, TO, 2.5, 4.5),
    Interval(0, PRODUCTS, 6.0, 8.0),
    Interval(0, BACK, 7.0, 11.0),
]


def test_union_counts_what_overlaps_once() -> None:
    assert union([i for i in INTERVALS if i.kind == PRODUCTS]) == [(1.0, 4.0), (6.0, 8.0)]
    assert union([]) == []


def test_common_time() -> None:
    assert common([(0, 2), (3, 5)], [(1, 4)]) == 2
    assert common([(0, 1)], [(1, 2)]) == 0


def test_the_rounds_begin_with_the_first_product() -> None:
    (line,) = describe(INTERVALS)
    assert "rounds 10.00 s, products 5.00 s (50.0%)" in line
    assert "copies to the GPU 2.00 s, 75.0% of it behind products" in line
    assert "copies from the GPU 4.00 s, 25.0% of it behind products" in line


def test_intervals_in_a_picture(tmp_path: Path) -> None:
    draw(INTERVALS, "a GPU", tmp_path / "t.svg")
    assert (tmp_path / "t.svg").stat().st_size > 1000


@pytest.mark.gpu
@pytest.mark.parametrize("paths", [False, True])
def test_a_closure_on_a_gpu(paths: bool) -> None:
    found = measure(3000, "80MiB", 1, paths=paths)
    assert {i.kind for i in found} == {TO, PRODUCTS, BACK}
    assert all(0 <= i.start <= i.end for i in found)
    assert describe(found)
