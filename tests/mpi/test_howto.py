"""The script on the page about several machines does what the page says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from tests.mpi.test_ranks import MPIEXEC, ROOT, environment

pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

PAGE = ROOT / "docs/howto/cluster.md"


@pytest.mark.exhaustive
def test_script(tmp_path: Path) -> None:
    found = re.search(r'^```python\n(""".*?)^```', PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    script = tmp_path / "roads.py"
    script.write_text(found[1], encoding="utf-8")
    run = [str(MPIEXEC), "-n", "3", sys.executable, "-m", "mpi4py", script.name]
    done = subprocess.run(run, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]

    graph = matrix(found[1])
    n = len(graph)
    expected = shortest_path(graph)
    np.testing.assert_allclose(np.load(tmp_path / "far.npy"), expected, rtol=1e-5)
    said = re.fullmatch(r"([\d.]+) km by way of (\[.*\])\n", done.stdout)
    assert said is not None, done.stdout
    length, way = float(said[1]), ast.literal_eval(said[2])
    assert (way[0], way[-1]) == (0, n - 1)
    assert length == pytest.approx(expected[0, n - 1], abs=0.01) == graph[way[:-1], way[1:]].sum()


def matrix(script: str) -> np.ndarray[Any, Any]:
    """The matrix of which the script makes rows: what it defines before it meets other ranks."""
    names: dict[str, Any] = {}
    exec(script.partition("comm = ")[0].replace("from mpi4py import MPI", ""), names)
    return names["rows"](0, names["n"])  # type: ignore[no-any-return]  # an array
