"""Closures by 1 to 4 processes with MPI: the same bits as by one, whatever they pass, and what one of them raises is raised on all."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

ROOT = Path(__file__).parents[2]
CASES = re.findall(r"^def case_(\w+)", (ROOT / "tests/mpi/program.py").read_text(encoding="utf-8"), re.MULTILINE)


def command(ranks: int, module: str, *arguments: str) -> list[str]:
    """What starts a program on so many ranks."""
    return [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Each rank has one thread, as they share two cores."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "SEMIRING_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@functools.cache
def outcomes(ranks: int) -> tuple[dict[str, Any], str]:
    """What came of each case, and all that was printed."""
    done = subprocess.run(command(ranks, "tests.mpi.program"), cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=150)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["case"]: line["complaints"] for line in lines}, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_case(ranks: int, case: str) -> None:
    found, printed = outcomes(ranks)
    assert case in found, printed[-3000:]
    assert not found[case], "\n".join(f"{rank}: {complaint}" for rank, complaint in found[case].items())
