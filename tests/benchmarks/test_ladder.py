"""The papers' systems find the right distances, and their kernels compile for every architecture without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import floyd_warshall

from benchmarks.configurations import CONFIGURATIONS, Prepared
from benchmarks.ladder import Measurement, check_construction, order, run, show, weights
from benchmarks.papers import PAPERS

ON_CPU = [name for name, configuration in CONFIGURATIONS.items() if configuration.largest_on_cpu]


def compare(name: str, n: int, device: str) -> None:
    w = weights(n, device)
    prepared = Prepared(CONFIGURATIONS[name], w, device)
    assert prepared.seconds() >= 0
    distances, via = prepared.result()
    given, found = (x if device == "cpu" else x.get() for x in (w, distances))
    np.testing.assert_array_equal(found, floyd_warshall(given))
    assert (via is not None) == CONFIGURATIONS[name].paths
    if via is not None:
        check_construction(w, distances, via)


@pytest.mark.parametrize("n", [1, 33, 100])
@pytest.mark.parametrize("name", ON_CPU)
def test_configurations_on_the_cpu(name: str, n: int) -> None:
    compare(name, n, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 33, 257])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations_on_a_gpu(name: str, n: int) -> None:
    compare(name, n, "cuda")


@pytest.mark.gpu
def test_a_graph_can_be_started_again() -> None:
    w = weights(300, "cuda")
    prepared = Prepared(CONFIGURATIONS["blocks of 128, streams, graph"], w, "cuda")
    for _ in range(3):
        prepared.seconds()
        np.testing.assert_array_equal(prepared.result()[0].get(), floyd_warshall(w.get()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("arch", [75, 80, 86, 90, 100])
@pytest.mark.parametrize("side", [16, 32])
def test_the_historical_kernel_compiles(side: int, arch: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    from benchmarks.historical import tile_source
    from semiring.kernels.cuda.compiler import compile_source

    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path))
    assert compile_source(tile_source(side), arch).startswith(b"\x7fELF")


def test_a_wrong_construction_matrix_is_noticed() -> None:
    w = weights(60, "cpu")
    d, via = Prepared(CONFIGURATIONS["united"], w, "cpu"), np.full((60, 60), -1, dtype=np.int32)
    d.seconds()
    with pytest.raises(AssertionError, match="row 0"):
        check_construction(w, d.result()[0], via)


def test_every_system_has_a_configuration() -> None:
    assert {s.configuration for paper in PAPERS for s in paper.systems} == set(CONFIGURATIONS)


def test_papers_rank_their_systems() -> None:
    for paper in PAPERS:
        here = {s.name: s.seconds for s in paper.systems}
        for n in (4096, 8192):
            there, same = order(paper, here, n)
            assert there == same == [s.name for s in paper.systems if s.seconds]


def test_measurements_are_shown_beside_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(run(["united", "staged slices"], [33, 2], "cpu"))) == 2
    show([Measurement("united", 4096, 0.02), Measurement("distances only", 4096, 0.03)])
    out = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")] for line in out.splitlines() if line.startswith("| united")]
    assert rows[0][1:5] == ["united, theirs", "0.0239", "0.105", "0.446"]
    assert rows[1][1:5] == ["united, here", "", "", "0.02"]
    assert "n = 4096: another order here: distances only > united" in out
    assert "Lund" not in out
