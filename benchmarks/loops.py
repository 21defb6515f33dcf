"""Loops of graph algorithms compiled by this library and by Numba: the import, the first call of a process, and later calls.

    python -m benchmarks.loops
    pip install numba

Both compile the same functions: strong components (Tarjan) and the elimination tree. Dijkstra's algorithm is `search_best_first` over
min-plus here, and there the same heap with four children in Numba's Python. Each figure is the median of some new processes, with empty
caches for "cold", and with those of an earlier process for "first". The graph is random; a call is timed with its arrays made before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import best, installed, machine, print_table, version

Call = Callable[[], Any]


def graph(n: int, degree: int) -> tuple[Any, Any, Any]:
    """A random graph in compressed rows, with lengths."""
    rng = np.random.default_rng(n)
    starts = np.arange(n + 1) * degree
    return starts, rng.integers(0, n, n * degree), rng.random(n * degree) + 0.01


def tarjan(numba: Any, n: int, degree: int) -> Call:
    """Strong components."""
    from semiring.algorithms.strong_components import tarjan as loop

    starts, heads, _ = graph(n, degree)
    run: Any = loop if numba is None else numba.njit(cache=True)(loop.function)
    low, waiting, path = np.empty((3, n), np.int64)

    def call() -> Any:
        low.fill(-n - 1)
        return run(n, starts, heads, starts[:-1].copy(), low, waiting, path)

    return call


def parents(numba: Any, n: int, degree: int) -> Call:
    """The elimination tree."""
    from semiring.algorithms.symbolic import find_parents as loop

    starts, heads, _ = graph(n, degree)
    run: Any = loop if numba is None else numba.njit(cache=True)(loop.function)
    parent, ancestor = np.empty((2, n), np.int64)

    def call() -> Any:
        parent.fill(n)
        ancestor.fill(n)
        run(n, starts, heads, parent, ancestor)
        return int(parent.sum())

    return call


def dijkstra(numba: Any, n: int, degree: int) -> Call:
    """Distances from one vertex."""
    starts, heads, lengths = graph(n, degree)
    row = np.empty((1, n))
    if numba is None:
        from semiring import MIN_PLUS
        from semiring.algorithms.search import Searches

        searches, source = Searches(MIN_PLUS, (row.dtype,), 1), np.zeros(1, np.int64)

        def ours() -> Any:
            searches.rows((starts, heads, (lengths,)), source, (row,), None, order="best", backward=False)
            return row.sum()

        return ours
    run = numba.njit(cache=True)(_dijkstra)
    vertices, keys = np.empty(len(heads) + 1, np.int64), np.empty(len(heads) + 1)

    def theirs() -> Any:
        run(n, starts, heads, lengths, row[0], vertices, keys)
        return row.sum()

    return theirs


def _dijkstra(n: int, starts: Any, heads: Any, lengths: Any, row: Any, vertices: Any, keys: Any) -> None:
    for v in range(n):
        row[v] = np.inf
    row[0], vertices[0], keys[0], size = 0.0, 0, 0.0, 1
    while size > 0:
        u, length = vertices[0], keys[0]
        size -= 1
        vertex, key, place = vertices[size], keys[size], 0
        while True:
            first = 4 * place + 1
            if first >= size:
                break
            child = first
            for other in range(first + 1, min(first + 4, size)):
                if keys[other] < keys[child]:
                    child = other
            if not keys[child] < key:
                break
            vertices[place], keys[place] = vertices[child], keys[child]
            place = child
        vertices[place], keys[place] = vertex, key
        if row[u] < length:
            continue
        for e in range(starts[u], starts[u + 1]):
            v, offer = heads[e], length + lengths[e]
            if offer < row[v]:
                row[v], place = offer, size
                size += 1
                while place > 0 and offer < keys[(place - 1) // 4]:
                    above = (place - 1) // 4
                    vertices[place], keys[place] = vertices[above], keys[above]
                    place = above
                vertices[place], keys[place] = v, offer


LOOPS = {"strong components": tarjan, "elimination tree": parents, "Dijkstra": dijkstra}


def one_process(name: str, compiler: str, n: int, degree: int) -> None:
    """Print the seconds of the import, of the first call, and of a later call; and the result."""
    begun = time.perf_counter()
    numba = installed("numba") if compiler == "Numba" else None
    imported = time.perf_counter() - begun
    begun = time.perf_counter()
    LOOPS[name](numba, 9, 2)
    if numba is None:  # Numba takes the functions from here as well; that is not its import
        imported = time.perf_counter() - begun
    call = LOOPS[name](numba, n, degree)
    begun = time.perf_counter()
    found = float(call())
    print(json.dumps([imported, time.perf_counter() - begun, best(call, 5), found]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--process", nargs=2, metavar=("LOOP", "COMPILER"), help="one measurement; for new processes")
    args = parser.parse_args()
    if args.process:
        name, compiler = args.process
        one_process(name, compiler, args.vertices, args.degree)
        return
    print(f"{machine()}, Numba {version('numba')}")
    rows = []
    for name in LOOPS:
        results = set()
        for compiler in ("semiring", "Numba") if installed("numba") else ("semiring",):
            cold: list[list[float]] = []
            first: list[list[float]] = []
            command = [sys.executable, "-m", "benchmarks.loops", "--process", name, compiler]
            command += ["--vertices", str(args.vertices), "--degree", str(args.degree)]
            for _ in range(args.repeats):
                with tempfile.TemporaryDirectory() as folder:
                    caches = {**os.environ, "SEMIRING_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
                    for found in (cold, first):
                        run = subprocess.run(command, env=caches, capture_output=True, text=True, check=True)
                        found.append(json.loads(run.stdout))
            results |= {line[3] for line in cold + first}
            median = [statistics.median(line[k] for line in found) for found, k in ((first, 0), (cold, 1), (first, 1), (first, 2))]
            rows.append((f"{name}, {compiler}", *[f"{1000 * x:,.1f}" for x in median]))
        assert len(results) == 1, f"{name}: {results}"
    print_table(["loop, compiler; milliseconds", "import", "first call, cold", "first call", "later call"], rows)


if __name__ == "__main__":
    main()
