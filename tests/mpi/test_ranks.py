"""Closures by 1 to 4 processes with MPI: the same bits as by one, whatever they pass, and what one of them raises is raised on all."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import semiring as sr

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
pytest.importorskip("mpi4py")
from tests.mpi.killed import BLOCK, LIMIT, matrix  # noqa: E402  # which imports mpi4py

pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

ROOT = Path(__file__).parents[2]
EACH = [pytest.param(ranks, marks=[] if ranks == 2 else [pytest.mark.exhaustive]) for ranks in (1, 2, 3)]


def command(ranks: int, module: str, *arguments: str) -> list[str]:
    """What starts a program on so many ranks."""
    return [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Each rank has one thread, as they share two cores."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "SEMIRING_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize("ranks", EACH)
def test_cases(ranks: int) -> None:
    cases = []
    for file, prefix in (("program", ""), ("sparse", "sparse_")):
        text = (ROOT / f"tests/mpi/{file}.py").read_text(encoding="utf-8")
        cases += [prefix + case for case in re.findall(r"^def case_(\w+)", text, re.MULTILINE)]
    done = subprocess.run(command(ranks, "tests.mpi.sparse"), cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    found = {line["case"]: line["complaints"] for line in map(json.loads, done.stdout.splitlines()) if line}
    assert sorted(found) == sorted(cases), (done.stdout + done.stderr)[-5000:]
    assert not any(found.values()), "\n".join(f"{case}, {rank}: {c}" for case, told in found.items() for rank, c in told.items())


def round_of(folder: Path) -> int:
    """How many rounds the state says are done; 0 where there is none yet."""
    try:
        found: int = json.loads((folder / "state.json").read_text(encoding="utf-8"))["round"]
    except FileNotFoundError:
        return 0
    return found


def processes_of(folder: Path) -> list[int]:
    """The ranks that work on a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"tests.mpi.killed" in words and str(folder).encode() in words and b"-n" not in words:
            found.append(int(entry.name))
    return found


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("kept", LIMIT)
def test_killed_and_gone_on_with_by_other_ranks(kept: str, tmp_path: Path) -> None:
    draw, kills = random.Random(kept), 4
    expected = sr.apsp(matrix(), method="blocked", block=BLOCK, device="cpu", paths=True)
    for number in itertools.count():
        folder = tmp_path / f"work{number}"
        while (printed := one_run(folder, kept, draw, kills)) is not None:
            kills -= b"EXIT CODE: 9" in printed or b"KILLED" in printed.upper()
            assert b"Traceback" not in printed, printed.decode()
        assert np.load(folder / "values.npy").tobytes() == expected.values.tobytes()
        assert np.load(folder / "via.npy").tobytes() == expected.via.tobytes()
        if kills <= 0:
            break


def one_run(folder: Path, kept: str, draw: random.Random, kills: int) -> bytes | None:
    """Begin a closure, or go on with one, by some ranks, and kill one of them after a while; None if it came to its end."""
    ranks = draw.choice([1, 2, 3, 4])
    words = command(ranks, "tests.mpi.killed", str(folder), kept)
    program = subprocess.Popen(words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    goal = round_of(folder) + draw.choice([0, 1, 2, 5, 8])
    while kills > 0 and program.poll() is None:
        working = processes_of(folder)
        if len(working) == ranks and round_of(folder) >= goal:
            time.sleep(draw.random() * 0.2)
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(working), signal.SIGKILL)
            break
        time.sleep(0.01)
    printed, _ = program.communicate(timeout=100)
    return None if program.returncode == 0 else printed
