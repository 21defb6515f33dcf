"""Measurements survive a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.records import read_csv, write_csv


@dataclass(frozen=True)
class Run:
    name: str
    n: int
    seconds: float


def test_records_in_a_file(tmp_path: Path) -> None:
    runs = [Run("blocks of 128, streams", 512, 0.00125), Run('"⊕"', -1, 2.0), Run("", 0, float("inf"))]
    write_csv(tmp_path / "x.csv", runs, ("some hardware", "a command"))
    assert read_csv(tmp_path / "x.csv", Run) == (["some hardware", "a command"], runs)


def test_floats_have_the_format_that_is_asked_for(tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv", [Run("a", 1, 2 / 3)], (), ".2f")
    assert (tmp_path / "x.csv").read_text() == "name,n,seconds\na,1,0.67\n"
    assert read_csv(tmp_path / "x.csv", Run) == ([], [Run("a", 1, 0.67)])
