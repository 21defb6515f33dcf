"""The programs of examples/ run, in a folder of their own, and print what they promise."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"


def said(folder: Path, *command: str) -> str:
    """Run a program and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent), "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_roads(tmp_path: Path) -> None:
    out = said(tmp_path, str(FOLDER / "roads.py"), "Genf", "Davos")
    assert out.splitlines()[0] == "Genf to Davos: 443 km by Lausanne, Sion, Brig, Andermatt, Chur"
    assert "<svg" in (tmp_path / "roads.svg").read_text(encoding="utf-8")


def test_dependencies(tmp_path: Path) -> None:
    out = said(tmp_path, str(FOLDER / "dependencies.py"), "numpy")
    assert re.match(r"\d+ of \d+ packages need numpy:\n", out)
    assert "  semiring → numpy\n" in out


def test_sequences(tmp_path: Path) -> None:
    *_, last = said(tmp_path, str(FOLDER / "sequences.py")).splitlines()
    shares = [int(x) for x in re.findall(r"(\d+)%", last)]
    assert len(shares) == 2
    assert min(shares) > 80  # always saying "fair" is right two times in three


def test_larger_than_memory(tmp_path: Path) -> None:
    program = str(FOLDER / "larger_than_memory.py"), "3072", "28MiB"  # the matrix has 36 MiB
    first, again = said(tmp_path, *program), said(tmp_path, *program)
    assert re.search(r"\n  block rows +n = 3,072 in \d+ block rows", first)
    assert first.splitlines()[-1] == again.splitlines()[-1]
    assert (tmp_path / "large.work").is_dir()


def test_custom_semiring(tmp_path: Path) -> None:
    """The notebook has one cell of code, which prints what is stored below the cell."""
    cells = json.loads((FOLDER / "custom_semiring.ipynb").read_text(encoding="utf-8"))["cells"]
    (cell,) = (c for c in cells if c["cell_type"] == "code")
    stored = next("".join(x["text"]) for x in cell["outputs"] if x["output_type"] == "stream")
    assert said(tmp_path, "-c", "".join(cell["source"])) == stored


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_programs_are_short(path: Path) -> None:
    assert 20 <= len(path.read_text(encoding="utf-8").splitlines()) <= 40
