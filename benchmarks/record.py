"""Run a benchmark and append the figures of its tables to `benchmarks/data/`, a CSV file for each benchmark.

    python -m benchmarks.record benchmarks.csgraph --paths --sizes 500 2000
    python -m benchmarks.record --commit 1a2b3c4 benchmarks.gpu          # where there is no clone of the repository

A cell is a figure where its header ends with a unit of time or of speed, or the cell does. Ratios and predictions are no figures.
"""

from __future__ import annotations

import argparse
import datetime
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from benchmarks import measure
from benchmarks.figures import DATA, Figure, read
from benchmarks.records import write_csv

PEERS = {
    "CuPy": "cupy", "FLINT": "python-flint", "GraphBLAS": "python-graphblas", "hmmlearn": "hmmlearn", "igraph": "igraph",
    "NetworkX": "networkx", "networkit": "networkit", "Numba": "numba", "NumPy": "numpy", "PyTorch": "torch", "RDKit": "rdkit",
    "RoutingKit": "pyroutingkit", "SciPy": "scipy", "sklearn": "scikit-learn", "torch-struct": "torch-struct",
    "tropical-gemm": "tropical-gemm",
}  # fmt: skip
"""Libraries as tables name them, and as package registries do."""

ON_GPU = {"gpu", "gpu_large", "gpu_sparse", "streaming", "tiles"}
"""Benchmarks that need no option to run on a GPU."""

Run: TypeAlias = tuple[str, str, str, str]
"""Date, commit, machine and command."""

_CELL = re.compile(r"([\d,]*\.?\d+(?:e[+-]?\d+)?)(?: (ms|µs|s))?")
_UNIT = re.compile(r"ms|µs|s|[TG] (bit-)?steps/s|GB/s")


def figures(header: Sequence[str], row: Sequence[str], keys: int) -> list[tuple[str, str, float, str]]:
    """Case, column, number and unit of each cell of a row that is a figure."""
    case, found = f"{header[0]}: {', '.join(filter(None, row[:keys]))}", []
    for name, cell in zip(header[keys:], row[keys:], strict=True):
        number = _CELL.fullmatch(cell)
        column, _, unit = (name, "", number[2]) if number and number[2] else name.rpartition(", ")
        if number and _UNIT.fullmatch(unit) and "predicted" not in column:
            found.append((case, column or unit, float(number[1].replace(",", "")), unit))
    return found


def append(benchmark: str, run: Run, header: Sequence[str], rows: Sequence[Sequence[str]], keys: int, others: float | None) -> None:
    """Add the figures of a table to the file of the benchmark."""
    new = []
    for row in rows:
        named = " ".join((*header, *row[:keys])).lower()
        versions = {peer: measure.version(package) for peer, package in PEERS.items() if peer.lower() in named}
        peers = ", ".join(f"{peer} {version}" for peer, version in versions.items() if version != "-")
        new += [Figure(*run, *figure, peers, "" if others is None else f"{others:.2f}") for figure in figures(header, row, keys)]
    if new:
        write_csv(DATA / f"{benchmark}.csv", [*read(benchmark), *new], (), floats=".10g")


def commit() -> str:
    """The short hash of the tree's commit, with a `+` if the tree has changes besides the figures."""
    git = partial(subprocess.run, cwd=DATA, capture_output=True, text=True, check=True)
    changes = git(["git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude)."]).stdout
    return git(["git", "rev-parse", "--short=8", "HEAD"]).stdout.strip() + "+" * bool(changes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a benchmark and keep its figures")
    parser.add_argument("--commit", help="by default, what git says")
    parser.add_argument("--machine", help="the kind of machine; by default, what the benchmark's options and this machine say")
    parser.add_argument("benchmark", help="such as benchmarks.csgraph")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the benchmark")
    given = parser.parse_args()
    name = given.benchmark.removeprefix("benchmarks.")
    gpu = "cuda" in given.arguments or (name in ON_GPU and "--cpu" not in given.arguments)
    command = shlex.join(["python", "-m", given.benchmark, *given.arguments])
    threads = re.search(r"--threads (\d+)", command)
    machine = given.machine or measure.place("cuda" if gpu else "cpu", int(threads[1]) if threads else None)
    run = datetime.date.today().isoformat(), given.commit or commit(), machine, command
    measure.listeners.append(partial(append, name, run))
    sys.argv[1:] = given.arguments
    runpy.run_module(given.benchmark, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
