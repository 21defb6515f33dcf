"""Closures with a checkpoint that are killed and go on: the same bits as without, and the right ones."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaign.arithmetic import Near
from tests.campaign.cases import Case, Complaint, Entry
from tests.campaign.lawful import catalogue
from tests.campaign.oracles import Algebra, difference
from tests.campaign.subjects import Array, Subject

__all__ = ["KILL"]

Rng = np.random.Generator

_CHILD = """
import sys
import numpy as np
import semiring as sr
folder, name, block, paths, device = sys.argv[1:]
matrix = np.load(folder + "/matrix.npy")
print("begins", flush=True)
found = sr.closure(matrix, getattr(sr, name), block=int(block), paths=paths == "True", checkpoint=folder + "/kept", device=device)
values, via = (found.values, found.via) if paths == "True" else (found, np.zeros(0))
np.savez(folder + "/found.npz", values=values, via=via)
"""


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    name = str(rng.choice(["MIN_PLUS", "MAX_MIN", "MIN_PLUS"]))
    subject, n = catalogue(name, str(rng.choice(["float32", "float64", "int32"]))), int(rng.integers(200, 400))
    a = subject.draw(rng, (n, n), zeros=0.97, harmless=True)
    kills = [round(float(t), 3) for t in rng.uniform(0, 0.8, int(rng.integers(1, 4)))]
    options: dict[str, Any] = {"name": name, "block": int(rng.integers(4, 17)), "kills": kills}
    if rng.random() < 0.5:
        options["paths"] = True
    return Case("kill", subject, {"a": a}, {"a": ("n", "n")}, {}, options, device)


def _start(case: Case, folder: Path) -> subprocess.Popen[str]:
    options = case.options
    arguments = [str(folder), options["name"], str(options["block"]), str(bool(options.get("paths"))), case.device]
    return subprocess.Popen([sys.executable, "-c", _CHILD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finished(process: subprocess.Popen[str], folder: Path) -> tuple[tuple[Array, Array] | None, str]:
    _, said = process.communicate(timeout=100)
    if process.returncode:
        return None, f"ended with {process.returncode}: {said[-2000:]}"
    with np.load(folder / "found.npz") as found:
        return (found["values"], found["via"]), ""


def _check(case: Case) -> Complaint | None:
    (a,) = case.arrays["a"]
    results: list[tuple[Array, Array]] = []
    with tempfile.TemporaryDirectory() as outer:
        never: list[float] = []
        for kills in (case.options["kills"], never):
            folder = Path(outer) / f"{len(kills)} kills"
            folder.mkdir()
            np.save(folder / "matrix.npy", a)
            for seconds in kills:
                process = _start(case, folder)
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(seconds)
                process.kill()
                process.communicate()
            found, said = _finished(_start(case, folder), folder)
            if found is None:
                return Complaint("resumed", f"after kills at {kills} s it {said}")
            results.append(found)
    (values, via), (plain_values, plain_via) = results
    if not np.array_equal(values, plain_values) or not np.array_equal(via, plain_via):
        return Complaint("bits", "a closure that was killed and went on differs from one that was not")
    algebra = Algebra(case.subject)
    (wanted,) = algebra.lift((a,))
    distances = np.array(getattr(wanted, "value", wanted))
    choose, join = (np.minimum, np.add) if case.options["name"] == "MIN_PLUS" else (np.maximum, np.minimum)
    np.fill_diagonal(distances, (case.subject.ones if algebra.native else case.subject.one)[0])
    for k in range(len(a)):  # Floyd and Warshall
        distances = choose(distances, join(distances[:, k, None], distances[None, k]))
    wrong = difference(algebra, (values,), (Near(distances) if algebra.near else distances,))
    return Complaint("values", wrong) if wrong else None


KILL = Entry(0, _draw, _check)
