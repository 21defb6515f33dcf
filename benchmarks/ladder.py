"""The papers' ladder: each of their systems as a configuration of this library, its seconds beside the papers' own.

    python -m benchmarks.ladder
    python -m benchmarks.ladder --only iterative united --max 16384
    python -m benchmarks.ladder --device cpu --max 512
    python -m benchmarks.ladder --csv benchmarks/ladder_h200.csv

Matrices lie on the device; times are medians by CUDA events (on the CPU, of the clock) of the closure alone. Every result is compared
with `semiring.apsp` bit by bit, which itself is compared with SciPy at the smallest size; a construction matrix is checked against the
distances.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr
from benchmarks.configurations import CONFIGURATIONS, Prepared
from benchmarks.measure import hardware, print_table
from benchmarks.papers import PAPERS, Paper
from benchmarks.records import write_csv

__all__ = ["Measurement", "measure", "order", "run", "weights"]

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768)

_LARGE = 4096
"""Vertices from which on the order of a paper's systems is to come out here too."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of one configuration for n vertices."""

    configuration: str
    n: int
    seconds: float


def weights(n: int, device: str) -> Any:
    """A random graph with a quarter of all edges. Its weights are whole numbers, so that sums of them are exact in every order.

    Parameters
    ----------
    n : int
    device : {"cpu", "cuda"}
    """
    array: Any = np
    if device != "cpu":
        import cupy

        array = cupy
    rng = array.random.default_rng(n)
    w = array.floor(rng.random((n, n), dtype=np.float32) * 65535) + 1
    w[rng.random((n, n), dtype=np.float32) < 0.75] = np.inf
    return w


def measure(name: str, w: Any, expected: Any, device: str) -> float:
    """Seconds of a configuration: the median of five runs, or of one that takes longer than a fifth of a second.

    Raises
    ------
    AssertionError
        If the distances are not the expected ones, or the construction matrix does not lead to them.
    """
    prepared = Prepared(CONFIGURATIONS[name], w, device)
    first = prepared.seconds()
    elapsed = statistics.median([first, *(prepared.seconds() for _ in range(4))]) if first < 0.2 else first
    distances, via = prepared.result()
    assert (distances == expected).all(), f"{name}: wrong distances for n = {len(w)}"
    if via is not None:
        check_construction(w, distances, via)
    return elapsed


def check_construction(w: Any, d: Any, via: Any) -> None:
    """In some rows i: d_ij = d_ik + d_kj for the vertex k = via_ij, and d_ij is the edge itself where there is none."""
    for i in range(0, len(d), max(1, len(d) // 50)):
        k = via[i]
        expected = w[i].copy()
        expected[i] = 0
        expected[k >= 0] = (d[i, k] + d[k, range(len(d))])[k >= 0]
        assert (expected == d[i]).all(), f"the construction matrix is wrong in row {i}"


def run(names: Sequence[str], sizes: Sequence[int], device: str, most: int | None = None) -> Iterator[Measurement]:
    """Measure configurations up to their own limits, or up to `most` vertices, if the device tells them apart."""
    for n in sorted(sizes):
        limits = {name: CONFIGURATIONS[name].limit(device) for name in names}
        chosen = [name for name, limit in limits.items() if limit and n <= (most or limit)]
        if not chosen:
            continue
        w = weights(n, device)
        expected = sr.apsp(w, nonedge=np.inf)
        if n == min(sizes):
            given, found = (x if device == "cpu" else x.get() for x in (w, expected))
            np.testing.assert_array_equal(found, floyd_warshall(given))
        for name in chosen:
            yield Measurement(name, n, measure(name, w, expected, device))


def show(measured: Sequence[Measurement]) -> None:
    """A table for each paper, and how its order compares with the order here."""
    for paper in PAPERS:
        here = {s.name: {m.n: m.seconds for m in measured if m.configuration == s.configuration} for s in paper.systems}
        present = [s for s in paper.systems if here[s.name]]
        if not present:
            continue
        sizes = sorted({n for s in present for n in (*here[s.name], *s.seconds)})
        rows = [
            [f"{s.name}, {where}", *(f"{seconds[n]:.3g}" if n in seconds else "" for n in sizes)]
            for s in present
            for where, seconds in (("theirs", s.seconds), ("here", here[s.name]))
            if seconds
        ]
        print(f"\n{paper.authors} {paper.year}, {paper.hardware}; seconds")
        print_table((paper.authors.split()[0].rstrip(","), *map(str, sizes)), rows)
        for n in (size for size in sizes if size >= _LARGE):
            theirs, ours = order(paper, here, n)
            if len(theirs) > 1:
                print(f"n = {n}: {'the same order' if theirs == ours else 'another order'} here: {' > '.join(ours)}")
        if paper.remark:
            print(paper.remark)


def order(paper: Paper, here: Mapping[str, Mapping[int, float]], n: int) -> tuple[list[str], list[str]]:
    """The paper's systems that both have measured for n vertices, the slowest first: there, and here.

    Parameters
    ----------
    paper : Paper
    here : mapping from a system's name to its seconds by n
    n : int
    """
    there = {s.name: s.seconds[n] for s in paper.systems if n in s.seconds and n in here[s.name]}
    return sorted(there, key=lambda s: -there[s]), sorted(there, key=lambda s: -here[s][n])


def main() -> None:
    parser = argparse.ArgumentParser(description="The papers' systems as configurations of this library")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--max", type=int, help="run every configuration up to so many vertices, whatever its own limit")
    parser.add_argument("--only", nargs="+", default=[""], help="configurations that have one of these in their names")
    parser.add_argument("--csv", type=Path, help="write the measurements to this file")
    options = parser.parse_args()
    names = [name for name in CONFIGURATIONS if any(part in name for part in options.only)]
    print(hardware(options.device))
    measured = []
    for m in run(names, options.sizes, options.device, options.max):
        print(f"{m.configuration}, n = {m.n}: {m.seconds:.4g} s", flush=True)
        measured.append(m)
    show(measured)
    if options.csv:
        write_csv(options.csv, measured, (hardware(options.device), f"python -m benchmarks.ladder {' '.join(sys.argv[1:])}"))


if __name__ == "__main__":
    main()
