"""Figures of benchmarks: what a table leaves in a file, what the files hold, and README's table, which is written from them."""

import math
import re
import sys
from datetime import date
from pathlib import Path

import pytest

from benchmarks import figures, measure, readme, record

HEADER = ["n, graph", "closure, ms", "SciPy, ms", "SciPy / closure", "closure, predicted", "explain"]


def test_cells_with_units_are_figures() -> None:
    row = ["5000, complete", "1,771.7", "63,481.8", "35.8 ×", "2,500.2", "semiring"]
    case = "n, graph: 5000, complete"
    assert record.figures(HEADER, row, 1) == [(case, "closure", 1771.7, "ms"), (case, "SciPy", 63481.8, "ms")]
    assert record.figures(["graph", "way", "a source", "SciPy's time"], ["roads", "rows", "0.110 ms", "12 ×"], 2) == [
        ("graph: roads, rows", "a source", 0.11, "ms")
    ]
    assert record.figures(["product", "n", "ms", "T steps/s", "predicted, s"], ["f32", "8", "", "1.5", "2"], 2) == [
        ("product: f32, 8", "T steps/s", 1.5, "T steps/s")
    ]


def test_a_recorded_benchmark_appends_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "timed.py").write_text(
        "import sys\nfrom benchmarks.measure import print_table\n"
        "print_table(['n', 'dtype', 'ours, ms', 'SciPy, ms'], [['8', sys.argv[2], '1.5', '2,000']], 0.01, keys=2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(figures, "DATA", tmp_path)
    monkeypatch.setattr(record, "DATA", tmp_path)
    monkeypatch.setattr(measure, "listeners", [])
    for commit in ("a", "b"):
        monkeypatch.setattr(sys, "argv", ["record", "--commit", commit, "--machine", "a desk", "timed", "--dtype", "float32"])
        measure.listeners.clear()
        record.main()
    found = figures.read("timed")
    assert [f.commit for f in found] == ["a", "a", "b", "b"]
    assert (found[1].machine, found[1].command, found[1].case) == ("a desk", "python -m timed --dtype float32", "n: 8, float32")
    assert (found[1].column, found[1].figure, found[1].unit, found[1].others) == ("SciPy", 2000.0, "ms", "0.01")
    assert re.fullmatch(r"SciPy [\d.]+", found[1].peers)


@pytest.mark.parametrize("path", sorted(figures.DATA.glob("*.csv")), ids=lambda path: path.stem)
def test_a_file_of_figures_can_be_read(path: Path) -> None:
    found = figures.read(path.stem)
    assert found
    for f in found:
        assert date.fromisoformat(f.date) <= date.today()
        assert re.fullmatch(r"[0-9a-f]{7,12}\+?", f.commit)
        assert re.search(rf"python -m benchmarks\.{path.stem}\b", f.command)
        assert ": " in f.case
        assert all((f.machine, f.column, f.unit))
        assert 0 < f.figure < math.inf
        assert not f.others or float(f.others) >= 0


def test_readme_is_what_the_figures_say() -> None:
    assert readme.text() == readme.README.read_text(encoding="utf-8")
    assert readme.table().count("\n| ") > 10


@pytest.mark.parametrize("comparison", figures.COMPARISONS, ids=lambda comparison: comparison.label)
def test_a_shown_comparison_has_figures_on_its_machines(comparison: figures.Comparison) -> None:
    cases = {(f.case, f.column) for f in figures.read(comparison.benchmark)}
    if not cases:
        pytest.skip("not recorded yet")
    assert (comparison.case, comparison.ours) in cases
    assert all(comparison.points(machine) for machine in comparison.machines)


@pytest.mark.parametrize(
    ("seconds", "said"), [(125.4, "125 s"), (9.3, "9.3 s"), (0.198, "0.20 s"), (0.0707, "71 ms"), (2.95e-5, "30 µs"), (0.0994, "99 ms")]
)
def test_times_have_two_digits(seconds: float, said: str) -> None:
    assert readme.written(seconds).split() == said.split()
