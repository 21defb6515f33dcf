"""SciPy's own tests of what `semiring.csgraph` replaces, run with it in SciPy's place."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = {"test_shortest_path": 70, "test_conversions": 3, "test_pydata_sparse": 15}
"""SciPy's modules, and how many of their tests have to pass at least."""


def run(folder, device, modules):
    """How many of SciPy's tests passed, and how often they called what."""
    counts = folder / "counts.json"
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "-p", "no:cacheprovider", "-p", "in_scipys_place"]
    command += ["-k", "not minimum_spanning_tree"]  # not replaced, and SciPy 1.16's fails with newer arrays of PyData
    command += ["--compute-on", device, "--counts", str(counts), "--pyargs", *(f"scipy.sparse.csgraph.tests.{name}" for name in modules)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    finished = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (passed,) = re.findall(r"(\d+) passed", finished.stdout)
    assert "skipped" not in finished.stdout, finished.stdout
    return int(passed), json.loads(counts.read_text())


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_all_pass_in_our_place_by_the_closure(device, tmp_path, capsys):
    modules = {name: least for name, least in TESTS.items() if name != "test_pydata_sparse" or importlib.util.find_spec("sparse")}
    passed, calls = run(tmp_path, device, modules)
    closed, searched = calls.pop("by_closure"), calls.pop("by_scipy")
    with capsys.disabled():
        print(f"\nSciPy's tests of csgraph, device={device}: {passed} passed, {sum(calls.values())} calls reached semiring.csgraph")
        print(f"{closed} answers by the closure, {searched} by SciPy's search (all of min_only=True): {calls}")
    assert passed >= sum(modules.values())
    assert sum(calls.values()) >= 200
    assert closed >= 130
    # Left to SciPy is only what is a single search, and what no closure is: each test that asks for min_only.
    assert searched < calls["dijkstra"]
    assert {"shortest_path", "dijkstra", "bellman_ford", "johnson", "construct_dist_matrix", "csgraph_from_dense", "yen"} <= set(calls)


@pytest.mark.exhaustive
def test_all_pass_where_the_faster_one_computes(tmp_path):
    passed, calls = run(tmp_path, "auto", ["test_shortest_path"])
    assert passed >= TESTS["test_shortest_path"]
    assert calls["by_scipy"] > 0
