"""NetworkX's own tests of what the backend offers pass with it, and every function that it offers answers some of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from semiring.networkx_backend.info import get_info

ALGORITHMS = Path(nx.__file__).parent / "algorithms"
MODULES = [
    "shortest_paths",
    "components/tests/test_strongly_connected.py",
    "centrality/tests/test_betweenness_centrality.py",
    "centrality/tests/test_betweenness_centrality_subset.py",
    "centrality/tests/test_closeness_centrality.py",
    "centrality/tests/test_group.py",
    "centrality/tests/test_harmonic_centrality.py",
    "tests/test_dag.py",
    "tests/test_distance_measures.py",
    "tests/test_efficiency.py",
    "tests/test_simple_paths.py",
    "tests/test_voronoi.py",
    "tests/test_wiener.py",
]


@pytest.mark.exhaustive
def test_networkxs_tests_pass_and_every_function_answers_some(tmp_path: Path) -> None:
    counts = tmp_path / "calls.json"
    environment = os.environ | {
        "NETWORKX_TEST_BACKEND": "semiring",
        "NETWORKX_FALLBACK_TO_NX": "True",
        "SEMIRING_CALLS": str(counts),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "calls", "-p", "no:cacheprovider"]
    command += ["--confcutdir", str(ALGORITHMS.parent)]  # its conftest.py chooses the backend
    command += [str(ALGORITHMS / module) for module in MODULES]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]
    answered = json.loads(counts.read_text(encoding="utf-8"))
    # Of a function with two names NetworkX knows one, and some are not in older ones.
    known = {getattr(nx, name).name for name in get_info()["functions"] if hasattr(nx, name)}
    assert answered.keys() <= known
    assert known - answered.keys() <= {"floyd_warshall"}  # which the tests of NetworkX 3.7 call no more
