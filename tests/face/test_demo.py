"""The airport network and the demo that computes on it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiring import demo
from semiring.cli import main

needs_data = pytest.mark.skipif(importlib.util.find_spec("bokeh_sampledata") is None, reason="bokeh_sampledata is not installed")

AIRPORTS = """AirportID,Name,City,Country,IATA,ICAO,Latitude,Longitude
1,North Pole,,,NPO,KNPO,90,0
2,Null Island,,,NUL,KNUL,0,0
3,"Antipode, of Null",,,\\N,KANT,0,180
4,Unserved,,,UNS,KUNS,45,45
"""
ROUTES = """Airline,AirlineID,Source,SourceID,Destination,DestinationID
XX,7,NPO,1,NUL,2
YY,8,NPO,1,NUL,2
XX,7,NUL,2,ANT,3
XX,7,NUL,2,ELS,99
"""


def test_great_circle() -> None:
    quarter = demo.EARTH_RADIUS_KM * np.pi / 2
    assert demo.great_circle(np.array(90.0), np.array(0.0), np.array(0.0), np.array(77.0)) == pytest.approx(quarter)
    assert demo.great_circle(np.array(0.0), np.array(-90.0), np.array(0.0), np.array(90.0)) == pytest.approx(2 * quarter)
    assert demo.great_circle(np.array(5.0), np.array(6.0), np.array(5.0), np.array(6.0)) == 0


@needs_data
class TestAirports:
    def test_the_network(self) -> None:
        airports = demo.load_airports()
        n = len(airports.labels)
        assert n > 300
        assert airports.distances.shape == (n, n)
        assert len(airports.names) == len(airports.latitude) == len(airports.longitude) == n
        assert len(set(airports.labels)) == n
        assert all(re.fullmatch("[A-Z]{3}", label) for label in airports.labels)
        assert not np.diagonal(airports.distances).any()
        served = np.isfinite(airports.distances)
        np.fill_diagonal(served, False)
        assert (served.any(0) | served.any(1)).all()
        assert served.sum() > 5000
        assert (served != served.T).any()  # directed

    def test_a_known_distance(self) -> None:
        airports = demo.load_airports()
        jfk, lax = map(airports.labels.index, ("JFK", "LAX"))
        assert airports.distances[jfk, lax] == pytest.approx(3974, abs=5)

    def test_neither_bokeh_nor_pandas_is_imported(self) -> None:
        program = (
            "import sys; from semiring.demo import load_airports; load_airports();"
            "print(sorted({'bokeh_sampledata', 'pandas', 'scipy'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


def test_files_of_older_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "airports.csv").write_text(AIRPORTS, encoding="utf-8")
    (tmp_path / "routes.csv").write_text(ROUTES, encoding="utf-8")
    monkeypatch.setattr(demo, "_data_folder", lambda: tmp_path)
    airports = demo.load_airports()
    assert airports.labels == ("NPO", "NUL", "KANT")
    assert airports.names[2] == "Antipode, of Null"
    assert np.isfinite(airports.distances).tolist() == [[True, True, False], [False, True, True], [False, False, True]]
    assert airports.distances[1, 2] == pytest.approx(2 * airports.distances[0, 1])


@needs_data
class TestDemo:
    def test_what_it_prints(self, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("scipy")
        assert main(["demo"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"\d+ airports, [\d,]+ one-way routes, [\d,]+ of [\d,]+ ordered pairs connected", out)
        assert re.search(r"all shortest distances and the routes themselves: [\d.]+ m?s", out)
        assert "farthest connected pair" in out
        difference = re.search(r"the same pairs connected, largest difference (\S+) km", out)
        assert difference
        assert float(difference[1]) < 1e-9
        assert max(map(len, out.splitlines())) <= 110

    def test_the_legs_add_up(self, capsys: pytest.CaptureFixture[str]) -> None:
        demo.run_demo()
        journeys = re.findall(r"\n(\w+) → (\w+): ([\d,]+) km.*\n((?:  .*\n)+)", capsys.readouterr().out)
        assert len(journeys) >= 4
        for source, target, total, legs in journeys:
            codes = re.findall(r"^(?: +[\d,]+ km)? +([A-Z]{3})  ", legs, re.MULTILINE)
            lengths = [int(leg.replace(",", "")) for leg in re.findall(r"([\d,]+) km", legs)]
            assert (codes[0], codes[-1]) == (source, target)
            assert len(codes) == len(lengths) + 1
            assert abs(sum(lengths) - int(total.replace(",", ""))) <= len(lengths)

    def test_without_scipy(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("scipy", "scipy.sparse", "scipy.sparse.csgraph"):
            monkeypatch.setitem(sys.modules, module, None)
        demo.run_demo()
        assert "SciPy is not installed" in capsys.readouterr().out


def test_without_the_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "bokeh_sampledata" else find(name, *rest))
    assert main(["demo"]) == 2
    assert 'pip install -e ".[demo]" from the clone' in capsys.readouterr().err
