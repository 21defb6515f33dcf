"""Random graphs have the degree that was asked for, and both ways to their distances agree."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.frontier import Measurement, degrees, measure, random_graph, show


@pytest.mark.parametrize(("n", "degree"), [(2, 1), (5, 3), (17, 16), (64, 63), (100, 7)])
def test_random_graphs_have_their_degree(n: int, degree: int) -> None:
    graph = random_graph(n, degree).toarray()
    np.testing.assert_array_equal((graph > 0).sum(axis=1), degree)
    assert not graph.diagonal().any()


def test_degrees() -> None:
    assert degrees(2) == [1]
    assert degrees(3) == [2]
    assert degrees(17) == [2, 4, 8, 16]
    assert degrees(18) == [2, 4, 8, 16, 17]
    assert degrees(8192)[-1] == 512  # more edges are not searched


def test_measuring_and_showing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure._WAIT", 0)
    measured = measure(10, repeats=1)
    assert [(m.n, m.degree) for m in measured] == [(10, 2), (10, 4), (10, 8), (10, 9)]
    assert all(m.closure > 0 and m.searches > 0 for m in measured)
    show([Measurement(10, 2, 0.5, 1.0), Measurement(10, 9, 0.5, 4.0), Measurement(20, 2, 1.0, 0.25)])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[0] == ["n", "2", "complete"]
    assert rows[2:] == [["10", "2", "8"], ["20", "0.25", ""]]
